"""The live stage: a scene of the session as the browser shows it, and what the mouse does there."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from poise.dynamics import forward_kinematics
from poise.math.arrays import Floats
from poise.math.pose import quat_matrix
from poise.model.scene import scene_of
from poise.studio.marks import Goals, Marks, See, torque_colors
from poise.studio.snapshot import Measures, Snapshot
from poise.view.bodies import Bodies
from poise.view.browser import Stage
from poise.view.camera import Camera, frame
from poise.view.drawing import GHOST, drawing_of, hull_points
from poise.view.ghosts import apart
from poise.view.surroundings import ground_drawing, still_drawing

if TYPE_CHECKING:
    from poise.studio.scene_index import SceneIndex

ROOM = "/world"
"""The node that everything stands under."""

ASPECT = 0.85  # of the part of the page that no panel covers
HASTE = 0.2  # share of the way to the character that the picture goes with each update
JUMP = 4.0  # a character that is farther away is followed at once [m]


class LiveStage:
    """What all pages see.

    Args:
        server: viser's server.
        drag: Called with link, where to [m], and by which point in the link's frame [m].
        release: Called with the link that is let go.
        push: Called with link, direction and whether a ball is meant instead, and from where.
        goal: Called with the name of a goal and where it is dragged to [m].
    """

    def __init__(
        self,
        server: Any,
        drag: Callable[[int, Floats, Floats], None],
        release: Callable[[int], None],
        push: Callable[[int, Floats, Floats, bool], None],
        goal: Callable[[str, Floats], None],
    ) -> None:
        self._server, self._drag, self._release, self._push = server, drag, release, push
        server.scene.add_frame(ROOM, show_axes=False)
        self._actors: Actors | None = None
        self._beside: Actors | None = None
        self._moment: Measures | None = None
        self._held: dict[int, tuple[int, Floats]] = {}
        self._at = self._aim = np.zeros(3)
        self.goals = Goals(server.scene, ROOM, lambda name, to: goal(name, self.to_world(to)))

    def update(self, snapshot: Snapshot, see: See) -> None:
        """Show a snapshot."""
        measures = snapshot.measures
        if self._actors is None or self._actors.index.number != measures.index.number:
            self._change(measures)
        assert self._actors is not None
        self._moment = measures
        self._go(measures, see.follow)
        beside = snapshot.beside
        title = "" if beside is None else snapshot.name or "live"
        watch = snapshot.controls.watch
        self._actors.update(measures, self._at, snapshot.trail, watch, see, title)
        wanted = snapshot.controls.goals if snapshot.mode == "live" else {}
        self.goals.update(wanted, measures, self._at, self._actors.height)
        self._compare(beside, see, snapshot.beside_name)

    def camera(self, azimuth: float = math.radians(-55.0)) -> Camera:
        """A camera that shows the scene as it is, in the coordinates of the page.

        Args:
            azimuth: Where it stands, counted from the x axis to the left [rad].
        """
        assert self._moment is not None
        scene = self._moment.index.scene
        balls, rest = (hull_points(drawing_of(scene, q)) for q in (self._moment.q, None))
        if len(rest):
            # who crouches may rise
            top = (rest[:, 2] + rest[:, 3]).max()
            balls = np.concatenate([balls, [(*middle_of(self._moment)[:2], top, 0.0)]])
        if self._beside is not None:
            balls = np.concatenate([balls, balls - (0.0, self._beside.aside, 0.0, 0.0)])
        near = frame(balls, azimuth, math.radians(12.0), ASPECT, math.radians(40.0), 0.16)
        # where the room will be, once it has come up with the characters
        return near.moved(-self._aim)

    def to_world(self, point: Any) -> Floats:
        """A point of the page, in the world [m]."""
        there: Floats = np.asarray(point, dtype=float) + self._at
        return there

    def _change(self, measures: Measures) -> None:
        """Another scene."""
        if self._actors is not None:
            self._actors.remove()
        self._held.clear()
        self.goals.clear()
        # a name of its own: viser would take a new node for the old one, if it had the same name
        name = f"{ROOM}/live-{measures.index.number}"
        self._actors = Actors(self._server.scene, name, measures.index)
        self._listen(self._actors.bodies)
        self._at = self._aim = middle_of(measures) * (1.0, 1.0, 0.0)

    def _compare(self, measures: Measures | None, see: See, title: str) -> None:
        """The recording beside."""
        number = None if measures is None else measures.index.number
        if self._beside is not None and self._beside.index.number != number:
            self._beside.remove()
            self._beside = None
        if measures is None:
            return
        if self._beside is None:
            scene, aside = self._server.scene, measures.index.width
            name = f"{ROOM}/beside-{measures.index.number}"
            self._beside = Actors(scene, name, measures.index, aside)
        self._beside.update(measures, self._at, np.zeros((0, 3)), 0, see, title)

    def _go(self, measures: Measures, follow: bool) -> None:
        """Let the page's origin follow the characters, if they can go."""
        if not goes(measures.index):
            self._at = self._aim = np.zeros(3)
            return
        self._aim = middle_of(measures) * (1.0, 1.0, 0.0) if follow else self._at
        way = self._aim - self._at
        self._at = self._at + (1.0 if np.abs(way).max() > JUMP else HASTE) * way

    # ---- the mouse

    def _listen(self, bodies: Bodies) -> None:
        """Clicks and drags on the bodies; coroutines, so that they come in order."""

        async def dragged(event: Any) -> None:
            self._dragged(bodies, event)

        async def clicked(event: Any) -> None:
            link = self._link(bodies, event)
            if link is not None:
                ball = event.modifier is not None
                way = np.asarray(event.ray_direction)
                self._push(link, way, self.to_world(event.ray_origin), ball)

        for handle in bodies.handles:
            handle.on_drag("left")(dragged)
            handle.on_click(clicked)
            handle.on_click(modifier="shift")(clicked)

    def _dragged(self, bodies: Bodies, event: Any) -> None:
        """Begin to drag, go on, or let go."""
        held = self._held.get(event.client_id)
        if event.phase == "end":
            if self._held.pop(event.client_id, None) is not None and held is not None:
                self._release(held[0])
            return
        if held is None and event.phase == "start":
            link, measures = self._link(bodies, event), self._moment
            if link is None or measures is None:
                return
            place, turn = forward_kinematics(measures.index.scene, measures.q)
            arm = self.to_world(event.start_position) - place[link]
            held = self._held[event.client_id] = (link, quat_matrix(turn[link]).T @ arm)
        if held is not None:
            self._drag(held[0], self.to_world(event.end_position), held[1])

    def _link(self, bodies: Bodies, event: Any) -> int | None:
        """The link under the mouse."""
        if event.instance_index is None:
            return None
        found = bodies.link_of(event.target, event.instance_index)
        return None if found is None else found[1]


# ---- actors: one scene of the session on the stage, with its ground and marks

GHOST_OPACITY = 0.28
GLASS = 0.4  # opacity of bodies that one sees through
APART = 0.012  # links of the ghost that are nearer to those of the body are not shown [m]
WAITING = (0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)  # where a ball is that nobody threw
AHEAD = 4.0  # how far the character goes before the ground is laid anew [m]


class Actors:
    """One scene on the stage: bodies, ghost, balls, ground and marks.

    Args:
        api: viser's scene.
        prefix: Name of the node it stands under.
        index: Who is in the scene.
        aside: How far to the right of its place it is shown [m]; then it has no level ground.
    """

    def __init__(self, api: Any, prefix: str, index: SceneIndex, aside: float = 0.0) -> None:
        self.index, self.aside = index, aside
        self._node = api.add_frame(prefix, show_axes=False, position=(0.0, -aside, 0.0))
        self._stage = Stage(api, prefix)
        self._floor = api.add_frame(f"{prefix}/floor", show_axes=False)
        self._ground = Stage(api, f"{prefix}/floor")
        self.bodies = self._stage.bodies("bodies", index.scene)
        self._ghost = self._stage.bodies("ghost", index.scene, color=GHOST, opacity=GHOST_OPACITY)
        self._mine = _links_of(index)
        self._balls: Bodies | None = None
        if index.projectiles:
            self._balls = self._stage.bodies("balls", scene_of(index.projectiles))
        self._marks = Marks(self._stage, api, prefix, index)
        self._title = api.add_label(
            f"{prefix}/title", "", font_screen_scale=1.1, anchor="bottom-center", visible=False
        )
        self._laid: Floats | None = None
        self._painted, self._thrown, self._glass = False, True, False

    def update(
        self, world: Measures, at: Floats, trail: Floats, watch: int, see: See, title: str = ""
    ) -> None:
        """Show a measures of the scene.

        Args:
            world: The scene and what was measured.
            at: The place of the world that is the page's origin [m], shape (3,).
            trail: As of `Marks.update`.
            watch: As of `Marks.update`.
            see: What is to be seen.
            title: What to write above it.
        """
        self._lay(middle_of(world))
        self._floor.position = -at
        # a slow browser shows all of this late, but together: who walks stays in the picture
        measures = moved(world, at)
        self._paint(measures, see.torque)
        self._glaze(see.inside)
        self.bodies.update(measures.q)
        self._haunt(measures.q, measures.reference if see.ghost else None)
        self._throw(measures.projectiles)
        self._marks.update(measures, ground_below(world), trail - at, watch, see)
        self._title.visible = bool(title)
        if title:
            self._title.text = title
            self._title.position = middle_of(measures) + (0.0, 0.0, 0.75 * self._marks.height)

    @property
    def height(self) -> float:
        """Of the first character [m]."""
        return self._marks.height

    def remove(self) -> None:
        """Take it off the stage."""
        self._marks.remove()
        self._stage.remove()
        self._ground.remove()
        self._floor.remove()
        self._title.remove()
        self._node.remove()

    def _haunt(self, q: Floats, reference: Floats | None) -> None:
        """Show the reference where it is not what is there; objects have none."""
        if reference is not None:
            aside = apart(self.index.scene, q, reference) > APART
            self._ghost.update(reference, shown=self._mine & aside)
        if self._ghost.visible != (reference is not None):
            self._ghost.visible = reference is not None

    def _throw(self, thrown: Floats) -> None:
        """Show the balls that are out."""
        out = thrown[:, 0] > 0.0
        if self._balls is not None and (out.any() or self._thrown):
            q = np.where(out[:, None], thrown[:, 1:8], WAITING)
            self._balls.update(q.ravel(), shown=out)
        self._thrown = bool(out.any())

    def _paint(self, measures: Measures, torque: bool) -> None:
        if torque:
            self.bodies.color_links(torque_colors(measures.torque_ratio))
        elif self._painted:
            self.bodies.color_links(None)
        self._painted = torque

    def _glaze(self, glass: bool) -> None:
        """Let one see through the bodies, or not: what is inside them or below their feet."""
        if glass != self._glass:
            self._glass = glass
            for handle in self.bodies.handles:
                handle.opacity = GLASS if glass else None

    def _lay(self, middle: Floats) -> None:
        """Lay the ground where the character is, when it has gone some way."""
        if self._laid is not None and np.abs(middle - self._laid)[:2].max() < AHEAD:
            return
        if self._laid is None:
            self._ground.update("still", still_drawing(self.index.settings))
        if not self.aside:
            self._ground.update("ground", ground_drawing(self.index.settings, middle, middle))
        self._laid = middle


def middle_of(measures: Measures) -> Floats:
    """The middle of all mass centres [m], shape (3,)."""
    known = measures.com[np.isfinite(measures.com).all(axis=1)]
    middle: Floats = known.mean(axis=0) if len(known) else np.zeros(3)
    return middle


def moved(measures: Measures, at: Floats) -> Measures:
    """A measures as seen from a place of the world: all that is shown is moved by -at.

    Args:
        measures: The measures; if `at` is not 0, all its roots are free.
        at: [m], shape (3,), level.
    """
    forest = measures.index.scene.forest
    roots = forest.q_adr[forest.kind == 0]

    def poses(q: Floats) -> Floats:
        near: Floats = q.copy()
        for k in range(2):
            near[roots + k] -= at[k]
        return near

    contacts, thrown = measures.contacts, measures.projectiles.copy()
    thrown[:, 1:3] -= at[:2]
    return replace(
        measures,
        q=poses(measures.q),
        reference=None if measures.reference is None else poses(measures.reference),
        projectiles=thrown,
        contacts=replace(contacts, point=contacts.point - at),
        com=measures.com - at,
        cop=measures.cop - at,
        cmp=measures.cmp - at,
        planned_cop=measures.planned_cop - at,
        support=tuple(corners - at for corners in measures.support),
    )


def goes(index: SceneIndex) -> bool:
    """Whether all of a scene may go anywhere: nobody hangs on the world."""
    return all(one.joints and one.joints[0].kind == "free" for one in index.scene.characters)


def ground_below(measures: Measures) -> Floats:
    """Height of the ground under each mass centre [m], shape (m,)."""
    height: Floats = np.asarray(measures.index.ground(measures.com[:, 0], measures.com[:, 1]))
    return height


def _links_of(index: SceneIndex) -> Any:
    """Which links of the scene are those of characters, shape (nl,)."""
    mine = np.zeros(index.scene.nl, dtype=bool)
    for name in index.names:
        mine[index.scene.forest.parts[name].links] = True
    return mine
