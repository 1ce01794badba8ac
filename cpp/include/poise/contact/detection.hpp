// Finds the rows of a step: contacts with the ground, between shapes, and joints at their bounds.
#pragma once

#include "poise/contact/collision.hpp"
#include "poise/contact/collision_lanes.hpp"
#include "poise/contact/contact_scratch.hpp"
#include "poise/contact/convex.hpp"
#include "poise/contact/ground.hpp"

namespace poise::inline POISE_ISA {

// Blows elsewhere may throw a limb to the ground faster than it moves without them by this [m/s];
// if it then is not deeper than this [m], it needs no row.
constexpr double kBlow = 3.0;
constexpr double kBlowDepth = 0.0125;
// Nothing is further away than this [m].
constexpr double kEverywhere = 1e15;
// No contact is looked for beyond this [m].
constexpr double kFarthest = 1.0;
// Shapes further apart than this at the start of a step meet only if their paths do [m].
constexpr double kPassing = 2e-3;
// The axis of a capsule that is nearer to a box than this counts as running through it [m].
constexpr double kThrough = 1e-5;
// Fixed boxes closer than this to each other have a seam, not a gap or a step [m].
constexpr double kSeam = 5e-4;
// Normals of rods, and of boxes, that lean less than this out of a side do not push out of it.
constexpr double kSlant = 1e-3;
constexpr double kBoxSlant = 0.05;
// How often the paths of two shapes are looked at.
constexpr int kAdvances = 8;
// What goes further in a step over uneven ground is looked at again where it ends [m].
constexpr double kFast = 0.05;
// From so many trees on, whole trees are held apart before their bodies are.
constexpr int kCrowd = 4;
// What is only estimated is taken to be off by less than this [m].
constexpr double kDoubt = 0.001;
// Bounds of joints nearer than this take part [rad, m], and those that the step may reach.
constexpr double kNearBound = 0.05;

template <class S>
class Detector {
  public:
    using T = Element<S>;
    static constexpr int lanes = Traits<S>::lanes;

    Detector(const Forest& forest, const CollisionModel& collision_model, const Work<S>* w,
             const Vec3<S>* origins, const S* positions, double step, std::int64_t first_copy,
             std::int64_t copies, const S* impulses, ContactScratch<S>& scratch)
        : f(forest), x(collision_model), work(w), origin(origins), q(positions), dt(step),
          first(first_copy), count(copies), memory(impulses), c(scratch) {}

    void contacts() {
        c.contacts = c.limits = 0;
        centers();
        if (x.ground.kind != GroundKind::none) ground();
        pairs();
    }
    // joints at their bounds
    void bounds() {
        for (int k = 0; k < x.bounds; ++k) {
            const Bound& b = x.bound[k];
            const int slot = x.pair_slots + x.probes + 3 * k;
            if (f.body[b.body].kind == Kind::ball) ball_bound(b, slot);
            else axis_bound(b, slot);
        }
    }

  private:
    // How a collider of one copy moves in the step, if nothing touches.
    struct Path {
        Posed start;
        Point origin, v, w;  // of its body
        double spin;         // no point is faster than its middle by more
        Quat<double> turn(double t) const { return exponential(t * w); }
        Point center(double t) const { return origin + t * v + rotate(turn(t), start.p - origin); }
        Point center_velocity(double t) const { return v + cross(w, center(t) - origin - t * v); }
        Point velocity_of(const Point& x) const { return v + cross(w, x - origin); }
        Posed at(double t) const {
            Posed o = start;
            o.p = center(t);
            o.R = matrix(turn(t)) * start.R;
            return o;
        }
        // where a point of it that is at x then is at the start
        Point back(const Point& x, double t) const {
            return origin + rotate(turn(-t), x - origin - t * v);
        }
    };

    static S absolute(S a) { return larger(a, -a); }

    // what goes further in a step may pass through others
    S bounded(S speed) const {
        const S most(T(kFarthest / dt));
        return select(speed < most, speed, most);
    }

    void centers() {
        c.fast = constant_mask<S>(false);
        for (int i = 0; i < f.nb; ++i) {
            const Ball& ball = x.ball[i];
            if (ball.reach < 0) continue;
            const Vec3<S> r = work[i].R * constant3<S>(ball.p);
            const Motion<S>& m = c.base[i];
            const Vec3<S> v = point_velocity(m, r);
            c.middle[i] = origin[i] + r;
            c.quickness[i] =
                bounded(square_root(dot(v, v)) + S(T(ball.reach)) * square_root(dot(m.al, m.al)));
            if (x.ground.kind == GroundKind::field)
                c.fast = c.fast | (S(T(kFast / dt)) < c.quickness[i]);
        }
        for (int k = 0; k < x.colliders; ++k) {
            const Collider& o = x.collider[k];
            const Vec3<S> p = constant3<S>(o.p);
            c.center[k] = p;
            c.axis[k] = constant3<S>(o.axis[2]);
            c.speed[k] = c.spin[k] = S(T(0));
            c.velocity[k] = zero3<S>();
            if (o.body < 0) continue;
            const Vec3<S> r = work[o.body].R * p;
            const Motion<S>& m = c.base[o.body];
            const Vec3<S> v = point_velocity(m, r);
            c.center[k] = origin[o.body] + r;
            c.axis[k] = work[o.body].R * c.axis[k];
            // no point of the shape is faster
            c.speed[k] =
                bounded(square_root(dot(v, v)) + S(T(o.reach)) * square_root(dot(m.al, m.al)));
            c.velocity[k] = v;
            c.spin[k] = spin_of(k);
        }
    }

    void ground() {
        int last = -1;
        auto close = constant_mask<S>(false);
        S reach_n(T(0));
        const double blown = dt * kBlow > kBlowDepth ? dt * kBlow - kBlowDepth : 0;
        for (int k = 0; k < x.probes; ++k) {
            const Probe& p = x.probe[k];
            const Collider& o = x.collider[p.collider];
            if (o.body < 0) continue;
            if (p.collider != last) {
                // the whole shape first
                last = p.collider;
                reach_n = S(T(kNear + blown)) + S(T(dt)) * c.speed[last];
                close = near_ground(o, c.center[last], reach_n);
            }
            if (!any(close)) continue;
            if (o.kind != Solid::mesh) meet_ground(k, p, o, close, reach_n);
            else if (k == 0 || x.probe[k - 1].collider != p.collider)
                hull_on_ground(k, p.collider, close, reach_n);
        }
    }
    MaskOf<S> near_ground(const Collider& o, const Vec3<S>& center, const S& near) {
        const Ground& g = x.ground;
        if (g.kind == GroundKind::plane) {
            const double* n = g.normal;
            return dot(constant3<S>(n), center) < S(T(g.offset + o.reach)) + near;
        }
        auto close = constant_mask<S>(false);
        for (int lane = 0; lane < lanes; ++lane) {
            const Vec3<double> p = {double(get(center.x, lane)), double(get(center.y, lane)),
                                    double(get(center.z, lane))};
            put(close, lane, dot(p, p) < 1e18 && rises_to(g, p, o.reach + double(get(near, lane))));
        }
        return close;
    }

    void meet_ground(int slot, const Probe& p, const Collider& o, const MaskOf<S>& close, S near) {
        const Mat3<S>& R = work[o.body].R;
        Vec3<S> r = R * constant3<S>(p.point), n;
        S gap;
        const auto meet = [&] {
            Vec3<S> way = zero3<S>();
            if (x.ground.kind == GroundKind::field)
                way = S(T(dt)) * point_velocity(c.base[o.body], r);
            ground_gap(x.ground, origin[o.body] + r, way, p.radius, p.facet, field, gap, n);
        };
        meet();
        if (p.rim > 0) {
            r = r + rim_point(p, R, n);
            meet();
        }
        const auto on = close & c.alive & (gap < near);
        if (!any(on)) return;
        Contact<S>& a = c.add_contact();
        a.body = o.body;
        a.other = -1;
        a.collider = p.collider;
        a.other_collider = -1;
        a.slot = slot;
        a.on = on;
        a.gap = gap;
        a.n = n;
        a.at = origin[o.body] + r - S(T(p.radius)) * n;
        surface(a, o.surface, x.surfaces - 1);
        finish(a);
    }

    // A hull: the few of its corners that lie lowest carry it.
    void hull_on_ground(int slot, int k, const MaskOf<S>& close, const S& near) {
        const Collider& o = x.collider[k];
        const int facets = x.ground.kind == GroundKind::field ? 2 : 1;
        const int places = facets * kHullProbes;
        // of all copies first: rows come in the order of their places
        Touch touch[lanes][2 * kHullProbes];
        bool on[lanes][2 * kHullProbes] = {};
        for (int lane = 0; lane < lanes && lane < count; ++lane) {
            if (!get(close, lane) || !get(c.alive, lane)) continue;
            const Posed hull = posed(o, c.center[k], lane);
            const Path moves = path(o, hull, lane);
            LowCorner low[kMostLow];
            Touch found[kMostLow];
            const double tilt = kTilt + dt * length(moves.w), within = double(get(near, lane));
            const int n = low_over_ground(hull, moves, tilt < kMostTilt ? tilt : kMostTilt, within,
                                          low, found);
            for (int i = 0; i < n; ++i) {
                int place = low[i].quarter;
                while (on[lane][place]) place = (place + 1) % kHullProbes;
                on[lane][place] = true;
                touch[lane][place] = found[i];
                if (facets == 1) continue;
                // the facet that it comes to
                Touch& ahead = touch[lane][place + kHullProbes] = found[i];
                on[lane][place + kHullProbes] = facet_gap(moves, ahead, 1) && ahead.gap < within;
            }
        }
        for (int place = 0; place < places; ++place) {
            bool used = false;
            for (int lane = 0; lane < lanes; ++lane) used = used || on[lane][place];
            if (!used) continue;
            Contact<S>& a = c.add_contact();
            a.body = o.body;
            a.other = -1;
            a.collider = k;
            a.other_collider = -1;
            a.slot = slot + place;
            a.on = constant_mask<S>(false);
            a.at = zero3<S>();
            a.n = {S(T(0)), S(T(0)), S(T(1))};
            a.gap = S(T(0));
            for (int lane = 0; lane < lanes; ++lane) {
                if (!on[lane][place]) continue;
                const Touch& t = touch[lane][place];
                put(a.on, lane, true);
                set(a.at, lane, t.at);
                set(a.n, lane, t.n);
                put(a.gap, lane, T(t.gap));
            }
            surface(a, o.surface, x.surfaces - 1);
            finish(a);
        }
    }
    static constexpr int kMostLow = 64;
    // At most four corners of a hull that are nearer to the ground than `near`.
    int low_over_ground(const Posed& hull, const Path& moves, double tilt, double near,
                        LowCorner* low, Touch* found) const {
        const Ground& g = x.ground;
        int n;
        if (g.kind == GroundKind::plane) {
            const Point up = {g.normal[0], g.normal[1], g.normal[2]};
            const Point down = tmul(hull.R, -1.0 * up);
            const int lowest = furthest(*hull.hull, down);
            if (dot(up, hull.p) - dot(down, corner_of(*hull.hull, lowest)) - g.offset >= near)
                return 0;
            n = low_corners(*hull.hull, down, lowest, tilt, low);
        } else {
            n = low_over_field(hull, moves, tilt, low);
        }
        int count_ = 0;
        for (int i = 0; i < n; ++i) {
            Touch t;
            t.at = hull.p + hull.R * corner_of(*hull.hull, low[i].corner);
            if (!facet_gap(moves, t, 0) || !(t.gap < near)) continue;
            low[count_] = low[i];
            found[count_++] = t;
        }
        if (count_ <= 4) return count_;
        int pick[4];
        const int kept = pick_four(found, count_, pick);
        for (int i = 0; i < kept; ++i) low[i] = low[pick[i]], found[i] = found[pick[i]];
        return kept;
    }
    // Corners that lie lowest over a facet that is below the hull or that it comes to.
    int low_over_field(const Posed& hull, const Path& moves, double tilt, LowCorner* low) const {
        const Ground& g = x.ground;
        const Point way = dt * moves.center_velocity(0);
        const auto cells = [&](int k, double origin_, double spacing) {
            double reach = 0;
            for (int j = 0; j < 3; ++j)
                reach += std::fabs(component(column(hull.R, j), k)) * hull.box[j];
            const double at = component(hull.p, k), to = at + component(way, k);
            return cells_within(origin_, spacing, (at < to ? at : to) - reach,
                                (at < to ? to : at) + reach);
        };
        const bool known = std::fabs(hull.p.x) < 1e9 && std::fabs(hull.p.y) < 1e9 &&
                           std::fabs(way.x) < 1e9 && std::fabs(way.y) < 1e9;
        if (!known) return 0;
        const CellRange cols = cells(0, g.x0, g.dx), rows = cells(1, g.y0, g.dy);
        Point mean = {0, 0, 0}, last = {0, 0, 0};
        LowCorner more[kMostLow];
        int n_more = 0;
        for (std::int64_t i = 0; i < 2 * cols.count * rows.count; ++i) {
            const std::int64_t cell = i / 2, col = cols.first + cell % cols.count * cols.stride;
            const std::int64_t row = rows.first + cell / cols.count * rows.stride;
            const double s = i % 2 ? 2.0 / 3 : 1.0 / 3;
            const Facet f_ = facet_at(g, g.x0 + (col + s) * g.dx, g.y0 + (row + 1 - s) * g.dy);
            const Point up = {f_.n[0], f_.n[1], f_.n[2]};
            mean = mean + up;
            if (dot(up, last) > 1 - 1e-6) continue;
            last = up;
            const int corner = furthest(*hull.hull, tmul(hull.R, -1.0 * up));
            bool known_ = false;
            for (int k = 0; k < n_more && !known_; ++k) known_ = more[k].corner == corner;
            if (!known_ && n_more < kMostLow - kTilts - 1) more[n_more++] = {corner, 0};
        }
        const Point down = tmul(hull.R, (-1 / length(mean)) * mean);
        int n = low_corners(*hull.hull, down, furthest(*hull.hull, down), tilt, low);
        const int first_more = n;
        for (int i = 0; i < n_more; ++i) {
            bool known_ = false;
            for (int k = 0; k < first_more && !known_; ++k)
                known_ = low[k].corner == more[i].corner;
            if (!known_) low[n++] = more[i];
        }
        return n;
    }
    // Gap and normal of a corner over the ground; false: none.
    bool facet_gap(const Path& moves, Touch& t, int rank) const {
        const Ground& g = x.ground;
        if (g.kind == GroundKind::plane) {
            t.n = {g.normal[0], g.normal[1], g.normal[2]};
            t.gap = dot(t.n, t.at) - g.offset;
            return true;
        }
        const Point v = dt * moves.velocity_of(t.at);
        double n[3];
        t.gap = corner_gap(g, t.at, v, rank, n);
        t.n = {n[0], n[1], n[2]};
        return t.gap < 1e29;
    }

    // ---- pairs

    void pairs() {
        const bool crowd = x.trees >= kCrowd;
        if (crowd) hold_trees();
        for (int t = 0; t < x.tree_pairs; ++t) {
            const PairGroup& o = x.tree_pair[t];
            if (x.group[o.first].first >= x.pairs) return;
            if (crowd && o.b >= 0 && o.a != o.b) {
                const Vec3<S> d = c.middle[o.a] - c.middle[o.b];
                const S most = c.tree_reach[o.a] + c.tree_reach[o.b] + S(T(kNear + kDoubt)) +
                               S(T(dt)) * (c.tree_quickness[o.a] + c.tree_quickness[o.b]);
                if (!any(dot(d, d) < most * most)) continue;
            }
            bodies(o.first, o.last);
        }
    }
    void hold_trees() {
        for (int i = 0; i < f.nb; ++i) {
            const int r = x.root[i];
            if (i == r) {
                if (x.ball[i].reach < 0) c.middle[i] = origin[i];
                c.tree_reach[i] = c.tree_quickness[i] = S(T(0));
            }
            if (x.ball[i].reach < 0) continue;
            const Vec3<S> d = c.middle[i] - c.middle[r];
            c.tree_reach[r] =
                larger(c.tree_reach[r], square_root(dot(d, d)) + S(T(x.ball[i].reach)));
            c.tree_quickness[r] = larger(c.tree_quickness[r], c.quickness[i]);
        }
    }
    void bodies(int begin, int end) {
        for (int g = begin; g < end; ++g) {
            const PairGroup& o = x.group[g];
            if (o.first >= x.pairs) return;
            if (o.b >= 0) {
                // the bodies as a whole first
                const Vec3<S> d = c.middle[o.a] - c.middle[o.b];
                const S most = S(T(x.ball[o.a].reach + x.ball[o.b].reach + kNear + kDoubt)) +
                               S(T(dt)) * (c.quickness[o.a] + c.quickness[o.b]);
                if (!any(dot(d, d) < most * most)) continue;
            }
            shapes(o.first, o.last < x.pairs ? o.last : x.pairs);
        }
    }
    void shapes(int begin, int end) {
        for (int k = begin; k < end; ++k) {
            const ColliderPair& p = x.pair[k];
            const Collider &a = x.collider[p.a], &b = x.collider[p.b];
            const Vec3<S> d = c.center[p.a] - c.center[p.b];
            S near = S(T(kNear)) + S(T(dt)) * (c.speed[p.a] + c.speed[p.b]);
            const S most = S(T(a.reach + b.reach)) + near;
            auto close = c.alive & (dot(d, d) < most * most);
            if (!any(close)) continue;
            // what flies along does not come nearer
            const Vec3<S> v = c.velocity[p.a] - c.velocity[p.b];
            near = S(T(kNear)) +
                   S(T(dt)) * bounded(square_root(dot(v, v)) + c.spin[p.a] + c.spin[p.b]);
            if (a.kind <= Solid::capsule && b.kind <= Solid::capsule) {
                // of two rods the distance itself is soon found
                const S rods = S(T(a.size[0] + b.size[0] + kDoubt)) + near;
                close = close & (rod_distance2(p.a, p.b, d) < rods * rods);
                if (!any(close)) continue;
            }
            // the faces of a box soon tell, and those of the box that holds a hull
            if (a.kind >= Solid::box) close = close & negate(beyond_faces(p.a, p.b, d, near));
            if (!any(close)) continue;
            if (b.kind >= Solid::box) close = close & negate(beyond_faces(p.b, p.a, d, near));
            if (any(close)) narrow(p, a, b, close, near);
        }
    }
    // the axes of a collider in the world
    void axes(int k, Vec3<S>* u) const {
        const Collider& o = x.collider[k];
        for (int j = 0; j < 2; ++j) {
            u[j] = constant3<S>(o.axis[j]);
            if (o.body >= 0) u[j] = work[o.body].R * u[j];
        }
        u[2] = c.axis[k];
    }
    // copies in which shape l lies beyond a face of box k; d is between their middles
    MaskOf<S> beyond_faces(int k, int l, const Vec3<S>& d, S near) const {
        const Collider &box = x.collider[k], &o = x.collider[l];
        Vec3<S> u[3], v[3];
        axes(k, u);
        if (o.kind >= Solid::box) axes(l, v);
        auto apart = constant_mask<S>(false);
        for (int j = 0; j < 3; ++j) {
            S most = S(T(box.box[j])) + near;
            if (o.kind >= Solid::box)
                for (int i = 0; i < 3; ++i)
                    most = most + S(T(o.box[i])) * absolute(dot(u[j], v[i]));
            else
                most =
                    most + S(T(o.size[0])) + S(T(half_length(o))) * absolute(dot(u[j], c.axis[l]));
            apart = apart | (most < absolute(dot(u[j], d)));
        }
        return apart;
    }
    // distance of the axes of two capsules, squared; d is between their middles. Near enough to
    // tell who may touch: collide() has the last word.
    S rod_distance2(int k, int l, const Vec3<S>& d) const {
        const S h = S(T(half_length(x.collider[k]))), g = S(T(half_length(x.collider[l])));
        const Vec3<S>&u = c.axis[k], &v = c.axis[l];
        const S b = dot(u, v), e = dot(u, d), f_ = dot(v, d);
        const S det = larger(S(T(1)) - b * b, S(T(1e-6)));
        const auto within = [](S a, S most) { return larger(-most, -larger(-most, -a)); };
        S s = within((b * f_ - e) / det, h);
        S t = within(f_ + s * b, g);
        s = within(t * b - e, h);
        t = within(f_ + s * b, g);
        const Vec3<S> gap = d + s * u - t * v;
        return dot(gap, gap);
    }
    static double half_length(const Collider& o) {
        return o.kind == Solid::capsule ? o.size[1] : 0;
    }
    Posed posed(const Collider& o, const Vec3<S>& center, int lane) const {
        const Quat<double> E = {o.E[0], o.E[1], o.E[2], o.E[3]};
        Mat3<double> R = matrix(E);
        if (o.body >= 0) {
            const Mat3<S>& B = work[o.body].R;
            const Mat3<double> L = {
                double(get(B.xx, lane)), double(get(B.xy, lane)), double(get(B.xz, lane)),
                double(get(B.yx, lane)), double(get(B.yy, lane)), double(get(B.yz, lane)),
                double(get(B.zx, lane)), double(get(B.zy, lane)), double(get(B.zz, lane))};
            R = L * R;
        }
        return {
            o.kind,
            o.size,
            {double(get(center.x, lane)), double(get(center.y, lane)), double(get(center.z, lane))},
            R,
            o.hull,
            o.reach,
            o.box};
    }

    Rod<S> rod(int k) const {
        const Collider& o = x.collider[k];
        return {c.center[k], c.axis[k], S(T(half_length(o))), o.size[0]};
    }
    LaneBox<S> box(int k) const {
        LaneBox<S> o;
        o.center = c.center[k];
        axes(k, o.axis);
        o.size = x.collider[k].size;
        return o;
    }
    // Where colliders are at a time within the step, if nothing touches.
    Vec3<S> center_at(int k, const S& t) const {
        const int i = x.collider[k].body;
        if (i < 0) return c.center[k];
        const Motion<S>& m = c.base[i];
        const Vec3<S> r = c.center[k] - origin[i];
        return origin[i] + t * m.a + rotate(exponential(t * m.al), r);
    }
    Vec3<S> turned(int k, const Vec3<S>& u, const S& t) const {
        const int i = x.collider[k].body;
        return i < 0 ? u : rotate(exponential(t * c.base[i].al), u);
    }
    Vec3<S> velocity_at(int k, const Vec3<S>& center) const {
        const int i = x.collider[k].body;
        if (i < 0) return zero3<S>();
        return point_velocity(c.base[i], center - origin[i]);
    }
    // no point of a collider is faster than its center by more than this
    S spin_of(int k) const {
        const Collider& o = x.collider[k];
        if (o.body < 0 || o.kind == Solid::sphere) return S(T(0));
        const Vec3<S>& w = c.base[o.body].al;
        if (o.kind != Solid::capsule) return S(T(o.reach)) * square_root(dot(w, w));
        const Vec3<S> turn = cross(w, c.axis[k]);
        return S(T(half_length(o))) * square_root(dot(turn, turn));
    }
    // The touch of two shapes at a time within the step.
    LaneTouch<S> touch_at(const ColliderPair& p, const Collider& a, const Collider& b,
                          const S& t) const {
        const S far(T(1e30));
        LaneTouch<S> touch[3];
        if (b.kind == Solid::box) {
            LaneBox<S> o = box(p.b);
            o.center = center_at(p.b, t);
            for (auto& u : o.axis) u = turned(p.b, u, t);
            const Rod<S> r = rod_at(p.a, t);
            if (a.kind == Solid::sphere) return touch_ball_box(r.center, r.radius, o, far);
            S e[3], q_[3];
            for (int k = 0; k < 3; ++k) {
                q_[k] = dot(o.axis[k], r.center - o.center);
                e[k] = dot(o.axis[k], r.axis);
            }
            const S along = nearest_on_rod(q_, e, r.half, o.size);
            return touch_ball_box(r.center + along * r.axis, r.radius, o, far);
        }
        touch_rods(rod_at(p.a, t), rod_at(p.b, t), far, touch);
        return touch[0];
    }
    Rod<S> rod_at(int k, const S& t) const {
        Rod<S> o = rod(k);
        o.center = center_at(k, t);
        o.axis = turned(k, o.axis, t);
        return o;
    }
    // Conservative advancement. Of shapes that are apart the row of a step would act on whatever
    // crosses the plane between them; those whose paths do not meet within the step have no row,
    // and those that meet elsewhere touch there. b is the box, if one is.
    void drop_passing(const ColliderPair& p, const Collider& a, const Collider& b, int points,
                      LaneTouch<S>* touch) const {
        const S zero(T(0)), step{T(dt)}, apart{T(kPassing)}, hit(T(0.1 * kPassing));
        S gap(T(1e30));
        Vec3<S> n = zero3<S>();
        auto any_on = constant_mask<S>(false);
        for (int k = 0; k < points; ++k) {
            const auto nearer = touch[k].on & (touch[k].gap < gap);
            gap = select(nearer, touch[k].gap, gap);
            n = choose(nearer, touch[k].n, n);
            any_on = any_on | touch[k].on;
        }
        const S spin = c.spin[p.a] + c.spin[p.b];
        const auto closing = [&](const Vec3<S>& normal, const S& t) {
            const Vec3<S> v =
                velocity_at(p.a, center_at(p.a, t)) - velocity_at(p.b, center_at(p.b, t));
            return spin - dot(normal, v);
        };
        S t = zero, speed = closing(n, t);
        auto unknown = any_on & (apart < gap) & (gap < step * speed);
        if (!any(unknown)) return;
        const auto looked = unknown;
        auto passes = constant_mask<S>(false), met = constant_mask<S>(false);
        LaneTouch<S> last = touch[0];
        const Vec3<S> facing = n;
        for (int k = 0; k < kAdvances && any(unknown); ++k) {
            t = select(unknown, t + gap / larger(speed, S(T(1e-9))), t);
            const auto late = unknown & negate(t < step);
            passes = passes | late;
            unknown = unknown & negate(late);
            const LaneTouch<S> now = touch_at(p, a, b, select(t < step, t, step));
            gap = select(unknown, now.gap, gap);
            put_where(unknown, now, last);
            const auto there = unknown & (now.gap < hit);
            met = met | there;
            unknown = unknown & negate(there);
            n = choose(unknown, now.n, n);
            speed = select(unknown, closing(n, t), speed);
            const auto leaves = unknown & negate(zero < speed);
            passes = passes | leaves;
            unknown = unknown & negate(leaves);
        }
        // another side is hit than the one that faces at the start
        const auto elsewhere = met & (dot(last.n, facing) < S(T(0.99)));
        for (int k = 0; k < points; ++k) {
            const auto mine = looked & (apart < touch[k].gap);
            touch[k].on = touch[k].on & negate(mine & (passes | elsewhere));
        }
        if (!any(elsewhere)) return;
        // where the point of b that is hit is now, and the way along that normal until then
        Vec3<S> at = last.at;
        if (b.body >= 0) {
            const Motion<S>& m = c.base[b.body];
            const Vec3<S> then = origin[b.body] + t * m.a;
            at = origin[b.body] + rotate(exponential((zero - t) * m.al), last.at - then);
        }
        const S way =
            t *
            (zero - dot(last.n, velocity_at(p.a, c.center[p.a]) - velocity_at(p.b, c.center[p.b])));
        last.at = at;
        last.gap = larger(way, hit);
        put_where(elsewhere, last, touch[0]);
        touch[0].on = touch[0].on | elsewhere;
    }
    // A side of a fixed box that another one, or the ground, covers at a place: what slides over
    // the seam of two tiles must not be stopped by it. The place just outside of it lies in the
    // other.
    bool covered(int k, const Point& place) const {
        for (int i = x.neighbor_begin[k]; i < x.neighbor_begin[k + 1]; ++i) {
            const Collider& o = x.collider[x.neighbor[i]];
            const Quat<double> E = {o.E[0], o.E[1], o.E[2], o.E[3]};
            const Point l = rotate_back(E, place - Point{o.p[0], o.p[1], o.p[2]});
            if (std::fabs(l.x) <= o.size[0] + kSeam && std::fabs(l.y) <= o.size[1] + kSeam &&
                std::fabs(l.z) <= o.size[2] + kSeam)
                return true;
        }
        const Ground& g = x.ground;
        return g.kind == GroundKind::plane &&
               g.normal[0] * place.x + g.normal[1] * place.y + g.normal[2] * place.z - g.offset <=
                   kSeam;
    }
    bool has_seams(const Collider& o, int k) const {
        return o.body < 0 && o.kind == Solid::box && x.neighbor_begin[k + 1] > x.neighbor_begin[k];
    }
    // Whether a touch of box k pushes out of a side that is covered there: what covers it has the
    // touch that counts. A part of the normal below `slant` does not matter.
    bool at_seam(int k, const Point& at, const Point& n, double slant) const {
        const Collider& o = x.collider[k];
        const Mat3<double> R = matrix(Quat<double>{o.E[0], o.E[1], o.E[2], o.E[3]});
        const Point l = tmul(R, at - Point{o.p[0], o.p[1], o.p[2]}), m = tmul(R, n);
        for (int j = 0; j < 3; ++j) {
            const double out = component(m, j), side = out < 0 ? -1 : 1;
            if (side * out < slant || side * component(l, j) < o.size[j] - kSeam) continue;
            if (covered(k, at + (2 * side * kSeam) * column(R, j))) return true;
        }
        return false;
    }
    // A ball whose center is in box k, and the nearest side covered: out by the nearest open one.
    bool leave_by_open_side(int k, const Point& center, double radius, Touch& touch) const {
        const Collider& o = x.collider[k];
        const Mat3<double> R = matrix(Quat<double>{o.E[0], o.E[1], o.E[2], o.E[3]});
        const Point l = tmul(R, center - Point{o.p[0], o.p[1], o.p[2]});
        double least = 1e300;
        for (int j = 0; j < 3; ++j) {
            if (std::fabs(component(l, j)) > o.size[j]) return false;
            for (const double side : {-1.0, 1.0}) {
                const double depth = o.size[j] - side * component(l, j);
                const Point n = side * column(R, j), at = center + depth * n;
                if (depth >= least || covered(k, at + (2 * kSeam) * n)) continue;
                least = depth;
                touch = {at, n, -depth - radius};
            }
        }
        return least < 1e300;
    }
    void drop_seams(int rod_at, int box_at, int points, LaneTouch<S>* touch) const {
        if (!has_seams(x.collider[box_at], box_at)) return;
        const double radius = x.collider[rod_at].size[0];
        for (int k = 0; k < points; ++k)
            for (int lane = 0; lane < lanes; ++lane) {
                if (!get(touch[k].on, lane)) continue;
                const Point at = point_in(touch[k].at, lane), n = point_in(touch[k].n, lane);
                if (!at_seam(box_at, at, n, kSlant)) continue;
                const double gap = double(get(touch[k].gap, lane));
                Touch other;
                const bool inside =
                    gap < -radius &&
                    leave_by_open_side(box_at, at + (gap + radius) * n, radius, other);
                put(touch[k].on, lane, inside);
                if (!inside) continue;
                set(touch[k].at, lane, other.at);
                set(touch[k].n, lane, other.n);
                put(touch[k].gap, lane, T(other.gap));
            }
    }
    static void put_where(const MaskOf<S>& m, const LaneTouch<S>& from, LaneTouch<S>& to) {
        to.at = choose(m, from.at, to.at);
        to.n = choose(m, from.n, to.n);
        to.gap = select(m, from.gap, to.gap);
    }

    // Rods with each other and with boxes, in lanes.
    bool narrow_lanes(const ColliderPair& p, const Collider& a, const Collider& b,
                      const MaskOf<S>& close, const S& near) {
        const bool rod_a = a.kind <= Solid::capsule, rod_b = b.kind <= Solid::capsule;
        LaneTouch<S> touch[3];
        int points = 1;
        if (rod_a && rod_b) {
            touch_rods(rod(p.a), rod(p.b), near, touch);
            drop_passing(p, a, b, points = 2, touch);
        } else if (rod_a && b.kind == Solid::box) {
            points = meet_box(p.a, p.b, near, touch);
            drop_passing(p, a, b, points, touch);
        } else if (rod_b && a.kind == Solid::box) {
            points = meet_box(p.b, p.a, near, touch);
            drop_passing({p.b, p.a, 0, 0}, b, a, points, touch);
            for (int k = 0; k < points; ++k) {
                // from the box's surface to the rod's
                touch[k].at = touch[k].at + touch[k].gap * touch[k].n;
                touch[k].n = zero3<S>() - touch[k].n;
            }
        } else {
            return false;
        }
        if (points == 3) meet_deep(p, a, b, close, near, touch);
        if (b.kind == Solid::box) drop_seams(p.a, p.b, points, touch);
        for (int k = 0; k < points && k < p.points; ++k) {
            const auto on = close & touch[k].on;
            if (!any(on)) continue;
            open(p, a, b, k);
            Contact<S>& o = c.contact[c.contacts - 1];
            o.on = on;
            o.at = touch[k].at;
            o.n = touch[k].n;
            o.gap = touch[k].gap;
            surface(o, a.surface, b.surface);
            finish(o);
        }
        return true;
    }
    // A capsule whose axis runs through a box leaves where the whole of it is soonest out.
    void meet_deep(const ColliderPair& p, const Collider& a, const Collider& b,
                   const MaskOf<S>& close, const S& near, LaneTouch<S>* touch) const {
        const S radius(T(a.kind == Solid::capsule ? a.size[0] : b.size[0]));
        const auto deep = close & touch[2].on & (touch[2].gap < S(T(kThrough)) - radius);
        if (!any(deep)) return;
        for (int lane = 0; lane < lanes && lane < count; ++lane) {
            if (!get(deep, lane)) continue;
            Touch found[kMostTouches];
            const int points = collide(posed(a, c.center[p.a], lane), posed(b, c.center[p.b], lane),
                                       double(get(near, lane)), found);
            for (int k = 0; k < 3; ++k) {
                put(touch[k].on, lane, k < points);
                if (k >= points) continue;
                set(touch[k].at, lane, found[k].at);
                set(touch[k].n, lane, found[k].n);
                put(touch[k].gap, lane, T(found[k].gap));
            }
        }
    }
    int meet_box(int rod_at, int box_at, const S& near, LaneTouch<S>* touch) const {
        const Rod<S> r = rod(rod_at);
        const LaneBox<S> o = box(box_at);
        if (x.collider[rod_at].kind == Solid::sphere) {
            touch[0] = touch_ball_box(r.center, r.radius, o, near);
            return 1;
        }
        touch_rod_box(r, o, near, touch);
        return 3;
    }
    void narrow(const ColliderPair& p, const Collider& a, const Collider& b, const MaskOf<S>& close,
                S near) {
        if (narrow_lanes(p, a, b, close, near)) return;
        const bool convex = a.kind > Solid::box || b.kind > Solid::box;
        const int start = c.contacts;
        int used = 0;
        for (int lane = 0; lane < lanes && lane < count; ++lane) {
            if (!get(close, lane)) continue;
            Touch touch[kMostTouches];
            const Posed one = posed(a, c.center[p.a], lane), two = posed(b, c.center[p.b], lane);
            const double within = double(get(near, lane));
            const int found = convex ? meet_convex(a, b, one, two, within, lane, touch)
                                     : boxes(p, lane, within, touch);
            for (; used < found && used < p.points; ++used) open(p, a, b, used);
            for (int k = 0; k < found && k < p.points; ++k) {
                Contact<S>& o = c.contact[start + k];
                put(o.on, lane, true);
                set(o.at, lane, touch[k].at);
                set(o.n, lane, touch[k].n);
                put(o.gap, lane, T(touch[k].gap));
            }
        }
        for (int k = start; k < c.contacts; ++k) {
            surface(c.contact[k], a.surface, b.surface);
            finish(c.contact[k]);
        }
    }
    // A box of one copy at a time within the step, if nothing touches, and the velocity of its
    // center.
    Posed posed_at(int k, int lane, double t) const {
        const Collider& o = x.collider[k];
        Posed now = posed(o, c.center[k], lane);
        if (o.body < 0 || t == 0) return now;
        const Motion<S>& m = c.base[o.body];
        const Quat<double> turn = exponential(t * point_in(m.al, lane));
        const Point from = point_in(origin[o.body], lane);
        now.p = from + t * point_in(m.a, lane) + rotate(turn, now.p - from);
        now.R = matrix(turn) * now.R;
        return now;
    }
    Point velocity_of(int k, int lane, const Posed& now, double t) const {
        const int i = x.collider[k].body;
        if (i < 0) return {0, 0, 0};
        const Point v = point_in(c.base[i].a, lane);
        return v + cross(point_in(c.base[i].al, lane), now.p - point_in(origin[i], lane) - t * v);
    }
    // Two boxes of one copy. Those that are apart touch only if their paths meet within the step:
    // conservative advancement, as in drop_passing.
    int boxes(const ColliderPair& p, int lane, double near, Touch* touch) const {
        Posed a = posed_at(p.a, lane, 0), b = posed_at(p.b, lane, 0);
        int found = collide(a, b, near, touch);
        if (x.collider[p.a].kind != Solid::box || x.collider[p.b].kind != Solid::box) return found;
        Point n{0, 0, 1};
        double gap = 1e30, t = 0;
        for (int k = 0; k < found; ++k) gap = std::fmin(gap, touch[k].gap);
        if (gap > kPassing) gap = separation(a, b, n);
        if (gap > kPassing) {
            const double spin = double(get(c.spin[p.a], lane)) + double(get(c.spin[p.b], lane));
            const Point facing = n;
            const Point v = velocity_of(p.a, lane, a, 0) - velocity_of(p.b, lane, b, 0);
            for (int k = 0; gap > 0.1 * kPassing && k < kAdvances; ++k) {
                const double speed =
                    spin - dot(n, velocity_of(p.a, lane, a, t) - velocity_of(p.b, lane, b, t));
                if (speed <= 0 || t + gap / speed >= dt) return 0;
                t += gap / speed;
                a = posed_at(p.a, lane, t);
                b = posed_at(p.b, lane, t);
                gap = separation(a, b, n);
            }
            // another side is hit than the one that faces at the start
            if (!found || dot(n, facing) < 0.99) found = met_at(p, lane, a, b, v, t, touch);
        }
        if (!found || !has_seams(x.collider[p.b], p.b)) return found;
        int kept = 0;
        for (int k = 0; k < found; ++k)
            if (!at_seam(p.b, touch[k].at, touch[k].n, kBoxSlant)) touch[kept++] = touch[k];
        return kept;
    }
    // The touches of two boxes that meet at a time t: where the points of b are now, and the way
    // until then.
    int met_at(const ColliderPair& p, int lane, const Posed& a, const Posed& b, const Point& v,
               double t, Touch* touch) const {
        const int found = collide(a, b, kPassing, touch), i = x.collider[p.b].body;
        for (int k = 0; k < found; ++k) {
            Touch& o = touch[k];
            o.gap = std::fmax(o.gap - t * dot(o.n, v), 0.1 * kPassing);
            if (i < 0) continue;
            const Point from = point_in(origin[i], lane);
            const Quat<double> back = exponential(-t * point_in(c.base[i].al, lane));
            o.at = from + rotate(back, o.at - from - t * point_in(c.base[i].a, lane));
        }
        return found;
    }
    // Two convex solids, of which one is a hull or a cylinder. Those that are apart meet only if
    // their paths do within the step, as in drop_passing.
    int meet_convex(const Collider& a, const Collider& b, const Posed& one, const Posed& two,
                    double near, int lane, Touch* touch) const {
        Nearest now;
        if (!nearest_points(one, two, near, now)) return 0;
        constexpr double hit = 0.1 * kPassing;
        const Path u = path(a, one, lane), v = path(b, two, lane);
        const auto closing = [&](const Point& n, double t) {
            return u.spin + v.spin - dot(n, u.center_velocity(t) - v.center_velocity(t));
        };
        double speed = closing(now.n, 0), t = 0;
        if (now.gap < kPassing || now.gap >= dt * speed)
            return touch_patch(one, two, now, near, touch);
        Nearest there = now;
        for (int k = 0; k < kAdvances && there.gap >= hit; ++k) {
            t += there.gap / speed;
            if (!(t < dt) || !nearest_points(u.at(t), v.at(t), 1e30, there)) return 0;
            speed = closing(there.n, t);
            if (there.gap >= hit && !(speed > 0)) return 0;
        }
        if (there.gap >= hit || dot(there.n, now.n) >= 0.99)
            return touch_patch(one, two, now, near, touch);
        // another side is hit than the one that faces at the start: where the point of b that is
        // hit is now, and the way along that normal until then
        const double way = -t * dot(there.n, u.center_velocity(0) - v.center_velocity(0));
        touch[0] = {v.back(there.at + v.center(t), t), there.n, way > hit ? way : hit};
        return 1;
    }
    Path path(const Collider& o, const Posed& now, int lane) const {
        if (o.body < 0) return {now, now.p, {0, 0, 0}, {0, 0, 0}, 0};
        const Motion<S>& m = c.base[o.body];
        const Point w = point_in(m.al, lane);
        const double spin = o.kind == Solid::sphere ? 0 : o.reach * length(w);
        return {now, point_in(origin[o.body], lane), point_in(m.a, lane), w, spin};
    }
    static Point point_in(const Vec3<S>& v, int lane) {
        return {double(get(v.x, lane)), double(get(v.y, lane)), double(get(v.z, lane))};
    }
    // an empty contact of a pair; lanes without a touch keep harmless numbers
    void open(const ColliderPair& p, const Collider& a, const Collider& b, int k) {
        Contact<S>& o = c.add_contact();
        o.body = a.body;
        o.other = b.body;
        o.collider = p.a;
        o.other_collider = p.b;
        o.slot = p.slot + k;
        o.on = constant_mask<S>(false);
        o.at = zero3<S>();
        o.n = {S(T(0)), S(T(0)), S(T(1))};
        o.gap = S(T(0));
    }
    static void set(Vec3<S>& v, int lane, const Point& p) {
        put(v.x, lane, T(p.x));
        put(v.y, lane, T(p.y));
        put(v.z, lane, T(p.z));
    }

    // ---- what a contact needs besides

    double of_copy(const double* table, std::int64_t stride, int row, int lane) const {
        const std::int64_t last = count - 1, k = lane < last ? lane : last;
        return table[(first + k) * stride + row];
    }
    void surface(Contact<S>& a, int one, int two) const {
        if (!x.friction_stride) {
            a.mu = S(T(x.friction_root[one] * x.friction_root[two]));
        } else {
            for (int lane = 0; lane < lanes; ++lane)
                put(a.mu, lane,
                    T(of_copy(x.friction_root, x.friction_stride, one, lane) *
                      of_copy(x.friction_root, x.friction_stride, two, lane)));
        }
        if (!x.restitution_stride) {
            const double e = x.restitution[one], g = x.restitution[two];
            a.bounce = S(T(e > g ? e : g));
            return;
        }
        for (int lane = 0; lane < lanes; ++lane) {
            const double e = of_copy(x.restitution, x.restitution_stride, one, lane);
            const double g = of_copy(x.restitution, x.restitution_stride, two, lane);
            put(a.bounce, lane, T(e > g ? e : g));
        }
    }
    void finish(Contact<S>& a) const {
        const S zero(T(0)), all{T(kEverywhere)};
        // numbers that are none touch nothing
        a.on = a.on & (dot(a.at, a.at) < all * all) & (-all < a.gap);
        // a body of the world's comes second
        a.r = a.at - origin[a.body];
        a.r_other = a.other < 0 ? zero3<S>() : a.at - origin[a.other];
        tangents(a.n, a.t, a.u);
        a.bound = select(zero < a.gap, -(a.gap / S(T(dt))), zero);
        const S* m = memory + 3 * a.slot;
        const Vec3<S> old = {m[0], m[1], m[2]};
        a.ln = select(a.on, larger(dot(a.n, old), zero), zero);
        const S most = a.mu * a.ln;
        const S t = dot(a.t, old), u = dot(a.u, old), size2 = t * t + u * u;
        const S k =
            select(most * most < size2, most / square_root(larger(size2, S(T(1e-30)))), S(T(1)));
        a.lt = select(a.on, k * t, zero);
        a.lu = select(a.on, k * u, zero);
        a.push = a.soft = a.slick = zero;
        a.struck = a.fresh = constant_mask<S>(false);
    }

    // ---- bounds of joints

    void add_bound(int body, int slot, const MaskOf<S>& near, const Vec3<S>& g, S slack) {
        const auto on = near & c.alive;
        if (!any(on)) return;
        const S zero(T(0));
        LimitRow<S>& o = c.limit[c.limits];
        o.body = body;
        o.slot = slot;
        o.on = on;
        o.g = g;
        o.slack = slack;
        o.bound = select(zero < slack, -(slack / S(T(dt))), zero);
        o.l = select(on, larger(memory[3 * slot], zero), zero);
        o.push = zero;
        ++c.limits;
    }
    // rate of the joint without contact
    Vec3<S> rate_of(int i) const {
        const int p = f.body[i].parent;
        const Motion<S> m = p < 0 ? zero_motion<S>() : shift(c.base[p], work[i].r);
        return f.body[i].kind == Kind::slide ? c.base[i].a - m.a : c.base[i].al - m.al;
    }
    S near_bound(const Vec3<S>& rate) const {
        return S(T(kNearBound)) + S(T(dt)) * square_root(dot(rate, rate));
    }
    void axis_bound(const Bound& b, int slot) {
        const S zero(T(0)), one(T(1));
        const S a = q[f.body[b.body].q];
        const S near = near_bound(rate_of(b.body));
        const S low = a - S(T(b.lower)), high = S(T(b.upper)) - a;
        add_bound(b.body, slot + 1, low < near, {one, zero, zero}, low);
        add_bound(b.body, slot + 2, high < near, {-one, zero, zero}, high);
    }
    // swing and twist about the axis a: with q = (w, v), s = v.a: cos(swing / 2)^2 = w^2 + s^2 and
    // tan(twist / 2) = s / w; their gradients as in poise.motion.limits
    void ball_bound(const Bound& b, int slot) {
        const S one(T(1)), zero(T(0));
        Quat<S> p = quat_at(q + f.body[b.body].q);
        const auto flip = p.w < zero;
        p = {select(flip, -p.w, p.w), select(flip, -p.x, p.x), select(flip, -p.y, p.y),
             select(flip, -p.z, p.z)};
        const Vec3<S> axis = constant3<S>(b.axis), v = {p.x, p.y, p.z};
        const S s = dot(v, axis);
        const Vec3<S> side = v - s * axis;
        const S near = near_bound(rate_of(b.body));
        const S c2 = p.w * p.w + s * s;
        const S ch = square_root(c2), sh = square_root(dot(side, side));
        const S swing = logarithm(Quat<S>{ch, sh, zero, zero}).x;
        const S k = one / larger(ch, S(T(1e-6)));
        const S twist = logarithm(Quat<S>{k * p.w, k * s, zero, zero}).x;
        // a x R'a has the length sin(swing) and lies along the swing's axis, in the child's frame
        const Vec3<S> back = rotate_back(p, axis);
        const Vec3<S> across = cross(axis, back);
        const S sine = square_root(dot(across, across));
        const Mat3<S>& R = work[b.body].R;
        const S out = one / larger(sine, S(T(1e-6)));
        // the slack shrinks as the swing grows
        const Vec3<S> in = R * (out * across);
        const S room = S(T(b.swing)) - swing;
        add_bound(b.body, slot, room < near, in, room);
        const S cosine = dot(axis, back);
        const Vec3<S> turn = R * ((one / larger(one + cosine, S(T(1e-3)))) * (axis + back));
        const S low = twist - S(T(b.lower)), high = S(T(b.upper)) - twist;
        add_bound(b.body, slot + 1, low < near, turn, low);
        add_bound(b.body, slot + 2, high < near, zero3<S>() - turn, high);
    }

    const Forest& f;
    const CollisionModel& x;
    const Work<S>* work;
    const Vec3<S>* origin;
    const S* q;
    double dt;
    std::int64_t first, count;
    const S* memory;
    ContactScratch<S>& c;
    FieldTouches<S> field;
};

}  // namespace poise::inline POISE_ISA
