"""The numbers of a recording over time, as one picture of six plots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from poise import measure
from poise.math.arrays import Floats
from poise.model.forest import KINDS
from poise.model.scene import Scene
from poise.recording import Recording
from poise.recording.metrics import all_contacts, with_numbers
from poise.simulation.pushes import Push
from poise.view.colors import PALETTE
from poise.view.pushing import COLOR
from poise.view.timeline import check, goals_of

BLUE, ORANGE, GREEN, RED, PURPLE = PALETTE[:5]
MOST_JOINTS = 4  # whose torques are drawn
QUIET = "0.45"  # what is read second


class Series(NamedTuple):
    """Numbers of one copy, one row for every frame; NaN where there is nothing to tell.

    Attributes:
        time: [s], rising.
        error: Of the links, or None if nothing was asked for.
        share: Torque of each joint as a part of its limit, or its size [N·m, N] if none has any.
        limited: Whether it is the first.
        momentum: Linear [N·s] and angular [N·m·s].
        energy: Kinetic and potential [J].
        ground: Force of the ground on all [N], shape (k, 3).
        weight: [N], shape (k,).
    """

    time: Floats
    error: measure.TrackingError | None
    share: Floats
    limited: bool
    momentum: measure.Momentum
    energy: measure.Energy
    ground: Floats
    weight: Floats


def series_of(recording: Recording, copy: int = 0) -> Series:
    """What an overview shows.

    Args:
        recording: The recording.
        copy: Which copy.
    """
    check(recording, copy)
    scene, columns = recording.scene, recording.frames.arrays()
    q, v, tau = (columns[name][:, copy] for name in ("q", "v", "torque"))
    whole = _of_copy(with_numbers(recording), copy)
    goal = goals_of(recording, copy)
    error = None
    asked = np.asarray(np.isfinite(goal).all(axis=1))
    if asked.any():
        error = measure.tracking_error(scene, q, np.where(asked[:, None], goal, q))
        error = measure.TrackingError(*(np.where(asked[:, None], each, np.nan) for each in error))
    share = measure.torque_share(scene, tau)
    limited = bool(np.isfinite(share).any())
    if not limited:
        # what moves a free root is no motor
        share = measure.joint_torque(scene, tau)
        share[:, scene.forest.kind == KINDS["free"]] = np.nan
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
        share,
        limited,
        measure.momentum(whole, q, v),
        measure.Energy(*np.array(energies).T),
        reaction.force[:, copy],
        np.linalg.norm(pull, axis=1) * float(measure.mass(whole)),
    )


def draw(series: Series, joints: Sequence[str], pushes: Sequence[Push], title: str) -> Any:
    """The six plots.

    Args:
        series: The numbers.
        joints: Names, in the order of the torques.
        pushes: Spans of time to mark.
        title: Above all.

    Returns:
        A matplotlib figure.
    """
    # by the figure itself and not by pyplot: no display, no global state
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 8), layout="constrained")
    FigureCanvasAgg(figure)
    plots = figure.subplots(3, 2, sharex=True)
    _errors(plots[0], series)
    _torques(plots[1, 0], series, joints)
    _ground(plots[1, 1], series)
    _momentum(plots[2, 0], series)
    _energy(plots[2, 1], series)
    for axes in plots.flat:
        _finish(axes, series.time, pushes)
    for axes in plots[-1]:
        axes.set_xlabel("time [s]")
    if pushes:
        top = plots[0, 0]
        for push in pushes:
            # above the axes, where no legend is
            note = f"{push.force:g} N on {push.link.replace('_', ' ')}"
            top.annotate(note, (push.at, 1.0), xycoords=("data", "axes fraction"), va="bottom",
                         fontsize=8, color=COLOR)  # fmt: skip
    figure.suptitle(title, fontsize=13)
    return figure


def _errors(pair: Any, series: Series) -> None:
    """How far the links are from what was asked for: turned, and moved."""
    texts = ("rotation error [degrees]", "position error [cm]")
    if series.error is None:
        for axes, text in zip(pair, texts, strict=True):
            axes.set_ylabel(text)
            axes.text(0.5, 0.5, "nothing was asked for", transform=axes.transAxes, ha="center",
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
    """The joints that work hardest."""
    peak = np.nan_to_num(series.share).max(axis=0)
    for k, j in enumerate(np.argsort(-peak)[:MOST_JOINTS]):
        if peak[j] > 0.0:
            name = joints[j].replace("_", " ")
            axes.plot(series.time, series.share[:, j], color=PALETTE[k], lw=1.2, label=name)
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


def _finish(axes: Any, time: Floats, pushes: Sequence[Push]) -> None:
    for push in pushes:
        axes.axvspan(push.at, push.at + push.duration, color=COLOR, alpha=0.25, lw=0)
    if len(time) > 1:
        axes.set_xlim(time[0], time[-1])
    # room for the legend; only energy may be below zero
    low, high = axes.get_ylim()
    low = low if "energy" in axes.get_ylabel() else 0.0
    axes.set_ylim(min(low, 0.0), high + 0.2 * (high - low))
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    if len(axes.get_legend_handles_labels()[0]) > 1:
        axes.legend(fontsize=8, frameon=False, loc="upper right", ncols=2)


def _of_copy(scene: Scene, copy: int) -> Scene:
    """The scene with the numbers of one copy, where copies have their own."""
    if scene.overrides is None:
        return scene
    sizes = {"mass": 1, "mc": 2, "Io": 2, "armature": 1, "effort": 1, "fixed": 1}
    own = {name: getattr(scene.overrides, name) for name in sizes}
    for name, array in own.items():
        if array is not None and array.ndim > sizes[name]:
            own[name] = np.ascontiguousarray(array[copy])
    return scene.with_overrides(**own)
