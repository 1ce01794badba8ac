// Finds the rows of a step: contacts with the ground, between shapes, and joints at their bounds.
#pragma once

#include "poise/contact/collision.hpp"
#include "poise/contact/gauss_seidel.hpp"
#include "poise/contact/ground.hpp"

namespace poise::inline POISE_ISA {

// No contact is looked for beyond this [m].
constexpr double kFarthest = 1.0;
// A body that is stopped at one end turns faster: it is looked for so much further ahead.
constexpr double kHaste = 2;
// A light one that may touch the ground may whirl: its other points are looked for further still.
constexpr double kWhirl = 6;
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
        c.contacts = c.limits = c.groups = 0;
        for (int i = 0; i < f.nb; ++i) c.head[i] = c.bound[i] = -1;
        centers();
        if (x.ground.kind != GroundKind::none) ground();
        pairs();
        chain();
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
    static Vec3<S> constant(const double* p) { return {S(T(p[0])), S(T(p[1])), S(T(p[2]))}; }
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
            const Vec3<S> r = work[i].R * constant(ball.p);
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
            const Vec3<S> p = constant(o.p);
            const Quat<double> E = {o.E[0], o.E[1], o.E[2], o.E[3]};
            const Vec3<double> z = rotate(E, Vec3<double>{0, 0, 1});
            const double along[3] = {z.x, z.y, z.z};
            c.center[k] = p;
            c.axis[k] = constant(along);
            c.speed[k] = S(T(0));
            if (o.body < 0) continue;
            const Vec3<S> r = work[o.body].R * p;
            const Motion<S>& m = c.base[o.body];
            const Vec3<S> v = point_velocity(m, r);
            c.center[k] = origin[o.body] + r;
            c.axis[k] = work[o.body].R * c.axis[k];
            // no point of the shape is faster
            c.speed[k] =
                bounded(square_root(dot(v, v)) + S(T(o.reach)) * square_root(dot(m.al, m.al)));
        }
    }

    void ground() {
        int last = -1;
        auto close = constant_mask<S>(false);
        S reach_n(T(0));
        for (int k = 0; k < x.probes; ++k) {
            const Probe& p = x.probe[k];
            const Collider& o = x.collider[p.collider];
            if (o.body < 0) continue;
            if (p.collider != last) {
                // the whole shape first
                last = p.collider;
                S gap;
                Vec3<S> n;
                ground_gap(x.ground, c.center[last], zero3<S>(), 0, 0, gap, n);
                const S ahead = S(T(dt)) * c.speed[last];
                reach_n = S(T(kNear)) + S(T(kHaste)) * ahead;
                close = gap < S(T(o.reach * slack())) + reach_n;
                reach_n = S(T(kNear)) + S(T(kWhirl)) * ahead;
            }
            if (any(close)) meet_ground(k, p, o, close, reach_n);
        }
    }
    // slopes of a height field change within a shape
    double slack() const { return x.ground.kind == GroundKind::plane ? 1.0 : 2.0; }

    void meet_ground(int slot, const Probe& p, const Collider& o, const MaskOf<S>& close, S near) {
        const Mat3<S>& R = work[o.body].R;
        Vec3<S> r = R * constant(p.point), n;
        S gap;
        const auto meet = [&] {
            Vec3<S> way = zero3<S>();
            if (x.ground.kind == GroundKind::field)
                way = S(T(dt)) * point_velocity(c.base[o.body], r);
            ground_gap(x.ground, origin[o.body] + r, way, p.radius, p.facet, gap, n);
        };
        meet();
        if (p.rim > 0) {
            r = r + rim_point(p, R, n);
            meet();
        }
        const auto on = close & (gap < near);
        if (!any(on)) return;
        Contact<S>& a = c.contact[c.contacts++];
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
                               S(T(kHaste * dt)) * (c.tree_quickness[o.a] + c.tree_quickness[o.b]);
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
                               S(T(kHaste * dt)) * (c.quickness[o.a] + c.quickness[o.b]);
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
            const S near = S(T(kNear)) + S(T(kHaste * dt)) * (c.speed[p.a] + c.speed[p.b]);
            const S most = S(T(a.reach + b.reach)) + near;
            auto close = dot(d, d) < most * most;
            if (!any(close)) continue;
            if (a.kind <= Solid::capsule && b.kind <= Solid::capsule) {
                // of two rods the distance itself is soon found
                const S rods = S(T(a.size[0] + b.size[0] + kDoubt)) + near;
                close = close & (rod_distance2(p.a, p.b, d) < rods * rods);
                if (!any(close)) continue;
            }
            // the faces of a box soon tell
            if (p.given < 0 && a.kind == Solid::box)
                close = close & negate(beyond_faces(p.a, p.b, d, near));
            if (p.given < 0 && b.kind == Solid::box)
                close = close & negate(beyond_faces(p.b, p.a, d, near));
            if (any(close)) narrow(p, a, b, close, near);
        }
    }
    // the axes of a collider in the world
    void axes(int k, Vec3<S>* u) const {
        const Collider& o = x.collider[k];
        const Quat<double> E = {o.E[0], o.E[1], o.E[2], o.E[3]};
        for (int j = 0; j < 2; ++j) {
            const Vec3<double> v =
                rotate(E, Vec3<double>{j == 0 ? 1.0 : 0.0, j == 1 ? 1.0 : 0.0, 0});
            const double along[3] = {v.x, v.y, v.z};
            u[j] = constant(along);
            if (o.body >= 0) u[j] = work[o.body].R * u[j];
        }
        u[2] = c.axis[k];
    }
    // copies in which shape l lies beyond a face of box k; d is between their middles
    MaskOf<S> beyond_faces(int k, int l, const Vec3<S>& d, S near) const {
        const Collider &box = x.collider[k], &o = x.collider[l];
        Vec3<S> u[3], v[3];
        axes(k, u);
        if (o.kind == Solid::box) axes(l, v);
        auto apart = constant_mask<S>(false);
        for (int j = 0; j < 3; ++j) {
            S most = S(T(box.size[j])) + near;
            if (o.kind == Solid::box)
                for (int i = 0; i < 3; ++i)
                    most = most + S(T(o.size[i])) * absolute(dot(u[j], v[i]));
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
            R};
    }

    void narrow(const ColliderPair& p, const Collider& a, const Collider& b, const MaskOf<S>& close,
                S near) {
        const int start = c.contacts;
        int used = 0;
        for (int lane = 0; lane < lanes && lane < count; ++lane) {
            if (!get(close, lane)) continue;
            Touch touch[kMostTouches];
            const int found =
                p.given >= 0 ? given(p, lane, touch)
                             : collide(posed(a, c.center[p.a], lane), posed(b, c.center[p.b], lane),
                                       double(get(near, lane)), touch);
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
    int given(const ColliderPair& p, int lane, Touch* touch) const {
        const GivenContact* from =
            x.given + ((first + lane) * x.given_pairs + p.given) * kGivenContacts;
        int found = 0;
        for (int k = 0; k < kGivenContacts; ++k) {
            const GivenContact& o = from[k];
            if (!(o.gap < kFarthest)) continue;
            touch[found++] = {{o.at[0], o.at[1], o.at[2]}, {o.n[0], o.n[1], o.n[2]}, o.gap};
        }
        return found;
    }
    // an empty contact of a pair; lanes without a touch keep harmless numbers
    void open(const ColliderPair& p, const Collider& a, const Collider& b, int k) {
        Contact<S>& o = c.contact[c.contacts++];
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
        for (int lane = 0; lane < lanes; ++lane) {
            const double m = of_copy(x.friction, x.friction_stride, one, lane) *
                             of_copy(x.friction, x.friction_stride, two, lane);
            const double e = of_copy(x.restitution, x.restitution_stride, one, lane);
            const double g = of_copy(x.restitution, x.restitution_stride, two, lane);
            put(a.mu, lane, T(std::sqrt(m)));
            put(a.bounce, lane, T(e > g ? e : g));
        }
    }
    void finish(Contact<S>& a) const {
        const S zero(T(0));
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
    }

    // contacts of one body in a chain each; of two bodies likewise
    void chain() {
        for (int k = c.contacts - 1; k >= 0; --k) {
            Contact<S>& a = c.contact[k];
            if (a.other >= 0) continue;
            a.next = c.head[a.body];
            c.head[a.body] = k;
        }
        int last = -1;
        for (int k = 0; k < c.contacts; ++k) {
            Contact<S>& a = c.contact[k];
            if (a.other < 0) continue;
            a.next = -1;
            const bool same =
                last >= 0 && c.contact[last].body == a.body && c.contact[last].other == a.other;
            if (same) c.contact[last].next = k;
            else c.group[c.groups++] = k;
            last = k;
        }
    }

    // ---- bounds of joints

    void add_bound(int body, int slot, const MaskOf<S>& on, const Vec3<S>& g, S slack) {
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
        o.next = c.bound[body];
        c.bound[body] = c.limits++;
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
        const Vec3<S> axis = constant(b.axis), v = {p.x, p.y, p.z};
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
};

}  // namespace poise::inline POISE_ISA
