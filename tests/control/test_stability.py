"""Large steps: what the fully implicit form holds, and where the others fail.

SPD is stable while 3 kp dt² < 4 m + 2 kd dt, m the inertia a joint moves: with kp dt = 100 kd every
light link fails. The fully implicit form is a spring and a damper taken at the end of the step,
and holds at any gains and any step.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest
from free_world import World
from numpy.typing import NDArray

from poise import Command, Drive, Gains, State, Target, load_character, reference
from poise.errors import Diverged
from poise.model.character import Character, Joint, Link

Array = NDArray[np.float64]

DT = 1 / 30

both_dtypes = pytest.mark.parametrize("dtype", ["float64", "float32"])
subjects = pytest.mark.parametrize("name", ["humanoid", "chain"])
stiffnesses = pytest.mark.parametrize("kp", [100.0, 1000.0, 75000.0])


@lru_cache
def character(name: str) -> Character:
    """The humanoid, or a chain of eight links, each 0.4 times as heavy as the one before."""
    if name != "chain":
        return load_character(name)
    links = []
    for i in range(8):
        mass = 4.0 * 0.4**i
        joint = Joint(f"joint{i}", "hinge" if i % 2 else "ball", axis=(1, 0, 0))
        links.append(
            Link(
                f"link{i}",
                f"link{i - 1}" if i else None,
                pos=(0, 0, -0.3) if i else (0, 0, 0),
                joints=(joint,),
                mass=mass,
                com=(0, 0, -0.15),
                inertia=(0.0075 * mass, 0.0075 * mass, 0.001 * mass),
            )
        )
    return Character("chain", tuple(links))


def errors(name: str, form: str, kp: float, kd: float, dt: float, dtype: str) -> Array:
    """Largest joint error after each step of three seconds, from 0.1 rad beside the target [rad].

    The humanoid's root is free and falls; its joints hold their pose.
    """
    model = character(name)
    joints = np.ones(model.nv)
    if model.joints[0].kind == "free":
        joints[:6] = 0.0
    start = 0.1 * joints * np.random.default_rng(0).normal(size=model.nv)
    world = World(model, dt=dt, dtype=dtype)
    world.reset(State(reference.move(model, model.rest_q, start, 1.0)))
    drive = Drive(Gains(model, kp * joints, kd * joints), Target(model.rest_q), form=form)
    out = []
    for _ in range(round(3 / dt)):
        world.step(Command(drive=drive))
        e = reference.difference(model, world.state.q, model.rest_q)
        out.append(np.abs(joints * e).max())
    return np.array(out)


def fails(name: str, form: str, kp: float, kd: float, dtype: str) -> bool:
    """Whether the world diverges, or a joint is thrown about by more than half a turn."""
    try:
        return bool(errors(name, form, kp, kd, DT, dtype).max() > np.pi)
    except Diverged:
        return True


@both_dtypes
@stiffnesses
@subjects
def test_the_implicit_form_holds_with_hardly_any_damping(name: str, kp: float, dtype: str) -> None:
    # kp dt is 100 times kd
    e = errors(name, "implicit", kp, kp * DT / 100, DT, dtype)
    # at first 0.3 rad at most; the implicit step damps what the gains do not
    assert e.max() < 0.3
    assert e[-30:].max() < 0.02


@both_dtypes
@stiffnesses
@subjects
def test_the_spd_form_fails_there(name: str, kp: float, dtype: str) -> None:
    assert fails(name, "spd", kp, kp * DT / 100, dtype)


@both_dtypes
@stiffnesses
@subjects
def test_explicit_position_fails_there(name: str, kp: float, dtype: str) -> None:
    assert fails(name, "explicit", kp, kp * DT / 100, dtype)


@both_dtypes
@stiffnesses
@subjects
def test_explicit_pd_fails_there(name: str, kp: float, dtype: str) -> None:
    assert fails(name, "pd", kp, kp * DT / 100, dtype)


@both_dtypes
@subjects
def test_explicit_pd_fails_with_the_damping_that_spd_wants(name: str, dtype: str) -> None:
    assert fails(name, "pd", 1000.0, 100.0, dtype)
    assert not fails(name, "spd", 1000.0, 100.0, dtype)


@pytest.mark.parametrize("dt", [1 / 1000, 1 / 10, 0.5])
@subjects
def test_the_implicit_form_holds_at_any_step(name: str, dt: float) -> None:
    e = errors(name, "implicit", 1000.0, 1000.0 * DT / 100, dt, "float64")
    assert e.max() < 0.3
    assert e[-1] < 0.1


@pytest.mark.parametrize(("ratio", "stable"), [(0.9, True), (1.1, False)])
def test_the_spd_form_is_stable_up_to_its_printed_bound(ratio: float, stable: bool) -> None:
    # one slide of mass m: 3 kp dt² = 4 m + 2 kd dt is the border
    mass, kd = 2.0, 10.0
    kp = ratio * (4 * mass + 2 * kd * DT) / (3 * DT**2)
    link = Link("cart", joints=(Joint("rail", "slide"),), mass=mass, inertia=(1, 1, 1))
    model = Character("cart", (link,))
    world = World(model, dt=DT, gravity=(0, 0, 0))
    world.reset(State([0.001]))
    drive = Drive(Gains(model, kp, kd), Target([0.0]), form="spd")
    world.step(Command(drive=drive), steps=60)
    assert (abs(world.state.q[0]) < 0.001) == stable


# stiff tracking


@lru_cache
def wave(name: str) -> tuple[Array, Array]:
    """Four seconds of a wave of 0.2 rad and 1 Hz through all joints; rows of q and v."""
    model = character(name)
    times = DT * np.arange(122)
    phase = 0.7 * np.arange(model.nv)
    q = np.array(
        [
            reference.move(model, model.rest_q, 0.2 * np.sin(2 * np.pi * t - phase), 1.0)
            for t in times
        ]
    )
    v = [reference.difference(model, b, a) / (2 * DT) for a, b in zip(q, q[2:], strict=False)]
    return q[1:-1], np.array(v)


@both_dtypes
@pytest.mark.parametrize("form", ["implicit", "spd"])
@pytest.mark.parametrize("name", ["humanoid", "dog", "snake-36", "snake-72", "snake-195"])
def test_the_gains_of_yin2020_track_a_wave_at_30_steps_per_second(
    name: str, form: str, dtype: str
) -> None:
    model, (q, v) = character(name), wave(name)
    kp, kd = np.full(model.nv, 75000.0), np.full(model.nv, 4000.0)
    kp[:6], kd[:6] = 20000.0, 2000.0
    world = World(model, dt=DT, dtype=dtype)
    world.reset(State(q[0], v[0]))
    worst = np.zeros(model.nv)
    gains = Gains(model, kp, kd)
    for q_bar, v_bar in zip(q[1:], v[1:], strict=True):
        world.step(Command(drive=Drive(gains, Target(q_bar, v_bar), form=form)))
        worst = np.maximum(worst, np.abs(reference.difference(model, world.state.q, q_bar)))
    # the longest snake, 49 kg and 6 m, lifted by its head: 1.5 kN m of weight alone turn the root
    # by 0.08 rad and the first joint by 0.02 rad
    assert worst[6:].max() < 0.08
    assert worst[:6].max() < 0.2
