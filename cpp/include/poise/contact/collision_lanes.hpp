// Pairs of rods (spheres and capsules) with each other and with boxes, all copies of a tile at
// once.
//
// As in collision.hpp: points on the surface of b, the normal from b to a, and the gap along it. A
// rod is a segment with a radius; a sphere has no length. Where rods are parallel, or a rod lies on
// a face, the ends of the stretch that they share touch, each in a slot of its own.
#pragma once

#include "poise/contact/constraints.hpp"
#include "poise/spatial.hpp"

namespace poise::inline POISE_ISA {

template <class S>
struct LaneTouch {
    Vec3<S> at, n;
    S gap;
    MaskOf<S> on;
};

// The segment center + t axis, |t| <= half.
template <class S>
struct Rod {
    Vec3<S> center, axis;
    S half;
    double radius;
};

template <class S>
struct LaneBox {
    Vec3<S> center, axis[3];
    const double* size;
};

template <class S>
POISE_INLINE S clamp_to(S x, S low, S high) {
    const S up = larger(x, low);
    return select(up < high, up, high);
}
template <class S>
POISE_INLINE S magnitude(S x) {
    return larger(x, -x);
}

template <class S>
POISE_INLINE Vec3<S> choose(const MaskOf<S>& m, const Vec3<S>& yes, const Vec3<S>& no) {
    return {select(m, yes.x, no.x), select(m, yes.y, no.y), select(m, yes.z, no.z)};
}

template <class S>
POISE_INLINE LaneTouch<S> touch_balls(const Vec3<S>& a, double ra, const Vec3<S>& b, double rb,
                                      const S& near) {
    using T = Element<S>;
    const S zero(T(0)), one(T(1)), tiny(T(1e-12));
    const Vec3<S> d = a - b;
    const S far = square_root(dot(d, d));
    const auto apart = tiny < far;
    const S k = one / select(apart, far, one);
    const Vec3<S> n = {select(apart, k * d.x, zero), select(apart, k * d.y, zero),
                       select(apart, k * d.z, one)};
    const S gap = far - S(T(ra + rb));
    return {b + S(T(rb)) * n, n, gap, negate(near < gap)};
}

// Two rods: their nearest points, or both ends of the stretch that parallel ones share.
template <class S>
POISE_INLINE void touch_rods(const Rod<S>& a, const Rod<S>& b, const S& near, LaneTouch<S>* out) {
    using T = Element<S>;
    const S zero(T(0)), one(T(1));
    const Vec3<S> r = a.center - b.center;
    const S c = dot(a.axis, b.axis), e = dot(a.axis, r), f = dot(b.axis, r);
    const S det = one - c * c;
    const auto skew = S(T(sizeof(T) == 8 ? 1e-9 : 1e-6)) < det;
    S s = select(skew, clamp_to((c * f - e) / select(skew, det, one), -a.half, a.half), zero);
    S t = clamp_to(f + s * c, -b.half, b.half);
    s = clamp_to(t * c - e, -a.half, a.half);
    t = clamp_to(f + s * c, -b.half, b.half);
    // the part of b's axis that lies beside a, seen along a
    const S reach = b.half * magnitude(c);
    const S low = larger(-e - reach, -a.half);
    const S end = reach - e, high = select(end < a.half, end, a.half);
    const S shorter = select(a.half < b.half, a.half, b.half);
    const auto parallel =
        (S(T(0.9998)) < c * c) & (S(T(1e-3)) * shorter < high - low) & (zero < shorter);
    if (any(parallel)) {
        const Vec3<S> x = a.center + high * a.axis;
        const S u = clamp_to(dot(b.axis, x - b.center), -b.half, b.half);
        out[1] = touch_balls(x, a.radius, b.center + u * b.axis, b.radius, near);
        out[1].on = out[1].on & parallel;
        s = select(parallel, low, s);
        const S w = clamp_to(dot(b.axis, a.center + s * a.axis - b.center), -b.half, b.half);
        t = select(parallel, w, t);
    } else {
        out[1].on = constant_mask<S>(false);
    }
    out[0] = touch_balls(a.center + s * a.axis, a.radius, b.center + t * b.axis, b.radius, near);
}

// A ball and a box; a ball whose center is inside leaves through the nearest face.
template <class S>
POISE_INLINE LaneTouch<S> touch_ball_box(const Vec3<S>& x, double radius, const LaneBox<S>& b,
                                         const S& near) {
    using T = Element<S>;
    const S zero(T(0)), one(T(1));
    const Vec3<S> d = x - b.center;
    const S l[3] = {dot(b.axis[0], d), dot(b.axis[1], d), dot(b.axis[2], d)};
    S out[3], far2 = zero;
    S depth(T(1e30)), face[3] = {zero, zero, zero};
    for (int k = 0; k < 3; ++k) {
        const S size(T(b.size[k]));
        out[k] = l[k] - clamp_to(l[k], -size, size);
        far2 = far2 + out[k] * out[k];
        const S left = size - magnitude(l[k]);
        const auto nearest = left < depth;
        depth = select(nearest, left, depth);
        const S side = select(l[k] < zero, -one, one);
        for (int j = 0; j < 3; ++j) face[j] = select(nearest, j == k ? side : zero, face[j]);
    }
    const auto inside = negate(zero < far2);
    const S far = square_root(far2), k = one / select(inside, one, far);
    const S distance = select(inside, -depth, far);
    Vec3<S> n = zero3<S>();
    for (int j = 0; j < 3; ++j) n = n + select(inside, face[j], k * out[j]) * b.axis[j];
    const S gap = distance - S(T(radius));
    MaskOf<S> on = negate(near < gap);
    on = on | inside;
    return {x - distance * n, n, gap, on};
}

// t of the point center + t axis, |t| <= half, that is nearest to a box: the slope of the squared
// distance grows with t, and is linear between the planes of the box's faces. Those that lie within
// the bracket narrow it; what is left is linear.
template <class S>
POISE_INLINE S nearest_on_rod(const S* p, const S* e, const S& half, const double* size) {
    using T = Element<S>;
    const S zero(T(0)), one(T(1)), tiny(T(1e-12));
    const auto slope = [&](const S& t) {
        S sum = zero;
        for (int k = 0; k < 3; ++k) {
            const S s{T(size[k])}, x = p[k] + t * e[k];
            sum = sum + (x - clamp_to(x, -s, s)) * e[k];
        }
        return sum;
    };
    S low = -half, high = half, falls = slope(low), rises = slope(high);
    for (int k = 0; k < 3; ++k) {
        const auto slanted = tiny < magnitude(e[k]);
        const S inverse = one / select(slanted, e[k], one);
        for (int side = -1; side < 2; side += 2) {
            const S t = (S(T(side * size[k])) - p[k]) * inverse;
            const auto within = slanted & (low < t) & (t < high);
            if (!any(within)) continue;
            const S now = slope(t);
            const auto before = within & negate(zero < now), after = within & (zero < now);
            low = select(before, t, low);
            falls = select(before, now, falls);
            high = select(after, t, high);
            rises = select(after, now, rises);
        }
    }
    const S span = rises - falls;
    const auto bent = tiny * tiny < span;
    const S t = low - select(bent, falls / select(bent, span, one), zero) * (high - low);
    const S inner = clamp_to(t, low, high);
    // the nearest point is an end of the rod
    return select(zero < falls, low, select(rises < zero, high, inner));
}

// A rod and a box: the ends of the stretch that lies over the face which the nearest point looks at
// (0 and 1), and the nearest point of the axis if it is deeper or lies between (2).
template <class S>
POISE_INLINE void touch_rod_box(const Rod<S>& a, const LaneBox<S>& b, const S& near,
                                LaneTouch<S>* out) {
    using T = Element<S>;
    const S one(T(1)), far(T(1e30));
    const Vec3<S> d = a.center - b.center;
    S p[3], e[3];
    for (int k = 0; k < 3; ++k) {
        p[k] = dot(b.axis[k], d);
        e[k] = dot(b.axis[k], a.axis);
    }
    const S t = nearest_on_rod(p, e, a.half, b.size);
    out[2] = touch_ball_box(a.center + t * a.axis, a.radius, b, near);
    const auto close = out[2].on;
    const S n[3] = {magnitude(dot(b.axis[0], out[2].n)), magnitude(dot(b.axis[1], out[2].n)),
                    magnitude(dot(b.axis[2], out[2].n))};
    const S most = larger(larger(n[0], n[1]), n[2]);
    S low = -a.half, high = a.half;
    auto found = constant_mask<S>(false);  // of equal ones the first is the face
    for (int k = 0; k < 3; ++k) {
        const auto face = negate(found) & negate(n[k] < most);
        found = found | face;
        const auto slanted = negate(face) & (S(T(sizeof(T) == 8 ? 1e-9 : 1e-6)) < magnitude(e[k]));
        const S inverse = one / select(slanted, e[k], one), s(T(b.size[k]));
        const S from = (-s - p[k]) * inverse, to = (s - p[k]) * inverse;
        low = larger(low, select(slanted, select(from < to, from, to), -far));
        const S end = select(slanted, larger(from, to), far);
        high = select(end < high, end, high);
    }
    const S apart = S(T(0.02)) * a.half;
    const auto over = close & (low < high);
    out[0] = touch_ball_box(a.center + low * a.axis, a.radius, b, near);
    out[1] = touch_ball_box(a.center + high * a.axis, a.radius, b, near);
    out[0].on = out[0].on & over;
    out[1].on = out[1].on & over & (apart < high - low);
    S deepest = select(out[0].on, out[0].gap, far);
    const S other = select(out[1].on, out[1].gap, far);
    deepest = select(other < deepest, other, deepest);
    const auto between = (apart < t - low) & (apart < high - t);
    out[2].on = close & (between | (out[2].gap < deepest - S(T(1e-6))));
}

}  // namespace poise::inline POISE_ISA
