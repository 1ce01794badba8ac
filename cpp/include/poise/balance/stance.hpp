// What a plan begins with: which soles stand, and how firmly (poise.control.balance.stance).
#pragma once

#include "poise/balance/basis.hpp"
#include "poise/balance/polygon.hpp"
#include "poise/kernel.hpp"

namespace poise::inline POISE_ISA {

// The numbers of `task_size`, one after another.
struct TaskView {
    const double *A, *M, *J, *h, *rate, *c, *bias, *p, *R;

    TaskView(const double* at, std::int64_t nv, std::int64_t k)
        : A(at), M(A + 6 * nv), J(M + nv * nv), h(J + 6 * nv * k), rate(h + nv), c(rate + 6),
          bias(c + 3), p(bias + 6 * k), R(p + 3 * k) {}
};

// 1 below bounds[0], 0 above bounds[1], smooth between
inline double faded(double value, const double* bounds) {
    const double s = (bounds[1] - value) / (bounds[1] - bounds[0]);
    const double share = std::fmin(std::fmax(s, 0.0), 1.0);
    return share * share * (3 - 2 * share);
}

// Soles of one state and of its target.
struct Stance {
    // places of the soles' corners, and the height of the lowest of each sole
    struct Soles {
        Room<double> at, low;
    };

    const PlanCall* o = nullptr;
    Soles here, there;
    Room<double> share;
    double upright = 1;  // 0: it has fallen

    void find(const PlanCall& call, const TaskView& now, const TaskView& then, std::int64_t i) {
        o = &call;
        places(now, here);
        places(then, there);
        share.resize(call.soles);
        const double* when = call.when.p ? call.when.p + i * call.when.copy : nullptr;
        for (int k = 0; k < call.soles; ++k) {
            share[k] = faded(here.low[k] - call.ground, call.lifts) *
                       faded(tilt(now.R + 9 * k, then.R + 9 * k), call.tilts);
            if (call.always) continue;
            const bool known = when && std::isfinite(when[k]);
            share[k] *= known ? when[k] : faded(there.low[k] - call.ground, call.leaves);
        }
        upright = faded(lean(now.c), call.leans);
        for (int k = 0; k < call.soles; ++k) share[k] *= upright;
    }
    double of_corner(int j) const { return share[static_cast<int>(o->corner[4 * j])]; }

  private:
    // 1 - cos of the angle between a sole and that of the target, whichever way they face
    static double tilt(const double* R, const double* T) {
        return 1 - (R[6] * T[6] + R[7] * T[7] + R[8] * T[8]);
    }
    // how far the mass centre is beside the soles, by its height
    double lean(const double* c) {
        hull_.clear();
        for (int j = 0; j < o->corners; ++j) {
            const double* p = here.at.data() + 3 * j;
            if (!std::isfinite(p[0] + p[1])) return INFINITY;
            hull_.push_back({p[0], p[1]});
        }
        if (hull_.empty()) return 0;
        take_hull(hull_, room_, 0);
        const Corner at = nearest_inside(hull_, {c[0], c[1]});
        return std::hypot(c[0] - at.x, c[1] - at.y) / std::fmax(c[2] - o->ground, 1e-3);
    }
    Polygon hull_, room_;

    void places(const TaskView& t, Soles& s) {
        s.at.resize(3 * o->corners);
        s.low.assign(o->soles, INFINITY);
        for (int j = 0; j < o->corners; ++j) {
            const double* c = o->corner + 4 * j;
            const int k = static_cast<int>(c[0]);
            const double *R = t.R + 9 * k, *p = t.p + 3 * k;
            for (int x = 0; x < 3; ++x)
                s.at[3 * j + x] =
                    p[x] + R[3 * x] * c[1] + R[3 * x + 1] * c[2] + R[3 * x + 2] * c[3];
            s.low[k] = std::fmin(s.low[k], s.at[3 * j + 2]);
        }
    }
};

}  // namespace poise::inline POISE_ISA
