// What balance wants of the momentum (M 5.9, 5.15; poise.control.balance.momentum).
#pragma once

#include "poise/balance/stance.hpp"

namespace poise::inline POISE_ISA {

struct MomentumWish {
    double linear[2];   // L'_des, level [N]
    double angular[3];  // H'_des [N m]
    double apart;       // of CMP and COP [m]
    double center[2];   // c_des [m]
    double strain;      // how far from there its speed takes it [m]

    // v, tv, ta: velocities, and those and accelerations of the target, or null. False without
    // supports, or if it does not matter.
    bool find(const Stance& stance, const TaskView& now, const TaskView& then, const double* v,
              const double* tv, const double* ta) {
        const PlanCall& o = *stance.o;
        const int nv = static_cast<int>(o.nv);
        strain = 0;
        center[0] = center[1] = NAN;
        if (!o.linear && !o.angular) return false;
        double sum = 0, most = 0, mid[2] = {0, 0}, motion[2] = {0, 0};
        hull_.clear();
        for (int j = 0; j < o.corners; ++j) {
            const double w = stance.of_corner(j);
            const double *p = stance.here.at.data() + 3 * j, *r = stance.there.at.data() + 3 * j;
            sum += w;
            most = std::fmax(most, w);
            for (int k = 0; k < 2; ++k) mid[k] += w * p[k], motion[k] += w * r[k];
            if (!std::isfinite(p[0] + p[1])) return false;
            if (w > 0.3) hull_.push_back({p[0], p[1]});
        }
        if (!(most > 0.5) || !(sum > 1e-3)) return false;
        take_hull(hull_, room_, o.margin);
        double to[2], speed[2] = {0, 0}, rise[2] = {0, 0};
        for (int k = 0; k < 2; ++k) {
            to[k] = mid[k] / sum + (o.motion ? then.c[k] - motion[k] / sum : o.center[k]);
            if (!o.motion) continue;
            const double* A = then.A + k * nv;
            if (tv) speed[k] = dot(A, tv, nv) / then.A[0];
            rise[k] = ((ta ? dot(A, ta, nv) : 0) + then.rate[k]) / then.A[0];
        }
        const double mass = now.A[0], fz = mass * std::fmax(std::fabs(o.gravity[2]), 1e-3);
        const double height = std::fmax(now.c[2] - o.ground, 1e-3);
        const Corner goal = nearest_inside(hull_, {to[0], to[1]});
        center[0] = goal.x, center[1] = goal.y;
        double L[2], pivot[2];
        for (int k = 0; k < 2; ++k) {
            L[k] = dot(now.A + k * nv, v, nv);
            linear[k] = mass * (o.k_linear[0] * (center[k] - now.c[k]) + rise[k]) +
                        o.k_linear[1] * (mass * speed[k] - L[k]);
            pivot[k] = now.c[k] - height / fz * linear[k];
        }
        const Corner nearest = nearest_inside(hull_, {pivot[0], pivot[1]});
        const double pressure[2] = {nearest.x, nearest.y};
        double away[2] = {pivot[0] - pressure[0], pivot[1] - pressure[1]};
        const double far = std::hypot(away[0], away[1]);
        for (int k = 0; k < 2 && far > o.reach; ++k) {
            away[k] *= o.reach / far;
            linear[k] = (now.c[k] - pressure[k] - away[k]) * (fz / height);
        }
        apart = std::hypot(away[0], away[1]);
        angular[0] = -away[1] * fz, angular[1] = away[0] * fz, angular[2] = 0;
        strain = std::hypot(center[0] - now.c[0] - o.ahead * L[0] / mass,
                            center[1] - now.c[1] - o.ahead * L[1] / mass);
        return true;
    }

  private:
    Polygon hull_, room_;
};

}  // namespace poise::inline POISE_ISA
