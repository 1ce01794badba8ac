"""Scenes with a known answer, for poise and for MuJoCo: each gives one number, 0 is right."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from objects import UPRIGHT, G, body, turned

from poise import HeightField, State, World
from poise.model.shape import Shape

Array = NDArray[np.float64]
Vector = Sequence[float]
STILL = (0.0,) * 6
DOWN = (0.0, 0.0, -G)
BALL = Shape("sphere", (0.1,))


class Thing(NamedTuple):
    """A free body about the center of its shape; velocity: linear, then angular in its frame."""

    shape: Shape
    pos: Vector
    mass: float = 1.0
    quat: Vector = UPRIGHT
    velocity: Vector = STILL


class Stage(NamedTuple):
    """A scene that both engines know."""

    things: Sequence[Thing]
    dt: float = 1 / 60
    ground: bool | HeightField = True
    obstacles: Sequence[Shape] = ()
    friction: float = 0.8
    restitution: float = 0.0
    gravity: Vector = DOWN


class Simulation(Protocol):
    """A stage in someone's engine."""

    dt: float

    def step(self, steps: int = 1) -> None:
        """Take steps."""
        ...

    def places(self) -> Array:
        """Positions and quaternions of the things, shape (k, 7)."""
        ...

    def speeds(self) -> Array:
        """Linear velocities, and angular ones in the frames of the things, shape (k, 6)."""
        ...


Make = Callable[[Stage], Simulation]


class Poise:
    """A stage in a world of one."""

    def __init__(self, stage: Stage) -> None:
        things = [
            body(t.shape, t.mass, f"thing-{k}", t.pos, t.quat) for k, t in enumerate(stage.things)
        ]
        self.dt = stage.dt
        self.world = World(
            things,
            dt=stage.dt,
            ground=stage.ground,
            obstacles=list(stage.obstacles),
            friction=stage.friction,
            restitution=stage.restitution,
            gravity=tuple(stage.gravity),
            projectiles=0,
            on_divergence="freeze",
        )
        v = np.concatenate([np.asarray(t.velocity, dtype=float) for t in stage.things])
        self.world.reset(State(self.world.scene.forest.rest_q, v))

    def step(self, steps: int = 1) -> None:
        self.world.step(steps=steps)

    def places(self) -> Array:
        q: Array = np.array(self.world.state.q, dtype=float).reshape(-1, 7)
        return q

    def speeds(self) -> Array:
        v: Array = np.array(self.world.state.v, dtype=float).reshape(-1, 6)
        return v


class MuJoCo:
    """A stage in MuJoCo, its own options but step, friction and bounce.

    A bounce is a spring and a damper of the contact, of an eighth of a turn per step.
    """

    def __init__(self, stage: Stage) -> None:
        import mujoco

        self.mujoco: Any = mujoco
        self.dt = stage.dt
        spec: Any = mujoco.MjSpec()
        spec.option.timestep = stage.dt
        spec.option.gravity = list(stage.gravity)
        surface: dict[str, Any] = {"friction": [stage.friction, 0.0, 0.0], "condim": 3}
        if stage.friction == 0.0:
            surface["condim"] = 1
        if stage.restitution > 0.0:
            rate, log = 0.8 / stage.dt, math.log(stage.restitution)
            damping = 2.0 * rate * -log / math.hypot(math.pi, log)
            surface["solref"] = [-rate * rate, -damping]
        meshes = 0

        def add(to: Any, shape: Shape, **more: Any) -> None:
            nonlocal meshes
            if shape.kind == "mesh":
                meshes += 1
                name = f"mesh-{meshes}"
                spec.add_mesh(name=name, uservert=np.array(shape.vertices).ravel().tolist())
                kind = mujoco.mjtGeom.mjGEOM_MESH
                to.add_geom(type=kind, meshname=name, **more, **surface)
                return
            kind = getattr(mujoco.mjtGeom, f"mjGEOM_{shape.kind.upper()}")
            size = [*shape.size, 0.0, 0.0][:3]
            to.add_geom(type=kind, size=size, **more, **surface)

        if isinstance(stage.ground, HeightField):
            self._field(spec, stage.ground, surface)
        elif stage.ground:
            plane = mujoco.mjtGeom.mjGEOM_PLANE
            spec.worldbody.add_geom(type=plane, size=[50, 50, 1], **surface)
        for shape in stage.obstacles:
            add(spec.worldbody, shape, pos=list(shape.pos), quat=list(shape.quat))
        for thing in stage.things:
            one = spec.worldbody.add_body(pos=list(thing.pos), quat=list(thing.quat))
            one.add_freejoint()
            add(one, thing.shape, mass=thing.mass)
        self.model = spec.compile()
        self.data = mujoco.MjData(self.model)
        self.data.qvel[:] = np.concatenate([np.asarray(t.velocity) for t in stage.things])

    def _field(self, spec: Any, field: HeightField, surface: dict[str, Any]) -> None:
        rows, columns = field.heights.shape
        low, high = float(field.heights.min()), float(field.heights.max())
        half = [0.5 * (columns - 1) * field.spacing[0], 0.5 * (rows - 1) * field.spacing[1]]
        spec.add_hfield(
            name="field",
            nrow=rows,
            ncol=columns,
            size=[*half, max(high - low, 1e-6), 1.0],
            userdata=((field.heights - low) / max(high - low, 1e-6)).ravel().tolist(),
        )
        spec.worldbody.add_geom(
            type=self.mujoco.mjtGeom.mjGEOM_HFIELD,
            hfieldname="field",
            pos=[field.origin[0] + half[0], field.origin[1] + half[1], low],
            **surface,
        )

    def step(self, steps: int = 1) -> None:
        before = self.mujoco.get_mju_user_warning()
        self.mujoco.set_mju_user_warning(lambda message: None)
        self.mujoco.mj_step(self.model, self.data, steps)
        self.mujoco.set_mju_user_warning(before)

    def places(self) -> Array:
        q: Array = self.data.qpos.copy().reshape(-1, 7)
        return q

    def speeds(self) -> Array:
        v: Array = self.data.qvel.copy().reshape(-1, 6)
        return v


# ---- friction and bounces


def incline(make: Make) -> float:
    """How far the angle at which a brick begins to slide is from arctan 0.5 [degrees]."""
    low, high = 24.0, 29.0
    brick = Thing(Shape("box", (0.1, 0.1, 0.05)), (0.0, 0.0, 0.05))
    while high - low > 0.05:
        angle = 0.5 * (low + high)
        a = math.radians(angle)
        gravity = (G * math.sin(a), 0.0, -G * math.cos(a))
        run = make(Stage([brick], friction=0.5, gravity=gravity))
        run.step(60)
        low, high = (low, angle) if run.places()[0, 0] > 5e-3 else (angle, high)
    return abs(0.5 * (low + high) - math.degrees(math.atan(0.5)))


def rolling(make: Make) -> float:
    """A ball that rolls down 10 degrees for 1 s: error of the way [%]; 5/7 g sin(a) is right."""
    a = math.radians(10.0)
    gravity = (G * math.sin(a), 0.0, -G * math.cos(a))
    dt = 1 / 240
    run = make(Stage([Thing(BALL, (0.0, 0.0, 0.1))], dt=dt, gravity=gravity))
    run.step(240)
    right = 0.5 * 5 / 7 * G * math.sin(a) * (1.0 + dt)
    return 100 * abs(float(run.places()[0, 0]) / right - 1.0)


def bounce(make: Make) -> float:
    """Three bounces with e = 0.8 from 1 m at 1/240: largest error of a height [%]."""
    run = make(Stage([Thing(BALL, (0.0, 0.0, 1.1))], dt=1 / 240, restitution=0.8, friction=0.0))
    z, tops = [1.1], []
    for _ in range(600):
        run.step()
        z.append(float(run.places()[0, 2]))
        if len(z) > 2 and z[-2] > z[-3] and z[-2] >= z[-1] and z[-2] > 0.15:
            tops.append(z[-2] - 0.1)
    right = 0.64 ** np.arange(1, 4)
    got = np.array([*tops, 0.0, 0.0, 0.0])[:3]
    return float(100 * np.abs(got / right - 1.0).max())


# ---- what stands, and what falls


def moved(run: Simulation, seconds: float) -> float:
    """The furthest that a thing gets from where it was [mm]; those that are lost are 1e6."""
    start = run.places()[:, :3]
    run.step(round(seconds / run.dt))
    far = 1e3 * float(np.linalg.norm(run.places()[:, :3] - start, axis=1).max())
    return min(far, 1e6) if math.isfinite(far) else 1e6


def arch(make: Make) -> float:
    """Nine wedges in a half circle stand for 5 s: how far a stone gets [mm]."""
    inner, outer, half, count = 0.5, 0.75, 0.1, 9
    stones = []
    for k in range(count):
        ends = [math.pi * k / count, math.pi * (k + 1) / count]
        corners = np.array(
            [
                (r * math.cos(a), y, r * math.sin(a))
                for a in ends
                for r in (inner, outer)
                for y in (-half, half)
            ]
        )
        middle = np.array(Shape.mesh(corners).center)
        stones.append(Thing(Shape.mesh(corners - middle), middle.tolist(), 5.0))
    return moved(make(Stage(stones, dt=1 / 240)), 5.0)


def dominoes(make: Make) -> float:
    """How many of ten dominoes stand 3 s after the first was pushed."""
    tile = Shape("box", (0.01, 0.05, 0.1))
    row = [
        Thing(tile, (0.1 * k, 0.0, 0.1), 0.2, velocity=(0.1, 0, 0, 0, 2.0, 0) if k == 0 else STILL)
        for k in range(10)
    ]
    run = make(Stage(row, dt=1 / 240))
    run.step(720)
    quat = run.places()[:, 3:]
    upright = 1.0 - 2.0 * (quat[:, 1] ** 2 + quat[:, 2] ** 2)
    return float((upright > 0.95).sum())


def cards(make: Make) -> float:
    """A house of seven cards stands for 10 s: how far a card gets [mm]."""
    h, t, a = 0.15, 0.002, math.radians(20.0)
    card = Shape("box", (t, 0.1, h))
    side, up = t * math.cos(a) + h * math.sin(a), t * math.sin(a) + h * math.cos(a)

    def pair(x: float, z: float) -> list[Thing]:
        return [
            Thing(card, (x - s * side, 0.0, z + up), 0.05, turned(s * 20.0)) for s in (1.0, -1.0)
        ]

    roof = Thing(card, (0.0, 0.0, 2 * up + t), 0.05, turned(90.0))
    house = [*pair(-0.75 * h, 0.0), *pair(0.75 * h, 0.0), roof, *pair(0.0, 2 * (up + t))]
    return moved(make(Stage(house)), 10.0)


def cradle(make: Make, gap: float) -> float:
    """Five balls with e = 1, the first strikes at 1 m/s: largest error of a velocity [m/s]."""
    row = [Thing(BALL, ((0.2 + gap) * k, 0.0, 0.0)) for k in range(1, 5)]
    first = Thing(BALL, (-0.05, 0.0, 0.0), velocity=(1.0, 0, 0, 0, 0, 0))
    run = make(Stage([first, *row], ground=False, gravity=(0, 0, 0), friction=0.0, restitution=1.0))
    run.step(120)
    return float(np.abs(run.speeds()[:, 0] - (0, 0, 0, 0, 1)).max())


def stack(make: Make, seconds: float = 60.0) -> float:
    """Twenty boxes at 1/60 for a minute: how far one drifts sideways [mm]."""
    box = Shape("box", (0.2, 0.2, 0.1))
    run = make(Stage([Thing(box, (0.0, 0.0, 0.1 + 0.2 * k), 2.0) for k in range(20)]))
    run.step(round(seconds * 60))
    far = 1e3 * float(np.abs(run.places()[:, :2]).max())
    return min(far, 1e6) if math.isfinite(far) else 1e6


def burden(make: Make, ratio: float) -> float:
    """A heavy box on five light ones for 10 s: how far a box gets [mm]."""
    box = Shape("box", (0.2, 0.2, 0.1))
    masses = [1.0] * 5 + [ratio]
    boxes = [Thing(box, (0.0, 0.0, 0.1 + 0.2 * k), m) for k, m in enumerate(masses)]
    return moved(make(Stage(boxes)), 10.0)


# ---- energy


def kinetic(thing: Thing, v: Array) -> float:
    """Of a box [J]."""
    x, y, z = thing.shape.size
    inertia = thing.mass / 3 * np.array([y * y + z * z, x * x + z * z, x * x + y * y])
    return float(0.5 * thing.mass * v[:3] @ v[:3] + 0.5 * inertia @ v[3:] ** 2)


def tumbling(make: Make, dt: float, seconds: float = 60.0) -> float:
    """Free rotation about the middle axis for a minute: largest error of its energy [%]."""
    brick = Thing(Shape("box", (0.05, 0.1, 0.2)), (0, 0, 0), velocity=(0, 0, 0, 0.01, 5.0, 0.02))
    run = make(Stage([brick], dt=dt, ground=False, gravity=(0, 0, 0)))
    begin, worst = kinetic(brick, np.array(brick.velocity, dtype=float)), 0.0
    for _ in range(round(4 * seconds)):
        run.step(round(0.25 / dt))
        worst = max(worst, abs(kinetic(brick, run.speeds()[0]) / begin - 1.0))
    return 100 * worst


def bouncing(make: Make) -> float:
    """A ball with e = 1 bounces for a minute from 1 m at 1/240: change of its energy [%]."""
    run = make(Stage([Thing(BALL, (0.0, 0.0, 1.1))], dt=1 / 240, restitution=1.0, friction=0.0))
    run.step(60 * 240)
    top = 0.0
    for _ in range(240):
        run.step()
        v, z = run.speeds()[0, 2], run.places()[0, 2] - 0.1
        top = max(top, v * v / (2 * G) + z)
    return 100 * abs(top - 1.0)


# ---- contact that is not there


class Pass(NamedTuple):
    """A ball that flies past a box."""

    speed: float
    clearance: float


def ghost(make: Make, way: Pass, phases: int = 16, shape: Shape = BALL) -> float:
    """A thing passes over the edge of a box with clear air: largest change of velocity [m/s]."""
    wall = Shape("box", (0.5, 0.5, 0.5))
    worst = 0.0
    for k in range(phases):
        start = -1.0 - way.speed / 60 * k / phases
        high = (
            0.5 + (sum(shape.size) if shape.kind == "capsule" else shape.size[-1]) + way.clearance
        )
        ball = Thing(shape, (start, 0.0, high), velocity=(way.speed, 0, 0, 0, 0, 0))
        run = make(Stage([ball], ground=False, obstacles=[wall], gravity=(0, 0, 0)))
        run.step(math.ceil(2.5 / way.speed * 60))
        worst = max(worst, float(np.linalg.norm(run.speeds()[0, :3] - (way.speed, 0, 0))))
    return worst


def tiles(count: int = 12, half: float = 0.25) -> list[Shape]:
    """A floor of boxes, their tops at 0."""
    return [
        Shape("box", (half, 0.5, 0.1), pos=(2 * half * (k - 1), 0.0, -0.1)) for k in range(count)
    ]


def slide(run: Simulation, speed: float, height: float) -> tuple[float, float]:
    """A second of sliding: largest change of the speed [m/s], and highest hop [mm]."""
    lost = hop = 0.0
    for _ in range(round(1 / run.dt)):
        run.step()
        lost = max(lost, float(np.abs(run.speeds()[0, :3] - (speed, 0, 0)).max()))
        hop = max(hop, 1e3 * float(run.places()[0, 2] - height))
    return lost, hop


def seams(make: Make, shape: Shape, speed: float = 2.0, dt: float = 1 / 60) -> tuple[float, float]:
    """A frictionless thing over a floor of tiles: change of the speed [m/s], hop [mm]."""
    height = shape.size[-1]
    thing = Thing(shape, (0.0, 0.03, height), velocity=(speed, 0, 0, 0, 0, 0))
    run = make(Stage([thing], dt=dt, ground=False, obstacles=tiles(), friction=0.0))
    return slide(run, speed, height)


# ---- uneven ground


def steep_wall(spacing: float) -> HeightField:
    """Level, then a wall of 86 degrees, about 1 m high, on a grid of this spacing along x."""
    rise = spacing * math.tan(math.radians(86.0))
    heights = np.zeros((11, 121))
    heights[:, 61:] = rise * np.clip(np.arange(1, 61), 0, max(1, round(1.0 / rise)))
    return HeightField(heights, spacing=(spacing, 1.0), origin=(-60 * spacing, -5.0))


def disagreement(run: Simulation, steps: int = 30) -> Array:
    """Of each thing: velocities that it reports, against the way that it goes [m/s]."""
    before = run.places()[:, :3]
    v = np.zeros_like(before)
    for _ in range(steps):
        run.step()
        v += run.speeds()[:, :3] / steps
    went = (run.places()[:, :3] - before) / (steps * run.dt)
    off: Array = np.linalg.norm(went - v, axis=1)
    return np.where(np.isfinite(off), off, 1e6)


def against_wall(make: Make, radius: float, spacing: float, dt: float) -> float:
    """Balls at 10 m/s into a wall of 86 degrees, after 1 s: largest velocity against way [m/s]."""
    worst = 0.0
    for k in range(12):
        start = (-0.5 - 0.013 * k, 0.0, radius + 0.005 * k**1.5)
        velocity = (10.0, 0.3 * (k % 3), 0.0, 0.0, 10.0 / radius * (k % 2), 0.0)
        ball = Thing(Shape("sphere", (radius,)), start, velocity=velocity)
        run = make(Stage([ball], dt=dt, ground=steep_wall(spacing)))
        run.step(round(1 / dt))
        worst = max(worst, float(disagreement(run)[0]))
    return worst


def stairs() -> HeightField:
    """Ten steps of 0.3 m depth and 0.15 m rise, on a grid of 0.01 m by 0.2 m."""
    x = np.arange(361) * 0.01
    level = 0.15 * np.clip(np.floor((x + 1e-9) / 0.3), 0, 10)
    return HeightField(np.tile(level, (21, 1)), spacing=(0.01, 0.2), origin=(0.0, -2.0))


def on_stairs(make: Make, count: int = 64) -> float:
    """Balls dropped onto stairs, after 4 s: how many sink, or report what they do not do."""
    rng = np.random.default_rng(26)
    wrong = 0
    for _ in range(count):
        x, y = rng.uniform(0.2, 2.9), rng.uniform(-1.0, 1.0)
        v = (*rng.uniform(-4.0, 4.0, 2), 0.0, *rng.normal(size=3))
        run = make(
            Stage([Thing(BALL, (x, y, 0.15 * (x // 0.3) + 0.6), velocity=v)], ground=stairs())
        )
        run.step(240)
        place = run.places()[0]
        level = 0.15 * min(max(math.floor(place[0] / 0.3), 0), 10)
        sunk = place[2] < level + 0.1 - 0.01 and place[0] > 0.0
        wrong += bool(sunk or disagreement(run)[0] > 0.01)
    return float(wrong)


def thin_wall(make: Make, shape: Shape, dt: float = 1 / 60) -> float:
    """How many of 40 things of 2.5 to 100 m/s get through a wall of 1 cm."""
    wall = Shape("box", (0.005, 2.0, 2.0))
    through = 0
    for k in range(1, 41):
        thing = Thing(shape, (-1.5 - 0.01 * k, 0.0, 0.0), velocity=(2.5 * k, 0, 0, 0, 0, 0))
        run = make(Stage([thing], dt=dt, ground=False, obstacles=[wall], gravity=(0, 0, 0)))
        run.step(math.ceil(3.0 / (2.5 * k) / dt))
        through += bool(run.places()[0, 0] > 0.0)
    return float(through)


class Figure(NamedTuple):
    """A number that a scene gives; 0 is right, and `most` is good enough."""

    name: str
    unit: str
    most: float
    of: Callable[[Make], float]


BRICK = Shape("box", (0.1, 0.1, 0.1))
SLOW, FAST = Pass(6.0, 0.02), Pass(25.0, 0.05)
FIGURES = (
    Figure("incline: angle of sliding off", "degrees", 0.05, incline),
    Figure("rolling down 10 degrees: way off", "%", 0.1, rolling),
    Figure("three bounces, e = 0.8: heights off", "%", 1.0, bounce),
    Figure("bouncing 60 s, e = 1: energy off", "%", 1.0, bouncing),
    Figure("arch of nine wedges, 5 s: moved", "mm", 1.0, arch),
    Figure("dominoes left standing", "of 10", 0.0, dominoes),
    Figure("house of seven cards, 10 s: moved", "mm", 1.0, cards),
    Figure("cradle, touching: velocities off", "m/s", 0.01, lambda make: cradle(make, 0.0)),
    Figure("cradle, gaps of 1 mm", "m/s", 0.01, lambda make: cradle(make, 1e-3)),
    Figure("cradle, gaps of 5 mm", "m/s", 0.01, lambda make: cradle(make, 5e-3)),
    Figure("20 boxes at 1/60, 60 s: drift", "mm", 5.0, stack),
    Figure("300 kg on five of 1 kg, 10 s: moved", "mm", 5.0, lambda make: burden(make, 300.0)),
    Figure("1000 kg on five of 1 kg, 10 s: moved", "mm", 5.0, lambda make: burden(make, 1e3)),
    Figure("tumbling 60 s at 1/240: energy off", "%", 1.0, lambda make: tumbling(make, 1 / 240)),
    Figure("tumbling 60 s at 1/60: energy off", "%", 1.0, lambda make: tumbling(make, 1 / 60)),
    Figure("ball past an edge, 6 m/s, 20 mm", "m/s", 1e-9, lambda make: ghost(make, SLOW)),
    Figure("ball past an edge, 25 m/s, 50 mm", "m/s", 1e-9, lambda make: ghost(make, FAST)),
    Figure(
        "box past an edge, 6 m/s, 20 mm", "m/s", 1e-9, lambda make: ghost(make, SLOW, 16, BRICK)
    ),
    Figure("box over seams, 2 m/s: speed off", "m/s", 1e-3, lambda make: seams(make, BRICK)[0]),
    Figure("box over seams: hop", "mm", 0.1, lambda make: seams(make, BRICK)[1]),
    Figure("ball over seams, 2 m/s: speed off", "m/s", 1e-3, lambda make: seams(make, BALL)[0]),
    Figure(
        "5 cm balls into an 86 degree wall: velocity off",
        "m/s",
        0.01,
        lambda make: against_wall(make, 0.05, 0.01, 1 / 240),
    ),
    Figure(
        "20 cm balls into an 86 degree wall: velocity off",
        "m/s",
        0.01,
        lambda make: against_wall(make, 0.2, 0.07, 1 / 60),
    ),
    Figure("balls on stairs that are wrong", "of 64", 0.0, on_stairs),
    Figure("balls through a wall of 1 cm", "of 40", 0.0, lambda make: thin_wall(make, BALL)),
    Figure("boxes through a wall of 1 cm", "of 40", 0.0, lambda make: thin_wall(make, BRICK)),
)
