// One step of the world: ask the joints, solve, respect the effort limits, integrate.
//
// Semi-implicit Euler: v += dt q'', then x += dt v and q <- q exp(dt v) with the new v.
#pragma once

#include "poise/momentum_correction.hpp"
#include "poise/effort_limits.hpp"
#include "poise/external_forces.hpp"
#include "poise/free_rotation.hpp"

namespace poise::inline POISE_ISA {

// A world's numbers for one tile: n copies in blocks of lanes.
template <class S>
struct Tile {
    const Constants<S>* constants;
    const Axis<S>* axis;
    const Gain<S>* gain;  // null without a drive
    const double* pin_table;
    const bool* isotropic;
    S* q;
    S* v;
    Quat<S>* spin;            // exp(dt v)
    S* tau;                   // torque of the last step
    MaskOf<S>* limited;       // (nv) whether it is at its limit
    bool passive;             // some joint has armature, a spring, a damper, or carries a load
    bool limits;              // some joint has an effort limit
    Forest seen;              // the forest without spares: what is driven and asked for
    const MaskOf<S>* out;     // (spares) copies in which they have been thrown
    const Touchables* touch;  // null without contact and joint limits
    ContactScratch<S>* contact;
    Flight<S>* flight;
    S* impulses;  // (slots, 3) of the last step; 0 where not kept
    Kept* kept;
    Report<S>* report;
    std::int64_t first, count;  // copies first .. first + count - 1
};

template <class S>
POISE_INLINE LaneRows<S> rows_of(const Rows& rows, const Tile<S>& t) {
    return {rows, t.first, t.count};
}

// ---- what acts on the joints

POISE_INLINE bool accelerated(const StepCall& call, const Body& b) {
    return !call.accelerated || call.accelerated[b.v];
}

template <class S>
void drive(const Forest& f, const StepCall& call, int step, const Tile<S>& t, Scratch<S>& s) {
    using T = Element<S>;
    const bool moving = call.target_v.p != nullptr;
    const T dt = T(call.dt);
    if (call.target_q.copy == 0 && call.target_v.copy == 0) {
        const SharedRow<S> q{call.target_q.p + step * call.target_q.step};
        const SharedRow<S> v{moving ? call.target_v.p + step * call.target_v.step : nullptr};
        drive_forces(call.form, call.forms, f, t.gain, dt, t.q, t.v, t.spin, q, v, moving,
                     s.Q.data(), s.K.data());
    } else {
        rows_of(call.target_q, t).load(step, f.nq, s.tq.data());
        if (moving) rows_of(call.target_v, t).load(step, f.nv, s.tv.data());
        drive_forces(call.form, call.forms, f, t.gain, dt, t.q, t.v, t.spin,
                     static_cast<const S*>(s.tq.data()), static_cast<const S*>(s.tv.data()), moving,
                     s.Q.data(), s.K.data());
    }
}

// The target's motion, for pins and for the roots' feedforward: positions, velocities and, if
// asked, accelerations.
template <class S>
void move_target(const Forest& f, const StepCall& call, int step, const Tile<S>& t, bool rising,
                 const Vec3<S>& gravity, Scratch<S>& s) {
    const S zero(Element<S>(0));
    rows_of(call.target_q, t).load(step, f.nq, s.tq.data());
    if (call.target_v.p) rows_of(call.target_v, t).load(step, f.nv, s.tv.data());
    else
        for (int k = 0; k < f.nv; ++k) s.tv[k] = zero;
    if (rising && call.target_a.p) rows_of(call.target_a, t).load(step, f.nv, s.ta.data());
    const S* a = rising && call.target_a.p ? s.ta.data() : nullptr;
    move(f, t.constants, s.tq.data(), s.tv.data(), a, gravity, s.target_work.data());
}

// The force that the target's own motion needs at the free roots that are driven, added to Q.
template <class S>
void add_feedforward(const Forest& f, const StepCall& call, int step, const Tile<S>& t,
                     const Vec3<S>& gravity, Scratch<S>& s) {
    move_target(f, call, step, t, true, gravity, s);
    inverse_dynamics<S>(f, t.constants, s.target_work.data(), nullptr, s.total.data(),
                        s.load.data());
    for (int i = 0; i < f.nb; ++i) {
        const Body& b = f.body[i];
        if (b.kind != Kind::free || (call.fed && !call.fed[b.v])) continue;
        // what is not driven is free
        const S zero(Element<S>(0));
        auto driven = constant_mask<S>(false);
        for (int k = b.v; k < b.v + 6; ++k)
            driven = driven | (zero < t.gain[k].kp) | (zero < t.gain[k].kd);
        for (int k = b.v; k < b.v + 6; ++k) s.Q[k] = s.Q[k] + select(driven, s.load[k], zero);
    }
}

// Springs, dampers and rotor inertia of the joints themselves, fully implicit: Q_own - K_own q''.
template <class S>
POISE_NOINLINE void ask_passive(const Forest& f, const StepCall& call, const Tile<S>& t,
                                Scratch<S>& s) {
    for (int k = 0; k < f.nv; ++k) s.own_gain[k] = {t.axis[k].stiffness, t.axis[k].damping};
    const SharedRow<S> rest{f.spring_q};
    drive_forces<S, Form::implicit>(f, BodyRange{0, f.nb}, s.own_gain.data(), Element<S>(call.dt),
                                    t.q, t.v, t.spin, rest, rest, false, s.Q_own.data(),
                                    s.K_own.data());
    for (int k = 0; k < f.nv; ++k) s.K_own[k] = s.K_own[k] + t.axis[k].armature;
}

// Joint forces that give the joints the accelerations s.ta while free roots go where the rest
// takes them (floating-base inverse dynamics). The joints' own springs and dampers are known to
// it, pushes are not. Added to Q, but for trees that are not to be accelerated.
template <class S>
void add_acceleration(const Forest& f, const StepCall& call, const Tile<S>& t,
                      const Vec3<S>& gravity, const Wrench<S>* touched, Scratch<S>& s) {
    const S zero(Element<S>(0));
    S* a = s.ta.data();
    S* h = s.load.data();
    for (int i = 0; i < f.nb; ++i)
        if (f.body[i].kind == Kind::free)
            for (int k = 0; k < 6; ++k) a[f.body[i].v + k] = zero;
    // with the roots at rest their force h is what they lack
    move<S>(f, t.constants, t.q, t.v, a, gravity, s.work.data());
    composites(f, t.constants, s.work.data(), s.composite.data());
    inverse_dynamics<S>(f, t.constants, s.work.data(), touched, s.total.data(), h);
    for (int i = 0; i < f.nb; ++i) {
        const Body& b = f.body[i];
        if (b.kind != Kind::free) continue;
        const Rigid<S>& c = s.composite[i];
        const S half = trace(c.P);
        Inertia<S> I;
        I.C = {half - c.P.xx, half - c.P.yy, half - c.P.zz, -c.P.xy, -c.P.xz, -c.P.yz};
        I.B = {zero, -c.mc.z, c.mc.y, c.mc.z, zero, -c.mc.x, -c.mc.y, c.mc.x, zero};
        I.A = diagonal(c.m);
        Wrench<S> none = {zero3<S>(), zero3<S>()};
        S K[6], Q[6];
        for (int k = 0; k < 6; ++k) {
            K[k] = t.passive ? s.K_own[b.v + k] : zero;
            Q[k] = (t.passive ? s.Q_own[b.v + k] : zero) - h[b.v + k];
        }
        Work<S> root;
        root.R = s.work[i].R;
        contract_free<S>(root, I, none, K, Q, nullptr);
        store(a + b.v, root.rise.a);
        store(a + b.v + 3, tmul(root.R, root.rise.al));
    }
    move<S>(f, t.constants, t.q, t.v, a, gravity, s.work.data());
    inverse_dynamics<S>(f, t.constants, s.work.data(), touched, s.total.data(), h);
    for (int k = 0; k < f.nv && t.passive; ++k) h[k] = h[k] + (s.K_own[k] * a[k] - s.Q_own[k]);
    for (int i = 0; i < f.nb; ++i) {
        const Body& b = f.body[i];
        if (b.kind == Kind::free || !accelerated(call, b)) continue;
        for (int k = b.v; k < b.v + dof_count(b.kind); ++k) s.Q[k] = s.Q[k] + h[k];
    }
}

// ---- the step

template <class S>
POISE_NOINLINE void integrate(const Forest& f, Element<S> step, S* q, S* v, const S* v_next,
                              Quat<S>* spin) {
    const S dt(step);
    for (int i = 0; i < f.nb; ++i) {
        const Body& b = f.body[i];
        if (b.kind == Kind::hinge || b.kind == Kind::slide) {
            v[b.v] = v_next[b.v];
            q[b.q] = q[b.q] + dt * v_next[b.v];
            continue;
        }
        int nq = b.q, nv = b.v;
        if (b.kind == Kind::free) {
            for (int k = 0; k < 3; ++k) {
                v[nv + k] = v_next[nv + k];
                q[nq + k] = q[nq + k] + dt * v_next[nv + k];
            }
            nq += 3;
            nv += 3;
        }
        const Vec3<S> w = vec_at(v_next + nv);
        store(v + nv, w);
        spin[i] = exponential(dt * w);
        store(q + nq, renormalise(quat_at(q + nq) * spin[i]));
    }
}

// exp(dt v) for a state that no step led to: by the integrator itself, on paper that is thrown
// away, so that a state written back goes on bit for bit
template <class S>
void respin(const Forest& f, Element<S> dt, const S* v, Quat<S>* spin, Scratch<S>& s) {
    integrate(f, dt, s.q_old.data(), s.v_old.data(), v, spin);
}

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

// Contacts at the present state; motions are those of the joint velocities v.
template <class S>
void find_rows(const Forest& f, const StepCall& call, const Tile<S>& t, const S* v, bool bounds,
               Scratch<S>& s) {
    ContactScratch<S>& c = *t.contact;
    place(f, s.work.data(), s.origin.data());
    motions(f, s.work.data(), t.v, c.before.data());
    motions(f, s.work.data(), v, c.base.data());
    Detector<S> detector(f, *t.touch, s.work.data(), s.origin.data(), t.q, call.dt, t.first,
                         t.count, t.impulses, c);
    detector.contacts();
    if (bounds) detector.bounds();
}

// How much a joint that keeps its acceleration resists, as rotor inertia [kg m^2, kg]: as good as
// infinite, and still so that the rest keeps its digits.
template <class T>
constexpr T kUnyielding = sizeof(T) == 8 ? T(1e8) : T(1e4);

// What the ground will push with in this step if the joints keep the accelerations s.ta,
// about the joints, in s.external. The step's own contact is solved with joints that do not give
// way, Q = K a with K -> inf: a light foot between a heavy body and a stiff ground would otherwise
// take the force of the step before for that of this one, and not accelerate as it should.
template <class S>
bool contact_forces(const Forest& f, const StepCall& call, const Tile<S>& t, const Vec3<S>& gravity,
                    Scratch<S>& s) {
    using T = Element<S>;
    if (!t.touch || t.touch->model == ContactModel::none) return false;
    const S zero(T(0)), h(T(call.dt)), stiff(kUnyielding<T>);
    for (int i = 0; i < f.nb; ++i) {
        const Body& b = f.body[i];
        const bool held = i < t.seen.nb && b.kind != Kind::free && accelerated(call, b);
        for (int k = b.v; k < b.v + dof_count(b.kind); ++k) {
            s.K[k] = held ? stiff : zero;
            s.Q[k] = held ? stiff * s.ta[k] : zero;
        }
    }
    move<S>(f, t.constants, t.q, t.v, nullptr, gravity, s.work.data());
    const Problem<S> p = {f,
                          t.constants,
                          t.q,
                          t.v,
                          gravity,
                          s.Q.data(),
                          s.K.data(),
                          t.isotropic,
                          nullptr,
                          nullptr,
                          t.contact->give.data()};
    auto bad = constant_mask<S>(false);
    int bad_body[Traits<S>::lanes] = {};
    solve_maba(p, s, s.qdd.data(), bad, bad_body);
    for (int k = 0; k < f.nv; ++k) s.v_next[k] = t.v[k] + h * s.qdd[k];
    ContactScratch<S>& c = *t.contact;
    c.moved = c.stuck = constant_mask<S>(false);
    find_rows(f, call, t, s.v_next.data(), false, s);
    // only what stands still: links that meet each other, or a ball, are as surprising as a push,
    // and between joints that do not give way their forces would have no bound
    for (int k = 0; k < c.contacts; ++k) {
        Contact<S>& a = c.contact[k];
        if (a.other < 0) continue;
        a.on = constant_mask<S>(false);
        a.ln = a.lt = a.lu = zero;
    }
    c.groups = 0;
    if (!c.contacts) return false;
    const Limp<S> none = {s.v_next.data(), t.gain, 0, constant_mask<S>(true), true};
    ContactStep<S>{f, *t.touch, s.work.data(), call.dt, gravity, c}.solve(none);
    for (int i = 0; i < f.nb; ++i) s.external[i] = zero_wrench<S>();
    const S per(T(1 / call.dt));
    for (int k = 0; k < c.contacts; ++k) {
        const Contact<S>& a = c.contact[k];
        const auto good = negate(bad) & a.on;
        const Vec3<S> sum = per * (a.ln * a.n + a.lt * a.t + a.lu * a.u);
        const Vec3<S> push = {select(good, sum.x, zero), select(good, sum.y, zero),
                              select(good, sum.z, zero)};
        s.external[a.body] = s.external[a.body] + impulse_at(a.r, push);
        // what the step itself will find, if nothing else pushes: it starts from there
        if (a.other >= 0) continue;
        const Vec3<S> start = S(T(call.dt)) * push;
        S* m = t.impulses + 3 * a.slot;
        m[0] = start.x, m[1] = start.y, m[2] = start.z;
        t.kept->add(a.slot);
    }
    return true;
}

// Joint forces of this step: s.Q, s.K of drive and commands; s.Q_own, s.K_own of the joints.
// whole: the forest with its spares, which may touch the rest.
template <class S>
void ask_joints(const Forest& f, const Forest& whole, const StepCall& call, int step,
                const Tile<S>& t, const Vec3<S>& gravity, Scratch<S>& s) {
    const S zero(Element<S>(0));
    bool touching = false;
    if (call.acceleration.p) {
        rows_of(call.acceleration, t).load(0, f.nv, s.ta.data());
        touching = contact_forces(whole, call, t, gravity, s);
    }
    if (t.gain) {
        drive(f, call, step, t, s);
    } else {
        for (int k = 0; k < f.nv; ++k) s.Q[k] = s.K[k] = zero;
    }
    if (t.passive) ask_passive(f, call, t, s);
    if (call.load.p) {
        rows_of(call.load, t).load(0, f.nv, s.load.data());
        for (int k = 0; k < f.nv; ++k) s.Q_own[k] = s.Q_own[k] + s.load[k];
    }
    if (call.strength.p) scale_drive(f, rows_of(call.strength, t), s.Q.data(), s.K.data());
    if (call.feedforward) add_feedforward(f, call, step, t, gravity, s);
    if (call.force.p) {
        rows_of(call.force, t).load(0, f.nv, s.load.data());
        for (int k = 0; k < f.nv; ++k) s.Q[k] = s.Q[k] + s.load[k];
    }
    if (call.acceleration.p) {
        // the target's, if it was fed forward, are there now
        rows_of(call.acceleration, t).load(0, f.nv, s.ta.data());
        add_acceleration<S>(f, call, t, gravity, touching ? s.external.data() : nullptr, s);
    }
}

// Accelerations s.qdd without contact become those with it, and with joints within their bounds.
// held: copies that are dragged.
template <class S>
void touch_down(const Forest& f, const StepCall& call, const Tile<S>& t, const Vec3<S>& gravity,
                const MaskOf<S>& held, Scratch<S>& s) {
    using T = Element<S>;
    ContactScratch<S>& c = *t.contact;
    const S h(T(call.dt));
    for (int k = 0; k < f.nv; ++k) s.v_next[k] = t.v[k] + h * s.qdd[k];
    c.moved = c.stuck = constant_mask<S>(false);
    find_rows(f, call, t, s.v_next.data(), true, s);
    if (!c.contacts && !c.limits) return;
    ContactStep<S> contact = {f, *t.touch, s.work.data(), call.dt, gravity, c};
    const bool told = call.force.p || call.acceleration.p;
    contact.solve({s.v_next.data(), t.gain, t.seen.nv, held, told});
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
    const Problem<S> p = {f,
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
    solve(method, p, s, s.qdd.data(), bad, bad_body);
    for (int i = 0; i < f.nb; ++i) {
        const Body& b = f.body[i];
        if (b.kind == Kind::free && b.leaf)
            keep_spin(t.constants[i], s.work[i].R, Element<S>(call.dt), t.v + b.v, p.K + b.v,
                      s.qdd.data() + b.v);
    }
    if (touching) touch_down(f, call, t, gravity, held, s);
    if (!t.flight) return;
    // pins and springs that drag are implicit: what they add is not known before
    const bool known = call.correct_momentum && !pinned && touch;
    bool flying = false;
    for (int i = 0; i < f.nb; ++i) {
        const Body& b = f.body[i];
        auto& flies = t.flight->flying[i] = constant_mask<S>(false);
        if (b.kind != Kind::free || b.leaf || !known) continue;
        flies = negate(t.touch ? touches_something(*t.contact, i, end_of_tree(f, i))
                               : acts_on_root(b, s.Q.data(), s.K.data()));
        flies = flies & negate(held);
        flying = flying || any(flies);
    }
    if (!flying) return;
    if (!t.touch) {
        place(f, s.work.data(), s.origin.data());
        motions(f, s.work.data(), t.v, t.flight->motion.data());
    }
    S* force = s.load.data();
    for (int k = 0; k < f.nv; ++k) force[k] = p.Q[k] - p.K[k] * s.qdd[k];
    expect_momentum(f, t.constants, s.work.data(), s.origin.data(),
                    t.touch ? t.contact->before.data() : t.flight->motion.data(), p.external,
                    static_cast<const S*>(force), Element<S>(call.dt), gravity, *t.flight);
}

// Accelerations that respect the effort limits.
template <class S>
void accelerate_limited(const Forest& f, const StepCall& call, int step, const Tile<S>& t,
                        const Vec3<S>& gravity, bool touch, Scratch<S>& s, MaskOf<S>& bad,
                        int* bad_body) {
    const LaneRows<S> strength = rows_of(call.strength, t);
    within_limits(t.seen, t.axis, strength, s, [&] {
        accelerate(f, call, step, t, gravity, call.method, touch, s, bad, bad_body);
    });
}

// Take the step in the lanes that are good; the others stay where they are and are reported.
template <class S>
void settle(const Forest& f, const StepCall& call, const Tile<S>& t, const MaskOf<S>& bad,
            const int* bad_body, MaskOf<S>& frozen, Scratch<S>& s) {
    using T = Element<S>;
    S speed(T(0));
    for (int k = 0; k < f.nv; ++k) {
        s.v_next[k] = t.v[k] + S(T(call.dt)) * s.qdd[k];
        speed = speed + s.v_next[k] * s.v_next[k];
    }
    // bodies that move by more than the velocities that they keep
    const bool apart = t.touch && any(t.contact->moved), spares = f.nb > t.seen.nb;
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
    for (int i = 0; i < f.nb && t.flight; ++i) flying = flying || any(t.flight->flying[i]);
    if (!any(still) && !apart && !spares && !flying) {
        integrate(f, T(call.dt), t.q, t.v, s.v_next.data(), t.spin);
        return;
    }
    for (int k = 0; k < f.nq; ++k) s.q_old[k] = t.q[k];
    for (int k = 0; k < f.nv; ++k) s.v_old[k] = t.v[k];
    if (apart) {
        const auto& c = *t.contact;
        for (int k = 0; k < f.nv; ++k)
            s.load[k] = s.v_next[k] + select(c.moved, c.push[k], S(T(0)));
        integrate(f, T(call.dt), t.q, t.v, s.load.data(), t.spin);
        for (int k = 0; k < f.nv; ++k) t.v[k] = s.v_next[k];
    } else {
        integrate(f, T(call.dt), t.q, t.v, s.v_next.data(), t.spin);
    }
    for (int k = 0; k < f.nq; ++k) t.q[k] = select(still, s.q_old[k], t.q[k]);
    for (int k = 0; k < f.nv; ++k) t.v[k] = select(still, s.v_old[k], t.v[k]);
    if (flying) {
        move<S>(f, t.constants, t.q, t.v, nullptr, zero3<S>(), s.work.data());
        place(f, s.work.data(), s.origin.data());
        motions(f, s.work.data(), static_cast<const S*>(t.v), t.flight->motion.data());
        correct_momentum(f, t.constants, s.work.data(), s.origin.data(), t.flight->motion.data(),
                         *t.flight, still, t.v);
    }
    for (int i = t.seen.nb; i < f.nb; ++i) {
        // spares that have not been thrown wait
        const auto out = t.out[i - t.seen.nb];
        const Body& b = f.body[i];
        for (int k = b.q; k < b.q + 7; ++k) t.q[k] = select(out, t.q[k], s.q_old[k]);
        for (int k = b.v; k < b.v + 6; ++k) t.v[k] = select(out, t.v[k], s.v_old[k]);
    }
    respin(f, T(call.dt), t.v, t.spin, s);
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
POISE_NOINLINE void pull_out(const Forest& f, const StepCall& call, const Tile<S>& t,
                             const MaskOf<S>& which, Scratch<S>& s) {
    using T = Element<S>;
    ContactScratch<S>& c = *t.contact;
    const S zero(T(0));
    const Vec3<S> none = zero3<S>();
    for (int k = 0; k < f.nv; ++k) s.load[k] = s.v_old[k] = zero;
    move<S>(f, t.constants, t.q, s.v_old.data(), nullptr, none, s.work.data());
    const Problem<S> p = {f,
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
    solve(Method::maba, p, s, s.qdd.data(), bad, bad_body);
    find_rows(f, call, t, static_cast<const S*>(s.v_old.data()), true, s);
    if (!c.contacts) return;
    ContactStep<S> contact = {f, *t.touch, s.work.data(), call.dt, none, c};
    auto out = contact.pull_out(which & negate(bad));
    // what has almost no inertia may be thrown anywhere
    S speed = zero;
    for (int k = 0; k < f.nv; ++k) speed = speed + c.push[k] * c.push[k];
    out = out & (speed < S(T(kFastest * kFastest)));
    if (!any(out)) return;
    for (int k = 0; k < f.nq; ++k) s.q_old[k] = t.q[k];
    // the velocities stay
    integrate(f, T(call.dt), s.q_old.data(), s.v_old.data(), c.push.data(), s.spin.data());
    for (int k = 0; k < f.nq; ++k) t.q[k] = select(out, s.q_old[k], t.q[k]);
}

// Impulses for the next step to start from, and contacts for the user to see. Copies that stand
// still have none.
template <class S>
void remember(const Tile<S>& t, const MaskOf<S>& frozen, bool report) {
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
        ask_joints(t.seen, f, call, step, t, gravity, s);
        for (int k = t.seen.nv; k < f.nv; ++k) s.Q[k] = s.K[k] = s.Q_own[k] = s.K_own[k] = S(T(0));
        const bool touch = call.embedded;  // standalone torques know nothing of contact
        if (t.limits) accelerate_limited(f, call, step, t, gravity, touch, s, bad, bad_body);
        else accelerate(f, call, step, t, gravity, call.method, touch, s, bad, bad_body);
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
        settle(f, call, t, bad, bad_body, frozen, s);
        if (t.touch) {
            remember(t, frozen, step + 1 == call.steps);
            const auto stuck = (t.contact->stuck | t.contact->fast) & negate(frozen);
            if (any(stuck)) pull_out(f, call, t, stuck, s);
        }
        if (any(frozen))  // copies that stand still apply nothing
            for (int k = 0; k < t.seen.nv; ++k) t.tau[k] = select(frozen, S(T(0)), t.tau[k]);
        for (int lane = 0; lane < Traits<S>::lanes && lane < t.count; ++lane)
            if (!get(frozen, lane)) call.time[t.first + lane] += call.dt;
    }
}

}  // namespace poise::inline POISE_ISA
