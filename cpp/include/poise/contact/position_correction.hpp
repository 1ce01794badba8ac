// Corrects penetration with pseudo velocities (split impulse), which are not kept.
//
// Points move along arcs: a body that turns by half a radian in a step does not end where its
// velocities point to. The rows ask for what is missing there, too, so that it is not deep first.
#pragma once

#include "poise/contact/gauss_seidel.hpp"

namespace poise::inline POISE_ISA {

// Part of a depth that one step takes back, and the fastest it may be taken back [m/s].
constexpr double kPushShare = 0.2;
constexpr double kPushSpeed = 2.0;
// Less than this in a step is left alone [m].
constexpr double kLeastPush = 1e-5;
// The fastest that a way along an arc is corrected [m/s].
constexpr double kPushFastest = 10.0;
// How often arcs are looked at, and how far off is near enough then [m].
constexpr int kPushRounds = 3;
constexpr double kOff = 1e-3;
// What a correction would move faster than this has almost no inertia and stays [rad/s, m/s].
constexpr double kPushWild = 1e6;
// What is further off than this then is looked at again where the step has ended [m].
constexpr double kStuck = 5e-3;
// What turns by less than this in a step moves straight [rad].
constexpr double kArc = 0.02;
// A point that impulses stop higher than this above the ground is let down [m].
constexpr double kHigh = 1e-3;
// What turns by more than this in a step is not followed [rad].
constexpr double kWild = 1.0;
// What accelerates more than this off its contact does not pivot there [m/s^2].
constexpr double kLift = 10.0;

template <class S>
struct PositionCorrection {
    using T = Element<S>;
    const Forest& f;
    const CollisionModel& x;
    const Work<S>* work;
    double dt;
    ContactScratch<S>& c;

    // A point that pivots moves on an arc about its contact: half of what the arc lifts it in a
    // step is taken off the velocity that it must have. Without that a box that rocks gains energy.
    // The velocities are those before the step: one without contact lets a foot that stands still
    // turn, and the foot would sink and be moved out in every step.
    void pivot() {
        if (x.model == ContactModel::penalty || !find_turning(Stage::before)) return;
        arrive(Stage::before);
        const S zero(T(0)), most(T(dt * kLift));
        for (int k = 0; k < c.contacts; ++k) {
            Contact<S>& a = c.contact[k];
            if (a.other >= 0) continue;
            const S rate = dot(a.n, point_velocity(c.before[a.body], a.r));
            const S opens = larger(speed_along_arc(a) - rate, zero);
            // one that was there before
            const S less = select(opens < most, opens, larger(most + most - opens, zero));
            a.bound = a.bound - select(turns(a) & (zero < a.ln), less, zero);
        }
    }

    // A point above the ground that turns with its body may miss what its velocity leads to: a foot
    // that swings through. What its arc lifts it in the step is taken off the velocity that it must
    // have; if the arc does not come down, the row does nothing. What turns by more than kWild
    // without contact does so only because the contact is missing, and keeps its row.
    void follow_arcs() {
        if (x.model == ContactModel::penalty) return;
        const S zero(T(0)), much(T(kArc / dt)), wild(T(kWild * kWild / (dt * dt)));
        bool looked = false;
        for (int k = 0; k < c.contacts; ++k) {
            Contact<S>& a = c.contact[k];
            const auto above = a.on & (zero < a.gap) & negate(zero < a.ln);
            if (!any(above)) continue;
            if (!looked) {
                if (!find_turning(Stage::free, much)) return;
                arrive(Stage::free);
                looked = true;
            }
            const S lift = speed_along_arc(a) - normal_speed(a, c.base.data());
            auto tame = dot(c.base[a.body].al, c.base[a.body].al) < wild;
            if (a.other >= 0) tame = tame & (dot(c.base[a.other].al, c.base[a.other].al) < wild);
            a.fresh = above & turns(a) & tame;
            a.bound = a.bound - select(a.fresh, larger(lift, zero), zero);
        }
    }

    // Impulses change the arcs: a point above the ground that they stop before it gets there may go
    // on. Whether there are any; their islands in c.found.
    bool extend_arcs() {
        if (x.model == ContactModel::penalty) return false;
        const S zero(T(0)), high{T(kHigh)};
        bool looked = false, found = false;
        for (int k = 0; k < c.contacts; ++k) {
            Contact<S>& a = c.contact[k];
            auto stops = a.fresh & (high < a.gap) & (zero < a.ln);
            if (!any(stops)) continue;
            if (!looked) {
                if (!find_turning(Stage::kept, S(T(kArc / dt)))) return false;
                arrive(Stage::kept);
                c.islands.fill(c.found, constant_mask<S>(false));
                looked = true;
            }
            const S left = a.gap + S(T(dt)) * speed_along_arc(a);
            stops = stops & turns(a) & (high < left);
            if (!any(stops)) continue;
            found = true;
            a.bound = a.bound - select(stops, S(T(1 / dt)) * left, zero);
            mark(c.found, a.body, stops);
        }
        if (found) c.islands.unite(c.found);
        return found;
    }

    // What the rows ask for; the islands in which there is anything, in c.deep.
    void ask(const GaussSeidel<S>& sweeper) {
        // springs push by themselves
        const bool rigid = x.model != ContactModel::penalty;
        const S least{T(kLeastPush / dt)};
        c.islands.fill(c.deep, constant_mask<S>(false));
        const bool arcs = rigid && find_turning(Stage::kept);
        if (arcs) arrive(Stage::kept);
        for (int k = 0; k < c.contacts; ++k) {
            Contact<S>& a = c.contact[k];
            a.push_bound = S(T(-1e30));
            if (!rigid) continue;
            const S rate = sweeper.normal_velocity(a);
            a.push_bound = wanted(a.gap) - rate;
            if (arcs) a.push_bound = a.push_bound + select(turns(a), closing(a, rate), S(T(0)));
            mark(c.deep, a.body, a.on & (least < a.push_bound));
        }
        for (int k = 0; k < c.limits; ++k) {
            LimitRow<S>& a = c.limit[k];
            const S rate =
                sweeper.slack_rate(a, c.base.data()) + sweeper.slack_rate(a, c.real.m.data());
            a.push_bound = wanted(a.slack) - rate;
            mark(c.deep, a.body, a.on & (least < a.push_bound));
        }
        c.islands.unite(c.deep);
    }

    // Bodies at rest that are too deep: all that is beyond kStuck is asked for at once. The islands
    // with any in c.deep, of those in which a tree is in c.stuck_trees.
    void ask_at_rest() {
        c.islands.fill(c.deep, constant_mask<S>(false));
        const S most{T(kPushFastest)};
        for (int k = 0; k < c.contacts; ++k) {
            Contact<S>& a = c.contact[k];
            const S out = S(T(1 / dt)) * (-a.gap - S(T(kStuck)));
            a.push_bound = select(a.gap < S(T(0)), select(out < most, out, most), wanted(a.gap));
            auto stuck = c.stuck_trees[x.root[a.body]];
            if (a.other >= 0) stuck = stuck | c.stuck_trees[x.root[a.other]];
            mark(c.deep, a.body, a.on & stuck & (S(T(0)) < out));
        }
        for (int k = 0; k < c.limits; ++k) {
            LimitRow<S>& a = c.limit[k];
            a.push_bound = select(a.slack < S(T(0)), S(T(0)), wanted(a.slack));
        }
        c.islands.unite(c.deep);
    }

    // The same once the islands in c.deep have been moved: where the arcs led elsewhere.
    void ask_again() {
        c.islands.fill(c.found, constant_mask<S>(false));
        for (int t = 0; t < c.islands.trees(); ++t) {
            auto& stuck = c.stuck_trees[c.islands.tree(t)];
            stuck = stuck & negate(c.deep[c.islands.tree(t)]);
        }
        if (x.model == ContactModel::penalty)
            return c.islands.fill(c.deep, constant_mask<S>(false));
        arrive(Stage::pushed);
        const S zero(T(0)), off(T(kOff / dt)), most{T(kPushFastest)};
        for (int k = 0; k < c.contacts; ++k) {
            Contact<S>& a = c.contact[k];
            const S missing = wanted(a.gap) - speed_along_arc(a);
            const auto on = a.on & c.deep[x.root[a.body]] & (off < missing);
            if (!any(on)) continue;
            mark(c.found, a.body, on);
            mark(c.stuck_trees, a.body, on & (S(T(kStuck / dt)) < missing));
            const S more = select(missing < most, missing, most);
            a.push_bound = a.push_bound + select(on, more, zero);
        }
        c.islands.unite(c.found);
        for (int t = 0; t < c.islands.trees(); ++t)
            c.deep[c.islands.tree(t)] = c.found[c.islands.tree(t)];
    }

  private:
    // speed with which a row shall open: what closes a gap may, what is deep goes back
    S wanted(S room) const {
        const S zero(T(0)), share(T(kPushShare / dt)), fastest{T(kPushSpeed)};
        const S back = share * larger(-room - S(T(kRest)), zero);
        return select(room < zero, select(back < fastest, back, fastest), -(S(T(1 / dt)) * room));
    }

    // velocities before the step, without contact, after it, and with what moves bodies apart
    enum class Stage { before, free, kept, pushed };

    Motion<S> motion(int i, Stage stage) const {
        if (stage == Stage::before) return c.before[i];
        if (stage == Stage::free) return c.base[i];
        const Motion<S> m = c.base[i] + c.real.m[i];
        return stage == Stage::pushed ? m + c.apart.m[i] : m;
    }

    void mark(Buffer<MaskOf<S>>& trees, int body, const MaskOf<S>& on) {
        trees[x.root[body]] = trees[x.root[body]] | on;
    }

    // Trees in which a body turns fast enough for arcs to matter, in c.turns; whether there are
    // any.
    bool find_turning(Stage stage) { return find_turning(stage, S(T(1e-5 / dt))); }
    bool find_turning(Stage stage, const S& speed) {
        const S slow = speed * speed;
        c.islands.fill(c.turns, constant_mask<S>(false));
        // all bodies: which ones are marked depends on the other copies, too
        for (int i = 0; i < f.nb; ++i) {
            const Vec3<S> w = motion(i, stage).al;
            mark(c.turns, i, slow < dot(w, w));
        }
        return any(c.islands.copies(c.turns));
    }
    MaskOf<S> turns(const Contact<S>& a) const {
        if (a.other < 0) return c.turns[x.root[a.body]];
        return c.turns[x.root[a.body]] | c.turns[x.root[a.other]];
    }
    // normal velocity of a contact under a set of motions
    S normal_speed(const Contact<S>& a, const Motion<S>* m) const {
        Vec3<S> v = point_velocity(m[a.body], a.r);
        if (a.other >= 0) v = v - point_velocity(m[a.other], a.r_other);
        return dot(a.n, v);
    }

    // How bodies turn in this step, and where their joints go.
    void arrive(Stage stage) {
        const S h{T(dt)};
        for (int k = 0; k < c.marks; ++k) {
            const int i = c.path[k], p = f.body[i].parent;
            const Motion<S> own = motion(i, stage);
            if (p < 0) {
                c.turn[i] = exponential(h * own.al);
                c.went[i] = h * own.a;
                continue;
            }
            const Vec3<S>& r = work[i].r;
            const Motion<S> up = motion(p, stage);
            c.turn[i] = c.turn[p] * exponential(h * (own.al - up.al));
            // in the axes of the parent, which turns along
            const Vec3<S> slid = h * (own.a - shift(up, r).a);
            c.went[i] = c.went[p] + rotate(c.turn[p], r + slid) - r;
        }
    }
    Vec3<S> way_of(int i, const Vec3<S>& r) const { return c.went[i] + rotate(c.turn[i], r) - r; }
    // how fast a contact opens on the mean of the step, along the arcs
    S speed_along_arc(const Contact<S>& a) const {
        // a ball touches with whatever point of it is lowest: its middle counts
        const bool ground = a.other_collider < 0;
        const double radius = ground ? x.probe[a.slot].radius : radius_of(a.collider);
        Vec3<S> way = way_of(a.body, a.r + S(T(radius)) * a.n);
        if (a.other >= 0)
            way = way - way_of(a.other, a.r_other - S(T(radius_of(a.other_collider))) * a.n);
        return S(T(1 / dt)) * dot(a.n, way);
    }
    double radius_of(int collider) const {
        const Collider& o = x.collider[collider];
        return o.kind <= Solid::capsule ? o.size[0] : 0;
    }
    // how much faster than its velocity says a contact closes. Of two that roll on each other other
    // points touch in the end: what opens them is left alone
    S closing(const Contact<S>& a, S rate) const {
        const S faster = rate - speed_along_arc(a), most{T(kPushFastest)};
        const S least = a.other < 0 ? -most : S(T(0));
        return select(faster < most, larger(faster, least), most);
    }
};

}  // namespace poise::inline POISE_ISA
