"""Goals on the stage: points that links should reach, with handles to drag them by."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from poise.control.balance.config import goal_place
from poise.dynamics import forward_kinematics
from poise.errors import PoiseError
from poise.math.arrays import Floats
from poise.math.pose import quat_matrix
from poise.studio.marks import bytes_of
from poise.studio.snapshot import Moment

COLOR = (0.95, 0.62, 0.07)
HANDLE, BALL, LINE = 0.2, 0.02, 0.005
"""Size of a handle, radius of a goal and thickness of the line to it, in heights."""

Point = tuple[float, float, float]

_numbers = itertools.count(1)


class Goal:
    """One goal on the stage: a handle, a ball in it, and a line from the link.

    Args:
        api: viser's scene.
        prefix: Name of the node it stands under.
        height: Of the character [m].
        moved: Called with where the handle is dragged to on the page [m].
    """

    def __init__(
        self, api: Any, prefix: str, height: float, moved: Callable[[Floats], None]
    ) -> None:
        # a name of its own: viser would take a new node for the old one, if it had the same name
        name = f"{prefix}/goal-{next(_numbers)}"
        self._handle = api.add_transform_controls(
            name, scale=HANDLE * height, disable_rotations=True, depth_test=False
        )
        self._ball = api.add_icosphere(
            f"{name}/ball", radius=BALL * height, color=bytes_of(COLOR), cast_shadow=False
        )
        self._line = api.add_line_segments(
            f"{name}-line", np.zeros((1, 2, 3)), bytes_of(COLOR), thickness=LINE * height
        )
        self._held: set[int] = set()

        async def dragged(event: Any) -> None:
            """Begin to drag, go on, or let go; coroutines come in order."""
            if event.phase == "start":
                self._held.add(event.client_id)
            elif event.phase == "end":
                self._held.discard(event.client_id)
            else:
                moved(np.array(self._handle.position, dtype=float))

        self._handle.on_update(dragged)

    def update(self, to: Floats, link: Floats) -> None:
        """Show it.

        Args:
            to: Where the goal is on the page [m]; a handle that is held is where the hand is.
            link: Where the link's point is [m].
        """
        if not self._held:
            self._handle.position = to
        else:
            to = np.array(self._handle.position, dtype=float)
        self._line.points = np.array([[link, to]])

    def let_go(self, page: int) -> None:
        """A page is gone: it holds nothing any more."""
        self._held.discard(page)

    def remove(self) -> None:
        """Take it off the stage."""
        for node in (self._line, self._ball, self._handle):
            node.remove()


class Goals:
    """All goals of a scene.

    Args:
        api: viser's scene.
        prefix: Name of the node they stand under.
        moved: Called with the name of a goal and where it is dragged to on the page [m].
    """

    def __init__(self, api: Any, prefix: str, moved: Callable[[str, Floats], None]) -> None:
        self._api, self._prefix, self._moved = api, prefix, moved
        self._goals: dict[str, Goal] = {}

    def update(self, wanted: dict[str, Point], moment: Moment, at: Floats, height: float) -> None:
        """Show these, and no others.

        Args:
            wanted: Name and place [m] of each.
            moment: The scene.
            at: The place of the world that is the page's origin [m], shape (3,).
            height: Of the character [m].
        """
        for name in set(self._goals) - set(wanted):
            self._goals.pop(name).remove()
        if not wanted:
            return
        origin, turn = forward_kinematics(moment.cast.scene, moment.q)
        for name, to in wanted.items():
            try:
                link, place = goal_place(moment.cast.character, name)
            except PoiseError:
                continue  # of the scene before, whose place another takes just now
            i = moment.cast.link_index(link)
            if name not in self._goals:
                self._goals[name] = self._made(name, height)
            self._goals[name].update(
                np.array(to) - at, origin[i] + quat_matrix(turn[i]) @ place - at
            )

    def let_go(self, page: int) -> None:
        """A page is gone."""
        for goal in list(self._goals.values()):
            goal.let_go(page)

    def clear(self) -> None:
        """Take all off the stage."""
        for goal in self._goals.values():
            goal.remove()
        self._goals.clear()

    def _made(self, name: str, height: float) -> Goal:
        return Goal(self._api, self._prefix, height, lambda to: self._moved(name, to))
