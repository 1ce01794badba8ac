"""Contacts made by hand, and small worlds to find some in."""

from __future__ import annotations

from typing import Any

import numpy as np
from objects import body

from poise import Character, Joint, Link, StablePD, State, World
from poise.characters import load_character
from poise.model.character import Shape
from poise.simulation.contact import Contacts

HUMANOID = load_character("humanoid")
G = 9.81
CRATE = Character(
    "crate",
    (
        Link(
            "crate",
            pos=(0.3, -0.2, 0.1),
            joints=(Joint("root", "free"),),
            mass=5.0,
            com=(0.05, -0.03, 0.02),
            inertia=(0.05, 0.08, 0.1),
            shapes=(Shape("box", (0.2, 0.15, 0.1)),),
        ),
    ),
)
"""A box whose center of mass is not in its middle."""


def rows(point: Any, force: Any = None, copy: Any = 0, normal: Any = (0, 0, 1)) -> Contacts:
    """Contacts of link 0 with the ground."""
    point = np.atleast_2d(np.asarray(point, dtype=float))
    k = len(point)
    force = np.zeros((k, 3)) if force is None else np.broadcast_to(np.array(force, float), (k, 3))
    whole = np.broadcast_to(np.array(copy, dtype=np.int64), (k,))
    zeros = np.zeros(k, dtype=np.int64)
    facing = np.broadcast_to(np.array(normal, dtype=float), (k, 3))
    return Contacts(whole, zeros, zeros - 1, point, facing, force, np.zeros(k))


def standing(n: int = 1, dt: float = 1 / 60, **options: Any) -> tuple[World, StablePD, State]:
    """Humanoids that hold their rest pose, and what they hold it with."""
    world = World(HUMANOID, n=n, dt=dt, **options)
    return world, StablePD(HUMANOID), State(HUMANOID.rest_q, np.zeros(HUMANOID.nv))


def pile() -> World:
    """A light box on a heavy one, at rest."""
    low = body(Shape("box", (0.2, 0.2, 0.1)), 4.0, "low", (0.0, 0.0, 0.1))
    top = body(Shape("box", (0.1, 0.1, 0.1)), 1.0, "top", (0.02, 0.0, 0.3))
    world = World([low, top], dt=1 / 60)
    world.step(steps=120)
    return world
