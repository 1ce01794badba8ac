"""Two steps of the humanoid with known contacts, and takes of the data folder."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest
from conftest import find_data

from poise import load_character
from poise.anatomy.contact_schedule import ContactSchedule
from poise.anatomy.feet import feet_of, positions
from poise.math import rotation
from poise.math.arrays import Floats
from poise.motion import Clip, ik, load_clip

DATA = find_data()
needs_data = pytest.mark.skipif(
    DATA is None, reason="no data folder: set POISE_DATA or put it at ../shared/data"
)
HUMANOID = load_character("humanoid")


def swing(t: Floats, start: float, length: float) -> Floats:
    """From 0 to 1 in that time, at rest before and after."""
    u = np.clip((t - start) / length, 0.0, 1.0)
    return u**3 * (10.0 - 15.0 * u + 6.0 * u * u)


@lru_cache(maxsize=8)
def stepping(fps: float = 120.0, height: float = 0.0) -> tuple[Clip, ContactSchedule]:
    """Two steps of 0.4 m, right then left, made by inverse kinematics; and when the feet stand."""
    t = np.arange(round(2.0 * fps)) / fps
    points = feet_of(HUMANOID)
    stand = positions(HUMANOID, points, HUMANOID.rest_q)
    moves = {"right_foot": swing(t, 0.5, 0.4), "left_foot": swing(t, 1.1, 0.4)}
    q = np.tile(HUMANOID.rest_q, (len(t), 1))
    q[:, 0] += 0.2 * sum(moves.values())
    q[:, 2] -= 0.1
    # knees bent to begin with: a straight leg does not know which way
    for side in ("left", "right"):
        bend = {"hip": -0.4, "ankle": -0.4}
        for joint, angle in bend.items():
            q[:, HUMANOID.q_slice(f"{side}_{joint}")] = rotation.turn((0.0, 1.0, 0.0), angle)
        q[:, HUMANOID.q_slice(f"{side}_knee")] = 0.8
    goals: list[ik.Goal] = []
    for point, place in zip(points, stand, strict=True):
        u = moves[point.foot]
        target = np.tile(place, (len(t), 1))
        target[:, 0] += 0.4 * u
        target[:, 2] += 0.6 * u * (1.0 - u)
        goals.append(ik.Place(point.link, target, point.pos))
    q, _ = ik.solve(HUMANOID, q, goals, posture=1e-4, limits=False, iterations=30)
    q[:, 2] += height
    on = [(moves[p.foot] < 1e-9) | (moves[p.foot] > 1.0 - 1e-9) for p in points]
    return Clip(HUMANOID, q, fps), ContactSchedule(points, np.stack(on, axis=1))


def take(name: str) -> Clip:
    assert DATA is not None
    path = next(iter(sorted(DATA.glob(f"*/**/{name}"))))
    if path.suffix == ".txt":
        kind = path.stem.split("_")[0]
        body = load_character(DATA / "deepmimic" / "characters" / f"{kind}.txt")
        return load_clip(path, body, prepare=False)
    return load_clip(path)
