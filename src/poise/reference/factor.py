"""Three ways to solve A x = b for A = M + K, the baselines of linear-time stable PD.

DF, dense factorization: A = C C' (Cholesky), forward and back substitution; O(n³).

SF, sparse factorization (RBDA 6.4, tables 6.3 and 6.5): A = L' D L keeps the branches of the
tree: L_ij is zero unless j is an ancestor of i, so elimination from the leaves to the root
fills nothing in; O(n d²) with d the depth. The tree is that of the single degrees of freedom,
the *expanded parent array*: inside one joint each hangs from the one before; the first hangs
from the last one of the body that carries the joint.

PCG, conjugate gradients preconditioned by the diagonal (Jacobi): with P = diag A, repeat
    x += alpha p,  r -= alpha A p,  z = P^-1 r,  p <- z + beta p.
"""

from __future__ import annotations

import numpy as np

from poise.model.character import Character
from poise.reference.spatial import Array
from poise.reference.tree import WORLD, build_tree


def solve_dense(A: Array, b: Array) -> Array:
    """x in A x = b by Cholesky's factorization of the full matrix (DF)."""
    C = np.linalg.cholesky(A)
    n = len(b)
    y, x = np.zeros(n), np.zeros(n)
    for i in range(n):
        y[i] = (b[i] - C[i, :i] @ y[:i]) / C[i, i]
    for i in reversed(range(n)):
        x[i] = (y[i] - C[i + 1 :, i] @ x[i + 1 :]) / C[i, i]
    return x


def solve_sparse(character: Character, A: Array, b: Array) -> Array:
    """x in A x = b by the factorization A = L' D L along the branches of the tree (SF)."""
    parent = expanded_parents(character)
    L, D = factor_sparse(parent, A)
    x = b.astype(float)
    # L' y = b, from the leaves
    for i in reversed(range(len(x))):
        path = _ancestors(parent, i)
        x[path] -= L[i, path] * x[i]
    x /= D
    # L x = y, from the root
    for i in range(len(x)):
        path = _ancestors(parent, i)
        x[i] -= L[i, path] @ x[path]
    return x


def factor_sparse(parent: list[int], A: Array) -> tuple[Array, Array]:
    """L, unit lower triangular, and the diagonal D with A = L' D L.

    Args:
        parent: Expanded parent array, shape (nv,).
        A: Symmetric, positive definite, with the sparsity of the tree, shape (nv, nv).
    """
    A = A.copy()
    for k in reversed(range(len(A))):
        path = _ancestors(parent, k)
        for n, i in enumerate(path):
            # row i loses its share of row k, where both have entries: from i to the root
            ratio = A[k, i] / A[k, k]
            A[i, path[n:]] -= ratio * A[k, path[n:]]
        A[k, path] /= A[k, k]
    return np.tril(A, -1) + np.eye(len(A)), np.diag(A).copy()


def solve_pcg(A: Array, b: Array, tolerance: float = 1e-13, iterations: int | None = None) -> Array:
    """x in A x = b by conjugate gradients with Jacobi preconditioning (PCG).

    Args:
        A: Symmetric, positive definite, shape (n, n).
        b: Right-hand side, shape (n,).
        tolerance: Stop when the residual has fallen to this fraction of b, both measured
            in the norm of the preconditioner, sqrt(r' P^-1 r).
        iterations: At most so many; 10 n unless given.
    """
    P = np.diag(A)
    x = np.zeros(len(b))
    r = b.astype(float)
    z = r / P
    p = z
    rz = r @ z
    goal = tolerance**2 * rz
    for _ in range(10 * len(b) if iterations is None else iterations):
        if rz <= goal:
            break
        Ap = A @ p
        alpha = rz / (p @ Ap)
        x = x + alpha * p
        r = r - alpha * Ap
        z = r / P
        rz, rz_before = r @ z, rz
        p = z + (rz / rz_before) * p
    return x


def expanded_parents(character: Character) -> list[int]:
    """For each degree of freedom the one it hangs from, or -1; shape (nv,)."""
    tree = build_tree(character)
    parent: list[int] = []
    for body in tree.bodies:
        carrier = WORLD if body.parent == WORLD else tree.bodies[body.parent].v.stop - 1
        parent += [carrier, *range(body.v.start, body.v.stop - 1)]
    return parent


def _ancestors(parent: list[int], i: int) -> list[int]:
    """The degrees of freedom on the way from i to the root, nearest first, without i."""
    path = []
    while parent[i] != WORLD:
        i = parent[i]
        path.append(i)
    return path
