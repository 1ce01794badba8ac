"""Ghosts: what was asked for, see-through, where it is not hidden by what follows it well."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from poise.dynamics import forward_kinematics
from poise.math.arrays import Floats
from poise.model.scene import Scene
from poise.view.drawing import GHOST, GHOST_OPACITY, Primitive, drawing_of

THINNESS = 0.95

REACH = 0.2
"""A turn counts as the way of a point this far away [m]."""

NEAR, FAR = 0.006, 0.03
"""A link whose ghost is nearer than the first shows none; beyond the second, all of it [m]."""


def apart(scene: Scene, q: Floats, goal: Floats) -> Floats:
    """How far each link is from its ghost [m], shape (..., nl).

    Args:
        scene: The scene.
        q: Positions, shape (..., nq).
        goal: Positions of the ghost, shape (..., nq).
    """
    place, turn = forward_kinematics(scene, q)
    there, turned = forward_kinematics(scene, goal)
    chord = np.minimum(
        np.linalg.norm(turn - turned, axis=-1), np.linalg.norm(turn + turned, axis=-1)
    )
    way: Floats = np.linalg.norm(place - there, axis=-1) + 2.0 * REACH * chord
    return way


def ghost_drawing(scene: Scene, q: Floats, goal: Floats) -> list[Primitive]:
    """A ghost, thinner than its character, which fades where the two are one.

    Args:
        scene: The scene.
        q: Position of the character, shape (nq,).
        goal: Position of the ghost, shape (nq,).
    """
    links = [link for part in scene.characters for link in part.links]
    counts = [len(link.shapes) for link in links]
    seen = np.repeat(((apart(scene, q, goal) - NEAR) / (FAR - NEAR)).clip(0.0, 1.0), counts)
    out = []
    for thing, share in zip(
        thinner(drawing_of(scene, goal, color=GHOST, opacity=GHOST_OPACITY, group=-1)),
        seen.tolist(),
        strict=True,
    ):
        if share > 0.0:
            thing.__dict__["opacity"] *= share
            out.append(thing)
    return out


def thinner(things: Iterable[Primitive], by: float = THINNESS) -> list[Primitive]:
    """The same things with smaller radii; capsules and cylinders stay as long, meshes as they are.

    A ghost that is drawn so is hidden by the body that follows it well, where it would otherwise
    shine through here and there.

    Args:
        things: Primitives.
        by: What radii, and the sides of boxes, are multiplied by.
    """
    out = []
    for thing in things:
        slim = object.__new__(Primitive)
        slim.__dict__.update(thing.__dict__)
        keep = thing.size[1:] if thing.kind in ("capsule", "cylinder") else ()
        size = (*(by * x for x in thing.size[: len(thing.size) - len(keep)]), *keep)
        slim.__dict__["size"] = thing.size if thing.kind == "plane" else size
        out.append(slim)
    return out
