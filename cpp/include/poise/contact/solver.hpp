// Contact in a step: from velocities without contact to velocities with it.
#pragma once

#include "poise/contact/detection.hpp"
#include "poise/contact/gauss_seidel.hpp"
#include "poise/contact/joint_speed_limit.hpp"
#include "poise/contact/position_correction.hpp"

namespace poise::inline POISE_ISA {

// Impacts of a step: how many contacts they are passed on between, how many rounds of impacts, and
// of sweeps over the contacts of one.
constexpr int kMostImpacts = 64;
constexpr int kImpactRounds = 64;
constexpr int kImpactSweeps = 30;

// Motions of all bodies, at their joints, for joint velocities v.
template <class S>
POISE_NOINLINE void motions(const Forest& f, const Work<S>* work, const S* v, Motion<S>* out) {
    for (int i = 0; i < f.nb; ++i) {
        const Body& b = f.body[i];
        if (b.kind == Kind::free) {
            out[i] = {work[i].R * vec_at(v + b.v + 3), vec_at(v + b.v)};
            continue;
        }
        Motion<S> m = zero_motion<S>();
        if (b.parent >= 0) m = shift(out[b.parent], work[i].r);
        if (b.kind == Kind::ball) m.al = m.al + work[i].R * vec_at(v + b.v);
        else if (b.kind == Kind::hinge) m.al = m.al + v[b.v] * axis_of(work[i].R);
        else m.a = m.a + v[b.v] * axis_of(work[i].R);
        out[i] = m;
    }
}

// A step's contact, once the joints have been asked and the inward pass has been made.
template <class S>
struct ContactStep {
    using T = Element<S>;
    static constexpr int lanes = Traits<S>::lanes;
    const Forest& f;
    const CollisionModel& x;
    const Work<S>* work;
    double dt;
    Vec3<S> gravity;
    ContactScratch<S>& c;
    int copies;             // of the tile
    bool thorough = false;  // see GaussSeidel

    // Change of the joint velocities in c.dv. In copies marked in c.moved bodies move by c.push
    // more than by their velocities.
    void solve(const PassiveJoints<S>& passive) {
        GaussSeidel<S> sweeper = impulses();
        start(sweeper, passive);
        finish(sweeper);
    }

    // Its parts, for those who change the joints in between: the impulses,
    GaussSeidel<S> impulses() {
        return GaussSeidel<S>(f, x, work, c, thorough || x.model == ContactModel::penalty);
    }
    void start(GaussSeidel<S>& sweeper, const PassiveJoints<S>& passive) {
        if (x.model == ContactModel::penalty) soften();
        c.timer.mark(Phase::detection);
        sweeper.prepare();
        PositionCorrection<S> correction = {f, x, work, dt, c};
        correction.follow_arcs();
        correction.pivot();
        sweeper.solve(constant_mask<S>(true), c.dv.data());
        if (correction.extend_arcs()) sweeper.solve(c.found, c.dv.data(), true);
        slow_down(sweeper, passive);
    }
    // those of some copies again, for the same rows, with other responses c.give and motions
    // without contact c.base,
    void solve_again(GaussSeidel<S>& sweeper, const MaskOf<S>& some) {
        sweeper.forget(some);
        sweeper.solve(some, c.dv.data());
    }
    // and what follows from them; the copies in which something has bounced.
    MaskOf<S> finish(GaussSeidel<S>& sweeper) {
        c.timer.mark(Phase::responses);
        if (c.timer.profile && x.model == ContactModel::impulse) {
            sweeper.profile_residuals(copies);
            c.timer.start(c.timer.profile);
        }
        correct_step(sweeper);
        if (x.model == ContactModel::penalty) return constant_mask<S>(false);
        const auto bounced = rebound();
        if (!any(bounced)) return bounced;
        pass_on_impacts();
        apply_restitution(sweeper, bounced);
        return bounced;
    }
    // Some copies are solved again after they have bounced: contacts keep their normal velocities.
    void keep_bounce(const GaussSeidel<S>& sweeper, const MaskOf<S>& some) {
        for (int k = 0; k < c.contacts; ++k) {
            Contact<S>& a = c.contact[k];
            const S now = sweeper.normal_velocity(a);
            const auto kept = some & ((S(T(0)) < a.ln) | (now < a.bound));
            a.bound = select(kept, now, a.bound);
        }
    }

    // Where bodies of c.stuck_trees have come to, but are too deep: c.push takes their islands out,
    // those in c.deep.
    void correct_positions() {
        // seldom, and the last look at them
        GaussSeidel<S> sweeper(f, x, work, c, true);
        sweeper.prepare();
        PositionCorrection<S> correction = {f, x, work, dt, c};
        correction.ask_at_rest();
        sweeper.solve_push(c.deep, c.push.data());
        // what has almost no inertia may be thrown anywhere
        c.islands.fill(c.own_work, S(T(0)));
        for (int k = 0; k < f.nv; ++k) {
            S& sum = c.own_work[x.root[f.dof_body[k]]];
            sum = sum + c.push[k] * c.push[k];
        }
        c.islands.unite_sums(c.own_work);
        for (int t = 0; t < c.islands.trees(); ++t) {
            const int tree = c.islands.tree(t);
            c.deep[tree] = c.deep[tree] & (c.own_work[tree] < S(T(kPushWild * kPushWild)));
        }
    }

  private:
    void slow_down(GaussSeidel<S>& sweeper, const PassiveJoints<S>& passive) {
        for (int round = 0; round < kBrakeRounds && !passive.none; ++round) {
            const int first = c.limits;
            limit_joint_speeds(f, x, work, dt, passive, round > 0, c);
            if (first == c.limits) return;
            sweeper.prepare_more(first);
            sweeper.solve(c.found, c.dv.data(), true);
        }
    }
    void correct_step(GaussSeidel<S>& sweeper) {
        PositionCorrection<S> correction = {f, x, work, dt, c};
        correction.ask(sweeper);
        c.moved = c.islands.copies(c.deep);
        c.islands.fill(c.stuck_trees, constant_mask<S>(false));
        for (int round = 0; round < kPushRounds && any(c.islands.copies(c.deep)); ++round) {
            sweeper.solve_push(c.deep, c.push.data());
            correction.ask_again();
        }
        find_blown();
        c.islands.unite(c.stuck_trees);
        c.stuck = c.islands.copies(c.stuck_trees);
    }
    // Bodies that impulses make so much faster that they may have come to ground for which they
    // have no rows: their trees are looked at where the step ends.
    void find_blown() {
        if (x.model == ContactModel::penalty || x.ground.kind == GroundKind::none) return;
        const S blow{T(kBlow)}, h{T(dt)};
        const bool plane = x.ground.kind == GroundKind::plane;
        // all bodies: which ones are marked depends on the other copies
        for (int i = 0; i < f.nb; ++i) {
            const Ball& ball = x.ball[i];
            if (ball.reach < 0) continue;
            const S reach{T(ball.reach)};
            const Vec3<S> r = work[i].R * constant3<S>(ball.p);
            // most are not: the squares of what impulses add say so
            const Vec3<S> dv = point_velocity(c.real.m[i], r), dw = reach * c.real.m[i].al;
            if (!any(S(T(0.5)) * blow * blow < dot(dv, dv) + dot(dw, dw))) continue;
            const Motion<S> m = c.base[i] + c.real.m[i];
            const Vec3<S> v = point_velocity(m, r);
            const S quick = square_root(dot(v, v)) + reach * square_root(dot(m.al, m.al));
            auto on = c.quickness[i] + blow < quick;
            if (!any(on)) continue;
            if (plane) {
                const Vec3<S> n = constant3<S>(x.ground.normal);
                on = on & (dot(n, c.middle[i]) - S(T(x.ground.offset)) < reach + h * quick);
            }
            c.stuck_trees[x.root[i]] = c.stuck_trees[x.root[i]] | on;
        }
    }
    // Contact by springs and dampers is the same solve with rows that give way: with depth d before
    // the step the normal force k (d - dt v_n) - c v_n, at the velocities after it, is the impulse
    // of
    //     v_n + soft l >= bound,   soft = 1 / (dt (c + dt k)),   bound = soft dt k d.
    // Friction is viscous, -c_t v_t, within its cone.
    void soften() {
        const S zero(T(0));
        const double soft = 1 / (dt * (x.damping + dt * x.stiffness));
        for (int k = 0; k < c.contacts; ++k) {
            Contact<S>& a = c.contact[k];
            a.on = a.on & (a.gap < zero);
            a.ln = select(a.on, a.ln, zero);
            a.lt = select(a.on, a.lt, zero);
            a.lu = select(a.on, a.lu, zero);
            a.soft = S(T(soft));
            a.slick = S(T(1 / (dt * x.viscosity)));
            a.bound = S(T(-soft * dt * x.stiffness)) * a.gap;
        }
    }
    // Restitution. Velocities of a semi-implicit step belong to its middle: at its ends a falling
    // body is half a step of gravity faster. The speed of the impact itself follows from the gap.
    // The islands in which something bounces in c.bounced; their copies.
    MaskOf<S> rebound() {
        c.islands.fill(c.bounced, constant_mask<S>(false));
        for (int k = 0; k < c.contacts; ++k) {
            Contact<S>& a = c.contact[k];
            const S zero(T(0)), half(T(0.5 * dt));
            a.rise = a.bound;
            if (!any(zero < a.bounce)) continue;
            // two bodies that fall together do not fall towards each other
            const S fall = a.other >= 0 ? zero : dot(a.n, gravity);
            // the slower of before and after the step: what else turns a body is not given back
            const S early = -(speed_of(a, c.before.data()) + half * fall);
            const S late = half * fall - speed_of(a, c.base.data());
            const S start = select(early < late, early, late);
            // never more than was there: the half step that a body at rest starts with is taken off
            const S more = S(T(-2)) * fall * larger(a.gap, zero) - half * half * fall * fall;
            const S impact = square_root(larger(start * start + more, zero));
            const S slow = S(T(2 * dt)) * square_root(dot(gravity, gravity));
            const auto on =
                a.on & (zero < a.ln) & (zero < start) & (slow < impact) & (zero < a.bounce);
            if (!any(on)) continue;
            c.bounced[x.root[a.body]] = c.bounced[x.root[a.body]] | on;
            a.rise = select(on, a.bounce * impact - half * fall, a.rise);
        }
        c.islands.unite(c.bounced);
        return c.islands.copies(c.bounced);
    }

    // Impacts in sequence. What approaches bounces, all of it at once (Newton's law); that may set
    // others against each other, which bounce next, until nothing approaches: the first ball of a
    // cradle stops, the last one leaves. Bounds are the normal velocities in the end. A contact
    // that only carries what others give it has none of its own. Without friction: the solve that
    // follows has it.
    void pass_on_impacts() {
        // the contacts of an island: all that are near, or if those are too many all that are tight
        const S zero(T(0)), one(T(1)), most(T(kMostImpacts + 0.5));
        S *const all = c.energy[0].data(), *const some = c.energy[1].data();
        for (auto& number : c.energy) c.islands.fill(number, zero);
        for (int k = 0; k < c.contacts; ++k) {
            const Contact<S>& a = c.contact[k];
            const int tree = x.root[a.body];
            all[tree] = all[tree] + select(a.on, one, zero);
            some[tree] = some[tree] + select(is_tight(a), one, zero);
        }
        for (auto& number : c.energy) c.islands.unite_sums(number);
        int count = 0;
        c.impact.reserve(c.contacts);
        for (int k = 0; k < c.contacts; ++k) {
            Contact<S>& a = c.contact[k];
            const int tree = x.root[a.body];
            const auto bounces = c.bounced[tree];
            const auto near = all[tree] < most, tight = some[tree] < most;
            a.impact = a.on & bounces & (near | (tight & is_tight(a)));
            // too many to be followed: all at once
            a.bound = select(bounces & negate(near | tight), a.rise, a.bound);
            if (any(a.impact)) c.impact[count++] = k;
        }
        c.impact_response.reserve(static_cast<std::size_t>(count) * count);
        for (int k = 0; k < count; ++k) respond_to(c.impact[k], count, k);
        for (int i = 0; i < c.islands.count(); ++i) {
            const int tree = c.islands.first(i);
            const auto followed = c.bounced[tree] & ((all[tree] < most) | (some[tree] < most));
            each_lane(followed, [&](int lane) { pass_on_impacts(tree, lane, count); });
        }
    }
    MaskOf<S> is_tight(const Contact<S>& a) const {
        const S kept = speed_of(a, c.base.data()) + speed_of(a, c.real.m.data());
        return a.on & ((S(T(0)) < a.ln) | (kept - a.bound < S(T(kApproach))));
    }
    // Column k of the response: unit normal impulses.
    void respond_to(int contact, int count, int k) {
        const Contact<S>& a = c.contact[contact];
        Flow<S>& w = c.apart;
        for (int i = 0; i < f.nb; ++i) w.W[i] = zero_wrench<S>();
        w.W[a.body] = w.W[a.body] + impulse_at(a.r, a.n);
        if (a.other >= 0) w.W[a.other] = w.W[a.other] + impulse_at(a.r_other, zero3<S>() - a.n);
        const Vec3<S> none = zero3<S>();
        for (int i = f.nb - 1; i >= 0; --i) {
            const int p = f.body[i].parent;
            if (p >= 0)
                w.W[p] =
                    w.W[p] + shift(up(f.body[i], work[i].R, c.give[i], w.W[i], none), work[i].r);
        }
        for (int i = 0; i < f.nb; ++i) {
            const int p = f.body[i].parent;
            const Motion<S> m = p < 0 ? zero_motion<S>() : shift(w.m[p], work[i].r);
            w.m[i] = down(f.body[i], work[i].R, c.give[i], m, w.W[i], none);
        }
        for (int j = 0; j < count; ++j)
            c.impact_response[j * count + k] = speed_of(c.contact[c.impact[j]], w.m.data());
    }
    void pass_on_impacts(int island, int lane, int count) {
        const double slow = 2 * dt * std::sqrt(double(get(dot(gravity, gravity), lane)));
        double v[kMostImpacts], b[kMostImpacts], l[kMostImpacts], rest[kMostImpacts];
        double sum[kMostImpacts] = {};
        bool hit[kMostImpacts] = {};
        int of[kMostImpacts], n = 0;  // of this island
        for (int k = 0; k < count; ++k) {
            const Contact<S>& a = c.contact[c.impact[k]];
            const bool mine = c.islands.island(x.root[a.body], lane) == island;
            if (mine && get(a.impact, lane)) of[n++] = k;
        }
        const auto row = [&](int k) -> Contact<S>& { return c.contact[c.impact[of[k]]]; };
        const auto G = [&](int j, int k) {
            return double(get(c.impact_response[of[j] * count + of[k]], lane));
        };
        for (int k = 0; k < n; ++k) {
            v[k] = double(get(speed_of(row(k), c.base.data()), lane));
            rest[k] = double(get(row(k).bound, lane));
        }
        for (int round = 0; round < kImpactRounds; ++round) {
            bool more = false;
            for (int k = 0; k < n; ++k) {
                l[k] = -1;
                if (v[k] > rest[k] - 1e-6) continue;
                more = true;
                l[k] = 0;
                const double e = double(get(row(k).bounce, lane));
                b[k] = -v[k] > slow ? std::fmax(-e * v[k], rest[k]) : rest[k];
                // the first time it is known better
                if (round == 0) b[k] = double(get(row(k).rise, lane));
            }
            if (!more) break;
            for (int sweep = 0; sweep < kImpactSweeps; ++sweep) {
                double most = 0;
                for (int k = 0; k < n; ++k) {
                    if (l[k] < 0 || !(G(k, k) > 0)) continue;
                    const double next = std::fmax(l[k] + (b[k] - v[k]) / G(k, k), 0.0);
                    const double step = next - l[k];
                    if (step == 0) continue;
                    l[k] = next;
                    for (int j = 0; j < n; ++j) v[j] += G(j, k) * step;
                    most = std::fmax(most, std::fabs(step) * G(k, k));
                }
                if (most < 1e-9) break;
            }
            for (int k = 0; k < n; ++k) {
                hit[k] = hit[k] || l[k] > 0;
                sum[k] += std::fmax(l[k], 0.0);
            }
        }
        for (int k = 0; k < n; ++k) {
            put(row(k).struck, lane, hit[k]);
            put(row(k).blow, lane, T(sum[k]));
            if (hit[k] && v[k] > rest[k]) put(row(k).bound, lane, T(v[k]));
        }
    }

    // normal velocity of a contact under a set of motions
    S speed_of(const Contact<S>& a, const Motion<S>* m) const {
        S v = dot(a.n, point_velocity(m[a.body], a.r));
        if (a.other >= 0) v = v - dot(a.n, point_velocity(m[a.other], a.r_other));
        return v;
    }

    // relative velocity of the two points of a contact under a set of motions
    Vec3<S> slip_of(const Contact<S>& a, const Motion<S>* m) const {
        Vec3<S> v = point_velocity(m[a.body], a.r);
        if (a.other >= 0) v = v - point_velocity(m[a.other], a.r_other);
        return v;
    }

    // The impulses of the impacts are what the solve starts from, with friction in its cone.
    void start_from_blows() {
        const S one(T(1));
        for (int k = 0; k < c.contacts; ++k) {
            Contact<S>& a = c.contact[k];
            if (!any(a.struck)) continue;
            const S most = a.mu * a.blow, size2 = a.lt * a.lt + a.lu * a.lu;
            const S scale =
                select(most * most < size2, most / square_root(larger(size2, S(T(1e-30)))), one);
            a.ln = select(a.struck, a.blow, a.ln);
            a.lt = select(a.struck, scale * a.lt, a.lt);
            a.lu = select(a.struck, scale * a.lu, a.lu);
        }
    }

    // The step ends where the bodies touch, with the velocities that follow. Newton's law at
    // several contacts at once, or with friction, may give more energy than there was: then only as
    // much of the bounce is taken as there is energy for, in each island. Free flight keeps E +
    // dt/2 m g.v exactly; a step with impulses changes it by their work, l (v_free + v) / 2, and by
    // dt g.(l / 2 - l0), l0 those of the inelastic solution: a quadratic in the share of the
    // bounce.
    void apply_restitution(GaussSeidel<S>& sweeper, const MaskOf<S>& bounced) {
        const S zero(T(0)), one(T(1)), half(T(0.5));
        const Motion<S>* m = c.real.m.data();
        for (int k = 0; k < c.contacts; ++k) {
            Contact<S>& a = c.contact[k];
            a.v_first = slip_of(a, c.base.data()) + slip_of(a, m);
            a.first[0] = a.ln;
            a.first[1] = a.lt;
            a.first[2] = a.lu;
        }
        for (int k = 0; k < c.limits; ++k) {
            LimitRow<S>& a = c.limit[k];
            a.v_first = sweeper.slack_rate(a, c.base.data()) + sweeper.slack_rate(a, m);
            a.first = a.l;
        }
        for (int k = 0; k < f.nv; ++k) c.dv_first[k] = c.dv[k];
        start_from_blows();
        sweeper.solve(c.bounced, c.dv.data());
        for (auto& sum : c.energy) c.islands.fill(sum, zero);
        const S half_step(T(0.5 * dt));
        const auto row = [&](int body, S l0, S l1, S v_free, S v0, S v1) {
            const S dl = l1 - l0, dv = v1 - v0;
            const int tree = x.root[body];
            S &A = c.energy[0][tree], &B = c.energy[1][tree], &C = c.energy[2][tree];
            A = A + half * dl * dv;
            B = B + half * (l0 * dv + dl * (v_free + v0));
            C = C + half * l0 * (v_free + v0);
        };
        for (int k = 0; k < c.contacts; ++k) {
            Contact<S>& a = c.contact[k];
            const Vec3<S> free = slip_of(a, c.base.data()), v1 = free + slip_of(a, m);
            row(a.body, a.first[0], a.ln, dot(a.n, free), dot(a.n, a.v_first), dot(a.n, v1));
            row(a.body, a.first[1], a.lt, dot(a.t, free), dot(a.t, a.v_first), dot(a.t, v1));
            row(a.body, a.first[2], a.lu, dot(a.u, free), dot(a.u, a.v_first), dot(a.u, v1));
            if (a.other >= 0) continue;
            // what the ground gives lifts the body: from where the inelastic solution takes it, and
            // velocities belong to the middle of a step
            const auto height = [&](S l, S t, S u) {
                return half_step * dot(l * a.n + t * a.t + u * a.u, gravity);
            };
            const S lift = height(a.first[0], a.first[1], a.first[2]);
            // and so does what moves it apart
            S &B = c.energy[1][x.root[a.body]], &C = c.energy[2][x.root[a.body]];
            C = C - lift - S(T(dt)) * a.push * dot(a.n, gravity);
            B = B + (height(a.ln, a.lt, a.lu) - lift);
        }
        for (int k = 0; k < c.limits; ++k) {
            LimitRow<S>& a = c.limit[k];
            const S free = sweeper.slack_rate(a, c.base.data());
            row(a.body, a.first, a.l, free, a.v_first, free + sweeper.slack_rate(a, m));
        }
        // the largest share in 0 .. 1 with A s^2 + B s + C <= 0
        for (auto& sum : c.energy) c.islands.unite_sums(sum);
        for (int t = 0; t < c.islands.trees(); ++t) {
            const int tree = c.islands.tree(t);
            const S A = c.energy[0][tree], B = c.energy[1][tree], all = c.energy[2][tree];
            const S C = select(all < zero, all, zero);
            const S root = square_root(larger(B * B - S(T(4)) * A * C, zero));
            const S most = S(T(-2)) * C / larger(B + root, S(T(1e-30)));
            const auto whole = negate(zero < A + B + C) | negate(c.bounced[tree]);
            c.share[tree] = select(whole, one, select(most < one, most, one));
        }
        const auto part = [&](int body, const S& first, const S& now) {
            const S share = c.share[x.root[body]];
            return select(share < one, first + share * (now - first), now);
        };
        for (int k = 0; k < c.contacts; ++k) {
            Contact<S>& a = c.contact[k];
            a.ln = part(a.body, a.first[0], a.ln);
            a.lt = part(a.body, a.first[1], a.lt);
            a.lu = part(a.body, a.first[2], a.lu);
        }
        for (int k = 0; k < c.limits; ++k) {
            LimitRow<S>& a = c.limit[k];
            a.l = part(a.body, a.first, a.l);
        }
        for (int k = 0; k < f.nv; ++k) {
            const S first = c.dv_first[k];
            const int body = f.dof_body[k];
            c.dv[k] = part(body, first, c.dv[k]);
            const S pushed = select(c.moved, c.push[k], zero);
            c.push[k] = select(c.bounced[x.root[body]], pushed + (first - c.dv[k]), pushed);
        }
        c.moved = c.moved | bounced;
    }
};

}  // namespace poise::inline POISE_ISA
