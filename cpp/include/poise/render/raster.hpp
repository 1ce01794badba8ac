// Solid triangles, tile by tile.
//
// With the corners p0, p1, p2 seen from the eye, the ray along D goes through the triangle where
//     D . (p1 x p2), D . (p2 x p0), D . (p0 x p1)
// have one sign, and meets its plane at T D, 1/T = D . n / (p0 . n), n = (p1 - p0) x (p2 - p0).
// In the camera's frame D = (x, y, 1), so all four are linear in the pixel, and nothing needs to be
// clipped (Olano and Greer 1997, homogeneous rasterisation).
#pragma once

#include "poise/render/tiles.hpp"

namespace poise::pictures {

// The nearest of the triangles at a sample.
struct Nearest {
    float near;               // one over its depth along the camera's axis [1/m]
    std::int32_t body, face;  // -2: none
};

class Raster {
  public:
    Raster(const View& view, const std::vector<Body>& bodies, const Tiles& tiles) : view_(view) {
        Pairs pairs;
        std::vector<V3> corner;
        for (std::size_t i = 0; i < bodies.size(); ++i) {
            const Body& b = bodies[i];
            if (b.kind != Kind::mesh || !b.solid()) continue;
            corner.clear();
            for (const V3 v : b.mesh->vertices())
                corner.push_back(view.camera.in(b.c + b.R.out(v)));
            for (std::size_t f = 0; f < b.mesh->faces().size(); ++f) {
                const Face& face = b.mesh->faces()[f];
                add(corner[face[0]], corner[face[1]], corner[face[2]], b, static_cast<int>(i),
                    static_cast<int>(f), tiles, pairs);
            }
        }
        table_.fill(tiles.across * tiles.down, pairs);
    }

    bool empty(int tile) const { return table_.of(tile).empty(); }

    // the nearest triangle at n x n samples of each pixel of a tile
    void fill(int tx, int ty, int tile, int n, std::vector<Nearest>& out) const {
        const int side = kTile * n;
        out.assign(static_cast<std::size_t>(side) * side, {0.0f, -2, 0});
        const float step = view_.pixel / static_cast<float>(n);
        const float x0 = static_cast<float>(tx * kTile) * view_.pixel - view_.tan_x + 0.5f * step;
        const float y0 = view_.tan_y - static_cast<float>(ty * kTile) * view_.pixel - 0.5f * step;
        for (const int k : table_.of(tile)) {
            const Triangle& t = triangle_[k];
            const int left = std::max(0, n * (t.x0 - tx * kTile));
            const int right = std::min(side, n * (t.x1 - tx * kTile));
            const int top = std::max(0, n * (t.y0 - ty * kTile));
            const int bottom = std::min(side, n * (t.y1 - ty * kTile));
            for (int j = top; j < bottom; ++j) {
                const float y = y0 - step * static_cast<float>(j);
                // the row's part inside: each side bounds it on the left or on the right
                float from = x0 + step * static_cast<float>(left);
                float to = x0 + step * (static_cast<float>(right) - 0.5f);
                for (const V3 side_line : t.side) {
                    const float at = side_line.y * y + side_line.z + kHair;
                    if (side_line.x > 0.0f) from = larger(from, -at / side_line.x);
                    else if (side_line.x < 0.0f) to = smaller(to, -at / side_line.x);
                    else if (at < 0.0f) to = -kFar;
                }
                if (!(from <= to)) continue;
                const int begin = static_cast<int>(std::ceil((from - x0) / step - 1e-3f));
                const int end = static_cast<int>(std::floor((to - x0) / step + 1e-3f)) + 1;
                const float m = t.plane.y * y + t.plane.z;
                for (int i = std::max(begin, left); i < std::min(end, right); ++i) {
                    const float x = x0 + step * static_cast<float>(i);
                    const float near = t.plane.x * x + m;
                    Nearest& o = out[static_cast<std::size_t>(j) * side + i];
                    if (near > o.near) o = {near, t.body, t.face};
                }
            }
        }
    }

  private:
    // overlap of triangles in parts of their size, so that no ray slips between two
    static constexpr float kHair = 1e-5f;

    struct Triangle {
        // of D = (x, y, 1): the three sides, scaled to sum to about one inside; one over T
        V3 side[3], plane;
        std::int32_t body, face;
        std::int16_t x0, y0, x1, y1;  // on the screen, end exclusive [pixels]
    };

    struct D3 {
        double x, y, z;
        explicit D3(V3 v) : x(v.x), y(v.y), z(v.z) {}
        D3(double x_, double y_, double z_) : x(x_), y(y_), z(z_) {}
        D3 operator-(D3 b) const { return {x - b.x, y - b.y, z - b.z}; }
        V3 scaled(double k) const {
            return {static_cast<float>(k * x), static_cast<float>(k * y),
                    static_cast<float>(k * z)};
        }
    };
    static D3 times(D3 a, D3 b) {
        return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
    }

    // in double: the sides of a small triangle far away nearly cancel
    void add(V3 p0, V3 p1, V3 p2, const Body& body, int index, int face, const Tiles& tiles,
             Pairs& pairs) {
        Rect rect;
        if (!bounds(p0, p1, p2, rect)) return;
        const float w = static_cast<float>(view_.set.width);
        const float h = static_cast<float>(view_.set.height);
        if (rect.x1 < 0.0f || rect.y1 < 0.0f || rect.x0 > w || rect.y0 > h) return;
        const D3 a(p0), b(p1), c(p2), n = times(b - a, c - a);
        const double det = n.x * a.x + n.y * a.y + n.z * a.z;
        if (det == 0.0) return;  // seen along its plane
        // of a convex body one sees the sides that have the eye and its middle on two sides
        if (body.mesh->convex()) {
            const D3 m = a - D3(view_.camera.in(body.middle));
            if (det * (n.x * m.x + n.y * m.y + n.z * m.z) > 0.0) return;
        }
        // at its middle the sides sum to D . n
        const double z = (a.z + b.z + c.z) / 3;
        const double middle = z > 0 ? det / z : det;
        Triangle t{};
        t.side[0] = times(b, c).scaled(1 / middle);
        t.side[1] = times(c, a).scaled(1 / middle);
        t.side[2] = times(a, b).scaled(1 / middle);
        t.plane = n.scaled(1 / det);
        t.body = index;
        t.face = face;
        const auto side = [](float p, float most) {
            return static_cast<std::int16_t>(clamp(p, 0.0f, most));
        };
        t.x0 = side(rect.x0 - 1.0f, w);
        t.y0 = side(rect.y0 - 1.0f, h);
        t.x1 = side(rect.x1 + 2.0f, w);
        t.y1 = side(rect.y1 + 2.0f, h);
        tiles.each(rect, [&](int tile) {
            pairs.emplace_back(tile, static_cast<std::int32_t>(triangle_.size()));
        });
        triangle_.push_back(t);
    }

    // the screen's part of a triangle that lies before the eye; false where there is none
    bool bounds(V3 p0, V3 p1, V3 p2, Rect& rect) const {
        const V3 p[3] = {p0, p1, p2};
        const auto show = [&](V3 q) {
            const float k = 1.0f / (q.z * view_.pixel);
            const float x = 0.5f * static_cast<float>(view_.set.width) + q.x * k;
            const float y = 0.5f * static_cast<float>(view_.set.height) - q.y * k;
            rect.x0 = smaller(rect.x0, x);
            rect.x1 = larger(rect.x1, x);
            rect.y0 = smaller(rect.y0, y);
            rect.y1 = larger(rect.y1, y);
        };
        for (int i = 0; i < 3; ++i) {
            const V3 a = p[i], b = p[(i + 1) % 3];
            if (a.z >= kNear) show(a);
            if ((a.z >= kNear) != (b.z >= kNear)) {
                V3 q = mix(a, b, (kNear - a.z) / (b.z - a.z));
                q.z = kNear;
                show(q);
            }
        }
        return rect.x0 <= rect.x1;
    }

    const View& view_;
    std::vector<Triangle> triangle_;
    Table table_;
};

}  // namespace poise::pictures
