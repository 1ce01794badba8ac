"""The solve behind stable PD: worlds of the core without contact, one for each size of batch.

A step of such a world solves (M + K) a = Q - h + load, with springs and dampers of the joints on
both sides. It takes gains that are laid out once, and threads for a batch. Where the step leads is
not looked at.
"""

from __future__ import annotations

from collections.abc import Callable

from poise import _core
from poise.arrays import Floats
from poise.control.gains import Gains
from poise.scene import Scene
from poise.settings import threads_of


class Solver:
    """Torques Q - K a of a drive, for states of one scene.

    Args:
        scene: The scene.
        gains: Its gains.
        form: Number of the form in `poise.dynamics.FORMS`.
        method: Number of the method in `poise.dynamics.METHODS`.
        threads: At most this many for a batch; None takes the cores.
    """

    def __init__(
        self, scene: Scene, gains: Gains, form: int, method: int, threads: int | None
    ) -> None:
        self.scene, self.gains = scene, gains
        threads_of(threads, 1)  # refused here rather than in the first call
        self.threads = threads
        self._form, self._method, self._core = form, method, gains.core
        self._dt, self._gravity = 0.0, b""
        self._worlds: dict[int, Callable[..., Floats]] = {}  # what they answer, by number of copies

    def torque(
        self,
        q: Floats,
        v: Floats,
        n: int,
        target: tuple[Floats, Floats | None],
        load: Floats | None,
        dt: float,
        gravity: Floats,
    ) -> Floats:
        """Torques (nv,), or (n, nv) where q has n rows.

        Args:
            q: Positions (nq,), or (n, nq).
            v: Velocities (nv,), or (n, nv).
            n: Number of states.
            target: Positions and velocities, one row or n; None is rest.
            load: Generalized forces beside the torques (nv,) or (n, nv), or None.
            dt: Time step [s].
            gravity: [m/s^2], shape (3,).
        """
        if dt != self._dt or gravity.tobytes() != self._gravity:
            self._worlds.clear()
            self._dt, self._gravity = dt, gravity.tobytes()
        torques = self._worlds.get(n) or self._made(n, gravity)
        tq, tv = target
        return torques(q, v, self._core, tq, tv, load, self._form, self._method)

    def _made(self, n: int, gravity: Floats) -> Callable[..., Floats]:
        """A world of n copies, without contact."""
        threads = threads_of(self.threads, n)
        model = self.scene.model
        world = _core.World(model, model, n, self._dt, False, threads, gravity, None, None)
        self._worlds[n] = world.torques
        return self._worlds[n]
