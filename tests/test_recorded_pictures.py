"""Pictures of recordings show what was asked for and the forces of contacts."""

from __future__ import annotations

import numpy as np
import pytest
from objects import SOLIDS, body

from poise import PoiseError, Recording, Target, World
from poise.view.recorded import force_drawing, frame_drawing, recording_sheet

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
