"""Tables of partial velocities and partial angular velocities, as K prints them (3.1 and 3.2).

The cell of speed r and body B is, with N_i the axes of the world and s_B the axis of a joint,

    w_r(B)  = N_i or s_B of the body's own speeds
            = w_r(P) - (w_r(P)·s_B) s_B    through a hinge
            = w_r(P)                       through a slide; a ball lets nothing through
    v_r(B*) = sum over the bodies X from the joint of r to B of w_r(X) x r_X + w_r(X) x p_Y
              with Y the next body on that way, and N_i or s of a speed that is linear

which for trees of balls are K 3.36 and 3.37. Arms of length zero are left out. What has passed a
hinge is called by its name, ω(r, X), after the cell in the table of partial angular velocities.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from poise.errors import PoiseError, unknown_name
from poise.kane.tree import WORLD, Tree
from poise.kane.vectors import is_zero

AXES = ("N_i", "N_j", "N_k")
LETTERS = ("i", "j", "k")


@dataclass(frozen=True)
class Table:
    """A table of vectors: one row per generalized speed, one column per body.

    Args:
        title: What the vectors are.
        speeds: Names of the rows: R*_i for a linear speed, R_i for an angular one.
        bodies: Names of the columns.
        cells: By rows; "0" where a speed does not move a body.
    """

    title: str
    speeds: tuple[str, ...]
    bodies: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]

    def cell(self, speed: str, body: str) -> str:
        """The entry of a speed and a body."""
        if speed not in self.speeds:
            raise PoiseError(unknown_name("speed", speed, self.speeds))
        if body not in self.bodies:
            raise PoiseError(unknown_name("body", body, self.bodies, "bodies"))
        return self.cells[self.speeds.index(speed)][self.bodies.index(body)]

    def __str__(self) -> str:
        rows = [("", *self.bodies)]
        rows += [(speed, *row) for speed, row in zip(self.speeds, self.cells, strict=True)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(x.ljust(w) for x, w in zip(row, widths, strict=True)) for row in rows]
        return "\n".join([self.title, *(line.rstrip() for line in lines)])

    def markdown(self) -> str:
        """The table in Markdown."""
        rows = [("", *self.bodies), ("---",) * (1 + len(self.bodies))]
        rows += [(speed, *row) for speed, row in zip(self.speeds, self.cells, strict=True)]
        return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def speed_names(tree: Tree) -> tuple[str, ...]:
    """Names of the generalized speeds, in their order: R*_i ..., R_i ..., A of a hinge or slide."""
    names: list[str] = []
    for body in tree.bodies:
        if body.joint == "free":
            names += [f"{body.name}*_{k}" for k in LETTERS]
        if body.joint in ("free", "ball"):
            names += [f"{body.name}_{k}" for k in LETTERS]
        else:
            names.append(body.name)
    return tuple(names)


def partial_angular_velocities(tree: Tree) -> Table:
    """K Table 3.2 for any tree: w_r of every body."""
    columns = _turns(tree)
    return _table("partial angular velocities", tree, [x.cell for x in columns], "")


def partial_velocities(tree: Tree) -> Table:
    """K Table 3.1 for any tree: v_r of the mass centre of every body."""
    columns: list[dict[str, list[str]]] = []
    turns = _turns(tree)
    for i, body in enumerate(tree.bodies):
        P = tree.parents[i]
        column = {} if P == WORLD else {speed: list(cell) for speed, cell in columns[P].items()}
        if P != WORLD and (body.joint == "slide" or not is_zero(body.p)):
            for speed, turn in turns[P].short.items():
                column.setdefault(speed, []).append(f"{turn} × p_{body.name}")
        for speed, own in _linear(tree, i):
            column[speed] = [own]
        if not is_zero(body.r):
            for speed, turn in turns[i].short.items():
                column.setdefault(speed, []).append(f"{turn} × r_{body.name}")
        columns.append(column)
    cells = [{speed: " + ".join(x) for speed, x in column.items()} for column in columns]
    return _table("partial velocities", tree, cells, "*")


@dataclass(frozen=True)
class _Turns:
    """The partial angular velocities of one body, by speed."""

    cell: dict[str, str]  # as in the table
    short: dict[str, str]  # as in a product


def _turns(tree: Tree) -> list[_Turns]:
    """w_r of every body, in words."""
    found: list[_Turns] = []
    for i, body in enumerate(tree.bodies):
        P = tree.parents[i]
        passed = _Turns({}, {}) if P == WORLD else found[P]
        if body.joint in ("free", "ball"):
            own = {f"{body.name}_{k}": axis for k, axis in zip(LETTERS, AXES, strict=True)}
            found.append(_Turns(own, own))
            continue
        if body.joint == "slide":
            found.append(passed)
            continue
        s = f"s_{body.name}"
        cell = {r: f"{x} - ({x}·{s}) {s}" for r, x in passed.short.items()} | {body.name: s}
        short = {r: f"ω({r}, {body.name})" for r in passed.short} | {body.name: s}
        found.append(_Turns(cell, short))
    return found


def _linear(tree: Tree, i: int) -> list[tuple[str, str]]:
    """The body's own linear speeds."""
    body = tree.bodies[i]
    if body.joint == "slide":
        return [(body.name, f"s_{body.name}")]
    if body.joint == "free":
        return [(f"{body.name}*_{k}", axis) for k, axis in zip(LETTERS, AXES, strict=True)]
    return []


def _table(title: str, tree: Tree, columns: Sequence[dict[str, str]], mark: str) -> Table:
    speeds = speed_names(tree)
    cells = tuple(tuple(column.get(speed, "0") for column in columns) for speed in speeds)
    return Table(title, speeds, tuple(body.name + mark for body in tree.bodies), cells)
