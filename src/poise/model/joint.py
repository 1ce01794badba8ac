"""Joints: by what a link moves."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from poise.errors import CharacterError, check_known
from poise.model.validation import (
    Vector,
    check_direction,
    check_name,
    check_number,
    check_vector,
    read_only,
    set_fields,
)

JointKind = Literal["free", "ball", "hinge", "slide"]
SIZES = {"free": (7, 6), "ball": (4, 3), "hinge": (1, 1), "slide": (1, 1)}
"""Coordinates and degrees of freedom (nq, nv) of each joint kind."""

WIDEST = 20.0 * math.pi
"""Limits of a hinge beyond this were meant in degrees [rad]."""


@read_only("dataclasses.replace(joint, damping=...) makes another, for another Link")
@dataclass(frozen=True)
class Joint:
    """A joint by which a link moves.

    Args:
        name: Name, unique in the character.
        kind: "free", "ball", "hinge" or "slide".
        axis: Axis of a hinge or slide, and the axis a of a ball's limits, in the link's frame;
            normalised.
        pos: Anchor of a ball or hinge in the link's frame [m].
        armature: Rotor inertia, the same for all axes [kg m^2; kg for a slide].
        damping: Passive damping [N m s/rad; N s/m].
        stiffness: Passive stiffness [N m/rad; N/m].
        reference: Where the passive spring rests: a number (hinge, slide), a quaternion (ball);
            None is the zero pose.
        limits: Lower and upper bound of a hinge or slide [rad; m], or None. For a ball (swing,
            lower, upper) [rad]: with q = q_swing q_twist, where q_twist turns about a and q_swing
            takes a to q a q^-1 the shortest way, that way is at most swing, in 0..pi, and the
            twist, in -pi..pi, lies between lower and upper.
        effort: Largest torque or force [N m; N], or None. For a ball one number bounds the length
            of the torque vector, three bound its components in the child frame.
    """

    name: str
    kind: JointKind
    axis: Vector = (0.0, 0.0, 1.0)
    pos: Vector = (0.0, 0.0, 0.0)
    armature: float = 0.0
    damping: float = 0.0
    stiffness: float = 0.0
    reference: float | Vector | None = None
    limits: Vector | None = None
    effort: float | Vector | None = None

    def __post_init__(self) -> None:
        check_name("a joint's name", self.name)
        at = f"joint {self.name!r}: "
        check_known("kind", self.kind, list(SIZES), at=at, error=CharacterError)
        values: dict[str, Any] = {
            "axis": check_direction(at + "axis", self.axis, 3),
            "pos": check_vector(at + "pos", self.pos, 3),
            "reference": _reference(at, self.kind, self.reference),
            "limits": _limits(at, self.kind, self.limits),
            "effort": _effort(at, self.kind, self.effort),
        }
        for key in ("armature", "damping", "stiffness"):
            values[key] = check_number(at + key, getattr(self, key), least=0.0)
        if self.kind == "free" and any(values["pos"]):
            raise CharacterError(
                f"{at}pos of a free joint must be (0, 0, 0): it is the link's origin"
            )
        if self.kind == "free" and values["stiffness"]:
            raise CharacterError(
                f"{at}stiffness of a free joint must be 0: it has no place to rest"
            )
        set_fields(self, values)

    @property
    def nq(self) -> int:
        """Number of coordinates."""
        return SIZES[self.kind][0]

    @property
    def nv(self) -> int:
        """Number of degrees of freedom."""
        return SIZES[self.kind][1]


def _reference(at: str, kind: str, value: object) -> float | Vector | None:
    if value is None:
        return None
    if kind == "free":
        raise CharacterError(f"{at}reference of a free joint must be None: it has no spring")
    if kind == "ball":
        return check_direction(at + "reference", value, 4)
    return check_number(at + "reference", value)


def _limits(at: str, kind: str, value: object) -> Vector | None:
    if value is None:
        return None
    if kind == "free":
        raise CharacterError(f"{at}limits of a free joint must be None; all other kinds have them")
    if kind == "ball" and not (isinstance(value, (list, tuple, np.ndarray)) and len(value) == 3):
        raise CharacterError(
            f"{at}limits of a ball joint must be None or (swing, lower twist, upper twist), "
            f"got {value!r:.80}"
        )
    limits = check_vector(at + "limits", value, 3 if kind == "ball" else 2)
    lower, upper = limits[-2:]
    if lower > upper:
        raise CharacterError(f"{at}limits are reversed: lower {lower:g} > upper {upper:g}")
    if kind == "hinge" and max(map(abs, limits)) > WIDEST:
        widest = max(limits, key=abs)
        raise CharacterError(
            f"{at}limits of a hinge are in radians and within ten turns, got {limits}; "
            f"math.radians({widest:g}) = {math.radians(widest):.4g}, and None does not limit it"
        )
    # an angle written as pi may be one rounding above it
    if kind == "ball" and (limits[0] < 0.0 or max(map(abs, limits)) > math.pi + 1e-9):
        raise CharacterError(
            f"{at}limits of a ball joint must have swing in 0..pi and twist in -pi..pi, "
            f"got {limits}"
        )
    return limits


def _effort(at: str, kind: str, value: object) -> float | Vector | None:
    if value is None:
        return None
    if kind == "free":
        raise CharacterError(f"{at}effort of a free joint must be None: it has no motor")
    if kind == "ball" and isinstance(value, (list, tuple, np.ndarray)):
        efforts = check_vector(at + "effort", value, 3)
        return tuple(check_number(f"{at}effort[{i}]", x, least=0.0) for i, x in enumerate(efforts))
    return check_number(at + "effort", value, least=0.0)
