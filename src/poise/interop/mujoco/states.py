"""States both ways: q is qpos, v is qvel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from poise.errors import PoiseError
from poise.math.arrays import finite, floats
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
    if isinstance(data, Sequence):
        if len(state.q) != len(data) or np.ndim(state.q) != 2:
            raise PoiseError(f"q has shape {np.shape(state.q)}; there are {len(data)} MjData")
        moving, clock = _velocity(state) is not None, np.ndim(getattr(state, "time", 0.0))
        for i, one in enumerate(data):
            time = state.time[i] if clock else getattr(state, "time", 0.0)
            write_state(one, State(state.q[i], state.v[i] if moving else None, time))
        return
    check_data(data)
    q = finite(floats(state.q, "q"), "q")
    if q.shape != data.qpos.shape:
        raise PoiseError(f"q has shape {q.shape}, this MjData has {data.qpos.shape}")
    v = np.zeros_like(data.qvel) if _velocity(state) is None else floats(_velocity(state), "v")
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


def _velocity(state: Any) -> Any:
    """The velocities of a state, or None if it has none."""
    return getattr(state, "v", None)
