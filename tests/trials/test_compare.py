"""Comparing controllers: outcomes, the largest step, costs, side by side, and the command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import poise
from poise import dynamics
from poise.cli import app
from poise.control.registry import CONTROLLERS
from poise.recording import load_recording
from poise.trials.comparison import attempt, compare, cost, largest_step, side_by_side
from poise.trials.trial import prepare_trial, step_text

QUICK = ["--controllers", "spd,kane", "--dt", "1/60", "--no-largest", "--duration", "0.2"]
FILES = {"compare.html", "compare.npz", "compare.png", "table.json"}


def test_stable_controllers_follow_and_explicit_pd_is_lost() -> None:
    trial = prepare_trial("walk", ground=False, root="held", duration=0.3)
    runs = {one.name: one for one in compare(trial, ["pd", "spd", "kane"], [1 / 60])}
    assert not runs["pd, 1/60 s"].stable
    assert runs["spd, 1/60 s"].stable
    exact = runs["kane, 1/60 s"].error
    assert exact is not None
    assert exact.rotation.max() < 0.1


def test_a_lost_run_keeps_its_good_frames_only() -> None:
    one = attempt(prepare_trial("two-link-wave", controller="pd", dt=1 / 60, duration=1.0))
    assert one.lost is not None
    assert 0.0 < one.lost < 1.0
    assert one.error is not None
    assert len(one.error.position) == one.frames < len(one.recording) + 1
    assert one.error.position.max() < 0.5


def test_energy_is_what_joints_give_and_take() -> None:
    """Of an arm without a root: the sum of |tau v| over its frames."""
    one = attempt(prepare_trial("two-link-wave", dt=1 / 60))
    recording = one.recording
    power = np.abs(recording.torque[1:] * recording.v[1:]).sum(axis=1)
    assert one.energy == pytest.approx(float(power.sum() / 60), rel=1e-9)


def test_the_largest_step_of_a_ladder_is_found() -> None:
    trial = prepare_trial("two-link-wave", frequency=2.0, duration=1.0)
    assert largest_step(trial, ladder=(1 / 1000, 1 / 60)) == 1 / 60
    explicit = prepare_trial("two-link-wave", controller="pd", duration=1.0)
    assert largest_step(explicit, ladder=(1 / 2000, 1 / 30)) == 1 / 2000
    assert largest_step(explicit, ladder=(1 / 30,)) is None


def test_costs_are_of_the_controller_and_of_the_step() -> None:
    decide, step = cost(prepare_trial("two-link-wave", controller="spd-torque"))
    assert step is not None
    assert 1e-7 < decide < step < 1.0


def test_characters_move_side_by_side() -> None:
    trial = prepare_trial("walk", ground=False, root="held", duration=0.2)
    both = side_by_side(compare(trial, ["spd", "kane"], [1 / 60]))
    nq, across = trial.character.nq, 1
    assert both.scene.nq == 2 * nq
    apart = both.q[:, nq + across] - both.q[:, across]
    assert np.abs(apart).min() > 0.5
    # each one's target is the clip, moved as it is
    target = both.target(3)
    assert target is not None
    assert target.q[nq : nq + 3] - target.q[:3] == pytest.approx([0.0, apart[0], 0.0], abs=0.01)


def test_arms_hang_side_by_side() -> None:
    both = side_by_side(
        compare(prepare_trial("two-link-wave", duration=0.2), ["spd", "kane"], [0.01])
    )
    at, _ = dynamics.forward_kinematics(both.scene, both.q[0])
    assert np.linalg.norm(at[2, :2] - at[0, :2]) > 0.3


def test_the_command_leaves_table_picture_page_and_recording(tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = CliRunner().invoke(app, ["compare", "walk", *QUICK, "--out", str(out), "--json"])
    assert done.exit_code == 0, done.output
    rows = json.loads(done.stdout)
    assert [row["controller"] for row in rows] == ["spd", "kane"]
    assert {"rotation", "torque", "energy", "step_seconds"} <= set(rows[0])
    assert rows[1]["links"]["head"]["rotation"]["mean"] < 0.1
    assert {path.name for path in out.iterdir()} == FILES
    assert len(load_recording(out / "compare.npz")) == 7


def test_the_command_prints_each_link_if_asked(tmp_path: Path) -> None:
    words = ["compare", "two-link-wave", *QUICK, "--links", "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert "µs/step" in done.stdout
    names = [link.name for link in poise.load_character("two-link").links]
    assert all(name in done.stdout for name in names)


def test_who_is_stopped_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("poise.cli.compare.save_comparison", stop)
    out = tmp_path / "out"
    done = CliRunner().invoke(app, ["compare", "two-link-wave", *QUICK, "--out", str(out)])
    assert done.exit_code == 130
    assert not out.exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--controllers", "cane"], "did you mean 'kane'"),
        (["--controllers", ","], "at least one controller"),
        (["--dt", "1/0"], "--dt"),
        (["--dt", "-1/60"], "positive"),
        (["--root", "hold"], "held"),
    ],
)
def test_wrong_words_are_told_in_one_line(words: list[str], told: str, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["compare", "two-link-wave", *words, "--out", str(tmp_path)])
    assert done.exit_code == 1
    assert told in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", [name for name in CONTROLLERS if name != "balance"])
def test_every_controller_follows_a_clip_at_small_steps(name: str) -> None:
    trial = prepare_trial(
        "two-link-wave", controller=name, frequency=2.0, dt=1 / 2000, duration=0.5
    )
    one = attempt(trial)
    assert one.stable
    assert one.error is not None
    assert one.error.rotation.mean() < 15.0  # plain PD at 2 Hz sags by some degrees


def test_steps_read_as_people_write_them() -> None:
    assert [step_text(dt) for dt in (1 / 60, 0.001, 0.013)] == ["1/60", "1/1000", "0.013"]
