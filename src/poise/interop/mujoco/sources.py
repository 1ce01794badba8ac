"""Where a controller reads from: one MjData, several of them, or plain states.

Each source has q and v, and, where MuJoCo is behind it, the pushes on the bodies and the constraint
forces of the step before. Those of one MjData are its own arrays: they are looked up once and stay
current. `views` are q and v as the core takes them the quickest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from poise import _core
from poise.errors import PoiseError
from poise.interop.mujoco.states import check_data
from poise.math.arrays import Floats, floats


class One:
    """One MjData: its own arrays, without a copy."""

    def __init__(self, data: Any) -> None:
        check_data(data)
        self.n = 1
        self.lead: tuple[int, ...] = ()
        self.steady = True  # the same object has the same arrays at its next visit
        self.q: Floats = data.qpos  # (nq,)
        self.v: Floats = data.qvel  # (nv,)
        self.views = _core.View(self.q), _core.View(self.v)
        self.pushes: Floats = data.xfrc_applied  # (nbody, 6), force at the mass centre
        self.constraint: Floats | None = data.qfrc_constraint  # (nv,)
        self.pushed: Callable[[], bool] = _core.View(self.pushes).any


class Many:
    """Several MjData, gathered into rows whenever they are read."""

    def __init__(self, datas: Sequence[Any]) -> None:
        self.ones = [One(data) for data in datas]
        self.n = len(self.ones)
        self.lead = (self.n,)
        self.steady = isinstance(datas, tuple)
        if not self.ones:
            raise PoiseError("a batch needs at least one MjData")

    @property
    def q(self) -> Floats:
        return _stacked([one.q for one in self.ones])

    @property
    def v(self) -> Floats:
        return _stacked([one.v for one in self.ones])

    @property
    def views(self) -> tuple[Floats, Floats]:
        return self.q, self.v

    @property
    def pushes(self) -> Floats:
        return _stacked([one.pushes for one in self.ones])

    def pushed(self) -> bool:
        return any(one.pushed() for one in self.ones)

    @property
    def constraint(self) -> Floats | None:
        return _stacked([one.constraint for one in self.ones])


class Rows:
    """A State, or anything with q and v, for one or for a batch; nothing is known of forces."""

    def __init__(self, state: Any) -> None:
        self.q, self.v = floats(state.q, "q"), floats(state.v, "v")
        if self.q.ndim not in (1, 2) or self.v.ndim != self.q.ndim:
            raise PoiseError(
                f"q has shape {self.q.shape} and v {self.v.shape}, expected (nq,) and (nv,), or "
                "(n, nq) and (n, nv)"
            )
        self.views = self.q, self.v
        self.lead = self.q.shape[:-1]
        self.n = self.lead[0] if self.lead else 1
        self.steady = False
        self.pushes: Floats = np.zeros((0, 6))
        self.constraint: Floats | None = None

    def pushed(self) -> bool:
        return False


Source = One | Many | Rows


def source_of(data: Any) -> Source:
    """The source behind what a user hands over."""
    if isinstance(data, Sequence):
        return Many(data)
    if hasattr(data, "qpos"):
        return One(data)
    if hasattr(data, "q") and hasattr(data, "v"):
        return Rows(data)
    raise PoiseError(f"expected a mujoco.MjData, a sequence of them, or a State; got {data!r:.80}")


def _stacked(rows: list[Any]) -> Floats:
    """Rows of equal length, one below the other."""
    first = rows[0]
    out: Floats = np.concatenate([row.reshape(-1) for row in rows] if first.ndim > 1 else rows)
    return out.reshape(len(rows), *first.shape)
