"""What is simulated: the paper's models and gains, a start, a moving target, and our own cases."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from timing import Array, Case

from poise import Character, Command, Drive, Gains, State, Target, World

DT = 1 / 240  # [s]

MODELS = ("humanoid", "dog", "snake-36", "snake-72", "snake-195")
"""The models of yin2020, Table 1."""


def paper_gains(character: Character, scale: float = 1.0) -> Gains:
    """The gains of yin2020, the same about all axes: root 20000 and 2000, joints 75000 and 4000."""
    return Gains(character, scale * per_dof(character, 2e4, 7.5e4), scale * paper_kd(character))


def paper_kd(character: Character) -> Array:
    """Damping per degree of freedom [N·s/m, N·m·s/rad]."""
    return per_dof(character, 2e3, 4e3)


def per_dof(character: Character, root: float, joints: float) -> Array:
    """One number for the free root, another for all joints, shape (nv,)."""
    values = np.full(character.nv, joints)
    values[:6] = root
    return values


def moved(character: Character, d: Array) -> Array:
    """The rest pose moved along d: metres, radians and rotation vectors, (..., nv) to (..., nq)."""
    q: Array = np.broadcast_to(character.rest_q, (*d.shape[:-1], character.nq)).copy()
    for joint in character.joints:
        at, by = q[..., character.q_slice(joint)], d[..., character.v_slice(joint)]
        if joint.kind in ("hinge", "slide"):
            at += by
            continue
        if joint.kind == "free":
            at[..., :3] += by[..., :3]
        at[..., -4:] = _turned(at[..., -4:], by[..., -3:])
    return q


def _turned(quat: Array, by: Array) -> Array:
    """quat exp(by), quaternions w x y z."""
    angle = np.linalg.norm(by, axis=-1, keepdims=True)
    s = np.sinc(angle / (2 * np.pi)) / 2 * by
    c = np.cos(angle / 2)
    w, u = quat[..., :1], quat[..., 1:]
    real = w * c - np.sum(u * s, axis=-1, keepdims=True)
    return np.concatenate([real, w * s + c * u + np.cross(u, s)], axis=-1)


def sway(character: Character, rows: int) -> tuple[Array, Array, Array]:
    """A slow sway of every joint, each with its own phase: displacement and its two rates."""
    rate = 2 * np.pi * 0.5
    phase = np.arange(character.nv) * 2.4
    angle = rate * DT * np.arange(1, rows + 1)[:, None] + phase
    size = per_dof(character, 0.02, 0.2)
    return size * np.sin(angle), size * rate * np.cos(angle), -size * rate**2 * np.sin(angle)


def target(
    character: Character,
    rows: int,
    *,
    copies: int | None = None,
    velocity: bool = False,
    acceleration: bool = False,
) -> Target:
    """The sway as a target of many rows; with copies, each copy has its own rows."""
    # rates of rotation vectors stand for angular velocities: near enough to keep the core busy
    d, v, a = sway(character, rows)
    q = moved(character, d)

    def own(x: Array) -> Array:
        return x if copies is None else np.repeat(x[:, None], copies, axis=1)

    return Target(own(q), own(v) if velocity else None, own(a) if acceleration else None, rows=rows)


def start(character: Character, n: int, size: float = 1.0) -> State:
    """Near the rest pose and moving a little, every copy differently, the same in every run."""
    draw = size * np.random.default_rng(2020).normal(size=(2, n, character.nv))
    d = draw[0] * per_dof(character, 0.02, 0.1)
    v = draw[1] * per_dof(character, 0.05, 0.2)
    q = moved(character, d)
    return State(q[0], v[0]) if n == 1 else State(q, v)


def with_joints(character: Character, **fields: Any) -> Character:
    """The character with some fields of all joints but the free root changed."""
    links = []
    for link in character.links:
        joints = [j if j.kind == "free" else replace(j, **fields) for j in link.joints]
        links.append(replace(link, joints=tuple(joints)))
    return Character(character.name, tuple(links), character.limbs)


def ours(
    name: str,
    character: Character,
    *,
    n: int,
    rows: int,
    gains: Gains | None = None,
    goal: Target | None = None,
    dtype: str = "float64",
    threads: int = 1,
    world: dict[str, Any] | None = None,
    **drive: Any,
) -> Case:
    """A world of n copies that follows `rows` rows of target in one call.

    Args:
        gains: Those of the paper if None.
        goal: The sway if None.
        world: More arguments of World; nothing touches unless they say so.
        drive: More arguments of Drive: form, method, strength ...
    """
    options: dict[str, Any] = {"contact": None, **(world or {})}
    w = World(character, n=n, dt=DT, dtype=dtype, threads=threads, **options)
    gains = paper_gains(character) if gains is None else gains
    goal = target(character, rows) if goal is None else goal
    drive.setdefault("form", "spd")
    command = Command(drive=Drive(gains, goal, **drive))
    facts = {"engine": "poise", "model": character.name, "n": n, "dtype": dtype, "rows": rows}
    facts |= {
        "isa": w.isa,
        "threads": threads,
        "form": drive["form"],
        "method": drive.get("method", "maba"),
    }
    return stepping(name, w, lambda: w.step(command, rows), n * rows, facts)


def stepping(
    name: str, w: World, run: Callable[[], object], units: int, facts: dict[str, Any]
) -> Case:
    """A case of anything that steps a world: warm up, save the state, start from there."""
    w.reset(start(w.scene.characters[0], w.n))
    run()
    saved = w.state.copy()

    def end() -> Array:
        if w.diverged:
            raise FloatingPointError(f"{name}: {w.diverged[0]}: this timing means nothing")
        return np.concatenate([w.state.q.ravel(), w.state.v.ravel()])

    return Case(name, units, lambda: w.reset(saved), run, end, facts)
