#include "collision_model.hpp"

#include "dispatch.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace poise {

namespace {

std::int64_t length(nb::handle source, const char* name) {
    return static_cast<std::int64_t>(nb::len(nb::object(source.attr(name))));
}

void check_range(std::int64_t value, std::int64_t low, std::int64_t high, const char* what) {
    if (value < low || value >= high) throw Error(std::string(what) + " is out of range");
}

// Further than this nothing stands, nor is as large [m]: in float32 its square would overflow.
constexpr double kFar = 1e9;

constexpr std::int64_t kMostLanes = 16;  // of any kernel

std::vector<double> lengths_in(nb::handle source, const char* name,
                               const std::vector<std::int64_t>& shape) {
    auto lengths = copy_in(source, name, shape);
    for (const double x : lengths)
        if (!(std::abs(x) <= kFar))
            throw Error(std::string(name) + " holds " + std::to_string(x) +
                        " m; at most 1e9 m is possible");
    return lengths;
}

// The columns of the rotation matrix of E.
void find_axes(Collider& c) {
    const double w = c.E[0], x = c.E[1], y = c.E[2], z = c.E[3];
    const double axis[3][3] = {{1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y)},
                               {2 * (x * y - w * z), 1 - 2 * (x * x + z * z), 2 * (y * z + w * x)},
                               {2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)}};
    std::copy_n(&axis[0][0], 9, &c.axis[0][0]);
}

}  // namespace

const CollisionModel& CollisionModelReader::read(nb::handle source, const Model& model,
                                                 std::int64_t n) {
    if (source.is_none()) return view_;
    const int kind = nb::cast<int>(source.attr("model"));
    check_range(kind, 0, 3, "collision_model.model");
    view_.model = static_cast<ContactModel>(kind);
    view_.surfaces = nb::cast<int>(source.attr("surfaces"));
    check_range(view_.surfaces, 1, 1 << 24, "collision_model.surfaces");
    view_.sweeps = nb::cast<int>(source.attr("iterations"));
    check_range(view_.sweeps, 1, 10001, "collision_model.iterations");
    view_.tolerance = nb::cast<double>(source.attr("tolerance"));
    view_.stiffness = nb::cast<double>(source.attr("stiffness"));
    view_.damping = view_.stiffness / 100.0;
    view_.viscosity = view_.stiffness / 25.0;
    read_colliders(source.attr("colliders"), model);
    read_probes(source.attr("probes"));
    read_pairs(source);
    read_bounds(source.attr("bounds"), model);
    read_ground(source.attr("ground"), n);
    check_hull_probes();
    read_projectiles(source, model);
    view_.slots = view_.probes + view_.pair_slots + 3 * view_.bounds;

    const auto table = [&](const char* name, std::vector<double>& to, std::int64_t& stride) {
        const nb::object array = source.attr(name);
        const InArray in = array_in(array, name);
        const auto shape = shape_of(in);
        if (shape.size() == 2 && shape[0] == n && n > 1) {
            to = copy_in(array, name, {n, view_.surfaces});
            stride = view_.surfaces;
        } else {
            to = copy_in(array, name, {view_.surfaces});
            stride = 0;
        }
    };
    table("friction", friction_, view_.friction_stride);
    table("restitution", restitution_, view_.restitution_stride);
    for (double& x : friction_) x = std::sqrt(x);
    view_.friction_root = friction_.data();
    view_.restitution = restitution_.data();
    return view_;
}

void CollisionModelReader::write_friction(const double* rows, std::int64_t stride,
                                          const Copies& copies, std::int64_t n) {
    const std::int64_t size = view_.surfaces;
    if (!view_.friction_stride && n > 1) {
        friction_.resize(n * size);
        for (std::int64_t i = size; i < n * size; ++i) friction_[i] = friction_[i - size];
        view_.friction_stride = size;
    }
    for (std::int64_t i = 0; i < copies.count; ++i)
        for (std::int64_t k = 0; k < size; ++k)
            friction_[copies.copy[i] * size + k] = std::sqrt(rows[i * stride + k]);
    view_.friction_root = friction_.data();
}

// Arrays of counts: with none, one, two, ... of the projectiles.
void CollisionModelReader::read_projectiles(nb::handle source, const Model& model) {
    Projectiles& s = view_.projectiles;
    s.count = nb::cast<int>(source.attr("projectiles"));
    check_range(s.count, 0, kMostProjectiles + 1, "collision_model.projectiles");
    const Forest& f = model.forest();
    s.nb = f.nb - s.count;
    s.nq = f.nq - 7 * s.count;
    s.nv = f.nv - 6 * s.count;
    for (int i = s.nb; i < f.nb; ++i)
        if (i < 0 || f.body[i].kind != Kind::free) throw Error("projectiles are free bodies");
    const auto counts = [&](const char* name, std::int32_t last, std::int32_t* to) {
        const auto from = copy_ints(source.attr(name), name, s.count + 1);
        for (int k = 0; k <= s.count; ++k) {
            check_range(from[k], k ? from[k - 1] : 0, last + 1, name);
            to[k] = from[k];
        }
        if (from[s.count] != last) throw Error(std::string(name) + " must end with all");
    };
    counts("projectile_colliders", view_.colliders, s.colliders);
    counts("projectile_probes", view_.probes, s.probes);
    counts("projectile_pairs", view_.pairs, s.pairs);
}

const CollisionModel& CollisionModelReader::read_shapes(nb::object colliders, int nb) {
    view_.surfaces = 1 << 24;
    collect(colliders, nb);
    return view_;
}

void CollisionModelReader::read_colliders(nb::object colliders, const Model& model) {
    const Forest& f = model.forest();
    collect(colliders, f.nb);
    hold_bodies(f.nb);
    root_.resize(f.nb);
    for (int i = 0; i < f.nb; ++i) {
        const int parent = f.body[i].parent;
        root_[i] = parent < 0 ? i : root_[parent];
        view_.trees += parent < 0;
    }
    view_.root = root_.data();
}

void CollisionModelReader::collect(nb::object colliders, int nb) {
    for (nb::handle hull : colliders.attr("hulls"))
        hull_.push_back(std::make_unique<HullReader>(hull));
    const auto hulls = static_cast<std::int64_t>(hull_.size());
    const std::int64_t count = length(colliders, "body");
    const auto body = copy_ints(colliders.attr("body"), "collider_body", count);
    const auto link = copy_ints(colliders.attr("link"), "collider_link", count);
    const auto surface = copy_ints(colliders.attr("surface"), "collider_surface", count);
    const auto kind = copy_ints(colliders.attr("kind"), "collider_kind", count);
    const auto size = lengths_in(colliders.attr("size"), "collider_size", {count, 3});
    const auto p = lengths_in(colliders.attr("p"), "collider_p", {count, 3});
    const auto E = copy_in(colliders.attr("E"), "collider_E", {count, 4});
    const auto reach = lengths_in(colliders.attr("reach"), "collider_reach", {count});
    const auto box = lengths_in(colliders.attr("box"), "collider_box", {count, 3});
    const auto hull = copy_ints(colliders.attr("hull"), "collider_hull", count);
    collider_.resize(count);
    for (std::int64_t i = 0; i < count; ++i) {
        check_range(body[i], -1, nb, "collider_body");
        check_range(surface[i], 0, view_.surfaces, "collider_surface");
        check_range(kind[i], 0, 5, "collider_kind");
        Collider& c = collider_[i];
        c.body = body[i];
        c.link = link[i];
        c.surface = surface[i];
        c.kind = static_cast<Solid>(kind[i]);
        std::copy_n(size.data() + 3 * i, 3, c.size);
        std::copy_n(p.data() + 3 * i, 3, c.p);
        std::copy_n(E.data() + 4 * i, 4, c.E);
        find_axes(c);
        c.reach = reach[i];
        std::copy_n(box.data() + 3 * i, 3, c.box);
        c.hull = nullptr;
        if (c.kind != Solid::mesh) continue;
        check_range(hull[i], 0, hulls, "collider_hull");
        c.hull = &hull_[hull[i]]->view();
    }
    view_.collider = collider_.data();
    view_.colliders = static_cast<std::int32_t>(count);
    find_neighbors();
}

// Fixed boxes that may share a side.
void CollisionModelReader::find_neighbors() {
    constexpr double kBeside = 0.01;
    std::vector<std::int32_t> fixed;
    for (std::size_t i = 0; i < collider_.size(); ++i)
        if (collider_[i].body < 0 && collider_[i].kind == Solid::box)
            fixed.push_back(static_cast<std::int32_t>(i));
    neighbor_.clear();
    neighbor_begin_.assign(collider_.size() + 1, 0);
    std::size_t next = 0;
    for (const std::int32_t i : fixed) {
        for (; next <= static_cast<std::size_t>(i); ++next)
            neighbor_begin_[next] = static_cast<std::int32_t>(neighbor_.size());
        const Collider& a = collider_[i];
        for (const std::int32_t j : fixed) {
            const Collider& b = collider_[j];
            const double most = a.reach + b.reach + kBeside;
            double d2 = 0;
            for (int k = 0; k < 3; ++k) d2 += (a.p[k] - b.p[k]) * (a.p[k] - b.p[k]);
            if (i != j && d2 < most * most) neighbor_.push_back(j);
        }
    }
    for (; next < neighbor_begin_.size(); ++next)
        neighbor_begin_[next] = static_cast<std::int32_t>(neighbor_.size());
    view_.neighbor = neighbor_.data();
    view_.neighbor_begin = neighbor_begin_.data();
}

void CollisionModelReader::hold_bodies(int nb) {
    ball_.assign(nb, Ball{{0, 0, 0}, -1});
    const double far = std::numeric_limits<double>::infinity();
    for (int i = 0; i < nb; ++i) {
        double low[3] = {far, far, far}, high[3] = {-far, -far, -far};
        Ball& ball = ball_[i];
        for (const Collider& c : collider_)
            for (int k = 0; k < 3 && c.body == i; ++k) {
                low[k] = std::min(low[k], c.p[k] - c.reach);
                high[k] = std::max(high[k], c.p[k] + c.reach);
                ball.p[k] = 0.5 * (low[k] + high[k]);
            }
        for (const Collider& c : collider_) {
            if (c.body != i) continue;
            const double x = c.p[0] - ball.p[0], y = c.p[1] - ball.p[1], z = c.p[2] - ball.p[2];
            ball.reach = std::max(ball.reach, std::sqrt(x * x + y * y + z * z) + c.reach);
        }
    }
    view_.ball = ball_.data();
}

void CollisionModelReader::read_probes(nb::object probes) {
    const std::int64_t count = length(probes, "collider");
    const auto collider = copy_ints(probes.attr("collider"), "probe_collider", count);
    const auto point = lengths_in(probes.attr("point"), "probe_point", {count, 3});
    const auto axis = copy_in(probes.attr("axis"), "probe_axis", {count, 3});
    // radius of the ball, radius of the rim, turn along it, rank of the facet
    const auto numbers = lengths_in(probes.attr("numbers"), "probe_numbers", {count, 4});
    probe_.resize(count);
    for (std::int64_t i = 0; i < count; ++i) {
        check_range(collider[i], 0, view_.colliders, "probe_collider");
        Probe& p = probe_[i];
        p.collider = collider[i];
        std::copy_n(point.data() + 3 * i, 3, p.point);
        std::copy_n(axis.data() + 3 * i, 3, p.axis);
        p.radius = numbers[4 * i];
        p.rim = numbers[4 * i + 1];
        p.turn = numbers[4 * i + 2];
        p.facet = static_cast<std::int32_t>(numbers[4 * i + 3]);
        check_range(p.facet, 0, 3, "probe_numbers");
        if (!(p.radius >= 0)) throw Error("probe_numbers: a radius must be 0 or more");
    }
    view_.probe = probe_.data();
    view_.probes = static_cast<std::int32_t>(count);
}

// A mesh has kHullProbes in a row, on a height field as many again for the facets ahead.
void CollisionModelReader::check_hull_probes() const {
    if (view_.ground.kind == GroundKind::none) return;
    const std::size_t needed =
        view_.ground.kind == GroundKind::field ? 2 * kHullProbes : kHullProbes;
    for (std::size_t i = 0; i < probe_.size();) {
        std::size_t last = i;
        while (last < probe_.size() && probe_[last].collider == probe_[i].collider) ++last;
        const bool mesh = collider_[probe_[i].collider].kind == Solid::mesh;
        if (mesh && last - i != needed)
            throw Error("probe_collider: a mesh has " + std::to_string(needed) + " probes");
        i = last;
    }
}

void CollisionModelReader::read_pairs(nb::handle source) {
    const nb::object pairs = source.attr("pairs");
    const std::int64_t count = length(pairs, "a");
    const auto a = copy_ints(pairs.attr("a"), "pair_a", count);
    const auto b = copy_ints(pairs.attr("b"), "pair_b", count);
    const auto points = copy_ints(source.attr("pair_points"), "pair_points", count);
    pair_.resize(count);
    std::int32_t slot = view_.probes;
    for (std::int64_t i = 0; i < count; ++i) {
        check_range(a[i], 0, view_.colliders, "pair_a");
        check_range(b[i], 0, view_.colliders, "pair_b");
        check_range(points[i], 1, 9, "pair_points");
        if (collider_[a[i]].body < 0) throw Error("pair_a: an obstacle comes second");
        pair_[i] = {a[i], b[i], slot, points[i]};
        slot += points[i];
        const int one = collider_[a[i]].body, two = collider_[b[i]].body;
        const auto k = static_cast<std::int32_t>(i);
        if (group_.empty() || group_.back().a != one || group_.back().b != two)
            group_.push_back({one, two, k, k});
        group_.back().last = k + 1;
    }
    for (std::size_t i = 0; i < group_.size(); ++i) {
        const int one = root_[group_[i].a], two = group_[i].b < 0 ? -1 : root_[group_[i].b];
        const auto k = static_cast<std::int32_t>(i);
        if (tree_pair_.empty() || tree_pair_.back().a != one || tree_pair_.back().b != two)
            tree_pair_.push_back({one, two, k, k});
        tree_pair_.back().last = k + 1;
    }
    view_.tree_pair = tree_pair_.data();
    view_.tree_pairs = static_cast<std::int32_t>(tree_pair_.size());
    view_.group = group_.data();
    view_.groups = static_cast<std::int32_t>(group_.size());
    view_.pair = pair_.data();
    view_.pairs = static_cast<std::int32_t>(count);
    view_.pair_slots = slot - view_.probes;
}

void CollisionModelReader::read_bounds(nb::object bounds, const Model& model) {
    const std::int64_t count = length(bounds, "body");
    const auto body = copy_ints(bounds.attr("body"), "bound_body", count);
    const auto axis = copy_in(bounds.attr("axis"), "bound_axis", {count, 3});
    const auto limits = copy_in(bounds.attr("limits"), "bound_limits", {count, 3});
    bound_.resize(count);
    for (std::int64_t i = 0; i < count; ++i) {
        check_range(body[i], 0, model.forest().nb, "bound_body");
        if (model.forest().body[body[i]].kind == Kind::free)
            throw Error("a free joint has no bounds");
        Bound& b = bound_[i];
        b.body = body[i];
        std::copy_n(axis.data() + 3 * i, 3, b.axis);
        b.swing = limits[3 * i];
        b.lower = limits[3 * i + 1];
        b.upper = limits[3 * i + 2];
    }
    view_.bound = bound_.data();
    view_.bounds = static_cast<std::int32_t>(count);
}

void CollisionModelReader::read_ground(nb::object ground, std::int64_t n) {
    Ground& g = view_.ground;
    const int kind = nb::cast<int>(ground.attr("kind"));
    check_range(kind, 0, 3, "ground_kind");
    g.kind = static_cast<GroundKind>(kind);
    const auto plane = lengths_in(ground.attr("plane"), "ground_plane", {4});
    std::copy_n(plane.data(), 3, g.normal);
    g.offset = plane[3];
    if (g.kind != GroundKind::field) return;
    const auto grid = lengths_in(ground.attr("grid"), "ground_grid", {4});
    const nb::object heights = ground.attr("heights");
    const auto shape = shape_of(array_in(heights, "ground_height"));
    const bool own = shape.size() == 3 && shape[0] == n;
    const std::int64_t rows = shape.size() < 2 ? 0 : shape[shape.size() - 2];
    const std::int64_t cols = shape.size() < 2 ? 0 : shape[shape.size() - 1];
    if ((shape.size() != 2 && !own) || rows < 2 || cols < 2)
        throw Error("ground_height has shape " + shape_text(shape) +
                    ", expected 2 x 2 or more, or such fields of " + std::to_string(n) + " copies");
    if (!(grid[2] > 0) || !(grid[3] > 0)) throw Error("ground_grid: spacings must be positive");
    height_ = lengths_in(heights, "ground_height", shape);
    const std::int64_t size = rows * cols, fields = own ? n : 1;
    for (std::int64_t i = 0; i < fields; ++i) {
        const auto [low, high] =
            std::minmax_element(height_.begin() + i * size, height_.begin() + (i + 1) * size);
        lowest_.push_back(*low);
        highest_.push_back(*high);
    }
    g.lowest = lowest_.data();
    g.highest = highest_.data();
    // lanes beyond the last copy repeat it
    g.height_stride = own ? size : 0;
    height_.resize(size * (fields + (own ? kMostLanes : 0)));
    for (std::int64_t i = size * fields; i < static_cast<std::int64_t>(height_.size()); ++i)
        height_[i] = height_[i - size];
    g.rows = static_cast<std::int32_t>(rows);
    g.cols = static_cast<std::int32_t>(cols);
    g.x0 = grid[0];
    g.y0 = grid[1];
    g.dx = grid[2];
    g.dy = grid[3];
    g.height = height_.data();
}

nb::tuple collide(nb::object colliders, nb::object poses, double near) {
    CollisionModelReader reader;
    const CollisionModel& x = reader.read_shapes(colliders, 0);
    if (x.colliders != 2) throw Error("colliders must be two");
    const InArray in = array_in(poses, "poses");
    const auto shape = shape_of(in);
    const std::int64_t n = shape.empty() ? 0 : shape[0];
    const double* p = shaped(in, "poses", {n, 2, 7});
    check_finite(p, 14 * n, "poses");
    if (!(near >= 0)) throw Error("near must be 0 or more");
    OutArray nearest = make_array({n, 7}), touches = make_array({n, 4, 7});
    kernel(0).collide(x.collider[0], x.collider[1], p, n, near, nearest.data(), touches.data());
    return nb::make_tuple(nearest, touches);
}

}  // namespace poise
