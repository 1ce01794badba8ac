// Scratch buffers of the algorithms: one set per thread, allocated once.
#pragma once

#include <cstddef>
#include <new>

#include "poise/aba.hpp"
#include "poise/crba.hpp"
#include "poise/drive.hpp"
#include "poise/factor.hpp"

namespace poise::inline POISE_ISA {

// Aligned memory for plain numbers, not initialised.
template <class T>
class Buffer {
  public:
    Buffer() = default;
    explicit Buffer(std::size_t count) { resize(count); }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    ~Buffer() { release(); }
    void resize(std::size_t count) {
        release();
        data_ = static_cast<T*>(::operator new(count * sizeof(T) + 64, std::align_val_t(64)));
        size_ = count;
    }
    void swap(Buffer& other) {
        T* const data = data_;
        const std::size_t size = size_;
        data_ = other.data_, size_ = other.size_;
        other.data_ = data, other.size_ = size;
    }
    T* data() { return data_; }
    const T* data() const { return data_; }
    std::size_t size() const { return size_; }
    T& operator[](std::size_t i) { return data_[i]; }
    const T& operator[](std::size_t i) const { return data_[i]; }

  private:
    void release() {
        if (data_) ::operator delete(data_, std::align_val_t(64));
        data_ = nullptr;
    }
    T* data_ = nullptr;
    std::size_t size_ = 0;
};

template <class S>
struct Scratch {
    Buffer<Work<S>> work, target_work;
    Buffer<Carry<S>> carry;
    Buffer<S> Q, K;            // of the drive (nv)
    Buffer<S> Q_own, K_own;    // of the joints themselves: springs, dampers, rotor inertia
    Buffer<S> Q_sum, K_sum;    // both
    Buffer<Gain<S>> own_gain;  // stiffness and damping of the joints themselves
    Buffer<S> Q_free, K_free;  // of the drive before effort limits
    Buffer<S> qdd, v_next, load;
    Buffer<S> q_old, v_old;           // to go back to where a lane is lost
    Buffer<S> tq, tv, ta;             // one row of the target
    Buffer<S> M, cg;                  // the baselines' matrix and vectors
    Buffer<MaskOf<S>> limited, over;  // (nv)
    Buffer<Wrench<S>> external, total;
    Buffer<Inertia<S>> pinned;
    Buffer<Rigid<S>> composite;
    Buffer<Vec3<S>> origin, velocity, target_origin, target_velocity;
    Buffer<Quat<S>> rotation_step;

    explicit Scratch(const Forest& f)
        : work(f.nb), target_work(f.nb), carry(f.slots), Q(f.nv), K(f.nv), Q_own(f.nv), K_own(f.nv),
          Q_sum(f.nv), K_sum(f.nv), own_gain(f.nv), Q_free(f.nv), K_free(f.nv), qdd(f.nv),
          v_next(f.nv), load(f.nv), q_old(f.nq), v_old(f.nv), tq(f.nq), tv(f.nv), ta(f.nv),
          limited(f.nv), over(f.nv), external(f.nb), total(f.nb), pinned(f.nb), composite(f.nb),
          origin(f.nb), velocity(f.nb), target_origin(f.nb), target_velocity(f.nb),
          rotation_step(f.nb) {}
    // the matrix is made when a method first asks for it
    void need_matrix(const Forest& f) {
        if (M.size()) return;
        M.resize(static_cast<std::size_t>(f.nv) * f.nv);
        cg.resize(4 * static_cast<std::size_t>(f.nv));
    }
};

// Input of the solvers: model, state, forces.
template <class S>
struct Problem {
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
    JointResponse<S>* give;  // (nb) where to store the response of the joints, or null
};

// (M + K) q'' = Q - h in linear time; work holds the motion at q'' = 0 and is used up.
template <class S>
void solve_maba(const Problem<S>& p, Scratch<S>& s, S* qdd, MaskOf<S>& bad, int* bad_body) {
    const JointForces<S> forces = {p.Q, p.K, p.isotropic, p.external, p.pinned};
    if (p.give)
        backward_pass<S, true>(p.f, p.constants, forces, s.work.data(), s.carry.data(), bad,
                               bad_body, p.give);
    else backward_pass(p.f, p.constants, forces, s.work.data(), s.carry.data(), bad, bad_body);
    forward_pass(p.f, p.isotropic, s.work.data(), qdd);
}

// The same by a matrix: dense, sparse or iterative.
template <class S>
void solve_matrix(Method method, const Problem<S>& p, Scratch<S>& s, S* qdd, MaskOf<S>& bad,
                  int* bad_body) {
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
void solve(Method method, const Problem<S>& p, Scratch<S>& s, S* qdd, MaskOf<S>& bad,
           int* bad_body) {
    if (method == Method::maba) return solve_maba(p, s, qdd, bad, bad_body);
    solve_matrix(method, p, s, qdd, bad, bad_body);
    if (!p.give) return;
    // contact needs the articulated inertias whichever method found the accelerations
    const JointForces<S> forces = {p.Q, p.K, p.isotropic, p.external, p.pinned};
    backward_pass<S, true>(p.f, p.constants, forces, s.work.data(), s.carry.data(), bad, bad_body,
                           p.give);
}

}  // namespace poise::inline POISE_ISA
