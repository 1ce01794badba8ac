"""What `check_gains` found, and the gains to take instead."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from poise.control.gains import Gains
from poise.errors import PoiseError
from poise.math.arrays import Floats, number
from poise.model.scene import Scene

SAFETY = 0.8
"""How much of the largest gains `GainsCheck.safe_gains` takes, unless told."""

ECHO = 0.25
"""A feedback of rounding errors from here on counts as unstable. Trees were seen to fail from 0.3
on and to hold up to 2: the constants of rounding differ from tree to tree and method to method."""


@dataclass(frozen=True, eq=False)
class GainsCheck:
    """What `check_gains` found. Leading axes are those of gains, copies and poses."""

    form: str  # "pd", "explicit", "spd" or "implicit"
    method: str  # "maba", "df", "sf" or "pcg"
    dt: float  # time step [s]
    names: tuple[str, ...]  # joint of each velocity
    unstable: tuple[str, ...]  # joints that fail, the worst first
    kp: Floats  # the gains that were asked about, shape (nv,) or (n, nv)
    kd: Floats
    inertia: Floats  # least inertia that each joint feels [kg m^2, kg], shape (..., nv)
    largest_kp: Floats  # see `check_gains`, shape (..., nv)
    largest_kd: Floats
    margin: Floats  # factor by which all kp (of "pd" also kd) may grow, shape (...)
    largest_dt: Floats  # time step below which the gains are stable [s], shape (...)
    feedback: Floats  # part of a rounding error that returns a step later, shape (...)
    scene: Scene = field(repr=False)

    @property
    def stable(self) -> NDArray[np.bool_]:
        """Whether errors die out, shape (...)."""
        return np.asarray((self.margin > 1.0) & (self.feedback < ECHO))

    def __bool__(self) -> bool:
        return bool(self.stable.all())

    def safe_gains(self, safety: float = SAFETY) -> Gains:
        """The given gains, each cut to a part of the largest; of several poses, the least.

        Args:
            safety: That part, between 0 and 1.
        """
        if not 0.0 < number(safety, "safety", unit="ratio") < 1.0:
            raise PoiseError(f"safety is {safety:g}; it must be between 0 and 1")
        if (self.feedback >= ECHO).any():
            raise PoiseError("rounding fails, not gains: use embedded=True, or dtype='float64'")
        kp = _least(np.minimum(self.kp, safety * self.largest_kp), self.kp.ndim)
        kd = _least(np.minimum(self.kd, safety * self.largest_kd), self.kd.ndim)
        return Gains(self.scene, kp, kd)

    def __str__(self) -> str:
        what = f"form {self.form!r} at dt = {self.dt:.4g} s"
        if self:
            if np.isinf(self.margin).all():
                return f"{what} is stable, with any gains"
            return f"{what} is stable; all kp may grow by a factor of {self.margin.min():.3g}"
        first = f"{what} is unstable, first in joint {self.unstable[0]!r}"
        if (self.margin > 1.0).all():
            return (
                f"{first}: rounding errors of its torque return a step later, "
                f"{self.feedback.max():.3g} times as large; use embedded=True, or dtype='float64'"
            )
        cuts = [f"  {line}" for name in dict.fromkeys(self.names) if (line := self._cut(name))]
        below = f"It is stable below dt = {self.largest_dt.min():.3g} s, or with"
        return "\n".join([f"{first}. {below}", *cuts])

    def _cut(self, joint: str) -> str:
        """What a joint's gains should be instead of what they are; "" where they may stay."""
        own = [i for i, name in enumerate(self.names) if name == joint]
        words = []
        for name in ("kp", "kd"):
            given = getattr(self, name)[..., own].max()
            most = getattr(self, f"largest_{name}")[..., own].min()
            if most < given:
                words.append(f"{name} at most {most:.4g}, not {given:.4g}")
        return f"{joint}: {' and '.join(words)}" if words else ""


def _least(k: Floats, ndim: int) -> Floats:
    """The least over leading axes, until only ndim axes are left."""
    return np.asarray(k.min(axis=tuple(range(k.ndim - ndim))))
