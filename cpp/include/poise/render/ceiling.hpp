// The shadow of a height field on itself and on what stands on it.
//
// Over the point (x, y) the light is seen from heights above
//     H(x, y) = max over s > 0 of  z(x + s u) - s k,
// where u is the horizontal direction towards the light and k its slope. H is found once for each
// point of the grid, with the s that gave it; a shaded point only looks it up. H - z, seen across
// the light, is the signed distance of shadow.hpp, and s the way.
#pragma once

#include "poise/render/scene.hpp"

namespace poise::pictures {

class Ceiling {
  public:
    Ceiling(const Body& body, V3 light, float soft) : soft_(soft) {
        const Mesh& mesh = *body.mesh;
        const V3 l = body.R.in(light);
        const float flat = std::sqrt(l.x * l.x + l.y * l.y);
        nx_ = mesh.nx();
        ny_ = mesh.ny();
        low_ = mesh.vertices().front();
        bottom_ = mesh.low().z;
        high_ = mesh.vertices().back();
        const V3 side = high_ - low_;
        step_x_ = side.x / static_cast<float>(nx_ - 1);
        step_y_ = side.y / static_cast<float>(ny_ - 1);
        per_x_ = 1.0f / step_x_;
        per_y_ = 1.0f / step_y_;
        // from straight above nothing is dark, from below all is
        if (!(l.z > 1e-3f)) all_ = true;
        if (all_ || flat < 1e-3f) return;
        u_ = {l.x / flat, l.y / flat, l.z / flat};
        cosine_ = flat;
        height_.reserve(mesh.vertices().size());
        way_.reserve(mesh.vertices().size());
        for (const V3 v : mesh.vertices()) raise(mesh, v);
    }

    // part of the light that is taken from p
    float shade(const Body& body, V3 p) const {
        if (all_) return 1.0f;
        if (height_.empty()) return 0.0f;
        V3 q = body.R.in(p - body.c);
        int at;
        float s, t, beside = 0.0f;
        if (q.x < low_.x || q.y < low_.y || q.x > high_.x || q.y > high_.y) {
            beside = advance(q);
            if (beside == kFar) return 0.0f;
        } else if (gentle_ && q.z > bottom_) {
            return 0.0f;
        }
        place(q, at, s, t);
        const float w = width(blend(way_, at, s, t) + beside);
        const float k =
            clamp(0.5f + 0.5f * cosine_ * (blend(height_, at, s, t) - q.z) / w, 0.0f, 1.0f);
        return k * k * (3.0f - 2.0f * k);
    }

  private:
    // half the width of the half-shadow of a hill so far away, level
    float width(float way) const { return soft_ * way / cosine_ + 0.02f * step_x_; }

    // cell of a point, and where in it, 0..1
    void place(V3 q, int& at, float& s, float& t) const {
        const float x = clamp((q.x - low_.x) * per_x_, 0.0f, static_cast<float>(nx_ - 1));
        const float y = clamp((q.y - low_.y) * per_y_, 0.0f, static_cast<float>(ny_ - 1));
        const int i = std::min(static_cast<int>(x), nx_ - 2);
        const int j = std::min(static_cast<int>(y), ny_ - 2);
        at = i * ny_ + j;
        s = x - static_cast<float>(i);
        t = y - static_cast<float>(j);
    }

    float blend(const std::vector<float>& f, int at, float s, float t) const {
        const float a = f[at] + t * (f[at + 1] - f[at]);
        const float b = f[at + ny_] + t * (f[at + ny_ + 1] - f[at + ny_]);
        return a + s * (b - a);
    }

    // the field's height
    float surface(const std::vector<V3>& p, V3 q) const {
        int at;
        float s, t;
        place(q, at, s, t);
        const float a = p[at].z + t * (p[at + 1].z - p[at].z);
        const float b = p[at + ny_].z + t * (p[at + ny_ + 1].z - p[at + ny_].z);
        return a + s * (b - a);
    }

    // a point beside the field goes along the light until it is over it; returns how far, level
    float advance(V3& q) const {
        float near = 0.0f, far = kFar;
        const auto slab = [&](float at, float d, float low, float high) {
            if (std::abs(d) < 1e-6f) {
                if (at < low || at > high) far = -kFar;
                return;
            }
            const float a = (low - at) / d, b = (high - at) / d;
            near = larger(near, smaller(a, b));
            far = smaller(far, larger(a, b));
        };
        slab(q.x, u_.x, low_.x, high_.x);
        slab(q.y, u_.y, low_.y, high_.y);
        if (near > far) return kFar;
        q = q + near * u_;
        return near;
    }

    // the ceiling over a grid point; the highest points of a path lie where it crosses grid lines
    void raise(const Mesh& mesh, V3 v) {
        const float step[2] = {step_x_ / larger(std::abs(u_.x), 1e-9f),
                               step_y_ / larger(std::abs(u_.y), 1e-9f)};
        const float top = mesh.high().z;
        float best = -kFar, way = smaller(step[0], step[1]);
        for (const float apart : step)
            for (float s = apart; top - s * u_.z > best; s += apart) {
                const V3 q = v + s * u_;
                if (q.x < low_.x || q.y < low_.y || q.x > high_.x || q.y > high_.y) break;
                const float z = surface(mesh.vertices(), q) - s * u_.z;
                if (z <= best) continue;
                best = z;
                way = s;
            }
        // over the rim towards the light nothing stands
        if (best == -kFar) best = v.z - way * u_.z;
        gentle_ &= cosine_ * (v.z - best) > width(way);
        height_.push_back(best);
        way_.push_back(way);
    }

    int nx_ = 0, ny_ = 0;
    V3 low_{}, high_{};  // first and last point
    V3 u_{};             // level towards the light, its z the light's slope
    float step_x_ = 1.0f, step_y_ = 1.0f, per_x_ = 1.0f, per_y_ = 1.0f, cosine_ = 0.0f,
          soft_ = 0.0f;
    bool all_ = false;                 // the light comes from below
    bool gentle_ = true;               // no hill shadows another
    float bottom_ = 0.0f;              // lowest point
    std::vector<float> height_, way_;  // H, and the s that gave it
};

}  // namespace poise::pictures
