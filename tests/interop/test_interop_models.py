"""Characters from MuJoCo models, models from characters, states both ways."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from interop_models import DT, arm, moving, mujoco
from peers import mujoco_mass_matrix, mujoco_state
from trees import random_state

import poise
from poise import dynamics
from poise.errors import CharacterError, PoiseError
from poise.interop import mujoco as interop


@pytest.mark.parametrize("name", ["humanoid", "dog", "snake-36"])
def test_a_model_and_its_character_have_the_same_dynamics(name: str) -> None:
    model = interop.model_of(poise.load_character(name))
    character = interop.character_of(model)
    q, v = random_state(np.random.default_rng(3), character)
    data = mujoco_state(model, q, v)
    M, h = dynamics.mass_matrix(character, q), dynamics.bias_force(character, q, v)
    # the writer's principal axes and the reader's way back round
    np.testing.assert_allclose(M, mujoco_mass_matrix(model, data), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(h, data.qfrc_bias, rtol=1e-9, atol=1e-9)


def test_a_character_keeps_its_names_through_a_model() -> None:
    humanoid = poise.load_character("humanoid")
    again = interop.character_of(interop.model_of(humanoid))
    assert again.name == humanoid.name
    assert [joint.name for joint in again.joints] == [joint.name for joint in humanoid.joints]
    assert again.limbs == humanoid.limbs


TWO = """<mujoco><worldbody><body name="table" pos="0 0 1"><geom size=".5 .5 .1" type="box"/></body>
<body name="ball"><freejoint/><geom size=".1"/></body>
<body name="wall" pos="3 0 0"><geom size=".1 1 1" type="box"/></body>
<body name="door" pos="2 0 0"><joint name="hinge"/><geom size=".1" pos=".5 0 0"/></body>
</worldbody></mujoco>"""


def test_each_tree_that_moves_is_a_character_and_scenery_is_none() -> None:
    model = mujoco.MjModel.from_xml_string(TWO)
    characters = interop.characters_of(model)
    assert [character.name for character in characters] == ["ball", "door"]
    data = moving(model)
    mujoco.mj_forward(model, data)
    M = dynamics.mass_matrix(characters, data.qpos)
    np.testing.assert_allclose(M, mujoco_mass_matrix(model, data), rtol=1e-12, atol=1e-12)


def test_one_character_of_several_is_refused_with_their_names() -> None:
    with pytest.raises(CharacterError, match=r"2 trees that move: 'ball', 'door'; characters_of"):
        interop.character_of(mujoco.MjModel.from_xml_string(TWO))


def test_a_model_in_which_nothing_moves_is_refused() -> None:
    still = "<mujoco><worldbody><body><geom size='.1'/></body></worldbody></mujoco>"
    with pytest.raises(CharacterError, match="nothing in the model moves"):
        interop.character_of(mujoco.MjModel.from_xml_string(still))


def test_what_is_no_model_is_refused() -> None:
    with pytest.raises(PoiseError, match=r"expected a mujoco.MjModel, got 'humanoid'"):
        interop.character_of("humanoid")


def test_a_state_goes_to_a_world_and_back_unchanged() -> None:
    humanoid = poise.load_character("humanoid")
    model = interop.model_of(humanoid)
    data = moving(model)
    data.time = 1.5
    world = poise.World(humanoid, dt=DT)
    world.reset(interop.state_of(data))
    other = mujoco.MjData(model)
    interop.write_state(other, world.state)
    # a world normalises quaternions: the last bit may move
    np.testing.assert_allclose(other.qpos, data.qpos, rtol=0, atol=4e-16)
    np.testing.assert_array_equal(other.qvel, data.qvel)
    assert other.time == 1.5


def test_several_data_are_one_batch_both_ways() -> None:
    model = arm()
    datas = [moving(model, seed) for seed in range(3)]
    state = interop.state_of(datas)
    assert state.q.shape == state.v.shape == (3, 2)
    others = [mujoco.MjData(model) for _ in range(3)]
    interop.write_state(others, state)
    for one, other in zip(datas, others, strict=True):
        np.testing.assert_array_equal(one.qpos, other.qpos)
        np.testing.assert_array_equal(one.qvel, other.qvel)


def test_positions_alone_are_written_at_rest() -> None:
    model = arm()
    data = moving(model)
    interop.write_state(data, poise.State([0.1, 0.2]))
    np.testing.assert_array_equal(data.qvel, [0.0, 0.0])


def test_rows_of_a_rollout_are_states() -> None:
    rollout = pytest.importorskip("mujoco.rollout")
    model = interop.model_of(poise.load_character("humanoid"))
    data = moving(model)
    full = mujoco.mjtState.mjSTATE_FULLPHYSICS.value
    first = np.empty(mujoco.mj_stateSize(model, full))
    mujoco.mj_getState(model, data, first, full)
    rows, _ = rollout.rollout(model, mujoco.MjData(model), first, nstep=3)
    mujoco.mj_step(model, data, 3)
    state = interop.rollout_state(model, rows)
    assert state.q.shape == (1, 3, model.nq)
    np.testing.assert_array_equal(state.q[0, -1], data.qpos)
    np.testing.assert_array_equal(state.v[0, -1], data.qvel)
    assert state.time[0, -1] == data.time


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda model, data: interop.write_state(data, None), "a state has q and v; got None"),
        (
            lambda model, data: interop.write_state(data, poise.State([0.0, np.nan], [0.0, 0.0])),
            r"q\[1\] is nan",
        ),
        (
            lambda model, data: interop.write_state(data, poise.State([0.0, 0.0], [np.inf, 0.0])),
            r"v\[0\] is inf",
        ),
        (lambda model, data: interop.rollout_state(None, np.zeros((1, 9))), "mujoco.MjModel"),
        (lambda model, data: interop.model_of(model), "expected a Character"),
        (lambda model, data: interop.model_of(interop.character_of(model), dt=0.0), "dt is 0"),
        (lambda model, data: interop.DenseStablePD(None, 1.0, 1.0), "mujoco.MjModel"),
        (lambda model, data: interop.DenseStablePD(model, np.ones(3), 1.0), "kp has shape"),
        (lambda model, data: interop.DenseStablePD(model, 1.0, np.nan), "kd is nan"),
    ],
)
def test_bad_input_is_named(call: Any, message: str) -> None:
    model = arm()
    with pytest.raises(PoiseError, match=message):
        call(model, mujoco.MjData(model))


def test_a_state_of_another_size_is_refused() -> None:
    data = mujoco.MjData(arm())
    with pytest.raises(PoiseError, match=r"q has shape \(3,\), this MjData has \(2,\)"):
        interop.write_state(data, poise.State(np.zeros(3), np.zeros(2)))
    with pytest.raises(PoiseError, match=r"q has shape \(3, 2\); there are 2 MjData"):
        interop.write_state([data, data], poise.State(np.zeros((3, 2)), np.zeros((3, 2))))
