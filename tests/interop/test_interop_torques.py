"""Torques of stable PD for MuJoCo's simulation, which is the second opinion."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from interop_models import DT, Array, arm, moving, mujoco
from peers import mujoco_state, to_mujoco
from trees import random_character, random_state

import poise
from poise import _core, dynamics
from poise.errors import PoiseError
from poise.interop import mujoco as interop


def promised(servo: Any, q: Array, v: Array, target: Array) -> Array:
    """Implicit PD of hinges on the state that the step led to, q being that before it."""
    tau: Array = -servo.gains.kp * (q + DT * v - target) - servo.gains.kd * v
    return tau


def check_promise(model: Any, servo: Any, data: Any, **given: Any) -> None:
    """MuJoCo's step under the torques ends where the torques say it does."""
    target = np.array([0.3, -0.2])
    q = data.qpos.copy()
    tau = servo(data, target, **given)
    data.qfrc_applied[:] = tau
    mujoco.mj_step(model, data)
    # the same sum in another order: rounding of torques of some hundred N m
    np.testing.assert_allclose(tau, promised(servo, q, data.qvel, target), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["humanoid", "humanoid-51", "dog", "snake-195"])
def test_torques_are_those_of_the_dense_recipe(name: str) -> None:
    model = interop.model_of(poise.load_character(name))
    servo = interop.StablePD(model, 600.0, 60.0, form="spd", limits=False)
    dense = interop.DenseStablePD(model, servo.gains.kp, servo.gains.kd)
    data = moving(model, size=0.2)
    mujoco.mj_forward(model, data)
    target = moving(model, seed=7, size=0.2).qpos
    np.testing.assert_allclose(servo(data, target), dense(data, target), rtol=0, atol=1e-9)


@pytest.mark.parametrize("form", dynamics.FORMS)
@pytest.mark.parametrize("seed", range(4))
def test_torques_are_those_of_poise_itself(form: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    character = random_character(rng, 8)
    model = to_mujoco(character, dt=DT)
    (q, v), (tq, tv) = random_state(rng, character), random_state(rng, character)
    kp, kd = rng.uniform(0.0, 300.0, (2, character.nv))
    servo = interop.StablePD(model, kp, kd, form=form)
    ours = dynamics.stable_pd(character, q, v, (tq, tv), kp, kd, DT, form=form)[1]
    # the tree is written as text and read again
    np.testing.assert_allclose(servo(mujoco_state(model, q, v), (tq, tv)), ours, rtol=1e-8)


@pytest.mark.parametrize("method", ["df", "sf", "pcg"])
def test_the_papers_baselines_give_the_same_torques(method: str) -> None:
    model = interop.model_of(poise.load_character("humanoid"))
    data, target = moving(model, size=0.2), model.qpos0.copy()
    one, other = (interop.StablePD(model, 600.0, 60.0, method=m) for m in ("maba", method))
    # conjugate gradients stop at a residual of their own
    np.testing.assert_allclose(other(data, target), one(data, target), rtol=1e-7, atol=1e-7)


def test_mujoco_ends_its_step_where_the_torques_say() -> None:
    model = arm()
    check_promise(model, interop.StablePD(model, 900.0, 40.0), moving(model))


def test_joint_dampers_are_known() -> None:
    model = arm(elbow="damping='3'", shoulder="damping='8'")
    check_promise(model, interop.StablePD(model, 900.0, 40.0), moving(model))


def test_joint_springs_are_known_as_the_discrete_integrator_has_them() -> None:
    model = arm(integrator="discrete", elbow="stiffness='200' springref='40' damping='1'")
    check_promise(model, interop.StablePD(model, 900.0, 40.0), moving(model))


def test_a_balls_spring_rests_where_mujoco_has_it_rest() -> None:
    tilted = poise.Joint("b", "ball", stiffness=30.0, reference=(0.8, 0.6, 0.0, 0.0))
    link = poise.Link("a", joints=(tilted,), mass=1.0, inertia=(0.1, 0.1, 0.1))
    model = interop.model_of(poise.Character("spring", (link,)), ground=False)
    model.opt.gravity[:] = 0.0
    rest = model.qpos_spring.copy()
    tau = interop.StablePD(model, 9.0, 1.0)(poise.State(rest, np.zeros(3)), rest)
    np.testing.assert_allclose(tau, 0.0, rtol=0, atol=1e-12)


def test_pushes_are_known_without_mj_forward() -> None:
    model = arm()
    data = moving(model)
    data.xfrc_applied[2] = [30.0, 5.0, -20.0, 1.0, 4.0, 2.0]
    check_promise(model, interop.StablePD(model, 900.0, 40.0), data)


REAL = ("gymnasium/humanoid.xml", "mimickit_humanoid.xml", "protomotions_amp_humanoid.xml")


@pytest.mark.data
@pytest.mark.parametrize("name", REAL)
def test_real_models_end_their_step_where_the_torques_say(data_folder: Path, name: str) -> None:
    model = mujoco.MjModel.from_xml_path(str(data_folder / "mjcf" / name))
    model.opt.timestep, model.opt.integrator = DT, mujoco.mjtIntegrator.mjINT_DISCRETE
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    servo = interop.StablePD(model, 300.0, 30.0, limits=False)
    data, target = moving(model, size=0.2), model.qpos0
    q, tau = data.qpos.copy(), servo(data, target)
    data.qfrc_applied[:] = tau
    mujoco.mj_step(model, data)
    ends = -300.0 * (q[7:] + DT * data.qvel[6:] - target[7:]) - 30.0 * data.qvel[6:]
    np.testing.assert_allclose(tau[6:], ends, rtol=0, atol=1e-9)


def test_other_forces_may_be_told() -> None:
    model = arm(lower="gravcomp='1'")
    data = moving(model)
    mujoco.mj_forward(model, data)
    assert np.abs(data.qfrc_gravcomp).max() > 0.1
    check_promise(model, interop.StablePD(model, 900.0, 40.0), data, force=data.qfrc_gravcomp)


def test_what_mujoco_derived_long_ago_does_not_matter() -> None:
    model = interop.model_of(poise.load_character("humanoid"))
    servo, target = interop.StablePD(model), model.qpos0.copy()
    data = moving(model)
    tau = servo(data, target)
    mujoco.mj_forward(model, data)
    np.testing.assert_array_equal(servo(data, target), tau)


def test_the_model_may_come_first_and_must_be_the_same() -> None:
    model = arm()
    servo, data, target = interop.StablePD(model, 9.0, 1.0), moving(model), np.zeros(2)
    np.testing.assert_array_equal(servo(model, data, target), servo(data, target))
    with pytest.raises(PoiseError, match="made from another model"):
        servo(arm(), data, target)


@pytest.mark.parametrize(("option", "value"), [("timestep", 0.002), ("gravity", (1.0, 2.0, -3.0))])
def test_time_step_and_gravity_are_the_models_own(option: str, value: Any) -> None:
    model = arm()
    servo, data, target = interop.StablePD(model, 50.0, 5.0), moving(model), np.zeros(2)
    before = servo(data, target)
    setattr(model.opt, option, value)
    after = servo(data, target)
    np.testing.assert_array_equal(after, interop.StablePD(model, 50.0, 5.0)(data, target))
    assert np.abs(after - before).max() > 0.1


def test_gravity_that_is_turned_off_is_none() -> None:
    off, none = arm(more="<option><flag gravity='disable'/></option>"), arm()
    none.opt.gravity[:] = 0.0
    data = moving(none)
    one, two = (interop.StablePD(model, 50.0, 5.0) for model in (off, none))
    np.testing.assert_array_equal(one(data, np.zeros(2)), two(data, np.zeros(2)))


@pytest.mark.parametrize("kind", [list, tuple, interop.state_of])
def test_a_batch_has_the_torques_of_its_members(kind: Any) -> None:
    model = interop.model_of(poise.load_character("humanoid"))
    servo = interop.StablePD(model, 600.0, 60.0, threads=1)
    datas = [moving(model, seed) for seed in range(5)]
    targets = np.array([moving(model, seed, 0.2).qpos for seed in range(5, 10)])
    rows = servo(kind(datas), targets)
    assert rows.shape == (5, model.nv)
    for row, data, target in zip(rows, datas, targets, strict=True):
        # lanes may round another way than one character does
        np.testing.assert_allclose(row, servo(data, target), rtol=1e-9, atol=1e-9)


def test_a_batch_knows_the_push_on_one_of_it() -> None:
    model = interop.model_of(poise.load_character("humanoid"))
    servo = interop.StablePD(model, 600.0, 60.0, threads=1)
    datas = tuple(moving(model, seed) for seed in range(3))
    before = servo(datas, model.qpos0)
    datas[1].xfrc_applied[5] = 40.0
    after = servo(datas, model.qpos0)
    np.testing.assert_array_equal(after[[0, 2]], before[[0, 2]])
    np.testing.assert_allclose(after[1], servo(datas[1], model.qpos0), rtol=1e-9, atol=1e-9)
    assert np.abs(after[1] - before[1]).max() > 0.1


@pytest.mark.parametrize("seed", range(3))
def test_limits_of_the_model_are_kept_as_poise_keeps_them(seed: int) -> None:
    rng = np.random.default_rng(seed)
    character = random_character(rng, 8, effort=True)
    model = interop.model_of(character, dt=DT, ground=False)
    (q, v), (target, _) = random_state(rng, character), random_state(rng, character)
    servo = interop.StablePD(model, 2e3, 50.0)
    kp, kd = servo.gains.kp, servo.gains.kd
    ours = dynamics.stable_pd(character, q, v, (target, None), kp, kd, DT, limits=True)[1]
    free = dynamics.stable_pd(character, q, v, (target, None), kp, kd, DT)[1]
    np.testing.assert_allclose(servo(poise.State(q, v), target), ours, rtol=1e-7, atol=1e-7)
    assert np.abs(ours - free).max() > 1.0


@pytest.mark.parametrize("seed", range(3))
def test_no_other_force_takes_a_torque_beyond_its_limit(seed: int) -> None:
    rng = np.random.default_rng(seed)
    character = random_character(rng, 8, effort=True)
    model = interop.model_of(character, dt=DT, ground=False)
    servo = interop.StablePD(model, 2e3, 50.0)
    state = poise.State(*random_state(rng, character))
    tau = servo(state, character.rest_q, force=rng.normal(0.0, 100.0, character.nv))
    for joint in character.joints:
        own = np.atleast_1d(np.inf if joint.effort is None else joint.effort)
        mine = tau[character.v_slice(joint)]
        whole = joint.kind == "ball" and own.size == 1
        size = np.atleast_1d(np.linalg.norm(mine)) if whole else np.abs(mine)
        assert (size <= own * (1 + 1e-12)).all()


@pytest.mark.parametrize("seed", range(3))
def test_under_another_force_joints_give_their_limit_or_what_the_drive_asks(seed: int) -> None:
    rng = np.random.default_rng(seed)
    character = random_character(rng, 8, kinds=("hinge", "slide"), base="fixed", effort=True)
    servo = interop.StablePD(interop.model_of(character, dt=DT, ground=False), 50.0, 2.5)
    q, v = random_state(rng, character)
    load, goal = rng.normal(0.0, 30.0, character.nv), character.rest_q
    tau = servo(poise.State(q, v), goal, force=load)
    # what the drive asks for at the acceleration that all forces together cause
    Q, K = dynamics.drive(character, q, v, (goal, None), servo.gains.kp, servo.gains.kd, DT)
    asked = Q - K * dynamics.forward_dynamics(character, q, v, tau + load)
    limit = servo.scene.forest.effort
    np.testing.assert_allclose(tau, np.clip(asked, -limit, limit), rtol=1e-7, atol=1e-7)
    assert 0 < np.isclose(np.abs(tau), limit).sum() < character.nv


def test_limits_may_be_left_out() -> None:
    model = arm(elbow="actuatorfrcrange='-1 1'")
    tight, loose = (interop.StablePD(model, 900.0, 9.0, limits=x) for x in (True, False))
    data = moving(model)
    assert abs(tight(data, np.zeros(2))[1]) <= 1.0 < abs(loose(data, np.zeros(2))[1])


def test_a_view_follows_the_memory_it_was_made_of() -> None:
    numbers = np.zeros(3)
    view = _core.View(numbers)
    assert not view.any()
    numbers[1] = -2.0
    assert view.any()
    with pytest.raises(PoiseError, match="array must be a C-contiguous float64 array"):
        _core.View(np.zeros((4, 4))[:, 1])
