"""Balance: a controller that keeps a character on its feet by its momentum (macchietto2008).

Every call finds the accelerations that follow the motion as well as linear and angular momentum
allow, with the supports fixed to the ground; the core solves for them, and
`poise.reference.balance` has the mathematics. On ground by penalty the command has these
accelerations: in every step of the call the world turns them into joint torques by floating-base
inverse dynamics with the step's own contact forces, so the controller may run at 30 to 200 Hz over
steps of 1 ms. On ground by impulses the command has the torques, and with them a servo of the
planned accelerations that the step solves implicitly, Q - K q'' with Q = tau + K a: between torques
alone (K = 0), under which a light foot chatters, and accelerations that do not give way (K = inf).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from poise import _core
from poise.control.balance.config import (
    OBJECTIVES,
    UNTRACKED,
    BalanceOptions,
    Goals,
    joint_limit_table,
    tracking_weight,
)
from poise.control.balance.supports import Schedule, Soles, find_soles, sole_friction
from poise.control.balance.time_scaling import TimeScaled
from poise.control.gains import Gains
from poise.control.options import check_option
from poise.control.plant import ActsOnPlant, Plant
from poise.errors import PoiseError, Sealed
from poise.math.arrays import Floats, finite, floats
from poise.model.character import Character
from poise.model.same_body import check_clip_fits
from poise.model.scene import SceneLike
from poise.simulation.command import Command, Drive, Target
from poise.simulation.controller import Requirements
from poise.simulation.state import State
from poise.simulation.world_config import threads_of

_INFO = {
    name: info
    for name, info in BalanceOptions.info().items()
    if name not in ("k_s", "k_d", "weights", "goals", "supports", "friction", "rate")
}
"""Options that are checked whenever they are assigned."""

_SETTINGS = {*_INFO, "k_s", "k_d", "weight", "friction", "goals"}
"""Attributes whose assignment changes the parameters of the core."""


class Balance(ActsOnPlant, Sealed):
    """Follows a motion and keeps the balance.

    All settings but `part`, `supports`, `rate` and `threads` may be assigned while running.

    Args:
        character: The World it acts in, or a character with a free root.
        part: Which part of the scene it balances, by name; None is its only character. Everything
            else in the scene gets no force from it.
        objectives: Any of "track", "linear", "angular".
        weights: Of tracking, by limb, link or "root": {"arms": 0.3}. Others have 1.
        k_s: Stiffness of tracking [1/s²].
        k_d: Damping [1/s]; None is critical.
        linear_gains: k_s, k_d of the center of mass [1/s², 1/s].
        linear_weight: β_l, weight of the linear objective.
        gamma: γ, weight of the angular objective by the distance of CMP and CoP.
        max_cmp_offset: Largest distance of the desired CMP from the supports [m].
        desired_com: Desired center of mass: "motion", over the supports as the motion has it; or
            x, y from the center of the supports [m], as in the thesis.
        goals: Points that links should reach: {link or limb: point [m]}, or {link: (point, place in
            the link [m])}.
        goal_weight: β_p of each.
        supports: "clip": the feet that stand in the target; or links; or a Schedule; or a Clip.
        support_gains: k_s, k_d that keep a support level and at rest [1/s², 1/s]; None is 400, 40
            on contact by impulses and 50, 20 else.
        soft_limits: l_s, l_d by which tracking stiffens beyond a joint's limits; None is off.
        ground_model: "equality": supports are equality constraints, as in the thesis; or
            "friction_cone": ground forces inside friction cones; None is friction_cone for a World
            with contact by impulses, else equality.
        friction: Of soles and ground, for friction cones; None is that of the World's, or 0.8.
        margin: Distance of the desired CoP from the edge of the soles [m].
        servo_inertia: K of the acceleration servo [kg m²].
        rate: Plans per second, for `poise.run`; None is every step.
        output: "acceleration" or, with friction cones, "force"; None is force for a World with
            contact by impulses: joints that keep their accelerations between two feet that cannot
            move are overdetermined there.
        ground: Height of the ground [m]; None is that of the World, which must be level, or 0.
        threads: For the copies of a World; None takes as many as are worth it.
    """

    capture_point_error: Floats
    """Distance from the desired center of mass to where its velocity leads it [m], of each copy in
    the last call; for `TimeScaled`."""

    _solution: _core.BalanceSolution | None = None

    weight: Floats
    """Tracking weight of each velocity, shape (nv,)."""

    def __init__(
        self,
        character: SceneLike | Plant,
        *,
        part: str | None = None,
        objectives: Sequence[str] = OBJECTIVES,
        weights: Mapping[str, float] | None = None,
        k_s: float = 300.0,
        k_d: float | None = None,
        linear_gains: Sequence[float] = (15.0, 7.7),
        linear_weight: float = 1.0,
        gamma: float = 0.3,
        max_cmp_offset: float = 0.05,
        desired_com: str | Sequence[float] = "motion",
        goals: Mapping[str, Any] | None = None,
        goal_weight: float = 1000.0,
        supports: Any = "clip",
        support_gains: Sequence[float] | None = None,
        soft_limits: Sequence[float] | None = (400.0, 20.0),
        ground_model: str | None = None,
        friction: float | None = None,
        margin: float = 0.005,
        servo_inertia: float = 0.3,
        rate: float | None = 200.0,
        output: str | None = None,
        ground: float | None = None,
        threads: int | None = None,
    ) -> None:
        weights, goals = weights if weights is not None else {}, goals if goals is not None else {}
        BalanceOptions(
            objectives, weights, k_s, k_d, linear_gains, linear_weight, gamma, max_cmp_offset,
            desired_com, goals, goal_weight, supports, support_gains, soft_limits, ground_model,
            friction, margin, servo_inertia, rate, output, ground,
        )  # fmt: skip
        self._plant = plant = Plant.of(character, part)
        self._check_plant(plant)
        self._params = _core.BalanceParams()
        self._find_supports(supports)
        self.objectives = objectives
        self.k_s = np.full(self.scene.nv, k_s)
        self.k_d = np.full(self.scene.nv, 2.0 * math.sqrt(k_s) if k_d is None else k_d)
        self.weight = tracking_weight(self.scene, weights)
        self.linear_gains, self.linear_weight = linear_gains, linear_weight
        self.gamma, self.max_cmp_offset = gamma, max_cmp_offset
        self.desired_com = desired_com
        rigid = plant.contact == "impulse"
        self.ground_model = ground_model or ("friction_cone" if rigid else "equality")
        forces = rigid and self.ground_model == "friction_cone"
        self.output = output or ("force" if forces else "acceleration")
        if self.output == "force" and self.ground_model == "equality":
            raise PoiseError("output 'force' needs ground forces: ground_model='friction_cone'")
        self.margin, self.ground = margin, plant.ground_height(ground)
        # ground that gives way must tilt a sole to push at its edge
        self.support_gains = support_gains or ((400.0, 40.0) if rigid else (50.0, 20.0))
        self.soft_limits = soft_limits
        self._limits = joint_limit_table(self.character)
        self.goal_weight, self.goals = goal_weight, goals
        self.friction = sole_friction(plant, friction, self._soles.link)
        self._dt = plant.dt
        self.servo_inertia = servo_inertia
        planned = rate is not None and plant.dt is not None and self.output == "acceleration"
        self.requires = Requirements(
            steps=max(1, round(1.0 / (rate * plant.dt))) if planned else 1  # type: ignore[operator]
        )
        self._threads = threads_of(threads, plant.n)
        self.capture_point_error = np.zeros(1)
        self._make_planner()
        self._seal()

    def _make_planner(self) -> None:
        """Make what lives in the core."""
        self._write_params()
        model, overrides = self.scene.model, self.scene.overrides
        self._planner = _core.BalancePlanner(model, self._params, overrides, self._threads)

    def __getstate__(self) -> dict[str, Any]:
        """All attributes, with the core's parameters by name; neither planner nor last solution."""
        state = super().__getstate__()
        del state["_planner"]
        names = [name for name in dir(self._params) if not name.startswith("_")]
        params = {name: getattr(self._params, name) for name in names}
        return state | {"_params": params, "_solution": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _params=_core.BalanceParams())
        for name, value in state["_params"].items():
            setattr(self._params, name, value)
        self._make_planner()

    @staticmethod
    def _check_plant(plant: Plant) -> None:
        if len(plant.names) > 1:
            raise PoiseError(
                f"balance is for one character, this scene has {', '.join(plant.names)}; part=... "
                "names one"
            )
        if plant.scene.forest.kind[0] != 0:
            raise PoiseError(
                f"balance works for a character with a free root; {plant.names[0]!r} hangs on the "
                "world"
            )

    @property
    def character(self) -> Character:
        """The character that it balances."""
        return self._plant.character

    # ---- settings

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _INFO and not (value is None and name == "soft_limits"):
            check_option(name, value, _INFO[name])
        elif name in ("k_s", "k_d"):
            value = self._per_velocity(value, name)
        super().__setattr__(name, value)
        if name == "servo_inertia":
            self._servo = self._make_servo()
        if self._sealed and name in _SETTINGS:
            self._write_params()

    @property
    def strength(self) -> Floats:
        """Factor of joint torques and of the servo per link, shape (nl,) or (n, nl).

        The solver does not know it: a weak limb does not reach its planned acceleration. Entries
        may be assigned, with output "force".
        """
        strength = super().strength
        strength.flags.writeable = self.output == "force"
        return strength

    @strength.setter
    def strength(self, strength: ArrayLike | None) -> None:
        if strength is not None and self.output != "force":
            raise PoiseError(
                "strength scales torques, and the command of this balance has accelerations: it "
                "needs output 'force', and contact by impulses"
            )
        self._strength = None if strength is None else self._weights(strength, "strength")

    def _per_velocity(self, value: ArrayLike, name: str) -> Floats:
        """A number, or one for each velocity, above 0; shape (nv,)."""
        array, nv = finite(floats(value, name), name), self.scene.nv
        if array.shape not in ((), (nv,)) or not (array > 0.0).all():
            raise PoiseError(f"{name} is {value!r:.60}; it must be a positive number, or ({nv},)")
        return np.array(np.broadcast_to(array, (nv,)))

    @property
    def objectives(self) -> tuple[str, ...]:
        """Which objectives are on."""
        return self._objectives

    @objectives.setter
    def objectives(self, objectives: Sequence[str]) -> None:
        given = (objectives,) if isinstance(objectives, str) else objectives
        self._objectives = tuple(dict.fromkeys(given))

    @property
    def goals(self) -> Mapping[str, Any]:
        """Points that links should reach; see Balance. To change them, assign all."""
        return MappingProxyType(self._goals.given)

    @goals.setter
    def goals(self, goals: Mapping[str, Any] | None) -> None:
        self._goals = Goals(self.character, self.scene, {} if goals is None else goals)

    def _find_supports(self, supports: Any) -> None:
        """Find the links that may stand, and what decides when."""
        self._schedule: Schedule | None = None
        self._always = False
        if hasattr(supports, "contacts"):
            check_clip_fits(supports, self.character)
            supports = Schedule(supports)
        self._soles: Soles
        if isinstance(supports, Schedule):
            self._schedule = supports
            self._soles = find_soles(self.character, supports.links)
            self._column = [supports.links.index(name) for name in self._soles.names]
        elif isinstance(supports, str) and supports == "clip":
            self._soles = find_soles(self.character)
        elif isinstance(supports, str) or not isinstance(supports, Sequence):
            raise PoiseError(
                f"supports is {supports!r:.60}; it must be 'clip', a list of links, a Schedule or "
                "a Clip"
            )
        else:
            self._always = True
            self._soles = find_soles(self.character, list(supports))

    def _make_servo(self) -> Gains | None:
        """Gains of the acceleration servo, or None without."""
        if self.output != "force" or self.servo_inertia <= 0.0 or self._dt is None:
            return None
        kd = np.full(self.scene.nv, self.servo_inertia / self._dt)
        kd[:6] = 0.0
        return Gains(self.scene, np.zeros(self.scene.nv), kd)

    def _write_params(self) -> None:
        """Assign all settings to the core's parameters."""
        params, friction = self._params, self.friction
        params.linear = "linear" in self._objectives
        params.angular = "angular" in self._objectives
        params.friction_cones = self.ground_model == "friction_cone"
        params.follow_motion = isinstance(self.desired_com, str)
        params.always_support = self._always
        params.linear_gains = [float(k) for k in self.linear_gains]
        params.support_gains = [float(k) for k in self.support_gains]
        params.limit_gains = [float(k) for k in self.soft_limits or (0.0, 0.0)]
        for name in ("linear_weight", "gamma", "goal_weight", "max_cmp_offset", "margin"):
            setattr(params, name, getattr(self, name))
        params.ground_height = self.ground
        offset = (0.0, 0.0) if params.follow_motion else self.desired_com
        params.com_offset = [float(x) for x in offset]
        params.points = np.concatenate([self._soles.origins, self._goals.points])
        params.sole_points = self._soles.points
        params.goals = self._goals.desired
        tracked = "track" in self._objectives
        params.tracking_weight = self.weight if tracked else UNTRACKED * self.weight
        params.k_s, params.k_d = self.k_s, self.k_d
        params.joint_limits = np.zeros((0, 9)) if self.soft_limits is None else self._limits
        if not isinstance(friction, np.ndarray):
            friction = np.full(len(self._soles.names), friction)
        params.friction = friction

    @property
    def params(self) -> _core.BalanceParams:
        """The parameters of the solver, tuning constants included."""
        return self._params

    # ---- memory

    @property
    def memory(self) -> Floats:
        """The capture point error of the last call, shape (n,)."""
        return np.array(self.capture_point_error)

    def restore(self, memory: ArrayLike) -> None:
        """Continue from a memory."""
        error = np.atleast_1d(finite(floats(memory, "memory"), "memory"))
        if error.ndim != 1 or not error.size:
            raise PoiseError(f"memory has shape {error.shape}, expected (n,)")
        self.capture_point_error, self._solution = error.copy(), None

    @property
    def last_plan(self) -> dict[str, Any] | None:
        """Diagnostics of the last call for the first copy, as of `explain`; None before a call."""
        return None if self._solution is None else self._explained(self._solution, 0)

    def scale_time(self, clip: Any) -> TimeScaled:
        """The clip as a motion that slows down when following it would cost the balance."""
        return TimeScaled(clip, self)

    # ---- the controller

    def __call__(self, state: Any, target: Any) -> Command:
        """The command for a state and a target."""
        now = self._state(state)
        return self._command(self.solve(now, target), now)

    def explain(self, state: Any, target: Any) -> tuple[Command, dict[str, Any]]:
        """The command, and the solution that led to it.

        Returns:
            The command and {"acceleration", "force" of the ground [N], "rate" of momentum [N, N·m],
            "cop", "cmp" [m], "supports" {link: weight}, "beta" of the angular objective,
            "desired_com" [m], "com", "points", "forces" and "torque" with friction cones,
            "constraint_residual"}; of n copies {"copies": a list of such}.
        """
        state = self._state(state)
        solution = self.solve(state, target)
        copies = [self._explained(solution, i) for i in range(len(solution.acceleration))]
        command = self._command(solution, state)
        return command, copies[0] if np.ndim(state.q) == 1 else {"copies": copies}

    def _state(self, state: Any) -> Any:
        """The state of the character that it balances."""
        if type(state) is not State and not hasattr(state, "q"):
            self._plant.check_state(state)
        if self._plant.is_whole:
            return state
        q = self._plant.own_q(state.q, "state.q")
        v = velocity_of(state, self._plant.whole.nv)
        return State(q, self._plant.own_v(v, "state.v"), state.time)

    def solve(self, state: Any, target: Any) -> _core.BalanceSolution:
        """The solutions of all copies, from the core.

        Args:
            state: One state or n, of the character.
            target: Target of the character or the scene.
        """
        target = self._plant.own_target(target)
        if target.rows is not None:
            raise PoiseError("balance follows one target a call, not rows of them")
        n, nq, nv = (1 if np.ndim(state.q) == 1 else len(state.q)), self.scene.nq, self.scene.nv
        solution = self._planner.solve(
            _rows(state.q, n, nq, "state.q"),
            _rows(velocity_of(state, nv), n, nv, "state.v"),
            _rows(target.q, n, nq, "target.q"),
            None if target.v is None else _rows(target.v, n, nv, "target.v"),
            None if target.a is None else _rows(target.a, n, nv, "target.a"),
            self._scheduled(target.time, n),
            self.gravity,
        )
        self.capture_point_error, self._solution = solution.capture_point_error, solution
        return solution

    def _scheduled(self, time: Any, n: int) -> Floats | None:
        """Support weights of the schedule, shape (n, s); None: the target's height decides."""
        if self._schedule is None or time is None:
            return None
        at = np.broadcast_to(np.asarray(time, dtype=np.float64), (n,))
        known = np.isfinite(at)
        scheduled: Floats = np.full((n, len(self._soles.names)), np.nan)
        scheduled[known] = self._schedule(at[known])[:, self._column]
        return scheduled

    def _command(self, solution: _core.BalanceSolution, state: Any) -> Command:
        shape = (*np.shape(state.q)[:-1], self.scene.nv)
        a: Floats = solution.acceleration.reshape(shape)
        if self.output == "acceleration" or self.ground_model == "equality":
            return self._plant.lift(Command(acceleration=a))
        force, factor = solution.torque.reshape(shape), self.factor
        force = force if factor is None else force * factor
        if self._servo is None or self._dt is None:
            return self._plant.lift(Command(force=force))
        goal = Target(state.q, velocity_of(state, self.scene.nv) + self._dt * a)
        drive = Drive(self._servo, goal, form="spd", strength=self._strength)
        return self._plant.lift(Command(force=force, drive=drive))

    def _explained(self, solution: _core.BalanceSolution, i: int) -> dict[str, Any]:
        """One solution, for people: the ground alone changes the angular momentum."""
        from poise.measure.ground_reaction import center_of_pressure, centroidal_moment_pivot

        rate, com = solution.momentum_rate[i], solution.com[i]
        cones = self.ground_model == "friction_cone"
        force = rate[:3] - solution.mass[i] * self.gravity
        weight, desired_com = solution.support_weight[i], solution.desired_com[i]
        loaded = (weight[self._soles.owner] > 1e-3) & cones
        return {
            "supports": dict(zip(self._soles.names, weight.tolist(), strict=True)),
            "desired_com": desired_com if np.isfinite(desired_com).all() else None,
            "com": com,
            "acceleration": solution.acceleration[i],
            "cop": center_of_pressure(force, rate[3:], com, self.ground),
            "cmp": centroidal_moment_pivot(com, force, self.ground),
            "force": force,
            "rate": rate,
            "beta": float(solution.angular_weight[i]),
            "points": solution.contact_points[i][loaded],
            "forces": solution.contact_forces[i][loaded],
            "torque": solution.torque[i] if cones else None,
            "constraint_residual": float(solution.constraint_residual[i]),
        }


def _rows(value: Any, n: int, size: int, name: str) -> Floats:
    """(size,) or (n, size), contiguous, as the core takes them."""
    array: Floats = np.ascontiguousarray(value, dtype=np.float64)
    if array.shape not in ((size,), (n, size)):
        raise PoiseError(f"{name} has shape {array.shape}, expected ({size},) or ({n}, {size})")
    return array.reshape(-1) if array.size == size else array


def velocity_of(state: Any, nv: int) -> Floats:
    """Velocities of a state; one of positions only is at rest."""
    if getattr(state, "has_velocity", True):
        v: Floats = state.v
        return v
    return np.zeros((*state.q.shape[:-1], nv))
