// Support weights: which soles carry the character, from 0 to 1 (poise.control.balance.supports). A
// support counts as far as the schedule or the target has it stand, and as it can: near the ground,
// level, and below the body. A fallen character has no valid supports.
#pragma once

#include "poise/balance/constrained_lsq.hpp"
#include "poise/balance/polygon.hpp"
#include "poise/kernel.hpp"

namespace poise::inline POISE_ISA {

// Quantities of one state; see TaskLayout.
struct TaskView {
    const double *A, *M, *J, *h, *rate, *c, *bias, *p, *R;

    TaskView(const double* row, const TaskLayout& at)
        : A(row + at.A), M(row + at.M), J(row + at.J), h(row + at.h), rate(row + at.rate),
          c(row + at.c), bias(row + at.bias), p(row + at.p), R(row + at.R) {}
};

// 1 below bounds[0], 0 above bounds[1], smooth between
inline double fade_out(double value, const double* bounds) {
    const double s = (bounds[1] - value) / (bounds[1] - bounds[0]);
    const double weight = std::fmin(std::fmax(s, 0.0), 1.0);
    return weight * weight * (3 - 2 * weight);
}

struct SupportWeights {
    // positions of the sole points in the world, and the height of the lowest of each support
    struct SolePoints {
        Workspace<double> position, lowest;
    };

    const BalanceProblem* problem = nullptr;
    SolePoints current, desired;  // of the state and of the target
    Workspace<double> weight;     // of each support
    double upright = 1;           // 0: the character has fallen

    void compute(const BalanceProblem& given, const TaskView& now, const TaskView& then,
                 std::int64_t i) {
        problem = &given;
        const BalanceParams& o = given.params;
        locate(now, current);
        locate(then, desired);
        weight.resize(given.supports);
        const Rows& schedule = given.schedule;
        const double* scheduled = schedule.p ? schedule.p + i * schedule.copy : nullptr;
        for (int k = 0; k < given.supports; ++k) {
            weight[k] = fade_out(current.lowest[k] - o.ground_height, o.sole_height_fade) *
                        fade_out(tilt(now.R + 9 * k, then.R + 9 * k), o.tilt_fade);
            if (o.always_support) continue;
            const bool known = scheduled && std::isfinite(scheduled[k]);
            weight[k] *= known
                             ? scheduled[k]
                             : fade_out(desired.lowest[k] - o.ground_height, o.target_height_fade);
        }
        upright = fade_out(lean(now.c), o.lean_fade);
        for (int k = 0; k < given.supports; ++k) weight[k] *= upright;
    }
    // weight of the support that a sole point belongs to
    double of_point(int j) const { return weight[static_cast<int>(problem->sole_point[4 * j])]; }

  private:
    // 1 - cos of the angle between a sole and that of the target, whatever their heading
    static double tilt(const double* R, const double* T) {
        return 1 - (R[6] * T[6] + R[7] * T[7] + R[8] * T[8]);
    }
    // horizontal distance of the center of mass from the soles, by its height
    double lean(const double* c) {
        hull_.clear();
        for (int j = 0; j < problem->sole_points; ++j) {
            const double* p = current.position.data() + 3 * j;
            if (!std::isfinite(p[0] + p[1])) return INFINITY;
            hull_.push_back({p[0], p[1]});
        }
        if (hull_.empty()) return 0;
        convex_hull(hull_, scratch_, 0);
        const Point2 at = closest_point(hull_, {c[0], c[1]});
        const double height = std::fmax(c[2] - problem->params.ground_height, 1e-3);
        return std::hypot(c[0] - at.x, c[1] - at.y) / height;
    }
    Polygon hull_, scratch_;

    void locate(const TaskView& t, SolePoints& s) {
        s.position.resize(3 * problem->sole_points);
        s.lowest.assign(problem->supports, INFINITY);
        for (int j = 0; j < problem->sole_points; ++j) {
            const double* c = problem->sole_point + 4 * j;
            const int k = static_cast<int>(c[0]);
            const double *R = t.R + 9 * k, *p = t.p + 3 * k;
            for (int x = 0; x < 3; ++x)
                s.position[3 * j + x] =
                    p[x] + R[3 * x] * c[1] + R[3 * x + 1] * c[2] + R[3 * x + 2] * c[3];
            s.lowest[k] = std::fmin(s.lowest[k], s.position[3 * j + 2]);
        }
    }
};

}  // namespace poise::inline POISE_ISA
