"""A controller of your own: a function from a state and a target to a command.

    python examples/07_your_own_controller.py

This one is PD with gravity compensation, written in NumPy: the torque of a spring and a damper plus
what holds the character against gravity. `poise.run` calls it once per step. Compare it with
stable PD at the same gains: it needs smaller steps.
"""

from collections.abc import Callable

import numpy as np

import poise
from poise import dynamics, measure

Controller = Callable[[poise.State, poise.Target], poise.Command]
KP, KD = 200.0, 10.0  # [N m/rad], [N m s/rad]

arm = poise.load_character("two-link")
clip = poise.load_clip("two-link-wave", arm)


def gravity_pd(state: poise.State, target: poise.Target) -> poise.Command:
    """Returns torques of springs and dampers, and those that carry the arm's weight."""
    error = arm.difference(target.q, state.q)
    gravity = dynamics.inverse_dynamics(arm, state.q, 0 * state.v, 0 * state.v)
    return poise.Command(force=KP * error + KD * (np.asarray(target.v) - state.v) + gravity)


def mean_error(controller: Controller, world: poise.World) -> str:
    """Follows the clip; returns the mean joint error, or when the simulation diverges."""
    world.reset(clip.state(0.0))
    recording = poise.Recording(world)
    try:
        poise.run(world, controller, clip, clip.duration, record=recording)
    except poise.Diverged as end:
        return f"diverges at {end.time:.2f} s"
    error = measure.tracking_error(arm, recording.q, clip.q(recording.time)).rotation
    return f"{error.mean():.2f} degrees"


results = {}
for steps in (1000, 240, 60):
    world = poise.World(arm, dt=1 / steps)
    stable = poise.StablePD(world, poise.Gains(arm, KP, KD))
    results[steps] = mean_error(gravity_pd, world), mean_error(stable, world)
    print(f"{steps:4} steps per second: yours {results[steps][0]}, stable PD {results[steps][1]}")
