"""A robot whose links are convex meshes falls: ours and MuJoCo's, with the same hulls and pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
from grounded import Hold, find_engines, mujoco_model, quiet
from tables import Bound, Section, Table, micro
from timing import Array, Case, Plan, Timing, measure

from poise import Character, Joint, Link, State, World
from poise.model.shape import Shape

DT = 1 / 240
SECONDS = 3.0
DAMPING = 0.5  # of the joints [N m s/rad]
VERTICES = 1000  # of each link
DENSITY = 1100.0  # [kg/m^3]
STARTS = 4  # falls from random orientations

X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)

# name, offset from the parent's joint, axis, half sizes and middle of the mesh [m]
WAIST = [
    ("waist_yaw", (0.0, 0.0, 0.06), Z, (0.05, 0.06, 0.03), (0.0, 0.0, 0.01)),
    ("waist_roll", (0.0, 0.0, 0.04), X, (0.04, 0.05, 0.03), (0.0, 0.0, 0.01)),
    ("torso", (0.0, 0.0, 0.03), Y, (0.09, 0.14, 0.18), (0.0, 0.0, 0.19)),
]
LEG = [
    ("hip_pitch", (0.0, 0.10, -0.06), Y, (0.05, 0.04, 0.05), (0.0, 0.0, 0.0)),
    ("hip_roll", (0.0, 0.02, -0.04), X, (0.05, 0.04, 0.06), (0.0, 0.0, -0.03)),
    ("hip_yaw", (0.0, 0.0, -0.08), Z, (0.06, 0.06, 0.10), (0.0, 0.0, -0.07)),
    ("knee", (0.0, 0.0, -0.20), Y, (0.05, 0.05, 0.16), (0.0, 0.0, -0.14)),
    ("ankle_pitch", (0.0, 0.0, -0.30), Y, (0.03, 0.03, 0.03), (0.0, 0.0, 0.0)),
    ("ankle_roll", (0.0, 0.0, -0.02), X, (0.11, 0.035, 0.02), (0.04, 0.0, -0.025)),
]
ARM = [
    ("shoulder_pitch", (0.0, 0.16, 0.30), Y, (0.04, 0.04, 0.04), (0.0, 0.02, 0.0)),
    ("shoulder_roll", (0.0, 0.05, 0.0), X, (0.04, 0.04, 0.05), (0.0, 0.0, -0.02)),
    ("shoulder_yaw", (0.0, 0.0, -0.08), Z, (0.035, 0.035, 0.07), (0.0, 0.0, -0.03)),
    ("elbow", (0.0, 0.0, -0.12), Y, (0.035, 0.035, 0.07), (0.0, 0.0, -0.05)),
    ("wrist_roll", (0.0, 0.0, -0.12), Z, (0.03, 0.03, 0.05), (0.0, 0.0, -0.02)),
    ("wrist_pitch", (0.0, 0.0, -0.06), Y, (0.025, 0.025, 0.03), (0.0, 0.0, -0.01)),
    ("wrist_yaw", (0.0, 0.0, -0.04), X, (0.03, 0.02, 0.06), (0.0, 0.0, -0.05)),
]


def meshes(plan: Plan) -> Section:
    """Times of the falls, and how deep both engines let the robot sink."""
    section = Section(
        "meshes", f"a robot of 30 hulls of {VERTICES} vertices falls: µs a step, dt 1/240, float64"
    )
    robot = mesh_robot(60 if plan.quick else VERTICES)
    steps = plan.rows if plan.quick else round(SECONDS / DT)
    starts = falls(robot, 1 if plan.quick else STARTS)
    hold = Hold(0.0, DAMPING, DT)
    engines, missing = find_engines()
    ours = [_our_case(robot, hold, start, k, steps) for k, start in enumerate(starts)]
    cases = {"poise": [case for case, _ in ours]}
    depths = {"poise": np.mean([depth for _, depth in ours])}
    if "mujoco" in engines:
        mujoco = engines["mujoco"]
        theirs = [_mujoco_case(mujoco, robot, hold, s, k, steps) for k, s in enumerate(starts)]
        cases["MuJoCo"] = [case for case, _ in theirs]
        depths["MuJoCo"] = np.mean([depth for _, depth in theirs])
    else:
        section.notes.append(f"MuJoCo is skipped: {missing['mujoco']}")
    times = measure(cases, plan)
    rows = []
    for name, found in times.items():
        section.timings += found.values()
        rows.append((name, *map(micro, found.values()), f"{1e3 * depths[name]:.3f}"))
    heads = ("", *(f"fall {k + 1}" for k in range(len(starts))), "mean of the deepest mm")
    section.tables.append(Table("one robot, one thread", heads, rows))
    section.numbers = {"depth_m": {name: float(depth) for name, depth in depths.items()}}
    if "MuJoCo" in times:
        ratio = _total(times["MuJoCo"]) / _total(times["poise"])
        section.numbers["ratio"] = ratio
        section.bounds.append(Bound("a falling robot of meshes against MuJoCo", ratio, least=1.0))
        deep = depths["poise"] / max(depths["MuJoCo"], 1e-12)
        section.bounds.append(Bound("its penetration against MuJoCo's", deep, most=1.0))
    section.notes.append(
        "a free pelvis and 29 hinges, dampers of 0.5 N m s/rad; links meet, but for the pairs that "
        "our world leaves out (neighbours, and those that overlap in the rest pose), left out in "
        "both. MuJoCo: implicitfast, its defaults else, a loop of mj_step in C."
    )
    return section


def _total(times: dict[str, Timing]) -> float:
    return sum(timing.best for timing in times.values())


def mesh_robot(vertices: int = VERTICES) -> Character:
    """A free pelvis, three joints of the waist, six of each leg, seven of each arm."""
    links = [_link("pelvis", None, (0.0, 0.0, 0.78), None, (0.07, 0.09, 0.05), (0, 0, 0), vertices)]
    parent = "pelvis"
    for name, pos, axis, half, middle in WAIST:
        links.append(_link(name, parent, pos, axis, half, middle, vertices))
        parent = name
    for side, sign in (("left", 1.0), ("right", -1.0)):
        for chain, start in ((LEG, "pelvis"), (ARM, "torso")):
            parent = start
            for name, pos, axis, half, middle in chain:
                name = f"{side}_{name}"
                there, in_it = ((x, sign * y, z) for x, y, z in (pos, middle))
                links.append(_link(name, parent, there, axis, half, in_it, vertices))
                parent = name
    return Character("mesh-robot", tuple(links))


def _link(
    name: str, parent: str | None, pos: Any, axis: Any, half: Any, middle: Any, vertices: int
) -> Link:
    joint = Joint(name, "free") if axis is None else Joint(name, "hinge", axis=axis)
    shape = Shape.mesh(_rounded(vertices) * half, pos=middle)
    return Link.from_shapes(name, parent, [shape], density=DENSITY, pos=pos, joints=[joint])


def _rounded(count: int) -> Array:
    """Points spread evenly over a rounded box of half size 1: x^4 + y^4 + z^4 = 1."""
    k = np.arange(count) + 0.5
    z, turn = 1.0 - 2.0 * k / count, np.pi * (1.0 + 5.0**0.5) * k
    r = np.sqrt(1.0 - z * z)
    x = np.stack([r * np.cos(turn), r * np.sin(turn), z], axis=1)
    scaled: Array = x / (x**4).sum(axis=1, keepdims=True) ** 0.25
    return scaled


def falls(robot: Character, count: int) -> list[State]:
    """Random orientations above the ground, all joints moving a little."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(count):
        q, v = robot.rest_q.copy(), 0.5 * rng.normal(size=robot.nv)
        turn = rng.normal(size=4)
        q[2], q[3:7] = 1.2, turn / np.linalg.norm(turn)
        found.append(State(q, v))
    return found


def _our_case(robot: Character, hold: Hold, start: State, k: int, steps: int) -> tuple[Case, float]:
    world = World(robot, dt=hold.dt, threads=1, projectiles=0)
    command = hold.command(robot)
    world.reset(start)
    deepest = []
    for _ in range(steps):
        world.step(command)
        deepest.append(max(0.0, float(world.contacts.depth.max(initial=0.0))))

    def end() -> Array:
        return np.concatenate([world.state.q, world.state.v])

    facts = {
        "engine": "poise",
        "model": robot.name,
        "n": 1,
        "threads": 1,
        "contacts": len(world.contacts.depth),
    }
    run = lambda: world.step(command, steps=steps)  # noqa: E731
    return Case(f"{k}", steps, lambda: world.reset(start), run, end, facts), _mean(deepest)


def _mujoco_case(
    mujoco: Any, robot: Character, hold: Hold, start: State, k: int, steps: int
) -> tuple[Case, float]:
    model = mujoco_model(mujoco, robot, hold)
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    data = mujoco.MjData(model)

    def reset() -> None:
        mujoco.mj_resetData(model, data)
        data.qpos[:], data.qvel[:] = start.q, start.v

    reset()
    deepest = []
    for _ in range(steps):
        mujoco.mj_step(model, data)
        deepest.append(max(0.0, -float(data.contact.dist.min(initial=0.0))))

    def end() -> Array:
        if data.time < 0.999 * steps * hold.dt:
            raise FloatingPointError("MuJoCo diverged: this timing means nothing")
        return np.concatenate([data.qpos, data.qvel])

    def run() -> None:
        with quiet(mujoco):
            mujoco.mj_step(model, data, steps)

    facts = {
        "engine": "mujoco",
        "model": robot.name,
        "n": 1,
        "threads": 1,
        "contacts": int(data.ncon),
    }
    return Case(f"{k}", steps, reset, run, end, facts), _mean(deepest)


def _mean(deepest: list[float]) -> float:
    """Of the steps in which something touches [m]."""
    touching = [depth for depth in deepest if depth > 0.0]
    return float(np.mean(touching)) if touching else 0.0
