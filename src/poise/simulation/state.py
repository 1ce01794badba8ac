"""State: where everything is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from poise.math.arrays import Floats, floats

if TYPE_CHECKING:
    from poise.motion.clip import Clip
    from poise.simulation.world import World


class State:
    """Positions, velocities, clocks, and the memory that a world needs to go on bit for bit.

    A world's state copies q and v when they are first read; what has been read never changes.
    State(q, v) alone is a cold start.

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
        self.clip = clip
        self._world: World | None = None
        self._q: Floats = floats(q, "q")
        self._v: Floats | None = None if v is None else floats(v, "v")
        self._time: Floats = floats(time, "time")
        self._memory: Floats | None = None if memory is None else floats(memory, "memory")

    @classmethod
    def _of(cls, world: World) -> State:
        """The state that a world is in now, not yet read."""
        state = cls.__new__(cls)
        state._world, state.clip = world, None
        return state

    def _read(self) -> None:
        world = self._world
        if world is not None:
            self._q, self._v, self._time, self._memory = world._snapshot()
            self._world = None

    @property
    def q(self) -> Floats:
        """Positions, shape (nq,) or (n, nq)."""
        self._read()
        return self._q

    @property
    def v(self) -> Floats:
        """Velocities, shape (nv,) or (n, nv)."""
        self._read()
        if self._v is None:
            raise AttributeError("this state has positions only; State(q, v) has velocities")
        return self._v

    @property
    def has_velocity(self) -> bool:
        """Whether velocities are known."""
        self._read()
        return self._v is not None

    @property
    def time(self) -> Floats:
        """Clock of each copy [s], shape () or (n,)."""
        self._read()
        return self._time

    @property
    def memory(self) -> Floats | None:
        """Opaque memory, or None for a cold start."""
        self._read()
        return self._memory

    def copy(self) -> State:
        """An independent copy."""
        self._read()
        memory = None if self._memory is None else self._memory.copy()
        v = None if self._v is None else self._v.copy()
        return State(self._q.copy(), v, np.copy(self._time), memory, clip=self.clip)

    def __reduce__(self) -> tuple[type[State], tuple[Floats | None, ...]]:
        self._read()
        return State, (self._q, self._v, self._time, self._memory)

    def __repr__(self) -> str:
        self._read()
        return f"State(q={self._q.shape}, time={self._time})"
