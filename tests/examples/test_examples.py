"""Every example runs, and what it computes and writes is right; the README's programs run."""

from __future__ import annotations

import ast
import math
import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from results_read import places, same_motion

import poise
from poise import measure

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("[0-9]*.py"))
PUBLIC = ("poise", "poise.measure", "poise.view", "poise.trials", "poise.studio")
INTEROP = ("poise.interop", "poise.studio.requests", "poise.studio.snapshot")


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs an example by its name in an empty folder; returns its global names."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["example"])
    return lambda name: runpy.run_path(str(ROOT / "examples" / f"{name}.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_has_one_idea_in_30_to_60_lines_of_public_names(path: Path) -> None:
    source = path.read_text()
    assert 30 <= len(source.splitlines()) <= 60
    for node in ast.walk(ast.parse(source)):
        assert not isinstance(node, ast.Assert)
        modules = [node.module] if isinstance(node, ast.ImportFrom) else []
        modules += [name.name for name in node.names] if isinstance(node, ast.Import) else []
        for module in modules:
            assert module is not None
            if module.split(".")[0] == "poise":
                assert module in PUBLIC + INTEROP, f"{path.name} imports {module}"


def test_examples_are_numbered_without_a_gap_and_listed() -> None:
    listed = (ROOT / "docs" / "getting-started.md").read_text()
    for number, path in enumerate(EXAMPLES):
        assert path.name.startswith(f"{number:02}_")
        assert path.name in listed


def test_the_squat_recovers_from_the_push_and_its_files_hold_what_happened(run: Any) -> None:
    names = run("00_track_a_clip")
    out, recording = names["out"], names["recording"]
    assert measure.summary(names["error"].rotation).p95 < 5.0
    assert 0.02 < np.abs(names["aside"]).max() < 0.08
    assert abs(names["aside"][-1]) < 0.02
    again = poise.load_recording(out / "recording.npz")
    assert np.array_equal(again.q, recording.q)
    resumed = again.world(len(again) // 2)
    assert np.array_equal(resumed.state.q, recording.q[len(again) // 2])
    same_motion(out / "motion.bvh", recording)
    same_motion(out / "motion.glb", recording)
    mean = recording.metrics()["ground_force"].mean
    assert abs(mean / (9.81 * names["character"].mass) - 1.0) < 0.05


@pytest.mark.filterwarnings("ignore::poise.errors.ClipNotice")
def test_a_file_comes_back_as_it_was_and_the_humanoid_follows_it(run: Any) -> None:
    names = run("01_your_own_files")
    clip = names["clip"]
    expected = places(clip)
    for file in ("again.bvh", "again.glb"):
        found = places(poise.load_clip(names["out"] / file, clip.character, prepare=False))
        assert max(np.abs(found[link] - expected[link]).max() for link in expected) < 1e-4
    assert names["error"] < 1.0


def test_a_retargeted_walk_keeps_its_feet_and_its_speed(run: Any) -> None:
    names = run("02_another_body")
    assert names["footing"].skate.max() < 0.010
    assert names["footing"].sink.max() < 0.005
    moved, other = names["moved"], names["other"]
    assert abs(other.duration - moved.duration / 1.2) < 1 / other.fps


def test_the_batch_finds_the_same_limit_to_the_left_and_to_the_right(run: Any) -> None:
    strongest = run("03_push_a_batch")["strongest"]
    assert abs(strongest["left"] - strongest["right"]) <= 2.0
    assert all(4.0 <= impulse < 40.0 for impulse in strongest.values())


def test_the_loop_of_learning_resets_those_that_fall(run: Any) -> None:
    names = run("12_learning_loop")
    world = names["world"]
    assert np.isfinite(names["q"]).all()
    assert not world.diverged
    assert np.allclose(names["heights"], 0.015, atol=0.016)
    assert names["feet"].mean() > 0.5


def test_the_first_ball_makes_it_sway_and_the_second_fells_both(run: Any) -> None:
    names = run("04_throw_a_ball")
    world, recording = names["world"], names["recording"]
    time, weight = recording.time, 9.81 * names["humanoid"].mass
    first, feet = names["first"], names["feet"]
    both = sum(feet[f"{first}/{side}_foot"].force[:, 2] for side in ("left", "right"))
    assert np.allclose(both[(time > 0.05) & (time < 0.4)], weight, rtol=0.01)
    heights = recording.q[:, [world.part(part).q.start + 2 for part in world.scene.forest.parts]]
    assert (heights[np.abs(time - 2.4) < 0.05] > 0.8).all()
    assert (heights[-1] < 0.5).all()


def test_ragdolls_come_to_rest_on_the_hills(run: Any) -> None:
    names = run("05_ragdolls")
    assert not names["world"].diverged
    assert names["depth"] < 0.002
    assert names["speed"] < 0.05
    assert all((names["out"] / name).is_file() for name in ("start.png", "rest.png"))


def test_stable_pd_never_diverges_where_explicit_pd_always_does(run: Any) -> None:
    errors = run("06_choose_gains")["errors"]
    explicit = errors.pop("explicit PD, 1/240 s")
    assert all(map(math.isnan, explicit))
    assert all(math.isfinite(error) for row in errors.values() for error in row)
    assert all(error < 1.0 for error in errors["stable PD, 1/60 s"][2:])


def test_a_controller_of_ten_lines_follows_at_small_steps(run: Any) -> None:
    results = run("07_your_own_controller")["results"]
    assert all(float(results[1000][k].split()[0]) < 2.0 for k in (0, 1))
    assert "degrees" in results[60][1]


def test_the_kick_is_finished_on_its_foot(run: Any) -> None:
    names = run("08_balance")
    assert not names["fallen"]
    assert 1.0 < names["momentum"].max() < 30.0
    assert (names["out"] / "balance.png").stat().st_size > 20_000


def test_the_stiff_trial_follows_more_closely_and_its_files_are_all_there(run: Any) -> None:
    names = run("09_results")
    errors, files, out = names["errors"], names["files"], names["out"]
    assert errors["stiff"] < errors["limp"]
    same_motion(files["motion.bvh"], names["recordings"]["stiff"])
    assert b"<script" in (out / "both.html").read_bytes()
    assert (out / "limp.gif").read_bytes().startswith(b"GIF89a")


def test_the_studio_is_pushed_goes_back_and_saves_its_take(run: Any) -> None:
    names = run("10_studio")
    assert 0.02 < names["pushed"].measures.root_offset[0] < 1.0
    assert names["past"].measures.time < names["pushed"].measures.time
    take = poise.load_recording(next(p for p in names["files"] if p.suffix == ".npz"))
    assert take.time[-1] - take.time[0] > 0.5
    assert all(path.parent.name == "studio" for path in names["files"])


def test_stable_pd_inside_mujoco_follows_where_explicit_pd_diverges(run: Any) -> None:
    pytest.importorskip("mujoco", reason="the extra mujoco is not installed")
    names = run("11_mujoco")
    assert names["error"] < 2.0
    assert names["diverged"] < 1.0


def test_the_programs_in_the_readme_run(tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text()
    programs = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert programs
    for program in programs:
        command = [sys.executable, "-c", program]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
