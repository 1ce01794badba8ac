// How bodies answer impulses.
//
// The inward pass has found how each joint gives way (JointResponse, aba.hpp), the drive's K
// included. With m the motion of a parent, shifted to the joint, W the impulse that the body and
// all that hangs on it receives, about its joint, and j an impulse in the joint itself,
//     the body moves by       Phi m + Psi (W, j)     (down)
//     its parent receives     Phi' W - reaction of j (up)
//     ball    Phi = [D^-1 K, -D^-1 B; 0, 1],   Psi = [D^-1, 0; 0, 0]
//     hinge   Phi = 1 - s [n; f]',             Psi = s D^-1 s'
//     free    Phi = 0,                         Psi = D^-1
#pragma once

#include "poise/aba.hpp"

namespace poise::inline POISE_ISA {

template <class S>
POISE_INLINE Motion<S> operator+(const Motion<S>& a, const Motion<S>& b) {
    return {a.al + b.al, a.a + b.a};
}
template <class S>
POISE_INLINE Wrench<S> zero_wrench() {
    return {zero3<S>(), zero3<S>()};
}
template <class S>
POISE_INLINE Motion<S> zero_motion() {
    return {zero3<S>(), zero3<S>()};
}
// the motion of the point r from the joint
template <class S>
POISE_INLINE Motion<S> shift(const Motion<S>& m, const Vec3<S>& r) {
    return {m.al, m.a + cross(m.al, r)};
}

// Motion of a body: m is its parent's, shifted to this joint.
template <class S>
POISE_INLINE Motion<S> down(const Body& b, const Mat3<S>& R, const JointResponse<S>& g,
                            const Motion<S>& m, const Wrench<S>& w, const Vec3<S>& j) {
    if (b.kind == Kind::ball) return {g.Di * (w.n + j) + g.P * m.al - g.G * m.a, m.a};
    if (b.kind == Kind::free) {
        const Vec3<S> al = g.Di * (w.n - g.G * w.f);
        return {al, g.Ai * w.f - tmul(g.G, al)};
    }
    const Vec3<S> s = axis_of(R);
    const bool hinge = b.kind == Kind::hinge;
    const S a = g.d * (dot(s, hinge ? w.n : w.f) + j.x) - dot(g.n, m.al) - dot(g.f, m.a);
    if (hinge) return {m.al + a * s, m.a};
    return {m.al, m.a + a * s};
}

// What the parent receives, about this joint.
template <class S>
POISE_INLINE Wrench<S> up(const Body& b, const Mat3<S>& R, const JointResponse<S>& g,
                          const Wrench<S>& w, const Vec3<S>& j) {
    if (b.kind == Kind::ball) {
        const Vec3<S> x = w.n + j;
        return {tmul(g.P, x) - j, w.f - tmul(g.G, x)};
    }
    const S x = dot(axis_of(R), b.kind == Kind::hinge ? w.n : w.f) + j.x;
    return {w.n - x * g.n, w.f - x * g.f};
}

}  // namespace poise::inline POISE_ISA
