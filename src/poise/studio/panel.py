"""The panel: playback at the top, and below it the tabs."""

from __future__ import annotations

from typing import Any

from poise.studio.jobs import Downloads
from poise.studio.marks import ViewOptions
from poise.studio.readouts import StatusLines
from poise.studio.requests import Play, Request, Restart, Scrub, SetLoop, SetSpeed, Step
from poise.studio.snapshot import Snapshot
from poise.studio.tabs import (
    ActTab,
    Bindings,
    ControlTab,
    OptionControls,
    RecordTab,
    SceneTab,
    ViewTab,
)

SPEEDS = {"1/20": 0.05, "1/10": 0.1, "1/4": 0.25, "1/2": 0.5, "1": 1.0, "2": 2.0, "4": 4.0}
TICKS = 1000
"""Positions of the timeline."""


class Panel:
    """All controls of the page, shared by all browsers.

    Args:
        server: viser's server.
        session: The session.
        downloads: Sends files to the browsers.
        origin: Place of the camera of an event's browser in the world [m].
        shadows: Whether it begins with shadows.
    """

    def __init__(
        self, server: Any, session: Any, downloads: Downloads, origin: Any, shadows: bool = True
    ) -> None:
        gui = server.gui
        self._newest: Snapshot | None = None
        self._bindings = Bindings(gui, session.ask)
        self.status = StatusLines(gui)
        self._playback(gui)
        tabs = gui.add_tab_group()
        with tabs.add_tab("Scene"):
            self._scene = SceneTab(gui, self._bindings, session)
        tune = tabs.add_tab("Tune")
        with tune:
            self._control = ControlTab(gui, self._bindings)
            self._options = OptionControls(tune, gui, self._bindings)
        with tabs.add_tab("Act"):
            self.act = ActTab(gui, self._bindings, origin)
        with tabs.add_tab("See"):
            self.view_tab = ViewTab(gui, shadows)
        with tabs.add_tab("Record"):
            self._record = RecordTab(gui, self._bindings, downloads)
        self._add_keys()

    @property
    def view_options(self) -> ViewOptions:
        """What is shown."""
        return self.view_tab.chosen

    def update(self, snapshot: Snapshot, rate: float) -> None:
        """Sets all controls to the present values.

        Args:
            snapshot: The newest snapshot.
            rate: Updates of the page per second.
        """
        self._newest = snapshot
        self.status.update(snapshot, rate)
        self._show_time(snapshot)
        self._control.update(snapshot)
        self._options.update(snapshot)
        self.act.update(snapshot)
        self._scene.update(snapshot)
        self._record.update(snapshot)
        self._bindings.sync(snapshot)

    # ---- playback

    def _playback(self, gui: Any) -> None:
        bindings = self._bindings
        self._play = bindings.button("Pause", self._toggle_play)
        hint = "Restart: from the beginning. Back, Step: one frame, one step. End: the last frame."
        bindings.buttons("Go", ("Restart", "Back", "Step", "End"), self._jump, hint)
        self._time = bindings.input(
            gui.add_slider("Time", min=0, max=TICKS, step=1, initial_value=TICKS, marks=(),
                           hint="An earlier frame; Play goes on from there."),
            self._scrub,
            _tick,
        )  # fmt: skip
        bindings.input(
            gui.add_dropdown("Speed", tuple(SPEEDS), initial_value="1",
                             hint="Relative to real time: below 1 is slow motion."),
            lambda text: SetSpeed(SPEEDS[text]) if text in SPEEDS else None,
            lambda snapshot: _nearest(SPEEDS, snapshot.controls.speed),
        )  # fmt: skip
        bindings.input(
            gui.add_checkbox("Loop", True, hint="The clip, or the recording, starts again."),
            SetLoop,
            lambda snapshot: snapshot.controls.loop,
        )

    def _toggle_play(self, event: Any) -> Request | None:
        return None if self._newest is None else Play(not self._newest.playing)

    def _jump(self, event: Any) -> Request | None:
        now = self._newest
        if now is None:
            return None
        jumps: dict[str, Request] = {
            "Restart": Restart(),
            "Back": Scrub(max(now.frame - 1, 0)),
            "Step": Step(1) if now.frame >= now.frames - 1 else Scrub(now.frame + 1),
            "End": Scrub(max(now.frames - 1, 0)),
        }
        return jumps.get(event.target.value)

    def _scrub(self, tick: Any) -> Request | None:
        now = self._newest
        if now is None or not now.frames:
            return None
        fraction = min(max(tick / TICKS, 0.0), 1.0)
        return Scrub(round(fraction * (now.frames - 1)))

    def _show_time(self, snapshot: Snapshot) -> None:
        label, color = ("Pause", None) if snapshot.playing else ("Play", "green")
        if self._play.label != label:
            self._play.label, self._play.color = label, color
        span = f"{snapshot.start:.1f} to {snapshot.end:.1f} s"
        if self._time.hint != span:
            self._time.hint = span

    def _add_keys(self) -> None:
        """Adds keyboard shortcuts."""
        bindings = self._bindings
        bindings.key("Play or pause", "space", self._toggle_play)
        bindings.key("One step", "S", Step(1))
        bindings.key("Restart", "R", Restart())
        bindings.key("Throw a ball", "T", self.act.throw)


def _tick(snapshot: Snapshot) -> int:
    """Position of the shown frame on the timeline."""
    return round(TICKS * snapshot.frame / max(snapshot.frames - 1, 1))


def _nearest(known: dict[str, float], value: float) -> str:
    """The name of the nearest value."""
    return min(known, key=lambda name: abs(known[name] - value))
