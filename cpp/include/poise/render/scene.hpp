// What is drawn, and from where: primitives and settings as given, and as the rays need them.
//
// Everything is taken relative to the eye in double and kept in float, so that a character a
// kilometre from the origin looks as it does there.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "poise/render/mesh.hpp"
#include "poise/render/vector.hpp"

namespace poise::pictures {

enum class Kind : std::int32_t { sphere, capsule, box, cylinder, plane, mesh };
constexpr int kKinds = 6;
constexpr float kReach = 4.5f;  // occlusion ends at so many radii

struct Primitive {
    Kind kind;
    double pos[3];       // center, or the origin of a mesh or plane [m]
    double quat[4];      // w x y z, unit
    double size[3];      // sphere (r), capsule and cylinder (r, half length), box (half sizes),
                         // plane (side of its checks, 0 = plain) [m]
    float color[3];      // sRGB
    float opacity;       // 1 = solid
    std::int32_t group;  // of a group of see-through primitives only the nearest surface shows
    const Mesh* mesh;    // of kind mesh
};

struct Settings {
    int width, height, samples;
    double eye[3], target[3], up[3];
    double fov;                           // vertical opening angle [rad]
    bool ground;                          // a checker ground at z = ground_z
    double ground_z;                      // [m]
    double checks;                        // side of its checks [m]
    double light[3];                      // towards the light
    double softness;                      // tan(alpha) of the light's disc
    double fade;                          // distance at which ground has half turned to sky [m]
    float ground_color[2][3], sky[2][3];  // sRGB; sky: at the horizon, straight up
};

// Camera, light and ground, from the eye.
struct View {
    explicit View(const Settings& s) : set(s) {
        place_camera();
        place_light();
        ground = static_cast<float>(set.ground_z - set.eye[2]);
        checks = static_cast<float>(1.0 / set.checks);
        // the eye's place in the pattern, which repeats after two checks
        phase_x = static_cast<float>(std::fmod(set.eye[0], 2 * set.checks));
        phase_y = static_cast<float>(std::fmod(set.eye[1], 2 * set.checks));
        fade2 = static_cast<float>(set.fade * set.fade);
        for (int i = 0; i < 2; ++i) {
            check[i] = linear(set.ground_color[i]);
            sky[i] = linear(set.sky[i]);
        }
        // lamps: together they leave a white wall that faces the sun just below white
        sun = {0.80f, 0.76f, 0.70f};
        above = {0.36f, 0.39f, 0.43f};
        below = 0.30f * mix(check[0], check[1], 0.5f);
    }

    // ray through the point (x, y) of the picture [pixels, from the upper left corner]; its part
    // along the camera's axis is one
    POISE_INLINE V3 ray(float x, float y) const {
        return corner + (x * pixel) * camera.x - (y * pixel) * camera.y;
    }

    Settings set;
    Frame camera{};                // right, up, forward
    V3 corner{};                   // through the upper left corner
    float tan_x = 0, tan_y = 0;    // half the picture at distance one
    float pixel = 0;               // a pixel at distance one
    Frame light{};                 // z towards the light
    float soft = 0;                // tan(alpha)
    float ground = 0, checks = 0;  // height [m]; checks per metre
    float phase_x = 0, phase_y = 0;
    float fade2 = 0;
    V3 check[2]{}, sky[2]{}, sun{}, above{}, below{};

  private:
    static void normalise(double* v) {
        const double n = std::sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
        for (int i = 0; i < 3; ++i) v[i] /= n;
    }

    void place_camera() {
        double f[3], r[3], u[3];
        const auto times = [](const double* a, const double* b, double* c) {
            for (int i = 0; i < 3; ++i)
                c[i] = a[(i + 1) % 3] * b[(i + 2) % 3] - a[(i + 2) % 3] * b[(i + 1) % 3];
        };
        for (int i = 0; i < 3; ++i) f[i] = set.target[i] - set.eye[i];
        normalise(f);
        times(f, set.up, r);
        normalise(r);
        times(r, f, u);
        camera = {vec(r), vec(u), vec(f)};
        tan_y = static_cast<float>(std::tan(set.fov / 2));
        tan_x = tan_y * static_cast<float>(set.width) / static_cast<float>(set.height);
        pixel = 2.0f * tan_y / static_cast<float>(set.height);
        corner = camera.z - tan_x * camera.x + tan_y * camera.y;
    }

    void place_light() {
        double l[3] = {set.light[0], set.light[1], set.light[2]};
        normalise(l);
        light.z = vec(l);
        const V3 aside = std::abs(light.z.z) < 0.9f ? V3{0, 0, 1} : V3{1, 0, 0};
        light.x = unit(cross(aside, light.z));
        light.y = cross(light.z, light.x);
        soft = static_cast<float>(set.softness);
    }
};

// A primitive as the rays meet it.
struct Body {
    Kind kind;
    Frame R;
    V3 c;  // center, from the eye
    V3 o;  // the eye in the body's frame
    V3 h;  // half sizes of a box, or of the box around a mesh
    float r, half;
    V3 color;  // linear
    float opacity;
    std::int32_t group;
    float checks;  // per metre
    const Mesh* mesh;
    // a ball around it
    V3 middle;
    float radius, front;  // front: no part is nearer to the eye
    float aside;          // a ray d with (middle . d)^2 below this passes by
    // a ball of radius `ball`, swept over the box of half sizes `sweep`: for occlusion
    V3 sweep;
    float ball, reach2;
    // seen along the light: middle (a, b), height l; half axis; a box's three strips
    float la, lb, ll, ea, eb, el, e2;
    float na[3], nb[3], nw[3];

    bool solid() const { return opacity >= 1.0f; }
};

// the ball around a body, and the swept ball it counts as for occlusion
inline void surround(Body& b) {
    const auto fill_box = [&](float part) {
        b.radius = length(b.h);
        b.ball = part * std::min({b.h.x, b.h.y, b.h.z});
        b.sweep = part * b.h - V3{b.ball, b.ball, b.ball};
    };
    switch (b.kind) {
        case Kind::sphere: b.radius = b.ball = b.r; break;
        case Kind::capsule:
            b.radius = b.r + b.half;
            b.ball = b.r;
            b.sweep = {0, 0, b.half};
            break;
        case Kind::box: fill_box(1.0f); break;
        case Kind::cylinder:
            b.radius = std::sqrt(b.r * b.r + b.half * b.half);
            b.ball = smaller(b.r, b.half);
            b.sweep = {0.8f * (b.r - b.ball), 0.8f * (b.r - b.ball), b.half - b.ball};
            break;
        case Kind::plane: b.radius = kFar; break;
        case Kind::mesh:
            b.middle = b.c + b.R.out(0.5f * (b.mesh->low() + b.mesh->high()));
            b.h = 0.5f * (b.mesh->high() - b.mesh->low());
            fill_box(0.85f);  // between a box and the ball in it
            for (float* s : {&b.sweep.x, &b.sweep.y, &b.sweep.z})
                if (*s < 0.1f * b.ball) *s = 0.0f;
            if (!b.mesh->convex()) b.ball = 0.0f;
            break;
    }
}

// the figure along the light
inline void flatten(Body& b, const Frame& light) {
    b.la = dot(b.middle, light.x);
    b.lb = dot(b.middle, light.y);
    b.ll = dot(b.middle, light.z);
    float half = b.kind == Kind::capsule || b.kind == Kind::cylinder ? b.half : 0.0f;
    if (b.kind == Kind::cylinder) {
        // its ends are ellipses; the strip with round ends of the same length stands for it
        const float k = std::abs(dot(b.R.z, light.z)), s = std::sqrt(larger(1 - k * k, 1e-6f));
        half = larger(half - b.r * (1.0f - k) / s, 0.0f);
    }
    b.ea = half * dot(b.R.z, light.x);
    b.eb = half * dot(b.R.z, light.y);
    b.el = half * dot(b.R.z, light.z);
    const float e2 = b.ea * b.ea + b.eb * b.eb;
    b.e2 = e2 > 1e-12f ? 1.0f / e2 : 0.0f;
    if (b.kind != Kind::box) return;
    const V3 axis[3] = {b.R.x, b.R.y, b.R.z};
    const float size[3] = {b.h.x, b.h.y, b.h.z};
    float u[3], v[3];
    for (int i = 0; i < 3; ++i) {
        u[i] = size[i] * dot(axis[i], light.x);
        v[i] = size[i] * dot(axis[i], light.y);
    }
    for (int i = 0; i < 3; ++i) {
        const float n = std::sqrt(u[i] * u[i] + v[i] * v[i]);
        // an edge that points at the light bounds nothing
        b.na[i] = n > 1e-6f ? -v[i] / n : 0.0f;
        b.nb[i] = n > 1e-6f ? u[i] / n : 0.0f;
        b.nw[i] = 0.0f;
        for (int k = 0; k < 3; ++k) b.nw[i] += std::abs(u[k] * b.na[i] + v[k] * b.nb[i]);
        if (n <= 1e-6f) b.nw[i] = kFar;
    }
}

inline Body make_body(const Primitive& p, const View& view) {
    Body b{};
    const double w = p.quat[0], x = p.quat[1], y = p.quat[2], z = p.quat[3];
    const double ax[3] = {1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y)};
    const double ay[3] = {2 * (x * y - w * z), 1 - 2 * (x * x + z * z), 2 * (y * z + w * x)};
    const double az[3] = {2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)};
    b.kind = p.kind;
    b.R = {vec(ax), vec(ay), vec(az)};
    double c[3];
    for (int i = 0; i < 3; ++i) c[i] = p.pos[i] - view.set.eye[i];
    b.c = vec(c);
    const double o[3] = {-(c[0] * ax[0] + c[1] * ax[1] + c[2] * ax[2]),
                         -(c[0] * ay[0] + c[1] * ay[1] + c[2] * ay[2]),
                         -(c[0] * az[0] + c[1] * az[1] + c[2] * az[2])};
    b.o = vec(o);
    b.h = vec(p.size);
    b.r = b.h.x;
    b.half = b.h.y;
    b.checks = b.h.x > 0 ? 1.0f / b.h.x : 0.0f;
    b.color = linear(p.color);
    b.opacity = p.opacity;
    b.group = p.group;
    b.mesh = p.mesh;
    b.middle = b.c;
    surround(b);
    const float reach = length(b.sweep) + kReach * b.ball;
    b.reach2 = reach * reach;
    // rounding must not hide a body
    b.front = 0.9999f * length(b.middle) - 1.0001f * b.radius;
    b.aside = 0.99999f * dot(b.middle, b.middle) - 1.0001f * b.radius * b.radius;
    flatten(b, view.light);
    return b;
}

}  // namespace poise::pictures
