// Triangles in their own frame: what a picture needs of them that does not change with the pose.
//
// They are seen by filling tiles (raster.hpp). A tree of boxes serves the rays that are left: those
// through see-through triangles, and those to the light past triangles that are not convex.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "poise/render/vector.hpp"

namespace poise::pictures {

using Face = std::array<std::int32_t, 3>;

// What is known of a mesh beforehand.
struct MeshTraits {
    bool smooth;          // normals are blended between the faces
    bool convex;          // it never shadows itself
    std::int32_t nx, ny;  // a height field: points along x and y, y running first; 0, 0: none
};

class Mesh {
  public:
    // vertices (nv, 3), faces (nf, 3)
    Mesh(const double* vertices, std::int64_t nv, const std::int32_t* faces, std::int64_t nf,
         MeshTraits traits)
        : traits_(traits) {
        for (std::int64_t i = 0; i < nv; ++i) vertex_.push_back(vec(vertices + 3 * i));
        for (std::int64_t i = 0; i < nf; ++i)
            face_.push_back({faces[3 * i], faces[3 * i + 1], faces[3 * i + 2]});
        if (!face_.empty()) split(static_cast<std::int32_t>(face_.size()));
        if (traits_.smooth) normal_.assign(vertex_.size(), V3{0, 0, 0});
        for (const Face& f : face_) {
            const V3 n = cross(vertex_[f[1]] - vertex_[f[0]], vertex_[f[2]] - vertex_[f[0]]);
            if (!traits_.smooth) normal_.push_back(n);
            else
                for (const int k : f) normal_[k] = normal_[k] + n;
        }
        for (V3& n : normal_) n = unit(n);
    }

    bool convex() const { return traits_.convex; }
    bool field() const { return traits_.nx > 0; }
    std::int32_t nx() const { return traits_.nx; }
    std::int32_t ny() const { return traits_.ny; }
    const std::vector<V3>& vertices() const { return vertex_; }
    const std::vector<Face>& faces() const { return face_; }
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

    // unit normal at the point p of a face, on the side that the ray d comes from
    V3 normal(int face, V3 p, V3 d) const {
        if (!traits_.smooth)
            return dot(normal_[face], d) > 0.0f ? -1.0f * normal_[face] : normal_[face];
        const Face& f = face_[face];
        const V3 a = vertex_[f[0]], u = vertex_[f[1]] - a, v = vertex_[f[2]] - a;
        const V3 n = cross(u, v);
        const float area = 1.0f / larger(dot(n, n), 1e-30f);
        const float i = dot(cross(p - a, v), n) * area, j = dot(cross(u, p - a), n) * area;
        const V3 m = unit((1.0f - i - j) * normal_[f[0]] + i * normal_[f[1]] + j * normal_[f[2]]);
        return dot(n, d) > 0.0f ? -1.0f * m : m;
    }

  private:
    struct Node {
        V3 low, high;
        std::int32_t first, count;  // a leaf's faces; count = 0: its two children
    };

    // the tree: nodes halved along their longest side
    void split(std::int32_t faces) {
        node_.push_back(bounds(0, faces));
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
                [&](const Face& f, const Face& g) { return center(f, axis) < center(g, axis); });
            node_[at].first = static_cast<std::int32_t>(node_.size());
            node_[at].count = 0;
            open.push_back(static_cast<std::int32_t>(node_.size()));
            open.push_back(static_cast<std::int32_t>(node_.size()) + 1);
            node_.push_back(bounds(first, middle));
            node_.push_back(bounds(middle, last));
        }
    }

    float center(const Face& f, int axis) const {
        const V3 c = vertex_[f[0]] + vertex_[f[1]] + vertex_[f[2]];
        return axis == 0 ? c.x : axis == 1 ? c.y : c.z;
    }

    Node bounds(std::int32_t begin, std::int32_t end) const {
        Node node{{kFar, kFar, kFar}, {-kFar, -kFar, -kFar}, begin, end - begin};
        for (std::int32_t i = begin; i < end; ++i)
            for (const int k : face_[i]) {
                node.low = smaller(node.low, vertex_[k]);
                node.high = larger(node.high, vertex_[k]);
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

    bool triangle(const Face& f, V3 o, V3 d, float& t) const {
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

    MeshTraits traits_;
    std::vector<V3> vertex_, normal_;  // normals of the vertices if smooth, else of the faces
    std::vector<Face> face_;
    std::vector<Node> node_;
};

}  // namespace poise::pictures
