"""Bodies: the shapes of a scene, as a browser shows them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from poise.dynamics import forward_kinematics
from poise.errors import PoiseError
from poise.math.arrays import Floats, floats
from poise.math.rotation import multiply, quat_matrix
from poise.model.scene import SceneLike, scene_of
from poise.view.batch import Batch, label, parts_in, placed
from poise.view.colors import Colors
from poise.view.drawing import drawing_of
from poise.view.ghosts import thinner


class Bodies:
    """The shapes of a scene, of one or several copies; made by `Stage.bodies`.

    Attributes:
        scene: The compiled scene.
        n: Number of copies.
        handles: viser's handles of the batches, for `on_click` and `on_drag`.
    """

    def __init__(
        self,
        api: Any,
        name: str,
        source: SceneLike,
        n: int,
        color: Colors,
        opacity: float,
        offset: ArrayLike,
    ) -> None:
        self.scene, self.n = scene_of(source), n
        self._offset = _spread(offset, "offset", (n, 3))[:, None]
        drawn = drawing_of(self.scene, color=color, opacity=opacity)
        drawn = thinner(drawn) if opacity < 1.0 else drawn
        shapes = [
            (i, shape)
            for i, link in enumerate(k for part in self.scene.characters for k in part.links)
            for shape in link.shapes
        ]
        rows = [
            (part.solid, thing.opacity < 1.0, i, k, part)
            for k, ((i, _), thing) in enumerate(zip(shapes, drawn, strict=True))
            for part in parts_in(thing)
        ]
        rows.sort(key=lambda row: row[:2])
        self._link = np.array([row[2] for row in rows], dtype=np.int64)
        which = np.array([row[3] for row in rows], dtype=np.int64)
        pos = np.array([shape.pos for _, shape in shapes]).reshape(-1, 3)[which]
        quat = np.array([shape.quat for _, shape in shapes]).reshape(-1, 4)[which]
        parts = [row[4] for row in rows]
        self._pos, self._quat = placed(pos, quat, parts)
        self._scale = np.array([part.scale for part in parts]).reshape(-1, 3)
        colors = [(*thing.color, thing.opacity) for thing in drawn]
        self._rgba = np.array(colors).reshape(-1, 4)[which]
        self._paint, self._shown = self._rgba, np.ones((n, len(rows)), dtype=bool)
        keys = [row[:2] for row in rows]
        starts = [k for k, key in enumerate(keys) if not k or keys[k - 1] != key]
        self._slices = [slice(a, b) for a, b in zip(starts, [*starts[1:], len(rows)], strict=True)]
        self._batches = [
            Batch(api, f"{name}/{label(keys[part.start])}", *keys[part.start])
            for part in self._slices
        ]
        self._last: Floats = self.scene.forest.rest_q
        self.update(self._last)

    def update(self, q: ArrayLike, *, shown: ArrayLike | None = None) -> None:
        """Pose the scene.

        Args:
            q: Positions, shape (nq,) or (n, nq).
            shown: Which links are seen, shape (nl,) or (n, nl), bool; None leaves it as it was.
        """
        self._last = _spread(q, "q", (self.n, self.scene.nq))
        if shown is not None:
            seen = _spread(shown, "shown", (self.n, self.scene.nl)) != 0.0
            self._shown = seen[:, self._link]
        if not len(self._link):
            return
        place, turn = forward_kinematics(self.scene, self._last)
        turn = turn[:, self._link]
        pos = place[:, self._link] + self._offset
        pos += np.einsum("nkij,kj->nki", quat_matrix(turn), self._pos)
        quat = multiply(turn, self._quat)
        scale = self._scale * self._shown[..., None]
        rgba = np.broadcast_to(self._paint, (self.n, len(self._link), 4))
        for part, batch in zip(self._slices, self._batches, strict=True):
            batch.draw(*(x[:, part].reshape(-1, x.shape[2]) for x in (pos, quat, scale, rgba)))

    def color_links(self, rgb: ArrayLike | None) -> None:
        """Paint the links.

        Args:
            rgb: Red, green, blue, in 0..1, shape (nl, 3) or (n, nl, 3); None gives the shapes
                their own colours back.
        """
        if rgb is None:
            self._paint = self._rgba
        else:
            paint = _spread(rgb, "rgb", (self.n, self.scene.nl, 3))[:, self._link]
            alpha = np.broadcast_to(self._rgba[:, 3:], (*paint.shape[:2], 1))
            self._paint = np.concatenate([paint, alpha], axis=-1)
        self.update(self._last)

    @property
    def handles(self) -> list[Any]:
        return [batch.handle for batch in self._batches]

    def link_of(self, handle: Any, instance: int) -> tuple[int, int] | None:
        """Copy and link that an instance of one of the handles belongs to; None if to none."""
        for part, batch in zip(self._slices, self._batches, strict=True):
            if batch.handle is handle or getattr(batch.handle, "name", None) == handle.name:
                count = part.stop - part.start
                if 0 <= instance < self.n * count:
                    return instance // count, int(self._link[part][instance % count])
        return None

    @property
    def visible(self) -> bool:
        """Whether it is seen at all."""
        return all(handle.visible for handle in self.handles)

    @visible.setter
    def visible(self, visible: bool) -> None:
        for handle in self.handles:
            handle.visible = visible

    def remove(self) -> None:
        """Take it off the stage."""
        for batch in self._batches:
            batch.remove()


def _spread(value: ArrayLike, name: str, shape: tuple[int, ...]) -> Floats:
    """An array of this shape; without its first axis it is the same for all copies."""
    array = floats(value, name)
    if array.shape not in (shape, shape[1:]):
        raise PoiseError(f"{name} has shape {array.shape}, expected {shape[1:]} or {shape}")
    return np.ascontiguousarray(np.broadcast_to(array, shape))
