"""Equations as programs: straight lines of assignments from arrays to an array.

A program takes only the definitions that its outputs need, shares what is left of common parts,
and puts every line after those that it uses. What it reads and writes:

    speeds            q, v            -> u        speeds of the joints' own velocities
    velocities        q, u            -> v        and back, v = Y u
    mass_matrix       q               -> M
    bias              q, u            -> E
    actuation         q, tau          -> T        T = Y' tau
    inverse_dynamics  q, v, a         -> tau      in the character's own coordinates
    accelerations     q, u, du        -> a        of the joints, dv/dt
    partial_velocities  q             -> J        [v_r; w_r] of every body, (bodies, 6, nv)

`bias` and `inverse_dynamics` read `external` besides where the equations have it, and all read
`parameters` where the tree leaves some open.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import sympy

from poise.errors import PoiseError, check_known
from poise.kane.equations import Equations
from poise.kane.vectors import ZERO, Expr, is_simple

READS = {
    "speeds": ("q", "v"),
    "velocities": ("q", "u"),
    "mass_matrix": ("q",),
    "bias": ("q", "u"),
    "actuation": ("q", "tau"),
    "inverse_dynamics": ("q", "v", "a"),
    "accelerations": ("q", "u", "du"),
    "partial_velocities": ("q",),
}
WRITES = dict(zip(READS, ("u", "v", "M", "E", "T", "tau", "a", "J"), strict=True))
FORCED = ("bias", "inverse_dynamics")

_C_WORDS = (
    *("auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else"),
    *("enum", "extern", "float", "for", "goto", "if", "inline", "int", "long", "register"),
    *("restrict", "return", "short", "signed", "sizeof", "static", "struct", "switch"),
    *("typedef", "union", "unsigned", "void", "volatile", "while"),
)
_OURS = ["numpy", "lead", "sin", "cos", "sqrt", "size_t"]
_ARRAYS = [f"{x}_in" for x in ("q", "u", "v", "a", "du", "tau", "external", "parameters")]
RESERVED = {*keyword.kwlist, *_C_WORDS, *_OURS, *_ARRAYS, *(f"{x}_out" for x in WRITES.values())}
"""Names that the text of a program has other uses for."""


@dataclass(frozen=True)
class Program:
    """One function as straight lines."""

    name: str
    inputs: dict[str, tuple[Expr, ...]]  # by the name of the array: the symbol of each entry
    lines: tuple[tuple[Expr, Expr], ...]  # symbol and meaning, in order
    result: str  # name of the array that is written
    shape: tuple[int, ...]
    outputs: tuple[Expr, ...]  # one for each entry, row by row


def programs(equations: Equations, names: Iterable[str] | None = None) -> list[Program]:
    """The programs of some equations.

    Args:
        equations: The equations.
        names: Which of them; all unless given.
    """
    chosen = list(READS if names is None else names)
    for name in chosen:
        check_known("function", name, READS)
    # NumPy and C text come from the same programs: they are made once
    kept: dict[str, Program] = equations.__dict__.setdefault("_programs", {})
    for name in chosen:
        if name not in kept:
            kept[name] = _program(equations, name)
    return [kept[name] for name in chosen]


def _program(equations: Equations, name: str) -> Program:
    outputs, shape, meanings = _outputs(equations, name)
    arrays = {key: getattr(equations, key) for key in READS[name]}
    if name in FORCED and equations.external:
        arrays["external"] = tuple(x for row in equations.external for x in row)
    if equations.parameters:
        arrays["parameters"] = _checked(equations.parameters)
    known = {symbol for row in arrays.values() for symbol in row}
    lines, outputs = straight_lines(meanings, outputs, known)
    return Program(name, arrays, lines, WRITES[name], shape, outputs)


def _outputs(
    equations: Equations, name: str
) -> tuple[tuple[Expr, ...], tuple[int, ...], Mapping[Expr, Expr]]:
    """Entries of the result, its shape, and what the symbols in them mean."""
    n, of = equations.tree.nv, equations.definitions.of
    if name == "mass_matrix":
        return tuple(equations.M), (n, n), of
    if name == "bias":
        return tuple(equations.E), (n,), of
    if name == "velocities":
        return tuple(equations.Y * sympy.Matrix(equations.u)), (n,), of
    if name == "actuation":
        return tuple(equations.Y.T * sympy.Matrix(equations.tau)), (n,), of
    if name == "partial_velocities":
        return _partials(equations), (len(equations.tree.bodies), 6, n), of
    if name == "accelerations":
        return tuple(equations.accelerations), (n,), of
    # the others start from the joints' own velocities: the speeds are results
    speeds = equations.speeds
    if name == "speeds":
        return tuple(speeds[u] for u in equations.u), (n,), of | speeds
    torques = tuple(equations.inverse_dynamics)
    return torques, (n,), of | speeds | equations.speed_rates


def _checked(parameters: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """Open symbols whose names can stand in a program."""
    for symbol in parameters:
        name = str(symbol.name)
        if not re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII) or name in RESERVED:
            raise PoiseError(
                f"the symbol {name!r:.80} cannot be a name in Python or C; "
                "use letters, digits and underscores, such as m_1"
            )
    return parameters


def _partials(equations: Equations) -> tuple[Expr, ...]:
    """Rows v_r, then w_r, of every body, column by speed."""
    kin, found = equations.kinematics, []
    for partials in zip(kin.v_r, kin.w_r, strict=True):
        for by_speed in partials:
            columns = [by_speed.get(r, ZERO) for r in range(equations.tree.nv)]
            found += [column[k] for k in range(3) for column in columns]
    return tuple(found)


def straight_lines(
    meanings: Mapping[Expr, Expr], outputs: tuple[Expr, ...], known: set[Expr]
) -> tuple[tuple[tuple[Expr, Expr], ...], tuple[Expr, ...]]:
    """The lines that some outputs need, common parts shared, each after those it uses.

    Args:
        meanings: What symbols stand for.
        outputs: The expressions to be computed.
        known: Symbols that are given.

    Returns:
        The lines, and the outputs in terms of them.
    """
    needed = _needed(meanings, outputs, known)
    lines, outputs = _shared({symbol: meanings[symbol] for symbol in needed}, outputs, known)
    order = _needed(lines, outputs, known)
    return tuple((symbol, lines[symbol]) for symbol in order), outputs


def _shared(
    lines: dict[Expr, Expr], outputs: tuple[Expr, ...], known: set[Expr]
) -> tuple[dict[Expr, Expr], tuple[Expr, ...]]:
    """The same with a line of its own for every part that occurs more than once.

    SymPy's cse does this and also looks for sums and products that overlap. The definitions have
    shared most already, and on ten bodies the search for overlaps takes longer than all else.
    """
    seen: set[Expr] = set()
    repeated: set[Expr] = set()
    stack = [*lines.values(), *outputs]
    while stack:
        expr = stack.pop()
        if is_simple(expr):
            continue
        if expr in seen:
            repeated.add(expr)
            continue
        seen.add(expr)
        stack += expr.args

    taken = known.union(lines)
    fresh = (z for z in sympy.numbered_symbols("z") if z not in taken)
    symbols = {meaning: symbol for symbol, meaning in lines.items()}
    found: dict[Expr, Expr] = {}

    def rebuilt(expr: Expr, whole: bool = False) -> Expr:
        """The expression in terms of shared parts; with `whole` it is not replaced itself."""
        if expr.is_Atom:
            return expr
        if not whole and expr in repeated:
            if expr not in symbols:
                symbols[expr] = next(fresh)
                found[symbols[expr]] = rebuilt(expr, whole=True)
            return symbols[expr]
        args = [rebuilt(x) for x in expr.args]
        same = all(x is y for x, y in zip(args, expr.args, strict=True))
        return expr if same else expr.func(*args, evaluate=False)

    for symbol, meaning in lines.items():
        found[symbol] = rebuilt(meaning, whole=True)
    return found, tuple(rebuilt(x) for x in outputs)


def _needed(meanings: Mapping[Expr, Expr], outputs: Iterable[Expr], known: set[Expr]) -> list[Expr]:
    """Symbols that the outputs need, each after those that its meaning needs."""
    done: dict[Expr, None] = {}
    stack = [(symbol, False) for x in outputs for symbol in _symbols(x)][::-1]
    while stack:
        symbol, ready = stack.pop()
        if symbol in known or symbol in done:
            continue
        if ready:
            done[symbol] = None
            continue
        stack.append((symbol, True))
        stack += [(x, False) for x in _symbols(meanings[symbol]) if x not in done]
    return list(done)


def _symbols(expr: Expr) -> list[Expr]:
    """Symbols of an expression, always in the same order."""
    return sorted(expr.free_symbols, key=lambda symbol: str(symbol.name))
