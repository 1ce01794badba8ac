"""The page: a viser server that shows the session's newest snapshot, some thirty times a second."""

from __future__ import annotations

import contextlib
import errno
import io
import logging
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from poise.errors import PoiseError
from poise.studio import tabs
from poise.studio.jobs import Downloads
from poise.studio.live_view import LiveView
from poise.studio.marks import ViewOptions
from poise.studio.message_filter import install_filter
from poise.studio.readouts import Plots, StatusLines
from poise.studio.requests import Play, Request, Restart, Scrub, SetLoop, SetSpeed, Step
from poise.studio.session import Session
from poise.studio.snapshot import Snapshot
from poise.studio.tabs import Bindings
from poise.view.stage import linear_bytes

log = logging.getLogger("poise.studio")

HOST, PORT = "127.0.0.1", 8080
SCENE_RATE = 30.0  # updates of the scene per second
PANEL_RATE = 6.0  # updates of texts and controls per second
PLOT_RATE = 3.0  # updates of the plots per second
MAX_PORTS = 100  # that are tried, one after the other
SKY = ((0.74, 0.82, 0.90), (0.91, 0.94, 0.96))
"""Color of the background at the top and at the horizon."""


class Page:
    """A server for browsers. The session never waits for it, nor it for a browser.

    Args:
        session: The session, started.
        host: Address to bind to.
        port: Port; 0 takes any that is free.
        shadows: Whether it begins with shadows; a browser without a GPU is quicker without.
    """

    def __init__(
        self, session: Session, host: str = HOST, port: int = PORT, shadows: bool = True
    ) -> None:
        self._session = session
        self.server = serve_viser(host, port)
        self._set_scene(shadows)
        self.view = LiveView(
            self.server, session.submit, lambda *click: self.panel.act.click(*click)
        )
        self._downloads = Downloads(session.submit)
        self.panel = Panel(self.server, session, self._downloads, self._eye, shadows)
        self.panel.view_tab.on_frame(self._frame)
        self.panel.view_tab.on_shadows(self._set_lights)
        self._plots = Plots(self.server.gui)
        self.rate = 0.0
        self.updates = 0
        self._framed: tuple[str, int, bool] | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="poise-page", daemon=True)
        self.server.on_client_disconnect(self._on_disconnect)
        self._show(session.newest)
        self._thread.start()

    @property
    def url(self) -> str:
        """Where a browser finds it."""
        host = str(self.server.get_host())
        name = "localhost" if host in ("127.0.0.1", "0.0.0.0", "::") else host
        return f"http://{name}:{self.server.get_port()}"

    def stop(self) -> None:
        """Stops the server; browsers show that the connection is lost."""
        if self._ended.is_set():
            return
        self._ended.set()
        self._thread.join(timeout=5.0)
        with quiet():
            self.server.stop()

    # ---- updates

    def _run(self) -> None:
        """Shows the newest snapshot again and again; an error is logged once."""
        panel_time, plot_time, meter = 0.0, 0.0, RateMeter()
        number, shown, failed = -1, ViewOptions(), ""
        while not self._ended.is_set():
            start = time.monotonic()
            if not self.server.get_clients():
                self._ended.wait(0.05)
                continue
            snapshot, options = self._session.wait(number, 0.1), self.panel.view_tab.chosen
            if snapshot.number == number and options == shown and start - panel_time < 1.0:
                continue
            number, shown = snapshot.number, options
            try:
                with self.server.atomic():
                    self._show(snapshot)
                    self.rate = meter.tick(start)
                    if start - panel_time > 1.0 / PANEL_RATE:
                        panel_time = start
                        self.panel.update(snapshot, self.rate)
                        self._downloads.update(snapshot)
                    if start - plot_time > 1.0 / PLOT_RATE:
                        plot_time = start
                        self._plots.update(self._session.curves())
            except Exception as problem:
                if repr(problem) != failed:
                    log.exception("the page could not be updated")
                failed = repr(problem)
            self.updates += 1
            self._ended.wait(max(0.0, 1.0 / SCENE_RATE - (time.monotonic() - start)))

    def _show(self, snapshot: Snapshot) -> None:
        self.view.update(snapshot, self.panel.view_tab.chosen)
        index = snapshot.measures.index
        framed = (index.character.name, index.count, snapshot.beside is None)
        if framed != self._framed:
            self._framed = framed
            self._aim_camera(self.server.initial_camera)
            for client in self.server.get_clients().values():
                self._aim_camera(client.camera)

    def _set_scene(self, shadows: bool) -> None:
        """Sets colors, lights, sky and panels."""
        server = self.server
        server.gui.configure_theme(
            control_width="medium", show_logo=False, show_share_button=False,
            brand_color=(45, 95, 150),
        )  # fmt: skip
        server.gui.set_panel_label("poise studio")
        server.scene.set_up_direction("+z")
        server.scene.set_background_image(sky())
        # viser takes the color of fog as linear light
        horizon = linear_bytes(np.array(SKY[1:]))[0]
        server.scene.configure_fog(12.0, 26.0, color=tuple(horizon.tolist()))
        self._set_lights(shadows)

    def _set_lights(self, shadows: bool) -> None:
        self.server.scene.configure_default_lights(True, cast_shadow=shadows)

    def _aim_camera(self, camera: Any) -> None:
        """Points a camera at the character."""
        placed = self.view.camera()
        camera.fov = placed.fov
        camera.position = placed.eye
        camera.look_at = placed.target

    def _frame(self, event: Any) -> None:
        if event.client is not None:
            self._aim_camera(event.client.camera)

    def _on_disconnect(self, client: Any) -> None:
        self._downloads.forget(client)
        self.view.goals.release(client.client_id)

    def _eye(self, event: Any) -> tuple[float, ...]:
        """Place of the camera of an event's browser in the world [m]."""
        return tuple(self.view.to_world(event.client.camera.position).tolist())


class RateMeter:
    """How often something happens, over the last second."""

    def __init__(self) -> None:
        self._times: list[float] = []

    def tick(self, now: float) -> float:
        """Counts one event at time now [s]; returns their rate [1/s]."""
        self._times = [t for t in self._times if now - t < 1.0] + [now]
        span = now - self._times[0]
        return (len(self._times) - 1) / span if span > 0.0 else 0.0


def serve_viser(host: str, port: int) -> Any:
    """A viser server behind the message filter, on that port or the next free one."""
    from viser import ViserServer

    free = free_port(host, port)
    with quiet():
        server = ViserServer(host=host, port=free, verbose=False)
    install_filter(server, host)
    return server


def free_port(host: str, port: int, tries: int = MAX_PORTS) -> int:
    """The first free port from that one on; 0 stays 0, the system then chooses.

    Args:
        host: Address to bind to.
        port: Where to begin.
        tries: How many are tried.
    """
    for at in range(port, min(port + tries, 65536)):
        try:
            kind = socket.getaddrinfo(host, at, type=socket.SOCK_STREAM)[0][0]
            with socket.socket(kind, socket.SOCK_STREAM) as trial:
                trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                trial.bind((host, at))
                return at
        except OSError as problem:
            if problem.errno not in (errno.EADDRINUSE, errno.EACCES):
                why = problem.strerror or problem
                raise PoiseError(f"host {host!r:.80} cannot be bound to: {why}") from problem
    raise PoiseError(f"no port from {port} to {min(port + tries, 65536) - 1} is free; name another")


def sky() -> Any:
    """The background: a soft gradient, shape (height, width, 3), uint8."""
    blend = np.minimum(np.linspace(0.0, 4.5, 256)[:, None], 1.0)
    column = (1.0 - blend) * np.array(SKY[0]) + blend * np.array(SKY[1])
    return np.rint(255 * np.broadcast_to(column[:, None], (256, 4, 3))).astype(np.uint8)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Suppresses what viser prints to the terminal."""
    with contextlib.redirect_stdout(io.StringIO()):
        yield


# ---- the panel: playback at the top, and below it the tabs

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
        self._newest: Snapshot = session.newest
        self._bindings = Bindings(gui, session.submit)
        self.status = StatusLines(gui)
        self._playback(gui)
        group = gui.add_tab_group()
        with group.add_tab("Scene"):
            self._scene = tabs.SceneTab(gui, self._bindings, session.library)
        tune = group.add_tab("Tune")
        with tune:
            self._control = tabs.ControlTab(gui, self._bindings)
            self._options = tabs.OptionControls(tune, gui, self._bindings)
        with group.add_tab("Act"):
            self.act = tabs.ActTab(gui, self._bindings, origin)
        with group.add_tab("See"):
            self.view_tab = tabs.ViewTab(gui, shadows)
        with group.add_tab("Record"):
            self._record = tabs.RecordTab(gui, self._bindings, downloads)
        self._add_keys()

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

    def _toggle_play(self, event: Any) -> Request:
        return Play(not self._newest.playing)

    def _jump(self, event: Any) -> Request | None:
        now = self._newest
        jumps: dict[str, Request] = {
            "Restart": Restart(),
            "Back": Scrub(max(now.frame - 1, 0)),
            "Step": Step(1) if now.frame >= now.frames - 1 else Scrub(now.frame + 1),
            "End": Scrub(max(now.frames - 1, 0)),
        }
        return jumps.get(event.target.value)

    def _scrub(self, tick: Any) -> Request | None:
        frames, fraction = self._newest.frames, min(max(tick / TICKS, 0.0), 1.0)
        return Scrub(round(fraction * (frames - 1))) if frames else None

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
