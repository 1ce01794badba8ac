// Momentum of trees in flight.
//
// A step solves the equations of motion at its start. Momentum belongs to a pose and a velocity:
// with the pose of the end it is a little off, by second order in dt for each step, and a character
// in the air drifts. So a tree that nothing holds is given the momentum that it must have, what it
// had and what gravity, pushes and its own root's force added, by a rigid motion of the whole tree:
// joint velocities stay, the root's change.
#pragma once

#include "poise/contact/solver.hpp"

namespace poise::inline POISE_ISA {

// Mass, momentum and inertia of a tree, from the origin of its root.
template <class S>
struct TreeMomentum {
    S m;
    Vec3<S> mc, p, L;  // first moment of mass, linear momentum, angular momentum
    Sym3<S> P;         // second moment of mass
};

// Of the tree from body root to last - 1; motions are those of the joints.
template <class S>
TreeMomentum<S> tree_momentum(int root, int last, const Constants<S>* c, const Work<S>* work,
                              const Vec3<S>* origin, const Motion<S>* motion) {
    const S zero(Element<S>(0));
    TreeMomentum<S> o = {
        zero, zero3<S>(), zero3<S>(), zero3<S>(), {zero, zero, zero, zero, zero, zero}};
    for (int i = root; i < last; ++i) {
        const Rigid<S> b = rigid_in_world(c[i], work[i].R);
        const Vec3<S> d = origin[i] - origin[root];
        const Vec3<S>&w = motion[i].al, &v = motion[i].a;
        const Vec3<S> p = b.m * v + cross(w, b.mc);
        const Vec3<S> spin = trace(b.P) * w - b.P * w;
        o.m = o.m + b.m;
        o.mc = o.mc + b.m * d + b.mc;
        o.p = o.p + p;
        o.L = o.L + spin + cross(b.mc, v) + cross(d, p);
        const Sym3<S> x = outer(d, b.mc), dd = b.m * outer(d, d);
        o.P = o.P + b.P + dd +
              Sym3<S>{x.xx + x.xx,
                      x.yy + x.yy,
                      x.zz + x.zz,
                      d.x * b.mc.y + d.y * b.mc.x,
                      d.x * b.mc.z + d.z * b.mc.x,
                      d.y * b.mc.z + d.z * b.mc.y};
    }
    return o;
}

// What the trees must have when the step is over, kept from its start.
template <class S>
struct MomentumCorrection {
    Buffer<Vec3<S>> p, L;      // (nb) by root; L about the center of mass
    Buffer<MaskOf<S>> flying;  // (nb)
    Buffer<Motion<S>> motion;  // (nb) of the bodies, scratch
    explicit MomentumCorrection(int nb) : p(nb), L(nb), flying(nb), motion(nb) {}
};

// Whether some tree can fly: a free root that carries joints.
inline bool flies(const Forest& f) {
    for (int i = 0; i < f.nb; ++i)
        if (f.body[i].kind == Kind::free && !f.body[i].leaf) return true;
    return false;
}

// Copies in which a command acts on the root that body b is: by a force Q, or by an inertia K.
template <class S>
MaskOf<S> acts_on_root(const Body& b, const S* Q, const S* K) {
    const S zero(Element<S>(0));
    auto on = constant_mask<S>(false);
    for (int k = b.v; k < b.v + 6; ++k)
        on = on | (Q[k] < zero) | (zero < Q[k]) | (K[k] < zero) | (zero < K[k]);
    return on;
}

// Before the step: momentum of the trees that fly, and what is added to it. before holds the
// motions of the bodies; external wrenches about the joints, or is null; force (nv) is what acts in
// the joints.
template <class S>
void expect_momentum(const Forest& f, const Constants<S>* c, const Work<S>* work,
                     const Vec3<S>* origin, const Motion<S>* before, const Wrench<S>* external,
                     const S* force, Element<S> step, const Vec3<S>& gravity,
                     MomentumCorrection<S>& out) {
    const S dt(step), one{Element<S>(1)};
    for (int i = 0; i < f.nb; ++i) {
        const Body& b = f.body[i];
        if (b.kind != Kind::free || b.leaf || !any(out.flying[i])) continue;
        const int last = end_of_tree(f, i);
        const TreeMomentum<S> now = tree_momentum(i, last, c, work, origin, before);
        const Vec3<S> center = (one / now.m) * now.mc;
        Wrench<S> w = {work[i].R * vec_at(force + b.v + 3), vec_at(force + b.v)};
        for (int k = i; k < last && external; ++k)
            w = w + shift(external[k], origin[k] - origin[i]);
        out.p[i] = now.p + dt * (w.f + now.m * gravity);
        out.L[i] = now.L - cross(center, now.p) + dt * (w.n - cross(center, w.f));
    }
}

// After the step: the roots' velocities, at the new poses. lost: copies that stay as they are.
template <class S>
void correct_momentum(const Forest& f, const Constants<S>* c, const Work<S>* work,
                      const Vec3<S>* origin, const Motion<S>* motion,
                      const MomentumCorrection<S>& in, const MaskOf<S>& lost, S* v) {
    const S one{Element<S>(1)};
    for (int i = 0; i < f.nb; ++i) {
        const Body& b = f.body[i];
        if (b.kind != Kind::free || b.leaf) continue;
        const auto on = in.flying[i] & negate(lost);
        if (!any(on)) continue;
        const TreeMomentum<S> now = tree_momentum(i, end_of_tree(f, i), c, work, origin, motion);
        const Vec3<S> center = (one / now.m) * now.mc;
        const Vec3<S> L = in.L[i] - (now.L - cross(center, now.p));
        // inertia about the center of mass
        const Sym3<S> P = now.P - now.m * outer(center, center);
        const Sym3<S> I = diagonal(trace(P)) - P;
        S det;
        const Vec3<S> turn = inverse(I, det) * L;
        const Vec3<S> move = (one / now.m) * (in.p[i] - now.p) - cross(turn, center);
        const Vec3<S> own = tmul(work[i].R, turn);
        const Vec3<S> more[2] = {move, own};
        // what is not a number, as of a tree without inertia, corrects nothing
        const auto good = on & (dot(turn, turn) + dot(move, move) < S(Element<S>(1e12)));
        for (int k = 0; k < 2; ++k) {
            S* at = v + b.v + 3 * k;
            at[0] = select(good, at[0] + more[k].x, at[0]);
            at[1] = select(good, at[1] + more[k].y, at[1]);
            at[2] = select(good, at[2] + more[k].z, at[2]);
        }
    }
}

}  // namespace poise::inline POISE_ISA
