"""Contacts of a scene of several parts: each measure counts those of its own character."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from contact_states import HUMANOID, G, rows

from poise import PoiseError, Recording, Shape, State, World, free_object, load_recording, measure
from poise.characters import load_character
from poise.recording.summary import recording_table

DOG = load_character("dog")
CRATE = free_object("crate", Shape("box", (0.2, 0.2, 0.2)), mass=5.0, pos=(1.5, 0.0, 0.2))


def placed(characters: list[Any], lying: str | None = None, n: int = 1) -> World:
    """A scene of parts 2 m apart along y, one of them on its back, after a fifth of a second."""
    world = World(characters, n=n, dt=1 / 60)
    q = world.scene.forest.rest_q.copy()
    for k, (name, part) in enumerate(world.scene.forest.parts.items()):
        q[part.q][1] = 2.0 * k
        if name == lying:
            q[part.q][2:7] = 0.2, np.sqrt(0.5), 0.0, -np.sqrt(0.5), 0.0
    world.reset(State(q))
    world.step(steps=12)
    return world


@pytest.mark.parametrize("first", [True, False])
def test_a_crate_beside_a_character_is_no_fall(first: bool) -> None:
    world = placed([CRATE, HUMANOID] if first else [HUMANOID, CRATE])
    q, part = world.state.q, world.part("humanoid")
    assert not measure.fallen(HUMANOID, q[part.q], world.contacts)
    assert not measure.body_on_ground(HUMANOID, world.contacts)


def test_one_that_lies_beside_another_is_the_only_one_that_fell() -> None:
    world = placed([HUMANOID, load_character("humanoid-ball")], lying="humanoid-ball")
    q = world.state.q
    for name, character in zip(("humanoid", "humanoid-ball"), world.scene.characters, strict=True):
        alone = measure.fallen(character, q[world.part(name).q], world.contacts)
        assert alone == (name == "humanoid-ball")
        assert alone == measure.fallen(world, q, world.contacts, part=name)


def test_of_two_alike_the_part_says_which() -> None:
    world = placed([HUMANOID, HUMANOID], lying="humanoid-2")
    q, touches = world.state.q, world.contacts
    with pytest.raises(PoiseError, match=r"humanoid, humanoid-2; .* contacts.of\('humanoid-2'\)"):
        measure.fallen(HUMANOID, q[world.part("humanoid").q], touches)
    for name in ("humanoid", "humanoid-2"):
        own = q[world.part(name).q]
        assert measure.fallen(HUMANOID, own, touches, part=name) == (name == "humanoid-2")
        assert measure.body_on_ground(HUMANOID, touches.of(name)) == (name == "humanoid-2")


@pytest.mark.parametrize("name", ["crate", "humanoid", "dog"])
def test_measures_of_a_character_are_those_of_its_part_of_the_scene(name: str) -> None:
    world = placed([CRATE, HUMANOID, DOG])
    q, v, touches, part = world.state.q, world.state.v, world.contacts, world.part(name)
    character = world.scene.characters[list(world.scene.forest.parts).index(name)]
    own = measure.ground_reaction(character, touches)
    whole = measure.ground_reaction(world, touches, part.links)
    np.testing.assert_array_equal(own.force, whole.force)
    np.testing.assert_array_equal(own.point, whole.point)
    assert own.force[2] > 0.1 * character.mass * G
    wrench = measure.link_wrenches(character, q[part.q], touches)
    np.testing.assert_allclose(
        wrench, measure.link_wrenches(world, q, touches)[part.links], rtol=0, atol=1e-9
    )
    # of the others' contacts q and v say nothing
    slip = measure.slip(character, q[part.q], v[part.v], touches)
    mine = (part.links.start <= touches.link) & (touches.link < part.links.stop)
    np.testing.assert_allclose(slip[mine], measure.slip(world, q, v, touches)[mine], atol=1e-12)
    assert np.isnan(slip[~mine]).all()


def test_feet_of_a_character_in_a_scene_carry_what_they_carry_there() -> None:
    world = placed([CRATE, HUMANOID])
    alone = measure.foot_reactions(HUMANOID, world.contacts)
    scene = measure.foot_reactions(world, world.contacts)
    assert set(alone) == {"left_foot", "right_foot"}
    for name, reaction in alone.items():
        np.testing.assert_array_equal(reaction.force, scene[f"humanoid/{name}"].force)


def test_forces_on_a_part_change_its_momentum_and_no_other() -> None:
    world = placed([CRATE, HUMANOID])
    q = world.state.q[world.part("humanoid").q]
    force = measure.ground_reaction(HUMANOID, world.contacts).force
    rate = measure.external_rate(HUMANOID, q, world.contacts)
    assert rate.linear == pytest.approx(force + [0, 0, -HUMANOID.mass * G])


def test_contacts_of_a_part_are_seen_from_it() -> None:
    low = free_object("low", Shape("box", (0.2, 0.2, 0.1)), mass=4.0, pos=(0, 0, 0.1))
    top = free_object("top", Shape("box", (0.1, 0.1, 0.1)), mass=1.0, pos=(0, 0, 0.3))
    world = World([low, top], dt=1 / 60)
    world.step(steps=120)
    on_low, on_top = world.contacts.of("low"), world.contacts.of("top")
    assert set(on_top.link.tolist()) == set(on_low.link.tolist()) == {0}
    # the other object comes after the links of the part
    assert set(on_top.other.tolist()) == {1}
    assert set(on_low.other.tolist()) == {-1, 1}
    assert on_top.force.sum(axis=0)[2] == pytest.approx(G, abs=1e-4)
    assert on_low.force[on_low.other == 1].sum(axis=0)[2] == pytest.approx(-G, abs=1e-4)


def test_what_was_thrown_comes_after_the_links_of_a_part() -> None:
    world = World([CRATE, HUMANOID], dt=1 / 60)
    world.throw((1.5, 0.0, 0.5), (0.0, 0.0, -1.0))
    world.step(steps=30)
    ball = world.scene.nl
    assert ball in world.contacts.link or ball in world.contacts.other
    own = world.contacts.of("crate")
    assert (own.link == 0).all()
    assert ball in own.other


def test_copies_are_counted_part_by_part() -> None:
    world = placed([CRATE, HUMANOID], lying="humanoid", n=3)
    q = world.state.q[:, world.part("humanoid").q]
    assert measure.fallen(HUMANOID, q, world.contacts).tolist() == [True] * 3
    force = measure.ground_reaction(CRATE, world.contacts, copies=3).force
    assert force[:, 2] == pytest.approx(np.full(3, 5.0 * G), rel=0.05)


def test_a_scene_that_the_contacts_are_not_of_is_refused() -> None:
    touches = placed([CRATE, HUMANOID]).contacts
    with pytest.raises(PoiseError, match=r"'dog' is not in the scene .* has crate, humanoid"):
        measure.ground_reaction(DOG, touches)
    with pytest.raises(PoiseError, match="a scene of crate, humanoid, not of one of humanoid, dog"):
        measure.ground_reaction([HUMANOID, DOG], touches)
    with pytest.raises(PoiseError, match="unknown part 'crat'; did you mean 'crate'"):
        touches.of("crat")
    with pytest.raises(PoiseError, match="'dog' is not in the scene"):
        measure.fallen(DOG, DOG.rest_q, touches, part="humanoid")
    with pytest.raises(PoiseError, match="they have no parts"):
        rows((0, 0, 0)).of("crate")


def test_a_heavier_character_of_the_same_links_is_the_same_part() -> None:
    world = placed([CRATE, HUMANOID])
    heavy = World(HUMANOID, dt=1 / 60, mass=2.0 * HUMANOID.forest.link_mass)
    force = measure.ground_reaction(heavy, world.contacts).force
    np.testing.assert_array_equal(force, measure.ground_reaction(HUMANOID, world.contacts).force)


def test_contacts_keep_their_scene_when_chosen_stacked_copied_and_pickled() -> None:
    touches = placed([CRATE, HUMANOID]).contacts
    for kept in (
        measure.closed(touches),
        measure.ground_contacts(touches),
        measure.stacked([touches, touches]).rows(slice(0, len(touches.copy))),
        touches._replace(force=touches.force),
        copy.copy(touches),
        pickle.loads(pickle.dumps(touches)),
    ):
        assert list(kept.parts) == ["crate", "humanoid"]
        assert not measure.body_on_ground(HUMANOID, kept)
    with pytest.raises(PoiseError, match="frames of one scene"):
        measure.stacked([touches, placed([CRATE, DOG]).contacts])


def test_recordings_tell_the_parts_of_their_contacts_apart(tmp_path: Path) -> None:
    world = placed([CRATE, HUMANOID])
    recording = Recording(world)
    recording.append()
    recording.save(tmp_path / "a.npz")
    for one in (recording, load_recording(tmp_path / "a.npz")):
        q = one.q[-1][one.scene.forest.parts["humanoid"].q]
        assert not measure.fallen(HUMANOID, q, one.contacts(-1))
        assert measure.ground_reaction(CRATE, one.contacts(-1)).force[2] == pytest.approx(
            5.0 * G, rel=0.05
        )


@pytest.mark.parametrize("lying", [None, "humanoid"])
def test_a_table_of_a_scene_says_whether_its_character_fell(lying: str | None) -> None:
    recording = Recording(placed([CRATE, HUMANOID], lying=lying))
    recording.append()
    assert recording_table(recording)["fallen"] == (lying is not None)


def test_a_world_without_contact_has_parts_without_contacts() -> None:
    world = World([CRATE, HUMANOID], dt=1 / 60, contact=None)
    world.step()
    assert len(world.contacts.of("humanoid").copy) == 0
    with pytest.raises(PoiseError, match="unknown part 'dog'"):
        world.contacts.of("dog")


@pytest.mark.parametrize(("n", "dtype"), [(1, "float64"), (5, "float64"), (5, "float32")])
@pytest.mark.parametrize("restitution", [0.0, 0.5])
def test_a_ragdoll_falls_alike_whatever_falls_beside_it(
    restitution: float, n: int, dtype: str
) -> None:
    """Islands are solved on their own: tolerances, sweeps, penetration, bounces."""
    beside = [
        free_object("ball", Shape("sphere", (0.1,)), mass=1.0, pos=(3.0, 0.0, 0.3)),
        free_object("box", Shape("box", (0.1, 0.1, 0.1)), mass=2.0, pos=(0.0, 3.0, 0.15)),
        free_object("lid", Shape("box", (0.1, 0.1, 0.1)), mass=2.0, pos=(0.0, 3.05, 0.4)),
        DOG,
    ]
    options: dict[str, Any] = {"n": n, "dt": 1 / 120, "dtype": dtype, "restitution": restitution}
    alone, together = World(HUMANOID, **options), World([HUMANOID, *beside], **options)
    rng, part = np.random.default_rng(0), together.part("humanoid")
    q, v = np.tile(HUMANOID.rest_q, (n, 1)), rng.normal(size=(n, HUMANOID.nv))
    q[:, 2] += 0.1 * np.arange(n)
    q[:, 3:7] += 0.3 * rng.normal(size=(n, 4))
    q[:, 3:7] /= np.linalg.norm(q[:, 3:7], axis=1)[:, None]
    dog = np.tile(DOG.rest_q, (n, 1)) - 3.0 * np.eye(DOG.nq)[1] + 0.2 * np.eye(DOG.nq)[2]
    if n == 1:
        q, v, dog = q[0], v[0], dog[0]
    alone.reset(State(q, v))
    together.reset({"humanoid": State(q, v), "dog": State(dog)})
    touched = {"humanoid": 0, "dog": 0, "ball": 0, "box": 0}
    for _ in range(60):
        alone.step()
        together.step()
        for name in touched:
            touched[name] += len(together.contacts.of(name).depth)
    assert min(touched.values()) > 0
    ours, theirs = alone.state.q, together.state.q[..., part.q]
    if restitution == 0:
        assert np.array_equal(ours, theirs)
    else:  # impacts of all islands are rounded together, and a fall amplifies that
        near = 1e-9 if dtype == "float64" else 1e-2
        np.testing.assert_allclose(theirs, ours, rtol=0, atol=near)
