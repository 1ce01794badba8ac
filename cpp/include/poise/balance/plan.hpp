// One plan of a controller of balance (macchietto2008, chapter 5):
//     min |W (a_des - a)|^2 + b_l |L'_des - L'|^2 + b_a |H'_des - H'|^2 + sum b_p |p''_des - p''|^2
//     subject to   J_sup a + J'_sup v = a_sup
// in x = W (a - a_des), and with cones the forces of the ground and the torques that go with a. The
// mathematics is told in poise.control.balance, function by function; that is the twin of this.
#pragma once

#include "poise/balance/cones.hpp"
#include "poise/balance/wish.hpp"

namespace poise::inline POISE_ISA {

class Planner {
  public:
    void plan(const PlanCall& call, std::int64_t i) {
        o = &call;
        nv = static_cast<int>(call.nv);
        const std::int64_t points = call.soles + call.goals;
        const std::int64_t size = task_size(nv, points);
        const TaskView now(call.tasks + i * size, nv, points);
        const TaskView then(call.then + i * call.then_copy, nv, points);
        v = call.v.p + i * call.v.copy;
        a_des = call.a_des + i * nv;
        a = call.a + i * nv;
        told = call.told + i * told_size(call.soles, call.corners);
        mass = now.A[0];
        stance.find(call, now, then, i);
        friction = call.friction.p + i * call.friction.copy;
        const auto row = [&](const Rows& r) { return r.p ? r.p + i * r.copy : nullptr; };
        const bool wished = wish.find(stance, now, then, v, row(call.target_v), row(call.target_a));
        gather(now, then, wished);
        solve();
        double beta = 0;
        late = 0;
        if (wished && call.angular) beta = turn(now);
        if (call.cones) {
            ground(now, i);
        } else {
            std::fill_n(call.torque + i * nv, nv, 0.0);
            no_forces();
        }
        for (int k = 0; k < 6; ++k) told[k] = dot(now.A + k * nv, a, nv) + now.rate[k];
        told[6] = beta;
        told[7] = miss;
        told[8] = wish.strain;
        for (int k = 0; k < 2; ++k) told[9 + k] = wish.center[k];
        for (int k = 0; k < 3; ++k) told[11 + k] = now.c[k];
        for (int k = 0; k < call.soles; ++k) told[15 + k] = stance.share[k];
        told[14] = mass;
    }

  private:
    // ---- the rows of the least squares, in x

    struct RowSet {
        Room<double> row, want;
        int count = 0;

        double* next(int n) {
            ++count;
            if (static_cast<int>(row.size()) < count * n) row.resize(count * n);
            if (static_cast<int>(want.size()) < count) want.resize(count);
            return row.data() + (count - 1) * n;
        }
    };
    void put(RowSet& to, const double* E, double e, double by) {
        double* row = to.next(nv);
        for (int k = 0; k < nv; ++k) row[k] = by * E[k] / o->weight[k];
        to.want[to.count - 1] = by * (e - dot(E, a_des, nv));
    }

    void gather(const TaskView& now, const TaskView& then, bool wished) {
        hard.count = easy.count = 0;
        for (int k = 0; k < o->soles; ++k)
            if (stance.share[k] > 1e-3) support(now, then, k);
        for (int g = 0; g < o->goals; ++g) reach_for(now, g);
        if (!wished || !o->linear) return;
        const double root = std::sqrt(o->beta_linear);
        for (int k = 0; k < 2; ++k) put(easy, now.A + k * nv, wish.linear[k] - now.rate[k], root);
    }

    // a sole that stands: level, as high as in the target, and at rest
    void support(const TaskView& now, const TaskView& then, int k) {
        const double *J = now.J + 6 * nv * k, *R = now.R + 9 * k, *T = then.R + 9 * k;
        double wanted[6];
        for (int x = 0; x < 6; ++x)
            wanted[x] = -o->k_support[1] * dot(J + x * nv, v, nv) - now.bias[6 * k + x];
        if (o->k_support[0] != 0) {
            // sum of the cross products of their columns, level
            double tilt[2] = {0, 0};
            for (int c = 0; c < 3; ++c) {
                tilt[0] += R[3 + c] * T[6 + c] - R[6 + c] * T[3 + c];
                tilt[1] += R[6 + c] * T[c] - R[c] * T[6 + c];
            }
            for (int x = 0; x < 2; ++x) wanted[3 + x] += 0.5 * o->k_support[0] * tilt[x];
            wanted[2] += o->k_support[0] * (then.p[3 * k + 2] - now.p[3 * k + 2]);
        }
        if (stance.here.low[k] > o->ground) wanted[2] -= o->press;
        const bool held = !o->cones && stance.share[k] >= o->held;
        const double by = held ? 1
                          : o->cones
                              ? o->firm * stance.share[k]
                              : o->soft * stance.share[k] / std::fmax(1 - stance.share[k], 1e-9);
        for (int x = 0; x < 6; ++x) put(held ? hard : easy, J + x * nv, wanted[x], by);
    }

    void reach_for(const TaskView& now, int g) {
        const std::int64_t at = o->soles + g;
        const double *J = now.J + 6 * nv * at, *p = now.p + 3 * at, *to = o->goal + 3 * g;
        double far = 0;
        for (int x = 0; x < 3; ++x) far += (to[x] - p[x]) * (to[x] - p[x]);
        const double near = std::fmin(1.0, o->farthest / std::fmax(std::sqrt(far), 1e-9));
        const double by = std::sqrt(o->goal_weight) * near * near;
        for (int x = 0; x < 3; ++x) {
            const double wanted = o->k_goal[0] * near * (to[x] - p[x]) -
                                  o->k_goal[1] * dot(J + x * nv, v, nv) - now.bias[6 * at + x];
            put(easy, J + x * nv, wanted, by);
        }
    }

    void solve() {
        basis.begin(nv, hard.count, easy.count);
        miss = basis.hold(hard.row.data(), hard.want.data(), hard.count, o->rank);
        for (int k = 0; k < easy.count; ++k) basis.want(easy.row.data() + k * nv, easy.want[k]);
        basis.finish();
        for (int k = 0; k < nv; ++k) a[k] = a_des[k] + basis.x()[k] / o->weight[k];
    }

    // ---- the angular objective, at the weight that agrees with its own answer

    double turn(const TaskView& now) {
        double T[9], lack[3], rate[3];
        spun.resize(3 * nv);
        given.resize(3 * nv);
        for (int x = 0; x < 3; ++x) {
            const double* A = now.A + (3 + x) * nv;
            rate[x] = dot(A, a, nv) + now.rate[3 + x];
            lack[x] = wish.angular[x] - rate[x];
            for (int k = 0; k < nv; ++k) spun[x * nv + k] = A[k] / o->weight[k];
            basis.give(spun.data() + x * nv, given.data() + x * nv);
        }
        for (int x = 0; x < 3; ++x)
            for (int y = 0; y < 3; ++y)
                T[3 * x + y] = dot(given.data() + x * nv, spun.data() + y * nv, nv);
        const double weight = mass * o->gravity[2];
        const double lift = dot(now.A + 2 * nv, a, nv) + now.rate[2] - weight;
        const double fz = std::fmax(lift, -0.1 * weight);
        const double beta = o->gamma * wish.apart + consistent_weight(lack, T, fz);
        if (!(beta > 0)) return 0;
        // (T + 1 / beta)^-1
        for (int x = 0; x < 3; ++x) {
            double B[9], unit[3] = {0, 0, 0};
            for (int k = 0; k < 9; ++k) B[k] = T[k] + (k % 4 ? 0 : 1 / beta);
            unit[x] = 1;
            if (!solve_small(B, unit, 3)) return 0;
            for (int y = 0; y < 3; ++y) firmly[3 * y + x] = unit[y];
        }
        late = 3;
        for (int x = 0; x < 3; ++x) {
            const double by =
                firmly[3 * x] * lack[0] + firmly[3 * x + 1] * lack[1] + firmly[3 * x + 2] * lack[2];
            for (int k = 0; k < nv; ++k) a[k] += by * given[x * nv + k] / o->weight[k];
        }
        return beta;
    }

    // b = gamma |x_xy(b)| / fz, x(b) = (1 + b T)^-1 lack
    double consistent_weight(const double* lack, const double* T, double fz) const {
        const double per = o->gamma / fz;
        double low = 0, high = per * std::hypot(lack[0], lack[1]);
        for (int round = 0; round < 12; ++round) {
            const double beta = 0.5 * (low + high);
            double B[9], x[3] = {lack[0], lack[1], lack[2]};
            for (int k = 0; k < 9; ++k) B[k] = beta * T[k] + (k % 4 ? 0 : 1);
            if (!solve_small(B, x, 3)) return low;
            (per * std::hypot(x[0], x[1]) > beta ? low : high) = beta;
        }
        return 0.5 * (low + high);
    }

    // ---- forces of the ground inside their cones, and the torques that go with them

    void ground(const TaskView& now, std::int64_t i) {
        double S[36], need[6], size[6], short_of[6];
        base.resize(12 * nv);
        for (int x = 0; x < 6; ++x) {
            const double* M = now.M + x * nv;
            double *row = base.data() + x * nv, *out = base.data() + (6 + x) * nv;
            for (int k = 0; k < nv; ++k) row[k] = M[k] / o->weight[k];
            basis.give(row, out);
            for (int y = 0; y < late; ++y) {
                double by = 0;
                for (int z = 0; z < late; ++z)
                    by += firmly[3 * y + z] * dot(row, given.data() + z * nv, nv);
                add(-by, given.data() + y * nv, out, nv);
            }
            need[x] = dot(M, a, nv) + now.h[x];
        }
        for (int x = 0; x < 6; ++x)
            for (int y = 0; y < 6; ++y)
                S[6 * x + y] = dot(base.data() + (6 + x) * nv, base.data() + y * nv, nv);
        push(S, need, size, short_of, o->q.p + i * o->q.copy);
        for (int x = 0; x < 6; ++x)
            for (int k = 0; k < nv; ++k)
                a[k] += short_of[x] * base[(6 + x) * nv + k] / o->weight[k];
        double* torque = o->torque + i * nv;
        for (int k = 0; k < nv; ++k) torque[k] = k < 6 ? 0 : dot(now.M + k * nv, a, nv) + now.h[k];
        const double* force = told + 15 + o->soles;
        for (int j = 0; j < o->corners; ++j) {
            const int k = static_cast<int>(o->corner[4 * j]);
            const double *at = force + 6 * j, *f = at + 3, *p = now.p + 3 * k;
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
        // who has fallen touches with what is not planned for
        for (int k = 6; k < nv; ++k) torque[k] *= stance.upright;
    }

    // forces, and S^-1 (G x - need): what the root is given beside what it needs
    void push(double* S, double* need, double* size, double* short_of, const double* q) {
        for (int x = 0; x < 6; ++x) size[x] = std::sqrt(std::fmax(S[7 * x], 1e-12));
        double C[36];
        for (int x = 0; x < 6; ++x)
            for (int y = 0; y < 6; ++y)
                C[6 * x + y] = S[6 * x + y] / (size[x] * size[y]) + (x == y ? 1e-9 : 0);
        // symmetric but for rounding; C becomes its Cholesky factor
        double none[6] = {};
        if (!solve_small(C, none, 6)) {
            for (int x = 0; x < 6; ++x) short_of[x] = 0;
            return no_forces();
        }
        const auto forward = [&](double* x) {
            for (int k = 0; k < 6; ++k) {
                x[k] /= size[k];
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
        const ConeProblem problem = {unknowns, P.data(), need, caps.data(), o->ease * largest};
        double y[6] = {};
        lambda.resize(unknowns);
        if (unknowns) problem.solve(y);
        problem.unknowns(y, lambda.data());
        for (int k = 0; k < 6; ++k) short_of[k] = -need[k];
        for (int j = 0; j < unknowns; ++j) add(lambda[j], P.data() + 6 * j, short_of, 6);
        for (int k = 5; k >= 0; --k) {
            for (int j = k + 1; j < 6; ++j) short_of[k] -= C[6 * j + k] * short_of[j];
            short_of[k] /= C[7 * k];
        }
        for (int k = 0; k < 6; ++k) short_of[k] /= size[k];
        share_out();
    }

    void no_forces() {
        unknowns = 0;
        share_out();
    }

    static constexpr int kEdges = 4;

    // the wrench on the free root of every edge of every pyramid that carries, as rows of six
    void cone_rows(const double* q) {
        const double w = q[3], x1 = q[4], y1 = q[5], z1 = q[6];
        const double R[9] = {
            1 - 2 * (y1 * y1 + z1 * z1), 2 * (x1 * y1 - w * z1),      2 * (x1 * z1 + w * y1),
            2 * (x1 * y1 + w * z1),      1 - 2 * (x1 * x1 + z1 * z1), 2 * (y1 * z1 - w * x1),
            2 * (x1 * z1 - w * y1),      2 * (y1 * z1 + w * x1),      1 - 2 * (x1 * x1 + y1 * y1)};
        const double* g = o->gravity;
        const double pull = std::sqrt(g[0] * g[0] + g[1] * g[1] + g[2] * g[2]);
        const double weight = mass * std::fmax(pull, 9.81);
        unknowns = 0;
        P.resize(6 * kEdges * o->corners);
        caps.resize(kEdges * o->corners);
        for (int j = 0; j < o->corners; ++j) {
            const double s = stance.of_corner(j);
            if (!(s > 1e-3)) continue;
            const double* at = stance.here.at.data() + 3 * j;
            const double r[3] = {at[0] - q[0], at[1] - q[1], at[2] - q[2]};
            for (int e = 0; e < kEdges; ++e, ++unknowns) {
                double* p = P.data() + 6 * unknowns;
                edge(e, j, p);
                const double t[3] = {r[1] * p[2] - r[2] * p[1], r[2] * p[0] - r[0] * p[2],
                                     r[0] * p[1] - r[1] * p[0]};
                for (int k = 0; k < 3; ++k)
                    p[3 + k] = R[k] * t[0] + R[3 + k] * t[1] + R[6 + k] * t[2];
                caps[unknowns] = 3 * weight * s;
            }
        }
    }
    void edge(int e, int j, double* out) const {
        const double mu = friction[static_cast<int>(o->corner[4 * j])];
        const double around = (e + 0.5) * (2 * 3.14159265358979323846 / kEdges);
        out[0] = mu * std::cos(around);
        out[1] = mu * std::sin(around);
        out[2] = 1;
    }

    // places of the corners and the forces on them, to those who ask
    void share_out() {
        double* to = told + 15 + o->soles;
        int at = 0;
        for (int j = 0; j < o->corners; ++j, to += 6) {
            for (int k = 0; k < 3; ++k) to[k] = stance.here.at[3 * j + k], to[3 + k] = 0;
            if (!(stance.of_corner(j) > 1e-3) || !unknowns) continue;
            for (int e = 0; e < kEdges; ++e, ++at) {
                double d[3];
                edge(e, j, d);
                for (int k = 0; k < 3; ++k) to[3 + k] += lambda[at] * d[k];
            }
        }
    }

    const PlanCall* o = nullptr;
    int nv = 0, late = 0, unknowns = 0;
    const double *v = nullptr, *a_des = nullptr, *friction = nullptr;
    double *a = nullptr, *told = nullptr;
    double firmly[9] = {}, miss = 0, mass = 0;
    Stance stance;
    MomentumWish wish;
    RowSet hard, easy;
    Basis basis;
    Room<double> spun, given, base, P, caps, lambda;
};

inline void plan_copies(const PlanCall& call, std::int64_t begin, std::int64_t end) {
    static thread_local Planner planner;
    for (std::int64_t i = begin; i < end; ++i) planner.plan(call, i);
}

}  // namespace poise::inline POISE_ISA
