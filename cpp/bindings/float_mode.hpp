// The floating-point mode of the kernels, whatever the caller's is.
//
// Round to nearest, no traps, and denormal numbers are zero, as inputs and as results: velocities
// of a body that comes to rest decay through them, and arithmetic with them is up to ten times
// slower. The mode belongs to a thread, and the destructor gives it back as it was.
#pragma once

#include <cstdint>

#if defined(__SSE2__) || defined(_M_X64)
#include <immintrin.h>
#elif defined(_M_ARM64)
#include <intrin.h>
#endif

namespace poise {

class KernelFloatMode {
  public:
    KernelFloatMode() : caller_(get()) { set(kMode); }
    ~KernelFloatMode() { set(caller_); }
    KernelFloatMode(const KernelFloatMode&) = delete;
    KernelFloatMode& operator=(const KernelFloatMode&) = delete;

  private:
#if defined(__SSE2__) || defined(_M_X64)
    // MXCSR: FTZ (bit 15), DAZ (bit 6), all exceptions masked (bits 7 to 12)
    using Word = unsigned;
    static constexpr Word kMode = 0x9fc0;
    static Word get() { return _mm_getcsr(); }
    static void set(Word mode) { _mm_setcsr(mode); }
#elif defined(__aarch64__)
    // FPCR: FZ (bit 24)
    using Word = std::uint64_t;
    static constexpr Word kMode = Word{1} << 24;
    static Word get() {
        Word mode;
        __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
        return mode;
    }
    static void set(Word mode) { __asm__ volatile("msr fpcr, %0" : : "r"(mode) : "memory"); }
#elif defined(_M_ARM64)
    using Word = std::int64_t;
    static constexpr Word kMode = Word{1} << 24;
    static Word get() { return _ReadStatusReg(ARM64_FPCR); }
    static void set(Word mode) { _WriteStatusReg(ARM64_FPCR, mode); }
#else
    using Word = int;
    static constexpr Word kMode = 0;
    static Word get() { return 0; }
    static void set(Word) {}
#endif

    const Word caller_;
};

}  // namespace poise
