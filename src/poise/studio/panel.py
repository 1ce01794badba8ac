"""The panel: playback at the top, and below it tabs to choose, tune, act, look and record."""

from __future__ import annotations

from typing import Any

from poise.studio.bindings import Wires
from poise.studio.jobs import Downloads
from poise.studio.marks import See
from poise.studio.readouts import Words
from poise.studio.requests import Play, Request, Restart, Scrub, SetLoop, SetSpeed, Step
from poise.studio.snapshot import Snapshot
from poise.studio.tabs import ActTab, BalanceControls, ControlTab, RecordTab, SceneTab, SeeTab

SPEEDS = {"1/20": 0.05, "1/10": 0.1, "1/4": 0.25, "1/2": 0.5, "1": 1.0, "2": 2.0, "4": 4.0}
TICKS = 1000
"""Places of the timeline."""


class Panel:
    """All controls of the page, shared by all browsers.

    Args:
        server: viser's server.
        session: What is controlled.
        downloads: Where files that are asked for come from.
        origin: The camera of an event's browser, in the world [m].
        shadows: Whether there are shadows at first.
    """

    def __init__(
        self, server: Any, session: Any, downloads: Downloads, origin: Any, shadows: bool = True
    ) -> None:
        gui = server.gui
        self._newest: Snapshot | None = None
        self._wires = Wires(session.ask)
        self.words = Words(gui)
        self._playback(gui)
        tabs = gui.add_tab_group()
        with tabs.add_tab("Scene"):
            self._scene = SceneTab(gui, self._wires, session)
        with tabs.add_tab("Tune"):
            self._control = ControlTab(gui, self._wires)
            self._balance = BalanceControls(gui, self._wires)
        with tabs.add_tab("Act"):
            self.act = ActTab(gui, self._wires, origin)
        with tabs.add_tab("See"):
            self.see_tab = SeeTab(gui, shadows)
        with tabs.add_tab("Record"):
            self._record = RecordTab(gui, self._wires, downloads)
        self._keys(gui)

    @property
    def see(self) -> See:
        """What is to be seen."""
        return self.see_tab.chosen

    def update(self, snapshot: Snapshot, rate: float) -> None:
        """Let all controls show what is.

        Args:
            snapshot: What is.
            rate: Updates of the page per second.
        """
        self._newest = snapshot
        self.words.update(snapshot, rate)
        self._show_time(snapshot)
        self._control.update(snapshot)
        self._balance.update(snapshot)
        self.act.update(snapshot)
        self._scene.update(snapshot)
        self._record.update(snapshot)
        self._wires.sync(snapshot)

    # ---- playback

    def _playback(self, gui: Any) -> None:
        wires = self._wires
        self._play = wires.button(gui.add_button("Pause"), self._turn)
        wires.button(
            gui.add_button_group("Go", ("Restart", "Back", "Step", "End"), hint=(
                "Restart: from the beginning. Back, Step: one frame, one step. End: the last of "
                "what has been."
            )),
            self._jump,
        )  # fmt: skip
        self._time = wires.input(
            gui.add_slider("Time", min=0, max=TICKS, step=1, initial_value=TICKS, marks=(),
                           hint="Look back; Play goes on from there."),
            self._look_back,
            lambda snapshot: _tick(snapshot),
        )  # fmt: skip
        wires.input(
            gui.add_dropdown("Speed", tuple(SPEEDS), initial_value="1",
                             hint="Against real time: below 1 is slow motion."),
            lambda text: SetSpeed(SPEEDS[text]) if text in SPEEDS else None,
            lambda snapshot: _nearest(SPEEDS, snapshot.controls.speed),
        )  # fmt: skip
        wires.input(
            gui.add_checkbox("Loop", True, hint="The clip, or the recording, starts again."),
            SetLoop,
            lambda snapshot: snapshot.controls.loop,
        )

    def _turn(self, event: Any) -> Request | None:
        return None if self._newest is None else Play(not self._newest.playing)

    def _jump(self, event: Any) -> Request | None:
        now = self._newest
        if now is None:
            return None
        wishes: dict[str, Request] = {
            "Restart": Restart(),
            "Back": Scrub(max(now.frame - 1, 0)),
            "Step": Step(1) if now.frame >= now.frames - 1 else Scrub(now.frame + 1),
            "End": Scrub(max(now.frames - 1, 0)),
        }
        return wishes.get(event.target.value)

    def _look_back(self, tick: Any) -> Request | None:
        now = self._newest
        if now is None or not now.frames:
            return None
        share = min(max(tick / TICKS, 0.0), 1.0)
        return Scrub(round(share * (now.frames - 1)))

    def _show_time(self, snapshot: Snapshot) -> None:
        label, color = ("Pause", None) if snapshot.playing else ("Play", "green")
        if self._play.label != label:
            self._play.label, self._play.color = label, color
        span = f"{snapshot.start:.1f} to {snapshot.end:.1f} s"
        if self._time.hint != span:
            self._time.hint = span

    def _keys(self, gui: Any) -> None:
        """Keys for what is needed often."""
        wires = self._wires
        wires.key(gui.add_command("Play or pause", hotkey="space"), self._turn)
        wires.key(gui.add_command("One step", hotkey="S"), lambda event: Step(1))
        wires.key(gui.add_command("Restart", hotkey="R"), lambda event: Restart())
        wires.key(gui.add_command("Throw a ball", hotkey="T"), self.act.throw)


def _tick(snapshot: Snapshot) -> int:
    """The place of the shown frame on the timeline."""
    return round(TICKS * snapshot.frame / max(snapshot.frames - 1, 1))


def _nearest(known: dict[str, float], value: float) -> str:
    """The name of the nearest value."""
    return min(known, key=lambda name: abs(known[name] - value))
