"""Feet, contacts, and finding them in real motions."""

from __future__ import annotations

import json
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from stepping import DATA, HUMANOID, needs_data, stepping, take

from poise import dynamics, load_character
from poise.anatomy.contact_schedule import ContactSchedule
from poise.anatomy.feet import ContactPoint, feet_of, positions, tip_of
from poise.anatomy.rest_pose import size_of
from poise.errors import ClipError, PoiseError
from poise.math.arrays import runs
from poise.model.character import Character
from poise.motion import Clip, load_clip
from poise.motion.foot_contact.detect import detect_contacts, ground_height


@pytest.mark.parametrize(
    ("name", "feet"),
    [
        ("humanoid", 2),
        ("humanoid-51", 2),
        ("humanoid-ball", 2),
        ("tail-biped", 2),
        ("dog", 4),
        ("lamp", 1),
        ("snake-36", 11),
        ("two-link", 0),
        ("plank-3", 0),
    ],
)
def test_characters_have_the_feet_one_would_count(name: str, feet: int) -> None:
    assert len({point.foot for point in feet_of(load_character(name))}) == feet


def test_points_of_the_soles_are_the_lowest_of_the_character() -> None:
    points = feet_of(HUMANOID)
    z = positions(HUMANOID, points, HUMANOID.rest_q)[:, 2]
    assert np.abs(z).max() < 1e-9
    assert len(points) == 8


def test_positions_agree_with_the_links_poses() -> None:
    rng = np.random.default_rng(0)
    q = HUMANOID.rest_q
    q[7:11] = (0.8, 0.6, 0.0, 0.0)
    points = [ContactPoint("left_foot", "left_foot", tuple(rng.normal(size=3)))]
    h, link = 1e-6, "left_foot"
    J = dynamics.jacobian(HUMANOID, q, link, points[0].pos)
    moved = q.copy()
    moved[0] += h
    speed = (positions(HUMANOID, points, moved) - positions(HUMANOID, points, q)) / h
    assert np.allclose(speed[0], J[:3, 0], atol=1e-8)


def test_runs_are_the_stretches_of_true() -> None:
    assert runs([1, 1, 0, 0, 1, 0, 1]) == [(0, 2), (4, 5), (6, 7)]
    assert runs([0, 0]) == []


@pytest.mark.parametrize("fps", [16.0, 30.0, 60.0, 120.0])
def test_contacts_of_a_known_step_are_found_at_any_rate(fps: float) -> None:
    """Within 0.07 s of the truth: that long a foot takes to be clearly off the ground."""
    clip, truth = stepping(fps)
    found = detect_contacts(clip)
    for foot in truth.feet:
        spans = found.phases(foot)
        wanted = truth.phases(foot)
        assert len(spans) == len(wanted) == 2
        slack = 0.07 * fps + 1.0
        assert np.abs(np.array(spans) - np.array(wanted)).max() <= slack


def test_noise_of_millimetres_does_not_break_a_contact() -> None:
    clip, truth = stepping()
    rng = np.random.default_rng(1)
    frames = clip.frames.copy()
    frames[:, :3] += 0.002 * rng.normal(size=(len(frames), 3))
    found = detect_contacts(Clip(HUMANOID, frames, clip.fps))
    assert [len(found.phases(foot)) for foot in truth.feet] == [2, 2]


def test_the_ground_is_found_where_the_feet_stand() -> None:
    clip, truth = stepping(height=0.3)
    found = detect_contacts(clip)
    # the soles of the clip are at 0.3 m to the tolerance of its inverse kinematics
    assert ground_height(clip) == pytest.approx(0.3, abs=1e-3)
    assert (found.on == detect_contacts(stepping()[0]).on).mean() > 0.99
    assert not detect_contacts(clip, ground=0.0).on.any()
    assert truth.on.mean() == pytest.approx(found.on.mean(), abs=0.1)


def scaled(character: Character, s: float) -> Character:
    """The same character, s times as large."""

    def times(x: tuple[float, ...]) -> tuple[float, ...]:
        return tuple(s * value for value in x)

    links = [
        replace(
            link,
            pos=times(link.pos),
            com=times(link.com),
            mass=s**3 * link.mass,
            inertia=tuple(s**5 * np.diag(np.array(link.inertia))),
            joints=tuple(replace(joint, pos=times(joint.pos)) for joint in link.joints),
            shapes=tuple(
                replace(shape, pos=times(shape.pos), size=times(shape.size))
                for shape in link.shapes
            ),
        )
        for link in character.links
    ]
    return Character(character.name, tuple(links))


@pytest.mark.parametrize("s", [0.25, 4.0])
def test_thresholds_scale_with_the_character(s: float) -> None:
    """A humanoid s times as large that steps by Froude's scale has the same contacts.

    But for the spans of time, which stay: a few frames around each footfall differ.
    """
    clip, _ = stepping()
    large = scaled(HUMANOID, s)
    assert size_of(large) == pytest.approx(s * size_of(HUMANOID))
    frames = clip.frames.copy()
    frames[:, :3] *= s
    found = detect_contacts(Clip(large, frames, clip.fps / np.sqrt(s)))
    wanted = detect_contacts(clip)
    assert (found.on == wanted.on).mean() > 0.95
    assert [len(found.phases(foot)) for foot in found.feet] == [2, 2]


def test_a_character_without_feet_is_refused_by_name() -> None:
    character = load_character("two-link")
    with pytest.raises(ClipError, match="'two-link' has no feet"):
        detect_contacts(Clip(character, np.zeros((5, 2)), 30.0))


def test_a_single_frame_stands_where_it_touches() -> None:
    one = detect_contacts(Clip(HUMANOID, HUMANOID.rest_q[None], 30.0))
    assert one.on.shape == (1, 8)
    assert one.on.all()


def test_hands_can_be_asked_for() -> None:
    clip, _ = stepping()
    found = detect_contacts(clip, also=["left_forearm"])
    assert found.feet == ("left_foot", "right_foot", "left_forearm")
    assert not found.standing("left_forearm").any()
    assert all(p.link == "left_forearm" for p in tip_of(HUMANOID, "left_forearm"))


def test_contacts_of_another_clip_are_refused() -> None:
    clip, truth = stepping()
    with pytest.raises(ClipError, match="240"):
        Clip(HUMANOID, clip.frames[:5], 30.0, contacts=truth)
    snake = load_character("snake-36")
    with pytest.raises(PoiseError, match="left_foot"):
        Clip(snake, np.tile(snake.rest_q, (240, 1)), 30.0, contacts=truth)
    with pytest.raises(ClipError, match="shape"):
        ContactSchedule(truth.points, truth.on[:, :3])
    with pytest.raises(ClipError, match="unknown foot"):
        truth.of("nose")


def test_contacts_come_back_from_a_file_bit_for_bit(tmp_path: Path) -> None:
    clip, contacts = stepping(30.0)
    clip.with_frames(clip.frames, contacts=contacts).save(tmp_path / "a.npz")
    again = load_clip(tmp_path / "a.npz").contacts
    assert again is not None
    assert again.points == contacts.points
    assert np.array_equal(again.on, contacts.on)


def test_a_file_without_contacts_is_read_and_written_as_before(tmp_path: Path) -> None:
    clip, _ = stepping(30.0)
    clip.save(tmp_path / "a.npz")
    with zipfile.ZipFile(tmp_path / "a.npz") as archive:
        assert sorted(archive.namelist()) == ["character.npy", "frames.npy", "meta.npy"]
    assert load_clip(tmp_path / "a.npz").contacts is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"on": None}, "needs the array"),
        ({"points": None}, "needs the array"),
        ({"points": [["left_foot", "left_foot"]]}, r"contacts\[0\].*\[foot, link"),
        ({"points": [["left_foot", 3, [0, 0, 0]]]}, r"contacts\[0\]"),
        ({"points": [["left_foot", "left_foot", [0, 0, "x"]]]}, r"contacts\[0\]"),
        ({"points": [["left_foot", "nose", [0, 0, 0]]]}, "unknown link 'nose'"),
        ({"on": np.full((60, 1), 2, dtype=np.uint8)}, "0 or 1"),
        ({"on": np.zeros((60, 3), dtype=np.uint8)}, r"shape \(60, 3\)"),
        ({"on": np.zeros((7, 1), dtype=np.uint8)}, "7 frames, the clip has 60"),
        ({"on": np.zeros((60, 1))}, "contacts"),
    ],
)
def test_wrong_contacts_in_a_file_are_named(
    change: dict[str, object], words: str, tmp_path: Path
) -> None:
    clip, _ = stepping(30.0)
    path = tmp_path / "a.npz"
    clip.save(path)
    given: dict[str, object] = {
        "on": np.zeros((60, 1), dtype=np.uint8),
        "points": [["left_foot", "left_foot", [0.0, 0.0, 0.0]]],
        **change,
    }
    with np.load(path) as archive:
        arrays = dict(archive)
    meta = json.loads(arrays["meta"].tobytes())
    if given["points"] is not None:
        meta["contacts"] = given["points"]
    arrays["meta"] = np.frombuffer(json.dumps(meta).encode(), dtype=np.uint8)
    if given["on"] is not None:
        arrays["contacts"] = np.asarray(given["on"])
    np.savez(path, **arrays)
    with pytest.raises(ClipError, match=words) as caught:
        load_clip(path)
    assert str(path) in str(caught.value)


@needs_data
@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "duty", "flight"),
    [
        # share of the time that a foot stands in walking: 0.58 to 0.68, running: 0.25 to 0.42
        # (Alexander 2003, Principles of Animal Locomotion); parts of strides widen it
        ("02_01.bvh", (0.55, 0.75), (0.0, 0.02)),
        ("walk.bvh", (0.55, 0.7), (0.0, 0.02)),
        ("humanoid3d_walk.txt", (0.55, 0.7), (0.0, 0.02)),
        ("16_35.bvh", (0.28, 0.45), (0.2, 0.4)),
        ("run.bvh", (0.25, 0.42), (0.2, 0.5)),
        ("humanoid3d_run.txt", (0.25, 0.42), (0.2, 0.5)),
        ("dog3d_pace.txt", (0.4, 0.65), (0.0, 0.1)),
        ("dog3d_trot.txt", (0.35, 0.55), (0.0, 0.2)),
        ("dog3d_canter.txt", (0.15, 0.4), (0.2, 0.5)),
    ],
)
def test_gaits_have_their_share_of_stance(
    name: str, duty: tuple[float, float], flight: tuple[float, float]
) -> None:
    contacts = detect_contacts(take(name))
    shares = [float(contacts.standing(foot).mean()) for foot in contacts.feet]
    assert duty[0] <= min(shares)
    assert max(shares) <= duty[1]
    assert flight[0] <= contacts.flight.mean() <= flight[1]


@needs_data
@pytest.mark.data
def test_a_cartwheel_stands_on_its_hands_where_its_feet_fly() -> None:
    clip = take("humanoid3d_cartwheel.txt")
    feet = detect_contacts(clip)
    hands = detect_contacts(clip, also=["left_wrist", "right_wrist"])
    assert feet.flight.mean() > 0.15
    assert hands.standing("left_wrist").any()
    assert hands.flight.mean() < 0.6 * feet.flight.mean()


@needs_data
@pytest.mark.data
def test_a_one_leg_balance_stands_on_one_leg() -> None:
    contacts = detect_contacts(take("49_18.bvh"))
    assert contacts.standing("LeftFoot").mean() > 0.99
    assert not contacts.standing("RightFoot")[400:].any()


@needs_data
@pytest.mark.data
def test_every_take_has_contacts() -> None:
    assert DATA is not None
    paths = [*sorted((DATA / "mass" / "motion").glob("*.bvh"))]
    for path in [*paths, Path(DATA / "cmu_bvh" / "88_07.bvh")]:
        contacts = detect_contacts(load_clip(path))
        assert contacts.on.any(axis=0).sum() >= 4, path.name
