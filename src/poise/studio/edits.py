"""Edits of a simulation: pushes, drags, balls, gravity, loops.

An edit is a closure with all numbers settled, so that it can be repeated when a past is simulated
again.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from poise import dynamics, measure
from poise.anatomy import body
from poise.errors import PoiseError
from poise.math.arrays import Floats
from poise.simulation import pushes
from poise.simulation.state import State
from poise.simulation.world import World
from poise.studio.history import Edit
from poise.studio.requests import AddObject, Drag, Push, Release, Throw
from poise.studio.scene import throw_again
from poise.studio.scene_index import size_of
from poise.studio.simulation import Simulation

CHESTS = ("chest", "thorax", "upper_torso", "torso", "spine", "trunk")
"""Links at which a ball is thrown, the first that there is."""

THROW_DISTANCE = 2.5
"""From how far a ball comes, in sizes of the character."""


def push(simulation: Simulation, request: Push) -> tuple[Edit, pushes.Push]:
    """A push of a link, and the same as pictures of a recording show it."""
    index, world = simulation.setup.index, simulation.world
    link, direction = index.link_index(request.link), request.direction
    if not isinstance(direction, str) and not any(direction):
        raise PoiseError("Push.direction has no length; it needs one")
    name, force, now = index.link_names[link], max(request.force, 1e-9), float(world.time)
    given = pushes.Push(name, force, direction, now, request.duration)
    given = given.in_world(heading(simulation, int(index.owner[link])))
    vector = given.force_vector()
    point = None
    if request.at is not None:
        point = index.point_in_link(world.state.q, link, request.at)

    def edit(simulation: Simulation) -> None:
        simulation.world.push(link, vector, request.duration, point=point)

    return edit, given


def drag(simulation: Simulation, request: Drag) -> Edit:
    """A spring that pulls a link, until it is released."""
    link = simulation.setup.index.link_index(request.link)
    return lambda simulation: simulation.world.drag(link, request.to, point=request.point)


def release(simulation: Simulation, request: Release) -> Edit:
    """The end of a drag."""
    link = None if request.link is None else simulation.setup.index.link_index(request.link)
    return lambda simulation: simulation.world.release(link)


def throw(simulation: Simulation, request: Throw, character: int) -> Edit:
    """A ball that hits a link, if the center of mass keeps its velocity.

    Args:
        simulation: The simulation.
        request: The throw.
        character: The character at which it is thrown, unless the request names a link.
    """
    world, index = simulation.world, simulation.setup.index
    if request.link is None:
        link = _chest(simulation, character)
    else:
        link = index.link_index(request.link)
        character = max(int(index.owner[link]), 0)
    part, one = index.part(character), index.character
    aim = index.point(world.state.q, link, world.scene.forest.link_com[link])
    velocity = measure.momentum(one, world.state.q[part.q], world.state.v[part.v]).linear
    velocity = velocity / max(one.mass, 1e-9)
    if request.origin is None:
        angle = heading(simulation, character) + 0.25 * math.pi
        way = np.array([math.cos(angle), math.sin(angle), 0.0])
        start = aim + THROW_DISTANCE * size_of(one) * way
    else:
        start = np.array(request.origin)
    start[2] = max(start[2], simulation.setup.ground_at(*start[:2]) + 0.15)
    thrown = _ballistic_velocity(start, aim, velocity, request.speed, world.gravity)

    def edit(simulation: Simulation) -> None:
        if simulation.world.projectile_state.thrown.all():
            _remove_farthest_ball(simulation.world, start)
        simulation.world.throw(start, thrown)

    return edit


def gravity(value: tuple[float, float, float]) -> Edit:
    """Another gravity, also of the reference of objects."""

    def edit(simulation: Simulation) -> None:
        simulation.world.gravity = value
        simulation.change_control(reference=replace(simulation.reference, gravity=value))

    return edit


def loop(on: bool, now: float) -> Edit:
    """The clip starts again at its end, or not, from time now [s]."""
    return lambda simulation: simulation.change_control(
        reference=simulation.reference.looped(on, now)
    )


def object_place(simulation: Simulation, request: AddObject, character: int) -> tuple[float, ...]:
    """Where an object is put [m]: in front of a character, on the ground."""
    if request.position is not None:
        return request.position
    world, index = simulation.world, simulation.setup.index
    part, angle = index.part(character), heading(simulation, character)
    root = dynamics.forward_kinematics(world.scene, world.state.q)[0][part.links.start]
    ahead = 0.7 * size_of(index.character) + request.size
    x = float(root[0]) + ahead * math.cos(angle)
    y = float(root[1]) + ahead * math.sin(angle)
    half = request.size if request.kind == "capsule" else 0.5 * request.size
    return x, y, simulation.setup.ground_at(x, y) + half + 0.002


def heading(simulation: Simulation, character: int) -> float:
    """Heading of a character now, from +x counterclockwise [rad]; -1 is that of the clip."""
    motion = simulation.setup.motion
    clip = motion.clip
    front = body.heading(clip.character, clip.q(0.0))
    if character < 0 or not motion.is_free:
        return front
    q = simulation.world.state.q[simulation.setup.index.part(character).q]
    yaw = [float(body.root_yaw(clip.character, x)) for x in (q, clip.q(0.0))]
    return front + (yaw[0] - yaw[1])


def _chest(simulation: Simulation, character: int) -> int:
    """Index of a character's chest, or of its heaviest link."""
    index = simulation.setup.index
    links = [link.name for link in index.character.links]
    first = int(index.part(character).links.start)
    for name in CHESTS:
        if name in links:
            return first + links.index(name)
    mass = [link.mass for link in index.character.links]
    return first + int(np.argmax(mass))


def _ballistic_velocity(
    start: Floats, aim: Floats, velocity: Floats, speed: float, gravity: Floats
) -> Floats:
    """Initial velocity of a ball that hits a moving point [m/s].

    Args:
        start: Where the ball starts [m].
        aim: Where the point is now [m].
        velocity: Velocity of the point [m/s].
        speed: Mean speed of the ball [m/s].
        gravity: [m/s^2].
    """
    time = 0.0
    for _ in range(8):
        time = max(float(np.linalg.norm(aim + time * velocity - start)) / speed, 1e-3)
        time = min(time, 10.0)
    return (aim + time * velocity - start) / time - 0.5 * time * gravity


def _remove_farthest_ball(world: World, place: Floats) -> None:
    """Removes the ball that is farthest from a place; pushes and drags end with it."""
    balls, state = world.projectile_state, world.state.copy()
    distance = np.linalg.norm(balls.q[:, :3] - place, axis=1)
    world.reset(State(state.q, state.v, state.time))
    throw_again(world, balls.at(np.arange(len(distance)) != distance.argmax()))
