"""Sums over the bodies: entries of the mass matrix, and generalized forces.

Bodies that share a partial velocity are added up before the product: all that hangs on one child
of a ball has the same v_r (K 3.36), and K's sums over the outboard bodies (3.38) appear by
themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import sympy

from poise.kane.kinematics import Accelerations, Kinematics
from poise.kane.tree import WORLD, identifier
from poise.kane.vectors import (
    ONE,
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
    torque: Vec  # I al + w x I w - T_ext, about its center of mass


def world_inertias(kin: Kinematics) -> list[Mat]:
    """R I R' of each body, six numbers named."""
    found = []
    for body, R in zip(kin.tree.bodies, kin.R, strict=True):
        I = multiply(multiply(R, body.inertia), transpose(R))
        upper = tuple(tuple(I[min(j, k)][max(j, k)] for k in range(3)) for j in range(3))
        found.append(kin.names.matrix(f"I_{identifier(body.name)}", upper))  # type: ignore[arg-type]
    return found


def mass_entry(kin: Kinematics, inertias: list[Mat], r: int, s: int) -> Expr:
    """sum_B [m v_r·v_s + w_r·I w_s]."""
    names = kin.names
    terms: list[Expr] = []
    masses: dict[tuple[Vec, Vec], list[Expr]] = {}
    for i, body in enumerate(kin.tree.bodies):
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
    kin: Kinematics,
    inertias: list[Mat],
    of: Accelerations,
    external: Sequence[Sequence[Expr]],
    *,
    mark: str,
    gyroscopic: bool,
) -> list[Load]:
    """The force and the torque that each body needs.

    Args:
        kin: Kinematics of the tree.
        inertias: World inertias.
        of: Accelerations of the bodies.
        external: [force, torque] at each point of the tree, or nothing.
        mark: A letter in the names of intermediate results, one for each set of accelerations.
        gyroscopic: Include w x I w.
    """
    tree, names = kin.tree, kin.names
    pushes = _pushes(kin, external)
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


def generalized(kin: Kinematics, loads: list[Load], mark: str) -> list[Expr]:
    """sum_B [f·v_r + t·w_r] for every speed."""
    tree, found = kin.tree, []
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
            total = kin.names.vector(name, add(*(loads[i].force for i in bodies)))
            terms.append(dot(total, v_r))
        found.append(sympy.Add(*terms))
    return found


def _pushes(kin: Kinematics, external: Sequence[Sequence[Expr]]) -> list[tuple[Vec, Vec]]:
    """External force on each body, and its torque about the center of mass."""
    found = [(ZERO, ZERO) for _ in kin.tree.bodies]
    if not external:
        return found
    for point, wrench in zip(kin.tree.points or (), external, strict=True):
        i, (fx, fy, fz, tx, ty, tz) = point.body, wrench
        if i != WORLD:
            F: Vec = (fx, fy, fz)
            arm = apply(kin.R[i], point.arm)
            total = add(found[i][0], F)
            found[i] = total, add(found[i][1], (tx, ty, tz), cross(arm, F))
    return found


# ---- generalized speeds u and joint velocities v
#
# v, its rate a, and the forces tau are the character's: a ball's in the frame of the body, a free
# joint's linear part in the world.
#
#     ball, free   v = R'(w_B - w_P)      a = R'(al_B - al_P - w_P x w_B)
#     hinge        v = u - s·w_P          a = u' - s·al_P
#     slide        v = u                  a = u'
#
# v is linear in u, v = Y u, and by virtual work joint forces enter Kane's equations as T = Y' tau.

Rows = list[dict[int, Expr]]


def joint_rates(kin: Kinematics) -> Rows:
    """Y in v = Y u by rows, each by the index of the speed, without zeros."""
    rows: Rows = []
    for i, body in enumerate(kin.tree.bodies):
        columns = _rate_columns(kin, i)
        for k in range(body.nv):
            at = len(rows)
            row = {r: column[k] for r, column in columns.items() if column[k] != 0}
            rows.append({r: kin.names.keep(f"Y_{at}_{r}", x) for r, x in row.items()})
    return rows


def joint_accelerations(kin: Kinematics, of: Accelerations, du: Sequence[Expr]) -> list[Expr]:
    """a of the joints.

    Args:
        kin: Kinematics of the tree.
        of: Accelerations of its bodies with the rates du.
        du: Rates of the speeds, shape (nv,).
    """
    found: list[Expr] = []
    for i, body in enumerate(kin.tree.bodies):
        P = kin.tree.parents[i]
        w_P, al_P = (ZERO, ZERO) if P == WORLD else (kin.w[P], of.al[P])
        own = du[kin.first[i] : kin.first[i] + body.nv]
        if body.joint == "slide":
            found += own
        elif body.joint == "hinge":
            found.append(own[0] - dot(kin.s[i], al_P))
        else:
            turn = subtract(subtract(of.al[i], al_P), cross(w_P, kin.w[i]))
            found += [*own[:-3], *apply(transpose(kin.R[i]), turn)]
    return found


def speeds_of(kin: Kinematics, v: Sequence[Expr]) -> list[Expr]:
    """u in terms of the joints' velocities v, and of the speeds of bodies before."""
    found: list[Expr] = []
    for i, P in enumerate(kin.tree.parents):
        found += _with_parent(kin, i, v, ZERO if P == WORLD else kin.w[P], ZERO)
    return found


def speed_rates_of(kin: Kinematics, of: Accelerations, a: Sequence[Expr]) -> list[Expr]:
    """u' in terms of the joints' accelerations a, and of the rates of bodies before."""
    found: list[Expr] = []
    for i, P in enumerate(kin.tree.parents):
        al_P, turned = (ZERO, ZERO) if P == WORLD else (of.al[P], cross(kin.w[P], kin.w[i]))
        found += _with_parent(kin, i, a, al_P, turned)
    return found


def solve_torques(kin: Kinematics, Y: Rows, T: Sequence[Expr]) -> list[Expr]:
    """tau in Y' tau = T, from the leaves inward.

    The part of Y that belongs to a joint alone is a rotation (or 1), Y_BB' = Y_BB^-1, so that
    tau_B = Y_BB T_B as soon as the joints outboard have taken their share of T_B: this is the sum
    over the children in K 3.38.
    """
    tree = kin.tree
    tau, left = [sympy.S.Zero] * tree.nv, list(T)
    for i in reversed(range(len(tree.bodies))):
        own = range(kin.first[i], kin.first[i] + tree.bodies[i].nv)
        for at in own:
            load = sympy.Add(*(entry * left[r] for r, entry in Y[at].items() if r in own))
            tau[at] = kin.names.keep(f"load_{at}", load)
        for at in own:
            for r, entry in Y[at].items():
                if r not in own:
                    left[r] -= entry * tau[at]
    return tau


def _rate_columns(kin: Kinematics, i: int) -> dict[int, tuple[Expr, ...]]:
    """Columns of Y for the joint of body i, by the index of the speed."""
    body, P, own = kin.tree.bodies[i], kin.tree.parents[i], kin.first[i]
    w_P = {} if P == WORLD else kin.w_r[P]
    back = transpose(kin.R[i])
    if body.joint == "slide":
        return {own: (sympy.S.One,)}
    if body.joint == "hinge":
        return {own: (sympy.S.One,), **{r: (-dot(kin.s[i], w),) for r, w in w_P.items()}}
    turning = {own + body.nv - 3 + k: apply(back, ONE[k]) for k in range(3)}
    if body.joint == "free":
        place = {own + k: (*ONE[k], *ZERO) for k in range(3)}
        return place | {r: (*ZERO, *column) for r, column in turning.items()}
    return turning | {r: subtract(ZERO, apply(back, w)) for r, w in w_P.items()}


def _with_parent(
    kin: Kinematics, i: int, x: Sequence[Expr], of_parent: Vec, turned: Vec
) -> list[Expr]:
    """The part of u or u' of body i: what its joint does, and what the parent adds.

    Args:
        kin: Kinematics of the tree.
        i: Which body.
        x: v or a of all joints.
        of_parent: w_P or al_P.
        turned: What the turning of the joint with the parent adds: w_P x w_B for u'.
    """
    body, first = kin.tree.bodies[i], kin.first[i]
    own = list(x[first : first + body.nv])
    if body.joint == "slide":
        return own
    if body.joint == "hinge":
        return [own[0] + dot(kin.s[i], of_parent)]
    x_B: Vec = (own[-3], own[-2], own[-1])
    return [*own[:-3], *add(apply(kin.R[i], x_B), of_parent, turned)]
