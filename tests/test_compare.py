"""Comparing controllers: outcomes, the largest step, and the command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import poise
from poise.cli import app
from poise.comparison import compare, largest_step, side_by_side
from poise.trial import trial_of


def test_stable_controllers_follow_and_explicit_pd_diverges() -> None:
    trial = trial_of("walk", ground=False, root="held", frequency=16.0, duration=0.3)
    runs = {one.name: one for one in compare(trial, ["pd", "spd", "kane"], [1 / 60])}
    assert not runs["pd, 1/60 s"].stable
    assert runs["spd, 1/60 s"].stable
    exact = runs["kane, 1/60 s"].error
    assert exact is not None
    assert exact.rotation.max() < 0.1


def test_the_largest_step_of_a_ladder_is_found() -> None:
    trial = trial_of("two-link-wave", frequency=2.0, duration=1.0)
    assert largest_step(trial, ladder=(1 / 1000, 1 / 60)) == 1 / 60


def test_characters_move_side_by_side() -> None:
    trial = trial_of("walk", ground=False, root="held", duration=0.2)
    both = side_by_side(compare(trial, ["spd", "kane"], [1 / 60]))
    assert both.scene.nq == 2 * trial.character.nq
    apart = both.q[:, trial.character.nq + 1] - both.q[:, 1]
    assert apart == pytest.approx(1.6, abs=0.05)


def test_the_command_leaves_table_picture_and_page(tmp_path: Path) -> None:
    words = ["compare", "walk", "--controllers", "spd,kane", "--dt", "1/60", "--no-largest",
             "--no-ground", "--out", str(tmp_path / "out"), "--json"]  # fmt: skip
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    rows = json.loads(done.stdout)
    assert [row["controller"] for row in rows] == ["spd", "kane"]
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "compare.html", "compare.png", "table.json"
    }  # fmt: skip


def test_an_unknown_controller_lists_the_near_ones() -> None:
    trial = trial_of("two-link-wave", duration=0.1)
    with pytest.raises(poise.PoiseError, match="kane"):
        compare(trial, ["cane"], [1 / 60])
