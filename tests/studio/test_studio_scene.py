"""Scenes of the studio: the reference, measures, what people do to them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from studio_scenes import library, setup, simulation

from poise import Clip, HeightField, PoiseError, Recording, load_character, measure
from poise.motion.limits import excesses
from poise.studio import edits
from poise.studio.crowd_reference import LoopedClip
from poise.studio.handlers import merge_choice
from poise.studio.measures import frame_of, measure_frame, measure_recording
from poise.studio.requests import AddObject, Choose, Drag, Push, Release, Throw
from poise.studio.scene import BALLS, controller_for, object_of, places_of
from poise.studio.scene_index import SceneIndex
from poise.studio.snapshot import Controls

# ---- the reference


@pytest.mark.arithmetic
def test_a_looped_clip_goes_on_without_a_jump() -> None:
    motion = library().motion("humanoid", "walk")
    length = motion.clip.duration
    t = np.linspace(0.0, 4.0 * length, 1201)
    q, v, _ = motion.sample(t, None)
    step = t[1] - t[0]
    speed = np.diff(q[:, :3], axis=0) / step
    # a position that jumped by a centimetre would be as fast as this
    assert np.abs(speed - 0.5 * (v[1:, :3] + v[:-1, :3])).max() < 0.01 / step
    ahead = motion.sample(t + length, None)[0]
    travelled = ahead[:, :2] - q[:, :2]
    assert np.allclose(travelled, travelled[0], atol=1e-9)
    assert np.allclose(ahead[:, 2:], q[:, 2:], atol=1e-9)


def test_rounds_that_turn_are_carried_as_the_looped_clip_is() -> None:
    walk = library().motion("humanoid", "walk").clip
    bent = walk.looped(5, turn=0.7)
    motion = LoopedClip(walk, walk.looped(3, turn=0.7))
    length = walk.duration
    for t in np.linspace(1.1 * length, 3.9 * length, 12):
        q, v, _ = motion.sample(np.array([t]), None)
        assert np.allclose(q[0, :3], bent.q(t)[:3], atol=1e-6)
        assert abs(abs(q[0, 3:7] @ bent.q(t)[3:7]) - 1.0) < 1e-9
        assert np.allclose(v[0, :6], bent.v(t)[:6], atol=1e-3)


def test_after_the_last_round_the_pose_is_held() -> None:
    motion = library().motion("humanoid", "walk")
    q, v, a = motion.sample(np.array([2.0 * motion.clip.duration, 50.0]), 2)
    assert np.array_equal(q[0], q[1])
    assert not v.any()
    assert not a.any()


def test_a_loop_can_be_ended_and_begun_again() -> None:
    reference = setup().reference
    length = reference.motion.clip.duration
    ended = reference.looped(False, 1.5 * length)
    assert ended.rounds == 2
    assert np.array_equal(ended.target(1.9 * length).q, reference.target(1.9 * length).q)
    held = ended.target(5.0 * length).q
    again = ended.looped(True, 5.0 * length)
    assert np.allclose(again.target(5.0 * length).q, held, atol=0.02)
    assert np.abs(again.target(5.5 * length).q - held).max() > 0.1


def test_a_clip_that_cannot_be_looped_is_held() -> None:
    humanoid = load_character("humanoid")
    motion = LoopedClip.of(Clip(humanoid, humanoid.rest_q[None], 60.0))
    assert motion.three_rounds is None
    assert np.array_equal(motion.sample(np.array([3.0]), None)[0][0], humanoid.rest_q)


@pytest.mark.parametrize("count", [1, 2])
def test_links_that_the_clip_moves_through_each_other_do_not_press(count: int) -> None:
    made = setup("humanoid-ball", "squat", count=count)
    recording = short(made, round(made.motion.clip.duration * 60))
    assert ("spine", "left_thigh") in made.motion.overlaps
    # they overlap by 20 mm in the clip, and would be pressed apart
    steps = [recording.contacts(i) for i in range(len(recording))]
    pressed = [touches.force[touches.other >= 0] for touches in steps]
    assert not np.concatenate(pressed).any()


@pytest.mark.parametrize("count", [1, 5, 20])
def test_characters_stand_apart_and_the_first_where_the_clip_has_it(count: int) -> None:
    places = places_of(count, load_character("humanoid"))
    assert places.shape == (count, 2)
    assert not places[0].any()
    apart = np.linalg.norm(places[:, None] - places[None], axis=-1)[~np.eye(count, dtype=bool)]
    assert apart.min(initial=np.inf) > 1.0


def test_many_are_followed_as_one() -> None:
    many, one = setup(count=3), setup()
    a, b = many.reference.target(1.0), one.reference.target(1.0)
    for i, name in enumerate(many.index.names):
        q = a.q[many.world.part(name).q].copy()
        q[:2] -= many.reference.places[i]
        assert np.allclose(q, b.q, atol=1e-12)


def test_who_hangs_on_the_world_hangs_beside_the_others() -> None:
    made = setup("two-link", "two-link-wave", count=3, ground="none")
    place = measure_recording(made.index, short(made, 3), 2).com
    assert np.linalg.norm(place[:, None] - place[None], axis=-1)[0, 1:].min() > 0.5


def test_on_hills_the_reference_follows_the_ground() -> None:
    made = setup(ground="hills")
    assert isinstance(made.world.settings.ground, HeightField)
    rise = []
    for t in (0.0, 1.0, 2.0, 3.0):
        on_hills, level = made.reference.target(t).q, setup().reference.target(t).q
        assert on_hills[2] - level[2] == pytest.approx(made.ground_at(*on_hills[:2]), abs=1e-9)
        rise.append(on_hills[2] - level[2])
    assert np.ptp(rise) > 0.02


def short(made: object, steps: int) -> Recording:
    """A few steps of a scene."""
    from poise import run
    from poise.studio.scene import Setup

    assert isinstance(made, Setup)
    recording = Recording(made.world)
    controller = controller_for(made, made.controls)
    run(made.world, controller, made.reference, steps * made.world.dt, record=recording)
    return recording


# ---- measures


def test_measures_of_many_are_those_of_each() -> None:
    made = setup(count=3, clip="squat", root="free")
    recording = short(made, 20)
    measures = measure_recording(made.index, recording, 20)
    one = made.index.character
    goal = recording.target(20)
    assert goal is not None
    for i, name in enumerate(made.index.names):
        part = made.world.part(name)
        q, v = recording.q[20, part.q], recording.v[20, part.v]
        touches = recording.contacts(20)
        assert np.allclose(measures.com[i], measure.center_of_mass(one, q))
        assert np.allclose(measures.linear[i], measure.momentum(one, q, v).linear)
        assert np.allclose(measures.angular[i], measure.momentum(one, q, v).angular)
        assert np.isclose(measures.kinetic[i], measure.energy(one, q, v).kinetic)
        reaction = measure.ground_reaction(made.world, touches, part.links)
        assert np.allclose(measures.ground_force[i], reaction.force)
        assert np.allclose(measures.cop[i], reaction.point, equal_nan=True)
        error = measure.tracking_error(one, q, goal.q[part.q])
        assert np.isclose(measures.rotation[i], error.rotation.mean())
        mine = measure.contacts_of(made.world, touches, part.links)
        polygon = measure.support_polygon(mine)
        assert len(measures.support[i]) == polygon.size
        assert np.allclose(measures.support[i][:, :2], polygon.corners[: int(polygon.size)])
    assert measures.ground_force[:, 2].max() > 100.0
    assert not measures.fallen.any()


def test_a_fallen_character_is_told() -> None:
    sim = simulation(root="free", clip="rest")
    sim.apply(lambda sim: sim.world.push(1, (0.0, 900.0, 0.0), 0.3))
    sim.advance(150)
    assert sim.measures().fallen.all()


def test_limits_of_joints_are_seen_as_they_are_checked_elsewhere() -> None:
    humanoid = load_character("humanoid")
    made = setup(clip="rest")
    random = np.random.default_rng(5)
    names = [link.name for link in humanoid.links]
    owner = {joint.name: link.name for link in humanoid.links for joint in link.joints}
    recording = short(made, 1)
    start, contacts = frame_of(recording, 0), recording.contacts(0)
    for _ in range(20):
        q = humanoid.rest_q.copy()
        q[7:] += random.normal(size=q.size - 7) * 0.8
        for joint in humanoid.joints:
            if joint.kind == "ball":
                at = humanoid.q_slice(joint)
                q[at] /= np.linalg.norm(q[at])
        seen = measure_frame(made.index, start._replace(q=q[None]), contacts).at_limit
        out = {owner[e.joint] for e in excesses(humanoid, q[None]) if e.value[0] > 0.0}
        near = {owner[e.joint] for e in excesses(humanoid, q[None]) if e.value[0] > -0.005}
        told = {names[i] for i in np.flatnonzero(seen)}
        assert out <= told <= near
        assert out


def test_torques_are_shares_of_what_the_joints_can_do() -> None:
    made = setup()
    recording = short(made, 30)
    measures = measure_recording(made.index, recording, 30)
    assert measures.torque_ratio.shape == (made.world.scene.nl,)
    assert measures.torque_ratio[0] == 0.0  # of the root: nothing there has a motor
    assert 0.001 < measures.torque_ratio.max() < 3.0
    assert not measures.saturated.any()


def test_a_snapshot_never_changes() -> None:
    measures = simulation().measures()
    for array in (
        measures.q,
        measures.com,
        measures.torque_ratio,
        measures.contacts.point,
        measures.at_limit,
    ):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


# ---- how they follow


def test_gains_of_a_limb_are_its_own() -> None:
    made = setup(count=2)
    plain = controller_for(made, made.controls)
    stiff = made.controls.tuned(made.index.character, "left_arm", frequency=16.0, damping=0.5)
    other = controller_for(made, stiff)
    ratio = np.nan_to_num(other.gains.kp / plain.gains.kp, nan=1.0)  # type: ignore[attr-defined]
    for name in made.index.names:
        v0 = made.world.part(name).v.start
        for joint in made.index.character.joints:
            at = made.index.character.v_slice(joint)
            expected = 4.0 if joint.name.startswith(("left_shoulder", "left_elbow")) else 1.0
            assert np.allclose(ratio[v0 + at.start : v0 + at.stop], expected), joint.name
    # the whole body again: the limb goes along
    all_same = stiff.tuned(made.index.character, None, frequency=8.0, damping=1.0)
    back = controller_for(made, all_same)
    assert np.array_equal(back.gains.kp, plain.gains.kp)  # type: ignore[attr-defined]


def test_a_limp_arm_hangs_and_a_pinned_hand_stays() -> None:
    for value, key in ((0.0, "strength"), (5.0, "pin")):
        sim = simulation(clip="squat")
        sim.retune(sim.setup.controls.tuned(sim.setup.index.character, "right_arm", **{key: value}))
        sim.advance(90)
        arm = [sim.setup.index.link_index(x) for x in sim.setup.index.limbs["right_arm"]]
        goal = sim.measures().reference
        assert goal is not None
        error = measure.tracking_error(sim.setup.world, sim.world.state.q, goal)
        assert (error.rotation[arm].max() > 20.0) == (key == "strength")


@pytest.mark.parametrize("name", ["pd", "spd-torque", "kane"])
def test_a_controller_without_pins_says_so(name: str) -> None:
    made = setup(controller=name)
    held = made.controls.tuned(made.index.character, None, pin=0.5)
    with pytest.raises(PoiseError, match=f"'{name}' has no pin; 'spd' has"):
        controller_for(made, held)


def test_a_wrong_limb_lists_the_near_ones() -> None:
    made = setup()
    with pytest.raises(PoiseError, match="did you mean 'left_arm'"):
        made.controls.tuned(made.index.character, "left_arms", strength=0.5)


# ---- what people do


@pytest.mark.parametrize("kind", ["box", "ball", "capsule"])
def test_an_object_falls_and_nothing_else_changes(kind: str) -> None:
    sim = simulation()
    sim.advance(10)
    sim.apply(edits.throw(sim, Throw(speed=3.0), 0))
    sim.advance(2)
    state, thrown = sim.world.state.copy(), sim.world.projectile_state
    asked = AddObject(kind, 0.2, 2.0, (3.0, 3.0, 1.0))
    sim.put_objects([object_of(asked, f"{kind}-1", (3.0, 3.0, 1.0))])
    world = sim.world
    nq = state.q.size
    assert np.array_equal(world.state.q[:nq], state.q)
    assert np.array_equal(world.state.v[: state.v.size], state.v)
    assert np.allclose(world.projectile_state.poses, thrown.poses)
    assert np.allclose(world.projectile_state.v, thrown.v)
    assert sim.time == pytest.approx(12 / 60)
    assert sim.setup.index.count == 1
    sim.advance(90)
    place = world.state.q[world.part(f"{kind}-1").q]
    assert np.allclose(place[:2], 3.0, atol=0.3)
    # the capsule stands
    assert place[2] == pytest.approx(0.2 if kind == "capsule" else 0.1, abs=0.02)
    sim.put_objects([], projectiles=False)
    assert not sim.world.projectile_state.thrown.any()
    assert np.array_equal(sim.world.state.q, world.state.q[:nq])


@pytest.mark.parametrize("root", ["soft", "held", "free"])
def test_nothing_holds_an_object(root: str) -> None:
    sim = simulation(clip="rest", root=root)
    asked = AddObject("ball", 0.2, 2.0)
    sim.put_objects([object_of(asked, "ball-1", (3.0, 3.0, 2.0))])
    sim.apply(edits.gravity((0.0, 0.0, -5.0)))
    sim.advance(30)
    world = sim.world
    height = world.state.q[world.part("ball-1").q][2]
    goal = sim.history[-1].frame.target
    assert goal is not None
    assert goal[0][world.part("ball-1").q][2] == height  # no ghost of it is left behind
    assert height == pytest.approx(2.0 - 0.5 * 5.0 * 0.25, abs=0.05)


def test_a_thrown_ball_meets_its_aim() -> None:
    sim = simulation()
    sim.advance(15)
    sim.apply(edits.throw(sim, Throw("head", (2.0, -3.0, 1.0), 9.0), 0))
    head, hit = sim.setup.index.link_index("head"), False
    for _ in range(60):
        sim.advance(1)
        touches = sim.world.contacts
        spare = sim.setup.world.scene.nl
        pairs = set(zip(touches.link.tolist(), touches.other.tolist(), strict=True))
        hit = hit or (head, spare) in pairs or (spare, head) in pairs
    assert hit


def test_when_all_balls_are_out_the_farthest_comes_back() -> None:
    sim = simulation(clip="rest")
    for i in range(BALLS + 3):
        away = (2.0 + 0.5 * i, 5.0, 1.0)
        sim.apply(edits.throw(sim, Throw(None, away, 2.0), 0))
        sim.advance(1)
    assert sim.world.projectile_state.thrown.all()
    assert len(sim.world.projectile_state.thrown) == BALLS


def test_a_push_goes_where_the_character_looks() -> None:
    for way, axis, sign in (("forward", 0, 1), ("left", 1, 1), ("right", 1, -1)):
        sim = simulation(clip="rest")
        edit, given = edits.push(sim, Push("chest", 300.0, way))
        sim.apply(edit)
        sim.advance(6)
        velocity = sim.measures().velocity[0]
        assert sign * velocity[axis] > 0.2, way
        assert given.at == 0.0
        assert abs(given.force_vector()[axis]) == pytest.approx(300.0)


def test_a_push_at_a_point_turns_the_body() -> None:
    turned = []
    for at in ((0.0, 0.3, 1.3), (0.0, -0.3, 1.3)):
        sim = simulation(clip="rest", root="free")
        edit, _ = edits.push(sim, Push("chest", 200.0, (1, 0, 0), 0.1, at))
        sim.apply(edit)
        sim.advance(6)
        turned.append(sim.measures().angular[0, 2])
    assert turned[0] < -0.5
    assert turned[1] > 0.5


def test_a_dragged_hand_comes_and_is_let_go() -> None:
    sim = simulation(clip="rest", count=2)
    hand = "humanoid-2/right_forearm"
    index = sim.setup.index
    link = index.link_index(hand)

    def center() -> Any:
        return index.point(sim.world.state.q, link, sim.world.scene.forest.link_com[link])

    aim = center() + (0.3, 0.0, 0.3)
    sim.apply(edits.drag(sim, Drag(hand, tuple(aim.tolist()))))
    before = np.linalg.norm(center() - aim)
    sim.advance(90)
    held = np.linalg.norm(center() - aim)
    assert held < 0.7 * before
    sim.apply(edits.release(sim, Release(hand)))
    sim.advance(120)
    assert np.linalg.norm(center() - aim) > held + 0.05


def test_names_of_links_may_leave_out_whose() -> None:
    index = setup(count=2).index
    assert index.link_index("head") == index.link_index("humanoid/head")
    assert index.link_index("humanoid-2/head") > index.link_index("head")
    with pytest.raises(PoiseError, match="unknown link 'heads'"):
        index.link_index("heads")


def test_an_object_is_put_in_front_of_who_is_watched() -> None:
    sim = simulation(count=2)
    at = edits.object_place(sim, AddObject("box", 0.4), 1)
    assert at[1] == pytest.approx(sim.reference.places[1, 1], abs=0.1)
    assert at[0] > 0.7
    assert at[2] == pytest.approx(0.2, abs=0.01)


# ---- choices


@pytest.mark.parametrize(
    ("asked", "character", "clip", "ground"),
    [
        (Choose(clip="run"), "humanoid", "run", "plane"),
        (Choose(clip="dog-trot"), "dog", "dog-trot", "plane"),
        (Choose(character="dog"), "dog", "dog-canter", "plane"),
        (Choose(character="humanoid-51"), "humanoid-51", "walk", "plane"),
        (Choose(character="two-link"), "two-link", "two-link-pose", "none"),
        (Choose(character="plank-8"), "plank-8", "rest", "none"),
        (Choose(clip="rest"), "humanoid", "rest", "plane"),
    ],
)
def test_characters_and_clips_find_each_other(
    asked: Choose, character: str, clip: str, ground: str
) -> None:
    made = merge_choice(Controls("humanoid", "walk", tuning={}), asked, library())
    assert (made.character, made.clip, made.ground) == (character, clip, ground)


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        (Choose(clip="wolk"), "did you mean 'walk'"),
        (Choose(clip="../../etc/passwd.bvh"), "unknown clip"),
        (Choose(character="/elsewhere/x.yaml"), "unknown character"),
        (Choose(character="snake-999999"), "unknown character"),
        (Choose(controller="sdp"), "did you mean 'spd'"),
    ],
)
def test_a_wrong_name_is_refused(asked: Choose, error: str) -> None:
    with pytest.raises(PoiseError, match=error):
        merge_choice(Controls("humanoid", "walk"), asked, library())


def test_a_recording_of_several_copies_shows_one() -> None:
    from poise import World

    humanoid = load_character("humanoid")
    world = World(humanoid, n=2, dt=1 / 60)
    recording = Recording(world)
    recording.append()
    world.step()
    recording.append()
    index = SceneIndex(recording.settings, recording.scene)
    measures = measure_recording(index, recording, 1, copy=1)
    assert measures.q.shape == (humanoid.nq,)
    assert measures.reference is None
    assert math.isnan(measures.rotation[0])


def test_a_scene_of_objects_alone_can_be_shown() -> None:
    from small_recordings import short as falling

    recording = falling(frames=3)
    index = SceneIndex(recording.settings, recording.scene)
    measures = measure_recording(index, recording, 2)
    assert measures.com.shape == (1, 3)
