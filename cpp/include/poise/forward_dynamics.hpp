// Forward dynamics, (M + K) q'' = Q - h: by the modified articulated-body algorithm in linear time,
// or by one of its baselines.
#pragma once

#include "poise/factor.hpp"
#include "poise/scratch.hpp"

namespace poise::inline POISE_ISA {

// Model, state and forces.
template <class S>
struct ForwardProblem {
    const Forest& f;
    const Constants<S>* constants;
    const S* q;
    const S* v;
    Vec3<S> gravity;
    const S* Q;  // (nv), and K, with everything that acts in the joints
    const S* K;
    const bool* isotropic;
    const Wrench<S>* external;
    const Inertia<S>* pinned;
    JointResponse<S>* give;           // (nb) where to store the response of the joints, or null
    const Vec3<S>* relief = nullptr;  // (nb) as of JointForces
};

// (M + K) q'' = Q - h in linear time; work holds the motion at q'' = 0 and is used up.
template <class S>
void forward_by_maba(const ForwardProblem<S>& p, Scratch<S>& s, S* qdd, MaskOf<S>& bad,
                     int* bad_body) {
    const JointForces<S> forces = {p.Q, p.K, p.isotropic, p.external, p.pinned, p.relief};
    if (p.give)
        backward_pass<S, true>(p.f, p.constants, forces, s.work.data(), s.carry.data(), bad,
                               bad_body, p.give);
    else backward_pass(p.f, p.constants, forces, s.work.data(), s.carry.data(), bad, bad_body);
    forward_pass(p.f, p.isotropic, s.work.data(), qdd);
}

// The same by a matrix: dense, sparse or iterative.
template <class S>
void forward_by_matrix(Method method, const ForwardProblem<S>& p, Scratch<S>& s, S* qdd,
                       MaskOf<S>& bad, int* bad_body) {
    const int n = p.f.nv;
    s.need_matrix(p.f);
    S* M = s.M.data();
    inverse_dynamics(p.f, p.constants, s.work.data(), p.external, s.total.data(), qdd);
    composites(p.f, p.constants, s.work.data(), s.composite.data());
    mass_matrix(p.f, s.composite.data(), s.work.data(), M);
    for (int k = 0; k < n; ++k) {
        M[k * n + k] = M[k * n + k] + p.K[k];
        qdd[k] = p.Q[k] - qdd[k];
    }
    for (int i = 0; i < p.f.nb && p.relief; ++i) {
        if (p.f.body[i].kind != Kind::ball) continue;
        const S y[3] = {p.relief[i].x, p.relief[i].y, p.relief[i].z};
        S* at = M + p.f.body[i].v * (n + 1);
        for (int k = 0; k < 9; ++k)
            at[k / 3 * n + k % 3] = at[k / 3 * n + k % 3] - y[k / 3] * y[k % 3];
    }
    S singular(Element<S>(-1));
    if (method == Method::df) {
        dense_factor(n, M, singular);
        dense_solve(n, M, qdd);
    } else if (method == Method::sf) {
        sparse_factor(n, p.f.dof_parent, M, s.cg.data(), singular);
        sparse_solve(n, p.f.dof_parent, M, qdd);
    } else {
        using T = Element<S>;
        auto open = constant_mask<S>(false);
        conjugate_gradient(n, M, qdd, s.cg.data(), sizeof(T) == 8 ? T(1e-12) : T(1e-6), 10 * n,
                           open);
        singular = select(open, S(T(0)), singular);
    }
    const auto failed = S(Element<S>(-1)) < singular;
    if (!any(failed)) return;
    for (int lane = 0; lane < Traits<S>::lanes; ++lane)
        if (get(failed, lane) && !get(bad, lane))
            bad_body[lane] = p.f.dof_body[static_cast<int>(get(singular, lane))];
    bad = bad | failed;
}

template <class S>
void forward_dynamics(Method method, const ForwardProblem<S>& p, Scratch<S>& s, S* qdd,
                      MaskOf<S>& bad, int* bad_body) {
    if (method == Method::maba) return forward_by_maba(p, s, qdd, bad, bad_body);
    forward_by_matrix(method, p, s, qdd, bad, bad_body);
    if (!p.give) return;
    // contact needs the articulated inertias whichever method found the accelerations
    const JointForces<S> forces = {p.Q, p.K, p.isotropic, p.external, p.pinned, p.relief};
    backward_pass<S, true>(p.f, p.constants, forces, s.work.data(), s.carry.data(), bad, bad_body,
                           p.give);
}

}  // namespace poise::inline POISE_ISA
