// Forward dynamics by the articulated-body algorithm, and stable PD by its modified form (MABA).
//
// yin2020, appendix A, with K added to the joint's inertia D (eq. 37) and Q as the joint's force
// (eq. 40); K = 0 and Q = tau give Featherstone's ABA. Three departures, all exact:
//   - world axes at the joints (spatial.hpp) and classical accelerations;
//   - the velocity and gravity terms c, p (eq. 32, 33) become accelerations at q'' = 0, found on
//     the way out; what is solved for is the acceleration relative to them, so that I^a c drops out
//     of eq. 42 and the root starts from zero;
//   - a ball joint's H D^-1 H' with D = C + K is written without differences of large numbers:
//     C^a = K D^-1 C,  B^a = K D^-1 B,  A^a = A - B' D^-1 B.
// The passes: move (kinematics.hpp), then backward_pass, then forward_pass.
#pragma once

#include "poise/rnea.hpp"

namespace poise::inline POISE_ISA {

// What the joints do in this step.
template <class S>
struct JointForces {
    const S* Q;                 // (nv) force at q'' = 0
    const S* K;                 // (nv) added inertia: the force is Q - K q''
    const bool* isotropic;      // (nb) the axes of this ball share one K
    const Wrench<S>* external;  // (nb) about the joints, or null
    const Inertia<S>* pinned;   // (nb) inertia added by pins, or null
    const Vec3<S>* relief;      // (nb) y: the K of a ball is less by y y', child frame; or null
};

// What the inward pass carries from body to body.
template <class S>
struct Carry {
    Inertia<S> I;
    Wrench<S> p;
};

// Response of a joint to forces, kept for impulses that come after the solve
// (contact/response.hpp).
template <class S>
struct JointResponse {
    Mat3<S> P, G;  // ball: D^-1 K, D^-1 B; free: G = B A^-1
    Sym3<S> Di;    // ball: D^-1; free: of what is left of C without A
    Sym3<S> Ai;    // free: A^-1
    Vec3<S> n, f;  // hinge, slide: H D^-1
    S d;           // hinge, slide: D^-1
};

// A pivot below this fraction of its scale cannot be told from zero.
template <class S>
constexpr Element<S> pivot_tolerance() {
    return sizeof(Element<S>) == 8 ? Element<S>(1e-14) : Element<S>(5e-7);
}

// Whether D can be told from a singular matrix. Its smallest eigenvalue is about 1 / trace(D^-1);
// the determinant would multiply three small pivots and refuse light links that carry heavy ones.
template <class S>
POISE_INLINE MaskOf<S> invertible(S scale, const Sym3<S>& Di, S det) {
    const S zero(Element<S>(0)), t = trace(Di);
    return (zero < det) & (zero < t) & (S(pivot_tolerance<S>()) * (scale * t) < S(Element<S>(1)));
}

template <class S>
POISE_INLINE void propagate_to_parent(const Body& b, const Inertia<S>& I, const Wrench<S>& p,
                                      const Vec3<S>& r, Carry<S>* carry) {
    if (b.parent < 0) return;
    Carry<S>& to = carry[b.parent_slot];
    if (b.first) {
        to.I = shift(I, r);
        to.p = shift(p, r);
    } else {
        to.I = to.I + shift(I, r);
        to.p = to.p + shift(p, r);
    }
}

// Ball joint whose axes share one K: everything in world axes.
template <class S>
POISE_INLINE MaskOf<S> backward_ball(Work<S>& o, Inertia<S>& I, Wrench<S>& p, S k, const Vec3<S>& Q,
                                     JointResponse<S>* give) {
    Sym3<S> D = I.C;
    D.xx = D.xx + k;
    D.yy = D.yy + k;
    D.zz = D.zz + k;
    S det;
    const Sym3<S> Di = inverse(D, det);
    const auto good = invertible(trace(D), Di, det);
    const Vec3<S> u = o.R * Q;
    const Vec3<S> x = Di * (u - p.n);
    const Mat3<S> G = Di * I.B;
    const Sym3<S> kDi = k * Di;
    p.n = u - k * x;
    p.f = p.f + tmul(I.B, x);
    I.A = I.A - symmetric_tmul(I.B, G);
    I.B = k * G;
    I.C = commuting(kDi, I.C);
    o.ball.kDi = kDi;
    o.ball.G = G;
    o.ball.x = x;
    if (give) {
        give->P = full(kDi);
        give->G = G;
        give->Di = Di;
    }
    return good;
}

// Ball joint with any K, here in world axes.
template <class S>
POISE_INLINE MaskOf<S> backward_skew_ball(Work<S>& o, Inertia<S>& I, Wrench<S>& p, const Sym3<S>& K,
                                          const Vec3<S>& Q, JointResponse<S>* give) {
    const Sym3<S> D = I.C + K;
    S det;
    const Sym3<S> Di = inverse(D, det);
    const auto good = invertible(trace(D), Di, det);
    const Vec3<S> u = o.R * Q;
    const Vec3<S> x = Di * (u - p.n);
    const Mat3<S> G = Di * I.B;
    const Mat3<S> Kf = full(K);
    const Mat3<S> Cf = full(I.C);
    const Mat3<S> DiK = Di * Kf;
    p.n = u - K * x;
    p.f = p.f + tmul(I.B, x);
    I.A = I.A - symmetric_tmul(I.B, G);
    I.B = K * G;
    I.C = symmetric_tmul(DiK, Cf);  // K D^-1 C
    o.skew.kDi = DiK;
    o.skew.G = G;
    o.skew.x = x;
    if (give) {
        give->P = DiK;
        give->G = G;
        give->Di = Di;
    }
    return good;
}

// Hinge (angular) or slide (linear): one axis.
template <class S>
POISE_INLINE MaskOf<S> backward_axis(Work<S>& o, bool hinge, Inertia<S>& I, Wrench<S>& p, S k, S Q,
                                     JointResponse<S>* give) {
    const Vec3<S> s = axis_of(o.R);
    const Vec3<S> Hn = hinge ? I.C * s : I.B * s;
    const Vec3<S> Hf = hinge ? tmul(I.B, s) : I.A * s;
    const S D = dot(s, hinge ? Hn : Hf) + k;
    const auto good = S(pivot_tolerance<S>()) * (trace(hinge ? I.C : I.A) + k) < D;
    const S Di = S(Element<S>(1)) / D;
    const S x = Di * (Q - dot(s, hinge ? p.n : p.f));
    const Vec3<S> hn = Di * Hn, hf = Di * Hf;
    p.n = p.n + x * Hn;
    p.f = p.f + x * Hf;
    I.C = I.C - outer(Hn, hn);
    I.A = I.A - outer(Hf, hf);
    const Mat3<S>& B = I.B;
    I.B = {B.xx - Hn.x * hf.x, B.xy - Hn.x * hf.y, B.xz - Hn.x * hf.z,
           B.yx - Hn.y * hf.x, B.yy - Hn.y * hf.y, B.yz - Hn.y * hf.z,
           B.zx - Hn.z * hf.x, B.zy - Hn.z * hf.y, B.zz - Hn.z * hf.z};
    o.axis.n = hn;
    o.axis.f = hf;
    o.axis.x = x;
    if (give) {
        give->n = hn;
        give->f = hf;
        give->d = Di;
    }
    return good;
}

// Free joint: the tree ends here, so its relative acceleration is found at once. D = [C + Ka, B;
// B', A + Kl].
template <class S>
POISE_INLINE MaskOf<S> backward_free(Work<S>& o, Inertia<S>& I, Wrench<S>& p, const S* K,
                                     const S* Q, JointResponse<S>* give) {
    const S none(Element<S>(0));
    I.C = I.C + rotate_diagonal(o.R, vec_at(K + 3));
    I.A = I.A + Sym3<S>{K[0], K[1], K[2], none, none, none};
    const Vec3<S> n = o.R * vec_at(Q + 3) - p.n;
    const Vec3<S> f = vec_at(Q) - p.f;
    S det_a, det_s;
    const Sym3<S> Ai = inverse(I.A, det_a);
    const Mat3<S> BAi = I.B * Ai;
    const Sym3<S> D = I.C - symmetric_mult(BAi, I.B);
    const Sym3<S> Di = inverse(D, det_s);
    const auto good = invertible(trace(I.A), Ai, det_a) & invertible(trace(I.C), Di, det_s);
    const Vec3<S> al = Di * (n - BAi * f);
    o.relative_acceleration = {al, Ai * (f - tmul(I.B, al))};
    if (give) {
        give->G = BAi;
        give->Di = Di;
        give->Ai = Ai;
    }
    return good;
}

// A body with all that hangs on it, before its own joint gives way: I^A and p^A (eq. 34, 35).
template <class S>
POISE_INLINE void articulate(const Body& b, const Constants<S>& c, const Work<S>& o,
                             const Carry<S>& carried, Inertia<S>& I, Wrench<S>& p) {
    if (b.massless) {
        I = carried.I;
        p = carried.p;
        return;
    }
    const Rigid<S> rigid = rigid_in_world(c, o.R);
    const Sym3<S>& P = rigid.P;
    const Vec3<S>& mc = rigid.mc;
    const S half = c.trace, m = rigid.m;
    p = rigid_wrench(rigid, o.motion.W, o.motion.a);
    if (b.leaf) {
        const S none(Element<S>(0));
        I.C = {half - P.xx, half - P.yy, half - P.zz, -P.xy, -P.xz, -P.yz};
        I.B = {none, -mc.z, mc.y, mc.z, none, -mc.x, -mc.y, mc.x, none};
        I.A = diagonal(m);
        return;
    }
    const auto& C = carried.I.C;
    const auto& B = carried.I.B;
    const auto& A = carried.I.A;
    I.C = {C.xx + (half - P.xx), C.yy + (half - P.yy), C.zz + (half - P.zz),
           C.xy - P.xy,          C.xz - P.xz,          C.yz - P.yz};
    I.B = {B.xx,        B.xy - mc.z, B.xz + mc.y, B.yx + mc.z, B.yy,
           B.yz - mc.x, B.zx - mc.y, B.zy + mc.x, B.zz};
    I.A = {A.xx + m, A.yy + m, A.zz + m, A.xy, A.xz, A.yz};
    p = p + carried.p;
}

// K of ball i in world axes.
template <class S>
POISE_INLINE Sym3<S> ball_inertia(const JointForces<S>& j, int i, const Mat3<S>& R,
                                  const Vec3<S>& k) {
    const Sym3<S> K = rotate_diagonal(R, k);
    if (!j.relief) return K;
    // K - 0 is K, whatever the neighbours of a copy do
    if (!any(S(Element<S>(0)) < dot(j.relief[i], j.relief[i]))) return K;
    const Vec3<S> y = R * j.relief[i];
    return K - outer(y, y);
}

// Backward pass. Lanes with a singular joint are marked in bad, the joint's body in bad_body. The
// response of the joints is stored in kept (nb) if Keep.
template <class S, bool Keep = false>
POISE_NOINLINE void backward_pass(const Forest& f, const Constants<S>* c, const JointForces<S>& j,
                                  Work<S>* work, Carry<S>* carry, MaskOf<S>& bad, int* bad_body,
                                  [[maybe_unused]] JointResponse<S>* kept = nullptr) {
    for (int i = f.nb - 1; i >= 0; --i) {
        const Body& b = f.body[i];
        Work<S>& o = work[i];
        Inertia<S> I;
        Wrench<S> p;
        articulate(b, c[i], o, carry[b.slot], I, p);
        if (j.external) p = {p.n - j.external[i].n, p.f - j.external[i].f};
        if (j.pinned) I = I + j.pinned[i];

        JointResponse<S>* give = nullptr;
        if constexpr (Keep) give = kept + i;
        MaskOf<S> good;
        const S* Q = j.Q + b.v;
        const S* K = j.K + b.v;
        switch (b.kind) {
            case Kind::ball:
                good = j.isotropic[i]
                           ? backward_ball(o, I, p, K[0], vec_at(Q), give)
                           : backward_skew_ball(o, I, p, ball_inertia(j, i, o.R, vec_at(K)),
                                                vec_at(Q), give);
                break;
            case Kind::hinge: good = backward_axis(o, true, I, p, K[0], Q[0], give); break;
            case Kind::slide: good = backward_axis(o, false, I, p, K[0], Q[0], give); break;
            default: good = backward_free(o, I, p, K, Q, give); break;
        }
        const auto failed = negate(good);
        if (any(failed)) {
            for (int lane = 0; lane < Traits<S>::lanes; ++lane)
                if (get(failed, lane) && !get(bad, lane)) bad_body[lane] = i;
            bad = bad | failed;
        }
        propagate_to_parent(b, I, p, o.r, carry);
    }
}

// Forward pass: joint accelerations.
template <class S>
POISE_NOINLINE void forward_pass(const Forest& f, const bool* isotropic, Work<S>* work, S* qdd) {
    for (int i = 0; i < f.nb; ++i) {
        const Body& b = f.body[i];
        Work<S>& o = work[i];
        if (b.kind == Kind::free) {
            store(qdd + b.v, o.relative_acceleration.a);
            store(qdd + b.v + 3, tmul(o.R, o.relative_acceleration.al));
            continue;
        }
        Motion<S> m = {zero3<S>(), zero3<S>()};
        if (b.parent >= 0) {
            m = work[b.parent].relative_acceleration;
            m.a = m.a + cross(m.al, o.r);
        }
        if (b.kind == Kind::ball) {
            Vec3<S> al;
            if (isotropic[i]) al = o.ball.x + o.ball.kDi * m.al - o.ball.G * m.a;
            else al = o.skew.x + o.skew.kDi * m.al - o.skew.G * m.a;
            store(qdd + b.v, tmul(o.R, al - m.al));
            m.al = al;
        } else {
            const Vec3<S> s = axis_of(o.R);
            const S a = o.axis.x - dot(o.axis.n, m.al) - dot(o.axis.f, m.a);
            qdd[b.v] = a;
            if (b.kind == Kind::hinge) m.al = m.al + a * s;
            else m.a = m.a + a * s;
        }
        o.relative_acceleration = m;
    }
}

}  // namespace poise::inline POISE_ISA
