"""Recordings: what happened comes back bit for bit, and goes on as if nothing had stopped it."""

from __future__ import annotations

import inspect
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from objects import SOLIDS, body
from small_recordings import BALL, DT, STONE, short

import poise
from poise import Command, Recording, Shape, State, Target, World, dynamics, load_recording
from poise.errors import PoiseError
from poise.motion import load_clip
from poise.simulation.contact import Contacts, HeightField, Plane
from poise.simulation.world_config import WorldConfig

pytestmark = pytest.mark.arithmetic

HUMANOID = poise.load_character("humanoid")
HILLS = HeightField(0.05 * np.random.default_rng(5).random((6, 7)), (0.4, 0.5))
ASKED = Target(HUMANOID.rest_q)


def lively(n: int, dtype: str = "float64") -> World:
    """A humanoid that will be pushed and thrown at, on a ground with an obstacle."""
    mass = HUMANOID.forest.link_mass
    own = None if n == 1 else mass * np.linspace(0.8, 1.2, n)[:, None]
    world = World(HUMANOID, n=n, dt=DT, dtype=dtype, obstacles=[STONE], mass=own, restitution=0.2)
    world.push("chest", (90, 30, 0), 0.4, at=0.9)
    return world


def live(world: World, first: int, last: int, record: Recording | None = None) -> None:
    """Steps first to last: held upright, pushed from 0.9 to 1.3 s, hit by two balls."""
    servo = poise.StablePD(HUMANOID)
    for k in range(first, last):
        if k == 60:
            world.throw((2.0, 0.1, 1.2), (-6.0, 0.0, 1.0))
        if k == 100:
            where = [0] if world.n == 1 else [1, 2, 5]
            world.throw((0.0, 2.0, 1.0), (0.0, -7.0, 1.5), spin=(1.0, 2.0, 3.0), where=where)
        world.step(servo(world.state, ASKED))
        if record is not None:
            record.append(ASKED)


# going on


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("n", [1, 8])
def test_a_resumed_simulation_is_the_uninterrupted_one_bit_for_bit(
    n: int, dtype: str, tmp_path: Path
) -> None:
    world = lively(n, dtype)
    whole = Recording(world)
    live(world, 0, 240, whole)
    whole.save(tmp_path / "a.npz")
    loaded = load_recording(tmp_path / "a.npz")
    assert len(whole.contacts(-1).copy) > 0
    assert whole.projectile_state(-1).thrown.any()
    # after the throws; the push is waiting, running and over
    frames = [52, 60, 70, 110] if n == 1 else [60]
    for i in frames:
        again = loaded.world(i, threads=2)
        # frames come every second step, from the first on
        rest = Recording(again)
        rest.append(loaded.target(i))
        live(again, 2 * i + 1, 240, rest)
        assert np.array_equal(again.state.q, world.state.q)
        assert np.array_equal(again.state.memory, world.state.memory)  # type: ignore[arg-type]
        assert np.array_equal(rest.v, whole.v[i:])
        # torques and contacts are of the step before a frame: the first has none yet
        assert np.array_equal(rest.torque[1:], whole.torque[i + 1 :])
        for k in range(1, len(rest)):
            for x, y in zip(rest.contacts(k), whole.contacts(i + k), strict=True):
                assert np.array_equal(x, y)


def test_without_its_memory_the_simulation_would_go_elsewhere() -> None:
    """What the test above would miss if memory held nothing."""
    world = lively(1)
    whole = Recording(world)
    live(world, 0, 240, whole)
    again = whole.world(70)
    state = whole.state(70)
    again.reset(State(state.q, state.v, state.time))
    live(again, 141, 240)
    assert not np.array_equal(again.state.q, world.state.q)


def test_gravity_that_changed_on_the_way_is_that_of_the_frame() -> None:
    world = World(BALL, dt=DT)
    recording = Recording(world, fps=120.0)
    for k in range(20):
        if k == 10:
            world.gravity = np.array([0.0, 3.0, -1.0])
        world.step()
        recording.append()
    again = recording.world(12)
    again.step(steps=7)
    assert np.array_equal(again.state.q, world.state.q)
    assert recording.gravity[8].tolist() == [0.0, 0.0, -9.81]


def test_every_frame_of_one_and_a_frame_each_second_of_several_can_be_resumed() -> None:
    one, several = World(BALL, dt=DT), World(BALL, n=3, dt=DT)
    records = [Recording(one, fps=30.0), Recording(several, fps=30.0)]
    for world, record in zip((one, several), records, strict=True):
        for _ in range(2 * 120 + 1):
            record.append()
            world.step()
    assert records[0].resumable.tolist() == list(range(61))
    assert records[1].resumable.tolist() == [0, 30, 60]
    assert records[1].state(29).memory is None


# what is noted


@pytest.mark.parametrize("n", [1, 8])
def test_frames_hold_what_the_world_says_of_itself(n: int) -> None:
    world = lively(n)
    recording = Recording(world, fps=20.0)
    seen: list[tuple[State, Contacts, Any, Any]] = []
    servo = poise.StablePD(HUMANOID)
    for k in range(180):
        if k == 60:
            world.throw((1.0, 0.1, 1.2), (-6.0, 0.0, 1.0), where=[n - 1])
        world.step(servo(world.state, ASKED))
        if recording.append():
            balls = world.projectile_state
            seen.append((world.state.copy(), world.contacts, world.torque, balls))
    assert len(recording) == len(seen) == 30
    for i, (state, contacts, torque, balls) in enumerate(seen):
        for name in ("q", "v", "time"):
            assert np.array_equal(getattr(recording.state(i), name), getattr(state, name))
        for mine, other in zip(recording.contacts(i), contacts, strict=True):
            assert np.array_equal(mine, other)
        assert np.array_equal(recording.torque[i], torque)
        # a projectile that waits is where it was, or nowhere: only what is out counts
        again = recording.projectile_state(i)
        assert np.array_equal(again.thrown, balls.thrown)
        assert np.array_equal(again.q[balls.thrown], balls.q[balls.thrown])
        assert np.array_equal(again.v[balls.thrown], balls.v[balls.thrown])


def limp(state: State, target: Target) -> Command:
    """A controller that asks for forces, and is asked in every step."""
    return Command(force=np.zeros(HUMANOID.nv))


@pytest.mark.parametrize("servo", [limp, poise.StablePD(HUMANOID)])
def test_run_tells_what_was_asked_for_at_the_time_of_each_frame(servo: Any) -> None:
    clip = load_clip("walk", HUMANOID)
    world = World(HUMANOID, dt=DT)
    world.reset(clip.state(0.0))
    recording = Recording(world, fps=60.0)
    poise.run(world, servo, clip, 0.2, record=recording)
    assert recording.target(0) is None
    assert len(recording) == 13
    for i in range(1, 13):
        target = recording.target(i)
        assert target is not None
        # the clip is sampled at k dt, the clock has added dt k times
        np.testing.assert_allclose(target.q, clip.q(recording.time[i]), atol=1e-9)


def test_recording_changes_nothing() -> None:
    plain, recorded = lively(1), lively(1)
    live(plain, 0, 120)
    live(recorded, 0, 120, Recording(recorded))
    assert np.array_equal(plain.state.memory, recorded.state.memory)  # type: ignore[arg-type]


@pytest.mark.parametrize(("fps", "every"), [(60.0, 2), (120.0, 1), (1e4, 1), (50.0, 2), (7.0, 17)])
def test_a_frame_comes_every_so_many_whole_steps(fps: float, every: int) -> None:
    world = World(BALL, dt=DT)
    recording = Recording(world, fps=fps)
    assert recording.append()
    noted = [k for k in range(1, 40) if (world.step(), recording.append())[1]]  # type: ignore[func-returns-value]
    assert noted == list(range(every, 40, every))
    assert recording.interval == pytest.approx(every * DT)


def test_targets_of_all_and_of_each_copy_may_follow_each_other() -> None:
    world = World(BALL, n=3, dt=DT)
    recording = Recording(world, fps=120.0)
    shared: Any = np.arange(7.0)
    each: Any = np.arange(21.0).reshape(3, 7)
    for q in (shared, each, shared):
        recording.append(Target(q, np.ones((*q.shape[:-1], 6))))
        world.step()
    for i, q in enumerate((shared, each, shared)):
        target = recording.target(i)
        assert target is not None
        assert np.array_equal(target.q, np.broadcast_to(q, (3, 7)))


def test_a_frame_of_the_humanoid_takes_a_few_kilobytes() -> None:
    """Its memory is 30 KB, most of it zeros."""
    world = lively(1)
    recording = Recording(world, fps=120.0)
    live(world, 0, 120, recording)
    memory = world.state.memory
    assert memory is not None
    assert memory.nbytes > 20_000
    assert recording.columns.nbytes / len(recording) < 5_000


def test_copies_that_diverged_are_listed(tmp_path: Path) -> None:
    world = World(BALL, n=3, dt=DT)
    recording = Recording(world, fps=120.0)
    force = np.zeros((3, 6))
    force[1] = 1e13
    for _ in range(5):
        world.step(Command(force=force))
        recording.append()
    recording.save(tmp_path / "a.npz")
    assert load_recording(tmp_path / "a.npz").diverged == recording.diverged == world.diverged
    assert [loss.copy for loss in recording.diverged] == [1]


def test_targets_that_do_not_fit_are_refused() -> None:
    recording = Recording(World(BALL, n=3, dt=DT))
    bad: list[tuple[Any, str]] = [
        (Target(np.zeros(6)), r"target.q has shape \(6,\), expected \(7,\) or \(3, 7\)"),
        (Target(np.zeros(7), np.zeros((3, 6))), r"target.v has shape \(3, 6\)"),
        (Target(np.full(7, np.nan)), r"target.q\[0\] is nan"),
        (Target(np.zeros((2, 7)), rows=2), "one target"),
        (3, "a target is a Target or a State"),
    ]
    for target, message in bad:
        with pytest.raises(PoiseError, match=message):
            recording.append(target)
    assert len(recording) == 0


@pytest.mark.parametrize("fps", [0.0, -1.0, math.nan, math.inf, "60"])
def test_the_rate_must_be_positive(fps: Any) -> None:
    with pytest.raises(PoiseError, match="fps"):
        Recording(World(BALL, dt=DT), fps=fps)


def test_a_frame_that_is_not_there_is_refused() -> None:
    recording = short(frames=3)
    assert np.array_equal(recording.state(-1).q, recording.state(2).q)
    for i in (3, -4, 1.0, True, None):
        with pytest.raises(PoiseError, match="there is no frame"):
            recording.state(i)  # type: ignore[arg-type]


# the scene


def test_a_world_remembers_all_it_was_built_with_but_its_threads() -> None:
    arguments = list(inspect.signature(World.__init__).parameters)
    assert set(WorldConfig._fields) == set(arguments) - {"self", "threads"}


WORLDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "nothing touches": {"contact": None},
    "penalty": {"contact": "penalty", "dt": 0.001, "ground": Plane((0.1, 0.0, 1.0), -0.2)},
    "hills": {"ground": HILLS, "ground_friction": 0.3, "dtype": "float32"},
    "mesh": {"obstacles": [SOLIDS["mesh"], STONE], "exclude": [("ball", "stick/stick")]},
    "projectiles": {
        "projectiles": [body(SOLIDS["box"], name="brick"), body(SOLIDS["mesh"], name="gem")]
    },
    "own numbers": {
        "n": 2,
        "mass": [[1.0, 2.0], [3.0, 4.0]],
        "inertia": np.stack([np.stack([np.eye(3), 2.0 * np.eye(3)])] * 2),
        "armature": np.linspace(0.1, 0.2, 24).reshape(2, 12),
        "friction": [[0.5], [0.7]],
        "restitution": [0.1, 0.9],
        "gravity": (0.1, 0.2, -3.0),
        "self_collision": False,
        "on_divergence": "raise",
        "projectiles": 0,
    },
}


def equal(one: Any, two: Any) -> bool:
    if isinstance(one, (Plane, HeightField)):
        return type(one) is type(two) and all(
            np.array_equal(value, vars(two)[name]) for name, value in vars(one).items()
        )
    return np.array_equal(one, two) if isinstance(one, np.ndarray) else bool(one == two)


@pytest.mark.parametrize("name", WORLDS)
def test_the_file_holds_the_whole_scene(name: str, tmp_path: Path) -> None:
    options = {"dt": DT, **WORLDS[name]}
    if "exclude" in options:
        options["exclude"] = [("ball/ball", "stick/stick")]
    stick = body(SOLIDS["capsule"], name="stick", pos=(0.0, 0.5, 1.0))
    world = World([BALL, stick], **options)
    recording = Recording(world)
    recording.append()
    recording.save(tmp_path / "a.npz")
    again = load_recording(tmp_path / "a.npz").world()
    for field, one, two in zip(WorldConfig._fields, world.settings, again.settings, strict=True):
        assert equal(one, two), field
    world.step(steps=200)
    again.step(steps=200)
    assert np.array_equal(world.state.q, again.state.q)


def test_what_a_world_was_built_with_does_not_change_with_the_callers_arrays() -> None:
    friction, gravity = np.array([0.5]), np.array([0.0, 0.0, -9.81])
    world = World(BALL, dt=DT, friction=friction, gravity=gravity)
    friction[0], gravity[2] = 0.0, 0.0
    assert world.settings.friction.tolist() == [0.5]
    assert world.settings.gravity.tolist() == [0.0, 0.0, -9.81]


# clips


@pytest.mark.parametrize("ending", ["bvh", "glb"])
def test_what_happened_to_a_character_goes_out_as_a_motion(ending: str, tmp_path: Path) -> None:
    world = World([HUMANOID, BALL], n=2, dt=DT)
    q = world.scene.forest.rest_q.copy()
    q[world.part("ball").q.start] = 2.0
    world.reset(State(np.stack([q, q]), np.zeros((2, world.scene.nv))))
    recording = Recording(world, fps=30.0)
    for _ in range(60):
        recording.append()
        world.push(0, (20.0, 5.0, 0.0), DT, where=[1])
        world.step()
    clip = recording.clip("humanoid", copy=1)
    assert clip.character == HUMANOID
    assert clip.fps == pytest.approx(30.0)
    part = world.part("humanoid").q
    np.testing.assert_allclose(clip.frames[:, :3], recording.q[:, 1, part][:, :3], atol=0)
    clip.save(tmp_path / f"a.{ending}")
    back = load_clip(tmp_path / f"a.{ending}")
    assert len(back) == len(clip)
    p = dynamics.forward_kinematics(HUMANOID, clip.frames)[0]
    names = [link.name for link in back.character.links]
    assert "head" in names
    p_back = dynamics.forward_kinematics(back.character, back.frames)[0]
    mine, other = [link.name for link in HUMANOID.links].index("head"), names.index("head")
    # both files hold about six digits, of a way of a metre
    moved, moved_back = p[:, mine] - p[0, mine], p_back[:, other] - p_back[0, other]
    assert np.linalg.norm(moved, axis=1).max() > 0.02
    np.testing.assert_allclose(
        np.linalg.norm(moved, axis=1), np.linalg.norm(moved_back, axis=1), atol=1e-4
    )


def test_a_clip_needs_one_character_one_copy_and_even_frames() -> None:
    world = World([BALL, body(SOLIDS["box"], name="box")], n=2, dt=DT)
    recording = Recording(world, fps=120.0)
    with pytest.raises(PoiseError, match="there is no frame"):
        recording.clip("box")
    for _ in range(6):
        recording.append()
        world.step()
    world.reset()
    for _ in range(3):
        recording.append()
        world.step()
    with pytest.raises(PoiseError, match="name one of ball, box"):
        recording.clip()
    with pytest.raises(PoiseError, match="unknown part 'bal'; did you mean 'ball'"):
        recording.clip("bal")
    with pytest.raises(PoiseError, match="copy is 2"):
        recording.clip("box", copy=2)
    with pytest.raises(PoiseError, match=r"frames 5 and 6 of copy 0 are -0\.04"):
        recording.clip("box")
    with pytest.raises(PoiseError, match=r"frames 5 and 6 of copy 1 are -0\.04"):
        recording.clip("box", copy=1, start=4)
    with pytest.raises(PoiseError, match="start and stop must be frames"):
        recording.clip("box", start=0.5)  # type: ignore[arg-type]
    assert len(recording.clip("box", stop=6)) == 6
    assert len(recording.clip("box", start=6)) == 3


# numbers and pictures


def test_who_reaches_all_targets_has_no_error_and_the_energy_is_that_of_the_world() -> None:
    world = World(HUMANOID, n=2, dt=DT, mass=HUMANOID.forest.link_mass * [[1.0], [2.0]])
    recording = Recording(world, fps=120.0)
    energies = []
    for _ in range(30):
        world.step()
        recording.append(State(world.state.q, world.state.v))
        energies.append(dynamics.energy(world, world.state.q, world.state.v))
    found = recording.metrics()
    # a turn is the square root of rounding where quaternions differ in nothing
    assert found["rotation"].max == 0.0
    assert found["world"].max == 0.0
    kinetic, potential = np.moveaxis(np.array(energies), 1, 0)
    assert found["kinetic"].mean == pytest.approx(kinetic.mean(), rel=1e-12)
    assert found["potential"].max == pytest.approx(potential.max(), rel=1e-12)


def test_the_ground_carries_the_weight_of_a_ball_at_rest() -> None:
    world = World(BALL, dt=DT)
    world.reset(State([0.0, 0.0, 0.1, 1.0, 0.0, 0.0, 0.0]))
    world.step(steps=240)
    recording = Recording(world)
    for _ in range(20):
        world.step()
        recording.append()
    found = recording.metrics()
    # the solver's sweeps end at 1e-6 or so
    assert found["ground_force"].mean == pytest.approx(9.81, rel=1e-4)
    assert found["depth"].max < 1e-3
    assert set(found) & {"rotation", "position", "world"} == set()


def test_nothing_has_no_metrics() -> None:
    with pytest.raises(PoiseError, match="there is no frame 0"):
        Recording(World(BALL, dt=DT)).metrics()


def test_metrics_of_a_single_frame_and_of_what_cannot_move_are_finite() -> None:
    for character in (BALL, poise.load_character("lamp")):
        world = World(character, dt=DT)
        recording = Recording(world)
        recording.append()
        numbers = np.array(list(recording.metrics().values()))
        assert np.isfinite(numbers).all()


@pytest.mark.parametrize("ground", [True, HILLS, Plane((0.2, 0.0, 1.0)), Plane(height=-0.1), False])
def test_pictures_show_obstacles_and_what_was_thrown(ground: Any) -> None:
    from poise.view.contact_sheet import frame_drawing, recording_sheet

    recording = short(2, ground=ground)
    before, after = frame_drawing(recording, 0, copy=1), frame_drawing(recording, 3, copy=1)
    assert len(after) == len(before) + 1
    kinds = [thing.kind for thing in after]
    assert kinds.count("sphere") == 2
    assert kinds.count("box") == 1
    thrown = recording.projectile_state(3).q[1, 0, :3]
    assert any(np.allclose(thing.pos, thrown, atol=1e-12) for thing in after)
    sheet = recording_sheet(recording, columns=2, cell=(40, 40), samples=1)
    assert sheet.shape == (40, 82, 3)


def test_the_height_field_is_drawn_where_it_is_felt() -> None:
    """A small ball, 2 mm above a corner of the mesh that is drawn, touches at this corner."""
    from poise.view.drawing import static_drawing

    pebble = body(Shape("sphere", (0.01,)), name="pebble")
    world = World(pebble, dt=0.002, ground=HILLS, projectiles=0)
    (hills,) = static_drawing(world.settings)
    assert hills.mesh is not None
    corners = hills.mesh.vertices + np.array(hills.pos)
    # the lowest inner corner holds it
    rows, columns = HILLS.heights.shape
    index = np.arange(rows * columns).reshape(columns, rows)[1:-1, 1:-1].ravel()
    x, y, z = corners[index[np.argmin(corners[index, 2])]]
    world.reset(State([x, y, z + 0.012, 1.0, 0.0, 0.0, 0.0]))
    world.step(steps=15)  # it falls by 4 mm if nothing holds it
    assert len(world.contacts.copy) > 0
    # a radius away where it meets a slope
    assert np.linalg.norm(world.contacts.point[0] - [x, y, z]) < 0.01
