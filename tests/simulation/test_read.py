"""world.read: fields of all copies, in bulk, against what the world says one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from poise import PoiseError, Shape, StablePD, State, Target, World, load_character, measure
from poise.model.character import free_object

HUMANOID = load_character("humanoid")
BOX = free_object("box", Shape("box", (0.2, 0.2, 0.2)), mass=2.0)
FOOT = "left_foot" if "left_foot" in HUMANOID.forest.link_names else HUMANOID.links[-1].name


def crowd(n: int = 19, **options: Any) -> World:
    """Copies that stand, fall and lie: each starts at another height and is pushed another way."""
    world = World(HUMANOID, n=n, dt=1 / 120, obstacles=[Shape("box", (9.0, 9.0, 0.01))], **options)
    rng = np.random.default_rng(1)
    q = np.tile(HUMANOID.rest_q, (n, 1))
    q[:, 2] += rng.uniform(0.0, 0.05, n)
    world.reset(State(q, 0.5 * rng.normal(size=(n, HUMANOID.nv))))
    drive = StablePD(world)(world.state, Target(HUMANOID.rest_q))
    for _ in range(25):
        world.step(drive)
    return world


@pytest.mark.parametrize("n", [1, 19])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_fields_are_those_of_the_state_and_of_the_links(n: int, dtype: str) -> None:
    world = crowd(n, dtype=dtype)
    found = world.read("q", "v", "time", "torque", "link_position", "link_quat")
    found |= world.read("link_velocity", "link_angular_velocity")
    assert np.array_equal(found["q"], world.state.q)
    assert np.array_equal(found["v"], world.state.v)
    assert np.array_equal(found["time"], world.time)
    assert np.array_equal(found["torque"], world.torque)
    tolerance = 1e-12 if dtype == "float64" else 2e-5
    names = ("link_position", "link_quat", "link_velocity", "link_angular_velocity")
    twins = (*world.link_poses(), *world.link_velocities())
    for name, twin in zip(names, twins, strict=True):
        np.testing.assert_allclose(found[name], twin, atol=tolerance)


def sums(world: World, link: int, other: int | None = None) -> NDArray[np.float64]:
    """Force on a link, from the list of contacts, row by row."""
    force, c = np.zeros((world.n, 3)), world.contacts
    for copy, one, two, f in zip(c.copy, c.link, c.other, c.force, strict=True):
        if one == link and other in (None, two):
            force[copy] += f
        if two == link and other in (None, one):
            force[copy] -= f
    return force


def test_contact_forces_are_sums_over_the_list_of_contacts() -> None:
    world = crowd(ground=False)
    found = world.read("link_contact", "link_contact_force")
    assert len(world.contacts.copy) > 20
    for link in range(HUMANOID.forest.nl if hasattr(HUMANOID.forest, "nl") else world.scene.nl):
        twin = sums(world, link)
        np.testing.assert_allclose(found["link_contact_force"][:, link], twin, atol=1e-9)
        touched = np.zeros(world.n, bool)
        c = world.contacts
        touched[c.copy[(c.link == link) | (c.other == link)]] = True
        assert np.array_equal(found["link_contact"][:, link], touched)


def test_pairs_are_links_with_links_ground_and_obstacles_in_either_order() -> None:
    world = World(
        [HUMANOID, BOX], n=5, dt=1 / 120, obstacles=[Shape("sphere", (0.1,), (0.5, 0, 0))]
    )
    q = np.tile(world.scene.forest.rest_q, (5, 1))
    box = world.part("box")
    q[:, box.q.start : box.q.start + 3] = [[0.0, 0.0, 0.2 + 0.4 * k] for k in range(5)]
    world.reset(State(q))
    for _ in range(10):
        world.step()
    names = world.scene.forest.link_names
    pairs = [(a, b) for a in range(len(names)) for b in range(-2, len(names)) if a != b]
    found = world.read("pair_contact", "pair_contact_force", pairs=np.array(pairs))
    assert found["pair_contact"].any(axis=1).all()
    for k, (a, b) in enumerate(pairs):
        force = sums(world, a, b)
        np.testing.assert_allclose(found["pair_contact_force"][:, k], force, atol=1e-9)
        hit = np.zeros(5, bool)
        c = world.contacts
        one, two = (c.link == a) & (c.other == b), (c.link == b) & (c.other == a)
        hit[c.copy[one | two]] = True
        assert np.array_equal(found["pair_contact"][:, k], hit)
    by_name = world.read("pair_contact", pairs=[(names[0], "ground")])["pair_contact"]
    assert np.array_equal(by_name[:, 0], found["pair_contact"][:, pairs.index((0, -1))])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_given_arrays_are_filled_and_returned(dtype: str) -> None:
    world = crowd()
    q, flags = np.empty((19, HUMANOID.nq), dtype), np.empty((19, world.scene.nl), bool)
    found = world.read("v", q=q, link_contact=flags)
    assert found["q"] is q
    assert found["link_contact"] is flags
    assert np.array_equal(q, world.state.q.astype(dtype))
    assert list(found) == ["q", "link_contact", "v"]


def test_some_links_alone_are_columns_of_all() -> None:
    world = crowd()
    names = ("link_position", "link_contact_force")
    whole, some = world.read(*names), world.read(*names, links=[3, HUMANOID.links[0].name])
    for name in names:
        assert np.array_equal(some[name], whole[name][:, [3, 0]])


def test_read_alone_is_q_v_and_time() -> None:
    assert list(crowd(3).read()) == ["q", "v", "time"]


def test_threads_read_the_same_numbers() -> None:
    one, two = crowd(1000, threads=1), crowd(1000, threads=2)
    names = ("q", "v", "link_position", "link_contact_force")
    a, b = one.read(*names), two.read(*names)
    assert all(np.array_equal(a[name], b[name]) for name in names)


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "shape": ({"q": np.empty((3, 5))}, r"q has shape \(3, 5\).*of shape \(4, 43\)"),
    "dtype": ({"v": np.empty((4, 34), np.float16)}, "v has shape .*float16.*float32 or float64"),
    "order": ({"q": np.empty((43, 4)).T}, "q must be a writable, C-contiguous array"),
    "list": ({"q": [[0.0]]}, "q must be a writable, C-contiguous array.*not list"),
    "flags": ({"link_contact": np.empty((4, 13))}, "link_contact has shape.*of bool"),
    "pairs": ({"pair_contact": np.empty((4, 1), bool)}, "need pairs="),
    "pair": ({"pairs": [("head", "foot-of-a-table")]}, "foot-of-a-table"),
    "alone": ({"pairs": np.array([[1, 1]])}, "1 and 1 are no pair"),
    "links": ({"links": [0, 0]}, "named twice"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_array_is_named_with_what_would_be_right(case: str) -> None:
    world = World(HUMANOID, n=4, dt=0.01)
    arguments, message = WRONG[case]
    with pytest.raises(PoiseError, match=message):
        world.read(**arguments)


def test_a_read_only_array_is_refused() -> None:
    world = World(HUMANOID, n=4, dt=0.01)
    q = np.empty((4, 43))
    q.flags.writeable = False
    with pytest.raises(PoiseError, match="writable"):
        world.read(q=q)


def test_an_unknown_field_lists_those_there_are() -> None:
    with pytest.raises(PoiseError, match="link_position"):
        World(HUMANOID, n=4, dt=0.01).read("link_positions")


def test_a_held_state_keeps_its_numbers_when_the_world_steps_on() -> None:
    world, twin = crowd(), crowd()
    held, q = world.state, twin.state.q
    memory = twin.state.memory
    for _ in range(3):
        world.step()
    assert np.array_equal(held.q, q)
    assert np.array_equal(held.time, twin.time)
    assert memory is not None
    assert held.memory is not None
    assert np.array_equal(held.memory, memory)
    assert held.q is held.q


def test_a_held_state_resumes_bit_for_bit() -> None:
    world = crowd(dtype="float32")
    world.push(0, (50.0, 0.0, 0.0), 0.2, where=[2])
    held = world.state
    for _ in range(5):
        world.step()
    after = world.state.q
    world.reset(held)
    for _ in range(5):
        world.step()
    assert np.array_equal(world.state.q, after)


@pytest.mark.parametrize("n", [1, 19])
def test_fallen_of_a_world_is_that_of_its_state_and_contacts(n: int) -> None:
    world = crowd(n, ground=True)
    drop = State(HUMANOID.rest_q + np.eye(HUMANOID.nq)[2] * -0.55)
    world.reset(drop, where=[0])
    world.step()
    found = measure.fallen(world)
    assert np.array_equal(found, measure.fallen(world, world.state.q, world.contacts))
    assert found.any()
