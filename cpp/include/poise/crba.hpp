// Mass matrix by the composite-rigid-body algorithm, and what the composites also give:
// center of mass, centroidal momentum matrix, energy.
//
// A composite is a body with all it carries, as one rigid thing about the body's joint. For a
// unit acceleration of one degree of freedom it needs the wrench F = I^c S; walking F to the root
// and taking its part along each axis on the way fills one column of M. O(n d).
#pragma once

#include "poise/rnea.hpp"

namespace poise::inline POISE_ISA {

template <class S>
POISE_INLINE Rigid<S> shift(const Rigid<S>& b, const Vec3<S>& r) {
    const Vec3<S> mr = b.m * r;
    const Vec3<S> t = b.mc + b.m * r;
    // P + r mc' + mc r' + m r r' = P + r (mc + m r)' + mc r'
    const Sym3<S> P = {b.P.xx + r.x * t.x + b.mc.x * r.x, b.P.yy + r.y * t.y + b.mc.y * r.y,
                       b.P.zz + r.z * t.z + b.mc.z * r.z, b.P.xy + r.x * t.y + b.mc.x * r.y,
                       b.P.xz + r.x * t.z + b.mc.x * r.z, b.P.yz + r.y * t.z + b.mc.y * r.z};
    return {b.m, b.mc + mr, P};
}

// The wrench that gives a rigid body at rest this acceleration.
template <class S>
POISE_INLINE Wrench<S> respond(const Rigid<S>& b, const Motion<S>& m) {
    return {trace(b.P) * m.al - b.P * m.al + cross(b.mc, m.a), b.m * m.a + cross(m.al, b.mc)};
}

// Each body with all that it carries; work holds the poses.
template <class S>
POISE_NOINLINE void composites(const Forest& f, const Constants<S>* c, const Work<S>* work,
                               Rigid<S>* out) {
    for (int i = 0; i < f.nb; ++i) out[i] = rigid_in_world(c[i], work[i].R);
    for (int i = f.nb - 1; i >= 0; --i) {
        const int p = f.body[i].parent;
        if (p < 0) continue;
        const Rigid<S> s = shift(out[i], work[i].r);
        out[p] = {out[p].m + s.m, out[p].mc + s.mc, out[p].P + s.P};
    }
}

template <class S>
POISE_INLINE S along(const Motion<S>& m, const Wrench<S>& w) {
    return dot(m.al, w.n) + dot(m.a, w.f);
}

// M (nv, nv) without armature. Entries of unrelated branches are zero.
template <class S>
POISE_NOINLINE void mass_matrix(const Forest& f, const Rigid<S>* composite, const Work<S>* work,
                                S* M) {
    const int nv = f.nv;
    for (int k = 0; k < nv * nv; ++k) M[k] = S(Element<S>(0));
    for (int i = 0; i < f.nb; ++i) {
        const Body& b = f.body[i];
        for (int k = 0; k < dof_count(b.kind); ++k) {
            Wrench<S> F = respond(composite[i], motion_of(b, work[i].R, k));
            const int row = b.v + k;
            for (int l = 0; l <= k; ++l) {
                const S x = along(motion_of(b, work[i].R, l), F);
                M[row * nv + b.v + l] = M[(b.v + l) * nv + row] = x;
            }
            F = shift(F, work[i].r);
            for (int a = b.parent; a >= 0; a = f.body[a].parent) {
                const Body& t = f.body[a];
                for (int l = 0; l < dof_count(t.kind); ++l) {
                    const S x = along(motion_of(t, work[a].R, l), F);
                    M[row * nv + t.v + l] = M[(t.v + l) * nv + row] = x;
                }
                F = shift(F, work[a].r);
            }
        }
    }
}

// Mass and center of mass of everything; fixed holds mass and moment of what is welded to the
// world.
template <class S>
Vec3<S> center_of_mass(const Forest& f, const Rigid<S>* composite, const Vec3<S>* origin,
                       const S* fixed, S& mass) {
    Vec3<S> moment = {fixed[1], fixed[2], fixed[3]};
    mass = fixed[0];
    for (int i = 0; i < f.nb; ++i) {
        if (f.body[i].parent >= 0) continue;
        mass = mass + composite[i].m;
        moment = moment + composite[i].mc + composite[i].m * origin[i];
    }
    return (S(Element<S>(1)) / mass) * moment;
}

// (6, nv): linear momentum, and angular momentum about the center of mass, per unit velocity.
template <class S>
void momentum_matrix(const Forest& f, const Rigid<S>* composite, const Work<S>* work,
                     const Vec3<S>* origin, const Vec3<S>& center, S* out) {
    for (int i = 0; i < f.nb; ++i) {
        const Body& b = f.body[i];
        for (int k = 0; k < dof_count(b.kind); ++k) {
            const Wrench<S> F =
                shift(respond(composite[i], motion_of(b, work[i].R, k)), origin[i] - center);
            S* column = out + b.v + k;
            column[0] = F.f.x;
            column[f.nv] = F.f.y;
            column[2 * f.nv] = F.f.z;
            column[3 * f.nv] = F.n.x;
            column[4 * f.nv] = F.n.y;
            column[5 * f.nv] = F.n.z;
        }
    }
}

// Kinetic energy from the bodies' velocities.
template <class S>
S kinetic_energy(const Forest& f, const Constants<S>* c, const Work<S>* work,
                 const Vec3<S>* velocity) {
    S sum(Element<S>(0));
    for (int i = 0; i < f.nb; ++i) {
        const Rigid<S> b = rigid_in_world(c[i], work[i].R);
        const Motion<S> m = {work[i].motion.w, velocity[i]};
        sum = sum + along(m, respond(b, m));
    }
    return S(Element<S>(0.5)) * sum;
}

}  // namespace poise::inline POISE_ISA
