"""Command: the input of a world's step, and the Target that a drive follows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise import _core
from poise.dynamics import FORMS, METHODS
from poise.errors import PoiseError
from poise.math.arrays import Floats, choice, count, floats

if TYPE_CHECKING:
    from poise.control.gains import Gains
    from poise.motion.clip import Clip


class Target:
    """Where a character should be at the end of the step, or of each of several steps.

    Args:
        q: Positions, shape (nq,) or (n, nq); with rows (k, nq) or (k, n, nq).
        v: Velocities, shaped alike; None is rest.
        a: Accelerations, shaped alike; used where the reference is fed forward.
        rows: k if the first axis is one row per step, else None.
        past: Positions one and two steps before, shape (..., 2, nq), for controllers that take
            velocity and acceleration of the target as differences.
        time: When it is in the motion that it belongs to [s], shape () or (n,); with rows (k,) or
            (k, n); or None.
        clip: The clip it was sampled from, or None.
    """

    __slots__ = ("a", "clip", "past", "q", "rows", "time", "v")

    def __init__(
        self,
        q: ArrayLike,
        v: ArrayLike | None = None,
        a: ArrayLike | None = None,
        *,
        rows: int | None = None,
        past: ArrayLike | None = None,
        time: ArrayLike | None = None,
        clip: Clip | None = None,
    ) -> None:
        self.q: Floats = floats(q, "target.q")
        self.v: Floats | None = None if v is None else floats(v, "target.v")
        self.a: Floats | None = None if a is None else floats(a, "target.a")
        self.past: Floats | None = None if past is None else floats(past, "target.past")
        self.time: Floats | None = None if time is None else floats(time, "target.time")
        if clip is not None and not hasattr(clip, "character"):
            raise PoiseError(f"clip must be a Clip, got {clip!r:.80}")
        self.clip = clip
        self.rows = rows
        if rows is not None:
            self.rows = count(rows, "rows")

    @classmethod
    def of(cls, target: Any) -> Target:
        """A Target as it is, or that of a State or of anything with q and v."""
        if isinstance(target, Target):
            return target
        if hasattr(target, "target"):
            raise PoiseError(f"a target is one instant of a motion: sample it, {_sampled(target)}")
        if not hasattr(target, "q"):
            raise PoiseError(f"a target is a Target or a State, got {target!r:.80}")
        v, a, clip = (getattr(target, name, None) for name in ("v", "a", "clip"))
        return cls(target.q, v, a, clip=clip, time=None if clip is None else target.time)

    def check_followable(self) -> None:
        """Warns with `poise.UnfollowableTarget` if it follows a jump of its clip; once for each."""
        if self.clip is not None and self.clip.jumps and self.time is not None:
            self.clip.check_followable(self.time)

    def row(self, i: int) -> Target:
        """One row as a target of its own."""
        if self.rows is None:
            return self
        v, a, past, time = (
            None if x is None else x[i] for x in (self.v, self.a, self.past, self.time)
        )
        return Target(self.q[i], v, a, past=past, time=time, clip=self.clip)


def _sampled(motion: Any) -> str:
    return "clip.target(t + world.dt)" if hasattr(motion, "frames") else "motion.target(t)"


_FORM_INDEX = {name: i for i, name in enumerate(FORMS)}
_METHOD_INDEX = {name: i for i, name in enumerate(METHODS)}
_init_drive: Any = _core.Drive.__init__


class Drive(_core.Drive):
    """Gains and a target that the engine solves implicitly inside the dynamics.

    Args:
        gains: Made once, referred to by every command.
        target: At t + dt, one row or one per step.
        form: "implicit", "spd", "explicit" or "pd"; see `poise.dynamics.stable_pd`. Or of each
            degree of freedom, as index into `poise.dynamics.FORMS`, shape (nv,).
        method: "maba" (linear time), or a baseline: "df", "sf", "pcg".
        embedded: False solves for the torques first and then again for the motion.
        feedforward: Add to free roots that the gains drive the force that the target's own motion
            needs there; True, or which degrees of freedom, shape (nv,).
        strength: Factor of gains and effort limits per link, shape (nl,) or (n, nl).
        pin: Weight of the pin that holds a link to its target in the world: 0 is none, 1 holds it
            at the gains' pin frequency; shape (nl,) or (n, nl).
    """

    __slots__ = ("gains", "target")

    gains: Gains
    target: Target

    def __init__(
        self,
        gains: Gains,
        target: Any,
        *,
        form: str | NDArray[np.uint8] = "implicit",
        method: str = "maba",
        embedded: bool = True,
        feedforward: bool | NDArray[np.bool_] = False,
        strength: ArrayLike | None = None,
        pin: ArrayLike | None = None,
    ) -> None:
        if not hasattr(gains, "core"):
            raise PoiseError(f"gains must be made by Gains or suggest_gains, got {gains!r:.80}")
        if type(target) is not Target:
            target = Target.of(target)
        if type(feedforward) is not bool:
            try:
                feedforward = np.ascontiguousarray(feedforward, dtype=bool)
            except (TypeError, ValueError) as error:
                raise PoiseError(f"feedforward must be True, False or a mask: {error}") from None
        if type(embedded) is not bool:
            raise PoiseError(f"embedded must be True or False, got {embedded!r:.80}")
        # a controller makes a drive in every step: looked up in tables, not by `choice`
        form_index: Any = form if isinstance(form, np.ndarray) else None
        if isinstance(form, str):
            form_index = _FORM_INDEX.get(form)
        method_index = _METHOD_INDEX.get(method) if isinstance(method, str) else None
        if form_index is None or method_index is None:
            choice(form, "form", FORMS)
            choice(method, "method", METHODS)
        _init_drive(
            self,
            gains.core,
            target.q,
            target.v,
            target.a,
            target.rows or 0,
            None if strength is None else floats(strength, "strength"),
            None if pin is None else floats(pin, "pin"),
            form_index,
            method_index,
            embedded,
            feedforward,
        )
        self.gains = gains
        self.target = target

    def replace(self, gains: Gains, target: Target, **options: Any) -> Drive:
        """The same kind of drive with other gains and target, and other options as of Drive."""
        return Drive(gains, target, **{**self._options(), **options})

    def row(self, i: int) -> Drive:
        """The drive with one row of its target."""
        return self.replace(self.gains, self.target.row(i))

    def _options(self) -> dict[str, Any]:
        return {
            "form": self.form if isinstance(self.form, np.ndarray) else FORMS[self.form],
            "method": METHODS[self.method],
            "embedded": self.embedded,
            "feedforward": self.feedforward,
            "strength": self.strength,
            "pin": self.pin,
        }

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self.gains, self.target, self._options())


def _rebuild(gains: Gains, target: Target, options: dict[str, Any]) -> Drive:
    """A drive from its pickle."""
    return Drive(gains, target, **options)


@dataclass(slots=True)
class Command:
    """Input of a step. Parts add up; an engine that cannot take a part raises an error.

    Args:
        force: Generalized forces [N, N·m], shape (nv,) or (n, nv), held for the call.
        drive: Gains and targets, solved implicitly inside the dynamics.
        acceleration: Joint accelerations held for the call, turned into joint forces in every step
            by floating-base inverse dynamics; entries of free roots are not used.
        acceleration_mask: Which degrees of freedom get those, shape (nv,); None is all. Joints of
            the others get no force for it.
        velocity: Joint velocities at the end of the step; for impulse-based worlds.
    """

    force: ArrayLike | None = None
    drive: Drive | None = None
    acceleration: ArrayLike | None = None
    velocity: ArrayLike | None = None
    acceleration_mask: NDArray[np.bool_] | None = None

    def __post_init__(self) -> None:
        if self.force is not None:
            self.force = floats(self.force, "force")
        if self.acceleration is not None:
            self.acceleration = floats(self.acceleration, "acceleration")
        if self.velocity is not None:
            self.velocity = floats(self.velocity, "velocity")
        if self.drive is not None and not isinstance(self.drive, Drive):
            raise PoiseError(f"drive must be a Drive, got {self.drive!r:.80}")
