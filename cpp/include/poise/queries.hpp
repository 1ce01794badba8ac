// The functions of poise.dynamics, for one tile of states.
#pragma once

#include "poise/effort_limits.hpp"
#include "poise/forward_dynamics.hpp"
#include "poise/kane.hpp"

namespace poise::inline POISE_ISA {

// Results go back to rows of doubles, one per copy.
template <class S>
void store_rows(const S* from, int size, std::int64_t first, std::int64_t count, double* to) {
    for (int lane = 0; lane < Traits<S>::lanes && lane < count; ++lane)
        for (int i = 0; i < size; ++i)
            to[(first + lane) * size + i] = static_cast<double>(get(from[i], lane));
}

// Evaluates queries about one model. It is kept from call to call: to allocate its buffers and to
// read the inertias takes longer than most queries.
template <class S>
class QueryEvaluator {
  public:
    explicit QueryEvaluator(const Forest& forest)
        : f(forest), s(forest), constants(f.nb), axis(f.nv), q(f.nq), v(f.nv), x(f.nv), K(f.nv),
          out(room()), past(2 * f.nq), isotropic(f.nb), gain(f.nv) {}

    std::int64_t id() const { return f.id; }

    // states begin .. end - 1
    void run(const ModelParameters& parameters, const Query& query, std::int64_t begin,
             std::int64_t end) {
        o = query;
        // gains per copy go the general way, so that neighbours do not matter
        for (int i = 0; i < f.nb; ++i)
            isotropic[i] = one_gain({parameters.armature, 0, parameters.armature_stride}, i) &&
                           one_gain(o.kp, i) && one_gain(o.kd, i) &&
                           !(o.limits && limited(parameters, i));
        if (!parameters.id || parameters.id != loaded) load(parameters, begin, end);
        loaded = parameters.id;
        constexpr std::int64_t lanes = Traits<S>::lanes;
        for (first = begin; first < end; first += lanes) {
            count = end - first < lanes ? end - first : lanes;
            // parameters that all copies share are the same in every tile
            if (own(parameters) && first > begin) load(parameters, first, end);
            tile(parameters);
        }
    }

  private:
    using T = Element<S>;

    static bool own(const ModelParameters& n) {
        return n.mass_stride || n.mc_stride || n.Io_stride || n.armature_stride || n.effort_stride;
    }
    void load(const ModelParameters& parameters, std::int64_t from, std::int64_t end) {
        const std::int64_t lanes = Traits<S>::lanes;
        load_constants(f, parameters, from, end - from < lanes ? end : from + lanes,
                       constants.data(), axis.data());
    }

    void tile(const ModelParameters& parameters) {
        const Rows fixed_rows = {parameters.fixed, 0, parameters.fixed_stride};
        rows(fixed_rows).load(0, 4, fixed);
        rows(o.q).load(0, f.nq, q.data());
        normalise(f, q.data());
        if (o.v.p) rows(o.v).load(0, f.nv, v.data());
        else
            for (int k = 0; k < f.nv; ++k) v[k] = zero;
        switch (o.quantity) {
            case Quantity::forward_kinematics: return forward_kinematics();
            case Quantity::link_velocities: return link_velocities();
            case Quantity::inverse_dynamics: return inverse();
            case Quantity::forward_dynamics: return forward();
            case Quantity::mass_matrix: return matrix_of_mass();
            case Quantity::jacobian: return jacobian();
            case Quantity::jacobian_bias: return jacobian_bias();
            case Quantity::center_of_mass: return center();
            case Quantity::centroidal_momentum: return momentum();
            case Quantity::energy: return energy();
            case Quantity::stable_pd: return stable_pd();
            case Quantity::drive: return drive();
            case Quantity::kane: return kane();
            case Quantity::tasks: return tasks();
        }
    }

    LaneRows<S> rows(const Rows& r) const { return {r, first, count}; }

    // a ball at its limit resists some turns and not others
    bool limited(const ModelParameters& n, int i) const {
        return f.body[i].kind == Kind::ball && (n.effort_stride || n.effort[f.body[i].v] < 1e300);
    }
    bool one_gain(const Rows& r, int i) const {
        const Body& b = f.body[i];
        if (b.kind != Kind::ball || !r.p) return true;
        const double* p = r.p + b.v;
        return !r.copy && p[0] == p[1] && p[0] == p[2];
    }
    std::size_t room() const {
        const std::size_t nv = f.nv, nl = f.nl;
        return nv * nv + 6 * nv + 7 * nl + 16;
    }
    void give(double* to, int size) { store_rows(out.data(), size, first, count, to); }

    void pose(const S* qdd, bool with_gravity) {
        Vec3<S> g = zero3<S>();
        if (with_gravity) g = constant3<S>(o.gravity);
        move(f, constants.data(), q.data(), v.data(), qdd, g, s.work.data());
        place(f, s.work.data(), s.origin.data());
    }

    // wrenches on the links, moved to their bodies' joints
    const Wrench<S>* external() {
        if (!o.external.p) return nullptr;
        for (int i = 0; i < f.nb; ++i) s.external[i] = {zero3<S>(), zero3<S>()};
        for (int l = 0; l < f.nl; ++l) {
            const int i = f.link_body[l];
            if (i < 0) continue;
            S w[6];
            for (int k = 0; k < 6; ++k) w[k] = rows(o.external).at(0, 6 * l + k);
            const double* p = f.link_p + 3 * l;
            const Vec3<S> arm = s.work[i].R * constant3<S>(p);
            const Wrench<S> at = {{w[3], w[4], w[5]}, {w[0], w[1], w[2]}};
            s.external[i] = s.external[i] + shift(at, arm);
        }
        return s.external.data();
    }

    void forward_kinematics() {
        pose(nullptr, false);
        S* quats = out.data() + 3 * f.nl;
        for (int l = 0; l < f.nl; ++l) {
            Vec3<S> p;
            Quat<S> Q;
            link_pose(f, l, s.work.data(), s.origin.data(), p, Q);
            store(out.data() + 3 * l, p);
            store(quats + 4 * l, Q);
        }
        store_rows(quats, 4 * f.nl, first, count, o.out1);
        give(o.out0, 3 * f.nl);
    }

    // velocity of each link's origin, and its angular velocity, in world axes
    void link_velocities() {
        pose(nullptr, false);
        velocities(f, v.data(), s.work.data(), s.velocity.data());
        for (int l = 0; l < f.nl; ++l) {
            const int b = f.link_body[l];
            Vec3<S> linear = zero3<S>(), angular = zero3<S>();
            if (b >= 0) {
                const double* p = f.link_p + 3 * l;
                const Vec3<S> arm = s.work[b].R * constant3<S>(p);
                angular = s.work[b].motion.w;
                linear = s.velocity[b] + cross(angular, arm);
            }
            store(out.data() + 6 * l, linear);
            store(out.data() + 6 * l + 3, angular);
        }
        give(o.out0, 6 * f.nl);
    }

    void inverse() {
        const S* a = nullptr;
        if (o.a.p) {
            rows(o.a).load(0, f.nv, x.data());
            a = x.data();
        }
        pose(a, true);
        inverse_dynamics(f, constants.data(), s.work.data(), external(), s.total.data(),
                         out.data());
        if (a) add_armature(f, axis.data(), a, out.data());
        give(o.out0, f.nv);
    }

    // the body of a singular joint, or a cell that holds it, per copy
    void report(const MaskOf<S>& bad, const int* body) {
        for (int lane = 0; lane < Traits<S>::lanes && lane < count; ++lane)
            o.fault[first + lane] = get(bad, lane) ? body[lane] : -1;
    }

    void solve_with(Method method, const S* Q, const S* Kj, const Vec3<S>* relief = nullptr) {
        auto bad = constant_mask<S>(false);
        int body[Traits<S>::lanes] = {};
        pose(nullptr, true);
        const ForwardProblem<S> p = {
            f,  constants.data(), q.data(),   v.data(), zero3<S>(), Q,
            Kj, isotropic.data(), external(), nullptr,  nullptr,    relief};
        forward_dynamics(method, p, s, s.qdd.data(), bad, body);
        report(bad, body);
    }

    void forward() {
        rows(o.tau).load(0, f.nv, x.data());
        for (int k = 0; k < f.nv; ++k) K[k] = axis[k].armature;
        solve_with(Method::maba, x.data(), K.data());
        store_rows(s.qdd.data(), f.nv, first, count, o.out0);
    }

    void matrix_of_mass() {
        pose(nullptr, false);
        composites(f, constants.data(), s.work.data(), s.composite.data());
        mass_matrix(f, s.composite.data(), s.work.data(), out.data());
        for (int k = 0; k < f.nv; ++k) out[k * f.nv + k] = out[k * f.nv + k] + axis[k].armature;
        give(o.out0, f.nv * f.nv);
    }

    Vec3<S> world_point(Vec3<S>& from_joint) {
        Vec3<S> p;
        Quat<S> Q;
        link_pose(f, o.link, s.work.data(), s.origin.data(), p, Q);
        p = p + rotate(Q, Vec3<S>{S(T(o.point[0])), S(T(o.point[1])), S(T(o.point[2]))});
        const int b = f.link_body[o.link];
        if (b >= 0) from_joint = p - s.origin[b];
        return p;
    }

    void jacobian() {
        pose(nullptr, false);
        Vec3<S> arm;
        const Vec3<S> p = world_point(arm);
        point_jacobian(f, f.link_body[o.link], p, s.work.data(), s.origin.data(), out.data());
        give(o.out0, 6 * f.nv);
    }

    void jacobian_bias() {
        pose(nullptr, false);
        const int b = f.link_body[o.link];
        Vec3<S> a = zero3<S>(), al = zero3<S>(), arm;
        world_point(arm);
        if (b >= 0) {
            a = s.work[b].motion.a + s.work[b].motion.W * arm;
            al = s.work[b].motion.al;
        }
        store(out.data(), a);
        store(out.data() + 3, al);
        give(o.out0, 6);
    }

    Vec3<S> center_now() {
        S mass;
        composites(f, constants.data(), s.work.data(), s.composite.data());
        return center_of_mass(f, s.composite.data(), s.origin.data(), fixed, mass);
    }

    void center() {
        pose(nullptr, false);
        store(out.data(), center_now());
        give(o.out0, 3);
    }

    void momentum() {
        pose(nullptr, false);
        const Vec3<S> c = center_now();
        momentum_matrix(f, s.composite.data(), s.work.data(), s.origin.data(), c, out.data());
        give(o.out0, 6 * f.nv);
        // its rate at rest in the joints: what all the roots need, about the center of mass
        inverse_dynamics<S>(f, constants.data(), s.work.data(), nullptr, s.total.data(), x.data());
        Wrench<S> rate = {zero3<S>(), zero3<S>()};
        for (int i = 0; i < f.nb; ++i)
            if (f.body[i].parent < 0) rate = rate + shift(s.total[i], s.origin[i] - c);
        store(out.data(), rate.f);
        store(out.data() + 3, rate.n);
        store_rows(out.data(), 6, first, count, o.out1);
    }

    void energy() {
        pose(nullptr, false);
        velocities(f, v.data(), s.work.data(), s.velocity.data());
        S kinetic = kinetic_energy(f, constants.data(), s.work.data(), s.velocity.data());
        for (int k = 0; k < f.nv; ++k)
            kinetic = kinetic + S(T(0.5)) * axis[k].armature * (v[k] * v[k]);
        composites(f, constants.data(), s.work.data(), s.composite.data());
        S mass;
        const Vec3<S> c = center_of_mass(f, s.composite.data(), s.origin.data(), fixed, mass);
        const Vec3<S> g = constant3<S>(o.gravity);
        out[0] = kinetic;
        out[1] = -(mass * dot(g, c));
        give(o.out0, 2);
    }

    // Q and K of the drive
    void load_drive() {
        rows(o.target_q).load(0, f.nq, s.tq.data());
        normalise(f, s.tq.data());
        if (o.target_v.p) rows(o.target_v).load(0, f.nv, s.tv.data());
        for (int k = 0; k < f.nv; ++k) gain[k] = {rows(o.kp).at(0, k), rows(o.kd).at(0, k)};
        rotation_steps(f, v.data(), T(o.dt), s.rotation_step.data());
        drive_forces(o.form, nullptr, f, gain.data(), T(o.dt), q.data(), v.data(),
                     s.rotation_step.data(), static_cast<const S*>(s.tq.data()),
                     static_cast<const S*>(s.tv.data()), o.target_v.p != nullptr, s.Q.data(),
                     s.K.data());
        if (!o.tau.p) return;
        for (int k = 0; k < f.nv; ++k) s.Q[k] = s.Q[k] + rows(o.tau).at(0, k);
    }

    void drive() {
        load_drive();
        if (o.target_a.p) {
            rows(o.target_a).load(0, f.nv, s.ta.data());
            add_target_acceleration(f, q.data(), s.tq.data(), s.ta.data(), s.Q.data());
        }
        store_rows(s.Q.data(), f.nv, first, count, o.out0);
        store_rows(s.K.data(), f.nv, first, count, o.out1);
    }

    void stable_pd() {
        load_drive();
        const auto solve_now = [&] {
            for (int k = 0; k < f.nv; ++k) K[k] = s.K[k] + axis[k].armature;
            solve_with(o.method, s.Q.data(), K.data(), o.limits ? s.relief.data() : nullptr);
        };
        if (o.limits) {
            BoundedDrive<S> drive(f, axis.data(), {Rows{}, first, count}, s);
            drive.solve_free(solve_now);
            drive.find_forces();
        } else {
            solve_now();
            for (int k = 0; k < f.nv; ++k) s.tau[k] = s.Q[k] - s.K[k] * s.qdd[k];
        }
        store_rows(s.qdd.data(), f.nv, first, count, o.out0);
        store_rows(s.tau.data(), f.nv, first, count, o.out1);
    }

    // where the target is now, how it moves: in s.tq, s.tv, s.ta; a target is of t + dt
    void reference() {
        const auto load = [&](const Rows& r, int size, S* to) {
            if (r.p) rows(r).load(0, size, to);
            else
                for (int k = 0; k < size; ++k) to[k] = zero;
        };
        load(o.target_q, f.nq, s.tq.data());
        normalise(f, s.tq.data());
        load(o.target_v, f.nv, s.tv.data());
        load(o.target_a, f.nv, s.ta.data());
        if (o.past.p) {
            // differences that the step undoes: a character that is on its target stays there
            S *now = past.data(), *before = past.data() + f.nq;
            rows(o.past).load(0, 2 * f.nq, now);
            normalise(f, now);
            normalise(f, before);
            const S per_second(T(1 / o.dt));
            rate_between(f, now, s.tq.data(), per_second, s.ta.data());
            rate_between(f, before, now, per_second, s.tv.data());
            for (int k = 0; k < f.nv; ++k) s.ta[k] = per_second * (s.ta[k] - s.tv[k]);
            for (int k = 0; k < f.nq; ++k) s.tq[k] = now[k];
        } else {
            step_back(f, T(o.dt), s.tq.data(), s.tv.data(), s.ta.data());
        }
        for (int k = 0; k < f.nv; ++k) {
            if (!o.velocity) s.tv[k] = zero;
            if (!o.feedforward) s.ta[k] = zero;
        }
    }

    void kane() {
        S* qdd = s.qdd.data();
        if (o.target_q.p) {
            reference();
            for (int k = 0; k < f.nv; ++k) gain[k] = {rows(o.kp).at(0, k), rows(o.kd).at(0, k)};
            move(f, constants.data(), s.tq.data(), s.tv.data(), s.ta.data(), zero3<S>(),
                 s.target_work.data());
            pose(nullptr, false);
            const TrackingTarget<S> target = {s.tq.data(), s.tv.data(), s.ta.data(),
                                              s.target_work.data(), gain.data()};
            desired_accelerations(f, target, q.data(), v.data(), s.work.data(), s.velocity.data(),
                                  qdd);
        } else {
            rows(o.a).load(0, f.nv, qdd);
        }
        pose(qdd, true);
        kane_inverse_dynamics(f, constants.data(), s.work.data(), external(), o.as_printed,
                              s.total.data(), out.data());
        add_armature(f, axis.data(), qdd, out.data());
        store_rows(qdd, f.nv, first, count, o.out1);
        give(o.out0, f.nv);
    }

    // inputs of a controller of momentum and points, from one pass: see TaskLayout
    void tasks() {
        const int nv = f.nv, n = o.point_count;
        const TaskLayout at(nv, n);
        const auto size = static_cast<std::size_t>(at.size);
        if (out.size() < size) out.resize(size);
        S* row = out.data();
        S *A = row + at.A, *M = row + at.M, *J = row + at.J, *h = row + at.h;
        S *rate = row + at.rate, *bias = row + at.bias, *turn = row + at.R;
        pose(nullptr, false);
        const Vec3<S> c = center_now();
        store(row + at.c, c);
        momentum_matrix(f, s.composite.data(), s.work.data(), s.origin.data(), c, A);
        if (!o.brief) {
            mass_matrix(f, s.composite.data(), s.work.data(), M);
            for (int k = 0; k < nv; ++k) M[k * nv + k] = M[k * nv + k] + axis[k].armature;
        }
        inverse_dynamics<S>(f, constants.data(), s.work.data(), nullptr, s.total.data(), h);
        Wrench<S> sum = {zero3<S>(), zero3<S>()};
        for (int i = 0; i < f.nb; ++i)
            if (f.body[i].parent < 0) sum = sum + shift(s.total[i], s.origin[i] - c);
        store(rate, sum.f);
        store(rate + 3, sum.n);
        // weight acts on the joints as the rate of linear momentum does
        for (int j = 0; j < 3; ++j)
            for (int k = 0; k < nv; ++k) h[k] = h[k] - S(T(o.gravity[j])) * A[j * nv + k];
        for (int i = 0; i < n; ++i) {
            const double* point = o.points + 4 * i;
            const int link = static_cast<int>(point[0]), b = f.link_body[link];
            Vec3<S> p, a = zero3<S>(), al = zero3<S>();
            Quat<S> Q;
            link_pose(f, link, s.work.data(), s.origin.data(), p, Q);
            p = p + rotate(Q, Vec3<S>{S(T(point[1])), S(T(point[2])), S(T(point[3]))});
            if (b >= 0) {
                a = s.work[b].motion.a + s.work[b].motion.W * (p - s.origin[b]);
                al = s.work[b].motion.al;
            }
            if (!o.brief) point_jacobian(f, b, p, s.work.data(), s.origin.data(), J + 6 * nv * i);
            store(bias + 6 * i, a);
            store(bias + 6 * i + 3, al);
            store(row + at.p + 3 * i, p);
            const Mat3<S> R = matrix(Q);
            const S rows[9] = {R.xx, R.xy, R.xz, R.yx, R.yy, R.yz, R.zx, R.zy, R.zz};
            for (int k = 0; k < 9; ++k) turn[9 * i + k] = rows[k];
        }
        give(o.out0, static_cast<int>(size));
    }

    const Forest f;
    Query o{};
    Scratch<S> s;
    Buffer<Constants<S>> constants;
    Buffer<Axis<S>> axis;
    Buffer<S> q, v, x, K, out, past;
    Buffer<bool> isotropic;
    Buffer<Gain<S>> gain;
    S fixed[4];  // mass and moment of what is welded to the world
    std::int64_t first = 0, count = 0;
    std::int64_t loaded = 0;  // whose parameters are in constants and axis; 0 is nobody's
    const S zero{Element<S>(0)};
};

}  // namespace poise::inline POISE_ISA
