"""The binding under fire: whatever it is handed, it answers or refuses, and never crashes.

Each batch runs in a process of its own, so that a crash is a failed test and not the end of all.
Run by hand, one batch is:

    PYTHONPATH=tests/support python tests/dynamics/test_fuzz_binding.py SEED COUNT
"""

from __future__ import annotations

import array
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields, replace
from operator import attrgetter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.random import Generator
from trees import random_character, random_state

from poise import PoiseError, _core, load_character
from poise.model.character import Character
from poise.model.forest import Forest
from poise.model.scene import scene_of
from poise.model.shape import Shape
from poise.simulation.contact import (
    CollisionModel,
    HeightField,
    compile_collision_model,
    default_projectiles,
)
from poise.simulation.contact.hull import hull_of

# what the core reads of a CollisionModel
READ_BY_CORE = {
    "": "model iterations tolerance surfaces friction restitution stiffness pair_points "
    "projectiles projectile_colliders projectile_probes projectile_pairs",
    "colliders": "body link surface kind size p E reach box hull hulls",
    "probes": "collider point axis numbers",
    "pairs": "a b",
    "bounds": "body axis limits",
    "ground": "kind plane grid heights",
}

# MemoryError: for copies by the billion; AttributeError: for what is no CollisionModel
ALLOWED = (PoiseError, TypeError, ValueError, OverflowError, MemoryError, AttributeError)
MEMORY = 4 << 30
READ_OF_HULL = "corners triangles face loop loop_size"
ODDS = np.array([6, 4, 2, 6, 6, 5, 4, 2, 2, 4, 5, 2, 5, 6, 2, 9, 5, 5, 1, 1, 11, 7]) / 100
HUGE = (2**31, 2**31 - 2**40, 2**50, 2**62, 2**63, -(2**63), 2**70, -1)


# ---- odd things


class Rude:
    """Promises an array and raises."""

    dtype = property(lambda self: 1 / 0)

    def __array__(self, *args: Any, **options: Any) -> Any:
        raise RuntimeError("no array")

    def __dlpack__(self, *args: Any, **options: Any) -> Any:
        raise RuntimeError("no dlpack")

    def __dlpack_device__(self) -> Any:
        raise RuntimeError("no device")

    def __len__(self) -> int:
        raise TypeError("no length")

    def __index__(self) -> int:
        raise ValueError("no index")


class Liar(Rude):
    """Promises an array and hands out something else."""

    dtype, flags = "float64", "C"

    def __dlpack__(self, *args: Any, **options: Any) -> Any:
        return object()

    def __dlpack_device__(self) -> Any:
        return (1, 0)

    def __len__(self) -> int:
        return 7


def relaid(rng: Generator, x: np.ndarray[Any, Any]) -> Any:
    """The same numbers in another layout."""
    raw = x.tobytes()
    strided = np.zeros((*x.shape[:-1], 2 * x.shape[-1])) if x.ndim else np.zeros(2)
    strided[..., ::2] = x
    choices: list[Callable[[], Any]] = [
        lambda: x.astype(x.dtype.newbyteorder()),
        lambda: np.asfortranarray(x),
        lambda: np.ascontiguousarray(x[..., ::-1])[..., ::-1] if x.ndim else x,
        lambda: strided[..., ::2],
        lambda: np.frombuffer(raw, dtype=x.dtype).reshape(x.shape),
        lambda: np.frombuffer(b"x" + raw, dtype=x.dtype, offset=1).reshape(x.shape),
        lambda: x.data,
        lambda: array.array("d", x.ravel()),
        lambda: x.tolist(),
        lambda: np.ma.masked_array(x, x > 0),
        lambda: x.astype(np.longdouble),
        lambda: x[()],
    ]
    return choices[rng.integers(len(choices))]()


def reshaped(rng: Generator, x: np.ndarray[Any, Any]) -> Any:
    """Other shapes and types."""
    dtypes = ("f4", "f2", "i4", "i8", "u1", "?", "c16", "O", "S8", "U4", "M8[s]", "g")
    choices: list[Callable[[], Any]] = [
        lambda: x.reshape(-1),
        lambda: x[None],
        lambda: x[..., None],
        lambda: x[:0],
        lambda: x[..., :-1] if x.ndim else x,
        lambda: np.concatenate([x, x]) if x.ndim else x,
        lambda: np.broadcast_to(x, (3, *x.shape)),
        lambda: np.array(x.T, order="C"),
        lambda: np.zeros(x.shape, dtype=dtypes[rng.integers(len(dtypes))]),
        lambda: np.zeros(x.shape, dtype=[("a", "f8"), ("b", "i4")]),
        lambda: np.zeros((0,) * int(rng.integers(1, 6))),
        lambda: np.zeros((1,) * int(rng.integers(5, 33))),
        lambda: np.array(0.0),
        lambda: np.lib.stride_tricks.as_strided(np.zeros(1), (1 << 30, 1 << 20), (0, 0)),
    ]
    return choices[rng.integers(len(choices))]()


def revalued(rng: Generator, x: np.ndarray[Any, Any]) -> Any:
    """Other numbers."""
    if x.size == 0 or x.dtype.kind == "O":
        return x
    x = x.copy()
    flat = x.reshape(-1)
    if x.dtype.kind == "f":
        odd: tuple[float, ...] = (
            np.nan,
            np.inf,
            -np.inf,
            1e308,
            -1e308,
            5e-324,
            0.0,
            -0.0,
            -1.0,
            1e18,
            1e-30,
        )
    else:
        odd = (-1, -2, 0, 1, 2**31 - 1, -(2**31), 3, 7)
    for i in rng.integers(x.size, size=int(rng.integers(1, 4))):
        flat[i] = odd[rng.integers(len(odd))]
    return flat.reshape(x.shape)


def thing(rng: Generator) -> Any:
    """Something else altogether."""
    things: tuple[Any, ...] = (
        None, "abc", "", b"bytes", 0, 1, -1, 0.0, float("nan"), 1e308, True, 1j, (), [], {},
        [1, [2]], object(), Rude(), Liar(), Rude, range(3), slice(None), Ellipsis, *HUGE,
    )  # fmt: skip
    return things[rng.integers(len(things))]


def odd(rng: Generator, value: Any) -> Any:
    if isinstance(value, np.ndarray):
        change = (relaid, reshaped, revalued, revalued)[rng.integers(4)]
        return change(rng, value) if rng.random() < 0.85 else thing(rng)
    if isinstance(value, tuple) and value and rng.random() < 0.8:
        i = int(rng.integers(len(value)))
        return (*value[:i], odd(rng, value[i]), *value[i + 1 :])
    if isinstance(value, bool) or value is None:
        return thing(rng)
    if isinstance(value, int):
        return (*HUGE, 0, 1, 2, 3, 2.0, "1", None, np.int8(1))[rng.integers(len(HUGE) + 8)]
    if isinstance(value, float):
        numbers = (0.0, -1.0, np.nan, np.inf, 1e308, 5e-324, 1e-9, "x", None, np.float32(0.1), 3)
        return numbers[rng.integers(len(numbers))]
    return thing(rng)


def spoiled(rng: Generator, given: dict[str, Any]) -> dict[str, Any]:
    """Some of the arguments made odd; now and then none."""
    out = dict(given)
    weight = np.array([3.0 if isinstance(x, (np.ndarray, tuple)) else 1.0 for x in given.values()])
    count = int(rng.integers(0, 4))
    for name in rng.choice(list(given), size=count, p=weight / weight.sum()):
        out[name] = odd(rng, given[name])
    return out


# ---- the calls, with arguments that would be right


def dressed(rng: Generator, character: Character) -> Character:
    """The character with shapes on most of its links."""
    shapes = (
        Shape("sphere", (0.1,)),
        Shape("capsule", (0.1, 0.2)),
        Shape("box", (0.1, 0.2, 0.3)),
        Shape("cylinder", (0.1, 0.2)),
        Shape.mesh([(0, 0, 0), (0.2, 0, 0), (0, 0.2, 0), (0, 0, 0.2)]),
    )
    worn = [
        replace(link, shapes=() if rng.random() < 0.2 else (shapes[rng.integers(5)],))
        for link in character.links
    ]
    return Character(character.name, tuple(worn), character.limbs)


QUERIES = {
    "forward_kinematics": "q",
    "link_velocities": "q v",
    "inverse_dynamics": "q v a external gravity",
    "forward_dynamics": "q v tau external gravity",
    "mass_matrix": "q",
    "jacobian": "q link point",
    "jacobian_bias": "q v link point",
    "center_of_mass": "q",
    "centroidal_momentum": "q v",
    "energy": "q v gravity",
    "stable_pd": "q v target force external gravity form method limits",
    "drive": "q v target form",
    "kane_inverse_dynamics": "q v a external gravity as_printed",
    "kane_control": "q v target external gravity target_velocity feedforward as_printed",
}
"""Functions of `_core.Dynamics`, and their arguments besides n."""

TARGET = ("q", "v", "kp", "kd", "dt", "a", "past")
"""Fields of `_core.ServoTarget`."""


class Bench:
    """A character, its model, a world of n copies, and right arguments for every call."""

    def __init__(self, rng: Generator) -> None:
        self.rng = rng
        options: dict[str, Any] = {"passive": rng.random() < 0.5, "effort": rng.random() < 0.5}
        self.character = dressed(rng, random_character(rng, int(rng.integers(1, 7)), **options))
        self.forest: Forest = self.character.forest
        self.model = _core.Model(self.forest)
        self.n = int(rng.integers(1, 12))
        self.projectiles = int(rng.integers(0, 3))
        self.scene = scene_of([self.character, *default_projectiles(self.projectiles)])
        self.whole = self.scene.model if self.projectiles else self.model
        self.world = self.started(_core.World(**self.of_world()))
        self.gains = _core.Gains(**self.of_gains())

    def started(self, world: Any) -> Any:
        """A world begins with a state."""
        forest, none = self.forest, np.zeros(self.n)
        world.write(forest.rest_q, np.zeros(forest.nv), none, None, None)
        return world

    def rows(self, size: int, *, some: bool = True, lead: tuple[int, ...] = ()) -> Any:
        if some and self.rng.random() < 0.2:
            return None
        own = (self.n,) if self.rng.random() < 0.5 else ()
        return self.rng.normal(size=(*lead, *own, size))

    def poses(self, lead: tuple[int, ...] = ()) -> Any:
        count = int(np.prod(lead, dtype=int))
        q = [random_state(self.rng, self.character)[0] for _ in range(count)]
        return np.array(q).reshape(*lead, self.forest.nq)

    def of_model(self) -> dict[str, Any]:
        return {field.name: getattr(self.forest, field.name) for field in fields(Forest)}

    def of_gains(self) -> dict[str, Any]:
        nv, nl = self.forest.nv, len(self.forest.link_body)
        shape = (nv,) if self.rng.random() < 0.5 else (self.n, nv)
        kp, kd = self.rng.uniform(0, 9, (2, *shape))
        return {"model": self.model, "kp": kp, "kd": kd, "pin": self.rng.uniform(0, 9, (nl, 4))}

    def overrides(self) -> Any:
        given = self.of_overrides()
        return None if given is None else _core.ModelOverrides(self.model, **given)

    def of_overrides(self) -> Any:
        forest, own = self.forest, (self.n,) if self.rng.random() < 0.5 else ()
        if self.rng.random() < 0.3:
            return None
        given = {}
        for name in ("mass", "mc", "Io", "armature", "effort"):
            if self.rng.random() < 0.3:
                x = getattr(forest, name)
                given[name] = np.array(np.broadcast_to(x, (*own, *x.shape)), order="C")
        return given

    def touch(self) -> CollisionModel:
        """Contact with a plane or a field, two obstacles, and links with each other."""
        rng, surfaces = self.rng, len(self.forest.link_body) + self.projectiles + 3
        last = Shape("sphere", (0.3,), pos=(0.0, 1.0, 0.0))
        if rng.random() < 0.5:
            last = Shape("cylinder", (0.3, 0.2), pos=(0.0, 1.0, 0.0))
        own = (self.n, surfaces) if self.n > 1 and rng.random() < 0.5 else (surfaces,)
        return compile_collision_model(
            self.scene,
            ground=HeightField(rng.normal(size=(3, 4)), 0.5) if rng.random() < 0.5 else True,
            obstacles=[Shape("box", (0.5, 0.5, 0.2), pos=(1.0, 0.0, 0.0)), last],
            model=str(rng.choice(["impulse", "penalty"])),
            friction=rng.random(own),
            restitution=rng.random(own),
            projectiles=self.projectiles,
            iterations=10,
        )

    def of_touch(self) -> dict[str, Any]:
        touch = self.touch()
        names = [f"{of}.{x}".lstrip(".") for of, xs in READ_BY_CORE.items() for x in xs.split()]
        return {name: attrgetter(name)(touch) for name in names}

    def of_throw(self) -> dict[str, Any]:
        q = np.array([*self.rng.normal(size=3), 1.0, 0.0, 0.0, 0.0])
        which = None if self.rng.random() < 0.5 else self.rng.random(self.n) < 0.5
        return {"q": q, "v": self.rows(6, some=False), "which": which}

    def of_world(self) -> dict[str, Any]:
        contact = self.rng.random() < 0.5
        return {
            "model": self.model,
            "whole": self.whole if contact else self.model,
            "collision_model": self.touch() if contact else None,
            "n": self.n,
            "dt": 0.01,
            "single_precision": bool(self.rng.random() < 0.5),
            "threads": int(self.rng.integers(1, 4)),
            "gravity": np.array([0.0, 0.0, -9.81]),
            "overrides": None if contact and self.projectiles else self.overrides(),
        }

    def of_write(self) -> dict[str, Any]:
        rng, n = self.rng, self.n
        copies = self.copies()
        k = n if copies is None else len(copies)
        memory = None if rng.random() < 0.5 else np.array(self.world.memory())[:k]
        if memory is not None and rng.random() < 0.5:
            links = rng.integers(0, len(self.forest.link_body) + 2, (k, _core.PUSHES))
            memory[:, : _core.MEMORY : _core.MEMORY // _core.PUSHES] = links
        return {
            "q": self.poses((k,) if rng.random() < 0.5 else ()),
            "v": rng.normal(size=self.forest.nv),
            "time": rng.normal(size=k),
            "memory": memory,
            "copies": copies,
        }

    def copies(self) -> Any:
        """Indices of some copies, in any order; None is all."""
        if self.rng.random() < 0.4:
            return None
        return self.rng.permutation(self.n)[: int(self.rng.integers(0, self.n + 1))]

    def of_inertia(self) -> dict[str, Any]:
        copies = self.copies()
        k = self.n if copies is None else len(copies)
        forest = self.scene.forest if self.whole is not self.model else self.forest
        given = {name: np.stack([getattr(forest, name)] * k) for name in ("mass", "mc", "Io") if k}
        return {**given, "copies": copies}

    def of_friction(self) -> dict[str, Any]:
        surfaces = len(self.forest.link_body) + self.projectiles + 3
        copies = self.copies()
        k = self.n if copies is None else len(copies)
        return {"friction": self.rng.random((k, surfaces)), "copies": copies}

    def of_read(self) -> dict[str, Any]:
        rng, forest, n = self.rng, self.forest, self.n
        nl, kind = len(forest.link_body), str(rng.choice(["float32", "float64"]))
        shapes = {"q": (forest.nq,), "v": (forest.nv,), "time": (), "torque": (forest.nv,)}
        shapes |= {f"link_{name}": (nl, 3) for name in ("position", "velocity", "contact_force")}
        shapes |= {"link_quat": (nl, 4), "pair_contact_force": (2, 3)}
        fields = {name: np.empty((n, *shape), kind) for name, shape in shapes.items()}
        fields |= {"link_contact": np.empty((n, nl), bool), "pair_contact": np.empty((n, 2), bool)}
        chosen = rng.permutation(list(fields))[: int(rng.integers(1, 8))]
        pairs = rng.integers(-4, nl + 2, (2, 2)).astype(np.int32)
        return {**{name: fields[name] for name in chosen}, "pairs": pairs}

    def of_ray(self) -> dict[str, Any]:
        rng, k = self.rng, int(self.rng.integers(1, 5))
        own = (self.n,) if rng.random() < 0.5 else ()
        return {
            "origin": rng.normal(size=(*own, k, 3)),
            "direction": rng.normal(size=(k, 3)),
            "farthest": float(rng.choice([np.inf, 1.0])),
            "ground": True,
            "links": bool(rng.random() < 0.5),
            "skipped": np.zeros(
                self.scene.nl if self.projectiles else len(self.forest.link_body), np.int32
            ),
            "nothing": -9,
        }

    def of_push(self) -> dict[str, Any]:
        rng = self.rng
        return {
            "link": int(rng.integers(len(self.forest.link_body))),
            "force": self.rows(3, some=False),
            "torque": self.rows(3, some=False),
            "point": self.rows(3, some=False),
            "at": float(rng.choice([np.nan, 0.0, 0.05])),
            "duration": float(rng.choice([0.1, 1e-9, np.inf])),
            "which": None if rng.random() < 0.5 else rng.random(self.n) < 0.5,
        }

    def of_drag(self) -> dict[str, Any]:
        rng = self.rng
        return {
            "link": int(rng.integers(len(self.forest.link_body))),
            "to": self.rows(3, some=False),
            "velocity": self.rows(3, some=False),
            "point": self.rows(3, some=False),
            "stiffness": float(rng.choice([0.0, 1e3, 1e9])),
            "damping": float(rng.choice([0.0, 1.0, 1e4])),
            "which": None if rng.random() < 0.5 else rng.random(self.n) < 0.5,
        }

    def of_release(self) -> dict[str, Any]:
        rng = self.rng
        which = None if rng.random() < 0.5 else rng.random(self.n) < 0.5
        return {"link": int(rng.integers(-1, len(self.forest.link_body))), "which": which}

    def of_meet(self) -> dict[str, Any]:
        rng, mesh = self.rng, Shape.mesh(self.rng.normal(size=(9, 3)))
        hull = hull_of(mesh)
        poses = rng.normal(size=(int(rng.integers(4)), 2, 7))
        return {
            **{f"hull_{name}": getattr(hull, name) for name in READ_OF_HULL.split()},
            "kind": np.array([4, rng.integers(5)], dtype=np.int32),
            "size": rng.random((2, 3)),
            "box": rng.random((2, 3)),
            "reach": rng.random(2),
            "hull": np.zeros(2, dtype=np.int32),
            "poses": poses,
            "near": float(rng.choice([0.0, 0.1, np.inf])),
        }

    def of_drive(self, steps: int = 1) -> dict[str, Any]:
        rng, nv, nl = self.rng, self.forest.nv, len(self.forest.link_body)
        rows = steps if rng.random() < 0.5 else 0
        lead = (steps,) if rows else ()
        return {
            "gains": self.gains,
            "target_q": self.poses((*lead, self.n) if rng.random() < 0.5 else lead),
            "target_v": self.rows(nv, lead=lead),
            "target_a": self.rows(nv, lead=lead),
            "strength": None if rng.random() < 0.5 else rng.random(nl),
            "pin": None if rng.random() < 0.5 else rng.random((self.n, nl)),
            "rows": rows,
            "form": int(rng.integers(4)),
            "method": int(rng.integers(4)) if rng.random() < 0.5 else 0,
            "embedded": bool(rng.random() < 0.5),
            "feedforward": bool(rng.random() < 0.5),
        }

    def of_step(self) -> dict[str, Any]:
        rng, nv = self.rng, self.forest.nv
        steps = int(rng.integers(1, 4))
        drive = self.of_drive(steps) if rng.random() < 0.8 else {}
        return {
            **{f"drive_{name}": value for name, value in drive.items()},
            "force": self.rows(nv),
            "acceleration": self.rows(nv),
            "acceleration_mask": None,
            "steps": steps,
        }

    def of_torques(self) -> dict[str, Any]:
        rng, nv = self.rng, self.forest.nv
        return {
            "q": self.poses((self.n,) if rng.random() < 0.5 else ()),
            "v": self.rows(nv, some=False),
            "gains": self.gains,
            "target_q": self.poses((self.n,) if rng.random() < 0.5 else ()),
            "target_v": self.rows(nv),
            "load": self.rows(nv),
            "gravity": _core.View(rng.normal(size=3)) if rng.random() < 0.5 else np.zeros(3),
            "form": int(rng.integers(4)),
            "method": int(rng.integers(4)),
        }

    def of_balance(self) -> dict[str, Any]:
        rng, nv, n = self.rng, self.forest.nv, self.n
        own = (n,) if rng.random() < 0.5 else ()
        return {
            "overrides": self.overrides(),
            "params": spoiled(rng, self.balance_params()),
            "q": self.poses((n,)),
            "v": self.rows(nv, some=False),
            "target_q": self.poses(own),
            "target_v": self.rows(nv),
            "target_a": self.rows(nv),
            "schedule": rng.uniform(0, 1, (n, 2)) if rng.random() < 0.5 else None,
            "gravity": rng.normal(size=3),
        }

    def balance_params(self) -> dict[str, Any]:
        """Settings of the balance solver, with two supports and a goal."""
        rng, nv, nl = self.rng, self.forest.nv, len(self.forest.link_body)
        link = rng.integers(nl, size=3).astype(np.float64)
        some: dict[str, Any] = {
            "points": np.column_stack([link, rng.normal(size=(3, 3))]),
            "sole_points": np.column_stack([[0.0, 0.0, 1.0, 1.0], rng.normal(size=(4, 3))]),
            "goals": rng.normal(size=(1, 3)),
            "tracking_weight": rng.uniform(0.1, 1, nv),
            "joint_limits": np.array([[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -0.1, 0.1]]),
            "k_s": rng.uniform(0, 300, nv),
            "k_d": rng.uniform(0, 30, nv),
            "friction": rng.uniform(0, 1, 2),
        }
        for name in dir(_core.BalanceParams):
            if name.startswith("_") or name in some:
                continue
            value = getattr(_core.BalanceParams(), name)
            if isinstance(value, bool):
                some[name] = bool(rng.random() < 0.5)
            elif isinstance(value, float):
                some[name] = float(rng.uniform())
            else:
                some[name] = [float(rng.uniform()), 1.0 + float(rng.uniform())]
        return some

    def solve_balance(self, params: Any, overrides: Any, **given: Any) -> _core.BalanceSolution:
        """Assign all parameters, and solve."""
        made = _core.BalanceParams()
        for name, value in params.items():
            setattr(made, name, value)
        return _core.BalancePlanner(self.model, made, overrides, 2).solve(**given)

    def of_target(self) -> dict[str, Any]:
        nv, gains = self.forest.nv, self.of_gains()
        return {
            "q": self.poses(),
            "v": self.rows(nv),
            "kp": gains["kp"],
            "kd": gains["kd"],
            "dt": 0.01,
            "a": self.rows(nv),
            "past": None if self.rng.random() < 0.5 else self.poses((2,)).reshape(-1),
        }

    def of_query(self) -> dict[str, Any]:
        """The name of a function of `_core.Dynamics`, and its arguments."""
        rng, nv, nl = self.rng, self.forest.nv, len(self.forest.link_body)
        known: dict[str, Any] = {
            "q": self.poses((self.n,) if rng.random() < 0.5 else ()),
            **{name: self.rows(nv) for name in ("v", "a", "tau", "force")},
            "external": self.rows(6 * nl),
            "gravity": rng.normal(size=3),
            "form": int(rng.integers(4)),
            "method": int(rng.integers(4)),
            "link": int(rng.integers(nl)),
            "point": rng.normal(size=3),
            **{
                name: bool(rng.random() < 0.5)
                for name in ("limits", "target_velocity", "feedforward", "as_printed")
            },
        }
        name = str(rng.choice(list(QUERIES)))
        given = {key: known[key] for key in QUERIES[name].split() if key != "target"}
        if "target" in QUERIES[name].split():
            given |= {f"target_{key}": value for key, value in self.of_target().items()}
        return {"query": name, "n": self.n, **given}

    def dynamics(self, overrides: Any = None) -> Any:
        return _core.Dynamics(self.model, overrides, bool(self.rng.random() < 0.5))

    def ask(self, given: dict[str, Any], overrides: Any = None, core: Any = None) -> Any:
        """Calls a function of `_core.Dynamics`."""
        given = dict(given)
        name = given.pop("query")
        if "target_q" in given:
            target = {key: given.pop(f"target_{key}") for key in TARGET}
            given["target"] = _core.ServoTarget(**target)
        return getattr(core or self.dynamics(overrides), name)(**given)


def look(world: Any) -> None:
    """Whatever happened, a world stands at good numbers."""
    q, v = world.read()
    assert np.isfinite(q).all(), "q is not finite"
    assert np.isfinite(v).all(), "v is not finite"
    world.time(), world.memory(), world.torque(), world.saturated(), world.projectiles()
    world.restore_faults(world.fault_table())
    found = world.contacts()
    for name in ("copy", "collider", "other", "point", "normal", "impulse", "gap"):
        assert np.isfinite(getattr(found, name)).all(), "contacts are not finite"
    copies, joints, times, singular = world.faults()
    assert len(copies) == len(joints) == len(times) == len(singular) <= len(q)


def stepped(world: Any, given: dict[str, Any]) -> None:
    """Steps a world, with a drive made of the arguments that begin with drive_."""
    drive = {key[6:]: value for key, value in given.items() if key.startswith("drive_")}
    rest = {key: value for key, value in given.items() if not key.startswith("drive_")}
    world.step(drive=_core.Drive(**drive) if drive else None, **rest)


def remade(bench: Bench, forest: dict[str, Any]) -> None:
    """A model of odd numbers that is taken must also be safe to step and to ask."""
    model = _core.Model(SimpleNamespace(**forest))
    bench.model = bench.whole = model
    given = {
        **bench.of_world(),
        "model": model,
        "whole": model,
        "collision_model": None,
        "overrides": None,
    }
    world = bench.started(_core.World(**given))
    world.step(None, None, None, None, 2)
    look(world)
    bench.ask(bench.of_query())


def met(poses: Any, near: Any, **fields: Any) -> None:
    """Two solids with odd hulls and sizes that are taken must be safe to collide."""
    still = np.zeros(2, dtype=np.int32)
    hull = SimpleNamespace(**{name: fields.pop(f"hull_{name}") for name in READ_OF_HULL.split()})
    colliders = SimpleNamespace(
        body=still - 1,
        link=still - 1,
        surface=still,
        p=np.zeros((2, 3)),
        E=np.tile([1.0, 0.0, 0.0, 0.0], (2, 1)),
        hulls=[hull],
        **fields,
    )
    nearest, points = _core.collide(colliders, poses, near)
    assert nearest.shape[1:] == (7,)
    assert points.shape[1:] == (4, 7)


def read_into(world: Any, given: dict[str, Any]) -> None:
    """Reads fields into arrays that may be odd."""
    pairs = given.pop("pairs")
    world.read_into(given, None, pairs)


def touched(bench: Bench, touch: dict[str, Any]) -> None:
    """Odd contacts that are taken must be safe to step, too."""
    given = {**bench.of_world(), "whole": bench.whole, "overrides": None}
    model = SimpleNamespace()
    for name, value in touch.items():
        group, _, field = name.rpartition(".")
        if group and not hasattr(model, group):
            setattr(model, group, SimpleNamespace())
        setattr(getattr(model, group) if group else model, field, value)
    world = bench.started(_core.World(**{**given, "collision_model": model}))
    world.step(None, None, None, None, 2)
    look(world)


def one_call(bench: Bench) -> tuple[str, dict[str, Any], Callable[[], Any]]:
    """What is called, with what, and the call."""
    rng, world = bench.rng, bench.world
    kinds: dict[str, tuple[Callable[[], dict[str, Any]], Callable[[dict[str, Any]], Any]]] = {
        "Model": (bench.of_model, lambda given: remade(bench, given)),
        "Gains": (bench.of_gains, lambda given: _core.Gains(**given)),
        "overrides": (
            lambda: bench.of_overrides() or {"mass": bench.forest.mass},
            lambda given: _core.ModelOverrides(bench.model, **given),
        ),
        "World": (bench.of_world, lambda given: _core.World(**given)),
        "write": (bench.of_write, lambda given: world.write(**given)),
        "read": (bench.of_read, lambda given: read_into(world, given)),
        "ray": (bench.of_ray, lambda given: world.ray(**given)),
        "inertia": (bench.of_inertia, lambda given: world.write_inertia(**given)),
        "friction": (bench.of_friction, lambda given: world.write_friction(**given)),
        "push": (bench.of_push, lambda given: world.push(**given)),
        "drag": (bench.of_drag, lambda given: world.drag(**given)),
        "release": (bench.of_release, lambda given: world.release(**given)),
        "meet": (bench.of_meet, lambda given: met(**given)),
        "touch": (bench.of_touch, lambda given: touched(bench, given)),
        "throw": (bench.of_throw, lambda given: world.throw_projectile(**given)),
        "step": (bench.of_step, lambda given: stepped(world, given)),
        "torques": (bench.of_torques, lambda given: world.torques(**given)),
        "balance": (bench.of_balance, lambda given: bench.solve_balance(**given)),
        "View": (lambda: {"array": rng.normal(size=5)}, lambda given: _core.View(**given).any()),
        "gravity": (lambda: {"gravity": np.zeros(3)}, lambda given: world.set_gravity(**given)),
        "query": (bench.of_query, lambda given: bench.ask(given, bench.overrides())),
        "look": (dict, lambda given: look(world)),
    }
    name = str(rng.choice(list(kinds), p=ODDS))
    make, call = kinds[name]
    given = spoiled(rng, make()) if name != "look" else {}
    return name, given, lambda: call(given)


def brief(given: dict[str, Any]) -> str:
    def text(x: Any) -> str:
        if isinstance(x, np.ndarray):
            return f"<{x.dtype} {x.shape} strides {x.strides}>"
        return f"{type(x).__name__} {' '.join(repr(x).split()):.60}"

    return ", ".join(f"{name}: {text(value)}" for name, value in given.items())


def batch(seed: int, count: int) -> int:
    """Make the calls; say which ended in an error that may not escape."""
    if sys.platform != "win32":
        import resource

        if "ASAN_OPTIONS" not in os.environ:  # its shadow takes terabytes of addresses
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    rng, escaped, refused = np.random.default_rng(seed), 0, 0
    bench = Bench(rng)
    for i in range(count):
        if i % 50 == 0:
            bench = Bench(rng)
        name, given, call = one_call(bench)
        try:
            call()
        except ALLOWED:
            refused += 1
        except Exception as error:
            escaped += 1
            if escaped <= 5:
                print(f"seed {seed} call {i}: {name} raised {error!r}\n    {brief(given)}")
    print(f"seed {seed}: {count} calls, {refused} refused, {escaped} escaped")
    return escaped


# ---- the tests


def run_batch(seed: int, count: int) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(filter(None, sys.path))
    # a heap that is checked, and filled with noise when it is freed
    checks = {"MALLOC_CHECK_": "3", "MALLOC_PERTURB_": "165", "PYTHONPATH": path}
    return subprocess.run(
        [sys.executable, "-X", "faulthandler", str(Path(__file__)), str(seed), str(count)],
        env={**os.environ, **checks},
        capture_output=True,
        text=True,
        timeout=600,
    )


@pytest.mark.parametrize("seed", range(4))
def test_odd_arguments_are_answered_or_refused_and_never_crash(seed: int) -> None:
    done = run_batch(seed, 2000)
    assert done.returncode == 0, f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 140))
def test_many_odd_arguments_are_answered_or_refused_and_never_crash(seed: int) -> None:
    done = run_batch(seed, 20_000)
    assert done.returncode == 0, f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"


def test_a_forest_that_is_not_depth_first_is_refused() -> None:
    """Contact walks from body to body along the tree."""
    forest = load_character("humanoid").forest
    parent = forest.parent.copy()
    parent[4] = 2  # 3 hangs on 1: the branch of 2 has been left
    with pytest.raises(PoiseError, match="depth first"):
        _core.Model(replace(forest, parent=parent))


def pair(out: Any) -> Any:
    return out if isinstance(out, tuple) else (out,)


@pytest.mark.parametrize("seed", range(20))
def test_the_same_numbers_in_another_layout_give_the_same_answer_or_none(seed: int) -> None:
    rng = np.random.default_rng(seed)
    bench = Bench(rng)
    taken = 0
    for _ in range(30):
        given = bench.of_query()
        given |= {key: rng.normal(size=bench.forest.nv) for key in ("a", "tau") if key in given}
        core = _core.Dynamics(bench.model, None, False)
        plain = bench.ask(given, core=core)
        name = str(rng.choice([key for key, x in given.items() if isinstance(x, np.ndarray)]))
        try:
            again = bench.ask({**given, name: relaid(rng, given[name])}, core=core)
        except ALLOWED:
            continue
        taken += 1
        for a, b in zip(pair(plain), pair(again), strict=True):
            assert np.array_equal(a, b, equal_nan=True)
    assert taken > 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs limits on memory")
def test_more_threads_than_the_system_gives_neither_hang_nor_crash() -> None:
    code = (
        "import resource, poise; arm = poise.load_character('two-link');"
        "resource.setrlimit(resource.RLIMIT_AS, (1500 << 20,) * 2)\n"
        "try: poise.World(arm, n=600, dt=0.01, threads=256).step()\n"
        "except (poise.PoiseError, MemoryError, RuntimeError): pass"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    process = subprocess.Popen([sys.executable, "-c", code], env=environment)
    try:
        assert process.wait(timeout=20) == 0
    finally:
        process.kill()
        process.wait()


def test_an_object_that_was_never_made_is_refused() -> None:
    with pytest.warns(RuntimeWarning, match="uninitialized"), pytest.raises(TypeError):
        _core.World.__new__(_core.World).time()


if __name__ == "__main__":
    sys.exit(1 if batch(int(sys.argv[1]), int(sys.argv[2])) else 0)
