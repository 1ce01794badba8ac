// Lists of indices: by key, and by place in a grid of cells.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "poise/render/vector.hpp"

namespace poise::pictures {

struct Span {
    const std::int32_t* begin_ = nullptr;
    const std::int32_t* end_ = nullptr;
    const std::int32_t* begin() const { return begin_; }
    const std::int32_t* end() const { return end_; }
    bool empty() const { return begin_ == end_; }
};

using Pairs = std::vector<std::pair<std::int32_t, std::int32_t>>;  // key, item

// lists, one per key, in one array; items of a key keep their order
struct Table {
    std::vector<std::int32_t> start{0}, item;
    POISE_INLINE Span of(int key) const {
        return {item.data() + start[key], item.data() + start[key + 1]};
    }
    void fill(int keys, const Pairs& pairs) {
        start.assign(static_cast<std::size_t>(keys) + 1, 0);
        for (const auto& p : pairs) ++start[p.first + 1];
        for (int i = 0; i < keys; ++i) start[i + 1] += start[i];
        item.resize(pairs.size());
        std::vector<std::int32_t> at(start.begin(), start.end() - 1);
        for (const auto& p : pairs) item[at[p.first]++] = p.second;
    }
};

// Cubic cells over a box, each with the items that reach it.
class Grid {
  public:
    // low, high: of each item; near(i, p, r): whether item i reaches into the ball (p, r).
    // flat: one layer, z is not looked at
    template <class Near>
    void build(const std::vector<std::int32_t>& items, const std::vector<V3>& low,
               const std::vector<V3>& high, bool flat, Near near) {
        if (items.empty()) return;
        V3 bottom{kFar, kFar, kFar}, top{-kFar, -kFar, -kFar};
        for (const int i : items) {
            bottom = smaller(bottom, low[i]);
            top = larger(top, high[i]);
        }
        const V3 side = top - bottom;
        low_ = bottom;
        const float longest = larger(larger(side.x, side.y), larger(flat ? 0.0f : side.z, 1e-6f));
        const float cell = longest / (flat ? 64.0f : 32.0f);
        scale_ = 1.0f / cell;
        const auto cells = [&](float s) { return std::max(1, static_cast<int>(s * scale_) + 1); };
        nx_ = cells(side.x);
        ny_ = cells(side.y);
        nz_ = flat ? 1 : cells(side.z);
        Pairs pairs;
        const float r = cell * (flat ? 0.7072f : 0.8661f);  // from a cell's middle to its corner
        for (const int i : items) {
            const V3 a = scale_ * (low[i] - low_), b = scale_ * (high[i] - low_);
            const int z1 = flat ? 0 : last(b.z, nz_);
            for (int z = flat ? 0 : first(a.z); z <= z1; ++z)
                for (int y = first(a.y); y <= last(b.y, ny_); ++y)
                    for (int x = first(a.x); x <= last(b.x, nx_); ++x) {
                        const V3 p{low_.x + cell * (static_cast<float>(x) + 0.5f),
                                   low_.y + cell * (static_cast<float>(y) + 0.5f),
                                   low_.z + cell * (static_cast<float>(z) + 0.5f)};
                        if (near(i, p, r)) pairs.emplace_back((z * ny_ + y) * nx_ + x, i);
                    }
        }
        table_.fill(nx_ * ny_ * nz_, pairs);
    }

    POISE_INLINE Span at(float x, float y, float z) const {
        const float i = (x - low_.x) * scale_, j = (y - low_.y) * scale_,
                    k = nz_ == 1 ? 0.0f : (z - low_.z) * scale_;
        if (!(i >= 0.0f && j >= 0.0f && k >= 0.0f && i < static_cast<float>(nx_) &&
              j < static_cast<float>(ny_) && k < static_cast<float>(nz_)))
            return {};
        return table_.of((static_cast<int>(k) * ny_ + static_cast<int>(j)) * nx_ +
                         static_cast<int>(i));
    }

  private:
    // slack of a hundredth of a cell for rounding
    static int first(float at) { return std::max(0, static_cast<int>(at - 0.01f)); }
    static int last(float at, int n) { return std::min(n - 1, static_cast<int>(at + 0.01f)); }

    V3 low_{0, 0, 0};
    float scale_ = 0.0f;
    int nx_ = 0, ny_ = 0, nz_ = 0;
    Table table_;
};

}  // namespace poise::pictures
