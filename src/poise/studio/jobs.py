"""Work beside the simulation: loading clips, saving files. One thread for each kind of work."""

from __future__ import annotations

import logging
import os
import queue
import re
import secrets
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from poise.errors import PoiseError, unknown_name
from poise.io.archive import Archive
from poise.motion.clip import Clip
from poise.recording import Recording, load_recording
from poise.simulation.pushes import Push
from poise.studio.requests import Request, Save
from poise.studio.snapshot import Job, Snapshot

log = logging.getLogger("poise.studio")

MOST_WAITING = 12
"""Jobs that may wait."""

KEPT = 8
"""Jobs that have ended and are still told of."""

Progress = Callable[[float], None]
Work = Callable[[Progress], Any]


class Stopped(PoiseError):
    """The session ends, and so does its work."""


class _Task(NamedTuple):
    number: int
    work: Work
    then: Callable[[Any], None] | None
    failed: Callable[[str], None] | None


class Jobs:
    """Jobs that wait, run and have ended.

    Args:
        changed: Called from any thread when something about them has changed.
    """

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._lock = threading.Lock()
        self._jobs: dict[int, Job] = {}
        self._lanes: dict[str, queue.SimpleQueue[_Task | None]] = {}
        self._threads: list[threading.Thread] = []
        self._number = 0
        self._stopping = False

    @property
    def all(self) -> tuple[Job, ...]:
        """All jobs that are told of, the oldest first."""
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
        """Let some work be done; its number.

        Args:
            lane: Kind of work; jobs of one kind are done one after another.
            what: What it does, for people.
            work: Does it; is given a function to tell the share that is done, 0 to 1.
            then: Called with what it gave, from the thread that did it.
            failed: Called with what went wrong.
            token: Comes back in the job.
        """
        with self._lock:
            waiting = sum(job.state == "waiting" for job in self._jobs.values())
            if waiting >= MOST_WAITING or self._stopping:
                raise PoiseError("there is too much to do already: wait for what is being done")
            self._number += 1
            number = self._number
            self._jobs[number] = Job(number, what, token=token)
            if lane not in self._lanes:
                self._open(lane)
            self._lanes[lane].put(_Task(number, work, then, failed))
        self._changed()
        return number

    def stop(self, timeout: float = 5.0) -> None:
        """End; what runs is stopped when it next tells how far it is."""
        with self._lock:
            self._stopping = True
            lanes, threads = list(self._lanes.values()), list(self._threads)
        for lane in lanes:
            lane.put(None)
        for thread in threads:
            thread.join(timeout)

    def _open(self, lane: str) -> None:
        tasks: queue.SimpleQueue[_Task | None] = queue.SimpleQueue()
        self._lanes[lane] = tasks
        thread = threading.Thread(
            target=self._labour, args=(tasks,), name=f"poise-{lane}", daemon=True
        )
        self._threads.append(thread)
        thread.start()

    def _labour(self, tasks: queue.SimpleQueue[_Task | None]) -> None:
        while (task := tasks.get()) is not None and not self._stopping:
            self._do(task)

    def _do(self, task: _Task) -> None:
        def progress(share: float) -> None:
            if self._stopping:
                raise Stopped("the studio is closing")
            self._tell(task.number, share=min(max(float(share), 0.0), 1.0))

        self._tell(task.number, state="running")
        try:
            made = task.work(progress)
            path = made if isinstance(made, Path) else None
            if task.then is not None:
                task.then(made)
            message = "" if path is None else path.name
            self._tell(task.number, state="done", share=1.0, path=path, message=message)
        except Exception as error:
            ours = isinstance(error, PoiseError)
            text = str(error) if ours else f"{type(error).__name__}: {error}"
            if not ours:
                log.exception("a job failed")
            text = " ".join(text.split())[:300]
            self._tell(task.number, state="failed", message=text)
            if task.failed is not None:
                task.failed(text)

    def _tell(self, number: int, **news: Any) -> None:
        """Note how a job is doing; old ones are forgotten."""
        with self._lock:
            job = self._jobs[number]
            fine = job._replace(**news)
            if fine.state == job.state and fine.share - job.share < 0.01:
                return
            self._jobs[number] = fine
            ended = [n for n, job in self._jobs.items() if job.state in ("done", "failed")]
            for old in ended[:-KEPT]:
                del self._jobs[old]
        self._changed()


# ---- the output folder

LONGEST_NAME = 60
"""Letters of a file's name."""

MOST_LISTED = 200
"""Recordings that are listed."""

DEVICES = re.compile(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\.|$)")
"""Names that mean no file on Windows."""


class Folder:
    """A folder for recordings and what is made of them.

    Args:
        path: Where; it is made when the first file is written.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(os.path.abspath(path))
        self._promised: set[str] = set()

    def recordings(self) -> tuple[str, ...]:
        """Names of the recordings, the newest first; a file that is none is found out later."""
        found = []
        try:
            with os.scandir(self.path) as entries:
                for entry in entries:
                    if entry.name.endswith(".npz") and entry.is_file(follow_symlinks=False):
                        found.append((-entry.stat().st_mtime, entry.name))
        except OSError:
            return ()
        return tuple(name for _, name in sorted(found)[:MOST_LISTED])

    def load(self, name: str) -> Recording:
        """The recording of that name."""
        names = self.recordings()
        if name not in names:
            raise PoiseError(unknown_name("recording", name, names))
        return load_recording(self.path / name)

    def new(self, name: str, ending: str, otherwise: str = "take") -> Path:
        """The path of a file that is not there yet; the folder is.

        Args:
            name: What someone would like to call it.
            ending: Its ending, without a dot.
            otherwise: What to call it if nothing of the name is left.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise PoiseError(f"{self.path}: cannot be made: {error.strerror}") from error
        stem = safe_name(name, otherwise)
        for i in range(1, 100_000):
            file = f"{stem}.{ending}" if i == 1 else f"{stem}-{i}.{ending}"
            if file not in self._promised and not os.path.lexists(self.path / file):
                self._promised.add(file)
                return self.path / file
        raise PoiseError(f"{self.path}: has too many files that are called {stem!r}")


def safe_name(name: str, otherwise: str = "take") -> str:
    """A name that is a plain file name on every system.

    Args:
        name: What someone would like.
        otherwise: What is taken if nothing of it is left.
    """
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", name[:1000])
    plain = re.sub(r"\.{2,}", ".", plain).strip("-._")[:LONGEST_NAME].strip("-._")
    if not plain or DEVICES.match(plain):
        return otherwise if not plain else f"{otherwise}-{plain}"
    return plain


# ---- files


SHEET = 8, 2  # poses side by side, and rows of them


class Material(NamedTuple):
    """What files are made of.

    Attributes:
        recording: What happened.
        part: The character whose motion goes into files that hold one.
        copy: Which copy.
        beside: A recording to show beside it, where a file can.
        pushes: To be drawn, where a file can.
        title: What it is.
    """

    recording: Recording
    part: str
    copy: int = 0
    beside: Recording | None = None
    pushes: Sequence[Push] = ()
    title: str = "poise"


def save(kind: str, path: Path, material: Material, progress: Progress) -> Path:
    """Write one file, whole or not at all.

    Args:
        kind: Its ending: one of `requests.KINDS`.
        path: Where to.
        material: What it is made of.
        progress: Called with the share that is done, 0 to 1, where it takes long.
    """
    recording, copy = material.recording, material.copy
    if kind == "npz":
        recording.save(path)
    elif kind in ("bvh", "glb"):
        recording.clip(material.part, copy=copy).save(path)
    elif kind == "html":
        from poise.view.html import save_html

        save_html(
            path, recording, beside=material.beside, copy=copy, pushes=material.pushes,
            title=material.title,
        )  # fmt: skip
    elif kind == "png":
        from poise.view.recorded import recording_sheet
        from poise.view.render import save_image

        columns, rows = SHEET
        save_image(path, recording_sheet(recording, copy=copy, columns=columns, rows=rows))
    else:
        from poise.view.video import save_video

        # one thread: the other cores are for the simulation that goes on meanwhile
        save_video(path, recording, copy=copy, pushes=material.pushes, threads=1, progress=progress)
    return path


# ---- what a studio is opened with

Source: TypeAlias = "str | os.PathLike[str] | Clip | Recording | None"


def chosen_by(source: Source, beside: Source = None) -> dict[str, Any]:
    """What a session is to be made with.

    Args:
        source: What to show first.
        beside: What to compare with.
    """
    chosen: dict[str, Any] = {"names": (called(source, "first"), called(beside, "second"))}
    if isinstance(source, (str, os.PathLike)) and is_recording(source):
        chosen["recording"] = load_recording(source)
    elif isinstance(source, Recording):
        chosen["recording"] = source
    elif source is not None:
        chosen["clip"] = source if isinstance(source, Clip) else os.fspath(source)
    if beside is not None:
        if isinstance(beside, (str, os.PathLike)):
            beside = load_recording(beside)
        if not isinstance(beside, Recording):
            raise PoiseError(f"beside must be a recording, got {beside!r:.80}")
        chosen["compare"] = beside
    return chosen


def called(source: Source, otherwise: str) -> str:
    """What to call a recording: its file with the folder, since those of `poise track` are alike.

    Args:
        source: The file, or something else.
        otherwise: The name of something else.
    """
    if not isinstance(source, (str, os.PathLike)):
        return otherwise
    path = Path(source)
    name = Path(path.absolute().parent.name, path.name).as_posix()
    return "".join(c for c in name if c.isprintable())[-80:]


def is_recording(source: str | os.PathLike[str]) -> bool:
    """Whether a file is a recording of ours, and not a clip."""
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

LARGEST_FILE = 256 << 20
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
        if path.stat().st_size > LARGEST_FILE:
            client.add_notification(path.name, f"too large to send: it is {path}")
            return
        data = path.read_bytes()
    except OSError as problem:
        log.warning("%s: cannot be sent: %s", path, problem)
        client.add_notification(path.name, "it is gone", color="red")
        return
    client.send_file_download(path.name, data, save_immediately=True)
