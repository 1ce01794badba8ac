// Forces in the joints: drive, passive springs and dampers, feedforward, commanded accelerations.
#pragma once

#include "poise/forward_dynamics.hpp"
#include "poise/tile.hpp"

namespace poise::inline POISE_ISA {

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
        drive_forces(call.form, call.forms, f, t.gain, dt, t.q, t.v, t.rotation_step, q, v, moving,
                     s.Q.data(), s.K.data());
    } else {
        rows_of(call.target_q, t).load(step, f.nq, s.tq.data());
        if (moving) rows_of(call.target_v, t).load(step, f.nv, s.tv.data());
        drive_forces(call.form, call.forms, f, t.gain, dt, t.q, t.v, t.rotation_step,
                     static_cast<const S*>(s.tq.data()), static_cast<const S*>(s.tv.data()), moving,
                     s.Q.data(), s.K.data());
    }
}

// The target's motion, for pins and for the roots' feedforward: positions, velocities and, if
// asked, accelerations.
template <class S>
void move_target(const Forest& f, const StepCall& call, int step, const Tile<S>& t,
                 bool with_acceleration, const Vec3<S>& gravity, Scratch<S>& s) {
    const S zero(Element<S>(0));
    rows_of(call.target_q, t).load(step, f.nq, s.tq.data());
    if (call.target_v.p) rows_of(call.target_v, t).load(step, f.nv, s.tv.data());
    else
        for (int k = 0; k < f.nv; ++k) s.tv[k] = zero;
    if (with_acceleration && call.target_a.p)
        rows_of(call.target_a, t).load(step, f.nv, s.ta.data());
    const S* a = with_acceleration && call.target_a.p ? s.ta.data() : nullptr;
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
POISE_NOINLINE void passive_forces(const Forest& f, const StepCall& call, const Tile<S>& t,
                                   Scratch<S>& s) {
    for (int k = 0; k < f.nv; ++k) s.own_gain[k] = {t.axis[k].stiffness, t.axis[k].damping};
    const SharedRow<S> rest{f.spring_q};
    drive_forces<S, Form::implicit>(f, BodyRange{0, f.nb}, s.own_gain.data(), Element<S>(call.dt),
                                    t.q, t.v, t.rotation_step, rest, rest, false, s.Q_own.data(),
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
        backward_free<S>(root, I, none, K, Q, nullptr);
        store(a + b.v, root.relative_acceleration.a);
        store(a + b.v + 3, tmul(root.R, root.relative_acceleration.al));
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

// Contacts at the present state; motions are those of the joint velocities v.
template <class S>
void find_contacts(const Forest& f, const StepCall& call, const Tile<S>& t, const S* v, bool bounds,
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
    const ForwardProblem<S> p = {f,
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
    forward_by_maba(p, s, s.qdd.data(), bad, bad_body);
    for (int k = 0; k < f.nv; ++k) s.v_next[k] = t.v[k] + h * s.qdd[k];
    ContactScratch<S>& c = *t.contact;
    c.moved = c.stuck = constant_mask<S>(false);
    find_contacts(f, call, t, s.v_next.data(), false, s);
    // only what stands still: links that meet each other, or a ball, are as surprising as a push,
    // and between joints that do not give way their forces would have no bound
    for (int k = 0; k < c.contacts; ++k) {
        Contact<S>& a = c.contact[k];
        if (a.other < 0) continue;
        a.on = constant_mask<S>(false);
        a.ln = a.lt = a.lu = zero;
    }
    if (!c.contacts) return false;
    const PassiveJoints<S> none = {s.v_next.data(), t.gain, 0, constant_mask<S>(true), true};
    ContactStep<S>{f, *t.touch, s.work.data(), call.dt, gravity, c, static_cast<int>(t.count), true}
        .solve(none);
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
// whole: the forest with its projectiles, which may touch the rest.
template <class S>
void joint_forces(const Forest& f, const Forest& whole, const StepCall& call, int step,
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
    if (t.passive) passive_forces(f, call, t, s);
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

}  // namespace poise::inline POISE_ISA
