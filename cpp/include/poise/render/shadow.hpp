// Soft shadows, without rays where that is possible.
//
// The light is a disc of angular radius alpha at infinity, towards L. Along L every convex body is
// a flat figure: a disc, a strip with round ends, a hexagon, a polygon. A point whose signed
// distance to the figure is s, and whose way along L to the body is h, sees the part
//     smooth step from 0 at s = -w to 1 at s = w,   w = h tan(alpha)
// of the light, and of several bodies the darkest counts. A height field has a ceiling: over each
// of its points, the height from which the light is seen past all hills (ceiling.hpp). Other
// triangles have no figure; a few rays of the cone are cast against them.
#pragma once

#include "poise/render/ceiling.hpp"
#include "poise/render/figure.hpp"
#include "poise/render/grid.hpp"
#include "poise/render/scene.hpp"

namespace poise::pictures {

class Shadows {
  public:
    Shadows(const View& view, const std::vector<Body>& bodies) : view_(view), body_(bodies) {
        extra_.assign(bodies.size(), -1);
        for (std::size_t i = 0; i < bodies.size(); ++i) {
            const Body& b = bodies[i];
            if (b.kind != Kind::mesh) continue;
            if (b.mesh->field()) {
                extra_[i] = static_cast<std::int32_t>(ceiling_.size());
                ceiling_.emplace_back(b, view.light.z, view.soft);
            } else if (b.mesh->convex()) {
                extra_[i] = static_cast<std::int32_t>(figure_.size());
                figure_.emplace_back(b, view.light);
            }
        }
        fill_grid();
    }

    // part of the light that arrives at p, on a surface with the normal n. floor: it also takes
    // the shadows of what can be seen through
    float sunlight(V3 p, V3 n, int self, bool floor) const {
        const float a = dot(p, view_.light.x), b = dot(p, view_.light.y);
        float dark = 0.0f;
        for (const int i : grid_.at(a, b, 0.0f)) {
            const Body& body = body_[i];
            if (!floor && !body.solid()) continue;
            const float l = dot(p, view_.light.z);
            if (body.kind != Kind::mesh) {
                if (i != self) dark = larger(dark, shade(body, a, b, l));
            } else if (body.mesh->convex()) {
                if (i != self) dark = larger(dark, polygon_shade(i, a, b, l));
            } else if (body.mesh->field()) {
                dark = larger(dark, body.opacity * ceiling_[extra_[i]].shade(body, p));
            } else {
                dark = larger(dark, ray_shade(body, p + 2e-3f * n, a, b, l));
            }
            if (dark >= 1.0f) return 0.0f;
        }
        return 1.0f - dark;
    }

  private:
    // how far from its figure a body may still take light; low: the lowest body, along the light
    float widest(const Body& b, float low) const {
        float way = b.ll + b.radius - low;
        const auto floor = [&](V3 n, V3 p) {  // along the light to a plane below
            const float rise = dot(b.middle - p, n), k = dot(n, view_.light.z);
            return rise * k > 0.0f ? (std::abs(rise) + b.radius) / std::abs(k) : 0.0f;
        };
        // what lies below the ground does not matter
        if (view_.set.ground)
            way = smaller(way, floor({0, 0, 1}, {0, 0, view_.ground}) + 2.0f * b.radius);
        for (const Body& other : body_)
            if (other.kind == Kind::plane) way = larger(way, floor(other.R.z, other.c));
        return view_.soft * way;
    }

    void fill_grid() {
        const std::size_t n = body_.size();
        std::vector<V3> low(n), high(n);
        std::vector<float> wide(n);
        std::vector<std::int32_t> items;
        float lowest = kFar;
        for (const Body& b : body_)
            if (b.kind != Kind::plane) lowest = smaller(lowest, b.ll - b.radius);
        for (std::size_t i = 0; i < n; ++i) {
            const Body& b = body_[i];
            if (b.kind == Kind::plane) continue;
            items.push_back(static_cast<std::int32_t>(i));
            wide[i] = widest(b, lowest);
            const float r = b.radius + wide[i];
            low[i] = {b.la - r, b.lb - r, 0.0f};
            high[i] = {b.la + r, b.lb + r, 0.0f};
        }
        grid_.build(items, low, high, true, [&](int i, V3 p, float r) {
            return figure_distance(i, p.x, p.y) < wide[i] + r;
        });
    }

    // at least so far is (a, b) from the figure of a body
    float figure_distance(int i, float a, float b) const {
        const Body& body = body_[i];
        if (body.kind == Kind::box) return Strips(body, a, b).distance;
        const float x = a - body.la, y = b - body.lb;
        if (body.kind == Kind::mesh) return std::sqrt(x * x + y * y) - body.radius;
        const float s = clamp((x * body.ea + y * body.eb) * body.e2, -1.0f, 1.0f);
        const float dx = x - s * body.ea, dy = y - s * body.eb;
        return std::sqrt(dx * dx + dy * dy) - body.r;
    }

    // of a box: distance to its hexagon; gauge: how many times larger the hexagon through (a, b) is
    struct Strips {
        Strips(const Body& body, float a, float b) {
            const float x = a - body.la, y = b - body.lb;
            for (int i = 0; i < 3; ++i) {
                const float s = std::abs(x * body.na[i] + y * body.nb[i]);
                distance = larger(distance, s - body.nw[i]);
                gauge = larger(gauge, s / body.nw[i]);
                size = smaller(size, body.nw[i]);
            }
        }
        float distance = -kFar, gauge = 0.0f, size = kFar;
    };

    // part of the light that a body takes from a point (a, b, l) in the light's frame
    float shade(const Body& body, float a, float b, float l) const {
        if (body.kind == Kind::box) {
            const Strips strips(body, a, b);
            if (strips.distance > view_.soft * (body.ll + body.radius - l)) return 0.0f;
            const float way = way_to_box(body, a, b, l, strips.gauge);
            return penumbra(strips.distance, way, strips.size) * body.opacity;
        }
        const float x = a - body.la, y = b - body.lb;
        const float s = clamp((x * body.ea + y * body.eb) * body.e2, -1.0f, 1.0f);
        const float dx = x - s * body.ea, dy = y - s * body.eb;
        const float way = body.ll + s * body.el - l;
        if (way <= 0.0f) return 0.0f;
        const float wide = body.r + view_.soft * way;
        const float d2 = dx * dx + dy * dy;
        if (d2 >= wide * wide) return 0.0f;
        return penumbra(std::sqrt(d2) - body.r, way, body.r) * body.opacity;
    }

    POISE_INLINE float penumbra(float distance, float way, float size) const {
        if (way <= 0.0f) return 0.0f;
        const float w = view_.soft * way + 1e-4f;
        const float k = clamp(0.5f - 0.5f * distance / w, 0.0f, 1.0f);
        // what is smaller than the light's disc never hides all of it
        return k * k * (3.0f - 2.0f * k) * smaller(1.0f, 1.6f * size / w);
    }

    // along the light to a box, from beside it: as from the nearest point below it
    float way_to_box(const Body& body, float a, float b, float l, float gauge) const {
        const float k = gauge > 0.98f ? 0.98f / gauge : 1.0f;
        const V3 p = (k * (a - body.la)) * view_.light.x + (k * (b - body.lb)) * view_.light.y +
                     (l - body.ll) * view_.light.z;
        const V3 o = body.R.in(p), d = body.R.in(view_.light.z);
        float near = -kFar, far = kFar;
        const auto slab = [&](float at, float s, float h) {
            if (std::abs(s) < 1e-9f) return;
            const float middle = -at / s, wide = h / std::abs(s);
            near = larger(near, middle - wide);
            far = smaller(far, middle + wide);
        };
        slab(o.x, d.x, body.h.x);
        slab(o.y, d.y, body.h.y);
        slab(o.z, d.z, body.h.z);
        if (near > far || far <= 0.0f) return 0.0f;
        return larger(near, 0.5f * larger(far, 0.0f) * (near < 0.0f ? 1.0f : 0.0f));
    }

    float polygon_shade(int i, float a, float b, float l) const {
        const Body& body = body_[i];
        const Figure& figure = figure_[extra_[i]];
        const float x = a - body.la, y = b - body.lb, way = figure.height(x, y) - l;
        if (way <= 0.0f) return 0.0f;
        const float wide = body.radius + view_.soft * way;
        if (x * x + y * y >= wide * wide) return 0.0f;
        return penumbra(figure.distance(x, y, view_.soft * way), way, figure.size()) * body.opacity;
    }

    // the share of a few rays of the light's cone that meet triangles
    float ray_shade(const Body& body, V3 p, float a, float b, float l) const {
        static constexpr float disc[9][2] = {{0.80f, 0.0f},  {-0.40f, 0.69f}, {-0.40f, -0.69f},
                                             {0.35f, 0.20f}, {-0.35f, 0.20f}, {0.0f, -0.40f},
                                             {-0.80f, 0.0f}, {0.40f, -0.69f}, {0.40f, 0.69f}};
        const float da = a - body.la, db = b - body.lb, rise = body.ll + body.radius - l;
        const float wide = body.radius + view_.soft * larger(rise, 0.0f);
        if (rise <= 0.0f || da * da + db * db >= wide * wide) return 0.0f;
        const V3 o = body.R.in(p - body.c);
        int taken = 0;
        for (int k = 0; k < 9; ++k) {
            // three that agree speak for all
            if (k == 3 && taken % 3 == 0) return taken ? body.opacity : 0.0f;
            const V3 d = view_.light.z +
                         view_.soft * (disc[k][0] * view_.light.x + disc[k][1] * view_.light.y);
            float t = kFar;
            taken += body.mesh->hit(o, body.R.in(d), t, true) >= 0;
        }
        return body.opacity * static_cast<float>(taken) / 9.0f;
    }

    const View& view_;
    const std::vector<Body>& body_;
    std::vector<Figure> figure_;
    std::vector<Ceiling> ceiling_;
    std::vector<std::int32_t> extra_;  // of a mesh: its figure or ceiling
    Grid grid_;                        // who may take light, over the plane across it
};

}  // namespace poise::pictures
