"""Balance in the studio: pushes, balls, objects, falls; what is seen; going back in time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import numpy as np
import pytest
from studio_balance import Stage, place
from studio_scenes import Studio, session_speed

from poise.control.balance.config import OBJECTIVES
from poise.studio.readouts import status
from poise.studio.requests import (
    AddObject,
    Choose,
    ClearObjects,
    Drag,
    Play,
    Push,
    Release,
    RemoveGoal,
    Request,
    Restart,
    Scrub,
    SetAdaptive,
    SetFriction,
    SetGoal,
    SetGravity,
    SetOption,
    Throw,
)


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


# ---- pushes, balls, objects, falls


@pytest.mark.parametrize("way", ["forward", "back", "left", "right"])
def test_a_push_is_survived(way: str, tmp_path: Path) -> None:
    stage = Stage(tmp_path, "butterflies")
    stage.ask(Push("chest", 150.0, way, 0.1))
    speed = np.linalg.norm(stage.play(0.1).velocity[0])
    assert speed > 0.1  # 15 N s on 65 kg
    assert not stage.play(2.5).fallen[0]
    assert stage.now.rotation[0] < 1.0
    assert stage.now.margin[0, 0] > 0.02


def test_a_ball_hits_it_and_it_stands(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "butterflies")
    stage.ask(Throw(speed=6.0))
    touched = [np.isin(stage.play(0.05).contacts.other, (-1,)).all() for _ in range(20)]
    assert not all(touched)
    assert not stage.play(2.0).fallen[0]
    assert stage.now.rotation[0] < 1.0


def test_a_limb_is_dragged_and_let_go(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "butterflies")
    start = place(stage.now, "chest")
    stage.ask(Drag("chest", tuple(start + (0.0, 0.1, 0.0))))
    aside = max(place(stage.play(0.1), "chest")[1] - start[1] for _ in range(8))
    assert aside > 0.02
    stage.ask(Release())
    assert stage.play(2.5).rotation[0] < 1.0
    assert not stage.now.fallen[0]


@pytest.mark.parametrize("seed", range(3))
def test_whatever_is_asked_of_it_it_goes_on(seed: int, tmp_path: Path) -> None:
    random, stage = Random(seed), Stage(tmp_path)
    names = ("head", "chest", "left_hand", "right_foot", "left_arm")

    def point(size: float) -> tuple[float, float, float]:
        x, y, z = (random.uniform(-size, size) for _ in range(3))
        return x, y, z

    kinds: list[Callable[[], Request]] = [
        lambda: Push("chest", random.uniform(0.0, 500.0), point(1.0), 0.1),
        lambda: Throw(speed=random.uniform(2.0, 20.0)),
        lambda: SetGoal(random.choice(names), random.choice([None, point(2.0), point(500.0)])),
        lambda: RemoveGoal(),
        lambda: SetOption("objectives", ",".join(x for x in OBJECTIVES if random.random() < 0.5)),
        lambda: SetAdaptive(random.random() < 0.5),
        lambda: SetFriction(random.uniform(0.0, 1.0)),
        lambda: SetGravity((0.0, 0.0, random.uniform(-15.0, 1.0))),
        lambda: Choose(dt=random.choice([1 / 60, 1 / 120, 1 / 240])),
        lambda: AddObject("box"),
        lambda: ClearObjects(),
        lambda: Scrub(random.randrange(40)),
    ]
    for _ in range(40):
        stage.ask(random.choice(kinds)(), Play())
        measures = stage.play(0.1)
        assert np.isfinite(measures.q).all()
        assert not stage.studio.simulation.diverged


def test_who_has_fallen_is_put_back(stage: Stage) -> None:
    stage.ask(Push("chest", 3000.0, "forward", 0.2))
    assert any(stage.play(0.25).fallen[0] for _ in range(12))
    assert "fallen: R puts it back" in status(stage.studio.make_snapshot(), 30.0)
    stage.ask(Restart())
    assert stage.now.time == 0.0
    assert not stage.play(1.5).fallen[0]
    assert stage.now.rotation[0] < 1.0


def test_a_box_beside_it_changes_nothing(tmp_path: Path) -> None:
    alone, company = Stage(tmp_path), Stage(tmp_path)
    company.ask(AddObject("box", position=(0.0, 3.0, 2.0)))
    plain, q = alone.play(0.5), company.play(0.5).q
    assert np.allclose(q[: len(plain.q)], plain.q, atol=1e-6)
    assert 2.0 - q[-5] == pytest.approx(0.5 * 9.81 * 0.25, rel=0.1)
    company.ask(SetGoal("head", (0.1, 0.0, 1.6)), ClearObjects())
    assert not company.play(0.5).fallen[0]


def test_friction_step_and_gravity_change_under_its_feet(stage: Stage) -> None:
    stage.play(0.3)
    for asked in (SetFriction(0.3), Choose(dt=1 / 240), SetGravity((0.0, 0.0, -6.0))):
        stage.ask(asked)
        measures = stage.play(0.5)
        assert not measures.fallen[0]
        assert measures.rotation[0] < 2.0
    weight = 6.0 * measures.index.character.mass
    assert measures.ground_force[0, 2] == pytest.approx(weight, rel=0.3)


# ---- what is seen


def test_pressure_and_pivot_explain_the_momentum(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "butterflies")
    mass = stage.now.index.character.mass
    for _ in range(5):
        before = stage.play(0.25)
        stage.clock.now += 1 / 120 + 1e-9
        stage.studio.advance(10.0)
        now, dt = stage.now, stage.now.time - before.time
        assert dt == pytest.approx(1 / 120)
        force, com = now.ground_force[0], 0.5 * (now.com[0] + before.com[0])
        rate = (now.linear[0] - before.linear[0]) / dt
        assert np.allclose(rate, force + (0.0, 0.0, -9.81 * mass), atol=0.02 * 9.81 * mass)
        # the ground alone turns it: H' = (COP - c) x f, and CMP is where it would not
        turn = (now.angular[0] - before.angular[0]) / dt
        assert np.allclose(np.cross(now.cop[0] - com, force)[:2], turn[:2], atol=3.0)
        apart = force[2] * np.linalg.norm(now.cop[0] - now.cmp[0])
        assert apart == pytest.approx(np.linalg.norm(turn[:2]), abs=3.0)


def test_pressure_is_where_it_was_planned_and_inside_the_support(stage: Stage) -> None:
    for _ in range(6):
        measures = stage.play(0.3)
        assert np.linalg.norm(measures.cop[0] - measures.planned_cop[0]) < 0.01
        support = measures.support[0][:, :2]
        assert len(support) >= 4
        assert (support.min(axis=0) <= measures.cop[0, :2]).all()
        assert (measures.cop[0, :2] <= support.max(axis=0)).all()
        assert (measures.margin[0] > 0.0).all()
    curves = stage.studio.series.curves(0, measures.time)
    assert curves["com_margin"][-1] == pytest.approx(100.0 * measures.margin[0, 0])
    assert np.allclose([curves[f"linear_{x}"][-1] for x in "xyz"], measures.linear[0])


def test_only_who_plans_has_a_planned_pressure(tmp_path: Path, stage: Stage) -> None:
    plain = Studio(tmp_path)
    assert np.isnan(plain.make_snapshot().measures.planned_cop).all()
    assert np.isfinite(stage.play(0.1).planned_cop).all()
    # of frames that are looked back at no plan is kept
    stage.ask(Scrub(3))
    assert np.isnan(stage.now.planned_cop).all()


# ---- the past


def test_one_goes_on_from_the_past_bit_for_bit(stage: Stage) -> None:
    stage.ask(SetAdaptive(), SetGoal("left_hand", (0.3, 0.4, 1.2)))
    stage.ask(Push("chest", 150.0, "forward", 0.1))
    first = stage.play(1.0)
    frames = stage.studio.make_snapshot().frames
    stage.ask(Scrub(25), Play())
    again = stage.play((frames - 26) / 60)
    assert again.time == first.time
    assert np.array_equal(again.q, first.q)
    assert again.reference is not None
    assert first.reference is not None
    assert np.array_equal(again.reference, first.reference)


def test_looking_does_not_change_what_happens(tmp_path: Path) -> None:
    ends = []
    for looks in (False, True):
        stage = Stage(tmp_path)
        stage.ask(SetAdaptive(), Push("chest", 120.0, "left", 0.1))
        for _ in range(30):
            stage.play(1 / 60)
            if looks:
                stage.studio.make_snapshot()
        stage.clock.now += 1 / 60
        stage.studio.advance(10.0)
        ends.append(stage.studio.simulation.world.state.q.copy())
    assert np.array_equal(*ends)


@pytest.mark.slow
def test_it_needs_less_than_a_core() -> None:
    speed = session_speed(1, 4.0, clip="forward-kick", controller="balance")
    # by processor time, as other work on the machine does not count
    assert speed.steps / speed.pace == pytest.approx(120.0, rel=0.01)
    assert speed.load / speed.pace < 0.8
    assert speed.pace < 1.05
