"""Clips prepared for balance: feet flat and still, the center of mass over them, little changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.ndimage import maximum_filter1d
from scipy.optimize import minimize

import poise
from poise import measure
from poise.anatomy.contact_schedule import ContactSchedule
from poise.anatomy.feet import feet_of, positions
from poise.errors import ClipError
from poise.math import rotation
from poise.math.polygon import nearest_points, shrink
from poise.motion.editing.dynamic_consistency import INSIDE, inner_points, keep_weights
from poise.motion.editing.prepare_balance import (
    MARGIN,
    SLOW,
    STILL,
    TIME,
    ZmpConstraint,
    com_over_support,
    limit_excess,
    link_rotation,
    prepare_balance,
    smallest_com_shift,
    standing_drift,
    zmp,
    zmp_lag,
)
from poise.motion.foot_contact.repair import repair_foot_contact, repair_schedule
from poise.motion.preprocess import preprocess

BALL = poise.load_character("humanoid-ball")
SQUARE = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])


def leaning(clip: poise.Clip, by: float) -> poise.Clip:
    """A clip whose trunk leans forward, so that its center of mass leaves the feet."""
    frames = clip.frames.copy()
    turn = rotation.turn(np.array([0.0, 1.0, 0.0]), np.full(len(frames), by))
    # about all joints of the trunk: each has its limits
    for joint in clip.character.joints:
        at = clip.character.q_slice(joint)
        if joint.name in ("spine", "chest"):
            frames[:, at] = rotation.multiply(frames[:, at], turn)
        elif joint.name.endswith("hip"):
            frames[:, at] = rotation.multiply(rotation.conjugate(turn), frames[:, at])
    hips = [link.pos for link in clip.character.links if link.joints[0].name.endswith("hip")]
    middle = np.broadcast_to(np.mean(hips, axis=0), (len(frames), 3))
    before = rotation.rotate(frames[:, 3:7], middle)
    frames[:, 3:7] = rotation.multiply(frames[:, 3:7], turn)
    frames[:, :3] += before - rotation.rotate(frames[:, 3:7], middle)
    return clip.with_frames(frames, contacts=clip.contacts)


def slow_margin(clip: poise.Clip) -> float:
    """The least margin of the center of mass while it moves slowly [m], for a tenth of a second."""
    found = com_over_support(clip)
    speed = maximum_filter1d(found.speed, round(0.1 * clip.fps) + 1)
    return float(np.nanmin(found.margin[speed < 0.75 * SLOW]))


def test_a_clip_that_leans_out_is_brought_over_its_feet() -> None:
    lean = leaning(poise.load_clip("butterflies", BALL), 0.45)
    assert slow_margin(lean) < 0.0
    made = prepare_balance(lean)
    # the solve stops within 1.5 mm of the margin
    assert slow_margin(made.clip) > MARGIN - 2e-3
    assert standing_drift(made.clip) < STILL
    # hips and legs give the shift; the trunk still leans as it was asked to
    assert link_rotation(lean, made.clip.frames)[0] < 8.0


@pytest.mark.parametrize("name", ["squat", "jab", "leg-swing", "axe-kick"])
def test_a_clip_that_stands_is_left_alone(name: str) -> None:
    clip = poise.load_clip(name, BALL)
    made = prepare_balance(clip)
    np.testing.assert_array_equal(made.clip.frames, clip.frames)
    assert made.notes == ("the center of mass is over the feet already",)


def test_feet_keep_their_places() -> None:
    clip = leaning(poise.load_clip("butterflies", BALL), 0.45)
    made = prepare_balance(clip).clip
    assert clip.contacts is not None
    at = [positions(BALL, clip.contacts.points, x.frames) for x in (clip, made)]
    # a centimetre of a standing point weighs 10, a tenth of a radian of a joint less than 1
    assert np.abs(at[1] - at[0])[clip.contacts.on].max() < STILL


def test_the_shift_is_smooth() -> None:
    lean = leaning(poise.load_clip("butterflies", BALL), 0.45)
    made = prepare_balance(lean)
    jerk = np.abs(np.diff(made.shift, n=2, axis=0)).max() * lean.fps**2
    # a shift of s that comes and goes within TIME needs about 2 s / TIME^2
    assert jerk < 4.0 * np.abs(made.shift).max() / TIME**2


def test_the_least_shift_is_the_optimum() -> None:
    """Against SciPy's solver of the same problem, with one bound instead of a polygon."""
    k, fps = 24, 20.0
    square = measure.convex_hulls(np.broadcast_to(SQUARE, (k, 4, 2)), np.ones((k, 4)))
    polygons = shrink(square, 0.0)
    center = np.stack([np.linspace(0.5, 1.6, k), np.full(k, 0.5)], axis=1)
    asked = np.arange(k) % 3 == 0
    found = smallest_com_shift(center, polygons, asked, fps)

    def cost(s: Any) -> float:
        return float((s**2).sum() + (TIME * fps) ** 4 * (np.diff(s, n=2) ** 2).sum())

    rule = {"type": "ineq", "fun": lambda s: (1.0 - center[:, 0] - s)[asked]}
    best = minimize(cost, np.zeros(k), constraints=rule, options={"maxiter": 500, "ftol": 1e-12})
    assert cost(found[:, 0]) == pytest.approx(best.fun, rel=0.01)
    assert np.abs(found[:, 1]).max() < 1e-9


def test_a_hasty_mass_centre_is_calmed_until_the_feet_can_catch_it() -> None:
    """It jumps by 8 cm in a tenth of a second: the ground would have to push beside the feet."""
    k, fps = 120, 60.0
    t = np.arange(k) / fps
    square = 0.3 * SQUARE - (0.1, 0.15)
    polygons = shrink(measure.convex_hulls(np.broadcast_to(square, (k, 4, 2)), np.ones((k, 4))), 0)
    center = np.stack([0.08 / (1.0 + np.exp((1.0 - t) / 0.02)), 0.0 * t], axis=1)
    asked = np.zeros(k, dtype=bool)
    lag = zmp_lag(np.full(k, 0.9), fps)
    pivots = ZmpConstraint(polygons, np.ones(k, dtype=bool), np.full(k, 0.9))

    def out_by(x: np.ndarray) -> float:
        at = zmp(x, lag)
        return float(np.abs(nearest_points(polygons, at) - at).max())

    shift = smallest_com_shift(center, polygons, asked, fps, pivots)
    assert out_by(center) > 0.5
    assert out_by(center + shift) < 2e-3
    # it still goes there
    assert np.abs(shift).max() < 0.08
    assert np.abs(shift[[0, -1]]).max() < 0.01


def test_points_inside_stay_and_others_go_to_the_edge() -> None:
    polygons = shrink(measure.convex_hulls(SQUARE[None], np.ones((1, 4))), 0.1)
    for point, expected in (((0.5, 0.5), (0.5, 0.5)), ((2.0, 0.5), (0.9, 0.5)),
                            ((-1.0, -1.0), (0.1, 0.1))):  # fmt: skip
        np.testing.assert_allclose(
            nearest_points(polygons, np.array([point]))[0], expected, atol=1e-12
        )


def test_a_narrow_support_gets_what_margin_it_can() -> None:
    line = measure.convex_hulls(SQUARE[None, :2], np.ones((1, 2)))
    np.testing.assert_allclose(
        nearest_points(shrink(line, 0.1), np.array([[0.2, 3.0]])), [[0.5, 0.0]]
    )
    thin = measure.convex_hulls(SQUARE[None] * (1.0, 0.1), np.ones((1, 4)))
    inner = nearest_points(shrink(thin, 0.2), np.array([[0.5, 3.0]]))[0]
    assert 0.05 <= inner[1] < 0.1


def test_the_hull_of_points_is_that_of_scipy() -> None:
    from scipy.spatial import ConvexHull

    points = np.random.default_rng(3).normal(size=(5, 9, 2))
    found = measure.convex_hulls(points, np.ones((5, 9)))
    for i in range(5):
        corners = {tuple(x) for x in points[i][ConvexHull(points[i]).vertices]}
        assert {tuple(x) for x in found.corners[i, : found.size[i]]} == corners


def test_a_flight_is_not_called_standing() -> None:
    """Feet that come down where they were stand only if the body did not fall in between."""
    clip = poise.load_clip("squat", BALL)
    assert clip.contacts is not None
    hop = clip.frames.copy()
    t = np.arange(len(hop)) / clip.fps - 2.0
    air = np.abs(t) < 0.25
    hop[air, 2] += 0.5 * 9.81 * (0.25**2 - t[air] ** 2)
    on = np.array(clip.contacts.on)
    on[air] = False
    contacts = ContactSchedule(clip.contacts.points, on)
    assert not repair_schedule(clip.with_frames(hop, contacts=contacts)).on[air].any()
    # the same gap without a hop: the body did not fall, so it stood
    assert repair_schedule(clip.with_frames(clip.frames, contacts=contacts)).on[air].all()


def test_a_foot_that_hovers_beside_one_that_stands_does_not_stand() -> None:
    clip = poise.load_clip("leg-swing", BALL)
    assert clip.contacts is not None
    on = np.array(clip.contacts.on)
    right = clip.contacts.of("right_foot")
    on[:, right] = False
    on[100:220, right] = True  # as a coarse detection has it
    found = repair_schedule(
        clip.with_frames(clip.frames, contacts=ContactSchedule(clip.contacts.points, on))
    )
    assert not found.on[:, right].any()
    assert found.on[:, clip.contacts.of("left_foot")].all()


def test_who_never_stands_is_refused() -> None:
    clip = poise.load_clip("squat", BALL)
    high = clip.frames.copy()
    high[:, 2] += 1.0
    assert clip.contacts is not None
    none = ContactSchedule(clip.contacts.points, np.zeros_like(clip.contacts.on))
    with pytest.raises(ClipError, match="nothing ever stands"):
        prepare_balance(clip.with_frames(high, contacts=none))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "still", "turned"),
    [
        ("cmu_bvh/49_18.bvh", STILL, 10.0),
        ("mass/motion/balance.bvh", STILL, 10.0),
        # flat feet and ankles of 20 degrees: who squats so deep leans far forward
        ("cmu_bvh/22_14.bvh", 6e-3, 15.0),
    ],
)
def test_recorded_clips_come_over_their_feet(
    path: str, still: float, turned: float, data_folder: Path
) -> None:
    ready = preprocess(poise.load_clip(data_folder / path), raw=True)
    firm = repair_foot_contact(ready, BALL)
    made = prepare_balance(firm).clip
    assert slow_margin(made) > MARGIN - 5e-3
    assert standing_drift(made) < still
    assert made.contacts is not None
    assert positions(BALL, made.contacts.points, made.frames)[..., 2].min() > -5e-3
    assert limit_excess(made) < 0.0
    assert link_rotation(firm, made.frames)[0] < turned


@pytest.mark.slow
def test_a_recorded_leap_is_told_to_be_out_of_reach(data_folder: Path) -> None:
    """A kick with a run-up: from foot to foot, center of mass beside them; its feet give way."""
    ready = preprocess(poise.load_clip(data_folder / "cmu_bvh" / "10_01.bvh"), raw=True)
    notes = prepare_balance(repair_foot_contact(ready, BALL)).notes
    assert any("beside the feet" in note and "no steps" in note for note in notes)


def test_the_ground_pushes_inside_of_the_soles() -> None:
    points = feet_of(BALL)
    for outer, inner in zip(points, inner_points(points), strict=True):
        away = np.abs(np.array(outer.pos) - inner.pos)
        assert away.max() > 0.01
        # at most INSIDE, along each axis of the link
        assert away.max() <= INSIDE + 1e-12


def test_joints_of_legs_give_way_before_the_trunk_does() -> None:
    contacts = poise.load_clip("squat", BALL).contacts
    assert contacts is not None
    keep = keep_weights(BALL, contacts)
    by_name = {joint.name: keep[BALL.v_slice(joint)].min() for joint in BALL.joints}
    assert by_name["left_ankle"] < by_name["left_hip"] < by_name["chest"]
    assert by_name["left_hip"] == by_name["right_hip"]


def test_a_balanced_clip_is_the_prepared_one_with_its_notes() -> None:
    clip = poise.load_clip("jab")
    balanced, prepared = clip.balanced(), prepare_balance(clip)
    np.testing.assert_allclose(balanced.frames, prepared.clip.frames, atol=1e-12)
    assert balanced.notes == (*clip.notes, *prepared.notes)
