"""Pace: a motion that waits when following it would cost the balance (M chapter 8, future work).

The clip's own time τ runs at the speed σ, 0 to FASTEST: with s [m] the strain that the controller
tells, how far from where it should be the speed of the mass centre takes it: by a push, or by a
motion that is quick itself,

    σ → 1 / (1 + (s / s_0)²)   and, while it is behind and s is small, up to FASTEST,
    q̄ = q(τ),   v̄ = σ v(τ),   ā = σ² a(τ) + σ̇ v(τ).

σ itself moves by a first-order lag, so that v̄ does not jump.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from poise.errors import PoiseError
from poise.math.arrays import Floats, finite, floats, number
from poise.simulation.command import Target

STRAIN = 0.04
"""s_0: at this strain the motion runs at half its speed [m]."""
FASTEST = 1.25
LAG = 0.1
"""Time in which the speed follows [s]."""


class Paced:
    """A clip at the speed that the balance allows; give it to `poise.run` in the clip's place.

    Args:
        clip: The motion.
        balance: The controller whose `strain` tells how hard it is.
        strain: s_0 [m].
    """

    def __init__(self, clip: Any, balance: Any, strain: float = STRAIN) -> None:
        if not hasattr(clip, "target"):
            raise PoiseError(f"{clip!r:.60} is no clip: there is nothing to slow down")
        self.clip, self.balance = clip, balance
        self.limit = number(strain, "strain", unit="m")
        self.time: Floats = np.zeros(1)
        """Where each copy is in the clip [s], shape (n,)."""
        self.speed: Floats = np.ones(1)
        self._asked: float | None = None

    @property
    def duration(self) -> float:
        """Of the clip [s]."""
        return float(self.clip.duration)

    def through(self) -> bool:
        """Whether every copy has come to the end of the clip."""
        return bool((self.time >= self.duration).all())

    @property
    def memory(self) -> Floats:
        """Times and speeds, shape (2, n); `restore` goes on from there."""
        return np.stack([self.time, self.speed])

    def restore(self, memory: ArrayLike, at: float | None = None) -> None:
        """Go on from a memory.

        Args:
            memory: Shape (2, n).
            at: The time of the world when it was kept [s]; None is that of the next call.
        """
        given = finite(floats(memory, "memory"), "memory")
        if given.ndim != 2 or len(given) != 2 or not given.size:
            raise PoiseError(f"memory has shape {given.shape}, expected (2, n)")
        self.time, self.speed = (row.copy() for row in given)
        self._asked = at

    def state(self, t: float) -> Any:
        """The clip's state at its own time t [s]."""
        return self.clip.state(t)

    def target(self, t: float) -> Target:
        """The target at the world's time t [s], which only grows."""
        if np.ndim(t):
            raise PoiseError(
                "a motion that waits follows one clock, and those of the copies differ; reset them "
                "to one time"
            )
        if self._asked is not None and t < self._asked:
            # the world was set back: so is the clip
            self.time, self.speed = np.full_like(self.time, t), np.ones_like(self.speed)
        passed = 0.0 if self._asked is None else max(t - self._asked, 0.0)
        if self._asked is None:
            self.time = np.full_like(self.time, t) if not self.time.any() else self.time
        self._asked = t
        strain = np.asarray(self.balance.strain)
        if len(strain) != len(self.time):
            self.time = np.full(len(strain), self.time[0])
            self.speed = np.full(len(strain), self.speed[0])
        strained = (strain / self.limit) ** 2
        behind = np.clip((t - self.time) / 0.5, 0.0, 1.0)
        wanted = (1.0 + (FASTEST - 1.0) * behind * (strained < 0.1)) / (1.0 + strained)
        quicker = (wanted - self.speed) * min(passed / LAG, 1.0)
        self.speed = self.speed + quicker
        self.time = self.time + self.speed * passed
        time = self.time if len(self.time) > 1 else self.time[0]
        speed, gain = (
            x[:, None] if len(self.time) > 1 else x[0]
            for x in (self.speed, quicker / max(passed, 1e-9))
        )
        at = self.clip.target(time)
        a = at.a * speed**2 + at.v * gain
        return Target(at.q, at.v * speed, a, time=time, clip=getattr(at, "clip", None))

    def targets(self, t: float, dt: float, k: int) -> Target:
        """Rows are not told ahead: the pace depends on what happens."""
        raise PoiseError("a paced motion tells one target at a time")
