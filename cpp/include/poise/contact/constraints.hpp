// The rows that impulses satisfy: contacts, and joints at their bounds.
//
// A contact has a normal row, v_n >= bound, and two of friction, |impulse| <= mu normal impulse.
// The bound lets a gap close within the step and not more. Depth is taken back in a second solve,
// whose velocities move the bodies apart but are not kept: it adds no energy.
#pragma once

#include "poise/contact/collision_model.hpp"
#include "poise/contact/response.hpp"

namespace poise::inline POISE_ISA {

// Depth that is left alone [m, rad]: bodies at rest lie in it, and touch in every step.
constexpr double kRest = 2e-4;

template <class S>
struct Contact {
    std::int32_t body, other;               // other is -1 for ground and obstacles
    std::int32_t collider, other_collider;  // -1 is the ground
    std::int32_t slot;                      // where its impulse is kept
    // what every look at the rows reads lies side by side
    MaskOf<S> on;
    S ln, lt, lu;        // impulses [N s]
    S bound;             // [m/s]
    Vec3<S> n, v;        // normal, towards body; relative velocity with these impulses [m/s]
    Vec3<S> r, r_other;  // from the joints
    Vec3<S> t, u;        // tangents
    S soft, slick;       // velocity that a unit impulse leaves: contact by penalty
    S gap;               // [m]
    S push, push_bound;  // pseudo impulse [N s]; what it brings about [m/s]
    S push_v;            // pseudo velocity along the normal, beyond push_bound [m/s]
    S mu, bounce;        // bounce: restitution
    Vec3<S> at;          // [m], in the world
    S rise;              // normal velocity after a bounce; what it may be without one [m/s]
    MaskOf<S> fresh;     // above the ground, and its arc has been followed
    MaskOf<S> impact;    // an impact may come to it
    S blow;              // its impulse in the impacts of this step [N s]
    MaskOf<S> struck;    // one has: its impulse says nothing of the next step's
    Vec3<S> v_first;     // relative velocity after the inelastic solve [m/s]
    S first[3];          // impulses of that solve
};

template <class S>
struct LimitRow {
    std::int32_t body, slot;  // slot: -1 is one of this step alone
    MaskOf<S> on;
    Vec3<S> g;  // ball: gradient of the slack in world axes; else x is +-1
    S slack, bound, push_bound;
    S l, push;
    S v;       // rate beyond the bound, with the present impulses
    S push_v;  // of the pseudo velocities, beyond push_bound
    S v_first, first;
};

// Two directions square to n and to each other, without branches (Duff et al. 2017).
template <class S>
POISE_INLINE void tangents(const Vec3<S>& n, Vec3<S>& t, Vec3<S>& u) {
    using T = Element<S>;
    const S one(T(1)), sign = select(n.z < S(T(0)), S(T(-1)), one);
    const S a = S(T(-1)) / (sign + n.z), b = n.x * n.y * a;
    t = {one + sign * n.x * n.x * a, sign * b, -(sign * n.x)};
    u = {b, sign + n.y * n.y * a, -n.y};
}

template <class S>
POISE_INLINE Vec3<S> point_velocity(const Motion<S>& m, const Vec3<S>& r) {
    return m.a + cross(m.al, r);
}
template <class S>
POISE_INLINE Wrench<S> impulse_at(const Vec3<S>& r, const Vec3<S>& f) {
    return {cross(r, f), f};
}

}  // namespace poise::inline POISE_ISA
