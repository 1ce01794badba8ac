// Which build of the kernels this CPU runs.
#pragma once

#include <string>
#include <vector>

#include "poise/kernel.hpp"

namespace poise {

std::vector<std::string> built_isas();      // compiled into this module
std::vector<std::string> supported_isas();  // of those, what the CPU has

// Which set runs what: a rule, and not a timing, because results must not depend on a race. Wider
// lanes are faster for a batch; a single character is slower with AVX-512 on some CPUs.
//
//     POISE_ISA is set              that set for both
//     the CPU has AVX-512           AVX2 for a single character, AVX-512 for a batch
//     the CPU has AVX2              AVX2 for both
//     else                          the baseline for both
struct ChosenIsas {
    std::string single, batch;
};
const ChosenIsas& chosen_isas();

// One set for both, or by the rule above for ''; throws std::invalid_argument with what there is.
void choose_isa(const std::string& name);

// index 0: double, 1: float, 2: double in lanes, 3: float in lanes
const Kernel& kernel(int index);

}  // namespace poise
