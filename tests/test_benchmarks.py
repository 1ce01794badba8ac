"""The benchmarks stay alive: `make bench` in short, every section once, nothing judged."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from poise import _core

RUN = Path(__file__).parents[1] / "benchmarks" / "run.py"


def bench(*options: object, before: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run `make bench` with options; modules are looked for in the folder `before` first."""
    command = [sys.executable, str(RUN), *map(str, options)]
    env = dict(os.environ)
    if before is not None:
        env["PYTHONPATH"] = os.pathsep.join(filter(None, (str(before), env.get("PYTHONPATH"))))
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env=env)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a quick run of everything wrote its record."""
    out = tmp_path_factory.mktemp("bench") / "new" / "bench.json"
    done = bench("--quick", "--out", out)
    assert done.returncode == 0, done.stdout + done.stderr
    return out


@pytest.fixture(scope="module")
def record(written: Path) -> dict[str, Any]:
    """What it wrote."""
    found: dict[str, Any] = json.loads(written.read_text())
    return found


def test_every_section_runs(record: dict[str, Any]) -> None:
    names = ("fma", "limits", "kernels", "rest", "peers", "growth", "overhead", "features")
    touching = (
        "contact",
        "contacts",
        "meshes",
        "standing",
        "efforts",
        "moving",
        "iterations",
        "edges",
        "large-steps",
        "ragdolls",
        "memory",
        "batch",
        "studio",
        "balance",
    )
    assert list(record["sections"]) == [
        *names,
        "mujoco",
        "threads",
        "calls",
        "import",
        "files",
        *touching,
    ]


def test_the_record_says_where_it_was_made(record: dict[str, Any]) -> None:
    machine = record["machine"]
    assert machine["cpu"]
    assert machine["cores"] >= 1
    assert machine["build"]["compiler"]
    assert machine["isa"] == _core.isa()


def test_every_timing_has_its_windows_and_a_hash_of_its_end(record: dict[str, Any]) -> None:
    timings = [t for section in record["sections"].values() for t in section["timings"]]
    assert len(timings) > 100
    for timing in timings:
        assert timing["best_s"] == min(timing["windows_s"]) > 0
        assert len(timing["end_state"]) == 16
        assert timing["threads"] in (1, 2)


def test_every_instruction_set_of_the_cpu_is_measured_on_the_same_cases(
    record: dict[str, Any],
) -> None:
    section = record["sections"]["kernels"]
    sets = [timing["isa"] for timing in section["timings"]]
    batch = _core.supported_isas()
    one = [isa for isa in batch if isa != "avx512"]  # has no kernels for one character
    assert sets == 6 * (one + batch + batch)
    assert section["numbers"]["default"] == _core.isa()


def test_a_short_run_judges_nothing(record: dict[str, Any]) -> None:
    bounds = [b for section in record["sections"].values() for b in section["bounds"]]
    assert len(bounds) >= 25
    assert all(bound["holds"] is None for bound in bounds)


def test_the_peers_take_the_steps_we_take(record: dict[str, Any]) -> None:
    section = record["sections"]["peers"]
    if section["numbers"]["skipped"]:
        pytest.skip(str(section["numbers"]["skipped"]))
    for timing in section["timings"]:
        apart = timing.get("from_ours")
        # four steps; the PD around pin.aba and MuJoCo's `discrete` take the turn of a step to
        # first order, and the armature of pin's root acts in the root's own frame
        exact = timing.get("integrator") in ("Euler", "implicitfast")
        assert apart is None or apart < (1e-12 if exact else 1e-3)


def test_two_threads_end_where_one_does(record: dict[str, Any]) -> None:
    timings = record["sections"]["threads"]["timings"]
    ends: dict[str, set[str]] = {timing["model"]: set() for timing in timings}
    for timing in timings:
        ends[timing["model"]].add(timing["end_state"])
    assert all(len(states) == 1 for states in ends.values())


def test_ours_and_a_peer_stand_with_the_same_weight_on_the_ground(record: dict[str, Any]) -> None:
    section = record["sections"]["contact"]
    if "mujoco" in section["numbers"]["skipped"]:
        pytest.skip(section["numbers"]["skipped"]["mujoco"])
    timed = {timing["engine"] for timing in section["timings"]}
    assert {"poise", "MuJoCo discrete"} <= timed
    # a case whose character does not stand at the end raises; so does one of another mass
    assert set(section["numbers"]["ratios"]) == {"links meet", "ground only"}


def test_every_stiffness_says_how_it_ended(record: dict[str, Any]) -> None:
    ends = record["sections"]["standing"]["numbers"]["ends"]
    assert len(ends) == 2
    for engines in ends.values():
        for end in engines["poise implicit"].values():
            assert end["what"] == "stands"


def test_failed_falls_are_named(record: dict[str, Any]) -> None:
    """In a quick run nobody comes to rest: after a second they are still on their way."""
    failed = record["sections"]["ragdolls"]["numbers"]["failed"]
    assert failed["plane"]["moves"] == failed["field"]["moves"] == [0, 1]


def test_a_picture_is_written_beside_the_record(written: Path) -> None:
    assert written.with_name("contacts.png").read_bytes().startswith(b"\x89PNG")


def test_a_missing_engine_of_the_ground_is_skipped_and_said(tmp_path: Path) -> None:
    for name in ("mujoco", "dartpy", "pybullet"):
        (tmp_path / f"{name}.py").write_text("raise ImportError('it is not here')\n")
    options = ("--quick", "--only", "contact", "--out", tmp_path / "bench.json")
    done = bench(*options, before=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "dart is skipped: it is not here" in done.stdout


def test_a_missing_peer_is_skipped_and_said(tmp_path: Path) -> None:
    for name in ("mujoco", "pinocchio"):
        (tmp_path / f"{name}.py").write_text("raise ImportError('it is not here')\n")
    out = tmp_path / "bench.json"
    done = bench("--quick", "--only", "peers", "--out", out, before=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "mujoco is skipped: it is not here" in done.stdout
    skipped = json.loads(out.read_text())["sections"]["peers"]["numbers"]["skipped"]
    assert set(skipped) == {"mujoco", "pinocchio"}


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (("--only", "ragdolls", "--falls", "0"), "--falls"),
        (("--only", "ragdolls", "--falls", "many"), "--falls"),
        (("--only", "nothing"), "limits"),
    ],
)
def test_bad_options_are_refused(
    options: tuple[str, ...],
    word: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", [str(RUN), *options])
    monkeypatch.syspath_prepend(str(RUN.parent))
    with pytest.raises(SystemExit) as end:
        importlib.import_module("run").arguments()
    assert end.value.code == 2
    assert word in capsys.readouterr().err
