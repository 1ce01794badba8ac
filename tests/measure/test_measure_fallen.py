"""Whether a character has fallen."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from objects import body

from poise import Character, Joint, Link, PoiseError, StablePD, State, World, dynamics, measure
from poise.anatomy.body import head_of
from poise.characters import load_character
from poise.model.character import Shape

Array = NDArray[np.float64]

HUMANOID = load_character("humanoid")


def lowered(fraction: float) -> Array:
    """The humanoid sunk so far that its head is at this fraction of its height."""
    q: Array = HUMANOID.rest_q
    head = [link.name for link in HUMANOID.links].index("head")
    p, _ = dynamics.forward_kinematics(HUMANOID, q)
    height = p[head, 2] + HUMANOID.link("head").com[2]
    q[2] -= (1.0 - fraction) * height
    return q


@pytest.mark.parametrize("fraction", [1.2, 1.0, 0.61, 0.59, 0.1])
def test_the_height_of_the_head_is_a_fraction_of_that_at_rest(fraction: float) -> None:
    q = lowered(fraction)
    assert measure.head_height(HUMANOID, q) == pytest.approx(fraction)
    assert measure.fallen(HUMANOID, q) == (fraction < 0.6)
    # on a hill, the height is that above the hill
    q[2] += 3.0
    assert measure.head_height(HUMANOID, q, ground=3.0) == pytest.approx(fraction)


def test_heads_of_a_batch_are_seen_at_once() -> None:
    q = np.array([[lowered(1.0), lowered(0.5)], [lowered(0.9), lowered(0.7)]])
    assert measure.fallen(HUMANOID, q).tolist() == [[False, True], [False, False]]


def test_who_stands_has_not_fallen_and_who_is_let_go_has() -> None:
    held, loose = (World(HUMANOID, dt=1 / 60) for _ in range(2))
    servo, target = StablePD(HUMANOID), State(HUMANOID.rest_q, np.zeros(HUMANOID.nv))
    for _ in range(90):
        held.step(servo(held.state, target))
        loose.step()
        assert not measure.fallen(held, held.state.q, held.contacts)
    assert measure.fallen(loose, loose.state.q)
    loose.step(steps=150)
    assert measure.body_on_ground(loose, loose.contacts)


def touching(link: str, **options: Any) -> bool:
    """Whether a humanoid, one of whose links touches the ground, is said to lie."""
    world = World(HUMANOID, dt=1 / 60)
    world.step()
    index = [x.name for x in HUMANOID.links].index(link)
    touches = world.contacts
    touches = touches._replace(link=np.full_like(touches.link, index))
    return bool(measure.body_on_ground(HUMANOID, touches, **options))


def test_feet_and_hands_may_touch_the_ground_and_nothing_else() -> None:
    may = {link.name for link in HUMANOID.links if not touching(link.name)}
    assert may == {"left_foot", "right_foot", "left_forearm", "right_forearm"}
    assert not touching("pelvis", allowed=("pelvis",))
    assert touching("left_foot", allowed=("pelvis",))


@pytest.mark.parametrize(
    ("name", "head", "may"),
    [
        ("humanoid-51", "head", {"left_hand", "right_hand", "left_foot", "right_foot"}),
        ("tail-biped", "head", {"left_foot", "right_foot"}),
        ("lamp", "shade", {"base"}),
        (
            "dog",
            "head",
            {"front_left_paw", "front_right_paw", "hind_left_paw", "hind_right_paw"},
        ),
    ],
)
def test_other_bodies_have_heads_and_feet_of_their_own(name: str, head: str, may: set[str]) -> None:
    character = load_character(name)
    assert head_of(character) == head
    assert set(measure.allowed_on_ground(character)) == may
    assert not measure.fallen(character, character.rest_q)


def test_sitting_on_a_chair_is_no_fall() -> None:
    world = World(HUMANOID, dt=1 / 60)
    world.step()
    touches = world.contacts._replace(
        link=np.zeros_like(world.contacts.link), other=np.full_like(world.contacts.other, -2)
    )
    assert not measure.body_on_ground(HUMANOID, touches)
    assert measure.body_on_ground(HUMANOID, touches._replace(other=touches.other + 1))


def test_what_hovers_does_not_lie() -> None:
    world = World(HUMANOID, dt=1 / 60)
    world.step()
    down = world.contacts._replace(link=np.zeros_like(world.contacts.link))
    above = down._replace(force=0.0 * down.force, depth=np.full_like(down.depth, -0.01))
    assert measure.body_on_ground(HUMANOID, down)
    assert not measure.body_on_ground(HUMANOID, above)


def test_one_of_several_can_fall() -> None:
    one, other = load_character("humanoid"), load_character("humanoid-ball")
    world = World([one, other], dt=1 / 60)
    q = world.scene.forest.rest_q.copy()
    lie = world.part("humanoid-ball")
    # beside the first, on its back
    q[lie.q][:3] = 3.0, 0.0, 0.2
    q[lie.q][3:7] = math.sqrt(0.5), 0.0, -math.sqrt(0.5), 0.0
    world.reset(State(q))
    world.step(steps=3)
    q, touches = world.state.q, world.contacts
    assert not measure.fallen(world, q, touches, part="humanoid")
    assert measure.fallen(world, q, touches, part="humanoid-ball")
    with pytest.raises(PoiseError, match="several parts; say which: humanoid, humanoid-ball"):
        measure.fallen(world, q, touches)
    with pytest.raises(PoiseError, match="unknown part 'dog'"):
        measure.fallen(world, q, touches, part="dog")


def test_what_has_no_head_or_feet_cannot_fall() -> None:
    with pytest.raises(PoiseError, match="'thing' has no head; a limb 'head' says which"):
        measure.fallen(body(Shape("box", (0.1, 0.1, 0.1))), np.zeros(7))
    arm = Link("arm", joints=(Joint("a", "hinge"),), mass=1.0, inertia=(1, 1, 1))
    fixed = Character("fixed", (arm,), {"head": ("arm",)})
    with pytest.raises(PoiseError, match="'fixed' has no feet in its rest pose"):
        measure.fallen(fixed, np.zeros(1))
