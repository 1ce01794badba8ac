// Vectors, rotations and rigid-body algebra in world-aligned axes.
//
// Links carry frames whose axes are those of the world and whose origin is the joint. Moving a
// quantity from a joint to its parent's joint is then a shift by r, without a rotation:
//     force   n' = n + r x f,   f' = f
//     motion  a' = a + alpha x r,   alpha' = alpha
// Accelerations are classical (of the point at the joint), not spatial: link linear velocities
// are never needed.
#pragma once

#include "poise/pack.hpp"

namespace poise::inline POISE_ISA {

template <class S>
struct Vec3 {
    S x, y, z;
};
template <class S>
struct Quat {
    S w, x, y, z;
};
// rows are xx xy xz | yx yy yz | zx zy zz
template <class S>
struct Mat3 {
    S xx, xy, xz, yx, yy, yz, zx, zy, zz;
};
template <class S>
struct Sym3 {
    S xx, yy, zz, xy, xz, yz;
};

// ---- vectors

template <class S>
POISE_INLINE Vec3<S> zero3() {
    const S o(Element<S>(0));
    return {o, o, o};
}
template <class S>
POISE_INLINE Vec3<S> operator+(const Vec3<S>& a, const Vec3<S>& b) {
    return {a.x + b.x, a.y + b.y, a.z + b.z};
}
template <class S>
POISE_INLINE Vec3<S> operator-(const Vec3<S>& a, const Vec3<S>& b) {
    return {a.x - b.x, a.y - b.y, a.z - b.z};
}
template <class S>
POISE_INLINE Vec3<S> operator*(S k, const Vec3<S>& a) {
    return {k * a.x, k * a.y, k * a.z};
}
template <class S>
POISE_INLINE S dot(const Vec3<S>& a, const Vec3<S>& b) {
    return a.x * b.x + a.y * b.y + a.z * b.z;
}
template <class S>
POISE_INLINE Vec3<S> cross(const Vec3<S>& a, const Vec3<S>& b) {
    return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}
// ---- matrices

template <class S>
POISE_INLINE Vec3<S> operator*(const Mat3<S>& m, const Vec3<S>& a) {
    return {m.xx * a.x + m.xy * a.y + m.xz * a.z, m.yx * a.x + m.yy * a.y + m.yz * a.z,
            m.zx * a.x + m.zy * a.y + m.zz * a.z};
}
// transpose(m) a
template <class S>
POISE_INLINE Vec3<S> tmul(const Mat3<S>& m, const Vec3<S>& a) {
    return {m.xx * a.x + m.yx * a.y + m.zx * a.z, m.xy * a.x + m.yy * a.y + m.zy * a.z,
            m.xz * a.x + m.yz * a.y + m.zz * a.z};
}
template <class S>
POISE_INLINE Vec3<S> operator*(const Sym3<S>& m, const Vec3<S>& a) {
    return {m.xx * a.x + m.xy * a.y + m.xz * a.z, m.xy * a.x + m.yy * a.y + m.yz * a.z,
            m.xz * a.x + m.yz * a.y + m.zz * a.z};
}
template <class S>
POISE_INLINE Sym3<S> operator+(const Sym3<S>& a, const Sym3<S>& b) {
    return {a.xx + b.xx, a.yy + b.yy, a.zz + b.zz, a.xy + b.xy, a.xz + b.xz, a.yz + b.yz};
}
template <class S>
POISE_INLINE Sym3<S> operator-(const Sym3<S>& a, const Sym3<S>& b) {
    return {a.xx - b.xx, a.yy - b.yy, a.zz - b.zz, a.xy - b.xy, a.xz - b.xz, a.yz - b.yz};
}
template <class S>
POISE_INLINE Sym3<S> operator*(S k, const Sym3<S>& a) {
    return {k * a.xx, k * a.yy, k * a.zz, k * a.xy, k * a.xz, k * a.yz};
}
template <class S>
POISE_INLINE Mat3<S> operator+(const Mat3<S>& a, const Mat3<S>& b) {
    return {a.xx + b.xx, a.xy + b.xy, a.xz + b.xz, a.yx + b.yx, a.yy + b.yy,
            a.yz + b.yz, a.zx + b.zx, a.zy + b.zy, a.zz + b.zz};
}
template <class S>
POISE_INLINE Mat3<S> operator*(S k, const Mat3<S>& a) {
    return {k * a.xx, k * a.xy, k * a.xz, k * a.yx, k * a.yy,
            k * a.yz, k * a.zx, k * a.zy, k * a.zz};
}
// row by row a x r: a [r]
template <class S>
POISE_INLINE Mat3<S> rows_cross(const Mat3<S>& a, const Vec3<S>& r) {
    return {a.xy * r.z - a.xz * r.y, a.xz * r.x - a.xx * r.z, a.xx * r.y - a.xy * r.x,
            a.yy * r.z - a.yz * r.y, a.yz * r.x - a.yx * r.z, a.yx * r.y - a.yy * r.x,
            a.zy * r.z - a.zz * r.y, a.zz * r.x - a.zx * r.z, a.zx * r.y - a.zy * r.x};
}
// column by column r x a: [r] a
template <class S>
POISE_INLINE Mat3<S> cross_columns(const Vec3<S>& r, const Mat3<S>& a) {
    return {r.y * a.zx - r.z * a.yx, r.y * a.zy - r.z * a.yy, r.y * a.zz - r.z * a.yz,
            r.z * a.xx - r.x * a.zx, r.z * a.xy - r.x * a.zy, r.z * a.xz - r.x * a.zz,
            r.x * a.yx - r.y * a.xx, r.x * a.yy - r.y * a.xy, r.x * a.yz - r.y * a.xz};
}
template <class S>
POISE_INLINE Mat3<S> operator*(const Mat3<S>& a, const Mat3<S>& b) {
    return {a.xx * b.xx + a.xy * b.yx + a.xz * b.zx, a.xx * b.xy + a.xy * b.yy + a.xz * b.zy,
            a.xx * b.xz + a.xy * b.yz + a.xz * b.zz, a.yx * b.xx + a.yy * b.yx + a.yz * b.zx,
            a.yx * b.xy + a.yy * b.yy + a.yz * b.zy, a.yx * b.xz + a.yy * b.yz + a.yz * b.zz,
            a.zx * b.xx + a.zy * b.yx + a.zz * b.zx, a.zx * b.xy + a.zy * b.yy + a.zz * b.zy,
            a.zx * b.xz + a.zy * b.yz + a.zz * b.zz};
}
template <class S>
POISE_INLINE Mat3<S> operator-(const Mat3<S>& a, const Mat3<S>& b) {
    return {a.xx - b.xx, a.xy - b.xy, a.xz - b.xz, a.yx - b.yx, a.yy - b.yy,
            a.yz - b.yz, a.zx - b.zx, a.zy - b.zy, a.zz - b.zz};
}
template <class S>
POISE_INLINE Mat3<S> transposed(const Mat3<S>& a) {
    return {a.xx, a.yx, a.zx, a.xy, a.yy, a.zy, a.xz, a.yz, a.zz};
}
template <class S>
POISE_INLINE Mat3<S> operator*(const Sym3<S>& a, const Mat3<S>& b) {
    return {a.xx * b.xx + a.xy * b.yx + a.xz * b.zx, a.xx * b.xy + a.xy * b.yy + a.xz * b.zy,
            a.xx * b.xz + a.xy * b.yz + a.xz * b.zz, a.xy * b.xx + a.yy * b.yx + a.yz * b.zx,
            a.xy * b.xy + a.yy * b.yy + a.yz * b.zy, a.xy * b.xz + a.yy * b.yz + a.yz * b.zz,
            a.xz * b.xx + a.yz * b.yx + a.zz * b.zx, a.xz * b.xy + a.yz * b.yy + a.zz * b.zy,
            a.xz * b.xz + a.yz * b.yz + a.zz * b.zz};
}
template <class S>
POISE_INLINE Mat3<S> operator*(const Mat3<S>& a, const Sym3<S>& b) {
    return {a.xx * b.xx + a.xy * b.xy + a.xz * b.xz, a.xx * b.xy + a.xy * b.yy + a.xz * b.yz,
            a.xx * b.xz + a.xy * b.yz + a.xz * b.zz, a.yx * b.xx + a.yy * b.xy + a.yz * b.xz,
            a.yx * b.xy + a.yy * b.yy + a.yz * b.yz, a.yx * b.xz + a.yy * b.yz + a.yz * b.zz,
            a.zx * b.xx + a.zy * b.xy + a.zz * b.xz, a.zx * b.xy + a.zy * b.yy + a.zz * b.yz,
            a.zx * b.xz + a.zy * b.yz + a.zz * b.zz};
}
// transpose(a) b, known to be symmetric
template <class S>
POISE_INLINE Sym3<S> symmetric_tmul(const Mat3<S>& a, const Mat3<S>& b) {
    return {a.xx * b.xx + a.yx * b.yx + a.zx * b.zx, a.xy * b.xy + a.yy * b.yy + a.zy * b.zy,
            a.xz * b.xz + a.yz * b.yz + a.zz * b.zz, a.xx * b.xy + a.yx * b.yy + a.zx * b.zy,
            a.xx * b.xz + a.yx * b.yz + a.zx * b.zz, a.xy * b.xz + a.yy * b.yz + a.zy * b.zz};
}
// a transpose(b), known to be symmetric
template <class S>
POISE_INLINE Sym3<S> symmetric_mult(const Mat3<S>& a, const Mat3<S>& b) {
    return {a.xx * b.xx + a.xy * b.xy + a.xz * b.xz, a.yx * b.yx + a.yy * b.yy + a.yz * b.yz,
            a.zx * b.zx + a.zy * b.zy + a.zz * b.zz, a.xx * b.yx + a.xy * b.yy + a.xz * b.yz,
            a.xx * b.zx + a.xy * b.zy + a.xz * b.zz, a.yx * b.zx + a.yy * b.zy + a.yz * b.zz};
}
// a b of two symmetric matrices that commute
template <class S>
POISE_INLINE Sym3<S> commuting(const Sym3<S>& a, const Sym3<S>& b) {
    return {a.xx * b.xx + a.xy * b.xy + a.xz * b.xz, a.xy * b.xy + a.yy * b.yy + a.yz * b.yz,
            a.xz * b.xz + a.yz * b.yz + a.zz * b.zz, a.xx * b.xy + a.xy * b.yy + a.xz * b.yz,
            a.xx * b.xz + a.xy * b.yz + a.xz * b.zz, a.xy * b.xz + a.yy * b.yz + a.yz * b.zz};
}
template <class S>
POISE_INLINE Mat3<S> full(const Sym3<S>& a) {
    return {a.xx, a.xy, a.xz, a.xy, a.yy, a.yz, a.xz, a.yz, a.zz};
}
template <class S>
POISE_INLINE S trace(const Sym3<S>& a) {
    return a.xx + a.yy + a.zz;
}
template <class S>
POISE_INLINE Sym3<S> diagonal(S k) {
    const S o(Element<S>(0));
    return {k, k, k, o, o, o};
}
template <class S>
POISE_INLINE Sym3<S> outer(const Vec3<S>& a, const Vec3<S>& b) {
    return {a.x * b.x, a.y * b.y, a.z * b.z, a.x * b.y, a.x * b.z, a.y * b.z};
}
// inverse by cofactors; det comes out for the caller's pivot test
template <class S>
POISE_INLINE Sym3<S> inverse(const Sym3<S>& a, S& det) {
    const S cxx = a.yy * a.zz - a.yz * a.yz;
    const S cxy = a.xz * a.yz - a.xy * a.zz;
    const S cxz = a.xy * a.yz - a.xz * a.yy;
    det = a.xx * cxx + a.xy * cxy + a.xz * cxz;
    const S k = S(Element<S>(1)) / det;
    return {k * cxx, k * (a.xx * a.zz - a.xz * a.xz), k * (a.xx * a.yy - a.xy * a.xy), k * cxy,
            k * cxz, k * (a.xy * a.xz - a.xx * a.yz)};
}
// m diag(d) transpose(m)
template <class S>
POISE_INLINE Sym3<S> rotate_diagonal(const Mat3<S>& m, const Vec3<S>& d) {
    const Mat3<S> t = {m.xx * d.x, m.xy * d.y, m.xz * d.z, m.yx * d.x, m.yy * d.y,
                       m.yz * d.z, m.zx * d.x, m.zy * d.y, m.zz * d.z};
    return symmetric_mult(t, m);
}

// ---- rotations

template <class S>
POISE_INLINE Quat<S> conjugate(const Quat<S>& q) {
    return {q.w, -q.x, -q.y, -q.z};
}
template <class S>
POISE_INLINE Quat<S> operator*(const Quat<S>& a, const Quat<S>& b) {
    return {a.w * b.w - a.x * b.x - a.y * b.y - a.z * b.z,
            a.w * b.x + a.x * b.w + a.y * b.z - a.z * b.y,
            a.w * b.y - a.x * b.z + a.y * b.w + a.z * b.x,
            a.w * b.z + a.x * b.y - a.y * b.x + a.z * b.w};
}
// conjugate(a) b
template <class S>
POISE_INLINE Quat<S> difference(const Quat<S>& a, const Quat<S>& b) {
    return {a.w * b.w + a.x * b.x + a.y * b.y + a.z * b.z,
            a.w * b.x - a.x * b.w - a.y * b.z + a.z * b.y,
            a.w * b.y + a.x * b.z - a.y * b.w - a.z * b.x,
            a.w * b.z - a.x * b.y + a.y * b.x - a.z * b.w};
}
// a (c + s k): turn by a further angle about the local z axis
template <class S>
POISE_INLINE Quat<S> turn_z(const Quat<S>& a, S c, S s) {
    return {a.w * c - a.z * s, a.x * c + a.y * s, a.y * c - a.x * s, a.z * c + a.w * s};
}
template <class S>
POISE_INLINE Mat3<S> matrix(const Quat<S>& q) {
    const S one(Element<S>(1));
    const S x2 = q.x + q.x, y2 = q.y + q.y, z2 = q.z + q.z;
    const S wx = q.w * x2, wy = q.w * y2, wz = q.w * z2;
    const S xx = q.x * x2, xy = q.x * y2, xz = q.x * z2;
    const S yy = q.y * y2, yz = q.y * z2, zz = q.z * z2;
    return {one - (yy + zz), xy - wz, xz + wy, xy + wz,        one - (xx + zz),
            yz - wx,         xz - wy, yz + wx, one - (xx + yy)};
}
template <class S>
POISE_INLINE Vec3<S> rotate(const Quat<S>& q, const Vec3<S>& a) {
    const Vec3<S> u = {q.x, q.y, q.z};
    const Vec3<S> t = cross(u, a);
    const Vec3<S> t2 = t + t;
    return a + q.w * t2 + cross(u, t2);
}
template <class S>
POISE_INLINE Vec3<S> rotate_back(const Quat<S>& q, const Vec3<S>& a) {
    return rotate(conjugate(q), a);
}
// one Newton step towards unit length: exact to rounding for what an integration step leaves
template <class S>
POISE_INLINE Quat<S> renormalise(const Quat<S>& q) {
    using T = Element<S>;
    const S k = S(T(1.5)) - S(T(0.5)) * (q.w * q.w + q.x * q.x + q.y * q.y + q.z * q.z);
    return {k * q.w, k * q.x, k * q.y, k * q.z};
}

// cos(h) and sin(h)/h from z = h^2 for z <= 2.5 (|h| <= pi/2): Chebyshev-economised polynomials,
// errors 5e-18 and 3e-19 (double), 3e-10 and 5e-9 (float). Even and odd powers run side by side.
template <class S>
POISE_INLINE S cosine_poly(S z) {
    using T = Element<S>;
    const S y = z * z;
    if constexpr (sizeof(T) == 8) {
        S even = S(T(4.60676310548032963e-14)) * y + T(2.08765540705789447e-9);
        S odd = S(T(-1.146269567962633e-11)) * y + T(-2.75573162393822959e-7);
        even = even * y + T(2.48015872757849018e-5);
        odd = odd * y + T(-1.3888888888763541e-3);
        even = even * y + T(4.16666666666636156e-2);
        odd = odd * y + T(-0.499999999999999714);
        return odd * z + (even * y + T(0.999999999999999996));
    } else {
        S even = S(T(2.47590253424125503e-5)) * y + T(4.16666345320853399e-2);
        S odd = S(T(-2.60312613878626096e-7)) * y + T(-1.38883393273722516e-3);
        odd = odd * y + T(-0.499999993120873357);
        return odd * z + (even * y + T(0.999999999761187455));
    }
}
template <class S>
POISE_INLINE S sinc_poly(S z) {
    using T = Element<S>;
    const S y = z * z;
    if constexpr (sizeof(T) == 8) {
        S even = S(T(2.72040590697499416e-15)) * y + T(1.60589367760172447e-10);
        S odd = S(T(-7.64291766474544423e-13)) * y + T(-2.5052106810497992e-8);
        even = even * y + T(2.75573192103689279e-6);
        odd = odd * y + T(-1.98412698412036861e-4);
        even = even * y + T(8.3333333333331723e-3);
        odd = odd * y + T(-0.166666666666666652);
        return odd * z + (even * y + T(1));
    } else {
        S even = S(T(2.60316911542442194e-6)) * y + T(8.33303894464502794e-3);
        const S odd = S(T(-1.98081743536101612e-4)) * y + T(-0.166666574826339457);
        return odd * z + (even * y + T(0.999999995409470243));
    }
}
// atan(t)/t from z = t^2 for t <= tan(pi/8): errors 4e-17 (double), 2e-8 (float)
template <class S>
POISE_INLINE S atan_poly(S z) {
    using T = Element<S>;
    const S y = z * z;
    if constexpr (sizeof(T) == 8) {
        S even = S(T(0.0210479758183544673)) * y + T(0.0568586568837710115);
        S odd = S(T(-0.0434089663883294264)) * y + T(-0.0663975805922673541);
        even = even * y + T(0.0768989856915192454);
        odd = odd * y + T(-0.0909076916488892866);
        even = even * y + T(0.111111060116989921);
        odd = odd * y + T(-0.142857141768119799);
        even = even * y + T(0.199999999988031949);
        odd = odd * y + T(-0.333333333333281891);
        return odd * z + (even * y + T(1));
    } else {
        S even = S(T(0.0796279171967721517)) * y + T(0.19973703612295393);
        const S odd = S(T(-0.138444063419941702)) * y + T(-0.333327748114951316);
        return odd * z + (even * y + T(0.999999980786617709));
    }
}

// cos(angle / 2) and sin(angle / 2) up to a common sign, which a quaternion does not feel: the
// angle may be of any size, it is reduced by whole turns in two parts (Cody and Waite)
template <class S>
POISE_INLINE void half_angle(S angle, S& c, S& s) {
    using T = Element<S>;
    const S turns = round_nearest(angle * S(T(0.15915494309189535)));
    S x;
    if constexpr (sizeof(T) == 8) {
        x = angle - turns * S(T(6.2831853069365025));  // 2 pi, the leading 33 bits
        x = x - turns * S(T(2.430840202602477e-10));
    } else {
        x = angle - turns * S(T(6.28125));
        x = x - turns * S(T(1.9353071795864769e-3));
    }
    const S h = x * S(T(0.5));
    const S z = h * h;
    c = cosine_poly(z);
    s = h * sinc_poly(z);
}

// the quaternion that turns by the rotation vector phi
template <class S>
POISE_INLINE Quat<S> exponential(const Vec3<S>& phi) {
    using T = Element<S>;
    const S z = S(T(0.25)) * dot(phi, phi);
    const S limit(T(2.5));
    S c = cosine_poly(z);
    S k = S(T(0.5)) * sinc_poly(z);
    const auto large = limit < z;
    if (any(large)) {
        // more than half a turn: reduce by whole turns
        const S angle = S(T(2)) * square_root(z);
        S c2, s2;
        half_angle(angle, c2, s2);
        c = select(large, c2, c);
        k = select(large, s2 / larger(angle, S(T(1))), k);
    }
    return {c, k * phi.x, k * phi.y, k * phi.z};
}

// the rotation vector of a unit quaternion, the short way round, without branches. With
// |phi| = 4 theta, tan(theta) comes from two half-angle steps and stays below tan(pi / 8).
template <class S>
POISE_INLINE Vec3<S> logarithm(const Quat<S>& q) {
    using T = Element<S>;
    const S one(T(1)), half(T(0.5));
    const auto flip = q.w < S(T(0));
    const S w = select(flip, -q.w, q.w);
    const S n2 = q.x * q.x + q.y * q.y + q.z * q.z;
    const S c = square_root(half + half * w);  // cos(|phi| / 4)
    const S k = half / (c * (one + c));        // tan(theta) / sin(|phi| / 2)
    const S scale = S(T(8)) * k * atan_poly(n2 * k * k);
    const S sign = select(flip, -scale, scale);
    return {sign * q.x, sign * q.y, sign * q.z};
}

// ---- forces and inertias

template <class S>
struct Wrench {
    Vec3<S> n, f;  // moment about the joint [N m], force [N]
};
template <class S>
struct Motion {
    Vec3<S> al, a;  // angular, linear
};
template <class S>
POISE_INLINE Wrench<S> operator+(const Wrench<S>& a, const Wrench<S>& b) {
    return {a.n + b.n, a.f + b.f};
}
// the same force, about the parent's joint
template <class S>
POISE_INLINE Wrench<S> shift(const Wrench<S>& w, const Vec3<S>& r) {
    return {w.n + cross(r, w.f), w.f};
}

// [n; f] = [C B; B' A] [alpha; a], symmetric
template <class S>
struct Inertia {
    Sym3<S> C;
    Mat3<S> B;
    Sym3<S> A;
};
template <class S>
POISE_INLINE Inertia<S> operator+(const Inertia<S>& a, const Inertia<S>& b) {
    return {a.C + b.C, a.B + b.B, a.A + b.A};
}
// about the parent's joint: B' = B + [r] A,  C' = C - B [r] + [r] transpose(B'); row by row
template <class S>
POISE_INLINE Inertia<S> shift(const Inertia<S>& I, const Vec3<S>& r) {
    const auto& A = I.A;
    const auto& B = I.B;
    Inertia<S> o;
    o.B.xx = B.xx + (r.y * A.xz - r.z * A.xy);
    o.B.xy = B.xy + (r.y * A.yz - r.z * A.yy);
    o.B.xz = B.xz + (r.y * A.zz - r.z * A.yz);
    o.C.xx = I.C.xx + (r.y * (B.xz + o.B.xz) - r.z * (B.xy + o.B.xy));
    const S xy = I.C.xy + (B.xx * r.z - B.xz * r.x);
    const S xz = I.C.xz + (B.xy * r.x - B.xx * r.y);
    o.B.yx = B.yx + (r.z * A.xx - r.x * A.xz);
    o.B.yy = B.yy + (r.z * A.xy - r.x * A.yz);
    o.B.yz = B.yz + (r.z * A.xz - r.x * A.zz);
    o.C.yy = I.C.yy + (r.z * (B.yx + o.B.yx) - r.x * (B.yz + o.B.yz));
    o.C.xy = xy + (r.y * o.B.yz - r.z * o.B.yy);
    const S yz = I.C.yz + (B.yy * r.x - B.yx * r.y);
    o.B.zx = B.zx + (r.x * A.xy - r.y * A.xx);
    o.B.zy = B.zy + (r.x * A.yy - r.y * A.xy);
    o.B.zz = B.zz + (r.x * A.yz - r.y * A.xz);
    o.C.zz = I.C.zz + (r.x * (B.zy + o.B.zy) - r.y * (B.zx + o.B.zx));
    o.C.xz = xz + (r.y * o.B.zz - r.z * o.B.zy);
    o.C.yz = yz + (r.z * o.B.zx - r.x * o.B.zz);
    o.A = A;
    return o;
}

}  // namespace poise::inline POISE_ISA
