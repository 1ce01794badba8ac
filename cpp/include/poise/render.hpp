// Pictures without GL: an analytic ray caster for spheres, capsules, boxes, cylinders, planes and
// triangles (meshes and height fields), on a checker ground under one light.
//
// A pixel's ray is t d with |d| = 1, from the eye (scene.hpp). The screen is cut into tiles, each
// with the list of bodies that may be seen in it (tiles.hpp); rays are cast at those (hit.hpp), and
// solid triangles are filled in (raster.hpp). Light: shading.hpp, shadow.hpp, occlusion.hpp.
//
// Smoothing. One sample per pixel; where a pixel and its neighbours show different things or
// clearly different colours, samples x samples replace it. The checker is filtered in closed form.
#pragma once

#include "poise/render/raster.hpp"
#include "poise/render/shading.hpp"

namespace poise::pictures {

class Caster {
  public:
    Caster(const Settings& set, const std::vector<Primitive>& primitives)
        : view_(set), body_(bodies(primitives, view_)), tiles_(view_, body_),
          raster_(view_, body_, tiles_), shading_(view_, body_) {
        for (int i = 0; i < kCodes; ++i) {
            const float c = (static_cast<float>(i) + 0.5f) / kCodes;
            const float s =
                c <= 0.0031308f ? 12.92f * c : 1.055f * std::pow(c, 1.0f / 2.4f) - 0.055f;
            code_[i] = static_cast<std::uint8_t>(s * 255.0f + 0.5f);
        }
        for (int i = 0; i < 256; ++i) linear_[i] = linear(static_cast<float>(i) / 255.0f);
    }
    Caster(const Caster&) = delete;  // its parts refer to one another
    Caster& operator=(const Caster&) = delete;

    // rgb (height, width, 3); ids (height, width): index of the primitive, -1 the ground, -2 the
    // sky; depth (height, width): distance from the eye [m]. ids and depth of the nearest solid
    // thing; either may be null.
    void draw(std::uint8_t* rgb, std::int32_t* ids, float* depth) const {
        const std::size_t w = view_.set.width;
        std::vector<std::uint32_t> shown(w * view_.set.height);
        std::vector<Look> looks(kTile * kTile);
        Ground ground;
        std::vector<Nearest> nearest;
        each_tile([&](const Tile& tile) {
            const bool bare = tiles_.seen(tile.index).empty() && raster_.empty(tile.index);
            if (bare) {
                ground_tile(tile, ground, rgb);
            } else {
                const bool filled = fill(tile, 1, nearest);
                for (int y = tile.y0; y < tile.y1; ++y)
                    look_row(tile, y, looks.data(), filled ? nearest.data() : nullptr);
                paint_tile(tile, looks.data(), rgb);
            }
            for (int y = tile.y0; y < tile.y1; ++y)
                for (int x = tile.x0; x < tile.x1; ++x) {
                    const int at = tile.at(x, y);
                    const std::size_t i = y * w + x;
                    const Layer first = bare ? ground.seen(at) : looks[at].first;
                    shown[i] = bare ? code(first) : looks[at].shown;
                    if (ids) ids[i] = first.body;
                    if (depth) depth[i] = first.t;
                }
        });
        if (view_.set.samples > 1) smooth(rgb, shown);
    }

  private:
    static constexpr int kCodes = 4096;
    static constexpr int kLayers = 6;  // see-through groups in front of one another

    struct Layer {
        float t;
        std::int32_t body, face;
    };
    // what a ray meets
    struct Look {
        Layer first;  // the nearest solid thing
        int layers;   // see-through ones before it, nearest first
        Layer layer[kLayers];
        std::uint32_t shown;  // differs where another thing, or another side of it, is seen
    };
    // rays of a tile of bare ground, how far they go, and the light there
    struct Ground {
        float x[kTile * kTile], y[kTile * kTile], z[kTile * kTile], far[kTile * kTile];
        float sun[kTile * kTile], open[kTile * kTile];
        Layer seen(int k) const { return {far[k], far[k] < kFar ? -1 : -2, 0}; }
    };
    struct Tile {
        int index, x, y;     // which
        int x0, y0, x1, y1;  // its pixels, end exclusive
        int at(int px, int py) const { return (py - y0) * kTile + px - x0; }
    };

    static std::vector<Body> bodies(const std::vector<Primitive>& primitives, const View& view) {
        std::vector<Body> out;
        for (const Primitive& p : primitives) out.push_back(make_body(p, view));
        return out;
    }

    template <class Call>
    void each_tile(Call call) const {
        for (int y = 0; y < tiles_.down; ++y)
            for (int x = 0; x < tiles_.across; ++x)
                call(Tile{y * tiles_.across + x, x, y, x * kTile, y * kTile,
                          std::min(view_.set.width, (x + 1) * kTile),
                          std::min(view_.set.height, (y + 1) * kTile)});
    }

    // calls exactly(x, y) for every other pixel of a tile, then between(x, y, dx, dy) for those
    // that have two such neighbours, at (x, y) +- (dx, dy)
    template <class Exactly, class Between>
    static void every_other(const Tile& tile, Exactly exactly, Between between) {
        const auto odd = [](int x, int begin, int end) { return (x - begin) % 2 && x + 1 < end; };
        for (int y = tile.y0; y < tile.y1; ++y) {
            if (odd(y, tile.y0, tile.y1)) continue;
            for (int x = tile.x0; x < tile.x1; ++x)
                if (!odd(x, tile.x0, tile.x1)) exactly(x, y);
            for (int x = tile.x0; x < tile.x1; ++x)
                if (odd(x, tile.x0, tile.x1)) between(x, y, 1, 0);
        }
        for (int y = tile.y0; y < tile.y1; ++y)
            if (odd(y, tile.y0, tile.y1))
                for (int x = tile.x0; x < tile.x1; ++x) between(x, y, 0, 1);
    }

    // the triangles of a tile; false where there are none
    bool fill(const Tile& tile, int n, std::vector<Nearest>& nearest) const {
        if (raster_.empty(tile.index)) return false;
        raster_.fill(tile.x, tile.y, tile.index, n, nearest);
        return true;
    }

    // ---- what is seen

    // a tile of ground and sky only; but for shadows without branches, for the vector units
    void ground_tile(const Tile& tile, Ground& g, std::uint8_t* rgb) const {
        const float rise = view_.set.ground ? view_.ground : 0.0f;
        for (int k = 0; k < kTile * kTile; ++k) {
            const V3 d = unit(view_.ray(static_cast<float>(tile.x0 + k % kTile) + 0.5f,
                                        static_cast<float>(tile.y0 + k / kTile) + 0.5f));
            g.x[k] = d.x;
            g.y[k] = d.y;
            g.z[k] = d.z;
        }
        for (int k = 0; k < kTile * kTile; ++k) {
            const float t = rise / g.z[k];
            g.far[k] = t > kNear ? t : kFar;
            g.sun[k] = g.open[k] = 1.0f;
        }
        if (!tiles_.plain(tile.index)) light_ground(tile, g);
        for (int y = tile.y0; y < tile.y1; ++y)
            paint_row(g, tile.at(tile.x0, y), tile.x1 - tile.x0,
                      rgb + 3 * (static_cast<std::size_t>(y) * view_.set.width + tile.x0));
    }

    void light_ground(const Tile& tile, Ground& g) const {
        const auto exactly = [&](int x, int y) {
            const int k = tile.at(x, y);
            if (!(g.far[k] < kFar)) return;
            const Light light = shading_.ground_light(g.far[k] * V3{g.x[k], g.y[k], g.z[k]});
            g.sun[k] = light.sun;
            g.open[k] = light.open;
        };
        const auto between = [&](int x, int y, int dx, int dy) {
            const int k = tile.at(x, y), a = k - dy * kTile - dx, b = k + dy * kTile + dx;
            const float change = std::abs(g.sun[a] - g.sun[b]) + std::abs(g.open[a] - g.open[b]);
            if (change > 0.05f) return exactly(x, y);
            g.sun[k] = 0.5f * (g.sun[a] + g.sun[b]);
            g.open[k] = 0.5f * (g.open[a] + g.open[b]);
        };
        every_other(tile, exactly, between);
    }

    void paint_row(const Ground& g, int first, int count, std::uint8_t* rgb) const {
        float red[kTile], green[kTile], blue[kTile];
        const float *x = g.x + first, *y = g.y + first, *z = g.z + first, *far = g.far + first;
        const float *sun = g.sun + first, *open = g.open + first;
        for (int k = 0; k < kTile; ++k) {
            const V3 c =
                shading_.ground_color({x[k], y[k], z[k]}, smaller(far[k], 1e9f), {sun[k], open[k]});
            red[k] = c.x;
            green[k] = c.y;
            blue[k] = c.z;
        }
        for (int k = 0; k < kTile; ++k) {
            const float on = far[k] < kFar ? 1.0f : 0.0f;
            const V3 c = mix(shading_.sky({x[k], y[k], z[k]}), {red[k], green[k], blue[k]}, on);
            red[k] = c.x;
            green[k] = c.y;
            blue[k] = c.z;
        }
        for (int k = 0; k < count; ++k) encode({red[k], green[k], blue[k]}, rgb + 3 * k);
    }

    void look_row(const Tile& tile, int y, Look* looks, const Nearest* nearest) const {
        for (int x = tile.x0; x < tile.x1; ++x)
            look(static_cast<float>(x) + 0.5f, static_cast<float>(y) + 0.5f, tile.index, nearest,
                 tile.at(x, y), looks[tile.at(x, y)]);
    }

    // what the ray through (x, y) meets; of the triangles, the entry `at` of nearest
    void look(float x, float y, int tile, const Nearest* nearest, int at, Look& out) const {
        const V3 straight = view_.ray(x, y);
        const float stretch = length(straight);
        const V3 d = (1.0f / stretch) * straight;
        out.layers = 0;
        Layer first{kFar, -2, 0};
        if (nearest && nearest[at].body >= 0)
            first = {stretch / nearest[at].near, nearest[at].body, nearest[at].face};
        if (view_.set.ground) {
            // triangles that lie in the ground are seen
            const float t = view_.ground / d.z;
            if (t > kNear && t < 0.9999f * first.t) first = {t, -1, 0};
        }
        for (const int i : tiles_.seen(tile)) {
            const Body& b = body_[i];
            if (b.front > first.t) break;  // and so is all that follows
            const float along = dot(b.middle, d);
            if (along * along < b.aside) continue;
            int face = 0;
            const float t = hit(b, d, first.t, face);
            if (!(t > kNear && t < first.t)) continue;
            if (b.solid()) first = {t, i, face};
            else keep(out, {t, i, face});
        }
        // a ghost that lies in a solid surface does not flicker through it
        while (out.layers > 0 && out.layer[out.layers - 1].t > first.t - 2e-3f) --out.layers;
        out.first = first;
        out.shown = code(first);
        for (int k = out.layers - 1; k >= 0; --k)
            out.shown =
                out.shown * 31u + static_cast<std::uint32_t>(body_[out.layer[k].body].group + 1);
    }

    std::uint32_t code(Layer first) const {
        const bool sides = first.body >= 0 && body_[first.body].kind != Kind::mesh;
        return static_cast<std::uint32_t>(first.body + 2) * 8u +
               (sides ? static_cast<std::uint32_t>(first.face) : 0u);
    }

    // see-through layers, nearest first, one for each group
    void keep(Look& look, Layer next) const {
        Layer* const layer = look.layer;
        int& layers = look.layers;
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

    // ---- colours

    // the colour that the ray through (x, y) brings
    V3 paint(float x, float y, const Look& look) const {
        const V3 d = unit(view_.ray(x, y));
        const Layer first = look.first;
        V3 n, color;
        if (first.body == -2) color = shading_.sky(d);
        else if (first.body == -1) color = shading_.ground(d, first.t);
        else color = shading_.surface(body_[first.body], first.body, d, first.t, first.face, n);
        for (int k = look.layers - 1; k >= 0; --k) {
            const Layer layer = look.layer[k];
            const Body& b = body_[layer.body];
            const V3 c = shading_.surface(b, layer.body, d, layer.t, layer.face, n);
            const float edge = 1.0f - std::abs(dot(n, d));
            const float cover = clamp(b.opacity * (0.75f + 0.9f * edge * edge), 0.0f, 1.0f);
            color = mix(color, c, cover);
        }
        return color;
    }

    // every other pixel is painted; between two that show the same in nearly the same colour, their
    // mean is enough
    void paint_tile(const Tile& tile, const Look* looks, std::uint8_t* rgb) const {
        constexpr int close = 6;  // of 255
        const std::size_t w = view_.set.width;
        const auto exactly = [&](int x, int y) {
            encode(paint(static_cast<float>(x) + 0.5f, static_cast<float>(y) + 0.5f,
                         looks[tile.at(x, y)]),
                   rgb + 3 * (y * w + x));
        };
        const auto between = [&](int x, int y, int dx, int dy) {
            const Look* const here = looks + tile.at(x, y);
            const int step = dy * kTile + dx;
            std::uint8_t* const out = rgb + 3 * (y * w + x);
            const std::uint8_t *a = out - 3 * (dy * w + dx), *b = out + 3 * (dy * w + dx);
            bool same = here[-step].shown == here->shown && here[step].shown == here->shown;
            for (int k = 0; k < 3; ++k) same &= std::abs(int(a[k]) - int(b[k])) <= close;
            if (!same) return exactly(x, y);
            for (int k = 0; k < 3; ++k)
                out[k] = static_cast<std::uint8_t>((int(a[k]) + int(b[k]) + 1) / 2);
        };
        every_other(tile, exactly, between);
    }

    POISE_INLINE void encode(V3 c, std::uint8_t* rgb) const {
        const auto code = [&](float x) {
            return code_[static_cast<int>(clamp(x, 0.0f, 1.0f) * (kCodes - 1) + 0.5f)];
        };
        rgb[0] = code(c.x);
        rgb[1] = code(c.y);
        rgb[2] = code(c.z);
    }

    POISE_INLINE V3 decode(const std::uint8_t* rgb) const {
        return {linear_[rgb[0]], linear_[rgb[1]], linear_[rgb[2]]};
    }

    // ---- edges

    static constexpr std::uint8_t kEdge = 1, kRough = 2;

    // pixels that show something else than a neighbour (kEdge), or differ in colour (kRough)
    std::vector<std::uint8_t> find_edges(const std::uint8_t* rgb,
                                         const std::vector<std::uint32_t>& shown) const {
        constexpr int enough = 14;  // of 255, tuned by eye
        const std::size_t w = view_.set.width, h = view_.set.height;
        std::vector<std::uint8_t> marks(w * h, 0);
        const auto compare = [&](std::size_t i, std::size_t j) {
            std::uint8_t mark = shown[i] != shown[j] ? kEdge : 0;
            bool differ = false;
            for (int k = 0; k < 3; ++k)
                differ |= std::abs(int(rgb[3 * i + k]) - int(rgb[3 * j + k])) > enough;
            if (differ && !mark) mark = kRough;
            marks[i] |= mark;
            marks[j] |= mark;
        };
        each_tile([&](const Tile& tile) {
            if (tiles_.plain(tile.index)) return;  // ground and sky are smooth as they are
            for (std::size_t y = tile.y0; y < static_cast<std::size_t>(tile.y1); ++y)
                for (std::size_t x = tile.x0; x < static_cast<std::size_t>(tile.x1); ++x) {
                    if (x + 1 < w) compare(y * w + x, y * w + x + 1);
                    if (y + 1 < h) compare(y * w + x, y * w + x + w);
                }
        });
        return marks;
    }

    // samples x samples where neighbours differ. A sample that shows what the pixel or a neighbour
    // shows takes its colour from there, unless colours change quickly.
    void smooth(std::uint8_t* rgb, const std::vector<std::uint32_t>& shown) const {
        const std::vector<std::uint8_t> marks = find_edges(rgb, shown);
        const std::vector<std::uint8_t> before(rgb, rgb + 3 * marks.size());
        const std::size_t w = view_.set.width, h = view_.set.height;
        const int n = view_.set.samples;
        const float step = 1.0f / static_cast<float>(n);
        std::vector<Nearest> nearest;
        Look seen;
        each_tile([&](const Tile& tile) {
            bool fresh = true, filled = false;
            for (int y = tile.y0; y < tile.y1; ++y)
                for (int x = tile.x0; x < tile.x1; ++x) {
                    const std::size_t at = y * w + x;
                    if (!marks[at]) continue;
                    if (fresh) filled = fill(tile, n, nearest);
                    fresh = false;
                    const std::size_t around[5] = {at, x > 0 ? at - 1 : at, at + (x + 1 < int(w)),
                                                   y > 0 ? at - w : at,
                                                   y + 1 < int(h) ? at + w : at};
                    V3 sum{0, 0, 0};
                    for (int k = 0; k < n * n; ++k) {
                        const int i = k % n, j = k / n;
                        const float u =
                            static_cast<float>(x) + step * (static_cast<float>(i) + 0.5f);
                        const float v =
                            static_cast<float>(y) + step * (static_cast<float>(j) + 0.5f);
                        look(u, v, tile.index, filled ? nearest.data() : nullptr,
                             ((y - tile.y0) * n + j) * kTile * n + (x - tile.x0) * n + i, seen);
                        int same = 0;
                        while (same < 5 && shown[around[same]] != seen.shown) ++same;
                        const V3 c = same == 5 || (marks[at] & kRough)
                                         ? paint(u, v, seen)
                                         : decode(before.data() + 3 * around[same]);
                        sum = sum + smaller(c, V3{1.0f, 1.0f, 1.0f});
                    }
                    encode((step * step) * sum, rgb + 3 * at);
                }
        });
    }

    View view_;
    std::vector<Body> body_;
    Tiles tiles_;
    Raster raster_;
    Shading shading_;
    std::uint8_t code_[kCodes]{};  // from light to sRGB
    float linear_[256]{};          // and back
};

}  // namespace poise::pictures
