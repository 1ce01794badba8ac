"""Batch: one solid, many times, as one node of viser."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poise.math.arrays import Floats
from poise.math.rotation import multiply, quat_matrix
from poise.view.drawing import Primitive
from poise.view.solids import Part, parts_of, solid

LEAST_ROOM = 8
UPSIDE_DOWN = (0.0, 1.0, 0.0, 0.0)

Key = tuple[str, bool]
"""Name of a solid, and whether one sees through it: what a batch is of."""


class Batch:
    """One solid, many times, as one node of viser.

    It has room for as many instances as there ever were; those that are not needed have no size.

    Args:
        api: viser's scene.
        name: Of the node.
        kind: Name of the solid.
        clear: Whether one sees through it.
    """

    def __init__(self, api: Any, name: str, kind: str, clear: bool) -> None:
        self._api, self._name, self._solid, self._clear = api, name, solid(kind), clear
        self.handle: Any = None
        self._room = 0

    def draw(self, pos: Floats, quat: Floats, scale: Floats, rgba: Floats) -> None:
        """Show these instances, shapes (k, 3), (k, 4), (k, 3), (k, 4)."""
        k = len(pos)
        if k > self._room:
            # what has grown once may grow again; not every update shall make a new node
            self._room = k if self.handle is None else max(k, 2 * self._room, LEAST_ROOM)
            self.handle = None
        values = {
            "batched_positions": _filled(pos, self._room, (0.0, 0.0, 0.0)),
            "batched_wxyzs": _filled(quat, self._room, (1.0, 0.0, 0.0, 0.0)),
            "batched_scales": _filled(scale, self._room, (0.0, 0.0, 0.0)),
            "batched_colors": bytes_of(_filled(rgba[:, :3], self._room, (0.0, 0.0, 0.0))),
        }
        if self._clear:
            values["batched_opacities"] = _filled(rgba[:, 3], self._room, 0.0)
        if self.handle is None:
            self.handle = self._made(values)
        else:
            for name, value in values.items():
                setattr(self.handle, name, value)

    def remove(self) -> None:
        """Take the node out of viser's scene."""
        if self.handle is not None:
            self.handle.remove()
        self.handle, self._room = None, 0

    def _made(self, values: dict[str, Any]) -> Any:
        if not self._room:
            return None
        return self._api.add_batched_meshes_simple(
            self._name,
            self._solid.vertices,
            self._solid.faces,
            flat_shading=self._solid.flat,
            lod="off",
            cast_shadow=not self._clear,
            receive_shadow=not self._clear,
            **values,
        )


def bytes_of(rgb: NDArray[np.floating]) -> NDArray[np.uint8]:
    """Colours as viser's batches take them: it reads them as linear light, not as a screen's."""
    dark = rgb <= 0.04045
    linear = np.where(dark, rgb / 12.92, ((np.maximum(rgb, 0.0) + 0.055) / 1.055) ** 2.4)
    return np.asarray(np.rint(255 * linear.clip(0.0, 1.0)), dtype=np.uint8)


def parts_in(thing: Primitive) -> list[Part]:
    return parts_of(thing.kind, tuple(thing.size), thing.mesh)


def placed(pos: Floats, quat: Floats, parts: Sequence[Part]) -> tuple[Floats, Floats]:
    """Poses of parts that stand on things with these poses."""
    up = np.array([part.up for part in parts])
    turned = np.array([UPSIDE_DOWN if part.turned else (1.0, 0.0, 0.0, 0.0) for part in parts])
    if not len(parts):
        return pos, quat
    return pos + up[:, None] * quat_matrix(quat)[..., 2], multiply(quat, turned)


def _filled(rows: Floats, room: int, rest: Any) -> NDArray[np.float32]:
    """Rows as float32, and as many more as there is room for."""
    out = np.empty((room, *rows.shape[1:]), dtype=np.float32)
    out[: len(rows)] = rows
    out[len(rows) :] = rest
    return out


def label(key: Key) -> str:
    return key[0] + ("_clear" if key[1] else "")
