// Contact by springs and dampers, for short steps: forces at the present state.
#pragma once

#include "poise/contact/contact.hpp"

namespace poise::inline POISE_ISA {

// Normal force k depth - d v_n, never pulling; friction against sliding, within its cone. The
// forces of a step are kept as impulses, and added to external (nb), about the joints.
template <class S>
void penalty_forces(const Touchables& x, double dt, ContactScratch<S>& c, Wrench<S>* external) {
    using T = Element<S>;
    const S zero(T(0)), h{T(dt)};
    for (int k = 0; k < c.contacts; ++k) {
        Contact<S>& a = c.contact[k];
        a.on = a.on & (a.gap < zero);
        Vec3<S> v = point_velocity(c.before[a.body], a.r);
        if (a.other >= 0) v = v - point_velocity(c.before[a.other], a.r_other);
        const S vn = dot(a.n, v), vt = dot(a.t, v), vu = dot(a.u, v);
        const S normal = larger(S(T(-x.stiffness)) * a.gap - S(T(x.damping)) * vn, zero);
        const S n = select(a.on, normal, zero);
        const S slide = square_root(larger(vt * vt + vu * vu, S(T(1e-30))));
        const S most = a.mu * n / slide, viscous(T(x.viscosity));
        const S k_t = select(most < viscous, most, viscous);
        a.ln = h * n;
        a.lt = select(a.on, -(h * k_t * vt), zero);
        a.lu = select(a.on, -(h * k_t * vu), zero);
        const S per(T(1 / dt));
        const Vec3<S> f = per * (a.ln * a.n + a.lt * a.t + a.lu * a.u);
        external[a.body] = external[a.body] + impulse_at(a.r, f);
        if (a.other >= 0)
            external[a.other] = external[a.other] + impulse_at(a.r_other, zero3<S>() - f);
    }
}

}  // namespace poise::inline POISE_ISA
