"""Positions on their manifold: integrate and difference, against MuJoCo."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
from trees import random_character, random_state

from poise import load_character
from poise.errors import PoiseError
from poise.interop.mujoco import model_of
from poise.model.character import Character

CHARACTERS = [load_character("humanoid"), load_character("lamp"), load_character("two-link")]
CHARACTERS += [random_character(np.random.default_rng(seed), 6) for seed in range(6)]


@pytest.mark.parametrize("character", CHARACTERS, ids=lambda c: c.name)
def test_integrate_and_difference_are_mujocos(character: Character) -> None:
    rng = np.random.default_rng(1)
    model = model_of(character)
    q, v = random_state(rng, character)
    ahead = q.copy()
    mujoco.mj_integratePos(model, ahead, v, 0.1)
    found = character.integrate(q, v, 0.1)
    np.testing.assert_allclose(found, ahead, atol=1e-12)
    step = np.zeros(character.nv)
    mujoco.mj_differentiatePos(model, step, 1.0, q, ahead)
    np.testing.assert_allclose(character.difference(ahead, q), step, atol=1e-9)


@pytest.mark.parametrize("character", CHARACTERS, ids=lambda c: c.name)
def test_difference_is_the_inverse_of_integrate_on_any_leading_axes(character: Character) -> None:
    rng = np.random.default_rng(2)
    q, _ = random_state(rng, character)
    v = 0.5 * rng.normal(size=(2, 3, character.nv))  # less than half a turn
    ahead = character.integrate(q, v)
    assert ahead.shape == (2, 3, character.nq)
    np.testing.assert_allclose(character.difference(ahead, q), v, atol=1e-9)
    np.testing.assert_array_equal(ahead[1, 2], character.integrate(q, v[1, 2]))


def test_wrong_shapes_are_named() -> None:
    character = CHARACTERS[0]
    q, v = character.rest_q, np.zeros(character.nv)
    with pytest.raises(PoiseError, match=r"q has shape \(3,\), expected \(..., "):
        character.integrate(q[:3], v)
    with pytest.raises(PoiseError, match=r"v has shape .*: nv of 'humanoid'"):
        character.integrate(q, q)
    with pytest.raises(PoiseError, match="q0 has shape"):
        character.difference(q, v)
