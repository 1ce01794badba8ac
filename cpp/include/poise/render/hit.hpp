// Rays from the eye: where t d, |d| = 1, meets a body, and the normal there.
#pragma once

#include "poise/render/scene.hpp"

namespace poise::pictures {

inline float hit_sphere(V3 c, float r, V3 d) {
    const float b = dot(c, d);
    const V3 q = c - b * d;  // from the ray to the center
    const float h = r * r - dot(q, q);
    return h < 0.0f ? kFar : b - std::sqrt(h);
}

// the wall of an endless cylinder: |c . (d x a)| is the distance of the lines times |d x a|
inline float hit_wall(const Body& b, V3 d, float& y, float& root) {
    const V3 a = b.R.z, n = cross(d, a);
    const float n2 = dot(n, n), s = dot(b.c, n), k = dot(d, a), m = dot(b.c, a);
    const float h = n2 * b.r * b.r - s * s;
    if (h < 0.0f) return kFar;
    if (n2 < 1e-12f) {
        y = k > 0.0f ? -kFar : kFar;
        root = kFar;
        return 0.0f;
    }
    root = std::sqrt(h) / n2;
    const float t = (dot(b.c, d) - m * k) / n2 - root;
    y = t * k - m;
    return t;
}

inline float hit_capsule(const Body& b, V3 d) {
    float y = 0.0f, root = 0.0f;
    const float t = hit_wall(b, d, y, root);
    if (t == kFar || std::abs(y) <= b.half) return t;
    return hit_sphere(b.c + (y > 0.0f ? b.half : -b.half) * b.R.z, b.r, d);
}

inline float hit_cylinder(const Body& b, V3 d, int& face) {
    float y = 0.0f, root = 0.0f;
    const float t = hit_wall(b, d, y, root);
    face = 0;
    if (t == kFar || std::abs(y) <= b.half) return t;
    const float k = dot(d, b.R.z), end = y > 0.0f ? b.half : -b.half;
    if (k * end >= 0.0f) return kFar;  // its back
    face = y > 0.0f ? 1 : 2;
    const float at = (dot(b.c, b.R.z) + end) / k;
    return at <= t + 2.0f * root ? at : kFar;
}

inline float hit_box(const Body& b, V3 d, int& face) {
    const V3 l = b.R.in(d);
    float near = -kFar, far = kFar;
    const auto slab = [&](float o, float k, float h, int axis) {
        if (k == 0.0f) {
            if (std::abs(o) > h) far = -kFar;
            return;
        }
        const float inverse = 1.0f / k;
        const float middle = -o * inverse, wide = h * std::abs(inverse);
        if (middle - wide > near) {
            near = middle - wide;
            face = 2 * axis + (k > 0.0f);
        }
        far = smaller(far, middle + wide);
    };
    slab(b.o.x, l.x, b.h.x, 0);
    slab(b.o.y, l.y, b.h.y, 1);
    slab(b.o.z, l.z, b.h.z, 2);
    return near <= far ? near : kFar;
}

// distance along the ray, infinite where the body is missed; t: look no further
inline float hit(const Body& b, V3 d, float t, int& face) {
    face = 0;
    switch (b.kind) {
        case Kind::sphere: return hit_sphere(b.c, b.r, d);
        case Kind::capsule: return hit_capsule(b, d);
        case Kind::box: return hit_box(b, d, face);
        case Kind::cylinder: return hit_cylinder(b, d, face);
        case Kind::plane: {
            const float k = dot(d, b.R.z);
            return k == 0.0f ? kFar : dot(b.c, b.R.z) / k;
        }
        case Kind::mesh: {
            face = b.mesh->hit(b.o, b.R.in(d), t, false);
            return face < 0 ? kFar : t;
        }
    }
    return kFar;
}

// unit normal at the point p of a body's face, on the side that the ray d comes from
inline V3 normal(const Body& b, V3 p, V3 d, int face) {
    switch (b.kind) {
        case Kind::sphere: return unit(p - b.c);
        case Kind::capsule: {
            const float y = clamp(dot(p - b.c, b.R.z), -b.half, b.half);
            return unit(p - b.c - y * b.R.z);
        }
        case Kind::box: {
            const V3 n = face < 2 ? b.R.x : face < 4 ? b.R.y : b.R.z;
            return face & 1 ? -1.0f * n : n;
        }
        case Kind::cylinder:
            if (face) return face == 1 ? b.R.z : -1.0f * b.R.z;
            return unit(p - b.c - dot(p - b.c, b.R.z) * b.R.z);
        case Kind::plane: return dot(b.R.z, d) > 0.0f ? -1.0f * b.R.z : b.R.z;
        case Kind::mesh: return b.R.out(b.mesh->normal(face, b.R.in(p - b.c), b.R.in(d)));
    }
    return {0, 0, 1};
}

}  // namespace poise::pictures
