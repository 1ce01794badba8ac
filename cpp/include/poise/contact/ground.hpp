// Where bodies meet the ground: balls and corners against a plane or a height field, in lanes.
#pragma once

#include "poise/contact/constraints.hpp"

namespace poise::inline POISE_ISA {

// Contacts closer than this take part, and those that the step may close [m].
constexpr double kNear = 0.002;
// Facets closer than this to a ball are looked at, and those that the step may close [m].
constexpr double kNearFacet = 0.03;

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

// A point of the grid.
struct GridPoint {
    std::int64_t col, row;
};

inline Vec3<double> point_of(const Ground& g, GridPoint a) {
    return {g.x0 + a.col * g.dx, g.y0 + a.row * g.dy, height_at(g, a.col, a.row)};
}

// Nearest point of a triangle to p, and the corners that it lies between: one, two or three.
struct OnTriangle {
    Vec3<double> at;
    int corners, corner[2];
};

inline OnTriangle nearest_on_triangle(const Vec3<double>* v, const Vec3<double>& p) {
    const Vec3<double> e[3] = {v[1] - v[0], v[2] - v[1], v[0] - v[2]};
    const Vec3<double> n = cross(e[0], v[2] - v[0]);
    OnTriangle best{v[0], 0, {0, 0}};
    double least = 1e300;
    bool inside = true;
    for (int k = 0; k < 3; ++k) {
        const Vec3<double> d = p - v[k];
        if (dot(cross(n, e[k]), d) >= 0) continue;
        // beyond this side
        inside = false;
        const double t = dot(d, e[k]) / dot(e[k], e[k]);
        const int next = (k + 1) % 3;
        const OnTriangle here = t <= 0   ? OnTriangle{v[k], 1, {k, k}}
                                : t >= 1 ? OnTriangle{v[next], 1, {next, next}}
                                         : OnTriangle{v[k] + t * e[k], 2, {k, next}};
        const Vec3<double> off = p - here.at;
        if (dot(off, off) < least) least = dot(off, off), best = here;
    }
    if (inside) return {p - (dot(n, p - v[0]) / dot(n, n)) * n, 3, {0, 0}};
    return best;
}

// The ground falls away from an edge or a grid point on all sides, seen from p: nothing near to it
// is nearer to p. Elsewhere it is a seam between facets, and one of them is what p meets.
inline bool stands_out(const Ground& g, const GridPoint* corner, const OnTriangle& o,
                       const Vec3<double>& p) {
    const Vec3<double> d = p - o.at;
    const auto below = [&](std::int64_t col, std::int64_t row) {
        const Vec3<double> way = point_of(g, {col, row}) - o.at;
        const double x = dot(d, way);
        return x <= 0 || x * x <= 1e-18 * dot(d, d) * dot(way, way);
    };
    const GridPoint a = corner[o.corner[0]], b = corner[o.corner[1]];
    if (o.corners == 1)
        return below(a.col + 1, a.row) && below(a.col - 1, a.row) && below(a.col, a.row + 1) &&
               below(a.col, a.row - 1) && below(a.col + 1, a.row + 1) &&
               below(a.col - 1, a.row - 1);
    const std::int64_t col = a.col < b.col ? a.col : b.col, row = a.row < b.row ? a.row : b.row;
    if (a.row == b.row) return below(col + 1, row + 1) && below(col, row - 1);
    if (a.col == b.col) return below(col + 1, row + 1) && below(col - 1, row);
    return below(col + 1, row) && below(col, row + 1);
}

// Where a ball meets the ground: gap and normal.
struct FieldTouch {
    double gap, n[3];
};
constexpr int kFieldTouches = 3;
// Cells that are looked at along each axis; of a grid that is much finer than the ball, some.
constexpr std::int64_t kMostCells = 64;
// An edge further away than this is met only if the ball's way comes to it [m].
constexpr double kPast = 2e-3;

// Cells of a height field along one axis: first, first + stride, ...
struct CellRange {
    std::int64_t first, count, stride;
};

inline CellRange cells_within(double origin, double spacing, double low, double high) {
    if (!(low <= high)) return {0, 0, 1};  // numbers that are none, too
    const auto first = static_cast<std::int64_t>(std::floor(cell_place(low, origin, spacing)));
    const auto last = static_cast<std::int64_t>(std::floor(cell_place(high, origin, spacing)));
    const std::int64_t all = last - first + 1, stride = (all + kMostCells - 1) / kMostCells;
    return {first, (all + stride - 1) / stride, stride};
}

// The nearest touches come first; those of one direction are one.
inline void insert_touch(FieldTouch* out, int& count, double gap, const Vec3<double>& n) {
    int at = count;
    for (int k = 0; k < count; ++k) {
        if (out[k].n[0] * n.x + out[k].n[1] * n.y + out[k].n[2] * n.z < 1 - 1e-6) continue;
        if (out[k].gap <= gap) return;
        at = k;
        break;
    }
    if (at == count) {
        if (count == kFieldTouches && out[count - 1].gap <= gap) return;
        if (count < kFieldTouches) ++count;
        at = count - 1;
    }
    for (; at > 0 && out[at - 1].gap > gap; --at) out[at] = out[at - 1];
    out[at] = {gap, {n.x, n.y, n.z}};
}

// distance of the nearest points of two segments, squared
inline double segment_distance2(const Vec3<double>& p, const Vec3<double>& d, const Vec3<double>& q,
                                const Vec3<double>& e) {
    const auto clamp = [](double x) { return x < 0 ? 0.0 : x > 1 ? 1.0 : x; };
    const Vec3<double> r = p - q;
    const double dd = dot(d, d), ee = dot(e, e), de = dot(d, e), dr = dot(d, r), er = dot(e, r);
    const double det = dd * ee - de * de;
    double s = det > 1e-12 * dd * ee ? clamp((de * er - dr * ee) / det) : 0;
    const double t = ee > 0 ? clamp((er + s * de) / ee) : 0;
    s = dd > 0 ? clamp((t * de - dr) / dd) : 0;
    const Vec3<double> off = r + s * d - t * e;
    return dot(off, off);
}

// The touches of a ball that goes by way in the step: where the distance of its center to the
// ground has a minimum, on facets, edges or grid points, now or at the end of the way. All facets
// within its reach are looked at.
inline int ball_touches(const Ground& g, const Vec3<double>& p, const Vec3<double>& way,
                        double radius, FieldTouch* out) {
    int count = 0;
    const Facet under = facet_at(g, p.x, p.y);
    if (p.z <= under.height) {
        // its center is in the ground: out by the facet that it came through
        out[0] = {(p.z - under.height) * under.n[2] - radius, {under.n[0], under.n[1], under.n[2]}};
        return 1;
    }
    const double far = std::sqrt(dot(way, way)), reach = radius + kNearFacet + far;
    const CellRange cols = cells_within(g.x0, g.dx, p.x - reach, p.x + reach);
    const CellRange rows = cells_within(g.y0, g.dy, p.y - reach, p.y + reach);
    // where cells are skipped, the one below is not
    const double over = (p.z - under.height) * under.n[2];
    if ((cols.stride > 1 || rows.stride > 1) && over < reach)
        insert_touch(out, count, over - radius, {under.n[0], under.n[1], under.n[2]});
    for (std::int64_t i = 0; i < cols.count * rows.count; ++i) {
        const std::int64_t col = cols.first + i % cols.count * cols.stride;
        const std::int64_t row = rows.first + i / cols.count * rows.stride;
        const GridPoint grid[4] = {{col, row}, {col + 1, row}, {col + 1, row + 1}, {col, row + 1}};
        const Vec3<double> v[4] = {point_of(g, grid[0]), point_of(g, grid[1]), point_of(g, grid[2]),
                                   point_of(g, grid[3])};
        double top = v[0].z;
        for (int k = 1; k < 4; ++k) top = v[k].z > top ? v[k].z : top;
        if (p.z - top > reach) continue;
        for (int half = 0; half < 2; ++half) {
            const GridPoint corner[3] = {grid[0], grid[half ? 2 : 1], grid[half ? 3 : 2]};
            const Vec3<double> t[3] = {v[0], v[half ? 2 : 1], v[half ? 3 : 2]};
            Vec3<double> n = cross(t[1] - t[0], t[2] - t[0]);
            n = (1 / std::sqrt(dot(n, n))) * n;
            const double above = dot(n, p - t[0]);
            if (!(above > 0) || above > reach) continue;
            const OnTriangle o = nearest_on_triangle(t, p);
            const Vec3<double> d = p - o.at;
            const double distance = std::sqrt(dot(d, d));
            if (o.corners == 3) {
                insert_touch(out, count, above - radius, n);
                continue;
            }
            if (distance > reach || !stands_out(g, corner, o, p)) continue;
            const Vec3<double> a = t[o.corner[0]], b = t[o.corner[1]];
            const double least = radius + kPast;
            if (distance > least && segment_distance2(p, way, a, b - a) > radius * radius) continue;
            insert_touch(out, count, distance - radius, (1 / distance) * d);
        }
    }
    if (far < kPast) return count;
    // what it would be in at the end of its way, and is not yet
    FieldTouch later[kFieldTouches];
    const int more = ball_touches(g, p + way, Vec3<double>{0, 0, 0}, radius, later);
    for (int k = 0; k < more && later[k].gap < 0; ++k) {
        const Vec3<double> n = {later[k].n[0], later[k].n[1], later[k].n[2]};
        const double gap = later[k].gap - dot(n, way);
        if (gap >= 0) insert_touch(out, count, gap, n);
    }
    return count;
}

// Whether the ground comes nearer to p than this, or higher.
inline bool rises_to(const Ground& g, const Vec3<double>& p, double reach) {
    const CellRange cols = cells_within(g.x0, g.dx, p.x - reach, p.x + reach + g.dx);
    const CellRange rows = cells_within(g.y0, g.dy, p.y - reach, p.y + reach + g.dy);
    for (std::int64_t j = 0; j < rows.count; ++j)
        for (std::int64_t i = 0; i < cols.count; ++i)
            if (height_at(g, cols.first + i * cols.stride, rows.first + j * rows.stride) >
                p.z - reach)
                return true;
    return false;
}

// Gap and normal of a corner, a ball without a radius: rank 0 is the facet below it, 1 the first
// one that it comes through in this step.
inline double corner_gap(const Ground& g, const Vec3<double>& p, const Vec3<double>& way, int rank,
                         double n[3]) {
    const Facet below = facet_at(g, p.x, p.y);
    for (int k = 0; k < 3; ++k) n[k] = below.n[k];
    const double gap = (p.z - below.height) * below.n[2];
    if (rank == 0) return gap;
    if (gap < -kPast) return 1e30;
    // the places where it changes from facet to facet: sides of cells, and diagonals
    const double u = cell_place(p.x, g.x0, g.dx), v = cell_place(p.y, g.y0, g.dy);
    const double du = cell_place(p.x + way.x, g.x0, g.dx) - u;
    const double dv = cell_place(p.y + way.y, g.y0, g.dy) - v;
    double t = 0;
    for (std::int64_t k = 0; k < 4 * kMostCells && t < 1; ++k) {
        double next = 1;
        const auto cross_at = [&](double x, double dx) {
            if (dx == 0) return;
            const double here = x + t * dx, step = dx > 0 ? 1 : -1;
            double line = dx > 0 ? std::floor(here) + 1 : std::ceil(here) - 1;
            if (std::fabs(line - here) < 1e-9) line += step;
            const double s = (line - x) / dx;
            if (s < next) next = s;
        };
        cross_at(u, du);
        cross_at(v, dv);
        cross_at(u - v, du - dv);
        const double middle = 0.5 * (t + next);
        const Facet f = facet_at(g, p.x + middle * way.x, p.y + middle * way.y);
        // above its plane at p, below it where the way leaves it
        const double ahead = middle * (way.x * f.n[0] + way.y * f.n[1]);
        const double start = (p.z - f.height) * f.n[2] - ahead;
        const double rate = way.x * f.n[0] + way.y * f.n[1] + way.z * f.n[2];
        if (f.key != below.key && start > 0 && start + next * rate < 0) {
            for (int i = 0; i < 3; ++i) n[i] = f.n[i];
            return start;
        }
        t = next;
    }
    return 1e30;
}

// What a ball over a height field touches in each copy: found once for its three ranks.
template <class S>
struct FieldTouches {
    FieldTouch touch[Traits<S>::lanes][kFieldTouches];
    int count[Traits<S>::lanes];
};

// Gap and normal of a ball at p that is on its way, lane by lane for a height field. Rank: the
// nearest touch of a ball comes first; of a corner 0 is the facet below, 1 the one it comes to.
template <class S>
POISE_INLINE void ground_gap(const Ground& g, const Vec3<S>& p, const Vec3<S>& way, double radius,
                             int rank, FieldTouches<S>& field, S& gap, Vec3<S>& n) {
    using T = Element<S>;
    if (g.kind == GroundKind::plane) {
        n = constant3<S>(g.normal);
        gap = dot(n, p) - S(T(g.offset + radius));
        return;
    }
    for (int lane = 0; lane < Traits<S>::lanes; ++lane) {
        const Vec3<double> at = {double(get(p.x, lane)), double(get(p.y, lane)),
                                 double(get(p.z, lane))};
        const Vec3<double> to = {double(get(way.x, lane)), double(get(way.y, lane)),
                                 double(get(way.z, lane))};
        double d[3] = {0, 0, 1}, far = 1e30;
        // a copy that is lost has no place
        const bool known = std::fabs(at.x) < 1e9 && std::fabs(at.y) < 1e9 &&
                           std::fabs(at.z) < 1e9 && dot(to, to) < 1e18;
        Ground own = g;
        own.height += lane * g.height_stride;
        if (known && radius == 0) far = corner_gap(own, at, to, rank, d);
        if (radius > 0) {
            if (rank == 0)
                field.count[lane] =
                    known ? ball_touches(own, at, to, radius, field.touch[lane]) : 0;
            if (rank < field.count[lane]) {
                const FieldTouch& o = field.touch[lane][rank];
                far = o.gap;
                for (int k = 0; k < 3; ++k) d[k] = o.n[k];
            }
        }
        put(gap, lane, T(far));
        put(n.x, lane, T(d[0]));
        put(n.y, lane, T(d[1]));
        put(n.z, lane, T(d[2]));
    }
}

// The point of a rim that lies furthest down the normal, or a turn from there.
template <class S>
POISE_INLINE Vec3<S> rim_point(const Probe& p, const Mat3<S>& R, const Vec3<S>& n) {
    using T = Element<S>;
    const Vec3<S> axis = R * constant3<S>(p.axis);
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
