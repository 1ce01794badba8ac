// What a PD drive asks of the joints: the force Q at q'' = 0 and the added inertia K, so that
// the joint's force is Q - K q''. Targets are those at t + dt.
//     pd        Q = -kp (q - (q̄ - dt v̄)) - kd (v - v̄)     K = 0
//     explicit  Q as pd                                    K = kd dt              (LYWG13)
//     spd       Q = -kp (q + dt v - q̄) - kd (v - v̄)       K = kd dt              (yin2020, eq. 6)
//     implicit  Q as spd                                   K = kd dt + kp dt^2
// A ball's position error is log(q̄^-1 q exp(dt v)), in the child frame; its target velocity is
// turned from the target's child frame into the child frame. A free joint is a point and a ball.
#pragma once

#include "poise/kernel.hpp"
#include "poise/kinematics.hpp"

namespace poise::inline POISE_ISA {

template <class S>
struct Gain {
    S kp, kd;
};

// a row of numbers that all lanes share; a plain pointer is a row per lane
template <class S>
struct SharedRow {
    const double* p;
    POISE_INLINE S operator[](int i) const { return S(static_cast<Element<S>>(p[i])); }
};
template <class S, Form form>
POISE_INLINE void drive_axis(S e, S ev, S vbar, S v, const Gain<S>& g, S dt, S& Q, S& K) {
    using T = Element<S>;
    if constexpr (form == Form::spd || form == Form::implicit) e = e + dt * v;
    else e = e + dt * vbar;
    Q = -(g.kp * e + g.kd * ev);
    if constexpr (form == Form::pd) K = S(T(0));
    else if constexpr (form == Form::implicit) K = dt * (g.kd + dt * g.kp);
    else K = dt * g.kd;
}

template <class S, Form form>
POISE_INLINE void drive_ball(const Quat<S>& q, const Vec3<S>& v, const Quat<S>& rotation_step,
                             const Quat<S>& qbar, const Vec3<S>& vbar, bool moving,
                             const Gain<S>* g, S dt, S* Q, S* K) {
    using T = Element<S>;
    const Quat<S> d = difference(qbar, q);
    Quat<S> ahead = d;
    if constexpr (form == Form::spd || form == Form::implicit) ahead = d * rotation_step;
    else if (moving) ahead = exponential(dt * vbar) * d;
    const Vec3<S> e = logarithm(ahead);
    Vec3<S> ev = v;
    if (moving) ev = v - rotate_back(d, vbar);
    Q[0] = -(g[0].kp * e.x + g[0].kd * ev.x);
    Q[1] = -(g[1].kp * e.y + g[1].kd * ev.y);
    Q[2] = -(g[2].kp * e.z + g[2].kd * ev.z);
    for (int k = 0; k < 3; ++k) {
        if constexpr (form == Form::pd) K[k] = S(T(0));
        else if constexpr (form == Form::implicit) K[k] = dt * (g[k].kd + dt * g[k].kp);
        else K[k] = dt * g[k].kd;
    }
}

// Bodies first .. last - 1.
struct BodyRange {
    int first, last;
};

// Q and K of the joints of some bodies. rotation_step (nb) holds exp(dt v) of ball and free joints;
// target_v may be null rows (velocity 0).
template <class S, Form form, class Row>
POISE_NOINLINE void drive_forces(const Forest& f, BodyRange some, const Gain<S>* gain,
                                 Element<S> step, const S* q, const S* v,
                                 const Quat<S>* rotation_step, Row qbar, Row vbar, bool moving,
                                 S* Q, S* K) {
    const S dt(step), zero(Element<S>(0));
    for (int i = some.first; i < some.last; ++i) {
        const Body& b = f.body[i];
        const Gain<S>* g = gain + b.v;
        if (b.kind == Kind::hinge || b.kind == Kind::slide) {
            const S target = moving ? vbar[b.v] : zero;
            drive_axis<S, form>(q[b.q] - qbar[b.q], v[b.v] - target, target, v[b.v], *g, dt, Q[b.v],
                                K[b.v]);
            continue;
        }
        int nq = b.q, nv = b.v;
        if (b.kind == Kind::free) {
            for (int k = 0; k < 3; ++k) {
                const S target = moving ? vbar[nv + k] : zero;
                drive_axis<S, form>(q[nq + k] - qbar[nq + k], v[nv + k] - target, target, v[nv + k],
                                    g[k], dt, Q[nv + k], K[nv + k]);
            }
            nq += 3;
            nv += 3;
            g += 3;
        }
        const Quat<S> target = {qbar[nq], qbar[nq + 1], qbar[nq + 2], qbar[nq + 3]};
        Vec3<S> rate = zero3<S>();
        if (moving) rate = {vbar[nv], vbar[nv + 1], vbar[nv + 2]};
        drive_ball<S, form>(quat_at(q + nq), vec_at(v + nv), rotation_step[i], target, rate, moving,
                            g, dt, Q + nv, K + nv);
    }
}

template <class S, class Row>
void drive_forces(Form form, const Forest& f, BodyRange some, const Gain<S>* gain, Element<S> dt,
                  const S* q, const S* v, const Quat<S>* rotation_step, Row qbar, Row vbar,
                  bool moving, S* Q, S* K) {
    switch (form) {
        case Form::pd:
            return drive_forces<S, Form::pd>(f, some, gain, dt, q, v, rotation_step, qbar, vbar,
                                             moving, Q, K);
        case Form::explicit_position:
            return drive_forces<S, Form::explicit_position>(f, some, gain, dt, q, v, rotation_step,
                                                            qbar, vbar, moving, Q, K);
        case Form::spd:
            return drive_forces<S, Form::spd>(f, some, gain, dt, q, v, rotation_step, qbar, vbar,
                                              moving, Q, K);
        default:
            return drive_forces<S, Form::implicit>(f, some, gain, dt, q, v, rotation_step, qbar,
                                                   vbar, moving, Q, K);
    }
}

// The same of all bodies; forms (nv) has a form for each, or is null.
template <class S, class Row>
void drive_forces(Form form, const std::uint8_t* forms, const Forest& f, const Gain<S>* gain,
                  Element<S> dt, const S* q, const S* v, const Quat<S>* rotation_step, Row qbar,
                  Row vbar, bool moving, S* Q, S* K) {
    for (int first = 0; first < f.nb;) {
        int last = forms ? first + 1 : f.nb;
        while (last < f.nb && forms[f.body[last].v] == forms[f.body[first].v]) ++last;
        const Form own = forms ? static_cast<Form>(forms[f.body[first].v]) : form;
        drive_forces(own, f, BodyRange{first, last}, gain, dt, q, v, rotation_step, qbar, vbar,
                     moving, Q, K);
        first = last;
    }
}

// Accelerations of the target, added to a. Those of ball and free joints are turned from the
// target's child frame into the present one.
template <class S>
void add_target_acceleration(const Forest& f, const S* q, const S* target_q, const S* target_a,
                             S* a) {
    for (int i = 0; i < f.nb; ++i) {
        const Body& b = f.body[i];
        const bool turns = b.kind == Kind::ball || b.kind == Kind::free;
        const int straight = dof_count(b.kind) - (turns ? 3 : 0);
        for (int k = b.v; k < b.v + straight; ++k) a[k] = a[k] + target_a[k];
        if (!turns) continue;
        const int at = b.v + straight, quat = b.q + straight;
        const Quat<S> d = difference(quat_at(target_q + quat), quat_at(q + quat));
        store(a + at, vec_at(a + at) + rotate_back(d, vec_at(target_a + at)));
    }
}

// exp(dt v) of ball and free joints, which both the drive and the integrator need
template <class S>
POISE_NOINLINE void rotation_steps(const Forest& f, const S* v, Element<S> dt,
                                   Quat<S>* rotation_step) {
    for (int i = 0; i < f.nb; ++i) {
        const Body& b = f.body[i];
        if (b.kind == Kind::ball) rotation_step[i] = exponential(S(dt) * vec_at(v + b.v));
        if (b.kind == Kind::free) rotation_step[i] = exponential(S(dt) * vec_at(v + b.v + 3));
    }
}

#if defined(__GNUC__) && defined(__AVX2__)
// Columns i .. i + 3 of eight rows of doubles, as floats: column i + k goes to `to + k stride`.
POISE_INLINE void turn_block(const double* const* row, int i, float* to, int stride) {
    __m256 p[4];  // rows k and k + 4
    for (int k = 0; k < 4; ++k) {
        const __m128 low = _mm256_cvtpd_ps(_mm256_loadu_pd(row[k] + i));
        const __m128 high = _mm256_cvtpd_ps(_mm256_loadu_pd(row[k + 4] + i));
        p[k] = _mm256_insertf128_ps(_mm256_castps128_ps256(low), high, 1);
    }
    const __m256 a = _mm256_unpacklo_ps(p[0], p[1]), b = _mm256_unpackhi_ps(p[0], p[1]);
    const __m256 c = _mm256_unpacklo_ps(p[2], p[3]), d = _mm256_unpackhi_ps(p[2], p[3]);
    _mm256_storeu_ps(to, _mm256_shuffle_ps(a, c, 0x44));
    _mm256_storeu_ps(to + stride, _mm256_shuffle_ps(a, c, 0xee));
    _mm256_storeu_ps(to + 2 * stride, _mm256_shuffle_ps(b, d, 0x44));
    _mm256_storeu_ps(to + 3 * stride, _mm256_shuffle_ps(b, d, 0xee));
}
#endif

// The lanes' own numbers in an array of rows. The last tile may be short: lanes beyond its count
// repeat its last copy.
template <class S>
struct LaneRows {
    Rows rows;
    std::int64_t first, count;

    POISE_INLINE S at(int step, int i) const {
        using T = Element<S>;
        const double* p = rows.p + step * rows.step + first * rows.copy + i;
        if (rows.copy == 0) return S(static_cast<T>(*p));
        S r;
        for (int lane = 0; lane < Traits<S>::lanes; ++lane)
            put(r, lane, static_cast<T>(p[(lane < count ? lane : count - 1) * rows.copy]));
        return r;
    }
    void load(int step, int size, S* out) const {
        if (rows.copy == 0) {
            for (int i = 0; i < size; ++i) out[i] = at(step, i);
            return;
        }
        constexpr int lanes = Traits<S>::lanes;
        const double* row[lanes];
        for (int lane = 0; lane < lanes; ++lane)
            row[lane] =
                rows.p + step * rows.step + (first + (lane < count ? lane : count - 1)) * rows.copy;
#if defined(__GNUC__)
        // those of the next tile are on their way while this one is stepped
        for (int lane = 0; lane < lanes; ++lane)
            for (int i = 0; i < size; i += 8) __builtin_prefetch(row[lane] + lanes * rows.copy + i);
#endif
        int done = 0;
#if defined(__GNUC__) && defined(__AVX2__)
        if constexpr (sizeof(Element<S>) == 4 && lanes >= 8)
            for (; done + 4 <= size; done += 4)
                for (int half = 0; half < lanes; half += 8)
                    turn_block(row + half, done, reinterpret_cast<float*>(out + done) + half,
                               lanes);
#endif
        // row by row, as they lie in memory; a register put together lane by lane has to wait for
        // each of them
        for (int lane = 0; lane < lanes; ++lane)
            for (int i = done; i < size; ++i)
                put(out[i], lane, static_cast<Element<S>>(row[lane][i]));
    }
};

// Strength scales what the drive does at a link's joints.
template <class S>
POISE_NOINLINE void scale_drive(const Forest& f, const LaneRows<S>& strength, S* Q, S* K) {
    for (int i = 0; i < f.nb; ++i) {
        const Body& b = f.body[i];
        const S s = strength.at(0, f.body_link[i]);
        for (int k = b.v; k < b.v + dof_count(b.kind); ++k) {
            Q[k] = s * Q[k];
            K[k] = s * K[k];
        }
    }
}

// Where everything is and how it moves: what pins compare.
template <class S>
struct Placed {
    Work<S>* work;
    Vec3<S>* origin;
    Vec3<S>* velocity;
};

template <class S>
void clear_pins(const Forest& f, Inertia<S>* pinned) {
    const S zero(Element<S>(0));
    for (int i = 0; i < f.nb; ++i) {
        pinned[i].B = {zero, zero, zero, zero, zero, zero, zero, zero, zero};
        pinned[i].C = pinned[i].A = diagonal(zero);
    }
}

// Pins pull links to their target pose in the world, fully implicitly: with
// K = dt (kd + dt kp), the wrench at q'' = 0 is added to external and K to the inertia.
template <class S>
POISE_NOINLINE void pin_forces(const Forest& f, const double* table, const LaneRows<S>& weight,
                               Element<S> step, const Vec3<S>& gravity, const Placed<S>& now,
                               const Placed<S>& target, Wrench<S>* external, Inertia<S>* pinned) {
    const S dt(step);
    for (int l = 0; l < f.nl; ++l) {
        const int i = f.link_body[l];
        if (i < 0) continue;
        const S w = weight.at(0, l);
        const auto entry = [&](int k) { return w * S(static_cast<Element<S>>(table[4 * l + k])); };
        const S kp = entry(0), kd = entry(1), kp_turn = entry(2), kd_turn = entry(3);
        const S K = dt * (kd + dt * kp), K_turn = dt * (kd_turn + dt * kp_turn);
        const auto& m = now.work[i].motion;
        const auto& t = target.work[i].motion;
        const Vec3<S> e = now.origin[i] + dt * now.velocity[i] - target.origin[i];
        const Vec3<S> ev = now.velocity[i] - target.velocity[i];
        const Quat<S> ahead = exponential(dt * m.w) * m.Q;
        const Vec3<S> turn = logarithm(ahead * conjugate(t.Q));
        const Vec3<S> force = kp * e + kd * ev + K * (m.a + gravity);
        const Vec3<S> torque = kp_turn * turn + kd_turn * (m.w - t.w) + K_turn * m.al;
        external[i] = {external[i].n - torque, external[i].f - force};
        pinned[i].C = pinned[i].C + diagonal(K_turn);
        pinned[i].A = pinned[i].A + diagonal(K);
    }
}

}  // namespace poise::inline POISE_ISA
