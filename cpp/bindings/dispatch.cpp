#include "dispatch.hpp"

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

#if defined(_MSC_VER) && defined(_M_X64)
#include <immintrin.h>
#include <intrin.h>
#endif

namespace poise {

namespace {

ChosenIsas current;

bool has(const std::vector<std::string>& list, const std::string& name) {
    return std::find(list.begin(), list.end(), name) != list.end();
}

#if defined(_MSC_VER) && defined(_M_X64)
// the CPU has the instructions and the operating system saves the registers
bool cpu_has(const std::string& isa) {
    int r[4];
    __cpuid(r, 1);
    const bool saves = (r[2] & (1 << 27)) != 0, fma = (r[2] & (1 << 12)) != 0;
    if (!saves || !fma) return false;
    const unsigned long long state = _xgetbv(0);
    __cpuidex(r, 7, 0);
    if (isa == "avx2") return (state & 6) == 6 && (r[1] & (1 << 5)) != 0;
    const int wanted = (1 << 16) | (1 << 17) | (1 << 28) | (1 << 30) | (1 << 31);
    return (state & 0xe6) == 0xe6 && (r[1] & wanted) == wanted;
}
#elif defined(__x86_64__)
bool cpu_has(const std::string& isa) {
    __builtin_cpu_init();
    if (isa == "avx2")
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
               __builtin_cpu_supports("bmi2");
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512cd");
}
#else
bool cpu_has(const std::string&) { return false; }
#endif

}  // namespace

std::vector<std::string> built_isas() {
    std::vector<std::string> all = {"baseline"};
#if defined(POISE_HAS_AVX2)
    all.push_back("avx2");
#endif
#if defined(POISE_HAS_AVX512)
    all.push_back("avx512");
#endif
    return all;
}

std::vector<std::string> supported_isas() {
    std::vector<std::string> all;
    for (const auto& isa : built_isas())
        if (isa == "baseline" || cpu_has(isa)) all.push_back(isa);
    return all;
}

void choose_isa(const std::string& given) {
    const auto can = supported_isas();
    const char* forced = std::getenv("POISE_ISA");
    std::string name = given.empty() && forced ? forced : given;
    if (name.empty()) name = can.back();
    if (!has(can, name)) {
        std::string text;
        for (const auto& isa : can) text += (text.empty() ? "" : ", ") + isa;
        throw std::invalid_argument("instruction set '" + name +
                                    "' is not available here; available: " + text);
    }
    // one character has no use for wider registers
    const std::string narrow = has(can, "avx2") ? "avx2" : "baseline";
    current = {name == "avx512" ? narrow : name, name};
}

WorldKernel::~WorldKernel() = default;  // here, so that no kernel object holds a copy

const ChosenIsas& chosen_isas() {
    if (current.single.empty()) choose_isa("");
    return current;
}

const Kernel& kernel(int index) {
    const ChosenIsas& chosen = chosen_isas();
    const std::string& isa = index < 2 ? chosen.single : chosen.batch;
#if defined(POISE_HAS_AVX2)
    if (isa == "avx2") return *kernels_avx2(index);
#endif
#if defined(POISE_HAS_AVX512)
    if (isa == "avx512") return *kernels_avx512(index);
#endif
    return *kernels_baseline(index);
}

}  // namespace poise
