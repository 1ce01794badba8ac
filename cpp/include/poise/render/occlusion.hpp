// Ambient light that does not arrive: what is near a point hides part of the sky.
//
// A ball of radius r at distance d in direction u covers (r/d)^2 (n . u) of the light that falls on
// a surface with the normal n. A body counts as the nearest ball of those swept over its inner box.
#pragma once

#include "poise/render/grid.hpp"
#include "poise/render/scene.hpp"

namespace poise::pictures {

class Occlusion {
  public:
    explicit Occlusion(const std::vector<Body>& bodies) : body_(bodies) {
        std::vector<V3> low(bodies.size()), high(bodies.size());
        std::vector<std::int32_t> items;
        for (std::size_t i = 0; i < bodies.size(); ++i) {
            const Body& b = bodies[i];
            if (!b.solid() || !(b.ball > 0.0f)) continue;
            items.push_back(static_cast<std::int32_t>(i));
            const auto reach = [&](float x, float y, float z) {
                return std::abs(x) * b.sweep.x + std::abs(y) * b.sweep.y + std::abs(z) * b.sweep.z +
                       kReach * b.ball;
            };
            const V3 far{reach(b.R.x.x, b.R.y.x, b.R.z.x), reach(b.R.x.y, b.R.y.y, b.R.z.y),
                         reach(b.R.x.z, b.R.y.z, b.R.z.z)};
            low[i] = b.middle - far;
            high[i] = b.middle + far;
        }
        grid_.build(items, low, high, false, [&](int i, V3 p, float r) {
            const Body& b = body_[i];
            const V3 u = to_ball(b, p - b.middle);
            const float far = kReach * b.ball + r;
            return dot(u, u) < far * far;
        });
    }

    // part of the ambient light that arrives at p, on a surface with the normal n
    float open(V3 p, V3 n, int self) const {
        float open = 1.0f;
        for (const int i : grid_.at(p.x, p.y, p.z)) {
            if (i == self) continue;
            const Body& b = body_[i];
            const V3 v = p - b.middle;
            if (dot(v, v) > b.reach2 || dot(n, v) >= b.radius) continue;  // too far, or behind
            const V3 u = to_ball(b, v);
            const float up = dot(n, u), d2 = dot(u, u);
            if (up <= 0.0f || d2 > kReach * kReach * b.ball * b.ball) continue;
            const float b2 = b.ball * b.ball, k = 1.0f / std::sqrt(larger(d2, b2));
            const float cover = b2 * k * k - 1.0f / (kReach * kReach);
            open *= 1.0f - 0.9f * cover * up * k;
        }
        return open;
    }

  private:
    // from the point v off a body's middle to the center of its nearest ball
    POISE_INLINE static V3 to_ball(const Body& b, V3 v) {
        if (b.sweep.x == 0.0f && b.sweep.y == 0.0f)
            return clamp(dot(v, b.R.z), -b.sweep.z, b.sweep.z) * b.R.z - v;
        const V3 q = b.R.in(v);
        return b.R.out({clamp(q.x, -b.sweep.x, b.sweep.x), clamp(q.y, -b.sweep.y, b.sweep.y),
                        clamp(q.z, -b.sweep.z, b.sweep.z)}) -
               v;
    }

    const std::vector<Body>& body_;
    Grid grid_;
};

}  // namespace poise::pictures
