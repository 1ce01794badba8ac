"""Between the generalized speeds u and the velocities v of the joints themselves.

v, its rate a, and the forces tau are the character's: a ball's in the frame of the body, a free
joint's linear part in the world.

    ball, free   v = R'(w_B - w_P)      a = R'(al_B - al_P - w_P x w_B)
    hinge        v = u - s·w_P          a = u' - s·al_P
    slide        v = u                  a = u'

v is linear in u, v = Y u, and by virtual work joint forces enter Kane's equations as T = Y' tau.
"""

from __future__ import annotations

from collections.abc import Sequence

import sympy

from poise.kane.definitions import Definitions
from poise.kane.kinematics import Accelerations, Kinematics
from poise.kane.tree import WORLD, Tree
from poise.kane.vectors import ONE, ZERO, Expr, Vec, add, apply, cross, dot, subtract, transpose

Rows = list[dict[int, Expr]]


def joint_rates(tree: Tree, kin: Kinematics, names: Definitions) -> Rows:
    """Y in v = Y u by rows, each by the index of the speed, without zeros."""
    rows: Rows = []
    for i, body in enumerate(tree.bodies):
        columns = _rate_columns(tree, kin, i)
        for k in range(body.nv):
            at = len(rows)
            row = {r: column[k] for r, column in columns.items() if column[k] != 0}
            rows.append({r: names.keep(f"Y_{at}_{r}", x) for r, x in row.items()})
    return rows


def joint_accelerations(
    tree: Tree, kin: Kinematics, of: Accelerations, du: Sequence[Expr]
) -> list[Expr]:
    """a of the joints.

    Args:
        tree: The tree.
        kin: Its kinematics.
        of: Accelerations of its bodies with the rates du.
        du: Rates of the speeds, shape (nv,).
    """
    found: list[Expr] = []
    for i, body in enumerate(tree.bodies):
        P = tree.parents[i]
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


def speeds_of(tree: Tree, kin: Kinematics, v: Sequence[Expr]) -> list[Expr]:
    """u in terms of the joints' velocities v, and of the speeds of bodies before."""
    found: list[Expr] = []
    for i in range(len(tree.bodies)):
        P = tree.parents[i]
        found += _with_parent(tree, kin, i, v, ZERO if P == WORLD else kin.w[P], ZERO)
    return found


def speed_rates_of(tree: Tree, kin: Kinematics, of: Accelerations, a: Sequence[Expr]) -> list[Expr]:
    """u' in terms of the joints' accelerations a, and of the rates of bodies before."""
    found: list[Expr] = []
    for i in range(len(tree.bodies)):
        P = tree.parents[i]
        carried = ZERO if P == WORLD else of.al[P]
        turned = ZERO if P == WORLD else cross(kin.w[P], kin.w[i])
        found += _with_parent(tree, kin, i, a, carried, turned)
    return found


def solve_torques(
    tree: Tree, kin: Kinematics, Y: Rows, T: Sequence[Expr], names: Definitions
) -> list[Expr]:
    """tau in Y' tau = T, from the leaves inward.

    The part of Y that belongs to a joint alone is a rotation (or 1), Y_BB' = Y_BB^-1, so that
    tau_B = Y_BB T_B as soon as the joints outboard have taken their share of T_B: this is the sum
    over the children in K 3.38.
    """
    tau, left = [sympy.S.Zero] * tree.nv, list(T)
    for i in reversed(range(len(tree.bodies))):
        own = range(kin.first[i], kin.first[i] + tree.bodies[i].nv)
        for at in own:
            load = sympy.Add(*(entry * left[r] for r, entry in Y[at].items() if r in own))
            tau[at] = names.keep(f"load_{at}", load)
        for at in own:
            for r, entry in Y[at].items():
                if r not in own:
                    left[r] -= entry * tau[at]
    return tau


def _rate_columns(tree: Tree, kin: Kinematics, i: int) -> dict[int, tuple[Expr, ...]]:
    """Columns of Y for the joint of body i, by the index of the speed."""
    body, P, own = tree.bodies[i], tree.parents[i], kin.first[i]
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
    tree: Tree, kin: Kinematics, i: int, x: Sequence[Expr], carried: Vec, turned: Vec
) -> list[Expr]:
    """The part of u or u' of body i: what its joint does, and what the parent adds.

    Args:
        tree: The tree.
        kin: Its kinematics.
        i: Which body.
        x: v or a of all joints.
        carried: w_P or al_P.
        turned: What the turning of the joint with the parent adds: w_P x w_B for u'.
    """
    body, first = tree.bodies[i], kin.first[i]
    own = list(x[first : first + body.nv])
    if body.joint == "slide":
        return own
    if body.joint == "hinge":
        return [own[0] + dot(kin.s[i], carried)]
    x_B: Vec = (own[-3], own[-2], own[-1])
    return [*own[:-3], *add(apply(kin.R[i], x_B), carried, turned)]
