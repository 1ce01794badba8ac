"""`poise clips`, `poise clips show` and `poise clips check`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from poise.anatomy.contact_schedule import ContactSchedule
from poise.anatomy.feet import feet_of
from poise.characters import load_character
from poise.cli import app
from poise.cli.clips import summary
from poise.motion import library
from poise.motion.clip import Clip

HUMANOID = load_character("humanoid")


def run(*args: object, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["clips", *map(str, args)])
    assert result.exit_code == code, result.output
    return result.output


def standing(slide: float = 0.0) -> Clip:
    """The humanoid on both feet, which slide [m] in a second."""
    points = feet_of(HUMANOID)
    q = np.tile(HUMANOID.rest_q, (61, 1))
    q[:, 0] += np.linspace(0.0, slide, 61)
    contacts = ContactSchedule(points, np.ones((61, len(points)), dtype=bool))
    return Clip(HUMANOID, q, 60.0, name="statue", contacts=contacts)


@pytest.fixture
def two_clips(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A library of a clip that is good and one that slides."""
    monkeypatch.setattr(library, "FOLDER", tmp_path)
    library.builtin_clip.cache_clear()
    standing().save(tmp_path / "statue.npz")
    standing(0.021).save(tmp_path / "skater.npz")
    yield tmp_path
    library.builtin_clip.cache_clear()


def test_the_list_has_every_clip_with_its_length(two_clips: Path) -> None:
    lines = run().splitlines()
    assert [line.split()[0] for line in lines] == ["name", "skater", "statue"]
    assert "1.00 s" in lines[1]
    assert "60 fps" in lines[1]
    assert "humanoid" in lines[1]


def test_the_list_as_json_can_be_read(two_clips: Path) -> None:
    rows = {row["name"]: row for row in json.loads(run("--json"))}
    assert set(rows) == {"skater", "statue"}
    assert rows["statue"]["duration"] == pytest.approx(1.0)
    assert rows["statue"]["character"] == "humanoid"


def test_an_empty_library_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "FOLDER", tmp_path)
    assert "no built-in clips" in run()
    assert json.loads(run("--json")) == []


@pytest.mark.parametrize("name", library.builtin_clips())
def test_every_builtin_is_listed_with_its_character(name: str) -> None:
    row = summary(library.builtin_clip(name))
    assert row["frames"] > 1
    assert row["character"]
    json.dumps(row)


def test_contacts_are_summed_up() -> None:
    clip = standing()
    assert clip.contacts is not None
    on = clip.contacts.on.copy()
    left = clip.contacts.of("left_foot")
    on[:30, left] = False
    on[:20] = False
    row = summary(clip.with_frames(clip.frames, contacts=ContactSchedule(clip.contacts.points, on)))
    assert row["contacts"]["left_foot"] == pytest.approx(31 / 61)
    assert row["contacts"]["right_foot"] == pytest.approx(41 / 61)
    assert row["flight"] == pytest.approx(20 / 61)


def test_a_clip_is_drawn(two_clips: Path) -> None:
    from PIL import Image

    out = two_clips / "sheet.png"
    text = run("show", "statue", "--out", out, "--columns", 3, "--rows", 1)
    assert "1.00 s, 61 frames at 60 fps, on humanoid" in text
    picture = np.asarray(Image.open(out))
    assert picture.shape[1] == 3 * 180 + 2 * 2  # cells and gaps of a contact sheet
    assert picture[..., :3].std() > 10.0  # there is something in it


def test_a_picture_is_not_drawn_over_a_file_that_was_not_named(
    two_clips: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(two_clips)
    (two_clips / "statue.png").write_text("mine")
    text = run("show", "statue", code=1)
    assert "is there already" in text
    assert (two_clips / "statue.png").read_text() == "mine"


def test_a_good_clip_is_all_good(two_clips: Path) -> None:
    text = run("check", "statue")
    assert "BAD" not in text
    assert text.splitlines()[-1] == "all good"


def test_a_bad_clip_says_what_and_when_and_exits_with_one(two_clips: Path) -> None:
    text = run("check", two_clips / "skater.npz", code=1)
    (line,) = [line for line in text.splitlines() if line.startswith("BAD")]
    assert line.startswith("BAD  standing feet do not move: 21 mm (at most 5)")
    assert "bad 0.25..1.00 s" in line  # beyond 5 mm after 5/21 s, in frames of a sixtieth


def test_a_check_as_json_can_be_read(two_clips: Path) -> None:
    report: Any = json.loads(run("check", two_clips / "skater.npz", "--json", code=1))
    assert report["good"] is False
    bad = [one for one in report["findings"] if one["good"] is False]
    assert [one["claim"] for one in bad] == ["standing feet do not move"]
    assert bad[0]["value"] == pytest.approx(21.0)
    assert bad[0]["bad"] == [[pytest.approx(15 / 60), pytest.approx(1.0)]]


def test_smoothing_says_what_it_moved(two_clips: Path) -> None:
    text = run("check", "statue", "--cutoff", 6)
    assert "smoothed at 6 Hz: moved by 0.0 mm" in text


def test_a_capture_is_told_to_be_smoothed(data_folder: Path) -> None:
    take = data_folder / "mass" / "motion" / "walk.bvh"
    raw = run("check", take, code=1)
    assert "--cutoff auto" in raw
    smooth = run("check", take, "--cutoff", "auto", code=1)
    assert "--cutoff auto" not in smooth
    assert "is one of a walk" in smooth


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("check", "statu"), "did you mean 'statue'"),
        (("check", "missing.bvh"), "missing.bvh"),
        (("check", "statue", "--cutoff", "much"), "auto, 0 or a number"),
        (("check", "statue", "--cutoff", "-1"), "cutoff"),
        (("check", "statue", "--character", "dog"), "has its own character"),
        (("show", "statu"), "did you mean 'statue'"),
    ],
)
def test_errors_are_one_line(two_clips: Path, args: tuple[str, ...], words: str) -> None:
    text = run(*args, code=1)
    assert len(text.strip().splitlines()) == 1
    assert text.startswith("poise: ")
    assert words in text


@pytest.mark.parametrize("command", ["show", "check"])
def test_help_has_examples(command: str) -> None:
    assert f"poise clips {command} walk" in run(command, "--help")
