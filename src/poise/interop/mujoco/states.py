"""States both ways: q is qpos, v is qvel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from poise import _core
from poise.errors import PoiseError
from poise.math.arrays import Floats, finite, floats
from poise.simulation.state import State


def state_of(data: Any) -> State:
    """The state in an MjData, or in a sequence of them as one batch; a copy.

    Args:
        data: A mujoco.MjData, or a sequence of n of them.
    """
    if isinstance(data, Sequence):
        rows = [state_of(one) for one in data]
        if not rows:
            raise PoiseError("a batch needs at least one MjData")
        return State(
            np.array([row.q for row in rows]),
            np.array([row.v for row in rows]),
            np.array([row.time for row in rows]),
        )
    check_data(data)
    return State(np.array(data.qpos), np.array(data.qvel), float(data.time))


def write_state(data: Any, state: Any) -> None:
    """Put a state into an MjData, or a batch into a sequence of them.

    Positions, velocities and the clock change; what MuJoCo derives from them does so at its next
    mj_forward or mj_step.

    Args:
        data: A mujoco.MjData, or a sequence of n of them.
        state: A State, or anything with q and v, shaped (nq,) and (nv,), or (n, nq) and (n, nv). A
            clock of its own is written, too. Without velocities it is at rest.
    """
    if not hasattr(state, "q"):
        raise PoiseError(f"a state has q and v; got {state!r:.80}")
    v = getattr(state, "v", None)
    if isinstance(data, Sequence):
        if len(state.q) != len(data) or np.ndim(state.q) != 2:
            raise PoiseError(f"q has shape {np.shape(state.q)}; there are {len(data)} MjData")
        clock = np.ndim(getattr(state, "time", 0.0))
        for i, one in enumerate(data):
            time = state.time[i] if clock else getattr(state, "time", 0.0)
            write_state(one, State(state.q[i], None if v is None else v[i], time))
        return
    check_data(data)
    q = finite(floats(state.q, "q"), "q")
    if q.shape != data.qpos.shape:
        raise PoiseError(f"q has shape {q.shape}, this MjData has {data.qpos.shape}")
    v = np.zeros_like(data.qvel) if v is None else floats(v, "v")
    if v.shape != data.qvel.shape:
        raise PoiseError(f"v has shape {v.shape}, this MjData has {data.qvel.shape}")
    data.qpos[:] = q
    data.qvel[:] = finite(v, "v")
    if getattr(state, "time", None) is not None:  # a target may have none
        data.time = float(state.time)


def rollout_state(model: Any, rows: ArrayLike) -> State:
    """The states in rows of `mujoco.rollout`, as one batch.

    Args:
        model: The mujoco.MjModel.
        rows: Full physics states, shape (..., nstate): time, qpos, qvel, and what follows.
    """
    check_model(model)
    rows = floats(rows, "rows")
    nq, nv = model.nq, model.nv
    if rows.ndim == 0 or rows.shape[-1] < 1 + nq + nv:
        raise PoiseError(f"rows have shape {rows.shape}, expected (..., {1 + nq + nv} or more)")
    return State(rows[..., 1 : 1 + nq], rows[..., 1 + nq : 1 + nq + nv], rows[..., 0])


def check_model(model: Any) -> None:
    """Refuse what is not an MjModel."""
    if not hasattr(model, "jnt_bodyid") or not hasattr(model, "opt"):
        raise PoiseError(f"expected a mujoco.MjModel, got {model!r:.80}")


def check_data(data: Any) -> None:
    """Refuse what is not an MjData."""
    if not hasattr(data, "qpos") or not hasattr(data, "xfrc_applied"):
        raise PoiseError(f"expected a mujoco.MjData, got {data!r:.80}")


# ---- sources: one MjData, several of them, or plain states
#
# Each source has q and v, and, where MuJoCo is behind it, the pushes on the bodies and the
# constraint forces of the step before. Those of one MjData are its own arrays: they are looked up
# once and stay current. `views` are q and v as the core takes them the quickest.


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
        self.pushes: Floats = data.xfrc_applied  # (nbody, 6), force at the center of mass
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
