"""Retargeting real takes: ten of the CMU and eight of MASS on three humanoids, a dog on a dog."""

from __future__ import annotations

import time
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
import retarget_claims as claims
from conftest import find_data

import poise
from poise.motion import Clip, load_clip
from poise.motion.retargeting.retarget import Retargeted, retarget

DATA = find_data()
FILES = [] if DATA is None else sorted((*DATA.glob("cmu_bvh/*.bvh"), *DATA.glob("mass/*/*.bvh")))
PEOPLE = ("humanoid", "humanoid-51", "humanoid-ball")
QUICK = {("16_35", "humanoid"), ("run", "humanoid-51"), ("cart", "humanoid-ball")}

on_all = pytest.mark.parametrize(
    ("path", "name"),
    [
        pytest.param(
            path,
            name,
            id=f"{path.stem}-{name}",
            marks=[] if (path.stem, name) in QUICK else [pytest.mark.slow],
        )
        for path in FILES
        for name in PEOPLE
    ],
)


@lru_cache(maxsize=64)
def taken(path: Path, name: str) -> tuple[Clip, Retargeted]:
    """A take, and what it is on a character."""
    source = load_clip(path)
    return source, retarget(source, poise.load_character(name))


@on_all
def test_limbs_trunk_head_and_feet_point_as_the_sources(path: Path, name: str) -> None:
    claims.limbs_point_alike(*taken(path, name))


@on_all
def test_feet_neither_skate_nor_sink_nor_float(path: Path, name: str) -> None:
    claims.feet_stand(taken(path, name)[1])


@on_all
def test_no_joint_flips(path: Path, name: str) -> None:
    claims.no_joint_flips(*taken(path, name))


@on_all
def test_neither_hands_nor_anything_else_is_in_the_ground(path: Path, name: str) -> None:
    claims.nothing_in_the_ground(taken(path, name)[1])


@on_all
def test_joints_jerk_no_more_than_the_sources(path: Path, name: str) -> None:
    claims.no_jitter(*taken(path, name))


@pytest.mark.parametrize("gait", ["pace", "trot", "canter"])
def test_deepmimics_dog_gives_its_gaits_to_ours(data_folder: Path, gait: str) -> None:
    folder = data_folder / "deepmimic"
    theirs = poise.load_character(folder / "characters" / "dog3d.txt")
    source = load_clip(folder / "motions" / f"dog3d_{gait}.txt", theirs, prepare=False)
    made = retarget(source, poise.load_character("dog"))
    claims.limbs_point_alike(source, made)
    claims.feet_stand(made)
    claims.no_joint_flips(source, made)
    claims.nothing_in_the_ground(made)
    assert made.clip.contacts is not None
    assert len(made.clip.contacts.feet) == 4


@pytest.mark.slow
@pytest.mark.parametrize("name", PEOPLE)
def test_forty_five_seconds_take_less_than_ten(data_folder: Path, name: str) -> None:
    take = load_clip(data_folder / "cmu_bvh" / "42_01.bvh")
    frames = np.concatenate([take.frames[1:]] * 5)[:5400]
    long = Clip(take.character, frames, 120.0)
    begin = time.process_time()
    long.retargeted(poise.load_character(name))
    # 2.0, 3.2 and 2.8 s on a core that is not quite idle
    assert time.process_time() - begin < 10.0
