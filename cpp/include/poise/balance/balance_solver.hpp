// One solution of the balance problem (macchietto2008, chapter 5):
//     min |W (a_des - a)|^2 + b_l |L'_des - L'|^2 + b_a |H'_des - H'|^2 + sum b_p |p''_des - p''|^2
//     subject to   J_sup a + J'_sup v = a_sup
// in x = W (a - a_des), and with friction cones the ground forces and the joint torques that belong
// to a. The mathematics is in poise.reference.balance, the reference implementation.
#pragma once

#include "poise/balance/friction_cone_qp.hpp"
#include "poise/balance/momentum_task.hpp"

namespace poise::inline POISE_ISA {

class BalanceSolver {
  public:
    // solves for copy i
    void solve(const BalanceProblem& given, std::int64_t i) {
        problem = &given;
        o = &given.params;
        nv = static_cast<int>(given.nv);
        const TaskLayout layout(nv, given.supports + given.goals);
        const TaskView now(given.tasks + i * layout.size, layout);
        const TaskView then(given.target_tasks + i * given.target_stride, layout);
        const BalanceOutput& out = given.out;
        v = given.v.p + i * given.v.copy;
        a_des = given.a_des + i * nv;
        a = out.acceleration + i * nv;
        contact_point = out.contact_points + 3 * given.sole_points * i;
        contact_force = out.contact_forces + 3 * given.sole_points * i;
        mass = now.A[0];
        supports.compute(given, now, then, i);
        friction = given.friction.p + i * given.friction.copy;
        const auto row = [&](const Rows& r) { return r.p ? r.p + i * r.copy : nullptr; };
        const bool regulated =
            momentum.compute(supports, now, then, v, row(given.target_v), row(given.target_a));
        gather_rows(now, then, regulated);
        solve_rows();
        double beta = 0;
        late = 0;
        if (regulated && o->angular) beta = add_angular_objective(now);
        if (o->friction_cones) {
            solve_ground_forces(now, i);
        } else {
            std::fill_n(out.torque + i * nv, nv, 0.0);
            clear_forces();
        }
        for (int k = 0; k < 6; ++k)
            out.momentum_rate[6 * i + k] = dot(now.A + k * nv, a, nv) + now.rate[k];
        out.angular_weight[i] = beta;
        out.constraint_residual[i] = residual;
        out.capture_point_error[i] = momentum.capture_point_error;
        for (int k = 0; k < 2; ++k) out.desired_com[2 * i + k] = momentum.desired_com[k];
        for (int k = 0; k < 3; ++k) out.com[3 * i + k] = now.c[k];
        out.mass[i] = mass;
        for (int k = 0; k < given.supports; ++k)
            out.support_weight[given.supports * i + k] = supports.weight[k];
    }

  private:
    // ---- the rows of the least squares, in x

    struct RowSet {
        Workspace<double> row, rhs;
        int count = 0;

        double* next(int n) {
            ++count;
            if (static_cast<int>(row.size()) < count * n) row.resize(count * n);
            if (static_cast<int>(rhs.size()) < count) rhs.resize(count);
            return row.data() + (count - 1) * n;
        }
    };
    void add_row(RowSet& to, const double* E, double e, double by) {
        double* row = to.next(nv);
        for (int k = 0; k < nv; ++k) row[k] = by * E[k] / problem->tracking_weight[k];
        to.rhs[to.count - 1] = by * (e - dot(E, a_des, nv));
    }

    void gather_rows(const TaskView& now, const TaskView& then, bool regulated) {
        hard.count = soft.count = 0;
        for (int k = 0; k < problem->supports; ++k)
            if (supports.weight[k] > 1e-3) add_support(now, then, k);
        for (int g = 0; g < problem->goals; ++g) add_goal(now, g);
        if (!regulated || !o->linear) return;
        const double root = std::sqrt(o->linear_weight);
        for (int k = 0; k < 2; ++k)
            add_row(soft, now.A + k * nv, momentum.linear[k] - now.rate[k], root);
    }

    // a support: level, at the target's height, and at rest
    void add_support(const TaskView& now, const TaskView& then, int k) {
        const double *J = now.J + 6 * nv * k, *R = now.R + 9 * k, *T = then.R + 9 * k;
        double desired[6];
        for (int x = 0; x < 6; ++x)
            desired[x] = -o->support_gains[1] * dot(J + x * nv, v, nv) - now.bias[6 * k + x];
        if (o->support_gains[0] != 0) {
            // sum of the cross products of their columns, level
            double tilt[2] = {0, 0};
            for (int c = 0; c < 3; ++c) {
                tilt[0] += R[3 + c] * T[6 + c] - R[6 + c] * T[3 + c];
                tilt[1] += R[6 + c] * T[c] - R[c] * T[6 + c];
            }
            for (int x = 0; x < 2; ++x) desired[3 + x] += 0.5 * o->support_gains[0] * tilt[x];
            desired[2] += o->support_gains[0] * (then.p[3 * k + 2] - now.p[3 * k + 2]);
        }
        if (supports.current.lowest[k] > o->ground_height) desired[2] -= o->press_acceleration;
        const bool constraint = !o->friction_cones && supports.weight[k] >= o->hard_threshold;
        const double s = supports.weight[k];
        const double by = constraint          ? 1
                          : o->friction_cones ? o->support_weight * s
                                              : o->fading_weight * s / std::fmax(1 - s, 1e-9);
        for (int x = 0; x < 6; ++x) add_row(constraint ? hard : soft, J + x * nv, desired[x], by);
    }

    void add_goal(const TaskView& now, int g) {
        const std::int64_t at = problem->supports + g;
        const double *J = now.J + 6 * nv * at, *p = now.p + 3 * at, *to = problem->goal + 3 * g;
        double distance = 0;
        for (int x = 0; x < 3; ++x) distance += (to[x] - p[x]) * (to[x] - p[x]);
        const double scale =
            std::fmin(1.0, o->max_goal_distance / std::fmax(std::sqrt(distance), 1e-9));
        const double by = std::sqrt(o->goal_weight) * scale * scale;
        for (int x = 0; x < 3; ++x) {
            const double desired = o->goal_gains[0] * scale * (to[x] - p[x]) -
                                   o->goal_gains[1] * dot(J + x * nv, v, nv) - now.bias[6 * at + x];
            add_row(soft, J + x * nv, desired, by);
        }
    }

    void solve_rows() {
        least_squares.begin(nv, hard.count, soft.count);
        residual = least_squares.constrain(hard.row.data(), hard.rhs.data(), hard.count,
                                           o->rank_tolerance);
        for (int k = 0; k < soft.count; ++k)
            least_squares.add_objective(soft.row.data() + k * nv, soft.rhs[k]);
        least_squares.finish();
        for (int k = 0; k < nv; ++k)
            a[k] = a_des[k] + least_squares.x()[k] / problem->tracking_weight[k];
    }

    // ---- the angular objective, at the weight that is consistent with its own solution

    double add_angular_objective(const TaskView& now) {
        double T[9], error[3], rate[3];
        angular_rows.resize(3 * nv);
        compliance.resize(3 * nv);
        for (int x = 0; x < 3; ++x) {
            const double* A = now.A + (3 + x) * nv;
            rate[x] = dot(A, a, nv) + now.rate[3 + x];
            error[x] = momentum.angular[x] - rate[x];
            for (int k = 0; k < nv; ++k)
                angular_rows[x * nv + k] = A[k] / problem->tracking_weight[k];
            least_squares.compliance(angular_rows.data() + x * nv, compliance.data() + x * nv);
        }
        for (int x = 0; x < 3; ++x)
            for (int y = 0; y < 3; ++y)
                T[3 * x + y] = dot(compliance.data() + x * nv, angular_rows.data() + y * nv, nv);
        const double weight = mass * problem->gravity[2];
        const double lift = dot(now.A + 2 * nv, a, nv) + now.rate[2] - weight;
        const double fz = std::fmax(lift, -0.1 * weight);
        const double beta = o->gamma * momentum.cmp_offset + consistent_weight(error, T, fz);
        if (!(beta > 0)) return 0;
        // (T + 1 / beta)^-1
        for (int x = 0; x < 3; ++x) {
            double B[9], unit[3] = {0, 0, 0};
            for (int k = 0; k < 9; ++k) B[k] = T[k] + (k % 4 ? 0 : 1 / beta);
            unit[x] = 1;
            if (!solve_small(B, unit, 3)) return 0;
            for (int y = 0; y < 3; ++y) late_inverse[3 * y + x] = unit[y];
        }
        late = 3;
        for (int x = 0; x < 3; ++x) {
            const double by = late_inverse[3 * x] * error[0] + late_inverse[3 * x + 1] * error[1] +
                              late_inverse[3 * x + 2] * error[2];
            for (int k = 0; k < nv; ++k)
                a[k] += by * compliance[x * nv + k] / problem->tracking_weight[k];
        }
        return beta;
    }

    // b = gamma |x_xy(b)| / fz, x(b) = (1 + b T)^-1 error
    double consistent_weight(const double* error, const double* T, double fz) const {
        const double per = o->gamma / fz;
        double low = 0, high = per * std::hypot(error[0], error[1]);
        for (int iteration = 0; iteration < 12; ++iteration) {
            const double beta = 0.5 * (low + high);
            double B[9], x[3] = {error[0], error[1], error[2]};
            for (int k = 0; k < 9; ++k) B[k] = beta * T[k] + (k % 4 ? 0 : 1);
            if (!solve_small(B, x, 3)) return low;
            (per * std::hypot(x[0], x[1]) > beta ? low : high) = beta;
        }
        return 0.5 * (low + high);
    }

    // ---- ground forces inside friction cones, and the joint torques that belong to them

    void solve_ground_forces(const TaskView& now, std::int64_t i) {
        double S[36], need[6], scale[6], correction[6];
        base.resize(12 * nv);
        for (int x = 0; x < 6; ++x) {
            const double* M = now.M + x * nv;
            double *row = base.data() + x * nv, *out = base.data() + (6 + x) * nv;
            for (int k = 0; k < nv; ++k) row[k] = M[k] / problem->tracking_weight[k];
            least_squares.compliance(row, out);
            for (int y = 0; y < late; ++y) {
                double by = 0;
                for (int z = 0; z < late; ++z)
                    by += late_inverse[3 * y + z] * dot(row, compliance.data() + z * nv, nv);
                add(-by, compliance.data() + y * nv, out, nv);
            }
            need[x] = dot(M, a, nv) + now.h[x];
        }
        for (int x = 0; x < 6; ++x)
            for (int y = 0; y < 6; ++y)
                S[6 * x + y] = dot(base.data() + (6 + x) * nv, base.data() + y * nv, nv);
        solve_cones(S, need, scale, correction, problem->q.p + i * problem->q.copy);
        for (int x = 0; x < 6; ++x)
            for (int k = 0; k < nv; ++k)
                a[k] += correction[x] * base[(6 + x) * nv + k] / problem->tracking_weight[k];
        double* torque = problem->out.torque + i * nv;
        for (int k = 0; k < nv; ++k) torque[k] = k < 6 ? 0 : dot(now.M + k * nv, a, nv) + now.h[k];
        for (int j = 0; j < problem->sole_points; ++j) {
            const int k = static_cast<int>(problem->sole_point[4 * j]);
            const double *at = contact_point + 3 * j, *f = contact_force + 3 * j;
            const double* p = now.p + 3 * k;
            const double r[3] = {at[0] - p[0], at[1] - p[1], at[2] - p[2]};
            const double w[6] = {f[0],
                                 f[1],
                                 f[2],
                                 r[1] * f[2] - r[2] * f[1],
                                 r[2] * f[0] - r[0] * f[2],
                                 r[0] * f[1] - r[1] * f[0]};
            for (int x = 0; x < 6; ++x)
                add(-w[x], now.J + (6 * k + x) * nv + 6, torque + 6, nv - 6);
        }
        // a fallen character touches the ground with links that are no supports
        for (int k = 6; k < nv; ++k) torque[k] *= supports.upright;
    }

    // forces, and the correction S^-1 (G x - need) of the wrench on the root
    void solve_cones(double* S, double* need, double* scale, double* correction, const double* q) {
        for (int x = 0; x < 6; ++x) scale[x] = std::sqrt(std::fmax(S[7 * x], 1e-12));
        double C[36];
        for (int x = 0; x < 6; ++x)
            for (int y = 0; y < 6; ++y)
                C[6 * x + y] = S[6 * x + y] / (scale[x] * scale[y]) + (x == y ? 1e-9 : 0);
        // symmetric but for rounding; C becomes its Cholesky factor
        double none[6] = {};
        if (!solve_small(C, none, 6)) {
            for (int x = 0; x < 6; ++x) correction[x] = 0;
            return clear_forces();
        }
        const auto forward = [&](double* x) {
            for (int k = 0; k < 6; ++k) {
                x[k] /= scale[k];
                for (int j = 0; j < k; ++j) x[k] -= C[6 * k + j] * x[j];
                x[k] /= C[7 * k];
            }
        };
        cone_rows(q);
        for (int j = 0; j < unknowns; ++j) forward(P.data() + 6 * j);
        forward(need);
        double largest = 0;
        for (int j = 0; j < unknowns; ++j)
            largest = std::fmax(largest, dot(P.data() + 6 * j, P.data() + 6 * j, 6));
        const FrictionConeQP qp = {unknowns, P.data(), need, upper.data(),
                                   o->force_regularization * largest};
        double y[6] = {};
        lambda.resize(unknowns);
        if (unknowns) qp.solve(y);
        qp.unknowns(y, lambda.data());
        for (int k = 0; k < 6; ++k) correction[k] = -need[k];
        for (int j = 0; j < unknowns; ++j) add(lambda[j], P.data() + 6 * j, correction, 6);
        for (int k = 5; k >= 0; --k) {
            for (int j = k + 1; j < 6; ++j) correction[k] -= C[6 * j + k] * correction[j];
            correction[k] /= C[7 * k];
        }
        for (int k = 0; k < 6; ++k) correction[k] /= scale[k];
        write_forces();
    }

    void clear_forces() {
        unknowns = 0;
        write_forces();
    }

    static constexpr int kEdges = 4;

    // the wrench on the free root of every edge of every loaded pyramid, as rows of six
    void cone_rows(const double* q) {
        const double w = q[3], x1 = q[4], y1 = q[5], z1 = q[6];
        const double R[9] = {
            1 - 2 * (y1 * y1 + z1 * z1), 2 * (x1 * y1 - w * z1),      2 * (x1 * z1 + w * y1),
            2 * (x1 * y1 + w * z1),      1 - 2 * (x1 * x1 + z1 * z1), 2 * (y1 * z1 - w * x1),
            2 * (x1 * z1 - w * y1),      2 * (y1 * z1 + w * x1),      1 - 2 * (x1 * x1 + y1 * y1)};
        const double* g = problem->gravity;
        const double pull = std::sqrt(g[0] * g[0] + g[1] * g[1] + g[2] * g[2]);
        const double weight = mass * std::fmax(pull, 9.81);
        unknowns = 0;
        P.resize(6 * kEdges * problem->sole_points);
        upper.resize(kEdges * problem->sole_points);
        for (int j = 0; j < problem->sole_points; ++j) {
            const double s = supports.of_point(j);
            if (!(s > 1e-3)) continue;
            const double* at = supports.current.position.data() + 3 * j;
            const double r[3] = {at[0] - q[0], at[1] - q[1], at[2] - q[2]};
            for (int e = 0; e < kEdges; ++e, ++unknowns) {
                double* p = P.data() + 6 * unknowns;
                edge(e, j, p);
                const double t[3] = {r[1] * p[2] - r[2] * p[1], r[2] * p[0] - r[0] * p[2],
                                     r[0] * p[1] - r[1] * p[0]};
                for (int k = 0; k < 3; ++k)
                    p[3 + k] = R[k] * t[0] + R[3 + k] * t[1] + R[6 + k] * t[2];
                upper[unknowns] = 3 * weight * s;
            }
        }
    }
    void edge(int e, int j, double* out) const {
        const double mu = friction[static_cast<int>(problem->sole_point[4 * j])];
        const double around = (e + 0.5) * (2 * 3.14159265358979323846 / kEdges);
        out[0] = mu * std::cos(around);
        out[1] = mu * std::sin(around);
        out[2] = 1;
    }

    // positions of the sole points, and the forces on them
    void write_forces() {
        int at = 0;
        for (int j = 0; j < problem->sole_points; ++j) {
            double *point = contact_point + 3 * j, *force = contact_force + 3 * j;
            for (int k = 0; k < 3; ++k)
                point[k] = supports.current.position[3 * j + k], force[k] = 0;
            if (!(supports.of_point(j) > 1e-3) || !unknowns) continue;
            for (int e = 0; e < kEdges; ++e, ++at) {
                double d[3];
                edge(e, j, d);
                for (int k = 0; k < 3; ++k) force[k] += lambda[at] * d[k];
            }
        }
    }

    const BalanceProblem* problem = nullptr;
    const BalanceParams* o = nullptr;
    int nv = 0, late = 0, unknowns = 0;
    const double *v = nullptr, *a_des = nullptr, *friction = nullptr;
    double *a = nullptr, *contact_point = nullptr, *contact_force = nullptr;
    double late_inverse[9] = {}, residual = 0, mass = 0;
    SupportWeights supports;
    MomentumTask momentum;
    RowSet hard, soft;
    ConstrainedLeastSquares least_squares;
    Workspace<double> angular_rows, compliance, base, P, upper, lambda;
};

inline void solve_balance(const BalanceProblem& problem, std::int64_t begin, std::int64_t end) {
    static thread_local BalanceSolver solver;
    for (std::int64_t i = begin; i < end; ++i) solver.solve(problem, i);
}

}  // namespace poise::inline POISE_ISA
