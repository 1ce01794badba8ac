"""Checks of a balance's settings at the door: what is not finite, negative, or hopelessly apart."""

from __future__ import annotations

import math
from collections.abc import Sequence

from poise.errors import PoiseError
from poise.math.arrays import Floats, finite, floats, number

APART = 1e6
"""Weights that are farther apart cannot be told from 0 or from infinity by the solver."""


def check_settings(
    weight: Floats,
    *,
    beta_linear: float,
    gamma: float,
    reach: float,
    margin: float,
    firmness: float,
    linear_gains: Sequence[float],
    support_gains: Sequence[float],
    rate: float | None,
    center: str | Sequence[float],
    soft_limits: Sequence[float] | None,
) -> None:
    """Refuse settings that no plan can be made of.

    Args:
        weight: Of tracking, above zero, shape (nv,); the others are those of Balance.
        beta_linear: At most 1e6.
        gamma: 0 or more.
        reach: 0 or more; may be infinite [m].
        margin: 0 or more [m].
        firmness: 0 or more [kg m²].
        linear_gains: A pair, 0 or more.
        support_gains: A pair, 0 or more.
        rate: Above zero, or None [1/s].
        center: "motion", or x, y [m].
        soft_limits: A pair, 0 or more, or None.
    """
    if weight.max() > APART or weight.min() < 1.0 / APART:
        raise PoiseError(
            f"weights of tracking go from {weight.min():g} to {weight.max():g}; they must be "
            f"between {1.0 / APART:g} and {APART:g}, or the plan is singular"
        )
    for name, value, unit in (
        ("beta_linear", beta_linear, ""),
        ("gamma", gamma, ""),
        ("reach", 0.0 if reach == math.inf else reach, "m"),
        ("margin", margin, "m"),
        ("firmness", firmness, "kg m²"),
    ):
        _not_negative(value, name, unit)
    if beta_linear > APART:
        raise PoiseError(
            f"beta_linear is {beta_linear:g}; it must be {APART:g} or less, or the plan is singular"
        )
    if center == "motion":
        pass
    elif isinstance(center, str) or finite(floats(center, "center"), "center").shape != (2,):
        raise PoiseError(f"center is {center!r:.60}; it must be 'motion', or x, y [m]")
    pairs = {"linear_gains": linear_gains, "support_gains": support_gains}
    if soft_limits is not None:
        pairs["soft_limits"] = soft_limits
    for name, pair in pairs.items():
        if not isinstance(pair, Sequence) or len(pair) != 2:
            raise PoiseError(f"{name} is {pair!r:.60}; it must be a pair k_s, k_d")
        for one, unit in zip(pair, ("1/s²", "1/s"), strict=True):
            _not_negative(one, name, unit)
    if rate is not None:
        number(rate, "rate", unit="1/s")


def _not_negative(value: float, name: str, unit: str) -> None:
    if number(value, name, positive=False, unit=unit) < 0.0:
        raise PoiseError(f"{name} is {value:g}; it must be 0 or more")
