"""Plots of a run, by matplotlib, without a display."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from poise.errors import PoiseError
from poise.io.files import suffix_of, write_atomically
from poise.math.arrays import floats
from poise.measure import TrackingError
from poise.model.scene import SceneLike, scene_of
from poise.recording import Recording
from poise.simulation.pushes import Push


def tracking(
    path: str | os.PathLike[str],
    character: SceneLike,
    time: ArrayLike,
    error: TrackingError,
    q: ArrayLike,
    *,
    links: Sequence[str] | None = None,
    shade: tuple[float, float] | None = None,
    title: str = "",
) -> None:
    """Rotation error of links over time, and how far the root moved; written to a PNG file.

    Args:
        path: Where to.
        character: The character.
        time: [s], shape (k,).
        error: Errors of k states, from `measure.tracking_error`.
        q: Positions, shape (k, nq).
        links: Which links; the six with the largest errors unless given.
        shade: A span of time to mark [s], as of a push.
        title: Above the plot.
    """
    # by the figure itself and not by pyplot: no display, no global state
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    names = scene_of(character).forest.link_names
    if links is None:
        largest = np.argsort(-error.rotation.max(axis=0))[:6]
        links = [names[i] for i in sorted(largest)]
    time, q = floats(time, "time"), floats(q, "q")
    figure = Figure(figsize=(9, 6), layout="constrained")
    FigureCanvasAgg(figure)
    top, bottom = figure.subplots(2, 1, sharex=True)
    for name in links:
        top.plot(time, error.rotation[:, names.index(name)], label=name.replace("_", " "))
    top.set_ylabel("rotation error [degrees]")
    for k, axis in enumerate("xyz"):
        bottom.plot(time, 1e3 * (q[:, k] - q[0, k]), label=axis)
    bottom.set_ylabel("root moved by [mm]")
    bottom.set_xlabel("time [s]")
    for axes in (top, bottom):
        axes.legend(ncols=3, fontsize=8, loc="upper right")
        axes.grid(alpha=0.3)
        axes.set_xlim(time[0], time[-1])
        if shade is not None:
            axes.axvspan(*shade, color="0.85")
    figure.suptitle(title)
    figure.savefig(path, dpi=120)


def overview(
    path: str | os.PathLike[str],
    recording: Recording,
    *,
    copy: int = 0,
    pushes: Sequence[Push] = (),
    title: str | None = None,
) -> None:
    """A recording over time in one picture; written to a PNG file.

    Errors against what was asked for, torques as parts of their limits, the force of the ground,
    momentum and energy. Contacts and torques are those of single steps.

    Args:
        path: Where to; ends in .png.
        recording: The recording.
        copy: Which copy.
        pushes: Spans of time to mark.
        title: Above the plots; the names of the characters unless given.
    """
    from poise.view.overview import draw, series_of

    if suffix_of(path, "plots") != ".png":
        raise PoiseError(f"{os.fspath(path)}: plots are written as .png")
    series = series_of(recording, copy)
    forest = recording.scene.forest
    names = [forest.joint_names[j] for j in forest.joint]
    title = ", ".join(forest.parts) if title is None else title
    data = io.BytesIO()
    draw(series, names, pushes, title).savefig(data, dpi=110, format="png")
    write_atomically(path, data.getvalue())
