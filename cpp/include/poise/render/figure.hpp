// What a convex mesh looks like from the light: a convex polygon, and how high its rim lies.
#pragma once

#include <algorithm>
#include <array>

#include "poise/render/scene.hpp"

namespace poise::pictures {

class Figure {
  public:
    // coordinates (x, y) across the light, from the body's middle
    Figure(const Body& body, const Frame& light) {
        std::vector<V3> point;
        for (const V3 v : body.mesh->vertices())
            point.push_back(light.in(body.c + body.R.out(v) - body.middle));
        const std::vector<V3> rim = hull(point);
        for (std::size_t i = 0; i < rim.size(); ++i) {
            const V3 a = rim[i], b = rim[(i + 1) % rim.size()];
            const float x = b.x - a.x, y = b.y - a.y, n = std::sqrt(x * x + y * y);
            if (n < 1e-9f) continue;
            const V3 edge{y / n, -x / n, (y * a.x - x * a.y) / n};
            edge_.push_back(edge);
            size_ = smaller(size_, larger(edge.z, 0.0f));
        }
        fit(rim);
        l_ += body.ll;
    }

    // signed distance to the polygon; beyond `far` it may be any larger number than that
    float distance(float x, float y, float far) const {
        float most = -kFar;
        for (const V3 e : edge_) {
            most = larger(most, x * e.x + y * e.y - e.z);
            if (most > far) break;
        }
        return most;
    }

    // height along the light of the rim, and of a plane through it
    float height(float x, float y) const { return l_ + gx_ * x + gy_ * y; }
    // distance from the middle to the nearest edge
    float size() const { return size_; }

  private:
    // points of the convex hull, counter-clockwise (Andrew's monotone chain)
    static std::vector<V3> hull(std::vector<V3>& p) {
        std::sort(p.begin(), p.end(), [](V3 a, V3 b) {
            return a.x < b.x || (a.x == b.x && (a.y < b.y || (a.y == b.y && a.z < b.z)));
        });
        std::vector<V3> rim;
        for (int side = 0; side < 2; ++side) {
            const std::size_t kept = rim.size();
            for (const V3 next : p) {
                while (rim.size() >= kept + 2) {
                    const V3 a = rim[rim.size() - 2], b = rim.back();
                    if ((b.x - a.x) * (next.y - a.y) - (b.y - a.y) * (next.x - a.x) > 0.0f) break;
                    rim.pop_back();
                }
                rim.push_back(next);
            }
            rim.pop_back();
            std::reverse(p.begin(), p.end());
        }
        return rim;
    }

    // the plane l + gx x + gy y through the rim, by least squares
    void fit(const std::vector<V3>& rim) {
        if (rim.empty()) return;
        V3 mean{0, 0, 0};
        for (const V3 p : rim) mean = mean + (1.0f / static_cast<float>(rim.size())) * p;
        float xx = 0, xy = 0, yy = 0, xz = 0, yz = 0;
        for (const V3 p : rim) {
            const V3 d = p - mean;
            xx += d.x * d.x;
            xy += d.x * d.y;
            yy += d.y * d.y;
            xz += d.x * d.z;
            yz += d.y * d.z;
        }
        const float det = xx * yy - xy * xy;
        if (det > 1e-6f * (xx + yy) * (xx + yy)) {
            gx_ = (yy * xz - xy * yz) / det;
            gy_ = (xx * yz - xy * xz) / det;
        }
        l_ = mean.z - gx_ * mean.x - gy_ * mean.y;
    }

    std::vector<V3> edge_;  // outward normal, and the distance of the edge along it
    float size_ = kFar, l_ = 0.0f, gx_ = 0.0f, gy_ = 0.0f;
};

}  // namespace poise::pictures
