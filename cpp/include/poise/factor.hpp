// The baselines of yin2020: solve (M + K) x = b with the matrix in hand.
//     DF   dense Cholesky                          O(n^3)
//     SF   Featherstone's sparse L'DL (no fill-in) O(n d^2)
//     PCG  conjugate gradients, Jacobi-preconditioned
// A is (n, n), row-major, and is overwritten by the factorisations.
#pragma once

#include "poise/pack.hpp"

namespace poise::inline POISE_ISA {

// A pivot below this fraction of its diagonal entry cannot be told from zero.
template <class S>
constexpr Element<S> factor_tolerance() {
    return sizeof(Element<S>) == 8 ? Element<S>(1e-14) : Element<S>(5e-7);
}

// A = L L' in the lower triangle; diagonal entries are kept inverted. singular holds the row of
// the first pivot that vanishes, -1 where there is none.
template <class S>
void dense_factor(int n, S* A, S& singular) {
    using T = Element<S>;
    singular = S(T(-1));
    for (int j = 0; j < n; ++j) {
        S* row = A + j * n;
        for (int i = 0; i < j; ++i) {
            S s = row[i];
            const S* other = A + i * n;
            for (int k = 0; k < i; ++k) s = s - row[k] * other[k];
            row[i] = s * other[i];
        }
        S d = row[j];
        for (int k = 0; k < j; ++k) d = d - row[k] * row[k];
        const auto fine = (S(factor_tolerance<S>()) * row[j] < d) | (S(T(-1)) < singular);
        singular = select(fine, singular, S(static_cast<T>(j)));
        row[j] = S(T(1)) / square_root(d);
    }
}

template <class S>
void dense_solve(int n, const S* A, S* x) {
    for (int i = 0; i < n; ++i) {
        S s = x[i];
        for (int k = 0; k < i; ++k) s = s - A[i * n + k] * x[k];
        x[i] = s * A[i * n + i];
    }
    for (int i = n - 1; i >= 0; --i) {
        x[i] = x[i] * A[i * n + i];
        for (int k = 0; k < i; ++k) x[k] = x[k] - A[i * n + k] * x[i];
    }
}

// A = L' D L along the branches (Featherstone, Rigid Body Dynamics Algorithms, table 6.3).
// parent[k] is the next degree of freedom towards the root, -1 at the end. diagonal (n) is room.
template <class S>
void sparse_factor(int n, const std::int32_t* parent, S* A, S* diagonal, S& singular) {
    using T = Element<S>;
    singular = S(T(-1));
    for (int k = 0; k < n; ++k) diagonal[k] = A[k * n + k];
    for (int k = n - 1; k >= 0; --k) {
        const S* row = A + k * n;
        const auto fine = (S(factor_tolerance<S>()) * diagonal[k] < row[k]) | (S(T(-1)) < singular);
        singular = select(fine, singular, S(static_cast<T>(k)));
        const S inv = S(T(1)) / row[k];
        for (int i = parent[k]; i >= 0; i = parent[i]) {
            const S a = row[i] * inv;
            S* target = A + i * n;
            for (int j = i; j >= 0; j = parent[j]) target[j] = target[j] - a * A[k * n + j];
            A[k * n + i] = a;
        }
    }
}

template <class S>
void sparse_solve(int n, const std::int32_t* parent, const S* A, S* x) {
    for (int i = n - 1; i >= 0; --i)
        for (int j = parent[i]; j >= 0; j = parent[j]) x[j] = x[j] - A[i * n + j] * x[i];
    for (int i = 0; i < n; ++i) {
        x[i] = x[i] / A[i * n + i];
        for (int j = parent[i]; j >= 0; j = parent[j]) x[i] = x[i] - A[i * n + j] * x[j];
    }
}

// x holds b on entry; work is (4, n). Ends when the residual, in the norm of the preconditioner,
// has fallen by the tolerance. A lane that has converged no longer moves; lanes that have not come
// within a thousand tolerances after the most iterations come back marked.
template <class S>
void conjugate_gradient(int n, const S* A, S* x, S* work, Element<S> tolerance, int most,
                        MaskOf<S>& bad) {
    using T = Element<S>;
    S *r = work, *z = work + n, *p = work + 2 * n, *Ap = work + 3 * n;
    S rz(T(0)), size(T(0));
    for (int i = 0; i < n; ++i) {
        r[i] = x[i];
        x[i] = S(T(0));
        z[i] = r[i] / A[i * n + i];
        p[i] = z[i];
        rz = rz + r[i] * z[i];
    }
    size = rz;
    const S limit = S(tolerance * tolerance);
    for (int step = 0; step < most; ++step) {
        const auto open = limit * size < rz;
        if (!any(open)) return;
        S pAp(T(0));
        for (int i = 0; i < n; ++i) {
            S s(T(0));
            for (int k = 0; k < n; ++k) s = s + A[i * n + k] * p[k];
            Ap[i] = s;
            pAp = pAp + p[i] * s;
        }
        const S step_size = select(open, rz / pAp, S(T(0)));
        S next(T(0));
        for (int i = 0; i < n; ++i) {
            x[i] = x[i] + step_size * p[i];
            r[i] = r[i] - step_size * Ap[i];
            z[i] = r[i] / A[i * n + i];
            next = next + r[i] * z[i];
        }
        const S beta = select(open, next / rz, S(T(0)));
        for (int i = 0; i < n; ++i) p[i] = select(open, z[i] + beta * p[i], p[i]);
        rz = select(open, next, rz);
    }
    bad = bad | negate(rz <= S(T(1e6)) * limit * size);
}

}  // namespace poise::inline POISE_ISA
