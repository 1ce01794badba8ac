"""Readouts: the status lines and the plots of a page."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from html import escape
from typing import Any

import numpy as np

from poise.math.arrays import Floats
from poise.studio.snapshot import Measures, Message, Snapshot

CURVES: dict[str, tuple[tuple[str, str, str], ...]] = {
    "Tracking error [degrees]": (("rotation", "rotation", "#c2402a"),),
    "Momentum [N s], [N m s]": (
        ("linear", "linear", "#2a6fc2"),
        ("angular", "angular", "#d98f1a"),
    ),
    "Energy [J]": (
        ("kinetic", "kinetic", "#c2402a"),
        ("potential", "potential", "#2f8f57"),
    ),
}
"""Plots: title -> (curve of the session, name, color) each."""

AXES = (("x", "#c2402a"), ("y", "#2f8f57"), ("z", "#2a6fc2"))
STANCE: dict[str, tuple[tuple[str, str, str], ...]] = {
    "Linear momentum [N s]": tuple((f"linear_{x}", x, color) for x, color in AXES),
    "Angular momentum [N m s]": tuple((f"angular_{x}", x, color) for x, color in AXES),
    "Inside the support [cm]": (
        ("com_margin", "CoM", "#d9741a"),
        ("cop_margin", "CoP", "#cc1a73"),
        ("cmp_margin", "CMP", "#1a73e6"),
    ),
    "CoP, measured to planned [cm]": (("cop_error", "distance", "#cc1a73"),),
}
"""Plots of a standing character, in a tab of their own."""

TICKS = 18
"""Least distance of ticks of the vertical axis [pixels]: with the default, 30, there may be one."""

ABOVE = 8
"""Margin above a plot, for half of the number at a tick [pixels]."""

EMPTY = np.array([0.0, 1.0])
MESSAGE_TIME = 10.0  # how long a message is shown [s]
LEVELS = {"info": "#3b5b7a", "warning": "#a86a00", "error": "#b3261e"}


class Plots:
    """Live plots of the last seconds, in a panel of their own.

    Args:
        gui: viser's interface to the panels.
    """

    def __init__(self, gui: Any) -> None:
        panel = gui.add_panel()
        self._plots: dict[str, Any] = {}
        for tab, plots in (("Plots", CURVES), ("Balance", STANCE)):
            with panel.add_tab(tab):
                for title, curves in plots.items():
                    self._plots[title] = _plot(gui, title, curves)
        panel.float(x=12, y=-12, width=300)

    def update(self, values: dict[str, Floats]) -> None:
        """Draws the curves of the session: name -> values, and their "time" [s]."""
        clock = values["time"]
        if len(clock) < 2:
            return
        for title, curves in {**CURVES, **STANCE}.items():
            self._plots[title].data = (clock, *(fill_gaps(values[key]) for key, _, _ in curves))


def fill_gaps(curve: Floats) -> Floats:
    """A curve in which gaps have the value before them: the page cannot scale NaN.

    Args:
        curve: Shape (k,); one that is NaN throughout stays so.
    """
    known = np.isfinite(curve)
    if known.all() or not known.any():
        return curve
    last = np.maximum.accumulate(np.where(known, np.arange(len(curve)), known.argmax()))
    return curve[last]


def _plot(gui: Any, title: str, curves: tuple[tuple[str, str, str], ...]) -> Any:
    """An empty plot."""
    lines = ({"label": name, "stroke": color, "width": 1.5} for _, name, color in curves)
    return gui.add_uplot(
        data=(EMPTY,) + (np.full(2, np.nan),) * len(curves),
        series=({"label": "t [s]"}, *lines),
        title=title,
        scales={"x": {"time": False}},
        legend={"show": len(curves) > 1, "live": False},
        axes=({"size": 26 if len(curves) == 1 else 40}, {"size": 52, "space": TICKS}),
        padding=(ABOVE, None, None, None),
        height=112 if len(curves) == 1 else 126,
    )


class StatusLines:
    """The lines at the top of the panel, and warnings.

    Args:
        gui: viser's interface to the panels.
    """

    def __init__(self, gui: Any) -> None:
        self._html = gui.add_html("")
        self._message, self._since = -1, 0.0

    def update(self, snapshot: Snapshot, rate: float) -> None:
        """Shows the status.

        Args:
            snapshot: The newest snapshot.
            rate: Updates of the page per second.
        """
        now, number = time.monotonic(), snapshot.message.number
        if number != self._message:
            self._message, self._since = number, now
        if now - self._since > MESSAGE_TIME:
            snapshot = replace(snapshot, message=Message())
        text = status(snapshot, rate)
        if text != self._html.content:
            self._html.content = text


def status(snapshot: Snapshot, rate: float) -> str:
    """The lines at the top of the panel, as HTML; see `StatusLines.update`."""
    measures, watch = snapshot.measures, snapshot.controls.watch
    mode = f"recording {snapshot.name}" if snapshot.mode == "recorded" else "live"
    if snapshot.recording:
        mode += " · recording"
    pairs = [
        ("time", f"{measures.time:.2f} s"),
        ("speed", f"{snapshot.pace:.2f} × real time"),
        ("steps", f"{snapshot.step_rate:.0f} /s"),
        ("page", f"{rate:.0f} updates/s"),
        *([("made by", snapshot.made)] if snapshot.made else []),
        *_numbers(measures, watch),
    ]
    cells = "".join(
        f'<span style="color:#7a8699">{escape(name)}</span><span>{escape(text)}</span>'
        for name, text in pairs
    )
    lines = [
        f'<div style="font-weight:600;margin-bottom:2px">{escape(mode)}'
        f"{'' if snapshot.playing else ' · paused'}</div>",
        '<div style="display:grid;grid-template-columns:auto 1fr auto 1fr;column-gap:8px">'
        f"{cells}</div>",
        *_warnings(snapshot),
    ]
    style = "padding:4px 12px 8px;font-size:12px;line-height:1.5;font-variant-numeric:tabular-nums"
    return f'<div class="poise-status" style="{style}">{"".join(lines)}</div>'


def _numbers(measures: Measures, character: int) -> list[tuple[str, str]]:
    """Measures of one character."""
    if not len(measures.com):
        return []
    i = min(character, len(measures.com) - 1)
    force = float(np.linalg.norm(measures.ground_force[i]))
    return [
        ("error", format_value(float(measures.rotation[i]), "°")),
        ("offset", format_value(100 * float(measures.position[i]), " cm")),
        ("ground", format_value(force, " N")),
        ("root off", format_value(100 * float(measures.root_offset[i]), " cm")),
    ]


def _warnings(snapshot: Snapshot) -> list[str]:
    """Limits, falls, divergence, running jobs and the last message."""
    measures, lines = snapshot.measures, []
    links = np.flatnonzero(measures.at_limit | measures.saturated)
    if len(links):
        names = [measures.index.link_names[i] for i in links[:4]]
        more = f" and {len(links) - 4} more" if len(links) > 4 else ""
        lines.append(_line("at a limit: " + ", ".join(names) + more, "#7d2aa8"))
    if measures.fallen.any():
        remedy = ": R puts it back on its feet" if snapshot.controls.balances else ""
        lines.append(_line(f"fallen{remedy}", LEVELS["warning"]))
    if snapshot.diverged:
        lines.append(_line(snapshot.diverged, LEVELS["error"]))
    for job in snapshot.jobs:
        if job.state in ("waiting", "running"):
            lines.append(_line(f"{job.what}: {job.progress:.0%}", LEVELS["info"]))
    if snapshot.message.text:
        lines.append(_line(snapshot.message.text, LEVELS.get(snapshot.message.level, "#333")))
    return lines


def _line(text: str, color: str) -> str:
    return f'<div style="color:{color};overflow-wrap:anywhere">{escape(text)}</div>'


def format_value(value: float, unit: str) -> str:
    """A number with three digits and its unit; a dash instead of NaN."""
    if not math.isfinite(value):
        return "–"
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{value:.{digits}f}{unit}"


def legend(marks: list[tuple[str, tuple[float, float, float]]]) -> str:
    """Colored dots with labels, as HTML."""
    dot = "display:inline-block;width:9px;height:9px;border-radius:50%;margin-right:5px"
    dots = "".join(
        f'<span style="white-space:nowrap"><span style="{dot};background:{_css(rgb)}"></span>'
        f"{escape(text)}</span>"
        for text, rgb in marks
    )
    style = "padding:2px 12px 8px;font-size:12px;display:flex;flex-wrap:wrap;gap:4px 14px"
    return f'<div style="{style}">{dots}</div>'


def _css(rgb: tuple[float, float, float]) -> str:
    return f"rgb({','.join(str(round(255 * c)) for c in rgb)})"
