"""How a recorded character stood: falls, feet, mass centre, COP and CMP over the supports."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from poise import dynamics, measure
from poise.anatomy.feet import feet_of, positions
from poise.errors import PoiseError
from poise.math import rotation
from poise.math.arrays import Floats, runs
from poise.model.character import Character
from poise.recording.metrics import all_contacts
from poise.recording.recording import Recording

Bools = NDArray[np.bool_]

STANDS = 0.003
"""A sole of the target that is lower than this all over stands [m]."""

BELOW = 0.15
"""A head this much lower than the target's belongs to a character that falls, if it is below 60 %
of its standing height, too; as a part of that height."""


class Stance(NamedTuple):
    """One copy over time, k frames; what nothing determines is NaN.

    Attributes:
        time: [s], shape (k,).
        fallen: Shape (k,).
        head: Height of the head as a part of that at rest, shape (k,).
        com: Mass centre [m], shape (k, 3).
        cop: Centre of pressure [m], shape (k, 3).
        cmp: Centroidal moment pivot [m], shape (k, 3).
        support: Hull of the soles that touch.
        feet: Names of the feet.
        stands: Which stand in the target, shape (k, feet).
        moved: How far each is from where it came to stand [m], shape (k, feet).
        tilted: By how much it is not level as in the target [degrees], shape (k, feet).
        momentum: Linear [N·s] and angular about the mass centre [N·m·s].
        asked: Angular momentum of the target's motion [N·m·s], shape (k, 3).
    """

    time: Floats
    fallen: Bools
    head: Floats
    com: Floats
    cop: Floats
    cmp: Floats
    support: measure.Polygons
    feet: tuple[str, ...]
    stands: Bools
    moved: Floats
    tilted: Floats
    momentum: measure.Momentum
    asked: Floats

    @property
    def fell(self) -> float | None:
        """When it fell [s]; None if it did not."""
        return float(self.time[int(np.argmax(self.fallen))]) if self.fallen.any() else None


def stance_of(recording: Recording, copy: int = 0) -> Stance:
    """How one copy of a recording stood.

    Args:
        recording: Of one character.
        copy: Which copy.
    """
    if len(recording.scene.characters) != 1:
        raise PoiseError("balance is measured of one character")
    character = recording.scene.characters[0]
    columns = recording.frames.arrays()
    q, v = columns["q"][:, copy], columns["v"][:, copy]
    goal = _goals(recording, copy, q)
    frames, n = len(recording), recording.n
    touches = all_contacts(recording)
    one = touches.rows(touches.copy % n == copy)
    one = one._replace(copy=one.copy // n)
    reaction = measure.ground_reaction(recording.scene, one, copies=frames)
    com = measure.center_of_mass(character, q)
    points = feet_of(character)
    at, goal_at = (positions(character, points, x) for x in (q, goal))
    feet = tuple(dict.fromkeys(point.foot for point in points))
    owner = np.array([feet.index(point.foot) for point in points])
    touching = _touching(character, one, frames, [point.link for point in points])
    stands = np.stack(
        [goal_at[:, owner == i, 2].max(axis=1) < STANDS for i in range(len(feet))], axis=1
    )
    head = measure.head_height(character, q)
    low = np.minimum(measure.FALLEN, measure.head_height(character, goal) - BELOW)
    return Stance(
        columns["time"][:, copy],
        np.asarray((head < low) | measure.lying(recording.scene, one, copies=frames)),
        head,
        com,
        reaction.point,
        measure.centroidal_moment_pivot(com, reaction.force),
        measure.convex_hulls(at, touching),
        feet,
        stands,
        _moved(at, owner, stands),
        _tilted(character, q, goal, feet, stands),
        measure.momentum(character, q, v),
        measure.momentum(character, goal, _rates(character, goal, recording.interval)).angular,
    )


def balance_table(stance: Stance) -> dict[str, Any]:
    """What a stance comes to, ready for JSON.

    Returns:
        A dictionary.

        - stood: Whether it never fell; fell: when it did [s], or None.
        - head: Lowest height of the head, as a part of that at rest.
        - feet: By foot that stands at any time, the farthest from where it stood [m], and the
          largest tilt [degrees], until it fell.
        - margins: Of "com", "cop", "cmp": distance to the edge of the supports, the least and the
          least but for one frame in twenty, below zero outside [m].
        - angular_momentum: Largest, and largest of the target [N·m·s].
    """
    until = int(np.argmax(stance.fallen)) if stance.fallen.any() else len(stance.time)
    kept = slice(1, max(until, 2))  # in the first frame nothing has touched yet
    feet = {}
    for i, name in enumerate(stance.feet):
        if stance.stands[kept, i].any():
            feet[name] = {
                "moved": _most(stance.moved[kept, i]),
                "tilted": _most(stance.tilted[kept, i]),
            }
    margins = {}
    for name in ("com", "cop", "cmp"):
        each = measure.support_margin(stance.support, getattr(stance, name))[kept]
        each = each[np.isfinite(each)]
        margins[name] = {
            "least": float(each.min()) if len(each) else None,
            "p5": float(np.percentile(each, 5.0)) if len(each) else None,
        }
    return {
        "stood": stance.fell is None,
        "fell": stance.fell,
        "head": float(stance.head.min()),
        "feet": feet,
        "margins": margins,
        "angular_momentum": {
            "most": _most(np.linalg.norm(stance.momentum.angular[kept], axis=1)),
            "asked": _most(np.linalg.norm(stance.asked[kept], axis=1)),
        },
    }


def _goals(recording: Recording, copy: int, q: Floats) -> Floats:
    """What was asked for, frame by frame; the pose itself before anything was."""
    from poise.view.timeline import goals_of

    goal = goals_of(recording, copy)
    first = goal[np.isfinite(goal).all(axis=1)][:1]
    start = first[0] if len(first) else q[0]
    return np.where(np.isfinite(goal), goal, start)


def _touching(character: Character, touches: Any, frames: int, links: list[str]) -> Bools:
    """Which points belong to a link that touches the ground, shape (k, points)."""
    index = {link.name: i for i, link in enumerate(character.links)}
    down = measure.closed(measure.ground_contacts(touches))
    on = np.zeros((frames, len(character.links)), dtype=bool)
    mine = (down.link >= 0) & (down.link < len(character.links))
    on[down.copy[mine], down.link[mine]] = True
    return np.asarray(on[:, [index[name] for name in links]])


def _moved(at: Floats, owner: NDArray[np.int64], stands: Bools) -> Floats:
    """How far the middle of each sole is from where it came to stand; NaN while it does not."""
    out = np.full(stands.shape, np.nan)
    for i in range(stands.shape[1]):
        middle = at[:, owner == i].mean(axis=1)[:, :2]
        for a, b in runs(stands[:, i]):
            out[a:b, i] = np.linalg.norm(middle[a:b] - middle[a], axis=1)
    return out


def _tilted(
    character: Character, q: Floats, goal: Floats, feet: tuple[str, ...], stands: Bools
) -> Floats:
    """Angle between what is up for a foot, and for that of the target [degrees]."""
    index = {link.name: i for i, link in enumerate(character.links)}
    _, now = dynamics.forward_kinematics(character, q)
    _, then = dynamics.forward_kinematics(character, goal)
    out = np.full(stands.shape, np.nan)
    up = np.array([0.0, 0.0, 1.0])
    for i, name in enumerate(feet):
        one, other = (
            rotation.rotate(rotation.conjugate(R[:, index[name]]), up) for R in (now, then)
        )
        cosine = np.clip((one * other).sum(axis=1), -1.0, 1.0)
        out[:, i] = np.where(stands[:, i], np.degrees(np.arccos(cosine)), np.nan)
    return out


def _rates(character: Character, q: Floats, interval: float) -> Floats:
    """Velocities of frames (k, nq), by differences."""
    from poise.model import configuration

    if len(q) < 2:
        return np.zeros((len(q), character.nv))
    step = configuration.difference(character, q[:-1], q[1:]) / interval
    return np.concatenate([step, step[-1:]])


def _most(values: Floats) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.max()) if len(finite) else 0.0
