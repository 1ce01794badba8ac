"""The live view: a scene of the session in the browser, and clicks and drags in it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from poise.math.arrays import Floats
from poise.model.scene import scene_of
from poise.simulation.contact import Projectiles
from poise.studio.marks import GoalHandles, Marks, ViewOptions, torque_colors
from poise.studio.requests import Drag, Release, Request, SetGoal
from poise.studio.scene_index import SceneIndex
from poise.studio.snapshot import Measures, Snapshot
from poise.view.camera import Camera, frame
from poise.view.drawing import GHOST, drawing_of, ground_drawing, hull_points, static_drawing
from poise.view.overlays import link_distances
from poise.view.stage import Bodies, Stage

Vector = tuple[float, float, float]

ROOT_NODE = "/world"
"""The node that all others are under."""

ASPECT = 0.85  # of the part of the page that no panel covers
FOLLOW_RATE = 0.2  # part of the way to the character by which each update moves the view
FOLLOW_JUMP = 4.0  # a character that is farther away is followed at once [m]


class LiveView:
    """The scene that all pages show.

    Args:
        server: viser's server.
        submit: Takes a request, as `Session.submit`.
        click: Makes the request of a click from a link, the direction of the view, the place of
            the camera [m] and whether a ball is thrown.
    """

    def __init__(
        self,
        server: Any,
        submit: Callable[[Request], bool],
        click: Callable[[int, Vector, Vector, bool], Request],
    ) -> None:
        self._server, self._submit, self._click = server, submit, click
        server.scene.add_frame(ROOT_NODE, show_axes=False)
        self._view: SceneView | None = None
        self._beside: SceneView | None = None
        self._measures: Measures | None = None
        self._held: dict[int, tuple[int, Floats]] = {}
        self._origin = self._target_origin = np.zeros(3)
        self.goals = GoalHandles(
            server.scene,
            ROOT_NODE,
            lambda name, to: submit(SetGoal(name, _vector(self.to_world(to)))),
        )

    def update(self, snapshot: Snapshot, options: ViewOptions) -> None:
        """Shows a snapshot."""
        measures = snapshot.measures
        if self._view is None or self._view.index.number != measures.index.number:
            self._change(measures)
        assert self._view is not None
        self._measures = measures
        self._follow(measures, options.follow)
        beside = snapshot.beside
        title = "" if beside is None else snapshot.name or "live"
        watch = snapshot.controls.watch
        self._view.update(measures, self._origin, snapshot.trail, watch, options, title)
        goals = snapshot.controls.goals if snapshot.mode == "live" else {}
        self.goals.update(goals, measures, self._origin, self._view.height)
        self._compare(beside, options, snapshot.beside_name)

    def camera(self, azimuth: float = math.radians(-55.0)) -> Camera:
        """A camera that shows the scene as it is, in the coordinates of the page.

        Args:
            azimuth: Direction from the scene, from the x axis counterclockwise [rad].
        """
        assert self._measures is not None
        scene = self._measures.index.scene
        balls, rest = (hull_points(drawing_of(scene, q)) for q in (self._measures.q, None))
        if len(rest):
            # a crouching character may rise
            top = (rest[:, 2] + rest[:, 3]).max()
            balls = np.concatenate([balls, [(*center_of_scene(self._measures)[:2], top, 0.0)]])
        if self._beside is not None:
            balls = np.concatenate([balls, balls - (0.0, self._beside.aside, 0.0, 0.0)])
        near = frame(balls, azimuth, math.radians(12.0), ASPECT, math.radians(40.0), 0.16)
        # where the origin will be, once it has reached the characters
        return near.moved(-self._target_origin)

    def to_world(self, point: Any) -> Floats:
        """A point of the page, in the world [m]."""
        there: Floats = np.asarray(point, dtype=float) + self._origin
        return there

    def _change(self, measures: Measures) -> None:
        """Shows another scene."""
        if self._view is not None:
            self._view.remove()
        self._held.clear()
        self.goals.clear()
        # a unique name: viser takes a new node of the same name for the old one
        name = f"{ROOT_NODE}/live-{measures.index.number}"
        self._view = SceneView(self._server.scene, name, measures.index)
        self._add_callbacks(self._view.bodies)
        self._origin = self._target_origin = center_of_scene(measures) * (1.0, 1.0, 0.0)

    def _compare(self, measures: Measures | None, options: ViewOptions, title: str) -> None:
        """Shows the recording beside, or removes it."""
        number = None if measures is None else measures.index.number
        if self._beside is not None and self._beside.index.number != number:
            self._beside.remove()
            self._beside = None
        if measures is None:
            return
        if self._beside is None:
            scene, aside = self._server.scene, measures.index.width
            name = f"{ROOT_NODE}/beside-{measures.index.number}"
            self._beside = SceneView(scene, name, measures.index, aside)
        self._beside.update(measures, self._origin, np.zeros((0, 3)), 0, options, title)

    def _follow(self, measures: Measures, follow: bool) -> None:
        """Moves the page's origin towards the characters, if they can travel."""
        if not can_travel(measures.index):
            self._origin = self._target_origin = np.zeros(3)
            return
        center = center_of_scene(measures) * (1.0, 1.0, 0.0)
        self._target_origin = center if follow else self._origin
        way = self._target_origin - self._origin
        rate = 1.0 if np.abs(way).max() > FOLLOW_JUMP else FOLLOW_RATE
        self._origin = self._origin + rate * way

    # ---- the mouse

    def _add_callbacks(self, bodies: Bodies) -> None:
        """Reacts to clicks and drags on the bodies; coroutines keep their order."""

        async def dragged(event: Any) -> None:
            self._dragged(bodies, event)

        async def clicked(event: Any) -> None:
            link = self._link(bodies, event)
            if link is not None:
                ball, direction = event.modifier is not None, _vector(event.ray_direction)
                eye = _vector(self.to_world(event.ray_origin))
                self._submit(self._click(link, direction, eye, ball))

        for handle in bodies.handles:
            handle.on_drag("left")(dragged)
            handle.on_click(clicked)
            handle.on_click(modifier="shift")(clicked)

    def _dragged(self, bodies: Bodies, event: Any) -> None:
        """Begins, continues or ends a drag."""
        held = self._held.get(event.client_id)
        if event.phase == "end":
            if self._held.pop(event.client_id, None) is not None and held is not None:
                self._submit(Release(held[0]))
            return
        if held is None and event.phase == "start":
            link, measures = self._link(bodies, event), self._measures
            if link is None or measures is None:
                return
            start = self.to_world(event.start_position)
            held = link, measures.index.point_in_link(measures.q, link, start)
            self._held[event.client_id] = held
        if held is not None:
            to = _vector(self.to_world(event.end_position))
            self._submit(Drag(held[0], to, _vector(held[1])))

    def _link(self, bodies: Bodies, event: Any) -> int | None:
        """The link under the mouse."""
        if event.instance_index is None:
            return None
        found = bodies.link_of(event.target, event.instance_index)
        return None if found is None else found[1]


# ---- one scene

REFERENCE_OPACITY = 0.28
TRANSPARENT = 0.4  # opacity of transparent bodies
MIN_REFERENCE_OFFSET = 0.012  # links of the reference nearer to the body are not shown [m]
UNTHROWN_POSE = (0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)  # of a ball that was not thrown
GROUND_MARGIN = 4.0  # how far the character goes before the ground is drawn anew [m]


class SceneView:
    """One scene: bodies, reference, balls, ground and marks.

    Args:
        api: viser's scene.
        prefix: Name of the node that it is under.
        index: Index of the scene.
        aside: How far to the right of its place it is shown [m]; then it has no level ground.

    Attributes:
        height: Of the first character [m].
    """

    def __init__(self, api: Any, prefix: str, index: SceneIndex, aside: float = 0.0) -> None:
        self.index, self.aside = index, aside
        self._node = api.add_frame(prefix, show_axes=False, position=(0.0, -aside, 0.0))
        self._stage = Stage(api, prefix)
        self._floor = api.add_frame(f"{prefix}/floor", show_axes=False)
        self._ground = Stage(api, f"{prefix}/floor")
        self.bodies = self._stage.bodies("bodies", index.scene)
        self._reference = self._stage.bodies(
            "ghost", index.scene, color=GHOST, opacity=REFERENCE_OPACITY
        )
        self._balls: Bodies | None = None
        if index.projectiles:
            self._balls = self._stage.bodies("balls", scene_of(index.projectiles))
        self._marks = Marks(self._stage, api, prefix, index)
        self.height = self._marks.height
        self._title = api.add_label(
            f"{prefix}/title", "", font_screen_scale=1.1, anchor="bottom-center", visible=False
        )
        self._ground_center: Floats | None = None
        self._colored, self._thrown, self._transparent = False, True, False

    def update(
        self,
        world: Measures,
        at: Floats,
        trail: Floats,
        watch: int,
        options: ViewOptions,
        title: str = "",
    ) -> None:
        """Shows the scene at one time.

        Args:
            world: The scene and its measures, in the world.
            at: The place of the world that is the page's origin [m], shape (3,).
            trail: As of `Marks.update`.
            watch: As of `Marks.update`.
            options: What is shown.
            title: Text above it.
        """
        self._update_ground(center_of_scene(world))
        self._floor.position = -at
        # a slow browser shows all of this late, but together: a walking character stays in view
        measures = to_page(world, at)
        self._color_links(measures, options.torque)
        self._set_transparency(options.inside)
        self.bodies.update(measures.q)
        self._update_reference(measures.q, measures.reference if options.ghost else None)
        self._update_projectiles(measures.projectiles)
        self._marks.update(measures, ground_below(world), trail - at, watch, options)
        self._title.visible = bool(title)
        if title:
            self._title.text = title
            self._title.position = center_of_scene(measures) + (0.0, 0.0, 0.75 * self.height)

    def remove(self) -> None:
        """Removes it from the page."""
        shown = (self._marks, self._stage, self._ground, self._floor, self._title, self._node)
        for part in shown:
            part.remove()

    def _update_reference(self, q: Floats, reference: Floats | None) -> None:
        """Shows the reference where it differs from the body; objects have none."""
        if reference is not None:
            offset = link_distances(self.index.scene, q, reference) > MIN_REFERENCE_OFFSET
            self._reference.update(reference, shown=(self.index.owner >= 0) & offset)
        if self._reference.visible != (reference is not None):
            self._reference.visible = reference is not None

    def _update_projectiles(self, balls: Projectiles) -> None:
        """Shows the balls that were thrown."""
        out = balls.thrown
        if self._balls is not None and (out.any() or self._thrown):
            q = np.where(out[:, None], balls.q, UNTHROWN_POSE)
            self._balls.update(q.ravel(), shown=out)
        self._thrown = bool(out.any())

    def _color_links(self, measures: Measures, torque: bool) -> None:
        if torque:
            self.bodies.color_links(torque_colors(measures.torque_ratio))
        elif self._colored:
            self.bodies.color_links(None)
        self._colored = torque

    def _set_transparency(self, on: bool) -> None:
        """Makes the bodies transparent, or not."""
        if on != self._transparent:
            self._transparent = on
            for handle in self.bodies.handles:
                handle.opacity = TRANSPARENT if on else None

    def _update_ground(self, center: Floats) -> None:
        """Draws the ground around the character, when it has gone some way."""
        drawn = self._ground_center
        if drawn is not None and np.abs(center - drawn)[:2].max() < GROUND_MARGIN:
            return
        if drawn is None:
            self._ground.update("still", static_drawing(self.index.settings))
        if not self.aside:
            self._ground.update("ground", ground_drawing(self.index.settings, center, center))
        self._ground_center = center


def center_of_scene(measures: Measures) -> Floats:
    """Mean of the centers of mass of all characters [m], shape (3,)."""
    known = measures.com[np.isfinite(measures.com).all(axis=1)]
    center: Floats = known.mean(axis=0) if len(known) else np.zeros(3)
    return center


def to_page(measures: Measures, at: Floats) -> Measures:
    """Measures in the frame of the page: all that is shown is moved by -at.

    Args:
        measures: The measures in the world; if `at` is not 0, all its roots are free.
        at: [m], shape (3,), level.
    """
    forest = measures.index.scene.forest
    roots = forest.q_adr[forest.kind == 0]

    def poses(q: Floats) -> Floats:
        near: Floats = q.copy()
        for k in range(2):
            near[roots + k] -= at[k]
        return near

    contacts, balls = measures.contacts, measures.projectiles
    balls = balls._replace(q=balls.q - [*at[:2], 0.0, 0.0, 0.0, 0.0, 0.0])
    return replace(
        measures,
        q=poses(measures.q),
        reference=None if measures.reference is None else poses(measures.reference),
        projectiles=balls,
        contacts=contacts._replace(point=contacts.point - at),
        com=measures.com - at,
        cop=measures.cop - at,
        cmp=measures.cmp - at,
        planned_cop=measures.planned_cop - at,
        support=tuple(corners - at for corners in measures.support),
    )


def can_travel(index: SceneIndex) -> bool:
    """Whether all characters of a scene have free roots."""
    return all(one.joints and one.joints[0].kind == "free" for one in index.scene.characters)


def ground_below(measures: Measures) -> Floats:
    """Height of the ground under each center of mass [m], shape (m,)."""
    height: Floats = np.asarray(measures.index.ground(measures.com[:, 0], measures.com[:, 1]))
    return height


def _vector(values: Any) -> Vector:
    x, y, z = (float(value) for value in values)
    return x, y, z
