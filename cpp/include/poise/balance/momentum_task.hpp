// Desired rates of momentum (M 5.9, 5.15). The mathematics is in poise.reference.balance.
#pragma once

#include "poise/balance/support_weights.hpp"

namespace poise::inline POISE_ISA {

struct MomentumTask {
    double linear[2];            // L'_des, horizontal [N]
    double angular[3];           // H'_des [N m]
    double cmp_offset;           // distance from the desired CoP to the desired CMP [m]
    double desired_com[2];       // c_des [m]; NaN without supports
    double capture_point_error;  // distance from there to where the CoM's velocity leads it [m]

    // v, tv, ta: velocities of the state; velocities and accelerations of the target, or null.
    // Returns false without supports, or if no momentum is regulated.
    bool compute(const SupportWeights& supports, const TaskView& now, const TaskView& then,
                 const double* v, const double* tv, const double* ta) {
        const BalanceProblem& problem = *supports.problem;
        const BalanceParams& o = problem.params;
        const int nv = static_cast<int>(problem.nv);
        capture_point_error = 0;
        desired_com[0] = desired_com[1] = NAN;
        if (!o.linear && !o.angular) return false;
        // center of the supports, of the state and of the target, and their polygon
        double sum = 0, most = 0, mid[2] = {0, 0}, motion[2] = {0, 0};
        hull_.clear();
        for (int j = 0; j < problem.sole_points; ++j) {
            const double w = supports.of_point(j);
            const double* p = supports.current.position.data() + 3 * j;
            const double* r = supports.desired.position.data() + 3 * j;
            sum += w;
            most = std::fmax(most, w);
            for (int k = 0; k < 2; ++k) mid[k] += w * p[k], motion[k] += w * r[k];
            if (!std::isfinite(p[0] + p[1])) return false;
            if (w > 0.3) hull_.push_back({p[0], p[1]});
        }
        if (!(most > 0.5) || !(sum > 1e-3)) return false;
        convex_hull(hull_, scratch_, o.margin);
        // where the CoM should be, and how it should move there
        double goal[2], velocity[2] = {0, 0}, acceleration[2] = {0, 0};
        for (int k = 0; k < 2; ++k) {
            goal[k] =
                mid[k] / sum + (o.follow_motion ? then.c[k] - motion[k] / sum : o.com_offset[k]);
            if (!o.follow_motion) continue;
            const double* A = then.A + k * nv;
            if (tv) velocity[k] = dot(A, tv, nv) / then.A[0];
            acceleration[k] = ((ta ? dot(A, ta, nv) : 0) + then.rate[k]) / then.A[0];
        }
        const double mass = now.A[0];
        const double fz = mass * std::fmax(std::fabs(problem.gravity[2]), 1e-3);
        const double height = std::fmax(now.c[2] - o.ground_height, 1e-3);
        const Point2 inside = closest_point(hull_, {goal[0], goal[1]});
        desired_com[0] = inside.x, desired_com[1] = inside.y;
        double L[2], cmp[2];
        for (int k = 0; k < 2; ++k) {
            L[k] = dot(now.A + k * nv, v, nv);
            linear[k] = mass * (o.linear_gains[0] * (desired_com[k] - now.c[k]) + acceleration[k]) +
                        o.linear_gains[1] * (mass * velocity[k] - L[k]);
            cmp[k] = now.c[k] - height / fz * linear[k];
        }
        // the CoP cannot leave the supports: the offset of the CMP turns the body
        const Point2 nearest = closest_point(hull_, {cmp[0], cmp[1]});
        const double cop[2] = {nearest.x, nearest.y};
        double offset[2] = {cmp[0] - cop[0], cmp[1] - cop[1]};
        const double distance = std::hypot(offset[0], offset[1]);
        for (int k = 0; k < 2 && distance > o.max_cmp_offset; ++k) {
            offset[k] *= o.max_cmp_offset / distance;
            linear[k] = (now.c[k] - cop[k] - offset[k]) * (fz / height);
        }
        cmp_offset = std::hypot(offset[0], offset[1]);
        angular[0] = -offset[1] * fz, angular[1] = offset[0] * fz, angular[2] = 0;
        capture_point_error = std::hypot(desired_com[0] - now.c[0] - o.capture_time * L[0] / mass,
                                         desired_com[1] - now.c[1] - o.capture_time * L[1] / mass);
        return true;
    }

  private:
    Polygon hull_, scratch_;
};

}  // namespace poise::inline POISE_ISA
