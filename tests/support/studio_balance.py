"""A character that balances in the studio, for tests: built without threads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from studio_scenes import Clock, Studio

from poise import Balance
from poise.anatomy.body import place_of
from poise.dynamics import forward_kinematics
from poise.math.rotation import quat_matrix
from poise.studio.requests import Play, Request
from poise.studio.snapshot import Measures

WHO: dict[str, Any] = {
    "character": "humanoid-ball", "controller": "balance", "root": "free", "dt": 1 / 120,
}  # fmt: skip


class Stage:
    """A session with a character that balances, and a clock that the test moves."""

    def __init__(self, folder: Path, clip: str = "squat") -> None:
        self.clock = Clock()
        self.studio = Studio(folder, self.clock, clip=clip, **WHO)
        self.studio.ask(Play())

    def play(self, seconds: float) -> Measures:
        """Go on, and see what is."""
        for _ in range(round(60 * seconds)):
            self.clock.now += 1 / 60 + 1e-9
            self.studio.advance(10.0)
        return self.now

    def ask(self, *asked: Request) -> None:
        for one in asked:
            self.studio.ask(one)

    @property
    def now(self) -> Measures:
        return self.studio.make_snapshot().measures

    @property
    def controller(self) -> Balance:
        made = self.studio.simulation.controller
        assert isinstance(made, Balance)
        return made


def place(measures: Measures, name: str) -> Any:
    """Where a link's point is [m]."""
    link, at = place_of(measures.index.character, name)
    origin, turn = forward_kinematics(measures.index.scene, measures.q)
    i = measures.index.link_index(link)
    return origin[i] + quat_matrix(turn[i]) @ at
