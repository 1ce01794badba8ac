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
from typing import Any

import sympy

from poise.errors import PoiseError
from poise.kane.forces import (
    Load,
    Rows,
    body_loads,
    generalized,
    joint_accelerations,
    joint_rates,
    mass_entry,
    solve_torques,
    speed_rates_of,
    speeds_of,
    world_inertias,
)
from poise.kane.kinematics import Accelerations, accelerate_bodies, move_bodies
from poise.kane.tree import Tree, identifier, tree_of
from poise.kane.vectors import AXES, Definitions, Expr, Mat
from poise.model.character import Character


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
