// Clips: one cubic spline over all components of q, sampled with its exact derivatives.
//
// On frame i, with x the time since it, every component is c0 + c1 x + c2 x^2 + c3 x^3. A
// quaternion s = (w, x, y, z) is normalised when sampled, u = s / |s|; with the derivatives of u,
//     omega = 2 vec(u* u'),    omega' = 2 vec(u* u''),
// both in the child frame (u'* u' is real, so the second has no further term).
#pragma once

#include "poise/model.hpp"

namespace poise {

// Frames at start, start + 1/rate, ...; coefficients (segments, 4, nq), c0 first.
struct Spline {
    const double* c;
    std::int64_t segments;
    double start, rate;
};

inline namespace POISE_ISA {

struct Sampled {
    double s, d, dd;
};

inline Sampled sample_component(const double* c, int nq, double x) {
    const double c0 = c[0], c1 = c[nq], c2 = c[2 * nq], c3 = c[3 * nq];
    return {c0 + x * (c1 + x * (c2 + x * c3)), c1 + x * (2 * c2 + x * 3 * c3), 2 * c2 + 6 * c3 * x};
}

// u, and the body's angular velocity and acceleration, from a quaternion and its derivatives
inline void sample_rotation(const double* c, int nq, double x, double* q, double* v, double* a) {
    double s[4], d[4], dd[4];
    for (int k = 0; k < 4; ++k) {
        const Sampled y = sample_component(c + k, nq, x);
        s[k] = y.s;
        d[k] = y.d;
        dd[k] = y.dd;
    }
    const auto inner = [](const double* p, const double* r) {
        return p[0] * r[0] + p[1] * r[1] + p[2] * r[2] + p[3] * r[3];
    };
    // u' = (s' - u (u.s')) / n,  u'' = (s'' - 2 n' u' - n'' u) / n with n = |s|
    const double n = std::sqrt(inner(s, s));
    double u[4], u1[4], u2[4];
    for (int k = 0; k < 4; ++k) u[k] = s[k] / n;
    const double n1 = inner(u, d);
    for (int k = 0; k < 4; ++k) u1[k] = (d[k] - n1 * u[k]) / n;
    const double n2 = inner(u1, d) + inner(u, dd);
    for (int k = 0; k < 4; ++k) u2[k] = (dd[k] - 2 * n1 * u1[k] - n2 * u[k]) / n;
    const Quat<double> U = {u[0], u[1], u[2], u[3]};
    const Quat<double> W = difference(U, Quat<double>{u1[0], u1[1], u1[2], u1[3]});
    const Quat<double> A = difference(U, Quat<double>{u2[0], u2[1], u2[2], u2[3]});
    for (int k = 0; k < 4; ++k) q[k] = u[k];
    v[0] = 2 * W.x;
    v[1] = 2 * W.y;
    v[2] = 2 * W.z;
    a[0] = 2 * A.x;
    a[1] = 2 * A.y;
    a[2] = 2 * A.z;
}

// q (nq), v (nv) and a (nv) at time t. Before the first and after the last frame the pose is held.
inline void sample(const Forest& f, const Spline& spline, double t, double* q, double* v,
                   double* a) {
    const double frame = (t - spline.start) * spline.rate;
    const double last = static_cast<double>(spline.segments);
    const bool outside = !(frame >= 0 && frame <= last);
    const double at = frame < 0 ? 0 : frame > last ? last : frame;
    std::int64_t i = static_cast<std::int64_t>(at);
    if (i >= spline.segments) i = spline.segments - 1;
    const double x = (at - static_cast<double>(i)) / spline.rate;
    const double* c = spline.c + i * 4 * f.nq;
    for (int b = 0; b < f.nb; ++b) {
        const Body& body = f.body[b];
        int nq = body.q, nv = body.v;
        const int plain = body.kind == Kind::free ? 3 : body.kind == Kind::ball ? 0 : 1;
        for (int k = 0; k < plain; ++k, ++nq, ++nv) {
            const Sampled y = sample_component(c + nq, f.nq, x);
            q[nq] = y.s;
            v[nv] = y.d;
            a[nv] = y.dd;
        }
        if (plain != 1) sample_rotation(c + nq, f.nq, x, q + nq, v + nv, a + nv);
    }
    if (outside)
        for (int k = 0; k < f.nv; ++k) v[k] = a[k] = 0;
}

}  // namespace POISE_ISA
}  // namespace poise
