// One contact solved exactly: non-penetration and Coulomb friction in its own 3x3 response.
//
// With the other impulses held, the relative velocity of a contact is v = h + A l, A its own
// response. The tangents are turned so that A without its normal part is diagonal,
//     A = [1/inv_n, a'; a, diag(s) + a a' inv_n],    alpha = a inv_n,
// and the three cases of Coulomb's law are
//     stick  x = -p/s,  p = h_t - alpha h_n;   l_n = p_n - alpha.x > 0, |x| <= mu l_n
//     open   p_n = -inv_n h_n <= 0:            l = 0
//     slide  x(k) = -p/(s + k) with k > 0 such that |x(k)| = mu l_n(k): friction against the slip.
#pragma once

#include "poise/contact/half_solve.hpp"

namespace poise::inline POISE_ISA {

// Newton steps on k in one visit. The next visit starts from there.
constexpr int kSlideSteps = 1;

// The friction of a sliding contact for a k, with b = s x where it would stick.
template <class S>
struct Slip {
    S xt, xu, dt, du, ln;
    S f, inv;  // the bound of friction by its size, and 1 by the size
};
// One piece of code, whichever step of a visit it is: copies leave at different ones.
template <class S>
POISE_NOINLINE void slip(const Slot<S>& c, const S& pn, const S& bt, const S& bu, const S& k,
                         Slip<S>& o) {
    using T = Element<S>;
    const S one(T(1)), tiny(T(1e-30));
    o.dt = one / larger(c.st + k, tiny);
    o.du = one / larger(c.su + k, tiny);
    o.xt = bt * o.dt;
    o.xu = bu * o.du;
    o.inv = one / square_root(larger(o.xt * o.xt + o.xu * o.xu, tiny));
    o.ln = pn - c.at * o.xt - c.au * o.xu;
    o.f = c.mu * o.ln * o.inv;
}

// A sliding contact: x holds where it would stick, and becomes the friction; returns l_n.
template <class S>
POISE_NOINLINE S slide(Slot<S>& c, S pn, const MaskOf<S>& slides, S x[2]) {
    using T = Element<S>;
    const S zero(T(0)), one(T(1)), tiny(T(1e-30));
    const S near(sizeof(T) == 8 ? T(1e-7) : T(1e-4));
    const S bt = c.st * x[0], bu = c.su * x[1];
    S low = zero, high(T(1e30)), k = larger(c.root, zero);
    Slip<S> o;
    // first time: as if both directions were alike and nothing coupled
    const S far2 = x[0] * x[0] + x[1] * x[1];
    const S guess =
        larger(c.st, c.su) * larger(square_root(far2) / larger(c.mu * pn, tiny) - one, S(T(1e-3)));
    k = select(zero < k, k, select(guess < S(T(1e20)), guess, S(T(1e20))));
    auto moving = slides;
    for (int step = 0; step <= kSlideSteps; ++step) {
        slip(c, pn, bt, bu, k, o);
        const S miss = o.f - one;
        // a copy that is there stays there, however long its neighbours take
        moving = moving & (near < larger(miss, -miss));
        if (step == kSlideSteps || !any(moving)) break;
        const auto below = miss < zero;
        low = select(below, k, low);
        high = select(below, high, k);
        const S shrink = (o.xt * o.xt * o.dt + o.xu * o.xu * o.du) * o.inv;  // -d|x|/dk
        const S dln = c.at * o.xt * o.dt + c.au * o.xu * o.du;
        const S slope = c.mu * o.inv * (dln + o.ln * shrink * o.inv);
        S next = k - miss / select(zero < slope, slope, S(T(1e-30)));
        const S middle =
            select(high < S(T(1e29)), S(T(0.5)) * (low + high), k + k + larger(c.st, c.su));
        next = select((low < next) & (next < high), next, middle);
        k = select(moving, next, k);
    }
    c.root = select(slides, k, c.root);
    // onto the rim, and what the normal is then
    const S scale = select(o.f < S(T(2)), larger(o.f, zero), S(T(2)));
    const S xt = scale * o.xt, xu = scale * o.xu;
    const S ln = larger(pn - c.at * xt - c.au * xu, zero);
    const S most = c.mu * ln, now = square_root(larger(xt * xt + xu * xu, tiny));
    const S back = select(most < now, most / now, one);
    x[0] = back * xt;
    x[1] = back * xu;
    return ln;
}

// One visit: v is the velocity that is missing, dl what the impulses c.l change by.
template <class S>
POISE_INLINE void solve_cone(Slot<S>& c, const S* v, const MaskOf<S>& on, S* dl) {
    using T = Element<S>;
    const S zero(T(0));
    const S vn = v[0] + c.soft * c.l[0];
    const S vt = v[1] + c.slick * c.l[1], vu = v[2] + c.slick * c.l[2];
    S x[2] = {c.l[1] - c.inv_t * (vt - c.at * vn), c.l[2] - c.inv_u * (vu - c.au * vn)};
    const S pn = c.l[0] + c.at * c.l[1] + c.au * c.l[2] - c.inv_n * vn;
    S ln = pn - c.at * x[0] - c.au * x[1];
    const S most = c.mu * ln;
    const auto sticks = (zero < ln) & (x[0] * x[0] + x[1] * x[1] <= most * most);
    const auto pressed = zero < pn;
    const auto slides = on & pressed & negate(sticks);
    if (any(slides)) {
        S rim[2] = {x[0], x[1]};
        const S slid = slide(c, pn, slides, rim);
        x[0] = select(slides, rim[0], x[0]);
        x[1] = select(slides, rim[1], x[1]);
        ln = select(slides, slid, ln);
    }
    const auto shut = sticks | slides;
    const S next[3] = {select(shut, ln, zero), select(shut, x[0], zero), select(shut, x[1], zero)};
    for (int k = 0; k < 3; ++k) {
        dl[k] = select(on, next[k] - c.l[k], zero);
        c.l[k] = c.l[k] + dl[k];
    }
}

}  // namespace poise::inline POISE_ISA
