"""Arrows of pushes: where they act, for as long as they act and a little after."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from poise.dynamics import forward_kinematics
from poise.errors import PoiseError
from poise.math.arrays import Floats
from poise.math.rotation import quat_matrix
from poise.simulation.pushes import Push
from poise.view.drawing import drawing_of, heading_of, hull_points
from poise.view.forces import LONGEST
from poise.view.timeline import Timeline

COLOR = (0.95, 0.52, 0.05)
RADIUS = 0.022
SHORTEST = 0.35
"""Arrow of a push [m]: a weak one is seen as well."""

LINGER = 0.25
"""How long an arrow gets thinner after its push [s]: a tenth of a second is hardly seen."""


class PushArrow(NamedTuple):
    """An arrow to be drawn.

    Attributes:
        start: Where it begins [m], shape (3,).
        vector: Where it points and how far [m], shape (3,).
        radius: Of its shaft [m].
    """

    start: Floats
    vector: Floats
    radius: float


class PushArrows:
    """Arrows of the pushes of a recording, which does not know them itself.

    Args:
        timeline: When and where.
        pushes: In the world's directions; forward and the like are those of the character that is
            pushed, at that time.
        scale: Length of an arrow [m/N].
    """

    def __init__(self, timeline: Timeline, pushes: Sequence[Push], scale: float) -> None:
        if not isinstance(pushes, Sequence) or not all(isinstance(p, Push) for p in pushes):
            raise PoiseError("pushes must be a sequence of Push, as parse_push makes them")
        self._timeline, self._scale = timeline, scale
        scene = timeline.recording.scene
        self._links = [scene.link_index(push.link) for push in pushes]
        self._pushes = [
            push.in_world(self._heading(i, push.at)) if isinstance(push.direction, str) else push
            for push, i in zip(pushes, self._links, strict=True)
        ]

    def at(self, k: int) -> list[PushArrow]:
        """Those of picture k."""
        time, out = float(self._timeline.time[k]), []
        for push, link in zip(self._pushes, self._links, strict=True):
            over = time - push.at - push.duration
            if push.at <= time + 1e-9 and over < LINGER:
                left = 1.0 - max(over, 0.0) / LINGER
                out.append(self._arrow(k, push, link, RADIUS * left))
        return out

    def _arrow(self, k: int, push: Push, link: int, radius: float) -> PushArrow:
        """It ends where the link's shapes begin."""
        scene, q = self._timeline.recording.scene, self._timeline.q[k]
        force = push.force_vector()
        along = force / np.linalg.norm(force)
        place, turn = forward_kinematics(scene, q)
        centre = place[link] + quat_matrix(turn[link]) @ scene.forest.link_com[link]
        counts = [len(one.shapes) for part in scene.characters for one in part.links]
        first = sum(counts[:link])
        balls = hull_points(drawing_of(scene, q)[first : first + counts[link]])
        reach = max([0.0, *(balls[:, 3] - (balls[:, :3] - centre) @ along)])
        length = float(np.clip(self._scale * push.force, SHORTEST, LONGEST))
        vector = length * along
        return PushArrow(centre - reach * along - vector, vector, radius)

    def _heading(self, link: int, time: float) -> float:
        """Where the character of a link looks at a time [rad]."""
        scene, line = self._timeline.recording.scene, self._timeline
        k = int(np.argmin(np.abs(line.time - time)))
        parts = scene.forest.parts.values()
        root = next(
            part.links.start for part in parts if part.links.start <= link < part.links.stop
        )
        return heading_of(forward_kinematics(scene, line.q[k])[1][root])
