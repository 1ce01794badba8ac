"""`poise balance`: what it prints and leaves, and what it says when something is wrong."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import poise
from poise import measure
from poise.anatomy.body import place_of
from poise.anatomy.feet import ContactPoint, positions
from poise.cli import app
from poise.cli.options import parse_goals
from poise.cli.track import margins_text
from poise.errors import PoiseError
from poise.math import rotation
from poise.motion.editing.prepare_balance import (
    _describe_shift,
    _describe_unsupported,
    com_over_support,
    prepare_balance,
)
from poise.recording.summary import _displacement, balance_table, stance_of
from poise.simulation.pushes import parse_push
from poise.trials.results import FILES, VIDEO
from poise.trials.trial import prepare_trial

QUICK = ("squat", "--duration", "0.3", "--no-video")


def run(*args: object, code: int = 0) -> Any:
    result = CliRunner().invoke(app, ["balance", *map(str, args)])
    assert result.exit_code == code, result.output
    return result


def refused(*args: object, out: Path) -> str:
    """The one line that says what is wrong."""
    line = str(run(*args, "--out", out, code=1).output)
    assert line.startswith("poise")
    assert line.count("\n") == 1
    return line


@pytest.fixture(scope="module")
def pushed() -> poise.Recording:
    """A squat, pushed at its beginning."""
    push = parse_push("chest:150N:forward@0.2s")
    return prepare_trial("squat", pushes=[push], duration=1.5, controller="balance").run()


def test_it_leaves_all_results_and_a_plot_of_the_balance(tmp_path: Path) -> None:
    out = tmp_path / "out"
    told = run(*QUICK, "--push", "head:100N:left@0.1s", "--out", out).output
    assert "it stood" in told
    assert {path.name for path in out.iterdir()} == {*FILES, "balance.png"} - {VIDEO}
    assert (out / "balance.png").stat().st_size > 20_000
    table = json.loads((out / "table.json").read_text())
    assert table["controller"] == "balance"
    assert table["balance"]["stood"]
    assert poise.load_recording(out / "recording.npz").n == 1


def test_json_is_the_whole_table(tmp_path: Path) -> None:
    found = json.loads(run(*QUICK, "--json", "--out", tmp_path / "o").stdout)
    assert found["objectives"] == ["track", "linear", "angular"]
    assert set(found["balance"]["feet"]) == {"left_foot", "right_foot"}
    assert found["balance"]["margins"]["com"]["least"] > 0.0
    assert found["hand"] == {"force": 0.0, "torque": 0.0}  # nothing holds the root


def test_the_thesis_ground_plans_at_a_rate(tmp_path: Path) -> None:
    found = json.loads(
        run("squat", "--duration", "0.2", "--no-video", "--contact", "penalty", "--rate", "50",
            "--json", "--out", tmp_path / "o").stdout
    )  # fmt: skip
    assert found["balance"]["stood"]
    assert (found["rate"], found["dt"]) == (50.0, 0.001)


def test_a_clip_that_waits_comes_later() -> None:
    push = parse_push("chest:150N:forward@0.1s")
    trial = prepare_trial(
        "squat", pushes=[push], duration=1.2, time_scaling=True, controller="balance"
    )
    recording = trial.run()
    last = recording.target(-1)
    assert last is not None
    # while it is pushed the squat waits: its hips are higher than the clip's at that time
    assert last.q[2] > trial.clip.q(1.2)[2] + 1e-3
    assert stance_of(recording).fell is None


def test_who_is_pushed_far_too_hard_falls_and_is_said_to(tmp_path: Path) -> None:
    told = run(
        "squat", "--duration", "1.6", "--no-video", "--out", tmp_path / "o",
        "--push", "chest:1500N:back@0.1s",
    ).output  # fmt: skip
    assert "it fell at" in told


def test_the_clip_is_what_was_asked_for_and_not_the_plan(pushed: poise.Recording) -> None:
    asked = pushed.target(30)
    assert asked is not None
    clip = poise.load_clip("squat")
    np.testing.assert_allclose(asked.q, clip.q(float(pushed.time[30])), atol=1e-9)


def test_a_stance_is_measured_as_the_core_tells(pushed: poise.Recording) -> None:
    stance = stance_of(pushed)
    i = 60
    touches = pushed.contacts(i)
    force = touches.force.sum(axis=0)
    cop = (touches.point * touches.force[:, 2:]).sum(axis=0) / force[2]
    # the center of the upward forces; level forces act at the ground's height
    np.testing.assert_allclose(stance.cop[i, :2], cop[:2], atol=1e-4)
    np.testing.assert_allclose(
        stance.com[i], measure.center_of_mass(pushed.scene, pushed.q[i]), atol=1e-12
    )
    # f_z |COP - CMP| is the level rate of angular momentum
    rate = measure.external_rate(pushed.scene, pushed.q[i], touches).angular[:2]
    level = force[2] * np.linalg.norm(stance.cop[i, :2] - stance.cmp[i, :2])
    # contacts are those of the step that led to the frame
    assert level == pytest.approx(np.linalg.norm(rate), rel=0.02, abs=0.5)


def test_a_foot_moves_from_where_it_came_to_stand(pushed: poise.Recording) -> None:
    assert balance_table(stance_of(pushed))["feet"]["left_foot"]["moved"] < 5e-3
    at = np.zeros((6, 2, 3))
    at[3:, :, 0] = 0.02  # both points of one foot, while it stands; then it steps
    at[5, :, 0] = 0.5
    stands = np.array([1, 1, 1, 1, 0, 1], dtype=bool)[:, None]
    moved = _displacement(at, np.zeros(2, dtype=int), stands)[:, 0]
    np.testing.assert_allclose(moved, [0.0, 0.0, 0.0, 0.02, np.nan, 0.0])


def test_a_goal_pulls_a_hand_and_the_miss_is_told(tmp_path: Path) -> None:
    ball = poise.load_character("humanoid-ball")
    link, place = place_of(ball, "left_hand")
    end = positions(ball, [ContactPoint(link, link, place)], poise.load_clip("squat", ball).q(1.2))[
        0
    ]
    goal = end + (0.15, 0.0, 0.15)
    text = f"left_hand:{','.join(f'{x:.3f}' for x in goal)}"
    found = json.loads(
        run("squat", "--duration", "1.2", "--no-video", "--json", "--goal", text,
            "--out", tmp_path / "o").stdout
    )  # fmt: skip
    # what the clip itself would miss it by
    assert found["goals"]["left_hand"] < 0.5 * np.linalg.norm(goal - end)
    assert found["balance"]["stood"]


def test_what_cannot_be_reached_is_missed_on_both_feet(tmp_path: Path) -> None:
    found = json.loads(
        run("squat", "--duration", "1.2", "--no-video", "--json", "--goal", "left_hand:9,0,3",
            "--out", tmp_path / "o").stdout
    )  # fmt: skip
    assert found["goals"]["left_hand"] > 5.0
    assert np.isfinite(found["tracking"]["rotation"]["max"])


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("squat", "--objectives", "track,linaer"), "linear"),
        (("squat", "--objectives", ","), "track, linear, angular"),
        (("squat", "--push", "heat:220N@0.1s"), "'head'"),
        (("squat", "--push", "head:220N@9s"), "after the end"),
        (("squat", "--goal", "left_hand"), "LINK:X,Y,Z"),
        (("squat", "--goal", "left_fist:1,1,1"), "left_foot"),
        (("squat", "--goal", "left_hnd:1,1,1"), "did you mean 'left_hand'"),
        (("squat", "--goal", "left_hand:1,1,1", "--goal", "left_arm:1,1,0"), "which takes one"),
        (("squat", "--goal", "left_hand:1,1,1", "--goal", "left_hand:1,1,0"), "which takes one"),
        (("squat", "--objectives", "track,track"), "'track' is given twice"),
        (("squat", "--push", "head:-220N:forward@0.1s"), "positive number [N]"),
        (("squat", "--friction", "-1"), "0 or more"),
        (("squat", "--friction", "101"), "100 or less"),
        (("squat", "--friction", "inf"), "must be a finite number\n"),
        (("squat", "--contact", "soft"), "penalty"),
        (("squat", "--speed", "slow"), "adaptive"),
        (("squat", "--rate", "0", "--contact", "penalty"), "rate"),
        (("squat", "--rate", "29", "--contact", "penalty"), "30 Hz or more"),
        (("squat", "--rate", "100"), "every step"),
        (("squat", "--dt", "x"), "--dt"),
        (("squat", "--dt", "1/10"), "1/30 s or less"),
        (("two-link-wave",), "hangs on the world"),
        (("snake-slither",), "has no feet"),
        (("snake-slither", "--no-prepare"), "has no feet"),
        (("squatt",), "squat"),
    ],
)
def test_bad_input_is_refused_in_one_line(args: tuple[str, ...], says: str, tmp_path: Path) -> None:
    assert says in refused(*args, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_push_beyond_all_measure_is_told_to_be_smaller(tmp_path: Path) -> None:
    line = refused(*QUICK, "--push", "head:1e8N@0.1s", out=tmp_path / "out")
    assert "diverged" in line
    assert "or a smaller --push" in line


def test_margins_have_no_negative_zero() -> None:
    found = {"cop": {"least": -0.0002}, "cmp": {"least": -0.012}}
    assert margins_text(found) == "center of pressure 0.0 cm, centroidal moment pivot -1.2 cm"


def test_goals_are_read_as_written() -> None:
    goals = parse_goals(["left_hand: 0.4,-.2, 1.3", "head:0,0,1"])
    assert goals == {"left_hand": (0.4, -0.2, 1.3), "head": (0.0, 0.0, 1.0)}
    for text in ("left_hand:1,2", "1,2,3", "a:1,2,nan", ""):
        with pytest.raises(PoiseError, match="LINK:X,Y,Z"):
            parse_goals([text])


def test_a_clip_that_leaves_its_supports_for_long_ends_in_a_fall_and_not_in_an_error() -> None:
    clip = poise.load_clip("squat")
    frames = clip.frames.copy()
    frames[:, 0] += np.linspace(0.0, 1.5, len(frames))  # it walks away from its feet
    trial = prepare_trial(
        clip.with_frames(frames, contacts=clip.contacts), prepare=False, controller="balance"
    )
    recording = trial.run()
    assert np.isfinite(recording.q).all()


def test_a_mass_centre_that_is_beside_the_feet_for_long_is_told() -> None:
    clip = poise.load_clip("squat")
    assert clip.contacts is not None
    on = np.array(clip.contacts.on)
    assert not _describe_unsupported(clip)
    on[len(on) // 2 :] = False
    (note,) = _describe_unsupported(
        clip.with_frames(clip.frames, contacts=replace(clip.contacts, on=on))
    )
    assert "takes no steps" in note
    # the first of several, which may be the shorter one
    on[30:48] = False
    (note,) = _describe_unsupported(
        clip.with_frames(clip.frames, contacts=replace(clip.contacts, on=on))
    )
    longest = (len(on) - len(on) // 2) / clip.fps
    assert f"2 times, first for 0.30 s from 0.50 s on, longest for {longest:.2f} s" in note


def test_a_lamp_without_legs_is_prepared_as_far_as_it_can_be() -> None:
    trial = prepare_trial("lamp-hop", duration=0.8, controller="balance")
    assert "feet are left as they are: 'lamp' has no pair of legs" in trial.notes
    assert stance_of(trial.run()).fell is None


def test_large_turns_are_told_in_plain_numbers() -> None:
    clip = poise.load_clip("squat")
    q = clip.frames.copy()
    q[0, 3:7] = rotation.multiply(q[0, 3:7], rotation.turn((0.0, 0.0, 1.0), 2.0))
    assert "114.6 at most" in _describe_shift(clip, q, np.full((len(q), 2), 0.1))


def test_few_frames_are_left_alone_and_said_to_be() -> None:
    clip = poise.load_clip("squat")
    frames = clip.frames[:3].copy()
    frames[:, 3:7] = rotation.multiply(frames[:, 3:7], rotation.turn((0.0, 1.0, 0.0), 0.4))
    assert clip.contacts is not None
    contacts = replace(clip.contacts, on=clip.contacts.on[:3])
    made = prepare_balance(poise.Clip(clip.character, frames, clip.fps, contacts=contacts))
    assert any("too short" in note for note in made.notes)


def test_feet_in_the_air_fall_gracefully() -> None:
    clip = poise.load_clip("squat")
    frames = clip.frames.copy()
    frames[:, 2] += 0.3
    trial = prepare_trial(
        clip.with_frames(frames), prepare=False, duration=1.0, controller="balance"
    )
    assert np.isfinite(trial.run().q).all()


def test_convert_takes_the_noise_of_raw_files_away_before_it_balances(tmp_path: Path) -> None:
    """As `poise balance` does; a cutoff of 0 leaves it."""
    clip = poise.load_clip("squat").trimmed(0.0, 1.0)
    noise = np.random.default_rng(1).normal(0.0, 2e-3, (len(clip), 3))
    frames = clip.frames.copy()
    frames[:, :3] += noise
    source, out = tmp_path / "take.bvh", tmp_path / "take.npz"
    clip.with_frames(frames).save(source)
    args = ["convert", str(source), str(out), "--character", "humanoid-ball", "--balanced",
            "--json", "--force"]  # fmt: skip
    told = json.loads(CliRunner().invoke(app, args).stdout)
    assert told["smoothing"].startswith("smoothed at")
    made = prepare_trial(source, "humanoid-ball", controller="balance").clip
    np.testing.assert_allclose(poise.load_clip(out).frames, made.frames, atol=1e-9)
    told = json.loads(CliRunner().invoke(app, [*args, "--cutoff", "0"]).stdout)
    assert told["smoothing"] is None


def test_convert_makes_nobody_ready_who_has_no_feet(tmp_path: Path) -> None:
    args = ["convert", "snake-slither", str(tmp_path / "snake.npz"), "--balanced"]
    told = CliRunner().invoke(app, args)
    assert told.exit_code == 1
    assert "has no feet" in told.output


@pytest.mark.slow
def test_a_clip_that_convert_made_ready_needs_no_more(data_folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "ready.npz"
    source = data_folder / "cmu_bvh" / "22_14.bvh"
    args = ["convert", source, out, "--character", "humanoid-ball", "--balanced"]
    assert CliRunner().invoke(app, [str(arg) for arg in args]).exit_code == 0
    recording = prepare_trial(out, prepare=False, time_scaling=True, controller="balance").run()
    assert stance_of(recording).fell is None


@pytest.mark.slow
def test_convert_makes_a_recorded_clip_ready(data_folder: Path, tmp_path: Path) -> None:
    """A squat on one leg: its other foot hovers, and does not stand."""
    out = tmp_path / "ready.npz"
    source = data_folder / "mass" / "motion" / "balance.bvh"
    args = ["convert", source, out, "--character", "humanoid-ball", "--balanced", "--json"]
    told = CliRunner().invoke(app, [str(arg) for arg in args])
    assert told.exit_code == 0, told.output
    assert "moved over the feet" in json.loads(told.stdout)["balancing"]
    clip = poise.load_clip(out)
    assert clip.contacts is not None
    assert clip.contacts.standing("right_foot").all()
    assert not clip.contacts.standing("left_foot").any()
    assert np.nanmin(com_over_support(clip).margin) > 0.015


@pytest.mark.slow
@pytest.mark.parametrize(
    "path", ["cmu_bvh/49_18.bvh", "cmu_bvh/22_14.bvh", "mass/motion/balance.bvh"]
)
def test_recorded_clips_are_balanced(path: str, data_folder: Path) -> None:
    trial = prepare_trial(
        data_folder / path, "humanoid-ball", time_scaling=True, controller="balance"
    )
    recording = replace(trial, duration=2.0 * trial.clip.duration + 1.0).run()
    # it waits at times, but comes to the end
    asked = recording.target(-1)
    assert asked is not None
    np.testing.assert_allclose(asked.q, trial.clip.frames[-1], atol=1e-6)
    found = balance_table(stance_of(recording))
    assert found["stood"]
    assert max(foot["tilted"] for foot in found["feet"].values()) < 5.0


def test_a_clip_that_waits_is_followed_to_its_end() -> None:
    push = parse_push("chest:150N:forward@0.5s+0.1s")
    trial = prepare_trial("squat", pushes=[push], time_scaling=True, controller="balance")
    recording = trial.run()
    asked = recording.target(-1)
    assert asked is not None
    # the last frame is recorded within two steps of the recording after the end
    np.testing.assert_allclose(asked.q, trial.clip.frames[-1], atol=0.02)
    assert trial.clip.duration < recording.time[-1] < 1.5 * trial.clip.duration
