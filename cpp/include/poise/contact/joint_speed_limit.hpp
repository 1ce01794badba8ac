// Limits the speed of passive joints after an impact.
//
// A step takes all velocities from its start. A thin limb that is struck while its body lies on the
// ground may turn by a radian in a step; velocities that cancelled each other at the start of the
// step do not at its end, and the blow comes back larger. So a joint that nothing holds, in a tree
// that touches something, turns by at most kTurn in a step: a row like that of a limit, in the same
// solve. It only takes energy, and contacts stay what they are.
#pragma once

#include "poise/contact/contact_scratch.hpp"

namespace poise::inline POISE_ISA {

constexpr double kTurn = 0.35;  // [rad]
// What has been braked, or turns faster since others have been, may do so by this factor: few
// sweeps leave something.
constexpr double kBraked = 1.2;
// The same in flight, where faster joints gain energy from the step itself: those but hinges
// without bounds, which may be wheels [rad].
constexpr double kTumble = 1.0;

// Which joints nothing holds.
template <class S>
struct PassiveJoints {
    const S* v;           // (nv) velocities without contact
    const Gain<S>* gain;  // of the first `driven` velocities, or null
    int driven;
    MaskOf<S> held;  // copies that are dragged
    bool none;       // forces or accelerations are commanded: what they do is meant

    MaskOf<S> at(int k) const {
        if (!gain || k >= driven) return negate(held);
        return negate(held | (S(Element<S>(0)) < gain[k].kp));
    }
};

// Copies in which the tree of bodies first to last - 1 touches something else.
template <class S>
MaskOf<S> touches_something(const ContactScratch<S>& c, int first, int last) {
    auto found = constant_mask<S>(false);
    for (int k = 0; k < c.contacts; ++k) {
        const Contact<S>& a = c.contact[k];
        const bool mine = a.body >= first && a.body < last;
        const bool theirs = a.other >= first && a.other < last;
        if (mine != theirs) found = found | (a.on & (S(Element<S>(0)) < a.ln));
    }
    return found;
}

inline bool has_bounds(const CollisionModel& x, int body) {
    for (int k = 0; k < x.bounds; ++k)
        if (x.bound[k].body == body) return true;
    return false;
}

// Angular velocity of a ball joint in child axes; of a hinge in x.
template <class S>
Vec3<S> turning(const Body& b, const S* v) {
    if (b.kind == Kind::ball) return vec_at(v + b.v);
    const S zero(Element<S>(0));
    return {v[b.v], zero, zero};
}
inline bool turns(const Body& b) { return b.kind == Kind::ball || b.kind == Kind::hinge; }
inline bool may_be_wheel(const Forest& f, const CollisionModel& x, int body) {
    return f.body[body].kind == Kind::hinge && !has_bounds(x, body);
}

// Whether a joint may turn too fast in flight, in any copy: a step has rows then, although nothing
// touches. limit_joint_speeds decides.
template <class S>
bool may_tumble(const Forest& f, const CollisionModel& x, double dt,
                const PassiveJoints<S>& passive) {
    const S wild(Element<S>(0.999 * kTumble / dt));
    for (int i = 0; i < f.nb && !passive.none; ++i) {
        const Body& b = f.body[i];
        if (!turns(b)) continue;
        const Vec3<S> w = turning(b, passive.v);
        if (any((wild * wild < dot(w, w)) & passive.at(b.v)) && !may_be_wheel(f, x, i)) return true;
    }
    return false;
}

// Rows for the joints that turn too fast with the impulses found so far, c.dv; the islands with any
// in c.found. again: others have been braked.
template <class S>
POISE_NOINLINE void limit_joint_speeds(const Forest& f, const CollisionModel& x,
                                       const Work<S>* work, double dt,
                                       const PassiveJoints<S>& passive, bool again,
                                       ContactScratch<S>& c) {
    using T = Element<S>;
    const S bound(T(kTurn / dt)), most(T((again ? kBraked : 1.0) * kTurn / dt)),
        wild(T(kTumble / dt)), zero(T(0)), one(T(1));
    c.islands.fill(c.found, constant_mask<S>(false));
    int root = 0, asked = -1;
    auto touched = constant_mask<S>(false);
    for (int i = 0; i < f.nb; ++i) {
        const Body& b = f.body[i];
        if (b.parent < 0) root = i;
        if (!turns(b)) continue;
        const Vec3<S> w = turning(b, passive.v) + turning<S>(b, c.dv.data());
        const S size2 = dot(w, w);
        auto on = (most * most < size2) & passive.at(b.v);
        if (!any(on)) continue;
        if (asked != root) touched = touches_something(c, root, end_of_tree(f, asked = root));
        on = on & (may_be_wheel(f, x, i) ? touched : touched | (wild * wild < size2));
        if (!any(on)) continue;
        c.found[root] = c.found[root] | on;
        LimitRow<S>& o = c.limit[c.limits];
        const Vec3<S> g = (-one / square_root(larger(size2, S(T(1e-30))))) * w;
        o.body = i;
        o.slot = -1;
        o.on = on;
        o.g = b.kind == Kind::ball ? work[i].R * g : g;
        o.slack = S(T(kTurn));
        o.bound = -bound;
        o.l = o.push = zero;
        ++c.limits;
    }
    c.islands.unite(c.found);
}

}  // namespace poise::inline POISE_ISA
