"""Balance as one picture: mass centre, COP and CMP over the supports, momentum, feet."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from poise import measure
from poise.io.files import write_atomically
from poise.math.arrays import Floats
from poise.recording.balance import Stance
from poise.simulation.pushes import Push
from poise.view.colors import PALETTE
from poise.view.pushing import COLOR

BLUE, ORANGE, GREEN, RED, PURPLE = PALETTE[:5]
POINTS = (
    ("com", "mass centre", BLUE),
    ("cop", "centre of pressure", GREEN),
    ("cmp", "centroidal moment pivot", ORANGE),
)
OUTLINES = 12
"""Support polygons that are drawn."""
FARTHEST = 0.3
"""Margins below this are cut off [m]: who has fallen is far from any balance."""


def balance_plot(
    path: str | os.PathLike[str], stance: Stance, *, pushes: Sequence[Push] = (), title: str = ""
) -> None:
    """Draw a stance to a PNG file.

    Args:
        path: Where to.
        stance: How a character stood.
        pushes: Spans of time to mark.
        title: Above all.
    """
    data = io.BytesIO()
    draw(stance, pushes, title).savefig(data, dpi=110, format="png")
    write_atomically(path, data.getvalue())


def draw(stance: Stance, pushes: Sequence[Push], title: str) -> Any:
    """The picture, as a matplotlib figure; as of `balance_plot`."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 8), layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.add_gridspec(3, 2, width_ratios=(1.0, 1.25))
    _above(figure.add_subplot(grid[:, 0]), stance)
    over = [figure.add_subplot(grid[i, 1]) for i in range(3)]
    _margins(over[0], stance)
    _momentum(over[1], stance)
    _feet(over[2], stance)
    for axes in over:
        _finish(axes, stance, pushes)
    over[-1].set_xlabel("time [s]")
    figure.suptitle(title, fontsize=13)
    return figure


def _above(axes: Any, stance: Stance) -> None:
    """Paths over the supports, seen from above, until it fell."""
    end = _end(stance)
    drawn: list[bytes] = []
    for i in np.linspace(1, max(end - 1, 1), 200).astype(int):
        size = int(stance.support.size[i])
        corners = stance.support.corners[i, :size]
        key = np.round(corners, 2).tobytes()
        if size < 3 or key in drawn or len(drawn) >= OUTLINES:
            continue
        drawn.append(key)
        axes.fill(*corners.T, facecolor="0.6", edgecolor="0.4", alpha=0.18, lw=1)
    for name, label, color in reversed(POINTS):
        x, y = getattr(stance, name)[1:end, :2].T
        axes.plot(x, y, color=color, lw=1.3 if name == "com" else 0.8, label=label,
                  alpha=1.0 if name == "com" else 0.75)  # fmt: skip
    start = stance.com[0]
    axes.plot(start[0], start[1], "o", color=BLUE, markersize=6)
    _frame(axes, stance, end)
    axes.set_aspect("equal")
    axes.set_xlabel("x [m]")
    axes.set_ylabel("y [m]")
    axes.set_title("from above: grey are the soles that touch", fontsize=10, loc="left")
    axes.legend(fontsize=8, loc="upper left")
    axes.grid(alpha=0.25)


def _frame(axes: Any, stance: Stance, end: int) -> None:
    """Show the supports and the mass centre; single far values of the CMP may be outside."""
    shown = [stance.com[1:end, :2], stance.support.corners[1:end].reshape(-1, 2)]
    points = np.concatenate(shown)
    points = points[np.isfinite(points).all(axis=1)]
    if len(points):
        low, high = points.min(axis=0) - 0.08, points.max(axis=0) + 0.08
        axes.set_xlim(low[0], high[0])
        axes.set_ylim(low[1], high[1] + 0.08)


def _margins(axes: Any, stance: Stance) -> None:
    for name, label, color in POINTS:
        each = measure.support_margin(stance.support, getattr(stance, name))
        axes.plot(stance.time, 100.0 * np.maximum(each, -FARTHEST), color=color, lw=1.1,
                  label=label)  # fmt: skip
    axes.axhline(0.0, color="0.3", lw=1)
    axes.set_ylabel("inside the supports by [cm]")


def _momentum(axes: Any, stance: Stance) -> None:
    axes.plot(stance.time, _size(stance.momentum.angular), color=PURPLE, label="angular [N·m·s]")
    axes.plot(stance.time, _size(stance.asked), color=PURPLE, lw=1, ls="--",
              label="angular, of the clip")  # fmt: skip
    axes.plot(stance.time, _size(stance.momentum.linear[:, :2]), color=BLUE, lw=1.1,
              label="linear, level [N·s]")  # fmt: skip
    axes.set_ylabel("momentum")
    shown = [_size(stance.momentum.angular), _size(stance.momentum.linear[:, :2])]
    axes.set_ylim(0.0, _top(stance, *shown))


def _feet(axes: Any, stance: Stance) -> None:
    for i, name in enumerate(stance.feet):
        color = PALETTE[i % len(PALETTE)]
        text = name.replace("_", " ")
        axes.plot(stance.time, 1e3 * stance.moved[:, i], color=color, lw=1.2, label=f"{text} [mm]")
        axes.plot(stance.time, stance.tilted[:, i], color=color, lw=1, ls=":",
                  label=f"{text} tilts [degrees]")  # fmt: skip
    axes.set_ylabel("standing feet move by")
    axes.set_ylim(0.0, max(_top(stance, 1e3 * stance.moved, stance.tilted), 2.0))


def _finish(axes: Any, stance: Stance, pushes: Sequence[Push]) -> None:
    for push in pushes:
        axes.axvspan(push.at, push.at + push.duration, color=COLOR, alpha=0.25, lw=0)
    if stance.fell is not None:
        axes.axvline(stance.fell, color=RED, lw=1.4, ls="--", label="it falls")
    axes.set_xlim(stance.time[0], stance.time[-1])
    low, high = axes.get_ylim()
    axes.set_ylim(low, high + 0.3 * (high - low))
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize=8, frameon=False, loc="upper right", ncols=2)


def _top(stance: Stance, *values: Floats) -> float:
    """The largest of values before it fell: what comes after would hide the rest."""
    end = max(_end(stance), 2)
    return 1.1 * max(float(np.nanmax(each[:end], initial=1e-3)) for each in values)


def _end(stance: Stance) -> int:
    """Frames before it fell."""
    return int(np.argmax(stance.fallen)) if stance.fallen.any() else len(stance.time)


def _size(rows: Floats) -> Floats:
    return np.asarray(np.linalg.norm(rows, axis=1))
