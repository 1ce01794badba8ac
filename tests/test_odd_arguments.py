"""Odd values for every numeric argument of the public interface: answered, or a PoiseError."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import poise
from poise import dynamics, measure

ARM = poise.load_character("two-link")
REST, LINK = ARM.rest_q, ARM.links[0].name
WAVE: Any = poise.load_clip("two-link-wave")
ANY: Any = poise
GAINS = poise.Gains(ARM, 10.0, 1.0)

ODD: dict[str, Any] = {
    "huge": 10**400, "huge below 0": -(10**400), "huge in a list": [10**400, 1.0],
    "empty": [], "ragged": [[1.0], [1.0, 2.0]], "nested": np.zeros((2, 2, 2)), "0-d": np.array(1.0),
    "complex": 1j, "complex array": np.array([1j, 2j]), "object": object(),
    "objects": np.array([object(), object()]), "nan": math.nan, "inf": math.inf, "below 0": -1.0,
    "0": 0, "tiny": 1e-308, "large": 1e308, "largest": np.uint64(2**64 - 1), "string": "1",
    "strings": ["a", "b"], "bytes": b"1", "bools": np.array([True, False]), "dict": {},
    "set": {1.0},
    "iterator": iter(()), "date": np.datetime64("2020"), "records": np.zeros(2, [("a", "f8")]),
}  # fmt: skip


def world(**options: Any) -> Any:
    return ANY.World(ARM, **{"dt": 1 / 60, "projectiles": 1, **options})


def driven(**options: Any) -> None:
    drive = ANY.Drive(**{"gains": GAINS, "target": poise.Target(REST), **options})
    world().step(poise.Command(drive=drive))


def target(**options: Any) -> None:
    driven(target=ANY.Target(**{"q": REST, **options}))


def frames(**options: Any) -> Any:
    recording = ANY.Recording(world())
    recording.append()
    return recording


WORLD = [
    "n",
    "dt",
    "dtype",
    "threads",
    "ground",
    "obstacles",
    "contact",
    "projectiles",
    "friction",
    "ground_friction",
    "restitution",
    "stiffness",
    "self_collision",
    "exclude",
    "convex",
    "gravity",
    "on_divergence",
    "mass",
    "inertia",
    "armature",
    "momentum_correction",
    "iterations",
    "tolerance",
]
Call = Callable[[Any], object]


def of_batch(n: int) -> dict[str, Call]:
    """Calls of a world of n copies."""
    return {
        "push link": lambda x: world(n=n).push(x, (1, 0, 0), 0.1),
        "push force": lambda x: world(n=n).push(LINK, x, 0.1),
        "push where": lambda x: world(n=n).push(LINK, (1, 0, 0), 0.1, where=x),
        "drag to": lambda x: world(n=n).drag(LINK, x),
        "drag where": lambda x: world(n=n).drag(LINK, (0, 0, 1), where=x),
        "release where": lambda x: world(n=n).release(where=x),
        "reset state": lambda x: world(n=n).reset(x),
        "reset where": lambda x: world(n=n).reset(where=x),
        "reset q": lambda x: world(n=n).reset(ANY.State(x)),
        "throw position": lambda x: world(n=n).throw(x, (0, 0, 0)),
        "throw where": lambda x: world(n=n).throw((0, 0, 1), (0, 0, 0), where=x),
        "step steps": lambda x: world(n=n).step(steps=x),
        "step force": lambda x: world(n=n).step(ANY.Command(force=x)),
    }


def option(function: Any, name: str) -> Call:
    return lambda x: function(**{name: x})


def method(owner: Callable[[], Any], name: str) -> Call:
    return lambda x: getattr(owner(), name)(x)


CALLS: dict[str, Call] = {f"World {name}": option(world, name) for name in WORLD}
CALLS |= {f"{name}, {n} copies": call for n in (1, 2) for name, call in of_batch(n).items()}
CALLS |= {
    "push duration": lambda x: world().push(LINK, (1, 0, 0), x),
    "push torque": lambda x: world().push(LINK, None, 0.1, torque=x),
    "push point": lambda x: world().push(LINK, (1, 0, 0), 0.1, point=x),
    "push at": lambda x: world().push(LINK, (1, 0, 0), 0.1, at=x),
    "kick impulse": lambda x: world().kick(LINK, x),
    "kick at": lambda x: world().kick(LINK, (1, 0, 0), at=x),
    "drag velocity": lambda x: world().drag(LINK, (0, 0, 1), velocity=x),
    "drag stiffness": lambda x: world().drag(LINK, (0, 0, 1), stiffness=x),
    "drag damping": lambda x: world().drag(LINK, (0, 0, 1), damping=x),
    "throw velocity": lambda x: world().throw((0, 0, 1), x),
    "throw spin": lambda x: world().throw((0, 0, 1), (0, 0, 0), spin=x),
    "throw quat": lambda x: world().throw((0, 0, 1), (0, 0, 0), quat=x),
    "until": lambda x: next(iter(world().until(x)), None),
    "part": lambda x: world().part(x),
    "gravity": lambda x: setattr(world(), "gravity", x),
    "state v": lambda x: world().reset(ANY.State(REST, x)),
    "state time": lambda x: world().reset(ANY.State(REST, time=x)),
    "state memory": lambda x: world().reset(ANY.State(REST, memory=x)),
    "state memory of a copy": lambda x: world(n=3).reset(ANY.State(REST, memory=x), where=[0]),
    "state clip": lambda x: world().reset(ANY.State(REST, clip=x)),
    "command acceleration": lambda x: world().step(ANY.Command(acceleration=x)),
    "command mask": lambda x: world().step(ANY.Command(acceleration=REST, acceleration_mask=x)),
    "mask alone": lambda x: world().step(ANY.Command(acceleration_mask=x)),
    "gains kp": lambda x: ANY.Gains(ARM, x, 1.0),
    "gains kd": lambda x: ANY.Gains(ARM, 1.0, x),
    "gains pin frequency": lambda x: ANY.Gains(ARM, 1.0, 1.0, pin_frequency=x),
    "clip frames": lambda x: ANY.Clip(ARM, x, 30.0),
    "clip fps": lambda x: ANY.Clip(ARM, np.zeros((3, 2)), x),
    "clip contacts": lambda x: ANY.Clip(ARM, np.zeros((3, 2)), 30.0, contacts=x),
    "clip notes": lambda x: ANY.Clip(ARM, np.zeros((3, 2)), 30.0, notes=x),
    "fps": lambda x: ANY.Recording(world(), x),
    "recorded target": lambda x: frames().append(x),
    "shape size": lambda x: ANY.Shape("box", x),
    "shape radius": lambda x: ANY.Shape("sphere", (x,)),
    "shape pos": lambda x: ANY.Shape("sphere", (1.0,), x),
    "shape quat": lambda x: ANY.Shape("sphere", (1.0,), quat=x),
    "shape color": lambda x: ANY.Shape("sphere", (1.0,), color=x),
    "mesh": lambda x: ANY.Shape.mesh(x),
    "free mass": lambda x: ANY.free_object("ball", ANY.Shape("sphere", (1.0,)), mass=x),
    "plane normal": lambda x: ANY.Plane(x),
    "plane height": lambda x: ANY.Plane(height=x),
    "heights": lambda x: ANY.HeightField(x, 0.1),
    "spacing": lambda x: ANY.HeightField(np.zeros((3, 3)), x),
    "origin": lambda x: ANY.HeightField(np.zeros((3, 3)), 0.1, x),
    "energy v": lambda x: dynamics.energy(ARM, REST, x),
    "mass matrix q": lambda x: dynamics.mass_matrix(ARM, x),
    "momentum rate": lambda x: measure.momentum_rate(ARM, REST, np.zeros(2), x),
    "turns": lambda x: measure.turns_per_frame(ARM, x),
    "hull points": lambda x: measure.convex_hulls(x, np.ones(3)),
    "hull mask": lambda x: measure.convex_hulls(np.zeros((3, 3)), x),
}
DRIVE = ("form", "method", "embedded", "feedforward", "strength", "pin")
TARGET = ("q", "v", "a", "rows", "past", "time", "clip")
CLIP = [
    "q",
    "v",
    "a",
    "state",
    "target",
    "at_speed",
    "moved",
    "resampled",
    "smoothed",
    "trimmed",
    "looped",
    "turned",
    "with_frames",
    "check_followable",
]
RECORDING = ("state", "target", "contacts", "projectile_state", "world", "character", "frames")
SERVO = ("frequency", "damping", "root", "part", "strength", "dt")
CALLS |= {f"drive {name}": option(driven, name) for name in DRIVE}
CALLS |= {f"target {name}": option(target, name) for name in TARGET}
CALLS |= {f"clip.{name}": method(lambda: WAVE, name) for name in CLIP}
CALLS |= {f"recording.{name}": method(frames, name) for name in RECORDING}
CALLS |= {f"PD {name}": option(partial(ANY.PD, ARM), name) for name in SERVO}
CALLS |= {f"StablePD {name}": option(partial(ANY.StablePD, ARM), name) for name in SERVO}


@pytest.mark.parametrize("name", CALLS)
def test_an_odd_value_is_answered_or_refused_by_a_poise_error(name: str) -> None:
    wrong = {}
    for what, value in ODD.items():
        try:
            CALLS[name](value)
        except poise.PoiseError:
            continue
        except Exception as error:
            wrong[what] = f"{type(error).__name__}: {error!s:.100}"
    assert not wrong


@pytest.mark.parametrize("where", [None, [0, 2]])
def test_memory_of_another_number_of_copies_is_refused_by_name(where: list[int] | None) -> None:
    memory = world(n=5).state.memory
    with pytest.raises(poise.PoiseError, match=r"state\.memory has shape \(5, "):
        world(n=3).reset(poise.State(REST, memory=memory), where=where)
