"""Marks: what explains a moving scene. Points, trail, polygon, arrows and warning lights."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from poise.dynamics import GRAVITY, forward_kinematics
from poise.errors import PoiseError
from poise.math.arrays import Floats
from poise.math.pose import quat_matrix
from poise.studio.snapshot import Contacts, Measures
from poise.trials.balance_trial import place_of
from poise.view.browser import Stage
from poise.view.overlay import FORCE, PATH, POINT

if TYPE_CHECKING:
    from poise.studio.scene_index import SceneIndex

Rgb = tuple[float, float, float]

PRESSURE: Rgb = (0.80, 0.10, 0.45)
PIVOT: Rgb = (0.10, 0.45, 0.90)
PLANNED: Rgb = (0.99, 0.62, 0.82)
SUPPORT: Rgb = (0.16, 0.60, 0.36)
AT_LIMIT: Rgb = (0.58, 0.16, 0.78)
SATURATED: Rgb = (0.93, 0.12, 0.10)
TORQUES = np.array([(0.60, 0.65, 0.72), (0.97, 0.80, 0.28), (0.80, 0.10, 0.08)])
"""Colours of no torque, half of what a joint can do, and all of it."""

CORNERS = 12  # of a support polygon that are drawn
TRAIL = 150  # pieces of the trail
ABOVE = 0.006  # how far flat things lie above the ground [m]
WEIGHT = 0.45  # length of the arrow of a character's weight, in its heights
LONGEST = 1.0  # arrow, in heights


@dataclass(frozen=True)
class See:
    """What a page shows besides the bodies."""

    ghost: bool = True
    com: bool = True
    trail: bool = True
    pressure: bool = True
    support: bool = True
    forces: bool = True
    torque: bool = False
    limits: bool = True
    labels: bool = False
    inside: bool = False
    follow: bool = True


class Marks:
    """The marks of one scene.

    Args:
        stage: Where they stand.
        api: viser's scene.
        prefix: Name of the stage's node.
        index: Who is in the scene.
    """

    def __init__(self, stage: Stage, api: Any, prefix: str, index: SceneIndex) -> None:
        self._stage, self._api, self._name = stage, api, f"{prefix}/marks"
        self._scene, self._who = index.scene, index.owner
        mass, self.height = sizes(index)
        self._per_newton = WEIGHT * self.height / (mass * abs(GRAVITY[2]))
        self._nodes: dict[str, Any] = {}

    def update(
        self, measures: Measures, ground: Floats, trail: Floats, watch: int, see: See
    ) -> None:
        """Show what is to be seen at a measures.

        Args:
            measures: The scene and what was measured.
            ground: Height of the ground under each mass centre [m], shape (m,).
            trail: Way of the watched mass centre [m], shape (t, 3).
            watch: Which character that is.
            see: What is to be seen.
        """
        r = 0.018 * self.height
        # the one above is inside the body; the one below shows where it is over the ground
        below = measures.com.copy()
        below[:, 2] = ground + ABOVE
        self._balls("com", np.concatenate([measures.com, below]), 1.4 * r, POINT, see.com)
        self._balls("cop", measures.cop, r, PRESSURE, see.pressure)
        self._balls("cmp", measures.cmp, r, PIVOT, see.pressure)
        # sunk to its top, a ball is a disc: around the COP where that is as planned
        sunk = measures.planned_cop - (0.0, 0.0, 1.6 * r)
        self._balls("planned", sunk, 2.4 * r, PLANNED, see.pressure)
        self._trail(trail if see.trail else trail[:0])
        self._support(measures.support if see.support else ())
        self._forces(measures.contacts if see.forces else None)
        self._limits(measures, see.limits)
        self._labels(measures, watch, see)

    def remove(self) -> None:
        """Take them off the stage."""
        for node in self._nodes.values():
            node.remove()
        self._nodes = {}
        for what in ("com", "cop", "cmp", "planned", "forces", "limits"):
            self._stage.drop(f"mark-{what}")

    def _balls(self, what: str, at: Floats, radius: float, color: Rgb, seen: bool) -> None:
        points = at[np.isfinite(at).all(axis=1)] if seen else at[:0]
        self._stage.balls(f"mark-{what}", points, radius=radius, color=color)

    def _trail(self, way: Floats) -> None:
        """The last pieces of the way; those that are not there have no length."""
        way = way[-TRAIL - 1 :]
        pieces = np.zeros((TRAIL, 2, 3))
        if len(way) > 1:
            pieces[:] = way[-1]
            pieces[: len(way) - 1] = np.stack([way[:-1], way[1:]], axis=1)
        self._lines("trail", pieces, PATH, 0.006 * self.height, seen=len(way) > 1)

    def _support(self, polygons: tuple[Floats, ...]) -> None:
        """Rim and area of the support polygons."""
        some = [p[:CORNERS] for p in polygons if len(p) > 1]
        ring = np.zeros((max(len(some), 1), CORNERS, 3))
        for row, corners in zip(ring, some, strict=False):
            row[: len(corners)] = corners
            row[len(corners) :] = corners[-1]
        ring += (0.0, 0.0, ABOVE)
        rim = np.stack([ring, np.roll(ring, -1, axis=1)], axis=2).reshape(-1, 2, 3)
        self._lines("rim", rim, SUPPORT, 0.006 * self.height, seen=bool(some))
        self._area(ring, seen=bool(some))

    def _area(self, ring: Floats, seen: bool) -> None:
        node = self._nodes.get("area")
        if node is not None and node.vertices.shape[0] != ring.shape[0] * CORNERS:
            self._nodes.pop("area").remove()
            node = None
        vertices = ring.reshape(-1, 3).astype(np.float32)
        if node is None:
            fan = np.array([(0, k, k + 1) for k in range(1, CORNERS - 1)])
            faces = (fan + CORNERS * np.arange(len(ring))[:, None, None]).reshape(-1, 3)
            node = self._api.add_mesh_simple(
                f"{self._name}/area", vertices, faces, color=bytes_of(SUPPORT), opacity=0.35,
                side="double", cast_shadow=False, receive_shadow=False,
            )  # fmt: skip
            self._nodes["area"] = node
        else:
            node.vertices = vertices
        node.visible = seen

    def _forces(self, contacts: Contacts | None) -> None:
        start, way = (
            (np.zeros((0, 3)), np.zeros((0, 3)))
            if contacts is None
            else gathered(outer(contacts, self._who), self._per_newton, LONGEST * self.height)
        )
        self._stage.arrows(
            "mark-forces", start, way, radius=0.009 * self.height,
            color=FORCE,
        )  # fmt: skip

    def _limits(self, measures: Measures, seen: bool) -> None:
        """Lights at the joints that are at a limit of their range, or of their torque."""
        which = np.flatnonzero(measures.at_limit | measures.saturated) if seen else np.zeros(0, int)
        at = np.zeros((0, 3))
        if len(which):
            at = forward_kinematics(self._scene, measures.q)[0][which]
        color: Any = np.where(measures.saturated[which, None], SATURATED, AT_LIMIT).reshape(-1, 3)
        self._stage.balls("mark-limits", at, radius=0.04 * self.height, color=color)

    def _labels(self, measures: Measures, watch: int, see: See) -> None:
        texts = {"CM": measures.com, "COP": measures.cop, "CMP": measures.cmp}
        wanted = {"CM": see.com, "COP": see.pressure, "CMP": see.pressure}
        for text, points in texts.items():
            at = points[min(watch, len(points) - 1)] if len(points) else np.full(3, np.nan)
            seen = see.labels and wanted[text] and bool(np.isfinite(at).all())
            node = self._nodes.get(text)
            if node is None and seen:
                node = self._nodes[text] = self._api.add_label(
                    f"{self._name}/{text}", text, font_screen_scale=0.8, anchor="bottom-left"
                )
            if node is not None:
                node.visible = seen
                if seen:
                    node.position = at + (0.0, 0.0, 0.03 * self.height)

    def _lines(self, what: str, pieces: Floats, color: Rgb, thickness: float, seen: bool) -> None:
        node = self._nodes.get(what)
        if node is None:
            node = self._nodes[what] = self._api.add_line_segments(
                f"{self._name}/{what}", pieces, bytes_of(color), thickness=thickness
            )
        else:
            node.points = pieces
        node.visible = seen


def outer(contacts: Contacts, who: NDArray[np.int64]) -> Contacts:
    """Without what links of one character do to each other.

    Args:
        contacts: What presses on what.
        who: Which character a link belongs to, shape (nl,); -1 is none.
    """
    count = len(who)
    one, two = (np.append(who, -1)[np.minimum(x, count)] for x in (contacts.link, contacts.other))
    kept = (contacts.other < 0) | (one != two) | (one < 0)
    return Contacts(
        contacts.point[kept], contacts.force[kept], contacts.link[kept], contacts.other[kept]
    )


def gathered(contacts: Contacts, per_newton: float, longest: float) -> tuple[Floats, Floats]:
    """Arrows of the forces between each two things that touch, where they act together.

    Args:
        contacts: What presses on what.
        per_newton: Length of an arrow [m/N].
        longest: No arrow is longer [m].

    Returns:
        Where they start and where they point [m], shape (k, 3) each.
    """
    if not len(contacts.link):
        return np.zeros((0, 3)), np.zeros((0, 3))
    pairs = np.stack([contacts.link, contacts.other], axis=1)
    found, which = np.unique(pairs, axis=0, return_inverse=True)
    force, point, press = np.zeros((len(found), 3)), np.zeros((len(found), 3)), np.zeros(len(found))
    size = np.linalg.norm(contacts.force, axis=1)
    which = which.reshape(-1)
    np.add.at(force, which, contacts.force)
    np.add.at(point, which, contacts.point * size[:, None])
    np.add.at(press, which, size)
    some = press > 0.0
    way = per_newton * force[some]
    length = np.linalg.norm(way, axis=1, keepdims=True)
    way *= np.minimum(1.0, longest / np.maximum(length, 1e-9))
    return point[some] / press[some, None], way


def torque_colors(share: Floats) -> Floats:
    """Colours of links by their share of torque, shape (nl,) -> (nl, 3)."""
    at = np.clip(share, 0.0, 1.0)
    return np.stack([np.interp(at, (0.0, 0.5, 1.0), c) for c in TORQUES.T], axis=-1)


def sizes(index: SceneIndex) -> tuple[float, float]:
    """Mass [kg] and height [m] of the first character; a lying one is as high as it is long."""
    part = next(iter(index.scene.forest.parts.values()))
    mass = float(index.scene.forest.link_mass[part.links].sum())
    place = forward_kinematics(index.scene, index.scene.forest.rest_q)[0][part.links]
    return max(mass, 1e-3), max(float(np.ptp(place, axis=0).max()), 0.2)


def bytes_of(rgb: Rgb) -> tuple[int, int, int]:
    """A colour as viser takes it: 0 to 255."""
    red, green, blue = (round(255 * x) for x in rgb)
    return red, green, blue


# ---- goals on the stage: points that links should reach, with handles to drag them by

GOAL = (0.95, 0.62, 0.07)
HANDLE, BALL, LINE = 0.2, 0.02, 0.005
"""Size of a handle, radius of a goal and thickness of the line to it, in heights."""

Point = tuple[float, float, float]

_numbers = itertools.count(1)


class Goal:
    """One goal on the stage: a handle, a ball in it, and a line from the link.

    Args:
        api: viser's scene.
        prefix: Name of the node it stands under.
        height: Of the character [m].
        moved: Called with where the handle is dragged to on the page [m].
    """

    def __init__(
        self, api: Any, prefix: str, height: float, moved: Callable[[Floats], None]
    ) -> None:
        # a name of its own: viser would take a new node for the old one, if it had the same name
        name = f"{prefix}/goal-{next(_numbers)}"
        self._handle = api.add_transform_controls(
            name, scale=HANDLE * height, disable_rotations=True, depth_test=False
        )
        self._ball = api.add_icosphere(
            f"{name}/ball", radius=BALL * height, color=bytes_of(GOAL), cast_shadow=False
        )
        self._line = api.add_line_segments(
            f"{name}-line", np.zeros((1, 2, 3)), bytes_of(GOAL), thickness=LINE * height
        )
        self._held: set[int] = set()

        async def dragged(event: Any) -> None:
            """Begin to drag, go on, or let go; coroutines come in order."""
            if event.phase == "start":
                self._held.add(event.client_id)
            elif event.phase == "end":
                self._held.discard(event.client_id)
            else:
                moved(np.array(self._handle.position, dtype=float))

        self._handle.on_update(dragged)

    def update(self, to: Floats, link: Floats) -> None:
        """Show it.

        Args:
            to: Where the goal is on the page [m]; a handle that is held is where the hand is.
            link: Where the link's point is [m].
        """
        if not self._held:
            self._handle.position = to
        else:
            to = np.array(self._handle.position, dtype=float)
        self._line.points = np.array([[link, to]])

    def let_go(self, page: int) -> None:
        """A page is gone: it holds nothing any more."""
        self._held.discard(page)

    def remove(self) -> None:
        """Take it off the stage."""
        for node in (self._line, self._ball, self._handle):
            node.remove()


class Goals:
    """All goals of a scene.

    Args:
        api: viser's scene.
        prefix: Name of the node they stand under.
        moved: Called with the name of a goal and where it is dragged to on the page [m].
    """

    def __init__(self, api: Any, prefix: str, moved: Callable[[str, Floats], None]) -> None:
        self._api, self._prefix, self._moved = api, prefix, moved
        self._goals: dict[str, Goal] = {}

    def update(
        self, goals: dict[str, Point], measures: Measures, at: Floats, height: float
    ) -> None:
        """Show these, and no others.

        Args:
            goals: Name and place [m] of each.
            measures: The scene.
            at: The place of the world that is the page's origin [m], shape (3,).
            height: Of the character [m].
        """
        for name in set(self._goals) - set(goals):
            self._goals.pop(name).remove()
        if not goals:
            return
        origin, turn = forward_kinematics(measures.index.scene, measures.q)
        for name, to in goals.items():
            try:
                link, place = place_of(measures.index.character, name)
            except PoiseError:
                continue  # of the scene before, whose place another takes just now
            i = measures.index.link_index(link)
            if name not in self._goals:
                self._goals[name] = self._made(name, height)
            self._goals[name].update(
                np.array(to) - at, origin[i] + quat_matrix(turn[i]) @ place - at
            )

    def let_go(self, page: int) -> None:
        """A page is gone."""
        for goal in list(self._goals.values()):
            goal.let_go(page)

    def clear(self) -> None:
        """Take all off the stage."""
        for goal in self._goals.values():
            goal.remove()
        self._goals.clear()

    def _made(self, name: str, height: float) -> Goal:
        return Goal(self._api, self._prefix, height, lambda to: self._moved(name, to))
