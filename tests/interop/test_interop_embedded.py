"""Stable PD inside MuJoCo's own solve, contact included."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from interop_models import DT, arm, moving, mujoco

import poise
from poise.errors import PoiseError
from poise.interop import mujoco as interop


def simulate(model: Any, servo: Any, seconds: float) -> Any:
    """Hold the rest pose; the MjData at the end, or where it went wrong."""
    data, target = mujoco.MjData(model), model.qpos0.copy()
    for _ in range(round(seconds / model.opt.timestep)):
        data.qfrc_applied[:] = servo(data, target)
        mujoco.mj_step(model, data)
        if data.qpos[2] < 0.6 * target[2] or data.warning.number.any():
            break
    return data


@pytest.mark.parametrize("form", ["explicit", "spd", "implicit"])
def test_embedded_mujoco_takes_the_steps_of_a_world(form: str) -> None:
    humanoid = poise.load_character("humanoid")
    model = interop.model_of(humanoid, ground=False)
    model.jnt_limited[:] = 0
    drive, data = interop.EmbeddedPD(model, 600.0, 60.0, form=form), moving(model, size=0.2)
    world = poise.World(_free(humanoid), dt=DT, contact=None, momentum_correction=False)
    world.reset(interop.state_of(data))
    servo = poise.StablePD(world, poise.Gains(world, drive.gains.kp, drive.gains.kd), form=form)
    target = poise.State(model.qpos0)
    for _ in range(20):
        data.qfrc_applied[:] = drive(data, target)
        mujoco.mj_step(model, data)
        world.step(servo(world.state, target))
        np.testing.assert_allclose(drive.torque(data), world.torque, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(data.qpos, world.state.q, rtol=0, atol=1e-9)
    np.testing.assert_allclose(data.qvel, world.state.v, rtol=0, atol=1e-8)


def _free(character: poise.Character) -> poise.Character:
    """The character as a model without limits of force has it."""
    return interop.StablePD(interop.model_of(character), limits=False).scene.characters[0]


def test_without_contact_the_torques_of_both_drives_are_one() -> None:
    humanoid = poise.load_character("humanoid")
    model, other = (interop.model_of(humanoid, ground=False) for _ in range(2))
    model.jnt_limited[:] = 0
    data, target = moving(model, size=0.2), model.qpos0.copy()
    tau = interop.StablePD(other, 600.0, 60.0, limits=False)(data, target)
    drive = interop.EmbeddedPD(model, 600.0, 60.0)
    data.qfrc_applied[:] = drive(data, target)
    mujoco.mj_step(model, data)
    np.testing.assert_allclose(drive.torque(data), tau, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kp", [1e3, 1e4, 1e6])
def test_embedded_a_humanoid_stands_on_mujocos_ground_and_standalone_it_falls(kp: float) -> None:
    model = interop.model_of(poise.load_character("humanoid"))
    alone = simulate(model, interop.StablePD(model, kp, 0.1 * kp, limits=False), 4.0)
    stands = simulate(model, interop.EmbeddedPD(model, kp, 0.1 * kp), 4.0)
    assert alone.qpos[2] < 0.6 * model.qpos0[2]
    # the weight of 60 kg, some centimetres in front of the ankles, makes them sag
    np.testing.assert_allclose(stands.qpos[7:], model.qpos0[7:], rtol=0, atol=10.0 / kp)
    assert np.abs(stands.qvel).max() < 1e-2  # the softest still settles


def test_on_the_ground_the_forces_of_the_step_before_complete_the_torques() -> None:
    model = interop.model_of(poise.load_character("humanoid"))
    drive = interop.EmbeddedPD(model, 1e4, 1e3)
    data = simulate(model, drive, 4.0)
    drive(data, model.qpos0)
    stands = drive.torque(data)  # at rest: nothing accelerates
    drive.release()
    knows, guesses = (
        interop.StablePD(model, 1e4, 1e3, limits=False, contacts=x)(data, model.qpos0)
        for x in (True, False)
    )
    # what is left moves by less than 1e-3 rad/s
    np.testing.assert_allclose(knows, stands, rtol=0, atol=1e-2)
    assert np.abs(guesses - stands).max() > 1.0


def test_gains_that_blow_up_mujocos_servo_hold_in_the_air() -> None:
    humanoid = poise.load_character("humanoid").with_base("fixed")
    model, other = (interop.model_of(humanoid, ground=False) for _ in range(2))
    servo = interop.StablePD(model, 600.0, 60.0, limits=False)
    other.actuator_biastype[:] = int(mujoco.mjtBias.mjBIAS_AFFINE)
    other.actuator_gainprm[:, 0] = 600.0
    other.actuator_biasprm[:, 1:3] = -600.0, -60.0
    ours, theirs = mujoco.MjData(model), mujoco.MjData(other)
    for _ in range(60):
        ours.qfrc_applied[:] = servo(ours, model.qpos0)
        mujoco.mj_step(model, ours)
    handler = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(lambda message: None)  # it would write to a file
    mujoco.mj_step(other, theirs, 60)
    mujoco.set_mju_user_warning(handler)
    assert theirs.warning.number.any()
    assert not ours.warning.number.any()
    assert np.abs(ours.qpos - model.qpos0).max() < 0.05


def test_a_released_model_is_as_it_was_and_another_step_embeds_anew() -> None:
    model = arm(elbow="armature='0.3'")
    drive = interop.EmbeddedPD(model, 600.0, 60.0)
    np.testing.assert_allclose(model.dof_armature, [7 / 6, 7 / 6 + 0.3], rtol=1e-12)
    model.opt.timestep = 0.01
    drive(moving(model), np.zeros(2))
    np.testing.assert_allclose(model.dof_armature, [0.66, 0.96], rtol=1e-12)
    drive.release()
    np.testing.assert_array_equal(model.dof_armature, [0.0, 0.3])


def test_an_embedded_drive_says_what_it_cannot() -> None:
    model = arm()
    drive = interop.EmbeddedPD(model, 600.0, 60.0)
    with pytest.raises(PoiseError, match="has not been called"):
        drive.torque(mujoco.MjData(model))
    with pytest.raises(PoiseError, match="one MjData at a time"):
        drive([mujoco.MjData(model)], np.zeros(2))
    with pytest.raises(PoiseError, match="one set of gains"):
        interop.EmbeddedPD(model, np.ones((3, 2)), 1.0)


def test_every_name_is_there() -> None:
    for name in interop.__all__:
        assert hasattr(interop, name)
