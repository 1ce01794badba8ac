// The compiled forest: topology, joints, inertias.
//
// A body is one joint and what it carries. Its frame has its origin at the joint; for hinge and
// slide the joint's axis is its z axis. Bodies are in depth-first order, so parents come before
// children; any number of bodies may have the world (-1) as parent.
#pragma once

#include <cmath>
#include <cstdint>

#include "poise/spatial.hpp"

namespace poise {

enum class Kind : std::int32_t { free = 0, ball = 1, hinge = 2, slide = 3 };

struct Body {
    std::int32_t parent;  // -1 is the world
    Kind kind;
    std::int32_t q, v;  // first entry in q and in v
    std::int32_t slot;  // where the inward pass accumulates this body
    std::int32_t parent_slot;
    bool leaf;   // nothing has been accumulated
    bool first;  // first child that the inward pass meets: it writes, later ones add
    bool massless;
    bool turned;  // E is not the identity
};

// Plain data that every instruction set reads; the owner is the binding.
struct Forest {
    std::int64_t id;  // no two models share it
    std::int32_t nb, nq, nv, nl, slots;
    const Body* body;
    const double* E;  // (nb, 4) body frame in the parent's frame at q = 0
    const double* r;  // (nb, 3)
    const std::int32_t*
        dof_parent;  // (nv) the next degree of freedom towards the root, -1 at the end
    const std::int32_t* dof_body;         // (nv)
    const std::int32_t* body_link;        // (nb) the link that a body belongs to
    const std::int32_t* link_body;        // (nl) -1 is the world
    const double* link_p;                 // (nl, 3) link frame in its body's frame
    const double* link_E;                 // (nl, 4)
    const double* spring_q;               // (nq) rest position of the passive springs
    const std::int32_t* effort_per_axis;  // (nb) ball joints: limit each axis instead of the length
};

// ModelParameters that may differ from copy to copy; a stride of 0 shares them.
struct ModelParameters {
    std::int64_t id;          // the forest's, if these are its model's own; else 0
    const double* mass;       // (nb)
    const double* mc;         // (nb, 3) mass times center of mass, from the joint
    const double* Io;         // (nb, 6) inertia about the joint: xx yy zz xy xz yz
    const double* armature;   // (nv)
    const double* damping;    // (nv) passive
    const double* stiffness;  // (nv) passive
    const double* effort;     // (nv) inf is none
    const double* fixed;      // (4) mass of links welded to the world, and mass times position
    // (nb) bodies that are sticks in every copy, whatever its masses are; null: none
    const std::uint8_t* stick;
    std::int64_t mass_stride, mc_stride, Io_stride, armature_stride, effort_stride, fixed_stride;
};

inline namespace POISE_ISA {

// One body's constants, laid out for the lanes.
template <class S>
struct Constants {
    S m;
    Vec3<S> mc;  // first moment of mass about the joint
    // second moment of mass about the joint, P = trace(Io)/2 - Io, as l 1 + u u' - w w' with l its
    // middle eigenvalue: cheaper to turn than six numbers
    Vec3<S> u, w;
    S l, trace;
    S along;     // of a stick mc = along u and w = 0, as of a capsule that hangs on its end
    bool stick;  // in all lanes
    Vec3<S> r;
    Quat<S> E;
};

// What the joints carry besides the links: rotor inertia, passive springs and dampers, limits.
template <class S>
struct Axis {
    S armature, damping, stiffness, effort;
};

// Eigenvalues, ascending, and unit eigenvectors (rows) of a symmetric matrix, by Jacobi rotations.
inline void principal(const double P[6], double value[3], double vector[3][3]) {
    double a[3][3] = {{P[0], P[3], P[4]}, {P[3], P[1], P[5]}, {P[4], P[5], P[2]}};
    double x[3][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
    for (int sweep = 0; sweep < 30; ++sweep) {
        if (a[0][1] == 0 && a[0][2] == 0 && a[1][2] == 0) break;
        for (int i = 0; i < 2; ++i) {
            for (int j = i + 1; j < 3; ++j) {
                if (std::fabs(a[i][j]) < 1e-300) {
                    a[i][j] = a[j][i] = 0;
                    continue;
                }
                const double d = (a[j][j] - a[i][i]) / (2 * a[i][j]);
                const double t = (d < 0 ? -1 : 1) / (std::fabs(d) + std::sqrt(d * d + 1));
                const double c = 1 / std::sqrt(t * t + 1), s = t * c;
                for (int k = 0; k < 3; ++k) {
                    const double p = a[k][i], q = a[k][j];
                    a[k][i] = c * p - s * q;
                    a[k][j] = s * p + c * q;
                }
                for (int k = 0; k < 3; ++k) {
                    const double p = a[i][k], q = a[j][k];
                    a[i][k] = c * p - s * q;
                    a[j][k] = s * p + c * q;
                    const double y = x[i][k], z = x[j][k];
                    x[i][k] = c * y - s * z;
                    x[j][k] = s * y + c * z;
                }
            }
        }
    }
    int order[3] = {0, 1, 2};
    for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 2 - i; ++j)
            if (a[order[j]][order[j]] > a[order[j + 1]][order[j + 1]]) {
                const int t = order[j];
                order[j] = order[j + 1];
                order[j + 1] = t;
            }
    for (int i = 0; i < 3; ++i) {
        value[i] = a[order[i]][order[i]];
        for (int k = 0; k < 3; ++k) vector[i][k] = x[order[i]][k];
    }
}

// The axis e of a body's second moment of mass, and how far its middle eigenvalue lies below the
// largest and above the least, as lengths.
struct Moments {
    double value[3], vector[3][3];
    double half, up, down, along;
    bool stick;
};
inline Moments moments_of(const double* mc, const double* I) {
    Moments o;
    o.half = 0.5 * (I[0] + I[1] + I[2]);
    const double P[6] = {o.half - I[0], o.half - I[1], o.half - I[2], -I[3], -I[4], -I[5]};
    principal(P, o.value, o.vector);
    o.up = std::sqrt(o.value[2] - o.value[1]);
    o.down = std::sqrt(o.value[1] - o.value[0]);
    const double* e = o.vector[2];
    o.along = mc[0] * e[0] + mc[1] * e[1] + mc[2] * e[2];
    double aside = 0, length = 0;
    for (int k = 0; k < 3; ++k) {
        aside += (mc[k] - o.along * e[k]) * (mc[k] - o.along * e[k]);
        length += mc[k] * mc[k];
    }
    // to rounding: the neglected parts are below the last digit of what they are added to
    o.stick = o.down * o.down <= 1e-15 * o.value[2] && aside <= 1e-30 * length && o.up > 0;
    return o;
}

// A body's mass, its first moment and its inertia about the joint, for one lane. Whether it is a
// stick does not depend on the lane.
template <class S>
void load_inertia(double m, const double* mc, const double* I, bool stick, int lane,
                  Constants<S>& o) {
    using T = Element<S>;
    const Moments x = moments_of(mc, I);
    const double *e = x.vector[2], *w = x.vector[0];
    put(o.m, lane, T(m));
    put(o.mc.x, lane, T(mc[0]));
    put(o.mc.y, lane, T(mc[1]));
    put(o.mc.z, lane, T(mc[2]));
    put(o.u.x, lane, T(x.up * e[0]));
    put(o.u.y, lane, T(x.up * e[1]));
    put(o.u.z, lane, T(x.up * e[2]));
    put(o.w.x, lane, T(x.down * w[0]));
    put(o.w.y, lane, T(x.down * w[1]));
    put(o.w.z, lane, T(x.down * w[2]));
    put(o.l, lane, T(x.value[1]));
    put(o.trace, lane, T(x.half));
    put(o.along, lane, T(stick ? x.along / x.up : 0));
    o.stick = stick;
}

// One tile's constants, copies first .. first + lanes - 1, clamped to n - 1.
template <class S>
void load_constants(const Forest& f, const ModelParameters& x, std::int64_t first, std::int64_t n,
                    Constants<S>* c, Axis<S>* axis) {
    using T = Element<S>;
    for (int lane = 0; lane < Traits<S>::lanes; ++lane) {
        const std::int64_t i = first + lane < n ? first + lane : n - 1;
        for (int b = 0; b < f.nb; ++b) {
            const double* mc = x.mc + i * x.mc_stride + 3 * b;
            const double* I = x.Io + i * x.Io_stride + 6 * b;
            Constants<S>& o = c[b];
            // copies with numbers of their own go one way, whatever their neighbours are
            const bool stick = x.stick && x.stick[b];
            load_inertia(x.mass[i * x.mass_stride + b], mc, I, stick, lane, o);
            put(o.r.x, lane, T(f.r[3 * b]));
            put(o.r.y, lane, T(f.r[3 * b + 1]));
            put(o.r.z, lane, T(f.r[3 * b + 2]));
            put(o.E.w, lane, T(f.E[4 * b]));
            put(o.E.x, lane, T(f.E[4 * b + 1]));
            put(o.E.y, lane, T(f.E[4 * b + 2]));
            put(o.E.z, lane, T(f.E[4 * b + 3]));
        }
        for (int k = 0; k < f.nv; ++k) {
            put(axis[k].armature, lane, T(x.armature[i * x.armature_stride + k]));
            put(axis[k].damping, lane, T(x.damping[k]));
            put(axis[k].stiffness, lane, T(x.stiffness[k]));
            put(axis[k].effort, lane, T(x.effort[i * x.effort_stride + k]));
        }
    }
}

template <class S>
POISE_INLINE Quat<S> quat_at(const S* q) {
    return {q[0], q[1], q[2], q[3]};
}
// The same in all copies.
template <class S>
POISE_INLINE Vec3<S> constant3(const double* p) {
    using T = Element<S>;
    return {S(T(p[0])), S(T(p[1])), S(T(p[2]))};
}

template <class S>
POISE_INLINE Vec3<S> vec_at(const S* v) {
    return {v[0], v[1], v[2]};
}
template <class S>
POISE_INLINE void store(S* v, const Vec3<S>& a) {
    v[0] = a.x;
    v[1] = a.y;
    v[2] = a.z;
}
template <class S>
POISE_INLINE void store(S* v, const Quat<S>& a) {
    v[0] = a.w;
    v[1] = a.x;
    v[2] = a.y;
    v[3] = a.z;
}

// Quaternions to unit length.
template <class S>
void normalise(const Forest& f, S* q) {
    for (int i = 0; i < f.nb; ++i) {
        const Body& b = f.body[i];
        if (b.kind == Kind::hinge || b.kind == Kind::slide) continue;
        S* p = q + b.q + (b.kind == Kind::free ? 3 : 0);
        const S k =
            S(Element<S>(1)) / square_root(p[0] * p[0] + p[1] * p[1] + p[2] * p[2] + p[3] * p[3]);
        for (int j = 0; j < 4; ++j) p[j] = k * p[j];
    }
}

}  // namespace POISE_ISA
// The body after the last of a root's tree: trees are stored one after the other.
inline int end_of_tree(const Forest& f, int root) {
    int i = root + 1;
    while (i < f.nb && f.body[i].parent >= root) ++i;
    return i;
}

}  // namespace poise
