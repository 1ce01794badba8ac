"""Balance: a controller that keeps a character on its feet by its momentum (macchietto2008).

Every call finds the accelerations that follow the motion as well as linear and angular momentum
allow, with the supports fixed to the ground (`plan`). On ground by penalty it gives them as they
are: in every step of the call the world turns them into joint torques by floating-base inverse
dynamics with the step's own contact forces, so it may run at 30 to 200 Hz over steps of 1 ms. On
ground by impulses it gives the torques, and with them a servo of the planned accelerations that the
step solves implicitly, Q - K q'' with Q = tau + K a: between torques alone (K = 0), under which a
light foot chatters, and accelerations that do not give way (K = inf).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from poise import _core
from poise.control.balance.asked import Told, rows_of, velocity_of
from poise.control.balance.checks import check_settings
from poise.control.balance.footing import friction_of
from poise.control.balance.goals import Goals
from poise.control.balance.pace import Paced
from poise.control.balance.parts import Parts
from poise.control.balance.soft_limits import SoftLimits
from poise.control.balance.stance import Schedule
from poise.control.gains import Gains
from poise.control.plant import Plant
from poise.errors import PoiseError, unknown_name
from poise.math.arrays import Floats, choice, finite, floats, number
from poise.model.scene import SceneLike
from poise.motion.clip import Clip
from poise.simulation.command import Command, Drive, Target
from poise.simulation.controller import Requirements
from poise.simulation.state import State
from poise.simulation.world_config import threads_of

OBJECTIVES = ("track", "linear", "angular")
FORMS = ("thesis", "cones")


class Balance(Parts):
    """Accelerations that follow a motion and keep the balance.

    Args:
        character: The World it acts in, or a character with a free root.
        part: Which part of the scene it balances, by name; None is its only character. Everything
            else in the scene gets no force from it.
        objectives: Any of "track", "linear", "angular"; may be assigned while running.
        weights: Of tracking, by limb, link or "root": {"arms": 0.3}. Others have 1.
        k_s: Stiffness of tracking [1/s²].
        k_d: Damping [1/s]; None is critical.
        linear_gains: k_s, k_d of the mass centre [1/s², 1/s].
        beta_linear: β_l, weight of the linear objective.
        gamma: γ, weight of the angular objective by the distance of CMP and COP.
        reach: How far from the supports the CMP may be asked to lie [m]; see `momentum`.
        center: Where the mass centre should be: "motion", over the supports as the motion has it;
            or x, y from the centre of the supports [m], as the thesis has it.
        goals: Points that links should reach: {link: point [m]}, or {link: (point, place in the
            link [m])}. May be assigned while running.
        goal_weight: β_p of each.
        supports: "clip": the feet that stand in the target; or links; or a Schedule; or a Clip.
        support_gains: k_s, k_d that keep a support level and at rest [1/s², 1/s]; None is 400, 40
            on contact by impulses and 50, 20 else.
        soft_limits: l_s, l_d by which tracking stiffens beyond a joint's limits; None is off.
        form: "thesis", or "cones": ground forces inside friction cones; None is cones for a World
            with contact by impulses, else the thesis's.
        friction: Of soles and ground, for cones; None is that of the World's, or 0.8.
        margin: How far inside of the soles the ground may be asked to push [m].
        firmness: K of that servo [kg m²].
        rate: How often it plans [1/s], for `poise.run`; None is every step.
        gives: "acceleration" or, with cones, "force"; None is force for a World with contact by
            impulses: joints that keep their accelerations between two feet that cannot move are
            overdetermined there.
        ground: Height of the ground [m]; None is that of the World, which must be level, or 0.
        threads: For the copies of a World; None takes as many as are worth it.
    """

    def __init__(
        self,
        character: SceneLike | Plant,
        *,
        part: str | None = None,
        objectives: Sequence[str] = OBJECTIVES,
        weights: Mapping[str, float] | None = None,
        k_s: float = 300.0,
        k_d: float | None = None,
        linear_gains: tuple[float, float] = (15.0, 7.7),
        beta_linear: float = 1.0,
        gamma: float = 0.3,
        reach: float = 0.05,
        center: str | Sequence[float] = "motion",
        goals: Mapping[str, Any] | None = None,
        goal_weight: float = 1000.0,
        supports: str | Sequence[str] | Schedule | Clip = "clip",
        support_gains: tuple[float, float] | None = None,
        soft_limits: tuple[float, float] | None = (400.0, 20.0),
        form: str | None = None,
        friction: float | None = None,
        margin: float = 0.005,
        rate: float | None = 200.0,
        gives: str | None = None,
        firmness: float = 0.3,
        ground: float | None = None,
        threads: int | None = None,
    ) -> None:
        self._plant = plant = Plant.of(character, part)
        self._check_plant(plant)
        self.objectives = objectives
        number(k_s, "k_s", unit="1/s²")
        self.k_s = np.full(self.scene.nv, k_s)
        damping = 2.0 * math.sqrt(k_s) if k_d is None else number(k_d, "k_d", unit="1/s")
        self.k_d = np.full(self.scene.nv, damping)
        self.weight = self._tracking_weight({} if weights is None else weights)
        self.linear_gains = linear_gains
        self.beta_linear, self.gamma, self.reach = beta_linear, gamma, reach
        self.center = center
        rigid = plant.contact == "impulse"
        form = form or ("cones" if rigid else "thesis")
        self.form = FORMS[choice(form, "form", FORMS)]
        self.gives = gives or ("force" if rigid and form == "cones" else "acceleration")
        choice(self.gives, "gives", ("acceleration", "force"))
        if self.gives == "force" and form == "thesis":
            raise PoiseError("forces need the ground's: form='cones'")
        self.margin, self.ground = margin, plant.ground_height(ground)
        # ground that gives way must tilt a sole to push at its edge
        self.support_gains = support_gains or ((400.0, 40.0) if rigid else (50.0, 20.0))
        check_settings(
            self.weight, beta_linear=beta_linear, gamma=gamma, reach=reach, margin=margin,
            firmness=firmness, linear_gains=linear_gains, support_gains=self.support_gains,
            rate=rate, center=center, soft_limits=soft_limits,
        )  # fmt: skip
        self._limits = None if soft_limits is None else SoftLimits(self.character, *soft_limits)
        self._stand(supports)
        self._goals = Goals(self.scene, {} if goals is None else goals, goal_weight)
        self.friction = friction_of(plant, friction, self._soles.link)
        self._dt = dt = plant.dt
        self._firm = None
        if self.gives == "force" and firmness > 0.0 and dt is not None:
            kd = np.full(self.scene.nv, firmness / dt)
            kd[:6] = 0.0
            self._firm = Gains(self.scene, np.zeros(self.scene.nv), kd)
        self.requires = Requirements(
            steps=1
            if rate is None or dt is None or self.gives == "force"
            else max(1, round(1.0 / (rate * dt)))
        )
        self._planner = _core.Planner(self.scene.model, threads_of(threads, plant.n))
        self.strain = np.zeros(1)
        self._seal()

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

    # ---- what may change while running

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "form":
            choice(value, name, FORMS)
        elif name == "gives":
            choice(value, name, ("acceleration", "force"))
        elif name in ("k_s", "k_d"):
            value = self._per_velocity(value, name)
        super().__setattr__(name, value)

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
        if not isinstance(objectives, Sequence):
            raise PoiseError(f"objectives is {objectives!r:.60}; it must be some of {OBJECTIVES}")
        given = (objectives,) if isinstance(objectives, str) else tuple(dict.fromkeys(objectives))
        for name in given:
            if name not in OBJECTIVES:
                raise PoiseError(unknown_name("objective", name, OBJECTIVES))
        self._objectives = given

    @property
    def goals(self) -> Mapping[str, Any]:
        """Points that links should reach; see Balance. To change them, assign all."""
        return MappingProxyType(self._goals.given)

    @goals.setter
    def goals(self, goals: Mapping[str, Any] | None) -> None:
        self._goals = Goals(self.scene, {} if goals is None else goals, self._goals.weight)

    @property
    def memory(self) -> Floats:
        """What it remembers: the strain of the last call, shape (n,)."""
        return np.array(self.strain)

    def restore(self, memory: ArrayLike) -> None:
        """Go on from a memory."""
        strain = np.atleast_1d(finite(floats(memory, "memory"), "memory"))
        if strain.ndim != 1 or not strain.size:
            raise PoiseError(f"memory has shape {strain.shape}, expected (n,)")
        self.strain = strain.copy()

    def paced(self, clip: Any) -> Paced:
        """The clip as a motion that slows down when following it would cost the balance."""
        return Paced(clip, self)

    # ---- the controller

    def __call__(self, state: Any, target: Any) -> Command:
        """The command for a state and a target."""
        now = self._state(state)
        return self._command(self.told(now, target), now)

    def explain(self, state: Any, target: Any) -> tuple[Command, dict[str, Any]]:
        """The command, and what led to it.

        Returns:
            The command and {"acceleration", "force" of the ground [N], "rate" of momentum [N, N·m],
            "cop", "cmp" [m], "supports" {link: weight}, "beta" of the angular objective, "center"
            c_des [m], "com", "points", "forces" and "torque" with cones, "miss" of supports}; of n
            copies {"copies": a list of such}.
        """
        state = self._state(state)
        told = self.told(state, target)
        copies = [self._explained(told, i) for i in range(len(told.a))]
        command = self._command(told, state)
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

    def told(self, state: Any, target: Any) -> Told:
        """The plans of all copies, from the core."""
        target = self._plant.own_target(target)
        if target.rows is not None:
            raise PoiseError("balance follows one target a call, not rows of them")
        target.check_followable()
        n, nq, nv = (1 if np.ndim(state.q) == 1 else len(state.q)), self.scene.nq, self.scene.nv
        tq = rows_of(target.q, n, nq, "target.q")
        tv = None if target.v is None else rows_of(target.v, n, nv, "target.v")
        ta = None if target.a is None else rows_of(target.a, n, nv, "target.a")
        q = rows_of(state.q, n, nq, "state.q")
        v = rows_of(velocity_of(state, nv), n, nv, "state.v")
        when = self._when(target.time, n)
        asked, gravity = self._asked(), self.gravity
        overrides = self.scene.overrides
        a, torque, told = self._planner.plan(overrides, asked, n, q, v, tq, tv, ta, when, gravity)
        found = Told.of(a, torque, told, len(self._soles.names))
        self.strain = found.strain.copy()
        return found

    def _command(self, told: Told, state: Any) -> Command:
        shape = (*np.shape(state.q)[:-1], self.scene.nv)
        a = told.a.reshape(shape)
        if self.gives == "acceleration" or self.form == "thesis":
            return self._plant.lift(Command(acceleration=a))
        force = told.torque.reshape(shape)
        if self._firm is None:
            return self._plant.lift(Command(force=force))
        goal = Target(state.q, velocity_of(state, self.scene.nv) + self._dt * a)
        drive = Drive(self._firm, goal, form="spd")
        return self._plant.lift(Command(force=force, drive=drive))

    def _explained(self, told: Told, i: int) -> dict[str, Any]:
        """Of one plan, for people: the ground alone changes the angular momentum."""
        from poise.measure.ground_reaction import center_of_pressure, centroidal_moment_pivot

        rate, com, cones = told.rate[i], told.com[i], self.form == "cones"
        force = rate[:3] - told.mass[i] * self.gravity
        carries = (told.share[i][self._soles.owner] > 1e-3) & cones
        center = told.center[i]
        return {
            "supports": dict(zip(self._soles.names, told.share[i].tolist(), strict=True)),
            "center": center if np.isfinite(center).all() else None,
            "com": com,
            "acceleration": told.a[i],
            "cop": center_of_pressure(force, rate[3:], com, self.ground),
            "cmp": centroidal_moment_pivot(com, force, self.ground),
            "force": force,
            "rate": rate,
            "beta": float(told.beta[i]),
            "points": told.points[i][carries],
            "forces": told.forces[i][carries],
            "torque": told.torque[i] if cones else None,
            "miss": float(told.miss[i]),
        }
