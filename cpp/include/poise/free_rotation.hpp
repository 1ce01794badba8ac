// Gyroscopic step of a single free body: it keeps its angular momentum and its energy.
//
// With the gyroscopic term taken from the start of the step, a body that turns fast gains energy
// and is lost; with that of its end it loses energy until it turns about its largest moment. Here
// the body turns by exp(dt u) in the step, u between the velocity w0 that it has after the step's
// torques and the one w1 that it ends with,
//     u = (w0 + w1) / 2,    I (w1 - w0) = -g x I u,    g = 2 tan(dt |u| / 2) u / |u|,
// about the center of mass, in the body's axes. The right side is square to u and to I u: energy
// and the length of the momentum stay as they are, whatever the step. The same in other words is
//     I w1 = exp(-dt u) I w0:
// what the body turns by is what its momentum turns back by, so that it stays in space. Of second
// order, and exact about a principal axis. u is found by Newton's method.
//
// A body that touches something turns by the velocity w that contact has given it. Without contact
// that one would be
//     I w = exp(-dt w) I w0,
// which keeps the momentum and loses energy: bodies in contact start from there.
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

// First moment of mass, and inertia about the center of mass, in the body's axes.
template <class S>
POISE_INLINE Rigid<S> rigid_in_body(const Constants<S>& c) {
    const S one(Element<S>(1)), zero(Element<S>(0));
    return rigid_in_world(c, Mat3<S>{one, zero, zero, zero, one, zero, zero, zero, one});
}
template <class S>
POISE_INLINE Sym3<S> central_inertia(const Constants<S>& c, const Rigid<S>& b, const Vec3<S>& at) {
    const S half = c.trace, a2 = b.m * dot(at, at);
    return {half - b.P.xx - a2 + b.mc.x * at.x,
            half - b.P.yy - a2 + b.mc.y * at.y,
            half - b.P.zz - a2 + b.mc.z * at.z,
            b.mc.x * at.y - b.P.xy,
            b.mc.x * at.z - b.P.xz,
            b.mc.y * at.z - b.P.yz};
}

// Change of a free body's accelerations (linear, then angular) at joint velocities v; in drift what
// it moves by in the step beyond its velocity after it (linear, then angular). Bodies that are
// driven, by an inertia K of the drive, stay as they are: their torque goes by q''.
template <class S>
void keep_angular_momentum(const Constants<S>& c, const Mat3<S>& R, Element<S> step, const S* v,
                           const S* K, S* qdd, S* drift) {
    using T = Element<S>;
    const S dt(step), one(T(1)), zero(T(0)), two(T(2)), least(T(0.1));
    const Rigid<S> b = rigid_in_body(c);
    const Vec3<S> at = (one / b.m) * b.mc;
    const Sym3<S> I = central_inertia(c, b, at);
    const Vec3<S> v0 = {v[3], v[4], v[5]}, al = {qdd[3], qdd[4], qdd[5]};
    const Vec3<S> Iv = I * v0, gyro = cross(v0, Iv);
    // as the torques leave it
    const Vec3<S> w0 = v0 + dt * al + solve3(full(I), dt * gyro);
    const Vec3<S> h = I * w0;
    Vec3<S> u = w0;
    S left = zero;
    auto slow = constant_mask<S>(true);
    for (int k = 0; k < kSpinRounds; ++k) {
        const Quat<S> turn = exponential(dt * u);
        slow = least < turn.w;
        const S scale = two / select(slow, turn.w, one);
        const Vec3<S> g = {scale * turn.x, scale * turn.y, scale * turn.z}, Iu = I * u;
        const Vec3<S> miss = two * (Iu - h) + cross(g, Iu);
        left = dot(miss, miss);
        // g = a u, and its change da: a du + b u (u.du)
        const S u2 = larger(dot(u, u), S(T(1e-30))), a = dot(g, u) / u2;
        const S b_ = (dt * (one + S(T(0.25)) * dot(g, g)) - a) / u2;
        const Vec3<S> p = a * Iu, q = b_ * cross(u, Iu);
        const Mat3<S> J = {two * I.xx + g.y * I.xz - g.z * I.xy + q.x * u.x,
                           two * I.xy + g.y * I.yz - g.z * I.yy + p.z + q.x * u.y,
                           two * I.xz + g.y * I.zz - g.z * I.yz - p.y + q.x * u.z,
                           two * I.xy + g.z * I.xx - g.x * I.xz - p.z + q.y * u.x,
                           two * I.yy + g.z * I.xy - g.x * I.yz + q.y * u.y,
                           two * I.yz + g.z * I.xz - g.x * I.zz + p.x + q.y * u.z,
                           two * I.xz + g.x * I.xy - g.y * I.xx + p.y + q.z * u.x,
                           two * I.yz + g.x * I.yy - g.y * I.xy - p.x + q.z * u.y,
                           two * I.zz + g.x * I.yz - g.y * I.xz + q.z * u.z};
        u = u - solve3(J, miss);
    }
    const Quat<S> turn = exponential(dt * u);
    Vec3<S> w = solve3(full(I), rotate_back(turn, h));
    // where it is too fast to be followed, a step that only loses (Catto 2015)
    const auto lost = negate(slow & (left < S(T(1e-10)) * dot(h, h)));
    const Mat3<S> J = {I.xx + dt * (v0.y * I.xz - v0.z * I.xy),
                       I.xy + dt * (v0.y * I.yz - v0.z * I.yy + Iv.z),
                       I.xz + dt * (v0.y * I.zz - v0.z * I.yz - Iv.y),
                       I.xy + dt * (v0.z * I.xx - v0.x * I.xz - Iv.z),
                       I.yy + dt * (v0.z * I.xy - v0.x * I.yz),
                       I.yz + dt * (v0.z * I.xz - v0.x * I.zz + Iv.x),
                       I.xz + dt * (v0.x * I.xy - v0.y * I.xx + Iv.y),
                       I.yz + dt * (v0.x * I.yy - v0.y * I.xy - Iv.x),
                       I.zz + dt * (v0.x * I.yz - v0.y * I.xz)};
    const Vec3<S> losing = w0 - solve3(J, dt * gyro);
    w = {select(lost, losing.x, w.x), select(lost, losing.y, w.y), select(lost, losing.z, w.z)};
    u = {select(lost, w.x, u.x), select(lost, w.y, u.y), select(lost, w.z, u.z)};
    const Quat<S> turned = exponential(dt * u);
    // the velocity that the center of mass has found, seen from the origin where the step leads
    const Vec3<S> center = cross(v0, at) + dt * (cross(al, at) + cross(v0, cross(v0, at)));
    const Vec3<S> spin = rotate(turned, cross(w, at));
    const Vec3<S> lin = R * (center - spin);
    // the center goes straight: the origin goes round it
    const S per = one / dt;
    const Vec3<S> round = R * (spin - per * (rotate(turned, at) - at));
    S driven = zero;
    for (int k = 0; k < 6; ++k) driven = driven + K[k];
    const auto on = negate(zero < driven);
    const Vec3<S> rate = per * (w - v0), more = u - w;
    const S next[6] = {
        qdd[0] + per * lin.x, qdd[1] + per * lin.y, qdd[2] + per * lin.z, rate.x, rate.y, rate.z};
    const S beyond[6] = {round.x, round.y, round.z, more.x, more.y, more.z};
    for (int k = 0; k < 6; ++k) {
        qdd[k] = select(on, next[k], qdd[k]);
        drift[k] = select(on, beyond[k], zero);
    }
}

// The velocities v (linear, then angular) of a body that touches something in the copies of which,
// before contact; drift as keep_angular_momentum left it.
template <class S>
void lose_free_rotation(const Constants<S>& c, const Mat3<S>& R, Element<S> step,
                        const MaskOf<S>& which, S* v, S* drift) {
    using T = Element<S>;
    const S dt(step), one(T(1)), zero(T(0));
    const Rigid<S> b = rigid_in_body(c);
    const Vec3<S> at = (one / b.m) * b.mc;
    const Sym3<S> I = central_inertia(c, b, at);
    const Vec3<S> w1 = {v[3], v[4], v[5]}, u = w1 + Vec3<S>{drift[3], drift[4], drift[5]};
    const Quat<S> turn = exponential(dt * u);
    const Vec3<S> h = rotate(turn, I * w1);
    Vec3<S> w = w1;
    S left = zero;
    for (int k = 0; k < kSpinRounds; ++k) {
        const Vec3<S> turned = rotate_back(exponential(dt * w), h);
        const Vec3<S> miss = I * w - turned, g = dt * turned;
        left = dot(miss, miss);
        const Mat3<S> J = {I.xx,       I.xy + g.z, I.xz - g.y, I.xy - g.z, I.yy,
                           I.yz + g.x, I.xz + g.y, I.yz - g.x, I.zz};
        w = w - solve3(J, miss);
    }
    const auto good = which & (left < S(T(1e-4)) * dot(h, h));
    // the center of mass keeps its velocity
    const Vec3<S> lin =
        R * (rotate(turn, cross(w1, at)) - rotate(exponential(dt * w), cross(w, at)));
    const S next[6] = {v[0] + lin.x, v[1] + lin.y, v[2] + lin.z, w.x, w.y, w.z};
    for (int k = 0; k < 6; ++k) {
        v[k] = select(good, next[k], v[k]);
        drift[k] = select(which, zero, drift[k]);
    }
}

}  // namespace poise::inline POISE_ISA
