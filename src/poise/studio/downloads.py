"""Downloads: files that the session saves, sent to the browser that asked for them."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable
from typing import Any

from poise.studio.requests import Request, Save
from poise.studio.snapshot import Job, Snapshot

log = logging.getLogger("poise.studio")

FILES = {
    "HTML": "html",
    "BVH": "bvh",
    "GLB": "glb",
    "Video": "mp4",
    "Recording": "npz",
}
"""Buttons, and the kind of file each gives."""

LARGEST = 256 << 20
"""Files that are larger stay in the output folder [bytes]."""


class Downloads:
    """Who waits for which file.

    Args:
        ask: Takes a request, as `Session.ask`.
    """

    def __init__(self, ask: Callable[[Request], bool]) -> None:
        self._ask = ask
        self._waiting: dict[str, Any] = {}
        self._notes: dict[str, Any] = {}

    def build(self, gui: Any, name: Any) -> None:
        """Put the buttons into the panel.

        Args:
            gui: viser's interface to the panels.
            name: The field with the name of the files.
        """
        buttons = gui.add_button_group("Save as", tuple(FILES), hint=(
            "The take; without one, what has been since the start; or the recording that is open. "
            "Files are kept in the output folder, too."
        ))  # fmt: skip

        async def pressed(event: Any) -> None:
            kind = FILES.get(event.target.value)
            if kind is not None and event.client is not None:
                self.order(event.client, kind, name.value)

        buttons.on_click(pressed)

    def order(self, client: Any, kind: str, name: str) -> None:
        """Ask for a file.

        Args:
            client: viser's handle of the browser.
            kind: Ending of the file.
            name: What to call it; may be empty.
        """
        token = secrets.token_hex(8)
        self._waiting[token] = client
        if not self._ask(Save((kind,), name, token)):
            self._waiting.pop(token)

    def update(self, snapshot: Snapshot) -> None:
        """Send what is done; tell of what failed."""
        for job in snapshot.jobs:
            client = self._waiting.get(job.token) if job.token else None
            if client is None:
                continue
            if job.state in ("waiting", "running"):
                self._tell(client, job)
                continue
            self._waiting.pop(job.token)
            self._end(client, job)
            if job.state == "done":
                send(client, job)

    def forget(self, client: Any) -> None:
        """A browser is gone: nobody waits for its files."""
        gone = [token for token, who in self._waiting.items() if who.client_id == client.client_id]
        for token in gone:
            self._waiting.pop(token, None)
            self._notes.pop(token, None)

    def _tell(self, client: Any, job: Job) -> None:
        """How far it is."""
        note = self._notes.get(job.token)
        body = f"{job.share:.0%}"
        if note is None:
            self._notes[job.token] = client.add_notification(
                job.what, body, loading=True, with_close_button=False
            )
        elif note.body != body:
            note.body = body

    def _end(self, client: Any, job: Job) -> None:
        note = self._notes.pop(job.token, None)
        if note is not None:
            note.remove()
        if job.state == "failed":
            client.add_notification(job.what, job.message, color="red")


def send(client: Any, job: Job) -> None:
    """Send a saved file to a browser, which stores it with its downloads."""
    path = job.path
    if path is None:
        return
    try:
        if path.stat().st_size > LARGEST:
            client.add_notification(path.name, f"too large to send: it is {path}")
            return
        data = path.read_bytes()
    except OSError as problem:
        log.warning("%s: cannot be sent: %s", path, problem)
        client.add_notification(path.name, "it is gone", color="red")
        return
    client.send_file_download(path.name, data, save_immediately=True)
