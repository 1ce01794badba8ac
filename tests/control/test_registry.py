"""The table of controllers: one entry serves Python, command line, comparison, studio."""

from __future__ import annotations

import dataclasses
import inspect
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from own_controller import Hold, HoldOptions
from typer.testing import CliRunner

import poise
from poise.cli import app
from poise.control.options import parse_option
from poise.control.registry import CONTROLLERS, ControllerEntry
from poise.errors import PoiseError
from poise.trials.trial import Trial, prepare_trial

# ---- a controller of one's own


@pytest.fixture
def hold(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = ControllerEntry("damps every joint", "none2026", Hold, HoldOptions)
    monkeypatch.setitem(CONTROLLERS, "hold", entry)


def run(*words: object, code: int = 0) -> Any:
    done = CliRunner().invoke(app, [*map(str, words)])
    assert done.exit_code == code, done.output
    return done


@pytest.mark.usefixtures("hold")
def test_one_entry_puts_a_controller_into_the_help() -> None:
    for command in ("track", "compare"):
        said = " ".join(run(command, "--help").output.split())
        assert "hold damps every joint (none2026)" in said
        assert "options: gain" in said


@pytest.mark.usefixtures("hold")
def test_one_entry_puts_a_controller_into_comparisons(tmp_path: Path) -> None:
    words = ("--controllers", "spd,hold", "--dt", "1/120", "--option", "gain=5", "--no-largest")
    said = run(
        "compare", "two-link-wave", *words, "--duration", 0.2, "--json", "--out", tmp_path / "out"
    ).stdout
    assert [row["controller"] for row in json.loads(said)] == ["spd", "hold"]


@pytest.mark.usefixtures("hold")
def test_one_entry_makes_a_controller_in_python_and_runs_in_a_trial() -> None:
    world = poise.World(poise.load_character("two-link"), dt=0.01)
    made: Any = poise.make_controller("hold", world, gain=3.0)
    assert made.gain == 3.0
    assert len(prepare_trial("two-link-wave", controller="hold", duration=0.1).run())


@pytest.mark.usefixtures("hold")
def test_one_entry_puts_a_controller_onto_the_page_of_the_studio(tmp_path: Path) -> None:
    pytest.importorskip("viser", reason="the extra view is not installed")
    from poise.studio import Studio
    from poise.studio.requests import Choose

    with Studio("two-link-wave", out=tmp_path, port=0, play=False) as studio:
        shown: Any = studio.page.panel._scene._lists["controller"]
        assert "hold" in shown.options
        assert studio.session.submit(Choose(controller="hold"))
        end = time.monotonic() + 30.0
        while studio.session.newest.controls.controller != "hold":
            assert time.monotonic() < end
            time.sleep(0.01)


@pytest.mark.usefixtures("hold")
def test_wrong_options_are_named_in_one_line(tmp_path: Path) -> None:
    for text, words in (
        ("gian=1", "unknown option of controller 'hold' 'gian'; did you mean 'gain'"),
        ("gain=-1", "gain is -1; it must be 0 or more"),
        ("gain=much", "gain is 'much'; it must be N·m·s/rad"),
        ("gain", "NAME=VALUE"),
    ):
        out = tmp_path / "out"
        done = run(
            "track", "two-link-wave", "--controller", "hold", "--option", text, "--out", out, code=1
        )
        assert words in done.stderr
        assert done.stderr.count("\n") == 1


# ---- the table


@pytest.mark.parametrize("name", CONTROLLERS)
def test_every_option_has_help_and_a_default_that_it_takes(name: str) -> None:
    options = CONTROLLERS[name].options
    assert all(info.help.endswith(".") for info in options.info().values())
    assert options(**options.defaults()).values() == options.defaults()


def test_options_of_balance_are_the_arguments_of_balance() -> None:
    arguments = inspect.signature(poise.Balance).parameters
    options = CONTROLLERS["balance"].options.defaults()
    assert set(options) == set(arguments) - {"character", "part", "threads"}
    for name, default in options.items():
        assert (arguments[name].default or default) == default, name


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("gamma", "0.5", 0.5),
        ("linear_gains", "20, 9", (20.0, 9.0)),
        ("objectives", "track, linear", ("track", "linear")),
        ("weights", "arms=0.3,root=0.1", {"arms": 0.3, "root": 0.1}),
        ("desired_com", "motion", "motion"),
        ("desired_com", "0,0.02", (0.0, 0.02)),
        ("goals", "head:0,0,1.7", {"head": (0.0, 0.0, 1.7)}),
        ("soft_limits", "none", None),
        ("ground_model", "equality", "equality"),
    ],
)
def test_options_are_read_from_text(name: str, text: str, value: object) -> None:
    info = CONTROLLERS["balance"].options.info()[name]
    assert parse_option(name, text, info) == value


# ---- balance is one of them


def test_balance_is_made_by_its_name_for_a_part() -> None:
    humanoid = poise.load_character("humanoid")
    ball = poise.free_object("ball", poise.Shape("sphere", (0.1,)), mass=1.0, pos=(2.0, 0.0, 1.0))
    world = poise.World([humanoid, ball], dt=1 / 120, self_collision=False)
    made = poise.make_controller(
        "balance", world, part="humanoid", gamma=0.5, weights={"arms": 0.3}
    )
    assert isinstance(made, poise.Balance)
    assert made.gamma == 0.5


def test_track_with_the_controller_balance_is_balance(tmp_path: Path) -> None:
    words = ("squat", "--duration", 0.2, "--no-video", "--no-prepare", "--json")
    one = run("balance", *words, "--gamma", 0.5, "--out", tmp_path / "one").stdout
    options = ("--controller", "balance", "--option", "gamma=0.5")
    two = run("track", *words, *options, "--out", tmp_path / "two").stdout
    first, second = json.loads(one), json.loads(two)
    for table in (first, second):
        del table["speed"], table["files"]
    assert first == second
    assert first["controller"] == "balance"


def test_balance_is_compared_with_others(tmp_path: Path) -> None:
    words = ("--controllers", "spd,balance", "--dt", "1/120", "--no-largest", "--duration", 0.2)
    table = json.loads(run("compare", "squat", *words, "--json", "--out", tmp_path / "o").stdout)
    assert [row["controller"] for row in table] == ["spd", "balance"]
    assert all(row["stable"] for row in table)


def test_a_profile_scales_the_torques_of_balance() -> None:
    from poise.control.profiles import parse_profile

    profiles = [parse_profile("limp:left_arm@0s+1s")]
    shown = [
        prepare_trial(
            "butterflies", controller="balance", profiles=given, prepare=False, duration=0.6
        ).run()
        for given in ((), profiles)
    ]
    character = shown[0].scene.characters[0]
    elbow = next(joint for joint in character.joints if joint.name == "left_elbow")
    plain, limp = (one.torque[-20:, character.v_slice(elbow)] for one in shown)
    assert np.abs(limp).max() < 1e-6 * np.abs(plain).max()
    assert poise.recording.summary.balance_table(poise.recording.summary.stance_of(shown[1]))[
        "stood"
    ]


def test_pins_need_a_controller_that_has_them() -> None:
    from poise.control.profiles import parse_profile

    with pytest.raises(PoiseError, match="'balance' has no pins"):
        prepare_trial(
            "squat", controller="balance", profiles=[parse_profile("pinned")], prepare=False
        )
    with pytest.raises(PoiseError, match="contact by impulses"):
        prepare_trial(
            "squat", controller="balance", profiles=[parse_profile("limp")], prepare=False,
            world={"contact": "penalty"},
        )  # fmt: skip


def test_a_trial_runs_with_the_world_of_its_controller() -> None:
    clip = poise.load_clip("squat")
    trial = Trial(clip, "balance")
    assert trial.dt == CONTROLLERS["balance"].defaults["dt"]
    assert trial.root == "free"
    plain = Trial(clip)
    assert (plain.dt, plain.root, plain.options["frequency"]) == (1 / 60, "soft", 16.0)
    assert dataclasses.replace(plain, duration=1.0).options == plain.options
    assert Trial(clip, "balance", world={"contact": "penalty"}).dt == 1e-3
    assert np.isclose(plain.with_world(dt=0.01).dt, 0.01)
