"""Proportional-derivative control: torques from the present error."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from poise import dynamics
from poise.control.bubble_up import bubbled
from poise.control.effort import cut_to_effort
from poise.control.feedforward import acceleration_force, goal_of_now, root_feedforward
from poise.control.gains import FREQUENCY, Gains, root_slices
from poise.control.gravity import gravity_force
from poise.control.plant import PartLike, Plant
from poise.control.servo import Servo
from poise.math.arrays import Floats
from poise.model.scene import SceneLike
from poise.simulation.command import Command, Target
from poise.simulation.controller import Requirements

__all__ = ["PD", "cut_to_effort", "root_feedforward"]


class PD(Servo):
    """Explicit PD, and what the literature adds to it (kavafoglu2018, 2.2).

        tau_PD = -kp (q - q̄) - kd (v - v̄)
        tau    = tau_PD + bubbled + M ā + C v + carried weight, cut at the effort limits

    Each joint looks at its own error only. What that neglects can be added, part by part: the
    torques of the joints outboard, the target's own acceleration, the weight. The weight does not
    bubble up. Added parts act on free roots only where root="held".

    It is unstable where kd dt or kp dt² come near the inertia of a joint: see `check_gains`, and
    StablePD.

    Args:
        character: The World it acts in, a character, or several.
        gains: Gains, or None for `suggest_gains(character, frequency, damping, root=root)`.
        frequency: Natural frequency of the joints [Hz], unless gains are given.
        damping: Damping ratio, unless gains are given.
        root: "free", "soft" or "held"; see Servo.
        part: Which parts of the scene it acts on; None is all characters. See Servo.
        target_velocity: Damp the difference to the target's velocity; False damps all velocity.
        feedforward: Add what the target's acceleration takes, and compare with the target of now,
            reckoned back from that of t + dt (see feedforward.py).
        gravity_compensation: Add what carries the weight (see gravity.py).
        bubble_up: Add each joint's PD torque to its parent joint (see bubble_up.py).
        strength: Factor of all torques and effort limits per link, shape (nl,) or (n, nl); may be
            assigned at any time.
        dt: How far ahead targets are [s]; taken from a World. None compares with the target as it
            is.
    """

    def __init__(
        self,
        character: SceneLike | Plant,
        gains: Gains | None = None,
        *,
        frequency: ArrayLike = FREQUENCY,
        damping: ArrayLike = 1.0,
        root: str = "free",
        part: PartLike = None,
        target_velocity: bool = True,
        feedforward: bool = False,
        gravity_compensation: bool = False,
        bubble_up: bool = False,
        strength: ArrayLike | None = None,
        dt: float | None = None,
    ) -> None:
        super().__init__(
            character,
            gains,
            frequency=frequency,
            damping=damping,
            root=root,
            part=part,
            strength=strength,
            dt=dt,
        )
        self.target_velocity = target_velocity
        self.feedforward = feedforward
        self.gravity_compensation = gravity_compensation
        self.bubble_up = bubble_up
        self._spared = [] if self.root == "held" else root_slices(self.scene)
        self._seal()

    @property
    def requires(self) -> Requirements:
        """Feedforward reads where the target was one and two steps before."""
        return Requirements(past=self.feedforward)

    def explain(self, state: Any, target: Any) -> tuple[Command, dict[str, Any]]:
        """The command, its torque, and the parts of that which are on.

        Parts are "pd", "bubbled", "gravity", "feedforward"; strength and limits come after them.
        """
        q, v, target = self._asked(state, target)
        goal, dt = target, self.dt or 0.0
        if self.feedforward and self.dt is not None:
            goal, dt = goal_of_now(self.scene, target, self.dt), 0.0
        factor = self.factor
        pd = self._pull(q, v, goal, dt)
        parts = {"pd": pd}
        if self.bubble_up:
            weak = pd if factor is None else factor * pd
            parts["bubbled"] = self._spare_roots(bubbled(self.scene, q, weak))
        if self.gravity_compensation:
            weight = gravity_force(self.scene, q, gravity=self.gravity)
            parts["gravity"] = self._spare_roots(weight)
        if self.feedforward:
            parts["feedforward"] = self._spare_roots(acceleration_force(self.scene, q, v, goal))
        tau = np.asarray(sum(parts.values()))
        if factor is not None:
            tau = factor * tau
        if self.root == "soft":
            root = root_feedforward(self, target)
            tau = tau + root
            parts["feedforward"] = parts.get("feedforward", np.zeros(self.scene.nv)) + root
        tau = cut_to_effort(self, tau)
        return self._plant.lift(Command(force=tau)), {"torque": tau, **parts}

    def _pull(self, q: Floats, v: Floats, target: Target, dt: float) -> Floats:
        """-kp (q - q̄) - kd (v - v̄), the target's position taken back by dt v̄."""
        kp, kd = self.gains.kp, self.gains.kd
        if self.target_velocity or target.v is None:
            return dynamics.pd_force(self.scene, q, v, target, kp, kd, dt)
        spring = dynamics.pd_force(self.scene, q, v, target, kp, np.zeros(self.scene.nv), dt)
        return spring - kd * v

    def _spare_roots(self, added: Floats) -> Floats:
        """What is added to PD, without the free roots unless they are held."""
        for at in self._spared:
            added[..., at] = 0.0
        return added
