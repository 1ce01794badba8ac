// Forces of the ground inside friction pyramids:
//     min_x |P x - r|^2 / 2 + ease |x|^2 / 2,   0 <= x <= most,
// P of six rows. At the answer x = clip(P^T y, 0, most), where the six numbers y solve
//     F(y) = P clip(P^T y, 0, most) + ease y - r = 0,
// the gradient of a convex function phi: Newton's method with P_F P_F^T + ease as its matrix, F the
// entries between their bounds, each step as long as phi falls. The twin in Python uses daqp.
#pragma once

#include "poise/balance/basis.hpp"

namespace poise::inline POISE_ISA {

struct ConeProblem {
    int m;               // unknowns
    const double* P;     // (m, 6), a column of P per row
    const double* r;     // (6)
    const double* most;  // (m)
    double ease;

    // y in place, from a first guess. Rounds are bounded: whatever y is, the forces that follow
    // from it are inside their bounds.
    void solve(double* y, int rounds = 100) const {
        double F[6], A[36], way[6], scale = 0;
        for (int i = 0; i < 6; ++i) scale = std::fmax(scale, std::fabs(r[i]));
        for (int round = 0; round < rounds; ++round) {
            linearise(y, F, A);
            double off = 0;
            for (int i = 0; i < 6; ++i) off = std::fmax(off, std::fabs(F[i]));
            if (!(off > 1e-12 * scale)) return;
            for (int i = 0; i < 6; ++i) way[i] = -F[i];
            if (!solve_small(A, way, 6)) return;
            const double step = along(y, way);
            if (!(step > 0)) return;  // as near as rounding lets it
            for (int i = 0; i < 6; ++i) y[i] += step * way[i];
        }
    }

    void unknowns(const double* y, double* x) const {
        for (int j = 0; j < m; ++j) x[j] = clipped(at(j, y), j);
    }

  private:
    double at(int j, const double* y) const {
        const double* p = P + 6 * j;
        return p[0] * y[0] + p[1] * y[1] + p[2] * y[2] + p[3] * y[3] + p[4] * y[4] + p[5] * y[5];
    }
    double clipped(double t, int j) const { return std::fmin(std::fmax(t, 0.0), most[j]); }

    // F and its slope, the lower half
    void linearise(const double* y, double* F, double* A) const {
        for (int i = 0; i < 36; ++i) A[i] = i % 7 ? 0 : ease;
        for (int i = 0; i < 6; ++i) F[i] = ease * y[i] - r[i];
        for (int j = 0; j < m; ++j) {
            const double *p = P + 6 * j, t = at(j, y), x = clipped(t, j);
            for (int i = 0; i < 6; ++i) F[i] += x * p[i];
            if (!(t > 0 && t < most[j])) continue;
            for (int i = 0; i < 6; ++i)
                for (int k = 0; k <= i; ++k) A[6 * i + k] += p[i] * p[k];
        }
    }

    // how far along a way phi is least: the root of its slope, which grows and bends at bounds only
    double along(const double* y, const double* way) const {
        double low = 0, high = INFINITY, t = 1, first = 0;
        double fixed = 0, grows = 0;
        for (int i = 0; i < 6; ++i) {
            fixed += way[i] * (ease * y[i] - r[i]);
            grows += ease * way[i] * way[i];
        }
        for (int round = 0; round < 100; ++round) {
            double slope = fixed + t * grows, bend = grows, start = fixed;
            for (int j = 0; j < m; ++j) {
                const double a = at(j, y), s = at(j, way), x = a + t * s;
                slope += s * clipped(x, j);
                start += s * clipped(a, j);
                if (x > 0 && x < most[j]) bend += s * s;
            }
            if (round == 0) first = std::fabs(start);
            if (std::fabs(slope) <= 1e-13 * first) break;
            (slope < 0 ? low : high) = t;
            double next = t - slope / bend;
            if (!(next > low && next < high)) next = high < INFINITY ? 0.5 * (low + high) : 2 * t;
            if (next == t) break;
            t = next;
        }
        return t;
    }
};

}  // namespace poise::inline POISE_ISA
