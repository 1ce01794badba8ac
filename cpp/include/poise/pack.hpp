// Pack<T, N>: N numbers that move together; one lane is one copy of the scene.
//
// Every algorithm is a template over its Scalar: double and float for one character, Pack for a
// batch. A Pack is one native register; operations act lane by lane, so a copy's result does not
// depend on its neighbours or on its place in the batch.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>
#endif

// The kernel file is compiled once per instruction set; each build lives in its own namespace, so
// that the linker can never hand code of one instruction set to another.
#ifndef POISE_ISA
#define POISE_ISA baseline
#endif

// Passes over the tree are one piece of code each: inlined into two places, the same formula could
// be contracted to FMA in two ways, and the same step would differ in its last bits.
#if defined(__GNUC__)
#define POISE_INLINE inline __attribute__((always_inline))
#define POISE_NOINLINE __attribute__((noinline))
#elif defined(_MSC_VER)
#define POISE_INLINE __forceinline
#define POISE_NOINLINE __declspec(noinline)
#else
#define POISE_INLINE inline
#define POISE_NOINLINE
#endif

namespace poise::inline POISE_ISA {

#if defined(__GNUC__)
template <class T, int N>
struct Lanes {
    typedef T type __attribute__((vector_size(sizeof(T) * N)));
    typedef decltype(type{} < type{}) mask;
};
#else
// compilers without vector types: an array, and loops that they may vectorise
template <class T, int N>
struct Lanes {
    struct type {
        T x[N];
        T& operator[](int i) { return x[i]; }
        const T& operator[](int i) const { return x[i]; }
    };
    struct mask {
        bool x[N];
        bool& operator[](int i) { return x[i]; }
        const bool& operator[](int i) const { return x[i]; }
    };
};
#endif

template <class T, int N>
struct Mask {
    typename Lanes<T, N>::mask x;
};

template <class T, int N>
struct Pack {
    typename Lanes<T, N>::type x;

    // Copies are spelled out: GCC then moves structs of packs register by register. Trivial ones
    // it moves as bytes, in pieces that stall the registers behind them.
    Pack() = default;
    POISE_INLINE Pack(const Pack& a) : x(a.x) {}
    POISE_INLINE Pack& operator=(const Pack& a) {
        x = a.x;
        return *this;
    }
#if defined(__GNUC__)
    POISE_INLINE Pack(T a) : x(a - typename Lanes<T, N>::type{}) {}
    POISE_INLINE explicit Pack(typename Lanes<T, N>::type a) : x(a) {}
#else
    POISE_INLINE Pack(T a) {
        for (int i = 0; i < N; ++i) x[i] = a;
    }
#endif
};

#if defined(__GNUC__)
#define POISE_PACK_OP(op)                                             \
    template <class T, int N>                                         \
    POISE_INLINE Pack<T, N> operator op(Pack<T, N> a, Pack<T, N> b) { \
        return Pack<T, N>(a.x op b.x);                                \
    }                                                                 \
    template <class T, int N>                                         \
    POISE_INLINE Pack<T, N> operator op(Pack<T, N> a, T b) {          \
        return Pack<T, N>(a.x op b);                                  \
    }                                                                 \
    template <class T, int N>                                         \
    POISE_INLINE Pack<T, N> operator op(T a, Pack<T, N> b) {          \
        return Pack<T, N>(a op b.x);                                  \
    }
#define POISE_PACK_COMPARE(op)                                        \
    template <class T, int N>                                         \
    POISE_INLINE Mask<T, N> operator op(Pack<T, N> a, Pack<T, N> b) { \
        return {a.x op b.x};                                          \
    }
#define POISE_MASK_OP(name, op)                                \
    template <class T, int N>                                  \
    POISE_INLINE Mask<T, N> name(Mask<T, N> a, Mask<T, N> b) { \
        return {a.x op b.x};                                   \
    }
#else
#define POISE_PACK_OP(op)                                             \
    template <class T, int N>                                         \
    POISE_INLINE Pack<T, N> operator op(Pack<T, N> a, Pack<T, N> b) { \
        Pack<T, N> c;                                                 \
        for (int i = 0; i < N; ++i) c.x[i] = a.x[i] op b.x[i];        \
        return c;                                                     \
    }                                                                 \
    template <class T, int N>                                         \
    POISE_INLINE Pack<T, N> operator op(Pack<T, N> a, T b) {          \
        return a op Pack<T, N>(b);                                    \
    }                                                                 \
    template <class T, int N>                                         \
    POISE_INLINE Pack<T, N> operator op(T a, Pack<T, N> b) {          \
        return Pack<T, N>(a) op b;                                    \
    }
#define POISE_PACK_COMPARE(op)                                        \
    template <class T, int N>                                         \
    POISE_INLINE Mask<T, N> operator op(Pack<T, N> a, Pack<T, N> b) { \
        Mask<T, N> c;                                                 \
        for (int i = 0; i < N; ++i) c.x[i] = a.x[i] op b.x[i];        \
        return c;                                                     \
    }
#define POISE_MASK_OP(name, op)                                \
    template <class T, int N>                                  \
    POISE_INLINE Mask<T, N> name(Mask<T, N> a, Mask<T, N> b) { \
        Mask<T, N> c;                                          \
        for (int i = 0; i < N; ++i) c.x[i] = a.x[i] op b.x[i]; \
        return c;                                              \
    }
#endif
POISE_PACK_OP(+)
POISE_PACK_OP(-)
POISE_PACK_OP(*)
POISE_PACK_OP(/)
POISE_PACK_COMPARE(<)
POISE_PACK_COMPARE(<=)
POISE_PACK_COMPARE(>)
POISE_PACK_COMPARE(==)
POISE_MASK_OP(operator&, &)
POISE_MASK_OP(operator|, |)
#undef POISE_PACK_OP
#undef POISE_PACK_COMPARE
#undef POISE_MASK_OP

template <class T, int N>
POISE_INLINE Pack<T, N> operator-(Pack<T, N> a) {
    return T(0) - a;
}
template <class T, int N>
POISE_INLINE Pack<T, N>& operator+=(Pack<T, N>& a, Pack<T, N> b) {
    return a = a + b;
}
template <class T, int N>
POISE_INLINE Pack<T, N>& operator-=(Pack<T, N>& a, Pack<T, N> b) {
    return a = a - b;
}
template <class T, int N>
POISE_INLINE Pack<T, N>& operator*=(Pack<T, N>& a, Pack<T, N> b) {
    return a = a * b;
}

// what a Scalar is made of: its element, its number of lanes, its mask
template <class S>
struct Traits {
    using Element = S;
    using Mask = bool;
    static constexpr int lanes = 1;
};
template <class T, int N>
struct Traits<Pack<T, N>> {
    using Element = T;
    using Mask = poise::POISE_ISA::Mask<T, N>;
    static constexpr int lanes = N;
};
template <class S>
using Element = typename Traits<S>::Element;
template <class S>
using MaskOf = typename Traits<S>::Mask;

template <class T>
POISE_INLINE T get(const T& a, int) {
    return a;
}
template <class T, int N>
POISE_INLINE T get(const Pack<T, N>& a, int lane) {
    return a.x[lane];
}
template <class T>
POISE_INLINE void put(T& a, int, T value) {
    a = value;
}
template <class T, int N>
POISE_INLINE void put(Pack<T, N>& a, int lane, T value) {
    a.x[lane] = value;
}

// masks: of one number a bool, of a Pack one per lane
POISE_INLINE bool get(bool m, int) { return m; }
template <class T, int N>
POISE_INLINE bool get(const Mask<T, N>& m, int lane) {
    return m.x[lane] != 0;
}
POISE_INLINE void put(bool& m, int, bool value) { m = value; }
template <class T, int N>
POISE_INLINE void put(Mask<T, N>& m, int lane, bool value) {
    m.x[lane] = value ? -1 : 0;
}
POISE_INLINE bool any(bool m) { return m; }
template <class T, int N>
POISE_INLINE bool any(const Mask<T, N>& m) {
#if defined(__GNUC__) && defined(__x86_64__)
    if constexpr (sizeof(T) * N == 16) return _mm_movemask_epi8((__m128i)m.x) != 0;
#if defined(__AVX2__)
    if constexpr (sizeof(T) * N == 32) return !_mm256_testz_si256((__m256i)m.x, (__m256i)m.x);
#endif
#if defined(__AVX512F__)
    if constexpr (sizeof(T) * N == 64)
        return _mm512_test_epi64_mask((__m512i)m.x, (__m512i)m.x) != 0;
#endif
#endif
    bool r = false;
    for (int i = 0; i < N; ++i) r |= m.x[i] != 0;
    return r;
}
// one bit a lane
POISE_INLINE unsigned bits(bool m) { return m; }
template <class T, int N>
POISE_INLINE unsigned bits(const Mask<T, N>& m) {
#if defined(__GNUC__) && defined(__x86_64__)
    if constexpr (sizeof(T) * N == 16) {
        if constexpr (sizeof(T) == 8) return _mm_movemask_pd((__m128d)m.x);
        else return _mm_movemask_ps((__m128)m.x);
    }
#if defined(__AVX2__)
    if constexpr (sizeof(T) * N == 32) {
        if constexpr (sizeof(T) == 8) return _mm256_movemask_pd((__m256d)m.x);
        else return _mm256_movemask_ps((__m256)m.x);
    }
#endif
#if defined(__AVX512F__)
    if constexpr (sizeof(T) * N == 64) {
        if constexpr (sizeof(T) == 8) return _mm512_test_epi64_mask((__m512i)m.x, (__m512i)m.x);
        else return _mm512_test_epi32_mask((__m512i)m.x, (__m512i)m.x);
    }
#endif
#endif
    unsigned r = 0;
    for (int i = 0; i < N; ++i) r |= unsigned(m.x[i] != 0) << i;
    return r;
}
POISE_INLINE bool negate(bool m) { return !m; }
template <class T, int N>
POISE_INLINE Mask<T, N> negate(const Mask<T, N>& m) {
#if defined(__GNUC__)
    return {~m.x};
#else
    Mask<T, N> r;
    for (int i = 0; i < N; ++i) r.x[i] = !m.x[i];
    return r;
#endif
}
template <class S>
POISE_INLINE MaskOf<S> constant_mask(bool value) {
    MaskOf<S> m;
    for (int i = 0; i < Traits<S>::lanes; ++i) put(m, i, value);
    return m;
}

// visit(lane) for the lanes of a mask, in their order
template <class Mask, class Visit>
POISE_INLINE void each_lane(const Mask& m, Visit visit) {
    for (unsigned left = bits(m); left; left &= left - 1) visit(std::countr_zero(left));
}

template <class T>
POISE_INLINE T select(bool m, T yes, T no) {
    return m ? yes : no;
}
template <class T, int N>
POISE_INLINE Pack<T, N> select(const Mask<T, N>& m, Pack<T, N> yes, Pack<T, N> no) {
#if defined(__GNUC__)
    return Pack<T, N>(m.x ? yes.x : no.x);
#else
    for (int i = 0; i < N; ++i)
        if (!m.x[i]) yes.x[i] = no.x[i];
    return yes;
#endif
}

POISE_INLINE double square_root(double a) { return std::sqrt(a); }
POISE_INLINE float square_root(float a) { return std::sqrt(a); }
template <class T, int N>
POISE_INLINE Pack<T, N> square_root(Pack<T, N> a) {
#if defined(__GNUC__) && defined(__x86_64__)
    if constexpr (sizeof(T) * N == 16) {
        if constexpr (sizeof(T) == 8) return Pack<T, N>(_mm_sqrt_pd(a.x));
        else return Pack<T, N>(_mm_sqrt_ps(a.x));
    }
#if defined(__AVX__)
    if constexpr (sizeof(T) * N == 32) {
        if constexpr (sizeof(T) == 8) return Pack<T, N>(_mm256_sqrt_pd(a.x));
        else return Pack<T, N>(_mm256_sqrt_ps(a.x));
    }
#endif
#if defined(__AVX512F__)
    if constexpr (sizeof(T) * N == 64) {
        if constexpr (sizeof(T) == 8) return Pack<T, N>(_mm512_maskz_sqrt_pd(0xff, a.x));
        else return Pack<T, N>(_mm512_maskz_sqrt_ps(0xffff, a.x));
    }
#endif
#endif
    Pack<T, N> r;
    for (int i = 0; i < N; ++i) r.x[i] = square_root(a.x[i]);
    return r;
}

template <class S>
POISE_INLINE S larger(S a, S b) {
    return select(a < b, b, a);
}
// nearest whole number, ties to even, for |a| below 2^51 (double) or 2^22 (float)
template <class S>
POISE_INLINE S round_nearest(S a) {
    constexpr Element<S> magic =
        sizeof(Element<S>) == 8 ? Element<S>(6755399441055744.0) : Element<S>(12582912.0);
    return (a + magic) - magic;
}

}  // namespace poise::inline POISE_ISA
