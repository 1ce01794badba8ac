// Bodies that rest on each other, solved to convergence by a semismooth Newton method.
//
// Gauss-Seidel passes what one end of a stack feels to the other one body per sweep; twenty boxes
// would need hundreds. Here the contacts of an island give way a little, R = 1e-5 of their own
// response, about the impulses found so far (a proximal step, or method of multipliers):
//     l = P_K(l_old - (v + mu |v_t| n) / R),
// P_K the projection onto the friction cone, |v_t| of the round before (De Saxce). In half-solved
// coordinates (half_solve.hpp) that is the minimum of a convex function,
//     phi(u) = |u|^2 / 2 + sum of R |l|^2 / 2,    phi' = u - Y l,    phi'' = 1 + Y A Y',
// A the derivative of -l by v, found by Newton's method with an exact line search. A few rounds,
// and l is l_old: contacts no longer give way, bodies neither sink nor creep. phi'' couples bodies
// that touch: an envelope (skyline) Cholesky factorisation costs a stack as many operations as it
// has boxes, and an island of all against all no more than a dense one.
//
// In double, for one copy at a time, whatever the world's precision: few copies come here, and
// those that do leave with impulses that the next steps start from without a single sweep.
#pragma once

#include <cmath>
#include <cstring>

#include "poise/scratch.hpp"

namespace poise::inline POISE_ISA {

// Contacts faster than this before the step do not rest [m/s].
constexpr double kResting = 0.1;
// How much contacts give way, of their own response.
constexpr double kSoft = 1e-5;
// Of the tolerance at rest: the next steps start from here.
constexpr double kTight = 0.1;
constexpr int kProximalRounds = 12;
constexpr double kStalled = 0.7;
constexpr int kNewtonSteps = 50;
// Islands whose factorisation takes more multiplications are left to Gauss-Seidel.
constexpr double kNewtonWork = 5e4;
// Of all factorisations of a solve.
constexpr double kNewtonBudget = 1e6;

// A contact or a joint's bound of an island.
struct NewtonRow {
    std::int32_t slot;         // of the half solve
    bool joint;                // one direction instead of three
    std::int32_t first, size;  // numbers of y, in index and y
    double v[3];               // velocity that is missing without impulses
    double l[3], old[3];
    double R, mu, slip;       // slip: |v_t| of the round before
    double soft, slick;       // of the row itself
    double now[3], along[3];  // velocity at u, and its change along the search direction
};

struct NewtonScratch {
    Buffer<NewtonRow> row{16};
    Buffer<std::int32_t> index{64};  // which unknown each number of y belongs to
    Buffer<double> y{192};           // three of each
    Buffer<std::int32_t> unknown;    // (layout.size) of a place in u; -1: none
    Buffer<std::int32_t> first{16};  // first column of a row's envelope
    Buffer<std::int64_t> begin{16};  // where a row's numbers lie: L(i, j) at begin[i] + j
    Buffer<double> L{256}, u{16}, g{16}, d{16};
    Buffer<std::int32_t> island;     // (nb) union-find over the roots
    Buffer<std::uint8_t> state{16};  // (nb) of an island
    NewtonRow probe;
    // bodies that touch each other; a contact in motion; a contact that is not solved
    enum State : std::uint8_t { joined = 1, moving = 2, open = 4 };
    int rows = 0, unknowns = 0, numbers = 0;

    explicit NewtonScratch(int nb, int size) : unknown(size), island(nb) {}
};

// l = P_K(z): inside, outside or on the rim of the cone; A = dP/dz, symmetric.
inline void project_on_cone(double mu, const double* z, double* l, double (*A)[3]) {
    for (int i = 0; i < 3; ++i)
        for (int j = 0; A && j < 3; ++j) A[i][j] = 0;
    const double t = std::sqrt(z[1] * z[1] + z[2] * z[2]);
    if (z[0] >= 0 && t <= mu * z[0]) {
        for (int i = 0; i < 3; ++i) {
            l[i] = z[i];
            if (A) A[i][i] = 1;
        }
        return;
    }
    if (mu * t <= -z[0]) {
        l[0] = l[1] = l[2] = 0;
        return;
    }
    const double k = 1 / (1 + mu * mu), s = (z[0] + mu * t) * k;
    const double d[2] = {z[1] / t, z[2] / t};
    l[0] = s;
    l[1] = mu * s * d[0];
    l[2] = mu * s * d[1];
    if (!A) return;
    const double e[3] = {1, mu * d[0], mu * d[1]}, turn = mu * s / t;
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j) A[i][j] = k * e[i] * e[j];
    A[1][1] += turn * d[1] * d[1];
    A[1][2] -= turn * d[0] * d[1];
    A[2][1] -= turn * d[0] * d[1];
    A[2][2] += turn * d[0] * d[0];
}

class Newton {
  public:
    explicit Newton(NewtonScratch& scratch) : s(scratch) {}

    // Impulses of the rows, until no velocity is off by more than tolerance, or rounds no longer
    // help. Returns whether they are better than those that it began with: the rows are only then
    // of use.
    bool solve(double tolerance) {
        lay_out();
        const double each = work();
        if (each > kNewtonWork) return false;
        left_ = static_cast<int>(kNewtonBudget / (each + 1));
        start();
        const double begin = off();
        double before = begin;
        for (int round = 0; round < kProximalRounds; ++round) {
            for (int k = 0; k < s.rows; ++k) {
                NewtonRow& a = s.row[k];
                for (int i = 0; i < 3; ++i) a.old[i] = a.l[i];
                a.slip = a.joint ? 0 : std::sqrt(a.now[1] * a.now[1] + a.now[2] * a.now[2]);
            }
            if (!minimise(tolerance)) return false;
            const double now = off();
            if (now < tolerance || (round > 1 && now > kStalled * before)) return now < begin;
            before = now;
        }
        return before < begin;
    }

  private:
    // Envelope of phi'': a row begins where the first of the unknowns that it shares a contact with
    // is.
    void lay_out() {
        const int n = s.unknowns;
        s.first.reserve(n);
        s.begin.reserve(n);
        s.u.reserve(n);
        s.g.reserve(n);
        s.d.reserve(n);
        for (int i = 0; i < n; ++i) s.first[i] = i;
        for (int k = 0; k < s.rows; ++k) {
            const NewtonRow& a = s.row[k];
            const std::int32_t* at = s.index.data() + a.first;
            std::int32_t least = at[0];
            for (int i = 1; i < a.size; ++i) least = at[i] < least ? at[i] : least;
            for (int i = 0; i < a.size; ++i)
                if (least < s.first[at[i]]) s.first[at[i]] = least;
        }
        std::int64_t used = 0;
        for (int i = 0; i < n; ++i) {
            s.begin[i] = used - s.first[i];
            used += i - s.first[i] + 1;
        }
        s.L.reserve(used + 4);
    }
    double work() const {
        double sum = 0;
        for (int i = 0; i < s.unknowns; ++i) {
            const double width = i - s.first[i] + 1;
            sum += 0.5 * width * width;
        }
        return sum;
    }
    // u = Y l, and velocities without impulses
    void start() {
        for (int i = 0; i < s.unknowns; ++i) s.u[i] = 0;
        for (int k = 0; k < s.rows; ++k) add_scaled(s.row[k], s.row[k].l, s.u.data());
        for (int k = 0; k < s.rows; ++k) {
            NewtonRow& a = s.row[k];
            double v[3];
            read(a, s.u.data(), v);
            for (int i = 0; i < 3; ++i) {
                a.now[i] = a.v[i];
                a.v[i] -= v[i];
            }
        }
    }
    void read(const NewtonRow& a, const double* u, double* v) const {
        v[0] = v[1] = v[2] = 0;
        const double* y = s.y.data() + 3 * a.first;
        const std::int32_t* at = s.index.data() + a.first;
        for (int i = 0; i < a.size; ++i, y += 3) {
            const double x = u[at[i]];
            v[0] += y[0] * x;
            v[1] += y[1] * x;
            v[2] += y[2] * x;
        }
    }
    void add_scaled(const NewtonRow& a, const double* l, double* u) const {
        const double* y = s.y.data() + 3 * a.first;
        const std::int32_t* at = s.index.data() + a.first;
        for (int i = 0; i < a.size; ++i, y += 3)
            u[at[i]] += y[0] * l[0] + y[1] * l[1] + y[2] * l[2];
    }
    // impulses at velocities now + t along, and dP/dz
    static void impulses(const NewtonRow& a, double t, double* l, double (*A)[3]) {
        const double inv = 1 / a.R;
        double z[3];
        for (int i = 0; i < 3; ++i) z[i] = a.old[i] - inv * (a.now[i] + t * a.along[i]);
        if (a.joint) {
            l[0] = z[0] > 0 ? z[0] : 0;
            l[1] = l[2] = 0;
            for (int i = 0; A && i < 3; ++i)
                for (int j = 0; j < 3; ++j) A[i][j] = i == 0 && j == 0 && z[0] > 0 ? 1 : 0;
            return;
        }
        z[0] -= inv * a.mu * a.slip;
        project_on_cone(a.mu, z, l, A);
    }

    bool minimise(double tolerance) {
        const int n = s.unknowns;
        for (int step = 0; step < kNewtonSteps; ++step) {
            if (left_-- <= 0) return false;
            // gradient and Hessian
            for (int i = 0; i < n; ++i) {
                s.g[i] = s.u[i];
                double* row = s.L.data() + s.begin[i];
                for (int j = s.first[i]; j < i; ++j) row[j] = 0;
                row[i] = 1;
            }
            double size = 0;
            for (int k = 0; k < s.rows; ++k) {
                NewtonRow& a = s.row[k];
                double A[3][3];
                for (int i = 0; i < 3; ++i) a.along[i] = 0;
                impulses(a, 0, a.l, A);
                const double minus[3] = {-a.l[0], -a.l[1], -a.l[2]};
                add_scaled(a, minus, s.g.data());
                add_outer(a, A);
            }
            for (int i = 0; i < n; ++i) size = std::fmax(size, std::fabs(s.g[i]));
            if (!(size < 1e300)) return false;
            if (!factor()) return false;
            for (int i = 0; i < n; ++i) s.d[i] = -s.g[i];
            back_substitute(s.d.data());
            double most = 0;
            for (int k = 0; k < s.rows; ++k) {
                NewtonRow& a = s.row[k];
                read(a, s.d.data(), a.along);
                for (int i = 0; i < 3; ++i) most = std::fmax(most, std::fabs(a.along[i]));
            }
            const double t = search();
            for (int i = 0; i < n; ++i) s.u[i] += t * s.d[i];
            for (int k = 0; k < s.rows; ++k) {
                NewtonRow& a = s.row[k];
                for (int i = 0; i < 3; ++i) a.now[i] += t * a.along[i];
            }
            if (t * most < 0.1 * tolerance) break;
        }
        for (int k = 0; k < s.rows; ++k) {
            NewtonRow& a = s.row[k];
            impulses(a, 0, a.l, nullptr);
        }
        // the impulses as they are now are what moves the bodies
        for (int i = 0; i < n; ++i) s.u[i] = 0;
        for (int k = 0; k < s.rows; ++k) add_scaled(s.row[k], s.row[k].l, s.u.data());
        for (int k = 0; k < s.rows; ++k) {
            NewtonRow& a = s.row[k];
            read(a, s.u.data(), a.now);
            for (int i = 0; i < 3; ++i) a.now[i] += a.v[i];
        }
        return true;
    }

    // Where phi along d is least: its derivative grows with t.
    double search() const {
        double uu = 0, ud = 0, dd = 0;
        for (int i = 0; i < s.unknowns; ++i) {
            uu += s.u[i] * s.u[i];
            ud += s.u[i] * s.d[i];
            dd += s.d[i] * s.d[i];
        }
        double low = 0, high = -1, t = 1;
        for (int step = 0; step < 20; ++step) {
            double slope = ud + t * dd, bend = dd, scale = std::fabs(ud) + t * dd;
            for (int k = 0; k < s.rows; ++k) {
                const NewtonRow& a = s.row[k];
                double l[3], A[3][3];
                impulses(a, t, l, A);
                for (int i = 0; i < 3; ++i) {
                    slope -= l[i] * a.along[i];
                    scale += std::fabs(l[i] * a.along[i]);
                    for (int j = 0; j < 3; ++j) bend += A[i][j] * a.along[i] * a.along[j] / a.R;
                }
            }
            if (std::fabs(slope) <= 1e-10 * scale) break;
            if (slope > 0) high = t;
            else low = t;
            double next = t - slope / bend;
            if (!(next > low) || (high > 0 && !(next < high)))
                next = high > 0 ? 0.5 * (low + high) : 2 * t;
            if (std::fabs(next - t) < 1e-9 * t) break;
            t = next;
        }
        return t;
    }

    // H += Y A Y' / R
    void add_outer(const NewtonRow& a, const double (*A)[3]) {
        const double inv = 1 / a.R;
        const double* y = s.y.data() + 3 * a.first;
        const std::int32_t* at = s.index.data() + a.first;
        for (int i = 0; i < a.size; ++i) {
            const double* p = y + 3 * i;
            double w[3];
            for (int j = 0; j < 3; ++j)
                w[j] = inv * (A[0][j] * p[0] + A[1][j] * p[1] + A[2][j] * p[2]);
            double* row = s.L.data() + s.begin[at[i]];
            for (int j = 0; j < a.size; ++j) {
                if (at[j] > at[i]) continue;
                const double* q = y + 3 * j;
                row[at[j]] += w[0] * q[0] + w[1] * q[1] + w[2] * q[2];
            }
        }
    }

    static double dot_product(const double* a, const double* b, int n) {
        Pack<double, 4> sum(0.0);
        int k = 0;
        for (; k + 4 <= n; k += 4) {
            Pack<double, 4> p, q;
            std::memcpy(&p.x, a + k, sizeof p.x);
            std::memcpy(&q.x, b + k, sizeof q.x);
            sum = sum + p * q;
        }
        double rest = 0;
        for (; k < n; ++k) rest += a[k] * b[k];
        return rest + ((sum.x[0] + sum.x[2]) + (sum.x[1] + sum.x[3]));
    }
    // in place; the diagonal holds inverses
    bool factor() {
        for (int i = 0; i < s.unknowns; ++i) {
            double* row = s.L.data() + s.begin[i];
            const int begin = s.first[i];
            for (int j = begin; j < i; ++j) {
                const double* other = s.L.data() + s.begin[j];
                const int from = s.first[j] > begin ? s.first[j] : begin;
                row[j] = (row[j] - dot_product(row + from, other + from, j - from)) * other[j];
            }
            const double pivot = row[i] - dot_product(row + begin, row + begin, i - begin);
            if (!(pivot > 0)) return false;
            row[i] = 1 / std::sqrt(pivot);
        }
        return true;
    }
    void back_substitute(double* x) const {
        for (int i = 0; i < s.unknowns; ++i) {
            const double* row = s.L.data() + s.begin[i];
            const int begin = s.first[i];
            x[i] = (x[i] - dot_product(row + begin, x + begin, i - begin)) * row[i];
        }
        for (int i = s.unknowns - 1; i >= 0; --i) {
            const double* row = s.L.data() + s.begin[i];
            x[i] *= row[i];
            for (int j = s.first[i]; j < i; ++j) x[j] -= row[j] * x[i];
        }
    }

    // Largest velocity by which a row is off: the natural residual of Coulomb's law.
    double off() const {
        double most = 0;
        for (int k = 0; k < s.rows; ++k) most = std::fmax(most, natural_residual(s.row[k]));
        return most;
    }

  public:
    // w |l - P_K(l - (v + mu |v_t| n) / w)| with w the row's own response, R / kSoft
    static double natural_residual(const NewtonRow& a) {
        const double w = a.R / kSoft, inv = 1 / w;
        if (a.joint) {
            const double z = a.l[0] - inv * a.now[0];
            return w * std::fabs(a.l[0] - (z > 0 ? z : 0));
        }
        const double slip = std::sqrt(a.now[1] * a.now[1] + a.now[2] * a.now[2]);
        const double z[3] = {a.l[0] - inv * (a.now[0] + a.mu * slip), a.l[1] - inv * a.now[1],
                             a.l[2] - inv * a.now[2]};
        double p[3];
        project_on_cone(a.mu, z, p, nullptr);
        double sum = 0;
        for (int i = 0; i < 3; ++i) sum += (a.l[i] - p[i]) * (a.l[i] - p[i]);
        return w * std::sqrt(sum);
    }

  private:
    int left_ = 0;  // factorisations
    NewtonScratch& s;
};

}  // namespace poise::inline POISE_ISA
