"""A character that balances in the studio, for tests: built without threads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from studio_scenes import Clock, Studio

from poise.control.balance.config import goal_place
from poise.dynamics import forward_kinematics
from poise.math.pose import quat_matrix
from poise.studio.balancing import Balancing
from poise.studio.requests import Play, Request
from poise.studio.snapshot import Moment

WHO: dict[str, Any] = {
    "character": "humanoid-ball", "controller": "balance", "root": "free", "dt": 1 / 120,
}  # fmt: skip


class Stage:
    """A show with a character that balances, and a clock that the test moves."""

    def __init__(self, folder: Path, clip: str = "squat") -> None:
        self.clock = Clock()
        self.show = Studio(folder, self.clock, clip=clip, **WHO)
        self.show.ask(Play())

    def play(self, seconds: float) -> Moment:
        """Go on, and see what is."""
        for _ in range(round(60 * seconds)):
            self.clock.now += 1 / 60 + 1e-9
            self.show.advance(10.0)
        return self.now

    def ask(self, *asked: Request) -> None:
        for one in asked:
            self.show.ask(one)

    @property
    def now(self) -> Moment:
        return self.show.snapshot(1).moment

    @property
    def controller(self) -> Balancing:
        made = self.show.simulation.runner.controller
        assert isinstance(made, Balancing)
        return made


def place(moment: Moment, name: str) -> Any:
    """Where a link's point is [m]."""
    link, at = goal_place(moment.cast.character, name)
    origin, turn = forward_kinematics(moment.cast.scene, moment.q)
    i = moment.cast.link_index(link)
    return origin[i] + quat_matrix(turn[i]) @ at
