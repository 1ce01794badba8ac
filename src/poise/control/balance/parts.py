"""What the plan is asked for: supports, goals and momentum, from a controller's settings."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from poise.anatomy.names import links_of
from poise.control.balance.asked import K_GOAL, Asked
from poise.control.balance.cones import EDGES, Cones
from poise.control.balance.goals import Goals
from poise.control.balance.least_squares import check_weight
from poise.control.balance.momentum import Wish, wish
from poise.control.balance.plan import Ground, Rows
from poise.control.balance.soft_limits import SoftLimits
from poise.control.balance.stance import (
    LEANS,
    LEAVES,
    LIFTS,
    TILTS,
    Schedule,
    faded,
    lean_of,
    soles_of,
    tilt_of,
)
from poise.control.balance.tasks import Tasks, cross, matrices
from poise.control.plant import ActsOnPlant
from poise.errors import PoiseError, Sealed
from poise.math.arrays import Floats, number
from poise.math.polygon import convex_hull
from poise.model.character import Character
from poise.model.same_body import check_clip_fits
from poise.motion.clip import Clip
from poise.simulation.controller import Requirements

ROOT_WEIGHT = 0.03
"""Weight of tracking of the root: the joints say how it stands, the root where."""

PRESS = 0.3
"""Acceleration at which a sole that should stand, and does not touch, goes down [m/s²]. Tuned: at 2
it bounces, at 0 a foot that has landed carries nothing."""

NO_LIMITS: Floats = np.zeros((0, 9))

UNTRACKED = 0.03
"""What is left of the weights of tracking without its objective: nothing else asks of a finger."""


class Parts(ActsOnPlant, Sealed):
    """The settings of a Balance, and what they ask of a state; see there for what they mean."""

    weight: Floats
    linear_gains: tuple[float, float]
    reach: float
    center: str | Sequence[float]
    form: str
    margin: float
    ground: float
    support_gains: tuple[float, float]
    gives: str
    requires: Requirements
    strain: Floats
    """How far the speed of the center of mass takes it from where it should be [m], of each copy in
    the last call; for `Paced`."""
    _objectives: tuple[str, ...]
    beta_linear: float
    gamma: float
    friction: float | Floats
    k_s: Floats
    k_d: Floats
    _goals: Goals
    _limits: SoftLimits | None

    @property
    def character(self) -> Character:
        """The character that it balances."""
        return self._plant.character

    def _stand(self, supports: Any) -> None:
        """Find the links that may stand, and what says when."""
        self._schedule: Schedule | None = None
        self._always = False
        if isinstance(supports, Clip):
            check_clip_fits(supports, self.character)
            supports = Schedule(supports)
        if isinstance(supports, Schedule):
            self._schedule = supports
            self._soles = soles_of(self.character, supports.links)
            self._column = [supports.links.index(name) for name in self._soles.names]
        elif supports == "clip":
            self._soles = soles_of(self.character)
        elif isinstance(supports, str) or not isinstance(supports, Sequence):
            raise PoiseError(
                f"supports is {supports!r:.60}; it must be 'clip', a list of links, a Schedule or "
                "a Clip"
            )
        else:
            self._always = True
            self._soles = soles_of(self.character, list(supports))
        self._links = np.column_stack([self._soles.link, np.zeros((len(self._soles.link), 3))])

    def _points(self) -> Floats:
        return np.concatenate([self._links, self._goals.points])

    def _when(self, time: Any, n: int) -> Floats | None:
        """How firmly the schedule lets each link stand, shape (n, s); None: the target says."""
        if self._schedule is None or time is None:
            return None
        at = np.broadcast_to(np.asarray(time, dtype=np.float64), (n,))
        known = np.isfinite(at)
        when: Floats = np.full((n, len(self._soles.names)), np.nan)
        when[known] = self._schedule(at[known])[:, self._column]
        return when

    def _asked(self) -> Asked:
        """The settings, for the core."""
        given, limits = set(self._objectives), self._limits
        motion = isinstance(self.center, str)
        x, y = (0.0, 0.0) if motion else (float(c) for c in self.center)
        return Asked(
            points=self._points(),
            corners=self._soles.corners,
            goals=self._goals.wanted,
            weight=self.weight if "track" in given else UNTRACKED * self.weight,
            limits=NO_LIMITS if limits is None else limits.table,
            stiffening=(0.0, 0.0) if limits is None else (limits.stiffness, limits.damping),
            k_s=self.k_s,
            k_d=self.k_d,
            k_support=self.support_gains,
            k_linear=self.linear_gains,
            k_goal=K_GOAL,
            center=(x, y),
            beta_linear=self.beta_linear,
            gamma=self.gamma,
            reach=self.reach,
            margin=self.margin,
            ground=self.ground,
            friction=self._of_soles(),
            goal_weight=self._goals.weight,
            press=PRESS,
            linear="linear" in given,
            angular="angular" in given,
            cones=self.form == "cones",
            motion=motion,
            always=self._always,
        )

    def _of_soles(self) -> Floats:
        """Friction of each sole and the ground, shape (s,) or (n, s)."""
        if isinstance(self.friction, np.ndarray):
            return self.friction
        return np.full(len(self._soles.names), self.friction)

    def _share(self, now: Tasks, then: Tasks, places: Floats, time: float) -> Floats:
        """How firmly each link stands, shape (s,)."""
        s = len(self._soles.names)
        share = faded(self._soles.lowest(places) - self.ground, LIFTS)
        share *= faded(tilt_of(now.R[:s], then.R[:s]), TILTS)
        if not self._always:
            share *= self._asked_to_stand(then, time)
        share *= self._upright(now, places)
        return share

    def _upright(self, now: Tasks, places: Floats) -> float:
        """1; 0 of who has fallen."""
        return float(faded(np.array(lean_of(now.c, places, self.ground)), LEANS))

    def _asked_to_stand(self, then: Tasks, time: float) -> Floats:
        if self._schedule is not None and math.isfinite(time):
            return self._schedule(np.float64(time))[self._column]
        low = self._soles.lowest(self._soles.places(then)) - self.ground
        return faded(low, LEAVES)

    def _rows(self, now: Tasks, then: Tasks, a_des: Floats, v: Floats, share: Floats,
              places: Floats) -> Rows:  # fmt: skip
        """Supports and goals."""
        on = share > 1e-3
        s = len(self._soles.names)
        J, bias = now.J[:s][on], now.bias[:s][on]
        spring, damper = self.support_gains
        wanted = -damper * (J @ v) - bias
        if spring:
            # level, and as high, as it is in the target: on an edge it carries less
            here, there = now.R[:s][on], then.R[:s][on]
            tilt = cross(here.transpose(0, 2, 1), there.transpose(0, 2, 1)).sum(axis=1)
            wanted[:, 3:5] += 0.5 * spring * tilt[:, :2]
            wanted[:, 2] += spring * (then.p[:s, 2] - now.p[:s, 2])[on]
        # a sole that has come but does not touch yet: ground that gives way carries by depth alone
        wanted[:, 2] -= PRESS * (self._soles.lowest(places)[on] > self.ground)
        weight = self.weight if "track" in self._objectives else UNTRACKED * self.weight
        E, e = self._goals.rows(now, s, v)
        nv = self.scene.nv
        return Rows(a_des, weight, J.reshape(-1, nv), wanted.reshape(-1), share[on], E, e)

    def _wish(self, now: Tasks, then: Tasks, v: Floats, moves: tuple[Floats, Floats],
              places: Floats, share: Floats) -> Wish | None:  # fmt: skip
        """What momentum should do; None without supports, or if it does not matter."""
        if not {"linear", "angular"} & set(self._objectives) or not (share > 0.5).any():
            return None
        weight = share[self._soles.owner]
        if not weight.sum() > 1e-3:
            return None
        s = weight @ places[:, :2] / weight.sum()
        corners = convex_hull(places[weight > 0.3, :2], self.margin)
        if isinstance(self.center, str):
            there = self._soles.places(then)
            s_mot = weight @ there[:, :2] / weight.sum()
            tv, ta = moves
            center = s + then.c[:2] - s_mot
            velocity = (then.A[:2] @ tv) / then.mass
            rising = (then.A[:2] @ ta + then.rate[:2]) / then.mass
        else:
            center = s + np.asarray(self.center, dtype=np.float64)
            velocity = rising = np.zeros(2)
        gravity = abs(float(self.gravity[2]))
        return wish(
            now, v, corners, (center, velocity, rising), self.linear_gains, self.reach, gravity,
            self.ground,
        )  # fmt: skip

    def _grounds(
        self, q: Floats, now: Tasks, places: Floats, share: Floats, copy: int
    ) -> Ground | None:
        if self.form == "thesis":
            return None
        on = share[self._soles.owner] > 1e-3
        pull = max(float(np.linalg.norm(self.gravity)), 9.81)
        most = 3.0 * now.mass * pull * share[self._soles.owner][on]
        owner = self._soles.owner[on]
        friction = self._of_soles()
        return Ground(
            Cones.of((friction[copy] if friction.ndim == 2 else friction)[owner]),
            places[on],
            np.repeat(most, EDGES),
            owner,
            matrices(q[3:7]),
            q[:3],
        )

    def _tracking_weight(self, weights: Mapping[str, float]) -> Floats:
        """W_t, shape (nv,)."""
        forest = self.scene.forest
        out = np.ones(self.scene.nv)
        out[:6] = ROOT_WEIGHT
        of_dof = np.repeat(forest.link, np.array([6, 3, 1, 1])[forest.kind])
        if not isinstance(weights, Mapping):
            raise PoiseError(f"weights is {weights!r:.60}; it must be {{limb or link: weight}}")
        for name, given in weights.items():
            value = number(given, f"weights[{name!r}]", positive=False, unit="")
            if name == "root":
                out[:6] = value
                continue
            mine = np.isin(of_dof, links_of(self.scene, name))
            mine[:6] = False
            out[mine] = value
        return check_weight(out)
