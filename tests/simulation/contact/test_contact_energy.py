"""Nature with contact: momentum in flight, pushes, and energy that only falls."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from objects import DT, SOLIDS, body, energy, random_turns, turned

from poise import Character, Joint, Link, State, World, dynamics, load_character
from poise.model.shape import Shape

Array = NDArray[np.float64]
HUMANOID = load_character("humanoid")
PRIMITIVES = ("sphere", "capsule", "box")


def momentum(world: World) -> Array:
    """Linear momentum, and angular momentum about the center of mass, shape (..., 6)."""
    A, _ = dynamics.centroidal_momentum(world, world.state.q, world.state.v)
    out: Array = np.einsum("...ij,...j->...i", A, world.state.v)
    return out


@pytest.mark.parametrize("kind", sorted(SOLIDS))
def test_an_object_in_free_flight_keeps_its_momentum(kind: str) -> None:
    world = World(body(SOLIDS[kind], mass=2.0), dt=DT, gravity=(0, 0, 0))
    world.reset(State(world.state.q, [1.0, -2.0, 0.5, 3.0, -4.0, 5.0]))
    before = momentum(world)
    world.step(steps=600)
    np.testing.assert_allclose(momentum(world), before, rtol=0, atol=1e-10)


def flying_humanoid(dt: float) -> World:
    """High above the ground, limbs swinging, weightless."""
    rng = np.random.default_rng(0)
    world = World(HUMANOID, dt=dt, gravity=(0, 0, 0))
    q = np.array(HUMANOID.rest_q)
    q[2] += 50.0
    world.reset(State(q, [1.0, 2.0, 0.1, *rng.normal(size=HUMANOID.nv - 3) * 0.5]))
    return world


@pytest.mark.parametrize("dt", [1 / 60, 1 / 240])
def test_a_humanoid_in_free_flight_keeps_its_momentum(dt: float) -> None:
    """Linear, and angular about its center of mass; limbs strike each other and their limits."""
    world = flying_humanoid(dt)
    before = momentum(world)
    world.step(steps=round(2 / dt))
    np.testing.assert_allclose(momentum(world), before, rtol=0, atol=1e-10 * 60)


@pytest.mark.parametrize("dt", [1 / 60, 1 / 240])
def test_a_push_on_a_jointed_character_gives_22_newton_seconds(dt: float) -> None:
    world = flying_humanoid(dt)
    before = momentum(world)
    world.push("head", (220.0, 0, 0), 0.1)
    world.step(steps=round(0.3 / dt))
    np.testing.assert_allclose((momentum(world) - before)[:3], [22.0, 0, 0], atol=22e-3)


@pytest.mark.parametrize("dt", [1 / 1000, 1 / 60, 1 / 30])
def test_a_push_of_220_newtons_for_a_tenth_of_a_second_gives_22_newton_seconds(dt: float) -> None:
    ball = body(SOLIDS["sphere"], mass=5.0, pos=(0, 0, 3.0))
    world = World(ball, dt=dt, gravity=(0, 0, 0))
    world.push("thing", (220.0, 0, 0), 0.1, at=0.0123)
    world.step(steps=round(0.3 / dt))
    np.testing.assert_allclose(momentum(world)[:3], [22.0, 0, 0], rtol=1e-3, atol=1e-9)


@pytest.mark.parametrize("dt", [1 / 60, 1 / 240])
def test_the_ground_gives_what_gravity_and_a_push_leave(dt: float) -> None:
    """Over two seconds of standing: sum of all forces times dt is the change of momentum."""
    brick = body(Shape("box", (0.2, 0.2, 0.1)), mass=10.0, pos=(0, 0, 0.3), quat=turned(20))
    world = World(brick, dt=dt)
    world.push("thing", (30.0, 10.0, 5.0), 0.1, at=0.5)
    ground = np.zeros(3)
    for _ in range(round(2 / dt)):
        world.step()
        ground += dt * world.contacts.force.sum(axis=0)
    given = np.array([3.0, 1.0, 0.5]) + [0, 0, -10 * 9.81 * 2] + ground
    np.testing.assert_allclose(momentum(world)[:3], given, atol=1e-6)


def test_an_object_keeps_its_momentum_wherever_its_origin_is() -> None:
    off = Shape("box", (0.1, 0.2, 0.3))
    link = Link(
        "hammer",
        pos=(0.0, 0.0, 2.0),
        joints=(Joint("flight", "free"),),
        mass=2.0,
        com=(0.1, 0.0, 0.05),
        inertia=tuple(np.diag(off.inertia(2.0)).tolist()),
        shapes=(off,),
    )
    world = World(Character("hammer", (link,)), dt=DT, gravity=(0, 0, 0))
    world.reset(State(world.state.q, [1.0, -2.0, 0.5, 3.0, -4.0, 5.0]))
    before = momentum(world)
    world.step(steps=600)
    np.testing.assert_allclose(momentum(world), before, rtol=0, atol=1e-10)


@pytest.mark.parametrize("dt", [1 / 60, 1 / 960])
@pytest.mark.parametrize("e", [0.0, 1.0])
def test_bodies_that_meet_keep_their_common_momentum(e: float, dt: float) -> None:
    """Contact forces come in pairs on one line."""
    rng = np.random.default_rng(3)
    things = [
        body(SOLIDS[kind], mass, f"{kind}-{k}", (0.7 * k, 0.05 * k, 1.0))
        for k, (kind, mass) in enumerate([("sphere", 1.0), ("box", 2.0), ("capsule", 3.0)])
    ]
    world = World(things, dt=dt, gravity=(0, 0, 0), ground=False, restitution=e, projectiles=0)
    v = 0.1 * rng.normal(size=18)
    v[0], v[12] = 3.0, -3.0
    world.reset(State(world.state.q, v))
    before, touched = momentum(world), 0
    for _ in range(round(1 / dt)):
        world.step()
        touched += len(world.contacts.copy)
    assert touched > 0
    np.testing.assert_allclose(momentum(world)[:3], before[:3], atol=1e-9)
    # the forces of a step act where the bodies were when it began: an error of first order in dt,
    # 3 m/s * dt * 9 kg m/s, a few times
    np.testing.assert_allclose(momentum(world)[3:], before[3:], atol=27.0 * dt)


def some_things(rng: np.random.Generator, count: int) -> list[Character]:
    """Objects side by side in random sizes and masses."""
    things = []
    for k in range(count):
        kind = PRIMITIVES[rng.integers(3)]
        size = tuple(rng.uniform(0.05, 0.2, {"sphere": 1, "capsule": 2, "box": 3}[kind]).tolist())
        shape = Shape(kind, size)  # type: ignore[arg-type]
        things.append(body(shape, rng.uniform(0.2, 5.0), f"{kind}-{k}", (1.0 * k, 0.0, 1.0)))
    return things


def random_scenes(seed: int, n: int, dt: float, e: float, **world: object) -> tuple[World, Array]:
    """n copies of one scene from random places, turns and speeds, and their energies at first."""
    rng = np.random.default_rng(seed)
    things = some_things(rng, int(rng.integers(1, 4)))
    mu = rng.uniform(0.0, 1.0, (n, 1))
    scene = World(things, n=n, dt=dt, friction=mu, restitution=e, projectiles=0, **world)  # type: ignore[arg-type]
    q = np.tile(scene.scene.forest.rest_q, (n, 1)).reshape(n, len(things), 7)
    # far enough apart not to overlap at the start
    q[:, :, :2] = [[0.9 * k, 0.0] for k in range(len(things))] + rng.uniform(-0.1, 0.1, 2)
    q[:, :, 2] = rng.uniform(0.5, 1.2, q.shape[:2])
    q[:, :, 3:] = random_turns(rng, n * len(things)).reshape(n, len(things), 4)
    v = rng.normal(size=(n, scene.scene.nv))
    v[:, ::6] -= 1.5 * np.arange(len(things))  # towards each other
    scene.reset(State(q.reshape(n, -1), v))
    return scene, energy(scene)


def turning(scene: World) -> Array:
    """What bodies that turn on each other may be given in a step [J].

    A pair meets along its tangents, not along arcs: its impulse l works over half of what the arc
    opens, l dt w^2 r / 2, with r the size of the body that turns (0.3 m at most).
    """
    given, seen = np.zeros(scene.n), scene.contacts
    spin = np.linalg.norm(np.atleast_2d(scene.state.v).reshape(scene.n, -1, 6)[..., 3:], axis=-1)
    pairs = seen.other >= 0
    one, two = (spin[seen.copy[pairs], body[pairs]] for body in (seen.link, seen.other))
    pressed = np.linalg.norm(seen.force[pairs], axis=1)
    work = 0.5 * pressed * scene.dt**2 * np.maximum(one, two) ** 2 * 0.3
    np.add.at(given, seen.copy[pairs], work)
    return given


def lifted(scene: World, before: State) -> Array:
    """The work of taking bodies out of what they went into in a step [J].

    It shows as what their centers rise by beyond their velocities. Where no contact acted, the step
    led into the ground unseen, by no more than the body turned by in it.
    """
    masses, dt = scene.scene.forest.mass, scene.dt
    v = np.atleast_2d(scene.state.v).reshape(scene.n, -1, 6)
    rise = (np.atleast_2d(scene.state.q) - np.atleast_2d(before.q)).reshape(scene.n, -1, 7)[..., 2]
    most = 0.5 * 0.3 * (dt * np.linalg.norm(v[..., 3:], axis=-1)) ** 2
    return np.asarray(np.minimum(np.maximum(rise - dt * v[..., 2], 0.0), most) @ masses * 9.81)


def never_rises(scene: World, start: Array, seconds: float) -> None:
    """Bodies that are moved out of each other are lifted by no more than their depth.

    A bounce comes in the middle of a step, which goes on with the velocities before it: what is
    missing after it comes back in the next step, so the larger of the last two energies counts. A
    body that leaves slower than gravity takes it back in the step, v < g dt, is held at once: its
    energy E + dt/2 m g.v, which is below that at rest, rises by m v (g dt - v) / 2 at most.
    """
    weight, last, earlier = float(scene.scene.forest.mass.sum()) * 9.81, start, start
    held = weight * 9.81 * scene.dt**2 / 8
    for _ in range(round(seconds / scene.dt)):
        before = scene.state.copy()
        scene.step()
        now, seen, depth = energy(scene), scene.contacts, np.zeros(scene.n)
        np.maximum.at(depth, seen.copy, seen.depth)
        touches = np.isin(np.arange(scene.n), seen.copy)
        assert not scene.diverged
        gained = now - np.maximum(last, earlier)
        gained -= np.where(touches, weight * depth + held, lifted(scene, before))
        # the solve ends when velocities change by less than 1e-5 m/s, at impulses of up to 50 N s
        allowed = 1e-4 * start + 5e-4 + turning(scene)
        assert (gained <= allowed).all(), f"{gained.max()} J of {start[gained.argmax()]} J"
        last, earlier = now, last
    assert (last <= start * (1 + 1e-3)).all()


@pytest.mark.parametrize("seed", range(8))
def test_contact_without_restitution_never_adds_energy(seed: int) -> None:
    scene, start = random_scenes(seed, 32, 1 / 60, 0.0)
    never_rises(scene, start, 2.0)


@pytest.mark.parametrize("e", [0.5, 1.0])
@pytest.mark.parametrize("seed", range(4))
def test_contact_with_restitution_never_adds_energy(seed: int, e: float) -> None:
    scene, start = random_scenes(100 + seed, 32, 1 / 240, e)
    never_rises(scene, start, 2.0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_in_ten_thousand_random_scenes_contact_never_adds_energy(seed: int) -> None:
    e = (0.0, 0.3, 0.7, 1.0)[seed % 4]
    scene, start = random_scenes(1000 + seed, 250, (1 / 60, 1 / 240)[seed // 4 % 2], e)
    never_rises(scene, start, 3.0)


@pytest.mark.parametrize("dt", [1 / 60, 1 / 240])
def test_a_step_with_contact_has_no_more_kinetic_energy_than_one_without(dt: float) -> None:
    """Without restitution the impulses project v on what is allowed, in the metric of M.

    A limp humanoid falls; at every step a twin without contact starts from the same state. Those
    in flight are left out: with contact their steps keep the momentum, and differ by order dt.
    """
    n = 8
    rng = np.random.default_rng(1)
    world = World(HUMANOID, n=n, dt=dt)
    twin = World(HUMANOID, n=n, dt=dt, contact=None, momentum_correction=False)
    q = np.tile(HUMANOID.rest_q, (n, 1))
    q[:, 2] += 0.3
    q[:, 3:7] = random_turns(rng, n)
    world.reset(State(q, rng.normal(size=(n, HUMANOID.nv)) * 0.5))
    for _ in range(round(1.5 / dt)):
        state = world.state.copy()
        twin.reset(State(state.q, state.v))
        M = dynamics.mass_matrix(HUMANOID, state.q)
        world.step()
        twin.step()
        kept, free = (np.einsum("ni,nij,nj->n", w.state.v, M, w.state.v) for w in (world, twin))
        seen, grounded = world.contacts, np.zeros(n, bool)
        grounded[seen.copy[(seen.other < 0) & (seen.force[:, 2] > 0)]] = True
        # the solve ends when velocities change by less than 1e-5 m/s
        assert (kept <= free * (1 + 1e-3) + 1e-3)[grounded].all()
