// Effort limits that hold in the same step.
//
// A drive wants tau = Q - K q''. Where that is more than the joint can give, the joint becomes a
// force: Q = limit in the direction of what it wants, K = 0. Which joints those are depends on q'',
// and q'' on them, so the step is solved again until the answer agrees with itself:
//     limited = joints with |Q - K q''| > limit at the q'' just found, but for those that are
//               forces already and now want to push the other way: they are let go first.
// After kFreeRounds rounds joints are only added, which ends the search. A ball's limit is the
// length of its torque; its direction is that of the round before, and counts as settled when it
// moves by less than a hundredth of the limit. Where the rounds end first, the length still holds,
// and the direction may be some degrees off what the drive wants.
#pragma once

#include "poise/scratch.hpp"

namespace poise::inline POISE_ISA {

constexpr int kFreeRounds = 6;

// Set joints to their limits or let them go, at these accelerations. Lanes in which anything
// changed come back marked; the others are left as they are.
template <class S>
MaskOf<S> limit_efforts(const Forest& f, const Axis<S>* axis, const LaneRows<S>& strength,
                        bool only_add, Scratch<S>& s) {
    using T = Element<S>;
    const S zero(T(0));
    auto changed = constant_mask<S>(false);
    S* give = s.load.data();  // the force at the limit
    for (int i = 0; i < f.nb; ++i) {
        const Body& b = f.body[i];
        const bool ball = b.kind == Kind::ball && !f.effort_per_axis[i];
        const int group = ball ? 3 : 1;
        const S factor = strength.rows.p ? strength.at(0, f.body_link[i]) : S(T(1));
        for (int first = b.v; first < b.v + dof_count(b.kind); first += group) {
            S size2 = zero, back = zero, turn2 = zero;
            for (int k = first; k < first + group; ++k) {
                give[k] = s.Q_free[k] - s.K_free[k] * s.qdd[k];
                size2 = size2 + give[k] * give[k];
                back = back + give[k] * s.Q[k];
            }
            const S effort = factor * axis[first].effort;
            const S size = square_root(size2);
            auto over = effort < size;
            const auto was = s.limited[first];
            if (only_add) over = over | was;
            else over = over & negate(was & (back < zero));
            const S scale = select(over, effort / larger(size, S(T(1e-30))), zero);
            for (int k = first; k < first + group; ++k) {
                give[k] = scale * give[k];
                if (only_add) give[k] = select(was, s.Q[k], give[k]);
                const S turn = give[k] - s.Q[k];
                turn2 = turn2 + turn * turn;
                s.over[k] = over;
            }
            const S settled = S(T(1e-2)) * effort;
            const auto turned = over & was & (settled * settled < turn2);
            changed = changed | (over & negate(was)) | (was & negate(over)) | turned;
        }
    }
    if (!any(changed)) return changed;
    for (int k = 0; k < f.nv; ++k) {
        s.Q[k] = select(changed, select(s.over[k], give[k], s.Q_free[k]), s.Q[k]);
        s.K[k] = select(changed, select(s.over[k], zero, s.K_free[k]), s.K[k]);
        s.limited[k] = (s.over[k] & changed) | (s.limited[k] & negate(changed));
    }
    return changed;
}

// Solve with the joint forces s.Q, s.K, kept within the limits; solve() finds s.qdd.
template <class S, class Solve>
void within_limits(const Forest& f, const Axis<S>* axis, const LaneRows<S>& strength, Scratch<S>& s,
                   Solve solve) {
    for (int k = 0; k < f.nv; ++k) {
        s.Q_free[k] = s.Q[k];
        s.K_free[k] = s.K[k];
        s.limited[k] = constant_mask<S>(false);
    }
    solve();
    for (int round = 0; round < f.nv + kFreeRounds + 1; ++round) {
        if (!any(limit_efforts(f, axis, strength, round >= kFreeRounds, s))) return;
        solve();
    }
}

}  // namespace poise::inline POISE_ISA
