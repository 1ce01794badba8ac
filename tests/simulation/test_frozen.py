"""A copy that diverged stands still: no contacts, no cost, and no trace in its neighbours."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

import poise

HUMANOID = poise.load_character("humanoid")
LOST = 3


def lying(n: int, lost: bool, dtype: str = "float64", **options: Any) -> poise.World:
    """Humanoids fallen onto a heap of their own limbs; one of them beyond all speeds, if `lost`."""
    world = poise.World(HUMANOID, n=n, dt=1 / 60, dtype=dtype, threads=1, **options)
    q = np.tile(HUMANOID.rest_q, (n, 1))
    q[:, 2] = 0.3 + 0.01 * np.arange(n)
    v = np.zeros((n, HUMANOID.nv))
    v[LOST] = 9.9e5 / np.sqrt(HUMANOID.nv) if lost else 0.0
    world.reset(poise.State(q, v))
    return world


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("n", [4, 5, 16])
def test_a_lost_copy_has_no_contacts_and_leaves_its_neighbours_as_they_are(
    n: int, dtype: str
) -> None:
    world, other = lying(n, True, dtype), lying(n, False, dtype)
    for one in (world, other):
        one.step(steps=30)
    assert [loss.copy for loss in world.diverged] == [LOST]
    assert LOST not in world.contacts.copy
    assert LOST in other.contacts.copy
    kept = np.arange(n) != LOST
    assert np.array_equal(world.state.q[kept], other.state.q[kept])
    assert np.array_equal(world.state.v[kept], other.state.v[kept])
    assert np.array_equal(world.torque[LOST], np.zeros(HUMANOID.nv))


def test_a_lost_copy_costs_its_tile_nothing() -> None:
    """Less than twice what the neighbours alone take; with its contacts it was a hundred times."""
    worlds = lying(4, False), lying(4, True)
    for world in worlds:
        world.step(steps=60)
    best = [np.inf, np.inf]
    for _ in range(7):
        for i, world in enumerate(worlds):
            start = time.process_time()
            world.step(steps=10)
            best[i] = min(best[i], time.process_time() - start)
    assert best[1] < 2.0 * best[0]
