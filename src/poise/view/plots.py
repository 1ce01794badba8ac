"""Plots of runs, of balance and of comparisons, by matplotlib, without a display."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from poise import measure
from poise.errors import PoiseError
from poise.io.files import suffix_of, write_atomically
from poise.math.arrays import Floats
from poise.model.forest import KINDS
from poise.model.scene import Scene
from poise.recording import Recording
from poise.recording.summary import Stance, all_contacts, scene_with_overrides, stance_of
from poise.simulation.pushes import Push
from poise.view.drawing import PALETTE
from poise.view.overlays import PUSH
from poise.view.timeline import check

if TYPE_CHECKING:
    from poise.trials.comparison import Outcome

BLUE, ORANGE, GREEN, RED, PURPLE = PALETTE[:5]


def new_figure(size: tuple[float, float]) -> Any:
    """A matplotlib figure of a size [inches], without pyplot: no display, no global state."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def save_figure(path: str | os.PathLike[str], figure: Any, dpi: int = 110) -> None:
    """Writes a figure to a PNG file, whole or not at all."""
    data = io.BytesIO()
    figure.savefig(data, dpi=dpi, format="png")
    write_atomically(path, data.getvalue())


def overview(
    path: str | os.PathLike[str],
    recording: Recording,
    *,
    copy: int = 0,
    pushes: Sequence[Push] = (),
    title: str | None = None,
) -> None:
    """A recording over time in one picture; written to a PNG file.

    Tracking errors, torques as fractions of their limits, ground reaction force, momentum and
    energy. Contacts and torques are those of single steps.

    Args:
        path: Output file; ends in .png.
        recording: The recording.
        copy: Which copy.
        pushes: Spans of time to mark.
        title: Above the plots; the names of the characters unless given.
    """

    if suffix_of(path, "plots") != ".png":
        raise PoiseError(f"{os.fspath(path)}: plots are written as .png")
    series = series_of(recording, copy)
    forest = recording.scene.forest
    names = [forest.joint_names[j] for j in forest.joint]
    title = ", ".join(forest.parts) if title is None else title
    save_figure(path, draw_overview(series, names, pushes, title))


# ---- overview

MOST_JOINTS = 4  # whose torques are drawn
QUIET = "0.45"  # what is read second


class Series(NamedTuple):
    """Time series of one copy, one row per frame; NaN where a quantity is undefined.

    Attributes:
        time: [s], rising.
        error: Of the links, or None if there is no target.
        load: Torque of each joint as a fraction of its limit, or its norm [N·m, N] if no joint
            has a limit.
        limited: Whether there are limits.
        momentum: Linear [N·s] and angular [N·m·s].
        energy: Kinetic and potential [J].
        ground: Ground reaction force [N], shape (k, 3).
        weight: [N], shape (k,).
    """

    time: Floats
    error: measure.TrackingError | None
    load: Floats
    limited: bool
    momentum: measure.Momentum
    energy: measure.Energy
    ground: Floats
    weight: Floats


def series_of(recording: Recording, copy: int = 0) -> Series:
    """The time series of an overview.

    Args:
        recording: The recording.
        copy: Which copy.
    """
    check(recording, copy)
    scene, columns = recording.scene, recording.columns.arrays()
    q, v, tau = (columns[name][:, copy] for name in ("q", "v", "torque"))
    whole = _of_copy(scene_with_overrides(recording), copy)
    target = recording.target_positions(copy)
    error = None
    known = np.asarray(np.isfinite(target).all(axis=1))
    if known.any():
        error = measure.tracking_error(scene, q, np.where(known[:, None], target, q))
        error = measure.TrackingError(*(np.where(known[:, None], each, np.nan) for each in error))
    load = measure.torque_fraction(scene, tau)
    limited = bool(np.isfinite(load).any())
    if not limited:
        # forces on a free root are not joint torques
        load = measure.joint_torque(scene, tau)
        load[:, scene.forest.kind == KINDS["free"]] = np.nan
    pull = columns["gravity"]
    energies = [measure.energy(whole, *row, gravity=g) for *row, g in zip(q, v, pull, strict=True)]
    reaction = measure.ground_reaction(
        scene, all_contacts(recording), copies=(len(recording), recording.n)
    )
    clock = columns["time"][:, copy]
    steady = bool((np.diff(clock) > 0.0).all())
    return Series(
        clock if steady else clock[0] + recording.interval * np.arange(len(recording)),
        error,
        load,
        limited,
        measure.momentum(whole, q, v),
        measure.Energy(*np.array(energies).T),
        reaction.force[:, copy],
        np.linalg.norm(pull, axis=1) * float(measure.mass(whole)),
    )


def draw_overview(series: Series, joints: Sequence[str], pushes: Sequence[Push], title: str) -> Any:
    """The six plots.

    Args:
        series: The numbers.
        joints: Names, in the order of the torques.
        pushes: Spans of time to mark.
        title: Above all.

    Returns:
        A matplotlib figure.
    """
    figure = new_figure((12, 8))
    plots = figure.subplots(3, 2, sharex=True)
    _errors(plots[0], series)
    _torques(plots[1, 0], series, joints)
    _ground(plots[1, 1], series)
    _momentum(plots[2, 0], series)
    _energy(plots[2, 1], series)
    for axes in plots.flat:
        # only energy may be below zero
        _finish(axes, series.time, pushes, room=0.2, signed=axes is plots[2, 1])
    for axes in plots[-1]:
        axes.set_xlabel("time [s]")
    if pushes:
        top = plots[0, 0]
        for push in pushes:
            # above the axes, where no legend is
            note = f"{push.force:g} N on {push.link.replace('_', ' ')}"
            top.annotate(note, (push.at, 1.0), xycoords=("data", "axes fraction"), va="bottom",
                         fontsize=8, color=PUSH)  # fmt: skip
    figure.suptitle(title, fontsize=13)
    return figure


def _errors(pair: Any, series: Series) -> None:
    """Rotation and position errors of the links."""
    texts = ("rotation error [degrees]", "position error [cm]")
    if series.error is None:
        for axes, text in zip(pair, texts, strict=True):
            axes.set_ylabel(text)
            axes.text(0.5, 0.5, "no target", transform=axes.transAxes, ha="center",
                      color=QUIET)  # fmt: skip
        return
    error = series.error
    for axes, text, each in zip(pair, texts, (error.rotation, 100 * error.position), strict=True):
        axes.fill_between(series.time, 0.0, each.max(axis=1), color=BLUE, alpha=0.15, lw=0,
                          label="worst link")  # fmt: skip
        axes.plot(series.time, each.mean(axis=1), color=BLUE, label="mean of the links")
        axes.set_ylabel(text)
    pair[1].plot(
        series.time, 100 * error.world[:, 0], color=ORANGE, lw=1.2, label="root in the world"
    )


def _torques(axes: Any, series: Series, joints: Sequence[str]) -> None:
    """The joints with the largest torques."""
    peak = np.nan_to_num(series.load).max(axis=0)
    for k, j in enumerate(np.argsort(-peak)[:MOST_JOINTS]):
        if peak[j] > 0.0:
            name = joints[j].replace("_", " ")
            axes.plot(series.time, series.load[:, j], color=PALETTE[k], lw=1.2, label=name)
    if series.limited:
        axes.axhline(1.0, color=QUIET, lw=1, ls="--")
    axes.set_ylabel("torque, part of the limit" if series.limited else "torque [N·m]")


def _ground(axes: Any, series: Series) -> None:
    up, level = series.ground[:, 2], np.linalg.norm(series.ground[:, :2], axis=1)
    axes.fill_between(series.time, 0.0, up, color=GREEN, alpha=0.2, lw=0)
    axes.plot(series.time, up, color=GREEN, lw=1.2, label="upwards")
    axes.plot(series.time, level, color=PURPLE, lw=1.2, label="level")
    axes.plot(series.time, series.weight, color=QUIET, lw=1, ls="--", label="weight")
    axes.set_ylabel("force of the ground [N]")


def _momentum(axes: Any, series: Series) -> None:
    linear, angular = (np.linalg.norm(part, axis=1) for part in series.momentum)
    axes.plot(series.time, linear, color=BLUE, label="linear")
    axes.set_ylabel("linear momentum [N·s]", color=BLUE)
    other = axes.twinx()
    other.plot(series.time, angular, color=ORANGE)
    other.set_ylabel("angular momentum [N·m·s]", color=ORANGE)
    other.set_ylim(bottom=0.0)
    other.spines["top"].set_visible(False)


def _energy(axes: Any, series: Series) -> None:
    kinetic, potential = series.energy
    risen = potential - potential[0]
    axes.plot(series.time, kinetic, color=BLUE, label="of motion")
    axes.plot(series.time, risen, color=GREEN, label="of height, from the start")
    axes.plot(series.time, kinetic + risen, color=QUIET, lw=1, ls="--", label="sum")
    axes.set_ylabel("energy [J]")


def _finish(axes: Any, time: Floats, pushes: Sequence[Push], *, room: float, signed: bool) -> None:
    """Marks the pushes, and sets limits, grid and legend.

    Args:
        axes: The plot.
        time: [s].
        pushes: The pushes.
        room: Room for the legend above the curves, relative to their height.
        signed: Whether values may be below zero.
    """
    for push in pushes:
        axes.axvspan(push.at, push.at + push.duration, color=PUSH, alpha=0.25, lw=0)
    if len(time) > 1:
        axes.set_xlim(time[0], time[-1])
    low, high = axes.get_ylim()
    low = low if signed else 0.0
    axes.set_ylim(min(low, 0.0), high + room * (high - low))
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    if len(axes.get_legend_handles_labels()[0]) > 1:
        axes.legend(fontsize=8, frameon=False, loc="upper right", ncols=2)


def _of_copy(scene: Scene, copy: int) -> Scene:
    """The scene with the overrides of one copy, where copies differ."""
    if scene.overrides is None:
        return scene
    sizes = {"mass": 1, "mc": 2, "Io": 2, "armature": 1, "effort": 1, "fixed": 1}
    own = {name: getattr(scene.overrides, name) for name in sizes}
    for name, array in own.items():
        if array is not None and array.ndim > sizes[name]:
            own[name] = np.ascontiguousarray(array[copy])
    return scene.with_overrides(**own)


# ---- balance: center of mass, CoP and CMP over the supports, momentum, feet

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
    save_figure(path, draw_balance(stance, pushes, title))


def draw_balance(stance: Stance, pushes: Sequence[Push], title: str) -> Any:
    """The matplotlib figure of `balance_plot`."""
    figure = new_figure((12, 8))
    grid = figure.add_gridspec(3, 2, width_ratios=(1.0, 1.25))
    _above(figure.add_subplot(grid[:, 0]), stance)
    over = [figure.add_subplot(grid[i, 1]) for i in range(3)]
    _margins(over[0], stance)
    _balance_momentum(over[1], stance)
    _feet(over[2], stance)
    for axes in over:
        if stance.fell is not None:
            axes.axvline(stance.fell, color=RED, lw=1.4, ls="--", label="it falls")
        _finish(axes, stance.time, pushes, room=0.3, signed=True)
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
    axes.set(aspect="equal", xlabel="x [m]", ylabel="y [m]")
    axes.set_title("from above: grey are the soles that touch", fontsize=10, loc="left")
    axes.legend(fontsize=8, loc="upper left")
    axes.grid(alpha=0.25)


def _frame(axes: Any, stance: Stance, end: int) -> None:
    """Shows the supports and the center of mass; single far values of the CMP may be outside."""
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


def _balance_momentum(axes: Any, stance: Stance) -> None:
    angular, target, linear = (
        np.linalg.norm(rows, axis=1)
        for rows in (stance.momentum.angular, stance.target_angular, stance.momentum.linear[:, :2])
    )
    axes.plot(stance.time, angular, color=PURPLE, label="angular [N·m·s]")
    axes.plot(stance.time, target, color=PURPLE, lw=1, ls="--", label="angular, of the clip")
    axes.plot(stance.time, linear, color=BLUE, lw=1.1, label="linear, level [N·s]")
    axes.set_ylabel("momentum")
    axes.set_ylim(0.0, _top(stance, angular, linear))


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


def _top(stance: Stance, *values: Floats) -> float:
    """The largest of values before it fell: what comes after would hide the rest."""
    end = max(_end(stance), 2)
    return 1.1 * max(float(np.nanmax(each[:end], initial=1e-3)) for each in values)


def _end(stance: Stance) -> int:
    """Frames before it fell."""
    return int(np.argmax(stance.fallen)) if stance.fallen.any() else len(stance.time)


# ---- comparison

COLORS = ("#2a6fb0", "#d98a3a", "#4f9a5d", "#b8504f", "#7a68b3", "#8a8a8a")
STYLES = ("-", "--", ":", "-.")


def save_comparison(path: str | os.PathLike[str], outcomes: Sequence[Outcome]) -> None:
    """Draws runs of one clip.

    Above, the mean error of the links over time; in the middle, the mean error of each link; below,
    the largest torque and the energy of each run. Colors are controllers, line styles and shades
    are steps. A line that ends in a cross is a run that was lost.

    Args:
        path: A PNG file.
        outcomes: The runs.
    """
    figure = new_figure((11, 11))
    axes: Any = figure.subplot_mosaic([["time"] * 2, ["links"] * 2, ["torque", "energy"]])
    looks = _looks(outcomes)
    _draw_times(axes["time"], outcomes, looks)
    _draw_links(axes["links"], outcomes, looks)
    _draw_bars(axes["torque"], outcomes, looks, "largest torque [N·m]",
               [None if one.torque is None else one.torque.max for one in outcomes])  # fmt: skip
    _draw_bars(axes["energy"], outcomes, looks, "energy of the joints [J]",
               [one.energy for one in outcomes])  # fmt: skip
    figure.legend(loc="outside upper center", fontsize=9, ncols=4)
    save_figure(path, figure, dpi=100)


class _Look(NamedTuple):
    """Color, line style and shade of a run."""

    color: str
    style: str
    shade: float


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
        label = one.name if one.stable else f"{one.name}: {one.loss_text}"
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
