"""Reproducing macchietto2008: small parts of it, and what it is made of."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from poise.experiments import reproduce
from poise.experiments.macchietto2008 import survival
from poise.experiments.macchietto2008.setup import SERVO, push_standing
from poise.experiments.macchietto2008.survival import ANGLES, draw, limit_at, random_pushes
from poise.simulation.pushes import Push

LIMITS = np.array(
    [[260.0, 340.0, 400.0, 300.0, 220.0], [280.0, 380.0, 420.0, 340.0, 240.0], [300.0] * 5]
)
"""Limits that the map has found, or less [N]."""


def test_a_push_on_the_head_is_survived_by_balance_and_fells_the_servo() -> None:
    cases = [[Push("head", 220.0, way, 0.05)] for way in ("forward", "back")]
    out = push_standing(cases, "all", duration=2.5)
    assert out.stood.all()
    assert out.tilt.max() < 5.0
    assert out.torque.max() < 1000.0
    assert not push_standing(cases, SERVO, duration=2.5).stood.all()


def test_who_is_pushed_too_hard_falls_and_its_neighbour_does_not() -> None:
    out = push_standing([[Push("chest", 1500.0, "back", 0.05)], []], "all", duration=2.0)
    assert out.stood.tolist() == [False, True]
    assert 0.2 < out.fell[0] < 2.0


def test_a_sample_of_random_pushes_within_half_of_the_limits_is_survived() -> None:
    out, pushes = random_pushes(12, LIMITS, seed=5)
    assert out.stood.all(), [str(pushes[i]) for i in np.flatnonzero(~out.stood)]


@pytest.mark.slow
def test_a_thousand_random_pushes_within_half_of_the_limits_are_survived() -> None:
    out, pushes = random_pushes(1000, LIMITS)
    assert out.stood.all(), [str(pushes[i]) for i in np.flatnonzero(~out.stood)]


def test_the_limit_between_two_directions_is_the_lesser_of_theirs() -> None:
    row = np.array([5.0, 4.0, 3.0, 2.0, 1.0])
    assert [limit_at(row, angle) for angle in ANGLES[:-1]] == [4.0, 3.0, 2.0, 1.0]
    assert limit_at(row, -60.0) == limit_at(row, 60.0) == 3.0
    assert limit_at(row, 180.0) == 1.0


def test_bisection_finds_the_limit_of_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """With who falls from 100 N on, the limit is below 100 N by no more than the last halving."""

    class Out:
        def __init__(self, stood: np.ndarray) -> None:
            self.stood = stood

    def stand_in(cases: list[list[Push]], *_args: object, **_options: object) -> Out:
        return Out(np.array([case[0].force < 100.0 for case in cases]))

    monkeypatch.setattr(survival, "push_standing", stand_in)
    survival.survival_map.cache_clear()
    found = survival.survival_map("all")
    survival.survival_map.cache_clear()
    assert ((found <= 100.0) & (found >= 100.0 - survival.MOST / 2**survival.ROUNDS)).all()


def test_the_map_is_drawn() -> None:
    assert draw({"all": LIMITS, "none": 0.0 * LIMITS}).startswith(b"\x89PNG")


def test_the_leg_swing_has_momentum_and_a_report(tmp_path: Path) -> None:
    items, paths = reproduce("macchietto2008", ["M8"], out=tmp_path)
    assert items[0].holds
    assert paths["html"].stat().st_size > 10_000


@pytest.mark.slow
@pytest.mark.parametrize("key", ["M3", "M5", "M7"])
def test_the_thesis_is_reproduced(key: str, tmp_path: Path) -> None:
    items, _ = reproduce("macchietto2008", [key], out=tmp_path)
    assert [claim.what for claim in items[0].claims if claim.holds is False] == []


def test_less_than_a_halving_is_no_finding() -> None:
    step = survival.MOST / 2**survival.ROUNDS
    assert survival._more(LIMITS, LIMITS - 0.5 * step, "another").holds is False
    assert survival._more(LIMITS, LIMITS - 1.5 * step, "another").holds
