"""The studio's simulation: looking back, going on from there, takes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from studio_scenes import setup, simulation

import poise
from poise import PoiseError, Recording, State
from poise.math.arrays import Floats
from poise.studio import edits, history
from poise.studio.requests import Push, Throw
from poise.studio.simulation import Simulation


def end_of(sim: Simulation) -> tuple[Floats, ...]:
    """Everything that the world is, bit for bit."""
    state: State = sim.world.state
    assert state.memory is not None
    return state.q, state.v, state.time, state.memory


def same(one: tuple[Floats, ...], two: tuple[Floats, ...]) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))


def eventful(sim: Simulation) -> None:
    """Some steps in uneven portions, with all that people do in between."""
    sim.advance(20)
    push, _ = edits.push(sim, Push("chest", 150.0, "left"))
    sim.apply(push)
    for k in (1, 2, 3, 1):
        sim.advance(k)
    sim.apply(edits.throw(sim, Throw(), 0))
    sim.advance(5)
    sim.retune(sim.setup.controls.tuned(sim.setup.index.character, "left_arm", frequency=2.0))
    sim.advance(4)
    sim.apply(edits.gravity((0.0, 0.0, -3.0)))
    sim.advance(9)


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("cheap", [history.SMALL_MEMORY, 200])
def test_from_any_frame_it_goes_on_bit_for_bit(
    count: int, cheap: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # with 200, one frame in some twenty or sixty has a memory, as in scenes of many
    monkeypatch.setattr(history, "SMALL_MEMORY", cheap)
    sim = simulation(count=count)
    eventful(sim)
    keys = sum(entry.frame.memory is not None for entry in sim.history)
    assert keys == len(sim.history) if cheap > 200 else keys < len(sim.history) / 10
    end, frames = end_of(sim), len(sim.history)
    # from frames after the last deed it comes to the same end
    for frame in (frames - 2, frames - 5, frames - 8):
        sim.show(frame)
        assert np.array_equal(sim.measures().q, sim.history[frame].frame.q[0])
        sim.advance(frames - 1 - frame)
        assert len(sim.history) == frames
        assert same(end_of(sim), end)


def test_the_way_back_knows_what_was_done_on_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "SMALL_MEMORY", 200)
    sim = simulation()
    eventful(sim)
    noted = [entry.frame.q for entry in sim.history]
    # with a memory at the start only, frame 30 comes after push, throw and other gains
    sim.show(34)
    sim.discard_future()
    assert np.array_equal(sim.world.state.q, noted[34][0])
    assert sim.time == pytest.approx(34 / 60)
    assert len(sim.history) == 35


def test_to_look_back_changes_nothing() -> None:
    sim = simulation()
    sim.advance(30)
    end = end_of(sim)
    for frame in (3, 17, 29):
        sim.show(frame)
        assert sim.time == pytest.approx(frame / 60)
    sim.show(-1)
    sim.discard_future()
    assert same(end_of(sim), end)
    assert len(sim.history) == 31


@pytest.mark.parametrize("dt", [1 / 60, 1 / 240, 1 / 45])
def test_how_many_steps_are_asked_for_at_once_makes_no_difference(dt: float) -> None:
    one, other = simulation(dt=dt), simulation(dt=dt)
    one.advance(48)
    for k in (1, 2, 1, 7, 13, 24):
        other.advance(k)
    assert same(end_of(one), end_of(other))
    assert len(one.history) == len(other.history)


def test_a_history_keeps_to_its_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "MAX_BYTES", 200_000)
    sim = simulation()
    sim.advance(200)
    assert 10 < len(sim.history) < 120
    assert sum(entry.nbytes for entry in sim.history) < 210_000
    first = sim.history[0]
    assert first.frame.memory is not None
    assert first.time > 1.0
    end = end_of(sim)
    sim.show(0)
    sim.advance(round((200 / 60 - first.time) * 60))
    assert same(end_of(sim), end)


def test_a_new_friction_or_step_leaves_the_state_and_the_past() -> None:
    sim = simulation()
    sim.advance(20)
    before, frames = end_of(sim), len(sim.history)
    sim.rebuild(replace(sim.setup.controls, friction=0.1))
    assert same(end_of(sim), before)
    assert len(sim.history) == frames
    assert float(sim.world.settings.friction) == 0.1
    sim.rebuild(replace(sim.setup.controls, dt=1 / 240))
    sim.advance(8)
    assert sim.time == pytest.approx(22 / 60)
    # from a frame of the world before, the present world goes on
    sim.show(10)
    sim.advance(4)
    assert sim.time == pytest.approx(11 / 60)
    assert sim.world.dt == 1 / 240


def test_a_take_is_what_a_recording_of_the_same_run_is() -> None:
    sim = simulation()
    take = sim.record()
    sim.advance(25)
    recording = take.recording()
    made = setup()
    world = made.world
    expected = Recording(world)
    poise.run(world, sim.controller, made.reference, 25 / 60, record=expected)
    assert len(recording) == len(expected) == 26
    assert np.array_equal(recording.q, expected.q)
    assert np.array_equal(recording.torque, expected.torque)
    assert len(recording.contacts(20).copy) == len(expected.contacts(20).copy) > 0
    assert np.array_equal(recording.world(12).state.q, expected.q[12])
    asked, wanted = recording.target(20), expected.target(20)
    assert asked is not None
    assert wanted is not None
    assert np.array_equal(asked.q, wanted.q)


def test_a_take_forgets_what_was_done_again_and_stays_even() -> None:
    sim = simulation()
    sim.advance(5)
    take = sim.record()
    sim.advance(20)
    sim.show(15)
    sim.advance(10)
    recording = take.recording()
    assert np.allclose(np.diff(recording.time), 1 / 60)
    assert recording.time[0] == pytest.approx(5 / 60)
    assert len(recording) == 21
    assert recording.clip().duration == pytest.approx(20 / 60)


def test_a_take_of_two_worlds_is_that_of_the_last() -> None:
    sim = simulation()
    sim.advance(10)
    sim.rebuild(replace(sim.setup.controls, friction=0.5))
    sim.advance(6)
    recording = sim.recent().recording()
    assert len(recording) == 7
    assert float(recording.settings.friction) == 0.5


def test_nothing_recorded_is_said() -> None:
    from poise.studio.history import Take

    with pytest.raises(PoiseError, match="nothing to save"):
        Take().recording()


def test_a_world_that_runs_wild_is_stopped_before_it_is_lost() -> None:
    sim = simulation()
    sim.advance(5)
    sim.apply(lambda sim: sim.world.push(0, (5e8, 0.0, 0.0), 1.0))
    sim.advance(60)
    assert sim.diverged.startswith("the simulation left all bounds")
    assert sim.time == sim.history[-1].time < 0.2
    assert np.abs(sim.measures().q).max() < 1e6
    sim.show(2)
    sim.advance(5)
    assert not sim.diverged


def test_a_lost_world_stands_and_the_past_is_there() -> None:
    sim = simulation()
    sim.advance(5)
    stable = sim.setup.controls
    stiff = stable.tuned(sim.setup.index.character, None, frequency=400.0, damping=10.0)
    sim.retune(replace(stiff, controller="pd"))
    sim.advance(200)
    assert "restart, or go back" in sim.diverged
    stands = sim.time
    sim.advance(5)
    assert sim.time == stands
    sim.show(3)
    sim.retune(stable)
    sim.advance(2)
    assert not sim.diverged
    assert sim.time == pytest.approx(5 / 60)
    sim.restart()
    assert sim.time == 0.0
