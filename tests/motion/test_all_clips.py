"""Every real clip: derivatives that agree with differences, and the ways out and back."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
from conftest import find_data
from small_files import without_extras

from poise import dynamics
from poise.characters import load_character
from poise.math.arrays import Floats
from poise.model.character import Character
from poise.motion import Clip, load_clip

DATA = find_data() or Path("no data folder")
PLACES = {
    "cmu_bvh": "cmu_bvh/*.bvh",
    "cmu_asfamc": "cmu_asfamc/*.amc",
    "mass": "mass/motion/*.bvh",
    "deepmimic": "deepmimic/motions/*.txt",
}
SHORT = {"16_35", "88_07", "02_01", "run", "walk"}
"""Clips that every run of the tests takes; DeepMimic's are all short."""


def _cases() -> Sequence[object]:
    cases = []
    for family, pattern in PLACES.items():
        for path in sorted(DATA.glob(pattern)):
            slow = family != "deepmimic" and path.stem not in SHORT
            marks = [pytest.mark.slow] if slow else []
            cases.append(pytest.param(path, id=f"{family}-{path.stem}", marks=marks))
    why = pytest.mark.skip(reason="no data folder: set POISE_DATA or put it at ../shared/data")
    return cases or [pytest.param(DATA, id="missing", marks=why)]


every_clip = pytest.mark.parametrize("path", _cases())


@lru_cache(maxsize=2)
def load(path: Path) -> Clip:
    """A real clip; DeepMimic's are on the character they were made for."""
    if path.suffix == ".txt":
        name = path.stem.split("_")[0]
        body = load_character(path.parents[1] / "characters" / f"{name}.txt")
        return load_clip(path, body, prepare=False)
    return load_clip(path)


def positions(clip: Clip) -> dict[str, Floats]:
    """Where the links are in every frame [m], (frames, 3) each."""
    p, _ = dynamics.forward_kinematics(clip.character, clip.frames)
    return {link.name: p[:, i] for i, link in enumerate(clip.character.links)}


def difference(character: Character, a: Floats, b: Floats) -> Floats:
    """From a to b (k, nq), in the axes of v (k, nv): log(a^-1 b), written from DESIGN alone."""
    out = np.empty((len(a), character.nv))
    for link in character.links:
        for joint in link.joints:
            q, v = character.q_slice(joint), character.v_slice(joint)
            if joint.kind in ("hinge", "slide"):
                out[:, v] = b[:, q] - a[:, q]
                continue
            turn = slice(q.stop - 4, q.stop)
            s, u = a[:, turn][:, :1], a[:, turn][:, 1:]
            t, w = b[:, turn][:, :1], b[:, turn][:, 1:]
            vector = s * w - t * u - np.cross(u, w)
            scalar = s[:, 0] * t[:, 0] + np.sum(u * w, axis=1)
            length = np.linalg.norm(vector, axis=1)
            angle = 2.0 * np.arctan2(length, scalar)
            small = length < 1e-12
            factor = np.where(small, 2.0, angle / np.where(small, 1.0, length))
            out[:, v.stop - 3 : v.stop] = factor[:, None] * vector
            if joint.kind == "free":
                at = slice(q.start, q.start + 3)
                out[:, v.start : v.start + 3] = b[:, at] - a[:, at]
    return out


@pytest.mark.data
@every_clip
def test_velocity_and_acceleration_agree_with_differences_of_position(path: Path) -> None:
    """In the middle of every segment of the spline, from positions only.

    Differences over h and h / 2, extrapolated: exact for cubics. What is left comes from the
    normalised quaternions, h^4 times their sixth derivative, and from rounding, 1e-15 / h² in a,
    with h under a hundredth of a frame. A step from CMU's added T-pose to the take has 6e4 rad/s².
    """
    clip = load(path)
    t = (np.arange(len(clip) - 1) + 0.5) / clip.fps
    character, q = clip.character, clip.q(t)
    speed, rise = [], []
    for h in (0.006 / clip.fps, 0.003 / clip.fps):
        before, after = (difference(character, q, clip.q(t + x)) for x in (-h, h))
        speed.append((after - before) / (2 * h))
        rise.append((after + before) / h**2)
    v, a = ((4 * half - whole) / 3 for whole, half in (speed, rise))
    assert np.abs(clip.v(t) - v).max() < 1e-5
    assert np.abs(clip.a(t) - a).max() < 1e-5 + 1e-7 * np.abs(a).max()


@pytest.mark.data
@every_clip
@pytest.mark.parametrize("known", [True, False], ids=["ours", "skeleton alone"])
def test_a_clip_comes_back_from_glb(path: Path, known: bool, tmp_path: Path) -> None:
    """As poise reads its own files, and as a file of another program: from the nodes."""
    clip = load(path)
    file = tmp_path / "a.glb"
    clip.save(file)
    if not known:
        # DeepMimic's rates, such as 30.0012, would be taken for whole ones
        file.write_bytes(without_extras(file.read_bytes()))
        assert load_clip(file).fps == pytest.approx(clip.fps, rel=1e-4)
    again = load_clip(file, fps=clip.fps)
    assert (len(again), again.fps) == (len(clip), clip.fps)
    assert_same_places(again, clip, 1e-4)


@pytest.mark.data
@every_clip
def test_a_clip_comes_back_from_bvh(path: Path, tmp_path: Path) -> None:
    clip = load(path)
    clip.save(tmp_path / "a.bvh")
    # a file does not say its unit, and a dog would be taken for a person in inches
    unit = 0.01 if clip.source is None else clip.source.unit
    again = load_clip(tmp_path / "a.bvh", unit=unit)
    assert len(again) == len(clip)
    assert again.fps == pytest.approx(clip.fps, rel=1e-9)
    assert_same_places(again, clip, 1e-5)


@pytest.mark.data
@every_clip
def test_a_clip_comes_back_from_npz_bit_for_bit(path: Path, tmp_path: Path) -> None:
    clip = load(path)
    clip.save(tmp_path / "a.npz")
    again = load_clip(tmp_path / "a.npz")
    assert (again.fps, again.source) == (clip.fps, clip.source)
    assert np.array_equal(again.frames, clip.frames)


def assert_same_places(again: Clip, clip: Clip, atol: float) -> None:
    """All links that both have are in the same places; a few that end without length are merged."""
    found, expected = positions(again), positions(clip)
    both = found.keys() & expected.keys()
    assert len(both) >= 0.8 * len(expected)
    for name in both:
        np.testing.assert_allclose(found[name], expected[name], atol=atol, err_msg=name)
