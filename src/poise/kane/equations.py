"""Equations of motion by Kane's method, symbolic.

Kane's equations (K 3.17) say F_r + F*_r = 0 for every generalized speed u_r, with the generalized
active forces (3.18) and inertia forces (3.19)

    F_r  =  sum_B [ (m g + F_ext)·v_r + T_ext·w_r ]  +  T_r
    F*_r = -sum_B [ m a_B*·v_r + (I al_B + w_B x I w_B)·w_r ]

v_r and w_r are the partial velocities of kinematics.py, F_ext and T_ext known external forces and
torques, T_r what the motors of the joints contribute. Accelerations are linear in the rates of the
speeds, a_B* = sum_s v_s u'_s + a_t and al_B = sum_s w_s u'_s + al_t, which gives (3.21)

    M u' = T + E
    M_rs = sum_B [ m v_r·v_s + w_r·I w_s ]
    E_r  = sum_B [ (m g + F_ext - m a_t)·v_r + (T_ext - I al_t - w x I w)·w_r ]

Where we depart from what is printed:

- 3.19 lacks w x I w; `as_printed=True` leaves it out.
- 3.21 and 3.23 call T the torques of the joints. With speeds in the world the torque of a joint
  acts on the parent as well (3.32: tau_C - tau_D - tau_G), so that T = Y' tau, where v = Y u are
  the velocities of the joints themselves (joints.py). M is symmetric only in this form.
- A rotor's inertia (armature) A resists the velocity of its own joint: M has Y' A Y besides, and
  E has -Y' A a_t, with a_t the joint's acceleration at u' = 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import sympy

from poise.errors import PoiseError
from poise.kane.kinematics import Accelerations, Kinematics, accelerate_bodies, move_bodies
from poise.kane.tree import WORLD, Tree, identifier, tree_of
from poise.kane.vectors import (
    AXES,
    ONE,
    ZERO,
    Definitions,
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
from poise.model.character import Character

# ---- sums over the bodies: entries of the mass matrix, and generalized forces
#
# Bodies that share a partial velocity are added up before the product: all that hangs on one child
# of a ball has the same v_r (K 3.36), and K's sums over the outboard bodies (3.38) appear by
# themselves.


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


# ---- the equations


class Equations:
    """The equations of motion of a tree, M u' = T + E.

    Entries are in terms of `q`, `u`, the tree's open symbols, and the named intermediate results in
    `definitions`; `written_out` puts their meaning in. Each part is derived at its first use.

    Args:
        source: A Character, or a Tree of one's own.
        external: Take external wrenches along: symbols for a force and a torque, world axes, at
            each point of the tree (of a character: at the origin of each link).
        as_printed: Leave out w x I w, as the thesis does.
    """

    def __init__(
        self, source: Character | Tree, *, external: bool = False, as_printed: bool = False
    ) -> None:
        if not isinstance(source, (Character, Tree)):
            raise PoiseError(f"expected a Character or a kane.Tree, got {source!r:.80}")
        self.tree = tree_of(source) if isinstance(source, Character) else source
        self.as_printed = as_printed
        self.definitions = Definitions()
        self.kinematics = move_bodies(self.tree, self.definitions)
        self.q = tuple(x for row in self.kinematics.q for x in row)  # coordinates
        self.u = tuple(x for row in self.kinematics.u for x in row)  # generalized speeds
        self.du = self._beside("du")  # their rates
        self.v = self._beside("v")  # velocities of the joints themselves
        self.a = self._beside("a")  # their accelerations
        self.tau = self._beside("tau")  # forces of the joints
        self.external = self._wrenches() if external else ()  # [force, torque] of each point

    @cached_property
    def parameters(self) -> tuple[Expr, ...]:
        """Symbols that the tree leaves open, by name."""
        return self.tree.parameters

    @cached_property
    def M(self) -> Any:
        """The mass matrix of the speeds, a SymPy matrix (nv, nv), symmetric."""
        n = self.tree.nv
        M = sympy.zeros(n, n)
        for r in range(n):
            for s in range(r + 1):
                bodies = mass_entry(self.kinematics, self._inertias, r, s)
                rotors = [m * Y[r] * Y[s] for m, Y in self._rotors if m and r in Y and s in Y]
                M[r, s] = M[s, r] = sympy.Add(bodies, *rotors)
        return M

    @cached_property
    def E(self) -> Any:
        """Gravity, external forces and what velocities cause, a SymPy matrix (nv, 1)."""
        du = [sympy.S.Zero] * self.tree.nv
        a_t = joint_accelerations(self.kinematics, self._remainders, du)
        return -sympy.Matrix(self._needed(self._loads_of(self._remainders, "0"), a_t, "0"))

    @cached_property
    def T(self) -> Any:
        """What the motors must contribute for the rates `du`: M u' - E (3.26), a matrix (nv, 1).

        It comes from the accelerations themselves; M is not formed.
        """
        return sympy.Matrix(self._needed(self._loads, list(self.accelerations), ""))

    @cached_property
    def Y(self) -> Any:
        """v = Y u: the joints' own velocities of the speeds, a SymPy matrix (nv, nv)."""
        entries = {(at, r): x for at, row in enumerate(self._Y) for r, x in row.items()}
        return sympy.Matrix(
            self.tree.nv, self.tree.nv, lambda at, r: entries.get((at, r), sympy.S.Zero)
        )

    @cached_property
    def inverse_dynamics(self) -> Any:
        """tau of the joints for their own `v` and `a`, a SymPy matrix (nv, 1).

        Its entries have `u` and `du`, which `speeds` and `speed_rates` give in terms of v and a.
        """
        T = generalized(self.kinematics, self._loads, "")
        tau = solve_torques(self.kinematics, self._Y, T)
        rotors = (m * a for (m, _), a in zip(self._rotors, self.a, strict=True))
        return sympy.Matrix([x + y for x, y in zip(tau, rotors, strict=True)])

    @cached_property
    def accelerations(self) -> Any:
        """a of the joints for the rates `du`, a SymPy matrix (nv, 1)."""
        return sympy.Matrix(joint_accelerations(self.kinematics, self._accelerations, self.du))

    @cached_property
    def speeds(self) -> dict[Expr, Expr]:
        """u in terms of the joints' velocities `v`."""
        return dict(zip(self.u, speeds_of(self.kinematics, self.v), strict=True))

    @cached_property
    def speed_rates(self) -> dict[Expr, Expr]:
        """u' in terms of the joints' accelerations `a`, and of the speeds."""
        rates = speed_rates_of(self.kinematics, self._accelerations, self.a)
        return dict(zip(self.du, rates, strict=True))

    def written_out(self, expr: Any) -> Any:
        """An expression or matrix without names of intermediate results: for small trees."""
        return self.definitions.written_out(expr)

    def _beside(self, letter: str) -> tuple[Expr, ...]:
        """Symbols beside the speeds: du_A_x of u_A_x, ..."""
        return tuple(self.definitions.symbol(f"{letter}{str(u)[1:]}") for u in self.u)

    def _wrenches(self) -> tuple[tuple[Expr, ...], ...]:
        """Symbols for the force and the torque at each point."""
        symbol = self.definitions.symbol
        tags = [identifier(point.name) for point in self.tree.points or ()]
        return tuple(
            tuple(symbol(f"{letter}_{tag}_{k}") for letter in "FT" for k in AXES) for tag in tags
        )

    @cached_property
    def _inertias(self) -> list[Mat]:
        return world_inertias(self.kinematics)

    @cached_property
    def _remainders(self) -> Accelerations:
        """Accelerations at u' = 0."""
        return accelerate_bodies(self.kinematics)

    @cached_property
    def _accelerations(self) -> Accelerations:
        """Accelerations with the rates `du`."""
        return accelerate_bodies(self.kinematics, self.du)

    @cached_property
    def _loads(self) -> list[Load]:
        return self._loads_of(self._accelerations, "")

    def _loads_of(self, of: Accelerations, mark: str) -> list[Load]:
        turning = not self.as_printed
        known = self.kinematics, self._inertias, of, self.external
        return body_loads(*known, mark=mark, gyroscopic=turning)

    @cached_property
    def _Y(self) -> Rows:
        return joint_rates(self.kinematics)

    @cached_property
    def _rotors(self) -> list[tuple[Expr, dict[int, Expr]]]:
        """Armature and row of Y of every joint velocity."""
        armatures = [body.armature for body in self.tree.bodies for _ in range(body.nv)]
        return list(zip(armatures, self._Y, strict=True))

    def _needed(self, loads: list[Load], a: Sequence[Expr], mark: str) -> list[Expr]:
        """sum_B [f·v_r + t·w_r] + Y' A a: what T must be."""
        T = generalized(self.kinematics, loads, mark)
        for at, (m, Y) in enumerate(self._rotors):
            if m:
                push = self.definitions.keep(f"rotor{mark}_{at}", m * a[at])
                for r, entry in Y.items():
                    T[r] += entry * push
        return T
