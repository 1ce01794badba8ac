"""Edits of clips: each keeps what it should, and what it changes it changes by the right amount."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from stepping import DATA, HUMANOID, needs_data, stepping, take
from trees import random_character, random_state

from poise import dynamics, load_character
from poise.anatomy.body import root_yaw
from poise.anatomy.feet import feet_of, positions
from poise.anatomy.names import opposite_of
from poise.errors import ClipError, PoiseError
from poise.math import rotation
from poise.math.arrays import Floats
from poise.model import configuration
from poise.model.character import Character, Joint, Link
from poise.motion import Clip, load_clip
from poise.motion.checks import check
from poise.motion.checks.claims import Analysis, check_limits
from poise.motion.editing.mirroring import Mirror
from poise.motion.foot_contact.detect import detect_contacts, ground_height

BUILTIN = [
    "humanoid",
    "humanoid-51",
    "humanoid-ball",
    "dog",
    "tail-biped",
    "snake-36",
    "lamp",
    "two-link",
    "plank-3",
]


def wandering(character: Character, seed: int = 0, k: int = 61) -> Clip:
    """A smooth random motion of all joints at 30 frames per second."""
    rng = np.random.default_rng(seed)
    t = np.arange(k)[:, None] / 30.0
    phase, pace = rng.uniform(0, 6, character.nv), rng.uniform(1, 3, character.nv)
    start = np.asarray(random_state(rng, character)[0])
    return Clip(
        character, configuration.integrate(character, start, 0.4 * np.sin(pace * t + phase)), 30.0
    )


def walking(turn: float = 0.5) -> Clip:
    """One round of a made-up walk of the humanoid that advances and turns; a perfect loop."""
    t = np.arange(61) / 60.0
    wave = np.sin(2 * np.pi * t)
    q = np.tile(HUMANOID.rest_q, (61, 1))
    angle = turn * t
    # along a circle, or a line
    path = 1.2 * t * np.sinc(angle / 2.0 / np.pi)
    q[:, 0], q[:, 1] = path * np.cos(angle / 2.0), path * np.sin(angle / 2.0)
    q[:, 2] += 0.02 * np.cos(4 * np.pi * t)
    q[:, 3:7] = rotation.turn((0.0, 0.0, 1.0), angle)
    q[:, HUMANOID.q_slice("left_hip")] = rotation.turn((0.0, 1.0, 0.0), 0.5 * wave)
    q[:, HUMANOID.q_slice("right_hip")] = rotation.turn((0.0, 1.0, 0.0), -0.5 * wave)
    q[:, HUMANOID.q_slice("left_knee")] = (0.3 + 0.3 * wave)[:, None]
    return Clip(HUMANOID, q, 60.0)


def places(clip: Clip) -> Floats:
    return dynamics.forward_kinematics(clip.character, clip.frames)[0]


# in time


def test_trimming_keeps_the_frames_bit_for_bit() -> None:
    clip, contacts = stepping()
    known = clip.with_frames(clip.frames, contacts=contacts)
    part = known.trimmed(0.5, 1.0)
    assert np.array_equal(part.frames, clip.frames[60:121])
    assert part.contacts is not None
    assert np.array_equal(part.contacts.on, contacts.on[60:121])
    assert part.duration == pytest.approx(0.5)
    assert np.array_equal(known.trimmed().frames, clip.frames)


def test_trimming_between_frames_takes_the_splines_poses() -> None:
    clip = wandering(HUMANOID)
    part = clip.trimmed(0.51, 1.17)
    assert np.allclose(part.frames, clip.q(0.51 + np.arange(len(part)) / 30.0), atol=1e-14)
    assert 0.51 + part.duration <= 1.17


@pytest.mark.parametrize("span", [(1.0, 0.5), (-0.1, 1.0), (0.0, 9.0), (np.nan, 1.0)])
def test_trimming_outside_is_refused(span: tuple[float, float]) -> None:
    with pytest.raises(PoiseError, match=r"start|trim"):
        wandering(HUMANOID).trimmed(*span)


@pytest.mark.parametrize("fps", [24.0, 60.0, 120.0, 29.97])
def test_resampling_keeps_the_motion(fps: float) -> None:
    clip = wandering(HUMANOID)
    new = clip.resampled(fps)
    t = np.arange(len(new)) / fps
    gap = configuration.difference(HUMANOID, clip.q(t), new.frames)
    assert np.abs(gap).max() < 1e-12
    assert new.fps == fps
    assert clip.duration - 1.0 / fps < new.duration <= clip.duration + 1e-9


def test_resampling_up_and_down_comes_back() -> None:
    clip = wandering(HUMANOID)
    again = clip.resampled(120.0).resampled(30.0)
    assert np.abs(configuration.difference(HUMANOID, clip.frames, again.frames)).max() < 1e-12


@pytest.mark.parametrize("factor", [0.5, 2.0, 1.3])
def test_speed_scales_velocity_and_acceleration(factor: float) -> None:
    clip = wandering(HUMANOID).resampled(240.0)
    fast = clip.at_speed(factor)
    t = np.linspace(0.3, 0.7, 7) * fast.duration
    assert fast.duration == pytest.approx(clip.duration / factor, abs=1.0 / 240.0)
    # one spline through samples of another: exact to the fourth power of the step
    assert np.allclose(fast.v(t), factor * clip.v(factor * t), atol=1e-4)
    assert np.allclose(fast.a(t), factor**2 * clip.a(factor * t), atol=2e-2)


def test_a_warp_meets_its_times_and_never_runs_backward() -> None:
    clip = wandering(HUMANOID)
    old, new = [0.0, 0.5, 1.0, 2.0], [1.0, 1.2, 3.0, 3.5]
    slow = clip.resampled(60.0).warped(old, new)
    assert slow.duration == pytest.approx(2.5)
    for a, b in zip(old, new, strict=True):
        gap = configuration.difference(HUMANOID, clip.q(a), slow.q(b - 1.0))
        assert np.abs(gap).max() < 1e-3
    hinge = Clip(load_character("two-link"), np.linspace([0, 0], [1, 1], 61), 30.0)
    assert (np.diff(hinge.warped(old, new).frames[:, 0]) >= 0.0).all()


def test_a_warp_by_one_factor_is_a_change_of_speed() -> None:
    clip = wandering(HUMANOID)
    a, b = clip.warped([0.0, 2.0], [0.0, 1.0]), clip.at_speed(2.0)
    assert np.abs(configuration.difference(HUMANOID, b.frames, a.frames)).max() < 1e-12


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ([0.0], [0.0], "shape"),
        ([0.0, 1.0], [0.0, 1.0, 2.0], "shape"),
        ([0.0, 1.0], [1.0, 0.0], "new_times must be finite and increase"),
        ([1.0, 1.0], [0.0, 1.0], "times must"),
        ([0.0, 9.0], [0.0, 1.0], "the clip from 0 to 2 s"),
    ],
)
def test_contradictory_warps_are_refused(old: list[float], new: list[float], words: str) -> None:
    with pytest.raises(ClipError, match=words):
        wandering(HUMANOID).warped(old, new)


def test_an_edit_does_not_make_a_clip_without_end() -> None:
    with pytest.raises(ClipError, match="more than"):
        wandering(HUMANOID).resampled(1e9)
    with pytest.raises(PoiseError, match="factor"):
        wandering(HUMANOID).at_speed(0.0)


# in space


def test_a_turned_clip_is_the_same_seen_from_elsewhere() -> None:
    clip = wandering(HUMANOID)
    turned = clip.turned(0.7, about=(1.0, 2.0, 0.0))
    c, s = np.cos(0.7), np.sin(0.7)
    R = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
    center = np.array([1.0, 2.0, 0.0])
    assert np.allclose(places(turned), (places(clip) - center) @ R.T + center, atol=1e-12)
    assert np.allclose(clip.turned(0.7).frames[0, :3], clip.frames[0, :3], atol=1e-12)


def test_a_placed_clip_starts_there_and_looks_that_way() -> None:
    clip = walking().placed((3.0, -1.0), heading=1.1)
    assert np.allclose(clip.frames[0, :2], (3.0, -1.0), atol=1e-12)
    assert root_yaw(clip.character, clip.frames[0]) == pytest.approx(1.1)
    assert root_yaw(clip.character, clip.frames[-1]) == pytest.approx(1.6)
    gone = clip.frames[-1, :2] - clip.frames[0, :2]
    assert np.linalg.norm(gone) == pytest.approx(1.2 * np.sin(0.25) / 0.25)


def test_a_grounded_clip_stands_on_the_ground() -> None:
    clip, _ = stepping(height=0.25)
    down = clip.grounded()
    assert ground_height(down) == pytest.approx(0.0, abs=1e-12)
    low = positions(HUMANOID, feet_of(HUMANOID), down.frames)[..., 2].min(axis=1)
    # soles of the made-up steps are level to the tolerance of inverse kinematics
    assert np.abs(low).max() < 1e-3
    assert ground_height(clip.grounded(0.5)) == pytest.approx(0.5, abs=1e-12)


@pytest.mark.parametrize(
    ("edit", "arguments"),
    [("moved", ((1.0, 0.0, 0.0),)), ("turned", (1.0,)), ("placed", ((0, 0),)), ("grounded", ())],
)
def test_what_hangs_on_the_world_does_not_move(edit: str, arguments: tuple[object, ...]) -> None:
    clip = wandering(load_character("two-link"))
    with pytest.raises(ClipError, match=r"'two-link' cannot .*'shoulder'"):
        getattr(clip, edit)(*arguments)


# mirror


@pytest.mark.parametrize("name", BUILTIN)
def test_mirrored_twice_is_the_clip(name: str) -> None:
    clip = wandering(load_character(name))
    again = clip.mirrored().mirrored()
    assert np.abs(again.frames - clip.frames).max() < 1e-12


@pytest.mark.parametrize("name", BUILTIN)
def test_the_mirrored_motion_is_the_image(name: str) -> None:
    """Every link is where its counterpart is in the mirror; built-in characters are symmetric."""
    character = load_character(name)
    clip = wandering(character)
    image = clip.mirrored()
    names = [link.name for link in character.links]
    other = [names.index(Mirror.of(character).pairs[n]) for n in names]
    assert np.allclose(places(image)[:, other], places(clip) * [1.0, -1.0, 1.0], atol=1e-10)


def test_velocities_are_mirrored_too() -> None:
    clip = wandering(HUMANOID)
    image = clip.mirrored()
    t = np.linspace(0.2, 1.8, 9)
    points = [("left_foot", "right_foot"), ("head", "head")]
    for one, two in points:
        v, w = (
            np.einsum("kij,kj->ki", dynamics.jacobian(HUMANOID, x.q(t), link)[:, :3], x.v(t))
            for x, link in ((clip, one), (image, two))
        )
        # splines of mirrored quaternions are mirrored splines
        assert np.allclose(w, v * [1.0, -1.0, 1.0], atol=1e-9)


def test_contacts_change_feet_in_the_mirror() -> None:
    clip, contacts = stepping()
    image = clip.with_frames(clip.frames, contacts=contacts).mirrored()
    assert image.contacts is not None
    assert image.contacts.points == contacts.points
    left = image.contacts.standing("left_foot")
    assert np.array_equal(left, contacts.standing("right_foot"))
    found = detect_contacts(image)
    assert (found.on == detect_contacts(clip).on[:, [4, 5, 6, 7, 0, 1, 2, 3]]).mean() > 0.95


@pytest.mark.parametrize(
    ("name", "known", "other"),
    [
        ("left_foot", ["left_foot", "right_foot"], "right_foot"),
        ("Character1_RightHand", ["Character1_RightHand", "Character1_LeftHand"], "C_LeftHand"),
        ("LThumb", ["LThumb", "RThumb"], "RThumb"),
        ("lfemur", ["lfemur", "rfemur", "root"], "rfemur"),
        ("foot_l", ["foot_l", "foot_r"], "foot_r"),
        ("arm.R.001", ["arm.R.001", "arm.L.001"], "arm.L.001"),
        ("FootL", ["FootL", "FootR"], "FootR"),
        ("lowerback", ["lowerback", "head"], "lowerback"),
        ("root", ["root"], "root"),
        ("LEFT_ARM", ["LEFT_ARM", "RIGHT_ARM"], "RIGHT_ARM"),
        ("left_foot", ["left_foot", "rite_foot"], None),
    ],
)
def test_names_of_the_other_side(name: str, known: list[str], other: str | None) -> None:
    wanted = other.replace("C_", "Character1_") if other else None
    assert opposite_of(name, known) == wanted


def biped(left: str, right: str, axis: tuple[float, ...] = (0.0, 1.0, 0.0)) -> Clip:
    """A body with two legs of these names."""
    body = Link("body", None, joints=(Joint("root", "free"),), mass=1.0, inertia=(1.0, 1.0, 1.0))
    legs = [
        Link(
            name,
            "body",
            (0.0, y, 0.0),
            joints=(Joint(name, "hinge", a),),
            mass=1.0,
            inertia=(1.0, 1.0, 1.0),
        )
        for name, y, a in ((left, 0.1, (0.0, 1.0, 0.0)), (right, -0.1, axis))
    ]
    character = Character("biped", (body, *legs))
    return Clip(character, np.tile(character.rest_q, (3, 1)), 30.0)


def test_links_without_another_side_are_listed() -> None:
    with pytest.raises(ClipError, match=r"'biped'.*left_leg, left_leg_2"):
        biped("left_leg", "left_leg_2").mirrored()
    with pytest.raises(ClipError, match=r"'leg_1' has no mirror image.*0.2 m from symmetric"):
        biped("leg_1", "leg_2").mirrored()


def test_an_axis_that_is_no_image_is_refused() -> None:
    with pytest.raises(ClipError, match=r"axis of joint 'left_leg'.*90 degrees"):
        biped("left_leg", "right_leg", (1.0, 0.0, 0.0)).mirrored()
    assert biped("left_leg", "right_leg", (0.0, -1.0, 0.0)).mirrored()


# loops and blends


def test_a_perfect_loop_goes_on_turning_and_walking() -> None:
    clip = walking(turn=0.5)
    ring = clip.looped(3)
    assert len(ring) == 3 * 60 + 1
    assert root_yaw(ring.character, ring.frames[-1]) == pytest.approx(1.5)
    # each round is the first one, carried on: distances between rounds stay
    p = places(ring)
    for i in (1, 2):
        gap = np.linalg.norm(p[60 * i : 60 * i + 61] - p[60 * i, :1], axis=-1)
        assert np.allclose(gap, np.linalg.norm(p[:61] - p[0, :1], axis=-1), atol=1e-9)
    # its seam is no rougher than the rest, and so left alone
    assert np.abs(ring.frames[:61] - clip.frames).max() < 1e-12


@pytest.mark.parametrize("name", ["walk", "run", "dog-pace", "dog-trot", "dog-canter"])
def test_our_gaits_stay_true_when_looped(name: str) -> None:
    bad = [str(finding) for finding in check(load_clip(name).looped(3)) if finding.good is False]
    assert not bad, bad


def test_a_rough_seam_is_faded_unless_told_otherwise() -> None:
    clip = wandering(HUMANOID, 1).resampled(120.0).trimmed(0.1, 1.6)

    def jolt(ring: Clip) -> float:
        step = configuration.difference(HUMANOID, ring.frames[1:], ring.frames[:-1])
        return float(np.abs(np.diff(step, axis=0))[len(clip) - 4 : len(clip)].max())

    assert jolt(clip.looped(2)) < 0.3 * jolt(clip.looped(2, blend=0.0))


@pytest.mark.parametrize("seed", range(3))
def test_a_seam_is_continuous_in_place_and_velocity(seed: int) -> None:
    """Steps across the seam differ from those beside it no more than steps elsewhere do."""
    clip = wandering(HUMANOID, seed).resampled(120.0).trimmed(0.1, 1.6)
    ring = clip.looped(3, blend=0.4)
    step = configuration.difference(HUMANOID, ring.frames[1:], ring.frames[:-1])
    jolt = np.abs(np.diff(step, axis=0)).max(axis=1)
    n = len(clip) - 1
    seams = [n - 2, n - 1, n, 2 * n - 2, 2 * n - 1, 2 * n]
    elsewhere = np.delete(jolt, seams)
    assert jolt[seams].max() < 1.5 * elsewhere.max()
    raw = clip.looped(3, blend=0.0)
    hard = np.abs(
        np.diff(configuration.difference(HUMANOID, raw.frames[1:], raw.frames[:-1]), axis=0)
    )
    assert hard[seams].max() > 3.0 * jolt[seams].max()


def test_a_loop_can_be_told_to_walk_straight() -> None:
    ring = walking(turn=0.1).looped(4, turn=0.0)
    assert root_yaw(ring.character, ring.frames[-1]) == pytest.approx(
        root_yaw(ring.character, ring.frames[0])
    )
    ahead = np.diff(ring.frames[::60, :2], axis=0)
    assert np.allclose(ahead, ahead[0], atol=1e-12)


def test_one_round_can_be_looped_without_a_seam() -> None:
    one = wandering(HUMANOID, 1).looped(1, blend=0.3)
    two = one.looped(2, blend=0.0)
    also = wandering(HUMANOID, 1).looped(2, blend=0.3)
    assert np.abs(configuration.difference(HUMANOID, also.frames, two.frames)).max() < 1e-9


@pytest.mark.parametrize("seed", range(4))
def test_any_character_loops(seed: int) -> None:
    clip = wandering(random_character(np.random.default_rng(seed), 6), seed)
    ring = clip.looped(2, blend=1.0)
    assert len(ring) == 121
    assert np.isfinite(ring.frames).all()


def test_contacts_loop_too() -> None:
    clip, contacts = stepping()
    ring = clip.with_frames(clip.frames, contacts=contacts).looped(2)
    assert ring.contacts is not None
    assert np.array_equal(ring.contacts.on[1:239], ring.contacts.on[240:478])


@pytest.mark.parametrize(
    ("frames", "cycles", "blend", "words"),
    [(61, 0, None, "cycles"), (61, 2, 1.5, "half of the clip"), (2, 2, None, "3 or more")],
)
def test_what_cannot_loop_is_refused(
    frames: int, cycles: int, blend: float | None, words: str
) -> None:
    clip = wandering(HUMANOID, k=frames)
    with pytest.raises(PoiseError, match=words):
        clip.looped(cycles, blend=blend)


def test_a_blend_goes_from_one_clip_to_the_other() -> None:
    one, two = walking(0.0), walking(0.0).turned(2.0).moved((5.0, 5.0, 0.0))
    both = one.blended(two, 0.4, at=0.5)
    assert both.duration == pytest.approx(0.5 + 1.0)
    assert np.array_equal(both.frames[:31], one.frames[:31])
    # after the blend it is the second clip, placed where the first one went
    tail = both.frames[-30:, 7:]
    assert np.allclose(tail, two.frames[-30:, 7:], atol=1e-12)
    assert root_yaw(both.character, both.frames[-1]) == pytest.approx(0.0, abs=1e-9)
    step = np.linalg.norm(np.diff(both.frames[:, :2], axis=0), axis=1) * both.fps
    assert np.allclose(step, 1.2, atol=0.3)


def test_a_clip_blended_into_itself_at_its_phase_is_itself() -> None:
    ring = walking(0.3).looped(2)
    one = ring.trimmed(0.0, 1.0)
    both = one.blended(ring.trimmed(0.7, 2.0), 0.3)
    assert np.abs(configuration.difference(HUMANOID, ring.frames, both.frames)).max() < 1e-6


BLENDS = [("walk", "run"), ("run", "walk"), ("walk", "walk"), ("squat", "toe-touch")]


def soles(clip: Clip) -> Floats:
    assert clip.contacts is not None
    return positions(clip.character, clip.contacts.points, clip.frames)


@pytest.mark.parametrize(("before", "after"), [*BLENDS, ("dog-trot", "dog-pace")])
def test_what_stands_in_a_blend_does_not_move(before: str, after: str) -> None:
    both = load_clip(before).blended(load_clip(after), 0.3)
    assert both.contacts is not None
    p = soles(both)
    slides = [np.ptp(p[a:b, i], axis=0).max() for i, a, b in both.contacts.point_phases()]
    assert max(slides) < 0.005  # what check allows


@pytest.mark.parametrize(("before", "after"), BLENDS)
def test_a_blend_does_not_sink_and_keeps_limits(before: str, after: str) -> None:
    one, two = load_clip(before), load_clip(after)
    both = one.blended(two, 0.3)
    # corrections are smoothed in time, which costs millimetres; poses alone sink by up to 33 mm
    assert soles(both)[..., 2].min() > min(soles(x)[..., 2].min() for x in (one, two)) - 0.007
    assert check_limits(Analysis(both)).good


@pytest.mark.parametrize(("before", "after"), BLENDS)
def test_feet_stand_on_when_a_blend_is_over(before: str, after: str) -> None:
    one, two = load_clip(before), load_clip(after)
    both = one.blended(two, 0.3)
    assert both.contacts is not None
    assert one.contacts is not None
    assert two.contacts is not None
    start, tail = len(one) - 20, len(two) - 20
    assert np.array_equal(both.contacts.on[:start], one.contacts.on[:start])
    assert np.array_equal(both.contacts.on[-tail:], two.contacts.on[-tail:])


def test_a_foot_that_stands_nearby_in_both_clips_stays() -> None:
    clip, contacts = stepping()
    still = clip.with_frames(np.tile(clip.frames[:1], (len(clip), 1)), contacts=contacts)
    on = np.ones_like(contacts.on)
    one = still.with_frames(still.frames, contacts=replace(contacts, on=on))
    frames = one.frames.copy()
    hip = HUMANOID.q_slice("left_hip")
    frames[:, hip] = rotation.multiply(
        frames[:, hip], rotation.turn((0.0, 0.0, 1.0), np.full(len(frames), 0.02))
    )
    both = one.blended(one.with_frames(frames, contacts=one.contacts), 0.5)
    assert both.contacts is not None
    assert both.contacts.on.all()
    assert np.ptp(soles(both), axis=0).max() < 0.002  # twice the bound of standing


def test_a_blend_has_no_jolts() -> None:
    one, two = wandering(HUMANOID, 1).resampled(120.0), wandering(HUMANOID, 2).resampled(120.0)
    both = one.blended(two, 0.5)
    t = np.arange(len(both)) / both.fps
    alone = max(np.abs(x.v(np.arange(len(x)) / 120.0)).max() for x in (one, two))
    # the way between two poses a turn apart, in half a second, comes on top
    assert np.abs(both.v(t)).max() < alone + 1.875 * 2.0 * np.pi / 0.5


@pytest.mark.parametrize(
    ("duration", "at", "words"),
    [(5.0, None, "longer than a clip"), (0.5, 1.8, "begins in 0 .. 1.5"), (0.0, None, "duration")],
)
def test_blends_that_do_not_fit_are_refused(duration: float, at: float | None, words: str) -> None:
    clip = wandering(HUMANOID)
    with pytest.raises(PoiseError, match=words):
        clip.blended(clip, duration, at=at)


def test_clips_of_different_characters_do_not_blend() -> None:
    with pytest.raises(ClipError, match="retarget"):
        wandering(HUMANOID).blended(wandering(load_character("dog")))


# what real files need


@needs_data
@pytest.mark.data
def test_edits_keep_the_rig_so_that_bvh_overlays(tmp_path: object) -> None:
    assert DATA is not None
    clip = load_clip(DATA / "cmu_bvh" / "02_01.bvh")
    for edited in (
        clip.trimmed(0.1, 1.0),
        clip.resampled(60.0),
        clip.mirrored(),
        clip.at_speed(2.0),
        clip.turned(1.0),
        clip.grounded(),
        clip.trimmed(0.2, 1.2).looped(2),
    ):
        assert edited.source == clip.source
        path = f"{tmp_path}/a.bvh"
        edited.save(path)
        again = load_clip(path)
        assert again.fps == pytest.approx(edited.fps)
        p, new = places(edited), places(again)
        assert np.abs(new - p).max() < 1e-4


@needs_data
@pytest.mark.data
@pytest.mark.parametrize("name", ["dog3d_trot.txt", "humanoid3d_cartwheel.txt", "kick.bvh"])
def test_real_clips_mirror(name: str) -> None:
    clip = take(name)
    mirror = Mirror.of(clip.character)
    names = [link.name for link in clip.character.links]
    other = [names.index(mirror.pairs[n]) for n in names]
    image = clip.mirrored()
    # MASS's file writes its offsets to six digits
    assert np.allclose(places(image)[:, other], mirror.places(places(clip)), atol=1e-4)
    assert np.abs(image.mirrored().frames - clip.frames).max() < 1e-12


STANDS = ["leg-circle", "axe-kick", "forward-kick", "leg-swing", "side-kick", "jab", "squat"]


@pytest.mark.parametrize("name", STANDS)
def test_a_foot_that_stands_all_the_time_stays_in_a_loop(name: str) -> None:
    clip = load_clip(name)
    twice = clip.looped(2)
    assert clip.contacts is not None
    always = clip.contacts.on.all(axis=0)
    at = positions(clip.character, clip.contacts.points, twice.frames)[:, always]
    assert np.linalg.norm(at - at[0], axis=-1).max() < 0.005
    bad = [str(finding) for finding in check(twice) if finding.good is False]
    assert not [text for text in bad if "standing feet" in text]


@pytest.mark.parametrize("name", ["run", "backflip", "sprint-jump-stop", "dog-canter"])
def test_between_two_frames_a_point_stands_if_it_does_in_both(name: str) -> None:
    clip = load_clip(name)
    finer = clip.resampled(2.0 * clip.fps)
    assert clip.contacts is not None
    assert finer.contacts is not None
    assert np.array_equal(finer.contacts.on[::2], clip.contacts.on)
    between = clip.contacts.on[:-1] & clip.contacts.on[1:]
    assert np.array_equal(finer.contacts.on[1::2], between)
    bad = [str(finding) for finding in check(finer) if finding.good is False]
    assert not [text for text in bad if "standing feet" in text]


def test_a_loop_without_blend_leaves_every_frame() -> None:
    clip = load_clip("leg-circle")
    looped = clip.looped(2, blend=0.0)
    # quaternions are normalised again
    assert np.abs(looped.frames[: len(clip) - 1] - clip.frames[:-1]).max() < 1e-15
