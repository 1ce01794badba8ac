// The copies of a world that are stepped together: one block of lanes.
#pragma once

#include "poise/contact/solver.hpp"
#include "poise/momentum_correction.hpp"

namespace poise::inline POISE_ISA {

// State, parameters and buffers of one tile.
template <class S>
struct Tile {
    const Constants<S>* constants;
    const Axis<S>* axis;
    const Gain<S>* gain;  // null without a drive
    const double* pin_table;
    const bool* isotropic;
    S* q;
    S* v;
    Quat<S>* rotation_step;       // exp(dt v)
    S* tau;                       // torque of the last step
    MaskOf<S>* limited;           // (nv) whether it is at its limit
    bool passive;                 // some joint has armature, a spring, a damper, or carries a load
    bool limits;                  // some joint has an effort limit
    Forest seen;                  // the forest without projectiles: what is driven and asked for
    const MaskOf<S>* out;         // (projectiles) copies in which they have been thrown
    const CollisionModel* touch;  // null without contact and joint limits
    ContactScratch<S>* contact;
    MomentumCorrection<S>* momentum;
    S* impulses;  // (slots, 3) of the last step; 0 where not kept
    Kept* kept;
    Report<S>* report;
    StepProfile* profile;       // null: none
    std::int64_t first, count;  // copies first .. first + count - 1
};

template <class S>
POISE_INLINE LaneRows<S> rows_of(const Rows& rows, const Tile<S>& t) {
    return {rows, t.first, t.count};
}

}  // namespace poise::inline POISE_ISA
