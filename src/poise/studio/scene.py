"""Set-up of a scene of the studio: characters in their places, objects, ground."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from poise.anatomy.feet import check_can_stand
from poise.control.profiles import apply_profiles
from poise.control.registry import make_controller
from poise.errors import PoiseError
from poise.math.arrays import Floats
from poise.model.character import Character, free_object
from poise.model.scene import Scene, scene_of
from poise.model.shape import Shape
from poise.simulation.contact import GroundLike, HeightField, Projectiles
from poise.simulation.controller import ControllerLike as Controller
from poise.simulation.state import State
from poise.simulation.world import World
from poise.studio.crowd_reference import CrowdReference, LoopedClip
from poise.studio.requests import AddObject
from poise.studio.scene_index import SceneIndex, size_of
from poise.studio.snapshot import BODY, DEFAULT_TUNING, Controls, Tuning

BALLS = 12
"""Balls that can be thrown."""

HILLS = 24.0, 0.25, 0.12  # half width, spacing and height of the hills [m]
WAVES = ((0.9, 0.4, 0.0), (-0.5, 1.1, 1.0), (1.7, 1.3, 2.0))  # along x and y [rad/m], phase

COLORS = ((0.80, 0.60, 0.35), (0.45, 0.60, 0.75), (0.60, 0.70, 0.45), (0.75, 0.50, 0.55))


@dataclass(frozen=True, eq=False)
class Setup:
    """A scene, ready to start.

    Args:
        controls: What was chosen.
        motion: The clip.
        objects: Objects that were added.
        world: The world, at the start.
        index: Its index.
        reference: The reference.
    """

    controls: Controls
    motion: LoopedClip
    objects: tuple[Character, ...]
    world: World
    index: SceneIndex
    reference: CrowdReference

    @property
    def start(self) -> State:
        """The state in which it starts, at time 0; objects are where they were put."""
        target = self.reference.target(0.0)
        assert target.v is not None
        return State(target.q, target.v)

    def ground_at(self, x: float, y: float) -> float:
        """Height of the ground [m]; 0 where there is none."""
        return float(self.index.ground(x, y))


def set_up(controls: Controls, motion: LoopedClip, objects: Sequence[Character] = ()) -> Setup:
    """Builds a scene; its world is at the start."""
    character = motion.clip.character
    places = places_of(controls.count, character)
    characters = [character] * controls.count
    if not motion.is_free:
        characters = [_move_root(character, place) for place in places]
    ground: GroundLike = hills() if controls.ground == "hills" else controls.ground == "plane"
    scene = scene_of([*characters, *objects])
    world = World(
        scene.characters,
        dt=controls.dt,
        ground=ground,
        friction=controls.friction,
        gravity=controls.gravity,
        projectiles=BALLS,
        exclude=_overlaps(scene, motion, controls.count),
        self_collision=controls.entry.defaults.get("self_collision", True),
        on_divergence="freeze",
    )
    reference = CrowdReference(
        world.scene,
        motion,
        places,
        controls.dt,
        ground if isinstance(ground, HeightField) else None,
        controls.gravity,
        rounds=None if controls.loop else 1,
    )
    index = SceneIndex(world.settings, world.scene)
    setup = Setup(controls, motion, tuple(objects), world, index, reference)
    world.reset(setup.start)
    return setup


def rebuilt(setup: Setup, controls: Controls) -> Setup:
    """The same scene with another step or friction, in the same state."""
    made = set_up(controls, setup.motion, setup.objects)
    made.world.reset(setup.world.state.copy())
    old = setup.reference
    reference = replace(made.reference, begin=old.begin, rounds=old.rounds)
    return replace(made, index=setup.index, reference=reference)


def with_objects(setup: Setup, objects: Sequence[Character], projectiles: bool = True) -> Setup:
    """The same scene with other objects; characters, and objects that stay, are as they were.

    Args:
        setup: The scene.
        objects: All objects of the new one.
        projectiles: Whether balls that were thrown stay.
    """
    made = set_up(setup.controls, setup.motion, objects)
    old, new = setup.world, made.world
    q, v = made.start.q.copy(), made.start.v.copy()
    characters = list(old.scene.forest.parts)[: setup.controls.count]
    for name in [*characters, *(thing.name for thing in objects)]:
        if name in old.scene.forest.parts:
            here, there = old.part(name), new.part(name)
            q[there.q], v[there.v] = old.state.q[here.q], old.state.v[here.v]
    new.reset(State(q, v, old.time))
    if projectiles:
        throw_again(new, old.projectile_state.at(old.projectile_state.thrown))
    begin, rounds = setup.reference.begin, setup.reference.rounds
    return replace(made, reference=replace(made.reference, begin=begin, rounds=rounds))


def throw_again(world: World, balls: Projectiles) -> None:
    """Throws balls with the poses and velocities that they had."""
    for q, v in zip(balls.q, balls.v, strict=True):
        world.throw(q[:3], v[:3], quat=q[3:], spin=v[3:])


# ---- its parts


def places_of(count: int, character: Character) -> Floats:
    """Places in rows, the first in front, the others beside and behind it [m], shape (count, 2)."""
    spacing = min(max(0.9 * size_of(character), 0.6), 4.0)
    columns = math.ceil(math.sqrt(count))
    # 0, 1, -1, 2, -2, ...: from the middle to both sides
    side = [(k + 1) // 2 * (1 if k % 2 else -1) for k in range(columns)]
    return np.array(
        [(-1.3 * spacing * (i // columns), spacing * side[i % columns]) for i in range(count)]
    )


def object_of(request: AddObject, name: str, position: Sequence[float]) -> Character:
    """The object of a request."""
    r = 0.5 * request.size
    color = COLORS[sum(map(ord, name)) % len(COLORS)]
    shapes = {
        "box": Shape("box", (r, r, r), color=color),
        "ball": Shape("sphere", (r,), color=color),
        "capsule": Shape("capsule", (r, r), color=color),
    }
    return free_object(name, shapes[request.kind], mass=request.mass, pos=tuple(position))


def hills() -> HeightField:
    """Gentle hills, level at the rim."""
    half, spacing, height = HILLS
    line = np.arange(-half, half + 1e-9, spacing)
    x, y = np.meshgrid(line, line)
    waves = sum(np.sin(a * x + b * y + phase) for a, b, phase in WAVES) / len(WAVES)
    rim = np.clip((half - np.maximum(np.abs(x), np.abs(y))) / 4.0, 0.0, 1.0)
    return HeightField(height * waves * rim * rim * (3.0 - 2.0 * rim), spacing)


def _overlaps(scene: Scene, motion: LoopedClip, count: int) -> list[tuple[str, str]]:
    """Links of each character that the clip moves through each other, by their names in a scene."""
    names, own = scene.forest.link_names, [link.name for link in motion.clip.character.links]
    starts = [part.links.start for part in scene.forest.parts.values()][:count]
    pairs = [(own.index(one), own.index(two)) for one, two in motion.overlaps]
    return [(names[at + i], names[at + j]) for at in starts for i, j in pairs]


def _move_root(character: Character, place: Floats) -> Character:
    """The character with its root, which hangs on the world, at another place."""
    root = character.links[0]
    x, y, z = root.pos
    moved = replace(root, pos=(x + float(place[0]), y + float(place[1]), z))
    return Character(character.name, (moved, *character.links[1:]), character.limbs)


# ---- its controller

MANAGED = ("root", "frequency", "damping", "supports", "rate")
"""Options of controllers that are chosen otherwise: with the scene, or by the tuning of limbs."""

LONGEST_STEP = 1.0 / 60.0
"""Time step beyond which a balancing character may leave the finite numbers when it falls [s]."""


def check_controller(controls: Controls, character: Character) -> None:
    """Raises an error that says why, where a character cannot have its controller.

    Args:
        controls: What was chosen.
        character: The character.
    """
    name = controls.controller
    if controls.balances:
        check_can_stand(character)
    if "root" not in controls.entry.options.info() and controls.root != "free":
        raise PoiseError(f"{name} needs a free root; with root {controls.root!r} nothing can fall")
    if not controls.balances:
        return
    if controls.count != 1:
        raise PoiseError(f"{name} is for one character, not for {controls.count}: How many 1")
    if controls.ground != "plane":
        raise PoiseError(f"{name} needs level ground: 'plane', not {controls.ground!r}")
    if controls.dt > 1.001 * LONGEST_STEP:
        raise PoiseError(f"{name} needs steps of 1/60 s or less, not of {controls.dt:.3g} s")


def controller_for(setup: Setup, controls: Controls) -> Controller:
    """Makes the chosen controller with its options, tuning and profiles; objects are free.

    Args:
        setup: The scene.
        controls: What was chosen.
    """
    scene, tuning, m = setup.world.scene, controls.tuning, controls.count
    character, clip = setup.motion.clip.character, setup.motion.sampled
    links = {key: _per_link(scene, character, m, tuning, key) for key in Tuning._fields}
    sizes = np.diff([*scene.forest.v_adr, scene.nv])
    # characters come first, objects after them
    frequency, damping = (
        np.repeat(links[key][scene.forest.link], sizes)[: m * character.nv]
        for key in ("frequency", "damping")
    )
    supports = clip if clip.contacts is not None else "clip"
    managed = dict(zip(MANAGED, (controls.root, frequency, damping, supports, None), strict=True))
    known = controls.entry.options.info()
    options = {name: value for name, value in managed.items() if name in known} | controls.options
    parts = tuple(scene.forest.parts)[:m]
    made: Any = make_controller(controls.controller, setup.world, part=parts, **options)
    for key in ("strength", "pin"):
        if (links[key] != getattr(DEFAULT_TUNING, key)).any():
            if not hasattr(made, key) or (key == "pin" and not made.embedded):
                raise PoiseError(f"controller {controls.controller!r} has no {key}; 'spd' has")
            setattr(made, key, links[key])
    wrapped: Controller = apply_profiles(made, setup.world, controls.profiles)
    return wrapped


def _per_link(
    scene: Scene, character: Character, m: int, tuning: dict[str, Tuning], key: str
) -> Floats:
    """A number of the tuning for each link of a scene; objects have the default."""
    names = [link.name for link in character.links]
    one = np.full(len(names), getattr(tuning.get(BODY, DEFAULT_TUNING), key))
    for limb, own in tuning.items():
        for link in character.limbs.get(limb, ()):
            one[names.index(link)] = getattr(own, key)
    objects = np.full(scene.nl - m * len(names), getattr(DEFAULT_TUNING, key))
    return np.concatenate([np.tile(one, m), objects])
