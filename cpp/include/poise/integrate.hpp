// Semi-implicit Euler: v += dt q'', then x += dt v and q <- q exp(dt v) with the new v.
#pragma once

#include "poise/scratch.hpp"

namespace poise::inline POISE_ISA {

template <class S>
POISE_NOINLINE void integrate(const Forest& f, Element<S> step, S* q, S* v, const S* v_next,
                              Quat<S>* rotation_step) {
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
        rotation_step[i] = exponential(dt * w);
        store(q + nq, renormalise(quat_at(q + nq) * rotation_step[i]));
    }
}

// exp(dt v) for a state that no step led to: by the integrator itself, into scratch
// buffers, so that a state written back goes on bit for bit
template <class S>
void update_rotation_steps(const Forest& f, Element<S> dt, const S* v, Quat<S>* rotation_step,
                           Scratch<S>& s) {
    integrate(f, dt, s.q_old.data(), s.v_old.data(), v, rotation_step);
}

}  // namespace poise::inline POISE_ISA
