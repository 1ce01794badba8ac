"""Free objects: characters of one link that moves freely."""

from __future__ import annotations

from collections.abc import Sequence

from poise.model.character import Character, Joint, Link
from poise.model.shape import Shape
from poise.model.values import Vector


def free_object(
    name: str,
    shape: Shape | Sequence[Shape],
    *,
    mass: float | None = None,
    density: float | None = None,
    pos: Vector = (0.0, 0.0, 0.0),
    quat: Vector = (1.0, 0.0, 0.0, 0.0),
) -> Character:
    """A rigid object that moves freely: a character of one link, with one free joint, "root".

    Its density is even: mass centre and inertia are those of its shapes.

    Args:
        name: Of the object and of its link.
        shape: Its shape, or several, in the object's frame; where they overlap, both count.
        mass: Total mass [kg].
        density: Instead of a mass [kg/m^3]; 1000, that of water, if neither is given.
        pos: Where it starts: its origin in the world [m].
        quat: How it is turned there, w x y z.
    """
    shapes = (shape,) if isinstance(shape, Shape) else shape
    root = (Joint("root", "free"),)
    link = Link.from_shapes(
        name, None, shapes, density=density, mass=mass, pos=pos, quat=quat, joints=root
    )
    return Character(name, (link,))


def is_free_object(character: Character) -> bool:
    """Whether a character is an object: nothing moves it but a free joint."""
    return [joint.kind for joint in character.joints] == ["free"]
