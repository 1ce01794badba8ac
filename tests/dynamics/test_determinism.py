"""Same input, same output, bit for bit: threads, batches, places, calls, restarts.

The copies of a crowd differ in everything that may differ: state, target, gains, masses, strength,
pins, pushes. Whatever company a copy keeps, and whoever computes it, its numbers are the same. Only
a world of one, which has no lanes, may differ from a batch in the last bits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import pytest
import trees
from free_world import World
from numpy.typing import NDArray

from poise import (
    Command,
    Drive,
    Gains,
    State,
    Target,
    _core,
    dynamics,
    load_character,
    reference,
)
from poise.errors import PoiseError
from poise.model.character import Character

pytestmark = pytest.mark.arithmetic

Array = NDArray[np.float64]
Result = tuple[Array, ...]
Copies = range | list[int] | NDArray[np.int64]

SIZE = 37  # copies: full tiles of every lane count, and a short one
ROWS = 12  # steps
DT = 1 / 60

FEATURES = (
    "plain",
    "limits",
    "pins",
    "strength",
    "pushes",
    "gains",
    "mixed_gains",
    "masses",
    "armature",
    "everything",
)

both_dtypes = pytest.mark.parametrize("dtype", ["float64", "float32"])
every_feature = pytest.mark.parametrize("feature", FEATURES)


@lru_cache
def tree(limits: bool) -> Character:
    """A tree with every joint kind, armature, springs and dampers."""
    rng = np.random.default_rng(5)
    character = trees.random_character(rng, 14, base="free", passive=True, effort=True)
    assert {joint.kind for joint in character.joints} == {"free", "ball", "hinge", "slide"}
    if limits:
        return character
    links = (
        replace(link, joints=tuple(replace(joint, effort=None) for joint in link.joints))
        for link in character.links
    )
    return Character("unlimited", tuple(links))


@dataclass
class Crowd:
    """What distinguishes the copies of a world."""

    character: Character
    q: Array
    v: Array
    target_q: Array  # (ROWS, SIZE, nq)
    target_v: Array
    kp: Array  # (nv,) or (SIZE, nv)
    kd: Array
    strength: Array | None = None  # (SIZE, nl)
    pin: Array | None = None
    mass: Array | None = None
    armature: Array | None = None  # (SIZE, nv)
    push: Array | None = None  # (SIZE, 3)

    def world(self, copies: Copies, dtype: str, threads: int = 1) -> World:
        """These copies in their start states, pushed if they are."""
        world = World(
            self.character,
            n=len(copies),
            dt=DT,
            dtype=dtype,
            threads=threads,
            mass=None if self.mass is None else self.mass[copies],
            armature=None if self.armature is None else self.armature[copies],
        )
        world.reset(State(self.q[copies], self.v[copies]))
        if self.push is not None:
            # only some, from within the second step to within the sixth
            pushed = [place for place, copy in enumerate(copies) if copy % 3 == 0]
            world.push(1, self.push[copies], 4.3 * DT, at=1.6 * DT, where=np.array(pushed, int))
        return world

    def drive(self, copies: Copies) -> Drive:
        """The drive of these copies for all rows."""
        per_copy = self.kp.ndim == 2
        gains = Gains(
            self.character,
            self.kp[copies] if per_copy else self.kp,
            self.kd[copies] if per_copy else self.kd,
        )
        return Drive(
            gains,
            Target(self.target_q[:, copies], self.target_v[:, copies], rows=ROWS),
            strength=None if self.strength is None else self.strength[copies],
            pin=None if self.pin is None else self.pin[copies],
        )


@lru_cache
def crowd(feature: str) -> Crowd:
    """Copies that differ in state and target, and in the feature."""
    rng = np.random.default_rng(0)
    character = tree(feature in ("limits", "strength", "everything"))
    nv, nl = character.nv, len(character.links)

    states = (trees.random_state(rng, character) for _ in range(SIZE))
    q, v = (np.array(x) for x in zip(*states, strict=True))
    # targets wander about the start
    target_v = rng.normal(size=(ROWS, SIZE, nv))
    target_q = [
        [reference.move(character, q[i], u, 0.3) for i, u in enumerate(row)] for row in target_v
    ]
    kp, kd = rng.uniform(0, 100, nv), rng.uniform(5, 10, nv)
    out = Crowd(character, q, v, np.array(target_q), target_v, kp, kd)
    if feature in ("strength", "everything"):
        out.strength = rng.uniform(0, 2, (SIZE, nl))
    if feature in ("pins", "everything"):
        out.pin = rng.uniform(0, 1, (SIZE, nl)) * (rng.random((SIZE, nl)) < 0.3)
    if feature in ("masses", "everything"):
        out.mass = rng.uniform(0.5, 2, (SIZE, nl)) * [link.mass for link in character.links]
    if feature in ("pushes", "everything"):
        out.push = rng.uniform(-50, 50, (SIZE, 3))
    if feature in ("armature", "everything"):
        out.armature = rng.uniform(0, 0.1, (SIZE, nv))
    if feature in ("gains", "mixed_gains", "everything"):
        out.kp, out.kd = kp * rng.uniform(0.5, 2, (SIZE, nv)), kd * rng.uniform(0.5, 2, (SIZE, nv))
    if feature == "mixed_gains":
        # the axes of a ball share their gains in some copies
        out.kp[::2], out.kd[::2] = 50.0, 5.0
    return out


def result(world: World) -> Result:
    """All that a world can tell, one row per copy."""
    state = world.state
    assert state.memory is not None
    return state.q, state.v, world.torque, np.atleast_1d(state.time), state.memory


def simulate(feature: str, copies: Copies, dtype: str, threads: int = 1) -> Result:
    """Some copies of the crowd, after all rows of their targets."""
    some = crowd(feature)
    world = some.world(copies, dtype, threads)
    world.step(Command(drive=some.drive(copies)), steps=ROWS)
    assert not world.diverged
    return result(world)


@lru_cache
def everyone(feature: str, dtype: str) -> Result:
    """The whole crowd, in order, on one thread."""
    return simulate(feature, range(SIZE), dtype)


def assert_same(ours: Result, theirs: Result) -> None:
    """Bit for bit the same; even zeros have the same sign."""
    for mine, other in zip(ours, theirs, strict=True):
        assert mine.shape == other.shape
        different = mine.view(np.int64) != other.view(np.int64)
        assert different.sum() == 0


# company


@pytest.mark.parametrize("threads", [2, 3])
@both_dtypes
@every_feature
def test_the_number_of_threads_does_not_matter(feature: str, dtype: str, threads: int) -> None:
    assert_same(simulate(feature, range(SIZE), dtype, threads), everyone(feature, dtype))


@pytest.mark.parametrize("size", [2, 3, 5, 8, 17])
@both_dtypes
@every_feature
def test_the_size_of_the_batch_does_not_matter(feature: str, dtype: str, size: int) -> None:
    expected = tuple(x[:size] for x in everyone(feature, dtype))
    assert_same(simulate(feature, range(size), dtype), expected)


@both_dtypes
@every_feature
def test_the_place_in_the_batch_does_not_matter(feature: str, dtype: str) -> None:
    order = np.random.default_rng(1).permutation(SIZE)
    expected = tuple(x[order] for x in everyone(feature, dtype))
    assert_same(simulate(feature, order, dtype, threads=2), expected)


@both_dtypes
@every_feature
def test_neighbours_do_not_matter(feature: str, dtype: str) -> None:
    # two of a kind beside each other: their neighbours in the crowd were others
    for copy in (0, 5, SIZE - 1):
        expected = tuple(x[[copy, copy]] for x in everyone(feature, dtype))
        assert_same(simulate(feature, [copy, copy], dtype), expected)


@both_dtypes
@every_feature
def test_the_same_run_twice_gives_the_same(feature: str, dtype: str) -> None:
    assert_same(simulate(feature, range(SIZE), dtype), everyone(feature, dtype))


@pytest.mark.parametrize("feature", FEATURES[1:])
def test_every_feature_of_the_crowd_shows(feature: str) -> None:
    # or the tests above would say nothing about it
    plain, other = everyone("plain", "float64"), everyone(feature, "float64")
    assert (plain[0] != other[0]).any(axis=1).mean() > 0.3


@both_dtypes
@every_feature
def test_lost_neighbours_do_not_matter(feature: str, dtype: str) -> None:
    some, lost = crowd(feature), [1, 2, 9, 30]
    world = some.world(range(SIZE), dtype)
    v = some.v.copy()
    v[lost] *= 1e7  # faster than anything that can be simulated
    memory = world.state.memory
    world.reset(State(some.q, v, 0.0, memory))
    world.step(Command(drive=some.drive(range(SIZE))), steps=ROWS)
    assert [loss.copy for loss in world.diverged] == lost
    kept = np.delete(np.arange(SIZE), lost)
    expected = tuple(x[kept] for x in everyone(feature, dtype))
    assert_same(tuple(x[kept] for x in result(world)), expected)


@both_dtypes
def test_a_lost_copy_stays_at_its_last_good_state(dtype: str) -> None:
    some = crowd("plain")
    world = some.world(range(SIZE), dtype)
    v = some.v.copy()
    v[3] *= 1e7
    world.reset(State(some.q, v))
    before = result(world)
    world.step(Command(drive=some.drive(range(SIZE))), steps=ROWS)
    after = result(world)
    assert np.array_equal(after[0][3], before[0][3])
    assert np.array_equal(after[1][3], before[1][3])
    assert after[3][3] == 0.0


@both_dtypes
@pytest.mark.parametrize("n", [2, 5, 18])
def test_answers_of_dynamics_do_not_depend_on_the_batch(n: int, dtype: str) -> None:
    some = crowd("gains")
    target = some.target_q[0], some.target_v[0]

    def ask(copies: Copies) -> Result:
        args = some.character, some.q[copies], some.v[copies]
        bar = target[0][copies], target[1][copies]
        pd = dynamics.stable_pd(*args, bar, some.kp[copies], some.kd[copies], DT, dtype=dtype)
        tau = dynamics.inverse_dynamics(*args, some.v[copies], dtype=dtype)
        return *pd, tau, dynamics.forward_dynamics(*args, tau, dtype=dtype)

    everybody, order = ask(range(SIZE)), np.random.default_rng(2).permutation(SIZE)[:n]
    assert_same(ask(order), tuple(x[order] for x in everybody))


# calls


@pytest.mark.parametrize("copies", [1, SIZE])
@both_dtypes
@every_feature
def test_many_steps_in_one_call_are_as_many_calls(feature: str, dtype: str, copies: int) -> None:
    some, who = crowd(feature), range(copies)
    at_once, one_by_one = some.world(who, dtype), some.world(who, dtype)
    drive = some.drive(who)
    force = 0.1 * some.v[:copies]
    at_once.step(Command(force, drive), steps=ROWS)
    for i in range(ROWS):
        single = Drive(drive.gains, drive.target.row(i), strength=drive.strength, pin=drive.pin)
        one_by_one.step(Command(force, single))
    assert_same(result(one_by_one), result(at_once))


@both_dtypes
def test_shared_rows_are_as_the_same_rows_for_every_copy(dtype: str) -> None:
    some, who = crowd("plain"), range(SIZE)
    q, v = some.target_q[:, 0], some.target_v[:, 0]
    gains = Gains(some.character, some.kp, some.kd)
    shared, own = some.world(who, dtype), some.world(who, dtype)
    shared.step(Command(drive=Drive(gains, Target(q, v, rows=ROWS))), steps=ROWS)
    rows = (np.repeat(x[:, None], SIZE, axis=1) for x in (q, v))
    own.step(Command(drive=Drive(gains, Target(*rows, rows=ROWS))), steps=ROWS)
    # another form of input is another path through the code: the same to rounding, which the steps
    # carry on; a compiler may contract the two differently
    close = 1e-11 if dtype == "float64" else 1e-3
    assert np.allclose(own.state.q, shared.state.q, rtol=0, atol=close)


# restarts


@pytest.mark.parametrize("copies", [1, SIZE])
@both_dtypes
@every_feature
def test_a_world_resumed_from_its_state_goes_on_as_if_never_stopped(
    feature: str, dtype: str, copies: int
) -> None:
    some, who = crowd(feature), range(copies)
    through, drive = some.world(who, dtype), some.drive(who)
    for i in range(ROWS):
        single = Drive(drive.gains, drive.target.row(i), strength=drive.strength, pin=drive.pin)
        # a new world at every step, in the middle of pushes too
        resumed = some.world(who, dtype)
        resumed.reset(through.state.copy())
        through.step(Command(drive=single))
        resumed.step(Command(drive=single))
        assert_same(result(resumed), result(through))


@both_dtypes
def test_a_humanoid_can_be_resumed_anywhere_in_a_long_fall(dtype: str) -> None:
    # quaternions drift within rounding; writing a state back must not tidy them up
    character = load_character("humanoid")
    rng = np.random.default_rng(6)
    world = World(character, n=64, dt=0.002, dtype=dtype)
    world.reset(State(character.rest_q, rng.normal(size=(64, character.nv))))
    for _ in range(40):
        world.step(steps=10)
        kept = world.state
        world.reset(kept)
        assert np.array_equal(world.state.q, kept.q)
        assert np.array_equal(world.state.v, kept.v)


@both_dtypes
def test_resetting_some_copies_leaves_the_others_as_they_are(dtype: str) -> None:
    some, who = crowd("everything"), range(SIZE)
    world, drive = some.world(who, dtype), some.drive(who)
    world.step(Command(drive=drive), steps=ROWS)
    world.reset(where=[0, 7, 8, SIZE - 1])
    kept = np.delete(np.arange(SIZE), [0, 7, 8, SIZE - 1])
    world.step(Command(drive=drive), steps=ROWS)
    through = some.world(who, dtype)
    for _ in range(2):
        through.step(Command(drive=drive), steps=ROWS)
    assert_same(tuple(x[kept] for x in result(world)), tuple(x[kept] for x in result(through)))


# instruction sets


@pytest.mark.parametrize("isa", ["avx2", "avx512"])
@both_dtypes
@every_feature
def test_instruction_sets_agree_to_rounding(
    feature: str, dtype: str, isa: str, use_isa: Callable[[str], None]
) -> None:
    use_isa(isa)
    fast = simulate(feature, range(SIZE), dtype)
    use_isa("baseline")
    slow = simulate(feature, range(SIZE), dtype)
    # fused or not: some bits per step, which the motion amplifies over twelve steps
    tolerance = 1e-11 if dtype == "float64" else 1e-3
    for mine, other in zip(fast[:3], slow[:3], strict=True):
        assert np.abs(mine - other).max() < tolerance * np.abs(other).max()
    assert fast[0].tobytes() != slow[0].tobytes()  # they are different builds


@pytest.mark.parametrize("isa", ["baseline", "avx2", "avx512"])
@both_dtypes
def test_each_instruction_set_is_deterministic(
    dtype: str, isa: str, use_isa: Callable[[str], None]
) -> None:
    use_isa(isa)
    whole = simulate("everything", range(SIZE), dtype)
    order = np.random.default_rng(3).permutation(SIZE)[:19]
    assert_same(simulate("everything", order, dtype, threads=2), tuple(x[order] for x in whole))


@pytest.mark.parametrize("isa", ["baseline", "avx2", "avx512"])
@pytest.mark.parametrize("name", ["humanoid", "dog", "snake-72"])
def test_each_instruction_set_solves_the_equations_of_motion(
    name: str, isa: str, use_isa: Callable[[str], None]
) -> None:
    use_isa(isa)
    character, rng = load_character(name), np.random.default_rng(4)
    q, v = trees.random_state(rng, character)
    tau = rng.normal(size=character.nv)
    for dtype, bound in (("float64", 1e-12), ("float32", 1e-5)):
        a = dynamics.forward_dynamics(character, np.tile(q, (3, 1)), v, tau, dtype=dtype)[2]
        back = reference.inverse_dynamics(character, q, v, a)
        M = reference.mass_matrix(character, q)
        size = np.linalg.norm(M, 2) * np.linalg.norm(a) + np.linalg.norm(tau)
        assert np.linalg.norm(back - tau) < bound * size


def test_an_unknown_instruction_set_is_refused() -> None:
    before = _core.isa()
    with pytest.raises(PoiseError, match="baseline"):
        _core.choose_isa("mmx")
    assert _core.isa() == before
