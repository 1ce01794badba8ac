"""poise inside MuJoCo: characters, states and stable PD. MuJoCo itself is the second opinion."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from peers import mujoco_mass_matrix, mujoco_state, to_mujoco
from trees import random_character, random_state

import poise
from poise import dynamics
from poise.errors import CharacterError, PoiseError
from poise.interop import mujoco as interop

mujoco = pytest.importorskip("mujoco")

Array = NDArray[np.float64]
DT = 1 / 60

ARM = """<mujoco><option timestep="0.0166666666666666666" integrator="{integrator}"/><worldbody>
<body name="upper"><joint name="shoulder" axis="0 1 0" {shoulder}/>
  <inertial pos="0 0 -.2" mass="1.5" diaginertia=".01 .01 .002"/>
  <body name="lower" pos="0 0 -.4" {lower}><joint name="elbow" axis="0 1 0" {elbow}/>
    <inertial pos="0 0 -.15" mass="1" diaginertia=".005 .005 .001"/></body></body>
</worldbody>{more}</mujoco>"""


def arm(**parts: str) -> Any:
    """Two hinges; parts are attributes and elements to put in."""
    known = {"integrator": "Euler", "shoulder": "", "elbow": "", "lower": "", "more": ""}
    return mujoco.MjModel.from_xml_string(ARM.format(**(known | parts)))


def moving(model: Any, seed: int = 1, size: float = 0.5) -> Any:
    """An MjData somewhere, on its way."""
    data = mujoco.MjData(model)
    rng = np.random.default_rng(seed)
    mujoco.mj_integratePos(model, data.qpos, size * rng.normal(size=model.nv), 1.0)
    data.qvel[:] = size * rng.normal(size=model.nv)
    return data


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


# ---- characters


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


# ---- states


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


# ---- torques


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


# ---- gains


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


# ---- motors


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


# ---- inside MuJoCo's solve


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
    world = poise.World(_free(humanoid), dt=DT, contact=None)
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
    with pytest.raises(PoiseError, match="nothing was asked"):
        drive.torque(mujoco.MjData(model))
    with pytest.raises(PoiseError, match="one MjData at a time"):
        drive([mujoco.MjData(model)], np.zeros(2))
    with pytest.raises(PoiseError, match="one set of gains"):
        interop.EmbeddedPD(model, np.ones((3, 2)), 1.0)


def test_every_name_is_there() -> None:
    for name in interop.__all__:
        assert hasattr(interop, name)
