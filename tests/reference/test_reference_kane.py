"""Kane's recursion in NumPy, against Newton-Euler in the core, MuJoCo, and closed forms."""

from __future__ import annotations

import numpy as np
import peers
import pytest
import trees
from hypothesis import given, settings
from numpy.random import Generator
from numpy.typing import NDArray

from poise import dynamics
from poise.characters import load_character
from poise.errors import PoiseError
from poise.math.rotation import quat_matrix
from poise.model.character import Character, Joint, Link
from poise.reference.kane import kane_inverse_dynamics

Array = NDArray[np.float64]
Case = tuple[Character, Generator]

# sums of some hundred terms in two orders and two kinds of axes
ROUNDING = 1e-10


def gap(ours: Array, theirs: Array) -> float:
    """The largest difference against the largest entry, or against one."""
    return float(np.abs(ours - theirs).max() / (1 + np.abs(theirs).max()))


def plate(kind: str = "ball") -> Character:
    """One flat link that turns about its center of mass."""
    inertia = (0.01, 0.03, 0.04)
    link = Link("plate", joints=(Joint("turn", kind),), mass=2.0, inertia=inertia)  # type: ignore[arg-type]
    return Character("plate", (link,))


@given(trees.cases(10))
@settings(max_examples=60)
def test_the_recursion_gives_the_forces_of_newton_and_euler(case: Case) -> None:
    character, rng = case
    q, v = trees.random_state(rng, character, speed=3.0)
    a = 5.0 * rng.normal(size=character.nv)
    ours = kane_inverse_dynamics(character, q, v, a)
    assert gap(ours, dynamics.inverse_dynamics(character, q, v, a)) < ROUNDING


@given(trees.cases(8))
@settings(max_examples=30)
def test_external_wrenches_and_any_gravity_enter_as_in_the_core(case: Case) -> None:
    character, rng = case
    q, v = trees.random_state(rng, character)
    a, g = rng.normal(size=character.nv), rng.normal(size=3)
    push = 20.0 * rng.normal(size=(len(character.links), 6))
    ours = kane_inverse_dynamics(character, q, v, a, gravity=g, external=push)
    theirs = dynamics.inverse_dynamics(character, q, v, a, gravity=g, external=push)
    assert gap(ours, theirs) < ROUNDING


@pytest.mark.parametrize("name", ["humanoid-51", "humanoid", "dog", "snake-72", "two-link"])
def test_it_gives_the_forces_of_mujoco(name: str) -> None:
    mujoco = pytest.importorskip("mujoco")
    character, rng = load_character(name), np.random.default_rng(3)
    q, v = trees.random_state(rng, character)
    data = peers.mujoco_state(peers.to_mujoco(character), q, v)
    data.qacc[:] = rng.normal(size=character.nv)
    mujoco.mj_inverse(data.model, data)
    # MuJoCo diagonalises the inertias first
    assert gap(kane_inverse_dynamics(character, q, v, data.qacc), data.qfrc_inverse) < 1e-9


def test_a_steady_spin_needs_the_gyroscopic_torque_and_nothing_else() -> None:
    # Euler's equations: in the body's axes the torque is w x I w
    v, I = np.array([20.0, 0.0, 20.0]), np.diag([0.01, 0.03, 0.04])
    tau = kane_inverse_dynamics(plate(), [1, 0, 0, 0], v, np.zeros(3))
    np.testing.assert_allclose(tau, np.cross(v, I @ v), rtol=0, atol=1e-12)
    assert tau[1] == pytest.approx(-12.0)


def test_as_printed_the_torque_of_a_steady_spin_is_missing() -> None:
    v = np.array([20.0, 0.0, 20.0])
    tau = kane_inverse_dynamics(plate(), [1, 0, 0, 0], v, np.zeros(3), as_printed=True)
    np.testing.assert_allclose(tau, 0.0, atol=1e-12)


def test_as_printed_differs_by_the_gyroscopic_torques_of_all_outboard_links() -> None:
    character, rng = load_character("humanoid-51"), np.random.default_rng(5)
    q, v = trees.random_state(rng, character, speed=5.0)
    a = rng.normal(size=character.nv)
    right = kane_inverse_dynamics(character, q, v, a)
    missing = right - kane_inverse_dynamics(character, q, v, a, as_printed=True)
    # the same torques, found by pushing every link with its own: virtual work through Jacobians
    pushes = np.zeros(character.nv)
    for link in character.links:
        J = dynamics.jacobian(character, q, link.name)[3:]
        R = _rotation(character, q, link.name)
        I = R @ np.asarray(link.inertia) @ R.T
        pushes += J.T @ np.cross(J @ v, I @ J @ v)
    assert gap(missing, pushes) < ROUNDING
    # no forces are missing, and some of the torque
    np.testing.assert_allclose(missing[:3], 0.0, atol=1e-12)
    assert np.abs(missing[3:]).max() > 0.01 * np.abs(right[3:]).max()


def test_in_a_plane_nothing_is_missing() -> None:
    character, rng = load_character("two-link"), np.random.default_rng(6)
    q, v, a = (10.0 * rng.normal(size=2) for _ in range(3))
    right = kane_inverse_dynamics(character, q, v, a)
    printed = kane_inverse_dynamics(character, q, v, a, as_printed=True)
    np.testing.assert_allclose(printed, right, rtol=0, atol=1e-12)


def test_a_free_root_at_rest_needs_its_weight_at_its_origin() -> None:
    character = load_character("humanoid-51")
    q = character.rest_q
    tau = kane_inverse_dynamics(character, q, np.zeros(character.nv), np.zeros(character.nv))
    weight = 9.81 * character.mass
    arm = dynamics.center_of_mass(character, q) - q[:3]
    np.testing.assert_allclose(tau[:3], [0, 0, weight], rtol=0, atol=1e-9)
    np.testing.assert_allclose(tau[3:6], np.cross(arm, [0, 0, weight]), rtol=0, atol=1e-9)


def test_a_batch_is_refused() -> None:
    with pytest.raises(PoiseError, match="one state without batch"):
        kane_inverse_dynamics(plate(), np.ones((2, 4)), np.ones((2, 3)), np.ones((2, 3)))


def _rotation(character: Character, q: Array, link: str) -> Array:
    _, quat = dynamics.forward_kinematics(character, q)
    index = [x.name for x in character.links].index(link)
    R: Array = quat_matrix(quat[index])
    return R
