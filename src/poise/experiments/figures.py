"""Figures of the reports: lines over time, and bars or lines over sizes, as PNG."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

Lines = Mapping[str, tuple[ArrayLike, ArrayLike]]
"""x and y by name."""

COLORS = ("#2a6fb0", "#d98a3a", "#4f9a5d", "#b8504f", "#7a68b3", "#8a8a8a", "#c0a13a")
FEW = 20  # points that are drawn as dots


def lines(
    panels: Mapping[str, Lines],
    *,
    x: str = "time [s]",
    y: str = "",
    log: str = "",
    title: str = "",
    marks: Sequence[float] = (),
    dashed: Sequence[str] = (),
    height: float = 2.6,
    bottom: float | None = None,
) -> bytes:
    """Panels one above the other, each with lines.

    Args:
        panels: Lines by the panel's title.
        x: Label.
        y: Label.
        log: "x", "y" or "xy" for logarithmic axes.
        title: Above all.
        marks: Times to mark by a vertical line.
        dashed: Names of lines that are dashed and dark, as a reference is.
        height: Of a panel [inches].
        bottom: Where the vertical axes begin; None shows all.
    """
    figure = new_figure(9.6, 0.7 + height * len(panels))
    axes: Any = figure.subplots(len(panels), 1, sharex=True, squeeze=False)
    for ax, (name, curves) in zip(axes[:, 0], panels.items(), strict=True):
        _draw(ax, curves, dashed)
        for mark in marks:
            ax.axvline(mark, color="0.75", linewidth=1.0)
        ax.set_xscale("log" if "x" in log else "linear")
        ax.set_yscale("log" if "y" in log else "linear")
        ax.set_ylim(bottom=bottom)
        ax.set_ylabel(y)
        ax.set_title(name, fontsize=10, loc="left")
        ax.grid(alpha=0.3)
        # beside the panel: it covers nothing, and no place has to be looked for
        ax.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    axes[-1, 0].set_xlabel(x)
    figure.suptitle(title)
    return png(figure)


def new_figure(width: float, height: float) -> Any:
    """An empty figure of Matplotlib, without a window.

    Args:
        width: [inches].
        height: [inches].
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def png(figure: Any) -> bytes:
    """A figure of Matplotlib as PNG."""
    data = io.BytesIO()
    figure.savefig(data, dpi=110, format="png")
    return data.getvalue()


def _draw(ax: Any, curves: Lines, dashed: Sequence[str]) -> None:
    """Lines, with dots where points are few."""
    colors = cycle(COLORS)
    for label, (x, y) in curves.items():
        if label in dashed:
            ax.plot(x, y, "--", color="0.25", linewidth=1.4, label=label, zorder=5)
            continue
        dots = "o" if np.size(x) <= FEW else ""
        ax.plot(x, y, marker=dots, color=next(colors), linewidth=1.6, markersize=4, label=label)
