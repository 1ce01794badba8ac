// Effort limits: the implicit drive with bounded forces.
//
// A joint applies tau = P(Q - K q''), P the projection onto what it can give: |tau| <= L for a
// hinge or slide, the length of a ball's torque, or each axis of a ball on its own. Together with
// the equation of motion, M q'' + h = tau, this is the stationarity of a strictly convex function
// of q'': it has one solution, and the step stays as stable as without limits.
//
// It is found by Newton's method, each iteration one solve in linear time. With x = Q - K q'',
// u = x/|x| and s = L/|x|, the law is replaced by its tangent, tau = Q_e - K_e q'':
//     within the bound    K_e = K                                 Q_e = Q
//     saturated axis      K_e = 0                                 Q_e = s x
//     saturated ball      K_e = s K - y y',  y = K u (s/u'Ku)^1/2   Q_e = s x + K_e q''
// A ball at its limit keeps resisting what would turn its torque, and yields along it. (With gains
// that differ from axis to axis the derivative is not symmetric; K_e is the symmetric matrix that
// yields along u, and the iterations still end at the law.)
//
// Where joints change between these cases a full step may overshoot. The slope of the convex
// function along a step d is d'(M q'' + h - P(Q - K q'')), and M q'' + h is known without M: it is
// the force of the tangent at both ends, and linear between them. So the length of the step is
// where the slope vanishes, by secants and bisection.
//
// Contact changes q'' after the solve. Its impulses are found with the tangent's K_e in the
// inertia; where the law then asks for another force, the tangent is taken there and both are
// solved again. Friction has no convex function, and Newton's method may cycle. After
// kLimitContactIterations the tangent is replaced by the chord from the target,
//     Q_e = s Q,   K_e = s K,   s = min(1, L/|x|),
// a weaker drive, which converges slowly and does not overshoot.
//
// What is applied, and reported, is the force of the last tangent. With contact it may be somewhat
// off the law, but it must not exceed the limit. A hinge beyond its limit is saturated there. A
// ball's tangent plane lies outside its sphere: it is taken a little inside the sphere (kInset), by
// what the last iteration may still turn the force. Where the iterations do not end, joints beyond
// their limits get the limit as a given force (K_e = 0).
#pragma once

#include "poise/scratch.hpp"

namespace poise::inline POISE_ISA {

// Newton iterations of a step without contact; beyond them chords are taken. A humanoid takes a
// few; a chain of 24 balls far from its target, at 1e7 N m/rad, up to 220.
constexpr int kLimitIterations = 400;
// The same with contact, each with a contact solve.
constexpr int kLimitContactIterations = 12;
constexpr int kChordIterations = 12;
// How far the applied force may be from the law [part of the limit].
template <class S>
constexpr double kLimitTolerance = sizeof(Element<S>) == 8 ? 1e-13 : 1e-4;
constexpr double kLimitContactTolerance = 2e-3;
// By how much the applied force may exceed the limit [part of the limit].
template <class S>
constexpr double kLimitExcess = sizeof(Element<S>) == 8 ? 1e-7 : 1e-5;
// How far inside a ball's limit its tangent is taken [part of the limit]; tuned.
constexpr double kInset = 1e-4;
// How often joints beyond their limits are given a force, before all joints are.
constexpr int kHoldIterations = 4;

template <class S>
class BoundedDrive {
  public:
    using T = Element<S>;

    // The drive in s.Q, s.K.
    BoundedDrive(const Forest& forest, const Axis<S>* axes, const LaneRows<S>& factor,
                 Scratch<S>& scratch)
        : f(forest), axis(axes), strength(factor), s(scratch) {
        for (int k = 0; k < f.nv; ++k) {
            s.Q_free[k] = s.Q[k];
            s.K_free[k] = s.K[k];
            s.limited[k] = constant_mask<S>(false);
        }
        for (int i = 0; i < f.nb; ++i) s.relief[i] = zero3<S>();
    }

    // Copies in which the forces of the tangent at s.qdd may not be applied.
    struct Errors {
        MaskOf<S> law;    // off the law by more than the tolerance
        MaskOf<S> limit;  // beyond the limit
        MaskOf<S> any_of() const { return law | limit; }
    };
    static Errors everywhere() { return {constant_mask<S>(true), constant_mask<S>(true)}; }

    // From here on contact acts, with forces s.contact_force at s.qdd (all velocities of the
    // world). Contact keeps q'' in a convex set: the slope along a step has the power of its forces
    // more. Accelerations are known to `precision`: what it changes of the forces is no error.
    void start_contact(int velocities, double precision) {
        contact_ = velocities;
        precision_ = S(T(precision));
        tolerance_ = T(kLimitContactTolerance);
        holding_ = false;
        started_ = constant_mask<S>(false);
    }

    // Newton's method until the forces agree with the law; solve() finds s.qdd under the tangent.
    template <class Solve>
    void solve_free(Solve solve) {
        solve();
        auto open = errors(everywhere());
        for (int k = 0; any(open.any_of()) && correct(k, open); ++k) {
            solve();
            open = errors(open);
        }
    }

    // Of the copies that had errors before.
    Errors errors(const Errors& before) {
        const auto all = before.any_of();
        Errors found = {constant_mask<S>(false), constant_mask<S>(false)};
        const S tol(tolerance_), rounding(T(8) * kRounding);
        each_limit([&](int i, int first, int count, const S& effort) {
            S x[3], scale, size, off2(T(0)), noise(T(0));
            bound(s.qdd.data(), first, count, effort, x, scale, size);
            // within its limit, and its tangent is the drive itself
            if (!any((effort < size) | s.limited[first])) return;
            force_of_tangent(i, first, count);
            for (int k = 0; k < count; ++k) {
                const S off = s.tau[first + k] - scale * x[k];
                off2 = off2 + off * off;
                size = size + absolute(s.Q_free[first + k]);
                noise = larger(noise, s.K_free[first + k]);
            }
            const S near = tol * effort + precision_ * noise + rounding * size;
            found.law = found.law | (near * near < off2);
            found.limit = found.limit | exceeds(first, count, effort);
        });
        found.limit = found.limit & all;
        if (holding_) found.law = constant_mask<S>(false);
        else found.law = found.law & all;
        return found;
    }

    // The next tangent, in the copies with errors, at iteration k; false if there is none.
    bool correct(int k, Errors& open) {
        const int newton = contact_ ? kLimitContactIterations : kLimitIterations;
        const int chords = newton + kChordIterations, holds = chords + kHoldIterations;
        forces_of_tangent();
        if (k < chords) {
            if (k >= newton) take_tangent(open.law, s.qdd.data(), Tangent::chord);
            else if (any(open.law)) advance(open.law, S(T(contact_ && 2 * k >= newton ? 0.5 : 1)));
            const auto beyond = open.limit & negate(open.law);
            if (any(beyond)) take_tangent(beyond, s.qdd.data(), Tangent::inside);
            return true;
        }
        // the law has not been found: within the limits is enough
        if (k > holds || !any(open.limit)) return false;
        holding_ = true;
        hold(open.limit, k == holds);
        return true;
    }

    // A Newton step in some copies: s.qdd is what the last tangent led to. The next tangent is
    // taken where the slope along the way from the last one vanishes.
    // most: length of a step where the slope says nothing.
    void advance(const MaskOf<S>& some, const S& most) {
        const S zero(T(0)), one(T(1));
        // from the second step on in each copy there is a point to come from
        S length = select(started_, most, one), begin = zero, end = zero;
        auto far = some & started_;
        if (any(far)) {
            begin = slope(zero);
            end = slope(one);
            far = far & (zero < end) & (begin < zero);
        }
        if (any(far))
            length = select(
                far, larger(where_level(begin, end, far), S(T(contact_ ? kShortest : 0))), length);
        for (int k = 0; k < f.nv; ++k) {
            const S a = s.a_law[k] + length * (s.qdd[k] - s.a_law[k]);
            const S r = s.r_law[k] + length * (s.tau[k] - s.r_law[k]);
            const auto whole = some & negate(length < one);
            s.a_law[k] = select(whole, s.qdd[k], select(some, a, s.a_law[k]));
            s.r_law[k] = select(whole, s.tau[k], select(some, r, s.r_law[k]));
        }
        for (int k = 0; k < contact_; ++k) {
            const S to = s.contact_force[k], from = s.contact_law[k];
            s.contact_law[k] =
                select(some, select(length < one, from + length * (to - from), to), from);
            if (k < f.nv) continue;
            const S a = s.a_law[k] + length * (s.qdd[k] - s.a_law[k]);
            s.a_law[k] = select(some, select(length < one, a, s.qdd[k]), s.a_law[k]);
        }
        started_ = started_ | some;
        take_tangent(some, s.a_law.data(), Tangent::at_law);
    }

    // Joints beyond their limits, or all, in some copies: a given force, at most the limit.
    POISE_NOINLINE void hold(const MaskOf<S>& some, bool all) {
        const S zero(T(0));
        each_limit([&](int i, int first, int count, const S& effort) {
            S size2(T(0));
            for (int k = first; k < first + count; ++k) size2 = size2 + s.tau[k] * s.tau[k];
            const S size = square_root(size2);
            const auto over = effort * effort < size2;
            const auto held = all ? some : some & over;
            const S scale = select(over, effort / larger(size, tiny()), S(T(1)));
            for (int k = 0; k < count; ++k)
                set(held, i, first + k, scale * s.tau[first + k], zero, zero, count == 3 ? k : -1);
            for (int k = first; k < first + count; ++k) s.limited[k] = s.limited[k] | (some & over);
        });
    }

    enum class Tangent {
        at_law,  // where the law is at a
        chord,   // from the target
        inside   // of joints beyond their limits, a little inside; the others keep theirs
    };
    void take_tangent(const MaskOf<S>& copies, const S* a, Tangent kind) {
        const S zero(T(0));
        each_limit([&](int i, int first, int count, const S& effort) {
            S x[3], scale, size;
            bound(a, first, count, effort, x, scale, size);
            auto some = copies, over = effort < size;
            if (!any(some & (over | s.limited[first]))) return;
            if (kind == Tangent::inside) over = some = some & exceeds(first, count, effort);
            if (kind == Tangent::chord) {
                for (int k = 0; k < count; ++k)
                    set(some, i, first + k, scale * s.Q_free[first + k],
                        scale * s.K_free[first + k], zero, count == 3 ? k : -1);
            } else if (count == 1) {
                const S Q = select(over, scale * x[0], s.Q_free[first]);
                set(some, i, first, Q, select(over, zero, s.K_free[first]), zero, -1);
            } else {
                const T inset = contact_                  ? T(kInset)
                                : kind == Tangent::inside ? T(0.2 * kLimitTolerance<S>)
                                                          : T(0);
                take_ball_tangent(some, over, i, a, x, scale, size, S(inset));
            }
            for (int k = first; k < first + count; ++k)
                s.limited[k] = (some & over) | (s.limited[k] & negate(some));
        });
    }

    // The forces applied, in s.tau: those of the tangent, within the limits.
    void find_forces() {
        forces_of_tangent();
        each_limit([&](int, int first, int count, const S& effort) {
            S size2(T(0));
            for (int k = first; k < first + count; ++k) size2 = size2 + s.tau[k] * s.tau[k];
            const auto over = effort * effort < size2;
            if (!any(over)) return;
            const S scale = select(over, effort / larger(square_root(size2), tiny()), S(T(1)));
            for (int k = first; k < first + count; ++k) s.tau[k] = scale * s.tau[k];
        });
    }

  private:
    // slopes looked at along a step, and the part of the first one that counts as none
    static constexpr int kSlopes = 20;
    static constexpr double kLevel = 1e-3;
    // with friction the slope may mislead: steps are at least so long
    static constexpr double kShortest = 0.1;
    static constexpr T kRounding = sizeof(T) == 8 ? T(2.2e-16) : T(1.2e-7);
    static S tiny() { return S(T(1e-30)); }
    static S absolute(S a) { return larger(a, -a); }

    // visit(body, first velocity, how many, effort)
    template <class Visit>
    POISE_INLINE void each_limit(Visit visit) const {
        const S none(T(1e30));
        for (int i = 0; i < f.nb; ++i) {
            const Body& b = f.body[i];
            if (b.kind == Kind::free) continue;
            const bool ball = b.kind == Kind::ball && !f.effort_per_axis[i];
            const int count = ball ? 3 : 1;
            const S factor = strength.rows.p ? strength.at(0, f.body_link[i]) : S(T(1));
            for (int first = b.v; first < b.v + dof_count(b.kind); first += count) {
                const S effort = factor * axis[first].effort;
                if (any(effort < none)) visit(i, first, count, effort);
            }
        }
    }

    // x = Q - K a, the factor that P scales it by, and its length: at least the limit.
    POISE_INLINE void bound(const S* a, int first, int count, const S& effort, S* x, S& scale,
                            S& size) const {
        S size2(T(0));
        for (int k = 0; k < count; ++k) {
            x[k] = s.Q_free[first + k] - s.K_free[first + k] * a[first + k];
            size2 = size2 + x[k] * x[k];
        }
        scale = S(T(1));
        size = effort;
        const auto over = effort * effort < size2;
        if (!any(over)) return;
        size = select(over, square_root(size2), effort);
        scale = select(over, effort / larger(size, tiny()), scale);
    }

    // The tangent of ball i in some copies, x = Q - K a; over: those at the limit.
    void take_ball_tangent(const MaskOf<S>& some, const MaskOf<S>& over, int i, const S* a,
                           const S* x, const S& scale, const S& size, const S& inset) {
        const S zero(T(0)), per = S(T(1)) / larger(size, tiny());
        const int first = f.body[i].v;
        S Ku[3], along = zero, across = zero;
        for (int k = 0; k < 3; ++k) {
            Ku[k] = s.K_free[first + k] * (per * x[k]);
            along = along + Ku[k] * (per * x[k]);
        }
        // a little short of the full y, so that rounding does not make K_e indefinite
        const S most(T(1) - T(4) * kRounding);
        const S part = select(over, most * square_root(scale / larger(along, tiny())), zero);
        for (int k = 0; k < 3; ++k) across = across + Ku[k] * a[first + k];
        across = across * part;
        const S inward = select(over, inset * scale, zero);
        for (int k = 0; k < 3; ++k) {
            const S y = part * Ku[k];
            set(some, i, first + k, scale * s.Q_free[first + k] - y * across - inward * x[k],
                scale * s.K_free[first + k], y, k);
        }
    }

    // Whether the force of a joint is beyond its limit.
    POISE_INLINE MaskOf<S> exceeds(int first, int count, const S& effort) const {
        S size2(T(0)), scale(T(0));
        for (int k = first; k < first + count; ++k) {
            size2 = size2 + s.tau[k] * s.tau[k];
            scale = scale + absolute(s.Q[k]);
        }
        const S limit = S(T(1) + T(kLimitExcess<S>)) * effort + S(T(8) * kRounding) * scale;
        return limit * limit < size2;
    }

    // s.tau = Q_e - K_e q''
    void forces_of_tangent() {
        for (int i = 0; i < f.nb; ++i) force_of_tangent(i, f.body[i].v, dof_count(f.body[i].kind));
    }
    POISE_INLINE void force_of_tangent(int i, int first, int count) {
        for (int k = first; k < first + count; ++k) s.tau[k] = s.Q[k] - s.K[k] * s.qdd[k];
        if (f.body[i].kind != Kind::ball || count == 1) return;
        const Vec3<S>& y = s.relief[i];
        store(s.tau.data() + first,
              vec_at(s.tau.data() + first) + dot(y, vec_at(s.qdd.data() + first)) * y);
    }

    // d'(r - P(Q - K a)) at a share of the way d from the last point to s.qdd. Joints without a
    // limit are on the law.
    S slope(const S& share) const {
        S sum(T(0));
        each_limit([&](int, int first, int count, const S& effort) {
            S x[3], r[3], d[3], size2(T(0));
            for (int k = 0; k < count; ++k) {
                const int at = first + k;
                d[k] = s.qdd[at] - s.a_law[at];
                x[k] = s.Q_free[at] - s.K_free[at] * (s.a_law[at] + share * d[k]);
                r[k] = s.r_law[at] + share * (s.tau[at] - s.r_law[at]);
                size2 = size2 + x[k] * x[k];
            }
            S scale(T(1));
            const auto over = effort * effort < size2;
            if (any(over)) scale = select(over, effort / larger(square_root(size2), tiny()), scale);
            for (int k = 0; k < count; ++k) sum = sum + d[k] * (r[k] - scale * x[k]);
        });
        for (int k = 0; k < contact_; ++k)
            sum = sum + (s.qdd[k] - s.a_law[k]) *
                            (s.contact_law[k] + share * (s.contact_force[k] - s.contact_law[k]));
        return sum;
    }

    // Where the slope along the step vanishes, begin < 0 < end at its ends: by secants, with the
    // weight of an end that stays halved (the Illinois method), and each third time by bisection.
    S where_level(S begin, S end, MaskOf<S> some) const {
        const S zero(T(0)), half(T(0.5)), near = S(T(kLevel)) * begin;
        S low = zero, high(T(1)), level = half;
        auto stayed = constant_mask<S>(false), first = constant_mask<S>(true);
        for (int k = 0; k < kSlopes && any(some); ++k) {
            const S secant = low - begin * (high - low) / larger(end - begin, tiny());
            level = select(some, k % 3 < 2 ? secant : half * (low + high), level);
            const S now = slope(level);
            const auto past = zero < now;
            begin = select(past, select(stayed & negate(first), half * begin, begin), now);
            end = select(past, now, select(negate(stayed | first), half * end, end));
            high = select(past, level, high);
            low = select(past, low, level);
            stayed = past;
            first = constant_mask<S>(false);
            some = some & (-near < absolute(now));
        }
        return level;
    }

    void set(const MaskOf<S>& some, int body, int k, const S& Q, const S& K, const S& y, int part) {
        s.Q[k] = select(some, Q, s.Q[k]);
        s.K[k] = select(some, K, s.K[k]);
        if (part < 0) return;
        S& old = part == 0 ? s.relief[body].x : part == 1 ? s.relief[body].y : s.relief[body].z;
        old = select(some, y, old);
    }

    const Forest& f;
    const Axis<S>* axis;
    LaneRows<S> strength;
    Scratch<S>& s;
    int contact_ = 0;  // velocities on which contact acts
    T tolerance_ = T(kLimitTolerance<S>);
    S precision_{T(0)};  // of accelerations [1/s^2]
    bool holding_ = false;
    const S one_{T(1)};
    MaskOf<S> started_ = constant_mask<S>(false);
};

}  // namespace poise::inline POISE_ISA
