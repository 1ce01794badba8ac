"""Playback: a recording on a stage, picture by picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from poise.dynamics import center_of_mass, forward_kinematics
from poise.math.arrays import Floats, shaped
from poise.model.scene import scene_of
from poise.simulation.contact import default_projectiles
from poise.simulation.pushes import Push
from poise.view.browser import Stage
from poise.view.colors import Colors
from poise.view.drawing import GHOST, GHOST_OPACITY, Primitive, drawing_of, hull_points
from poise.view.forces import arrow_vectors, force_scale, pair_forces
from poise.view.ghosts import apart
from poise.view.overlay import POINT
from poise.view.pushing import COLOR, PushArrows
from poise.view.surroundings import ground_height
from poise.view.timeline import Timeline

HIDDEN = 0.012
"""A ghost is hidden where it is nearer than this to what it shows [m]."""

FARTHEST = 8.0
"""How far from its beginning a motion is looked at [m]."""


class Playback:
    """What moves in a recording, under one name of a stage.

    Args:
        stage: Where to.
        timeline: What to show.
        name: Node that all stands under.
        ghost: Whether to show, see-through, what was asked for.
        forces: Arrows of contact forces: their scale [m/N]; 0 shows none.
        mass_center: Whether to mark the mass centre of each character, and the ground below.
        pushes: Arrows of these pushes.
        color: Of the characters, as of `render`.
        offset: By how much everything is moved [m], shape (3,).
    """

    def __init__(
        self,
        stage: Stage,
        timeline: Timeline,
        name: str,
        *,
        ghost: bool = True,
        forces: float = 0.0,
        mass_center: bool = True,
        pushes: Sequence[Push] = (),
        color: Colors = None,
        offset: ArrayLike = (0.0, 0.0, 0.0),
    ) -> None:
        recording = timeline.recording
        self._stage, self._line, self._name, self._forces = stage, timeline, name, forces
        self._offset = shaped(offset, "offset", (3,))
        self._bodies = stage.bodies(f"{name}/bodies", recording.scene, color=color, offset=offset)
        looks: dict[str, Any] = {"color": GHOST, "opacity": GHOST_OPACITY, "offset": offset}
        self._ghost = None
        if ghost and timeline.has_goal:
            self._ghost = stage.bodies(f"{name}/ghost", recording.scene, **looks)
        self._projectiles = None
        projectiles = default_projectiles(recording.settings.projectiles)
        if projectiles and timeline.thrown[..., 0].any():
            self._projectiles = stage.bodies(f"{name}/thrown", scene_of(projectiles), offset=offset)
        self._pushes = PushArrows(timeline, pushes, forces or force_scale(recording))
        self._centers = mass_centers(timeline) if mass_center else np.zeros((len(timeline), 0, 3))

    def update(self, k: int) -> None:
        """Show picture k."""
        self._bodies.update(self._line.q[k])
        if self._ghost is not None:
            goal, q = self._line.goal[k], self._line.q[k]
            # as it fades in pictures: a batch that changes how clear it is would be made anew
            goal = goal if np.isfinite(goal).all() else q
            self._ghost.update(goal, shown=apart(self._bodies.scene, q, goal) > HIDDEN)
        if self._projectiles is not None:
            thrown = self._line.thrown[k]
            self._projectiles.update(thrown[:, 1:].ravel(), shown=thrown[:, 0] > 0.0)
        self._marks(k)

    def _marks(self, k: int) -> None:
        """What explains: forces, pushes, mass centres."""
        if self._forces:
            points, forces = pair_forces(self._line.touches(k), copy=self._line.copy)
            ways = arrow_vectors(forces, self._forces)
            self._stage.arrows(f"{self._name}/forces", points + self._offset, ways)
        pushes = self._pushes.at(k)
        self._stage.arrows(
            f"{self._name}/pushes",
            np.reshape([push.start for push in pushes], (-1, 3)) + self._offset,
            np.reshape([push.vector for push in pushes], (-1, 3)),
            radius=max([push.radius for push in pushes], default=0.01) or 1e-6,
            color=COLOR,
        )
        center = self._centers[k] + self._offset
        if len(center):
            self._stage.balls(f"{self._name}/mass_center", center, radius=0.04)
            self._stage.update(f"{self._name}/below", self._discs(center))

    def _discs(self, center: Floats) -> list[Primitive]:
        """Marks on a level ground below mass centres."""
        height = ground_height(self._line.recording.settings)
        if height is None:
            return []
        at = [(x, y, height + 0.004) for x, y, _ in center.tolist()]
        return [Primitive("cylinder", (0.05, 0.003), pos, color=POINT) for pos in at]


def mass_centers(timeline: Timeline) -> Floats:
    """Mass centres of the characters of several links [m], shape (k, characters, 3)."""
    scene = timeline.recording.scene
    parts = zip(scene.characters, scene.forest.parts.values(), strict=True)
    found = [
        center_of_mass(character, timeline.q[:, part.q])
        for character, part in parts
        if len(character.links) > 1
    ]
    return np.stack(found, axis=1) if found else np.zeros((len(timeline), 0, 3))


def hull_of(timeline: Timeline, most: int = 48) -> Floats:
    """Balls (x, y, z, radius) whose hull holds the characters, shape (m, 4).

    It does so as long as they are within some metres of where they begin: a camera that saw all of
    a long way would see nothing on it.
    """
    some = np.unique(np.rint(np.linspace(0, len(timeline) - 1, most)).astype(int))
    scene, q = timeline.leads
    middle = forward_kinematics(scene, q[some])[0].mean(axis=1)
    near = np.linalg.norm(middle - middle[0], axis=1) <= FARTHEST
    return np.concatenate([hull_points(drawing_of(scene, q[k])) for k in some[near]])
