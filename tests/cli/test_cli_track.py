"""`poise track`: what it prints, what it leaves, and what it says when something is wrong."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Validator
from results_read import same_motion
from typer.testing import CliRunner

import poise
from poise import measure
from poise.cli import app
from poise.cli.options import seconds
from poise.control.registry import CONTROLLERS
from poise.motion.library import builtin_clips
from poise.trials.results import FILES, check_out

QUICK = ("two-link-wave", "--duration", "0.2", "--no-video")


def run(*args: object, code: int = 0) -> Any:
    result = CliRunner().invoke(app, ["track", *map(str, args)])
    assert result.exit_code == code, result.output
    return result


def refused(*args: object, code: int = 1) -> str:
    """The one line that says what is wrong."""
    line = str(run(*args, code=code).output)
    assert line.startswith("poise")
    assert line.count("\n") == 1
    return line


def table_of(*args: object) -> dict[str, Any]:
    """What --json prints, and nothing else."""
    found: dict[str, Any] = json.loads(run(*args, "--json").stdout)
    return found


@pytest.fixture
def light(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures that nobody looks at are not drawn."""
    for name in ("plots.overview", "html.save_html", "video.save_video"):
        monkeypatch.setattr(f"poise.view.{name}", lambda path, *_, **__: path.write_bytes(b"x"))


# ---- what it leaves


@pytest.fixture(scope="module")
def walked(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The results of a short walk with a push and a video, and what was printed."""
    out = tmp_path_factory.mktemp("walk") / "new" / "folder"
    options = ("--duration", "0.6", "--push", "chest:300N:left@0.2s", "--push", "head:20N@0.4")
    return out, run("walk", *options, "--out", out).output


def test_all_results_are_there_and_nothing_else(walked: tuple[Path, str]) -> None:
    out, said = walked
    assert sorted(path.name for path in out.iterdir()) == sorted(FILES)
    for name in FILES:
        assert str(out / name) in said
        assert (out / name).stat().st_size > 1000


def test_the_files_are_what_their_names_say(walked: tuple[Path, str]) -> None:
    out, _ = walked
    assert (out / "video.mp4").read_bytes()[4:8] == b"ftyp"
    assert (out / "overview.png").read_bytes().startswith(b"\x89PNG")
    assert (out / "recording.html").read_text().lstrip()[:15].lower() == "<!doctype html>"
    recording = poise.load_recording(out / "recording.npz")
    assert len(recording) == 37
    assert recording.fps == pytest.approx(60.0)
    table = json.loads((out / "table.json").read_text())
    assert table["pushes"] == ["chest:300N:left@0.2s+0.1s", "head:20N:forward@0.4s+0.1s"]
    assert table["made by"] == f"poise {poise.__version__}"


def test_the_motion_comes_back_from_bvh_and_glb(walked: tuple[Path, str]) -> None:
    out, _ = walked
    recording = poise.load_recording(out / "recording.npz")
    same_motion(out / "motion.bvh", recording)
    same_motion(out / "motion.glb", recording)


def test_the_glb_passes_the_validator(walked: tuple[Path, str], gltf_validator: Validator) -> None:
    out, _ = walked
    assert gltf_validator([out / "motion.glb"]) == {"motion.glb": []}


def test_the_table_is_printed(walked: tuple[Path, str]) -> None:
    said = walked[1]
    table = json.loads((walked[0] / "table.json").read_text())
    assert "walk: humanoid, 34 degrees of freedom, 60 kg; spd at 1/60 s, root soft, 0.60 s" in said
    for link, row in table["links"].items():
        line = next(line for line in said.splitlines() if line.startswith(f"{link} "))
        assert f"{row['rotation']['max']:.2f}" in line
        assert f"{row['position']['max']:.4f}" in line
        assert f"{row['torque']:.1f}" in line
    assert (
        f"largest torque: {table['torque']['torque']:.4g} N·m in {table['torque']['joint']}" in said
    )
    assert f"{table['speed']['real_time']:.3g} times real time" in said
    assert "contacts: " in said
    assert "at the end it stands" in said


def test_the_numbers_of_the_table_are_those_of_the_recording(walked: tuple[Path, str]) -> None:
    out, _ = walked
    table = json.loads((out / "table.json").read_text())
    recording = poise.load_recording(out / "recording.npz")
    metrics = recording.metrics()
    for name in ("rotation", "position", "world"):
        assert table["tracking"][name] == pytest.approx(metrics[name]._asdict())
    joints = recording.torque[:, 6:]  # after the root
    assert table["torque"]["torque"] == pytest.approx(metrics["torque"].max, rel=0.5)
    assert table["torque"]["torque"] >= np.abs(joints).max()
    hand = np.linalg.norm(recording.torque[:, :3], axis=1).max()
    assert table["hand"]["force"] == pytest.approx(hand)
    assert table["contacts"]["ground_force"] == pytest.approx(metrics["ground_force"].max)


@pytest.mark.usefixtures("light")
def test_json_is_all_that_goes_to_stdout(tmp_path: Path) -> None:
    table = table_of(*QUICK, "--out", tmp_path / "a")
    assert table["files"]["motion.bvh"] == str(tmp_path / "a" / "motion.bvh")
    assert table["character"] == "two-link"
    assert set(table["links"]) == {"upper", "lower"}
    written = json.loads((tmp_path / "a" / "table.json").read_text())
    assert written["tracking"] == table["tracking"]


@pytest.mark.usefixtures("light")
def test_no_video_makes_none_and_leaves_none_of_a_run_before(tmp_path: Path) -> None:
    run(*QUICK[:-1], "--out", tmp_path)
    assert (tmp_path / "video.mp4").exists()
    run(*QUICK, "--out", tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(set(FILES) - {"video.mp4"})


@pytest.mark.usefixtures("light")
def test_results_go_into_a_folder_named_after_the_clip(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run(*QUICK)
    assert (tmp_path / "out" / "two-link-wave" / "table.json").exists()


# ---- files in, rigs out


@pytest.fixture
def take(tmp_path: Path) -> Path:
    """A part of a walk as somebody's file, in other units, with z up."""
    path = tmp_path / "take.bvh"
    poise.load_clip("walk").trimmed(0.5, 1.0).save(path)
    return path


@pytest.mark.usefixtures("light")
def test_a_file_comes_back_on_its_own_rig(take: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    said = run(take, "--no-video", "--out", out).output
    assert "smoothed at" in said
    head = take.read_text().split("MOTION")[0]
    assert (out / "motion.bvh").read_text().split("MOTION")[0] == head
    same_motion(out / "motion.bvh", poise.load_recording(out / "recording.npz"))


@pytest.mark.usefixtures("light")
def test_a_result_is_written_on_the_rig_of_another_file(take: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run(take, "--character", "humanoid-51", "--like", take, "--no-video", "--out", out)
    recording = poise.load_recording(out / "recording.npz")
    assert recording.settings.character[0].name == "humanoid-51"
    found, before = poise.load_clip(out / "motion.bvh"), poise.load_clip(take)
    assert found.character.links == before.character.links
    # it does what the take does: two bodies of different size, one motion
    times = np.linspace(0.0, before.duration, 20)
    error = measure.tracking_error(before.character, found.q(times), before.q(times))
    assert error.rotation.mean() < 10.0


# ---- what is asked for is done


@pytest.mark.usefixtures("light")
def test_options_reach_the_trial(tmp_path: Path) -> None:
    options = ("--dt", "1/240", "--root", "held", "--frequency", "5", "--damping", "0.7")
    table = table_of(*QUICK, *options, "--ground", "--out", tmp_path)
    assert table["dt"] == 1 / 240
    assert (table["root"], table["frequency"], table["damping"]) == ("held", 5.0, 0.7)
    assert table["ground"]
    stiff = table_of(*QUICK, "--frequency", "50", "--out", tmp_path)
    assert stiff["tracking"]["rotation"]["max"] < 0.3 * table["tracking"]["rotation"]["max"]


@pytest.mark.parametrize(
    ("text", "value"), [("1/60", 1 / 60), ("0.01", 0.01), ("1e-3", 1e-3), (" 1 / 120 ", 1 / 120)]
)
def test_a_step_is_a_number_or_a_fraction(text: str, value: float) -> None:
    assert seconds(text) == value


@pytest.mark.parametrize("text", ["", "x", "1/0", "1/2/3", "nan", "inf", "1e999"])
def test_a_step_that_is_none_is_refused(text: str, tmp_path: Path) -> None:
    assert "--dt is" in refused("walk", f"--dt={text}", "--out", tmp_path / "a")


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["wolk"], "unknown clip 'wolk'; did you mean 'walk'"),
        (["walk", "--character", "humanoit"], "did you mean 'humanoid'"),
        (["walk", "--controller", "sdp"], "unknown controller 'sdp'; did you mean 'spd'"),
        (["walk", "--root", "sof"], "unknown root 'sof'; did you mean 'soft'"),
        (["walk", "--push", "chst:200N@1s"], "unknown link 'chst'; did you mean 'chest'"),
        (["walk", "--push", "chest:200N:lft@1s"], "did you mean 'left'"),
        (["walk", "--push", "chest:200N"], "its time is missing"),
        (["walk", "--push", "chest:200N@99s"], "comes after the end at 3.3 s"),
        (["walk", "--cutoff", "much"], "auto, 0 or a number of Hz"),
        (["walk", "--dt", "0.5"], "dt is 0.5 s"),
        (["walk", "--dt", "-1/60"], "dt is -0.01666"),
        (["walk", "--duration", "nan"], "duration is nan"),
        (["walk", "--like", "missing.bvh"], "missing.bvh: cannot be read: No such file"),
        (["missing.bvh"], "missing.bvh: cannot be read: No such file"),
        (["walk.fbx"], "export GLB or BVH"),
        (["dog-trot", "--character", "humanoid"], "four legs"),
        (["walk", "--controller", "pd"], "the simulation diverged at"),
    ],
)
def test_what_is_wrong_is_one_line_and_nothing_is_left(
    args: list[str], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert words in refused(*args)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("args", [[], ["walk", "--spam"], ["walk", "--duration", "x"]])
def test_a_wrong_command_line_is_exit_code_2(args: list[str]) -> None:
    refused(*args, code=2)


def test_the_trace_is_shown_on_demand() -> None:
    result = CliRunner().invoke(app, ["--debug", "track", "wolk"])
    assert isinstance(result.exception, poise.PoiseError)


def test_help_has_an_example_and_the_names_of_controllers() -> None:
    said = run("--help").output
    assert "poise track walk --push chest:300N:left@1s+0.2s" in said
    assert all(name in said for name in CONTROLLERS)


# ---- what is not ours stays


@pytest.mark.usefixtures("light")
def test_other_files_are_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "motion.bvh").write_bytes(b"precious")
    assert "motion.bvh: is there already" in refused(*QUICK, "--out", tmp_path)
    (tmp_path / "table.json").write_bytes(b'{"made by": "hand"}')
    refused(*QUICK, "--out", tmp_path)
    assert (tmp_path / "motion.bvh").read_bytes() == b"precious"


@pytest.mark.usefixtures("light")
def test_the_file_that_is_read_is_not_replaced(take: Path, tmp_path: Path) -> None:
    run(*QUICK, "--out", tmp_path / "a")
    mine = tmp_path / "a" / "motion.bvh"
    mine.write_bytes(take.read_bytes())
    assert "is the file to be read" in refused(mine, "--out", tmp_path / "a")
    assert "is the file to be read" in refused("walk", "--like", mine, "--out", tmp_path / "a")
    assert mine.read_bytes() == take.read_bytes()


def test_a_folder_that_cannot_be_is_refused_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    assert "is a file; results need a folder" in refused(*QUICK, "--out", tmp_path / "file")
    assert "cannot be written" in refused(*QUICK, "--out", tmp_path / "file" / "below")
    assert "cannot be written" in refused(*QUICK, "--out", tmp_path / ("a" * 300))
    with pytest.raises(poise.PoiseError, match="cannot be written"):
        check_out("a\0b")


# ---- all clips, and how long it takes


@pytest.mark.slow
@pytest.mark.parametrize("name", builtin_clips())
def test_every_built_in_clip_is_tracked(name: str, tmp_path: Path) -> None:
    table = table_of(name, "--out", tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(FILES)
    assert table["tracking"]["rotation"]["p95"] < 10.0
    assert table["tracking"]["world"]["max"] < 0.25
    assert table["fallen"] in (False, None)
    same_motion(tmp_path / "motion.bvh", poise.load_recording(tmp_path / "recording.npz"))


TAKES = (
    "cmu_bvh/02_01.bvh",
    "cmu_bvh/16_35.bvh",
    "cmu_bvh/88_07.bvh",
    "cmu_asfamc/02_04.amc",
    "mass/motion/kick.bvh",
)


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.parametrize("name", TAKES)
def test_takes_of_others_are_tracked(name: str, tmp_path: Path, data_folder: Path) -> None:
    table = table_of(data_folder / name, "--out", tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(FILES)
    # fingers and toes of some grams lag behind; what is larger does not
    assert table["tracking"]["rotation"]["mean"] < 6.0
    assert table["tracking"]["world"]["max"] < 0.15
    same_motion(tmp_path / "motion.bvh", poise.load_recording(tmp_path / "recording.npz"))


@pytest.mark.slow
def test_ten_seconds_are_done_within_a_minute(tmp_path: Path) -> None:
    walk = poise.load_clip("walk").looped(4).trimmed(0.0, 10.0)
    walk.save(tmp_path / "long.npz")
    before = os.times()
    run(tmp_path / "long.npz", "--push", "chest:300N:left@3s+0.2s", "--out", tmp_path / "out")
    # processor time, that of the encoder with it: other work on the machine does not count, and
    # alone on it nothing waits for anything else
    taken = sum(now - then for now, then in zip(os.times()[:4], before[:4], strict=True))
    assert taken < 60.0
