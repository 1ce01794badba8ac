"""Measures against angles and distances that are known."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest
from retarget_claims import limb_directions

from poise import load_character, measure
from poise.anatomy.contact_schedule import ContactSchedule
from poise.anatomy.feet import feet_of
from poise.math.arrays import Floats
from poise.motion.retargeting.matching import match

HUMANOID = load_character("humanoid")
PAGE = Path(__file__).parents[2] / "docs" / "measures.md"


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


def sliding(k: int = 11) -> tuple[Floats, ContactSchedule]:
    """The humanoid, slid along x by 1 mm a frame and sunk by 2 mm, its soles said to stand."""
    q = np.tile(HUMANOID.rest_q, (k, 1))
    q[:, 0] += 0.001 * np.arange(k)
    q[:, 2] -= 0.002
    points = feet_of(HUMANOID)
    return q, ContactSchedule(points, np.ones((k, len(points)), dtype=bool))


def test_a_foot_that_slides_and_sinks_is_measured() -> None:
    feet = measure.footing(HUMANOID, *sliding())
    assert feet.skate == pytest.approx(np.full(8, 0.010))
    assert feet.sink == pytest.approx(np.full(8, 0.002))
    assert feet.rise == pytest.approx(np.zeros(8))


def test_each_contact_is_measured_by_itself() -> None:
    q, contacts = sliding()
    on = contacts.on.copy()
    on[5] = False
    feet = measure.footing(HUMANOID, q, ContactSchedule(contacts.points, on))
    assert feet.start == [0, 6] * 8
    assert feet.skate == pytest.approx(np.full(16, 0.004))


def test_without_contacts_there_is_nothing_to_measure() -> None:
    q, contacts = sliding()
    feet = measure.footing(HUMANOID, q, ContactSchedule(contacts.points, ~contacts.on))
    assert feet.point == []
    assert feet.skate.size == 0


@pytest.mark.parametrize("angle", [0.0, 0.2, 2.0])
def test_a_limb_that_points_elsewhere_shows_by_its_angle(angle: float) -> None:
    same = match(HUMANOID, HUMANOID)
    rest, other = HUMANOID.rest_q[None], turned("left_shoulder", angle)[None]
    found = limb_directions(same, rest, other)
    assert found["left_upper_arm"] == pytest.approx(math.degrees(angle))
    assert found["right_thigh"] == pytest.approx(0.0)


def test_turns_of_joints_are_angles_from_frame_to_frame() -> None:
    q = np.stack([turned("left_shoulder", angle) for angle in (0.0, 0.1, 0.4)])
    q[2, HUMANOID.q_slice("left_knee")] = 0.5
    turns = measure.turns_per_frame(HUMANOID, q)
    names = [joint.name for joint in HUMANOID.joints]
    assert turns[:, names.index("left_shoulder")] == pytest.approx(np.degrees([0.1, 0.3]))
    assert turns[1, names.index("left_knee")] == pytest.approx(np.degrees(0.5))
    assert turns[:, names.index("root")] == pytest.approx(0.0)


def test_the_programs_of_the_page_run(capsys: pytest.CaptureFixture[str]) -> None:
    programs = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, object] = {}
    exec("\n".join(programs), names)
    assert "fallen: False" in capsys.readouterr().out
    force = names["force"]
    assert isinstance(force, np.ndarray)
    assert force.shape == (100, 3)


def test_every_measure_is_told_of_on_the_page() -> None:
    page = PAGE.read_text(encoding="utf-8")
    functions = [name for name in measure.__all__ if callable(getattr(measure, name))]
    told = {name for name in functions if name[0].islower() and f"`{name}" in page}
    small = {"center_of_pressure", "feet_links", "allowed_on_ground"}  # in full below
    assert {name for name in functions if name[0].islower()} - told == small
