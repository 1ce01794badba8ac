// Where bodies meet the ground: balls and corners against a plane or a height field, in lanes.
#pragma once

#include "poise/contact/constraints.hpp"

namespace poise::inline POISE_ISA {

// Contacts closer than this take part, and those that the step may close [m].
constexpr double kNear = 0.01;

// The surface under a place of one copy: a plane through at, and the triangle it is of.
struct Facet {
    double height;     // at the place [m]
    double n[3];       // upward unit normal
    std::int64_t key;  // which triangle
};

// Cells are numbered from -kFarCells to kFarCells along each axis: beyond its rim the field goes on
// level, in cells without slope outwards.
constexpr std::int64_t kFarCells = 1 << 29;

inline double height_at(const Ground& g, std::int64_t col, std::int64_t row) {
    const std::int64_t i = col < 0 ? 0 : col > g.cols - 1 ? g.cols - 1 : col;
    const std::int64_t j = row < 0 ? 0 : row > g.rows - 1 ? g.rows - 1 : row;
    return g.height[j * g.cols + i];
}

inline double cell_place(double x, double origin, double spacing) {
    const double u = (x - origin) / spacing;
    // so that what is not a number ends in a cell, too
    return u > -kFarCells ? (u < kFarCells - 1 ? u : kFarCells - 1) : -kFarCells;
}

// A cell is split along the diagonal from (0, 0) to (1, 1).
inline Facet facet_at(const Ground& g, double x, double y) {
    const double u = cell_place(x, g.x0, g.dx), v = cell_place(y, g.y0, g.dy);
    const auto col = static_cast<std::int64_t>(std::floor(u));
    const auto row = static_cast<std::int64_t>(std::floor(v));
    const double a = height_at(g, col, row), b = height_at(g, col + 1, row);
    const double c = height_at(g, col, row + 1), d = height_at(g, col + 1, row + 1);
    const double s = u - col, t = v - row;
    const bool lower = s >= t;
    const double sx = lower ? b - a : d - c, sy = lower ? d - b : c - a;
    const double nx = -sx / g.dx, ny = -sy / g.dy;
    const double k = 1 / std::sqrt(nx * nx + ny * ny + 1);
    const std::int64_t cell = (row + kFarCells) * 2 * kFarCells + (col + kFarCells);
    return {a + s * sx + t * sy, {k * nx, k * ny, k}, 2 * cell + lower};
}

// The point nearest to p on the rim of a facet.
inline void nearest_on_rim(const Ground& g, std::int64_t key, const double p[3], double out[3]) {
    const std::int64_t cell = key / 2;
    const std::int64_t col = cell % (2 * kFarCells) - kFarCells;
    const std::int64_t row = cell / (2 * kFarCells) - kFarCells;
    const int far[3][2] = {{0, 0}, {1, 1}, {key % 2 ? 1 : 0, key % 2 ? 0 : 1}};
    double corner[3][3];
    for (int k = 0; k < 3; ++k) {
        const std::int64_t i = col + far[k][0], j = row + far[k][1];
        corner[k][0] = g.x0 + i * g.dx;
        corner[k][1] = g.y0 + j * g.dy;
        corner[k][2] = height_at(g, i, j);
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

// Distance from p to the rim of a facet, and the direction from there; false on the rim itself.
inline bool beside(const Ground& g, std::int64_t key, const double p[3], double& far, double d[3]) {
    double edge[3], d2 = 0;
    nearest_on_rim(g, key, p, edge);
    for (int k = 0; k < 3; ++k) d2 += (p[k] - edge[k]) * (p[k] - edge[k]);
    if (d2 < 1e-18) return false;
    far = std::sqrt(d2);
    for (int k = 0; k < 3; ++k) d[k] = (p[k] - edge[k]) / far;
    return true;
}

inline bool parallel(const double a[3], const double b[3]) {
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2] > 1 - 1e-9;
}

// Gap and normal of a ball over a height field, of the facet below its center.
inline double gap_below(const Ground& g, const Facet& below, const double p[3], double radius,
                        double n[3]) {
    for (int k = 0; k < 3; ++k) n[k] = below.n[k];
    const double far = (p[2] - below.height) * below.n[2];
    if (radius == 0 || far <= 0) return far - radius;
    const double foot[3] = {p[0] - far * n[0], p[1] - far * n[1], p[2] - far * n[2]};
    const Facet there = facet_at(g, foot[0], foot[1]);
    if (there.key == below.key || there.height > foot[2] - 1e-6 * radius) return far - radius;
    // over a ridge the ball touches its edge
    double d = 0;
    return (beside(g, below.key, p, d, n) ? d : far) - radius;
}

// The same of the facet that a corner comes to in this step, where the ground rises.
inline double gap_ahead(const Ground& g, const Facet& below, const double p[3], const double way[3],
                        double n[3]) {
    const Facet ahead = facet_at(g, p[0] + way[0], p[1] + way[1]);
    // its plane, at p
    const double z = ahead.height + (way[0] * ahead.n[0] + way[1] * ahead.n[1]) / ahead.n[2];
    for (int k = 0; k < 3; ++k) n[k] = ahead.n[k];
    if (ahead.key == below.key || z >= below.height) return 1e30;
    return (p[2] - z) * ahead.n[2];
}

// Cells of a height field along one axis: first, first + stride, ...
struct CellRange {
    std::int64_t first, count, stride;
};

constexpr std::int64_t kMostCells = 8;  // along each axis

inline CellRange cells_within(double origin, double spacing, double low, double high) {
    const auto first = static_cast<std::int64_t>(std::floor(cell_place(low, origin, spacing)));
    const auto last = static_cast<std::int64_t>(std::floor(cell_place(high, origin, spacing)));
    const std::int64_t all = last - first + 1, stride = (all + kMostCells - 1) / kMostCells;
    return {first, (all + stride - 1) / stride, stride};
}

// Gap and normal of a ball that is on its way: rank 0 is the facet below it; of a corner, 1 is the
// one that it comes to; of a ball, 1 and 2 are the nearest of those beside it that it reaches.
inline double field_gap(const Ground& g, const double p[3], const double way[3], double radius,
                        int rank, double n[3]) {
    const Facet below = facet_at(g, p[0], p[1]);
    if (rank == 0) return gap_below(g, below, p, radius, n);
    if (radius == 0) return gap_ahead(g, below, p, way, n);
    double best[2] = {1e30, 1e30}, normal[2][3] = {{0, 0, 1}, {0, 0, 1}}, first[3];
    gap_below(g, below, p, radius, first);
    // the facets of the cells within its reach; of a grid that is much finer than the ball, some
    const double reach = radius + std::sqrt(way[0] * way[0] + way[1] * way[1]);
    const CellRange cols = cells_within(g.x0, g.dx, p[0] - reach, p[0] + reach);
    const CellRange rows = cells_within(g.y0, g.dy, p[1] - reach, p[1] + reach);
    for (std::int64_t i = 0; i < 2 * cols.count * rows.count; ++i) {
        const std::int64_t cell = i / 2, col = cols.first + cell % cols.count * cols.stride;
        const std::int64_t row = rows.first + cell / cols.count * rows.stride;
        const double third = 1.0 / 3, s = i % 2 ? 2 * third : third;
        const double x = g.x0 + (col + s) * g.dx - p[0], y = g.y0 + (row + 1 - s) * g.dy - p[1];
        const Facet f = facet_at(g, p[0] + x, p[1] + y);
        if (f.key == below.key) continue;
        // distance to its plane, if the foot of the perpendicular lies on it
        const double z = f.height + (x * f.n[0] + y * f.n[1]) / f.n[2];
        double far = (p[2] - z) * f.n[2], d[3] = {f.n[0], f.n[1], f.n[2]};
        if (facet_at(g, p[0] - far * f.n[0], p[1] - far * f.n[1]).key != f.key) {
            // or will lie on it, where the ground rises
            const double later = far + way[0] * f.n[0] + way[1] * f.n[1] + way[2] * f.n[2];
            const double to[2] = {p[0] + way[0] - later * f.n[0], p[1] + way[1] - later * f.n[1]};
            const bool comes = z <= below.height && facet_at(g, to[0], to[1]).key == f.key;
            // or to its rim, on the side where the ball is
            if (!comes && !(far > 0 && beside(g, f.key, p, far, d))) continue;
        }
        const double gap = far - radius;
        if (parallel(d, first) || gap >= best[1]) continue;
        const int place = gap < best[0] ? 0 : 1;
        // an edge belongs to two facets
        if (best[0] < 1e30 && parallel(d, normal[0])) {
            if (place == 0) best[0] = gap;
            continue;
        }
        if (place == 0) {
            best[1] = best[0];
            for (int k = 0; k < 3; ++k) normal[1][k] = normal[0][k];
        }
        best[place] = gap;
        for (int k = 0; k < 3; ++k) normal[place][k] = d[k];
    }
    for (int k = 0; k < 3; ++k) n[k] = normal[rank - 1][k];
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
