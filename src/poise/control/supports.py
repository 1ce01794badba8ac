"""Supports: the points of a character that stand on the ground, found from its shapes."""

from __future__ import annotations

import math

import numpy as np

from poise.dynamics import forward_kinematics
from poise.math.arrays import Floats, Ints
from poise.math.pose import Pose
from poise.math.rotation import quat_matrix
from poise.model.scene import SceneLike, scene_of
from poise.simulation.contact.pairs import shape_probes

NEAR = 0.01
"""A point stands if it is no higher than this over the ground [m]."""


class Supports:
    """The corners and ends of all shapes, and which of them are near the ground.

    Args:
        character: The character, or a scene.
        links: Only these, by name; None is all.
    """

    def __init__(self, character: SceneLike, links: list[str] | None = None) -> None:
        self.scene = scene_of(character)
        found: list[tuple[int, tuple[float, ...], float]] = []
        every = [link for part in self.scene.characters for link in part.links]
        for i, link in enumerate(every):
            if links is not None and link.name not in links:
                continue
            for shape in link.shapes:
                for probe in shape_probes(shape, Pose(shape.quat, shape.pos), math.inf):
                    # a rim is taken at its centre
                    found.append((i, probe[0], probe[2]))
        self.link: Ints = np.array([i for i, _, _ in found], dtype=np.int32)
        self.point = np.array([p for _, p, _ in found]).reshape(-1, 3)
        self.radius = np.array([r for _, _, r in found])

    def extent(self) -> float:
        """How far the points are apart at rest, along the axis where it is most [m]."""
        if not len(self.point):
            return 0.0
        one = self.scene._replace(overrides=None)
        places = self._places(*forward_kinematics(one, one.forest.rest_q))
        return float(np.ptp(places, axis=0).max())

    def near(
        self, at: Floats, turn: Floats, ground: float = 0.0, reach: float = NEAR
    ) -> tuple[Ints, Floats]:
        """Points that stand on a level ground: links (k,) and places in the world (k, 3) [m].

        Args:
            at: Where the links are [m], shape (nl, 3), from `dynamics.forward_kinematics`.
            turn: How they are turned, shape (nl, 4).
            ground: Height of the ground [m].
            reach: How far above it a point still stands [m].
        """
        places = self._places(at, turn)
        low = places[:, 2] < ground + reach
        return self.link[low], places[low]

    def _places(self, at: Floats, turn: Floats) -> Floats:
        """The lowest of each point's sphere, in the world (k, 3) [m]."""
        arms = np.einsum("kij,kj->ki", quat_matrix(turn[self.link]), self.point)
        places: Floats = at[self.link] + arms
        places[:, 2] -= self.radius
        return places
