"""The rest pose of a character: positions, orientations and surfaces of its links."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from poise import dynamics
from poise.math.arrays import Floats
from poise.math.rotation import rotate
from poise.model.character import Character
from poise.model.geometry import surface_points


class RestPose:
    """The links of a character in its rest pose.

    Attributes:
        character: The character.
        index: Number of each link, by its name.
        p: Positions of the links [m], shape (links, 3).
        R: Orientations of the links, shape (links, 4).
    """

    def __init__(self, character: Character) -> None:
        self.character = character
        self.index = {link.name: i for i, link in enumerate(character.links)}
        self.parent = {link.name: link.parent for link in character.links}
        self.p, self.R = dynamics.forward_kinematics(character, character.rest_q)
        self.p.flags.writeable = self.R.flags.writeable = False

    def position(self, name: str) -> Floats:
        """Position of a link's origin [m], shape (3,)."""
        return np.asarray(self.p[self.index[name]])

    def orientation(self, name: str) -> Floats:
        """Orientation of a link, shape (4,)."""
        return np.asarray(self.R[self.index[name]])

    def surface(self, name: str) -> Floats:
        """Surface points of a link's shapes, in its frame [m], shape (n, 3)."""
        clouds = [surface_points(shape) for shape in self.character.link(name).shapes]
        return np.concatenate(clouds) if clouds else np.zeros((0, 3))

    def world_surface(self, name: str) -> Floats:
        """Surface points of a link's shapes, in the world [m], shape (n, 3)."""
        return self.position(name) + rotate(self.orientation(name), self.surface(name))

    def far_end(self, name: str, fraction: float) -> Floats:
        """Mean of the surface points that are farther from a link's origin than a fraction of the
        farthest one, from the origin in world axes [m], shape (3,); zero without shapes."""
        points = self.surface(name)
        far = np.linalg.norm(points, axis=1)
        if not len(far):
            return np.zeros(3)
        return rotate(self.orientation(name), points[far > fraction * far.max()].mean(axis=0))

    def middle(self, name: str) -> Floats:
        """Middle of the box around a link's shapes, from its origin in world axes [m], shape (3,);
        zero without shapes."""
        points = self.surface(name)
        if not len(points):
            return np.zeros(3)
        return rotate(self.orientation(name), (points.min(axis=0) + points.max(axis=0)) / 2.0)

    def ancestors(self, name: str) -> list[str]:
        """Names of the links above one, nearest first."""
        found, above = [], self.parent[name]
        while above is not None:
            found.append(above)
            above = self.parent[above]
        return found

    def subtree(self, name: str) -> list[str]:
        """Names of a link and of all its descendants, parents first."""
        return [link for link in self.index if name in (link, *self.ancestors(link))]


@lru_cache(maxsize=64)
def rest_pose(character: Character) -> RestPose:
    """The rest pose of a character, made once."""
    return RestPose(character)


def size_of(character: Character) -> float:
    """Half the largest extent of a character in its rest pose [m]; for a human, the leg."""
    rest = rest_pose(character)
    cloud = np.concatenate([rest.p, *(rest.world_surface(name) for name in rest.index)])
    return float(np.ptp(cloud, axis=0).max()) / 2.0
