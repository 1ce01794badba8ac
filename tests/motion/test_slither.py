"""The snake that slithers: every segment in the track of the one before, pushed by the ground."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import nnls

from poise import dynamics
from poise.anatomy.feet import positions
from poise.characters import load_character
from poise.errors import ClipError
from poise.motion.authoring import ground_forces
from poise.motion.checks import check
from poise.motion.clip import Clip
from poise.motion.slither import slither

SNAKE = load_character("snake-72")
SIDE, DRAG = 0.5, 0.1
"""Friction sideways and along the belly: scales hold to the side and glide forward."""


@pytest.fixture(scope="module")
def clip() -> Clip:
    return slither(SNAKE)


def bellies(clip: Clip) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Places, velocities and directions of the segments, (k, links, 2) each."""
    assert clip.contacts is not None
    t = np.arange(len(clip)) / clip.fps
    q, v = clip.q(t), clip.v(t)
    at = positions(SNAKE, clip.contacts.points, q)
    J = [dynamics.jacobian(SNAKE, q, p.link, p.pos)[:, :2] for p in clip.contacts.points]
    speed = np.stack([np.einsum("kcv,kv->kc", j, v) for j in J], axis=1)
    joints = dynamics.forward_kinematics(SNAKE, q)[0]
    along = joints - at
    along = along[..., :2] / np.linalg.norm(along[..., :2], axis=2, keepdims=True)
    return at, speed, along


def test_every_joint_runs_where_the_head_has_been(clip: Clip) -> None:
    # the head's path of the first two seconds against the fifth joint's of the last three; the path
    # is sampled every 12 mm, between samples an arc of radius 0.22 m leaves its chord by 0.1 mm
    t = np.arange(len(clip)) / clip.fps
    joints = dynamics.forward_kinematics(SNAKE, clip.q(t))[0][..., :2]
    track, later = joints[:181, 0], joints[60:181, 5]
    start, way = track[:-1], np.diff(track, axis=0)
    share = np.einsum("ksc,sc->ks", later[:, None] - start, way) / np.sum(way**2, axis=1)
    near = start + np.clip(share, 0.0, 1.0)[..., None] * way
    off = np.linalg.norm(later[:, None] - near, axis=2).min(axis=1)
    assert off.max() < 2e-4


def test_the_belly_slides_along_itself_and_not_sideways(clip: Clip) -> None:
    _, speed, along = bellies(clip)
    side = speed[..., 1] * along[..., 0] - speed[..., 0] * along[..., 1]
    # where the bend changes along a segment its middle drifts a little
    assert np.abs(side).max() < 0.05 * np.linalg.norm(speed, axis=2).mean()


def test_the_speed_along_the_body_is_a_wave_in_a_period(clip: Clip) -> None:
    _, speed, along = bellies(clip)
    forward = np.sum(speed * along, axis=2)
    # chords are a little shorter than arcs
    np.testing.assert_allclose(forward, 1.4 / 2.0, rtol=0.05)


def test_it_moves_on_by_one_wave_in_a_period(clip: Clip) -> None:
    # a serpenoid wave of length 1.4 spans 1.4 J0(bend), J0(1) = 0.76520 (Abramowitz and Stegun)
    shift = clip.q(2.0)[:3] - clip.q(0.0)[:3]
    np.testing.assert_allclose(shift, [1.4 * 0.7651977, 0.0, 0.0], atol=1e-6)
    np.testing.assert_allclose(clip.q(2.0)[3:], clip.q(0.0)[3:], atol=1e-6)


def test_scales_that_glide_forward_and_hold_sideways_explain_it(clip: Clip) -> None:
    # each point pushes up, drags against its slide, and holds to either side: a cone of two edges
    at, _, along = bellies(clip)
    t = np.arange(len(clip)) / clip.fps
    q = clip.q(t)
    center = dynamics.center_of_mass(SNAKE, q)
    tau = dynamics.inverse_dynamics(SNAKE, q, clip.v(t), clip.a(t))
    wrench = ground_forces.root_wrench(SNAKE, q, tau, center) / (SNAKE.mass * ground_forces.G)
    left = np.stack([-along[..., 1], along[..., 0]], axis=2)
    for k in range(0, len(t), 20):
        edges, arms = [], []
        for side in (-SIDE, SIDE):
            flat = side * left[k] - DRAG * along[k]
            edges.append(np.concatenate([flat, np.ones((len(flat), 1))], axis=1))
            arms.append(at[k] - center[k])
        force, arm = np.concatenate(edges), np.concatenate(arms)
        A = np.concatenate([force, np.cross(arm, force)], axis=1).T
        _, miss = nnls(A, wrench[k])
        assert miss < 1e-6  # of body weight: exact but for rounding


def test_it_passes_the_checks(clip: Clip) -> None:
    assert [finding.claim for finding in check(clip) if finding.good is False] == []


def test_a_tighter_bend_than_the_joints_have_is_refused() -> None:
    with pytest.raises(ClipError, match=r"turn by 0\.6\d rad, their limit is 0\.50"):
        slither(SNAKE, wave=1.0)


@pytest.mark.parametrize("name", ["dog", "two-link", "lamp"])
def test_only_snakes_slither(name: str) -> None:
    with pytest.raises(ClipError, match=f"'{name}' is no snake"):
        slither(load_character(name))
