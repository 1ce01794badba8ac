"""Marks in a scene: points, trail, support polygon, force arrows, limit lights, goal handles."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poise.anatomy.body import place_of
from poise.dynamics import GRAVITY, forward_kinematics
from poise.errors import PoiseError
from poise.math.arrays import Floats
from poise.simulation.contact.contacts import Contacts
from poise.studio.scene_index import SceneIndex
from poise.studio.snapshot import Measures
from poise.view.overlays import FORCE, PATH, POINT, arrow_vectors, pair_forces
from poise.view.stage import Stage

Rgb = tuple[float, float, float]

PRESSURE: Rgb = (0.80, 0.10, 0.45)
PIVOT: Rgb = (0.10, 0.45, 0.90)
PLANNED: Rgb = (0.99, 0.62, 0.82)
SUPPORT: Rgb = (0.16, 0.60, 0.36)
AT_LIMIT: Rgb = (0.58, 0.16, 0.78)
SATURATED: Rgb = (0.93, 0.12, 0.10)
TORQUES = np.array([(0.60, 0.65, 0.72), (0.97, 0.80, 0.28), (0.80, 0.10, 0.08)])
"""Colors of no torque, half of the limit, and all of it."""

CORNERS = 12  # of a support polygon that are drawn
TRAIL = 150  # pieces of the trail
ABOVE = 0.006  # height of flat marks above the ground [m]
WEIGHT = 0.45  # length of the arrow of a character's weight, in its heights
LONGEST = 1.0  # arrow, in heights


def _shown(label: str, hint: str, on: bool = True) -> Any:
    """An option of the view, with the label and the hint of its control."""
    return field(default=on, metadata={"label": label, "hint": hint})


@dataclass(frozen=True)
class ViewOptions:
    """What a page shows besides the bodies."""

    ghost: bool = _shown("Ghost", "The reference, see-through")
    com: bool = _shown("Center of mass", "And the point below it on the ground")
    trail: bool = _shown("Trail", "Path of the center of mass")
    pressure: bool = _shown("CoP, CMP", "Center of pressure and centroidal moment pivot")
    support: bool = _shown("Support", "The support polygon")
    forces: bool = _shown("Forces", "Contact forces, without those within a character")
    torque: bool = _shown("Torques", "Colors: gray is none, red is the limit of a joint", False)
    limits: bool = _shown("Limits", "Lights at joints at a limit of their range or torque")
    labels: bool = _shown("Names", "Of the points", False)
    inside: bool = _shown("See through", "Transparent bodies", False)
    follow: bool = _shown("Follow", "The view moves with the character")


class Marks:
    """The marks of one scene.

    Args:
        stage: The stage that they are on.
        api: viser's scene.
        prefix: Name of the stage's node.
        index: Index of the scene.
    """

    def __init__(self, stage: Stage, api: Any, prefix: str, index: SceneIndex) -> None:
        self._stage, self._api, self._name = stage, api, f"{prefix}/marks"
        self._scene, self._owner = index.scene, index.owner
        mass, self.height = mass_and_height(index)
        self._per_newton = WEIGHT * self.height / (mass * abs(GRAVITY[2]))
        self._nodes: dict[str, Any] = {}

    def update(
        self, measures: Measures, ground: Floats, trail: Floats, watch: int, options: ViewOptions
    ) -> None:
        """Shows the marks at one time.

        Args:
            measures: The scene and its measures.
            ground: Height of the ground under each center of mass [m], shape (m,).
            trail: Path of the watched center of mass [m], shape (t, 3).
            watch: Number of the watched character.
            options: What is shown.
        """
        r = 0.018 * self.height
        # one inside the body, and one on the ground below it
        below = measures.com.copy()
        below[:, 2] = ground + ABOVE
        self._points("com", np.concatenate([measures.com, below]), 1.4 * r, POINT, options.com)
        self._points("cop", measures.cop, r, PRESSURE, options.pressure)
        self._points("cmp", measures.cmp, r, PIVOT, options.pressure)
        # a ball sunk into the ground to its top looks like a disc around the CoP
        sunk = measures.planned_cop - (0.0, 0.0, 1.6 * r)
        self._points("planned", sunk, 2.4 * r, PLANNED, options.pressure)
        self._trail(trail if options.trail else trail[:0])
        self._support(measures.support if options.support else ())
        self._forces(measures.contacts if options.forces else None)
        self._limits(measures, options.limits)
        self._labels(measures, watch, options)

    def remove(self) -> None:
        """Removes them from the page."""
        for node in self._nodes.values():
            node.remove()
        self._nodes = {}
        for what in ("com", "cop", "cmp", "planned", "forces", "limits"):
            self._stage.drop(f"mark-{what}")

    def _points(self, what: str, at: Floats, radius: float, color: Rgb, visible: bool) -> None:
        points = at[np.isfinite(at).all(axis=1)] if visible else at[:0]
        self._stage.balls(f"mark-{what}", points, radius=radius, color=color)

    def _trail(self, path: Floats) -> None:
        """The last pieces of the trail; missing ones have no length."""
        path = path[-TRAIL - 1 :]
        pieces = np.zeros((TRAIL, 2, 3))
        if len(path) > 1:
            pieces[:] = path[-1]
            pieces[: len(path) - 1] = np.stack([path[:-1], path[1:]], axis=1)
        self._lines("trail", pieces, PATH, 0.006 * self.height, visible=len(path) > 1)

    def _support(self, polygons: tuple[Floats, ...]) -> None:
        """Rim and area of the support polygons."""
        some = [p[:CORNERS] for p in polygons if len(p) > 1]
        ring = np.zeros((max(len(some), 1), CORNERS, 3))
        for row, corners in zip(ring, some, strict=False):
            row[: len(corners)] = corners
            row[len(corners) :] = corners[-1]
        ring += (0.0, 0.0, ABOVE)
        rim = np.stack([ring, np.roll(ring, -1, axis=1)], axis=2).reshape(-1, 2, 3)
        self._lines("rim", rim, SUPPORT, 0.006 * self.height, visible=bool(some))
        self._area(ring, visible=bool(some))

    def _area(self, ring: Floats, visible: bool) -> None:
        node = self._nodes.get("area")
        if node is not None and node.vertices.shape[0] != ring.shape[0] * CORNERS:
            self._nodes.pop("area").remove()
            node = None
        vertices = ring.reshape(-1, 3).astype(np.float32)
        if node is None:
            fan = np.array([(0, k, k + 1) for k in range(1, CORNERS - 1)])
            faces = (fan + CORNERS * np.arange(len(ring))[:, None, None]).reshape(-1, 3)
            node = self._api.add_mesh_simple(
                f"{self._name}/area", vertices, faces, color=rgb_bytes(SUPPORT), opacity=0.35,
                side="double", cast_shadow=False, receive_shadow=False,
            )  # fmt: skip
            self._nodes["area"] = node
        else:
            node.vertices = vertices
        node.visible = visible

    def _forces(self, contacts: Contacts | None) -> None:
        start = arrow = np.zeros((0, 3))
        if contacts is not None:
            external = external_contacts(contacts, self._owner)
            start, force = pair_forces(external)
            arrow = arrow_vectors(force, self._per_newton, LONGEST * self.height)
        self._stage.arrows("mark-forces", start, arrow, radius=0.009 * self.height, color=FORCE)

    def _limits(self, measures: Measures, visible: bool) -> None:
        """Lights at the joints that are at a limit of their range, or of their torque."""
        which = (
            np.flatnonzero(measures.at_limit | measures.saturated) if visible else np.zeros(0, int)
        )
        at = np.zeros((0, 3))
        if len(which):
            at = forward_kinematics(self._scene, measures.q)[0][which]
        color: Any = np.where(measures.saturated[which, None], SATURATED, AT_LIMIT).reshape(-1, 3)
        self._stage.balls("mark-limits", at, radius=0.04 * self.height, color=color)

    def _labels(self, measures: Measures, watch: int, options: ViewOptions) -> None:
        texts = {"CM": measures.com, "COP": measures.cop, "CMP": measures.cmp}
        chosen = {"CM": options.com, "COP": options.pressure, "CMP": options.pressure}
        for text, points in texts.items():
            at = points[min(watch, len(points) - 1)] if len(points) else np.full(3, np.nan)
            visible = options.labels and chosen[text] and bool(np.isfinite(at).all())
            node = self._nodes.get(text)
            if node is None and visible:
                node = self._nodes[text] = self._api.add_label(
                    f"{self._name}/{text}", text, font_screen_scale=0.8, anchor="bottom-left"
                )
            if node is not None:
                node.visible = visible
                if visible:
                    node.position = at + (0.0, 0.0, 0.03 * self.height)

    def _lines(
        self, what: str, pieces: Floats, color: Rgb, thickness: float, visible: bool
    ) -> None:
        node = self._nodes.get(what)
        if node is None:
            node = self._nodes[what] = self._api.add_line_segments(
                f"{self._name}/{what}", pieces, rgb_bytes(color), thickness=thickness
            )
        else:
            node.points = pieces
        node.visible = visible


def external_contacts(contacts: Contacts, owner: NDArray[np.int64]) -> Contacts:
    """Without contacts between links of one character.

    Args:
        contacts: The contacts.
        owner: Number of the character that a link belongs to, shape (nl,); -1 is none.
    """
    count = len(owner)
    one, two = (np.append(owner, -1)[np.minimum(x, count)] for x in (contacts.link, contacts.other))
    kept = (contacts.other < 0) | (one != two) | (one < 0)
    return contacts.rows(kept)


def torque_colors(ratio: Floats) -> Floats:
    """Colors of links by their torque ratio, shape (nl,) -> (nl, 3)."""
    at = np.clip(ratio, 0.0, 1.0)
    return np.stack([np.interp(at, (0.0, 0.5, 1.0), c) for c in TORQUES.T], axis=-1)


def mass_and_height(index: SceneIndex) -> tuple[float, float]:
    """Mass [kg] and height [m] of the first character; one that lies down counts by its length."""
    part = next(iter(index.scene.forest.parts.values()))
    mass = float(index.scene.forest.link_mass[part.links].sum())
    place = forward_kinematics(index.scene, index.scene.forest.rest_q)[0][part.links]
    return max(mass, 1e-3), max(float(np.ptp(place, axis=0).max()), 0.2)


def rgb_bytes(rgb: Rgb) -> tuple[int, int, int]:
    """A color in viser's range, 0 to 255."""
    red, green, blue = (round(255 * x) for x in rgb)
    return red, green, blue


# ---- goals

GOAL = (0.95, 0.62, 0.07)
HANDLE, BALL, LINE = 0.2, 0.02, 0.005
"""Size of a handle, radius of a goal and thickness of the line to it, in heights."""

Point = tuple[float, float, float]

_numbers = itertools.count(1)


class GoalHandle:
    """One goal: a handle, a ball in it, and a line from the link.

    Args:
        api: viser's scene.
        prefix: Name of the node that it is under.
        height: Of the character [m].
        on_move: Called with where the handle is dragged to on the page [m].
    """

    def __init__(
        self, api: Any, prefix: str, height: float, on_move: Callable[[Floats], object]
    ) -> None:
        # a unique name: viser takes a new node of the same name for the old one
        name = f"{prefix}/goal-{next(_numbers)}"
        self._handle = api.add_transform_controls(
            name, scale=HANDLE * height, disable_rotations=True, depth_test=False
        )
        self._ball = api.add_icosphere(
            f"{name}/ball", radius=BALL * height, color=rgb_bytes(GOAL), cast_shadow=False
        )
        self._line = api.add_line_segments(
            f"{name}-line", np.zeros((1, 2, 3)), rgb_bytes(GOAL), thickness=LINE * height
        )
        self._held: set[int] = set()

        async def dragged(event: Any) -> None:
            """Begins, continues or ends a drag; coroutines keep their order."""
            if event.phase == "start":
                self._held.add(event.client_id)
            elif event.phase == "end":
                self._held.discard(event.client_id)
            else:
                on_move(np.array(self._handle.position, dtype=float))

        self._handle.on_update(dragged)

    def update(self, to: Floats, link: Floats) -> None:
        """Shows it.

        Args:
            to: Where the goal is on the page [m]; a handle that is dragged stays at the mouse.
            link: Where the link's point is [m].
        """
        if not self._held:
            self._handle.position = to
        else:
            to = np.array(self._handle.position, dtype=float)
        self._line.points = np.array([[link, to]])

    def release(self, page: int) -> None:
        """Ends the drag of a page that has closed."""
        self._held.discard(page)

    def remove(self) -> None:
        """Removes it from the page."""
        for node in (self._line, self._ball, self._handle):
            node.remove()


class GoalHandles:
    """All goals of a scene.

    Args:
        api: viser's scene.
        prefix: Name of the node that they are under.
        on_move: Called with the name of a goal and where it is dragged to on the page [m].
    """

    def __init__(self, api: Any, prefix: str, on_move: Callable[[str, Floats], object]) -> None:
        self._api, self._prefix, self._on_move = api, prefix, on_move
        self._goals: dict[str, GoalHandle] = {}

    def update(
        self, goals: dict[str, Point], measures: Measures, at: Floats, height: float
    ) -> None:
        """Shows these goals, and no others.

        Args:
            goals: Name and place [m] of each.
            measures: The scene.
            at: The place of the world that is the page's origin [m], shape (3,).
            height: Of the character [m].
        """
        for name in set(self._goals) - set(goals):
            self._goals.pop(name).remove()
        index = measures.index
        for name, to in goals.items():
            try:
                link, place = place_of(index.character, name)
            except PoiseError:
                continue  # a goal of the scene before, which is being replaced
            if name not in self._goals:
                self._goals[name] = GoalHandle(
                    self._api, self._prefix, height, partial(self._on_move, name)
                )
            present = index.point(measures.q, index.link_index(link), place)
            self._goals[name].update(np.array(to) - at, present - at)

    def release(self, page: int) -> None:
        """Ends the drags of a page that has closed."""
        for goal in list(self._goals.values()):
            goal.release(page)

    def clear(self) -> None:
        """Removes all from the page."""
        for goal in self._goals.values():
            goal.remove()
        self._goals.clear()
