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
from poise.math.arrays import Floats
from poise.studio.jobs import Downloads
from poise.studio.live_view import LiveStage
from poise.studio.marks import See
from poise.studio.panel import Panel
from poise.studio.readouts import Plots
from poise.studio.requests import Drag, Push, Release, SetGoal, Throw
from poise.studio.session import Session
from poise.studio.snapshot import Snapshot
from poise.view.batch import bytes_of

log = logging.getLogger("poise.studio")

HOST, PORT = "127.0.0.1", 8080
RATE = 30.0  # updates of the scene per second
WORDS = 6.0  # updates of words and controls per second
CURVES = 3.0  # updates of the plots per second
PORTS = 100  # that are tried, one after the other
SKY = ((0.74, 0.82, 0.90), (0.91, 0.94, 0.96))
"""Colour of the background at the top and at the horizon."""


class Page:
    """A server for browsers. The session never waits for it, nor it for a browser.

    Args:
        session: What is shown and asked; started.
        host: Address to bind to.
        port: Port; 0 takes any that is free.
        shadows: Whether it begins with shadows; a browser without a GPU is quicker without.
    """

    def __init__(
        self, session: Session, host: str = HOST, port: int = PORT, shadows: bool = True
    ) -> None:
        self._session = session
        self.server = serve_viser(host, port)
        self._dress(shadows)
        self.stage = LiveStage(self.server, self._drag, self._release, self._push, self._goal)
        self._downloads = Downloads(session.ask)
        self.panel = Panel(self.server, session, self._downloads, self._eye, shadows)
        self.panel.see_tab.on_frame(self._frame)
        self.panel.see_tab.on_shadows(self._light)
        self._plots = Plots(self.server.gui)
        self.rate = 0.0
        self.updates = 0
        self._look: tuple[str, int, bool] | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="poise-page", daemon=True)
        self.server.on_client_disconnect(self._gone)
        self._show(session.newest)
        self._thread.start()

    @property
    def url(self) -> str:
        """Where a browser finds it."""
        host = str(self.server.get_host())
        name = "localhost" if host in ("127.0.0.1", "0.0.0.0", "::") else host
        return f"http://{name}:{self.server.get_port()}"

    def stop(self) -> None:
        """End it; browsers say that the connection is lost."""
        if self._ended.is_set():
            return
        self._ended.set()
        self._thread.join(timeout=5.0)
        with quiet():
            self.server.stop()

    # ---- showing

    def _run(self) -> None:
        """Show the newest snapshot, again and again; what fails once is logged, and it goes on."""
        words, curves, beats = 0.0, 0.0, Beats()
        number, seen, failed = -1, See(), ""
        while not self._ended.is_set():
            start = time.monotonic()
            if not self.server.get_clients():
                self._ended.wait(0.05)
                continue
            snapshot, see = self._session.wait(number, 0.1), self.panel.see
            if snapshot.number == number and see == seen and start - words < 1.0:
                continue
            number, seen = snapshot.number, see
            try:
                with self.server.atomic():
                    self._show(snapshot)
                    self.rate = beats.beat(start)
                    if start - words > 1.0 / WORDS:
                        words = start
                        self.panel.update(snapshot, self.rate)
                        self._downloads.update(snapshot)
                    if start - curves > 1.0 / CURVES:
                        curves = start
                        self._plots.update(self._session.curves())
            except Exception as problem:
                if repr(problem) != failed:
                    log.exception("the page could not be updated")
                failed = repr(problem)
            self.updates += 1
            self._ended.wait(max(0.0, 1.0 / RATE - (time.monotonic() - start)))

    def _show(self, snapshot: Snapshot) -> None:
        self.stage.update(snapshot, self.panel.see)
        index = snapshot.measures.index
        look = (index.character.name, index.count, snapshot.beside is None)
        if look != self._look:
            self._look = look
            self._point(self.server.initial_camera)
            for client in self.server.get_clients().values():
                self._point(client.camera)

    def _dress(self, shadows: bool) -> None:
        """Colours, lights, sky and panels."""
        server = self.server
        server.gui.configure_theme(
            control_width="medium", show_logo=False, show_share_button=False,
            brand_color=(45, 95, 150),
        )  # fmt: skip
        server.gui.set_panel_label("poise studio")
        server.scene.set_up_direction("+z")
        server.scene.set_background_image(sky())
        # viser reads the colour of fog as linear light
        horizon = bytes_of(np.array(SKY[1:]))[0]
        server.scene.configure_fog(12.0, 26.0, color=tuple(horizon.tolist()))
        self._light(shadows)

    def _light(self, shadows: bool) -> None:
        self.server.scene.configure_default_lights(True, cast_shadow=shadows)

    def _point(self, camera: Any) -> None:
        """Let a camera see the character."""
        view = self.stage.camera()
        camera.fov = view.fov
        camera.position = view.eye
        camera.look_at = view.target

    def _frame(self, event: Any) -> None:
        if event.client is not None:
            self._point(event.client.camera)

    def _gone(self, client: Any) -> None:
        self._downloads.forget(client)
        self.stage.goals.let_go(client.client_id)

    # ---- asking

    def _eye(self, event: Any) -> tuple[float, ...]:
        """Where the camera of an event's browser is in the world [m]."""
        return tuple(self.stage.to_world(event.client.camera.position).tolist())

    def _drag(self, link: int, to: Floats, point: Floats) -> None:
        self._session.ask(Drag(link, tuple(to.tolist()), tuple(point.tolist())))

    def _release(self, link: int) -> None:
        self._session.ask(Release(link))

    def _goal(self, name: str, to: Floats) -> None:
        self._session.ask(SetGoal(name, tuple(to.tolist())))

    def _push(self, link: int, way: Floats, eye: Floats, ball: bool) -> None:
        if ball:
            self._session.ask(Throw(link, tuple(eye.tolist()), self.panel.act.speed))
        else:
            force, duration = self.panel.act.push
            self._session.ask(Push(link, force, tuple(way.tolist()), duration))


class Beats:
    """How often something happens, over the last second."""

    def __init__(self) -> None:
        self._times: list[float] = []

    def beat(self, now: float) -> float:
        """It happens now [s]; returns how often per second."""
        self._times = [t for t in self._times if now - t < 1.0] + [now]
        span = now - self._times[0]
        return (len(self._times) - 1) / span if span > 0.0 else 0.0


def serve_viser(host: str, port: int) -> Any:
    """A viser server behind the gate, on that port or the next free one."""
    from viser import ViserServer

    from poise.studio.message_filter import guard

    free = free_port(host, port)
    with quiet():
        server = ViserServer(host=host, port=free, verbose=False)
    guard(server, host)
    return server


def free_port(host: str, port: int, tries: int = PORTS) -> int:
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
    share = np.minimum(np.linspace(0.0, 4.5, 256)[:, None], 1.0)
    column = (1.0 - share) * np.array(SKY[0]) + share * np.array(SKY[1])
    return np.rint(255 * np.broadcast_to(column[:, None], (256, 4, 3))).astype(np.uint8)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """viser greets and says good-bye on the terminal; we have our own words."""
    with contextlib.redirect_stdout(io.StringIO()):
        yield
