"""Ctrl-C within a long step: it is heard soon, and the world is between two steps."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import poise

PROGRAM = """
import numpy as np
import poise
world = poise.World(poise.load_character("two-link"), n=9, dt=1/240, threads=2)
print("ready", flush=True)
try:
    world.step(steps=2**31 - 1)
except KeyboardInterrupt:
    clock, q = world.time, world.state.q
    world.step()
    np.testing.assert_allclose(world.time, clock + world.dt, rtol=0, atol=1e-9)
    steps = round(clock[0] / world.dt)
    again = poise.World(poise.load_character("two-link"), n=9, dt=1/240)
    again.step(steps=steps)
    print("same" if np.array_equal(again.state.q, q) and np.ptp(clock) == 0 else "not", steps)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="a signal to one process alone")
def test_ctrl_c_is_heard_within_a_long_step_and_leaves_whole_steps() -> None:
    child = subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    time.sleep(0.3)
    os.kill(child.pid, signal.SIGINT)
    out, _ = child.communicate(timeout=60)
    same, steps = out.split()
    assert same == "same"
    assert 100 < int(steps) < 2**31 - 1


def test_a_target_of_many_rows_is_followed_row_by_row_across_the_pieces() -> None:
    """A long call goes in pieces; one step at a time must give the same bits."""
    arm = poise.load_character("two-link")
    q = 0.3 * np.sin(np.arange(700)[:, None] * [0.01, 0.017])
    drive = poise.Drive(
        poise.Gains(arm, 100.0, 5.0), poise.Target(q, 0.1 * q, 0.2 * q, rows=len(q))
    )
    one, many = poise.World(arm, dt=1 / 240), poise.World(arm, dt=1 / 240)
    one.step(poise.Command(drive=drive), steps=len(q))
    for x in q:
        target = poise.Target(x, 0.1 * x, 0.2 * x)
        many.step(poise.Command(drive=poise.Drive(drive.gains, target)))
    assert np.array_equal(one.state.q, many.state.q)
    assert np.array_equal(one.torque, many.torque)
