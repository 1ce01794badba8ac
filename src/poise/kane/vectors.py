"""Vectors and 3x3 matrices of SymPy expressions as plain tuples: what the derivation needs.

SymPy's own Matrix checks and copies at every step; tuples keep ten bodies a matter of a second.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import sympy

Expr = Any  # a SymPy expression: SymPy has no types of its own
Vec = tuple[Expr, Expr, Expr]
Mat = tuple[Vec, Vec, Vec]  # by rows

AXES = "xyz"
ZERO: Vec = (sympy.S.Zero,) * 3
ONE: Mat = tuple(  # type: ignore[assignment]
    tuple(sympy.S.One if i == j else sympy.S.Zero for j in range(3)) for i in range(3)
)


def exact(x: Any) -> Expr:
    """A number or expression for SymPy; whole numbers exactly, so that zeros and ones vanish."""
    if isinstance(x, (float, int)) or hasattr(x, "dtype"):
        x = float(x)
        return sympy.Integer(int(x)) if x.is_integer() else sympy.Float(x)
    return sympy.sympify(x)


def vector(x: Iterable[Any]) -> Vec:
    """Three numbers or expressions as a vector."""
    a, b, c = (exact(value) for value in x)
    return a, b, c


def matrix(rows: Iterable[Iterable[Any]]) -> Mat:
    """Three rows as a matrix."""
    a, b, c = (vector(row) for row in rows)
    return a, b, c


def is_zero(a: Vec) -> bool:
    """Whether every component is zero as written."""
    return all(x == 0 for x in a)


def product(x: Expr, y: Expr) -> Expr:
    """x y; zeros and ones do not trouble SymPy."""
    if x is ZERO[0] or y is ZERO[0]:
        return ZERO[0]
    if x is ONE[0][0]:
        return y
    return x if y is ONE[0][0] else x * y


def total(terms: Iterable[Expr]) -> Expr:
    """The sum of some terms."""
    found = [x for x in terms if x is not ZERO[0]]
    return sympy.Add(*found) if len(found) > 1 else found[0] if found else ZERO[0]


def dot(a: Sequence[Expr], b: Sequence[Expr]) -> Expr:
    """a · b."""
    return total(product(x, y) for x, y in zip(a, b, strict=True))


def cross(a: Vec, b: Vec) -> Vec:
    """a x b."""
    return (
        product(a[1], b[2]) - product(a[2], b[1]),
        product(a[2], b[0]) - product(a[0], b[2]),
        product(a[0], b[1]) - product(a[1], b[0]),
    )


def add(*vectors: Vec) -> Vec:
    """The sum."""
    x, y, z = (total(parts) for parts in zip(*vectors, strict=True))
    return x, y, z


def scale(k: Expr, a: Vec) -> Vec:
    """k a."""
    return product(k, a[0]), product(k, a[1]), product(k, a[2])


def subtract(a: Vec, b: Vec) -> Vec:
    """a - b."""
    x, y, z = (x if y is ZERO[0] else x - y for x, y in zip(a, b, strict=True))
    return x, y, z


def is_simple(expr: Expr) -> bool:
    """Whether it is a number, a symbol, or the negative of one."""
    return bool(
        expr.is_Atom
        or (expr.is_Mul and len(expr.args) == 2 and expr.args[0] == -1 and expr.args[1].is_Atom)
    )


def apply(A: Mat, x: Vec) -> Vec:
    """A x."""
    return dot(A[0], x), dot(A[1], x), dot(A[2], x)


def transpose(A: Mat) -> Mat:
    """A'."""
    x, y, z = zip(*A, strict=True)
    return x, y, z


def multiply(A: Mat, B: Mat) -> Mat:
    """A B."""
    columns = transpose(B)
    a, b, c = (tuple(dot(row, column) for column in columns) for row in A)
    return a, b, c


def quat_matrix(quat: Sequence[Expr]) -> Mat:
    """Rotation matrix of a unit quaternion w x y z."""
    w, x, y, z = quat
    return (
        (1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
        (2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
        (2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)),
    )


def axis_matrix(axis: Vec, angle: Expr) -> Mat:
    """Rotation by an angle about a unit axis: cos 1 + sin [s]x + (1 - cos) s s'."""
    c, s = sympy.cos(angle), sympy.sin(angle)
    x, y, z = axis
    turn = ((0, -z, y), (z, 0, -x), (-y, x, 0))
    return matrix(
        [c * ONE[i][j] + s * turn[i][j] + (1 - c) * axis[i] * axis[j] for j in range(3)]
        for i in range(3)
    )


# ---- definitions: named intermediate results, Kane and Levinson's Z's
#
# Everything that is used more than once gets a name. Without names the expressions of a tree double
# with every body; with them each stays a line long.


class Definitions:
    """Named expressions; `of` has them in an order in which each needs only those before it."""

    def __init__(self) -> None:
        self.of: dict[Expr, Expr] = {}
        self._symbols: dict[Expr, Expr] = {}
        self._names: set[str] = set()

    def __len__(self) -> int:
        return len(self.of)

    def symbol(self, name: str) -> Expr:
        """A new symbol with that name, or with a number after it where the name is taken."""
        fresh, k = name, 2
        while fresh in self._names:
            fresh, k = f"{name}_{k}", k + 1
        self._names.add(fresh)
        return sympy.Symbol(fresh)

    def keep(self, name: str, expr: Expr) -> Expr:
        """The symbol of an expression; numbers, symbols and their negatives stay as they are."""
        if is_simple(expr):
            return expr
        known = self._symbols.get(expr)
        if known is None:
            known = self._symbols[expr] = self.symbol(name)
            self.of[known] = expr
        return known

    def vector(self, name: str, vector: Vec) -> Vec:
        """`keep` for three components."""
        x, y, z = (self.keep(f"{name}_{k}", e) for k, e in zip(AXES, vector, strict=True))
        return x, y, z

    def matrix(self, name: str, matrix: Mat) -> Mat:
        """`keep` for nine entries."""
        a, b, c = (self.vector(f"{name}_{k}", row) for k, row in zip(AXES, matrix, strict=True))
        return a, b, c

    def written_out(self, expr: Expr) -> Expr:
        """An expression or SymPy matrix with the meaning of every name put in."""
        needed: set[Expr] = set()
        stack = list(expr.free_symbols)
        while stack:
            symbol = stack.pop()
            if symbol in self.of and symbol not in needed:
                needed.add(symbol)
                stack += self.of[symbol].free_symbols
        whole: dict[Expr, Expr] = {}
        for symbol, meaning in self.of.items():
            if symbol in needed:
                whole[symbol] = meaning.xreplace(whole)
        return expr.xreplace(whole)
