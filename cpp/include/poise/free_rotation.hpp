// Implicit gyroscopic step of a single free body: it keeps its angular momentum.
//
// With the gyroscopic term taken from the start of the step, a body that turns fast gains energy
// and is lost. Here the new velocity w carries the momentum h that the body has after the step's
// torques, turned into where the step leads:
//     I w = exp(-dt w) h,
// about the center of mass, in the body's axes, by Newton's method. All else is as it was: the
// center of mass keeps the velocity that it had found.
#pragma once

#include "poise/rnea.hpp"

namespace poise::inline POISE_ISA {

constexpr int kSpinRounds = 5;

// x with A x = b
template <class S>
POISE_INLINE Vec3<S> solve3(const Mat3<S>& A, const Vec3<S>& b) {
    const Vec3<S> x = {A.xx, A.yx, A.zx}, y = {A.xy, A.yy, A.zy}, z = {A.xz, A.yz, A.zz};
    const Vec3<S> yz = cross(y, z);
    const S k = S(Element<S>(1)) / dot(x, yz);
    return {k * dot(b, yz), k * dot(x, cross(b, z)), k * dot(x, cross(y, b))};
}

// Change of a free body's accelerations (linear, then angular) at joint velocities v. Bodies that
// are driven, by an inertia K of the drive, stay as they are: their torque goes by q''.
template <class S>
void keep_angular_momentum(const Constants<S>& c, const Mat3<S>& R, Element<S> step, const S* v,
                           const S* K, S* qdd) {
    using T = Element<S>;
    const S dt(step), one(T(1)), zero(T(0));
    const Mat3<S> unit = {one, zero, zero, zero, one, zero, zero, zero, one};
    const Rigid<S> b = rigid_in_world(c, unit);
    // inertia about the center of mass
    const Vec3<S> at = (one / b.m) * b.mc;
    const S half = c.trace;
    const S a2 = b.m * dot(at, at);
    const Sym3<S> I = {half - b.P.xx - a2 + b.mc.x * at.x,
                       half - b.P.yy - a2 + b.mc.y * at.y,
                       half - b.P.zz - a2 + b.mc.z * at.z,
                       b.mc.x * at.y - b.P.xy,
                       b.mc.x * at.z - b.P.xz,
                       b.mc.y * at.z - b.P.yz};
    const Vec3<S> w0 = {v[3], v[4], v[5]}, al = {qdd[3], qdd[4], qdd[5]};
    const Vec3<S> w1 = w0 + dt * al;
    const Vec3<S> h = I * w1 + dt * cross(w0, I * w0);
    Vec3<S> w = w1;
    S left = zero;
    for (int k = 0; k < kSpinRounds; ++k) {
        const Vec3<S> turned = rotate_back(exponential(dt * w), h);
        const Vec3<S> miss = I * w - turned;
        left = dot(miss, miss);
        const Vec3<S> g = dt * turned;
        const Mat3<S> J = {I.xx,       I.xy + g.z, I.xz - g.y, I.xy - g.z, I.yy,
                           I.yz + g.x, I.xz + g.y, I.yz - g.x, I.zz};
        w = w - solve3(J, miss);
    }
    // where it is too fast to be followed, a step that only loses (Catto 2015)
    const auto lost = negate(left < S(T(1e-4)) * dot(h, h));
    const Vec3<S> Iw = I * w0;
    const Mat3<S> J = {I.xx + dt * (w0.y * I.xz - w0.z * I.xy),
                       I.xy + dt * (w0.y * I.yz - w0.z * I.yy + Iw.z),
                       I.xz + dt * (w0.y * I.zz - w0.z * I.yz - Iw.y),
                       I.xy + dt * (w0.z * I.xx - w0.x * I.xz - Iw.z),
                       I.yy + dt * (w0.z * I.xy - w0.x * I.yz),
                       I.yz + dt * (w0.z * I.xz - w0.x * I.zz + Iw.x),
                       I.xz + dt * (w0.x * I.xy - w0.y * I.xx + Iw.y),
                       I.yz + dt * (w0.x * I.yy - w0.y * I.xy - Iw.x),
                       I.zz + dt * (w0.x * I.yz - w0.y * I.xz)};
    const Vec3<S> slow =
        w0 - solve3(J, dt * cross(w0, Iw)) + dt * al + solve3(full(I), dt * cross(w0, Iw));
    w = {select(lost, slow.x, w.x), select(lost, slow.y, w.y), select(lost, slow.z, w.z)};
    // the velocity that the center of mass has found, seen from the origin where the step leads
    const Vec3<S> center = cross(w0, at) + dt * (cross(al, at) + cross(w0, cross(w0, at)));
    const Vec3<S> lin = R * (center - rotate(exponential(dt * w), cross(w, at)));
    const S per = one / dt;
    S driven = zero;
    for (int k = 0; k < 6; ++k) driven = driven + K[k];
    const auto on = negate(zero < driven);
    const Vec3<S> turn = al + per * (w - w1);
    const S next[6] = {
        qdd[0] + per * lin.x, qdd[1] + per * lin.y, qdd[2] + per * lin.z, turn.x, turn.y, turn.z};
    for (int k = 0; k < 6; ++k) qdd[k] = select(on, next[k], qdd[k]);
}

}  // namespace poise::inline POISE_ISA
