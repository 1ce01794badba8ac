// The screen, cut into tiles: which bodies may be seen in each, and which tiles show nothing but
// sky and bare ground.
#pragma once

#include "poise/render/grid.hpp"
#include "poise/render/scene.hpp"

namespace poise::pictures {

constexpr int kTile = 8;  // [pixels]

// A rectangle on the screen.
struct Rect {
    float x0 = kFar, y0 = kFar, x1 = -kFar, y1 = -kFar;  // [pixels]
    bool all = false;

    // widen by the picture of a ball
    void cover(const View& view, V3 p, float r) {
        const V3 c = view.camera.in(p);
        if (c.z - r < kNear) {
            all = true;
            return;
        }
        const float near = 1.0f / (c.z - r), far = 1.0f / (c.z + r);
        const float kx = static_cast<float>(view.set.width) / (2.0f * view.tan_x);
        const float ky = static_cast<float>(view.set.height) / (2.0f * view.tan_y);
        const float mx = 0.5f * static_cast<float>(view.set.width);
        const float my = 0.5f * static_cast<float>(view.set.height);
        const float left = c.x - r, right = c.x + r, down = c.y - r, up = c.y + r;
        x0 = smaller(x0, mx + kx * smaller(left * near, left * far));
        x1 = larger(x1, mx + kx * larger(right * near, right * far));
        y0 = smaller(y0, my - ky * larger(up * near, up * far));
        y1 = larger(y1, my - ky * smaller(down * near, down * far));
    }
};

// points and a radius: the body lies in the hull of the balls around them
inline int hull(const Body& b, V3* point, float& r) {
    r = b.r;
    if (b.kind == Kind::sphere) {
        point[0] = b.c;
        return 1;
    }
    if (b.kind == Kind::capsule || b.kind == Kind::cylinder) {
        point[0] = b.c + b.half * b.R.z;
        point[1] = b.c - b.half * b.R.z;
        return 2;
    }
    r = 0.0f;
    for (int i = 0; i < 8; ++i)
        point[i] = b.middle + b.R.out({i & 1 ? b.h.x : -b.h.x, i & 2 ? b.h.y : -b.h.y,
                                       i & 4 ? b.h.z : -b.h.z});
    return 8;
}

class Tiles {
  public:
    Tiles(const View& view, const std::vector<Body>& bodies)
        : across((view.set.width + kTile - 1) / kTile), down((view.set.height + kTile - 1) / kTile),
          touched_(static_cast<std::size_t>(across) * down, 0) {
        // front to back, so that a ray may stop early
        std::vector<std::int32_t> order(bodies.size());
        for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int32_t>(i);
        std::stable_sort(order.begin(), order.end(),
                         [&](int i, int j) { return bodies[i].front < bodies[j].front; });
        Pairs pairs;
        for (const int i : order) {
            const Body& b = bodies[i];
            V3 point[8];
            float r = 0.0f;
            Rect box;
            box.all = b.kind == Kind::plane;
            const int n = box.all ? 0 : hull(b, point, r);
            for (int k = 0; k < n; ++k) box.cover(view, point[k], r);
            // solid triangles are seen otherwise: raster.hpp
            const bool rays = b.kind != Kind::mesh || !b.solid();
            each(box, [&](int tile) {
                touched_[tile] = 1;
                if (rays) pairs.emplace_back(tile, i);
            });
            if (view.set.ground && n > 0) touch_ground(view, b, point, n, r);
        }
        seen_.fill(across * down, pairs);
    }

    // bodies to cast rays at, front to back
    Span seen(int tile) const { return seen_.of(tile); }
    // nothing but ground and sky, and no shadow on it
    bool plain(int tile) const { return !touched_[tile]; }

    // calls with every tile of a rectangle
    template <class Call>
    void each(const Rect& rect, Call call) const {
        int x0 = 0, y0 = 0, x1 = across - 1, y1 = down - 1;
        if (!rect.all) {
            const auto tile = [](float p, int most) {
                return static_cast<int>(
                    clamp(std::floor(p / kTile), -1.0f, static_cast<float>(most)));
            };
            // a pixel of slack for rounding
            x0 = std::max(0, tile(rect.x0 - 1.0f, across));
            y0 = std::max(0, tile(rect.y0 - 1.0f, down));
            x1 = std::min(x1, tile(rect.x1 + 1.0f, across));
            y1 = std::min(y1, tile(rect.y1 + 1.0f, down));
        }
        for (int y = y0; y <= y1; ++y)
            for (int x = x0; x <= x1; ++x) call(y * across + x);
    }

    const int across, down;  // how many

  private:
    // where the shadow of a body, and the darkness near it, reach the ground
    void touch_ground(const View& view, const Body& b, const V3* point, int n, float r) {
        const auto touch = [&](int tile) { touched_[tile] = 1; };
        Rect shadow, around;
        float lowest = kFar, highest = -kFar;
        for (int k = 0; k < n; ++k) {
            const float rise = point[k].z - view.ground;
            lowest = smaller(lowest, rise - r);
            highest = larger(highest, rise + r);
            const V3 l = view.light.z;
            const float way = larger(rise, 0.0f) / l.z;
            const V3 foot{point[k].x - way * l.x, point[k].y - way * l.y, view.ground};
            const float wide = (r + view.soft * (way + 2.0f * b.radius)) / l.z;
            for (int s = 0; s < 4; ++s)
                shadow.cover(view, foot + V3{s & 1 ? wide : -wide, s & 2 ? wide : -wide, 0.0f},
                             0.0f);
        }
        if (highest > 0.0f) each(shadow, touch);
        const float far = (kReach - 1.0f) * b.ball + b.radius;
        if (b.ball > 0.0f && b.solid() && lowest < kReach * b.ball && highest > 0.0f) {
            for (int s = 0; s < 4; ++s)
                around.cover(view,
                             V3{b.middle.x + (s & 1 ? far : -far),
                                b.middle.y + (s & 2 ? far : -far), view.ground},
                             0.0f);
            each(around, touch);
        }
    }

    std::vector<std::uint8_t> touched_;
    Table seen_;
};

}  // namespace poise::pictures
