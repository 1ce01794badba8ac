// Forward kinematics: poses, velocities, accelerations, point Jacobians.
//
// Outward over the bodies, in world axes. With omega the angular velocity, alpha the angular
// acceleration and W = [alpha] + [omega][omega], a point rho of the body accelerates by
//     a + W rho,
// a the acceleration of the joint; so a child's joint at r has a_child = a + W r, and the
// velocity of the links is not needed. The world accelerates by -g: that is gravity.
#pragma once

#include "poise/model.hpp"

namespace poise::inline POISE_ISA {

// One body on the way; the parts are grouped by the pass that fills them.
template <class S>
struct Work {
    // outward: pose
    Mat3<S> R;  // orientation; a hinge's or slide's axis is its third column
    Vec3<S> r;  // from the parent's joint to this one
    union {
        // outward: motion with the given joint accelerations
        struct {
            Quat<S> Q;
            Vec3<S> w, al, a;
            Mat3<S> W;
        } motion;
        // inward, ball: kDi = D^-1 K, G = D^-1 B, x = D^-1 u
        struct {
            Sym3<S> kDi;
            Mat3<S> G;
            Vec3<S> x;
        } ball;
        // inward, ball with gains per axis: kDi is not symmetric
        struct {
            Mat3<S> kDi;
            Mat3<S> G;
            Vec3<S> x;
        } skew;
        // inward, hinge and slide: Hn / D, Hf / D, u / D
        struct {
            Vec3<S> n, f;
            S x;
        } axis;
        // outward again: acceleration caused by the joints
        Motion<S> relative_acceleration;
    };
    Work() {}
};

template <class S>
POISE_INLINE Vec3<S> axis_of(const Mat3<S>& R) {
    return {R.xz, R.yz, R.zz};
}

template <class S>
POISE_INLINE Mat3<S> motion_matrix(const Vec3<S>& w, const Vec3<S>& al) {
    const S xx = w.x * w.x, yy = w.y * w.y, zz = w.z * w.z;
    const S xy = w.x * w.y, xz = w.x * w.z, yz = w.y * w.z;
    return {-(yy + zz), xy - al.z, xz + al.y, xy + al.z, -(xx + zz),
            yz - al.x,  xz - al.y, yz + al.x, -(xx + yy)};
}

// Poses and motions of all bodies. qdd is null for accelerations at rest in the joints.
template <class S>
POISE_NOINLINE void move(const Forest& f, const Constants<S>* c, const S* q, const S* v,
                         const S* qdd, const Vec3<S>& gravity, Work<S>* work) {
    const S zero(Element<S>(0));
    for (int i = 0; i < f.nb; ++i) {
        const Body& b = f.body[i];
        Work<S>& o = work[i];
        auto& m = o.motion;
        if (b.kind == Kind::free) {
            m.Q = quat_at(q + b.q + 3);
            o.R = matrix(m.Q);
            o.r = vec_at(q + b.q);
            m.w = o.R * vec_at(v + b.v + 3);
            m.a = zero3<S>() - gravity;
            m.al = zero3<S>();
            if (qdd) {
                m.a = m.a + vec_at(qdd + b.v);
                m.al = o.R * vec_at(qdd + b.v + 3);
            }
            m.W = motion_matrix(m.w, m.al);
            continue;
        }
        // what the parent brings
        Quat<S> Q;
        Vec3<S> w, al;
        if (b.parent >= 0) {
            const Work<S>& p = work[b.parent];
            o.r = p.R * c[i].r;
            m.a = p.motion.a + p.motion.W * o.r;
            Q = b.turned ? p.motion.Q * c[i].E : p.motion.Q;
            w = p.motion.w;
            al = p.motion.al;
        } else {
            o.r = c[i].r;
            m.a = zero3<S>() - gravity;
            Q = c[i].E;
            w = al = {zero, zero, zero};
        }
        // what the joint adds
        if (b.kind == Kind::ball) {
            m.Q = b.turned || b.parent >= 0 ? Q * quat_at(q + b.q) : quat_at(q + b.q);
            o.R = matrix(m.Q);
            const Vec3<S> spin = o.R * vec_at(v + b.v);
            m.w = w + spin;
            m.al = al + cross(w, spin);
            if (qdd) m.al = m.al + o.R * vec_at(qdd + b.v);
        } else if (b.kind == Kind::hinge) {
            S ch, sh;
            half_angle(q[b.q], ch, sh);
            m.Q = turn_z(Q, ch, sh);
            o.R = matrix(m.Q);
            const Vec3<S> s = axis_of(o.R);
            m.w = w + v[b.v] * s;
            m.al = al + v[b.v] * cross(w, s);
            if (qdd) m.al = m.al + qdd[b.v] * s;
        } else {
            m.Q = Q;
            o.R = matrix(m.Q);
            const Vec3<S> s = axis_of(o.R);
            const Vec3<S> d = q[b.q] * s;
            const S twice = v[b.v] + v[b.v];
            if (b.parent >= 0) m.a = m.a + work[b.parent].motion.W * d;
            o.r = o.r + d;
            m.a = m.a + twice * cross(w, s);
            if (qdd) m.a = m.a + qdd[b.v] * s;
            m.w = w;
            m.al = al;
        }
        m.W = motion_matrix(m.w, m.al);
    }
}

// Positions of the joints; work holds the poses.
template <class S>
POISE_NOINLINE void place(const Forest& f, const Work<S>* work, Vec3<S>* origin) {
    for (int i = 0; i < f.nb; ++i) {
        const int p = f.body[i].parent;
        origin[i] = p < 0 ? work[i].r : origin[p] + work[i].r;
    }
}

// Linear velocities of the joints; work holds poses and motions.
template <class S>
POISE_NOINLINE void velocities(const Forest& f, const S* v, const Work<S>* work, Vec3<S>* out) {
    for (int i = 0; i < f.nb; ++i) {
        const Body& b = f.body[i];
        if (b.kind == Kind::free) {
            out[i] = vec_at(v + b.v);
            continue;
        }
        out[i] =
            b.parent < 0 ? zero3<S>() : out[b.parent] + cross(work[b.parent].motion.w, work[i].r);
        if (b.kind == Kind::slide) out[i] = out[i] + v[b.v] * axis_of(work[i].R);
    }
}

// The pose of a link: its body's pose and the constant frame in it.
template <class S>
POISE_INLINE void link_pose(const Forest& f, int link, const Work<S>* work, const Vec3<S>* origin,
                            Vec3<S>& p, Quat<S>& Q) {
    using T = Element<S>;
    const double* lp = f.link_p + 3 * link;
    const double* le = f.link_E + 4 * link;
    p = constant3<S>(lp);
    Q = {S(T(le[0])), S(T(le[1])), S(T(le[2])), S(T(le[3]))};
    const int b = f.link_body[link];
    if (b < 0) return;
    p = origin[b] + work[b].R * p;
    Q = work[b].motion.Q * Q;
}

// One column of motion per degree of freedom: angular and linear velocity of the body's joint
// point for a unit velocity.
template <class S>
POISE_INLINE Motion<S> motion_of(const Body& b, const Mat3<S>& R, int k) {
    const S o(Element<S>(0)), one(Element<S>(1));
    const Vec3<S> zero = {o, o, o};
    if (b.kind == Kind::hinge) return {axis_of(R), zero};
    if (b.kind == Kind::slide) return {zero, axis_of(R)};
    if (b.kind == Kind::free && k < 3)
        return {zero, {k == 0 ? one : o, k == 1 ? one : o, k == 2 ? one : o}};
    const int j = b.kind == Kind::free ? k - 3 : k;
    const Vec3<S> column = j == 0   ? Vec3<S>{R.xx, R.yx, R.zx}
                           : j == 1 ? Vec3<S>{R.xy, R.yy, R.zy}
                                    : Vec3<S>{R.xz, R.yz, R.zz};
    return {column, zero};
}

constexpr int dof_count(Kind kind) { return kind == Kind::free ? 6 : kind == Kind::ball ? 3 : 1; }

// J (6, nv): linear rows of a world point fixed in body b, then angular rows.
template <class S>
void point_jacobian(const Forest& f, int body, const Vec3<S>& point, const Work<S>* work,
                    const Vec3<S>* origin, S* J) {
    for (int k = 0; k < 6 * f.nv; ++k) J[k] = S(Element<S>(0));
    for (int i = body; i >= 0; i = f.body[i].parent) {
        const Body& b = f.body[i];
        for (int k = 0; k < dof_count(b.kind); ++k) {
            const Motion<S> m = motion_of(b, work[i].R, k);
            const Vec3<S> lin = m.a + cross(m.al, point - origin[i]);
            S* column = J + b.v + k;
            column[0] = lin.x;
            column[f.nv] = lin.y;
            column[2 * f.nv] = lin.z;
            column[3 * f.nv] = m.al.x;
            column[4 * f.nv] = m.al.y;
            column[5 * f.nv] = m.al.z;
        }
    }
}

}  // namespace poise::inline POISE_ISA
