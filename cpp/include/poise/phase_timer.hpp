// Fills a profile; one for each instruction set, as all code of the kernels.
#pragma once

#include "poise/profile.hpp"

namespace poise::inline POISE_ISA {

inline void count_residual(StepProfile& p, double r) {
    if (r > p.largest_residual) p.largest_residual = r;
    int bin = 0;
    for (double edge = 1e-10; bin + 1 < kResidualBins && r >= edge; ++bin)
        edge *= 1.2589254117941673;
    ++p.residuals[bin];
}

// Adds the time since the last mark to a phase; does nothing without a profile.
struct PhaseTimer {
    StepProfile* profile = nullptr;
    double last = 0;

    void start(StepProfile* to) {
        profile = to;
        if (profile) last = profile->clock();
    }
    void mark(Phase phase) {
        if (!profile) return;
        const double now = profile->clock();
        profile->seconds[static_cast<int>(phase)] += now - last;
        last = now;
    }
};

}  // namespace poise::inline POISE_ISA
