// What pushes and drags the links from outside, for a while.
#pragma once

#include "poise/drive.hpp"
#include "poise/kernel.hpp"
#include "poise/scratch.hpp"

namespace poise::inline POISE_ISA {

inline const Push* pushes_of(const StepCall& call, std::int64_t copy) {
    return reinterpret_cast<const Push*>(call.memory + copy * kMemory);
}

// Whether anything is dragged in these copies.
inline bool dragging(const StepCall& call, std::int64_t first, std::int64_t count) {
    for (std::int64_t copy = first; copy < first + count; ++copy)
        for (int k = 0; k < kPushes; ++k) {
            const Push& p = pushes_of(call, copy)[k];
            if (p.link != 0 && p.drags() && p.end > call.time[copy]) return true;
        }
    return false;
}

template <class S>
Vec3<double> in_lane(const Vec3<S>& v, int lane) {
    return {double(get(v.x, lane)), double(get(v.y, lane)), double(get(v.z, lane))};
}
template <class S>
Mat3<double> in_lane(const Mat3<S>& m, int lane) {
    return {double(get(m.xx, lane)), double(get(m.xy, lane)), double(get(m.xz, lane)),
            double(get(m.yx, lane)), double(get(m.yy, lane)), double(get(m.yz, lane)),
            double(get(m.zx, lane)), double(get(m.zy, lane)), double(get(m.zz, lane))};
}
template <class S>
void add_to_lane(S& sum, int lane, double x) {
    put(sum, lane, static_cast<Element<S>>(double(get(sum, lane)) + x));
}
template <class S>
void add_to_lane(Vec3<S>& sum, int lane, const Vec3<double>& x) {
    add_to_lane(sum.x, lane, x.x);
    add_to_lane(sum.y, lane, x.y);
    add_to_lane(sum.z, lane, x.z);
}
// the inertia of a mass at the point r
template <class S>
void add_to_lane(Inertia<S>& sum, int lane, double m, const Vec3<double>& r) {
    add_to_lane(sum.C.xx, lane, m * (r.y * r.y + r.z * r.z));
    add_to_lane(sum.C.yy, lane, m * (r.x * r.x + r.z * r.z));
    add_to_lane(sum.C.zz, lane, m * (r.x * r.x + r.y * r.y));
    add_to_lane(sum.C.xy, lane, -m * r.x * r.y);
    add_to_lane(sum.C.xz, lane, -m * r.x * r.z);
    add_to_lane(sum.C.yz, lane, -m * r.y * r.z);
    add_to_lane(sum.B.xy, lane, -m * r.z);
    add_to_lane(sum.B.xz, lane, m * r.y);
    add_to_lane(sum.B.yx, lane, m * r.z);
    add_to_lane(sum.B.yz, lane, -m * r.x);
    add_to_lane(sum.B.zx, lane, -m * r.y);
    add_to_lane(sum.B.zy, lane, m * r.x);
    add_to_lane(sum.A.xx, lane, m);
    add_to_lane(sum.A.yy, lane, m);
    add_to_lane(sum.A.zz, lane, m);
}

// Running pushes, as wrenches about the joints added to external. A push that covers part of the
// step acts in part. Springs are fully implicit: with K = dt (c + dt k) their force at q'' = 0 goes
// to external and K, a mass at the point, to the inertia. held: copies in which one pulls.
template <class S>
void push_forces(const Forest& f, const StepCall& call, std::int64_t first, std::int64_t count,
                 const Vec3<S>& gravity, const Placed<S>& now, Wrench<S>* external,
                 Inertia<S>* pinned, MaskOf<S>& held) {
    for (int lane = 0; lane < Traits<S>::lanes && lane < count; ++lane) {
        const std::int64_t copy = first + lane;
        const double start = call.time[copy], end = start + call.dt;
        for (int k = 0; k < kPushes; ++k) {
            const Push& p = pushes_of(call, copy)[k];
            if (p.link == 0 || p.end <= start || p.start >= end) continue;
            const int link = static_cast<int>(p.link) - 1, i = f.link_body[link];
            if (i < 0) continue;
            const double share =
                ((p.end < end ? p.end : end) - (p.start > start ? p.start : start)) / call.dt;
            // the point in the body's frame, then in world axes from the joint
            const double* lp = f.link_p + 3 * link;
            const double* le = f.link_E + 4 * link;
            const Quat<double> E = {le[0], le[1], le[2], le[3]};
            const Vec3<double> at = Vec3<double>{lp[0], lp[1], lp[2]} +
                                    rotate(E, Vec3<double>{p.point[0], p.point[1], p.point[2]});
            const Vec3<double> r = in_lane(now.work[i].R, lane) * at;
            Vec3<double> force = {p.force[0], p.force[1], p.force[2]};
            Vec3<double> torque = {p.torque[0], p.torque[1], p.torque[2]};
            if (p.drags()) {
                const auto& m = now.work[i].motion;
                const Vec3<double> w = in_lane(m.w, lane), along = torque;
                const Vec3<double> v = in_lane(now.velocity[i], lane) + cross(w, r);
                const Vec3<double> a = in_lane(m.a + gravity, lane) +
                                       cross(in_lane(m.al, lane), r) + cross(w, cross(w, r));
                const Vec3<double> to = force + (end - p.start) * along;
                const Vec3<double> x = in_lane(now.origin[i], lane) + r + call.dt * v;
                const double K = share * call.dt * (p.damping + call.dt * p.stiffness);
                force = p.stiffness * (to - x) + p.damping * (along - v) - (K / share) * a;
                torque = {0, 0, 0};
                add_to_lane(pinned[i], lane, K, r);
                put(held, lane, true);
            }
            force = share * force;
            add_to_lane(external[i].f, lane, force);
            add_to_lane(external[i].n, lane, share * torque + cross(r, force));
        }
    }
}

}  // namespace poise::inline POISE_ISA
