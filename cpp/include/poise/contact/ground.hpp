// Where bodies meet the ground: balls and corners against a plane or a height field, in lanes.
#pragma once

#include "poise/contact/rows.hpp"

namespace poise::inline POISE_ISA {

// Contacts closer than this take part, and those that the step may close [m].
constexpr double kNear = 0.01;

// The surface under a place of one copy: a plane through at, and the triangle it is of.
struct Facet {
    double height;     // at the place [m]
    double n[3];       // upward unit normal
    std::int64_t key;  // which triangle; -1 is outside of the grid
};

// A cell is split along the diagonal from (0, 0) to (1, 1). Beyond its rim the field goes on level.
inline Facet facet_at(const Ground& g, double x, double y) {
    const double u = (x - g.x0) / g.dx, v = (y - g.y0) / g.dy;
    const bool inside = u >= 0 && v >= 0 && u <= g.cols - 1 && v <= g.rows - 1;
    // so that what is not a number ends at a corner, too
    const double cu = u > 0 ? (u < g.cols - 1 ? u : g.cols - 1) : 0;
    const double cv = v > 0 ? (v < g.rows - 1 ? v : g.rows - 1) : 0;
    int col = static_cast<int>(cu), row = static_cast<int>(cv);
    if (col > g.cols - 2) col = g.cols - 2;
    if (row > g.rows - 2) row = g.rows - 2;
    const double* h = g.height + static_cast<std::int64_t>(row) * g.cols + col;
    const double a = h[0], b = h[1], c = h[g.cols], d = h[g.cols + 1];
    const double s = cu - col, t = cv - row;
    const bool lower = s >= t;
    double sx = lower ? b - a : d - c, sy = lower ? d - b : c - a;
    const double height = lower ? a + s * sx + t * sy : a + t * sy + s * sx;
    if (!inside) {
        // level outwards, as the rim is along it
        if (u < 0 || u > g.cols - 1) sx = 0;
        if (v < 0 || v > g.rows - 1) sy = 0;
    }
    const double nx = -sx / g.dx, ny = -sy / g.dy;
    const double k = 1 / std::sqrt(nx * nx + ny * ny + 1);
    const std::int64_t key =
        inside ? 2 * (static_cast<std::int64_t>(row) * g.cols + col) + lower : -1;
    return {height, {k * nx, k * ny, k}, key};
}

// The point nearest to p on the rim of a facet.
inline void nearest_on_rim(const Ground& g, std::int64_t key, const double p[3], double out[3]) {
    const auto cell = key / 2;
    const int col = static_cast<int>(cell % g.cols), row = static_cast<int>(cell / g.cols);
    const int far[3][2] = {{0, 0}, {1, 1}, {key % 2 ? 1 : 0, key % 2 ? 0 : 1}};
    double corner[3][3];
    for (int k = 0; k < 3; ++k) {
        const int i = col + far[k][0], j = row + far[k][1];
        corner[k][0] = g.x0 + i * g.dx;
        corner[k][1] = g.y0 + j * g.dy;
        corner[k][2] = g.height[static_cast<std::int64_t>(j) * g.cols + i];
    }
    double best = 1e300;
    for (int k = 0; k < 3; ++k) {
        const double *a = corner[k], *b = corner[(k + 1) % 3];
        double along = 0, length = 0, at[3], d2 = 0;
        for (int i = 0; i < 3; ++i) {
            along += (p[i] - a[i]) * (b[i] - a[i]);
            length += (b[i] - a[i]) * (b[i] - a[i]);
        }
        double t = along / length;
        t = t < 0 ? 0 : t > 1 ? 1 : t;
        for (int i = 0; i < 3; ++i) {
            at[i] = a[i] + t * (b[i] - a[i]);
            d2 += (p[i] - at[i]) * (p[i] - at[i]);
        }
        if (d2 >= best) continue;
        best = d2;
        for (int i = 0; i < 3; ++i) out[i] = at[i];
    }
}

// Gap and normal of a ball over a height field, of the facet below its centre.
inline double gap_below(const Ground& g, const Facet& below, const double p[3], double radius,
                        double n[3]) {
    for (int k = 0; k < 3; ++k) n[k] = below.n[k];
    const double far = (p[2] - below.height) * below.n[2];
    if (radius == 0 || far <= 0 || below.key < 0) return far - radius;
    const double foot[3] = {p[0] - far * n[0], p[1] - far * n[1], p[2] - far * n[2]};
    const Facet there = facet_at(g, foot[0], foot[1]);
    if (there.key == below.key || there.height > foot[2] - 1e-6 * radius) return far - radius;
    // over a ridge the ball touches its edge
    double edge[3], d2 = 0;
    nearest_on_rim(g, below.key, p, edge);
    for (int k = 0; k < 3; ++k) d2 += (p[k] - edge[k]) * (p[k] - edge[k]);
    const double d = std::sqrt(d2);
    if (d < 1e-9) return far - radius;
    for (int k = 0; k < 3; ++k) n[k] = (p[k] - edge[k]) / d;
    return d - radius;
}

// The same of the facet that a corner comes to in this step, where the ground rises.
inline double gap_ahead(const Ground& g, const Facet& below, const double p[3], const double way[3],
                        double n[3]) {
    const Facet ahead = facet_at(g, p[0] + way[0], p[1] + way[1]);
    // its plane, at p
    const double z = ahead.height + (way[0] * ahead.n[0] + way[1] * ahead.n[1]) / ahead.n[2];
    for (int k = 0; k < 3; ++k) n[k] = ahead.n[k];
    if (ahead.key < 0 || ahead.key == below.key || z >= below.height) return 1e30;
    return (p[2] - z) * ahead.n[2];
}

// Gap and normal of a ball that is on its way: rank 0 is the facet below it; of a corner, 1 is the
// one that it comes to; of a ball, 1 and 2 are the nearest of those beside it that it reaches.
inline double field_gap(const Ground& g, const double p[3], const double way[3], double radius,
                        int rank, double n[3]) {
    const Facet below = facet_at(g, p[0], p[1]);
    if (rank == 0) return gap_below(g, below, p, radius, n);
    if (radius == 0) return gap_ahead(g, below, p, way, n);
    double best[2] = {1e30, 1e30};
    Facet found[2] = {below, below};
    constexpr double half = 0.7071067811865476;
    const double side[8][2] = {{1, 0},       {-1, 0},       {0, 1},        {0, -1},
                               {half, half}, {half, -half}, {-half, half}, {-half, -half}};
    const double far_out = radius + std::sqrt(way[0] * way[0] + way[1] * way[1]);
    for (const auto& d : side) {
        const double x = far_out * d[0], y = far_out * d[1];
        const Facet f = facet_at(g, p[0] + x, p[1] + y);
        if (f.key < 0 || f.key == below.key || f.key == found[0].key) continue;
        const double same = f.n[0] * below.n[0] + f.n[1] * below.n[1] + f.n[2] * below.n[2];
        if (same > 1 - 1e-9) continue;
        // distance to its plane, if the foot of the perpendicular lies on it
        const double z = f.height + (x * f.n[0] + y * f.n[1]) / f.n[2];
        const double far = (p[2] - z) * f.n[2];
        if (facet_at(g, p[0] - far * f.n[0], p[1] - far * f.n[1]).key != f.key) {
            // or will lie on it, where the ground rises
            const double later = far + way[0] * f.n[0] + way[1] * f.n[1] + way[2] * f.n[2];
            const double to[2] = {p[0] + way[0] - later * f.n[0], p[1] + way[1] - later * f.n[1]};
            if (z > below.height || facet_at(g, to[0], to[1]).key != f.key) continue;
        }
        const double gap = far - radius;
        if (gap < best[0]) {
            best[1] = best[0], found[1] = found[0];
            best[0] = gap, found[0] = f;
        } else if (gap < best[1]) {
            best[1] = gap, found[1] = f;
        }
    }
    for (int k = 0; k < 3; ++k) n[k] = found[rank - 1].n[k];
    return best[rank - 1];
}

// Gap and normal of a ball at p that is on its way, lane by lane for a height field.
template <class S>
POISE_INLINE void ground_gap(const Ground& g, const Vec3<S>& p, const Vec3<S>& way, double radius,
                             int rank, S& gap, Vec3<S>& n) {
    using T = Element<S>;
    if (g.kind == GroundKind::plane) {
        n = {S(T(g.normal[0])), S(T(g.normal[1])), S(T(g.normal[2]))};
        gap = dot(n, p) - S(T(g.offset + radius));
        return;
    }
    for (int lane = 0; lane < Traits<S>::lanes; ++lane) {
        const double at[3] = {double(get(p.x, lane)), double(get(p.y, lane)),
                              double(get(p.z, lane))};
        const double to[3] = {double(get(way.x, lane)), double(get(way.y, lane)),
                              double(get(way.z, lane))};
        double d[3] = {0, 0, 1};
        // a copy that is lost has no place
        const bool known = std::fabs(at[0]) < 1e9 && std::fabs(at[1]) < 1e9 &&
                           std::fabs(to[0]) < 1e9 && std::fabs(to[1]) < 1e9;
        put(gap, lane, known ? T(field_gap(g, at, to, radius, rank, d)) : T(1e30));
        put(n.x, lane, T(d[0]));
        put(n.y, lane, T(d[1]));
        put(n.z, lane, T(d[2]));
    }
}

// The point of a rim that lies furthest down the normal, or a turn from there.
template <class S>
POISE_INLINE Vec3<S> rim_point(const Probe& p, const Mat3<S>& R, const Vec3<S>& n) {
    using T = Element<S>;
    const Vec3<S> axis = R * Vec3<S>{S(T(p.axis[0])), S(T(p.axis[1])), S(T(p.axis[2]))};
    Vec3<S> t, u;
    tangents(axis, t, u);
    const S dt = dot(n, t), du = dot(n, u);
    const S size2 = dt * dt + du * du;
    const auto flat = size2 < S(T(1e-12));
    const S k = S(T(1)) / square_root(larger(size2, S(T(1e-12))));
    const S x = select(flat, S(T(-1)), -(k * dt)), y = select(flat, S(T(0)), -(k * du));
    const S c(T(std::cos(p.turn))), s(T(std::sin(p.turn)));
    const S r(T(p.rim));
    return r * ((c * x - s * y) * t + (s * x + c * y) * u);
}

}  // namespace poise::inline POISE_ISA
