"""Stage: a viser scene in which all equal solids are one batch.

viser draws a batch of thousands of equal meshes as fast as one, but hundreds of single meshes
slowly. So all domes of all capsules are one batch, all tubes another, and so on; an update sends
poses, and colors or sizes only when they have changed. For the shapes of a scene (`Bodies`) the
parts of each link are computed once, and an update is a few array operations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.dynamics import forward_kinematics
from poise.errors import PoiseError
from poise.math import rotation
from poise.math.arrays import Floats, floats, matrix, number, shaped
from poise.math.rotation import quat_matrix
from poise.model.scene import SceneLike, scene_of
from poise.view.drawing import Colors, Primitive, Rgb, drawing_of, is_primitives, shapes_of
from poise.view.mesh import parts_of, solid
from poise.view.overlays import FORCE, HEAD_LENGTH, HEAD_WIDTH, POINT, scale_radii

NOTHING = (np.zeros((0, 3)), np.zeros((0, 4)), np.zeros((0, 3)), np.zeros((0, 4)))


class Stage:
    """All that poise shows in one viser scene, under one node.

    Updates from one thread may be grouped by viser's `with server.atomic():`.

    Args:
        api: viser's scene, as `server.scene`.
        prefix: Name of the parent node.
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
        """Adds the shapes of a scene, in its rest pose.

        Args:
            name: Of its node; a node of the same name is removed.
            source: A character, several, or a World.
            n: Number of copies.
            color: See `render`.
            opacity: 1 is opaque; below 1 radii are a little smaller, as of a ghost.
            offset: Translation of all copies, or of each [m], shape (3,) or (n, 3).
        """
        self.drop(name)
        made = Bodies(self._api, self._name(name), source, n, color, opacity, offset)
        self._bodies[name] = made
        return made

    def update(self, name: str, things: Sequence[Primitive]) -> None:
        """Shows primitives under a name; they replace those it had.

        Args:
            name: Of the node.
            things: From `drawing_of`, `arrow`, `trail` or `marker`; planes are checkered.
        """
        if not is_primitives(things):
            raise PoiseError("a stage shows a sequence of Primitive")
        pos, quat = (np.array([getattr(thing, x) for thing in things]) for x in ("pos", "quat"))
        made = instances_of(things, pos.reshape(-1, 3), quat.reshape(-1, 4))
        self._draw(name, {key: made.rows(i) for key, i in made.batches.items()})

    def arrows(
        self,
        name: str,
        starts: ArrayLike,
        vectors: ArrayLike,
        *,
        radius: float = 0.015,
        color: Rgb = FORCE,
    ) -> None:
        """Shows arrows under a name; they replace those it had. Faster than primitives.

        Args:
            name: Of the node.
            starts: Their tails [m], shape (k, 3).
            vectors: From tail to tip [m], shape (k, 3); arrows of length 0 are left out.
            radius: Of the shafts [m]; short arrows are thinner.
            color: Red, green, blue, in 0..1; one, or shape (k, 3).
        """
        start, way = matrix(starts, "starts", 3), matrix(vectors, "vectors", 3)
        if start.shape != way.shape:
            raise PoiseError(f"{len(start)} starts and {len(way)} vectors: there must be as many")
        length = np.linalg.norm(way, axis=1)
        some = length > 1e-6
        rgba = _rgba(color, len(way))[some]
        start, length, axis = start[some], length[some], way[some] / length[some, None]
        r = np.minimum(number(radius, "radius", unit="m"), length / (1.5 * HEAD_LENGTH))
        head = HEAD_LENGTH * r
        half = (length - head) / 2
        quat = rotation.between(np.broadcast_to((0.0, 0.0, 1.0), axis.shape), axis)
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
        """Shows balls under a name; they replace those it had.

        Args:
            name: Of the node.
            points: Their centers [m], shape (k, 3).
            radius: [m], one or shape (k,).
            color: Red, green, blue, in 0..1; one, or shape (k, 3).
        """
        at = matrix(points, "points", 3)
        size = np.broadcast_to(floats(radius, "radius"), len(at))
        quat = np.tile((1.0, 0.0, 0.0, 0.0), (len(at), 1))
        scale = np.repeat(size[:, None], 3, axis=1)
        self._draw(name, {("sphere", False): (at, quat, scale, _rgba(color, len(at)))})

    def drop(self, name: str) -> None:
        """Removes the node of a name, if there is one."""
        bodies = self._bodies.pop(name, None)
        if bodies is not None:
            bodies.remove()
        for batch in self._lists.pop(name, {}).values():
            batch.remove()
        empty = self._api.get_handle_by_name(self._name(name))
        if empty is not None:
            empty.remove()

    def remove(self) -> None:
        """Removes everything."""
        for name in [*self._bodies, *self._lists]:
            self.drop(name)

    def _draw(self, name: str, parts: dict[Key, tuple[Floats, ...]]) -> None:
        """Shows instances of several solids; those of all others are hidden."""
        batches = self._lists.setdefault(name, {})
        for key in parts.keys() - batches.keys():
            batches[key] = Batch(self._api, f"{self._name(name)}/{label(key)}", *key)
        for key, batch in batches.items():
            batch.draw(*parts.get(key, NOTHING))

    def _name(self, name: str) -> str:
        return f"{self._prefix}/{name}"


def _rgba(color: Any, k: int) -> Floats:
    rgb = floats(color, "color")
    rgb = rgb if rgb.shape == (k, 3) else np.tile(shaped(rgb, "color", (3,)), (k, 1))
    return np.column_stack([rgb, np.ones(len(rgb))])


# ---- batches

LEAST_ROOM = 8
UPSIDE_DOWN = (0.0, 1.0, 0.0, 0.0)

Key = tuple[str, bool]
"""Key of a batch: name of the solid, and whether it is translucent."""


class Batch:
    """Many instances of one solid, as one node of viser.

    Its capacity never shrinks; unused instances have size 0.

    Args:
        api: viser's scene.
        name: Of the node.
        kind: Name of the solid.
        clear: Whether it is translucent.
    """

    def __init__(self, api: Any, name: str, kind: str, clear: bool) -> None:
        self._api, self._name, self._solid, self._clear = api, name, solid(kind), clear
        self.handle: Any = None
        self._room = 0

    def draw(self, pos: Floats, quat: Floats, scale: Floats, rgba: Floats) -> None:
        """Shows these instances, shapes (k, 3), (k, 4), (k, 3), (k, 4)."""
        k = len(pos)
        if k > self._room:
            # grows by doubling, so that few updates create a new node
            self._room = k if self.handle is None else max(k, 2 * self._room, LEAST_ROOM)
            self.handle = None
        values = {
            "batched_positions": _filled(pos, self._room, (0.0, 0.0, 0.0)),
            "batched_wxyzs": _filled(quat, self._room, (1.0, 0.0, 0.0, 0.0)),
            "batched_scales": _filled(scale, self._room, (0.0, 0.0, 0.0)),
            "batched_colors": linear_bytes(_filled(rgba[:, :3], self._room, (0.0, 0.0, 0.0))),
        }
        if self._clear:
            values["batched_opacities"] = _filled(rgba[:, 3], self._room, 0.0)
        if self.handle is None:
            self.handle = self._create(values)
        else:
            for name, value in values.items():
                setattr(self.handle, name, value)

    def remove(self) -> None:
        """Removes the node from viser's scene."""
        if self.handle is not None:
            self.handle.remove()
        self.handle, self._room = None, 0

    def _create(self, values: dict[str, Any]) -> Any:
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


def linear_bytes(rgb: NDArray[np.floating]) -> NDArray[np.uint8]:
    """Converts sRGB colors to the linear bytes that viser's batches expect."""
    dark = rgb <= 0.04045
    linear = np.where(dark, rgb / 12.92, ((np.maximum(rgb, 0.0) + 0.055) / 1.055) ** 2.4)
    return np.asarray(np.rint(255 * linear.clip(0.0, 1.0)), dtype=np.uint8)


class Instances(NamedTuple):
    """The k solids that primitives consist of.

    Attributes:
        owner: Number of the primitive of each, shape (k,).
        pos: [m], shape (k, 3).
        quat: Shape (k, 4).
        scale: Shape (k, 3).
        rgba: Shape (k, 4).
        batches: Numbers of the instances in each batch.
    """

    owner: NDArray[np.int64]
    pos: Floats
    quat: Floats
    scale: Floats
    rgba: Floats
    batches: dict[Key, list[int]]

    def rows(self, i: list[int]) -> tuple[Floats, ...]:
        """Poses, sizes and colors of some instances, as `Batch.draw` takes them."""
        return self.pos[i], self.quat[i], self.scale[i], self.rgba[i]


def instances_of(things: Sequence[Primitive], pos: Floats, quat: Floats) -> Instances:
    """The solids of primitives.

    Args:
        things: The primitives.
        pos: Where they are [m], shape (n, 3).
        quat: Their orientations, shape (n, 4).
    """
    parts = [
        (i, part)
        for i, thing in enumerate(things)
        for part in parts_of(thing.kind, tuple(thing.size), thing.mesh)
    ]
    batches: dict[Key, list[int]] = {}
    for k, (i, part) in enumerate(parts):
        batches.setdefault((part.solid, things[i].opacity < 1.0), []).append(k)
    owner = np.array([i for i, _ in parts], dtype=np.int64)
    up = np.array([part.up for _, part in parts])
    upright = (1.0, 0.0, 0.0, 0.0)
    turned = np.array([UPSIDE_DOWN if part.turned else upright for _, part in parts])
    rgba = np.array([(*thing.color, thing.opacity) for thing in things]).reshape(-1, 4)[owner]
    rgba[:, :3] *= np.array([part.shade for _, part in parts])[:, None]
    return Instances(
        owner,
        pos[owner] + up[:, None] * quat_matrix(quat[owner])[..., 2],
        rotation.multiply(quat[owner], turned.reshape(-1, 4)),
        np.array([part.scale for _, part in parts]).reshape(-1, 3),
        rgba,
        batches,
    )


def _filled(rows: Floats, room: int, rest: Any) -> NDArray[np.float32]:
    """Rows as float32, filled up to the capacity."""
    out = np.empty((room, *rows.shape[1:]), dtype=np.float32)
    out[: len(rows)] = rows
    out[len(rows) :] = rest
    return out


def label(key: Key) -> str:
    return key[0] + ("_clear" if key[1] else "")


# ---- bodies


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
        self._offset = _per_copy(offset, "offset", (n, 3))[:, None]
        drawn = drawing_of(self.scene, color=color, opacity=opacity)
        drawn = scale_radii(drawn) if opacity < 1.0 else drawn
        shapes = shapes_of(self.scene)
        pos = np.array([shape.pos for _, shape in shapes]).reshape(-1, 3)
        quat = np.array([shape.quat for _, shape in shapes]).reshape(-1, 4)
        made = instances_of(drawn, pos, quat)
        self._link = np.array([i for i, _ in shapes], dtype=np.int64)[made.owner]
        self._pos, self._quat, self._scale, self._rgba = made[1:5]
        self._paint, self._shown = self._rgba, np.ones((n, len(self._link)), dtype=bool)
        self._batches = [
            (rows, Batch(api, f"{name}/{label(key)}", *key))
            for key, rows in sorted(made.batches.items())
        ]
        self._last: Floats = self.scene.forest.rest_q
        self.update(self._last)

    def update(self, q: ArrayLike, *, shown: ArrayLike | None = None) -> None:
        """Sets the pose of the scene.

        Args:
            q: Positions, shape (nq,) or (n, nq).
            shown: Which links are visible, shape (nl,) or (n, nl), bool; None changes nothing.
        """
        self._last = _per_copy(q, "q", (self.n, self.scene.nq))
        if shown is not None:
            seen = _per_copy(shown, "shown", (self.n, self.scene.nl)) != 0.0
            self._shown = seen[:, self._link]
        if not len(self._link):
            return
        place, turn = forward_kinematics(self.scene, self._last)
        turn = turn[:, self._link]
        pos = place[:, self._link] + self._offset
        pos += np.einsum("nkij,kj->nki", quat_matrix(turn), self._pos)
        quat = rotation.multiply(turn, self._quat)
        scale = self._scale * self._shown[..., None]
        rgba = np.broadcast_to(self._paint, (self.n, len(self._link), 4))
        for rows, batch in self._batches:
            batch.draw(*(x[:, rows].reshape(-1, x.shape[2]) for x in (pos, quat, scale, rgba)))

    def color_links(self, rgb: ArrayLike | None) -> None:
        """Sets the colors of links.

        Args:
            rgb: Red, green, blue, in 0..1, shape (nl, 3) or (n, nl, 3); None restores the colors
                of the shapes.
        """
        if rgb is None:
            self._paint = self._rgba
        else:
            paint = _per_copy(rgb, "rgb", (self.n, self.scene.nl, 3))[:, self._link]
            alpha = np.broadcast_to(self._rgba[:, 3:], (*paint.shape[:2], 1))
            self._paint = np.concatenate([paint, alpha], axis=-1)
        self.update(self._last)

    @property
    def handles(self) -> list[Any]:
        return [batch.handle for _, batch in self._batches]

    def link_of(self, handle: Any, instance: int) -> tuple[int, int] | None:
        """Copy and link of an instance of one of the handles; None if it has none."""
        for rows, batch in self._batches:
            if batch.handle is handle or getattr(batch.handle, "name", None) == handle.name:
                copy, i = divmod(instance, len(rows))
                if 0 <= copy < self.n:
                    return copy, int(self._link[rows[i]])
        return None

    @property
    def visible(self) -> bool:
        """Whether it is visible."""
        return all(handle.visible for handle in self.handles)

    @visible.setter
    def visible(self, visible: bool) -> None:
        for handle in self.handles:
            handle.visible = visible

    def remove(self) -> None:
        """Removes it from the stage."""
        for _, batch in self._batches:
            batch.remove()


def _per_copy(value: ArrayLike, name: str, shape: tuple[int, ...]) -> Floats:
    """An array of this shape; without its first axis it is broadcast to all copies."""
    array = floats(value, name)
    if array.shape not in (shape, shape[1:]):
        raise PoiseError(f"{name} has shape {array.shape}, expected {shape[1:]} or {shape}")
    return np.ascontiguousarray(np.broadcast_to(array, shape))
