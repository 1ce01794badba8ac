"""Pictures of recordings show what was asked for and the forces of contacts."""

from __future__ import annotations

import numpy as np
import pytest
from objects import SOLIDS, body

from poise import PoiseError, Recording, Target, World
from poise.model.scene import scene_of
from poise.view.contact_sheet import frame_drawing, recording_sheet
from poise.view.overlays import force_drawing, link_distances, reference_drawing

BOX = body(SOLIDS["box"], mass=10.0, pos=(0.0, 0.0, 0.3))


def at_rest(n: int = 1) -> Recording:
    """A box of 10 kg that lies on the ground, and is asked to be half a metre higher."""
    world = World(BOX, n=n, dt=1 / 60)
    recording = Recording(world)
    for _ in range(30):
        world.step()
        recording.append(Target([0.0, 0.0, 0.8, 1.0, 0.0, 0.0, 0.0]))
    return recording


@pytest.mark.parametrize("n", [1, 3])
def test_a_ghost_stands_where_it_was_asked_to_be(n: int) -> None:
    recording = at_rest(n)
    plain = frame_drawing(recording, -1, copy=n - 1)
    seen = frame_drawing(recording, -1, copy=n - 1, ghost=True)
    (ghost,) = [thing for thing in seen if thing.opacity < 1.0]
    assert len(seen) == len(plain) + 1
    assert np.allclose(ghost.pos, (0.0, 0.0, 0.8))


def test_the_arrow_of_the_ground_is_as_long_as_the_weight() -> None:
    """98.1 N at 1 mm/N: shaft and head together reach 98.1 mm above the ground."""
    recording = at_rest()
    shaft, head = force_drawing(recording.contacts(-1), 1e-3)
    assert head.mesh is not None
    top = head.pos[2] + head.mesh.vertices[:, 2].max()
    assert top == pytest.approx(0.0981, rel=0.02)
    assert shaft.pos[0] == pytest.approx(0.0, abs=1e-3)
    assert len(frame_drawing(recording, -1, forces=1e-3)) == len(frame_drawing(recording, -1)) + 2


def test_no_arrow_is_longer_than_a_metre() -> None:
    _, head = force_drawing(at_rest().contacts(-1), 1.0)
    assert head.mesh is not None
    assert head.pos[2] + head.mesh.vertices[:, 2].max() == pytest.approx(1.0, rel=0.02)


def test_a_sheet_may_show_a_part_of_the_frames() -> None:
    recording = at_rest()
    size = {"columns": 3, "cell": (40, 40), "samples": 1}
    part = recording_sheet(recording, start=5, stop=6, **size)  # type: ignore[arg-type]
    # one frame three times
    assert np.array_equal(part[:, :40], part[:, 42:82])
    with pytest.raises(PoiseError, match="there is no frame from 90"):
        recording_sheet(recording, start=90, **size)  # type: ignore[arg-type]


def test_a_ghost_fades_where_it_is_what_it_shows() -> None:
    """All of it 3 cm away, nothing 5 mm away, a part of it between."""
    scene = scene_of(BOX)
    q = np.array([0.0, 0.0, 0.3, 1.0, 0.0, 0.0, 0.0])
    seen = []
    for aside in (0.0, 0.005, 0.015, 0.03, 1.0):
        ghost = reference_drawing(scene, q, q + aside * np.eye(7)[0])
        seen.append(ghost[0].opacity if ghost else 0.0)
    assert seen[:2] == [0.0, 0.0]
    assert 0.05 < seen[2] < 0.35
    assert seen[3:] == pytest.approx([0.4, 0.4])


def test_a_turn_shows_as_well() -> None:
    scene = scene_of(BOX)
    q = np.array([0.0, 0.0, 0.3, 1.0, 0.0, 0.0, 0.0])
    half = np.radians(1.0) / 2
    turned = np.array([0.0, 0.0, 0.3, np.cos(half), 0.0, 0.0, np.sin(half)])
    # one degree at 0.2 m, from either sign of the quaternion
    for goal in (turned, turned * (1, 1, 1, -1, -1, -1, -1)):
        assert link_distances(scene, q, goal) == pytest.approx([0.2 * np.radians(1.0)], rel=1e-4)
