"""GLB files against the Khronos validator: no errors and no warnings, skinned and rigid."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Validator
from test_glb import foreign, waving
from trees import random_character

from poise.characters import builtin_names, load_character
from poise.model.character import Character, Joint, Link, Shape
from poise.motion import load_clip
from poise.motion.clip import Clip
from poise.motion.formats import glb

both = pytest.mark.parametrize("skin", [True, False], ids=["skinned", "rigid"])


def complaints(
    clips: dict[str, Clip], skin: bool, folder: Path, validator: Validator
) -> dict[str, list[str]]:
    """What is wrong with the files of these clips."""
    files = [folder / f"{name}.glb" for name in clips]
    for file, clip in zip(files, clips.values(), strict=True):
        glb.write(clip, file, skin=skin)
    return {name: found for name, found in validator(files).items() if found}


@both
def test_every_built_in_character_is_valid(
    skin: bool, gltf_validator: Validator, tmp_path: Path
) -> None:
    clips = {name: waving(load_character(name), frames=8) for name in builtin_names()}
    assert complaints(clips, skin, tmp_path, gltf_validator) == {}


def odd_characters() -> list[Character]:
    """Every shape and colour; no shape at all; more joints than a byte counts; odd trees."""
    colors: list[Any] = [None, (1.0, 0.5, 0.0), (0.1, 0.2, 0.3, 0.5)]
    solids = [
        Shape("box", (0.1, 0.2, 0.3), color=colors[1]),
        Shape("cylinder", (0.1, 0.2), color=colors[2]),
        Shape.mesh([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)], color=colors[1]),
        Shape("sphere", (0.1,)),
    ]
    free, slide = Joint("a", "free"), Joint("a", "slide")
    return [
        Character("shapes", (Link.from_shapes("shapes", None, solids, joints=[free]),)),
        Character("bare", (Link("a", None, joints=(slide,), mass=1.0, inertia=(1.0,) * 3),)),
        load_character("snake-300"),
        random_character(np.random.default_rng(3), 8, several=1.0),
    ]


@both
def test_odd_characters_and_short_clips_are_valid(
    skin: bool, gltf_validator: Validator, tmp_path: Path
) -> None:
    clips = {f"{i}": waving(c, frames=1 + i) for i, c in enumerate(odd_characters())}
    assert complaints(clips, skin, tmp_path, gltf_validator) == {}


@pytest.mark.data
@both
def test_real_motions_are_valid(
    skin: bool, gltf_validator: Validator, data_folder: Path, tmp_path: Path
) -> None:
    files = ("cmu_bvh/02_01.bvh", "cmu_bvh/88_07.bvh", "mass/motion/walk.bvh")
    clips = {Path(file).stem: load_clip(data_folder / file) for file in files}
    assert complaints(clips, skin, tmp_path, gltf_validator) == {}


def test_the_file_that_the_tests_call_foreign_is_valid(
    gltf_validator: Validator, tmp_path: Path
) -> None:
    (tmp_path / "a.glb").write_bytes(foreign())
    assert gltf_validator([tmp_path / "a.glb"]) == {"a.glb": []}


def test_the_validator_sees_what_is_wrong(gltf_validator: Validator, tmp_path: Path) -> None:
    data = foreign().replace(b'"LINEAR"', b'"LINEAX"')
    (tmp_path / "a.glb").write_bytes(data)
    assert gltf_validator([tmp_path / "a.glb"])["a.glb"] != []
