"""Stage: what a page of viser shows, in as few batches as there are kinds of parts.

viser draws a batch of thousands of equal meshes as fast as one, but hundreds of single meshes
slowly. So all domes of all capsules are one batch, all tubes another, and so on; an update sends
poses, and colours or sizes only when they have changed. The shapes of a scene take a way of their
own: which part belongs to which link is worked out once, and an update is a few array operations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from poise.errors import PoiseError
from poise.math.arrays import Floats, finite, floats, number, shaped
from poise.model.scene import SceneLike
from poise.view.batch import Batch, Key, label, parts_in, placed
from poise.view.bodies import Bodies
from poise.view.colors import Colors, Rgb
from poise.view.drawing import Primitive, is_primitives
from poise.view.overlay import FORCE, HEAD_LENGTH, HEAD_WIDTH, POINT

NOTHING = (np.zeros((0, 3)), np.zeros((0, 4)), np.zeros((0, 3)), np.zeros((0, 4)))


class Stage:
    """Everything poise shows in one viser scene, under one name.

    Updates from one thread may be grouped by viser's `with server.atomic():`.

    Args:
        api: viser's scene, as `server.scene`.
        prefix: Name of the node that all others stand under.
    """

    def __init__(self, api: Any, prefix: str = "/") -> None:
        self._api = api
        self._prefix = prefix.rstrip("/")
        self._lists: dict[str, dict[Key, Batch]] = {}
        self._bodies: dict[str, Bodies] = {}

    def bodies(
        self,
        name: str,
        source: SceneLike,
        *,
        n: int = 1,
        color: Colors = None,
        opacity: float = 1.0,
        offset: ArrayLike = (0.0, 0.0, 0.0),
    ) -> Bodies:
        """Put the shapes of a scene on the stage, in its rest pose.

        Args:
            name: Of its node; what had the name before goes.
            source: A character, several, or a World.
            n: Number of copies.
            color: As of `render`.
            opacity: 1 is solid; a ghost is below that, and a little thinner.
            offset: By how much all, or each copy, is moved [m], shape (3,) or (n, 3).
        """
        self.drop(name)
        made = Bodies(self._api, self._name(name), source, n, color, opacity, offset)
        self._bodies[name] = made
        return made

    def update(self, name: str, things: Sequence[Primitive]) -> None:
        """Show these primitives under a name, in place of those it had.

        Args:
            name: Of the node.
            things: As `drawing_of`, `arrow`, `trail` and `marker` make them; planes are checks.
        """
        if not is_primitives(things):
            raise PoiseError("a stage shows a sequence of Primitive")
        parts = [(thing, part) for thing in things for part in parts_in(thing)]
        if not parts:
            return self._draw(name, {})
        where = np.array([thing.pos for thing, _ in parts])
        quat = np.array([thing.quat for thing, _ in parts])
        pos, quat = placed(where, quat, [part for _, part in parts])
        rgba = np.array([(*thing.color, thing.opacity) for thing, _ in parts])
        rgba[:, :3] *= np.array([part.shade for _, part in parts])[:, None]
        scale = np.array([part.scale for _, part in parts])
        rows: dict[Key, list[int]] = {}
        for i, (thing, part) in enumerate(parts):
            rows.setdefault((part.solid, thing.opacity < 1.0), []).append(i)
        self._draw(name, {k: (pos[i], quat[i], scale[i], rgba[i]) for k, i in rows.items()})
        return None

    def arrows(
        self,
        name: str,
        starts: ArrayLike,
        vectors: ArrayLike,
        *,
        radius: float = 0.015,
        color: Rgb = FORCE,
    ) -> None:
        """Show arrows under a name, in place of those it had; quicker than primitives.

        Args:
            name: Of the node.
            starts: Where they begin [m], shape (k, 3).
            vectors: Where they point and how far [m], shape (k, 3); arrows of no length are left
                out.
            radius: Of the shafts [m]; short arrows are thinner.
            color: Red, green, blue, in 0..1; one, or shape (k, 3).
        """
        start, way = _rows(starts, "starts"), _rows(vectors, "vectors")
        if start.shape != way.shape:
            raise PoiseError(f"{len(start)} starts and {len(way)} vectors: there must be as many")
        length = np.linalg.norm(way, axis=1)
        some = length > 1e-6
        rgba = _rgba(color, len(way))[some]
        start, length, axis = start[some], length[some], way[some] / length[some, None]
        r = np.minimum(number(radius, "radius", unit="m"), length / (1.5 * HEAD_LENGTH))
        head = HEAD_LENGTH * r
        half = (length - head) / 2
        quat = quats_from_z(axis)
        shaft = np.stack([r, r, half], axis=-1)
        cone = np.stack([HEAD_WIDTH * r, HEAD_WIDTH * r, head], axis=-1)
        self._draw(
            name,
            {
                ("cylinder", False): (start + half[:, None] * axis, quat, shaft, rgba),
                ("cone", False): (start + 2 * half[:, None] * axis, quat, cone, rgba),
            },
        )

    def balls(
        self,
        name: str,
        points: ArrayLike,
        *,
        radius: ArrayLike = 0.03,
        color: Rgb = POINT,
    ) -> None:
        """Show balls under a name, in place of those it had.

        Args:
            name: Of the node.
            points: Their centres [m], shape (k, 3).
            radius: [m], one or shape (k,).
            color: Red, green, blue, in 0..1; one, or shape (k, 3).
        """
        at = _rows(points, "points")
        size = np.broadcast_to(floats(radius, "radius"), len(at))
        quat = np.tile((1.0, 0.0, 0.0, 0.0), (len(at), 1))
        scale = np.repeat(size[:, None], 3, axis=1)
        self._draw(name, {("sphere", False): (at, quat, scale, _rgba(color, len(at)))})

    def drop(self, name: str) -> None:
        """Take what stands under a name off the stage, if anything does."""
        bodies = self._bodies.pop(name, None)
        if bodies is not None:
            bodies.remove()
        for batch in self._lists.pop(name, {}).values():
            batch.remove()
        empty = self._api.get_handle_by_name(self._name(name))
        if empty is not None:
            empty.remove()

    def remove(self) -> None:
        """Take everything off the stage."""
        for name in [*self._bodies, *self._lists]:
            self.drop(name)

    def _draw(self, name: str, parts: dict[Key, tuple[Floats, ...]]) -> None:
        """Show instances of several solids; solids that are not named show none."""
        batches = self._lists.setdefault(name, {})
        for key in parts.keys() - batches.keys():
            batches[key] = Batch(self._api, f"{self._name(name)}/{label(key)}", *key)
        for key, batch in batches.items():
            batch.draw(*parts.get(key, NOTHING))

    def _name(self, name: str) -> str:
        return f"{self._prefix}/{name}"


def quats_from_z(axes: Floats) -> Floats:
    """Quaternions of rotations that take +z to unit axes, shape (k, 3) -> (k, 4)."""
    x, y, z = axes.T
    zero = np.zeros_like(x)
    above = np.stack([1.0 + z, -y, x, zero], axis=-1)
    below = np.stack([-y, 1.0 - z, zero, x], axis=-1)
    quat = np.where((z >= 0.0)[:, None], above, below)
    unit: Floats = quat / np.linalg.norm(quat, axis=1, keepdims=True)
    return unit


def _rows(value: ArrayLike, name: str) -> Floats:
    rows = finite(floats(value, name), name)
    if rows.ndim != 2 or rows.shape[1] != 3:
        raise PoiseError(f"{name} has shape {rows.shape}, expected (k, 3)")
    return rows


def _rgba(color: Any, k: int) -> Floats:
    rgb = floats(color, "color")
    rgb = rgb if rgb.shape == (k, 3) else np.tile(shaped(rgb, "color", (3,)), (k, 1))
    return np.column_stack([rgb, np.ones(len(rgb))])
