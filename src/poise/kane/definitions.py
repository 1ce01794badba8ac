"""Named intermediate results: Kane and Levinson's Z's.

Everything that is used more than once gets a name. Without names the expressions of a tree double
with every body; with them each stays a line long.
"""

from __future__ import annotations

import sympy

from poise.kane.vectors import AXES, Expr, Mat, Vec, is_simple


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
