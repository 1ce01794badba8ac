"""What people do to a simulation, as deeds that can be done again: all numbers are settled."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from poise import dynamics, measure
from poise.anatomy import body
from poise.errors import PoiseError
from poise.math.arrays import Floats
from poise.math.rotation import quat_matrix
from poise.simulation import pushes as written
from poise.simulation.state import State
from poise.simulation.world import World
from poise.studio.cast import size_of
from poise.studio.history import Deed, Runner
from poise.studio.requests import AddObject, Drag, Push, Release, Throw
from poise.studio.setup import Setup, ground_at

CHESTS = ("chest", "thorax", "upper_torso", "torso", "spine", "trunk")
"""What a ball is thrown at, if there is such a link."""

ASIDE = 2.5
"""From how far a ball comes, in sizes of the character."""


def push(setup: Setup, world: World, asked: Push) -> tuple[Deed, written.Push]:
    """A push of a link, and the same as a recording's pictures know it."""
    link = setup.cast.link_index(asked.link)
    direction = asked.direction if isinstance(asked.direction, str) else tuple(asked.direction)
    if not isinstance(direction, str) and not any(direction):
        raise PoiseError("Push.direction has no length; it needs one")
    name = setup.cast.link_names[link]
    told = written.Push(name, max(asked.force, 1e-9), direction, float(world.time), asked.duration)  # type: ignore[arg-type]
    told = told.in_world(heading(setup, world, int(setup.cast.who[link])))
    force = told.force_vector()
    point = None if asked.at is None else _in_link(world, link, asked.at)

    def deed(runner: Runner) -> None:
        runner.world.push(link, force, asked.duration, point=point)

    return deed, told


def drag(setup: Setup, asked: Drag) -> Deed:
    """A spring that pulls a link, until it is released."""
    link = setup.cast.link_index(asked.link)

    def deed(runner: Runner) -> None:
        runner.world.drag(link, asked.to, point=asked.point)

    return deed


def release(setup: Setup, asked: Release) -> Deed:
    """Letting go."""
    link = None if asked.link is None else setup.cast.link_index(asked.link)
    return lambda runner: runner.world.release(link)


def throw(setup: Setup, world: World, asked: Throw, who: int) -> Deed:
    """A ball that meets a link where that will be, if it goes on as the mass centre does."""
    cast = setup.cast
    link = _middle(setup, who) if asked.link is None else cast.link_index(asked.link)
    who = max(int(cast.who[link]), 0) if asked.link is not None else who
    part, group = cast.part(who), cast.groups[0]
    state, gravity = world.state, world.gravity
    aim = _link_center(world, link)
    speed = measure.momentum(group.character, state.q[part.q], state.v[part.v]).linear
    speed = speed / max(group.character.mass, 1e-9)
    if asked.origin is None:
        angle = heading(setup, world, who) + 0.25 * math.pi
        way = np.array([math.cos(angle), math.sin(angle), 0.0])
        start = aim + ASIDE * size_of(group.character) * way
    else:
        start = np.array(asked.origin)
    start[2] = max(start[2], ground_at(setup, *start[:2]) + 0.15)
    velocity = _flight(start, aim, speed, asked.speed, gravity)

    def deed(runner: Runner) -> None:
        if runner.world.thrown[:, 0].all():
            _recall(runner.world, start)
        runner.world.throw(start, velocity)

    return deed


def gravity(value: tuple[float, float, float]) -> Deed:
    """Another gravity; the reference of objects knows it, too."""

    def deed(runner: Runner) -> None:
        runner.world.gravity = value
        runner.lineup = replace(runner.lineup, gravity=value)

    return deed


def loop(on: bool, now: float) -> Deed:
    """The clip starts again at its end, or not."""

    def deed(runner: Runner) -> None:
        runner.lineup = runner.lineup.looped(on, now)

    return deed


def place_for(setup: Setup, world: World, asked: AddObject, who: int) -> tuple[float, ...]:
    """Where an object is put: in front of a character, upon the ground."""
    if asked.position is not None:
        return tuple(asked.position)
    part, angle = setup.cast.part(who), heading(setup, world, who)
    root = dynamics.forward_kinematics(world.scene, world.state.q)[0][part.links.start]
    ahead = 0.7 * size_of(setup.cast.character) + asked.size
    x = float(root[0]) + ahead * math.cos(angle)
    y = float(root[1]) + ahead * math.sin(angle)
    tall = asked.size if asked.kind == "capsule" else 0.5 * asked.size
    return x, y, ground_at(setup, x, y) + tall + 0.002


def heading(setup: Setup, world: World, who: int) -> float:
    """Which way a character looks now, from +x counterclockwise [rad]."""
    clip = setup.rounds.clip
    front = body.heading(clip.character, clip.q(0.0))
    if who < 0 or not setup.rounds.free:
        return front
    q = world.state.q[setup.cast.part(who).q]
    yaw = [float(body.root_yaw(clip.character, x)) for x in (q, clip.q(0.0))]
    return front + (yaw[0] - yaw[1])


def _middle(setup: Setup, who: int) -> int:
    """Index of a character's chest, or of its heaviest link."""
    links = [link.name for link in setup.cast.character.links]
    first = int(setup.cast.part(who).links.start)
    for name in CHESTS:
        if name in links:
            return first + links.index(name)
    mass = [link.mass for link in setup.cast.character.links]
    return first + int(np.argmax(mass))


def _link_center(world: World, link: int) -> Floats:
    place, turn = dynamics.forward_kinematics(world.scene, world.state.q)
    center: Floats = place[link] + quat_matrix(turn[link]) @ world.scene.forest.link_com[link]
    return center


def _in_link(world: World, link: int, at: object) -> Floats:
    """A point of the world in a link's frame [m]."""
    place, turn = dynamics.forward_kinematics(world.scene, world.state.q)
    point: Floats = quat_matrix(turn[link]).T @ (np.asarray(at, dtype=float) - place[link])
    return point


def _flight(start: Floats, aim: Floats, moving: Floats, speed: float, gravity: Floats) -> Floats:
    """Velocity of a ball that meets what moves evenly from `aim`; its mean speed is `speed`."""
    time = 0.0
    for _ in range(8):
        time = max(float(np.linalg.norm(aim + time * moving - start)) / speed, 1e-3)
        time = min(time, 10.0)
    velocity: Floats = (aim + time * moving - start) / time - 0.5 * time * gravity
    return velocity


def _recall(world: World, near: Floats) -> None:
    """Take back the ball that is farthest from a place; pushes and drags end with it."""
    balls, state = world.thrown, world.state.copy()
    farthest = int(np.linalg.norm(balls[:, 1:4] - near, axis=1).argmax())
    world.reset(State(state.q, state.v, state.time))
    for i, ball in enumerate(balls):
        if i != farthest:
            world.throw(ball[1:4], ball[8:11], quat=ball[4:8], spin=ball[11:14])
