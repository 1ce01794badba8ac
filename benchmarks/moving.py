"""Contact in motion: what walks, tumbles, lies, piles up and slithers, ours and MuJoCo's.

A scene is a set of starts and a number of steps. Each engine replays it several times; of every
chunk of steps the fastest replay counts. MuJoCo runs its default solver (Newton, pyramidal cone).
Copies that diverge count for neither from then on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from grounded import FRICTION, Hold, excluded_pairs, find_engines, mujoco_model, quiet
from tables import Bound, Section, Table
from timing import Array, Plan

from poise import (
    Character,
    Command,
    Drive,
    Gains,
    State,
    Target,
    World,
    load_character,
    load_clip,
    suggest_gains,
)
from poise.model.formats import mjcf

REPLAYS = 5
STICKING = 0.95
"""A contact sticks if its friction is below this part of the largest possible."""


@dataclass
class Run:
    """What a replay of a scene took, and how exact it was.

    Attributes:
        seconds: Of each chunk, the fastest replay [s].
        steps: Of each chunk: steps of copies that had not diverged.
        depth: Mean of the deepest penetration over copies and chunks [m].
        slip: Root mean square of the velocity of sticking contacts [m/s].
        residual: 90 % of the natural residuals are smaller [m/s]; NaN if unknown.
        diverged: Copies that did.
    """

    seconds: Array
    steps: Array
    depth: float = float("nan")
    slip: float = float("nan")
    residual: float = float("nan")
    diverged: int = 0

    @property
    def each(self) -> float:
        """Seconds per step of a copy."""
        return float(self.seconds.sum() / self.steps.sum())

    @property
    def worst(self) -> float:
        """The slowest chunk by the mean."""
        each = self.seconds / np.maximum(self.steps, 1)
        return float(each.max() / self.each)


@dataclass(frozen=True)
class Scene:
    """Characters, their starts (n, nq), (n, nv), and how they are driven."""

    name: str
    parts: tuple[Character, ...]
    q: Array
    v: Array
    dt: float
    seconds: float
    hold: Hold | None = None
    """Springs to the rest pose in all joints but the root."""
    clip: str | None = None
    """Followed by stable PD with the default gains, the root free."""
    settle: float = 0.0
    """Seconds before the clock starts."""
    least: Mapping[str, float] = field(default_factory=dict)
    """How many times MuJoCo's speed, by dtype."""
    accuracy: float | None = None
    """Bound of the residual [m/s]."""


# ---- starts


def turns(rng: np.random.Generator, n: int) -> Array:
    """Random quaternions."""
    x = rng.normal(size=(n, 4))
    return np.asarray(x / np.linalg.norm(x, axis=1, keepdims=True))


def scenes(plan: Plan) -> list[Scene]:
    human = load_character("humanoid")
    short = plan.quick
    long = (lambda s: 0.05) if short else (lambda s: s)
    out = []
    n = 4 if short else 64
    rest, still = np.tile(human.rest_q, (n, 1)), np.zeros((n, human.nv))
    out.append(
        Scene(
            "standing, 1/240", (human,), rest, still, 1 / 240, long(40 / 240),
            hold=Hold(1e3, 1e2, 1 / 240), settle=long(2.0), least={"float32": 20, "float64": 10},
        )
    )  # fmt: skip
    clip = load_clip("walk", human)
    phase = np.random.default_rng(0).uniform(0.0, clip.duration, n)
    states = [clip.state(t) for t in phase]
    q, v = np.array([s.q for s in states]), np.array([s.v for s in states])
    for rate, least in ((240, {"float32": 12, "float64": 6}), (120, {"float32": 10, "float64": 6})):
        out.append(
            Scene(
                f"walking, 1/{rate}", (human,), q, v, 1 / rate, long(1.0),
                hold=Hold(500.0, 50.0, 1 / rate), least=least, accuracy=1e-3,
            )
        )  # fmt: skip
    m = 4 if short else 32
    rng = np.random.default_rng(1)
    q = np.tile(human.rest_q, (m, 1))
    q[:, 2], q[:, 3:7], v = 1.5, turns(rng, m), 3.0 * rng.normal(size=(m, human.nv))
    for rate in (240, 60):
        out.append(
            Scene(
                f"ragdolls, 1/{rate}", (human,), q, v, 1 / rate, long(2.0), least={"float32": 6},
                accuracy=5e-2 if rate == 240 else None,
            )
        )  # fmt: skip
    for count, times in ((1, 2.0), (5, 1.6), (10, 1.6)):
        if short and count > 5:
            continue
        out.append(pile(human, count, long(3.0), times))
    out.append(snake(long(3.0)))
    return out


def pile(human: Character, count: int, seconds: float, least: float) -> Scene:
    """Limp humanoids that fall onto each other."""
    rng = np.random.default_rng(2)
    people = tuple(Character(f"one-{k}", human.links, human.limbs) for k in range(count))
    rows = []
    for k, turn in enumerate(turns(rng, count)):
        at = np.array(human.rest_q)
        at[:2], at[2], at[3:7] = 0.15 * rng.normal(size=2), 1.2 + 0.9 * k, turn
        rows.append(at)
    name = "one fallen, 1/240" if count == 1 else f"pile of {count}, 1/240"
    q = np.concatenate(rows)[None]
    return Scene(
        name, people, q, np.zeros((1, count * human.nv)), 1 / 240, seconds, least={"float64": least}
    )


def snake(seconds: float) -> Scene:
    """A snake on the ground follows its clip with a free root."""
    clip = load_clip("snake-slither", load_character("snake-72"))
    state = clip.state(0.0)
    return Scene(
        "snake-72 slithers, 1/60", (clip.character,), state.q[None], state.v[None], 1 / 60, seconds,
        clip="snake-slither", least={"float64": 1.5},
    )  # fmt: skip


# ---- ours


def command_of(scene: Scene, world: World) -> Callable[[float, int], Command | None]:
    """What drives a chunk of steps from a time on."""
    nv = world.scene.nv
    if scene.clip is not None:
        clip = load_clip(scene.clip, scene.parts[0])
        gains = suggest_gains(scene.parts[0], root="free")
        return lambda t, k: Command(
            drive=Drive(gains, clip.targets(t + scene.dt, scene.dt, k), form="implicit")
        )
    if scene.hold is None:
        return lambda t, k: None
    kp, kd = np.full(nv, scene.hold.kp), np.full(nv, scene.hold.kd)
    kp[:6] = kd[:6] = 0.0
    drive = Drive(Gains(scene.parts[0], kp, kd), Target(scene.parts[0].rest_q), form="implicit")
    held = Command(drive=drive)
    return lambda t, k: held


def ours(scene: Scene, dtype: str, plan: Plan, **options: Any) -> Run:
    """Our engine on one thread; options are the world's."""
    n = len(scene.q)
    chunk, chunks = chunking(scene)
    world = World(
        list(scene.parts), n=n, dt=scene.dt, dtype=dtype, threads=1, projectiles=0,
        friction=FRICTION, on_divergence="freeze", **options,
    )  # fmt: skip
    command = command_of(scene, world)
    q, v = (scene.q, scene.v) if n > 1 else (scene.q[0], scene.v[0])
    world.reset(State(q, v))
    if scene.settle:
        world.step(command(0.0, 1), steps=round(scene.settle / scene.dt))
    start = world.state.copy()
    taken = np.full(chunks, np.inf)
    steps = np.zeros(chunks)
    for _ in range(1 if plan.quick else REPLAYS):
        world.reset(start)
        for i in range(chunks):
            now = command(i * chunk * scene.dt, chunk)
            begin = time.perf_counter()
            world.step(now, steps=chunk)
            taken[i] = min(taken[i], time.perf_counter() - begin)
            steps[i] = chunk * (n - len(world.diverged))
    lost = len(world.diverged)
    world.reset(start)
    depths: list[float] = []
    slips: list[Array] = []
    with world.profile() as profile:
        for i in range(chunks):
            world.step(command(i * chunk * scene.dt, chunk), steps=chunk)
            seen = world.contacts
            deepest = np.zeros(n)
            np.maximum.at(deepest, seen.copy, seen.depth)
            depths.append(float(deepest.mean()))
            slips.append(our_slip(world, seen))
    slip = np.concatenate(slips)
    return Run(taken, steps, float(np.mean(depths)), rms(slip), profile.residual(90.0), lost)


def our_slip(world: World, seen: Any) -> Array:
    """Speeds of sticking contacts along their surfaces, at the end of the step [m/s]."""
    force = seen.force
    normal = np.einsum("ij,ij->i", force, seen.normal)
    along = np.linalg.norm(force - normal[:, None] * seen.normal, axis=1)
    stick = (normal > 1e-6) & (along < STICKING * FRICTION * normal)
    place, turn = (np.reshape(x, (world.n, -1, x.shape[-1])) for x in world.link_poses())
    line, spin = (np.reshape(x, (world.n, -1, 3)) for x in world.link_velocities())
    del turn

    def velocity(link: Array) -> Array:
        c = seen.copy
        inside = np.maximum(link, 0)
        v = line[c, inside] + np.cross(spin[c, inside], seen.point - place[c, inside])
        return np.where((link >= 0)[:, None], v, 0.0)

    relative = velocity(seen.link) - velocity(seen.other)
    slide = relative - np.einsum("ij,ij->i", relative, seen.normal)[:, None] * seen.normal
    return np.asarray(np.linalg.norm(slide, axis=1)[stick])


def rms(x: Array) -> float:
    return float(np.sqrt((x**2).mean())) if len(x) else 0.0


def chunking(scene: Scene) -> tuple[int, int]:
    """Steps of a chunk, and how many chunks."""
    steps = max(1, round(scene.seconds / scene.dt))
    chunk = 1 if len(scene.q) > 1 else 5
    return chunk, max(1, steps // chunk)


# ---- MuJoCo's


def theirs(mujoco: Any, scene: Scene, plan: Plan) -> Run:
    """MuJoCo, one copy after the other: the better of its integrators is what the caller takes."""
    chunk, chunks = chunking(scene)
    model, drive = their_model(mujoco, scene)
    n = len(scene.q)
    taken = np.full((n, chunks), np.inf)
    steps = np.full((n, chunks), float(chunk))
    depths: list[float] = []
    slips: list[float] = []
    lost = 0
    with quiet(mujoco):
        for copy in range(n):
            data, look = mujoco.MjData(model), mujoco.MjData(model)
            start(mujoco, model, data, drive, scene, copy)
            saved = (data.qpos.copy(), data.qvel.copy(), data.qacc_warmstart.copy(), data.time)
            for replay in range(1 if plan.quick else REPLAYS):
                mujoco.mj_resetData(model, data)
                data.qpos[:], data.qvel[:], data.qacc_warmstart[:], data.time = saved
                good = True
                for i in range(chunks):
                    begin = time.perf_counter()
                    if drive is None:
                        mujoco.mj_step(model, data, nstep=chunk)
                    else:
                        for k in range(chunk):
                            data.qfrc_applied[:] = drive(data, (i * chunk + k + 1) * scene.dt)
                            mujoco.mj_step(model, data)
                    taken[copy, i] = min(taken[copy, i], time.perf_counter() - begin)
                    good = good and not data.warning.number.any()
                    if not good:
                        steps[copy, i:] = 0
                        break
                    if replay == 0:
                        mujoco.mj_copyData(look, model, data)
                        mujoco.mj_forward(model, look)
                        depth, slip = their_accuracy(mujoco, model, look)
                        depths.append(depth)
                        slips += slip
                lost += replay == 0 and not good
    taken[steps == 0] = 0.0
    return Run(
        taken.sum(axis=0), steps.sum(axis=0), float(np.mean(depths or [np.nan])),
        rms(np.array(slips)), diverged=lost,
    )  # fmt: skip


def start(mujoco: Any, model: Any, data: Any, drive: Any, scene: Scene, copy: int) -> None:
    data.qpos[:], data.qvel[:] = scene.q[copy], scene.v[copy]
    for _ in range(round(scene.settle / scene.dt)):
        mujoco.mj_step(model, data)
    data.time = 0.0
    del drive


def their_model(mujoco: Any, scene: Scene) -> tuple[Any, Any]:
    """The scene's model, and what drives it."""
    if scene.clip is not None:
        from poise.interop.mujoco import EmbeddedPD

        model = mujoco_model(mujoco, scene.parts[0], Hold(0.0, 0.0, scene.dt))
        servo = EmbeddedPD(model)
        clip = load_clip(scene.clip, scene.parts[0])
        return model, lambda data, t: servo(data, clip.target(t))
    hold = scene.hold or Hold(0.0, 0.0, scene.dt)
    if len(scene.parts) == 1:
        model = mujoco_model(mujoco, scene.parts[0], hold)
        if scene.hold is not None:
            model.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
        return model, None
    spec = mujoco.MjSpec()
    surface = [FRICTION, 0.005, 0.0001]
    spec.worldbody.add_geom(
        type=mujoco.mjtGeom.mjGEOM_PLANE, size=[50, 50, 1], friction=surface, conaffinity=1
    )
    for k, part in enumerate(scene.parts):
        one = mujoco.MjSpec.from_string(mjcf.dump(part))
        for geom in one.geoms:
            geom.friction, geom.conaffinity = surface, 1
        for a, b in excluded_pairs(part):
            one.add_exclude(bodyname1=a, bodyname2=b)
        spec.attach(one, prefix=f"{k}-", frame=spec.worldbody.add_frame())
    model = spec.compile()
    model.opt.timestep = scene.dt
    return model, None


def their_accuracy(mujoco: Any, model: Any, data: Any) -> tuple[float, list[float]]:
    """Deepest penetration, and speeds of sticking contacts, at the present state."""
    depth = max(0.0, -float(data.contact.dist.min())) if data.ncon else 0.0
    slips: list[float] = []
    force = np.zeros(6)
    for i in range(data.ncon):
        contact = data.contact[i]
        mujoco.mj_contactForce(model, data, i, force)
        if force[0] < 1e-6 or np.hypot(force[1], force[2]) > STICKING * FRICTION * force[0]:
            continue
        frame = contact.frame.reshape(3, 3)
        velocity = np.zeros(3)
        for geom, sign in ((contact.geom[1], 1.0), (contact.geom[0], -1.0)):
            body = model.geom_bodyid[geom]
            if not body:
                continue
            arm = contact.pos - data.subtree_com[model.body_rootid[body]]
            spatial = data.cvel[body]
            velocity += sign * (spatial[3:] + np.cross(spatial[:3], arm))
        slips.append(float(np.hypot(*(frame[1:] @ velocity))))
    return depth, slips


# ---- what is said


def moving(plan: Plan) -> Section:
    """Every scene by both engines."""
    section = Section("moving", "contact in motion, µs per character-step, one thread")
    engines, missing = find_engines()
    rows = []
    for scene in scenes(plan):
        dtypes = list(scene.least) or ["float64"]
        runs = {dtype: ours(scene, dtype, plan) for dtype in dtypes}
        peer = theirs(engines["mujoco"], scene, plan) if "mujoco" in engines else None
        count = len(scene.parts)
        for dtype, run in runs.items():
            ratio = float("nan") if peer is None else peer.each / run.each
            rows.append((f"{scene.name}, {dtype}", *cells(run, count), f"{ratio:.1f} x"))
            section.numbers[f"{scene.name}, {dtype}"] = {"us": 1e6 * run.each, "ratio": ratio}
            if peer is not None:
                section.bounds += bounds(scene, dtype, run, peer, ratio)
        if peer is not None:
            rows.append((f"{scene.name}, MuJoCo", *cells(peer, count), ""))
            section.numbers[f"{scene.name}, MuJoCo"] = {"us": 1e6 * peer.each}
    heads = ("", "µs", "worst / mean", "deepest mm", "slip mm/s", "residual m/s", "lost", "")
    section.tables.append(Table("the fastest of five replays", heads, rows))
    section.notes += [
        "deepest: mean over steps and copies of the deepest penetration; slip: root mean square of "
        "the speed of contacts whose friction is below 95 % of its bound; residual: 90 % of the "
        "natural residuals of all contacts are smaller; lost: copies that diverged, which do not "
        "count from then on. Scenes of several characters: µs of the whole scene.",
        *(f"{name}: {why}" for name, why in missing.items() if name == "mujoco"),
    ]
    return section


def cells(run: Run, count: int) -> Iterator[str]:
    del count
    yield f"{1e6 * run.each:.3g}"
    yield f"{run.worst:.1f}"
    yield f"{1e3 * run.depth:.3f}"
    yield f"{1e3 * run.slip:.2f}"
    yield "-" if np.isnan(run.residual) else f"{run.residual:.1e}"
    yield str(run.diverged)


def bounds(scene: Scene, dtype: str, run: Run, peer: Run, ratio: float) -> Iterator[Bound]:
    """The claims of a scene."""
    name = f"{scene.name}, {dtype}"
    yield Bound(f"{name}: speed", ratio, least=scene.least[dtype], unit="x MuJoCo")
    yield Bound(f"{name}: penetration", run.depth / max(peer.depth, 1e-9), most=1.0, unit="x")
    yield Bound(f"{name}: slip", run.slip / max(peer.slip, 1e-9), most=1.0, unit="x MuJoCo")
    if scene.accuracy is not None:
        yield Bound(f"{name}: residual, 90 %", run.residual, most=scene.accuracy, unit="m/s")


ITERATIONS = (2, 5, 10, 20, 50)


def iterations(plan: Plan) -> Section:
    """What more iterations of the contact solve cost, and what they bring."""
    section = Section("iterations", "accuracy of the contact solve against time")
    rows = []
    for scene in scenes(plan):
        if scene.hold is not None and not scene.name.startswith("walking, 1/240"):
            continue
        dtype = next(iter(scene.least))
        for most in ITERATIONS[:2] if plan.quick else ITERATIONS:
            run = ours(scene, dtype, plan, iterations=most)
            each, _, deepest, slip, residual, lost = cells(run, 1)
            rows.append((f"{scene.name}, {dtype}", str(most), each, residual, deepest, slip, lost))
            section.numbers[f"{scene.name}, {most}"] = {
                "us": 1e6 * run.each, "residual": run.residual,
            }  # fmt: skip
    heads = ("", "iterations", "µs", "residual m/s", "deepest mm", "slip mm/s", "lost")
    section.tables.append(Table("World(iterations=...), one thread", heads, rows))
    section.notes.append("residual: 90 % of the natural residuals of all contacts are smaller.")
    return section
