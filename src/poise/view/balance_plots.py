"""Plots of balance: center of mass, CoP and CMP over the supports, momentum, feet."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from poise import measure
from poise.math.arrays import Floats
from poise.recording import Recording
from poise.recording.summary import Stance, stance_of
from poise.simulation.pushes import Push
from poise.view.drawing import PALETTE
from poise.view.overlays import PUSH
from poise.view.plots import new_figure, save_figure

BLUE, ORANGE, GREEN, RED, PURPLE = PALETTE[:5]
POINTS = (
    ("com", "center of mass", BLUE),
    ("cop", "center of pressure", GREEN),
    ("cmp", "centroidal moment pivot", ORANGE),
)
OUTLINES = 12
"""Most support polygons that are drawn."""
FARTHEST = 0.3
"""Margins are clipped at this distance outside [m]: those of a fallen character are large."""


def balance_plot(
    path: str | os.PathLike[str],
    source: Recording | Stance,
    *,
    pushes: Sequence[Push] = (),
    title: str = "",
) -> None:
    """Draws center of mass, center of pressure and momentum over the supports to a PNG file.

    Args:
        path: Output file.
        source: A recording of one character, or its `Stance`.
        pushes: Pushes to mark.
        title: Of the figure.
    """
    stance = stance_of(source) if isinstance(source, Recording) else source
    save_figure(path, draw(stance, pushes, title))


def draw(stance: Stance, pushes: Sequence[Push], title: str) -> Any:
    """The matplotlib figure of `balance_plot`."""
    figure = new_figure((12, 8))
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
    """Shows the supports and the mass center; single far values of the CMP may be outside."""
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
    axes.plot(stance.time, _size(stance.target_angular), color=PURPLE, lw=1, ls="--",
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
        axes.plot(
            stance.time, 1e3 * stance.displacement[:, i], color=color, lw=1.2, label=f"{text} [mm]"
        )
        axes.plot(stance.time, stance.tilt[:, i], color=color, lw=1, ls=":",
                  label=f"{text} tilts [degrees]")  # fmt: skip
    axes.set_ylabel("standing feet move by")
    axes.set_ylim(0.0, max(_top(stance, 1e3 * stance.displacement, stance.tilt), 2.0))


def _finish(axes: Any, stance: Stance, pushes: Sequence[Push]) -> None:
    for push in pushes:
        axes.axvspan(push.at, push.at + push.duration, color=PUSH, alpha=0.25, lw=0)
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
