"""Checks of clips: each on a small motion of which the answer is known, for both verdicts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import poise
from poise.anatomy.body import body_of
from poise.anatomy.contact_schedule import ContactSchedule
from poise.anatomy.feet import feet_of
from poise.characters import load_character
from poise.errors import ClipError
from poise.math import rotation
from poise.model.character import Character, Joint, Link, Shape
from poise.motion.authoring import ground_forces
from poise.motion.checks import Finding, check, strength
from poise.motion.checks.claims import (
    Analysis,
    check_angular_momentum,
    check_continuity,
    check_free_fall,
    check_ground_reaction,
    check_limits,
    check_standing_feet,
)
from poise.motion.clip import Clip

FPS = 120.0
HUMANOID = load_character("humanoid")


def box() -> Character:
    """A brick of 2 kg with three different moments of inertia."""
    shape = Shape("box", (0.1, 0.2, 0.3))
    link = Link.from_shapes("box", None, [shape], mass=2.0, joints=[Joint("root", "free")])
    return Character("box", (link,))


def flying(q: Any, character: Character | None = None) -> Analysis:
    """A motion that touches nothing."""
    none = ContactSchedule((), np.zeros((len(q), 0), dtype=bool))
    return Analysis(Clip(character or box(), q, FPS, contacts=none))


def thrown(g: float, seconds: float = 0.5) -> Any:
    """Frames of the box on a parabola with this gravity."""
    t = np.arange(round(seconds * FPS) + 1) / FPS
    q = np.zeros((len(t), 7))
    q[:, 0], q[:, 2], q[:, 3] = 1.5 * t, 1.0 + 2.0 * t - g * t**2 / 2.0, 1.0
    return q


def standing(seconds: float = 1.0, on: bool = True, **changes: Any) -> Clip:
    """The humanoid at rest, standing on both feet or said not to."""
    k = round(seconds * FPS) + 1
    points = feet_of(HUMANOID)
    q = np.tile(HUMANOID.rest_q, (k, 1))
    for name, values in changes.items():
        q[:, HUMANOID.q_slice(HUMANOID.joint(name))] = values
    return Clip(HUMANOID, q, FPS, contacts=ContactSchedule(points, np.full((k, len(points)), on)))


# flight


def test_a_box_thrown_with_g_falls_well() -> None:
    found = check_free_fall(flying(thrown(9.81)))
    assert found.good
    assert found.value < 1e-6  # the path is a parabola to rounding
    assert found.bad == ()


def test_a_box_thrown_with_less_g_is_off_by_what_is_missing() -> None:
    found = check_free_fall(flying(thrown(9.0)))
    assert found.good is False
    assert found.value == pytest.approx(100.0 * 0.81 / 9.81, rel=1e-6)
    # the last frame is left out
    assert np.allclose(found.bad, [(0.0, 0.5 - 1 / FPS)])


def test_the_bound_of_a_fall_is_five_percent() -> None:
    assert check_free_fall(flying(thrown(9.81 * 0.96))).good
    assert not check_free_fall(flying(thrown(9.81 * 0.94))).good


def test_a_fall_that_goes_wrong_is_bad_from_then_on() -> None:
    q = thrown(9.81, 1.0)
    t = np.arange(len(q)) / FPS
    q[:, 2] += np.where(t > 0.6, 2.0 * (t - 0.6) ** 2, 0.0)  # 4 m/s^2 upwards
    ((start, stop),) = check_free_fall(flying(q)).bad
    # half the span of a parabola is 0.05 s
    assert start == pytest.approx(0.6, abs=0.05)
    assert stop == pytest.approx(1.0, abs=0.05)


def test_what_a_world_throws_falls_and_spins_well() -> None:
    character = box()
    world = poise.World(character, dt=1.0 / 1200.0)
    q, v = character.rest_q.copy(), np.array([1.0, 0.5, 3.0, 4.0, 0.3, 0.2])  # it tumbles
    q[2] = 1.0
    world.reset(poise.State(q, v))
    frames = []
    for _ in range(72):
        frames.append(world.state.q.reshape(-1).copy())
        world.step(steps=10)
    examined = flying(np.array(frames))
    assert check_free_fall(examined).good
    assert (
        check_angular_momentum(examined).value < 1.0
    )  # of 10 %: the world's steps are of first order
    assert check_ground_reaction(examined).good


def test_a_spin_that_grows_is_off_its_mean_by_half_its_growth() -> None:
    q = thrown(9.81)
    t = np.arange(len(q)) / FPS
    # from 10 to 14 rad/s about z: the mean is 12, and the ends are off by a sixth
    q[:, 3:7] = rotation.turn((0.0, 0.0, 1.0), 10.0 * t + 4.0 * t**2)
    found = check_angular_momentum(flying(q))
    assert found.good is False
    # one frame is left out at the end: 0.008 s of 0.5
    assert found.value == pytest.approx(100.0 / 6.0, rel=0.02)


def test_a_steady_spin_is_good() -> None:
    q = thrown(9.81)
    q[:, 3:7] = rotation.turn((0.0, 0.0, 1.0), 12.0 * np.arange(len(q)) / FPS)
    found = check_angular_momentum(flying(q))
    assert found.good
    assert found.value < 0.1  # the spline between the frames


def test_a_faint_change_of_almost_no_spin_is_no_matter() -> None:
    q = thrown(9.81)
    t = np.arange(len(q)) / FPS
    q[:, 3:7] = rotation.turn((0.0, 0.0, 1.0), 0.1 * t**2)
    assert check_angular_momentum(flying(q)).good


def test_who_never_flies_has_no_fall_to_check() -> None:
    examined = Analysis(standing())
    assert check_free_fall(examined).good is None
    assert check_angular_momentum(examined).good is None


# the ground


@pytest.mark.parametrize(("slide", "good"), [(0.004, True), (0.007, False)])
def test_a_foot_that_slides_is_found_with_its_way(slide: float, good: bool) -> None:
    still = standing()
    q = still.frames.copy()
    q[:, 0] += np.linspace(0.0, slide, len(q))
    found = check_standing_feet(Analysis(Clip(HUMANOID, q, FPS, contacts=still.contacts)))
    assert found.good is good
    assert found.value == pytest.approx(1000.0 * slide)
    if not good:
        # beyond 5 mm from five sevenths on, to a frame
        assert found.bad[0][0] == pytest.approx(5.0 / 7.0, abs=1.0 / FPS)


def test_what_slides_on_its_belly_may() -> None:
    clip = standing()
    assert clip.contacts is not None
    sliding = ContactSchedule(clip.contacts.points, clip.contacts.on, sliding=True)
    assert (
        check_standing_feet(Analysis(clip.with_frames(clip.frames, contacts=sliding))).good is None
    )


def test_loose_ends_of_detected_contacts_do_not_count() -> None:
    still = standing()
    q = still.frames.copy()
    q[:12, 2] += np.linspace(0.03, 0.0, 12)  # it comes down at 0.3 m/s
    assert still.contacts is not None
    made, found = (replace(still.contacts, detected=flag) for flag in (False, True))
    assert check_standing_feet(Analysis(Clip(HUMANOID, q, FPS, contacts=found))).good
    assert check_standing_feet(Analysis(Clip(HUMANOID, q, FPS, contacts=made))).good is False


@pytest.mark.parametrize("edit", ["grounded", "smoothed"])
def test_an_edit_does_not_make_detected_contacts_authored(edit: str) -> None:
    still = standing()
    q = still.frames.copy()
    q[:12, 2] += np.linspace(0.03, 0.0, 12)
    clip = getattr(Clip(HUMANOID, q, FPS), edit)()
    assert clip.contacts.detected
    # the same motion judged without contacts is the second opinion
    alone = check_standing_feet(Analysis(clip.with_frames(clip.frames)))
    assert check_standing_feet(Analysis(clip)) == alone


def test_who_stands_is_explained() -> None:
    found = check_ground_reaction(Analysis(standing()))
    assert found.good
    assert found.value < 1.0


def test_who_stands_on_nothing_levitates() -> None:
    examined = Analysis(standing(on=False))
    found = check_ground_reaction(examined)
    assert found.good is False
    assert found.value == pytest.approx(100.0)  # his whole weight
    assert check_free_fall(examined).value == pytest.approx(100.0)


def test_who_leans_too_far_is_not_explained() -> None:
    lean = rotation.turn((0.0, 1.0, 0.0), 0.5)
    q = standing().frames.copy()
    q[:, 3:7] = lean
    contacts = standing().contacts
    assert check_ground_reaction(Analysis(Clip(HUMANOID, q, FPS, contacts=contacts))).good is False


@pytest.mark.parametrize(("early", "good"), [(0.04, True), (0.2, False)])
def test_impacts_are_left_out(early: float, good: bool) -> None:
    clip = standing()
    assert clip.contacts is not None
    on = clip.contacts.on.copy()
    on[: round(early * FPS)] = False  # it hangs in the air before it touches down
    contacts = ContactSchedule(clip.contacts.points, on)
    found = check_ground_reaction(Analysis(clip.with_frames(clip.frames, contacts=contacts)))
    assert found.good is good


def test_a_pose_that_was_put_in_front_is_a_jump() -> None:
    q = standing().frames.copy()
    q[0, 0] += 0.5
    found = check_continuity(Analysis(Clip(HUMANOID, q, FPS)))
    assert found.good is False
    assert found.time == pytest.approx(1.0 / FPS)
    assert "T-pose" in found.where
    assert check_continuity(Analysis(standing())).good


def test_a_jump_does_not_spoil_the_other_checks() -> None:
    clip = standing()
    q = clip.frames.copy()
    q[0, 0] += 0.5
    examined = Analysis(Clip(HUMANOID, q, FPS, contacts=clip.contacts))
    assert check_ground_reaction(examined).good
    assert check_standing_feet(examined).good


# joints


def test_a_knee_beyond_its_limit_is_named_with_its_excess() -> None:
    limits = HUMANOID.joint("left_knee").limits
    assert limits is not None
    clip = standing()
    q = clip.frames.copy()
    at = HUMANOID.q_slice(HUMANOID.joint("left_knee"))
    q[40:60, at] = limits[1] + np.radians(3.0)
    found = check_limits(Analysis(Clip(HUMANOID, q, FPS)))
    assert found.good is False
    assert found.value == pytest.approx(3.0)
    assert found.where == "left_knee, upper"
    assert np.allclose(found.bad, [(40 / FPS, 59 / FPS)])


def test_limits_that_are_kept_are_good() -> None:
    found = check_limits(Analysis(standing(left_knee=0.5)))
    assert found.good
    assert found.value == 0.0
    assert check_limits(flying(thrown(9.81))).good is None


# strength


def demand(character: Character, q: Any, torque: Any, link: str, way: str) -> float:
    """One of the moments, per kg [N m/kg]."""
    found = strength.joint_demands(character, q, torque)
    (one,) = [x for x in found if (x.link, x.way) == (link, way)]
    return float(one.moment[0])


def held(q: Any, on: Any = None) -> Any:
    """Joint torques and ground forces of the humanoid in a pose that it holds."""
    points = feet_of(HUMANOID)
    mask = np.ones((1, len(points)), dtype=bool) if on is None else np.array([on])
    zero = np.zeros((1, HUMANOID.nv))
    return ground_forces.find_ground_forces(HUMANOID, q[None], zero, zero, points, mask)


def test_on_tiptoe_the_ankle_holds_what_the_ground_turns() -> None:
    q, points = HUMANOID.rest_q, feet_of(HUMANOID)
    explained = held(q, [point.pos[0] > 0.0 for point in points])
    moment = demand(HUMANOID, q[None], explained.torque, "left_foot", "plantarflexion")
    # the second opinion: moments about the ankle of the free foot, which is level
    foot = HUMANOID.link("left_foot")
    turn = foot.mass * 9.81 * foot.com[0]
    for i, point in enumerate(points):
        if point.foot == "left_foot":
            turn += np.cross(point.pos, explained.forces[0, i])[1]
    assert moment == pytest.approx(-turn / HUMANOID.mass, rel=1e-9)
    assert moment > 0.5
    assert demand(HUMANOID, q[None], explained.torque, "left_foot", "dorsiflexion") == -moment


def test_on_the_heels_the_ankle_lifts_the_toes() -> None:
    q = HUMANOID.rest_q
    explained = held(q, [point.pos[0] < 0.0 for point in feet_of(HUMANOID)])
    assert demand(HUMANOID, q[None], explained.torque, "right_foot", "dorsiflexion") > 0.1


@pytest.mark.parametrize(
    ("joint", "axis", "link", "way"),
    [
        ("left_shoulder", (0.0, -1.0, 0.0), "left_upper_arm", "flexion"),
        ("left_shoulder", (0.0, 1.0, 0.0), "left_upper_arm", "extension"),
        ("left_shoulder", (1.0, 0.0, 0.0), "left_upper_arm", "abduction"),
        ("right_shoulder", (-1.0, 0.0, 0.0), "right_upper_arm", "abduction"),
    ],
)
def test_an_arm_that_is_lifted_needs_the_muscle_that_lifts_it(
    joint: str, axis: Any, link: str, way: str
) -> None:
    q = HUMANOID.rest_q.copy()
    q[HUMANOID.q_slice(HUMANOID.joint(joint))] = rotation.turn(axis, np.pi / 2.0)
    moment = demand(HUMANOID, q[None], held(q).torque, link, way)
    # the weight of arm and forearm, which lie in a line now, times their levers
    arm, forearm = HUMANOID.link(link), HUMANOID.link(link.replace("upper_arm", "forearm"))
    lever = -arm.mass * arm.com[2] - forearm.mass * (forearm.pos[2] + forearm.com[2])
    assert moment == pytest.approx(9.81 * lever / HUMANOID.mass, rel=1e-6)


def test_a_lifted_thigh_needs_flexion_and_the_other_hip_abduction() -> None:
    q = HUMANOID.rest_q.copy()
    q[HUMANOID.q_slice(HUMANOID.joint("left_hip"))] = rotation.turn((0.0, -1.0, 0.0), 1.5)
    q[HUMANOID.q_slice(HUMANOID.joint("left_knee"))] = 1.5
    torque = held(q, [point.foot == "right_foot" for point in feet_of(HUMANOID)]).torque
    assert demand(HUMANOID, q[None], torque, "left_thigh", "flexion") > 0.3
    assert demand(HUMANOID, q[None], torque, "right_thigh", "abduction") > 0.3


def test_a_bowed_back_needs_extension() -> None:
    q = HUMANOID.rest_q.copy()
    q[HUMANOID.q_slice(HUMANOID.joint("chest"))] = rotation.turn((0.0, 1.0, 0.0), 1.0)
    assert demand(HUMANOID, q[None], held(q).torque, "chest", "extension") > 0.5


def test_arms_of_a_t_pose_are_held_by_abduction(data_folder: Path) -> None:
    character = poise.load_clip(data_folder / "cmu_bvh" / "02_01.bvh").character
    q, zero = character.rest_q[None], np.zeros((1, character.nv))
    torque = poise.dynamics.inverse_dynamics(character, q, zero, zero)
    arm = [x for x in strength.joint_demands(character, q, torque) if x.link == "LeftArm"]
    most = max(arm, key=lambda x: float(x.moment[0]))
    assert most.way == "abduction"


def shaking(amplitude: float, hertz: float) -> tuple[Analysis, float]:
    """The humanoid shakes his head; and the largest moment that takes [N m]."""
    t = np.arange(round(FPS) + 1) / FPS
    w = 2.0 * np.pi * hertz
    turns = rotation.turn((0.0, 0.0, 1.0), amplitude * np.sin(w * t))
    head = HUMANOID.link("head")
    changes: dict[str, Any] = {head.joints[0].name: turns}
    clip = standing(**changes)
    examined = Analysis(clip)
    M = poise.dynamics.mass_matrix(HUMANOID, clip.frames[:1])[0]
    at = HUMANOID.v_slice(head.joints[0]).start + 2
    return examined, float(M[at, at] * amplitude * w**2)


def test_a_head_that_shakes_faster_than_a_neck_can_is_bad() -> None:
    examined, moment = shaking(1.0, 8.0)
    found = strength.check_strength(examined)
    assert found.good is False
    assert "neck rotation of head" in found.where
    bound = strength.largest_moment("neck", "rotation") * HUMANOID.mass
    # sampled fifteen times a turn, a spline is 2 % off in its acceleration
    assert found.value == pytest.approx(100.0 * moment / bound, rel=0.03)


def test_a_slow_no_is_good() -> None:
    assert strength.check_strength(shaking(0.5, 1.0)[0]).good


def test_what_people_were_measured_to_do_is_inside_the_bounds() -> None:
    # see the docstring of strength: sprinting at 9 m/s
    assert strength.largest_moment("ankle", "plantarflexion") > 4.1
    assert strength.largest_moment("knee", "extension") > 3.6
    assert strength.largest_moment("hip", "extension") > 4.3


@pytest.mark.parametrize("name", ["dog", "lamp", "snake-36", "tail-biped", "two-link"])
def test_who_is_no_person_has_no_table(name: str) -> None:
    assert body_of(load_character(name)).why_no_person


@pytest.mark.parametrize("name", ["humanoid", "humanoid-51", "humanoid-ball"])
def test_the_built_in_people_are_people(name: str) -> None:
    character = load_character(name)
    assert body_of(character).kind == "person"
    joints = {joint for joint, _ in strength.rated_links(body_of(character)).values()}
    assert {"hip", "knee", "ankle", "shoulder", "elbow", "trunk", "neck"} <= joints


# all together


def test_all_is_good_of_who_stands() -> None:
    found = check(standing())
    assert all(one.good is not False for one in found)
    assert sum(one.good is True for one in found) == 5


def test_a_character_without_feet_is_checked_too() -> None:
    two = load_character("two-link")
    found = check(Clip(two, np.zeros((10, two.nq)), FPS))
    assert all(one.good is not False for one in found)


def test_one_frame_is_no_motion() -> None:
    with pytest.raises(ClipError, match="no motion to check"):
        check(standing(0.0))


def test_a_finding_reads_as_a_line() -> None:
    found = Finding("feet stay", False, 7.0, 5.0, "mm", 0.5, "left", ((0.4, 0.6), (1.0, 1.1)))
    line = "BAD  feet stay: 7 mm (at most 5), left, worst at 0.50 s; bad 0.40..0.60, 1.00..1.10 s"
    assert str(found) == line
    assert str(Finding("feet stay", None, where="no feet")) == "-    feet stay: no feet"
    assert found.row()["bad"] == [[0.4, 0.6], [1.0, 1.1]]
