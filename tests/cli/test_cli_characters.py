"""`poise characters` and `poise characters show`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from poise import _core
from poise.characters import builtin_names, load_character
from poise.cli import app
from poise.cli.characters import bounds, text_picture
from poise.model.character import Character, Joint, Link, Shape


def run(*args: object, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["characters", *map(str, args)])
    assert result.exit_code == code, result.output
    return result.output


def test_the_list_has_every_builtin_with_its_size() -> None:
    lines = run().splitlines()
    rows = {line.split()[0]: line.split() for line in lines}
    assert set(builtin_names()) <= set(rows)
    assert rows["humanoid-51"][1:] == ["51", "16", "52.0", "kg", "1.60", "m", "free"]
    assert rows["two-link"][-1] == "fixed"


def test_the_list_as_json_can_be_read() -> None:
    rows = {row["name"]: row for row in json.loads(run("--json"))}
    assert tuple(rows) == builtin_names()
    assert rows["humanoid"]["dof"] == 34
    assert rows["humanoid"]["mass"] == pytest.approx(60.0)
    assert rows["humanoid"]["height"] == pytest.approx(1.66)


@pytest.mark.parametrize("name", builtin_names())
def test_every_builtin_is_shown(name: str) -> None:
    text = run("show", name)
    for link in load_character(name).links:
        assert link.name in text


def test_a_tree_shows_masses_and_limits_in_degrees() -> None:
    text = run("show", "humanoid")
    assert "34 degrees of freedom" in text
    assert "\n    left_shin" in text
    assert "left_knee (hinge) -3 to 149 deg" in text
    assert "left_hip (ball) swing 46 deg, twist -29 to 120 deg about 0, -1, 0" in text
    assert "8.520 kg  root (free)" in text
    assert "left_leg: left_thigh, left_shin, left_foot" in text


def test_a_file_is_shown_as_json_with_all_it_has(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    load_character("lamp").save(path)
    found = json.loads(run("show", path, "--json"))
    assert [row["name"] for row in found["tree"]] == ["base", "lower_arm", "upper_arm", "shade"]
    assert found["tree"][3]["joints"][0]["limits"] == [0.7, -1.2, 1.0]
    assert found["tree"][3]["shapes"] == ["mesh", "sphere"]


def test_slides_welds_and_characters_without_shapes_are_shown(tmp_path: Path) -> None:
    solid = {"mass": 1.0, "inertia": (1.0, 1.0, 1.0)}
    rail = Link("rail", joints=(Joint("s", "slide", limits=(-1.0, 0.5)),), **solid)  # type: ignore[arg-type]
    tip = Link("tip", "rail", pos=(0.0, 0.0, 2.0), **solid)  # type: ignore[arg-type]
    path = tmp_path / "c.yaml"
    Character("x", (rail, tip)).save(path)
    text = run("show", path)
    assert "s (slide) -1 to 0.5 m" in text
    assert "welded" in text
    assert ", 2 m high, fixed base" in text


def test_a_wrong_name_is_one_line_that_says_what_would_be_right() -> None:
    text = run("show", "humanoit", code=1)
    assert "did you mean 'humanoid'" in text.replace("\n", " ")
    assert "Traceback" not in text


@pytest.mark.parametrize(
    ("shape", "half"),
    [
        (Shape("sphere", (0.1,)), (0.1, 0.1, 0.1)),
        (Shape("box", (0.1, 0.2, 0.3)), (0.3, 0.2, 0.1)),
        (Shape("capsule", (0.1, 0.2)), (0.3, 0.1, 0.1)),
        (Shape("cylinder", (0.1, 0.2)), (0.2, 0.1, 0.1)),
        (Shape.mesh([(0, 0, 0.3), (0.2, 0, -0.3), (-0.2, 0.2, 0), (0, -0.2, 0)]), (0.3, 0.2, 0.2)),
    ],
)
def test_bounds_of_each_shape_turned_by_a_right_angle(
    shape: Shape, half: tuple[float, ...]
) -> None:
    """z of the shape is x of the world."""
    root = Joint("r", "free")
    turn = (0.5**0.5, 0.0, 0.5**0.5, 0.0)
    link = Link.from_shapes("l", None, [shape], pos=(1.0, 2.0, 3.0), quat=turn, joints=[root])
    low, high = bounds(Character("x", (link,)))
    np.testing.assert_allclose(low, np.array((1.0, 2.0, 3.0)) - half, atol=1e-12)
    np.testing.assert_allclose(high, np.array((1.0, 2.0, 3.0)) + half, atol=1e-12)


def test_what_cannot_move_is_refused_by_name(tmp_path: Path) -> None:
    link = Link("stone", mass=1.0, inertia=(1.0, 1.0, 1.0))
    Character("stone", (link,)).save(tmp_path / "stone.yaml")
    text = run("show", tmp_path / "stone.yaml", code=1)
    assert "stone.yaml" in text
    assert "no joint that moves" in text


def test_a_light_link_does_not_weigh_nothing(tmp_path: Path) -> None:
    shape = Shape("sphere", (0.001,))
    link = Link.from_shapes("fly", None, [shape], mass=2e-5, joints=[Joint("r", "free")])
    Character("fly", (link,)).save(tmp_path / "fly.yaml")
    assert "2.0e-05 kg" in run("show", tmp_path / "fly.yaml")


@pytest.mark.data
@pytest.mark.parametrize(
    ("file", "facts"),
    [
        ("mjcf/mimickit_humanoid.xml", "34 degrees of freedom"),
        ("mjcf/protomotions_amp_humanoid.xml", "42 degrees of freedom"),
        ("mjcf/gymnasium/humanoid.xml", "23 degrees of freedom"),
        ("urdf/humanoid.urdf", "16 links, 45 kg"),
        ("mass/human.xml", "56 degrees of freedom"),
        ("deepmimic/characters/humanoid3d.txt", "45 kg"),
        ("deepmimic/characters/dog3d.txt", "64 degrees of freedom"),
        ("cmu_bvh/16_35.bvh", "free base"),
        ("mass/motion/run.bvh", "free base"),
    ],
)
def test_real_files_are_shown(file: str, facts: str, data_folder: Path) -> None:
    if file.startswith(("mjcf", "urdf")):
        pytest.importorskip("mujoco", reason="mujoco is not installed")
    assert facts in run("show", data_folder / file)
    found = json.loads(run("show", data_folder / file, "--json"))
    assert found["mass"] == pytest.approx(sum(link["mass"] for link in found["tree"]))


@pytest.mark.data
@pytest.mark.parametrize(
    "file",
    ["mass/ground.xml", "mass/muscle284.xml", "deepmimic/motions/dog3d_pace.txt", "README.md"],
)
def test_files_that_are_no_character_are_one_line(file: str, data_folder: Path) -> None:
    text = run("show", data_folder / file, code=1)
    assert Path(file).name in text
    assert text.count("\n") == 1


draws = pytest.mark.skipif(not hasattr(_core, "render"), reason="the core cannot draw")


@draws
@pytest.mark.parametrize("name", builtin_names())
def test_a_character_is_drawn_into_a_png(name: str, tmp_path: Path) -> None:
    path = tmp_path / "c.png"
    run("show", name, "--out", path)
    assert path.read_bytes().startswith(b"\x89PNG")


@draws
def test_a_picture_is_drawn_though_nobody_reads_what_is_printed(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-c", "from poise.cli import main; main()", "characters", "show"]
    out = ["--out", str(tmp_path / "c.png")]
    subprocess.run([*command, "humanoid", *out], stdout=writer, stderr=subprocess.DEVNULL)
    os.close(writer)
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")


@draws
def test_a_picture_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    assert ".png" in run("show", "dog", "--out", tmp_path / "dog.gif", code=1)
    assert "cannot be written" in run("show", "dog", "--out", tmp_path / "no/x.png", code=1)


@draws
def test_a_character_is_drawn_for_a_terminal() -> None:
    lines = text_picture(load_character("dog"), 40).splitlines()
    assert [line.count("▀") for line in lines] == [40] * 15
    assert all(line.endswith("\x1b[0m") for line in lines)
