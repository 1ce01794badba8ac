"""The front door: what `import poise` gives, what it costs, and the first program."""

from __future__ import annotations

import base64
import importlib.metadata
import math
import os
import subprocess
import sys
import textwrap
from typing import Any

import numpy as np
import pytest

import poise

HEAVY = (
    "matplotlib",
    "typer",
    "rich",
    "scipy",
    "ruamel",
    "mujoco",
    "torch",
    "pinocchio",
    "sympy",
    "daqp",
)


def run_python(code: str, *options: str) -> str:
    """What a fresh interpreter prints."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, *options, "-c", textwrap.dedent(code)],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", poise.__all__)
def test_every_name_at_the_front_door_exists_and_says_what_it_is(name: str) -> None:
    thing = getattr(poise, name)
    assert thing.__doc__


def test_no_class_or_function_at_the_front_door_is_missing_from_all() -> None:
    public = {
        name
        for name, thing in vars(poise).items()
        if not name.startswith("_") and getattr(thing, "__module__", "").startswith("poise")
    }
    assert public <= set(poise.__all__)
    assert "World" in public


def test_the_version_is_that_of_the_package_and_of_the_core() -> None:
    from poise import _core

    assert poise.__version__ == _core.build_info()["version"]
    try:
        assert importlib.metadata.version("poise") == poise.__version__
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("poise is not installed here, only on the path")


def test_importing_poise_adds_little_to_the_import_of_numpy() -> None:
    """Of the processor's time, beside what numpy itself takes in the same process."""
    code = """
        import time
        start = time.process_time()
        import numpy
        between = time.process_time()
        import poise
        print((time.process_time() - between) / (between - start))
    """
    best = min(float(run_python(code)) for _ in range(5))
    print(f"import poise: {best:.2f} times numpy's import beyond it")
    assert best < 3.0


def test_importing_poise_imports_nothing_heavy() -> None:
    loaded = run_python("import sys, poise; print(*sys.modules)").split()
    assert not [name for name in loaded if name.split(".")[0] in HEAVY]


def test_loading_and_stepping_a_character_imports_nothing_heavy_either() -> None:
    code = """
        import sys, poise
        character = poise.load_character("humanoid")
        world = poise.World(character, n=2, dt=1 / 60)
        servo = poise.StablePD(character, root="soft")
        world.step(servo(world.state, poise.Target(character.rest_q)))
        print(*sys.modules)
    """
    loaded = run_python(code).split()
    assert not [name for name in loaded if name.split(".")[0] in HEAVY]


def test_importing_poise_prints_and_warns_nothing() -> None:
    assert run_python("import poise", "-W", "error") == ""


# ---- the first program, with a motion written by hand


class Wave:
    """A humanoid that raises its arms and bends its knees, once a second."""

    def __init__(self, character: poise.Character) -> None:
        self.character, self.duration = character, 2.0
        self.elbow = character.q_slice("left_elbow").start
        self.rate = character.v_slice("left_elbow").start

    def target(self, t: float) -> poise.Target:
        q, v = self.character.rest_q, np.zeros(self.character.nv)
        q[self.elbow] = 0.5 - 0.5 * math.cos(2 * math.pi * t)
        v[self.rate] = math.pi * math.sin(2 * math.pi * t)
        return poise.Target(q, v)

    def state(self, t: float) -> poise.State:
        target = self.target(t)
        return poise.State(target.q, target.v, time=t)


@pytest.mark.parametrize("n", [1, 64])
def test_the_first_program_runs_and_follows(n: int) -> None:
    character = poise.load_character("humanoid")
    clip = Wave(character)
    world = poise.World(character, n=n, dt=1 / 60)
    world.reset(clip.state(0.0))
    servo = poise.StablePD(character, root="soft")
    off, root = [], []
    for t in world.until(clip.duration):
        world.step(servo(world.state, clip.target(t + world.dt)))
        q = np.atleast_2d(world.state.q)
        off.append(np.abs(q[:, clip.elbow] - clip.target(t + world.dt).q[clip.elbow]).max())
        root.append(np.abs(q[:, :3] - character.rest_q[:3]).max())
    assert world.time == pytest.approx(clip.duration)
    assert len(off) == 120
    # an arm of 2 kg that swings under gravity at 8 Hz stiffness: a few hundredths of a radian
    assert max(off) < 0.1
    assert max(root) < 0.01


def test_the_first_program_is_one_call_of_run_as_well() -> None:
    character = poise.load_character("humanoid")
    clip: Any = Wave(character)
    clip.targets = lambda t, dt, k: poise.Target(
        np.array([clip.target(t + i * dt).q for i in range(k)]),
        np.array([clip.target(t + i * dt).v for i in range(k)]),
        rows=k,
    )
    worlds = [poise.World(character, dt=1 / 60) for _ in range(2)]
    servo = poise.StablePD(character, root="soft")
    poise.run(worlds[0], servo, clip, clip.duration)
    for t in worlds[1].until(clip.duration):
        worlds[1].step(servo(worlds[1].state, clip.target(t + worlds[1].dt)))
    # the clock of the loop adds up, that of run counts
    np.testing.assert_allclose(worlds[0].state.q, worlds[1].state.q, rtol=0, atol=1e-10)


def test_many_copies_follow_as_one_does() -> None:
    """A world of one may differ from a batch in the last bits."""
    character = poise.load_character("humanoid")
    servo, clip = poise.StablePD(character, root="soft"), Wave(character)
    one, many = poise.World(character, dt=1 / 60), poise.World(character, n=33, dt=1 / 60)
    for world in (one, many):
        for t in world.until(0.5):
            world.step(servo(world.state, clip.target(t + world.dt)))
    expected = np.broadcast_to(one.state.q, (33, character.nq))
    np.testing.assert_allclose(many.state.q, expected, rtol=0, atol=1e-10)


def test_a_notebook_shows_clips_and_recordings_as_pictures() -> None:
    shown = run_python("""
        import sys
        import poise
        assert not {"matplotlib", "viser", "poise.view"} & set(sys.modules)
        clip = poise.load_clip("walk")
        world = poise.World(clip.character, dt=1 / 120)
        recording = poise.Recording(world)
        print(recording._repr_html_())
        world.step()
        recording.append()
        for one in (clip, recording):
            print(one._repr_html_())
    """)
    empty, *pictures = shown.splitlines()
    assert "0 frames" in empty
    assert "<img" not in empty
    for text in pictures:
        start = '<img src="data:image/png;base64,'
        assert text.startswith(start)
        assert "frames at" in text
        assert base64.b64decode(text[len(start) :].split('"')[0])[:4] == b"\x89PNG"
        assert len(text) < 200_000
    assert len(pictures) == 2
