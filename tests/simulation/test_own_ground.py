"""Height fields with heights for each copy."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

from poise import HeightField, PoiseError, Recording, Shape, State, World, load_recording
from poise.model.character import free_object
from poise.view.drawing import static_drawing

BALL = free_object("ball", Shape("sphere", (0.1,)), mass=1.0)
N = 19
HEIGHTS = np.random.default_rng(4).uniform(0.0, 0.3, (N, 8, 9))
FIELD = HeightField(HEIGHTS, 0.4)


def dropped(world: World, steps: int = 60) -> np.ndarray:
    q = np.tile(BALL.rest_q, (world.n, 1))
    q[:, :3] = [[0.1 * k, 0.05, 0.6] for k in range(world.n)]
    world.reset(State(q))
    for _ in range(steps):
        world.step()
    return np.atleast_2d(world.state.q)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_each_copy_rolls_on_its_own_ground_as_in_a_world_where_all_share_it(dtype: str) -> None:
    own = dropped(World(BALL, n=N, dt=1 / 120, dtype=dtype, ground=FIELD))
    for k in (0, 7, N - 1):
        shared = World(BALL, n=N, dt=1 / 120, dtype=dtype, ground=HeightField(HEIGHTS[k], 0.4))
        assert np.array_equal(own[k], dropped(shared)[k])
    assert len({round(z, 3) for z in own[:, 2]}) > 10


def test_rays_find_each_copy_s_heights() -> None:
    world = World(BALL, n=N, dt=1 / 120, ground=FIELD)
    x, y = np.meshgrid(np.arange(9) * 0.4 - 1.6, np.arange(8) * 0.4 - 1.4)
    origins = np.stack([x.ravel(), y.ravel(), np.full(72, 2.0)], axis=1)
    found = 2.0 - world.ray(origins, (0, 0, -1), links=False).distance
    np.testing.assert_allclose(found, HEIGHTS.reshape(N, 72), atol=1e-12)


def test_a_recording_and_a_pickle_keep_the_grounds(tmp_path: Path) -> None:
    world = World(BALL, n=N, dt=1 / 120, ground=FIELD)
    recording = Recording(world)
    dropped(world)
    recording.append()
    recording.save(tmp_path / "hills.npz")
    for again in (
        load_recording(tmp_path / "hills.npz").world(0),
        pickle.loads(pickle.dumps(world)),
    ):
        assert isinstance(again.ground, HeightField)
        assert np.array_equal(again.ground.heights, HEIGHTS)
        for _ in range(10):
            again.step()
        assert np.isfinite(again.state.q).all()


def test_pictures_show_the_ground_of_a_copy() -> None:
    world = World(BALL, n=N, dt=1 / 120, ground=FIELD)
    (thing,) = static_drawing(world.settings)
    alone = World(BALL, dt=1 / 120, ground=HeightField(HEIGHTS[0], 0.4))
    (twin,) = static_drawing(alone.settings)
    assert thing.mesh is not None
    assert twin.mesh is not None
    assert np.array_equal(thing.mesh.vertices, twin.mesh.vertices)
    assert np.array_equal(FIELD.of_copy(3).heights, HEIGHTS[3])


def test_as_many_grounds_as_copies_are_needed() -> None:
    with pytest.raises(PoiseError, match="19 copies; the world has 4"):
        World(BALL, n=4, dt=1 / 120, ground=FIELD)
    with pytest.raises(PoiseError, match="heights has shape"):
        HeightField(np.zeros((3, 1, 4)), 0.1)
