"""A picture of a comparison: errors over time and by link, torques, energy, and how it ended."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from poise.io.files import write_atomically

if TYPE_CHECKING:
    from poise.trials.comparison import Outcome

COLORS = ("#2a6fb0", "#d98a3a", "#4f9a5d", "#b8504f", "#7a68b3", "#8a8a8a")
STYLES = ("-", "--", ":", "-.")


def save_comparison(path: str | os.PathLike[str], outcomes: Sequence[Outcome]) -> None:
    """Draw runs of one clip.

    Above, the mean error of the links over time; in the middle, the mean error of each link; below,
    the largest torque and the energy of each run. Colours are controllers, line styles and shades
    are steps. A line that ends in a cross is a run that was lost.

    Args:
        path: A PNG file.
        outcomes: The runs.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 11), layout="constrained")
    FigureCanvasAgg(figure)
    axes: Any = figure.subplot_mosaic([["time"] * 2, ["links"] * 2, ["torque", "energy"]])
    looks = _looks(outcomes)
    _draw_times(axes["time"], outcomes, looks)
    _draw_links(axes["links"], outcomes, looks)
    _draw_bars(axes["torque"], outcomes, looks, "largest torque [N·m]",
               [None if one.torque is None else one.torque.max for one in outcomes])  # fmt: skip
    _draw_bars(axes["energy"], outcomes, looks, "energy of the joints [J]",
               [one.energy for one in outcomes])  # fmt: skip
    figure.legend(loc="outside upper center", fontsize=9, ncols=4)
    data = io.BytesIO()
    figure.savefig(data, dpi=100, format="png")
    write_atomically(path, data.getvalue())


class _Look:
    """Colour, line style and shade of a run."""

    def __init__(self, color: str, style: str, shade: float) -> None:
        self.color, self.style, self.shade = color, style, shade


def _looks(outcomes: Sequence[Outcome]) -> list[_Look]:
    controllers = list(dict.fromkeys(one.trial.controller for one in outcomes))
    steps = list(dict.fromkeys(one.trial.dt for one in outcomes))
    looks = []
    for one in outcomes:
        i, k = controllers.index(one.trial.controller), steps.index(one.trial.dt)
        shade = 1.0 - 0.6 * k / max(1, len(steps) - 1)
        looks.append(_Look(COLORS[i % len(COLORS)], STYLES[k % len(STYLES)], shade))
    return looks


def _draw_times(ax: Any, outcomes: Sequence[Outcome], looks: Sequence[_Look]) -> None:
    for one, look in zip(outcomes, looks, strict=True):
        label = one.name if one.stable else f"{one.name}: {one.told}"
        if one.error is None:
            ax.plot([], [], look.style, color=look.color, label=label)
            continue
        time, mean = one.recording.time[: one.frames], one.error.rotation.mean(axis=1)
        ax.plot(time, mean, look.style, color=look.color, label=label)
        if not one.stable:
            ax.plot(time[-1], mean[-1], "x", color=look.color)
    ax.set(xlabel="time [s]", ylabel="mean error of the links [degrees]")
    _scale(ax)


def _draw_links(ax: Any, outcomes: Sequence[Outcome], looks: Sequence[_Look]) -> None:
    good = [(one, look) for one, look in zip(outcomes, looks, strict=True) if one.stable]
    width = 0.8 / max(1, len(good))
    for k, (one, look) in enumerate(good):
        assert one.error is not None
        mean = one.error.rotation.mean(axis=0)
        at = np.arange(len(mean)) + (k - 0.5 * (len(good) - 1)) * width
        ax.bar(at, mean, width, color=look.color, alpha=look.shade)
    names = [link.name.replace("_", " ") for link in outcomes[0].trial.character.links]
    ax.set_xticks(range(len(names)), names, rotation=60, ha="right", fontsize=8)
    ax.set_ylabel("mean error, stable runs [degrees]")
    _scale(ax)


def _draw_bars(
    ax: Any,
    outcomes: Sequence[Outcome],
    looks: Sequence[_Look],
    label: str,
    values: Sequence[float | None],
) -> None:
    shown = [k for k, one in enumerate(outcomes) if one.stable]
    for row, k in enumerate(shown):
        ax.barh(row, values[k], 0.8, color=looks[k].color, alpha=looks[k].shade)
    ax.set_yticks(range(len(shown)), [outcomes[k].name for k in shown], fontsize=8)
    ax.invert_yaxis()
    ax.set_xlabel(label)
    ax.grid(alpha=0.3, axis="x")


def _scale(ax: Any) -> None:
    """Errors of a thousandth and of a hundred degrees in one picture."""
    ax.set_yscale("symlog", linthresh=0.1)
    ax.set_ylim(bottom=0.0)
    ax.grid(alpha=0.3)
