// Inverse dynamics by the recursive Newton-Euler algorithm, in world axes.
//
// Outward: kinematics.hpp. Inward, per body with mass m, first and second moments of mass mc, P:
//     f = m a + W mc,    n = mc x a + vee(W P),    both less what pushes from outside;
// handed to the parent as f, n + r x f; and the joint's force is their part along its axes.
#pragma once

#include "poise/kinematics.hpp"

namespace poise::inline POISE_ISA {

// A rigid body's moments of mass about its joint, in world axes.
template <class S>
struct Rigid {
    S m;
    Vec3<S> mc;
    Sym3<S> P;
};
template <class S>
POISE_INLINE Rigid<S> rigid_in_world(const Constants<S>& c, const Mat3<S>& R) {
    const Vec3<S> u = R * c.u;
    Rigid<S> o;
    o.m = c.m;
    o.P = {c.l + u.x * u.x, c.l + u.y * u.y, c.l + u.z * u.z, u.x * u.y, u.x * u.z, u.y * u.z};
    if (c.stick) {
        o.mc = c.along * u;
        return o;
    }
    const Vec3<S> w = R * c.w;
    o.P = {o.P.xx - w.x * w.x, o.P.yy - w.y * w.y, o.P.zz - w.z * w.z,
           o.P.xy - w.x * w.y, o.P.xz - w.x * w.z, o.P.yz - w.y * w.z};
    o.mc = R * c.mc;
    return o;
}

// The wrench that gives the body its motion.
template <class S>
POISE_INLINE Wrench<S> rigid_wrench(const Rigid<S>& b, const Mat3<S>& W, const Vec3<S>& a) {
    const Sym3<S>& P = b.P;
    const Vec3<S> f = b.m * a + W * b.mc;
    const S zy = W.zx * P.xy + W.zy * P.yy + W.zz * P.yz;
    const S yz = W.yx * P.xz + W.yy * P.yz + W.yz * P.zz;
    const S xz = W.xx * P.xz + W.xy * P.yz + W.xz * P.zz;
    const S zx = W.zx * P.xx + W.zy * P.xy + W.zz * P.xz;
    const S yx = W.yx * P.xx + W.yy * P.xy + W.yz * P.xz;
    const S xy = W.xx * P.xy + W.xy * P.yy + W.xz * P.yz;
    return {cross(b.mc, a) + Vec3<S>{zy - yz, xz - zx, yx - xy}, f};
}

// Write a joint's share of the wrench to tau.
template <class S>
POISE_INLINE void project(const Body& b, const Mat3<S>& R, const Wrench<S>& w, S* tau) {
    if (b.kind == Kind::hinge) {
        tau[b.v] = dot(axis_of(R), w.n);
    } else if (b.kind == Kind::slide) {
        tau[b.v] = dot(axis_of(R), w.f);
    } else if (b.kind == Kind::ball) {
        store(tau + b.v, tmul(R, w.n));
    } else {
        store(tau + b.v, w.f);
        store(tau + b.v + 3, tmul(R, w.n));
    }
}

// tau that gives the motion in work (from move); external, if any, holds a wrench per body about
// its joint. total (nb) is filled with each body's wrench including its subtree.
template <class S>
POISE_NOINLINE void inverse_dynamics(const Forest& f, const Constants<S>* c, const Work<S>* work,
                                     const Wrench<S>* external, Wrench<S>* total, S* tau) {
    for (int i = 0; i < f.nb; ++i) total[i] = {zero3<S>(), zero3<S>()};
    for (int i = f.nb - 1; i >= 0; --i) {
        const Body& b = f.body[i];
        const Work<S>& o = work[i];
        Wrench<S> w = total[i];
        if (!b.massless) w = w + rigid_wrench(rigid_in_world(c[i], o.R), o.motion.W, o.motion.a);
        if (external) w = {w.n - external[i].n, w.f - external[i].f};
        total[i] = w;
        project(b, o.R, w, tau);
        if (b.parent >= 0) total[b.parent] = total[b.parent] + shift(w, o.r);
    }
}

// tau += armature * qdd
template <class S>
void add_armature(const Forest& f, const Axis<S>* axis, const S* qdd, S* tau) {
    for (int k = 0; k < f.nv; ++k) tau[k] = tau[k] + axis[k].armature * qdd[k];
}

}  // namespace poise::inline POISE_ISA
