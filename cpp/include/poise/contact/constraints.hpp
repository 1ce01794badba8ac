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
// The solve ends in a copy when no velocity changed by more than this [m/s, rad/s].
constexpr double kSettled = 1e-5;

template <class S>
struct Contact {
    std::int32_t body, other;               // other is -1 for ground and obstacles
    std::int32_t collider, other_collider;  // -1 is the ground
    std::int32_t slot, next;                // next of the same body, or of the same pair of bodies
    MaskOf<S> on;
    Vec3<S> at;                    // [m], in the world
    Vec3<S> r, r_other;            // from the joints
    Vec3<S> n, t, u;               // normal, towards body; tangents
    S gap, mu, bounce;             // bounce: restitution
    S bound, push_bound;           // [m/s]
    S soft, slick;                 // velocity that a unit impulse leaves: contact by penalty
    Motion<S> mine[3], theirs[3];  // what unit impulses along n, t, u do to body and to other
    S inv_n, tt, tu, uu;           // inverse of the normal's and of the tangents' own response
    S slip;                        // inverse of the tangents' largest response
    S ln, lt, lu, push;            // impulses [N s]
    Vec3<S> v_first;               // relative velocity after the inelastic solve [m/s]
    S first[3];                    // impulses of that solve
    S old[3], along[3];            // before this sweep; where sweeps lead
};

template <class S>
struct LimitRow {
    std::int32_t body, slot, next;  // slot: -1 is one of this step alone
    MaskOf<S> on;
    Vec3<S> g;  // ball: gradient of the slack in world axes; else x is +-1
    S slack, bound, push_bound, inv;
    S l, push;
    S v_first, first;
    S old, along;
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
template <class S>
POISE_INLINE void add_scaled(Motion<S>& m, S k, const Motion<S>& d) {
    m = {m.al + k * d.al, m.a + k * d.a};
}

// The response of the rows of a contact from what unit impulses do; dot products of the relative
// velocity of the two points with n, t, u.
template <class S>
POISE_INLINE void condense(Contact<S>& c) {
    using T = Element<S>;
    const auto rate = [&](const Vec3<S>& d, int k) {
        S x = dot(d, point_velocity(c.mine[k], c.r));
        if (c.other >= 0) x = x - dot(d, point_velocity(c.theirs[k], c.r_other));
        return x;
    };
    const S tiny(T(1e-30)), one(T(1));
    c.inv_n = one / larger(rate(c.n, 0) + c.soft, tiny);
    const S tt = rate(c.t, 1) + c.slick, uu = rate(c.u, 2) + c.slick, tu = rate(c.t, 2);
    const S det = one / larger(tt * uu - tu * tu, tiny);
    const S mean = S(T(0.5)) * (tt + uu), off = S(T(0.5)) * (tt - uu);
    c.slip = one / larger(mean + square_root(off * off + tu * tu), tiny);
    c.tt = uu * det;
    c.uu = tt * det;
    c.tu = -(tu * det);
}

// One turn of a row that only pushes. Returns the impulse added.
template <class S>
POISE_INLINE S solve_push(S vn, S bound, S inv, const MaskOf<S>& on, S& l) {
    const S zero(Element<S>(0));
    const S fresh = larger(l + (bound - vn) * inv, zero);
    const S dl = select(on, fresh - l, zero);
    l = l + dl;
    return dl;
}

// Friction: it holds the points if it can. Else it lies on the rim of its disc, against the slip:
// that is where a step against the slip, taken back to the disc, ends where it began.
template <class S>
POISE_INLINE void solve_friction(Contact<S>& c, S vt, S vu, const MaskOf<S>& on, S& dt, S& du) {
    using T = Element<S>;
    const S zero(T(0));
    vt = vt + c.slick * c.lt;
    vu = vu + c.slick * c.lu;
    const S t = c.lt - (c.tt * vt + c.tu * vu);
    const S u = c.lu - (c.tu * vt + c.uu * vu);
    const S most = c.mu * c.ln;
    const auto slides = most * most < t * t + u * u;
    const S st = c.lt - c.slip * vt, su = c.lu - c.slip * vu, size2 = st * st + su * su;
    const auto over = most * most < size2;
    const S k = select(over, most / square_root(larger(size2, S(T(1e-30)))), S(T(1)));
    dt = select(on, select(slides, k * st, t) - c.lt, zero);
    du = select(on, select(slides, k * su, u) - c.lu, zero);
    c.lt = c.lt + dt;
    c.lu = c.lu + du;
}

}  // namespace poise::inline POISE_ISA
