// Recursive inverse dynamics from Kane's equations (kavafoglu2018, chapter 3), in world axes.
//
// Outward, what each body should do: alpha_B, its angular acceleration,
//     alpha_B = kp log(R̄ R') + kd (w̄ - w) + alpha̅                             (3.47, 3.48)
// with R̄, w̄, alpha̅ those of the reference; a joint that cannot turn that way takes the part along
// its axis. Slides, and the place of a free root, do the same with lengths.
// Inward, with r = center of mass - joint and p = child's joint - center of mass, a* of the center
// of mass:
//     F = F_ext + m (g - a*) + sum F_child
//     t = sum (t_child - p_child x F_child) - r x F + I alpha + w x I w - T_ext
// t turns the body, -t its parent; a free root is pushed by -F. The thesis drops w x I w
// (3.19, 3.33 to 3.46): as_printed does so, too. It takes a* from the parent's joint (3.28): we
// from the body's own. rnea.hpp is the same in other words, and the tests compare them.
#pragma once

#include "poise/drive.hpp"
#include "poise/rnea.hpp"

namespace poise::inline POISE_ISA {

// v that takes q0 to q1 in one step.
template <class S>
POISE_NOINLINE void rate_between(const Forest& f, const S* q0, const S* q1, const S& per_second,
                                 S* v) {
    for (int i = 0; i < f.nb; ++i) {
        const Body& b = f.body[i];
        int at = b.q, to = b.v;
        if (b.kind == Kind::hinge || b.kind == Kind::slide) {
            v[to] = per_second * (q1[at] - q0[at]);
            continue;
        }
        if (b.kind == Kind::free) {
            store(v + to, per_second * (vec_at(q1 + at) - vec_at(q0 + at)));
            at += 3;
            to += 3;
        }
        store(v + to, per_second * logarithm(difference(quat_at(q0 + at), quat_at(q1 + at))));
    }
}

// The reference now, from the one at t + dt that a target holds, to second order: it moves with the
// velocity that would have brought a stepped character there.
template <class S>
POISE_NOINLINE void step_back(const Forest& f, Element<S> dt, S* q, S* v, const S* a) {
    using T = Element<S>;
    const S h(dt), half(T(0.5) * dt), late(T(1.5) * dt);
    for (int i = 0; i < f.nb; ++i) {
        const Body& b = f.body[i];
        int at = b.q, from = b.v;
        const int lengths = b.kind == Kind::free ? 3 : b.kind == Kind::ball ? 0 : 1;
        for (int k = 0; k < lengths; ++k, ++at, ++from)
            q[at] = q[at] - h * (v[from] - half * a[from]);
        if (lengths == 1) continue;
        const Vec3<S> back = zero3<S>() - h * (vec_at(v + from) - half * vec_at(a + from));
        store(q + at, quat_at(q + at) * exponential(back));
    }
    for (int k = 0; k < f.nv; ++k) v[k] = v[k] - late * a[k];
}

// What to follow, now: pose, velocity, acceleration; and how stiffly, per degree of freedom.
template <class S>
struct TrackingTarget {
    const S* q;
    const S* v;
    const S* a;
    const Work<S>* work;  // of the reference, from move
    const Gain<S>* gain;
};

// Joint accelerations qdd that give the bodies what is wished for; work holds the motion at
// qdd = 0, turn (nb) is filled with the angular accelerations.
template <class S>
POISE_NOINLINE void desired_accelerations(const Forest& f, const TrackingTarget<S>& target,
                                          const S* q, const S* v, const Work<S>* work,
                                          Vec3<S>* turn, S* qdd) {
    const auto along = [&](int at, int k) {
        const Gain<S>& g = target.gain[k];
        return g.kp * (target.q[at] - q[at]) + g.kd * (target.v[k] - v[k]) + target.a[k];
    };
    for (int i = 0; i < f.nb; ++i) {
        const Body& b = f.body[i];
        const auto& now = work[i].motion;
        const auto& goal = target.work[i].motion;
        const bool inner = b.parent >= 0;
        const Vec3<S> w = inner ? work[b.parent].motion.w : zero3<S>();
        const Vec3<S> given = (inner ? turn[b.parent] : zero3<S>()) + cross(w, now.w - w);
        if (b.kind == Kind::slide) {
            qdd[b.v] = along(b.q, b.v);
            turn[i] = given;
            continue;
        }
        if (b.kind == Kind::free)
            for (int k = 0; k < 3; ++k) qdd[b.v + k] = along(b.q + k, b.v + k);
        const Gain<S>& g = target.gain[b.kind == Kind::free ? b.v + 3 : b.v];
        const Vec3<S> behind = work[i].R * logarithm(difference(goal.Q, now.Q));
        const Vec3<S> asked = goal.al + g.kd * (goal.w - now.w) - g.kp * behind;
        if (b.kind == Kind::hinge) {
            const Vec3<S> s = axis_of(work[i].R);
            qdd[b.v] = dot(s, asked - given);
            turn[i] = given + qdd[b.v] * s;
        } else if (b.kind == Kind::ball) {
            store(qdd + b.v, tmul(work[i].R, asked - given));
            turn[i] = asked;
        } else {
            store(qdd + b.v + 3, tmul(work[i].R, asked));
            turn[i] = asked;
        }
    }
}

// tau that gives the motion in work (from move); external as of inverse_dynamics; total (nb) is
// filled with t and -F of each body.
template <class S>
POISE_NOINLINE void kane_inverse_dynamics(const Forest& f, const Constants<S>* c,
                                          const Work<S>* work, const Wrench<S>* external,
                                          bool as_printed, Wrench<S>* total, S* tau) {
    const S one(Element<S>(1));
    for (int i = 0; i < f.nb; ++i) total[i] = {zero3<S>(), zero3<S>()};
    for (int i = f.nb - 1; i >= 0; --i) {
        const Body& b = f.body[i];
        const auto& m = work[i].motion;
        // sums over the children: -F, and t + arm x -F with arms from this body's joint
        Vec3<S> push = total[i].f, turn = total[i].n;
        if (!b.massless) {
            const Rigid<S> rigid = rigid_in_world(c[i], work[i].R);
            const Vec3<S> r = (one / rigid.m) * rigid.mc;
            // about the center of mass; W holds alpha and w x (w x .), which is where w x I w comes
            // from
            const Rigid<S> central = {rigid.m, zero3<S>(), rigid.P - outer(rigid.mc, r)};
            const Mat3<S> W = as_printed ? motion_matrix(zero3<S>(), m.al) : m.W;
            const Vec3<S> inertia = rigid_wrench(central, W, zero3<S>()).n;
            const Vec3<S> lag = rigid.m * (m.a + m.W * r);  // m (a* - g)
            push = push + lag;
            turn = turn + cross(r, lag) + inertia;
        }
        if (external) {
            push = push - external[i].f;
            turn = turn - external[i].n;
        }
        total[i] = {turn, push};
        project(b, work[i].R, total[i], tau);
        if (b.parent >= 0) total[b.parent] = total[b.parent] + shift(total[i], work[i].r);
    }
}

}  // namespace poise::inline POISE_ISA
