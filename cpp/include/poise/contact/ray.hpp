// Ray casts: the nearest surface along a ray, in double precision, one copy at a time.
//
// A ray is o + t d, with d of unit length and t >= 0. A solid is met where the ray enters it, or
// where it leaves it if it starts inside; the ground is met from above only.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "poise/contact/ground.hpp"

namespace poise::inline POISE_ISA {

constexpr double kNoHit = std::numeric_limits<double>::infinity();

struct Ray {
    double o[3], d[3];
};

// The nearest hit so far, and the outward unit normal there.
struct RayHit {
    double t, n[3];
    // a candidate
    void offer(double at, double x, double y, double z) {
        if (!(at >= 0 && at < t)) return;
        t = at;
        n[0] = x, n[1] = y, n[2] = z;
    }
};

inline double dot3(const double* a, const double* b) {
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

// |o + t d| = r, by the point of the ray that is nearest to the center: no digits are lost far away
inline bool sphere_roots(const double* o, const double* d, double r, double root[2]) {
    const double b = dot3(o, d);
    double near2 = 0;
    for (int k = 0; k < 3; ++k) near2 += (o[k] - b * d[k]) * (o[k] - b * d[k]);
    const double half2 = r * r - near2;
    if (half2 < 0) return false;
    const double half = std::sqrt(half2);
    root[0] = -b - half, root[1] = -b + half;
    return true;
}

inline void meet_ball(const Ray& a, double r, RayHit& hit) {
    double root[2];
    if (!sphere_roots(a.o, a.d, r, root)) return;
    for (const double t : root)
        hit.offer(t, (a.o[0] + t * a.d[0]) / r, (a.o[1] + t * a.d[1]) / r,
                  (a.o[2] + t * a.d[2]) / r);
}

// the side of a cylinder about z, |z| <= half
inline void meet_side(const Ray& a, double r, double half, RayHit& hit) {
    const double across = std::sqrt(a.d[0] * a.d[0] + a.d[1] * a.d[1]);
    if (across < 1e-15) return;
    const double u[2] = {a.d[0] / across, a.d[1] / across};
    // distance of the axis from the ray, seen along the axis
    const double b = a.o[0] * u[0] + a.o[1] * u[1], off = a.o[0] * u[1] - a.o[1] * u[0];
    const double half2 = r * r - off * off;
    if (half2 < 0) return;
    const double way = std::sqrt(half2);
    for (const double s : {-b - way, -b + way}) {
        const double t = s / across;
        if (std::fabs(a.o[2] + t * a.d[2]) <= half)
            hit.offer(t, (a.o[0] + t * a.d[0]) / r, (a.o[1] + t * a.d[1]) / r, 0);
    }
}

inline void meet_capsule(const Ray& a, double r, double half, RayHit& hit) {
    meet_side(a, r, half, hit);
    for (const double end : {-half, half}) {
        const double o[3] = {a.o[0], a.o[1], a.o[2] - end};
        double root[2];
        if (!sphere_roots(o, a.d, r, root)) continue;
        for (const double t : root) {
            const double z = o[2] + t * a.d[2];
            // the half of the ball that is beyond the cylinder
            if ((end < 0 ? -z : z) >= 0)
                hit.offer(t, (o[0] + t * a.d[0]) / r, (o[1] + t * a.d[1]) / r, z / r);
        }
    }
}

inline void meet_cylinder(const Ray& a, double r, double half, RayHit& hit) {
    meet_side(a, r, half, hit);
    if (a.d[2] == 0) return;
    for (const double end : {-half, half}) {
        const double t = (end - a.o[2]) / a.d[2];
        const double x = a.o[0] + t * a.d[0], y = a.o[1] + t * a.d[1];
        if (x * x + y * y <= r * r) hit.offer(t, 0, 0, end < 0 ? -1 : 1);
    }
}

// What a ray has of a convex solid: from the last half space that it enters to the first that it
// leaves.
struct Passage {
    double in = -kNoHit, out = kNoHit, n_in[3] = {0, 0, 0}, n_out[3] = {0, 0, 0};
    bool misses = false;
    // the half space n.x <= offset
    void cut(const double* n, double offset, const Ray& a) {
        const double gap = dot3(n, a.o) - offset, rate = dot3(n, a.d);
        if (rate == 0) {
            misses = misses || gap > 0;
            return;
        }
        const double t = -gap / rate;
        if (rate < 0 && t > in) {
            in = t;
            for (int k = 0; k < 3; ++k) n_in[k] = n[k];
        }
        if (rate > 0 && t < out) {
            out = t;
            for (int k = 0; k < 3; ++k) n_out[k] = n[k];
        }
    }
    void offer(RayHit& hit) const {
        if (misses || in > out) return;
        if (in >= 0) hit.offer(in, n_in[0], n_in[1], n_in[2]);
        else hit.offer(out, n_out[0], n_out[1], n_out[2]);
    }
};

inline void meet_box(const Ray& a, const double* half, RayHit& hit) {
    Passage way;
    for (int k = 0; k < 3; ++k)
        for (const double side : {-1.0, 1.0}) {
            double n[3] = {0, 0, 0};
            n[k] = side;
            way.cut(n, half[k], a);
        }
    way.offer(hit);
}

// planes (count, 4): unit normals and offsets of the faces of a convex mesh
inline void meet_mesh(const Ray& a, const double* planes, std::int64_t count, RayHit& hit) {
    Passage way;
    for (std::int64_t i = 0; i < count; ++i) way.cut(planes + 4 * i, planes[4 * i + 3], a);
    way.offer(hit);
}

inline void meet_plane(const Ray& a, const Ground& g, RayHit& hit) {
    const double gap = dot3(g.normal, a.o) - g.offset, rate = dot3(g.normal, a.d);
    if (gap >= 0 && rate < 0) hit.offer(-gap / rate, g.normal[0], g.normal[1], g.normal[2]);
}

// Cell by cell along the ray. Beyond the rim the field goes on level: cells outside are strips
// without an end. In each cell the ray is above or below one of two planes, and the first time that
// it goes below it hits.
inline void meet_field(const Ray& a, const Ground& g, double low, double high, RayHit& hit) {
    // only where the ray is between the lowest and the highest point
    double begin = 0, end = hit.t;
    if (a.d[2] < 0) {
        begin = std::fmax(0.0, (high - a.o[2]) / a.d[2]);
        // a little further, so that the end is below
        end = std::fmin(end, (low - a.o[2]) / a.d[2] * (1 + 1e-12) + 1e-9);
    } else if (a.o[2] > high) {
        return;
    }
    if (!(begin < end)) return;
    const auto cell_of = [](double x, double origin, double spacing, std::int32_t count) {
        const double u = std::floor((x - origin) / spacing);
        return u < 0            ? std::int64_t{-1}
               : u >= count - 1 ? std::int64_t{count} - 1
                                : std::int64_t(u);
    };
    std::int64_t col = cell_of(a.o[0] + begin * a.d[0], g.x0, g.dx, g.cols);
    std::int64_t row = cell_of(a.o[1] + begin * a.d[1], g.y0, g.dy, g.rows);
    double t = begin;
    bool above = false, first = true;
    // when the ray leaves the cell along an axis
    const auto leaves = [](double o, double d, double x0, double dx, std::int64_t i,
                           std::int32_t count) {
        if (d > 0 && i < count - 1) return (x0 + (i + 1) * dx - o) / d;
        if (d < 0 && i >= 0) return (x0 + i * dx - o) / d;
        return kNoHit;
    };
    for (;;) {
        const double tx = leaves(a.o[0], a.d[0], g.x0, g.dx, col, g.cols);
        const double ty = leaves(a.o[1], a.d[1], g.y0, g.dy, row, g.rows);
        const double next = std::fmax(t, std::fmin(std::fmin(tx, ty), end));
        const double x = g.x0 + col * g.dx, y = g.y0 + row * g.dy;
        const double h00 = height_at(g, col, row), h10 = height_at(g, col + 1, row);
        const double h01 = height_at(g, col, row + 1), h11 = height_at(g, col + 1, row + 1);
        // the diagonal from (0, 0) to (1, 1) divides the cell: side = s - t is linear in the way
        const double side0 = (a.o[0] - x) / g.dx - (a.o[1] - y) / g.dy;
        const double side1 = a.d[0] / g.dx - a.d[1] / g.dy;
        const double turn = side1 != 0 ? -side0 / side1 : kNoHit;
        const bool inside = col >= 0 && col < g.cols - 1 && row >= 0 && row < g.rows - 1;
        const int pieces = inside && turn > t && turn < next ? 2 : 1;
        for (int k = 0; k < pieces; ++k) {
            const double from = k == 0 ? t : turn;
            const double to = k == 0 && pieces == 2 ? turn : next;
            const double middle = to < kNoHit ? 0.5 * (from + to) : from + 1;
            const bool lower = side0 + middle * side1 >= 0;
            const double gx = (lower ? h10 - h00 : h11 - h01) / g.dx;
            const double gy = (lower ? h11 - h10 : h01 - h00) / g.dy;
            // height over the plane: f0 + t f1
            const double f0 = a.o[2] - h00 - gx * (a.o[0] - x) - gy * (a.o[1] - y);
            const double f1 = a.d[2] - gx * a.d[0] - gy * a.d[1];
            if (first) above = f0 + from * f1 >= 0;
            first = false;
            const bool below = to < kNoHit ? f0 + to * f1 < 0 : f1 < 0;
            if (above && below) {
                const double at = f1 < 0 ? std::fmin(std::fmax(-f0 / f1, from), to) : from;
                const double size = 1 / std::sqrt(gx * gx + gy * gy + 1);
                return hit.offer(at, -gx * size, -gy * size, size);
            }
            above = !below;
        }
        if (!(next < end)) return;
        if (tx <= ty) col += a.d[0] > 0 ? 1 : -1;
        else row += a.d[1] > 0 ? 1 : -1;
        t = next;
    }
}

}  // namespace poise::inline POISE_ISA
