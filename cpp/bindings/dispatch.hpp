// Which build of the kernels this CPU runs.
#pragma once

#include <string>
#include <vector>

#include "poise/kernel.hpp"

namespace poise {

std::vector<std::string> built_isas();      // compiled into this module
std::vector<std::string> supported_isas();  // of those, what the CPU has
std::string chosen_isa();                   // POISE_ISA, or the best that is used unasked
void choose_isa(const std::string& name);   // throws std::invalid_argument with what would be right

// index 0: double, 1: float, 2: double in lanes, 3: float in lanes
const Kernel& kernel(int index);

}  // namespace poise
