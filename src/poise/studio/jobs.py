"""Work beside the simulation: loading clips, saving files, sending them to browsers.

Each kind of work has a thread. Names of files from a page are made safe: letters, digits, "-", "_"
and "." remain, at most sixty. They become files in the output folder itself, and never replace one.
"""

from __future__ import annotations

import logging
import os
import queue
import re
import secrets
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from poise.errors import PoiseError, unknown_name
from poise.io.archive import Archive
from poise.math.arrays import Progress
from poise.motion.clip import Clip
from poise.recording import Recording, load_recording
from poise.simulation.pushes import Push
from poise.studio.requests import Request, Save
from poise.studio.snapshot import Job, Snapshot
from poise.view.contact_sheet import recording_sheet
from poise.view.html import save_html
from poise.view.render import save_image
from poise.view.video import save_video

log = logging.getLogger("poise.studio")

MAX_WAITING = 12
"""Jobs that may wait."""

MAX_ENDED = 8
"""Jobs that have ended and are still listed."""

Work = Callable[[Progress], Any]


class Jobs:
    """Jobs that wait, run and have ended.

    Args:
        changed: Called from any thread when something about them has changed.
    """

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._lock = threading.Lock()
        self._jobs: dict[int, Job] = {}
        self._lanes: dict[str, queue.SimpleQueue[Callable[[], None] | None]] = {}
        self._threads: list[threading.Thread] = []
        self._number = 0
        self._stopping = False

    @property
    def all(self) -> tuple[Job, ...]:
        """All listed jobs, the oldest first."""
        with self._lock:
            return tuple(self._jobs.values())

    def start(
        self,
        lane: str,
        what: str,
        work: Work,
        *,
        then: Callable[[Any], None] | None = None,
        failed: Callable[[str], None] | None = None,
        token: str = "",
    ) -> int:
        """Starts a job; returns its number.

        Args:
            lane: Kind of work; jobs of one kind are done one after another.
            what: Its description.
            work: Does it; takes a function to report progress, 0 to 1.
            then: Called with its result, from the thread of the job.
            failed: Called with the error message.
            token: Comes back in the job.
        """
        with self._lock:
            waiting = sum(job.state == "waiting" for job in self._jobs.values())
            if waiting >= MAX_WAITING or self._stopping:
                raise PoiseError("there is too much to do already: wait for what is being done")
            self._number += 1
            number = self._number
            self._jobs[number] = Job(number, what, token=token)
            if lane not in self._lanes:
                tasks = self._lanes[lane] = queue.SimpleQueue()
                thread = threading.Thread(
                    target=self._work, args=(tasks,), name=f"poise-{lane}", daemon=True
                )
                self._threads.append(thread)
                thread.start()
            self._lanes[lane].put(partial(self._do, number, work, then, failed))
        self._changed()
        return number

    def stop(self, timeout: float = 5.0) -> None:
        """Ends all jobs; a running job stops when it next reports progress."""
        with self._lock:
            self._stopping = True
            lanes, threads = list(self._lanes.values()), list(self._threads)
        for lane in lanes:
            lane.put(None)
        for thread in threads:
            thread.join(timeout)

    def _work(self, tasks: queue.SimpleQueue[Callable[[], None] | None]) -> None:
        while (task := tasks.get()) is not None and not self._stopping:
            task()

    def _do(
        self,
        number: int,
        work: Work,
        then: Callable[[Any], None] | None,
        failed: Callable[[str], None] | None,
    ) -> None:
        def report(progress: float) -> None:
            if self._stopping:
                raise PoiseError("the studio is closing")
            self._update(number, progress=min(max(float(progress), 0.0), 1.0))

        self._update(number, state="running")
        try:
            made = work(report)
            path = made if isinstance(made, Path) else None
            if then is not None:
                then(made)
            message = "" if path is None else path.name
            self._update(number, state="done", progress=1.0, path=path, message=message)
        except Exception as error:
            text = str(error)
            if not isinstance(error, PoiseError):
                text = f"{type(error).__name__}: {error}"
                log.exception("a job failed")
            text = " ".join(text.split())[:300]
            self._update(number, state="failed", message=text)
            if failed is not None:
                failed(text)

    def _update(self, number: int, **changes: Any) -> None:
        """Changes the listed state of a job; old ones are removed."""
        with self._lock:
            job = self._jobs[number]
            changed = job._replace(**changes)
            if changed.state == job.state and changed.progress - job.progress < 0.01:
                return
            self._jobs[number] = changed
            ended = [n for n, job in self._jobs.items() if job.state in ("done", "failed")]
            for old in ended[:-MAX_ENDED]:
                del self._jobs[old]
        self._changed()


# ---- the output folder

MAX_NAME = 60
"""Letters of a file's name."""

MAX_LISTED = 200
"""Recordings that are listed."""

DEVICES = re.compile(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\.|$)")
"""Names of devices on Windows."""


class OutputFolder:
    """The output folder, the only one in which a page can have files written or read.

    Args:
        path: Its path; it is made when the first file is written.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(os.path.abspath(path))
        self._reserved: set[str] = set()

    def recordings(self) -> tuple[str, ...]:
        """Names of the recordings, the newest first; their content is checked later."""
        found = []
        try:
            with os.scandir(self.path) as entries:
                for entry in entries:
                    if entry.name.endswith(".npz") and entry.is_file(follow_symlinks=False):
                        found.append((-entry.stat().st_mtime, entry.name))
        except OSError:
            return ()
        return tuple(name for _, name in sorted(found)[:MAX_LISTED])

    def load(self, name: str) -> Recording:
        """The recording of that name."""
        names = self.recordings()
        if name not in names:
            raise PoiseError(unknown_name("recording", name, names))
        return load_recording(self.path / name)

    def new(self, name: str, ending: str, otherwise: str = "take") -> Path:
        """Path of a new file; makes the folder.

        Args:
            name: Its name, which is made safe.
            ending: Its ending, without a dot.
            otherwise: Its name if nothing of the name remains.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise PoiseError(f"{self.path}: cannot be made: {error.strerror}") from error
        stem = safe_name(name, otherwise)
        for i in range(1, 100_000):
            file = f"{stem}.{ending}" if i == 1 else f"{stem}-{i}.{ending}"
            if file not in self._reserved and not os.path.lexists(self.path / file):
                self._reserved.add(file)
                return self.path / file
        raise PoiseError(f"{self.path}: has too many files that are called {stem!r}")


def safe_name(name: str, otherwise: str = "take") -> str:
    """A name that is a valid file name on every system.

    Args:
        name: Any text.
        otherwise: The name if nothing of it remains.
    """
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", name[:1000])
    plain = re.sub(r"\.{2,}", ".", plain).strip("-._")[:MAX_NAME].strip("-._")
    if not plain or DEVICES.match(plain):
        return otherwise if not plain else f"{otherwise}-{plain}"
    return plain


# ---- files


COLUMNS, ROWS = 8, 2  # of a contact sheet


class ExportSource(NamedTuple):
    """What files are made of.

    Attributes:
        recording: The recording; files show its first copy.
        part: The character whose motion goes into files of one motion.
        beside: A recording to show beside it, in files that can.
        pushes: Pushes to draw, in files that can.
        title: Its title.
    """

    recording: Recording
    part: str
    beside: Recording | None = None
    pushes: Sequence[Push] = ()
    title: str = "poise"


def save(kind: str, path: Path, material: ExportSource, progress: Progress) -> Path:
    """Writes one file, whole or not at all.

    Args:
        kind: Its ending: one of `requests.KINDS`.
        path: Its path.
        material: What it is made of.
        progress: Called with the progress, 0 to 1, where it takes long.
    """
    recording = material.recording
    if kind == "npz":
        recording.save(path)
    elif kind in ("bvh", "glb"):
        recording.clip(material.part).save(path)
    elif kind == "html":
        pushes, title = material.pushes, material.title
        save_html(path, recording, beside=material.beside, pushes=pushes, title=title)
    elif kind == "png":
        save_image(path, recording_sheet(recording, columns=COLUMNS, rows=ROWS))
    else:
        # one thread: the other cores are for the simulation
        save_video(path, recording, pushes=material.pushes, threads=1, progress=progress)
    return path


# ---- what a studio is opened with

Source: TypeAlias = "str | os.PathLike[str] | Clip | Recording | None"


def session_options(source: Source, beside: Source = None) -> dict[str, Any]:
    """Arguments of `Session` for what a studio is opened with.

    Args:
        source: A clip or a recording.
        beside: A recording to compare with.
    """
    names = source_name(source, "first"), source_name(beside, "second")
    options: dict[str, Any] = {"names": names}
    if isinstance(source, (str, os.PathLike)) and is_recording(source):
        source = load_recording(source)
    if isinstance(source, Recording):
        options["recording"] = source
    elif source is not None:
        options["clip"] = source if isinstance(source, Clip) else os.fspath(source)
    if beside is not None:
        if isinstance(beside, (str, os.PathLike)):
            beside = load_recording(beside)
        if not isinstance(beside, Recording):
            raise PoiseError(f"beside must be a recording, got {beside!r:.80}")
        options["compare"] = beside
    return options


def source_name(source: Source, otherwise: str) -> str:
    """Name of a recording: its file with the folder, as files of `poise track` have one name.

    Args:
        source: The file, or an object.
        otherwise: The name of an object.
    """
    if not isinstance(source, (str, os.PathLike)):
        return otherwise
    path = Path(source)
    name = Path(path.absolute().parent.name, path.name).as_posix()
    return "".join(c for c in name if c.isprintable())[-80:]


def is_recording(source: str | os.PathLike[str]) -> bool:
    """Whether a file is a recording, and not a clip."""
    path = Path(source)
    if path.suffix.lower() != ".npz" or not path.is_file():
        return False
    with Archive.open(path, PoiseError) as archive:
        return "scene" in archive.names and "frames" not in archive.names


# ---- downloads


FILES = {
    "HTML": "html",
    "BVH": "bvh",
    "GLB": "glb",
    "Video": "mp4",
    "Recording": "npz",
}
"""Buttons, and the kind of file each gives."""

MAX_DOWNLOAD = 256 << 20
"""Files that are larger stay in the output folder [bytes]."""


class Downloads:
    """Files that browsers wait for, sent when they are saved.

    Args:
        submit: Takes a request, as `Session.submit`.
    """

    def __init__(self, submit: Callable[[Request], bool]) -> None:
        self._submit = submit
        self._waiting: dict[str, Any] = {}
        self._notes: dict[str, Any] = {}

    def build(self, gui: Any, name: Any) -> None:
        """Adds the buttons to the panel.

        Args:
            gui: viser's interface to the panels.
            name: The field with the name of the files.
        """
        buttons = gui.add_button_group("Save as", tuple(FILES), hint=(
            "The take; without one, all since the start; or the recording that is open. "
            "Files are kept in the output folder, too."
        ))  # fmt: skip

        async def pressed(event: Any) -> None:
            kind = FILES.get(event.target.value)
            if kind is not None and event.client is not None:
                self.request_file(event.client, kind, name.value)

        buttons.on_click(pressed)

    def request_file(self, client: Any, kind: str, name: str) -> None:
        """Requests a file for a browser.

        Args:
            client: viser's handle of the browser.
            kind: Ending of the file.
            name: Its name; may be empty.
        """
        token = secrets.token_hex(8)
        self._waiting[token] = client
        if not self._submit(Save((kind,), name, token)):
            self._waiting.pop(token)

    def update(self, snapshot: Snapshot) -> None:
        """Sends the files that are saved; shows progress and errors."""
        for job in snapshot.jobs:
            client = self._waiting.get(job.token) if job.token else None
            if client is None:
                continue
            if job.state in ("waiting", "running"):
                self._show_progress(client, job)
                continue
            self._waiting.pop(job.token)
            self._end(client, job)
            if job.state == "done":
                send(client, job)

    def forget(self, client: Any) -> None:
        """Removes the files of a browser that has disconnected."""
        waiting = self._waiting.items()
        for token in [token for token, one in waiting if one.client_id == client.client_id]:
            self._waiting.pop(token, None)
            self._notes.pop(token, None)

    def _show_progress(self, client: Any, job: Job) -> None:
        note = self._notes.get(job.token)
        body = f"{job.progress:.0%}"
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
    """Sends a saved file to a browser, which stores it with its downloads."""
    path = job.path
    if path is None:
        return
    try:
        if path.stat().st_size > MAX_DOWNLOAD:
            client.add_notification(path.name, f"too large to send: it is {path}")
            return
        data = path.read_bytes()
    except OSError as problem:
        log.warning("%s: cannot be sent: %s", path, problem)
        client.add_notification(path.name, "it is gone", color="red")
        return
    client.send_file_download(path.name, data, save_immediately=True)
