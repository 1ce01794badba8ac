"""A recording as one HTML file: it opens by double click, without a network, and plays."""

from __future__ import annotations

import html
import math
import os
import re
from collections.abc import Callable, Sequence

import numpy as np

from poise.dynamics import forward_kinematics
from poise.errors import PoiseError
from poise.io.files import suffix_of, write_atomically
from poise.math.arrays import Floats
from poise.motion.clip import Clip
from poise.recording import Recording
from poise.simulation.pushes import Push
from poise.view.browser import Stage
from poise.view.camera import AZIMUTH, ELEVATION, frame
from poise.view.clip_recording import as_recording
from poise.view.colors import Colors
from poise.view.drawing import heading
from poise.view.forces import force_scale
from poise.view.playback import Playback, hull_of
from poise.view.surroundings import ground_drawing, still_drawing
from poise.view.tape import Tape
from poise.view.timeline import Timeline

ASPECT = 1.6  # of a browser's window, more or less
FOV = math.radians(35.0)
GAP = 0.6  # between two recordings side by side [m]
CAPTION = 0.4  # above the highest joint of a character [m]

Label = tuple[str, Floats]
"""Text, and where [m]."""


def save_html(
    path: str | os.PathLike[str],
    recording: Recording | Clip,
    *,
    beside: Recording | Clip | None = None,
    copy: int = 0,
    ghost: bool = True,
    forces: bool | float = True,
    mass_center: bool = True,
    pushes: Sequence[Push] = (),
    fps: float = 30.0,
    color: Colors = None,
    names: Sequence[str] = (),
    captions: Sequence[str] = (),
    title: str = "poise",
    progress: Callable[[float], None] | None = None,
) -> None:
    """Write a recording or a clip as one HTML file that plays in any browser.

    One turns and moves the view with the mouse; the bar below has time and speed.

    Args:
        path: Where to; ends in .html.
        recording: The recording; or a clip, which is shown on a level ground at its own speed.
        beside: A second one, shown to the right of the first.
        copy: Which copy of both.
        ghost: Whether to show, see-through, what was asked for.
        forces: Whether to show arrows of contact forces, or their length [m/N]; that of a
            character's weight is half a metre unless given.
        mass_center: Whether to mark mass centres, and the ground below them.
        pushes: Show arrows of these, as `Trial.world_pushes` has them.
        fps: Pictures per second.
        color: As of `render`.
        names: What to write above the two recordings.
        captions: What to write above where each character of the first recording begins.
        title: Of the page.
        progress: Called with the share that is done, 0 to 1.
    """
    if suffix_of(path, "pages") not in (".html", ".htm"):
        raise PoiseError(f"{os.fspath(path)}: pages are written as .html")
    shown = [as_recording(one) for one in (recording, beside) if one is not None]
    lines = [Timeline(one, copy=copy, fps=fps) for one in shown]
    labels = _names(lines, names) + _captions(lines[0], captions)
    page = _page(lines, ghost, forces, mass_center, pushes, color, labels, progress)
    whole = re.sub("<title>.*?</title>", f"<title>{html.escape(title)}</title>", page, count=1)
    write_atomically(path, whole.encode())


def _page(
    lines: list[Timeline],
    ghost: bool,
    forces: bool | float,
    mass_center: bool,
    pushes: Sequence[Push],
    color: Colors,
    labels: Sequence[Label],
    progress: Callable[[float], None] | None,
) -> str:
    first = lines[0].recording
    hulls = [hull_of(line) for line in lines]
    offsets = _offsets(lines, hulls)
    balls = np.concatenate([hull + (*by, 0.0) for hull, by in zip(hulls, offsets, strict=True)])
    ahead = _heading(lines[0])
    camera = frame(balls, ahead + AZIMUTH, ELEVATION, ASPECT, FOV, 0.1)

    tape = Tape()
    low, high = balls[:, :2].min(axis=0, initial=0.0), balls[:, :2].max(axis=0, initial=0.0)
    tape.look(camera)
    stage = Stage(tape.scene)
    stage.update("ground", ground_drawing(first.settings, low, high))
    stage.update("obstacles", still_drawing(first.settings))
    plays = [
        Playback(
            stage, line, name, ghost=ghost, forces=force_scale(line.recording, forces),
            mass_center=mass_center, pushes=pushes, color=color, offset=by,
        )
        for line, name, by in zip(lines, ("recording", "beside"), offsets, strict=False)
    ]  # fmt: skip
    for i, (text, at) in enumerate(labels):
        tape.scene.add_label(f"/names/{i}", text, position=at)
    count = max(map(len, lines))
    for k in range(count):
        for line, play in zip(lines, plays, strict=True):
            play.update(min(k, len(line) - 1))
        tape.wait(1.0 / lines[0].fps)
        if progress is not None:
            progress((k + 1) / count)
    return tape.html()


def _offsets(lines: list[Timeline], hulls: list[Floats]) -> list[Floats]:
    """Where each recording stands: the second to the right of the first."""
    if len(lines) == 1:
        return [np.zeros(3)]
    ahead = _heading(lines[0])
    right = np.array([math.sin(ahead), -math.cos(ahead), 0.0])
    reach = [(hull[:, :3] @ right, hull[:, 3]) for hull in hulls]
    first, second = reach
    apart = (first[0] + first[1]).max() - (second[0] - second[1]).min() + GAP
    return [np.zeros(3), apart * right]


def _heading(line: Timeline) -> float:
    """Where the first character looks at first [rad]."""
    scene, q = line.leads
    return heading(scene, q[0])


def _names(lines: list[Timeline], names: Sequence[str]) -> list[Label]:
    """What each recording is, above where it begins."""
    if not names:
        return []
    hulls = [hull_of(line) for line in lines]
    labels = []
    for name, hull, by in zip(names, hulls, _offsets(lines, hulls), strict=False):
        top = float((hull[:, 2] + hull[:, 3]).max(initial=0.0))
        labels.append((name, (*hull[:1, :2].sum(axis=0), top + 0.15) + by))
    return labels


def _captions(line: Timeline, captions: Sequence[str]) -> list[Label]:
    """What each character is, above where it begins."""
    scene = line.recording.scene
    at, _ = forward_kinematics(scene, line.recording.q[0])
    labels: list[Label] = []
    for part, text in zip(scene.forest.parts.values(), captions, strict=False):
        links = at[part.links]
        height = links[:, 2].max() + CAPTION * (1.0 + 0.5 * (len(labels) % 2))
        labels.append((text, np.array([*links[0, :2], height])))
    return labels
