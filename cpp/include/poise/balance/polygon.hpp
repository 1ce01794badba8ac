// Small convex polygons in the ground plane: the hull of the supports, and the closest point.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

namespace poise::inline POISE_ISA {

struct Point2 {
    double x, y;
    bool operator<(const Point2& o) const { return x < o.x || (x == o.x && y < o.y); }
    bool operator==(const Point2& o) const { return x == o.x && y == o.y; }
};

using Polygon = std::vector<Point2>;

// Replaces points by the corners of their convex hull, counterclockwise (Andrew's monotone chain).
// Each corner moves by `shrink` towards the middle, at most half the way.
inline void convex_hull(Polygon& points, Polygon& scratch, double shrink) {
    std::sort(points.begin(), points.end());
    points.erase(std::unique(points.begin(), points.end()), points.end());
    if (points.size() > 2) {
        scratch.clear();
        for (int side = 0; side < 2; ++side) {
            const std::size_t first = scratch.size();
            for (const Point2& c : points) {
                while (scratch.size() > first + 1) {
                    const Point2 &a = scratch[scratch.size() - 2], &b = scratch.back();
                    if ((b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x) > 0) break;
                    scratch.pop_back();
                }
                scratch.push_back(c);
            }
            scratch.pop_back();
            std::reverse(points.begin(), points.end());
        }
        points.swap(scratch);
    }
    if (!shrink) return;
    Point2 middle = {0, 0};
    for (const Point2& c : points) middle.x += c.x, middle.y += c.y;
    const double per = 1.0 / static_cast<double>(points.size());
    middle.x *= per, middle.y *= per;
    for (Point2& c : points) {
        const double distance = std::hypot(c.x - middle.x, c.y - middle.y);
        const double keep = 1 - std::fmin(shrink / std::fmax(distance, 1e-9), 0.5);
        c = {middle.x + keep * (c.x - middle.x), middle.y + keep * (c.y - middle.y)};
    }
}

// The point itself if it is inside, else the closest point of the polygon.
inline Point2 closest_point(const Polygon& corners, Point2 p) {
    bool inside = corners.size() > 2;
    double best = INFINITY;
    Point2 closest = p, a = corners.back();
    for (const Point2& b : corners) {
        const double ex = b.x - a.x, ey = b.y - a.y, wx = p.x - a.x, wy = p.y - a.y;
        if (ex * wy - ey * wx < 0) inside = false;
        const double size = ex * ex + ey * ey;
        const double along =
            size > 0 ? std::fmin(std::fmax((wx * ex + wy * ey) / size, 0.0), 1.0) : 0.0;
        const Point2 at = {a.x + along * ex, a.y + along * ey};
        const double distance = (p.x - at.x) * (p.x - at.x) + (p.y - at.y) * (p.y - at.y);
        if (distance < best) best = distance, closest = at;
        a = b;
    }
    return inside ? p : closest;
}

}  // namespace poise::inline POISE_ISA
