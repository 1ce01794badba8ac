// Colours: sky, ground, and surfaces under one lamp, the hemisphere and a little light from the
// eye.
#pragma once

#include "poise/render/hit.hpp"
#include "poise/render/occlusion.hpp"
#include "poise/render/shadow.hpp"

namespace poise::pictures {

// checks with sides of one, averaged over a pixel of wx by wy: 0 and 1, or between
POISE_INLINE float checker(float x, float y, float wx, float wy) {
    // distance to the nearest whole number: adding 3 * 2^22 rounds
    const auto saw = [](float s) { return std::abs(s - ((s + 12582912.0f) - 12582912.0f)); };
    const auto part = [&](float p, float w) {
        const float s = 0.5f * clamp(p, -1e6f, 1e6f), e = 0.25f * smaller(w, 4.0f);
        return (saw(s + e) - saw(s - e)) / (2.0f * e);
    };
    // four checks wide: i or j is 0, the pattern even
    const float i = part(x, wx), j = part(y, wy);
    return 0.5f - 0.5f * i * j;
}

// Parts of the lamp's and of the ambient light that arrive.
struct Light {
    float sun = 1.0f, open = 1.0f;
};

class Shading {
  public:
    Shading(const View& view, const std::vector<Body>& bodies)
        : view_(view), shadows_(view, bodies), occlusion_(bodies) {}

    POISE_INLINE V3 sky(V3 d) const {
        const float up = clamp(d.z, 0.0f, 1.0f);
        return mix(view_.sky[0], view_.sky[1], up * (2.0f - up));
    }

    // the ground's light, less what is taken from it: no branches here
    POISE_INLINE V3 ground_color(V3 d, float t, Light light) const {
        // what a pixel covers on the ground: longer along the view than across
        const float wide = t * view_.pixel * view_.checks;
        const float k = 1.0f / larger(std::abs(d.z), 1e-6f);
        const float away = 1.0f / std::sqrt(larger(1.0f - d.z * d.z, 1e-12f));
        const float hx = std::abs(d.x) * away, hy = std::abs(d.y) * away;
        const float even = checker((t * d.x + view_.phase_x) * view_.checks,
                                   (t * d.y + view_.phase_y) * view_.checks,
                                   wide * (hx * k + hy) + 1e-3f, wide * (hy * k + hx) + 1e-3f);
        // 0 from below
        const float facing = light.sun * view_.light.z.z * clamp(-1e20f * d.z, 0.0f, 1.0f);
        const V3 c = mix(view_.check[0], view_.check[1], even) *
                     (facing * view_.sun + light.open * view_.above);
        return hazy(c, t);
    }

    // what arrives at a point of the ground
    Light ground_light(V3 p) const {
        const V3 n{0.0f, 0.0f, p.z > 0.0f ? -1.0f : 1.0f};
        return {shadows_.sunlight(p, n, -1, true), occlusion_.open(p, n, -1)};
    }

    V3 ground(V3 d, float t) const { return ground_color(d, t, ground_light(t * d)); }

    // a body's colour where the ray t d meets it, and the normal there
    V3 surface(const Body& b, int index, V3 d, float t, int face, V3& n) const {
        const V3 p = t * d;
        n = normal(b, p, d, face);
        if (!b.solid()) return lit(b.color, n, d, 1.0f, 1.0f, 1.0f);
        float open = occlusion_.open(p, n, index);
        // the ground takes its share of what a body sees below
        if (view_.set.ground) {
            const float rise = larger(p.z - view_.ground, 0.0f);
            open *= 1.0f - 0.5f * (0.5f - 0.5f * n.z) / (1.0f + 12.0f * rise);
        }
        const bool field = b.kind == Kind::mesh && b.mesh->field();
        const bool floor = field || b.kind == Kind::plane;
        float sun = 0.0f;
        if (dot(n, view_.light.z) > 0.0f) sun = shadows_.sunlight(p, n, index, floor);
        if (!floor) return lit(b.color, n, d, sun, open, 1.0f);
        const float checks = field ? view_.checks : b.checks;
        V3 albedo = b.color;
        if (checks > 0.0f) {
            const V3 q = b.R.in(p - b.c);
            const float w = t * view_.pixel * checks / larger(std::abs(dot(d, n)), 1e-3f) + 1e-3f;
            const float even = checker(q.x * checks, q.y * checks, w, w);
            albedo = mix((field ? 0.86f : 0.72f) * albedo, albedo, even);
        }
        return hazy(lit(albedo, n, d, sun, open, 0.0f), t);
    }

  private:
    // what is far turns into sky
    POISE_INLINE V3 hazy(V3 c, float t) const {
        const float haze = 1.0f - view_.fade2 / (t * t + view_.fade2);
        return mix(c, view_.sky[0], haze * haze);
    }

    V3 lit(V3 albedo, V3 n, V3 d, float sun, float open, float gloss) const {
        const V3 light = view_.light.z;
        const float facing = larger(0.0f, dot(n, light));
        const V3 around = mix(view_.below, view_.above, 0.5f + 0.5f * n.z);
        const float edge = clamp(1.0f + dot(n, d), 0.0f, 1.0f);
        // a little light from the eye, so that nothing is black
        const float front = 0.14f * (1.0f - edge);
        V3 c = albedo * (facing * sun * view_.sun + open * around + V3{front, front, front});
        if (gloss > 0.0f) {
            float s = larger(0.0f, dot(n, unit(light - d)));
            s *= s, s *= s, s *= s, s *= s, s *= s;  // s^32
            const float rim = edge * edge * edge;
            c = c + (gloss * (0.25f * s * sun * (facing > 0.0f ? 1.0f : 0.0f))) * view_.sun +
                (gloss * 0.22f * rim * open) * view_.above;
        }
        return c;
    }

    const View& view_;
    Shadows shadows_;
    Occlusion occlusion_;
};

}  // namespace poise::pictures
