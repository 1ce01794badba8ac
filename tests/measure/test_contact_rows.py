"""Contacts chosen, summed for copies and frames; slip and depth."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from contact_states import CRATE, HUMANOID, G, pile, rows, standing
from objects import body

from poise import PoiseError, State, World, measure
from poise.model.character import Shape

# ---- which contacts


def test_contacts_are_seen_from_the_link_that_is_asked_for() -> None:
    world = pile()
    for part, others, weight in (("low", "top", -1.0), ("top", "low", 1.0)):
        links = world.part(part).links
        mine = measure.contacts_of(world, world.contacts, links)
        between = measure.Wrench(*measure.contact_wrench(mine, np.zeros(3)))
        assert set(mine.link.tolist()) == {links.start}
        ground = 5.0 * G if part == "low" else 0.0
        assert between.force[2] == pytest.approx(ground + weight * G, abs=1e-4)
        here = mine.other == world.part(others).links.start
        assert (mine.normal[here, 2] * weight > 0.99).all()


def test_what_stands_on_another_does_not_stand_on_the_ground() -> None:
    world = pile()
    low = measure.ground_reaction(world, world.contacts, world.part("low").links)
    top = measure.ground_reaction(world, world.contacts, "top/top")
    assert low.force[2] == pytest.approx(5.0 * G, abs=1e-4)
    assert top.force.tolist() == [0, 0, 0]
    assert np.isnan(top.point).all()


def test_contacts_within_the_scene_are_not_outer_ones() -> None:
    world = pile()
    whole = measure.contacts_of(world, world.contacts)
    assert (whole.other == -1).all()
    assert 0 < len(whole.copy) < len(world.contacts.copy)


def test_sums_of_no_contacts_are_real_numbers() -> None:
    touches = World(HUMANOID, dt=1 / 60).contacts
    assert len(touches.copy) == 0
    assert measure.ground_reaction(HUMANOID, touches).force.dtype == np.float64
    assert measure.per_copy(touches, np.zeros((0, 2)), 3).dtype == np.float64


def test_wrenches_on_links_have_counterparts() -> None:
    world = pile()
    wrench = measure.link_wrenches(world, world.state.q, world.contacts)
    assert wrench[:, 2] == pytest.approx([4.0 * G, G], abs=1e-4)


def test_obstacles_count_as_ground_unless_said_otherwise() -> None:
    table = Shape("box", (0.5, 0.5, 0.2), pos=(0.0, 0.0, 0.2))
    thing = body(Shape("box", (0.1, 0.1, 0.1)), 2.0, "thing", (0.1, 0.0, 0.5))
    world = World(thing, dt=1 / 60, obstacles=[table])
    world.step(steps=60)
    reaction = measure.ground_reaction(world, world.contacts, ground=0.4)
    assert reaction.force[2] == pytest.approx(2.0 * G, abs=1e-4)
    assert reaction.point == pytest.approx([0.1, 0.0, 0.4], abs=1e-5)
    bare = measure.ground_reaction(world, world.contacts, obstacles=False)
    assert bare.force.tolist() == [0, 0, 0]


# ---- batches and frames


def test_copies_are_measured_as_if_alone() -> None:
    pushes = np.array([(0.0, 0, 0), (60, 0, 0), (0, 80, 0), (-300, 0, 0), (0, 0, 3000)])
    batch, servo, target = standing(n=5)
    batch.push("chest", pushes, 0.1)
    alone = [standing()[0] for _ in pushes]
    for world, push in zip(alone, pushes, strict=True):
        world.push("chest", push, 0.1)
    for _ in range(25):
        for world in (batch, *alone):
            world.step(servo(world.state, target))
    q, v, touches = batch.state.q, batch.state.v, batch.contacts
    reaction = measure.ground_reaction(batch, touches, copies=5)
    support = measure.support_polygon(touches, 5)
    margin = measure.support_margin(support, measure.center_of_mass(batch, q))
    wrench = measure.link_wrenches(batch, q, touches)
    down = measure.fallen(batch, q, touches)
    for i, world in enumerate(alone):
        state, own = world.state, world.contacts
        assert state.q == pytest.approx(q[i], abs=1e-9)
        single = measure.ground_reaction(world, own)
        # a world of one may differ from a batch in the last bits, which 25 steps magnify
        for a, b in zip(single, reaction, strict=True):
            assert a == pytest.approx(b[i], abs=1e-5, nan_ok=True)
        shape = measure.support_polygon(own)
        here = measure.support_margin(shape, measure.center_of_mass(world, state.q))
        assert here == pytest.approx(margin[i], abs=1e-7, nan_ok=True)
        assert measure.link_wrenches(world, state.q, own) == pytest.approx(wrench[i], abs=1e-5)
        assert measure.fallen(world, state.q, own) == down[i]
        mine = touches.copy == i
        slips = measure.slip(batch, q, v, touches)[mine]
        assert measure.slip(world, state.q, state.v, own) == pytest.approx(slips, abs=1e-7)
    assert np.isnan(reaction.point[4]).all()  # the one that was thrown up


def test_frames_are_put_together_in_time() -> None:
    world = World(CRATE, n=3, dt=1 / 60)
    q = np.tile(CRATE.rest_q, (3, 1))
    q[:, 2] += (0.0, 0.02, 5.0)
    world.reset(State(q))
    frames = []
    for _ in range(10):
        world.step()
        frames.append(world.contacts)
    whole = measure.stacked(frames, 3)
    force = measure.ground_reaction(CRATE, whole, copies=(10, 3)).force
    assert force.shape == (10, 3, 3)
    for i, frame in enumerate(frames):
        assert (measure.ground_reaction(CRATE, frame, copies=3).force == force[i]).all()
    assert (force[0, :, 2] > 0).tolist() == [True, False, False]
    assert (force[9, :, 2] > 0).tolist() == [True, True, False]


def test_sums_of_rows_go_to_their_copies() -> None:
    rng = np.random.default_rng(3)
    copy, values = rng.integers(0, 6, 40), rng.normal(size=(40, 2, 3))
    found = measure.per_copy(rows(np.zeros((40, 3)), copy=copy), values, (2, 3))
    loop = np.zeros((6, 2, 3))
    for i, value in zip(copy, values, strict=True):
        loop[i] += value
    assert found == pytest.approx(loop.reshape(2, 3, 2, 3))


def test_too_few_copies_are_refused() -> None:
    with pytest.raises(PoiseError, match="contacts of 3 copies or more, but copies=2"):
        measure.per_copy(rows(np.zeros((2, 3)), copy=(0, 2)), np.zeros(2), 2)
    with pytest.raises(PoiseError, match=r"values has shape \(3,\), expected \(2, ...\)"):
        measure.per_copy(rows(np.zeros((2, 3))), np.zeros(3))
    with pytest.raises(PoiseError, match="copies is 'n'"):
        measure.per_copy(rows(np.zeros((2, 3))), np.zeros(2), "n")  # type: ignore[arg-type]
    with pytest.raises(PoiseError, match="about has shape"):
        measure.contact_wrench(rows(np.zeros((2, 3))), np.zeros((5, 3)), 2)
    with pytest.raises(PoiseError, match="unknown link 'tail'"):
        measure.contacts_of(HUMANOID, rows(np.zeros((2, 3))), ["tail"])
    with pytest.raises(PoiseError, match="at least one frame"):
        measure.stacked([])


# ---- slip and depth


def test_slip_of_a_sliding_box_is_its_speed() -> None:
    world = World(CRATE, dt=1 / 60, friction=0.0)
    world.reset(State(CRATE.rest_q, [0.6, 0.8, 0, 0, 0, 0]))
    world.step()
    slips = measure.slip(world, CRATE.rest_q, world.state.v, world.contacts)
    assert slips == pytest.approx(np.full(4, 1.0))


def test_slip_is_along_the_surface_alone() -> None:
    world = World(CRATE, dt=1 / 60)
    world.step()
    v = [0.6, 0.8, -3.0, 0.0, 0.0, 0.0]
    assert measure.slip(world, CRATE.rest_q, v, world.contacts) == pytest.approx(np.full(4, 1.0))


def test_the_slip_of_what_was_thrown_is_not_known() -> None:
    world = World(CRATE, dt=1 / 60)
    link = world.throw((0.3, -0.2, 0.31), (0.0, 0.0, -2.0))
    world.step()
    touches = world.contacts
    slips = measure.slip(world, CRATE.rest_q, world.state.v, touches)
    thrown = (touches.link == link) | (touches.other == link)
    assert 0 < thrown.sum() < len(slips)
    assert (np.isnan(slips) == thrown).all()


def test_a_rolling_ball_moves_and_does_not_slip() -> None:
    ball = body(Shape("sphere", (0.1,)), 1.0, "ball", (0.0, 0.0, 0.1))
    world = World(ball, dt=1 / 60)
    world.reset(State(ball.rest_q, [0.5, 0, 0, 0, 5.0, 0]))
    world.step()
    before = world.state
    world.step()
    slips = measure.slip(world, before.q, world.state.v, world.contacts)
    assert slips == pytest.approx([0.0], abs=1e-9)
    assert world.state.v[0] == pytest.approx(0.5)


def test_slip_against_a_moving_link_is_relative() -> None:
    world = pile()
    before, v = world.state.q, np.zeros(12)
    v[0], v[6] = 0.3, 0.5
    slips = measure.slip(world, before, v, world.contacts)
    between = world.contacts.other >= 0
    assert slips[between] == pytest.approx(0.2)
    assert slips[~between] == pytest.approx(0.3)


def test_a_box_on_springs_sinks_by_its_weight() -> None:
    world = World(CRATE, dt=1e-3, contact="penalty")
    world.step(steps=2000)
    touches = world.contacts
    springs = touches.force[:, 2] / touches.depth
    assert springs == pytest.approx(np.full(4, springs[0]), rel=1e-3)
    deepest = touches.force[:, 2].max() / springs[0]
    assert measure.sinking(touches) == pytest.approx(deepest, rel=1e-3)
    assert deepest > 5.0 * G / 4.0 / springs[0]


@pytest.mark.parametrize("n", [1, 3])
def test_a_world_stands_for_its_contacts_and_copies(n: int) -> None:
    world = World(HUMANOID, dt=1.0 / 240.0, n=n, ground=True)
    for _ in range(5):
        world.step()
    given: dict[str, Any] = {"copies": () if n == 1 else n}
    touching, q = world.contacts, world.state.q
    assert measure.ground_reaction(world).force.shape == (*q.shape[:-1], 3)
    pairs: list[tuple[Any, Any]] = [
        *zip(
            measure.ground_reaction(world),
            measure.ground_reaction(world, touching, **given),
            strict=True,
        ),
        *zip(
            measure.support_polygon(world), measure.support_polygon(touching, **given), strict=True
        ),
        (measure.sinking(world), measure.sinking(touching, **given)),
        (measure.body_on_ground(world), measure.body_on_ground(world, touching, **given)),
        (measure.fallen(world), measure.fallen(world, q, touching)),
    ]
    for mine, other in pairs:
        np.testing.assert_array_equal(mine, other)
