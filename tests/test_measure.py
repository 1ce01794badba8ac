"""Measures against angles and distances that are known."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from poise import load_character, measure
from poise.arrays import Floats
from poise.view import plots

HUMANOID = load_character("humanoid")


def turned(joint: str, angle: float) -> Floats:
    """The rest pose with one ball joint turned about the link's y axis."""
    q: Floats = HUMANOID.rest_q.copy()
    q[HUMANOID.q_slice(joint)] = math.cos(angle / 2), 0.0, math.sin(angle / 2), 0.0
    return q


@pytest.mark.parametrize("angle", [1e-9, 1e-4, 0.3, 1.0, 3.0, math.pi])
def test_a_turned_joint_shows_by_its_angle_in_all_that_it_carries(angle: float) -> None:
    error = measure.tracking_error(HUMANOID, turned("left_shoulder", angle), HUMANOID.rest_q)
    names = [link.name for link in HUMANOID.links]
    moved = {n: error.rotation[i] for i, n in enumerate(names) if error.rotation[i] > 0}
    assert set(moved) == {"left_upper_arm", "left_forearm"}
    # the angle of two quaternions is known to rounding, relative to the angle itself
    assert np.allclose(list(moved.values()), math.degrees(angle), rtol=1e-6)


def test_a_turned_shoulder_moves_the_elbow_by_its_chord() -> None:
    error = measure.tracking_error(HUMANOID, turned("left_shoulder", 0.8), HUMANOID.rest_q)
    elbow = [link.name for link in HUMANOID.links].index("left_forearm")
    arm = np.linalg.norm(HUMANOID.link("left_forearm").pos)
    assert error.position[elbow] == pytest.approx(2 * arm * math.sin(0.4), rel=1e-12)


def test_a_moved_root_shows_in_the_world_only() -> None:
    q = HUMANOID.rest_q.copy()
    q[:3] += (0.3, 0.0, 0.4)
    error = measure.tracking_error(HUMANOID, q, HUMANOID.rest_q)
    assert np.allclose(error.world, 0.5, rtol=1e-12)
    assert error.position.max() < 1e-12
    assert error.rotation.max() == 0.0


def test_signs_of_quaternions_do_not_matter() -> None:
    q = HUMANOID.rest_q.copy()
    q[3:7] *= -1.0
    assert measure.tracking_error(HUMANOID, q, HUMANOID.rest_q).rotation.max() == 0.0


def test_a_summary_is_mean_percentile_and_largest() -> None:
    assert measure.summary(np.arange(101.0)) == (50.0, 95.0, 100.0)


def test_a_tracking_plot_is_a_picture(tmp_path: Path) -> None:
    time = np.linspace(0.0, 1.0, 20)
    q = np.array([turned("left_shoulder", t) for t in time])
    error = measure.tracking_error(HUMANOID, q, HUMANOID.rest_q)
    plots.tracking(tmp_path / "a.png", HUMANOID, time, error, q, shade=(0.2, 0.4))
    data = (tmp_path / "a.png").read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    assert len(data) > 10_000
