// Least squares with equality constraints, by orthonormalizing the rows one after another.
//
//     min |x|^2 + |E x - e|^2   subject to   C x = d
//
// The rows of C become Q (modified Gram-Schmidt with pivoting, each row twice): C = L Q. Rows
// below the rank are redundant or contradict the others. The rows of E, with a unit of their own
// beside each, [E | 1], follow: what is left of them project_out Q is L [V | U], and with G that
// part of E
//     1 + G G^T = L L^T,   V^T V = G^T (1 + G G^T)^-1 G,
// so that the condition number of the weights is not squared. Then x = Q^T u + V^T z, L z = e - E
// Q^T u, and K^-1 = 1 - Q^T Q - V^T V is the compliance of x. The reference implementation in
// Python, poise.reference.balance, uses LAPACK.
#pragma once

#include <cmath>
#include <cstring>

#include "poise/scratch.hpp"

namespace poise::inline POISE_ISA {

#if defined(__AVX512F__)
using Wide = Pack<double, 8>;
#elif defined(__AVX2__)
using Wide = Pack<double, 4>;
#else
using Wide = Pack<double, 2>;
#endif
constexpr int kWide = static_cast<int>(sizeof(Wide) / sizeof(double));

POISE_INLINE Wide wide_at(const double* p) {
    Wide r;
    std::memcpy(&r.x, p, sizeof r.x);
    return r;
}

inline double dot(const double* a, const double* b, int n) {
    Wide s(0.0), t(0.0);
    int i = 0;
    for (; i + 2 * kWide <= n; i += 2 * kWide) {
        s = s + wide_at(a + i) * wide_at(b + i);
        t = t + wide_at(a + i + kWide) * wide_at(b + i + kWide);
    }
    s = s + t;
    double sum = 0;
    for (int k = 0; k < kWide; ++k) sum += get(s, k);
    for (; i < n; ++i) sum += a[i] * b[i];
    return sum;
}

// y += by x
inline void add(double by, const double* x, double* y, int n) {
    int i = 0;
    const Wide f(by);
    for (; i + kWide <= n; i += kWide) {
        const Wide r = wide_at(y + i) + f * wide_at(x + i);
        std::memcpy(y + i, &r.x, sizeof r.x);
    }
    for (; i < n; ++i) y[i] += by * x[i];
}

// A buffer that grows and is not freed. (Code of a std::vector<double> would be shared between
// instruction sets.)
template <class T>
class Workspace {
  public:
    void resize(std::size_t count) {
        if (count > store_.size()) {
            Buffer<T> old;
            old.swap(store_);
            store_.resize(2 * count);
            for (std::size_t k = 0; k < size_; ++k) store_[k] = old[k];
        }
        size_ = count;
    }
    void assign(std::size_t count, T value) {
        resize(count);
        for (std::size_t k = 0; k < count; ++k) store_[k] = value;
    }
    std::size_t size() const { return size_; }
    T* data() { return store_.data(); }
    const T* data() const { return store_.data(); }
    T& operator[](std::size_t k) { return store_[k]; }
    const T& operator[](std::size_t k) const { return store_[k]; }

  private:
    Buffer<T> store_;
    std::size_t size_ = 0;
};

class ConstrainedLeastSquares {
  public:
    // starts a problem in n unknowns with at most so many constraints and objectives
    void begin(int n, int constraints, int objectives) {
        n_ = n;
        constraints_ = objectives_ = 0;
        capacity_ = objectives;
        Q_.resize(static_cast<std::size_t>(constraints) * n);
        V_.resize(static_cast<std::size_t>(objectives) * n);
        U_.assign(static_cast<std::size_t>(objectives) * objectives, 0);
        z_.resize(objectives);
        x_.assign(n, 0);
    }

    const double* x() const { return x_.data(); }

    // Adds m constraints C x = d; rows smaller than `rank` times the largest do not count. Returns
    // the residual of the constraints, which is 0 unless they contradict each other.
    double constrain(double* C, const double* d, int m, double rank) {
        if (!m) return 0;
        L_.assign(static_cast<std::size_t>(m) * m, 0);
        order_.resize(m);
        for (int i = 0; i < m; ++i) order_[i] = i;
        double first = 0;
        for (int r = 0; r < m; ++r) {
            int best = r;
            double most = -1;
            for (int i = r; i < m; ++i) {
                const double* row = C + order_[i] * n_;
                const double size = dot(row, row, n_);
                if (size > most) most = size, best = i;
            }
            std::swap(order_[r], order_[best]);
            double* row = C + order_[r] * n_;
            double* L = L_.data() + order_[r] * m;
            for (int k = 0; k < r; ++k) L[k] += project_out(row, Q_.data() + k * n_);
            const double size = std::sqrt(dot(row, row, n_));
            if (r == 0) first = size;
            if (!(size > rank * first)) break;
            double* q = Q_.data() + r * n_;
            for (int k = 0; k < n_; ++k) q[k] = row[k] / size;
            L[r] = size;
            for (int i = r + 1; i < m; ++i)
                L_[order_[i] * m + r] = project_out(C + order_[i] * n_, q);
            constraints_ = r + 1;
        }
        return solve_constraints(d, m);
    }

    // adds the objective |E x - e|^2
    void add_objective(const double* E, double e) {
        double* v = V_.data() + objectives_ * n_;
        double* u = U_.data() + objectives_ * capacity_;
        std::memcpy(v, E, n_ * sizeof(double));
        double left = e - dot(E, x_.data(), n_);
        for (int twice = 0; twice < 2; ++twice)
            for (int k = 0; k < constraints_; ++k) project_out(v, Q_.data() + k * n_);
        u[objectives_] = 1;
        for (int twice = 0; twice < 2; ++twice)
            for (int j = 0; j < objectives_; ++j) {
                const double *a = V_.data() + j * n_, *b = U_.data() + j * capacity_;
                const double by = dot(v, a, n_) + dot(u, b, j + 1);
                add(-by, a, v, n_);
                add(-by, b, u, j + 1);
                left -= by * z_[j];
            }
        const double size = std::sqrt(dot(v, v, n_) + dot(u, u, objectives_ + 1));
        for (int k = 0; k < n_; ++k) v[k] /= size;
        for (int k = 0; k <= objectives_; ++k) u[k] /= size;
        z_[objectives_++] = left / size;
    }

    // computes x, after the last objective
    void finish() {
        for (int k = 0; k < objectives_; ++k) add(z_[k], V_.data() + k * n_, x_.data(), n_);
    }

    // E K^-1: the direction of least cost that moves E x
    void compliance(const double* E, double* out) const {
        std::memcpy(out, E, n_ * sizeof(double));
        for (int k = 0; k < constraints_; ++k)
            add(-dot(E, Q_.data() + k * n_, n_), Q_.data() + k * n_, out, n_);
        for (int k = 0; k < objectives_; ++k)
            add(-dot(E, V_.data() + k * n_, n_), V_.data() + k * n_, out, n_);
    }

  private:
    double project_out(double* row, const double* q) const {
        const double by = dot(row, q, n_);
        add(-by, q, row, n_);
        return by;
    }

    // x_ = Q^T u with L u = d, in the sense of least squares where rows contradict each other
    double solve_constraints(const double* d, int m) {
        const int r = constraints_;
        if (!r) {
            double most = 0;
            for (int i = 0; i < m; ++i) most = std::fmax(most, std::fabs(d[i]));
            return most;
        }
        u_.assign(r, 0);
        if (r == m) {
            for (int i = 0; i < m; ++i) {
                const double* L = L_.data() + order_[i] * m;
                u_[i] = (d[order_[i]] - dot(L, u_.data(), i)) / L[i];
            }
        } else {
            least_squares(d, m, r);
        }
        double residual = 0;
        for (int i = 0; i < m && r < m; ++i)
            residual = std::fmax(residual, std::fabs(dot(L_.data() + i * m, u_.data(), r) - d[i]));
        for (int k = 0; k < r; ++k) add(u_[k], Q_.data() + k * n_, x_.data(), n_);
        return residual;
    }

    // min |L u - d|, the columns of L made orthonormal
    void least_squares(const double* d, int m, int r) {
        column_.resize(static_cast<std::size_t>(r) * m);
        R_.assign(static_cast<std::size_t>(r) * r, 0);
        rest_.resize(m);
        std::memcpy(rest_.data(), d, m * sizeof(double));
        for (int k = 0; k < r; ++k) {
            double* a = column_.data() + k * m;
            for (int i = 0; i < m; ++i) a[i] = L_[i * m + k];
            for (int twice = 0; twice < 2; ++twice)
                for (int j = 0; j < k; ++j) {
                    const double by = dot(a, column_.data() + j * m, m);
                    add(-by, column_.data() + j * m, a, m);
                    R_[j * r + k] += by;
                }
            const double size = std::sqrt(dot(a, a, m));
            R_[k * r + k] = size;
            for (int i = 0; i < m; ++i) a[i] /= size;
            u_[k] = dot(a, rest_.data(), m);
            add(-u_[k], a, rest_.data(), m);
        }
        for (int k = r - 1; k >= 0; --k) {
            for (int j = k + 1; j < r; ++j) u_[k] -= R_[k * r + j] * u_[j];
            u_[k] /= R_[k * r + k];
        }
    }

    int n_ = 0, constraints_ = 0, objectives_ = 0, capacity_ = 0;
    Workspace<double> Q_, V_, U_, L_, z_, x_, u_, column_, R_, rest_;
    Workspace<int> order_;
};

// A x = b for a symmetric, positive definite A of n <= 6 rows, by Cholesky; A and b are lost, and b
// is x. False if it is not positive definite.
inline bool solve_small(double* A, double* b, int n) {
    for (int i = 0; i < n; ++i) {
        for (int j = 0; j <= i; ++j) {
            double s = A[i * n + j];
            for (int k = 0; k < j; ++k) s -= A[i * n + k] * A[j * n + k];
            if (i == j && !(s > 0)) return false;
            A[i * n + j] = i == j ? std::sqrt(s) : s / A[j * n + j];
        }
    }
    for (int i = 0; i < n; ++i) {
        for (int k = 0; k < i; ++k) b[i] -= A[i * n + k] * b[k];
        b[i] /= A[i * n + i];
    }
    for (int i = n - 1; i >= 0; --i) {
        for (int k = i + 1; k < n; ++k) b[i] -= A[k * n + i] * b[k];
        b[i] /= A[i * n + i];
    }
    return true;
}

}  // namespace poise::inline POISE_ISA
