"""Figures of the reports: lines over time, and bars or lines over sizes, as PNG."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import ArrayLike

Lines = Mapping[str, tuple[ArrayLike, ArrayLike]]
"""x and y by name."""

COLORS = ("#2a6fb0", "#d98a3a", "#4f9a5d", "#b8504f", "#7a68b3", "#8a8a8a", "#c0a13a")


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
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.6, 0.7 + height * len(panels)), layout="constrained")
    FigureCanvasAgg(figure)
    axes: Any = figure.subplots(len(panels), 1, sharex=True, squeeze=False)
    for ax, (name, curves) in zip(axes[:, 0], panels.items(), strict=True):
        colors = iter(COLORS * 3)
        for label, (a, b) in curves.items():
            if label in dashed:
                ax.plot(a, b, "--", color="0.25", linewidth=1.4, label=label, zorder=5)
            else:
                many = len(list(_flat(a))) > 20
                ax.plot(
                    a,
                    b,
                    "" if many else "o-",
                    color=next(colors),
                    linewidth=1.6,
                    markersize=4,
                    label=label,
                )
        for mark in marks:
            ax.axvline(mark, color="0.75", linewidth=1.0)
        if "x" in log:
            ax.set_xscale("log")
        if "y" in log:
            ax.set_yscale("log")
        ax.set_ylim(bottom=bottom)
        ax.set_ylabel(y)
        ax.set_title(name, fontsize=10, loc="left")
        ax.grid(alpha=0.3)
        ax.legend(fontsize=8, ncols=2)
    axes[-1, 0].set_xlabel(x)
    figure.suptitle(title)
    data = io.BytesIO()
    figure.savefig(data, dpi=110, format="png")
    return data.getvalue()


def _flat(values: ArrayLike) -> list[float]:
    import numpy as np

    return list(np.asarray(values, dtype=float).ravel())
