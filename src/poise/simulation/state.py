"""State: where everything is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from poise import _core
from poise.errors import PoiseError
from poise.math.arrays import Floats, floats

if TYPE_CHECKING:
    from poise.motion.clip import Clip
    from poise.simulation.world import World

_UNREAD: Any = object()


class State:
    """Positions, velocities, clocks, and the memory that a world needs to go on bit for bit.

    A world's state copies each of them when it is first read; what has been read never changes, and
    a state that is held while the world goes on keeps its numbers. State(q, v) alone is a cold
    start.

    Args:
        q: Positions, shape (nq,) or (n, nq).
        v: Velocities, shape (nv,) or (n, nv); None is rest.
        time: Clock of each copy [s], a number or shape (n,).
        memory: Opaque: running pushes and the like, from another state.
        clip: The clip it was sampled from, or None.
    """

    __slots__ = ("__weakref__", "_memory", "_q", "_time", "_v", "_world", "clip")

    def __init__(
        self,
        q: ArrayLike,
        v: ArrayLike | None = None,
        time: ArrayLike = 0.0,
        memory: ArrayLike | None = None,
        *,
        clip: Clip | None = None,
    ) -> None:
        if clip is not None and not hasattr(clip, "character"):
            raise PoiseError(f"clip must be a Clip, got {clip!r:.80}")
        self.clip = clip
        self._world: World | None = None
        self._q: Floats = floats(q, "q")
        self._v: Floats | None = None if v is None else floats(v, "v")
        self._time: Floats = floats(time, "time")
        # that of a world without its zeros, until someone reads it
        self._memory: Floats | _core.Memory | None = None
        if memory is not None:
            self._memory = floats(memory, "memory")

    @classmethod
    def _of(cls, world: World) -> State:
        """The state that a world is in now, not yet read."""
        state = cls.__new__(cls)
        state._world, state.clip = world, None
        state._q = state._v = state._time = state._memory = _UNREAD
        return state

    def _keep(self) -> None:
        """Take everything from the world, which is about to go on."""
        world = self._world
        if world is None:
            return
        self._read_q_and_v()
        if self._time is _UNREAD:
            self._time = world.time
        if self._memory is _UNREAD:
            self._memory = world._core.snapshot()
        self._world = None

    @property
    def _is_unread(self) -> bool:
        """Whether a world's state is still as the world's."""
        return self._world is not None and self._q is self._time is self._memory is _UNREAD

    def _read_q_and_v(self) -> None:
        if self._q is _UNREAD and self._world is not None:
            self._q, self._v = self._world._read_state()

    @property
    def q(self) -> Floats:
        """Positions, shape (nq,) or (n, nq)."""
        if self._q is _UNREAD:
            self._read_q_and_v()
        return self._q

    @property
    def v(self) -> Floats:
        """Velocities, shape (nv,) or (n, nv)."""
        if self._v is _UNREAD:
            self._read_q_and_v()
        if self._v is None:
            raise AttributeError("this state has positions only; State(q, v) has velocities")
        return self._v

    @property
    def has_velocity(self) -> bool:
        """Whether velocities are known."""
        return self._v is not None

    @property
    def time(self) -> Floats:
        """Clock of each copy [s], shape () or (n,)."""
        if self._time is _UNREAD and self._world is not None:
            self._time = self._world.time
        return self._time

    @property
    def memory(self) -> Floats | None:
        """Opaque memory, or None for a cold start."""
        if self._memory is _UNREAD and self._world is not None:
            self._memory = self._world._core.snapshot()
        if isinstance(self._memory, _core.Memory):
            dense = self._memory.dense()
            self._memory = dense[0] if len(dense) == 1 else dense
        return self._memory

    def copy(self) -> State:
        """An independent copy."""
        memory = None if self.memory is None else self.memory.copy()
        v = self.v.copy() if self.has_velocity else None
        return State(self.q.copy(), v, np.copy(self.time), memory, clip=self.clip)

    def __reduce__(self) -> tuple[type[State], tuple[Floats | None, ...]]:
        return State, (self.q, self.v if self.has_velocity else None, self.time, self.memory)

    def __repr__(self) -> str:
        return f"State(q={self.q.shape}, time={self.time})"
