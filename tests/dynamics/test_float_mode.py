"""Kernels compute in a floating-point mode of their own, and the caller keeps the caller's."""

from __future__ import annotations

import ctypes
import platform
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest

import poise
from poise import Command, Drive, Gains, State, Target, World, dynamics
from poise.errors import PoiseError
from poise.math.arrays import Floats
from poise.view import render

pytestmark = pytest.mark.arithmetic

DOG = poise.load_character("dog")
HUMAN = poise.load_character("humanoid-51")
STILL = Command(drive=Drive(Gains(DOG, 7.5e4, 4e3), Target(DOG.rest_q), form="spd"))

MXCSR = 28  # where glibc's fenv_t has it, on x86-64
FLUSH = 0x8040  # flush to zero, denormals are zero
UP = 0x4000  # round up
has_mxcsr = pytest.mark.skipif(
    platform.machine() != "x86_64" or platform.libc_ver()[0] != "glibc",
    reason="the mode is read through glibc's fenv_t of x86-64",
)


def mode() -> int:
    """The control bits of this thread's MXCSR; the others only say what has happened."""
    env = (ctypes.c_ubyte * 32)()
    ctypes.CDLL(None).fegetenv(env)
    return int.from_bytes(bytes(env[MXCSR:]), "little") & ~0x3F


@contextmanager
def caller_mode(bits: int) -> Iterator[None]:
    """Compute in another mode for a while."""
    libm = ctypes.CDLL("libm.so.6")
    before, other = (ctypes.c_ubyte * 32)(), (ctypes.c_ubyte * 32)()
    libm.fegetenv(before)
    changed = int.from_bytes(bytes(before[MXCSR:]), "little") | bits
    other[:] = [*before[:MXCSR], *changed.to_bytes(4, "little")]
    libm.fesetenv(other)
    try:
        yield
    finally:
        libm.fesetenv(before)


def has_denormals() -> bool:
    """Whether NumPy, in this thread, gives and takes denormal numbers in both precisions."""
    wide, single = np.array([2e-308]) / 4.0, np.array([2e-38], np.float32) / np.float32(8.0)
    return bool(wide[0] > 0.0 and single[0] > 0.0 and (wide * 2.0)[0] > wide[0])


def slow_dog(n: int, dtype: str, threads: int) -> World:
    """Copies whose velocities are the smallest normal numbers: a step makes denormal ones."""
    world = World(DOG, n=n, dt=1 / 240, dtype=dtype, threads=threads, contact=None)
    v = 10.0 * float(np.finfo(dtype).tiny) * np.random.default_rng(1).normal(size=(n, DOG.nv))
    world.reset(State(np.tile(DOG.rest_q, (n, 1)), v) if n > 1 else State(DOG.rest_q, v[0]))
    world.gravity = np.zeros(3)
    return world


def steps(n: int, dtype: str = "float32", threads: int = 1) -> Callable[[], Floats]:
    world = slow_dog(n, dtype, threads)
    start = world.state.copy()

    def run() -> Floats:
        world.reset(start)
        world.step(STILL, steps=8)
        return np.concatenate([world.state.q.ravel(), world.state.v.ravel()])

    return run


def plans(n: int) -> Callable[[], Floats]:
    q = HUMAN.rest_q if n == 1 else np.tile(HUMAN.rest_q, (n, 1))
    v = np.full((*q.shape[:-1], HUMAN.nv), 1e-170)
    state, target = State(q, v), Target(HUMAN.rest_q)

    def run() -> Floats:
        command = poise.Balance(HUMAN)(state, target)
        return np.array(command.acceleration, dtype=float)

    return run


def energies(n: int) -> Callable[[], Floats]:
    q = DOG.rest_q if n == 1 else np.tile(DOG.rest_q, (n, 1))
    v = np.full(DOG.nv, 1e-158)
    return lambda: np.asarray(dynamics.energy(DOG, q, v)[0])


CLIP = poise.load_clip("walk")
ENTRIES: dict[str, Callable[[], Callable[[], Floats]]] = {
    "one step": lambda: steps(1),
    "one step, float64": lambda: steps(1, "float64"),
    "a batch's step": lambda: steps(64),
    "a batch's step by two threads": lambda: steps(64, threads=2),
    "dynamics": lambda: energies(1),
    "dynamics of a batch": lambda: energies(5),
    "a plan": lambda: plans(1),
    "plans": lambda: plans(6),
    "a clip's sample": lambda: lambda: CLIP.q(0.123),
    "a picture": lambda: lambda: np.asarray(render(DOG, DOG.rest_q, size=(32, 32)), float),
}


@has_mxcsr
@pytest.mark.parametrize("name", ENTRIES)
def test_the_callers_mode_is_unchanged(name: str) -> None:
    run = ENTRIES[name]()
    before = mode()
    run()
    assert mode() == before
    with caller_mode(FLUSH | UP):
        other = mode()
        run()
        after = mode()
    assert after == other != before


@pytest.mark.parametrize("name", ENTRIES)
def test_numpy_has_its_denormals_after_a_call(name: str) -> None:
    run = ENTRIES[name]()
    assert has_denormals()
    run()
    assert has_denormals()


@has_mxcsr
@pytest.mark.parametrize("name", ENTRIES)
def test_results_do_not_depend_on_the_callers_mode(name: str) -> None:
    run = ENTRIES[name]()
    expected = run()
    # NumPy, which plans and pictures need too, rounds as the caller asks
    for bits in (FLUSH, UP) if "step" in name or "dynamics" in name else (FLUSH,):
        with caller_mode(bits):
            found = run()
        assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("n", "threads"), [(1, 1), (64, 1), (64, 2)])
def test_what_comes_to_rest_has_no_denormal_velocities(n: int, threads: int, dtype: str) -> None:
    world = slow_dog(n, dtype, threads)
    assert world.threads == threads
    for _ in range(8):
        world.step(STILL)
        v = np.abs(world.state.v)
        assert not ((v > 0.0) & (v < np.finfo(dtype).tiny)).any()


@pytest.mark.parametrize("n", [1, 5])
def test_a_result_too_small_for_a_normal_number_is_zero(n: int) -> None:
    kinetic = energies(n)()
    v, M = np.full(DOG.nv, 1e-158), dynamics.mass_matrix(DOG, DOG.rest_q)
    assert 0.0 < 0.5 * v @ M @ v < np.finfo(float).tiny
    assert (kinetic == 0.0).all()


def test_the_mode_comes_back_when_a_call_raises() -> None:
    world = World(DOG, dt=1 / 60)
    q = np.full(DOG.nq, np.nan)
    bad: list[Callable[[], object]] = [
        lambda: world.step(Command(force=np.full(DOG.nv, np.nan))),
        lambda: world.reset(State(q)),
        lambda: dynamics.mass_matrix(DOG, q),
        lambda: World(DOG, dt=1 / 60, n=2).step(Command(force=np.zeros(3))),
    ]
    for call in bad:
        with pytest.raises(PoiseError):
            call()
        assert has_denormals()
    world.reset(State(DOG.rest_q, np.full(DOG.nv, 1e5)))
    with pytest.raises(poise.Diverged):
        world.step(Command(force=np.full(DOG.nv, 1e300)), steps=50)
    assert has_denormals()


def test_numpy_has_its_denormals_while_another_thread_steps() -> None:
    run, stop = steps(64, threads=2), threading.Event()

    def go() -> None:
        while not stop.is_set():
            run()

    thread = threading.Thread(target=go)
    thread.start()
    try:
        assert all(has_denormals() for _ in range(200))
    finally:
        stop.set()
        thread.join()
