"""Balance in the studio: where it can be chosen, what it heeds, what it reaches, how it waits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from studio_balance import WHO, Stage, place
from studio_scenes import Clock, Studio, wait_for

from poise import PoiseError, load_clip, measure, run
from poise.anatomy.contact_schedule import ContactSchedule
from poise.studio.library import Library
from poise.studio.requests import (
    AddObject,
    Choose,
    Play,
    Push,
    RemoveGoal,
    Restart,
    Scrub,
    SetAdaptive,
    SetGains,
    SetGoal,
    SetGravity,
    SetLoop,
    SetOption,
    SetPin,
    SetProfile,
    SetStrength,
)
from poise.studio.session import Session
from poise.trials.trial import prepare_trial


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


# ---- choosing it


def test_balance_brings_a_free_root_and_its_step_and_takes_them_away(tmp_path: Path) -> None:
    studio = Studio(tmp_path, character="humanoid-ball", clip="squat")
    studio.ask(Choose(controller="balance"))
    studio.finish_jobs()
    there = studio.simulation.setup.controls
    assert (there.controller, there.root, there.dt) == ("balance", "free", 1 / 120)
    assert studio.simulation.dt == 1 / 120
    studio.ask(Choose(controller="spd"))
    studio.finish_jobs()
    there = studio.simulation.setup.controls
    assert (there.controller, there.root, there.dt) == ("spd", "soft", 1 / 60)


def test_it_is_told_what_was_done_to_the_clip(tmp_path: Path) -> None:
    studio = Studio(tmp_path)
    studio.ask(Choose(clip="squat", controller="balance"))
    studio.finish_jobs()
    message = studio.make_snapshot().message
    assert message.level == "info"
    assert "squat: the center of mass is over the feet already" in message.text


def test_a_kick_on_one_leg_stands_round_after_round(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "forward-kick")
    errors = [stage.play(0.5).rotation[0] for _ in range(12)]
    # a round is 4.4 s long
    assert stage.now.time > 5.5
    assert not stage.now.fallen[0]
    assert max(errors) < 2.0  # degrees; in poise balance its mean is 0.4


def test_it_does_as_poise_balance_does(stage: Stage) -> None:
    stage.ask(SetLoop(False))
    trial = prepare_trial("squat", controller="balance")
    assert np.array_equal(stage.studio.simulation.setup.motion.clip.frames, trial.clip.frames)
    world, balance, _ = trial.build()
    run(world, balance, trial.clip, 1.0)
    measures = stage.play(1.0)
    # the studio's spline goes through three motion, so that its ends differ by a little
    off = measure.tracking_error(trial.character, measures.q, world.state.q)
    assert measures.time == pytest.approx(1.0)
    assert off.rotation.max() < 0.05
    assert off.world.max() < 1e-3


def test_a_file_is_made_ready_as_poise_balance_does_it(tmp_path: Path) -> None:
    path = tmp_path / "take.bvh"
    load_clip("squat").trimmed(0.0, 1.0).save(path)
    library = Library()
    name = library.add_clip(path)
    for who in (None, "humanoid-ball"):
        character = library.owner(name) if who is None else who
        made = library.motion(character, name, balanced=True).clip
        assert np.array_equal(
            made.frames, prepare_trial(path, who, controller="balance").clip.frames
        )


@pytest.mark.parametrize("character", ["humanoid", "humanoid-51", "dog", "tail-biped", "lamp"])
def test_others_stand_at_rest(character: str, tmp_path: Path) -> None:
    clock = Clock()
    studio = Studio(tmp_path, clock, **{**WHO, "character": character, "clip": "rest"})
    studio.ask(Play())
    for _ in range(60):
        clock.now += 1 / 60 + 1e-9
        studio.advance(10.0)
    measures = studio.make_snapshot().measures
    assert measures.rotation[0] < 0.5
    assert measures.root_offset[0] < 0.02


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (Choose(controller="balance", root="held"), "free root"),
        (Choose(controller="balance", count=3), "one character, not for 3"),
        (Choose(controller="balance", ground="hills"), "level ground"),
        (Choose(controller="balance", ground="none"), "level ground"),
        (Choose(controller="balance", character="two-link"), "hangs on the world"),
        (Choose(controller="balance", character="snake-72"), "has no feet"),
        (Choose(controller="balance", dt=1 / 30), "1/60 s or less"),
        (Choose(controller="ballance"), "'balance'"),
    ],
)
def test_where_it_cannot_it_says_why(asked: Choose, why: str, tmp_path: Path) -> None:
    studio = Studio(tmp_path, clip="squat", character="humanoid-ball")
    before = studio.controls
    with pytest.raises(PoiseError, match=why):
        studio.ask(asked)
    assert studio.controls == before


def test_what_never_stands_is_not_made_ready_and_the_scene_stays(tmp_path: Path) -> None:
    studio = Studio(tmp_path, clip="squat", character="humanoid-ball")
    squat = load_clip("squat")
    assert squat.contacts is not None
    high = squat.frames + np.eye(squat.frames.shape[1])[2]
    none = ContactSchedule(squat.contacts.points, np.zeros_like(squat.contacts.on))
    name = studio.library.add_clip(squat.with_frames(high, contacts=none))
    before = studio.controls
    studio.ask(Choose(controller="balance", clip=name))
    studio.finish_jobs()
    message = studio.make_snapshot().message
    assert message.level == "error"
    assert "cannot be prepared for balance: clip 'squat': nothing ever stands" in message.text
    assert studio.controls == before


def test_a_page_is_told_and_it_goes_on(tmp_path: Path) -> None:
    with Session(clip="squat", controller="balance", out=tmp_path) as session:
        for asked in (Choose(root="soft"), Choose(count=2), Choose(ground="hills")):
            number = session.newest.message.number
            session.ask(asked)
            told = wait_for(session, lambda now, n=number: now.message.number > n)  # type: ignore[misc]
            assert told.message.text.startswith("balance ")
            assert told.message.level == "error"
        time = session.newest.measures.time
        later = wait_for(session, lambda now: now.measures.time > time + 0.2)
        assert later.controls.controller == "balance"
        assert not later.measures.fallen[0]


# ---- objectives, goals, pace


def test_objectives_are_switched_while_it_runs(stage: Stage) -> None:
    stage.ask(SetOption("objectives", "track"))
    stage.play(0.1)
    assert list(stage.controller.objectives) == ["track"]
    assert list(stage.studio.controls.option("objectives")) == ["track"]
    stage.ask(SetOption("objectives", "track,linear,angular"))
    stage.play(0.1)
    assert list(stage.controller.objectives) == ["track", "linear", "angular"]


def test_any_option_of_the_registry_is_set_and_checked(stage: Stage) -> None:
    stage.ask(SetOption("gamma", "0.5"), SetOption("linear_gains", "20,9"))
    assert not stage.play(0.1).fallen[0]
    assert (stage.controller.gamma, tuple(stage.controller.linear_gains)) == (0.5, (20.0, 9.0))
    for name, value, why in (
        ("gamma", "-1", "gamma is -1; it must be 0 or more"),
        ("gamma", "much", "gamma is 'much'"),
        ("gama", "1", "did you mean 'gamma'"),
        ("rate", "100", "unknown option of controller 'balance' 'rate'"),
    ):
        with pytest.raises(PoiseError, match=why):
            stage.ask(SetOption(name, value))
    assert stage.controller.gamma == 0.5
    # a new clip keeps them, another controller does not
    stage.ask(Choose(clip="jab"))
    stage.studio.finish_jobs()
    assert stage.controller.gamma == 0.5
    stage.ask(Choose(controller="spd"))
    assert stage.studio.controls.options == {}


def test_who_does_not_track_does_not_follow(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "butterflies")
    follows = max(stage.play(0.25).rotation[0] for _ in range(6))
    stage.ask(Restart(), SetOption("objectives", "linear,angular"))
    strays = max(stage.play(0.25).rotation[0] for _ in range(6))
    assert strays > 3.0 * follows


def test_a_hand_follows_its_goal_and_comes_back(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "rest")
    start = place(stage.now, "left_hand")
    stage.ask(SetGoal("left_hand"))
    assert np.allclose(stage.studio.controls.goals["left_hand"], start)
    to = start + (0.2, 0.1, 0.2)
    # as it is dragged
    for share in np.linspace(0.0, 1.0, 20):
        stage.ask(SetGoal("left_hand", tuple(start + share * (to - start))))
        stage.play(0.05)
    assert np.linalg.norm(place(stage.play(1.0), "left_hand") - to) < 0.07
    assert not stage.now.fallen[0]
    stage.ask(RemoveGoal("left_hand"))
    assert np.linalg.norm(place(stage.play(2.0), "left_hand") - start) < 0.02


def test_a_goal_beyond_reach_does_not_fell_it(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "rest")
    stage.ask(SetGoal("right_hand", (7.0, 0.0, 1.0)))
    assert not stage.play(2.0).fallen[0]
    assert stage.now.margin[0, 0] > 0.0


def test_each_link_has_one_goal_and_there_are_not_too_many(stage: Stage) -> None:
    stage.ask(SetGoal("left_hand", (0.3, 0.3, 1.2)), SetGoal("left_forearm", (0.2, 0.3, 1.2)))
    assert list(stage.studio.controls.goals) == ["left_forearm"]
    with pytest.raises(PoiseError, match="left_forearm"):
        stage.ask(SetGoal("left_forarm", (0.0, 0.0, 1.0)))
    links = [link.name for link in stage.now.index.character.links]
    with pytest.raises(PoiseError, match="8 goals"):
        stage.ask(*(SetGoal(name, (0.0, 0.0, 1.0)) for name in links))
    with pytest.raises(PoiseError, match="nope"):
        stage.ask(RemoveGoal("nope"))
    stage.ask(RemoveGoal())
    assert stage.studio.controls.goals == {}


def test_goals_and_objectives_need_somebody_who_balances(tmp_path: Path) -> None:
    studio = Studio(tmp_path)
    for asked in (SetGoal("head"), RemoveGoal(), SetAdaptive()):
        with pytest.raises(PoiseError, match="no character balances"):
            studio.ask(asked)
    with pytest.raises(PoiseError, match="option of controller 'spd' 'objectives'"):
        studio.ask(SetOption("objectives", "track"))


def test_goals_end_with_the_clip_they_were_set_in(stage: Stage) -> None:
    stage.ask(SetGoal("head", (0.0, 0.0, 1.5)), Choose(clip="jab"))
    stage.studio.finish_jobs()
    assert stage.studio.controls.goals == {}
    assert stage.controller.goals == {}


def test_a_clip_that_waits_falls_behind_when_pushed_and_not_after(stage: Stage) -> None:
    def behind() -> float:
        simulation = stage.studio.simulation
        scaling = simulation.memory.scaling
        now = stage.now.time if scaling is None else float(scaling[0, 0])
        return stage.now.time - now + simulation.reference.begin

    stage.play(0.2)
    assert behind() == pytest.approx(0.0, abs=1e-9)
    stage.ask(SetAdaptive(), Push("chest", 150.0, "forward", 0.1))
    stage.play(0.6)
    late = behind()
    assert late > 0.05
    # the ghost is where the motion is
    reference, time = stage.studio.simulation.reference, stage.now.time
    assert stage.now.reference is not None
    assert np.allclose(stage.now.reference, reference.target(time - late).q, atol=1e-9)
    # from now on it keeps its pace, and what it lacks
    stage.ask(SetAdaptive(False))
    stage.play(0.5)
    assert behind() == pytest.approx(late, abs=0.01)
    # of a past in which it had not waited, nothing stays behind
    stage.ask(Scrub(6), Play())
    stage.play(0.1)
    assert behind() == pytest.approx(0.0, abs=1e-9)


# ---- what balance does not have, and profiles


def test_gains_and_pins_are_refused_where_there_are_none(stage: Stage) -> None:
    for asked, why in ((SetGains(12.0), "frequency"), (SetPin(0.5), "pin")):
        with pytest.raises(PoiseError, match=f"'balance' has no {why}"):
            stage.ask(asked)
    with pytest.raises(PoiseError, match="no pin to assign"):
        stage.ask(SetProfile("pinned"))
    stage.ask(SetStrength(0.9))
    assert not stage.play(0.2).fallen[0]


def test_it_balances_with_an_object_and_a_profile_at_once(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "butterflies")
    stage.play(0.2)
    strong = stage.play(0.1).torque_ratio
    stage.ask(AddObject("box", position=(0.0, 3.0, 2.0)), SetAdaptive(), SetGoal("head"))
    stage.ask(SetProfile("limp", "left_arm", hold=0.5))
    stage.play(0.4)
    index = stage.now.index.link_index("left_forearm")
    assert stage.now.torque_ratio[index] < 0.01 * strong[index]
    assert stage.now.q[-5] < 1.9
    box = stage.play(1.5)
    assert not box.fallen[0]
    assert box.torque_ratio[index] > 0.0
    assert box.q[-5] == pytest.approx(0.15, abs=0.02)
    stage.ask(Scrub(10), Play())
    assert not stage.play(1.0).fallen[0]


def test_an_arm_goes_limp_by_a_profile_and_comes_back(tmp_path: Path) -> None:
    clock = Clock()
    studio = Studio(tmp_path, clock, clip="rest", root="held", ground="none")
    studio.ask(Play())

    def errors(seconds: float) -> list[float]:
        found = []
        for _ in range(round(30 * seconds)):
            clock.now += 1 / 30 + 1e-9
            studio.advance(1.0)
            found.append(float(studio.make_snapshot().measures.rotation[0]))
        return found

    calm = max(errors(0.3))
    studio.ask(SetGravity((0.0, 9.81, 0.0)))
    sideways = max(errors(1.0))
    studio.ask(SetProfile("limp", "left_arm", hold=0.5))
    limp = max(errors(1.0))
    assert limp > 3.0 * max(sideways, calm)
    assert errors(2.0)[-1] < 1.2 * sideways + 0.1
    studio.ask(Restart())
    assert studio.controls.profiles == ()
    with pytest.raises(PoiseError, match="left_arm"):
        studio.ask(SetProfile("limp", "left_arn"))
