// One step of the world: joint forces, accelerations within the effort limits and with contact,
// integration.
#pragma once

#include "poise/effort_limits.hpp"
#include "poise/external_forces.hpp"
#include "poise/free_rotation.hpp"
#include "poise/integrate.hpp"
#include "poise/joint_forces.hpp"

namespace poise::inline POISE_ISA {

// A copy is lost when the length of v [rad/s, m/s] or the distance of a root [m] reaches this.
constexpr double kFastest = 1e6;

// Body with the largest or a non-finite velocity in this lane.
template <class S>
int fastest_body(const Forest& f, const S* v, int lane) {
    int worst = 0;
    double most = -1;
    for (int k = 0; k < f.nv; ++k) {
        const double x = std::fabs(double(get(v[k], lane)));
        if (!(x <= most)) {
            worst = f.dof_body[k];
            most = x;
            if (!(x < 1e300)) break;
        }
    }
    return worst;
}

// Accelerations s.qdd without contact become those with it, and with joints within their bounds.
// held: copies that are dragged.
template <class S>
void solve_contacts(const Forest& f, const StepCall& call, const Tile<S>& t, const Vec3<S>& gravity,
                    const MaskOf<S>& held, Scratch<S>& s) {
    using T = Element<S>;
    ContactScratch<S>& c = *t.contact;
    const S h(T(call.dt));
    for (int k = 0; k < f.nv; ++k) s.v_next[k] = t.v[k] + h * s.qdd[k];
    c.moved = c.stuck = constant_mask<S>(false);
    find_contacts(f, call, t, s.v_next.data(), true, s);
    if (!c.contacts && !c.limits) return;
    ContactStep<S> contact = {f, *t.touch, s.work.data(), call.dt, gravity, c};
    const bool commanded = call.force.p || call.acceleration.p;
    contact.solve({s.v_next.data(), t.gain, t.seen.nv, held, commanded});
    const S per(T(1 / call.dt));
    for (int k = 0; k < f.nv; ++k) s.qdd[k] = s.qdd[k] + per * c.dv[k];
}

// Accelerations under the present s.Q, s.K. touch: with contact, if the world has any.
template <class S>
void accelerate(const Forest& f, const StepCall& call, int step, const Tile<S>& t,
                const Vec3<S>& gravity, Method method, bool touch, Scratch<S>& s, MaskOf<S>& bad,
                int* bad_body) {
    for (int k = 0; k < f.nv && t.passive; ++k) {
        s.Q_sum[k] = s.Q[k] + s.Q_own[k];
        s.K_sum[k] = s.K[k] + s.K_own[k];
    }
    move<S>(f, t.constants, t.q, t.v, nullptr, gravity, s.work.data());
    const bool pushed = call.memory != nullptr;
    const bool dragged = pushed && dragging(call, t.first, t.count);
    const bool pinned = call.pin.p && t.gain;
    const bool touching = touch && t.touch;
    if (pushed || pinned)
        for (int i = 0; i < f.nb; ++i) s.external[i] = zero_wrench<S>();
    if (pinned || dragged) clear_pins(f, s.pinned.data());
    auto held = constant_mask<S>(false);
    if (dragged) {
        place(f, s.work.data(), s.origin.data());
        velocities(f, t.v, s.work.data(), s.velocity.data());
    }
    if (pushed) {
        const Placed<S> now = {s.work.data(), s.origin.data(), s.velocity.data()};
        push_forces(f, call, t.first, t.count, gravity, now, s.external.data(), s.pinned.data(),
                    held);
    }
    if (pinned) {
        const Forest& g = t.seen;
        move_target(g, call, step, t, false, zero3<S>(), s);
        const Placed<S> now = {s.work.data(), s.origin.data(), s.velocity.data()};
        const Placed<S> then = {s.target_work.data(), s.target_origin.data(),
                                s.target_velocity.data()};
        place(g, now.work, now.origin);
        place(g, then.work, then.origin);
        velocities(g, t.v, now.work, now.velocity);
        velocities(g, s.tv.data(), then.work, then.velocity);
        pin_forces(g, t.pin_table, rows_of(call.pin, t), Element<S>(call.dt), gravity, now, then,
                   s.external.data(), s.pinned.data());
    }
    const ForwardProblem<S> p = {f,
                                 t.constants,
                                 t.q,
                                 t.v,
                                 gravity,
                                 t.passive ? s.Q_sum.data() : s.Q.data(),
                                 t.passive ? s.K_sum.data() : s.K.data(),
                                 t.isotropic,
                                 pushed || pinned ? s.external.data() : nullptr,
                                 pinned || dragged ? s.pinned.data() : nullptr,
                                 touching ? t.contact->give.data() : nullptr};
    forward_dynamics(method, p, s, s.qdd.data(), bad, bad_body);
    for (int i = 0; i < f.nb; ++i) {
        const Body& b = f.body[i];
        if (b.kind == Kind::free && b.leaf)
            keep_angular_momentum(t.constants[i], s.work[i].R, Element<S>(call.dt), t.v + b.v,
                                  p.K + b.v, s.qdd.data() + b.v);
    }
    if (touching) solve_contacts(f, call, t, gravity, held, s);
    if (!t.momentum) return;
    // pins and springs that drag are implicit: what they add is not known before
    const bool known = call.correct_momentum && !pinned && touch;
    bool flying = false;
    for (int i = 0; i < f.nb; ++i) {
        const Body& b = f.body[i];
        auto& flies = t.momentum->flying[i] = constant_mask<S>(false);
        if (b.kind != Kind::free || b.leaf || !known) continue;
        flies = negate(t.touch ? touches_something(*t.contact, i, end_of_tree(f, i))
                               : acts_on_root(b, s.Q.data(), s.K.data()));
        flies = flies & negate(held);
        flying = flying || any(flies);
    }
    if (!flying) return;
    if (!t.touch) {
        place(f, s.work.data(), s.origin.data());
        motions(f, s.work.data(), t.v, t.momentum->motion.data());
    }
    S* force = s.load.data();
    for (int k = 0; k < f.nv; ++k) force[k] = p.Q[k] - p.K[k] * s.qdd[k];
    expect_momentum(f, t.constants, s.work.data(), s.origin.data(),
                    t.touch ? t.contact->before.data() : t.momentum->motion.data(), p.external,
                    static_cast<const S*>(force), Element<S>(call.dt), gravity, *t.momentum);
}

// Take the step in the lanes that are good; the others stay where they are and are reported.
template <class S>
void commit_step(const Forest& f, const StepCall& call, const Tile<S>& t, const MaskOf<S>& bad,
                 const int* bad_body, MaskOf<S>& frozen, Scratch<S>& s) {
    using T = Element<S>;
    S speed(T(0));
    for (int k = 0; k < f.nv; ++k) {
        s.v_next[k] = t.v[k] + S(T(call.dt)) * s.qdd[k];
        speed = speed + s.v_next[k] * s.v_next[k];
    }
    // bodies that move by more than the velocities that they keep
    const bool apart = t.touch && any(t.contact->moved), projectiles = f.nb > t.seen.nb;
    for (int k = 0; k < f.nv && apart; ++k) {
        const S push = select(t.contact->moved, t.contact->push[k], S(T(0)));
        speed = speed + push * push;
    }
    for (int i = 0; i < t.seen.nb; ++i) {
        if (f.body[i].parent >= 0 || f.body[i].kind != Kind::free) continue;
        for (int k = 0; k < 3; ++k) speed = speed + t.q[f.body[i].q + k] * t.q[f.body[i].q + k];
    }
    const auto lost = bad | negate(speed < S(T(kFastest * kFastest)));
    if (call.torques_only && !any(lost)) return;
    const auto still = lost | frozen;
    bool flying = false;
    for (int i = 0; i < f.nb && t.momentum; ++i) flying = flying || any(t.momentum->flying[i]);
    if (!any(still) && !apart && !projectiles && !flying) {
        integrate(f, T(call.dt), t.q, t.v, s.v_next.data(), t.rotation_step);
        return;
    }
    for (int k = 0; k < f.nq; ++k) s.q_old[k] = t.q[k];
    for (int k = 0; k < f.nv; ++k) s.v_old[k] = t.v[k];
    if (apart) {
        const auto& c = *t.contact;
        for (int k = 0; k < f.nv; ++k)
            s.load[k] = s.v_next[k] + select(c.moved, c.push[k], S(T(0)));
        integrate(f, T(call.dt), t.q, t.v, s.load.data(), t.rotation_step);
        for (int k = 0; k < f.nv; ++k) t.v[k] = s.v_next[k];
    } else {
        integrate(f, T(call.dt), t.q, t.v, s.v_next.data(), t.rotation_step);
    }
    for (int k = 0; k < f.nq; ++k) t.q[k] = select(still, s.q_old[k], t.q[k]);
    for (int k = 0; k < f.nv; ++k) t.v[k] = select(still, s.v_old[k], t.v[k]);
    if (flying) {
        move<S>(f, t.constants, t.q, t.v, nullptr, zero3<S>(), s.work.data());
        place(f, s.work.data(), s.origin.data());
        motions(f, s.work.data(), static_cast<const S*>(t.v), t.momentum->motion.data());
        correct_momentum(f, t.constants, s.work.data(), s.origin.data(), t.momentum->motion.data(),
                         *t.momentum, still, t.v);
    }
    for (int i = t.seen.nb; i < f.nb; ++i) {
        // projectiles that have not been thrown wait
        const auto out = t.out[i - t.seen.nb];
        const Body& b = f.body[i];
        for (int k = b.q; k < b.q + 7; ++k) t.q[k] = select(out, t.q[k], s.q_old[k]);
        for (int k = b.v; k < b.v + 6; ++k) t.v[k] = select(out, t.v[k], s.v_old[k]);
    }
    update_rotation_steps(f, T(call.dt), t.v, t.rotation_step, s);
    for (int lane = 0; lane < Traits<S>::lanes && lane < t.count; ++lane) {
        if (!get(lost, lane) || get(frozen, lane)) continue;
        const std::int64_t copy = t.first + lane;
        call.frozen[copy] = 1;
        const bool singular = get(bad, lane);
        const int body = singular ? bad_body[lane] : fastest_body(f, s.v_next.data(), lane);
        call.fault[copy] = {body, singular, call.time[copy]};
    }
    frozen = still;
}

// A light body that is struck may turn by a radian in a step, and end in the ground although its
// velocities did not lead there. It is taken out where it is, as a body at rest.
template <class S>
POISE_NOINLINE void correct_positions(const Forest& f, const StepCall& call, const Tile<S>& t,
                                      const MaskOf<S>& which, Scratch<S>& s) {
    using T = Element<S>;
    ContactScratch<S>& c = *t.contact;
    const S zero(T(0));
    const Vec3<S> none = zero3<S>();
    for (int k = 0; k < f.nv; ++k) s.load[k] = s.v_old[k] = zero;
    move<S>(f, t.constants, t.q, s.v_old.data(), nullptr, none, s.work.data());
    const ForwardProblem<S> p = {f,
                                 t.constants,
                                 t.q,
                                 s.v_old.data(),
                                 none,
                                 s.load.data(),
                                 t.passive ? s.K_sum.data() : s.K.data(),
                                 t.isotropic,
                                 nullptr,
                                 nullptr,
                                 c.give.data()};
    auto bad = constant_mask<S>(false);
    int bad_body[Traits<S>::lanes] = {};
    forward_by_maba(p, s, s.qdd.data(), bad, bad_body);
    find_contacts(f, call, t, static_cast<const S*>(s.v_old.data()), true, s);
    if (!c.contacts) return;
    ContactStep<S> contact = {f, *t.touch, s.work.data(), call.dt, none, c};
    auto out = contact.correct_positions(which & negate(bad));
    // what has almost no inertia may be thrown anywhere
    S speed = zero;
    for (int k = 0; k < f.nv; ++k) speed = speed + c.push[k] * c.push[k];
    out = out & (speed < S(T(kFastest * kFastest)));
    if (!any(out)) return;
    for (int k = 0; k < f.nq; ++k) s.q_old[k] = t.q[k];
    // the velocities stay
    integrate(f, T(call.dt), s.q_old.data(), s.v_old.data(), c.push.data(), s.rotation_step.data());
    for (int k = 0; k < f.nq; ++k) t.q[k] = select(out, s.q_old[k], t.q[k]);
}

// Impulses for the next step to start from, and contacts for the user to see. Copies that stand
// still have none.
template <class S>
void store_impulses(const Tile<S>& t, const MaskOf<S>& frozen, bool report) {
    using T = Element<S>;
    const ContactScratch<S>& c = *t.contact;
    const S zero(T(0));
    const auto moving = negate(frozen);
    for (int k = 0; k < t.kept->count(); ++k)
        for (int j = 0; j < 3; ++j) t.impulses[3 * (*t.kept)[k] + j] = zero;
    t.kept->clear();
    if (report) t.report->clear();
    for (int k = 0; k < c.contacts; ++k) {
        const Contact<S>& a = c.contact[k];
        const Vec3<S> p = a.ln * a.n + a.lt * a.t + a.lu * a.u;
        const auto on = a.on & moving;
        S* m = t.impulses + 3 * a.slot;
        t.kept->add(a.slot);
        m[0] = select(on, p.x, zero);
        m[1] = select(on, p.y, zero);
        m[2] = select(on, p.z, zero);
        // those that touch: near ones without an impulse are no contacts
        const auto felt = on & ((zero < a.ln) | (a.gap < zero));
        if (report && any(felt)) t.report->add(a, felt, p);
    }
    for (int k = 0; k < c.limits; ++k) {
        if (c.limit[k].slot < 0) continue;
        t.impulses[3 * c.limit[k].slot] = select(c.limit[k].on & moving, c.limit[k].l, zero);
        t.kept->add(c.limit[k].slot);
    }
}

// All the steps of a call for one tile.
template <class S>
void step_tile(const Forest& f, const StepCall& call, const Tile<S>& t, Scratch<S>& s) {
    using T = Element<S>;
    const Vec3<S> gravity = {S(T(call.gravity[0])), S(T(call.gravity[1])), S(T(call.gravity[2]))};
    auto frozen = constant_mask<S>(false);
    for (int lane = 0; lane < Traits<S>::lanes && lane < t.count; ++lane)
        put(frozen, lane, call.frozen[t.first + lane] != 0);
    for (int step = 0; step < call.steps; ++step) {
        auto bad = constant_mask<S>(false);
        int bad_body[Traits<S>::lanes] = {};
        joint_forces(t.seen, f, call, step, t, gravity, s);
        for (int k = t.seen.nv; k < f.nv; ++k) s.Q[k] = s.K[k] = s.Q_own[k] = s.K_own[k] = S(T(0));
        const bool touch = call.embedded;  // standalone torques know nothing of contact
        const auto solve = [&] {
            accelerate(f, call, step, t, gravity, call.method, touch, s, bad, bad_body);
        };
        if (t.limits) within_limits(t.seen, t.axis, rows_of(call.strength, t), s, solve);
        else solve();
        if (!call.embedded) {
            // standalone: the torque is handed to a second, forward solve
            for (int k = 0; k < t.seen.nv; ++k) {
                s.Q[k] = s.Q[k] - s.K[k] * s.qdd[k];
                s.K[k] = S(T(0));
            }
            accelerate(f, call, step, t, gravity, Method::maba, true, s, bad, bad_body);
        }
        if (step + 1 == call.steps)
            for (int k = 0; k < t.seen.nv; ++k) {
                t.tau[k] = s.Q[k] - s.K[k] * s.qdd[k];
                if (t.limits) t.limited[k] = s.limited[k];
            }
        commit_step(f, call, t, bad, bad_body, frozen, s);
        if (t.touch) {
            store_impulses(t, frozen, step + 1 == call.steps);
            const auto stuck = (t.contact->stuck | t.contact->fast) & negate(frozen);
            if (any(stuck)) correct_positions(f, call, t, stuck, s);
        }
        if (any(frozen))  // copies that stand still apply nothing
            for (int k = 0; k < t.seen.nv; ++k) t.tau[k] = select(frozen, S(T(0)), t.tau[k]);
        for (int lane = 0; lane < Traits<S>::lanes && lane < t.count; ++lane)
            if (!get(frozen, lane)) call.time[t.first + lane] += call.dt;
    }
}

}  // namespace poise::inline POISE_ISA
