"""What is the same on every CPU: built-in characters, the clips that fit them, recordings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from arithmetic import BLAS, ISAS, printed
from bits import bits

from poise.characters import FOLDER, build, builtin_names, load_character
from poise.characters.__main__ import write
from poise.errors import CharacterError
from poise.model.formats import yaml
from poise.model.inertia import largest_moment
from poise.motion.library import builtin_clips

HASHES = """
import hashlib, sys
from dataclasses import fields
import numpy as np
from poise import load_character, suggest_gains
from poise.model.inertia import composite_inertia

def arrays(x):
    return [a for f in fields(x) if isinstance(a := getattr(x, f.name), np.ndarray)]

for name in sys.argv[1:]:
    character = load_character(name)
    gains = suggest_gains(character)
    numbers = [*arrays(character.forest), *composite_inertia(character.forest), gains.kp, gains.kd]
    data = repr((character.links, character.limbs)).encode()
    data += b"".join(x.tobytes() for x in numbers)
    print(name, hashlib.sha256(data).hexdigest())
"""

FIT = """
import poise
from poise.motion.library import builtin_clips
for name in builtin_clips():
    clip = poise.load_clip(name)
    character = poise.load_character(clip.character.name)
    print(name, clip.character is character, poise.load_clip(name, character) is clip)
"""

RECORD = """
import sys
import poise
path, dtype = sys.argv[1:]
clip = poise.load_clip("walk", poise.load_character("humanoid"))
world = poise.World(clip.character, dt=1 / 60, dtype=dtype)
world.reset(clip.state(0.0))
servo, recording = poise.StablePD(world, root="soft"), poise.Recording(world)
for t in world.until(1.0):
    world.step(servo(world.state, clip.target(t + world.dt)))
    recording.append()
recording.save(path)
"""

RESUME = """
import sys
import numpy as np
import poise
recording = poise.load_recording(sys.argv[1])
world = recording.world(len(recording) - 1)
clip = poise.load_clip("walk", recording.scene.characters[0])
servo = poise.StablePD(world, root="soft")
for _ in range(20):
    world.step(servo(world.state, clip.target(world.time + world.dt)))
    print(np.concatenate([world.state.q, world.state.v]).astype(float).tobytes().hex())
"""

RETARGET = """
import poise
made = poise.load_clip("jab").retargeted(poise.load_character("humanoid-51"))
print(made.contacts.on.tobytes().hex())
print(made.frames.tobytes().hex())
"""


def slow_but_first(values: Sequence[str]) -> list[Any]:
    """The values of a parameter; those after the first run under `make test-all` only."""
    first, *others = values
    return [first, *(pytest.param(value, marks=pytest.mark.slow) for value in others)]


# built-in characters


def test_built_in_characters_have_the_same_bits_with_every_blas_and_without_avx() -> None:
    names = (*builtin_names(), "snake-21", "plank-3")
    first, *others = (printed(HASHES, *names, blas=blas) for blas in BLAS)
    assert len(first) == len(names)
    for other in (*others, printed(HASHES, *names, plain=True)):
        assert other == first


@pytest.mark.parametrize("name", builtin_names())
def test_the_file_of_a_built_in_character_is_what_its_program_computes(name: str) -> None:
    ours, made = load_character(name), build(name)
    assert (ours.name, ours.limbs) == (made.name, made.limbs)
    for link, other in zip(ours.links, made.links, strict=True):
        assert (link.name, link.parent) == (other.name, other.parent)
        assert link.joints == other.joints
        for value in ("pos", "quat", "mass", "com", "inertia"):
            np.testing.assert_allclose(getattr(link, value), getattr(other, value), atol=1e-12)
        for shape, twin in zip(link.shapes, other.shapes, strict=True):
            assert (shape.kind, shape.color) == (twin.kind, twin.color)
            for value in ("size", "pos", "quat", "vertices"):
                np.testing.assert_allclose(getattr(shape, value), getattr(twin, value), atol=1e-12)


@pytest.mark.parametrize("name", builtin_names())
def test_the_file_of_a_built_in_character_is_yaml_as_well(name: str) -> None:
    assert bits(yaml.load(FOLDER / f"{name}.yaml")) == bits(load_character(name))


def test_rounding_alone_does_not_write_the_file_of_a_built_in_character(tmp_path: Path) -> None:
    path, made = tmp_path / "two-link.yaml", build("two-link")
    for mass, anew in ((1.54, False), (np.nextafter(1.54, 2.0), False), (1.55, True)):
        kept = replace(made, links=(replace(made.links[0], mass=float(mass)), made.links[1]))
        path.write_text(yaml.dump_lines(kept))
        assert write("two-link", tmp_path) is anew
    assert bits(yaml.parse_lines(path.read_text())) == bits(made)
    with pytest.raises(CharacterError, match="'two-lnk'; did you mean 'two-link'"):
        write("two-lnk", tmp_path)


def test_the_largest_moment_is_lapacks() -> None:
    x = np.random.default_rng(0).normal(size=(500, 3, 3))
    inertia = np.concatenate([x @ x.swapaxes(-1, -2), np.zeros((1, 3, 3)), np.ones((1, 3, 3))])
    expected = np.linalg.eigvalsh(inertia)[:, -1]
    np.testing.assert_allclose(largest_moment(inertia), expected, rtol=1e-14, atol=1e-300)


# clips and recordings


@pytest.mark.parametrize("blas", slow_but_first(BLAS))
def test_a_built_in_clip_moves_the_loaded_built_in_character(blas: str) -> None:
    assert printed(FIT, blas=blas) == [f"{name} True True" for name in builtin_clips()]


def states(path: Path, blas: str = "", isa: str = "") -> list[bytes]:
    return [bytes.fromhex(line) for line in printed(RESUME, path, blas=blas, isa=isa)]


@pytest.mark.parametrize("dtype", slow_but_first(["float64", "float32"]))
def test_a_recording_goes_on_bit_for_bit_with_another_blas(dtype: str, tmp_path: Path) -> None:
    printed(RECORD, tmp_path / "a.npz", dtype, blas=BLAS[0])
    first, *others = (states(tmp_path / "a.npz", blas) for blas in BLAS)
    assert len(first) == 20
    for other in others:
        assert other == first


@pytest.mark.parametrize("made", slow_but_first(sorted({ISAS[0], ISAS[-1]})))
def test_a_recording_goes_on_with_another_instruction_set(made: str, tmp_path: Path) -> None:
    printed(RECORD, tmp_path / "a.npz", "float64", isa=made)
    first, *others = (states(tmp_path / "a.npz", isa=isa) for isa in ISAS)
    for other in others:
        # of the first step: later ones magnify what rounding did in it
        np.testing.assert_allclose(
            np.frombuffer(other[0]), np.frombuffer(first[0]), rtol=0.0, atol=1e-9
        )


def test_retargeting_agrees_with_every_blas() -> None:
    first, *others = (printed(RETARGET, blas=blas) for blas in BLAS)
    for other in others:
        assert other[0] == first[0]
        a, b = (np.frombuffer(bytes.fromhex(x[1])) for x in (first, other))
        np.testing.assert_allclose(a, b, rtol=0.0, atol=1e-9)
