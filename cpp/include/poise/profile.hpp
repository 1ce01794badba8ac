// Where the time of a step goes, and how exactly its contacts were solved. Plain data, one for each
// thread; the kernels fill it where a call asks for it.
#pragma once

#include <cstdint>

namespace poise {

enum class Phase : std::int32_t {
    dynamics,    // joint forces and articulated inertias
    detection,   // which shapes may touch within the step
    responses,   // half solves of the rows that take part
    iterations,  // block Gauss-Seidel
    newton,      // bodies that rest on each other
    positions,   // pseudo velocities that correct penetration, and restitution
    integration  // momentum, positions, and what is kept for the next step
};
constexpr int kPhases = 7;

// Natural residuals are counted by their size: ten bins for a factor of ten, from 1e-10 m/s on.
constexpr int kResidualBins = 120;

struct StepProfile {
    double (*clock)() = nullptr;  // [s]
    double seconds[kPhases] = {};
    std::int64_t steps = 0;       // of all copies
    std::int64_t contacts = 0;    // that may touch within the step
    std::int64_t solved = 0;      // rows that took part in iterations
    std::int64_t iterations = 0;  // sweeps over the rows of a tile
    std::int64_t islands = 0;     // solved by Newton's method
    std::int64_t residuals[kResidualBins] = {};
    double largest_residual = 0;  // [m/s]
};

}  // namespace poise
