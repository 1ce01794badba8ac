"""Pins are of the scene's links: what was thrown in has none."""

from __future__ import annotations

import numpy as np
import pytest

from poise import StablePD, Target, World, load_character


@pytest.mark.parametrize("behind", [0.0, 1.0, np.nan])
def test_nothing_behind_the_weights_of_pins_is_read(behind: float) -> None:
    humanoid = load_character("humanoid")
    paths = []
    for pinned in (False, True):
        world = World(humanoid, dt=1 / 60)
        servo = StablePD(world, root="soft")
        if pinned:
            # a view: what lies behind it is known
            weights = np.full(world.scene.nl + 8, behind)
            weights[: world.scene.nl] = 0.0
            servo.pin = weights[: world.scene.nl]
        world.throw((2.0, 0.0, 1.2), (-6.0, 0.0, 1.0))
        for _ in range(20):
            world.step(servo(world.state, Target(humanoid.rest_q)))
        paths.append(world.projectile_state.q[0, :3])
    assert np.allclose(paths[0], paths[1], atol=1e-9)
