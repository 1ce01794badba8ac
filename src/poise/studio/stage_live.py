"""The live stage: a scene of the session as the browser shows it, and what the mouse does there."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from poise.dynamics import forward_kinematics
from poise.math.arrays import Floats
from poise.math.rotation import quat_matrix
from poise.studio.actors import Actors, goes, middle_of
from poise.studio.goals import Goals
from poise.studio.marks import See
from poise.studio.snapshot import Moment, Snapshot
from poise.view.bodies import Bodies
from poise.view.camera import Camera, frame
from poise.view.drawing import drawing_of, hull_points

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
        self._moment: Moment | None = None
        self._held: dict[int, tuple[int, Floats]] = {}
        self._at = self._aim = np.zeros(3)
        self.goals = Goals(server.scene, ROOM, lambda name, to: goal(name, self.to_world(to)))

    def update(self, snapshot: Snapshot, see: See) -> None:
        """Show a snapshot."""
        moment = snapshot.moment
        if self._actors is None or self._actors.cast.number != moment.cast.number:
            self._change(moment)
        assert self._actors is not None
        self._moment = moment
        self._go(moment, see.follow)
        beside = snapshot.beside
        title = "" if beside is None else snapshot.name or "live"
        watch = snapshot.controls.watch
        self._actors.update(moment, self._at, snapshot.trail, watch, see, title)
        wanted = snapshot.controls.goals if snapshot.mode == "live" else {}
        self.goals.update(wanted, moment, self._at, self._actors.height)
        self._compare(beside, see, snapshot.beside_name)

    def camera(self, azimuth: float = math.radians(-55.0)) -> Camera:
        """A camera that shows the scene as it is, in the coordinates of the page.

        Args:
            azimuth: Where it stands, counted from the x axis to the left [rad].
        """
        assert self._moment is not None
        scene = self._moment.cast.scene
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

    def _change(self, moment: Moment) -> None:
        """Another scene."""
        if self._actors is not None:
            self._actors.remove()
        self._held.clear()
        self.goals.clear()
        # a name of its own: viser would take a new node for the old one, if it had the same name
        name = f"{ROOM}/live-{moment.cast.number}"
        self._actors = Actors(self._server.scene, name, moment.cast)
        self._listen(self._actors.bodies)
        self._at = self._aim = middle_of(moment) * (1.0, 1.0, 0.0)

    def _compare(self, moment: Moment | None, see: See, title: str) -> None:
        """The recording beside."""
        number = None if moment is None else moment.cast.number
        if self._beside is not None and self._beside.cast.number != number:
            self._beside.remove()
            self._beside = None
        if moment is None:
            return
        if self._beside is None:
            scene, aside = self._server.scene, moment.cast.width
            name = f"{ROOM}/beside-{moment.cast.number}"
            self._beside = Actors(scene, name, moment.cast, aside)
        self._beside.update(moment, self._at, np.zeros((0, 3)), 0, see, title)

    def _go(self, moment: Moment, follow: bool) -> None:
        """Let the page's origin follow the characters, if they can go."""
        if not goes(moment.cast):
            self._at = self._aim = np.zeros(3)
            return
        self._aim = middle_of(moment) * (1.0, 1.0, 0.0) if follow else self._at
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
            link, moment = self._link(bodies, event), self._moment
            if link is None or moment is None:
                return
            place, turn = forward_kinematics(moment.cast.scene, moment.q)
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
