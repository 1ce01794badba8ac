"""A recording as one HTML file that plays in a browser without a network."""

from __future__ import annotations

import html
import math
import os
import re
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from poise import dynamics
from poise.dynamics import forward_kinematics
from poise.errors import PoiseError
from poise.io.files import suffix_of, write_atomically
from poise.math.arrays import Floats, shaped
from poise.model.scene import scene_of
from poise.motion.clip import Clip
from poise.recording import Recording
from poise.simulation.contact import default_projectiles
from poise.simulation.pushes import Push
from poise.view import drawing, overlays
from poise.view.camera import AZIMUTH, ELEVATION, Camera, frame
from poise.view.drawing import GHOST, GHOST_OPACITY, Colors, Primitive
from poise.view.overlays import PushArrows, force_scale
from poise.view.stage import Stage
from poise.view.timeline import Timeline

ASPECT = 1.6  # of a typical browser window
FOV = math.radians(35.0)
GAP = 0.6  # between two recordings side by side [m]
CAPTION = 0.4  # above the highest joint of a character [m]

Label = tuple[str, Floats]
"""Text and position [m]."""


def save_html(
    path: str | os.PathLike[str],
    recording: Recording | Clip,
    *,
    beside: Recording | Clip | None = None,
    copy: int = 0,
    ghost: bool = True,
    forces: bool | float = True,
    center_of_mass: bool = True,
    pushes: Sequence[Push] = (),
    fps: float = 30.0,
    color: Colors = None,
    names: Sequence[str] = (),
    captions: Sequence[str] = (),
    title: str = "poise",
    progress: Callable[[float], None] | None = None,
) -> None:
    """Writes a recording or a clip as one HTML file that plays in any browser.

    The mouse rotates and moves the view; the bar below has time and speed.

    Args:
        path: Output file; ends in .html.
        recording: The recording; or a clip, which is shown on a level ground at its own speed.
        beside: A second one, shown to the right of the first.
        copy: Which copy of both.
        ghost: Whether to show the target, translucent.
        forces: Whether to show arrows of contact forces, or their scale [m/N]; by default the
            weight of a character is half a meter long.
        center_of_mass: Whether to mark centers of mass, and the ground below them.
        pushes: Show arrows of these pushes; see `Trial.world_pushes`.
        fps: Pictures per second.
        color: See `render`.
        names: Labels above the two recordings.
        captions: Labels above the first pose of each character of the first recording.
        title: Of the page.
        progress: Called with the completed fraction, 0 to 1.
    """
    if suffix_of(path, "pages") not in (".html", ".htm"):
        raise PoiseError(f"{os.fspath(path)}: pages are written as .html")
    shown = [one for one in (recording, beside) if one is not None]
    lines = [Timeline(one, copy=copy, fps=fps) for one in shown]
    labels = _names(lines, names) + _captions(lines[0], captions)
    page = _page(
        lines, labels, forces, progress,
        ghost=ghost, center_of_mass=center_of_mass, pushes=pushes, color=color,
    )  # fmt: skip
    whole = re.sub("<title>.*?</title>", f"<title>{html.escape(title)}</title>", page, count=1)
    write_atomically(path, whole.encode())


def _page(
    lines: list[Timeline],
    labels: Sequence[Label],
    forces: bool | float,
    progress: Callable[[float], None] | None,
    **looks: Any,
) -> str:
    """The page of one or two recordings; `looks` are arguments of Playback."""
    first = lines[0].recording
    hulls = [hull_of_motion(line) for line in lines]
    offsets = _offsets(lines, hulls)
    balls = np.concatenate([hull + (*by, 0.0) for hull, by in zip(hulls, offsets, strict=True)])
    ahead = _heading(lines[0])
    camera = frame(balls, ahead + AZIMUTH, ELEVATION, ASPECT, FOV, 0.1)

    recorder = HtmlRecorder()
    low, high = balls[:, :2].min(axis=0, initial=0.0), balls[:, :2].max(axis=0, initial=0.0)
    recorder.look(camera)
    stage = Stage(recorder.scene)
    stage.update("ground", drawing.ground_drawing(first.settings, low, high))
    stage.update("obstacles", drawing.static_drawing(first.settings))
    plays = [
        Playback(stage, line, name, forces=force_scale(line.recording, forces), offset=by, **looks)
        for line, name, by in zip(lines, ("recording", "beside"), offsets, strict=False)
    ]
    for i, (text, at) in enumerate(labels):
        recorder.scene.add_label(f"/names/{i}", text, position=at)
    count = max(map(len, lines))
    for k in range(count):
        for line, play in zip(lines, plays, strict=True):
            play.update(min(k, len(line) - 1))
        recorder.wait(1.0 / lines[0].fps)
        if progress is not None:
            progress((k + 1) / count)
    return recorder.html()


def _offsets(lines: list[Timeline], hulls: list[Floats]) -> list[Floats]:
    """Translation of each recording: the second stands to the right of the first."""
    if len(lines) == 1:
        return [np.zeros(3)]
    ahead = _heading(lines[0])
    right = np.array([math.sin(ahead), -math.cos(ahead), 0.0])
    reach = [(hull[:, :3] @ right, hull[:, 3]) for hull in hulls]
    first, second = reach
    distance = (first[0] + first[1]).max() - (second[0] - second[1]).min() + GAP
    return [np.zeros(3), distance * right]


def _heading(line: Timeline) -> float:
    """Heading of the first character in the first picture [rad]."""
    scene, q = line.camera_subjects
    return drawing.heading(scene, q[0])


def _names(lines: list[Timeline], names: Sequence[str]) -> list[Label]:
    """Labels of the recordings, above their first poses."""
    if not names:
        return []
    hulls = [hull_of_motion(line) for line in lines]
    labels = []
    for name, hull, by in zip(names, hulls, _offsets(lines, hulls), strict=False):
        top = float((hull[:, 2] + hull[:, 3]).max(initial=0.0))
        labels.append((name, (*hull[:1, :2].sum(axis=0), top + 0.15) + by))
    return labels


def _captions(line: Timeline, captions: Sequence[str]) -> list[Label]:
    """Labels of the characters, above their first poses."""
    scene = line.recording.scene
    at, _ = forward_kinematics(scene, line.recording.q[0])
    labels: list[Label] = []
    for part, text in zip(scene.forest.parts.values(), captions, strict=False):
        links = at[part.links]
        height = links[:, 2].max() + CAPTION * (1.0 + 0.5 * (len(labels) % 2))
        labels.append((text, np.array([*links[0, :2], height])))
    return labels


# ---- playback

HIDDEN = 0.012
"""A link of the ghost is hidden if it is nearer than this to the character's [m]."""

FARTHEST = 8.0
"""Poses farther than this from the first do not count for the camera [m]."""


class Playback:
    """The moving bodies and overlays of a recording, under one name of a stage.

    Args:
        stage: The stage.
        timeline: The recording, sampled.
        name: Name of the parent node.
        ghost: Whether to show the target, translucent.
        forces: Arrows of contact forces: their scale [m/N]; 0 shows none.
        center_of_mass: Whether to mark the center of mass of each character, and the ground below.
        pushes: Arrows of these pushes.
        color: Of the characters; see `render`.
        offset: Translation of everything [m], shape (3,).
    """

    def __init__(
        self,
        stage: Stage,
        timeline: Timeline,
        name: str,
        *,
        ghost: bool = True,
        forces: float = 0.0,
        center_of_mass: bool = True,
        pushes: Sequence[Push] = (),
        color: Colors = None,
        offset: ArrayLike = (0.0, 0.0, 0.0),
    ) -> None:
        recording = timeline.recording
        self._stage, self._line, self._name, self._forces = stage, timeline, name, forces
        self._offset = shaped(offset, "offset", (3,))
        self._bodies = stage.bodies(f"{name}/bodies", recording.scene, color=color, offset=offset)
        looks: dict[str, Any] = {"color": GHOST, "opacity": GHOST_OPACITY, "offset": offset}
        self._ghost = None
        if ghost and timeline.has_target:
            self._ghost = stage.bodies(f"{name}/ghost", recording.scene, **looks)
        self._projectiles = None
        projectiles = default_projectiles(recording.settings.projectiles)
        if projectiles and timeline.thrown[..., 0].any():
            self._projectiles = stage.bodies(f"{name}/thrown", scene_of(projectiles), offset=offset)
        self._pushes = PushArrows(timeline, pushes, forces or force_scale(recording))
        self._centers: Floats = np.zeros((len(timeline), 0, 3))
        if center_of_mass:
            self._centers = centers_of_mass(timeline)

    def update(self, k: int) -> None:
        """Shows picture k."""
        self._bodies.update(self._line.q[k])
        if self._ghost is not None:
            target, q = self._line.target[k], self._line.q[k]
            target = target if np.isfinite(target).all() else q
            # not a fade as in pictures: a batch whose opacity changes would be created anew
            distances = overlays.link_distances(self._bodies.scene, q, target)
            self._ghost.update(target, shown=distances > HIDDEN)
        if self._projectiles is not None:
            thrown = self._line.thrown[k]
            self._projectiles.update(thrown[:, 1:].ravel(), shown=thrown[:, 0] > 0.0)
        self._marks(k)

    def _marks(self, k: int) -> None:
        """Draws forces, pushes and centers of mass."""
        if self._forces:
            points, forces = overlays.pair_forces(self._line.contacts(k), copy=self._line.copy)
            ways = overlays.arrow_vectors(forces, self._forces)
            self._stage.arrows(f"{self._name}/forces", points + self._offset, ways)
        pushes = self._pushes.at(k)
        self._stage.arrows(
            f"{self._name}/pushes",
            np.reshape([push.start for push in pushes], (-1, 3)) + self._offset,
            np.reshape([push.vector for push in pushes], (-1, 3)),
            radius=max([push.radius for push in pushes], default=0.01) or 1e-6,
            color=overlays.PUSH,
        )
        center = self._centers[k] + self._offset
        if len(center):
            self._stage.balls(f"{self._name}/center_of_mass", center, radius=0.04)
            self._stage.update(f"{self._name}/below", self._discs(center))

    def _discs(self, center: Floats) -> list[Primitive]:
        """Marks on a level ground below centers of mass."""
        height = drawing.ground_height(self._line.recording.settings)
        if height is None:
            return []
        at = [(x, y, height + 0.004) for x, y, _ in center.tolist()]
        return [Primitive("cylinder", (0.05, 0.003), pos, color=overlays.POINT) for pos in at]


def centers_of_mass(timeline: Timeline) -> Floats:
    """Centers of mass of the characters with several links [m], shape (k, characters, 3)."""
    scene = timeline.recording.scene
    parts = zip(scene.characters, scene.forest.parts.values(), strict=True)
    found = [
        dynamics.center_of_mass(character, timeline.q[:, part.q])
        for character, part in parts
        if len(character.links) > 1
    ]
    return np.stack(found, axis=1) if found else np.zeros((len(timeline), 0, 3))


def hull_of_motion(timeline: Timeline, most: int = 48) -> Floats:
    """Balls (x, y, z, radius) whose hull contains the characters, shape (m, 4).

    Only poses within some meters of the first count: a camera that shows all of a long path is too
    far away to show the character.
    """
    some = np.unique(np.rint(np.linspace(0, len(timeline) - 1, most)).astype(int))
    scene, q = timeline.camera_subjects
    middle = forward_kinematics(scene, q[some])[0].mean(axis=1)
    near = np.linalg.norm(middle - middle[0], axis=1) <= FARTHEST
    poses = [drawing.drawing_of(scene, q[k]) for k in some[near]]
    return np.concatenate([drawing.hull_points(pose) for pose in poses])


# ---- the file


class HtmlRecorder:
    """Records the messages of a viser scene over time; opens no port.

    Attributes:
        scene: viser's interface to the scene, as `server.scene`.
    """

    def __init__(self) -> None:
        from viser import SceneApi, ViserServer
        from viser.infra import StateSerializer, WebsockMessageHandler
        from viser.infra._async_message_buffer import AsyncMessageBuffer

        missing: Any = None

        class Recorder(WebsockMessageHandler):
            """Receives the messages of a scene and sends them nowhere."""

            def queue_message(self, message: Any) -> None:
                for handle in self._record_handles:
                    handle._insert_message(message)

            def get_message_buffer(self) -> Any:
                # messages for pages that connect later: stays empty
                return AsyncMessageBuffer(event_loop=missing, persistent_messages=False)

        class Owner(ViserServer):
            """The owner of a scene that is not served."""

            def __init__(self, recorder: Any) -> None:
                self._websock_server = recorder
                self._scene_lifecycle_lock = threading.RLock()

        self._recorder = Recorder()
        self._serializer: StateSerializer = self._recorder.get_message_serializer(
            filter=lambda message: message.include_in_scene_serialization
        )
        self.scene = SceneApi(Owner(self._recorder), missing, missing)
        self.scene.set_up_direction("+z")

    def look(self, camera: Camera) -> None:
        """Sets the initial camera.

        Args:
            camera: See `render`.
        """
        from viser import InitialCameraConfig

        view = InitialCameraConfig(broadcast=self._recorder.queue_message)
        view.position, view.look_at = np.array(camera.eye), np.array(camera.target)
        view.up = np.array(camera.up)
        view.fov, view.near = camera.fov, 0.05

    def wait(self, duration: float) -> None:
        """Advances the time of the recording [s]."""
        self._serializer.insert_sleep(duration)

    def html(self) -> str:
        """The whole file; call it once, at the end."""
        return self._serializer.as_html()
