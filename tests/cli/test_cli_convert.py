"""`poise convert`: all pairs of formats, one line for what is wrong, no half-written files."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from results_read import places
from small_files import MOTIONS, glb_parts, small_files, write_small
from typer.testing import CliRunner

from poise.characters import load_character
from poise.cli import app
from poise.motion import WRITERS, Clip, load_clip

ENDINGS = tuple(WRITERS)


def run(*args: object, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["convert", *map(str, args)])
    assert result.exit_code == code, result.output
    return result.output


def refused(*args: object) -> str:
    """The one line that says what is wrong."""
    line = run(*args, code=1)
    assert line.startswith("poise: ")
    assert line.count("\n") == 1
    return line


@pytest.mark.parametrize("kind", MOTIONS)
@pytest.mark.parametrize("ending", ENDINGS)
def test_every_motion_goes_into_every_format(kind: str, ending: str, tmp_path: Path) -> None:
    if ending.startswith(".usd"):
        pytest.importorskip("pxr", reason="usd-core is not installed")
    result = tmp_path / f"result{ending}"
    said = run(write_small(tmp_path, kind), result)
    clip = load_clip(tmp_path / next(iter(small_files()[kind])))
    assert f"{len(clip)} frames" in said
    assert result.stat().st_size > 100
    if ending in (".glb", ".npz"):
        same_motion(load_clip(result), clip)
    elif ending == ".bvh":
        unit = 0.01 if clip.source is None else clip.source.unit
        same_motion(load_clip(result, unit=unit), clip)
    elif ending in (".txt", ".json"):
        same_motion(load_clip(result, clip.character, prepare=False), clip)


def same_motion(again: Clip, clip: Clip) -> None:
    assert len(again) == len(clip)
    # DeepMimic and GLB keep times of frames, in float32 in GLB
    assert again.fps == pytest.approx(clip.fps, rel=1e-6)
    found, expected = places(again), places(clip)
    assert found.keys() & expected.keys()
    for name in found.keys() & expected.keys():
        np.testing.assert_allclose(found[name], expected[name], atol=1e-4, err_msg=name)


def test_the_character_alone_goes_into_yaml_and_mjcf(tmp_path: Path) -> None:
    source = write_small(tmp_path, "bvh")
    for name in ("a.yaml", "a.xml"):
        assert "kg" in run(source, tmp_path / name)
        assert load_character(tmp_path / name).nv == load_clip(source).character.nv


def test_a_motion_may_be_given_its_character(tmp_path: Path) -> None:
    source = write_small(tmp_path, "deepmimic")
    run(source, tmp_path / "a.npz", "--character", "humanoid")
    assert load_clip(tmp_path / "a.npz").character.name == "humanoid"
    assert "four legs" in refused(source, tmp_path / "b.npz", "--character", "dog")


def test_the_unit_of_a_bvh_may_be_given(tmp_path: Path) -> None:
    run(write_small(tmp_path, "bvh"), tmp_path / "a.npz", "--unit", "0.1")
    found = load_clip(tmp_path / "a.npz")
    assert found.source is not None
    assert found.source.unit == 0.1
    assert "unit" in refused(tmp_path / "a.npz", tmp_path / "b.npz", "--unit", "0.1")


def test_the_guessed_unit_is_said(tmp_path: Path) -> None:
    source = write_small(tmp_path, "bvh")
    rig = load_clip(source).source
    assert rig is not None
    for name in ("a.glb", "a.yaml"):
        assert f"{rig.unit:.5g} m (--unit)" in run(source, tmp_path / name)
    assert "--unit" not in run(source, tmp_path / "b.glb", "--unit", "0.01")
    assert "--unit" not in run(tmp_path / "a.glb", tmp_path / "b.npz")


def test_a_character_is_read_with_the_unit_that_is_given(tmp_path: Path) -> None:
    source = write_small(tmp_path, "bvh")
    for name, unit in (("a.yaml", 0.01), ("b.yaml", 0.02)):
        run(source, tmp_path / name, "--unit", unit)
        again = load_character(tmp_path / name)
        assert again == load_clip(source, unit=unit).character


@pytest.mark.parametrize(
    "option",
    [
        ("--cutoff", "6"),
        ("--character", "humanoid"),
        ("--like", "a.bvh"),
        ("--map", "map.yaml"),
        ("--rigid",),
        ("--level-feet",),
    ],
    ids=lambda option: option[0],
)
def test_options_of_a_motion_are_refused_for_a_character(
    option: tuple[str, ...], tmp_path: Path
) -> None:
    line = refused(write_small(tmp_path, "bvh"), tmp_path / "a.yaml", *option)
    assert option[0] in line
    assert not (tmp_path / "a.yaml").exists()


@pytest.mark.parametrize("option", [("--map", "none.yaml"), ("--level-feet",)])
def test_retargeting_options_need_a_character(option: tuple[str, ...], tmp_path: Path) -> None:
    line = refused(write_small(tmp_path, "bvh"), tmp_path / "a.npz", *option)
    assert "--character is missing" in line
    assert option[0] in line


KEYS = """clip: nod
character: two-link
fps: 30
options: {rounds: 0}
keys:
- {time: 0, joints: {shoulder: 0}}
- {time: 0.5, joints: {shoulder: -30}}
"""


def test_keyframes_are_refined_on_demand(tmp_path: Path) -> None:
    (tmp_path / "nod.keys.yaml").write_text(KEYS)
    for name, options in (("plain", ()), ("refined", ("--refine",))):
        run(tmp_path / "nod.keys.yaml", tmp_path / f"{name}.npz", *options)
    plain, refined = (load_clip(tmp_path / f"{name}.npz") for name in ("plain", "refined"))
    assert plain.frames.shape == refined.frames.shape
    assert np.abs(refined.frames - plain.frames).max() > 1e-6
    assert refined.name == "nod"


@pytest.mark.parametrize("options", ["cycles: many", "cycles: 0", "symmetric: 3", "jump: 1"])
def test_bad_options_of_refining_are_named(options: str, tmp_path: Path) -> None:
    (tmp_path / "nod.keys.yaml").write_text(KEYS.replace("rounds: 0", options))
    line = refused(tmp_path / "nod.keys.yaml", tmp_path / "a.npz", "--refine")
    assert "nod.keys.yaml: options: " in line
    assert options.split(":")[0] in line


def test_only_keyframes_are_refined(tmp_path: Path) -> None:
    assert "--refine works over keyframes" in refused("walk", tmp_path / "a.npz", "--refine")


def test_a_unit_of_what_is_no_motion_file_is_refused(tmp_path: Path) -> None:
    assert "--unit" in refused("humanoid", tmp_path / "a.yaml", "--unit", "0.01")
    assert "--unit" in refused("walk", tmp_path / "a.bvh", "--unit", "0.01")


def test_our_own_clips_and_characters_go_by_name(tmp_path: Path) -> None:
    run("walk", tmp_path / "walk.npz")
    assert np.array_equal(load_clip(tmp_path / "walk.npz").frames, load_clip("walk").frames)
    run("walk", tmp_path / "walker.yaml")
    assert load_character(tmp_path / "walker.yaml") == load_clip("walk").character
    run("dog", tmp_path / "dog.yaml")
    assert load_character(tmp_path / "dog.yaml") == load_character("dog")
    assert "'walk'" in refused("wolk", tmp_path / "a.bvh")


def test_a_skin_may_be_left_out(tmp_path: Path) -> None:
    source = write_small(tmp_path, "bvh")
    for name, options in (("a.glb", ()), ("b.glb", ("--rigid",))):
        run(source, tmp_path / name, *options)
        header, _ = glb_parts((tmp_path / name).read_bytes())
        assert (b'"skins"' in header) == (not options)
    assert "skin" in refused(source, tmp_path / "c.npz", "--rigid")


def test_an_animation_is_chosen_by_name_or_number(tmp_path: Path) -> None:
    source = write_small(tmp_path, "glb")
    run(source, tmp_path / "a.npz", "--animation", "0")
    assert "animation" in refused(source, tmp_path / "b.npz", "--animation", "7")
    assert "animation" in refused(source, tmp_path / "b.npz", "--animation", "Dance")


def test_help_has_an_example() -> None:
    assert "poise convert take.bvh take.glb" in run("--help")


@pytest.mark.parametrize(
    ("source", "result", "words"),
    [
        ("take.fbx", "take.glb", "export GLB or BVH"),
        ("take.bvh", "a.fbx", "write GLB"),
        ("missing.bvh", "a.glb", "No such file"),
        ("take.bvh", "a.mp4", "files that can be written end in"),
        ("take.mp4", "a.glb", "files that can be read end in"),
        ("take.bvh", "no/folder/a.glb", "cannot be written"),
        ("broken.bvh", "a.glb", "broken.bvh"),
        (".", "a.glb", "is not a file"),
        ("folder.bvh", "a.glb", "folder.bvh"),
        ("take.bvh", "a", "files that can be written end in"),
        ("a" * 300 + ".bvh", "a.glb", "cannot be read"),
        ("take.bvh", "a" * 300 + ".glb", "cannot be written"),
    ],
)
def test_what_is_wrong_is_one_line(source: str, result: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "take.bvh").write_bytes(small_files()["bvh"]["a.bvh"])
    (tmp_path / "broken.bvh").write_bytes(small_files()["bvh"]["a.bvh"][:-40])
    (tmp_path / "folder.bvh").mkdir()
    (tmp_path / "take.fbx").write_bytes(b"Kaydara FBX Binary  \0")
    (tmp_path / "take.mp4").write_bytes(b"x")
    before = sorted(tmp_path.rglob("*"))
    assert words in refused(tmp_path / source, tmp_path / result)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_file_is_replaced_only_by_force(tmp_path: Path) -> None:
    source, result = write_small(tmp_path, "bvh"), tmp_path / "a.npz"
    result.write_bytes(b"precious")
    assert "--force" in refused(source, result)
    assert result.read_bytes() == b"precious"
    run(source, result, "--force")
    assert len(load_clip(result)) == 3


def test_a_file_is_not_converted_into_itself(tmp_path: Path) -> None:
    source = write_small(tmp_path, "bvh")
    os.link(source, tmp_path / "same.bvh")
    for name in (source, tmp_path / "same.bvh"):
        assert "another" in refused(source, name, "--force")
    assert source.read_bytes() == small_files()["bvh"]["a.bvh"]


def test_a_failed_conversion_keeps_what_was_there(tmp_path: Path) -> None:
    source, result = tmp_path / "a.bvh", tmp_path / "a.npz"
    source.write_bytes(small_files()["bvh"]["a.bvh"][:-40])
    result.write_bytes(b"precious")
    refused(source, result, "--force")
    assert result.read_bytes() == b"precious"
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.skipif(os.name == "nt", reason="signals are sent as POSIX has them")
@pytest.mark.parametrize("wait", [0.3, 1.0])
def test_an_interrupt_leaves_no_file_and_no_trace(wait: float, tmp_path: Path) -> None:
    """Somewhere in a conversion of many seconds."""
    head, rows = small_files()["bvh"]["a.bvh"].decode().split("Frames: 3")
    time_line, row = rows.splitlines()[1:3]
    lines = f"{row}\n" * 200_000
    (tmp_path / "a.bvh").write_text(f"{head}Frames: 200000\n{time_line}\n{lines}")
    program = "from poise.cli import main; print('ready', flush=True); main()"
    command = [sys.executable, "-c", program, "convert", "a.bvh", "b.txt"]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(wait)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode not in (0, -signal.SIGINT)
    assert "Traceback" not in said
    assert [path.name for path in tmp_path.iterdir()] == ["a.bvh"]


@pytest.mark.parametrize("wrong", ["tale.bvh", "take.bvx.bvh", "Take.bvh"])
def test_of_a_file_that_is_not_there_those_called_alike_are_told(
    wrong: str, tmp_path: Path
) -> None:
    write_small(tmp_path, "bvh").rename(tmp_path / "take.bvh")
    assert "No such file or directory; did you mean 'take.bvh'?" in refused(
        tmp_path / wrong, tmp_path / "a.glb"
    )
