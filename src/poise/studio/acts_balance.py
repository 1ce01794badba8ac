"""What requests about balance do: objectives, pace, and points that links should reach."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from poise.control.balance.config import OBJECTIVES, goal_place
from poise.dynamics import forward_kinematics
from poise.errors import PoiseError, unknown_name
from poise.math.pose import quat_matrix
from poise.studio import limits
from poise.studio.choosing import balances
from poise.studio.requests import RemoveGoal, SetAdaptive, SetGoal, SetObjective
from poise.studio.show import Show

Point = tuple[float, float, float]


def set_objective(show: Show, asked: SetObjective) -> None:
    """An objective more, or less; all others stay."""
    on = {*show.controls.objectives, asked.name}
    if not asked.on:
        on.discard(asked.name)
    _set(show, objectives=tuple(name for name in OBJECTIVES if name in on))


def set_adaptive(show: Show, asked: SetAdaptive) -> None:
    """The clip waits, or does not."""
    _set(show, adaptive=asked.on)


def set_goal(show: Show, asked: SetGoal) -> None:
    """A point for a link, or another one; each link has one."""
    _check(show)
    character = show.simulation.setup.cast.character
    link, place = goal_place(character, asked.link)
    to = asked.to
    if to is None:
        show.need_live()
        show.simulation.settle()
        to = place_now(show, link, place)
    goals = {
        name: point
        for name, point in show.controls.goals.items()
        if name == asked.link or goal_place(character, name)[0] != link
    }
    if asked.link not in goals and len(goals) >= limits.MOST_GOALS:
        raise PoiseError(f"there are {limits.MOST_GOALS} goals, the most there can be")
    x, y, z = to
    _set(show, goals={**goals, asked.link: (x, y, z)})


def remove_goal(show: Show, asked: RemoveGoal) -> None:
    """No goal for a link, or none at all."""
    goals = dict(show.controls.goals)
    if asked.link is None:
        goals = {}
    elif goals.pop(asked.link, None) is None:
        raise PoiseError(unknown_name("goal", asked.link, list(goals)))
    _set(show, goals=goals)


def place_now(show: Show, link: str, place: Point) -> Point:
    """Where a place of a link is [m]."""
    world = show.simulation.runner.world
    at = show.simulation.setup.cast.link_index(link)
    origin, turn = forward_kinematics(world.scene, world.state.q)
    x, y, z = (origin[at] + quat_matrix(turn[at]) @ place).tolist()
    return x, y, z


def _check(show: Show) -> None:
    """Refuse where nobody balances."""
    if not balances(show.simulation.setup.controls):
        raise PoiseError("nobody balances here: choose the controller 'balance' first")


def _set(show: Show, **values: Any) -> None:
    """Another value, from now on; a scene that is being loaded begins with it, too."""
    _check(show)
    show.need_live()
    show.simulation.retune(replace(show.scene_controls(), **values))
    if balances(show.controls):
        show.controls = replace(show.controls, **values)
