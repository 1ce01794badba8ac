"""A world in which nothing touches: for tests of dynamics alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import poise


class World(poise.World):
    """A poise.World with contact=None: no ground, collisions, joint limits or projectiles."""

    def __init__(
        self,
        character: poise.Character | Sequence[poise.Character],
        *,
        dt: float,
        **options: Any,
    ) -> None:
        super().__init__(character, dt=dt, **{"contact": None, **options})
