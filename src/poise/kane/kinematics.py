"""How the bodies move: partial velocities, and accelerations, of every body of a tree.

Generalized speeds u (K 3.29) are components of angular velocities in the world:

    ball    w_B along N_i, N_j, N_k, the axes of the world
    hinge   w_B along its axis s
    slide   the rate of its coordinate
    free    the velocity of its joint point B° along N_i, N_j, N_k, then w_B as of a ball

Velocities are linear in them (3.9, 3.10); the coefficients are the partial velocities:

    w_B = sum_r w_r u_r      v_B* = sum_r v_r u_r

From body to body, with [1 - s s'] = 0 for a ball and s s' = 0 for a slide:

    w_r(B)  = [1 - s s'] w_r(P)  +  its own: N_i (ball, free), s (hinge), 0 (slide)
    v_r(B°) = v_r(P*) + w_r(P) x p_B  +  its own: N_i (free), s (slide)
    v_r(B*) = v_r(B°) + w_r(B) x r_B

so that a hinge hands on what its parent turns across its axis, and a ball hands on nothing: this
is what makes the equations of the thesis short (3.36, 3.37). Through a slide p_B = p + s q.

The derivative of w_B and of v_B* with rates u' of the speeds is, with q' = u - s·w_P of a hinge,

    al_B = [1 - s s'] al_P + (w_P x s) q' + s u'    (hinge)       al_B = u' (ball, free)
    a_B° = a_P* + al_P x p_B + w_P x (w_P x p_B)    (+ 2 w_P x s u + s u' for a slide)
    a_B* = a_B° + al_B x r_B + w_B x (w_B x r_B)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import sympy

from poise.errors import check_known
from poise.kane.tree import WORLD, Tree, identifier
from poise.kane.vectors import (
    ONE,
    ZERO,
    Definitions,
    Expr,
    Mat,
    Vec,
    add,
    apply,
    axis_matrix,
    cross,
    dot,
    is_zero,
    multiply,
    quat_matrix,
    scale,
    subtract,
)

PLACES = {"free": ("px", "py", "pz", "w", "x", "y", "z"), "ball": ("w", "x", "y", "z")}
SPEEDS = {"free": ("vx", "vy", "vz", "x", "y", "z"), "ball": ("x", "y", "z")}


@dataclass(frozen=True)
class Kinematics:
    """What the places and speeds make of the bodies, in world axes.

    The lists have one entry per body.
    """

    tree: Tree
    names: Definitions  # where intermediate results are named
    q: tuple[tuple[Expr, ...], ...]  # coordinates
    u: tuple[tuple[Expr, ...], ...]  # generalized speeds
    first: tuple[int, ...]  # index of the first speed
    R: list[Mat] = field(default_factory=list)  # rotations
    s: list[Vec] = field(default_factory=list)  # axes of hinges and slides
    p: list[Vec] = field(default_factory=list)  # from P* to B°
    r: list[Vec] = field(default_factory=list)  # from B° to B*
    w: list[Vec] = field(default_factory=list)  # angular velocities
    w_r: list[dict[int, Vec]] = field(default_factory=list)  # partial angular velocities, by r
    v_r: list[dict[int, Vec]] = field(default_factory=list)  # partial velocities of B*, by r


@dataclass(frozen=True)
class Accelerations:
    """Angular accelerations, and accelerations of B*, in world axes; one entry per body."""

    al: list[Vec] = field(default_factory=list)
    a: list[Vec] = field(default_factory=list)


def move_bodies(tree: Tree, names: Definitions) -> Kinematics:
    """Places, angular velocities and partial velocities of all bodies."""
    kin = _symbols(tree, names)
    for i, body in enumerate(tree.bodies):
        P, tag = tree.parents[i], identifier(body.name)
        start = body.rest if P == WORLD else multiply(kin.R[P], body.rest)
        start = names.matrix(f"S_{tag}", start)
        kin.R.append(names.matrix(f"R_{tag}", _rotation(kin, i, start)))
        # the axis of a hinge is the same before and after it turns
        s = apply(start, body.axis) if body.joint in ("hinge", "slide") else ZERO
        kin.s.append(names.vector(f"s_{tag}", s))
        p = body.p if P == WORLD else apply(kin.R[P], body.p)
        if body.joint == "slide":
            p = add(p, scale(kin.q[i][0], kin.s[i]))
        kin.p.append(names.vector(f"p_{tag}", p))
        kin.r.append(names.vector(f"r_{tag}", apply(kin.R[i], body.r)))
        kin.w.append(names.vector(f"w_{tag}", _angular_velocity(kin, i)))
        w_r, v_r = _partial_velocities(kin, i)
        kin.w_r.append({r: names.vector(f"w_{tag}_{r}", x) for r, x in w_r.items()})
        kin.v_r.append({r: names.vector(f"v_{tag}_{r}", x) for r, x in v_r.items()})
    return kin


def accelerate_bodies(kin: Kinematics, du: Sequence[Expr] | None = None) -> Accelerations:
    """Accelerations of all bodies.

    Args:
        kin: Kinematics of the tree.
        du: Rates of the speeds; None for zero, which leaves what the velocities alone cause.
    """
    tree, names = kin.tree, kin.names
    du = [sympy.S.Zero] * tree.nv if du is None else du
    at = "0" if all(x == 0 for x in du) else ""
    found = Accelerations()
    for i, body in enumerate(tree.bodies):
        P, tag, s = tree.parents[i], identifier(body.name), kin.s[i]
        w_P, al_P, a_P = (ZERO, ZERO, ZERO) if P == WORLD else (kin.w[P], found.al[P], found.a[P])
        own = du[kin.first[i] : kin.first[i] + body.nv]
        a = add(a_P, cross(al_P, kin.p[i]), cross(w_P, cross(w_P, kin.p[i])))
        al = al_P
        if body.joint == "free":
            a, al = (own[0], own[1], own[2]), (own[3], own[4], own[5])
        elif body.joint == "ball":
            al = (own[0], own[1], own[2])
        elif body.joint == "hinge":
            rate = names.keep(f"qd_{tag}", kin.u[i][0] - dot(s, w_P))
            turn = names.keep(f"turn{at}_{tag}", own[0] - dot(s, al_P))
            al = add(al_P, scale(rate, cross(w_P, s)), scale(turn, s))
        else:
            coriolis = scale(2 * kin.u[i][0], cross(w_P, s))
            a = add(a, coriolis, scale(own[0], s))
        al = names.vector(f"al{at}_{tag}", al)
        w, r = kin.w[i], kin.r[i]
        spin = names.vector(f"wr_{tag}", cross(w, r))
        a = add(a, cross(al, r), cross(w, spin))
        found.al.append(al)
        found.a.append(names.vector(f"a{at}_{tag}", a))
    return found


def _symbols(tree: Tree, names: Definitions) -> Kinematics:
    """Symbols for coordinates and speeds; the names of open parameters are taken first."""
    for parameter in tree.parameters:
        names.symbol(str(parameter))
    q, u, first, count = [], [], [], 0
    for body in tree.bodies:
        tag = identifier(body.name)
        places = [f"_{k}" for k in PLACES.get(body.joint, ())] or [""]
        speeds = [f"_{k}" for k in SPEEDS.get(body.joint, ())] or [""]
        q.append(tuple(names.symbol(f"q_{tag}{k}") for k in places))
        u.append(tuple(names.symbol(f"u_{tag}{k}") for k in speeds))
        first.append(count)
        count += body.nv
    return Kinematics(tree, names, tuple(q), tuple(u), tuple(first))


def _rotation(kin: Kinematics, i: int, start: Mat) -> Mat:
    """R_B = R_P rest J(q), with start = R_P rest."""
    body, q = kin.tree.bodies[i], kin.q[i]
    if body.joint == "free":
        return quat_matrix(q[3:])
    if body.joint == "slide":
        return start
    own = quat_matrix(q) if body.joint == "ball" else axis_matrix(body.axis, q[0])
    return multiply(start, own)


def _angular_velocity(kin: Kinematics, i: int) -> Vec:
    """w_B in terms of the speeds."""
    body, P = kin.tree.bodies[i], kin.tree.parents[i]
    w_P = ZERO if P == WORLD else kin.w[P]
    if body.joint in ("free", "ball"):
        x, y, z = kin.u[i][-3:]
        return x, y, z
    if body.joint == "slide":
        return w_P
    return add(w_P, scale(kin.u[i][0] - dot(kin.s[i], w_P), kin.s[i]))


def _partial_velocities(kin: Kinematics, i: int) -> tuple[dict[int, Vec], dict[int, Vec]]:
    """w_r and v_r of body i, by the index of the speed; speeds that do not move it are left out."""
    tree, s, own = kin.tree, kin.s[i], kin.first[i]
    body, P = tree.bodies[i], tree.parents[i]
    w_P = {} if P == WORLD else kin.w_r[P]
    v_r = {} if P == WORLD else dict(kin.v_r[P])
    for r, w in w_P.items():
        v_r[r] = add(v_r.get(r, ZERO), cross(w, kin.p[i]))
    if body.joint == "free":
        v_r.update({own + k: ONE[k] for k in range(3)})
    elif body.joint == "slide":
        v_r[own] = s

    if body.joint == "slide":
        w_r = dict(w_P)
    elif body.joint == "hinge":
        w_r = {r: subtract(w, scale(dot(w, s), s)) for r, w in w_P.items()}
        w_r[own] = s
    else:
        w_r = {own + body.nv - 3 + k: ONE[k] for k in range(3)}
    for r, w in w_r.items():
        v_r[r] = add(v_r.get(r, ZERO), cross(w, kin.r[i]))
    return _moving(w_r), _moving(v_r)


def _moving(partial: dict[int, Vec]) -> dict[int, Vec]:
    return {r: x for r, x in partial.items() if not is_zero(x)}


# ---- tables of partial velocities and partial angular velocities (K 3.1 and 3.2)
#
# The cell of speed r and body B is, with N_i the axes of the world and s_B the axis of a joint,
#
#     w_r(B)  = N_i or s_B of the body's own speeds
#             = w_r(P) - (w_r(P)·s_B) s_B    through a hinge
#             = w_r(P)                       through a slide; a ball lets nothing through
#     v_r(B*) = sum over the bodies X from the joint of r to B of w_r(X) x r_X + w_r(X) x p_Y
#               with Y the next body on that way, and N_i or s of a speed that is linear
#
# which for trees of balls are K 3.36 and 3.37. Arms of length zero are left out. What has passed a
# hinge is called by its name, ω(r, X), after the cell in the table of partial angular velocities.

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
        check_known("speed", speed, self.speeds)
        check_known("body", body, self.bodies, "bodies")
        return self.cells[self.speeds.index(speed)][self.bodies.index(body)]

    def __str__(self) -> str:
        rows = [("", *self.bodies)]
        rows += [(speed, *row) for speed, row in zip(self.speeds, self.cells, strict=True)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(x.ljust(w) for x, w in zip(row, widths, strict=True)) for row in rows]
        return "\n".join([self.title, *(line.rstrip() for line in lines)])


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
    """K Table 3.1 for any tree: v_r of the center of mass of every body."""
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
