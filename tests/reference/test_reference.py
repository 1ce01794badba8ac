"""The NumPy twins, against MuJoCo, Pinocchio, each other, finite differences and nature."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

import numpy as np
import peers
import pytest
import trees
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike, NDArray

from poise import reference
from poise.characters import load_character
from poise.errors import PoiseError
from poise.math import rotation
from poise.model import configuration
from poise.model.character import Character, Joint, Link
from poise.reference import spatial
from poise.reference.aba import Method
from poise.reference.drive import Form, in_present_frames
from poise.reference.effort_limits import bounded, effort_limits
from poise.reference.factor import expanded_parents, factor_sparse
from poise.reference.tree import WORLD, build_tree

Array = NDArray[np.float64]
Case = tuple[Character, Array, Array, np.random.Generator]
Drawn = tuple[Character, np.random.Generator]

BUILT_IN = ("humanoid", "dog", "snake-36", "snake-72", "snake-195", "two-link")
SEEDS = range(16)

# sums of some hundred terms of either engine, and MuJoCo's diagonalisation of the inertias; what
# we see is 1e-13
PEER = 1e-9
# two orders of the same sums
ROUNDING = 1e-11
# central differences with step 1e-5: h² and eps / h are both 1e-10, times third derivatives
DIFFERENCES = 1e-7
STEP = 1e-5

few = settings(max_examples=25)
vectors = st.lists(st.floats(-3, 3), min_size=3, max_size=3).map(np.array)
motions = st.lists(st.floats(-3, 3), min_size=6, max_size=6).map(np.array)
rotations = vectors.map(rotation.exp)


@lru_cache
def subject(name: str | int) -> Case:
    """A built-in character or a random tree, in a random state."""
    rng = np.random.default_rng(name if isinstance(name, int) else 1)
    if isinstance(name, str):
        character = load_character(name)
    else:
        bases: tuple[trees.Base, ...] = ("fixed", "free")
        character = trees.random_character(rng, 1 + name % 10, base=bases[name % 2])
    return character, *trees.random_state(rng, character), rng


everybody = pytest.mark.parametrize("name", [*BUILT_IN, *SEEDS])


def assert_close(ours: ArrayLike, theirs: ArrayLike, tolerance: float) -> None:
    """The largest difference is small against the largest entry, or against one."""
    ours, theirs = np.asarray(ours, dtype=float), np.asarray(theirs, dtype=float)
    assert ours.shape == theirs.shape
    scale = 1 + np.abs(theirs).max(initial=0)
    assert np.abs(ours - theirs).max(initial=0) <= tolerance * scale


def chain(*joints: Joint) -> Character:
    """Links in a row, each with one of the joints."""
    links = [
        Link(
            f"link{i}",
            f"link{i - 1}" if i else None,
            pos=(0.0, 0.0, -0.4) if i else (0.0, 0.0, 0.0),
            joints=(joint,),
            mass=1.0 + i,
            com=(0.0, 0.01, -0.2),
            inertia=(0.02, 0.02, 0.01),
        )
        for i, joint in enumerate(joints)
    ]
    return Character("chain", tuple(links))


# spatial algebra


@given(vectors)
def test_log_undoes_exp(r: Array) -> None:
    # vectors longer than pi come back the short way round
    r = r * min(1.0, 3.1 / max(float(np.linalg.norm(r)), 1e-300))
    assert_close(rotation.log(rotation.exp(r)), r, 1e-14)


@given(rotations)
def test_exp_undoes_log_up_to_sign(q: Array) -> None:
    back = rotation.exp(rotation.log(q))
    assert_close(back * np.sign(back @ q), q, 1e-14)


@given(rotations)
def test_log_goes_the_short_way_round(q: Array) -> None:
    assert np.linalg.norm(rotation.log(q)) <= np.pi + 1e-15
    assert (rotation.log(-q) == rotation.log(q)).all() or q[0] == 0


@pytest.mark.parametrize("angle", [0.0, 1e-300, 1e-160, 1e-20, 1e-9, 1e-4])
def test_log_and_exp_keep_every_digit_of_small_angles(angle: float) -> None:
    r = angle * np.array([0.6, 0.0, -0.8])
    np.testing.assert_allclose(rotation.log(rotation.exp(r)), r, rtol=1e-15)


@pytest.mark.parametrize("gap", [0.0, 1e-12, 1e-8, 1e-3])
def test_log_is_accurate_near_pi(gap: float) -> None:
    r = (np.pi - gap) * np.array([0.6, 0.0, -0.8])
    # at pi both ways are equally short
    back = rotation.log(rotation.exp(r))
    assert_close(back * np.sign(back @ r), r, 1e-15)


@given(rotations, rotations, vectors)
def test_quaternions_multiply_as_rotations_follow_each_other(a: Array, b: Array, x: Array) -> None:
    assert_close(
        rotation.rotate(rotation.multiply(a, b), x),
        rotation.rotate(a, rotation.rotate(b, x)),
        1e-14,
    )


@given(motions, motions, motions)
def test_force_cross_product_keeps_power(v: Array, m: Array, f: Array) -> None:
    # f . m does not change when both are carried along by v
    assert abs((spatial.crossf(v) @ f) @ m + f @ (spatial.crossm(v) @ m)) < 1e-12


@given(rotations, vectors)
def test_transforms_into_and_out_of_a_frame_are_inverse(q: Array, p: Array) -> None:
    R = rotation.quat_matrix(q)
    assert_close(spatial.transform_into(R, p) @ spatial.transform_out_of(R, p), np.eye(6), 1e-13)


@given(motions, vectors)
def test_spatial_inertia_carries_the_kinetic_energy(v: Array, com: Array) -> None:
    w, u = v[:3], v[3:] + np.cross(v[:3], com)
    inertia = np.diag([2.0, 3.0, 4.0])
    energy = 1.5 * u @ u + w @ inertia @ w / 2
    assert v @ spatial.spatial_inertia(3.0, com, inertia) @ v / 2 == pytest.approx(energy)


# the tree


def test_several_joints_on_one_link_become_bodies_without_mass() -> None:
    joints = tuple(Joint(n, "hinge", axis) for n, axis in (("x", (1, 0, 0)), ("y", (0, 1, 0))))
    link = Link("link", joints=joints, mass=1.0, inertia=(1.0, 1.0, 1.0))
    tree = build_tree(Character("one", (link,)))
    assert [body.parent for body in tree.bodies] == [WORLD, 0]
    assert [bool(body.inertia.any()) for body in tree.bodies] == [False, True]


def test_welded_links_join_the_body_that_carries_them() -> None:
    arm = chain(Joint("a", "hinge"))
    hand = Link("hand", "link0", pos=(0, 0, -0.4), mass=2.0, inertia=(0.1, 0.1, 0.1))
    tree = build_tree(Character("arm", (*arm.links, hand)))
    assert tree.link_body == (0, 0)
    assert tree.bodies[0].inertia[3, 3] == 3.0


# MuJoCo


@everybody
def test_forward_kinematics_matches_mujoco(name: str | int) -> None:
    character, q, v, _ = subject(name)
    data = peers.mujoco_state(peers.to_mujoco(character), q, v)
    position, quat = reference.forward_kinematics(character, q)
    assert_close(position, data.xpos[1:], PEER)
    # q and -q are the same rotation
    assert_close(np.abs(np.sum(quat * data.xquat[1:], axis=1)), np.ones(len(quat)), PEER)


@everybody
def test_mass_matrix_matches_mujoco(name: str | int) -> None:
    character, q, v, _ = subject(name)
    model = peers.to_mujoco(character)
    data = peers.mujoco_state(model, q, v)
    M = peers.mujoco_mass_matrix(model, data)
    assert_close(reference.mass_matrix(character, q), M, PEER)


@everybody
def test_bias_force_matches_mujoco(name: str | int) -> None:
    character, q, v, _ = subject(name)
    gravity = (1.0, 2.0, -9.0)
    data = peers.mujoco_state(peers.to_mujoco(character, gravity=gravity), q, v)
    h = reference.bias_force(character, q, v, gravity=gravity)
    assert_close(h, data.qfrc_bias, PEER)


@everybody
def test_forward_dynamics_with_pushed_links_matches_mujoco(name: str | int) -> None:
    character, q, v, rng = subject(name)
    tau, external = rng.normal(size=character.nv), rng.normal(size=(len(character.links), 6))
    model = peers.to_mujoco(character)
    theirs = peers.mujoco_forward_dynamics(model, q, v, tau, external)
    ours = reference.forward_dynamics(character, q, v, tau, external=external)
    assert_close(ours, theirs, PEER)


@everybody
def test_jacobians_match_mujoco(name: str | int) -> None:
    character, q, v, rng = subject(name)
    model = peers.to_mujoco(character)
    data = peers.mujoco_state(model, q, v)
    for link in character.links[-8:]:
        point = rng.normal(size=3)
        J, _ = peers.mujoco_jacobian(model, data, link.name, point)
        assert_close(reference.jacobian(character, q, link.name, point), J, PEER)


@everybody
def test_jacobian_bias_matches_mujoco(name: str | int) -> None:
    character, q, v, rng = subject(name)
    if any([j.kind for j in link.joints] == ["ball", "slide"] for link in character.links):
        pytest.skip("mj_jacDot is wrong for a slide after a ball; finite differences cover it")
    model = peers.to_mujoco(character)
    data = peers.mujoco_state(model, q, v)
    for link in character.links[-8:]:
        point = rng.normal(size=3)
        _, J_rate = peers.mujoco_jacobian(model, data, link.name, point)
        assert_close(reference.jacobian_bias(character, q, v, link.name, point), J_rate @ v, PEER)


@everybody
def test_center_of_mass_and_momentum_match_mujoco(name: str | int) -> None:
    character, q, v, _ = subject(name)
    data = peers.mujoco_state(peers.to_mujoco(character), q, v)
    A, _ = reference.centroidal_momentum(character, q, v)
    L, H = np.split(A @ v, 2)
    assert_close(reference.center_of_mass(character, q), data.subtree_com[1], PEER)
    assert_close(L, character.mass * data.subtree_linvel[1], PEER)
    assert_close(H, data.subtree_angmom[1], PEER)


@everybody
def test_energy_matches_mujoco(name: str | int) -> None:
    character, q, v, _ = subject(name)
    data = peers.mujoco_state(peers.to_mujoco(character), q, v)
    assert_close(reference.energy(character, q, v), data.energy[::-1], PEER)


# Pinocchio


@everybody
def test_mass_matrix_matches_pinocchio(name: str | int) -> None:
    character, q, _, _ = subject(name)
    theirs = peers.to_pinocchio(character).mass_matrix(q)
    assert_close(reference.mass_matrix(character, q), theirs, PEER)


@everybody
def test_inverse_dynamics_matches_pinocchio(name: str | int) -> None:
    character, q, v, rng = subject(name)
    a = rng.normal(size=character.nv)
    theirs = peers.to_pinocchio(character).inverse_dynamics(q, v, a)
    assert_close(reference.inverse_dynamics(character, q, v, a), theirs, PEER)


@everybody
def test_forward_dynamics_matches_pinocchio(name: str | int) -> None:
    if name == "snake-195":
        pytest.skip("Pinocchio's aba loses all digits on 63 ball joints: its rnea does not undo it")
    character, q, v, rng = subject(name)
    tau = rng.normal(size=character.nv)
    theirs = peers.to_pinocchio(character).forward_dynamics(q, v, tau)
    assert_close(reference.forward_dynamics(character, q, v, tau), theirs, PEER)


@everybody
def test_centroidal_momentum_and_its_bias_match_pinocchio(name: str | int) -> None:
    character, q, v, _ = subject(name)
    if WORLD in build_tree(character).link_body:
        pytest.skip("our Pinocchio model leaves out what is welded to the world")
    A, bias = peers.to_pinocchio(character).centroidal_momentum(q, v)
    ours = reference.centroidal_momentum(character, q, v)
    assert_close(ours[0], A, PEER)
    assert_close(ours[1], bias, PEER)


# one algorithm against another


@few
@given(trees.cases())
def test_forward_dynamics_undoes_inverse_dynamics(
    case: Drawn,
) -> None:
    character, rng = case
    q, v = trees.random_state(rng, character)
    a, external = rng.normal(size=character.nv), rng.normal(size=(len(character.links), 6))
    tau = reference.inverse_dynamics(character, q, v, a, external=external)
    back = reference.inverse_dynamics(
        character,
        q,
        v,
        reference.forward_dynamics(character, q, v, tau, external=external),
        external=external,
    )
    # compared as forces, so that the condition of M does not enter
    assert_close(back, tau, ROUNDING)


@few
@given(trees.cases())
def test_columns_of_the_mass_matrix_are_unit_responses(
    case: Drawn,
) -> None:
    character, rng = case
    q, _ = trees.random_state(rng, character)
    rest = np.zeros(character.nv)
    columns = [
        reference.inverse_dynamics(character, q, rest, e, gravity=(0, 0, 0))
        for e in np.eye(character.nv)
    ]
    assert_close(reference.mass_matrix(character, q), np.transpose(columns), ROUNDING)


@few
@given(trees.cases())
def test_mass_matrix_is_symmetric_and_positive(case: Drawn) -> None:
    character, rng = case
    M = reference.mass_matrix(character, trees.random_state(rng, character)[0])
    assert_close(M, M.T, 1e-15)
    assert np.linalg.eigvalsh(M)[0] > 0


@few
@given(trees.cases())
def test_kinetic_energy_is_that_of_the_mass_matrix(
    case: Drawn,
) -> None:
    character, rng = case
    q, v = trees.random_state(rng, character)
    kinetic, _ = reference.energy(character, q, v)
    assert kinetic == pytest.approx(v @ reference.mass_matrix(character, q) @ v / 2, rel=ROUNDING)


@few
@given(trees.cases())
def test_external_forces_act_through_the_jacobian(
    case: Drawn,
) -> None:
    character, rng = case
    q, v = trees.random_state(rng, character)
    external = rng.normal(size=(len(character.links), 6))
    pushed = sum(
        reference.jacobian(character, q, link.name).T @ wrench
        for link, wrench in zip(character.links, external, strict=True)
    )
    h = reference.bias_force(character, q, v) - pushed
    assert_close(reference.bias_force(character, q, v, external=external), h, ROUNDING)


@pytest.mark.parametrize("method", ["df", "sf", "pcg"])
@everybody
def test_maba_agrees_with_factorization(name: str | int, method: Method) -> None:
    character, q, v, rng = subject(name)
    # gains stiff enough that PCG converges to rounding
    kp, kd, dt = rng.uniform(100, 300, character.nv), 30.0, 1 / 60
    target = trees.random_state(rng, character)
    a, tau = reference.stable_pd(character, q, v, target, kp, kd, dt)
    b, sigma = reference.stable_pd(character, q, v, target, kp, kd, dt, method)
    assert_close(b, a, 1e-9)  # rounding times a condition of up to 1e4
    assert_close(sigma, tau, 1e-9)


@few
@given(trees.cases())
def test_sparse_factors_multiply_to_the_mass_matrix(
    case: Drawn,
) -> None:
    character, rng = case
    M = reference.mass_matrix(character, trees.random_state(rng, character)[0])
    L, D = factor_sparse(expanded_parents(character), M)
    assert_close(L.T @ np.diag(D) @ L, M, ROUNDING)


def test_sparse_factors_leave_separate_branches_apart() -> None:
    trunk = chain(Joint("root", "free"))
    arms = [
        Link(n, "link0", joints=(Joint(n, "ball"),), mass=1.0, inertia=(1.0, 1.0, 1.0))
        for n in ("left", "right")
    ]
    character = Character("arms", (*trunk.links, *arms))
    assert expanded_parents(character) == [-1, 0, 1, 2, 3, 4, 5, 6, 7, 5, 9, 10]
    q, _ = trees.random_state(np.random.default_rng(0), character)
    L, _ = factor_sparse(expanded_parents(character), reference.mass_matrix(character, q))
    assert (L[9:, 6:9] == 0).all()
    assert L[9:, :6].any()


@few
@given(trees.cases())
def test_torque_of_stable_pd_causes_its_acceleration(
    case: Drawn,
) -> None:
    character, rng = case
    q, v = trees.random_state(rng, character)
    a, tau = reference.stable_pd(character, q, v, trees.random_state(rng, character), 300, 20, 0.02)
    assert_close(reference.inverse_dynamics(character, q, v, a), tau, ROUNDING)


# finite differences


@few
@given(trees.cases())
def test_jacobian_is_the_rate_of_the_link_pose(case: Drawn) -> None:
    character, rng = case
    q, v = trees.random_state(rng, character)
    (p0, r0), (p1, r1) = (
        reference.forward_kinematics(character, reference.move(character, q, v, h))
        for h in (-STEP, STEP)
    )
    for i, link in enumerate(character.links):
        linear, angular = np.split(reference.jacobian(character, q, link.name) @ v, 2)
        assert_close(linear, (p1[i] - p0[i]) / (2 * STEP), DIFFERENCES)
        turn = rotation.log(rotation.multiply(r1[i], rotation.conjugate(r0[i])))
        assert_close(angular, turn / (2 * STEP), DIFFERENCES)


@few
@given(trees.cases())
def test_jacobian_bias_is_the_rate_of_the_jacobian(
    case: Drawn,
) -> None:
    character, rng = case
    q, v = trees.random_state(rng, character)
    before, after = (reference.move(character, q, v, h) for h in (-STEP, STEP))
    for link in character.links:
        point = rng.normal(size=3)
        J0, J1 = (reference.jacobian(character, x, link.name, point) for x in (before, after))
        bias = reference.jacobian_bias(character, q, v, link.name, point)
        assert_close(bias, (J1 - J0) @ v / (2 * STEP), DIFFERENCES)


@few
@given(trees.cases())
def test_momentum_changes_as_matrix_and_bias_say(
    case: Drawn,
) -> None:
    character, rng = case
    q, v = trees.random_state(rng, character)
    a = rng.normal(size=character.nv)
    A, bias = reference.centroidal_momentum(character, q, v)
    # q(t) has velocity v and acceleration a at t = 0
    before, after = (
        reference.centroidal_momentum(
            character, reference.move(character, q, v + h / 2 * a, h), v + h * a
        )[0]
        @ (v + h * a)
        for h in (-STEP, STEP)
    )
    assert_close(A @ a + bias, (after - before) / (2 * STEP), DIFFERENCES)


@few
@given(trees.cases())
def test_power_of_the_joints_is_the_rate_of_energy(
    case: Drawn,
) -> None:
    character, rng = case
    q, v = trees.random_state(rng, character)
    tau = rng.normal(size=character.nv)
    a = reference.forward_dynamics(character, q, v, tau)
    # short enough for the largest accelerations
    h = 1e-4 / (1 + np.abs(a).max())
    before, after = (
        sum(reference.energy(character, reference.move(character, q, v + x / 2 * a, x), v + x * a))
        for x in (-h, h)
    )
    assert_close((after - before) / (2 * h), tau @ v, 1e-5)


# nature


@pytest.mark.parametrize("seed", range(1, 9, 2))
def test_a_free_character_falls_and_keeps_its_angular_momentum(seed: int) -> None:
    rng = np.random.default_rng(seed)
    # a rotor's inertia on the free root would be an anchor in the world
    character = trees.random_character(rng, 5, base="free", armature=False)
    q, v = trees.random_state(rng, character)
    a = reference.forward_dynamics(character, q, v, np.zeros(character.nv))
    A, bias = reference.centroidal_momentum(character, q, v)
    assert_close(A @ a + bias, [0, 0, -9.81 * character.mass, 0, 0, 0], 1e-10)


def test_a_slide_falls_with_gravity_along_its_axis() -> None:
    character = chain(Joint("rail", "slide", axis=(0.6, 0.0, 0.8)))
    a = reference.forward_dynamics(character, [0.3], [1.0], [0.0])
    assert a[0] == pytest.approx(-0.8 * 9.81)


def test_a_pendulum_swings_as_its_length_says() -> None:
    character = chain(Joint("pin", "hinge", axis=(1.0, 0.0, 0.0), pos=(0.0, 0.01, 0.0)))
    inertia = 0.02 + 1.0 * 0.2**2
    a = reference.forward_dynamics(character, [0.4], [0.0], [0.0])
    assert a[0] == pytest.approx(-9.81 * 0.2 * np.sin(0.4) / inertia)


# drives


def test_hinge_drive_has_the_printed_formulas() -> None:
    character = chain(Joint("pin", "hinge"))
    q, v, q_bar, v_bar, kp, kd, dt = 0.3, 0.7, -0.2, 0.4, 50.0, 5.0, 0.1
    now = -kp * (q - (q_bar - dt * v_bar)) - kd * (v - v_bar)
    ahead = -kp * (q + dt * v - q_bar) - kd * (v - v_bar)
    expected: dict[Form, tuple[float, float]] = {
        "pd": (now, 0.0),
        "explicit": (now, kd * dt),
        "spd": (ahead, kd * dt),
        "implicit": (ahead, kd * dt + kp * dt * dt),
    }
    for form, (Q, K) in expected.items():
        ours = reference.drive(character, [q], [v], [q_bar], [v_bar], kp, kd, dt, form)
        assert_close(ours, [[Q], [K]], 1e-15)


@few
@given(trees.cases(kinds=("hinge", "slide"), base="fixed"))
def test_implicit_drive_is_pd_at_the_end_of_the_step(
    case: Drawn,
) -> None:
    character, rng = case
    q, v = trees.random_state(rng, character)
    q_bar, v_bar = trees.random_state(rng, character)
    a, tau = reference.stable_pd(character, q, v, (q_bar, v_bar), 200.0, 10.0, 0.02)
    q_end, v_end = reference.step(character, q, v, a, 0.02)
    assert_close(tau, -200.0 * (q_end - q_bar) - 10.0 * (v_end - v_bar), ROUNDING)


@few
@given(trees.cases(), st.sampled_from(["pd", "explicit", "spd", "implicit"]))
def test_a_drive_that_meets_its_target_asks_for_nothing(case: Drawn, form: Form) -> None:
    character, rng = case
    q, v = trees.random_state(rng, character)
    # v moves on unchanged to the target, for a ball in the frame that turns along
    q_bar = reference.move(character, q, v, 0.02)
    Q, _ = reference.drive(character, q, v, q_bar, v, 1.0, 1.0, 0.02, form)
    assert_close(Q, np.zeros(character.nv), 1e-13)


@few
@given(trees.cases(base="free"))
def test_signs_of_quaternions_do_not_matter_to_a_drive(
    case: Drawn,
) -> None:
    character, rng = case
    q, v = trees.random_state(rng, character)
    q_bar, v_bar = trees.random_state(rng, character)
    flipped = q_bar.copy()
    for body in build_tree(character).bodies:
        if body.joint.kind in ("ball", "free"):
            flipped[body.q.stop - 4 : body.q.stop] *= -1
    one, other = (reference.drive(character, q, v, x, v_bar, 9, 2, 0.1) for x in (q_bar, flipped))
    assert_close(one, other, 1e-14)


@pytest.mark.parametrize("angle", [0.0, 1e-9, 1.0, np.pi - 1e-9, np.pi + 0.1])
def test_ball_error_is_the_rotation_vector_in_the_child_frame(angle: float) -> None:
    character = chain(Joint("ball", "ball"))
    axis = np.array([0.48, -0.64, 0.6])
    target = rotation.exp([0.3, 0.2, -0.5])
    q = rotation.multiply(target, rotation.exp(angle * axis))
    e, _ = reference.tracking_error(character, q, np.zeros(3), target, np.zeros(3), 0.1, ahead=True)
    short = angle if angle <= np.pi else angle - 2 * np.pi
    assert_close(e, short * axis, 1e-15)


def test_target_velocity_of_a_ball_is_turned_into_the_child_frame() -> None:
    character = chain(Joint("ball", "ball"))
    q, q_bar = rotation.exp([0.0, 0.0, np.pi / 2]), rotation.exp([0.0, 0.0, 0.0])
    _, e_rate = reference.tracking_error(
        character, q, np.zeros(3), q_bar, [1.0, 0.0, 0.0], 0.1, ahead=True
    )
    # what is +x for the target is -y for a child turned by a quarter about z
    assert_close(e_rate, [0.0, 1.0, 0.0], 1e-15)


def test_free_joint_error_is_in_world_axes() -> None:
    character = chain(Joint("root", "free"))
    q = np.concatenate([[1.0, 2.0, 3.0], rotation.exp([0.5, 0.5, 0.5])])
    v = np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    q_bar = np.concatenate([[0.0, 2.0, 3.0], q[3:]])
    v_bar = np.array([0.0, 2.0, 0.0, 0.0, 0.0, 0.0])
    e, e_rate = reference.tracking_error(character, q, v, q_bar, v_bar, 0.1, ahead=True)
    assert_close(e, [1.1, 0, 0, 0, 0, 0], 1e-15)
    assert_close(e_rate, [1, -2, 0, 0, 0, 0], 1e-15)


def test_only_the_implicit_form_is_stable_at_any_step() -> None:
    # light links, dt = 1/30 and kp dt = 100 kd
    joints = [Joint(f"h{i}", "hinge", axis=(1.0, 0.0, 0.0)) for i in range(3)]
    character, kd, dt = chain(*joints), 0.1, 1 / 30
    target, kp = (np.zeros(3), np.zeros(3)), 100 * kd / dt
    forms: tuple[Form, ...] = ("implicit", "spd", "pd")
    worst = {}
    for form in forms:
        q, v = np.array([0.1, -0.1, 0.1]), np.zeros(3)
        for _ in range(90):
            a, _ = reference.stable_pd(character, q, v, target, kp, kd, dt, form=form)
            q, v = reference.step(character, q, v, np.clip(a, -1e9, 1e9), dt)
        worst[form] = np.abs(q).max()
    assert worst["implicit"] < 0.1
    assert worst["spd"] > 1e3
    assert worst["pd"] > 1e3


# effort limits


@few
@given(trees.cases(effort=True))
def test_joints_never_give_more_than_their_effort(
    case: Drawn,
) -> None:
    character, rng = case
    q, v = trees.random_state(rng, character)
    target = trees.random_state(rng, character)
    a, tau = reference.limited_stable_pd(character, q, v, target, 300.0, 20.0, 0.02)
    for limit in effort_limits(character):
        assert np.linalg.norm(tau[limit.v]) <= limit.effort * (1 + 1e-12)
    assert_close(reference.inverse_dynamics(character, q, v, a), tau, ROUNDING)


@pytest.mark.parametrize("kinds", [("hinge", "slide"), ("ball", "hinge", "slide")])
def test_limited_joints_give_their_effort_or_what_the_drive_asks(kinds: tuple[str, ...]) -> None:
    for seed in range(30):
        rng = np.random.default_rng(seed)
        character = trees.random_character(rng, 6, kinds=kinds, effort=True)
        (q, v), target = trees.random_state(rng, character), trees.random_state(rng, character)
        a, tau = reference.limited_stable_pd(character, q, v, target, 100.0, 10.0, 0.02)
        Q, K = reference.drive(character, q, v, *target, 100.0, 10.0, 0.02)
        assert_close(tau, bounded(effort_limits(character), Q - K * a), 1e-9)


def test_limited_torques_are_those_of_projected_gauss_seidel() -> None:
    """Another algorithm, on (K^-1 + M^-1) tau = K^-1 Q + M^-1 h, one bounded force at a time."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        character = trees.random_character(rng, 4, kinds=("hinge", "slide"), effort=True)
        (q, v), target = trees.random_state(rng, character), trees.random_state(rng, character)
        Q, K = reference.drive(character, q, v, *target, 100.0, 10.0, 0.02)
        inverse = np.linalg.inv(reference.mass_matrix(character, q))
        A = inverse + np.diag(1 / K)
        b = Q / K + inverse @ reference.bias_force(character, q, v)
        bound = np.full(character.nv, np.inf)
        for limit in effort_limits(character):
            bound[limit.v] = limit.effort
        tau = np.zeros(character.nv)
        for _ in range(20_000):
            for k in range(character.nv):
                rest = b[k] - A[k] @ tau + A[k, k] * tau[k]
                tau[k] = np.clip(rest / A[k, k], -bound[k], bound[k])
        ours = reference.limited_stable_pd(character, q, v, target, 100.0, 10.0, 0.02)[1]
        assert_close(ours, tau, 1e-6)


def test_without_limits_the_drive_is_as_it_was() -> None:
    character, q, v, rng = subject(7)
    target = trees.random_state(rng, character)
    free = reference.stable_pd(character, q, v, target, 100.0, 10.0, 0.02)
    limited = reference.limited_stable_pd(character, q, v, target, 100.0, 10.0, 0.02, limits=[])
    assert np.array_equal(limited, free)


def test_a_saturated_ball_keeps_the_direction_it_pushes_in() -> None:
    # an even inertia about the anchor, so that all three axes are alike
    link = Link("ball", joints=(Joint("j", "ball", effort=2.0),), mass=1.0, inertia=(1.0, 1.0, 1.0))
    character = Character("ball", (link,))
    target = rotation.exp([0.5, 1.0, 0.0]), np.zeros(3)
    _, tau = reference.limited_stable_pd(
        character, [1, 0, 0, 0], np.zeros(3), target, 100.0, 1.0, 0.01
    )
    assert_close(tau, 2.0 * np.array([0.5, 1.0, 0.0]) / np.sqrt(1.25), 1e-12)


def test_a_ball_limited_per_axis_gives_each_axis_its_own() -> None:
    joint = Joint("j", "ball", effort=(1.0, 2.0, 3.0))
    link = Link("ball", joints=(joint,), mass=1.0, inertia=(1.0, 1.0, 1.0))
    character = Character("ball", (link,))
    target = rotation.exp([0.5, -1.0, 0.0]), np.zeros(3)
    _, tau = reference.limited_stable_pd(
        character, [1, 0, 0, 0], np.zeros(3), target, 100.0, 1.0, 0.01
    )
    assert_close(tau, [1.0, -2.0, 0.0], 1e-12)


# integration


@few
@given(trees.cases())
def test_difference_undoes_move(case: Drawn) -> None:
    character, rng = case
    q, v = trees.random_state(rng, character)
    v = np.clip(v, -1.8, 1.8)  # a turn of less than pi
    assert_close(reference.difference(character, reference.move(character, q, v, 1.0), q), v, 1e-13)


def test_a_step_moves_with_the_new_velocity() -> None:
    character = chain(Joint("rail", "slide"))
    q, v = reference.step(character, [1.0], [2.0], [3.0], 0.1)
    assert (q[0], v[0]) == pytest.approx((1.0 + 0.1 * 2.3, 2.3))


def test_the_error_of_a_swing_halves_with_the_step() -> None:
    character = chain(Joint("a", "hinge", axis=(1.0, 0.0, 0.0)), Joint("b", "ball"))

    def swing(steps: int) -> Array:
        q, v = reference.move(character, character.rest_q, np.ones(4), 0.5), np.zeros(4)
        for _ in range(steps):
            a = reference.forward_dynamics(character, q, v, np.zeros(4))
            q, v = reference.step(character, q, v, a, 0.2 / steps)
        return q

    ends = [swing(n) for n in (25, 50, 100, 200)]
    gaps = [np.abs(fine - coarse).max() for coarse, fine in pairwise(ends)]
    for coarse, fine in pairwise(gaps):
        assert coarse / fine == pytest.approx(2.0, rel=0.1)  # first order, up to the next term


# bad input


def test_gimbal_lock_is_refused_with_the_joint_named() -> None:
    joints = tuple(
        Joint(n, "hinge", axis)
        for n, axis in (("yaw", (0, 0, 1)), ("pitch", (0, 1, 0)), ("roll", (1, 0, 0)))
    )
    link = Link("gimbal", joints=joints, mass=1.0, inertia=(0.1, 0.2, 0.25))
    character = Character("gimbal", (link,))
    with pytest.raises(PoiseError, match="'yaw'"):
        reference.forward_dynamics(character, [0.3, np.pi / 2, 0.1], np.zeros(3), np.zeros(3))


def test_an_unknown_link_lists_the_known_ones() -> None:
    character = chain(Joint("pin", "hinge"))
    with pytest.raises(PoiseError, match="link0"):
        reference.jacobian(character, [0.0], "hand")


def test_a_batch_is_refused() -> None:
    character = chain(Joint("pin", "hinge"))
    with pytest.raises(PoiseError, match="one state"):
        reference.mass_matrix(character, np.zeros((2, 1)))


def test_every_public_name_exists() -> None:
    assert all(hasattr(reference, name) for name in reference.__all__)


def test_rates_of_the_target_stay_the_same_vectors_in_present_frames() -> None:
    character = load_character("humanoid-ball")
    rng = np.random.default_rng(3)
    q, q_target = (
        configuration.integrate(character, character.rest_q, rng.normal(size=character.nv))
        for _ in range(2)
    )
    rate = rng.normal(size=character.nv)
    found = in_present_frames(character, q, q_target, rate)
    turned = np.zeros(character.nv, bool)
    for _, quat, turn in configuration.rotations(character):
        vector = rotation.quat_matrix(q_target[quat]) @ rate[turn]
        np.testing.assert_allclose(rotation.quat_matrix(q[quat]) @ found[turn], vector, atol=1e-12)
        turned[turn] = True
    assert turned.any()
    np.testing.assert_array_equal(found[~turned], rate[~turned])
