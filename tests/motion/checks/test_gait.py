"""Gaits: strides of known period, phase and duty factor; names, ranges and mirror images."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import poise
from poise.anatomy.contact_schedule import ContactSchedule
from poise.anatomy.feet import feet_of
from poise.characters import load_character
from poise.errors import ClipError
from poise.model.character import Character
from poise.motion.checks import gait
from poise.motion.checks.claims import Analysis, Finding
from poise.motion.checks.gait import Stride, stride_of
from poise.motion.clip import Clip

FPS = 100.0
HUMANOID, DOG = load_character("humanoid"), load_character("dog")
LEFT, RIGHT = ("leg", "left"), ("leg", "right")


def gait_clip(
    character: Character = HUMANOID,
    phases: dict[str, float] | None = None,
    *,
    speed: float = 1.3,
    period: float = 1.0,
    duty: float = 0.6,
    strides: float = 3.5,
    knees: tuple[float, float] = (0.0, 0.0),
) -> Clip:
    """A statue that travels, whose feet stand when they are told to, and whose knees swing.

    Args:
        character: Who.
        phases: Part of a stride after which each foot comes down.
        speed: Along x [m/s].
        period: Of a stride [s].
        duty: Part of a stride in which each foot stands.
        strides: How many.
        knees: What is added to the left and the right knee [rad].
    """
    phases = phases or {"left_foot": 0.1, "right_foot": 0.6}
    t = np.arange(round(strides * period * FPS) + 1) / FPS
    q = np.tile(character.rest_q, (len(t), 1))
    q[:, 0] = speed * t
    points = feet_of(character)
    # a hair after the frame, so that rounding does not decide
    on = [(t / period - phases[point.foot] + 1e-6) % 1.0 < duty for point in points]
    if character is HUMANOID:
        for side, shift, more in zip(("left", "right"), (0.0, 0.5), knees, strict=True):
            swing = 0.6 + 0.5 * np.sin(2.0 * np.pi * (t / period + shift))
            q[:, character.q_slice(character.joint(f"{side}_knee"))] = (swing + more)[:, None]
    return Clip(character, q, FPS, contacts=ContactSchedule(points, np.stack(on, axis=1)))


def paws(**phases: float) -> dict[str, float]:
    """Phases of a dog's feet, by short names: hl is the left hind."""
    names = {"fl": "front_left", "fr": "front_right", "hl": "hind_left", "hr": "hind_right"}
    return {f"{names[key]}_paw": phase for key, phase in phases.items()}


def findings(clip: Clip) -> dict[str, Finding]:
    """Findings about a gait by a word of their claim."""
    words = ("speed", "cadence", "length", "duty", "mirror", "known")
    found = gait.findings(Analysis(clip))
    return {word: one for one in found for word in words if word in one.claim}


def test_a_stride_has_the_numbers_it_was_made_with() -> None:
    stride = stride_of(Analysis(gait_clip(speed=1.3, period=1.1, duty=0.6)))
    frame = 1.0 / FPS / 1.1  # of a stride
    assert stride.period == pytest.approx(1.1)
    assert stride.speed == pytest.approx(
        1.3, rel=1e-3
    )  # the swinging shins move the center of mass
    assert stride.duty[LEFT] == pytest.approx(0.6, abs=frame)
    assert abs(stride.lag(LEFT, RIGHT)) == pytest.approx(0.5, abs=frame)
    assert stride.leg == pytest.approx(0.88)  # the height of the humanoid's hips


@pytest.mark.parametrize(("duty", "name"), [(0.6, "walk"), (0.35, "run")])
def test_two_legs_walk_or_run_by_the_duty_factor(duty: float, name: str) -> None:
    assert stride_of(Analysis(gait_clip(duty=duty))).name == name


@pytest.mark.parametrize(
    ("name", "phases", "duty"),
    [
        ("dog walk", paws(hl=0.1, fl=0.35, hr=0.6, fr=0.85), 0.65),
        ("dog pace", paws(hl=0.1, fl=0.12, hr=0.6, fr=0.62), 0.5),
        ("dog trot", paws(hl=0.1, fr=0.1, hr=0.6, fl=0.6), 0.4),
        ("dog canter", paws(hl=0.1, hr=0.35, fl=0.35, fr=0.65), 0.35),
        ("dog gallop", paws(hl=0.1, hr=0.25, fl=0.6, fr=0.72), 0.25),
    ],
)
def test_gaits_of_four_legs_go_by_their_footfalls(name: str, phases: Any, duty: float) -> None:
    stride = stride_of(Analysis(gait_clip(DOG, phases, period=0.5, speed=2.0, duty=duty)))
    assert stride.name == name
    assert stride.symmetrical is (name in ("dog walk", "dog pace", "dog trot"))


def test_a_walk_as_people_walk_is_good() -> None:
    found = findings(gait_clip(speed=1.3, period=1.1))
    assert [found[x].good for x in ("speed", "cadence", "length", "duty")] == [True] * 4
    assert found["cadence"].value == pytest.approx(2 * 60 / 1.1)
    assert found["length"].value == pytest.approx(1.3 * 1.1 / 2, rel=1e-3)


@pytest.mark.parametrize(
    ("what", "how"),
    [
        ("speed", {"speed": 3.0}),
        ("cadence", {"period": 0.6}),
        ("length", {"speed": 2.0, "period": 1.6}),
        ("duty", {"duty": 0.8}),
    ],
)
def test_what_is_out_of_range_is_bad_and_names_its_source(what: str, how: Any) -> None:
    found = findings(gait_clip(**how))[what]
    assert found.good is False
    assert any(digit.isdigit() for digit in found.where)  # a year


def test_both_halves_of_a_mirrored_walk_are_alike() -> None:
    found = findings(gait_clip())["mirror"]
    assert found.good
    assert found.value < 0.01  # the spline between the frames


@pytest.mark.parametrize(("degrees", "good"), [(1.5, True), (3.0, False)])
def test_a_knee_that_bends_more_than_the_other_is_found(degrees: float, good: bool) -> None:
    found = findings(gait_clip(knees=(np.radians(degrees), 0.0)))["mirror"]
    assert found.good is good
    assert found.value == pytest.approx(degrees, abs=0.01)
    assert "knee" in found.where


def test_a_body_that_tilts_to_one_side_is_found() -> None:
    clip = gait_clip()
    q = clip.frames.copy()
    half = np.radians(1.5) / 2.0  # tilted by 1.5 degrees, the mirror image the other way
    q[:, 3:7] = np.cos(half), np.sin(half), 0.0, 0.0
    found = findings(clip.with_frames(q, contacts=clip.contacts))["mirror"]
    assert found.value == pytest.approx(3.0)
    assert found.where == "root"


def test_where_it_walks_to_does_not_matter() -> None:
    clip = gait_clip(knees=(0.05, 0.0))
    q = clip.frames.copy()
    q[:, 0], q[:, 1] = 0.0, clip.frames[:, 0]
    q[:, 3:7] = np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5)
    one, other = findings(clip), findings(clip.with_frames(q, contacts=clip.contacts))
    for word in one:
        assert other[word].value == pytest.approx(one[word].value, rel=1e-6)


def test_a_canter_need_not_be_symmetrical() -> None:
    phases = paws(hl=0.1, hr=0.35, fl=0.35, fr=0.65)
    found = findings(gait_clip(DOG, phases, period=0.45, speed=3.5, duty=0.35))
    assert found["mirror"].good is None
    assert found["speed"].good


def test_one_stride_that_ends_as_it_began_is_a_loop() -> None:
    stride = stride_of(Analysis(gait_clip(strides=1.0)))
    assert stride.name == "walk"
    assert stride.period == pytest.approx(1.0)
    assert stride.speed == pytest.approx(1.3, rel=1e-3)


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ({"speed": 0.05}, "in place"),
        ({"strides": 0.25}, "no whole stride"),
    ],
)
def test_what_is_no_gait_says_why(how: Any, why: str) -> None:
    found = findings(gait_clip(**how))["known"]
    assert found.good is None
    assert why in found.where


def test_a_hop_on_both_feet_is_no_walk() -> None:
    found = findings(gait_clip(phases={"left_foot": 0.1, "right_foot": 0.1}))
    assert found["known"].good is None


def test_uneven_strides_are_no_steady_gait() -> None:
    clip = gait_clip()
    assert clip.contacts is not None
    on = clip.contacts.on.copy()
    on[105:145, clip.contacts.of("left_foot")] = False  # one step comes late
    with pytest.raises(ClipError, match="uneven"):
        stride_of(
            Analysis(
                clip.with_frames(clip.frames, contacts=ContactSchedule(clip.contacts.points, on))
            )
        )


def test_a_snake_does_not_walk() -> None:
    snake = load_character("snake-36")
    clip = Clip(snake, np.tile(snake.rest_q, (50, 1)), FPS)
    assert gait.findings(Analysis(clip))[0].good is None


def test_ranges_scale_as_froude_has_it() -> None:
    person = gait.LEG["person"]
    full, small = gait.scale_ranges("walk", person), gait.scale_ranges("walk", person / 4.0)
    assert full == gait.RANGES["walk"]
    assert small.speed.most == pytest.approx(full.speed.most / 2.0)
    assert small.cadence.most == pytest.approx(full.cadence.most * 2.0)
    assert small.length.most == pytest.approx(full.length.most / 4.0)
    assert small.duty == full.duty
    # the Froude number, which has no size
    one, other = full.speed.most**2 / person, small.speed.most**2 / (person / 4.0)
    assert one == pytest.approx(other)


@pytest.mark.parametrize("name", gait.RANGES)
def test_every_range_has_a_source_and_holds_together(name: str) -> None:
    ranges = gait.RANGES[name]
    for one in ranges:
        assert 0.0 < one.least < one.most
        assert any(digit.isdigit() for digit in one.source) or ":" in one.source
    # speed is cadence times length: some of what the three allow must agree
    per_minute = (
        ranges.cadence.least * ranges.length.least,
        ranges.cadence.most * ranges.length.most,
    )
    assert per_minute[0] / 60.0 < ranges.speed.most
    assert per_minute[1] / 60.0 > ranges.speed.least


def test_a_stride_without_a_name_has_none() -> None:
    stride = Stride(1.0, 0.0, 1.0, 1.0, {LEFT: 0.0, RIGHT: 0.2}, {LEFT: 0.5, RIGHT: 0.5}, 0.9)
    assert stride.name == ""


@pytest.mark.parametrize(("take", "name"), [("02_01", "walk"), ("16_35", "run")])
def test_real_people_walk_and_run_in_the_ranges(data_folder: Path, take: str, name: str) -> None:
    clip = poise.load_clip(data_folder / "cmu_bvh" / f"{take}.bvh")
    stride = stride_of(Analysis(clip))
    assert stride.name == name
    assert all(one.good for one in gait.check_ranges(stride))


@pytest.mark.parametrize("name", ["trot", "pace"])
def test_real_dogs_trot_and_pace_in_the_ranges(data_folder: Path, name: str) -> None:
    folder = data_folder / "deepmimic"
    dog = load_character(folder / "characters" / "dog3d.txt")
    clip = poise.load_clip(folder / "motions" / f"dog3d_{name}.txt", dog, prepare=False)
    stride = stride_of(Analysis(clip))
    assert stride.name == f"dog {name}"
    assert all(one.good for one in gait.check_ranges(stride))
