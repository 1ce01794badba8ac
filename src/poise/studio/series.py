"""The last moments of the character that is watched: its trail, and curves over time."""

from __future__ import annotations

from collections import deque

import numpy as np

from poise.math.arrays import Floats
from poise.studio.snapshot import Moment

SPAN = 10.0
"""Time that curves show [s]."""

TRAIL = 4.0
"""Time that the trail shows [s]."""

MOST = 1200
"""Moments that are kept: in slow motion there are many in a second."""

KEYS = (
    "time",
    "rotation",
    "position",
    "linear",
    "angular",
    "kinetic",
    "potential",
    "ground_force",
)


STANCE = (
    *(f"{kind}_{axis}" for kind in ("linear", "angular") for axis in "xyz"),
    "com_margin",
    "cop_margin",
    "cmp_margin",
    "cop_missed",
)


class Series:
    """Moments in the order of their time."""

    def __init__(self) -> None:
        self._moments: deque[Moment] = deque(maxlen=MOST)
        self._seen: tuple[Moment, ...] = ()  # the same, for other threads

    def append(self, moment: Moment) -> None:
        """Add a moment; later ones, and those of another scene, are forgotten."""
        held = self._moments
        if held and held[-1].cast.number != moment.cast.number:
            held.clear()
        while held and held[-1].time >= moment.time - 1e-9:
            held.pop()
        held.append(moment)
        while held[0].time < moment.time - SPAN:
            held.popleft()
        self._seen = tuple(held)

    def clear(self) -> None:
        """Forget all."""
        self._moments.clear()
        self._seen = ()

    def trail(self, who: int, now: float) -> Floats:
        """Way of a mass centre up to a time [s], oldest first, shape (k, 3) [m]."""
        way = [m.com[who] for m in self._seen if now - TRAIL <= m.time <= now + 1e-9]
        trail: Floats = np.array(way).reshape(-1, 3)
        trail.flags.writeable = False
        return trail

    def curves(self, who: int, now: float) -> dict[str, Floats]:
        """Curves up to a time [s], each of shape (k,): see KEYS.

        Errors [degrees, m], sizes of momentum [N s, N m s], energies [J], the ground's force [N].
        """
        seen = [m for m in self._seen if m.time <= now + 1e-9 and who < len(m.com)]
        rows = [
            (
                m.time, m.rotation[who], m.position[who], *_lengths(m.linear[who], m.angular[who]),
                m.kinetic[who], m.potential[who], *_lengths(m.ground_force[who]),
            )
            for m in seen
        ]  # fmt: skip
        columns = np.array(rows).reshape(-1, len(KEYS)).T
        return dict(zip(KEYS, columns, strict=True))

    def stance(self, who: int, now: float) -> dict[str, Floats]:
        """Curves of who stands, as of `curves`: see STANCE; NaN where there is nothing.

        Momentum along each axis [N s, N m s]; how far inside of the support mass centre, COP and
        CMP are [cm]; and how far COP and planned COP are apart [cm].
        """
        seen = [m for m in self._seen if m.time <= now + 1e-9 and who < len(m.com)]
        rows = [
            (
                *m.linear[who], *m.angular[who], *(100.0 * m.margin[who]),
                *(100.0 * x for x in _lengths(m.cop[who] - m.planned[who])),
            )
            for m in seen
        ]  # fmt: skip
        columns = np.array(rows).reshape(-1, len(STANCE)).T
        return dict(zip(STANCE, columns, strict=True))


def _lengths(*vectors: Floats) -> tuple[float, ...]:
    return tuple(float(np.sqrt(v @ v)) for v in vectors)
