"""Setting up a scene of the studio: characters in their places, objects, ground, controller."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from poise.control.asked_profiles import profiled
from poise.control.gains import FREQUENCY
from poise.control.named import Controller, named_controller
from poise.errors import PoiseError, unknown_name
from poise.math.arrays import Floats
from poise.model.character import Character
from poise.model.objects import free_object
from poise.model.scene import Scene, scene_of
from poise.model.shape import Shape
from poise.simulation.contact import GroundLike, HeightField
from poise.simulation.state import State
from poise.simulation.world import World
from poise.studio import balancing
from poise.studio.cast import Cast, ground_height, size_of
from poise.studio.lineup import Lineup, Rounds
from poise.studio.requests import AddObject
from poise.studio.snapshot import Controls, Tuning

BALLS = 12
"""Balls that wait to be thrown."""

BODY = ""
"""The whole body among the limbs."""

PLAIN = Tuning(FREQUENCY, 1.0, 1.0, 0.0)
"""How a body follows unless told otherwise."""

HILLS = 24.0, 0.25, 0.12  # half width, spacing and height of the hills [m]
WAVES = ((0.9, 0.4, 0.0), (-0.5, 1.1, 1.0), (1.7, 1.3, 2.0))  # along x and y [rad/m], phase

COLORS = ((0.80, 0.60, 0.35), (0.45, 0.60, 0.75), (0.60, 0.70, 0.45), (0.75, 0.50, 0.55))


@dataclass(frozen=True, eq=False)
class Setup:
    """A scene, ready to start.

    Args:
        controls: What was chosen.
        rounds: The clip.
        objects: What was added.
        world: The world, at the start.
        cast: Who is in it.
        lineup: The reference.
    """

    controls: Controls
    rounds: Rounds
    objects: tuple[Character, ...]
    world: World
    cast: Cast
    lineup: Lineup

    @property
    def start(self) -> State:
        """The state in which it starts, at time 0; objects are where they were put."""
        target = self.lineup.target(0.0)
        assert target.v is not None
        return State(target.q, target.v)


def set_up(controls: Controls, rounds: Rounds, objects: Sequence[Character] = ()) -> Setup:
    """Build a scene; its world is at the start."""
    character = rounds.clip.character
    places = places_of(controls.count, character)
    people = [character] * controls.count
    if not rounds.free:
        # who hangs on the world is hung up elsewhere
        people = [_hung(character, place) for place in places]
    ground = ground_of(controls.ground)
    scene = scene_of([*people, *objects])
    world = World(
        scene.characters,
        dt=controls.dt,
        ground=ground,
        friction=controls.friction,
        gravity=controls.gravity,
        projectiles=BALLS,
        exclude=_apart(scene, rounds, controls.count),
        # thighs that touch would tilt the feet, and the character would fall
        self_collision=controls.controller != balancing.NAME,
        on_divergence="freeze",
    )
    lineup = Lineup(
        world.scene,
        rounds,
        places,
        controls.dt,
        ground if isinstance(ground, HeightField) else None,
        controls.gravity,
        last=None if controls.loop else 1,
    )
    setup = Setup(
        controls, rounds, tuple(objects), world, Cast(world.settings, world.scene), lineup
    )
    world.reset(setup.start)
    return setup


def rebuilt(setup: Setup, controls: Controls) -> Setup:
    """The same scene with another step or friction, in the same state."""
    made = set_up(controls, setup.rounds, setup.objects)
    state = setup.world.state.copy()
    made.world.reset(state)
    lineup = replace(made.lineup, begun=setup.lineup.begun, last=setup.lineup.last)
    return replace(made, cast=setup.cast, lineup=lineup)


def with_objects(setup: Setup, objects: Sequence[Character], balls: bool = True) -> Setup:
    """The same scene with other objects; characters, and objects that stay, are as they were."""
    made = set_up(setup.controls, setup.rounds, objects)
    old, new = setup.world, made.world
    q, v = made.start.q.copy(), made.start.v.copy()
    people = slice(0, setup.controls.count)
    for name in [*list(old.scene.forest.parts)[people], *(x.name for x in objects)]:
        if name in old.scene.forest.parts:
            here, there = old.part(name), new.part(name)
            q[there.q], v[there.v] = old.state.q[here.q], old.state.v[here.v]
    new.reset(State(q, v, old.time))
    for ball in old.thrown if balls else ():
        if ball[0]:
            new.throw(ball[1:4], ball[8:11], quat=ball[4:8], spin=ball[11:14])
    lineup = replace(made.lineup, begun=setup.lineup.begun, last=setup.lineup.last)
    return replace(made, lineup=lineup)


# ---- who and where


def places_of(count: int, character: Character) -> Floats:
    """Places in rows, the first in front, the others beside and behind it [m], shape (count, 2)."""
    apart = min(max(0.9 * size_of(character), 0.6), 4.0)
    columns = math.ceil(math.sqrt(count))
    # 0, 1, -1, 2, -2, ...: from the middle to both sides
    side = [(k + 1) // 2 * (1 if k % 2 else -1) for k in range(columns)]
    return np.array(
        [(-1.3 * apart * (i // columns), apart * side[i % columns]) for i in range(count)]
    )


def object_of(asked: AddObject, name: str, position: Sequence[float]) -> Character:
    """The object that was asked for."""
    r = 0.5 * asked.size
    color = COLORS[sum(map(ord, name)) % len(COLORS)]
    shapes = {
        "box": Shape("box", (r, r, r), color=color),
        "ball": Shape("sphere", (r,), color=color),
        "capsule": Shape("capsule", (r, r), color=color),
    }
    return free_object(name, shapes[asked.kind], mass=asked.mass, pos=tuple(position))


def ground_of(name: str) -> GroundLike:
    """A ground of the studio by its name."""
    return {"plane": True, "none": False}[name] if name != "hills" else hills()


def hills() -> HeightField:
    """Gentle hills, level at the rim."""
    half, spacing, height = HILLS
    line = np.arange(-half, half + 1e-9, spacing)
    x, y = np.meshgrid(line, line)
    waves = sum(np.sin(a * x + b * y + phase) for a, b, phase in WAVES) / len(WAVES)
    rim = np.clip((half - np.maximum(np.abs(x), np.abs(y))) / 4.0, 0.0, 1.0)
    return HeightField(height * waves * rim * rim * (3.0 - 2.0 * rim), spacing)


def _apart(scene: Scene, rounds: Rounds, count: int) -> list[tuple[str, str]]:
    """Links of each character that the clip moves through each other, by their names in a scene."""
    names, own = scene.forest.link_names, [link.name for link in rounds.clip.character.links]
    starts = [part.links.start for part in scene.forest.parts.values()][:count]
    pairs = [(own.index(one), own.index(two)) for one, two in rounds.apart]
    return [(names[at + i], names[at + j]) for at in starts for i, j in pairs]


def _hung(character: Character, place: Floats) -> Character:
    root = character.links[0]
    x, y, z = root.pos
    moved = replace(root, pos=(x + float(place[0]), y + float(place[1]), z))
    return Character(character.name, (moved, *character.links[1:]), character.limbs)


# ---- how they follow


def controller_for(setup: Setup, controls: Controls, present: object = None) -> Controller:
    """The controller that was chosen, with all that was chosen of it; objects are free.

    Args:
        setup: The scene.
        controls: What was chosen.
        present: The controller there is; one that balances is changed, not made anew.
    """
    if controls.controller == balancing.NAME:
        return balancing.balancing_for(setup.world, setup.rounds, controls, present)
    made = _tuned_controller(setup, controls)
    wrapped: Controller = profiled(made, setup.world, controls.profiles)
    return wrapped


def _tuned_controller(setup: Setup, controls: Controls) -> Controller:
    """A controller with gains, strength and pins of limbs."""
    scene, tuning = setup.world.scene, controls.tuning
    character, m = setup.rounds.clip.character, controls.count
    links = {key: _per_link(scene, character, m, tuning, key) for key in Tuning._fields}
    sizes = np.diff([*scene.forest.v_adr, scene.nv])
    # characters come first, objects after them
    frequency, damping = (
        np.repeat(links[key][scene.forest.link], sizes)[: m * character.nv]
        for key in ("frequency", "damping")
    )
    made: Any = named_controller(
        controls.controller, setup.world, root=controls.root, frequency=frequency, damping=damping,
        part=tuple(scene.forest.parts)[:m],
    )  # fmt: skip
    for key, none in (("strength", 1.0), ("pin", 0.0)):
        if (links[key] != none).any():
            if not hasattr(made, key) or (key == "pin" and not made.embedded):
                raise PoiseError(f"controller {controls.controller!r} has no {key}; 'spd' has")
            setattr(made, key, links[key])
    return made  # type: ignore[no-any-return]


def tuned(controls: Controls, character: Character, limb: str | None, **values: float) -> Controls:
    """Controls with other gains, strength or pins of a limb; of the body, limbs lose their own.

    Args:
        controls: What was chosen.
        character: Whose limbs.
        limb: Which limb; None is the whole body.
        values: What changes.
    """
    if limb is not None and limb not in character.limbs:
        raise PoiseError(unknown_name("limb", limb, character.limbs))
    body = controls.tuning.get(BODY, PLAIN)
    if limb is not None:
        own = controls.tuning.get(limb, body)._replace(**values)
        return replace(controls, tuning={**controls.tuning, BODY: body, limb: own})
    changed = {name: own._replace(**values) for name, own in controls.tuning.items()}
    return replace(controls, tuning={**changed, BODY: body._replace(**values)})


def _per_link(
    scene: Scene, character: Character, m: int, tuning: dict[str, Tuning], key: str
) -> Floats:
    """A number of the tuning for each link of a scene; objects have the plain one."""
    names = [link.name for link in character.links]
    one = np.full(len(names), getattr(tuning.get(BODY, PLAIN), key))
    for limb, own in tuning.items():
        for link in character.limbs.get(limb, ()):
            one[names.index(link)] = getattr(own, key)
    return np.concatenate(
        [np.tile(one, m), np.full(scene.nl - m * len(names), getattr(PLAIN, key))]
    )


def ground_at(setup: Setup, x: float, y: float) -> float:
    """Height of the ground [m]; 0 where there is none."""
    return float(ground_height(setup.world.settings.ground, x, y))
