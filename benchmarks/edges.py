"""Right at the edges: scenes with a known answer, poise and MuJoCo side by side.

    python benchmarks/run.py --only edges
    python benchmarks/edges.py                 poise's figures alone, as JSON

edges_before.json holds poise's figures of commit 266944f: before the solve by half solves.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from grounded import Hold, find_engines, mujoco_model, quiet
from tables import Bound, Section, Table
from timing import Array, Plan

from poise import (
    Character,
    Command,
    Drive,
    Gains,
    Joint,
    Link,
    State,
    Target,
    World,
    dynamics,
    load_character,
)
from poise.model.formats import mjcf

# the tests look at the same scenes
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

import edge_scenes
from edge_scenes import FIGURES, MuJoCo, Poise

BEFORE = Path(__file__).with_name("edges_before.json")
QUICK_FIGURES = 3
CURLED = {"hip": 1.9, "knee": 2.4, "chest": 0.7, "elbow": 2.3}  # [rad]
DT = 1 / 240
Engine = Callable[[Any], float]


class Row(NamedTuple):
    """A figure of poise and of MuJoCo; 0 is right, and `most` is good enough."""

    name: str
    unit: str
    most: float
    ours: Callable[[], float]
    theirs: Callable[[Any], float]


def edges(plan: Plan) -> Section:
    """All figures: before, now, MuJoCo."""
    section = Section("edges", "scenes with a known answer: how far off, 0 is right")
    engines, _ = find_engines()
    before = json.loads(BEFORE.read_text())
    rows, worse = [], []
    for row in table()[: QUICK_FIGURES if plan.quick else None]:
        ours = row.ours()
        theirs = row.theirs(engines["mujoco"]) if "mujoco" in engines else math.nan
        section.numbers[row.name] = {"poise": ours, "mujoco": theirs, "before": before[row.name]}
        cells = (f"{x:.2g}" for x in (before[row.name], ours, theirs, row.most))
        rows.append((f"{row.name} [{row.unit}]", *cells))
        section.bounds.append(Bound(row.name, ours, most=row.most, unit=row.unit))
        if ours > max(before[row.name], row.most):
            worse.append(row.name)
    section.bounds.append(Bound("figures that are worse than before", len(worse), most=0, unit=""))
    section.tables.append(Table("", ("", "before", "poise", "MuJoCo", "good enough"), rows))
    section.notes += [
        "before: commit 266944f. A figure is worse than before if it is more than both that and "
        "what is good enough.",
        "MuJoCo has its default options, the same step, and for bounces springs and dampers.",
    ]
    return section


def table() -> list[Row]:
    """The scenes that both engines are given as stages, then those with joints."""

    def staged(figure: edge_scenes.Figure) -> Row:
        return Row(
            figure.name,
            figure.unit,
            figure.most,
            lambda: figure.of(Poise),
            lambda mujoco: figure.of(MuJoCo),
        )

    return [
        *map(staged, FIGURES),
        Row("pendulum 60 s at 1/240: energy off", "%", 1.0, our_pendulum, their_pendulum),
        Row("curled up on the ground: joints move", "rad/s", 0.01, our_curl, their_curl),
    ]


# ---- a pendulum


def rod() -> Character:
    """A rod of 1 m and 1 kg on a hinge at its upper end."""
    hinge = Joint("swing", "hinge", axis=(0.0, 1.0, 0.0))
    return Character(
        "pendulum",
        (
            Link(
                "rod",
                joints=(hinge,),
                mass=1.0,
                com=(0.0, 0.0, -0.5),
                inertia=(1 / 12, 1 / 12, 1e-3),
            ),
        ),
    )


def drift(q: Array, v: Array) -> float:
    """Mean energy above the lowest point in the last swings against the first ones [%]."""
    character = rod()
    kinetic, potential = dynamics.energy(character, q[:, None], v[:, None])
    total = kinetic + potential + 0.5 * 9.81
    some = len(total) // 10
    return float(100 * abs(total[-some:].mean() / total[:some].mean() - 1.0))


def our_pendulum() -> float:
    """Let go at 1.5 rad."""
    world = World(rod(), dt=DT, contact=None)
    world.reset(State(np.array([1.5]), np.zeros(1)))
    seen = []
    for _ in range(60 * 240):
        world.step()
        seen.append((float(world.state.q[0]), float(world.state.v[0])))
    q, v = np.array(seen).T
    return drift(q, v)


def their_pendulum(mujoco: Any) -> float:
    """The same in MuJoCo."""
    model = mujoco.MjModel.from_xml_string(mjcf.dump(rod()))
    model.opt.timestep = DT
    data = mujoco.MjData(model)
    data.qpos[0] = 1.5
    seen = []
    for _ in range(60 * 240):
        mujoco.mj_step(model, data)
        seen.append((float(data.qpos[0]), float(data.qvel[0])))
    q, v = np.array(seen).T
    return drift(q, v)


# ---- a humanoid, curled up


def curled(human: Character) -> Array:
    """Knees to the chest, 0.6 m up: more than its links leave room for."""
    q: Array = human.rest_q.copy()
    q[2] = 0.6
    for joint in human.joints:
        angle = next((a for part, a in CURLED.items() if part in joint.name), None)
        if angle is None:
            continue
        at = human.q_slice(joint)
        if joint.kind == "hinge":
            q[at] = angle
        else:
            q[at] = [math.cos(angle / 2), *(math.sin(angle / 2) * np.array(joint.axis))]
    return q


def our_curl() -> float:
    """Speed of the joints after 3 s, root mean square over a second."""
    human = load_character("humanoid")
    q = curled(human)
    kp = np.full(human.nv, 300.0)
    kp[:6] = 0.0
    world = World(human, dt=DT, projectiles=0)
    world.reset(State(q, np.zeros(human.nv)))
    command = Command(drive=Drive(Gains(human, kp, 0.1 * kp), Target(q), form="implicit"))
    world.step(command, steps=720)
    speeds = []
    for _ in range(240):
        world.step(command)
        speeds.append(world.state.v[6:].copy())
    return float(np.sqrt(np.mean(np.array(speeds) ** 2)))


def their_curl(mujoco: Any) -> float:
    """The same in MuJoCo, held by joint springs and dampers."""
    human = load_character("humanoid")
    q = curled(human)
    model = mujoco_model(mujoco, human, Hold(300.0, 30.0, DT))
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    model.qpos_spring[:] = q
    data = mujoco.MjData(model)
    data.qpos[:] = q
    with quiet(mujoco):
        mujoco.mj_step(model, data, 720)
        speeds = []
        for _ in range(240):
            mujoco.mj_step(model, data)
            speeds.append(data.qvel[6:].copy())
    return float(np.sqrt(np.mean(np.array(speeds) ** 2)))


if __name__ == "__main__":
    print(json.dumps({row.name: float(f"{row.ours():.6g}") for row in table()}, indent=1))
