// Pictures without GL: an analytic ray caster for spheres, capsules, boxes, cylinders, planes and
// triangles (meshes and height fields), on a checker ground under one light.
//
// Geometry. Everything is taken relative to the eye in double and kept in float, so a character a
// kilometre from the origin looks as it does there. A pixel's ray is t d with |d| = 1.
// Each primitive has a box on the screen; the screen is cut into tiles, each with the list of
// primitives whose boxes touch it, and of those whose shadow or occlusion reaches its ground.
//
// Shadows. The light is a disc of angular radius alpha at infinity, towards L. Along L every
// primitive is a flat figure: a disc, a strip with round ends, a hexagon. A point whose signed
// distance to the figure is s, and whose way along L to the primitive is h, sees the part
//     smooth step from 0 at s = -w to 1 at s = w,   w = h tan(alpha)
// of the light, and of several primitives the darkest counts: soft shadows with a single ray.
// Triangles have no such figure; a few rays of the cone are cast against them.
//
// Ambient light comes from the hemisphere: sky above, ground below. It is lessened by the solid
// angle of what is near: a ball of radius r at distance d in direction u covers (r/d)^2 (n . u).
//
// Smoothing. One sample per pixel; where a pixel and its neighbours show different things or
// clearly different colours, samples x samples replace it. The checker is filtered in closed form.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "poise/pack.hpp"  // POISE_INLINE

namespace poise::pictures {

// ---- vectors

struct V3 {
    float x, y, z;
};
POISE_INLINE V3 operator+(V3 a, V3 b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
POISE_INLINE V3 operator-(V3 a, V3 b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
POISE_INLINE V3 operator*(float k, V3 a) { return {k * a.x, k * a.y, k * a.z}; }
POISE_INLINE V3 operator*(V3 a, V3 b) { return {a.x * b.x, a.y * b.y, a.z * b.z}; }
POISE_INLINE float dot(V3 a, V3 b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
POISE_INLINE V3 cross(V3 a, V3 b) {
    return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}
POISE_INLINE float length(V3 a) { return std::sqrt(dot(a, a)); }

POISE_INLINE V3 mix(V3 a, V3 b, float k) { return a + k * (b - a); }
// not std::max: it returns a reference, which hides the two numbers from the vector units
POISE_INLINE float larger(float a, float b) { return a > b ? a : b; }
POISE_INLINE float smaller(float a, float b) { return a < b ? a : b; }
POISE_INLINE float clamp(float x, float low, float high) { return smaller(larger(x, low), high); }
POISE_INLINE V3 unit(V3 a) { return (1.0f / larger(length(a), 1e-30f)) * a; }
// rows of a rotation: R v with v in the frame whose axes are the columns
struct Frame {
    V3 x, y, z;  // the axes, in the world
    V3 out(V3 v) const { return v.x * x + v.y * y + v.z * z; }
    V3 in(V3 v) const { return {dot(v, x), dot(v, y), dot(v, z)}; }
};

constexpr float kNear = 1e-3f;  // nothing nearer than this is seen [m]
constexpr float kFar = std::numeric_limits<float>::infinity();

// ---- what is drawn

enum class Kind : std::int32_t { sphere, capsule, box, cylinder, plane, mesh };
constexpr int kKinds = 6;

// Triangles in their own frame, under a tree of boxes; made once, drawn often.
class Mesh {
  public:
    // vertices (nv, 3), faces (nf, 3); smooth: normals are blended between the faces; convex: it
    // never shadows itself
    Mesh(const double* vertices, std::int64_t nv, const std::int32_t* faces, std::int64_t nf,
         bool smooth, bool convex)
        : smooth_(smooth), convex_(convex) {
        for (std::int64_t i = 0; i < nv; ++i)
            vertex_.push_back({static_cast<float>(vertices[3 * i]),
                               static_cast<float>(vertices[3 * i + 1]),
                               static_cast<float>(vertices[3 * i + 2])});
        for (std::int64_t i = 0; i < nf; ++i)
            face_.push_back({faces[3 * i], faces[3 * i + 1], faces[3 * i + 2]});
        if (!face_.empty()) split(0, static_cast<std::int32_t>(face_.size()));
        if (smooth_) {
            normal_.assign(vertex_.size(), V3{0, 0, 0});
            for (const auto& f : face_) {
                const V3 n = cross(vertex_[f[1]] - vertex_[f[0]], vertex_[f[2]] - vertex_[f[0]]);
                for (const int k : f) normal_[k] = normal_[k] + n;
            }
        }
    }

    bool convex() const { return convex_; }
    V3 low() const { return node_.empty() ? V3{0, 0, 0} : node_[0].low; }
    V3 high() const { return node_.empty() ? V3{0, 0, 0} : node_[0].high; }

    // first triangle on the ray o + t d, near < t < far; -1 where there is none. any: the first
    // that is found, for shadows
    int hit(V3 o, V3 d, float& t, bool any) const {
        if (node_.empty()) return -1;
        const V3 inverse{1.0f / d.x, 1.0f / d.y, 1.0f / d.z};
        struct Open {
            std::int32_t node;
            float at;
        };
        Open stack[64];
        int found = -1, top = 0;
        stack[top++] = {0, entry(node_[0], o, inverse, t)};
        while (top > 0) {
            const Open next = stack[--top];
            if (!(next.at < t)) continue;
            const Node& node = node_[next.node];
            if (node.count == 0) {  // the nearer child first
                Open a{node.first, entry(node_[node.first], o, inverse, t)};
                Open b{node.first + 1, entry(node_[node.first + 1], o, inverse, t)};
                if (a.at < b.at) std::swap(a, b);
                if (a.at < t) stack[top++] = a;
                if (b.at < t) stack[top++] = b;
                continue;
            }
            for (int i = node.first; i < node.first + node.count; ++i)
                if (triangle(face_[i], o, d, t)) {
                    found = i;
                    if (any) return found;
                }
        }
        return found;
    }

    // unit normal at the point p of a face
    V3 normal(int face, V3 p) const {
        const auto& f = face_[face];
        const V3 a = vertex_[f[0]], u = vertex_[f[1]] - a, v = vertex_[f[2]] - a;
        const V3 n = cross(u, v);
        if (!smooth_) return unit(n);
        const float area = larger(dot(n, n), 1e-30f);
        const float i = dot(cross(p - a, v), n) / area, j = dot(cross(u, p - a), n) / area;
        return unit((1.0f - i - j) * unit(normal_[f[0]]) + i * unit(normal_[f[1]]) +
                    j * unit(normal_[f[2]]));
    }

  private:
    struct Node {
        V3 low, high;
        std::int32_t first, count;  // a leaf's faces; count = 0: its two children
    };

    // node of the faces begin .. end - 1, halved along its longest side
    void split(std::int32_t begin, std::int32_t end) {
        node_.push_back(bounds(begin, end));
        std::vector<std::int32_t> open{0};
        while (!open.empty()) {
            const std::int32_t at = open.back();
            open.pop_back();
            const Node node = node_[at];
            if (node.count <= 4) continue;
            const V3 side = node.high - node.low;
            const int axis = side.x >= side.y && side.x >= side.z ? 0 : side.y >= side.z ? 1 : 2;
            const std::int32_t first = node.first, last = first + node.count;
            const std::int32_t middle = first + node.count / 2;
            std::nth_element(
                face_.begin() + first, face_.begin() + middle, face_.begin() + last,
                [&](const auto& f, const auto& g) { return centre(f, axis) < centre(g, axis); });
            node_[at].first = static_cast<std::int32_t>(node_.size());
            node_[at].count = 0;
            open.push_back(static_cast<std::int32_t>(node_.size()));
            open.push_back(static_cast<std::int32_t>(node_.size()) + 1);
            node_.push_back(bounds(first, middle));
            node_.push_back(bounds(middle, last));
        }
    }

    float centre(const std::array<std::int32_t, 3>& f, int axis) const {
        const V3 c = vertex_[f[0]] + vertex_[f[1]] + vertex_[f[2]];
        return axis == 0 ? c.x : axis == 1 ? c.y : c.z;
    }

    Node bounds(std::int32_t begin, std::int32_t end) const {
        Node node{{kFar, kFar, kFar}, {-kFar, -kFar, -kFar}, begin, end - begin};
        for (std::int32_t i = begin; i < end; ++i)
            for (const int k : face_[i]) {
                const V3 v = vertex_[k];
                node.low = {smaller(node.low.x, v.x), smaller(node.low.y, v.y),
                            smaller(node.low.z, v.z)};
                node.high = {larger(node.high.x, v.x), larger(node.high.y, v.y),
                             larger(node.high.z, v.z)};
            }
        return node;
    }

    // where a ray enters a node's box, infinite where it passes by
    static float entry(const Node& node, V3 o, V3 inverse, float far) {
        float near = 0.0f;
        const auto slab = [&](float low, float high, float at, float k) {
            const float a = (low - at) * k, b = (high - at) * k;
            // in the plane of a face, 0 * inf is NaN: larger and smaller then keep what there was
            near = larger(smaller(a, b), near);
            far = smaller(larger(a, b), far);
        };
        slab(node.low.x, node.high.x, o.x, inverse.x);
        slab(node.low.y, node.high.y, o.y, inverse.y);
        slab(node.low.z, node.high.z, o.z, inverse.z);
        return near <= far * 1.000001f ? near * 0.999999f : kFar;
    }

    bool triangle(const std::array<std::int32_t, 3>& f, V3 o, V3 d, float& t) const {
        const V3 a = vertex_[f[0]], u = vertex_[f[1]] - a, v = vertex_[f[2]] - a;
        const V3 h = cross(d, v);
        const float det = dot(u, h);
        if (det == 0.0f) return false;
        const V3 s = o - a;
        const float i = dot(s, h) / det;
        const V3 k = cross(s, u);
        const float j = dot(d, k) / det;
        // a hair of overlap, so that no ray slips between two faces
        if (i < -1e-6f || j < -1e-6f || i + j > 1.000002f) return false;
        const float at = dot(v, k) / det;
        if (!(at > kNear && at < t)) return false;
        t = at;
        return true;
    }

    std::vector<V3> vertex_, normal_;
    std::vector<std::array<std::int32_t, 3>> face_;
    std::vector<Node> node_;
    bool smooth_, convex_;
};

struct Primitive {
    Kind kind;
    double pos[3];       // centre, or the origin of a mesh or plane [m]
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

// ---- colour

inline float linear(float s) {
    return s <= 0.04045f ? s / 12.92f : std::pow((s + 0.055f) / 1.055f, 2.4f);
}
inline V3 linear(const float* s) { return {linear(s[0]), linear(s[1]), linear(s[2])}; }

class Caster {
  public:
    Caster(const Settings& set, const std::vector<Primitive>& primitives) : set_(set) {
        place_camera();
        for (const Primitive& p : primitives) add(p);
        for (int i = 0; i < kCodes; ++i) {
            const float c = (static_cast<float>(i) + 0.5f) / kCodes;
            const float s =
                c <= 0.0031308f ? 12.92f * c : 1.055f * std::pow(c, 1.0f / 2.4f) - 0.055f;
            code_[i] = static_cast<std::uint8_t>(s * 255.0f + 0.5f);
        }
        find_neighbours();
        fill_tiles();
    }

    // rgb (height, width, 3); ids (height, width): index of the primitive, -1 the ground, -2 the
    // sky; depth (height, width): distance from the eye [m]. ids and depth of the nearest solid
    // thing; either may be null.
    void draw(std::uint8_t* rgb, std::int32_t* ids, float* depth) const {
        const int w = set_.width, h = set_.height;
        std::vector<std::uint32_t> shown(static_cast<std::size_t>(w) * h);
        for (int ty = 0; ty < tiles_y_; ++ty)
            for (int tx = 0; tx < tiles_x_; ++tx) {
                const Lists lists = lists_of(ty * tiles_x_ + tx);
                const bool plain = is_plain(ty * tiles_x_ + tx);
                for (int y = ty * kTile; y < std::min(h, (ty + 1) * kTile); ++y) {
                    if (plain) {
                        const std::size_t i = static_cast<std::size_t>(y) * w + tx * kTile;
                        plain_row(tx * kTile, y, rgb + 3 * i, ids ? ids + i : nullptr,
                                  depth ? depth + i : nullptr);
                        continue;
                    }
                    for (int x = tx * kTile; x < std::min(w, (tx + 1) * kTile); ++x) {
                        const Sample s = sample(static_cast<float>(x) + 0.5f,
                                                static_cast<float>(y) + 0.5f, lists);
                        const std::size_t i = static_cast<std::size_t>(y) * w + x;
                        encode(s.color, rgb + 3 * i);
                        shown[i] = s.shown;
                        if (ids) ids[i] = s.id;
                        if (depth) depth[i] = s.depth;
                    }
                }
            }
        if (set_.samples > 1) smooth(rgb, shown);
    }

  private:
    static constexpr int kTile = 16;
    static constexpr int kCodes = 4096;
    static constexpr int kLayers = 6;      // see-through groups in front of one another
    static constexpr float kReach = 4.5f;  // occlusion ends at so many radii

    struct Body {
        Kind kind;
        Frame R;
        V3 c;  // centre, from the eye
        V3 o;  // the eye in the body's frame
        V3 h;  // half sizes of a box
        float r, half;
        V3 color;  // linear
        float opacity;
        std::int32_t group;
        float checks;
        const Mesh* mesh;
        // a ball around it
        V3 middle;
        float radius, front;  // front: no part is nearer to the eye
        // a ball of radius `ball`, swept over the box of half sizes `sweep`: for occlusion
        V3 sweep;
        float ball, reach2;
        // seen along the light: middle (a, b), height l; half axis; a box's three strips
        float la, lb, ll, ea, eb, el, e2;
        float na[3], nb[3], nw[3];
    };

    struct Span {
        const std::int32_t* begin_;
        const std::int32_t* end_;
        const std::int32_t* begin() const { return begin_; }
        const std::int32_t* end() const { return end_; }
        bool empty() const { return begin_ == end_; }
    };
    struct Lists {
        Span seen, casting, near;
    };
    struct Sample {
        V3 color;
        std::uint32_t shown;  // differs where another thing, or another side of it, is seen
        std::int32_t id;
        float depth;
    };
    struct Layer {
        float t;
        int body, face;
    };
    // lists of indices, one per key, in one array
    struct Table {
        std::vector<std::int32_t> start, item;
        Span of(int key) const { return {item.data() + start[key], item.data() + start[key + 1]}; }
        void fill(int keys, const std::vector<std::pair<std::int32_t, std::int32_t>>& pairs) {
            start.assign(static_cast<std::size_t>(keys) + 1, 0);
            for (const auto& p : pairs) ++start[p.first + 1];
            for (int i = 0; i < keys; ++i) start[i + 1] += start[i];
            item.resize(pairs.size());
            std::vector<std::int32_t> at(start.begin(), start.end() - 1);
            for (const auto& p : pairs) item[at[p.first]++] = p.second;
        }
    };

    // ---- preparation

    void place_camera() {
        double f[3], r[3], u[3];
        const auto normalise = [](double* v) {
            const double n = std::sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
            for (int i = 0; i < 3; ++i) v[i] /= n;
        };
        const auto times = [](const double* a, const double* b, double* c) {
            for (int i = 0; i < 3; ++i)
                c[i] = a[(i + 1) % 3] * b[(i + 2) % 3] - a[(i + 2) % 3] * b[(i + 1) % 3];
        };
        for (int i = 0; i < 3; ++i) f[i] = set_.target[i] - set_.eye[i];
        normalise(f);
        times(f, set_.up, r);
        normalise(r);
        times(r, f, u);
        camera_ = {vec(r), vec(u), vec(f)};
        tan_y_ = static_cast<float>(std::tan(set_.fov / 2));
        tan_x_ = tan_y_ * static_cast<float>(set_.width) / static_cast<float>(set_.height);
        pixel_ = 2.0f * tan_y_ / static_cast<float>(set_.height);
        corner_ = camera_.z - tan_x_ * camera_.x + tan_y_ * camera_.y;
        ground_ = static_cast<float>(set_.ground_z - set_.eye[2]);
        checks_ = static_cast<float>(1.0 / set_.checks);
        // the eye's place in the pattern, which repeats after two checks
        phase_x_ = static_cast<float>(std::fmod(set_.eye[0], 2 * set_.checks));
        phase_y_ = static_cast<float>(std::fmod(set_.eye[1], 2 * set_.checks));
        double l[3] = {set_.light[0], set_.light[1], set_.light[2]};
        normalise(l);
        light_.z = vec(l);
        const V3 aside = std::abs(light_.z.z) < 0.9f ? V3{0, 0, 1} : V3{1, 0, 0};
        light_.x = unit(cross(aside, light_.z));
        light_.y = cross(light_.z, light_.x);
        soft_ = static_cast<float>(set_.softness);
        fade2_ = static_cast<float>(set_.fade * set_.fade);
        for (int i = 0; i < 2; ++i) {
            check_[i] = linear(set_.ground_color[i]);
            sky_[i] = linear(set_.sky[i]);
        }
        // lamps: together they leave a white wall that faces the sun just below white
        sun_ = {0.80f, 0.76f, 0.70f};
        above_ = {0.36f, 0.39f, 0.43f};
        below_ = 0.30f * mix(check_[0], check_[1], 0.5f);
    }

    static V3 vec(const double* v) {
        return {static_cast<float>(v[0]), static_cast<float>(v[1]), static_cast<float>(v[2])};
    }

    void add(const Primitive& p) {
        Body b{};
        const double w = p.quat[0], x = p.quat[1], y = p.quat[2], z = p.quat[3];
        const double ax[3] = {1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y)};
        const double ay[3] = {2 * (x * y - w * z), 1 - 2 * (x * x + z * z), 2 * (y * z + w * x)};
        const double az[3] = {2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)};
        b.kind = p.kind;
        b.R = {vec(ax), vec(ay), vec(az)};
        const double c[3] = {p.pos[0] - set_.eye[0], p.pos[1] - set_.eye[1],
                             p.pos[2] - set_.eye[2]};
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
        flatten(b);
        body_.push_back(b);
    }

    // the ball around a body, and the swept ball it counts as for occlusion
    static void surround(Body& b) {
        switch (b.kind) {
            case Kind::sphere: b.radius = b.ball = b.r; break;
            case Kind::capsule:
                b.radius = b.r + b.half;
                b.ball = b.r;
                b.sweep = {0, 0, b.half};
                break;
            case Kind::box:
                b.radius = length(b.h);
                b.ball = std::min({b.h.x, b.h.y, b.h.z});
                b.sweep = b.h - V3{b.ball, b.ball, b.ball};
                break;
            case Kind::cylinder:
                b.radius = std::sqrt(b.r * b.r + b.half * b.half);
                b.ball = smaller(b.r, b.half);
                b.sweep = {0.8f * (b.r - b.ball), 0.8f * (b.r - b.ball), b.half - b.ball};
                break;
            case Kind::plane: b.radius = kFar; break;
            case Kind::mesh:
                b.middle = b.c + b.R.out(0.5f * (b.mesh->low() + b.mesh->high()));
                b.h = 0.5f * (b.mesh->high() - b.mesh->low());
                b.radius = length(b.h);
                break;
        }
    }

    // the figure along the light
    void flatten(Body& b) const {
        b.la = dot(b.middle, light_.x);
        b.lb = dot(b.middle, light_.y);
        b.ll = dot(b.middle, light_.z);
        float half = b.kind == Kind::capsule || b.kind == Kind::cylinder ? b.half : 0.0f;
        if (b.kind == Kind::cylinder) {
            // its ends are ellipses; the strip with round ends of the same length stands for it
            const float k = std::abs(dot(b.R.z, light_.z)), s = std::sqrt(larger(1 - k * k, 1e-6f));
            half = larger(half - b.r * (1.0f - k) / s, 0.0f);
        }
        b.ea = half * dot(b.R.z, light_.x);
        b.eb = half * dot(b.R.z, light_.y);
        b.el = half * dot(b.R.z, light_.z);
        const float e2 = b.ea * b.ea + b.eb * b.eb;
        b.e2 = e2 > 1e-12f ? 1.0f / e2 : 0.0f;
        if (b.kind != Kind::box) return;
        const V3 axis[3] = {b.R.x, b.R.y, b.R.z};
        const float size[3] = {b.h.x, b.h.y, b.h.z};
        float u[3], v[3];
        for (int i = 0; i < 3; ++i) {
            u[i] = size[i] * dot(axis[i], light_.x);
            v[i] = size[i] * dot(axis[i], light_.y);
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

    // which solid bodies may shadow (casters) or occlude (near) each body
    void find_neighbours() {
        const int n = static_cast<int>(body_.size());
        float high = -kFar, low = kFar, spread_a = 0.0f, spread_b = 0.0f;
        std::vector<std::int32_t> order;
        for (int i = 0; i < n; ++i) {
            const Body& b = body_[i];
            if (b.kind == Kind::plane) continue;
            order.push_back(i);
            high = larger(high, b.ll + b.radius);
            low = smaller(low, b.ll - b.radius);
            spread_a = larger(spread_a, std::abs(b.la - body_[order[0]].la));
            spread_b = larger(spread_b, std::abs(b.lb - body_[order[0]].lb));
        }
        const float widest = order.empty() ? 0.0f : soft_ * (high - low);
        const auto along = [&](int i) { return spread_a > spread_b ? body_[i].la : body_[i].lb; };
        const auto reach = [&](int i) {
            return body_[i].radius + larger(widest, (kReach - 1.0f) * body_[i].ball);
        };
        std::sort(order.begin(), order.end(), [&](int i, int j) {
            return along(i) - reach(i) < along(j) - reach(j) ||
                   (along(i) - reach(i) == along(j) - reach(j) && i < j);
        });
        std::vector<std::pair<std::int32_t, std::int32_t>> casting, near;
        const auto relate = [&](int i, int j) {  // j acts on i
            const Body &a = body_[i], &b = body_[j];
            if (b.opacity < 1.0f || a.opacity < 1.0f) return;
            const float da = a.la - b.la, db = a.lb - b.lb;
            const float rise = b.ll + b.radius - (a.ll - a.radius);
            const float wide = a.radius + b.radius + soft_ * larger(rise, 0.0f);
            if (rise > 0.0f && da * da + db * db < wide * wide) casting.emplace_back(i, j);
            const V3 d = a.middle - b.middle;
            const float far = a.radius + b.radius + (kReach - 1.0f) * b.ball;
            if (b.ball > 0.0f && dot(d, d) < far * far) near.emplace_back(i, j);
        };
        for (std::size_t i = 0; i < order.size(); ++i)
            for (std::size_t j = i + 1; j < order.size(); ++j) {
                const int a = order[i], b = order[j];
                if (along(b) - reach(b) > along(a) + reach(a)) break;
                relate(a, b);
                relate(b, a);
            }
        // planes receive from all
        for (int i = 0; i < n; ++i)
            if (body_[i].kind == Kind::plane)
                for (const int j : order)
                    if (body_[j].opacity >= 1.0f) {
                        casting.emplace_back(i, j);
                        if (body_[j].ball > 0.0f) near.emplace_back(i, j);
                    }
        // a mesh may shadow itself
        for (int i = 0; i < n; ++i)
            if (body_[i].kind == Kind::mesh && body_[i].opacity >= 1.0f && !body_[i].mesh->convex())
                casting.emplace_back(i, i);
        casting_.fill(n, casting);
        near_.fill(n, near);
    }

    // ---- tiles

    struct Rect {
        float x0 = kFar, y0 = kFar, x1 = -kFar, y1 = -kFar;  // in pixels
        bool all = false;
    };

    // widen a rectangle by the picture of a ball
    void cover(Rect& rect, V3 p, float r) const {
        const V3 c = camera_.in(p);
        if (c.z - r < kNear) {
            rect.all = true;
            return;
        }
        const float near = 1.0f / (c.z - r), far = 1.0f / (c.z + r);
        const float kx = static_cast<float>(set_.width) / (2.0f * tan_x_);
        const float ky = static_cast<float>(set_.height) / (2.0f * tan_y_);
        const float mx = 0.5f * static_cast<float>(set_.width);
        const float my = 0.5f * static_cast<float>(set_.height);
        const float left = c.x - r, right = c.x + r, down = c.y - r, up = c.y + r;
        rect.x0 = smaller(rect.x0, mx + kx * smaller(left * near, left * far));
        rect.x1 = larger(rect.x1, mx + kx * larger(right * near, right * far));
        rect.y0 = smaller(rect.y0, my - ky * larger(up * near, up * far));
        rect.y1 = larger(rect.y1, my - ky * smaller(down * near, down * far));
    }

    // points and a radius: the body lies in the hull of the balls around them
    static int hull(const Body& b, V3* point, float& r) {
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

    void mark(const Rect& rect, int i,
              std::vector<std::pair<std::int32_t, std::int32_t>>& pairs) const {
        int x0 = 0, y0 = 0, x1 = tiles_x_ - 1, y1 = tiles_y_ - 1;
        if (!rect.all) {
            const auto tile = [](float p, int most) {
                // a pixel of slack for rounding
                return static_cast<int>(
                    clamp(std::floor(p / kTile), -1.0f, static_cast<float>(most)));
            };
            x0 = std::max(0, tile(rect.x0 - 1.0f, tiles_x_));
            y0 = std::max(0, tile(rect.y0 - 1.0f, tiles_y_));
            x1 = std::min(x1, tile(rect.x1 + 1.0f, tiles_x_));
            y1 = std::min(y1, tile(rect.y1 + 1.0f, tiles_y_));
        }
        for (int y = y0; y <= y1; ++y)
            for (int x = x0; x <= x1; ++x) pairs.emplace_back(y * tiles_x_ + x, i);
    }

    void fill_tiles() {
        tiles_x_ = (set_.width + kTile - 1) / kTile;
        tiles_y_ = (set_.height + kTile - 1) / kTile;
        std::vector<std::pair<std::int32_t, std::int32_t>> seen, casting, near;
        // front to back, so that a ray may stop early
        std::vector<std::int32_t> order(body_.size());
        for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int32_t>(i);
        std::stable_sort(order.begin(), order.end(),
                         [&](int i, int j) { return body_[i].front < body_[j].front; });
        for (const int i : order) {
            const Body& b = body_[i];
            V3 point[8];
            float r;
            Rect box, shadow, around;
            if (b.kind == Kind::plane) {
                box.all = true;
                mark(box, i, seen);
                continue;
            }
            const int n = hull(b, point, r);
            for (int k = 0; k < n; ++k) cover(box, point[k], r);
            mark(box, i, seen);
            if (!set_.ground) continue;
            float lowest = kFar, highest = -kFar;
            for (int k = 0; k < n; ++k) {
                const float rise = point[k].z - ground_;
                lowest = smaller(lowest, rise - r);
                highest = larger(highest, rise + r);
                const float way = larger(rise, 0.0f) / light_.z.z;
                const V3 foot{point[k].x - way * light_.z.x, point[k].y - way * light_.z.y,
                              ground_};
                const float wide = (r + soft_ * (way + 2.0f * b.radius)) / light_.z.z;
                for (int s = 0; s < 4; ++s)
                    cover(shadow, foot + V3{s & 1 ? wide : -wide, s & 2 ? wide : -wide, 0.0f},
                          0.0f);
            }
            if (highest > 0.0f) mark(shadow, i, casting);
            const float far = (kReach - 1.0f) * b.ball + b.radius;
            if (b.ball > 0.0f && b.opacity >= 1.0f && lowest < kReach * b.ball && highest > 0.0f) {
                for (int s = 0; s < 4; ++s)
                    cover(around,
                          V3{b.c.x + (s & 1 ? far : -far), b.c.y + (s & 2 ? far : -far), ground_},
                          0.0f);
                mark(around, i, near);
            }
        }
        const int tiles = tiles_x_ * tiles_y_;
        tile_seen_.fill(tiles, seen);
        tile_casting_.fill(tiles, casting);
        tile_near_.fill(tiles, near);
    }

    Lists lists_of(int tile) const {
        return {tile_seen_.of(tile), tile_casting_.of(tile), tile_near_.of(tile)};
    }

    // nothing but ground and sky, and no shadow on it
    bool is_plain(int tile) const {
        return tile_seen_.of(tile).empty() && tile_casting_.of(tile).empty() &&
               tile_near_.of(tile).empty();
    }

    // ---- rays from the eye

    static float hit_sphere(V3 c, float r, V3 d) {
        const float b = dot(c, d);
        const V3 q = c - b * d;  // from the ray to the centre
        const float h = r * r - dot(q, q);
        return h < 0.0f ? kFar : b - std::sqrt(h);
    }

    // the wall of an endless cylinder: |c . (d x a)| is the distance of the lines times |d x a|
    static float hit_wall(const Body& b, V3 d, float& y, float& root) {
        const V3 a = b.R.z, n = cross(d, a);
        const float n2 = dot(n, n), s = dot(b.c, n), k = dot(d, a), m = dot(b.c, a);
        const float h = n2 * b.r * b.r - s * s;
        if (h < 0.0f) return kFar;
        if (n2 < 1e-12f) {
            y = k > 0.0f ? -kFar : kFar;
            root = kFar;
            return 0.0f;
        }
        root = std::sqrt(h) / n2;
        const float t = (dot(b.c, d) - m * k) / n2 - root;
        y = t * k - m;
        return t;
    }

    static float hit_capsule(const Body& b, V3 d) {
        float y = 0.0f, root = 0.0f;
        const float t = hit_wall(b, d, y, root);
        if (t == kFar || std::abs(y) <= b.half) return t;
        return hit_sphere(b.c + (y > 0.0f ? b.half : -b.half) * b.R.z, b.r, d);
    }

    static float hit_cylinder(const Body& b, V3 d, int& face) {
        float y = 0.0f, root = 0.0f;
        const float t = hit_wall(b, d, y, root);
        face = 0;
        if (t == kFar || std::abs(y) <= b.half) return t;
        const float k = dot(d, b.R.z), end = y > 0.0f ? b.half : -b.half;
        if (k * end >= 0.0f) return kFar;  // its back
        face = y > 0.0f ? 1 : 2;
        const float at = (dot(b.c, b.R.z) + end) / k;
        return at <= t + 2.0f * root ? at : kFar;
    }

    static float hit_box(const Body& b, V3 d, int& face) {
        const V3 l = b.R.in(d);
        float near = -kFar, far = kFar;
        const auto slab = [&](float o, float k, float h, int axis) {
            if (k == 0.0f) {
                if (std::abs(o) > h) far = -kFar;
                return;
            }
            const float inverse = 1.0f / k;
            const float middle = -o * inverse, wide = h * std::abs(inverse);
            if (middle - wide > near) {
                near = middle - wide;
                face = 2 * axis + (k > 0.0f);
            }
            far = smaller(far, middle + wide);
        };
        slab(b.o.x, l.x, b.h.x, 0);
        slab(b.o.y, l.y, b.h.y, 1);
        slab(b.o.z, l.z, b.h.z, 2);
        return near <= far ? near : kFar;
    }

    // distance along the ray, infinite where the body is missed; t: look no further
    static float hit(const Body& b, V3 d, float t, int& face) {
        face = 0;
        switch (b.kind) {
            case Kind::sphere: return hit_sphere(b.c, b.r, d);
            case Kind::capsule: return hit_capsule(b, d);
            case Kind::box: return hit_box(b, d, face);
            case Kind::cylinder: return hit_cylinder(b, d, face);
            case Kind::plane: {
                const float k = dot(d, b.R.z);
                return k == 0.0f ? kFar : dot(b.c, b.R.z) / k;
            }
            case Kind::mesh: {
                face = b.mesh->hit(b.o, b.R.in(d), t, false);
                return face < 0 ? kFar : t;
            }
        }
        return kFar;
    }

    V3 normal(const Body& b, V3 p, V3 d, int face) const {
        switch (b.kind) {
            case Kind::sphere: return unit(p - b.c);
            case Kind::capsule: {
                const float y = clamp(dot(p - b.c, b.R.z), -b.half, b.half);
                return unit(p - b.c - y * b.R.z);
            }
            case Kind::box: {
                const V3 n = face < 2 ? b.R.x : face < 4 ? b.R.y : b.R.z;
                return face & 1 ? -1.0f * n : n;
            }
            case Kind::cylinder:
                if (face) return face == 1 ? b.R.z : -1.0f * b.R.z;
                return unit(p - b.c - dot(p - b.c, b.R.z) * b.R.z);
            case Kind::plane: return dot(b.R.z, d) > 0.0f ? -1.0f * b.R.z : b.R.z;
            case Kind::mesh: {
                const V3 n = b.R.out(b.mesh->normal(face, b.R.in(p - b.c)));
                return dot(n, d) > 0.0f ? -1.0f * n : n;
            }
        }
        return {0, 0, 1};
    }

    // ---- light

    // part of the light that a body takes from a point (a, b, l) in the light's frame
    float shade(const Body& body, float a, float b, float l) const {
        float distance, way, size;
        if (body.kind == Kind::box) {
            const float x = a - body.la, y = b - body.lb;
            float gauge = 0.0f;
            distance = -kFar;
            size = kFar;
            for (int i = 0; i < 3; ++i) {
                const float s = std::abs(x * body.na[i] + y * body.nb[i]);
                distance = larger(distance, s - body.nw[i]);
                gauge = larger(gauge, s / body.nw[i]);
                size = smaller(size, body.nw[i]);
            }
            if (distance > soft_ * (body.ll + body.radius - l)) return 0.0f;
            way = way_to_box(body, a, b, l, gauge);
        } else {
            const float x = a - body.la, y = b - body.lb;
            const float s = clamp((x * body.ea + y * body.eb) * body.e2, -1.0f, 1.0f);
            const float dx = x - s * body.ea, dy = y - s * body.eb;
            way = body.ll + s * body.el - l;
            if (way <= 0.0f) return 0.0f;
            const float wide = body.r + soft_ * way;
            const float d2 = dx * dx + dy * dy;
            if (d2 >= wide * wide) return 0.0f;
            distance = std::sqrt(d2) - body.r;
            size = body.r;
        }
        if (way <= 0.0f) return 0.0f;
        const float w = soft_ * way + 1e-4f;
        const float k = clamp(0.5f - 0.5f * distance / w, 0.0f, 1.0f);
        // what is smaller than the light's disc never hides all of it
        return k * k * (3.0f - 2.0f * k) * smaller(1.0f, 1.6f * size / w) * body.opacity;
    }

    // along the light to a box, from beside it: as from the nearest point below it
    float way_to_box(const Body& body, float a, float b, float l, float gauge) const {
        const float k = gauge > 0.98f ? 0.98f / gauge : 1.0f;
        const V3 p = (k * (a - body.la)) * light_.x + (k * (b - body.lb)) * light_.y +
                     (l - body.ll) * light_.z;
        const V3 o = body.R.in(p), d = body.R.in(light_.z);
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

    // part of the light that arrives at p
    float sunlight(V3 p, V3 n, Span casting, int self) const {
        const float a = dot(p, light_.x), b = dot(p, light_.y), l = dot(p, light_.z);
        float dark = 0.0f;
        for (const int i : casting) {
            const Body& body = body_[i];
            if (body.kind == Kind::mesh)
                dark = larger(dark, mesh_shade(body, p + 2e-3f * n, a, b, l));
            else if (i != self) dark = larger(dark, shade(body, a, b, l));
            if (dark >= 1.0f) return 0.0f;
        }
        return 1.0f - dark;
    }

    // the share of a few rays of the light's cone that meet triangles
    float mesh_shade(const Body& body, V3 p, float a, float b, float l) const {
        static constexpr float disc[9][2] = {{0.80f, 0.0f},  {-0.40f, 0.69f}, {-0.40f, -0.69f},
                                             {0.35f, 0.20f}, {-0.35f, 0.20f}, {0.0f, -0.40f},
                                             {-0.80f, 0.0f}, {0.40f, -0.69f}, {0.40f, 0.69f}};
        const float da = a - body.la, db = b - body.lb, rise = body.ll + body.radius - l;
        const float wide = body.radius + soft_ * larger(rise, 0.0f);
        if (rise <= 0.0f || da * da + db * db >= wide * wide) return 0.0f;
        const V3 o = body.R.in(p - body.c);
        int taken = 0;
        for (int k = 0; k < 9; ++k) {
            // three that agree speak for all
            if (k == 3 && taken % 3 == 0) return taken ? body.opacity : 0.0f;
            const V3 d = light_.z + soft_ * (disc[k][0] * light_.x + disc[k][1] * light_.y);
            float t = kFar;
            taken += body.mesh->hit(o, body.R.in(d), t, true) >= 0;
        }
        return body.opacity * static_cast<float>(taken) / 9.0f;
    }

    // part of the ambient light that arrives at p
    float openness(V3 p, V3 n, Span near, int self) const {
        float open = 1.0f;
        for (const int i : near) {
            if (i == self) continue;
            const Body& b = body_[i];
            const V3 v = p - b.c;
            if (dot(v, v) > b.reach2 || dot(n, v) >= b.radius) continue;  // too far, or behind
            V3 u;                                                         // to the ball, from p
            if (b.sweep.x == 0.0f && b.sweep.y == 0.0f) {
                const float y = clamp(dot(v, b.R.z), -b.sweep.z, b.sweep.z);
                u = y * b.R.z - v;
            } else {
                const V3 q = b.R.in(v);
                u = b.R.out({clamp(q.x, -b.sweep.x, b.sweep.x), clamp(q.y, -b.sweep.y, b.sweep.y),
                             clamp(q.z, -b.sweep.z, b.sweep.z)}) -
                    v;
            }
            const float up = dot(n, u), d2 = dot(u, u);
            if (up <= 0.0f || d2 > kReach * kReach * b.ball * b.ball) continue;
            const float d = std::sqrt(larger(d2, b.ball * b.ball));
            const float cover = b.ball * b.ball / (d * d) - 1.0f / (kReach * kReach);
            open *= 1.0f - 0.9f * cover * up / d;
        }
        return open;
    }

    V3 lit(V3 albedo, V3 n, V3 d, float sun, float open, float gloss) const {
        const float facing = larger(0.0f, dot(n, light_.z));
        const V3 around = mix(below_, above_, 0.5f + 0.5f * n.z);
        const float edge = clamp(1.0f + dot(n, d), 0.0f, 1.0f);
        // a little light from the eye, so that nothing is black
        const float front = 0.14f * (1.0f - edge);
        V3 c = albedo * (facing * sun * sun_ + open * around + V3{front, front, front});
        if (gloss > 0.0f) {
            float s = larger(0.0f, dot(n, unit(light_.z - d)));
            s *= s, s *= s, s *= s, s *= s, s *= s;  // s^32
            const float rim = edge * edge * edge;
            c = c + (gloss * (0.25f * s * sun * (facing > 0.0f ? 1.0f : 0.0f))) * sun_ +
                (gloss * 0.22f * rim * open) * above_;
        }
        return c;
    }

    POISE_INLINE V3 sky(V3 d) const {
        const float up = clamp(d.z, 0.0f, 1.0f);
        return mix(sky_[0], sky_[1], up * (2.0f - up));
    }

    // checks with sides of one, averaged over a pixel of wx by wy
    POISE_INLINE static float checker(float x, float y, float wx, float wy) {
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

    // the ground's light, less what is taken from it: no branches here
    POISE_INLINE V3 ground_color(V3 d, float t, float sun, float open) const {
        // what a pixel covers on the ground: longer along the view than across
        const float wide = t * pixel_ * checks_, k = 1.0f / larger(std::abs(d.z), 1e-6f);
        const float away = 1.0f / std::sqrt(larger(1.0f - d.z * d.z, 1e-12f));
        const float hx = std::abs(d.x) * away, hy = std::abs(d.y) * away;
        const float even = checker((t * d.x + phase_x_) * checks_, (t * d.y + phase_y_) * checks_,
                                   wide * (hx * k + hy) + 1e-3f, wide * (hy * k + hx) + 1e-3f);
        const float facing = sun * light_.z.z * clamp(-1e20f * d.z, 0.0f, 1.0f);  // 0 from below
        const V3 c = mix(check_[0], check_[1], even) * (facing * sun_ + open * above_);
        const float haze = 1.0f - fade2_ / (t * t + fade2_);
        return mix(c, sky_[0], haze * haze);
    }

    V3 ground(V3 d, float t, const Lists& lists) const {
        const V3 p = t * d, n{0.0f, 0.0f, d.z > 0.0f ? -1.0f : 1.0f};
        const float sun = lists.casting.empty() ? 1.0f : sunlight(p, n, lists.casting, -1);
        const float open = lists.near.empty() ? 1.0f : openness(p, n, lists.near, -1);
        return ground_color(d, t, sun, open);
    }

    V3 surface(const Body& b, int index, V3 d, float t, int face, V3& n) const {
        const V3 p = t * d;
        n = normal(b, p, d, face);
        if (b.opacity < 1.0f) return lit(b.color, n, d, 1.0f, 1.0f, 1.0f);
        float open = openness(p, n, near_.of(index), index);
        // the ground takes its share of what a body sees below
        if (set_.ground) {
            const float rise = larger(p.z - ground_, 0.0f);
            open *= 1.0f - 0.5f * (0.5f - 0.5f * n.z) / (1.0f + 12.0f * rise);
        }
        float sun = 0.0f;
        if (dot(n, light_.z) > 0.0f) sun = sunlight(p, n, casting_.of(index), index);
        if (b.kind != Kind::plane) return lit(b.color, n, d, sun, open, 1.0f);
        V3 albedo = b.color;
        if (b.checks > 0.0f) {
            const V3 q = b.R.in(p - b.c);
            const float w = t * pixel_ * b.checks / larger(std::abs(dot(d, n)), 1e-3f) + 1e-3f;
            albedo = mix(0.72f * albedo, albedo, checker(q.x * b.checks, q.y * b.checks, w, w));
        }
        const float haze = t * t / (t * t + fade2_);
        return mix(lit(albedo, n, d, sun, open, 0.0f), sky_[0], haze * haze);
    }

    // ray through the point (x, y) of the picture [pixels, from the upper left corner]
    POISE_INLINE V3 ray(float x, float y) const {
        return unit(corner_ + (x * pixel_) * camera_.x - (y * pixel_) * camera_.y);
    }

    // a row of a tile that shows ground and sky only: without branches, for the vector units
    void plain_row(int x0, int y, std::uint8_t* rgb, std::int32_t* ids, float* depth) const {
        float dx[kTile], dy[kTile], dz[kTile], far[kTile], on[kTile];
        float red[kTile], green[kTile], blue[kTile];
        const float row = static_cast<float>(y) + 0.5f;
        for (int k = 0; k < kTile; ++k) {
            const V3 d = ray(static_cast<float>(x0 + k) + 0.5f, row);
            dx[k] = d.x;
            dy[k] = d.y;
            dz[k] = d.z;
        }
        const float rise = set_.ground ? ground_ : 0.0f;
        for (int k = 0; k < kTile; ++k) {
            const float t = rise / dz[k];
            far[k] = t > kNear ? t : kFar;
            on[k] = far[k] < kFar ? 1.0f : 0.0f;
        }
        for (int k = 0; k < kTile; ++k) {
            const V3 c = ground_color({dx[k], dy[k], dz[k]}, smaller(far[k], 1e9f), 1.0f, 1.0f);
            red[k] = c.x;
            green[k] = c.y;
            blue[k] = c.z;
        }
        for (int k = 0; k < kTile; ++k) {
            const V3 c = mix(sky({dx[k], dy[k], dz[k]}), {red[k], green[k], blue[k]}, on[k]);
            red[k] = c.x;
            green[k] = c.y;
            blue[k] = c.z;
        }
        const int count = std::min(kTile, set_.width - x0);
        for (int k = 0; k < count; ++k) encode({red[k], green[k], blue[k]}, rgb + 3 * k);
        if (ids)
            for (int k = 0; k < count; ++k) ids[k] = far[k] < kFar ? -1 : -2;
        if (depth) std::copy(far, far + count, depth);
    }

    Sample sample(float x, float y, const Lists& lists) const {
        const V3 d = ray(x, y);
        Layer layer[kLayers];
        int layers = 0;
        Layer first{kFar, -2, 0};
        if (set_.ground) {
            const float t = ground_ / d.z;
            if (t > kNear && t < kFar) first = {t, -1, 0};
        }
        for (const int i : lists.seen) {
            const Body& b = body_[i];
            if (b.front > first.t) break;  // and so is all that follows
            int face = 0;
            const float t = hit(b, d, first.t, face);
            if (!(t > kNear && t < first.t)) continue;
            if (b.opacity >= 1.0f) first = {t, i, face};
            else keep(layer, layers, {t, i, face});
        }
        Sample s{};
        s.id = first.body;
        s.depth = first.t;
        s.shown = static_cast<std::uint32_t>(first.body + 2) * 8u;
        if (first.body == -2) {
            s.color = sky(d);
        } else if (first.body == -1) {
            s.color = ground(d, first.t, lists);
        } else {
            V3 n;
            const Body& b = body_[first.body];
            s.color = surface(b, first.body, d, first.t, first.face, n);
            if (b.kind != Kind::mesh) s.shown += static_cast<std::uint32_t>(first.face);
        }
        for (int k = layers - 1; k >= 0; --k) {
            // a ghost that lies in a solid surface does not flicker through it
            if (layer[k].t > first.t - 2e-3f) continue;
            V3 n;
            const Body& b = body_[layer[k].body];
            const V3 c = surface(b, layer[k].body, d, layer[k].t, layer[k].face, n);
            const float edge = 1.0f - std::abs(dot(n, d));
            const float cover = clamp(b.opacity * (0.75f + 0.9f * edge * edge), 0.0f, 1.0f);
            s.color = mix(s.color, c, cover);
            s.shown = s.shown * 31u + static_cast<std::uint32_t>(b.group + 1);
        }
        return s;
    }

    // see-through layers, nearest first, one for each group
    void keep(Layer* layer, int& layers, Layer next) const {
        const std::int32_t group = body_[next.body].group;
        for (int k = 0; k < layers; ++k)
            if (body_[layer[k].body].group == group) {
                if (layer[k].t <= next.t) return;
                std::move(layer + k + 1, layer + layers, layer + k);
                --layers;
                break;
            }
        int at = layers;
        while (at > 0 && layer[at - 1].t > next.t) --at;
        if (at == kLayers) return;
        if (layers < kLayers) ++layers;
        std::move_backward(layer + at, layer + layers - 1, layer + layers);
        layer[at] = next;
    }

    // ---- pixels

    void encode(V3 c, std::uint8_t* rgb) const {
        const auto code = [&](float x) {
            return code_[static_cast<int>(clamp(x, 0.0f, 1.0f) * (kCodes - 1) + 0.5f)];
        };
        rgb[0] = code(c.x);
        rgb[1] = code(c.y);
        rgb[2] = code(c.z);
    }

    // samples x samples where neighbours differ
    void smooth(std::uint8_t* rgb, const std::vector<std::uint32_t>& shown) const {
        constexpr int enough = 14;  // of 255, tuned by eye
        const int w = set_.width, h = set_.height, n = set_.samples;
        std::vector<std::uint8_t> rough(static_cast<std::size_t>(w) * h, 0);
        const auto compare = [&](std::size_t i, std::size_t j) {
            bool differ = shown[i] != shown[j];
            for (int k = 0; k < 3; ++k)
                differ |= std::abs(int(rgb[3 * i + k]) - int(rgb[3 * j + k])) > enough;
            if (differ) rough[i] = rough[j] = 1;
        };
        for (int y = 0; y < h; ++y)
            for (int tx = 0; tx < tiles_x_; ++tx) {
                // ground and sky alone are smooth as they are
                if (is_plain((y / kTile) * tiles_x_ + tx)) continue;
                for (int x = tx * kTile; x < std::min(w, (tx + 1) * kTile); ++x) {
                    const std::size_t i = static_cast<std::size_t>(y) * w + x;
                    if (x + 1 < w) compare(i, i + 1);
                    if (y + 1 < h) compare(i, i + static_cast<std::size_t>(w));
                }
            }
        const float step = 1.0f / static_cast<float>(n);
        for (int y = 0; y < h; ++y)
            for (int x = 0; x < w; ++x) {
                const std::size_t i = static_cast<std::size_t>(y) * w + x;
                if (!rough[i]) continue;
                const Lists lists = lists_of((y / kTile) * tiles_x_ + x / kTile);
                V3 sum{0, 0, 0};
                for (int k = 0; k < n * n; ++k) {
                    const float u =
                        static_cast<float>(x) + step * (static_cast<float>(k % n) + 0.5f);
                    const float v =
                        static_cast<float>(y) + step * (static_cast<float>(k / n) + 0.5f);
                    const V3 c = sample(u, v, lists).color;
                    sum = sum + V3{smaller(c.x, 1.0f), smaller(c.y, 1.0f), smaller(c.z, 1.0f)};
                }
                encode((step * step) * sum, rgb + 3 * i);
            }
    }

    Settings set_;
    std::vector<Body> body_;
    Frame camera_{};  // right, up, forward
    V3 corner_{};     // through the upper left corner
    Frame light_{};   // z towards the light
    float tan_x_ = 0, tan_y_ = 0, pixel_ = 0, ground_ = 0, checks_ = 0, phase_x_ = 0, phase_y_ = 0;
    float soft_ = 0, fade2_ = 0;
    V3 check_[2]{}, sky_[2]{}, sun_{}, above_{}, below_{};
    std::uint8_t code_[kCodes]{};
    int tiles_x_ = 0, tiles_y_ = 0;
    Table casting_, near_, tile_seen_, tile_casting_, tile_near_;
};

}  // namespace poise::pictures
