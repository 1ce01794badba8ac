"""After the frames are solved: calm in time, hands above the ground, cuts that stay cuts."""

from __future__ import annotations

import numpy as np
import pytest
from retarget_claims import lowest
from test_retarget import biped, squats

import poise
from poise import dynamics
from poise.anatomy.body import body_of
from poise.math.arrays import Floats
from poise.model import configuration
from poise.motion import Clip, ik, limits
from poise.motion.retargeting.retarget import (
    bend_elbows,
    clearance_goals,
    retarget,
    smooth_corrections,
)

HUMANOID = poise.load_character("humanoid")
NAMES = [link.name for link in HUMANOID.links]
LEGS = [name for name in NAMES if name.split("_")[-1] in ("thigh", "shin", "foot")]


def sway(k: int = 240) -> Floats:
    """Slow steps about the rest pose, shape (k, nv)."""
    t = np.arange(k)[:, None] / 120.0
    step = 0.1 * np.sin(2.0 * np.pi * t + np.arange(HUMANOID.nv))
    step[:, :6] = 0.0
    return step


def acceleration(q: Floats) -> float:
    a = Clip(HUMANOID, q, 120.0).a(np.arange(2, len(q) - 2) / 120.0)
    return float(np.abs(a[:, 6:]).max())


def test_a_jerk_that_nothing_asks_for_goes() -> None:
    start = configuration.integrate(HUMANOID, HUMANOID.rest_q, sway())
    jerked = start.copy()
    knee = HUMANOID.q_slice("left_knee")
    jerked[120:, knee] += 0.2
    done: list[float] = []
    calm = smooth_corrections(
        body_of(HUMANOID), start, jerked, [], 120.0, pieces=[(0, 240)], limits=False,
        progress=done.append,
    )  # fmt: skip
    # a step of 0.2 rad in one frame is 2880 rad/s^2, one through 8 Hz about 200
    assert acceleration(jerked) > 2000.0
    assert acceleration(calm) < 300.0
    assert calm[-1, knee] == pytest.approx(jerked[-1, knee], abs=1e-3)
    assert done[-1] == 1.0


def test_what_is_asked_for_is_met_all_the_same() -> None:
    start = configuration.integrate(HUMANOID, HUMANOID.rest_q, sway())
    foot = NAMES.index("left_foot")
    at = dynamics.forward_kinematics(HUMANOID, HUMANOID.rest_q)[0][foot]
    goal = ik.Place("left_foot", at, weight=3e4)
    q, _ = ik.solve(HUMANOID, start, [goal])
    calm = smooth_corrections(
        body_of(HUMANOID), start, q, [goal], 120.0, pieces=[(0, 240)], limits=False,
        progress=lambda _: None,
    )  # fmt: skip
    now = dynamics.forward_kinematics(HUMANOID, calm)[0][:, foot]
    assert np.linalg.norm(now - at, axis=1).max() < 5e-4  # weights of 3e4 and 1


def test_a_cut_is_not_smoothed_over() -> None:
    start = configuration.integrate(HUMANOID, HUMANOID.rest_q, sway())
    changed = start.copy()
    knee = HUMANOID.q_slice("left_knee")
    changed[120:, knee] += 0.2
    calm = smooth_corrections(
        body_of(HUMANOID), start, changed, [], 120.0, pieces=[(0, 120), (120, 240)], limits=False,
        progress=lambda _: None,
    )  # fmt: skip
    np.testing.assert_allclose(calm, changed, atol=1e-6)


def stretched_down(depth: float) -> Floats:
    """The humanoid with straight arms, so low that its hands are in the ground by a depth [m]."""
    q = np.tile(HUMANOID.rest_q, (60, 1))
    arms = [i for i, name in enumerate(NAMES) if name.endswith("forearm")]
    q[:, 2] -= lowest(HUMANOID, q)[0, arms].min() + depth
    return q


def test_only_links_that_come_near_the_ground_are_watched() -> None:
    goals = clearance_goals(HUMANOID, stretched_down(0.1), LEGS)
    assert {goal.link for goal in goals} == {"left_forearm", "right_forearm"}
    assert not clearance_goals(HUMANOID, HUMANOID.rest_q[None], LEGS)


@pytest.mark.parametrize("depth", [0.01, 0.1])
def test_straight_arms_bend_at_the_elbow_as_elbows_do(depth: float) -> None:
    q = stretched_down(depth)
    goals = clearance_goals(HUMANOID, q, LEGS)
    hold: list[ik.Goal] = [
        ik.Place("chest", dynamics.forward_kinematics(HUMANOID, q)[0][:, NAMES.index("chest")]),
        ik.Turn("chest", (1.0, 0.0, 0.0, 0.0)),
    ]
    begin = bend_elbows(body_of(HUMANOID), q, goals, 120.0)
    found, _ = ik.solve(HUMANOID, begin, [*goals, *hold], limits=0.3, near=True)
    arms = [i for i, name in enumerate(NAMES) if name.endswith("forearm")]
    assert lowest(HUMANOID, found)[:, arms].min() > -1e-3
    beyond = [
        over.value.max()
        for over in limits.excesses(HUMANOID, found)
        if over.joint.endswith("elbow")
    ]
    assert max(beyond) < 0.0


def test_poses_above_the_ground_are_not_bent() -> None:
    q = HUMANOID.rest_q[None]
    assert bend_elbows(body_of(HUMANOID), q, clearance_goals(HUMANOID, q, LEGS), 120.0) is q


def test_a_pose_before_the_first_frame_changes_nothing_after_it() -> None:
    """As the T-pose that files of the CMU begin with, turned, elsewhere and in the ground."""
    clip = squats(biped("a"))
    pose = clip.character.rest_q
    pose[:3] += (2.0, 1.0, -0.3)
    pose[3:7] = (0.7, 0.0, 0.0, np.sqrt(0.51))
    with_pose = Clip(clip.character, np.concatenate([pose[None], clip.frames]), clip.fps)
    other = biped("b", 0.5)
    alone, after = (retarget(x, other).clip for x in (clip, with_pose))
    gap = configuration.difference(other, after.frames[1:], alone.frames)
    assert np.abs(gap[3:]).max() < 2e-3  # the contact begins a frame later
    # the pose itself stands on the ground as it is
    assert lowest(other, after.frames[:1]).min() == pytest.approx(0.0, abs=1e-3)
    np.testing.assert_allclose(after.frames[0, 7:], other.rest_q[7:], atol=0.02)
