// Convex solids: where two of them are nearest or least deep, and the points in which they touch.
//
// A solid is a core (point, segment, box, cylinder, hull of corners) blown up by a ball. Of the
// difference of two cores, D = {x - y}, only the support mapping is needed, the point of D that
// lies furthest along a direction. GJK finds the point of D that is nearest to the origin; where
// the origin lies inside, EPA finds the face of D that is nearest. Both are bounded. Nothing is
// kept from step to step: what is found depends on the poses alone.
//
// All is in double, one pair of one copy at a time, relative to the middle of b.
#pragma once

#include "poise/contact/collision.hpp"

namespace poise::inline POISE_ISA {

// ---- support mapping

// From this many corners on a hull is climbed, below all are looked at.
constexpr int kClimbed = 16;

// Cell of the table of starts that a direction belongs to: a face of a cube and a place on it.
POISE_INLINE int start_cell(const Point& d) {
    const double x = std::fabs(d.x), y = std::fabs(d.y), z = std::fabs(d.z);
    const int axis = x >= y && x >= z ? 0 : y >= z ? 1 : 2;
    const double along = component(d, axis), k = 0.5 * kStarts / std::fabs(along);
    const auto place = [&](double a) {
        const double at = 0.5 * kStarts + k * a;
        // what is not a number ends in a cell, too
        return at > 0 ? (at < kStarts - 1 ? static_cast<int>(at) : kStarts - 1) : 0;
    };
    const int u = place(component(d, (axis + 1) % 3)), v = place(component(d, (axis + 2) % 3));
    return ((2 * axis + (along < 0)) * kStarts + u) * kStarts + v;
}

POISE_INLINE Point corner_of(const Hull& h, int k) {
    return {h.corner[3 * k], h.corner[3 * k + 1], h.corner[3 * k + 2]};
}

// From corner to corner along edges, as long as that leads further along d: a hull has no other
// local maxima than the global one.
inline int climb(const Hull& h, const Point& d, int at) {
    double best = dot(corner_of(h, at), d);
    for (;;) {
        int next = at;
        for (int k = h.neighbour_first[at]; k < h.neighbour_first[at + 1]; ++k) {
            const double x = dot(corner_of(h, h.neighbour[k]), d);
            if (x > best) best = x, next = h.neighbour[k];
        }
        if (next == at) return at;
        at = next;
    }
}

// The corner of a hull that lies furthest along d; the search begins at the table's or at another
// that was found before, -1 is none.
inline int furthest(const Hull& h, const Point& d, int before = -1) {
    if (h.corners >= kClimbed) {
        const int start = h.start[start_cell(d)];
        const bool nearer =
            before >= 0 && dot(corner_of(h, before), d) >= dot(corner_of(h, start), d);
        return climb(h, d, nearer ? before : start);
    }
    int best = 0;
    double most = dot(corner_of(h, 0), d);
    for (int k = 1; k < h.corners; ++k) {
        const double x = dot(corner_of(h, k), d);
        if (x > most) most = x, best = k;
    }
    return best;
}

POISE_INLINE double ball_of(const Posed& s) { return s.kind <= Solid::capsule ? s.size[0] : 0; }
POISE_INLINE double half_of(const Posed& s) {
    return s.kind == Solid::capsule || s.kind == Solid::cylinder ? s.size[1] : 0;
}

// The point of a solid's core that lies furthest along d, from the solid's middle. Of a hull, `at`
// is the corner, and the one before.
inline Point support(const Posed& s, const Point& d, int& at) {
    if (s.kind == Solid::sphere) return {0, 0, 0};
    const Point u = tmul(s.R, d);
    switch (s.kind) {
        case Solid::capsule: return s.R * Point{0, 0, u.z < 0 ? -s.size[1] : s.size[1]};
        case Solid::box:
            return s.R * Point{u.x < 0 ? -s.size[0] : s.size[0], u.y < 0 ? -s.size[1] : s.size[1],
                               u.z < 0 ? -s.size[2] : s.size[2]};
        case Solid::cylinder: {
            const double across = std::sqrt(u.x * u.x + u.y * u.y);
            const double k = across > 1e-12 * std::fabs(u.z) ? s.size[0] / across : 0;
            return s.R * Point{k * u.x, k * u.y, u.z < 0 ? -s.size[1] : s.size[1]};
        }
        default: at = furthest(*s.hull, u, at); return s.R * corner_of(*s.hull, at);
    }
}

// ---- GJK

// A point of the difference of two cores, and the point of b that it comes from.
struct Vertex {
    Point w, b;
};

struct Difference {
    const Posed &a, &b;
    Point apart;               // from the middle of b to that of a
    int on_a = -1, on_b = -1;  // corners that were found last
    Vertex furthest_along(const Point& d) {
        const Point y = support(b, -1.0 * d, on_b);
        return {apart + support(a, d, on_a) - y, y};
    }
};

struct Simplex {
    Vertex x[4];
    double weight[4];
    int n = 0;
    void keep(std::initializer_list<int> which, std::initializer_list<double> weights) {
        int k = 0;
        Vertex kept[4];
        for (const int i : which) kept[k++] = x[i];
        for (n = 0; n < k; ++n) x[n] = kept[n];
        k = 0;
        for (const double l : weights) weight[k++] = l;
    }
    Point point() const {
        Point p{0, 0, 0};
        for (int k = 0; k < n; ++k) p = p + weight[k] * x[k].w;
        return p;
    }
    Point on_b() const {
        Point p{0, 0, 0};
        for (int k = 0; k < n; ++k) p = p + weight[k] * x[k].b;
        return p;
    }
};

inline void nearest_on_segment(Simplex& s) {
    const Point d = s.x[1].w - s.x[0].w;
    const double t = -dot(s.x[0].w, d), all = dot(d, d);
    if (!(t > 0)) s.keep({0}, {1});
    else if (t >= all) s.keep({1}, {1});
    else s.keep({0, 1}, {1 - t / all, t / all});
}

// by the regions of its corners, edges and face that the origin may lie in
inline void nearest_on_triangle(Simplex& s) {
    const Point &a = s.x[0].w, &b = s.x[1].w, &c = s.x[2].w;
    const Point ab = b - a, ac = c - a;
    const double d1 = -dot(ab, a), d2 = -dot(ac, a);
    if (d1 <= 0 && d2 <= 0) return s.keep({0}, {1});
    const double d3 = -dot(ab, b), d4 = -dot(ac, b);
    if (d3 >= 0 && d4 <= d3) return s.keep({1}, {1});
    const double d5 = -dot(ab, c), d6 = -dot(ac, c);
    if (d6 >= 0 && d5 <= d6) return s.keep({2}, {1});
    const double vc = d1 * d4 - d3 * d2;
    if (vc <= 0 && d1 >= 0 && d3 <= 0) {
        const double t = d1 / (d1 - d3);
        return s.keep({0, 1}, {1 - t, t});
    }
    const double vb = d5 * d2 - d1 * d6;
    if (vb <= 0 && d2 >= 0 && d6 <= 0) {
        const double t = d2 / (d2 - d6);
        return s.keep({0, 2}, {1 - t, t});
    }
    const double va = d3 * d6 - d5 * d4;
    if (va <= 0 && d4 >= d3 && d5 >= d6) {
        const double t = (d4 - d3) / ((d4 - d3) + (d5 - d6));
        return s.keep({1, 2}, {1 - t, t});
    }
    const double k = 1 / (va + vb + vc);
    s.keep({0, 1, 2}, {1 - k * vb - k * vc, k * vb, k * vc});
}

// false where the origin lies inside
inline bool nearest_on_tetrahedron(Simplex& s) {
    constexpr int face[4][4] = {{0, 1, 2, 3}, {0, 3, 1, 2}, {0, 2, 3, 1}, {1, 3, 2, 0}};
    Simplex best;
    double least = 1e300;
    for (const auto& f : face) {
        const Point &a = s.x[f[0]].w, n = cross(s.x[f[1]].w - a, s.x[f[2]].w - a);
        const double in = dot(n, s.x[f[3]].w - a), out = -dot(n, a);
        // a flat one has no inside
        if (in * out > 0 && in * in > 1e-24 * dot(n, n) * dot(a, a)) continue;
        Simplex t = s;
        for (int k = 0; k < 3; ++k) t.x[k] = s.x[f[k]];
        t.n = 3;
        nearest_on_triangle(t);
        const Point p = t.point();
        if (dot(p, p) < least) least = dot(p, p), best = t;
    }
    if (best.n == 0) return false;
    s = best;
    return true;
}

inline bool nearest_to_origin(Simplex& s) {
    if (s.n == 1) s.weight[0] = 1;
    if (s.n == 2) nearest_on_segment(s);
    if (s.n == 3) nearest_on_triangle(s);
    return s.n < 4 || nearest_on_tetrahedron(s);
}

constexpr int kMostSearched = 64;  // rounds of GJK, and of EPA

enum class Found { apart, beyond, overlap };

// The point of a difference that is nearest to the origin; beyond: further away than `near`.
inline Found nearest_point(Difference& d, double near, double size, Simplex& s) {
    const double touching = 1e-9 * size;
    Point v = d.apart;
    if (!(dot(v, v) > 0)) v = {1, 0, 0};
    double last = 1e300;
    for (int round = 0; round < kMostSearched; ++round) {
        const Vertex w = d.furthest_along(-1.0 * v);
        const double vw = dot(v, w.w);
        if (vw > 0 && vw * vw > near * near * dot(v, v)) return Found::beyond;
        if (s.n > 0) {
            // nothing of the difference is nearer
            if (last - vw <= 1e-8 * last + 1e-16 * size * size) return Found::apart;
            for (int k = 0; k < s.n; ++k) {
                const Point e = s.x[k].w - w.w;
                if (dot(e, e) == 0) return Found::apart;
            }
        }
        const Simplex before = s;
        s.x[s.n++] = w;
        if (!nearest_to_origin(s)) return Found::overlap;
        v = s.point();
        const double now = dot(v, v);
        if (now <= touching * touching) return Found::overlap;
        if (now >= last) {
            s = before;
            return Found::apart;
        }
        last = now;
    }
    return Found::apart;
}

// ---- EPA

// Grows a polytope within the difference from a tetrahedron until the face that is nearest to the
// origin is one of the difference. A face's distance is below zero if the origin lies beyond it.
class Polytope {
  public:
    // Direction and distance of the nearest face, and the point of b there; false: flat.
    bool grow(Difference& d, const Simplex& start, double size, Point& n, double& distance,
              Point& on_b) {
        if (!begin(d, start, size)) return false;
        int nearest = 0;
        for (int round = 0;; ++round) {
            nearest = nearest_face();
            const Face& f = face_[nearest];
            const Vertex w = d.furthest_along(f.n);
            const double further = dot(w.w, f.n) - f.distance;
            if (further <= 1e-10 * size || round == kMostSearched || !add(w, size)) {
                // the face itself may lie a little inside
                distance = f.distance + (further > 0 ? further : 0);
                break;
            }
        }
        n = face_[nearest].n;
        on_b = witness(face_[nearest], size);
        return true;
    }

  private:
    static constexpr int kVertices = kMostSearched + 4, kFaces = 2 * kVertices;
    struct Face {
        int v[3];
        Point n;
        double distance;
    };

    bool begin(Difference& d, const Simplex& s, double size) {
        for (int k = 0; k < s.n; ++k) vertex_[k] = s.x[k];
        vertices_ = s.n;
        if (s.n == 4 && std::fabs(volume()) < 1e-9 * size * size * size) vertices_ = 1;
        if (vertices_ == 0) vertex_[vertices_++] = d.furthest_along({1, 0, 0});
        // what is missing: along an axis, square to a segment, square to a triangle
        if (vertices_ == 1) {
            double most = 0;
            for (int k = 0; k < 6; ++k) {
                const double sign = k < 3 ? 1 : -1;
                const Point axis = {k % 3 == 0 ? sign : 0, k % 3 == 1 ? sign : 0,
                                    k % 3 == 2 ? sign : 0};
                const Vertex w = d.furthest_along(axis);
                const Point e = w.w - vertex_[0].w;
                if (dot(e, e) > most) most = dot(e, e), vertex_[1] = w;
            }
            if (most < 1e-16 * size * size) return false;
            vertices_ = 2;
        }
        if (vertices_ == 2) {
            const Point e = vertex_[1].w - vertex_[0].w;
            double most = 0;
            for (int k = 0; k < 6; ++k) {
                const double sign = k < 3 ? 1 : -1;
                const Point axis = {k % 3 == 0 ? sign : 0, k % 3 == 1 ? sign : 0,
                                    k % 3 == 2 ? sign : 0};
                const Point square = cross(e, axis);
                if (!(dot(square, square) > 1e-3 * dot(e, e))) continue;
                const Vertex w = d.furthest_along(square);
                const Point area = cross(e, w.w - vertex_[0].w);
                if (dot(area, area) > most) most = dot(area, area), vertex_[2] = w;
            }
            if (most < 1e-16 * dot(e, e) * size * size) return false;
            vertices_ = 3;
        }
        if (vertices_ == 3) {
            const Point a = vertex_[0].w;
            const Point n = cross(vertex_[1].w - a, vertex_[2].w - a);
            const Vertex up = d.furthest_along(n), down = d.furthest_along(-1.0 * n);
            const double x = dot(n, up.w - a), y = dot(n, a - down.w);
            if ((x > y ? x : y) < 1e-9 * size * length(n)) return false;
            vertex_[3] = x > y ? up : down;
            vertices_ = 4;
        }
        faces_ = 0;
        constexpr int corner[4][3] = {{0, 1, 2}, {0, 3, 1}, {0, 2, 3}, {1, 3, 2}};
        const bool turned = volume() > 0;
        for (const auto& c : corner)
            if (!put(c[0], turned ? c[2] : c[1], turned ? c[1] : c[2])) return false;
        return true;
    }
    double volume() const {
        const Point a = vertex_[0].w;
        return dot(vertex_[3].w - a, cross(vertex_[1].w - a, vertex_[2].w - a));
    }
    bool put(int a, int b, int c) {
        const Point p = vertex_[a].w, n = cross(vertex_[b].w - p, vertex_[c].w - p);
        const double size = length(n);
        if (faces_ == kFaces || !(size > 0)) return false;
        const Point unit = (1 / size) * n;
        face_[faces_++] = {{a, b, c}, unit, dot(unit, p)};
        return true;
    }
    int nearest_face() const {
        int best = 0;
        for (int k = 1; k < faces_; ++k)
            if (face_[k].distance < face_[best].distance) best = k;
        return best;
    }
    // The hull with one more point: the faces that it sees are replaced by those to their rim.
    // False, and as it was, where rounding leaves no simple rim.
    bool add(const Vertex& w, double size) {
        if (vertices_ == kVertices) return false;
        int edge[3 * kFaces][2], edges = 0, seen[kFaces], count = 0;
        for (int k = 0; k < faces_; ++k) {
            const Face& f = face_[k];
            if (dot(f.n, w.w) - f.distance <= 1e-12 * size) continue;
            seen[count++] = k;
            for (int i = 0; i < 3; ++i) {
                const int from = f.v[i], to = f.v[(i + 1) % 3];
                bool inner = false;
                for (int e = 0; e < edges && !inner; ++e)
                    if (edge[e][0] == to && edge[e][1] == from) {
                        --edges;
                        edge[e][0] = edge[edges][0];
                        edge[e][1] = edge[edges][1];
                        inner = true;
                    }
                if (!inner) edge[edges][0] = from, edge[edges][1] = to, ++edges;
            }
        }
        if (count == 0 || edges != count + 2 || faces_ - count + edges > kFaces) return false;
        vertex_[vertices_] = w;
        for (int e = 0; e < edges; ++e) {
            const Point p = w.w, n = cross(vertex_[edge[e][0]].w - p, vertex_[edge[e][1]].w - p);
            const double area = length(n);
            if (!(area > 1e-14 * size * size)) return false;
            const Point unit = (1 / area) * n;
            fresh_[e] = {{vertices_, edge[e][0], edge[e][1]}, unit, dot(unit, p)};
        }
        ++vertices_;
        int left = 0, next = 0;
        for (int k = 0; k < faces_; ++k) {
            if (next < count && seen[next] == k) ++next;
            else face_[left++] = face_[k];
        }
        for (int e = 0; e < edges; ++e) face_[left++] = fresh_[e];
        faces_ = left;
        return true;
    }
    // The point of b where the origin's foot on a face lies. A face of the difference may be in
    // several triangles, of which one holds the foot.
    Point witness(const Face& f, double size) const {
        double least = 1e300;
        Point found{};
        for (int i = 0; i < faces_; ++i) {
            const Face& o = face_[i];
            if (o.distance > f.distance + 1e-9 * size || dot(o.n, f.n) < 1 - 1e-9) continue;
            Simplex s;
            for (int k = 0; k < 3; ++k) {
                s.x[k] = vertex_[o.v[k]];
                s.x[k].w = s.x[k].w - o.distance * o.n;
            }
            s.n = 3;
            nearest_on_triangle(s);
            const Point off = s.point();
            if (dot(off, off) < least) least = dot(off, off), found = s.on_b();
        }
        return found;
    }

    Vertex vertex_[kVertices];
    Face face_[kFaces], fresh_[kFaces];
    int vertices_ = 0, faces_ = 0;
};

// ---- the nearest points of two solids

// Direction from b to a, distance along it, below zero inside, and the nearest point of b, all from
// the middle of b.
struct Nearest {
    Point n;
    double gap;
    Point at;
};

// false: further apart than near
inline bool nearest_points(const Posed& a, const Posed& b, double near, Nearest& out) {
    Difference d = {a, b, a.p - b.p};
    const double size = a.reach + b.reach, balls = ball_of(a) + ball_of(b);
    Simplex s;
    const Found found = nearest_point(d, near + balls, size, s);
    if (found == Found::beyond) return false;
    if (found == Found::apart) {
        const Point v = s.point();
        const double far = length(v);
        out.n = (1 / far) * v;
        out.gap = far;
        out.at = s.on_b();
    } else {
        Polytope polytope;
        double depth;
        Point n;
        if (!polytope.grow(d, s, size, n, depth, out.at)) {
            // two points, or two segments in a plane
            const double far = length(d.apart);
            n = far > 1e-12 * size ? (-1 / far) * d.apart : Point{0, 0, -1};
            out.at = s.on_b();
            depth = 0;
        }
        out.n = -1.0 * n;
        out.gap = -depth;
    }
    out.gap -= balls;
    out.at = out.at + ball_of(b) * out.n;
    return out.gap < near;
}

// ---- the patch in which two solids touch, once the direction between them is known
//
// A face of one solid holds the other: the face, edge or rim of the other that lies nearest is
// clipped by the sides of that face, and each corner of what is left is a point of contact with a
// gap of its own. Where no face holds, the nearest points are all there is; two rods side by side
// share a stretch.

// A face holds where it is this much worse than the best direction, of the smaller solid's reach.
// It keeps flat solids on their faces; round ones have less, for they roll over edges.
constexpr double kHeld = 5e-3, kRolls = 1e-4;
// By so much the face of a must be better than that of b.
constexpr double kBetter = 1e-3;
// A patch smaller than this part of the smaller solid is a point.
constexpr double kSmallPatch = 0.04;
constexpr int kRim = 16;        // corners of a disc
constexpr int kMostSides = 24;  // of a face; of one that has more, some
constexpr int kMostPoints = 2 * kMostSides + 4;

struct SolidFace {
    Point x[kMostPoints];
    Point n;  // of a face
    double offset = 0;
    int count = 0;
};

// The foremost line of a rod along u, from end to end; p is the middle of the rod.
inline void rod_line(const Posed& s, const Point& p, const Point& u, Point* ends) {
    const Point axis = column(s.R, 2);
    const Point out = s.kind == Solid::capsule ? u : u - dot(axis, u) * axis;
    const double size = length(out);
    const Point middle = p + (s.size[0] / (size > 1e-300 ? size : 1e-300)) * out;
    ends[0] = middle - half_of(s) * axis;
    ends[1] = middle + half_of(s) * axis;
}

// The face of a solid that looks along u most, counter-clockwise from outside; p is its middle.
inline bool face_along(const Posed& s, const Point& p, const Point& u, SolidFace& out) {
    if (s.kind <= Solid::capsule) return false;
    const Point d = tmul(s.R, u);
    if (s.kind == Solid::cylinder) {
        const double side = d.z < 0 ? -1 : 1;
        out.n = side * column(s.R, 2);
        out.count = kRim;
        // the corners of a disc, its turn fixed to the solid
        constexpr double c[] = {1, 0.92387953251128674, 0.70710678118654752, 0.38268343236508977};
        for (int k = 0; k < kRim; ++k) {
            const int quarter = k / 4, i = k % 4;
            const double a = c[i], b = i == 0 ? 0 : c[4 - i];
            const double x = quarter == 0 ? a : quarter == 1 ? -b : quarter == 2 ? -a : b;
            const double y = quarter == 0 ? b : quarter == 1 ? a : quarter == 2 ? -b : -a;
            out.x[k] = p + s.R * Point{s.size[0] * x, side * s.size[0] * y, side * s.size[1]};
        }
    } else if (s.kind == Solid::box) {
        int axis = 0;
        for (int k = 1; k < 3; ++k)
            if (std::fabs(component(d, k)) > std::fabs(component(d, axis))) axis = k;
        const double side = component(d, axis) < 0 ? -1 : 1;
        const int i = (axis + 1) % 3, j = (axis + 2) % 3;
        out.n = side * column(s.R, axis);
        const Point middle = p + s.size[axis] * out.n;
        const Point x = s.size[i] * column(s.R, i), y = (side * s.size[j]) * column(s.R, j);
        out.count = 4;
        out.x[0] = middle + x + y;
        out.x[1] = middle - x + y;
        out.x[2] = middle - x - y;
        out.x[3] = middle + x - y;
    } else {
        // of the faces at the foremost corner
        const Hull& h = *s.hull;
        const int at = furthest(h, d);
        int best = h.corner_face[h.corner_face_first[at]];
        double most = -2;
        for (int k = h.corner_face_first[at]; k < h.corner_face_first[at + 1]; ++k) {
            const double* n = h.plane + 4 * h.corner_face[k];
            const double x = n[0] * d.x + n[1] * d.y + n[2] * d.z;
            if (x > most) most = x, best = h.corner_face[k];
        }
        const double* n = h.plane + 4 * best;
        out.n = s.R * Point{n[0], n[1], n[2]};
        const int first = h.loop_first[best], all = h.loop_first[best + 1] - first;
        const int stride = (all + kMostSides - 1) / kMostSides;
        out.count = 0;
        for (int k = 0; k < all; k += stride)
            out.x[out.count++] = p + s.R * corner_of(h, h.loop[first + k]);
    }
    out.offset = dot(out.n, out.x[0]);
    return true;
}

inline Point support_point(const Posed& s, const Point& p, const Point& u) {
    int at = -1;
    return p + support(s, u, at) + ball_of(s) * u;
}

// What lies foremost along u: a face, a line or a point. A rim's lowest point lies between the
// corners of its disc: `single`.
inline void feature_along(const Posed& s, const Point& p, const Point& u, SolidFace& out,
                          bool& single) {
    single = false;
    const bool lies = s.kind == Solid::cylinder && std::fabs(dot(column(s.R, 2), u)) < 0.5;
    if (!lies && face_along(s, p, u, out)) {
        single = s.kind == Solid::cylinder;
        return;
    }
    if (half_of(s) > 0) {
        rod_line(s, p, u, out.x);
        out.count = 2;
    } else {
        out.x[0] = support_point(s, p, u);
        out.count = 1;
    }
}

// The part of a polygon, line or point with side x <= limit.
inline void clip(SolidFace& poly, const Point& side, double limit) {
    Point kept[kMostPoints];
    int count = 0;
    for (int i = 0; i < poly.count && count < kMostPoints - 2; ++i) {
        const int k = (i + 1) % poly.count;
        const double a = dot(side, poly.x[i]) - limit, b = dot(side, poly.x[k]) - limit;
        if (a <= 0) kept[count++] = poly.x[i];
        // a line has one edge only
        if (((a < 0 && b > 0) || (a > 0 && b < 0)) && (poly.count > 2 || i == 0))
            kept[count++] = poly.x[i] + (a / (a - b)) * (poly.x[k] - poly.x[i]);
    }
    poly.count = count;
    for (int k = 0; k < count; ++k) poly.x[k] = kept[k];
}

// The part of another solid's feature that lies over a face.
inline void clip_over(const SolidFace& face, const Posed& other, const Point& p, SolidFace& poly) {
    bool single;
    feature_along(other, p, -1.0 * face.n, poly, single);
    const Point lowest = single ? support_point(other, p, -1.0 * face.n) : Point{};
    for (int k = 0; k < face.count; ++k) {
        const Point a = face.x[k], b = face.x[(k + 1) % face.count];
        const Point side = cross(b - a, face.n);
        const double limit = dot(side, a);
        bool beyond = false;
        for (int i = 0; i < poly.count; ++i) beyond = beyond || dot(side, poly.x[i]) > limit;
        if (beyond) clip(poly, side, limit);
        if (single && dot(side, lowest) > limit) single = false;
    }
    // only where the disc is tilted: of one that lies flat, rounding would say which point is
    // lowest
    const double below = dot(face.n, lowest) + 1e-6 * other.reach;
    for (int i = 0; i < poly.count; ++i) single = single && below < dot(face.n, poly.x[i]);
    if (single && poly.count < kMostPoints) poly.x[poly.count++] = lowest;
}

// Two rods that are nearly parallel: the ends of the stretch that they share.
inline int side_by_side(const Posed& a, const Posed& b, const Point& apart, const Point& n,
                        double near, Touch* out) {
    const Point d = column(a.R, 2), e = column(b.R, 2);
    const double slope = dot(d, e), h = half_of(a), g = half_of(b);
    if (slope * slope < 0.9998 || std::fabs(dot(n, d)) > 0.1) return 0;
    Point one[2], two[2];
    rod_line(a, apart, -1.0 * n, one);
    rod_line(b, {0, 0, 0}, n, two);
    const Point p = 0.5 * (one[0] + one[1]), q = 0.5 * (two[0] + two[1]);
    const double middle = dot(d, q - p), half = g * std::fabs(slope);
    const double low = middle - half > -h ? middle - half : -h;
    const double high = middle + half < h ? middle + half : h;
    if (high - low < 1e-3 * (h < g ? h : g)) return 0;
    int count = 0;
    for (const double s : {low, high}) {
        const Point x = p + s * d, y = q + dot(e, x - q) * e;
        const double gap = dot(n, x - y);
        if (gap < near) out[count++] = {y, n, gap};
    }
    return count;
}

// The four of many points that hold best, by their places: the deepest, the furthest from it, and
// the two furthest to either side.
inline int pick_four(const Touch* t, int n, int pick[4]) {
    int best[4] = {0, 0, -1, -1};
    double least = t[0].gap;
    for (int k = 1; k < n; ++k) least = t[k].gap < least ? t[k].gap : least;
    while (t[best[0]].gap >= least + 1e-9) ++best[0];
    double far = -1;
    for (int k = 0; k < n; ++k) {
        const Point d = t[k].at - t[best[0]].at;
        if (dot(d, d) > far) far = dot(d, d), best[1] = k;
    }
    double most = 0, fewest = 0;
    const Point line = t[best[1]].at - t[best[0]].at;
    for (int k = 0; k < n; ++k) {
        const double area = dot(t[best[0]].n, cross(line, t[k].at - t[best[0]].at));
        if (area > most) most = area, best[2] = k;
        if (area < fewest) fewest = area, best[3] = k;
    }
    int count = 0;
    for (int k = 0; k < n; ++k)
        if (k == best[0] || k == best[1] || k == best[2] || k == best[3]) pick[count++] = k;
    return count;
}

// Up to four points of contact, given the nearest ones.
inline int touch_patch(const Posed& a, const Posed& b, const Nearest& o, double near, Touch* out) {
    const Point apart = a.p - b.p, none = {0, 0, 0};
    const double least = a.reach < b.reach ? a.reach : b.reach;
    const auto is_round = [](const Posed& s) {
        return ball_of(s) > 0 || s.kind == Solid::cylinder;
    };
    const double favour = least * (is_round(a) || is_round(b) ? kRolls : kHeld);
    Touch touch[kMostPoints + 1];
    int count = 0;
    // a ball has one point, and rolls over edges smoothly
    const auto is_ball = [](const Posed& s) {
        return s.kind == Solid::sphere || (s.kind == Solid::capsule && s.size[1] == 0);
    };
    if (!is_ball(a) && !is_ball(b)) {
        SolidFace face_a, face_b, poly;
        double far_a = -1e300, far_b = -1e300;
        const bool has_b = face_along(b, none, o.n, face_b);
        if (has_b) far_b = dot(face_b.n, support_point(a, apart, -1.0 * face_b.n)) - face_b.offset;
        // no direction is better than the best: where b's face is nearly that, a's is not asked
        const double better = kBetter * least;
        const bool has_a = far_b < o.gap - (favour < better ? favour : better) &&
                           face_along(a, apart, -1.0 * o.n, face_a);
        if (has_a) far_a = dot(face_a.n, support_point(b, none, -1.0 * face_a.n)) - face_a.offset;
        if (has_b && far_b >= o.gap - favour && far_b >= far_a - better) {
            clip_over(face_b, a, apart, poly);
            for (int k = 0; k < poly.count; ++k) {
                const double gap = dot(face_b.n, poly.x[k]) - face_b.offset;
                if (gap < near) touch[count++] = {poly.x[k] - gap * face_b.n, face_b.n, gap};
            }
        } else if (has_a && far_a >= o.gap - favour) {
            clip_over(face_a, b, none, poly);
            for (int k = 0; k < poly.count; ++k) {
                const double gap = dot(face_a.n, poly.x[k]) - face_a.offset;
                if (gap < near) touch[count++] = {poly.x[k], -1.0 * face_a.n, gap};
            }
        } else if (half_of(a) > 0 && half_of(b) > 0) {
            count = side_by_side(a, b, apart, o.n, near, touch);
        }
    }
    // the nearest points may lie beside the face, and a tiny face is a point
    bool there = false;
    double wide = 0;
    for (int k = 0; k < count; ++k) {
        const Point e = touch[k].at - touch[0].at;
        wide = dot(e, e) > wide ? dot(e, e) : wide;
        there = there || touch[k].gap < o.gap + kRolls * least;
    }
    if (wide < kSmallPatch * kSmallPatch * least * least) count = 0, there = false;
    if (!there) touch[count++] = {o.at, o.n, o.gap};
    if (count > 4) {
        int pick[4];
        count = pick_four(touch, count, pick);
        for (int k = 0; k < count; ++k) touch[k] = touch[pick[k]];
    }
    go_round(b, touch, count);
    for (int k = 0; k < count; ++k) out[k] = {touch[k].at + b.p, touch[k].n, touch[k].gap};
    return count;
}

// Touches of two convex solids, at most four.
inline int collide_convex(const Posed& a, const Posed& b, double near, Touch* out) {
    Nearest nearest;
    if (!nearest_points(a, b, near, nearest)) return 0;
    return touch_patch(a, b, nearest, near, out);
}

// ---- a hull over the ground

// Tilts of the direction down in which the corners that carry a hull are looked for [rad].
constexpr double kTilt = 0.02, kMostTilt = 0.5;
constexpr int kTilts = 8;

// Corners of a hull that lie lowest along d, in its own frame: the lowest, and those that are
// lowest once it is tilted a little to either side. Their quarter of a turn says which slot is
// theirs. d is a unit vector, `lowest` the corner that lies furthest along it.
struct LowCorner {
    int corner, quarter;
};
inline int low_corners(const Hull& h, const Point& d, int lowest, double tilt, LowCorner* out) {
    int axis = 0;
    for (int k = 1; k < 3; ++k)
        if (std::fabs(component(d, k)) > std::fabs(component(d, axis))) axis = k;
    int count = 0;
    out[count++] = {lowest, -1};
    // turns of pi / 8 + k pi / 4: corners of a box are no ties
    constexpr double c = 0.92387953251128674, s = 0.38268343236508977;
    constexpr double turn[kTilts][2] = {{c, s},   {s, c},   {-s, c}, {-c, s},
                                        {-c, -s}, {-s, -c}, {s, -c}, {c, -s}};
    for (int k = 0; k < kTilts; ++k) {
        const double x = tilt * turn[k][0], y = tilt * turn[k][1];
        const Point to = axis == 0   ? d + Point{0, x, y}
                         : axis == 1 ? d + Point{y, 0, x}
                                     : d + Point{x, y, 0};
        const int found = h.corners >= kClimbed ? climb(h, to, lowest) : furthest(h, to);
        int i = 0;
        while (i < count && out[i].corner != found) ++i;
        if (i == count) out[count++] = {found, k / 2};
        else if (out[i].quarter < 0) out[i].quarter = k / 2;
    }
    if (out[0].quarter < 0) out[0].quarter = 0;
    return count;
}

}  // namespace poise::inline POISE_ISA
