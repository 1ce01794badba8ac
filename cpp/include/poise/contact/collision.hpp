// Pairs of shapes: sphere, capsule, box (others in convex.hpp), one pair of one copy at a time, in
// double.
//
// Every routine gives points on the surface of b, the normal from b to a, and the gap along it,
// below zero inside. Points of a patch come in a fixed order, so that a slot keeps its corner.
#pragma once

#include <cmath>
#include <initializer_list>

#include "poise/contact/collision_model.hpp"
#include "poise/spatial.hpp"

namespace poise::inline POISE_ISA {

using Point = Vec3<double>;

struct Posed {
    Solid kind;
    const double* size;
    Point p;
    Mat3<double> R;
    const Hull* hull;
    double reach;
    const double* box;
};

struct Touch {
    Point at, n;
    double gap;
};

constexpr int kMostTouches = 8;

POISE_INLINE double component(const Point& a, int k) { return k == 0 ? a.x : k == 1 ? a.y : a.z; }
POISE_INLINE Point column(const Mat3<double>& R, int k) {
    return k == 0   ? Point{R.xx, R.yx, R.zx}
           : k == 1 ? Point{R.xy, R.yy, R.zy}
                    : Point{R.xz, R.yz, R.zz};
}
POISE_INLINE double length(const Point& a) { return std::sqrt(dot(a, a)); }
POISE_INLINE double clamped(double x, double low, double high) {
    return x < low ? low : x > high ? high : x;
}

// two balls
inline int ball_ball(const Point& a, double ra, const Point& b, double rb, double near,
                     Touch* out) {
    const Point d = a - b;
    const double far = length(d);
    if (far - ra - rb > near) return 0;
    const Point n = far > 1e-12 ? (1 / far) * d : Point{0, 0, 1};
    out[0] = {b + rb * n, n, far - ra - rb};
    return 1;
}

// t of the point p + t d, |t| <= h, that is nearest to x
POISE_INLINE double nearest_on(const Point& p, const Point& d, double h, const Point& x) {
    return clamped(dot(d, x - p), -h, h);
}

// nearest points of two segments with unit directions
inline void nearest_pair(const Point& p, const Point& d, double h, const Point& q, const Point& e,
                         double k, double& s, double& t) {
    const Point r = p - q;
    const double b = dot(d, e), c = dot(d, r), f = dot(e, r), det = 1 - b * b;
    s = det > 1e-9 ? clamped((b * f - c) / det, -h, h) : 0;
    t = clamped(f + s * b, -k, k);
    s = clamped(t * b - c, -h, h);
    t = clamped(f + s * b, -k, k);
}

// two capsules: nearest points, and the ends of the stretch that they share where they are parallel
inline int capsule_capsule(const Posed& a, const Posed& b, double near, Touch* out) {
    const Point d = column(a.R, 2), e = column(b.R, 2);
    const double h = a.kind == Solid::sphere ? 0 : a.size[1];
    const double k = b.kind == Solid::sphere ? 0 : b.size[1];
    const double slope = dot(d, e);
    if (h > 0 && k > 0 && slope * slope > 0.9998) {
        // the ends of b's axis that lie beside a, seen along a
        const double middle = dot(d, b.p - a.p), half = k * std::fabs(slope);
        const double low = middle - half > -h ? middle - half : -h;
        const double high = middle + half < h ? middle + half : h;
        if (high - low > 1e-3 * (h < k ? h : k)) {
            int count = 0;
            for (const double s : {low, high}) {
                const Point x = a.p + s * d;
                const double t = nearest_on(b.p, e, k, x);
                count += ball_ball(x, a.size[0], b.p + t * e, b.size[0], near, out + count);
            }
            return count;
        }
    }
    double s, t;
    nearest_pair(a.p, d, h, b.p, e, k, s, t);
    return ball_ball(a.p + s * d, a.size[0], b.p + t * e, b.size[0], near, out);
}

// a ball against a box
inline int ball_box(const Point& x, double radius, const Posed& b, double near, Touch* out) {
    const Point local = tmul(b.R, x - b.p);
    const double l[3] = {local.x, local.y, local.z};
    double c[3];
    bool inside = true;
    for (int k = 0; k < 3; ++k) {
        c[k] = clamped(l[k], -b.size[k], b.size[k]);
        inside = inside && c[k] == l[k];
    }
    if (inside) {
        // out through the nearest face
        int face = 0;
        double depth = 1e300;
        for (int k = 0; k < 3; ++k) {
            const double d = b.size[k] - std::fabs(l[k]);
            if (d < depth) depth = d, face = k;
        }
        const Point n = (l[face] < 0 ? -1.0 : 1.0) * column(b.R, face);
        out[0] = {x + depth * n, n, -depth - radius};
        return 1;
    }
    const Point at = b.p + b.R * Point{c[0], c[1], c[2]};
    const Point d = x - at;
    const double far = length(d);
    if (far - radius > near) return 0;
    out[0] = {at, (1 / (far > 1e-300 ? far : 1)) * d, far - radius};
    return 1;
}

// distance of a point p + t d to a box, squared, grows on either side of its least: golden section
inline double nearest_to_box(const Point& p, const Point& d, double h, const double* size) {
    const auto far = [&](double t) {
        double sum = 0;
        for (int k = 0; k < 3; ++k) {
            const double x = std::fabs(component(p, k) + t * component(d, k)) - size[k];
            if (x > 0) sum += x * x;
        }
        return sum;
    };
    double low = -h, high = h;
    constexpr double g = 0.6180339887498949;
    double s = high - g * (high - low), t = low + g * (high - low), fs = far(s), ft = far(t);
    for (int k = 0; k < 40 && high - low > 1e-9 * h; ++k) {
        if (fs <= ft) {
            high = t, t = s, ft = fs;
            s = high - g * (high - low), fs = far(s);
        } else {
            low = s, s = t, fs = ft;
            t = low + g * (high - low), ft = far(t);
        }
    }
    return 0.5 * (low + high);
}

// a capsule against a box: the nearest point of its axis, and the ends of the stretch that lies
// over the face which that point looks at
inline int capsule_box(const Posed& a, const Posed& b, double near, Touch* out) {
    const Point d = column(a.R, 2);
    const double h = a.kind == Solid::sphere ? 0 : a.size[1], radius = a.size[0];
    if (h == 0) return ball_box(a.p, radius, b, near, out);
    const Point p = tmul(b.R, a.p - b.p), e = tmul(b.R, d);
    const double t = nearest_to_box(p, e, h, b.size);
    Touch first;
    if (!ball_box(a.p + t * d, radius, b, near, &first)) return 0;
    const Point n = tmul(b.R, first.n);
    int face = 0;
    for (int k = 1; k < 3; ++k)
        if (std::fabs(component(n, k)) > std::fabs(component(n, face))) face = k;
    double low = -h, high = h;
    for (int k = 0; k < 3; ++k) {
        const double x = component(p, k), v = component(e, k);
        if (k == face || std::fabs(v) < 1e-9) continue;
        const double one = (-b.size[k] - x) / v, two = (b.size[k] - x) / v;
        low = std::fmax(low, std::fmin(one, two));
        high = std::fmin(high, std::fmax(one, two));
    }
    int count = 0;
    const double apart = 0.02 * h;
    if (low < high) {
        count += ball_box(a.p + low * d, radius, b, near, out + count);
        if (high - low > apart) count += ball_box(a.p + high * d, radius, b, near, out + count);
    }
    double deepest = 1e300;
    for (int k = 0; k < count; ++k) deepest = std::fmin(deepest, out[k].gap);
    const bool between = t - low > apart && high - t > apart;
    if (between || first.gap < deepest - 1e-6) out[count++] = first;
    return count;
}

// Part of a polygon (n corners, u v w) with s x[axis] <= limit.
inline int clip(const double (*in)[3], int n, int axis, double s, double limit, double (*out)[3]) {
    int count = 0;
    for (int i = 0; i < n; ++i) {
        const double* a = in[i];
        const double* b = in[(i + 1) % n];
        const double da = s * a[axis] - limit, db = s * b[axis] - limit;
        if (da <= 0) {
            for (int k = 0; k < 3; ++k) out[count][k] = a[k];
            ++count;
        }
        if ((da < 0 && db > 0) || (da > 0 && db < 0)) {
            const double t = da / (da - db);
            for (int k = 0; k < 3; ++k) out[count][k] = a[k] + t * (b[k] - a[k]);
            ++count;
        }
    }
    return count;
}

// how far a box with axes X reaches along n
POISE_INLINE double reach(const Point& n, const Point* X, const double* size) {
    return std::fabs(dot(n, X[0])) * size[0] + std::fabs(dot(n, X[1])) * size[1] +
           std::fabs(dot(n, X[2])) * size[2];
}

// two boxes: separating axes, then the face of one clipped by that of the other, or two edges
inline int box_box(const Posed& a, const Posed& b, double near, Touch* out) {
    const Point d = a.p - b.p;
    Point A[3], B[3];
    for (int k = 0; k < 3; ++k) A[k] = column(a.R, k), B[k] = column(b.R, k);
    double best = -1e300;
    int kind = -1, ia = 0, ib = 0;  // 0: face of b, 1: face of a, 2: edges
    Point normal{};
    const auto look = [&](const Point& n, int which, int i, int j, double favour) {
        const double x = dot(n, d);
        const double gap = std::fabs(x) - reach(n, A, a.size) - reach(n, B, b.size);
        if (gap > near) return false;
        if (gap > best + favour) {
            best = gap, kind = which, ia = i, ib = j;
            normal = x < 0 ? -1.0 * n : n;
        }
        return true;
    };
    // a face is preferred to edges that are hardly better, and b's to a's
    double least = a.size[0];
    for (int k = 0; k < 3; ++k) least = std::fmin(least, std::fmin(a.size[k], b.size[k]));
    for (int k = 0; k < 3; ++k)
        if (!look(B[k], 0, 0, k, 0)) return 0;
    for (int k = 0; k < 3; ++k)
        if (!look(A[k], 1, k, 0, 1e-3 * least)) return 0;
    for (int i = 0; i < 3; ++i) {
        for (int j = 0; j < 3; ++j) {
            const Point n = cross(A[i], B[j]);
            const double size = length(n);
            if (size < 1e-6) continue;
            if (!look((1 / size) * n, 2, i, j, 1e-2 * least)) return 0;
        }
    }
    if (kind == 2) {
        // the edges that look at each other, and their nearest points
        Point p = a.p, q = b.p;
        for (int k = 0; k < 3; ++k) {
            if (k != ia) p = p + (dot(A[k], normal) > 0 ? -a.size[k] : a.size[k]) * A[k];
            if (k != ib) q = q + (dot(B[k], normal) > 0 ? b.size[k] : -b.size[k]) * B[k];
        }
        double s, t;
        nearest_pair(p, A[ia], a.size[ia], q, B[ib], b.size[ib], s, t);
        out[0] = {q + t * B[ib], normal, best};
        return 1;
    }
    // the face that holds: of b looking along normal, or of a looking against it
    const bool on_b = kind == 0;
    const Posed& face = on_b ? b : a;
    const Posed& other = on_b ? a : b;
    const Point* F = on_b ? B : A;
    const Point* O = on_b ? A : B;
    const Point outward = on_b ? normal : -1.0 * normal;
    const int axis = on_b ? ib : ia, u = (axis + 1) % 3, v = (axis + 2) % 3;
    // the face of the other that looks back most
    int back = 0;
    double most = -1;
    for (int k = 0; k < 3; ++k) {
        const double x = std::fabs(dot(O[k], outward));
        if (x > most) most = x, back = k;
    }
    const int bu = (back + 1) % 3, bv = (back + 2) % 3;
    const double side = dot(O[back], outward) > 0 ? -1 : 1;
    double poly[2][16][3];
    const double corner[4][2] = {{1, 1}, {-1, 1}, {-1, -1}, {1, -1}};
    for (int k = 0; k < 4; ++k) {
        const Point x = other.p + (side * other.size[back]) * O[back] +
                        (corner[k][0] * other.size[bu]) * O[bu] +
                        (corner[k][1] * other.size[bv]) * O[bv] - face.p;
        poly[0][k][0] = dot(x, F[u]);
        poly[0][k][1] = dot(x, F[v]);
        poly[0][k][2] = dot(x, outward) - face.size[axis];
    }
    int n = clip(poly[0], 4, 0, 1, face.size[u], poly[1]);
    n = clip(poly[1], n, 0, -1, face.size[u], poly[0]);
    n = clip(poly[0], n, 1, 1, face.size[v], poly[1]);
    n = clip(poly[1], n, 1, -1, face.size[v], poly[0]);
    int count = 0;
    for (int k = 0; k < n && count < kMostTouches; ++k) {
        const double gap = poly[0][k][2];
        if (gap > near) continue;
        // on the face of b: the clipped corner lies on the other box
        Point at = face.p + poly[0][k][0] * F[u] + poly[0][k][1] * F[v] + face.size[axis] * outward;
        if (!on_b) at = at + gap * outward;
        out[count++] = {at, normal, gap};
    }
    return count;
}

// How far two boxes are apart at least, and along which direction, from b to a: the largest of the
// gaps along their axes and the cross products of those.
inline double separation(const Posed& a, const Posed& b, Point& normal) {
    const Point d = a.p - b.p;
    const Point A[3] = {column(a.R, 0), column(a.R, 1), column(a.R, 2)};
    const Point B[3] = {column(b.R, 0), column(b.R, 1), column(b.R, 2)};
    double best = -1e300;
    const auto look = [&](const Point& n) {
        const double x = dot(n, d);
        const double gap = std::fabs(x) - reach(n, A, a.size) - reach(n, B, b.size);
        if (gap > best) best = gap, normal = x < 0 ? -1.0 * n : n;
    };
    for (int k = 0; k < 3; ++k) {
        look(B[k]);
        look(A[k]);
    }
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j) {
            const Point n = cross(A[i], B[j]);
            const double size = length(n);
            if (size > 1e-6) look((1 / size) * n);
        }
    return best;
}

// Of up to kMostTouches points the four that hold best: the deepest, the furthest from it, and the
// two furthest to either side.
inline int four_of(Touch* t, int n) {
    if (n <= 4) return n;
    int pick[4] = {0, 0, 0, 0};
    for (int k = 1; k < n; ++k)
        if (t[k].gap < t[pick[0]].gap - 1e-9) pick[0] = k;
    double far = -1;
    for (int k = 0; k < n; ++k) {
        const Point d = t[k].at - t[pick[0]].at;
        if (dot(d, d) > far) far = dot(d, d), pick[1] = k;
    }
    double most = 0, least = 0;
    const Point line = t[pick[1]].at - t[pick[0]].at;
    pick[2] = pick[3] = -1;
    for (int k = 0; k < n; ++k) {
        const double area = dot(t[0].n, cross(line, t[k].at - t[pick[0]].at));
        if (area > most) most = area, pick[2] = k;
        if (area < least) least = area, pick[3] = k;
    }
    Touch kept[4];
    int count = 0;
    for (int k = 0; k < n; ++k)
        for (const int p : pick)
            if (p == k && count < 4) {
                kept[count++] = t[k];
                break;
            }
    for (int k = 0; k < count; ++k) t[k] = kept[k];
    return count;
}

// Touches in their order round the middle, from a corner of b that stays the same while the boxes
// hardly move: each keeps its slot, and with it the impulse of the step before.
inline void go_round(const Posed& b, Touch* t, int n) {
    if (n < 2) return;
    int axis = 0;
    for (int k = 1; k < 3; ++k)
        if (std::fabs(dot(column(b.R, k), t[0].n)) > std::fabs(dot(column(b.R, axis), t[0].n)))
            axis = k;
    const Point u = column(b.R, (axis + 1) % 3), v = column(b.R, (axis + 2) % 3);
    Point middle{0, 0, 0};
    for (int k = 0; k < n; ++k) middle = middle + (1.0 / n) * t[k].at;
    double turn[4];
    for (int k = 0; k < n; ++k) {
        const Point d = t[k].at - middle;
        turn[k] = std::atan2(dot(v, d), dot(u, d));
    }
    for (int i = 1; i < n; ++i)
        for (int k = i; k > 0 && turn[k] < turn[k - 1]; --k) {
            const double x = turn[k];
            turn[k] = turn[k - 1];
            turn[k - 1] = x;
            const Touch y = t[k];
            t[k] = t[k - 1];
            t[k - 1] = y;
        }
}

// Touches of two shapes, at most four.
inline int collide(const Posed& a, const Posed& b, double near, Touch* out) {
    const bool box_a = a.kind == Solid::box, box_b = b.kind == Solid::box;
    if (box_a && box_b) {
        const int count = four_of(out, box_box(a, b, near, out));
        go_round(b, out, count);
        return count;
    }
    if (box_b) return capsule_box(a, b, near, out);
    if (!box_a) return capsule_capsule(a, b, near, out);
    const int count = capsule_box(b, a, near, out);
    for (int k = 0; k < count; ++k) {
        // from the box's surface to the capsule's
        out[k].at = out[k].at + out[k].gap * out[k].n;
        out[k].n = -1.0 * out[k].n;
    }
    return count;
}

}  // namespace poise::inline POISE_ISA
