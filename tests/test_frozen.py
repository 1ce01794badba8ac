"""What a change of structure must not change: results of the core, of the pipeline, and files."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent / "frozen"))
import scenarios

import poise
from poise import _core
from poise.motion.keyframes.file import load_keyframes

HERE = scenarios.HERE
EXPECTED = json.loads((HERE / "core.json").read_text())
FILES = np.load(HERE / "files.npz")
PIPELINE = np.load(HERE / "pipeline.npz")


def features() -> list[str]:
    """What decides the last bits of NumPy's own loops."""
    found = importlib.import_module("numpy._core._multiarray_umath").__cpu_features__
    return sorted(name for name, on in found.items() if on)


@pytest.mark.parametrize("isa", _core.supported_isas())
def test_the_core_gives_the_same_bits(isa: str) -> None:
    if features() != EXPECTED["features"]:
        pytest.skip("the hashes were made on a CPU with other instruction sets")
    environment = {**os.environ, "POISE_ISA": isa, "OPENBLAS_CORETYPE": "Prescott"}
    ran = subprocess.run(
        [sys.executable, str(HERE / "scenarios.py"), "core"],
        env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    found = json.loads(ran.stdout)
    differ = [name for name, value in EXPECTED[isa].items() if found.get(name) != value]
    assert not differ


def test_the_pipeline_gives_the_same_numbers() -> None:
    found = scenarios.pipeline()
    for name in PIPELINE.files:
        np.testing.assert_allclose(found[name], PIPELINE[name], rtol=0, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("name", ["mixed", "balanced"])
def test_recordings_open_and_go_on(name: str) -> None:
    found = scenarios.contents(poise.load_recording(HERE / f"files/{name}.npz"), name)
    for key, array in found.items():
        np.testing.assert_allclose(array, FILES[key], rtol=1e-12, atol=1e-9, err_msg=key)


@pytest.mark.parametrize("ending", ["npz", "bvh", "glb", "txt"])
def test_clips_open(ending: str) -> None:
    found = scenarios.clip_in(HERE / f"files/clip.{ending}")
    np.testing.assert_allclose(found, FILES[f"clip.{ending}"], rtol=0, atol=1e-12)


@pytest.mark.parametrize("ending", ["yaml", "xml"])
def test_characters_open(ending: str) -> None:
    character = poise.load_character(HERE / f"files/character.{ending}")
    q = poise.World(character, dt=1 / 60, contact=None).state.q
    found = poise.dynamics.mass_matrix(character, q)
    np.testing.assert_allclose(found, FILES[f"character.{ending}"], rtol=0, atol=1e-12)


def test_keyframes_open() -> None:
    keys = load_keyframes(HERE / "files/jab.keys.yaml")
    assert keys.character.name == "humanoid-ball"
