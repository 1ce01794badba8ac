"""The falls that tests and benchmarks drop: what their numbers promise."""

from __future__ import annotations

import numpy as np
import pytest
from falls import SHARING, beyond_limits, drop, rough
from scipy.spatial.transform import Rotation

from poise import load_character

HUMANOID = load_character("humanoid")


@pytest.mark.parametrize("ground", ["plane", "field"])
def test_ragdolls_fall_and_come_to_rest_without_sinking(ground: str) -> None:
    """None diverges, sinks by 2 cm, moves on, or is bent; every step is looked at."""
    ends = drop(ground, range(12))
    assert not any(ends.failures().values()), ends.failures()


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 1500, 100))
@pytest.mark.parametrize("ground", ["plane", "field"])
def test_many_ragdolls_fall_and_come_to_rest_without_sinking(ground: str, first: int) -> None:
    ends = drop(ground, range(first, first + 100))
    assert not any(ends.failures().values()), ends.failures()


@pytest.mark.parametrize(
    ("ground", "number"), [("plane", 4268), ("field", 2495), ("field", 3820), ("plane", 425)]
)
def test_a_limb_that_a_blow_sets_spinning_does_not_throw_the_body(ground: str, number: int) -> None:
    """The hardest of ten thousand: a limb turns by a radian in a step, in the first three."""
    ends = drop(ground, [number, number])
    assert not any(ends.failures().values()), ends.failures()


@pytest.mark.parametrize("ground", ["plane", "field"])
def test_a_fall_dropped_again_ends_as_in_company(ground: str) -> None:
    """So that one of thousands can be looked at again by its number."""
    many = drop(ground, range(203, 212), seconds=2)
    alone = drop(ground, [207, 207], seconds=2)
    assert alone.deepest[0] == many.deepest[4] > 0
    assert alone.pressed[0] == many.pressed[4]
    assert alone.moved[0] == many.moved[4]
    assert alone.kinetic[0] == many.kinetic[4]


def test_falls_differ() -> None:
    ends = drop("plane", range(6), seconds=1)
    assert len(set(ends.kinetic.tolist())) == 6


def test_falls_of_two_height_fields_cannot_share_a_world() -> None:
    with pytest.raises(ValueError, match="do not share"):
        drop("field", [SHARING - 1, SHARING])
    assert not np.array_equal(rough(0).heights, rough(1).heights)


def test_what_did_not_come_to_rest_is_a_failure_with_its_number() -> None:
    """After half of its way down a ragdoll moves."""
    failed = drop("plane", [31, 32], seconds=1).failures()
    assert failed["moves"] == (31, 32)
    assert failed["diverged"] == ()


@pytest.mark.parametrize("over", [-0.1, 0.2])
def test_limits_are_exceeded_by_what_a_joint_was_turned_beyond_them(over: float) -> None:
    """A swing about x after a twist about z, the axis of this joint."""
    chest = HUMANOID.joints[1]
    assert chest.limits is not None
    assert chest.axis == (0.0, 0.0, 1.0)
    swing, _, upper = chest.limits
    turned = Rotation.from_rotvec([swing + over, 0, 0]) * Rotation.from_rotvec([0, 0, upper])
    q = np.array([HUMANOID.rest_q])
    q[0, HUMANOID.q_slice(chest)] = np.roll(turned.as_quat(), 1)
    assert beyond_limits(HUMANOID, q)[0] == pytest.approx(max(over, 0.0), abs=1e-12)
