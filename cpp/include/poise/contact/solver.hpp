// Contact in a step: from velocities without contact to velocities with it.
#pragma once

#include "poise/contact/detection.hpp"
#include "poise/contact/joint_speed_limit.hpp"
#include "poise/contact/position_correction.hpp"

namespace poise::inline POISE_ISA {

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
    const Forest& f;
    const CollisionModel& x;
    const Work<S>* work;
    double dt;
    Vec3<S> gravity;
    ContactScratch<S>& c;

    // Change of the joint velocities in c.dv. In copies marked in c.moved bodies move by c.push
    // more than by their velocities.
    void solve(const PassiveJoints<S>& passive) {
        if (x.model == ContactModel::penalty) soften();
        Sweeper<S> sweeper(f, work, c);
        sweeper.prepare();
        PositionCorrection<S>{f, x, work, dt, c}.pivot();
        sweeper.warm();
        const auto all = constant_mask<S>(true);
        find_impulses(sweeper, all);
        sweeper.rates(c.real, c.dv.data());
        slow_down(sweeper, passive);
        correct_step(sweeper);
        if (x.model == ContactModel::penalty) return;
        const auto bounced = rebound();
        if (any(bounced)) apply_restitution(sweeper, bounced);
    }

    // Where bodies have come to, but are too deep: c.push takes them out.
    MaskOf<S> correct_positions(const MaskOf<S>& which) {
        Sweeper<S> sweeper(f, work, c);
        sweeper.prepare();
        PositionCorrection<S> correction = {f, x, work, dt, c};
        const auto deep = which & correction.ask_at_rest();
        sweeper.template solve<Solve::push>(x.sweeps, deep);
        sweeper.rates(c.apart, c.push.data());
        return deep;
    }

  private:
    void slow_down(Sweeper<S>& sweeper, const PassiveJoints<S>& passive) {
        for (int round = 0; round < kBrakeRounds && !passive.none; ++round) {
            const int first = c.limits;
            const auto swift = limit_joint_speeds(f, work, dt, passive, c);
            if (first == c.limits) return;
            sweeper.prepare_more(first);
            find_impulses(sweeper, swift);
            sweeper.rates(c.real, c.dv.data());
        }
    }
    void correct_step(Sweeper<S>& sweeper) {
        PositionCorrection<S> correction = {f, x, work, dt, c};
        c.moved = correction.ask(sweeper);
        c.stuck = constant_mask<S>(false);
        auto short_of = c.moved;
        for (int round = 0; round < kPushRounds && any(short_of); ++round) {
            sweeper.template solve<Solve::push>(x.sweeps, short_of);
            sweeper.rates(c.apart, c.push.data());
            short_of = correction.ask_again(short_of);
        }
    }
    // Friction depends on the normal impulses: they are found first, with the friction of the step
    // before.
    void find_impulses(Sweeper<S>& sweeper, const MaskOf<S>& active) {
        sweeper.template solve<Solve::normals>(x.sweeps, active);
        // copies that touch nothing have no friction, whatever their neighbours touch
        auto touching = constant_mask<S>(false);
        for (int k = 0; k < c.contacts; ++k) touching = touching | c.contact[k].on;
        sweeper.template solve<Solve::all>(x.sweeps, active & touching);
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
    MaskOf<S> rebound() {
        auto found = constant_mask<S>(false);
        for (int k = 0; k < c.contacts; ++k) {
            Contact<S>& a = c.contact[k];
            const S zero(T(0)), half(T(0.5 * dt));
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
            found = found | on;
            const S up = a.bounce * impact - half * fall;
            a.bound = select(on, up, a.bound);
        }
        return found;
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

    // The step ends where the bodies touch, with the velocities that follow. Newton's law at
    // several contacts at once, or with friction, may give more energy than there was: then only as
    // much of the bounce is taken as there is energy for. Free flight keeps E + dt/2 m g.v exactly;
    // a step with impulses changes it by their work, l (v_free + v) / 2, and by dt g.(l / 2 - l0),
    // l0 those of the inelastic solution: a quadratic in the share of the bounce.
    void apply_restitution(Sweeper<S>& sweeper, const MaskOf<S>& bounced) {
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
        find_impulses(sweeper, bounced);
        sweeper.rates(c.real, c.dv.data());
        S A = zero, B = zero, C = zero;
        const S half_step(T(0.5 * dt));
        const auto row = [&](S l0, S l1, S v_free, S v0, S v1) {
            const S dl = l1 - l0, dv = v1 - v0;
            A = A + half * dl * dv;
            B = B + half * (l0 * dv + dl * (v_free + v0));
            C = C + half * l0 * (v_free + v0);
        };
        for (int k = 0; k < c.contacts; ++k) {
            Contact<S>& a = c.contact[k];
            const Vec3<S> free = slip_of(a, c.base.data()), v1 = free + slip_of(a, m);
            row(a.first[0], a.ln, dot(a.n, free), dot(a.n, a.v_first), dot(a.n, v1));
            row(a.first[1], a.lt, dot(a.t, free), dot(a.t, a.v_first), dot(a.t, v1));
            row(a.first[2], a.lu, dot(a.u, free), dot(a.u, a.v_first), dot(a.u, v1));
            if (a.other >= 0) continue;
            // what the ground gives lifts the body: from where the inelastic solution takes it, and
            // velocities belong to the middle of a step
            const auto height = [&](S l, S t, S u) {
                return half_step * dot(l * a.n + t * a.t + u * a.u, gravity);
            };
            const S lift = height(a.first[0], a.first[1], a.first[2]);
            // and so does what moves it apart
            C = C - lift - S(T(dt)) * a.push * dot(a.n, gravity);
            B = B + (height(a.ln, a.lt, a.lu) - lift);
        }
        for (int k = 0; k < c.limits; ++k) {
            LimitRow<S>& a = c.limit[k];
            const S free = sweeper.slack_rate(a, c.base.data());
            row(a.first, a.l, free, a.v_first, free + sweeper.slack_rate(a, m));
        }
        // the largest share in 0 .. 1 with A s^2 + B s + C <= 0
        C = select(C < zero, C, zero);
        const S root = square_root(larger(B * B - S(T(4)) * A * C, zero));
        const S most = S(T(-2)) * C / larger(B + root, S(T(1e-30)));
        const auto whole = negate(zero < A + B + C) | negate(bounced);
        const S share = select(whole, one, select(most < one, most, one));
        for (int k = 0; k < c.contacts; ++k) {
            Contact<S>& a = c.contact[k];
            a.ln = select(whole, a.ln, a.first[0] + share * (a.ln - a.first[0]));
            a.lt = select(whole, a.lt, a.first[1] + share * (a.lt - a.first[1]));
            a.lu = select(whole, a.lu, a.first[2] + share * (a.lu - a.first[2]));
        }
        for (int k = 0; k < c.limits; ++k) {
            LimitRow<S>& a = c.limit[k];
            a.l = select(whole, a.l, a.first + share * (a.l - a.first));
        }
        for (int k = 0; k < f.nv; ++k) {
            const S first = c.dv_first[k];
            c.dv[k] = select(whole, c.dv[k], first + share * (c.dv[k] - first));
            const S pushed = select(c.moved, c.push[k], zero);
            c.push[k] = select(bounced, pushed + (first - c.dv[k]), pushed);
        }
        c.moved = c.moved | bounced;
    }
};

}  // namespace poise::inline POISE_ISA
