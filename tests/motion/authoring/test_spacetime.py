"""Ground forces, and the optimisation that makes sketches true."""

from __future__ import annotations

import numpy as np
import pytest

import poise
from poise import Character, Joint, Link, Shape, dynamics
from poise.anatomy import feet
from poise.anatomy.contact_schedule import ContactSchedule
from poise.anatomy.feet import ContactPoint
from poise.math import rotation
from poise.model import configuration
from poise.motion.authoring import ground_forces, spacetime
from poise.motion.authoring import terms as spacetime_terms
from poise.motion.authoring.author import Options, _Task, hold_weights, lateral_velocities, refine
from poise.motion.authoring.spacetime import (
    SOFT,
    Basis,
    Motion,
    System,
    Travel,
    assemble,
    directions,
)
from poise.motion.editing.mirroring import Mirror
from poise.motion.keyframes import parse_keyframes


@pytest.fixture(scope="module")
def humanoid() -> Character:
    return poise.load_character("humanoid")


def cube() -> Character:
    box = Shape("box", (0.1, 0.1, 0.1))
    root = [Joint("root", "free")]
    link = Link.from_shapes("box", None, [box], mass=2.0, pos=(0.0, 0.0, 0.1), joints=root)
    return Character("cube", (link,))


def still(character: Character, frames: int) -> Motion:
    return Motion(character, np.tile(character.rest_q, (frames, 1)), 30.0)


# ground forces


def test_who_stands_still_is_carried_by_the_ground(humanoid: Character) -> None:
    points = feet.feet_of(humanoid)
    motion = still(humanoid, 3)
    on = np.ones((3, len(points)), dtype=bool)
    found = ground_forces.find_ground_forces(humanoid, motion.q, motion.v, motion.a, points, on)
    weight = humanoid.mass * 9.81
    # the forces' own small weight keeps a hundred-thousandth of the residual
    assert np.allclose(found.forces.sum(axis=1), [0.0, 0.0, weight], atol=1e-4 * weight)
    assert np.abs(found.residual).max() < 1e-4
    # their center of pressure lies under the center of mass
    at = feet.positions(humanoid, points, motion.q)
    pressure = np.einsum("kp,kpc->kc", found.forces[..., 2], at) / weight
    assert np.allclose(pressure[:, :2], found.center[:, :2], atol=1e-3)


def test_torques_and_forces_together_give_the_accelerations_back(humanoid: Character) -> None:
    rng = np.random.default_rng(1)
    points = feet.feet_of(humanoid)
    q = configuration.integrate(humanoid, humanoid.rest_q, 0.1 * rng.normal(size=(4, humanoid.nv)))
    v, a = rng.normal(size=(2, 4, humanoid.nv))
    on = rng.random((4, len(points))) < 0.6
    found = ground_forces.find_ground_forces(humanoid, q, v, a, points, on)
    wrenches = spacetime_terms._wrenches(humanoid, points, q, found.forces)
    again = dynamics.forward_dynamics(humanoid, q, v, found.torque, external=wrenches)
    assert np.allclose(again, a, atol=1e-6 * np.abs(a).max())


@pytest.mark.parametrize("friction", [0.2, 0.8])
def test_forces_stay_inside_their_cones(humanoid: Character, friction: float) -> None:
    rng = np.random.default_rng(2)
    points = feet.feet_of(humanoid)
    q = np.tile(humanoid.rest_q, (8, 1))
    v, a = rng.normal(size=(2, 8, humanoid.nv))
    on = np.ones((8, len(points)), dtype=bool)
    f = ground_forces.find_ground_forces(
        humanoid, q, v, 5.0 * a, points, on, friction=friction
    ).forces
    assert (f[..., 2] >= 0.0).all()
    assert (np.linalg.norm(f[..., :2], axis=-1) <= friction * f[..., 2] + 1e-9).all()


def test_with_a_small_barrier_forces_are_nearly_those_without(humanoid: Character) -> None:
    """Interior point method against active sets."""
    rng = np.random.default_rng(5)
    points = feet.feet_of(humanoid)
    q = np.tile(humanoid.rest_q, (8, 1))
    v, a = 0.5 * rng.normal(size=(2, 8, humanoid.nv))
    on = rng.random((8, len(points))) < 0.7
    exact, soft = (
        ground_forces.find_ground_forces(humanoid, q, v, a, points, on, barrier=mu)
        for mu in (0.0, 1e-10)
    )
    assert exact.forces.any()
    # forces that are zero without it are about mu / epsilon^2 = 1e-6 of body weight with it; those
    # that share a load are hardly bound, hence a percent
    weight = humanoid.mass * 9.81
    assert np.allclose(soft.residual, exact.residual, atol=1e-4)
    assert np.allclose(soft.forces, exact.forces, atol=0.01 * weight)
    assert (soft.forces[~on] == 0.0).all()


def test_forces_with_a_barrier_answer_as_their_derivative_says(humanoid: Character) -> None:
    rng = np.random.default_rng(6)
    points = feet.feet_of(humanoid)
    arms = rng.normal(size=(1, len(points), 3)) * [0.1, 0.1, 0.01] - [0.0, 0.0, 0.9]
    on, center = np.ones((1, len(points)), dtype=bool), np.array([[0.0, 0.0, 0.9]])
    mass = humanoid.mass
    wrench = mass * 9.81 * np.array([[0.1, 0.0, 1.0, 0.0, 0.05, 0.0]])
    step = mass * 9.81 * 1e-6 * rng.normal(size=(1, 6))
    scale = ground_forces.scales(mass, center)
    more, less = (
        ground_forces.cone_forces(mass, w, arms, on, 0.7, center, 1e-5)[0]
        for w in (wrench + step, wrench - step)
    )
    _, ways = ground_forces.cone_forces(mass, wrench, arms, on, 0.7, center, 1e-5)
    answer = ways.response[0] @ (step * scale)[0]
    edges = (answer[:, None] * ways.force).reshape(len(points), -1, 3)
    # the method stops at a thousandth of mu
    assert np.allclose((more - less)[0] / 2.0, edges.sum(axis=1), atol=0.01 * np.abs(edges).max())


def test_what_hangs_in_the_air_without_falling_is_not_explained() -> None:
    motion = still(cube(), 3)
    points: list[ContactPoint] = []
    on = np.zeros((3, 0), dtype=bool)
    found = ground_forces.find_ground_forces(cube(), motion.q, motion.v, motion.a, points, on)
    assert np.allclose(found.residual[:, :3], [0.0, 0.0, 1.0])


# the optimisation


def sketch_of_a_jump(character: Character) -> tuple[Motion, tuple[ContactPoint, ...], np.ndarray]:
    """A character that moves a little in all its joints, some points on the ground in some time."""
    rng = np.random.default_rng(3)
    k = 16
    t = np.arange(k)[:, None] / 30.0
    size = 0.1 * rng.normal(size=character.nv)
    wave = size * np.sin(2.0 * np.pi * (t + rng.random(character.nv)))
    motion = Motion(character, configuration.integrate(character, character.rest_q, wave), 30.0)
    points = feet.feet_of(character)
    on = np.ones((k, len(points)), dtype=bool)
    on[6:11] = False
    return motion, points, on


def test_derivatives_of_the_terms_are_those_of_the_cost(humanoid: Character) -> None:
    motion, points, on = sketch_of_a_jump(humanoid)
    k, p = on.shape
    rng = np.random.default_rng(4)
    anchors = feet.positions(humanoid, points, motion.q) + 0.01
    terms = {
        "ground": spacetime_terms.ground(points, np.zeros_like(on), weight=1.0),
        "torque": spacetime_terms.ground(points, np.zeros_like(on), weight=0.0, torque=1.0),
        "standing": spacetime_terms.standing(points, anchors, np.ones((k, p, 3))),
        "above": spacetime_terms.above(points, np.full((k, p), 0.05)),
        "near": spacetime_terms.near(np.tile(humanoid.rest_q, (k, 1)), np.ones(humanoid.nv)),
        "limits": spacetime_terms.limits(margin=1.0),
        "center": spacetime_terms.center_over(np.zeros((k, 3)), np.ones((k, 3))),
        "pressing": spacetime_terms.pressing(),
    }
    basis = Basis(k, 3, False, motion.fps)
    for name, term in terms.items():
        _, g = spacetime._normal_equations(motion, [term], basis, np.eye(humanoid.nv))
        for _ in range(3):
            c = 1e-6 * rng.normal(size=(basis.size, humanoid.nv))
            there, back = (
                spacetime._cost(motion.moved(spacetime._steps(basis, s * c)), [term])
                for s in (1.0, -1.0)
            )
            slope = 2.0 * float(g.ravel() @ c.ravel())
            # splines of steps and of frames differ a little; logarithms far from the sketch too
            assert (there - back) / 2.0 == pytest.approx(slope, rel=0.08), name


def test_a_throw_becomes_a_parabola() -> None:
    """Without contacts only gravity acts; the analytic path is the second opinion."""
    character, k, fps = cube(), 31, 30.0
    t = np.arange(k) / fps
    q = np.tile(character.rest_q, (k, 1))
    q[:, 0] = t
    q[:, 2] = 1.0 + 0.5 * np.sin(np.pi * t)
    none = np.zeros((k, 0), dtype=bool)
    ends = np.zeros((k, 6))
    ends[[0, -1], :3] = 100.0
    terms = [
        spacetime_terms.ground([], none, weight=1.0),
        spacetime_terms.near(q, ends),
    ]
    found = spacetime.optimize(Motion(character, q, fps), terms, iterations=30)
    speed = (found.q[-1, 2] - found.q[0, 2]) / t[-1] + 9.81 * t[-1] / 2.0
    path = found.q[0, 2] + speed * t - 9.81 * t**2 / 2.0
    assert np.allclose(found.q[:, 2], path, atol=1e-3)
    assert np.allclose(found.q[[0, -1], :3], q[[0, -1], :3], atol=1e-3)


def test_a_refined_bow_stands_and_is_explained() -> None:
    """A lamp that bows too fast and too far for its base, as sketched, would tip over."""
    lamp, fps, k = poise.load_character("lamp"), 30.0, 31
    t = np.arange(k) / fps
    q = np.tile(lamp.rest_q, (k, 1))
    bow = 0.5 * (1.0 - np.cos(2.0 * np.pi * t))
    for joint, size in (("ankle", 0.9), ("head", 0.5)):
        turn = np.stack([0.0 * t, size * bow, 0.0 * t], axis=1)
        q[:, lamp.q_slice(joint)] = rotation.exp(turn)
    points = feet.feet_of(lamp)
    contacts = ContactSchedule(points, np.ones((k, len(points)), dtype=bool))
    found = refine(lamp, q, fps, contacts, options=Options(rounds=3, iterations=8))

    def left(motion: Motion) -> float:
        out = ground_forces.find_ground_forces(
            lamp, motion.q, motion.v, motion.a, points, contacts.on
        )
        return float(np.abs(out.residual).max())

    assert left(Motion(lamp, q, fps)) > 0.05
    assert left(found) < 0.02
    at = feet.positions(lamp, points, found.q)
    assert np.abs(at - at.mean(axis=0)).max() < 0.002
    # it still bows
    assert np.abs(configuration.difference(lamp, found.q, q[:1])).max() > 0.3


def test_the_second_half_of_a_mirrored_loop_mirrors_the_first(humanoid: Character) -> None:
    mirror = Mirror.of(humanoid)
    pairs = {joint.name: mirror.joint(joint.name).name for joint in humanoid.joints}
    S = spacetime_terms.mirror_matrix(humanoid, pairs)
    assert np.array_equal(S @ S, np.eye(humanoid.nv))
    k = 24
    q = np.tile(humanoid.rest_q, (k, 1))
    travel = Travel((0.2, 0.0, 0.0))
    q[:, 0] += 0.2 * np.arange(k) / k
    left = humanoid.v_slice("left_hip")
    step = np.zeros((k, humanoid.nv))
    step[:, left] = 0.3 * np.sin(2.0 * np.pi * np.arange(k)[:, None] / k)
    wanted = configuration.integrate(humanoid, q, step)
    terms = [spacetime_terms.near(wanted, np.ones(humanoid.nv))]
    motion = Motion(humanoid, q, 24.0, travel)
    found = spacetime.optimize(motion, terms, spacing=2, symmetry=S)
    moved = configuration.difference(humanoid, found.q, q)
    assert np.abs(moved).max() > 0.05
    assert np.allclose(moved[k // 2 :], moved[: k // 2] @ S.T, atol=1e-12)


@pytest.mark.parametrize("periodic", [False, True])
def test_blocks_are_solved_as_the_matrix_they_stand_for(periodic: bool) -> None:
    """The band, or the loop, against the normal equations of J itself."""
    rng = np.random.default_rng(7)
    basis, n = Basis(24, 3, periodic, 30.0), 2
    D, r = rng.normal(size=(24, 5, n)), rng.normal(size=(24, 5))
    J = np.zeros((24, 5, basis.size, n))
    for k in range(24):
        for j in range(4):
            J[k, :, basis.index[k, j]] += basis.weights[0, k, j] * D[k]
    local = basis.weights[0][:, None, :, None] * D[:, :, None]
    blocks = np.einsum("kmia,kmjb->kiajb", local, local)
    H, g = assemble(basis, blocks, np.einsum("kmia,km->kia", local, r))
    full = J.reshape(24 * 5, -1)
    lifted = full.T @ full
    mean = np.diag(lifted).mean()
    lifted += np.diag(0.1 * np.maximum(np.diag(lifted), SOFT * mean) + 1e-9 * mean)
    expected = np.linalg.solve(lifted, -full.T @ r.ravel())
    assert np.allclose(System(H, g, periodic, None).solve(0.1).ravel(), expected, atol=1e-12)


def test_in_the_plane_both_sides_move_alike_and_nothing_goes_sideways(humanoid: Character) -> None:
    mirror = Mirror.of(humanoid)
    pairs = {joint.name: mirror.joint(joint.name).name for joint in humanoid.joints}
    S = spacetime_terms.mirror_matrix(humanoid, pairs)
    ways = directions(humanoid.nv, S, lateral_velocities(humanoid))
    # root x, z and pitch; chest and neck; shoulder, elbow, hip, knee and ankle of both sides
    assert ways.shape == (humanoid.nv, 3 + 2 + 5)
    assert np.array_equal(S @ ways, ways)
    q = configuration.integrate(humanoid, humanoid.rest_q, 0.3 * ways.sum(axis=1))
    at = dict(
        zip(
            [link.name for link in humanoid.links],
            dynamics.forward_kinematics(humanoid, q)[0],
            strict=True,
        )
    )
    assert at["head"][1] == pytest.approx(0.0, abs=1e-12)
    assert np.allclose(at["left_foot"] * [1.0, -1.0, 1.0], at["right_foot"], atol=1e-12)


def test_a_key_that_holds_less_counts_less() -> None:
    text = """
clip: nod
character: humanoid
fps: 10
keys:
- {time: 0, joints: {neck: [0, 0, 0]}}
- {time: 0.4, hold: 0.2, joints: {neck: [0, 20, 0]}, root: {turn: [0, 5, 0]}}
- {time: 1, joints: {neck: [0, 0, 0]}}
"""
    keys = parse_keyframes(text, "nod")
    hold, neck = hold_weights(keys, 11), keys.character.v_slice("neck")
    # in a straight line from key to key
    assert np.allclose(hold[:5, neck.start], [1.0, 0.8, 0.6, 0.4, 0.2])
    assert np.allclose(hold[[0, 4, 10], neck.stop - 1], [1.0, 0.2, 1.0])
    assert np.allclose(hold[:, 3:6], 0.2)
    assert np.allclose(hold[:, :3], 1.0)


def test_forces_may_jump_in_flight_and_at_a_touchdown_only() -> None:
    lamp = poise.load_character("lamp")
    points, k = feet.feet_of(lamp), 60
    on = np.ones((k, len(points)), dtype=bool)
    on[20:40] = False
    q = np.tile(lamp.rest_q, (k, 1))
    task = _Task(lamp, q, 60.0, ContactSchedule(points, on), Options(), None, None)
    steady = task._steady()
    # from the last frame on the ground until 0.05 s after the first one again
    assert np.array_equal(np.flatnonzero(steady == 0.0), np.arange(19, 43))


def test_a_loop_that_turns_is_refused(humanoid: Character) -> None:
    points = feet.feet_of(humanoid)
    contacts = ContactSchedule(points, np.ones((6, len(points)), dtype=bool))
    q = np.tile(humanoid.rest_q, (6, 1))
    with pytest.raises(poise.PoiseError, match="turns"):
        refine(humanoid, q, 30.0, contacts, travel=Travel((1.0, 0.0, 0.0), 0.5))


def test_knots_must_fit_a_loop() -> None:
    with pytest.raises(poise.PoiseError, match="every 3 frames"):
        Basis(10, 3, True, 30.0)


def test_b_splines_add_up_to_one_and_their_derivatives_agree() -> None:
    for periodic in (True, False):
        basis = Basis(24, 3, periodic, 30.0)
        B = np.zeros((4, 24, basis.size))
        for n in range(4):
            np.put_along_axis(B[n], basis.index, basis.weights[n], axis=1)
        assert np.allclose(B[0].sum(axis=1), 1.0)
        assert np.allclose(B[1:].sum(axis=2), 0.0)
        c = np.random.default_rng(5).normal(size=basis.size)
        inner = slice(4, 20)
        # a cubic's second derivative is linear between knots: mean values agree exactly there
        rise = np.diff(B[1] @ c) * 30.0
        mean = ((B[2] @ c)[1:] + (B[2] @ c)[:-1]) / 2.0
        assert np.allclose(rise[inner], mean[inner])
