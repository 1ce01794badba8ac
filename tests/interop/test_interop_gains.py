"""Stable PD for MuJoCo: gains, bad input, and controls of motors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from interop_models import arm, moving, mujoco

import poise
from poise.errors import PoiseError
from poise.interop import mujoco as interop


def test_a_number_leaves_the_free_root_alone_and_held_holds_it() -> None:
    model = interop.model_of(poise.load_character("humanoid"))
    free = interop.StablePD(model, 600.0, 60.0).gains
    held = interop.StablePD(model, 600.0, 60.0, root="held").gains
    np.testing.assert_array_equal(free.kp, [0.0] * 6 + [600.0] * 28)
    np.testing.assert_array_equal(held.kd, [2000.0] * 6 + [60.0] * 28)


def test_gains_by_name_are_those_of_the_joints_named() -> None:
    gains = interop.StablePD(arm(), {"elbow": 9.0}, {"elbow": 1.0, "shoulder": 2.0}).gains
    np.testing.assert_array_equal(gains.kp, [0.0, 9.0])
    np.testing.assert_array_equal(gains.kd, [2.0, 1.0])


def test_without_gains_a_frequency_gives_them() -> None:
    model = arm()
    suggested = poise.suggest_gains(interop.character_of(model), 5.0, 0.7)
    gains = interop.StablePD(model, frequency=5.0, damping=0.7).gains
    np.testing.assert_array_equal(gains.kp, suggested.kp)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"kp": 1.0}, "both kp and kd"),
        ({"kp": {"elbw": 1.0}, "kd": 1.0}, "unknown joint 'elbw'; did you mean 'elbow'"),
        ({"kp": -1.0, "kd": 1.0}, "kp"),
        ({"kp": np.nan, "kd": 1.0}, "kp"),
        ({"kp": 1.0, "kd": np.inf}, "kd"),
        ({"kp": {"elbow": "stiff"}, "kd": 1.0}, "kp"),
        ({"kp": "stiff", "kd": 1.0}, "kp"),
        ({"frequency": 0.0}, "frequency"),
        ({"damping": np.nan}, "damping"),
        ({"threads": 0}, "threads"),
        ({"threads": 1.5}, "threads"),
        ({"kp": [1.0, 2.0, 3.0], "kd": 1.0}, r"kp has shape \(3,\)"),
        ({"root": "soft"}, "root is 'soft'"),
        ({"form": "best"}, "form is 'best'"),
        ({"method": "best"}, "method is 'best'"),
    ],
)
def test_wrong_gains_and_options_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(PoiseError, match=message):
        interop.StablePD(arm(), **given)


@pytest.mark.parametrize(
    ("data", "target", "message"),
    [
        ("data", np.zeros(2), "expected a mujoco.MjData"),
        ([], np.zeros(2), "at least one MjData"),
        (poise.State(np.zeros(3), np.zeros(2)), np.zeros(2), "this model has nq = 2 and nv = 2"),
        (poise.State(np.zeros(2), np.zeros(2)), np.zeros(3), "target.q"),
        (poise.State(np.full(2, np.nan), np.zeros(2)), np.zeros(2), "q holds a number that is not"),
        (poise.State(np.zeros(2), np.zeros(2)), None, "target.q"),
        (poise.State(np.zeros(2), np.zeros(2)), np.array([0.0, np.inf]), "target.q"),
        (poise.State(np.zeros(2), np.zeros(2)), "up", "target.q"),
        (poise.State(np.zeros(2), np.zeros(2)), (np.zeros(2), np.zeros(3)), "target.v"),
        (poise.State(np.zeros((3, 2)), np.zeros((3, 2))), np.zeros((2, 2)), "target.q"),
        (poise.State(np.zeros((3, 2)), np.zeros((2, 2))), np.zeros(2), "v"),
        (poise.State(np.zeros((0, 2)), np.zeros((0, 2))), np.zeros(2), "at least one"),
        (poise.State(np.zeros(2), np.full(2, 1e200)), np.zeros(2), "v"),
    ],
)
def test_wrong_data_and_targets_are_refused(data: Any, target: Any, message: str) -> None:
    with pytest.raises(PoiseError, match=message):
        interop.StablePD(arm(), 9.0, 1.0)(data, target)


@pytest.mark.parametrize("dt", [0.0, -0.01, np.nan, np.inf])
def test_a_time_step_that_is_none_is_refused(dt: float) -> None:
    model = arm()
    servo = interop.StablePD(model, 9.0, 1.0)
    model.opt.timestep = dt
    with pytest.raises(PoiseError, match="dt is"):
        servo(poise.State(np.zeros(2), np.zeros(2)), np.zeros(2))


def test_a_force_that_is_not_a_number_is_refused() -> None:
    servo, state = interop.StablePD(arm(), 9.0, 1.0), poise.State(np.zeros(2), np.zeros(2))
    with pytest.raises(PoiseError, match="force holds a number that is not"):
        servo(state, np.zeros(2), force=np.array([0.0, np.nan]))


def test_a_force_of_another_size_is_refused() -> None:
    servo, state = interop.StablePD(arm(), 9.0, 1.0), poise.State(np.zeros(2), np.zeros(2))
    with pytest.raises(PoiseError, match=r"force has shape \(3,\), expected \(2,\)"):
        servo(state, np.zeros(2), force=np.zeros(3))


def test_controls_make_the_motors_give_the_torques() -> None:
    model = interop.model_of(poise.load_character("humanoid"))
    servo, data = interop.StablePD(model, 60.0, 6.0), moving(model, size=0.05)
    target = model.qpos0.copy()
    data.ctrl[:] = servo.ctrl(data, target)
    mujoco.mj_forward(model, data)
    np.testing.assert_allclose(data.qfrc_actuator, servo(data, target), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    "motors",
    [
        "<motor joint='elbow' gear='-3'/><general joint='shoulder' gainprm='5'/>",
        "<motor joint='elbow' gear='2'/><motor joint='elbow'/><motor joint='shoulder'/>",
    ],
)
def test_gears_gains_and_shared_joints_are_undone(motors: str) -> None:
    model = arm(more=f"<actuator>{motors}</actuator>")
    servo, data = interop.StablePD(model, 90.0, 9.0), moving(model)
    data.ctrl[:] = servo.ctrl(data, np.zeros(2))
    mujoco.mj_forward(model, data)
    np.testing.assert_allclose(data.qfrc_actuator, servo(data, np.zeros(2)), rtol=1e-12)


@pytest.mark.parametrize(
    ("actuator", "message"),
    [
        ("<motor joint='elbow'/>", "joint 'shoulder' has gains, and no motor"),
        ("<position name='p' joint='elbow'/>", "actuator 'p' is not a motor on a joint"),
        ("<motor name='m' site='s'/>", "actuator 'm' is not a motor on a joint"),
        ("", "joint 'shoulder' has gains, and no motor"),
    ],
)
def test_controls_that_cannot_be_found_are_refused(actuator: str, message: str) -> None:
    more = f"<worldbody><site name='s'/></worldbody><actuator>{actuator}</actuator>"
    servo = interop.StablePD(arm(more=more), 9.0, 1.0)
    with pytest.raises(PoiseError, match=message):
        servo.ctrl(mujoco.MjData(servo.model), np.zeros(2))
