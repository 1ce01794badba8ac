// Ground forces inside friction pyramids, a quadratic program:
//     min_x |P x - r|^2 / 2 + regularization |x|^2 / 2,   0 <= x <= upper,
// P of six rows. At the solution x = clip(P^T y, 0, upper), where the six numbers y solve
//     F(y) = P clip(P^T y, 0, upper) + regularization y - r = 0,
// the gradient of a convex function phi: Newton's method with the matrix P_F P_F^T +
// regularization, F the entries between their bounds, each step with a line search. The reference
// implementation uses daqp.
#pragma once

#include "poise/balance/constrained_lsq.hpp"

namespace poise::inline POISE_ISA {

struct FrictionConeQP {
    int m;                // unknowns
    const double* P;      // (m, 6), a column of P per row
    const double* r;      // (6)
    const double* upper;  // (m)
    double regularization;

    // Solves for y in place, from a first guess. Iterations are bounded: whatever y is, the forces
    // that follow from it are inside their bounds.
    void solve(double* y, int iterations = 100) const {
        double F[6], A[36], direction[6], scale = 0;
        for (int i = 0; i < 6; ++i) scale = std::fmax(scale, std::fabs(r[i]));
        for (int iteration = 0; iteration < iterations; ++iteration) {
            linearize(y, F, A);
            double residual = 0;
            for (int i = 0; i < 6; ++i) residual = std::fmax(residual, std::fabs(F[i]));
            if (!(residual > 1e-12 * scale)) return;
            for (int i = 0; i < 6; ++i) direction[i] = -F[i];
            if (!solve_small(A, direction, 6)) return;
            const double step = line_search(y, direction);
            if (!(step > 0)) return;  // as near as rounding lets it
            for (int i = 0; i < 6; ++i) y[i] += step * direction[i];
        }
    }

    void unknowns(const double* y, double* x) const {
        for (int j = 0; j < m; ++j) x[j] = clamped(at(j, y), j);
    }

  private:
    double at(int j, const double* y) const {
        const double* p = P + 6 * j;
        return p[0] * y[0] + p[1] * y[1] + p[2] * y[2] + p[3] * y[3] + p[4] * y[4] + p[5] * y[5];
    }
    double clamped(double t, int j) const { return std::fmin(std::fmax(t, 0.0), upper[j]); }

    // F and its slope, the lower half
    void linearize(const double* y, double* F, double* A) const {
        for (int i = 0; i < 36; ++i) A[i] = i % 7 ? 0 : regularization;
        for (int i = 0; i < 6; ++i) F[i] = regularization * y[i] - r[i];
        for (int j = 0; j < m; ++j) {
            const double *p = P + 6 * j, t = at(j, y), x = clamped(t, j);
            for (int i = 0; i < 6; ++i) F[i] += x * p[i];
            if (!(t > 0 && t < upper[j])) continue;
            for (int i = 0; i < 6; ++i)
                for (int k = 0; k <= i; ++k) A[6 * i + k] += p[i] * p[k];
        }
    }

    // how far line_search a direction phi is least: the root of its slope, which curvature and
    // bends at bounds only
    double line_search(const double* y, const double* direction) const {
        double low = 0, high = INFINITY, t = 1, first = 0;
        double fixed = 0, curvature = 0;
        for (int i = 0; i < 6; ++i) {
            fixed += direction[i] * (regularization * y[i] - r[i]);
            curvature += regularization * direction[i] * direction[i];
        }
        for (int iteration = 0; iteration < 100; ++iteration) {
            double slope = fixed + t * curvature, slope_rate = curvature, start = fixed;
            for (int j = 0; j < m; ++j) {
                const double a = at(j, y), s = at(j, direction), x = a + t * s;
                slope += s * clamped(x, j);
                start += s * clamped(a, j);
                if (x > 0 && x < upper[j]) slope_rate += s * s;
            }
            if (iteration == 0) first = std::fabs(start);
            if (std::fabs(slope) <= 1e-13 * first) break;
            (slope < 0 ? low : high) = t;
            double next = t - slope / slope_rate;
            if (!(next > low && next < high)) next = high < INFINITY ? 0.5 * (low + high) : 2 * t;
            if (next == t) break;
            t = next;
        }
        return t;
    }
};

}  // namespace poise::inline POISE_ISA
