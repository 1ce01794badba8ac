"""Settings of a Balance: what they may be, and the tables that the core reads of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from poise.anatomy.body import place_of
from poise.anatomy.names import links_of
from poise.control.options import ControllerOptions, option
from poise.errors import PoiseError
from poise.math.arrays import Floats, finite, floats, number
from poise.model.character import Character
from poise.model.scene import Scene

OBJECTIVES = ("track", "linear", "angular")

GROUND_MODELS = ("equality", "friction_cone")
"""Supports as equality constraints, as in the thesis; or ground forces inside friction cones."""

OUTPUTS = ("acceleration", "force")

ROOT_WEIGHT = 0.03
"""Tracking weight of the root: the joints decide how it stands, the root where."""

UNTRACKED = 0.03
"""Factor of the tracking weights without the objective "track": no other objective determines the
acceleration of a finger."""

MAX_FRICTION = 100.0
"""Friction beyond this acts like glue, and leaves no digits for the rest of a force."""

MAX_RATIO = 1e6
"""Weights that differ by more are 0 or infinity to the solver."""


@dataclass(frozen=True)
class BalanceOptions(ControllerOptions):
    """Options of `poise.Balance`."""

    objectives: Sequence[str] = option(
        OBJECTIVES, "Objectives: any of track, linear, angular.", kind="words", words=OBJECTIVES
    )
    weights: Mapping[str, float] = option(
        {}, "Tracking weights by limb, link or root; others have 1.", kind="weights"
    )
    k_s: float = option(300.0, "Stiffness of tracking.", unit="1/s²", low=0.0, positive=True)
    k_d: float | None = option(
        None, "Damping of tracking; critical if left out.", unit="1/s", low=0.0, positive=True
    )
    linear_gains: Sequence[float] = option(
        (15.0, 7.7), "k_s, k_d of the center of mass.", kind="pair", unit="1/s², 1/s", low=0.0
    )
    linear_weight: float = option(1.0, "Weight of the linear objective.", low=0.0, high=MAX_RATIO)
    gamma: float = option(
        0.3, "Weight of the angular objective by the distance of CMP and CoP.", low=0.0
    )
    max_cmp_offset: float = option(
        0.05, "Largest distance of the desired CMP from the supports.", unit="m", low=0.0
    )
    desired_com: str | Sequence[float] = option(
        "motion",
        "Desired center of mass: as the motion has it, or x, y from the center of the supports.",
        kind="offset",
        unit="m",
        words=("motion",),
    )
    goals: Mapping[str, Any] = option({}, "Points that links or limbs should reach.", kind="points")
    goal_weight: float = option(1000.0, "Weight of each goal.", low=0.0, positive=True)
    supports: object = option("clip", "Links that may stand.", kind="object")
    support_gains: Sequence[float] | None = option(
        None,
        "k_s, k_d of a support; 400, 40 on contact by impulses and 50, 20 else.",
        kind="pair",
        unit="1/s², 1/s",
        low=0.0,
    )
    soft_limits: Sequence[float] | None = option(
        (400.0, 20.0),
        "Added stiffness and damping per radian beyond a joint's limits; none is off.",
        kind="pair",
        low=0.0,
        optional=True,
    )
    ground_model: str | None = option(
        None,
        "Supports as equality constraints, or friction cones; friction_cone on contact by "
        "impulses, else equality.",
        kind="word",
        words=GROUND_MODELS,
    )
    friction: float | None = option(
        None, "Friction of soles and ground; that of the world.", low=0.0, high=MAX_FRICTION
    )
    margin: float = option(
        0.005, "Distance of the desired CoP from the edge of the soles.", unit="m", low=0.0
    )
    servo_inertia: float = option(
        0.3, "Inertia of the acceleration servo, with output force.", unit="kg m²", low=0.0
    )
    rate: float | None = option(
        200.0,
        "Plans per second, with output acceleration.",
        unit="1/s",
        low=0.0,
        positive=True,
        optional=True,
    )
    output: str | None = option(
        None,
        "Joint accelerations, or torques; force on contact by impulses.",
        kind="word",
        words=OUTPUTS,
    )
    ground: float | None = option(None, "Height of the ground; that of the world.", unit="m")


def tracking_weight(scene: Scene, weights: Mapping[str, float]) -> Floats:
    """W, the tracking weight of each velocity, shape (nv,).

    Args:
        scene: The character.
        weights: By limb, link or "root".
    """
    out = np.ones(scene.nv)
    out[:6] = ROOT_WEIGHT
    for name, given in weights.items():
        value = number(given, f"weights[{name!r}]", positive=False, unit="")
        if name == "root":
            out[:6] = value
            continue
        mine = np.isin(scene.forest.link_of_dof, links_of(scene, name))
        mine[:6] = False
        out[mine] = value
    if not (np.isfinite(out) & (out > 0.0)).all():
        raise PoiseError(
            f"the least weight of tracking is {out.min():g}; each must be above 0, or the "
            "acceleration of a joint without another objective is undetermined"
        )
    if out.max() > MAX_RATIO or out.min() < 1.0 / MAX_RATIO:
        raise PoiseError(
            f"weights of tracking go from {out.min():g} to {out.max():g}; they must be "
            f"between {1.0 / MAX_RATIO:g} and {MAX_RATIO:g}, or the plan is singular"
        )
    return out


# ---- goals


class Goals:
    """Points that links should reach (M 6.1).

    Args:
        character: The character.
        scene: The same, compiled.
        goals: {link or limb: point [m]} or {link: (point, place in the link [m])}.
    """

    def __init__(self, character: Character, scene: Scene, goals: Mapping[str, Any]) -> None:
        if not isinstance(goals, Mapping):
            raise PoiseError(f"goals is {goals!r:.60}; it must be {{link: point}}")
        self.given = dict(goals)
        points, desired = [], []
        taken: dict[str, str] = {}
        for name, goal in goals.items():
            link, place, point = _goal(character, name, goal)
            if link in taken:
                raise PoiseError(
                    f"goals {taken[link]!r} and {name!r}: both are of link {link!r}, which takes "
                    "one"
                )
            taken[link] = name
            points.append([float(scene.link_index(link)), *place])
            desired.append(point)
        self.points: Floats = np.array(points, dtype=np.float64).reshape(-1, 4)
        """Link and place in it [m], shape (k, 4)."""
        self.desired: Floats = np.array(desired, dtype=np.float64).reshape(-1, 3)
        """Where the points should be [m], shape (k, 3)."""


def _goal(character: Character, name: str, goal: Any) -> tuple[str, Floats, Floats]:
    """Link, place in it, and point of a goal."""
    at = f"goals[{name!r}]"
    if isinstance(goal, tuple) and len(goal) == 2:
        link, (point, place) = name, (finite(floats(x, at), at) for x in goal)
    else:
        point = finite(floats(goal, at), at)
        link, found = place_of(character, name)
        place = np.array(found)
    if point.shape != (3,) or place.shape != (3,):
        raise PoiseError(
            f"{at} is {goal!r:.60}; it must be a point x, y, z, or a pair of a point and a place "
            "in the link"
        )
    return link, place, point


# ---- soft limits of joints (M 6.2): tracking stiffens as a joint leaves its range
#
#     k_s' = k_s + l_s (e_axis + e_twist),   k_d' = k_d + l_d (e_axis + e_twist)
#
# A ball turns by q = q_a q_t, q_t about its axis a, q_a taking a to a' = q a q^-1. e_axis is the
# angle by which a' is outside its cone, e_twist that by which φ = 2 atan2(q_vec·a, q_w), wrapped to
# (-π, π], is outside its bounds; both are 0 inside (the thesis prints an e_twist that is not). The
# cone is the joint's: round, of the angle `swing`. A hinge or slide has one bound on each side.


def joint_limit_table(character: Character) -> Floats:
    """Joints with a range, shape (m, 9): balls first.

    Each row has 1 for a ball, where its q and v begin, its axis, and swing and twist; or 0 three
    times in the place of the axis, 0 and low and high.
    """
    bounded = [joint for joint in character.joints if joint.limits is not None]
    joints = sorted(bounded, key=lambda joint: joint.kind != "ball")
    table = np.zeros((len(joints), 9))
    for row, joint in zip(table, joints, strict=True):
        ball = joint.kind == "ball"
        row[:3] = ball, character.q_slice(joint).start, character.v_slice(joint).start
        row[3:6] = joint.axis if ball else 0.0
        row[6:] = joint.limits if ball else (0.0, *(joint.limits or ()))
    return table
