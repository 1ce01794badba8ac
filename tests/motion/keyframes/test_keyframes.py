"""Keyframes: the file, the curves between keys, and what inverse kinematics brings to its place."""

from __future__ import annotations

import random
import re
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from mutations import JUNK, NUMBERS
from scipy.spatial.transform import Rotation

from poise.anatomy.feet import ContactPoint, positions, tip_middle
from poise.characters import load_character
from poise.errors import ClipError, PoiseError
from poise.math import rotation
from poise.math.spline import TooFar, curve, turning
from poise.model.character import Character
from poise.model.configuration import difference
from poise.motion.authoring.author import Options
from poise.motion.editing.mirroring import Mirror
from poise.motion.keyframes import Keyframes, load_keyframes, parse_keyframes

DOC = Path(__file__).parents[3] / "docs" / "keyframes.md"

SMALL = """clip: small
character: humanoid
fps: 60
keys:
- time: 0
  joints: {left_knee: 60, left_hip: [0, -40, 0]}
- time: 0.5
  joints: {left_knee: 20}
- time: 1
  joints: {left_hip: [5, 10, 20]}
"""

LOOP = """clip: circle
character: humanoid
duration: 1
loop: {travel: [0.5, 0.1, 0.02], turn: 40}
keys:
- time: 0
  root: {pos: [0, 0, 0.9], turn: [0, 5, 0]}
  joints: {left_hip: [0, -30, 0], left_knee: 10}
- time: 0.4
  root: {pos: [0.2, 0.1, 0.95], turn: [0, 0, 10]}
  joints: {left_hip: [0, 20, 0], left_knee: 40}
- time: 0.7
  joints: {left_hip: [10, 5, 0]}
"""


def examples() -> list[str]:
    """The files in the documentation."""
    return re.findall(r"```yaml\n(clip:.*?)```", DOC.read_text(), re.S)


def angle(a: np.ndarray, b: np.ndarray) -> float:
    """Largest turn between rotations [rad]."""
    off = rotation.log(rotation.multiply(rotation.conjugate(a), b))
    return float(np.linalg.norm(off, axis=-1).max())


def keys_at(seed: int, count: int = 7, scale: float = 0.4) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    times = np.cumsum(rng.uniform(0.3, 1.0, count))
    return times, rotation.exp(scale * rng.normal(size=(count, 3)))


# curves


@pytest.mark.parametrize("period", [None, 9.0])
def test_a_curve_passes_through_its_rotations(period: float | None) -> None:
    times, keys = keys_at(1)
    assert angle(turning(times, keys, times, period), keys) < 1e-10  # solved to 1e-11


@pytest.mark.parametrize("period", [None, 9.0])
def test_about_one_axis_a_curve_of_rotations_is_the_cubic_spline_of_the_angle(
    period: float | None,
) -> None:
    times, _ = keys_at(2)
    angles = np.random.default_rng(2).uniform(-1.3, 1.3, len(times))
    t = np.linspace(times[0], times[-1], 300)
    turned = turning(times, rotation.turn((0.0, 1.0, 0.0), angles), t, period)
    expected = rotation.turn((0.0, 1.0, 0.0), curve(times, angles[:, None], t, period)[:, 0])
    assert angle(turned, expected) < 1e-10  # solved to 1e-11


@pytest.mark.parametrize("period", [None, 9.0])
def test_velocity_and_acceleration_are_continuous_at_the_keys(period: float | None) -> None:
    times, keys = keys_at(3)
    h = 1e-4
    for at in times[1:-1]:
        t = at + h * np.arange(-8, 9)
        q = turning(times, keys, t, period)
        w = rotation.log(rotation.multiply(rotation.conjugate(q[:-1]), q[1:])) / h
        a = np.diff(w, axis=0) / h
        jerk = np.abs(np.diff(a, axis=0)).max() / h
        # a jump of acceleration would be a jerk of jump / h; rounding gives 1e-16 / h^3 = 1e-4
        assert jerk < 2e3
        assert np.abs(a).max() > 0.1


def test_a_jump_of_acceleration_would_be_seen_by_that_measure() -> None:
    h, t = 1e-4, 1e-4 * np.arange(-8, 9)
    bent = np.where(t > 0, 0.5 * t**2, 0.0)  # acceleration 0, then 1
    assert np.abs(np.diff(bent, 3)).max() / h**3 > 4e3


def test_a_motion_that_is_no_loop_begins_and_ends_at_rest() -> None:
    times, keys = keys_at(4)
    h = 1e-6
    for end in (times[0] + h * np.arange(2), times[-1] - h * np.arange(2)):
        q = turning(times, keys, end)
        assert angle(q[0], q[1]) / h < 1e-4  # acceleration of 100 rad/s^2 over h


def test_a_closed_curve_goes_on_turned() -> None:
    times, keys = keys_at(5)
    onward = rotation.turn((0.0, 0.0, 1.0), 0.7)
    t = np.linspace(0.0, 5.0, 40)
    now, next_ = (turning(times, keys, t + shift, 6.0, onward) for shift in (0.0, 6.0))
    assert angle(rotation.multiply(onward, now), next_) < 1e-9
    seam = turning(times, keys, times[0] + np.array([-1e-9, 1e-9]), 6.0, onward)
    assert angle(seam[0], seam[1]) < 1e-6


def test_swings_of_85_degrees_to_and_fro_are_no_trouble() -> None:
    times = np.arange(8.0)
    keys = rotation.turn((0.0, 1.0, 0.0), np.radians(85.0) * (-1.0) ** np.arange(8))
    assert angle(turning(times, keys, times, 8.0), keys) < 1e-10


def test_half_a_turn_between_keys_is_refused() -> None:
    keys = rotation.turn((0.0, 1.0, 0.0), np.array([0.0, np.pi]))
    with pytest.raises(TooFar, match="180 degrees"):
        turning(np.array([0.0, 1.0]), keys, 0.5)


# files


def test_poses_at_the_keys_are_those_of_the_file() -> None:
    keys = parse_keyframes(SMALL)
    q = keys.q([0.0, 0.5, 1.0])
    at = keys.character.q_slice
    assert np.degrees(q[:2, at("left_knee")]).ravel() == pytest.approx([60.0, 20.0])
    expected = Rotation.from_euler("ZYX", [20, 10, 5], degrees=True).as_quat(scalar_first=True)
    assert angle(q[2, at("left_hip")], expected) < 1e-10  # solved to 1e-11


def test_a_joint_holds_its_last_key_and_others_stay_zero() -> None:
    keys = parse_keyframes(SMALL)
    q = keys.q([1.0])[0]
    at = keys.character.q_slice
    assert np.degrees(q[at("left_knee")]) == pytest.approx(20.0)
    assert q[at("right_hip")] == pytest.approx([1.0, 0.0, 0.0, 0.0])
    assert q[:7] == pytest.approx(keys.character.rest_q[:7])


def test_frames_come_at_the_rate_of_the_file_or_another() -> None:
    keys = parse_keyframes(SMALL)
    assert len(keys.frames()) == 61
    assert len(keys.frames(30)) == 31
    assert keys.clip().duration == pytest.approx(1.0)
    with pytest.raises(ClipError, match="no whole number of frames"):
        parse_keyframes(SMALL.replace("time: 1\n", "time: 1.005\n")).frames()


def test_a_loop_closes_after_its_travel() -> None:
    keys = parse_keyframes(LOOP)
    t = np.linspace(0.0, 0.9, 7)
    now, later = keys.q(t), keys.q(t + 1.0)
    turn = Rotation.from_euler("z", 40, degrees=True)
    assert later[:, :3] == pytest.approx(turn.apply(now[:, :3]) + [0.5, 0.1, 0.02])
    yaw = turn.as_quat(scalar_first=True)
    assert angle(rotation.multiply(yaw, now[:, 3:7]), later[:, 3:7]) < 1e-9
    assert later[:, 7:] == pytest.approx(now[:, 7:], abs=1e-9)


def test_the_root_of_a_loop_moves_smoothly_over_the_seam() -> None:
    keys, h = parse_keyframes(LOOP), 1e-3
    x = keys.q(1.0 + h * np.arange(-10, 11))[:, :3]
    jerk = np.abs(np.diff(x, 3, axis=0)).max() / h**3
    assert jerk < 300.0  # a jump of 1 m/s^2 would be 1000


def test_the_second_half_mirrors_the_first() -> None:
    keys = parse_keyframes(examples()[1])
    t = np.linspace(0.0, 0.5, 6)
    q, later = keys.q(t), keys.q(t + keys.duration / 2)
    at, mirror = keys.character.q_slice, Mirror.of(keys.character)
    assert later[:, :3] == pytest.approx(q[:, :3] * [1, -1, 1] + [0.675, 0, 0])
    assert angle(mirror.turn(q[:, 3:7]), later[:, 3:7]) < 1e-9
    assert later[:, at("right_knee")] == pytest.approx(q[:, at("left_knee")])
    assert angle(mirror.values("left_hip", q[:, at("left_hip")]), later[:, at("right_hip")]) < 1e-9


def test_points_of_a_mirrored_pose_are_mirrored() -> None:
    character = load_character("humanoid-ball")
    mirror, rng = Mirror.of(character), np.random.default_rng(6)
    q, image = character.rest_q, character.rest_q
    q[3:7] = rotation.exp(rng.normal(size=3))
    image[3:7] = mirror.turn(q[None, 3:7])[0]
    for joint in character.joints[1:]:
        q[character.q_slice(joint)] = rotation.exp(0.5 * rng.normal(size=3))
        there = character.q_slice(mirror.joint(joint.name))
        image[there] = mirror.values(joint.name, q[None, character.q_slice(joint)])[0]
    from poise.dynamics import forward_kinematics

    names = [link.name for link in character.links]
    swap = [names.index(mirror.pairs[name]) for name in names]
    here, seen = forward_kinematics(character, q)[0], forward_kinematics(character, image)[0]
    assert seen[swap] == pytest.approx(here * [1, -1, 1])


# what is met


@pytest.mark.parametrize("text", examples(), ids=["greet", "stroll"])
def test_the_files_of_the_documentation_are_clips_that_stand(text: str, tmp_path: Path) -> None:
    path = tmp_path / "a.keys.yaml"
    path.write_text(text)
    keys = load_keyframes(path)
    clip, contacts = keys.clip(), keys.contacts()
    placed = positions(keys.character, contacts.points, clip.frames)
    assert len(contacts.on) == len(clip.frames)
    assert np.abs(placed[contacts.on][:, 2]).max() < 0.0021  # met within 2 mm
    assert placed[..., 2].min() > -0.05
    for i, a, b in contacts.point_phases():
        assert np.ptp(placed[a:b, i], axis=0).max() < 0.0042


def test_a_reach_is_met_at_its_key() -> None:
    keys = parse_keyframes(examples()[0])
    (reach,) = keys.reaches
    frames = keys.frames()
    point = ContactPoint(reach.link, reach.link, tip_middle(keys.character, reach.link))
    assert positions(keys.character, [point], frames[60])[0] == pytest.approx(
        reach.target, abs=0.002
    )


def greet(was: str, now: str) -> str:
    """The first file of the documentation with a change."""
    text = examples()[0]
    assert text.count(was) == 1
    return text.replace(was, now)


REACH = "left_forearm: [0.35, 0.25, 1.30]"


@pytest.mark.parametrize("link", ["left_foot", "left_shin"])
def test_a_standing_leg_does_not_reach(link: str) -> None:
    text = greet(REACH, f"{link}: [0.1, 0.1, 0.2]")
    with pytest.raises(ClipError, match=rf"a:19: reach of '{link}' at 1 s: .* 'left_foot' from 0"):
        parse_keyframes(text, "a")


def test_a_leg_reaches_before_it_stands() -> None:
    text = greet("left_foot: [[0, 2]]", "left_foot: [[1.5, 2]]")
    parse_keyframes(text.replace(REACH, "left_shin: [0.1, 0.1, 0.2]"), "a")


def test_in_a_loop_a_leg_stands_into_the_next_cycle() -> None:
    text = LOOP.replace("duration: 1\n", "duration: 1\ncontacts: {left_foot: [[0.8, 1.2]]}\n")
    text = text.replace("loop:", "footholds: {left_foot: [[0.1, 0.1, 0]]}\nloop:")
    reach = "- time: 0.1\n  reach: {left_foot: [0.2, 0.1, 0.1]}\n- time: 0.4\n"
    with pytest.raises(ClipError, match=r"a:12: reach .* at 0.1 s: its limb stands .* 0.8 to 1.2"):
        parse_keyframes(text.replace("- time: 0.4\n", reach), "a")


def test_a_reach_outdoes_the_angles_of_its_own_limb_and_no_others() -> None:
    angles = "joints: {neck: [0, 10, 0], left_elbow: 100}"
    keys = parse_keyframes(greet("joints: {neck: [0, 10, 0]}", angles))
    q, at = keys.frames()[60], keys.character.q_slice
    # the tip is where it shall be (see above), so the elbow is not
    assert abs(np.degrees(q[at("left_elbow")][0]) - 100.0) > 5.0
    nod = rotation.turn(np.array([0.0, 1.0, 0.0]), np.radians(10.0))
    assert angle(q[at("neck")], nod) < 1e-6


def test_the_documentation_names_every_option_of_refining() -> None:
    text = DOC.read_text()
    table = text[text.index("| option |") : text.index("A loop that turns")]
    rows = [row for row in table.splitlines() if row]
    named = {x for row in rows for x in re.findall(r"`(\w+)`", row.split("|")[1])}
    assert named == {field.name for field in fields(Options)} | {"symmetric", "sagittal", "cycles"}


def test_footholds_leave_the_root_and_the_trunk_alone() -> None:
    keys = parse_keyframes(examples()[0])
    base, frames = keys.q(keys.times()), keys.frames()
    for name in ("root", "chest", "neck", "left_shoulder"):
        at = keys.character.q_slice(name)
        assert frames[:, at] == pytest.approx(base[:, at], abs=1e-12)


def test_the_leg_is_led_smoothly_from_foothold_to_foothold() -> None:
    keys = parse_keyframes(examples()[1])
    base, frames = keys.q(keys.times()), keys.frames()
    moved = difference(keys.character, frames, base)
    stands = keys.contacts().standing("left_foot")
    leg = [i for x in ("hip", "knee", "ankle") for i in _of(keys.character, f"left_{x}")]
    smooth, abrupt = moved[:, leg], moved[:, leg] * stands[:, None]
    (leaves,) = np.flatnonzero(stands[1:-2] & ~stands[2:-1]) + 1
    around = slice(leaves - 1, leaves + 3)
    rough = [np.abs(np.diff(x[around], 2, axis=0)).max() for x in (smooth, abrupt)]
    assert rough[0] < rough[1] / 3


def _of(character: Character, joint: str) -> range:
    v = character.v_slice(joint)
    return range(v.start, v.stop)


def test_a_leg_that_jumps_to_stay_on_its_foothold_is_refused() -> None:
    # the heel stays down until the ankle is at its limit
    text = examples()[1].replace("[[0, 0.32]]", "[[0, 0.42]]")
    with pytest.raises(ClipError, match=r"limb jumps by .* limits: left_ankle"):
        parse_keyframes(text).frames()


def test_heel_and_toe_stand_in_their_own_times() -> None:
    keys = parse_keyframes(examples()[1])
    contacts = keys.contacts(641)
    for part, start, stop in (("heel", 0.0, 0.32), ("toe", 0.08, 0.64)):
        on = contacts.on[:, keys.points_of("left_foot", part)]
        times = np.linspace(0.0, keys.duration, 641)[:-1]
        inside = (times >= start - 1e-6) & (times <= stop + 1e-6)
        assert (on[:-1] == inside[:, None]).all()
    # the other foot, half a cycle on, lasts into the next cycle
    right = contacts.standing("right_foot")
    assert right[[0, -1]].all()
    assert not right[200]


def test_heel_points_are_behind_toe_points() -> None:
    keys = parse_keyframes(examples()[1])
    rest = positions(keys.character, keys.points, keys.character.rest_q)
    heel, toe = (keys.points_of("left_foot", part) for part in ("heel", "toe"))
    assert rest[heel, 0].max() < rest[toe, 0].min()
    assert sorted(heel + toe) == keys.points_of("left_foot")


def test_a_hand_stands_on_its_tip() -> None:
    text = SMALL.replace("keys:", "contacts: {left_forearm: [[0.2, 0.4]]}\nkeys:", 1)
    keys = parse_keyframes(text)
    contacts = keys.contacts()
    assert "left_forearm" in contacts.feet
    assert contacts.phases("left_forearm")[0] == (12, 25)


def test_a_fixed_character_has_keys_without_a_root() -> None:
    keys = parse_keyframes(
        "clip: pose\ncharacter: two-link\nkeys:\n- time: 0\n  joints: {elbow: 0}\n"
        "- time: 1\n  joints: {elbow: 30}\n"
    )
    assert np.degrees(keys.frames()[-1]) == pytest.approx([0.0, 30.0])


def test_options_and_hold_are_kept() -> None:
    text = SMALL.replace("fps: 60", "fps: 60\noptions: {a: 1.5, b: [x, true], c: {d: ~}}")
    keys = parse_keyframes(text.replace("- time: 0.5", "- time: 0.5\n  hold: 0.3"))
    assert keys.options == {"a": 1.5, "b": ("x", True), "c": {"d": None}}
    assert keys.joints["left_knee"].hold.tolist() == [1.0, 0.3]
    assert keys.joints["left_knee"].lines == (7, 10)


# what is refused

FAR = "  root: {turn: [0, 0, 0]}\n- {time: 0.7, root: {turn: [0, 0, 200]}}"
WRONG = {
    "unknown joint": ("left_knee: 60", "left_kne: 60", 6, "did you mean 'left_knee'"),
    "twice": ("left_knee: 60", "left_knee: 60, left_knee: 5", 6, "twice"),
    "angles of a hinge": ("left_knee: 60", "left_knee: [60, 1, 2]", 6, "is a hinge"),
    "angles of a ball": ("[0, -40, 0]", "[0, -40]", 6, "must be 3 numbers, got 2"),
    "one angle of a ball": ("[0, -40, 0]", "-40", 6, "is a ball"),
    "nan": ("left_knee: 20", "left_knee: .nan", 8, "must be -1e"),
    "limit": ("left_knee: 60", "left_knee: -60", 6, "limits are"),
    "times": ("time: 0.5", "time: 1.5", 9, "order of time"),
    "same time": ("time: 0.5", "time: 0", 7, "put them into one"),
    "far": ("  joints: {left_knee: 20}", FAR, 9, "put a key between"),
    "root as a joint": ("left_knee: 60", "root: 60", 6, "unknown joint 'root'"),
    "link": ("joints: {left_knee: 20}", "reach: {hand: [0, 0, 0]}", 8, "unknown link 'hand'"),
    "reach of the root": ("joints: {left_knee: 20}", "reach: {pelvis: [0, 0, 1]}", 8, "no joint"),
    "key": ("- time: 0.5", "- tme: 0.5", 7, "unknown key 'tme'"),
    "character": ("character: humanoid", "character: humanoit", 2, "humanoid"),
    "rate": ("fps: 60", "fps: 0", 3, "fps must be"),
    "mirror": ("fps: 60", "mirror: half", 3, "needs a loop"),
    "loop": ("fps: 60", "loop: yes", 3, "loop must be"),
    "contact of nothing": ("fps: 60", "contacts: {foot: [[0, 1]]}", 3, "unknown link 'foot'"),
    "contact beyond": ("fps: 60", "contacts: {left_foot: [[0, 1.5]]}", 3, "lie in 0 to 1"),
    "overlap": ("fps: 60", "contacts: {left_foot: [[0, 0.5], [0.4, 0.9]]}", 3, "must not overlap"),
    "no heel": ("fps: 60", "contacts: {head: {heel: [[0, 1]]}}", 3, "no heel and toe"),
    "footholds alone": ("fps: 60", "footholds: {left_foot: [[0, 0, 0]]}", 3, "need contacts"),
    "footholds": (
        "fps: 60",
        "contacts: {left_foot: [[0, 1]]}\nfootholds: {left_foot: [[0, 0, 0], [1, 0, 0]]}",
        4,
        "2 for 1 contacts",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_is_named_with_its_line(what: str) -> None:
    old, new, line, message = WRONG[what]
    assert old in SMALL
    with pytest.raises(ClipError) as caught:
        parse_keyframes(SMALL.replace(old, new), "a.keys.yaml")
    assert f"a.keys.yaml:{line}:" in str(caught.value)
    assert message in str(caught.value)


def test_keys_in_the_mirrored_half_are_refused() -> None:
    text = examples()[1].replace("time: 0.25", "time: 0.6")
    with pytest.raises(ClipError, match="second half, which mirrors the first"):
        parse_keyframes(text)


def test_mirrored_contacts_that_overlap_are_refused() -> None:
    text = examples()[1].replace("footholds:", "  right_foot: [[0.4, 0.6]]\nfootholds:")
    with pytest.raises(ClipError, match="overlap"):
        parse_keyframes(text)


def test_a_target_out_of_reach_says_how_far_and_by_how_much() -> None:
    text = examples()[0].replace("[0.35, 0.25, 1.30]", "[0.95, 0.25, 1.30]")
    with pytest.raises(ClipError) as caught:
        parse_keyframes(text, "a").frames()
    found = re.fullmatch(
        r"a:19: reach of 'left_forearm' at 1 s is off by (\d+) mm: it lies (\S+) m from joint "
        r"'left_shoulder', and the largest reach is (\S+) m",
        str(caught.value),
    )
    assert found is not None
    miss, far, most = (float(x) for x in found.groups())
    # the arm ends stretched towards the target
    assert miss == pytest.approx(1000 * (far - most), abs=25)


def test_a_foothold_out_of_reach_names_its_line() -> None:
    text = examples()[0].replace("[[0, 0.10, 8]]", "[[0.8, 0.10, 8]]")
    with pytest.raises(ClipError, match=r"a:8: foothold of 'left_foot' at .* largest reach"):
        parse_keyframes(text, "a").frames()


def test_spoiled_files_end_in_poise_errors() -> None:
    rng, texts = random.Random(7), [SMALL.encode(), LOOP.encode(), examples()[1].encode()]
    bad = 0
    for _ in range(150):
        data = bytearray(rng.choice(texts))
        for _ in range(rng.choice((1, 1, 3))):
            at = rng.randrange(len(data))
            if rng.random() < 0.5:
                data[at : at + rng.choice((0, 1, 5))] = rng.choice((*NUMBERS, *JUNK))
            else:
                numbers = list(re.finditer(rb"-?\d+(\.\d+)?", data))
                if numbers:
                    spot = rng.choice(numbers).span()
                    data[slice(*spot)] = rng.choice(NUMBERS)
        bad += _read(bytes(data))
    assert bad > 75


def _read(data: bytes) -> bool:
    """Whether a text is refused; any error but ours comes through."""
    try:
        keys: Keyframes = parse_keyframes(data.decode(errors="replace"), "a")
        keys.q([0.0, 0.3])
        keys.contacts()
    except PoiseError as error:
        return str(error).startswith("a:")
    return False


def test_a_file_of_wrong_bytes_or_size_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.keys.yaml"
    for data, message in ((b"clip: \xff", "UTF-8"), (b"#" * 300_000, "larger"), (b"", "is empty")):
        path.write_bytes(data)
        with pytest.raises(ClipError, match=message):
            load_keyframes(path)


def test_a_character_beside_the_file_is_found(tmp_path: Path) -> None:
    character: Character = load_character("two-link")
    character.save(tmp_path / "mine.yaml")
    path = tmp_path / "a.keys.yaml"
    path.write_text("clip: a\ncharacter: mine.yaml\nduration: 1\nkeys:\n- time: 0\n")
    assert load_keyframes(path).character == character
