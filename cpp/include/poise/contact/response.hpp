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
// The mobility T of a body, its motion for an impulse on itself, follows outward:
//     T = Psi + Phi X T_parent X' Phi'.
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

// [al; a] = [C B; B' A] [n; f], symmetric
template <class S>
struct Mobility {
    Sym3<S> C;
    Mat3<S> B;
    Sym3<S> A;
};
template <class S>
POISE_INLINE Motion<S> operator*(const Mobility<S>& T, const Wrench<S>& w) {
    return {T.C * w.n + T.B * w.f, tmul(T.B, w.n) + T.A * w.f};
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

// Of the point r from the joint: B' = B + C [r],  A' = A - [r] B' - ([r] B)'.
template <class S>
POISE_INLINE Mobility<S> shift(const Mobility<S>& T, const Vec3<S>& r) {
    const Mat3<S> B = T.B + rows_cross(full(T.C), r);
    const Mat3<S> x = cross_columns(r, B), y = cross_columns(r, T.B);
    return {T.C,
            B,
            {T.A.xx - x.xx - y.xx, T.A.yy - x.yy - y.yy, T.A.zz - x.zz - y.zz, T.A.xy - x.xy - y.yx,
             T.A.xz - x.xz - y.zx, T.A.yz - x.yz - y.zy}};
}

// Mobility of a body whose joint is carried by T; a root's is carried by nothing.
template <class S>
POISE_INLINE Mobility<S> give_way(const Body& b, const Mat3<S>& R, const JointResponse<S>& g,
                                  const Mobility<S>& T) {
    if (b.kind == Kind::ball) {
        const Mat3<S> M = g.P * T.B - g.G * T.A;
        const Mat3<S> N = g.P * full(T.C) - g.G * transposed(T.B);
        return {symmetric_mult(N, g.P) - symmetric_mult(M, g.G) + g.Di, M, T.A};
    }
    const Vec3<S> s = axis_of(R);
    const Motion<S> z = T * Wrench<S>{g.n, g.f};
    const S e = dot(g.n, z.al) + dot(g.f, z.a) + g.d;
    Mobility<S> o = T;
    const auto less = [&](Sym3<S>& m, const Vec3<S>& x) {
        m = {m.xx + s.x * (e * s.x - x.x - x.x),
             m.yy + s.y * (e * s.y - x.y - x.y),
             m.zz + s.z * (e * s.z - x.z - x.z),
             m.xy + (e * s.x * s.y - s.x * x.y - s.y * x.x),
             m.xz + (e * s.x * s.z - s.x * x.z - s.z * x.x),
             m.yz + (e * s.y * s.z - s.y * x.z - s.z * x.y)};
    };
    const Vec3<S>& p = b.kind == Kind::hinge ? s : z.al;
    const Vec3<S>& q = b.kind == Kind::hinge ? z.a : s;
    o.B = {T.B.xx - p.x * q.x, T.B.xy - p.x * q.y, T.B.xz - p.x * q.z,
           T.B.yx - p.y * q.x, T.B.yy - p.y * q.y, T.B.yz - p.y * q.z,
           T.B.zx - p.z * q.x, T.B.zy - p.z * q.y, T.B.zz - p.z * q.z};
    if (b.kind == Kind::hinge) less(o.C, z.al);
    else less(o.A, z.a);
    return o;
}

// Mobility of a free root: the inverse of [C B; B' A] from its parts.
template <class S>
POISE_INLINE Mobility<S> free_mobility(const JointResponse<S>& g) {
    const Mat3<S> DG = g.Di * g.G;
    const Mat3<S> none = full(diagonal(S(Element<S>(0))));
    return {g.Di, none - DG, g.Ai + symmetric_tmul(g.G, DG)};
}
template <class S>
POISE_INLINE Mobility<S> fixed_mobility() {
    const Sym3<S> none = diagonal(S(Element<S>(0)));
    return {none, full(none), none};
}

// Mobilities of the bodies that are marked; parents of marked ones are marked too.
template <class S>
POISE_NOINLINE void mobilities(const Forest& f, const Work<S>* work, const JointResponse<S>* give,
                               const std::uint8_t* marked, Mobility<S>* T) {
    for (int i = 0; i < f.nb; ++i) {
        if (!marked[i]) continue;
        const Body& b = f.body[i];
        if (b.kind == Kind::free) T[i] = free_mobility(give[i]);
        else if (b.parent < 0) T[i] = give_way(b, work[i].R, give[i], fixed_mobility<S>());
        else T[i] = give_way(b, work[i].R, give[i], shift(T[b.parent], work[i].r));
    }
}

}  // namespace poise::inline POISE_ISA
