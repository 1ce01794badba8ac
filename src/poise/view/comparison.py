"""A picture of a comparison: errors over time, and by link."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from poise.files import write_atomically

if TYPE_CHECKING:
    from poise.comparison import Outcome

COLORS = ("#2a6fb0", "#d98a3a", "#4f9a5d", "#b8504f", "#7a68b3", "#8a8a8a")
STYLES = ("-", "--", ":", "-.")


def save_comparison(path: str | os.PathLike[str], outcomes: Sequence[Outcome]) -> None:
    """Draw runs of one clip: mean error over time above, mean error of each link below.

    Args:
        path: A PNG file.
        outcomes: The runs; those that diverged are named only.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 8), layout="constrained")
    FigureCanvasAgg(figure)
    axes: Any = figure.subplots(2, 1)
    controllers = list(dict.fromkeys(one.trial.controller for one in outcomes))
    steps = list(dict.fromkeys(one.trial.dt for one in outcomes))
    good = [one for one in outcomes if one.error is not None and one.stable]
    width = 0.8 / max(1, len(good))
    for k, one in enumerate(good):
        assert one.error is not None
        assert one.recording is not None
        color = COLORS[controllers.index(one.trial.controller) % len(COLORS)]
        style = STYLES[steps.index(one.trial.dt) % len(STYLES)]
        axes[0].plot(one.recording.time, one.error.rotation.mean(axis=1), style, color=color,
                     label=one.name)  # fmt: skip
        at = np.arange(one.error.rotation.shape[1]) + (k - 0.5 * (len(good) - 1)) * width
        shade = 1.0 - 0.25 * steps.index(one.trial.dt) / max(1, len(steps) - 1)
        axes[1].bar(at, one.error.rotation.mean(axis=0), width, color=color, alpha=shade)
    lost = [one.name for one in outcomes if one not in good]
    axes[0].set_title("diverged: " + "; ".join(lost) if lost else "", fontsize=9, loc="left")
    axes[0].set_ylabel("mean error of the links [degrees]")
    axes[0].set_xlabel("time [s]")
    axes[1].set_ylabel("mean error [degrees]")
    for ax in axes:
        ax.grid(alpha=0.3)
        ax.set_yscale("symlog", linthresh=0.1)
    if good:
        axes[0].legend(fontsize=8, ncols=3)
        names = [link.name.replace("_", " ") for link in good[0].trial.character.links]
        axes[1].set_xticks(range(len(names)), names, rotation=60, ha="right", fontsize=8)
    data = io.BytesIO()
    figure.savefig(data, dpi=110, format="png")
    write_atomically(path, data.getvalue())
