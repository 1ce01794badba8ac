"""Time scaling: a motion that slows down when following it would cost the balance (M chapter 8).

The clip's own time τ runs at the speed σ, 0 to MAX_SPEED. With s [m] the capture point error, the
distance from the desired center of mass to where its velocity leads it, by a push or by a motion
that is quick itself,

    σ → 1 / (1 + (s / s_0)²)   and, while it is behind and s is small, up to MAX_SPEED,
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

HALF_SPEED_ERROR = 0.04
"""s_0: at this capture point error the motion runs at half its speed [m]."""
MAX_SPEED = 1.25
LAG = 0.1
"""Time constant of the speed [s]."""


class TimeScaled:
    """A clip at the speed that the balance allows; give it to `poise.run` in the clip's place.

    Args:
        clip: The motion.
        balance: The controller whose `capture_point_error` sets the speed.
        half_speed_error: s_0 [m].
    """

    def __init__(self, clip: Any, balance: Any, half_speed_error: float = HALF_SPEED_ERROR) -> None:
        if not hasattr(clip, "target"):
            raise PoiseError(f"{clip!r:.60} is no clip: there is nothing to slow down")
        self.clip, self.balance = clip, balance
        self.half_speed_error = number(half_speed_error, "half_speed_error", unit="m")
        self.time: Floats = np.zeros(1)
        """Where each copy is in the clip [s], shape (n,)."""
        self.speed: Floats = np.ones(1)
        self._last: float | None = None

    @property
    def duration(self) -> float:
        """Of the clip [s]."""
        return float(self.clip.duration)

    def is_finished(self) -> bool:
        """Whether every copy has reached the end of the clip."""
        return bool((self.time >= self.duration).all())

    @property
    def memory(self) -> Floats:
        """Times and speeds, shape (2, n)."""
        return np.stack([self.time, self.speed])

    def restore(self, memory: ArrayLike, at: float | None = None) -> None:
        """Continue from a memory.

        Args:
            memory: Shape (2, n).
            at: The time of the world when it was kept [s]; None is that of the next call.
        """
        given = finite(floats(memory, "memory"), "memory")
        if given.ndim != 2 or len(given) != 2 or not given.size:
            raise PoiseError(f"memory has shape {given.shape}, expected (2, n)")
        self.time, self.speed = (row.copy() for row in given)
        self._last = at

    def state(self, t: float) -> Any:
        """The clip's state at its own time t [s]."""
        return self.clip.state(t)

    def target(self, t: float) -> Target:
        """The target at the world's time t [s], which only grows."""
        if np.ndim(t):
            raise PoiseError(
                "a time-scaled motion follows one clock, and those of the copies differ; reset "
                "them to one time"
            )
        if self._last is not None and t < self._last - 1e-9:
            # the world was set back: so is the clip
            self.time, self.speed = np.full_like(self.time, t), np.ones_like(self.speed)
        passed = 0.0 if self._last is None else max(t - self._last, 0.0)
        if self._last is None:
            self.time = np.full_like(self.time, t) if not self.time.any() else self.time
        self._last = t
        error = np.asarray(self.balance.capture_point_error)
        if len(error) != len(self.time):
            self.time = np.full(len(error), self.time[0])
            self.speed = np.full(len(error), self.speed[0])
        relative = (error / self.half_speed_error) ** 2
        behind = np.clip((t - self.time) / 0.5, 0.0, 1.0)
        desired = (1.0 + (MAX_SPEED - 1.0) * behind * (relative < 0.1)) / (1.0 + relative)
        change = (desired - self.speed) * min(passed / LAG, 1.0)
        self.speed = self.speed + change
        self.time = self.time + self.speed * passed
        time = self.time if len(self.time) > 1 else self.time[0]
        speed, rate = (
            x[:, None] if len(self.time) > 1 else x[0]
            for x in (self.speed, change / max(passed, 1e-9))
        )
        at = self.clip.target(time)
        a = at.a * speed**2 + at.v * rate
        within = time if at.time is None else at.time
        return Target(at.q, at.v * speed, a, time=within, clip=at.clip)

    def targets(self, t: float, dt: float, k: int) -> Target:
        """Refuses: the speed depends on what happens."""
        raise PoiseError("a time-scaled motion cannot be sampled ahead: one target at a time")
