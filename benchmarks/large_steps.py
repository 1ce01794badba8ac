"""Clips on the ground at large steps: how far off, beside MuJoCo, and whether air pushes.

The root is held and the joints have yin2020's gains; MuJoCo solves the same stable PD inside its
own dynamics (`interop.mujoco.EmbeddedPD`), from the same state. The error of a step is the largest
|q - q_target| of its coordinates.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from grounded import FRICTION, Hold, find_engines, mujoco_model, quiet
from tables import Bound, Section, Table
from timing import Array, Plan

from poise import Character, Clip, Gains, StablePD, World, dynamics, load_character, load_clip
from poise.math import rotation

CLIPS = ("walk", "run")
RATES = (30, 60, 120)  # [1/s]
JOINT_KP, JOINT_KD = 75000.0, 4000.0
ROOT_KP, ROOT_KD = 20000.0, 2000.0
CLEAR = 2e-3
"""A point that stays higher than this in a step does not touch [m]."""
INSTANTS = 9  # of a step at which its height is looked at


class Tracked(NamedTuple):
    """A clip once through: mean and largest error [rad, m], and ghosts.

    Ghosts are forces on points that stay more than 2 mm above the ground in their step: how many,
    and the largest [N].
    """

    mean: float
    largest: float
    ghosts: int = 0
    ghost: float = 0.0


def large_steps(plan: Plan) -> Section:
    """Both clips at every rate."""
    section = Section("large steps", "clips on the ground with a held root: errors, rad")
    engines, missing = find_engines()
    human = load_character("humanoid")
    rows = []
    found: dict[tuple[str, int], Tracked] = {}
    for name in CLIPS[: 1 if plan.quick else None]:
        clip = load_clip(name, human)
        for rate in RATES[: 1 if plan.quick else None]:
            steps = 3 if plan.quick else round(clip.duration * rate)
            ours = found[name, rate] = track(human, clip, 1 / rate, steps)
            peer = (
                follow(engines["mujoco"], human, clip, 1 / rate, steps)
                if "mujoco" in engines
                else Tracked(np.nan, np.nan)
            )
            section.numbers[f"{name}, 1/{rate}"] = {
                "poise": ours._asdict(), "mujoco": {"mean": peer.mean, "largest": peer.largest},
            }  # fmt: skip
            cells = (f"{x:.4f}" for x in (ours.mean, ours.largest, peer.mean, peer.largest))
            rows.append((f"{name}, 1/{rate}", *cells, f"{ours.ghosts}"))
            section.bounds.append(
                Bound(f"{name}, 1/{rate}: force on what stays clear", ours.ghost, most=0, unit="N")
            )
            if rate == RATES[0] and name == "run" and "mujoco" in engines:
                ratio = ours.mean / peer.mean
                section.bounds.append(Bound("run, 1/30: error", ratio, most=1.3, unit="x MuJoCo"))
    if not plan.quick:
        ratio = found["walk", 30].mean / found["walk", 60].mean
        section.bounds.append(Bound("walk, 1/30: error", ratio, most=2.0, unit="x that at 1/60"))
    heads = ("", "mean", "largest", "MuJoCo, mean", "MuJoCo, largest", "ghosts")
    section.tables.append(Table("implicit form, self-collision on", heads, rows))
    section.notes += [
        f"joints {JOINT_KP:g} N m/rad and {JOINT_KD:g} N m s/rad, root {ROOT_KP:g} and {ROOT_KD:g} "
        f"(yin2020); ghosts: forces on points that stay over {1e3 * CLEAR:g} mm in their step.",
        *(f"{name}: {why}" for name, why in missing.items() if name == "mujoco"),
    ]
    return section


def gains(human: Character) -> tuple[Array, Array]:
    """yin2020's, (nv,) each."""
    kp, kd = np.full(human.nv, JOINT_KP), np.full(human.nv, JOINT_KD)
    kp[:6], kd[:6] = ROOT_KP, ROOT_KD
    return kp, kd


def track(human: Character, clip: Clip, dt: float, steps: int) -> Tracked:
    """Our engine."""
    world = World(human, dt=dt, friction=FRICTION, projectiles=0)
    world.reset(clip.state(0.0))
    servo = StablePD(human, gains=Gains(human, *gains(human)), form="implicit", root="held")
    errors, ghosts = [], []
    for k in range(steps):
        target, before = clip.target((k + 1) * dt), world.state.q.copy()
        world.step(servo(world.state, target))
        errors.append(np.abs(human.difference(world.state.q, target.q)).max())
        ghosts += clear_forces(world, human, before, dt)
    return Tracked(
        float(np.mean(errors)), float(np.max(errors)), len(ghosts), max(ghosts, default=0.0)
    )


def clear_forces(world: World, human: Character, before: Array, dt: float) -> list[float]:
    """Forces of the ground on points that stay clear of it in the step from `before` [N]."""
    seen, now = world.contacts, world.state.q
    step = human.difference(now, before)
    place, turn = dynamics.forward_kinematics(human, before)
    found = []
    for link, other, point, force in zip(
        seen.link, seen.other, seen.point, seen.force, strict=True
    ):
        if other >= 0 or not np.linalg.norm(force) > 0.0:
            continue
        # a ball touches with whatever point of it is lowest: its middle moves with the link
        radius = ball_at(human, int(link), place[link], turn[link], point)
        middle = point + np.array([0.0, 0.0, radius])
        own = rotation.rotate(rotation.conjugate(turn[link]), middle - place[link])
        heights = []
        for s in np.linspace(0.0, 1.0, INSTANTS):
            p, e = dynamics.forward_kinematics(human, human.integrate(before, s * step))
            heights.append(float((p[link] + rotation.rotate(e[link], own))[2]) - radius)
        if min(heights) > CLEAR:
            found.append(float(np.linalg.norm(force)))
    return found


def ball_at(human: Character, link: int, place: Array, turn: Array, point: Array) -> float:
    """Radius of the sphere, or capsule's end, whose lowest point this is; 0 of a corner."""
    for shape in human.links[link].shapes:
        if shape.kind not in ("sphere", "capsule"):
            continue
        half = shape.size[1] if shape.kind == "capsule" else 0.0
        for end in (-half, half):
            own = np.array(shape.pos) + rotation.rotate(np.array(shape.quat), [0.0, 0.0, end])
            middle = place + rotation.rotate(turn, own)
            if np.linalg.norm(middle - [0.0, 0.0, shape.size[0]] - point) < 1e-6:
                return float(shape.size[0])
    return 0.0


def follow(mujoco: Any, human: Character, clip: Clip, dt: float, steps: int) -> Tracked:
    """MuJoCo, with the same stable PD in its own solve."""
    from poise.interop.mujoco import EmbeddedPD

    model = mujoco_model(mujoco, human, Hold(0.0, 0.0, dt))
    servo = EmbeddedPD(model, *gains(human), root="held")
    data = mujoco.MjData(model)
    start = clip.state(0.0)
    data.qpos[:], data.qvel[:] = start.q, start.v
    errors = []
    with quiet(mujoco):
        for k in range(steps):
            target = clip.target((k + 1) * dt)
            data.qfrc_applied[:] = servo(data, target)
            mujoco.mj_step(model, data)
            errors.append(np.abs(human.difference(data.qpos, target.q)).max())
    return Tracked(float(np.mean(errors)), float(np.max(errors)))
