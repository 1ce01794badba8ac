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

// Free bodies that touch something, or will: their rotation without contact is the one that loses.
template <class S>
void touch_in_rotation(const Forest& f, const StepCall& call, const Tile<S>& t, Scratch<S>& s) {
    using T = Element<S>;
    ContactScratch<S>& c = *t.contact;
    const S zero(T(0)), per(T(1 / call.dt));
    bool single = false;
    for (int i = 0; i < f.nb; ++i) {
        single = single || (f.body[i].kind == Kind::free && f.body[i].leaf);
        c.touched[i] = constant_mask<S>(false);
    }
    for (int k = 0; k < c.contacts && single; ++k) {
        const Contact<S>& a = c.contact[k];
        S v = dot(a.n, point_velocity(c.base[a.body], a.r));
        if (a.other >= 0) v = v - dot(a.n, point_velocity(c.base[a.other], a.r_other));
        const auto acts = a.on & ((zero < a.ln) | (v < a.bound));
        c.touched[a.body] = c.touched[a.body] | acts;
        if (a.other >= 0) c.touched[a.other] = c.touched[a.other] | acts;
    }
    for (int i = 0; i < f.nb; ++i) {
        const Body& b = f.body[i];
        const auto& touches = c.touched[i];
        if (b.kind != Kind::free || !b.leaf || !any(touches)) continue;
        S* v = s.v_next.data() + b.v;
        lose_free_rotation(t.constants[i], s.work[i].R, T(call.dt), touches, v,
                           s.drift.data() + b.v);
        for (int k = 0; k < 6; ++k)
            s.qdd[b.v + k] = select(touches, per * (v[k] - t.v[b.v + k]), s.qdd[b.v + k]);
        c.base[i] = {s.work[i].R * vec_at(v + 3), vec_at(v)};
    }
}

// held: copies that are dragged
template <class S>
PassiveJoints<S> passive_joints(const StepCall& call, const Tile<S>& t, const MaskOf<S>& held,
                                const Scratch<S>& s) {
    const bool commanded = call.force.p || call.acceleration.p;
    return {s.v_next.data(), t.gain, t.seen.nv, held, commanded};
}

// Rows of contact and of joints near their bounds, at the accelerations s.qdd without contact;
// whether there are any, or will be.
template <class S>
bool start_contacts(const Forest& f, const StepCall& call, const Tile<S>& t,
                    const PassiveJoints<S>& passive, Scratch<S>& s) {
    ContactScratch<S>& c = *t.contact;
    const S h(Element<S>(call.dt));
    for (int k = 0; k < f.nv; ++k) s.v_next[k] = t.v[k] + h * s.qdd[k];
    c.moved = c.stuck = constant_mask<S>(false);
    find_contacts(f, call, t, s.v_next.data(), true, s);
    if (c.contacts) touch_in_rotation(f, call, t, s);
    return c.contacts || c.limits || may_tumble(f, *t.touch, call.dt, passive);
}

template <class S>
ContactStep<S> contact_step(const Forest& f, const StepCall& call, const Tile<S>& t,
                            const Vec3<S>& gravity, Scratch<S>& s) {
    const bool thorough = call.acceleration.p;
    return {
        f,       *t.touch, s.work.data(), call.dt, gravity, *t.contact, static_cast<int>(t.count),
        thorough};
}

// Accelerations s.qdd without contact become those with it, and with joints within their bounds.
template <class S>
void solve_contacts(const Forest& f, const StepCall& call, const Tile<S>& t, const Vec3<S>& gravity,
                    const MaskOf<S>& held, Scratch<S>& s) {
    ContactScratch<S>& c = *t.contact;
    const PassiveJoints<S> passive = passive_joints(call, t, held, s);
    if (!start_contacts(f, call, t, passive, s)) return;
    contact_step(f, call, t, gravity, s).solve(passive);
    const S per(Element<S>(1 / call.dt));
    for (int k = 0; k < f.nv; ++k) s.qdd[k] = s.qdd[k] + per * c.dv[k];
}

// Bodies that touch something move by the velocities that contact has given them.
template <class S>
void stop_drift(const Forest& f, const ContactScratch<S>& c, S* drift) {
    const S zero(Element<S>(0));
    for (int k = 0; k < c.contacts; ++k) {
        const Contact<S>& a = c.contact[k];
        const auto pushes = zero < a.ln;
        if (!any(pushes)) continue;
        for (const int i : {a.body, a.other}) {
            if (i < 0 || f.body[i].kind != Kind::free || !f.body[i].leaf) continue;
            for (int j = f.body[i].v; j < f.body[i].v + 6; ++j)
                drift[j] = select(pushes, zero, drift[j]);
        }
    }
}

// Forces on the bodies that this step's accelerations do not change: pushes, springs that drag,
// pins.
template <class S>
struct Loads {
    bool pushed, dragged, pinned;
    MaskOf<S> held;  // copies that are dragged
};

// They go to s.external and s.pinned; s.work holds the motions afterwards.
template <class S>
Loads<S> find_loads(const Forest& f, const StepCall& call, int step, const Tile<S>& t,
                    const Vec3<S>& gravity, Scratch<S>& s) {
    move<S>(f, t.constants, t.q, t.v, nullptr, gravity, s.work.data());
    const bool pushed = call.memory != nullptr;
    const bool dragged = pushed && dragging(call, t.first, t.count);
    const bool pinned = call.pin.p && t.gain;
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
    return {pushed, dragged, pinned, held};
}

// Accelerations without contact under the present s.Q, s.K; s.work holds the motions and is used
// up.
template <class S>
void accelerate_freely(const Forest& f, const StepCall& call, const Tile<S>& t,
                       const Vec3<S>& gravity, Method method, bool touching, const Loads<S>& loads,
                       Scratch<S>& s, MaskOf<S>& bad, int* bad_body) {
    for (int k = 0; k < f.nv && t.passive; ++k) {
        s.Q_sum[k] = s.Q[k] + s.Q_own[k];
        s.K_sum[k] = s.K[k] + s.K_own[k];
    }
    const ForwardProblem<S> p = {f,
                                 t.constants,
                                 t.q,
                                 t.v,
                                 gravity,
                                 t.passive ? s.Q_sum.data() : s.Q.data(),
                                 t.passive ? s.K_sum.data() : s.K.data(),
                                 t.isotropic,
                                 loads.pushed || loads.pinned ? s.external.data() : nullptr,
                                 loads.pinned || loads.dragged ? s.pinned.data() : nullptr,
                                 touching ? t.contact->give.data() : nullptr,
                                 t.limits ? s.relief.data() : nullptr};
    forward_dynamics(method, p, s, s.qdd.data(), bad, bad_body);
    for (int i = 0; i < f.nb; ++i) {
        const Body& b = f.body[i];
        if (b.kind == Kind::free && b.leaf)
            keep_angular_momentum(t.constants[i], s.work[i].R, Element<S>(call.dt), t.v + b.v,
                                  p.K + b.v, s.qdd.data() + b.v, s.drift.data() + b.v);
    }
}

// What contact does in the joints, s.contact_force (nv): J' of the impulses over the time step.
template <class S>
void find_contact_forces(const Forest& f, const StepCall& call, const Tile<S>& t, Scratch<S>& s) {
    const ContactScratch<S>& c = *t.contact;
    Wrench<S>* W = s.total.data();
    Vec3<S>* in_joint = s.target_origin.data();
    for (int i = 0; i < f.nb; ++i) {
        W[i] = zero_wrench<S>();
        in_joint[i] = zero3<S>();
    }
    const S per(Element<S>(1 / call.dt));
    for (int k = 0; k < c.contacts; ++k) {
        const Contact<S>& a = c.contact[k];
        const Vec3<S> p = per * (a.ln * a.n + a.lt * a.t + a.lu * a.u);
        W[a.body] = W[a.body] + impulse_at(a.r, p);
        if (a.other >= 0) W[a.other] = W[a.other] + impulse_at(a.r_other, zero3<S>() - p);
    }
    for (int k = 0; k < c.limits; ++k) {
        const LimitRow<S>& a = c.limit[k];
        in_joint[a.body] = in_joint[a.body] + (per * a.l) * a.g;
    }
    for (int i = f.nb - 1; i >= 0; --i) {
        const Body& b = f.body[i];
        const Mat3<S>& R = s.work[i].R;
        S* force = s.contact_force.data() + b.v;
        if (b.kind == Kind::free) {
            store(force, W[i].f);
            store(force + 3, tmul(R, W[i].n));
        } else if (b.kind == Kind::ball) {
            store(force, tmul(R, W[i].n + in_joint[i]));
        } else {
            force[0] = dot(axis_of(R), b.kind == Kind::hinge ? W[i].n : W[i].f) + in_joint[i].x;
        }
        if (b.parent >= 0) W[b.parent] = W[b.parent] + shift(W[i], s.work[i].r);
    }
}

// Accelerations with forces within the effort limits, which change what is linear of the drive:
// s.Q, s.K, s.relief. The forces go to s.tau.
template <class S>
void accelerate_within_limits(const Forest& f, const StepCall& call, const Tile<S>& t,
                              const Vec3<S>& gravity, Method method, bool touching,
                              const Loads<S>& loads, Scratch<S>& s, MaskOf<S>& bad, int* bad_body) {
    using T = Element<S>;
    auto failed = constant_mask<S>(false);
    bool moved = true;
    const auto solve = [&] {
        if (!moved) move<S>(f, t.constants, t.q, t.v, nullptr, gravity, s.work.data());
        moved = false;
        failed = constant_mask<S>(false);
        accelerate_freely(f, call, t, gravity, method, touching, loads, s, failed, bad_body);
    };
    BoundedDrive<S> drive(t.seen, t.axis, rows_of(call.strength, t), s);
    drive.solve_free(solve);
    if (touching) {
        ContactScratch<S>& c = *t.contact;
        const S h(T(call.dt)), per(T(1 / call.dt));
        const auto add_contact = [&] {
            for (int k = 0; k < f.nv; ++k) {
                s.a_free[k] = s.qdd[k];
                s.qdd[k] = s.qdd[k] + per * c.dv[k];
            }
        };
        c.timer.mark(Phase::dynamics);
        const PassiveJoints<S> passive = passive_joints(call, t, loads.held, s);
        if (start_contacts(f, call, t, passive, s)) {
            ContactStep<S> contact = contact_step(f, call, t, gravity, s);
            GaussSeidel<S> sweeper = contact.impulses();
            const auto keep_limits = [&](auto open) {
                for (int k = 0; any(open.any_of()); ++k) {
                    find_contact_forces(f, call, t, s);
                    if (!drive.correct(k, open)) return;
                    solve();
                    for (int j = 0; j < f.nv; ++j) s.v_next[j] = t.v[j] + h * s.qdd[j];
                    motions(f, s.work.data(), static_cast<const S*>(s.v_next.data()),
                            c.base.data());
                    touch_in_rotation(f, call, t, s);
                    contact.solve_again(sweeper, open.any_of());
                    add_contact();
                    open = drive.errors(open);
                }
            };
            contact.start(sweeper, passive);
            add_contact();
            drive.start_contact(f.nv, t.touch->tolerance / call.dt);
            keep_limits(drive.errors(drive.everywhere()));
            const auto bounced = contact.finish(sweeper);
            if (any(bounced)) sweeper.update(c.dv.data());
            for (int k = 0; k < f.nv; ++k) s.qdd[k] = s.a_free[k] + per * c.dv[k];
            if (any(bounced)) {
                const auto open = drive.errors({bounced, bounced});
                const auto again = open.any_of();
                if (any(again)) contact.keep_bounce(sweeper, again);
                for (int k = 0; k < f.nv; ++k) s.load[k] = s.qdd[k];
                drive.start_contact(f.nv, t.touch->tolerance / call.dt);
                keep_limits(open);
                // positions go where they would have gone
                for (int k = 0; k < f.nv; ++k)
                    c.push[k] = c.push[k] + select(again, h * (s.load[k] - s.qdd[k]), S(T(0)));
            }
        }
        c.timer.mark(Phase::positions);
    }
    drive.find_forces();
    bad = bad | failed;
}

// Momentum that trees in flight must have after the step.
template <class S>
void start_momentum(const Forest& f, const StepCall& call, const Tile<S>& t, const Vec3<S>& gravity,
                    bool touch, const Loads<S>& loads, Scratch<S>& s) {
    // pins and springs that drag are implicit: what they add is not known before
    const bool known = call.correct_momentum && !loads.pinned && touch;
    bool flying = false;
    for (int i = 0; i < f.nb; ++i) {
        const Body& b = f.body[i];
        auto& flies = t.momentum->flying[i] = constant_mask<S>(false);
        if (b.kind != Kind::free || b.leaf || !known) continue;
        flies = negate(t.touch ? touches_something(*t.contact, i, end_of_tree(f, i))
                               : acts_on_root(b, s.Q.data(), s.K.data()));
        flies = flies & negate(loads.held);
        flying = flying || any(flies);
    }
    if (!flying) return;
    if (!t.touch) {
        place(f, s.work.data(), s.origin.data());
        motions(f, s.work.data(), t.v, t.momentum->motion.data());
    }
    S* force = s.load.data();
    const S* Q = t.passive ? s.Q_sum.data() : s.Q.data();
    const S* K = t.passive ? s.K_sum.data() : s.K.data();
    for (int k = 0; k < f.nv; ++k) force[k] = Q[k] - K[k] * s.qdd[k];  // only the roots' counts
    expect_momentum(f, t.constants, s.work.data(), s.origin.data(),
                    t.touch ? t.contact->before.data() : t.momentum->motion.data(),
                    loads.pushed || loads.pinned ? s.external.data() : nullptr,
                    static_cast<const S*>(force), Element<S>(call.dt), gravity, *t.momentum);
}

// Accelerations under the drive in s.Q, s.K. touch: with contact, if the world has any; limits:
// within the effort limits.
template <class S>
void accelerate(const Forest& f, const StepCall& call, int step, const Tile<S>& t,
                const Vec3<S>& gravity, Method method, bool touch, bool limits, Scratch<S>& s,
                MaskOf<S>& bad, int* bad_body) {
    const bool touching = touch && t.touch;
    const Loads<S> loads = find_loads(f, call, step, t, gravity, s);
    if (limits) {
        accelerate_within_limits(f, call, t, gravity, method, touching, loads, s, bad, bad_body);
    } else {
        accelerate_freely(f, call, t, gravity, method, touching, loads, s, bad, bad_body);
        if (touching) {
            t.contact->timer.mark(Phase::dynamics);
            solve_contacts(f, call, t, gravity, loads.held, s);
            t.contact->timer.mark(Phase::positions);
        }
    }
    if (touching) stop_drift(f, *t.contact, s.drift.data());
    if (t.momentum) start_momentum(f, call, t, gravity, touch, loads, s);
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
    const bool pushed = t.touch && any(t.contact->moved), projectiles = f.nb > t.seen.nb;
    bool apart = pushed;
    for (int i = 0; i < f.nb; ++i)
        apart = apart || (f.body[i].kind == Kind::free && f.body[i].leaf);
    for (int k = 0; k < f.nv && pushed; ++k) {
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
        for (int k = 0; k < f.nv; ++k) s.load[k] = s.v_next[k];
        for (int k = 0; k < f.nv && pushed; ++k)
            s.load[k] = s.load[k] + select(t.contact->moved, t.contact->push[k], S(T(0)));
        for (int i = 0; i < f.nb; ++i) {
            const Body& b = f.body[i];
            if (b.kind != Kind::free || !b.leaf) continue;
            for (int k = b.v; k < b.v + 6; ++k) s.load[k] = s.load[k] + s.drift[k];
        }
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

// The trees that are too deep, or may have passed a ridge unseen, in c.stuck_trees.
template <class S>
void find_stuck_trees(const Forest& f, const StepCall& call, const Tile<S>& t,
                      const MaskOf<S>& which) {
    ContactScratch<S>& c = *t.contact;
    const std::int32_t* root = t.touch->root;
    for (int i = 0; i < f.nb; ++i)
        if (root[i] == i) c.stuck_trees[i] = c.stuck_trees[i] & c.stuck;
    for (int i = 0; i < f.nb; ++i)
        c.stuck_trees[root[i]] =
            c.stuck_trees[root[i]] | (c.fast & (S(Element<S>(kFast / call.dt)) < c.quickness[i]));
    for (int i = 0; i < f.nb; ++i)
        if (root[i] == i) c.stuck_trees[i] = c.stuck_trees[i] & which;
}

// A light body that is struck may turn by a radian in a step, and end in the ground although its
// velocities did not lead there. It is taken out where it is, as a body at rest.
template <class S>
POISE_NOINLINE void correct_positions(const Forest& f, const StepCall& call, const Tile<S>& t,
                                      const MaskOf<S>& which, Scratch<S>& s) {
    using T = Element<S>;
    ContactScratch<S>& c = *t.contact;
    const S zero(T(0));
    find_stuck_trees(f, call, t, which);
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
                                 c.give.data(),
                                 t.limits ? s.relief.data() : nullptr};
    auto bad = constant_mask<S>(false);
    int bad_body[Traits<S>::lanes] = {};
    forward_by_maba(p, s, s.qdd.data(), bad, bad_body);
    find_contacts(f, call, t, static_cast<const S*>(s.v_old.data()), true, s);
    if (!c.contacts) return;
    ContactStep<S> contact = {
        f, *t.touch, s.work.data(), call.dt, none, c, static_cast<int>(t.count)};
    contact.correct_positions();
    if (!any(c.islands.copies(c.deep) & negate(bad))) return;
    for (int k = 0; k < f.nq; ++k) s.q_old[k] = t.q[k];
    // the velocities stay
    integrate(f, T(call.dt), s.q_old.data(), s.v_old.data(), c.push.data(), s.rotation_step.data());
    // of the islands that are too deep: the others stay, to the last bit
    for (int i = 0; i < f.nb; ++i) {
        const auto moves = negate(bad) & c.deep[c.islands.root(i)];
        const int end = i + 1 < f.nb ? f.body[i + 1].q : f.nq;
        for (int k = f.body[i].q; k < end; ++k) t.q[k] = select(moves, s.q_old[k], t.q[k]);
    }
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
        const auto on = a.on & moving, pushes = on & (zero < a.ln);
        // those that touch: near ones without an impulse are no contacts
        const auto felt = report ? on & (pushes | (a.gap < zero)) : pushes;
        if (!any(felt)) continue;
        const Vec3<S> p = a.ln * a.n + a.lt * a.t + a.lu * a.u;
        if (report) t.report->add(a, felt, p);
        if (!any(pushes)) continue;
        S* m = t.impulses + 3 * a.slot;
        t.kept->add(a.slot);
        const auto lasts = pushes & negate(a.struck);
        m[0] = select(lasts, p.x, zero);
        m[1] = select(lasts, p.y, zero);
        m[2] = select(lasts, p.z, zero);
    }
    for (int k = 0; k < c.limits; ++k) {
        if (c.limit[k].slot < 0 || !any(zero < c.limit[k].l)) continue;
        t.impulses[3 * c.limit[k].slot] = select(c.limit[k].on & moving, c.limit[k].l, zero);
        t.kept->add(c.limit[k].slot);
    }
}

// All the steps of a call for one tile.
template <class S>
void step_tile(const Forest& f, const StepCall& call, const Tile<S>& t, Scratch<S>& s) {
    using T = Element<S>;
    const Vec3<S> gravity = constant3<S>(call.gravity);
    auto frozen = constant_mask<S>(false);
    // lanes beyond the last copy repeat it
    for (int lane = 0; lane < Traits<S>::lanes; ++lane)
        put(frozen, lane, call.frozen[t.first + (lane < t.count ? lane : t.count - 1)] != 0);
    if (t.touch) t.contact->timer.start(t.profile);
    if (t.profile) t.profile->steps += call.steps * call.substeps * t.count;
    const int all = call.steps * call.substeps;
    for (int now = 0; now < all; ++now) {
        const int step = now / call.substeps;
        const bool last = now + 1 == all;
        auto bad = constant_mask<S>(false);
        int bad_body[Traits<S>::lanes] = {};
        // copies that stand still have neither contacts nor drives, and cost their tile nothing
        if (t.touch) t.contact->alive = negate(frozen);
        joint_forces(t.seen, f, call, step, t, gravity, s);
        for (int k = 0; k < t.seen.nv && any(frozen); ++k) {
            s.Q[k] = select(frozen, S(T(0)), s.Q[k]);
            s.K[k] = select(frozen, S(T(0)), s.K[k]);
        }
        for (int k = t.seen.nv; k < f.nv; ++k) s.Q[k] = s.K[k] = s.Q_own[k] = s.K_own[k] = S(T(0));
        for (int k = t.seen.nb; k < f.nb; ++k) s.relief[k] = zero3<S>();
        const bool touch = call.embedded;  // standalone torques know nothing of contact
        accelerate(f, call, step, t, gravity, call.method, touch, t.limits, s, bad, bad_body);
        if (!t.limits)
            for (int k = 0; k < t.seen.nv; ++k) s.tau[k] = s.Q[k] - s.K[k] * s.qdd[k];
        if (!call.embedded) {
            // standalone: the torque is handed to a second, forward solve
            for (int k = 0; k < t.seen.nv; ++k) {
                s.Q[k] = s.tau[k];
                s.K[k] = S(T(0));
            }
            for (int k = 0; k < t.seen.nb; ++k) s.relief[k] = zero3<S>();
            accelerate(f, call, step, t, gravity, Method::maba, true, false, s, bad, bad_body);
        }
        if (last)
            for (int k = 0; k < t.seen.nv; ++k) {
                t.tau[k] = s.tau[k];
                if (t.limits) t.limited[k] = s.limited[k];
            }
        if (t.touch) t.contact->timer.mark(Phase::dynamics);
        commit_step(f, call, t, bad, bad_body, frozen, s);
        if (t.touch) {
            store_impulses(t, frozen, last);
            const auto stuck = (t.contact->stuck | t.contact->fast) & negate(frozen);
            if (any(stuck)) correct_positions(f, call, t, stuck, s);
            t.contact->timer.mark(Phase::integration);
        }
        if (any(frozen))  // copies that stand still apply nothing
            for (int k = 0; k < t.seen.nv; ++k) t.tau[k] = select(frozen, S(T(0)), t.tau[k]);
        for (int lane = 0; lane < Traits<S>::lanes && lane < t.count; ++lane)
            if (!get(frozen, lane)) call.time[t.first + lane] += call.dt;
    }
}

}  // namespace poise::inline POISE_ISA
