"""Sums over the bodies: entries of the mass matrix, and generalized forces.

Bodies that share a partial velocity are added up before the product: all that hangs on one child
of a ball has the same v_r (K 3.36), and K's sums over the outboard bodies (3.38) appear by
themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import sympy

from poise.kane.definitions import Definitions
from poise.kane.kinematics import Accelerations, Kinematics
from poise.kane.tree import WORLD, Tree, identifier
from poise.kane.vectors import (
    ZERO,
    Expr,
    Mat,
    Vec,
    add,
    apply,
    cross,
    dot,
    is_zero,
    multiply,
    scale,
    subtract,
    transpose,
)


class Load(NamedTuple):
    """What a body needs from its joints, world axes."""

    force: Vec  # m (a* - g) - F_ext
    torque: Vec  # I al + w x I w - T_ext, about its mass centre


def world_inertias(tree: Tree, kin: Kinematics, names: Definitions) -> list[Mat]:
    """R I R' of each body, six numbers named."""
    found = []
    for body, R in zip(tree.bodies, kin.R, strict=True):
        I = multiply(multiply(R, body.inertia), transpose(R))
        upper = tuple(tuple(I[min(j, k)][max(j, k)] for k in range(3)) for j in range(3))
        found.append(names.matrix(f"I_{identifier(body.name)}", upper))  # type: ignore[arg-type]
    return found


def mass_entry(
    tree: Tree, kin: Kinematics, inertias: list[Mat], names: Definitions, r: int, s: int
) -> Expr:
    """sum_B [m v_r·v_s + w_r·I w_s]."""
    terms: list[Expr] = []
    masses: dict[tuple[Vec, Vec], list[Expr]] = {}
    for i, body in enumerate(tree.bodies):
        v_r, v_s = kin.v_r[i].get(r), kin.v_r[i].get(s)
        if v_r is not None and v_s is not None and body.mass != 0:
            masses.setdefault((v_r, v_s), []).append(body.mass)
        w_r, w_s = kin.w_r[i].get(r), kin.w_r[i].get(s)
        if w_r is not None and w_s is not None and not all(map(is_zero, body.inertia)):
            name = f"Iw_{identifier(body.name)}_{s}"
            terms.append(dot(w_r, names.vector(name, apply(inertias[i], w_s))))
    for (v_r, v_s), shared in masses.items():
        terms.append(sympy.Add(*shared) * names.keep(f"vv_{r}_{s}", dot(v_r, v_s)))
    return sympy.Add(*terms)


def body_loads(
    tree: Tree,
    kin: Kinematics,
    inertias: list[Mat],
    of: Accelerations,
    external: Sequence[Sequence[Expr]],
    names: Definitions,
    *,
    mark: str,
    gyroscopic: bool,
) -> list[Load]:
    """The force and the torque that each body needs.

    Args:
        tree: The tree.
        kin: Its kinematics.
        inertias: World inertias.
        of: Accelerations of the bodies.
        external: [force, torque] at each point of the tree, or nothing.
        names: Where intermediate results are named.
        mark: A letter in their names that tells one set of accelerations from another.
        gyroscopic: Include w x I w.
    """
    pushes = _pushes(tree, kin, external)
    found = []
    for i, body in enumerate(tree.bodies):
        tag = identifier(body.name)
        F, T = pushes[i]
        force = subtract(scale(body.mass, subtract(of.a[i], tree.gravity)), F)
        torque = subtract(apply(inertias[i], of.al[i]), T)
        if gyroscopic:
            h = names.vector(f"h_{tag}", apply(inertias[i], kin.w[i]))
            torque = add(torque, cross(kin.w[i], h))
        found.append(
            Load(names.vector(f"f{mark}_{tag}", force), names.vector(f"t{mark}_{tag}", torque))
        )
    return found


def generalized(
    tree: Tree, kin: Kinematics, loads: list[Load], names: Definitions, mark: str
) -> list[Expr]:
    """sum_B [f·v_r + t·w_r] for every speed."""
    found = []
    for r in range(tree.nv):
        alike: dict[Vec, list[int]] = {}
        terms: list[Expr] = []
        for i in range(len(tree.bodies)):
            if r in kin.v_r[i]:
                alike.setdefault(kin.v_r[i][r], []).append(i)
            if r in kin.w_r[i]:
                terms.append(dot(loads[i].torque, kin.w_r[i][r]))
        for v_r, bodies in alike.items():
            name = f"sum{mark}_{identifier(tree.bodies[bodies[0]].name)}"
            total = names.vector(name, add(*(loads[i].force for i in bodies)))
            terms.append(dot(total, v_r))
        found.append(sympy.Add(*terms))
    return found


def _pushes(
    tree: Tree, kin: Kinematics, external: Sequence[Sequence[Expr]]
) -> list[tuple[Vec, Vec]]:
    """External force on each body, and its torque about the mass centre."""
    found = [(ZERO, ZERO) for _ in tree.bodies]
    if not external:
        return found
    for point, wrench in zip(tree.points or (), external, strict=True):
        i, (fx, fy, fz, tx, ty, tz) = point.body, wrench
        if i != WORLD:
            F: Vec = (fx, fy, fz)
            arm = apply(kin.R[i], point.arm)
            total = add(found[i][0], F)
            found[i] = total, add(found[i][1], (tx, ty, tz), cross(arm, F))
    return found
