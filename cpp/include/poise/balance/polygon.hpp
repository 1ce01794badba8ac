// Small convex polygons seen from above: hull of the supports, and the nearest point inside.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

namespace poise::inline POISE_ISA {

struct Corner {
    double x, y;
    bool operator<(const Corner& o) const { return x < o.x || (x == o.x && y < o.y); }
    bool operator==(const Corner& o) const { return x == o.x && y == o.y; }
};

using Polygon = std::vector<Corner>;

// points become the corners of their hull, anticlockwise (Andrew's monotone chain); each corner
// moves by `shrink` towards the middle, at most half the way
inline void take_hull(Polygon& points, Polygon& room, double shrink) {
    std::sort(points.begin(), points.end());
    points.erase(std::unique(points.begin(), points.end()), points.end());
    if (points.size() > 2) {
        room.clear();
        for (int side = 0; side < 2; ++side) {
            const std::size_t first = room.size();
            for (const Corner& c : points) {
                while (room.size() > first + 1) {
                    const Corner &a = room[room.size() - 2], &b = room.back();
                    if ((b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x) > 0) break;
                    room.pop_back();
                }
                room.push_back(c);
            }
            room.pop_back();
            std::reverse(points.begin(), points.end());
        }
        points.swap(room);
    }
    if (!shrink) return;
    Corner middle = {0, 0};
    for (const Corner& c : points) middle.x += c.x, middle.y += c.y;
    const double per = 1.0 / static_cast<double>(points.size());
    middle.x *= per, middle.y *= per;
    for (Corner& c : points) {
        const double far = std::hypot(c.x - middle.x, c.y - middle.y);
        const double keep = 1 - std::fmin(shrink / std::fmax(far, 1e-9), 0.5);
        c = {middle.x + keep * (c.x - middle.x), middle.y + keep * (c.y - middle.y)};
    }
}

// the point itself if it is inside, else the nearest of the polygon
inline Corner nearest_inside(const Polygon& corners, Corner p) {
    bool inside = corners.size() > 2;
    double best = INFINITY;
    Corner found = p, a = corners.back();
    for (const Corner& b : corners) {
        const double ex = b.x - a.x, ey = b.y - a.y, wx = p.x - a.x, wy = p.y - a.y;
        if (ex * wy - ey * wx < 0) inside = false;
        const double size = ex * ex + ey * ey;
        const double along =
            size > 0 ? std::fmin(std::fmax((wx * ex + wy * ey) / size, 0.0), 1.0) : 0.0;
        const Corner at = {a.x + along * ex, a.y + along * ey};
        const double far = (p.x - at.x) * (p.x - at.x) + (p.y - at.y) * (p.y - at.y);
        if (far < best) best = far, found = at;
        a = b;
    }
    return inside ? p : found;
}

}  // namespace poise::inline POISE_ISA
