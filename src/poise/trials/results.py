"""Results: what a trial leaves in a folder; all of it, or nothing.

    recording.npz   every frame, to resume bit for bit: `poise.load_recording`, `poise view`
    recording.html  the same to look at in any browser, without a network
    motion.bvh      what the character did, on the rig of the clip's file if it has one
    motion.glb      the same with its body, for Blender and game engines
    overview.png    errors, torques, momentum, energy and ground force over time
    video.mp4       a film of it
    table.json      the numbers

Everything is written into a hidden folder beside the results, and moved into place when all of it
is there: whoever ends the program leaves the results of the run before, or none.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import secrets
import shutil
import signal
import stat
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from poise.errors import PoiseError
from poise.io.files import parse_json, read_text, write_atomically
from poise.motion.clip import Clip
from poise.recording import Recording
from poise.simulation.pushes import Push

VIDEO, TABLE = "video.mp4", "table.json"
FILES = (
    "recording.npz",
    "motion.bvh",
    "motion.glb",
    "overview.png",
    "recording.html",
    VIDEO,
    TABLE,
)
"""In the order in which they are written."""

MAKER = "made by"
"""Key of the table that tells our results from other files."""

LARGEST_TABLE = 16 * 2**20  # [bytes]

Progress = Callable[[str, float], None]
"""Takes the name of a file, and the share of it that is done, 0 to 1."""


def save_results(
    out: str | os.PathLike[str],
    recording: Recording,
    *,
    clip: Clip,
    name: str,
    like: Clip | None = None,
    video: bool = True,
    pushes: Sequence[Push] = (),
    table: dict[str, Any] | None = None,
    more: Mapping[str, Callable[[Path], None]] | None = None,
    progress: Progress | None = None,
) -> dict[str, Path]:
    """Write all results of a trial into a folder.

    Args:
        out: The folder; it is made if it is not there. Results of an earlier trial are replaced.
        recording: What happened, in a world of one copy.
        clip: What was followed.
        name: What to call it in pictures.
        like: A clip on whose rig motion.bvh is written; None takes that of `clip`.
        video: Whether to make a film.
        pushes: What pushed, with directions in the world: they are drawn.
        table: Numbers for table.json; None takes those of `poise.recording.table`.
        more: What writes further files, by their names.
        progress: Called with the name of a file and the share of it that is done.

    Returns:
        The files by their names.
    """
    if table is None:
        from poise.recording.table import table as table_of

        table = table_of(recording)
    table = {**table, **maker()}
    story = _Story(recording, clip, name, like, tuple(pushes), table)
    names = [file for file in FILES if video or file != VIDEO]
    out = check_out(out)
    with staged(out) as stage:
        for file in names:
            tell = _teller(progress, file)
            tell(0.0)
            _write(stage / file, story, tell)
            tell(1.0)
        for file, write in (more or {}).items():
            write(stage / file)
            names.append(file)
        for file in names:
            os.replace(stage / file, out / file)
        for file in set(FILES) - set(names):
            (out / file).unlink(missing_ok=True)  # of a run before
    return {file: out / file for file in names}


def maker() -> dict[str, str]:
    """What a table says of who made it, so that a later run may replace it."""
    from poise import __version__

    return {MAKER: f"poise {__version__}"}


def check_out(
    out: str | os.PathLike[str],
    inputs: Iterable[str | os.PathLike[str]] = (),
    *,
    files: Sequence[str] = FILES,
    table: str = TABLE,
) -> Path:
    """Refuse a folder that cannot take results, or in which they would replace other files.

    Args:
        out: The folder.
        inputs: Files that are read, and must stay.
        files: Names of the results.
        table: The one of them that says who made it: JSON, with the key MAKER.
    """
    path = Path(out)
    try:
        _check_place(path)
        there = [path / file for file in files if os.path.lexists(path / file)]
        for file in there:
            for source in inputs:
                if os.path.exists(source) and os.path.samefile(source, file):
                    raise PoiseError(f"{file}: is the file to be read; choose another folder")
        if there and not _is_ours(path / table):
            raise PoiseError(
                f"{there[0]}: is there already, and no earlier run left it; choose another folder"
            )
    except (OSError, ValueError) as problem:
        raise PoiseError(f"{out!s:.200}: cannot be written: {_reason(problem)}") from problem
    return path


def _check_place(path: Path) -> None:
    """Refuse a folder that is none, or could not be made."""
    for place in (path, *path.parents):
        try:
            status = os.stat(place)
        except FileNotFoundError:
            continue
        if not stat.S_ISDIR(status.st_mode):
            raise PoiseError(f"{place}: is a file; results need a folder")
        if not os.access(place, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return


def motion_of(recording: Recording, clip: Clip) -> Clip:
    """What the character did, with name and rig of the clip that it followed."""
    did = recording.clip()
    source = clip.source if clip.character.same_body(did.character) else None
    return Clip(did.character, did.frames, did.fps, source=source, name=clip.name)


class _Story(NamedTuple):
    """What all files tell of, as of `save_results`."""

    recording: Recording
    clip: Clip
    name: str
    like: Clip | None
    pushes: tuple[Push, ...]
    table: dict[str, Any]


def _write(path: Path, story: _Story, tell: Callable[[float], None]) -> None:
    """Write one of the files; its name says which."""
    recording, pushes = story.recording, story.pushes
    if path.name == TABLE:
        write_atomically(path, (json.dumps(story.table, indent=1) + "\n").encode())
    elif path.suffix == ".npz":
        recording.save(path)
    elif path.suffix == ".bvh":
        _on_rig(motion_of(recording, story.clip), story.like, tell).save(path)
    elif path.suffix == ".glb":
        motion_of(recording, story.clip).save(path)
    elif path.suffix == ".png":
        from poise.view.plots import overview

        overview(path, recording, pushes=pushes, title=story.name)
    elif path.suffix == ".html":
        from poise.view.html import save_html

        save_html(path, recording, pushes=pushes, title=story.name)
    else:
        from poise.view.video import save_video

        save_video(path, recording, pushes=pushes, progress=tell)


def _on_rig(motion: Clip, like: Clip | None, tell: Callable[[float], None]) -> Clip:
    if like is None:
        return motion
    from poise.motion.retargeting.retarget import on_rig

    return on_rig(motion, like, progress=tell)


@contextlib.contextmanager
def staged(out: Path) -> Iterator[Path]:
    """A folder for files on their way into `out`; it goes away, whatever happens.

    Args:
        out: The folder that gets them; it is made if it is not there, and stays if all went well.
    """
    stage = out / f".results-{secrets.token_hex(4)}.part"
    new = not out.exists()
    try:
        try:
            stage.mkdir(parents=True)
            yield stage
            new = False
        except (OSError, ValueError) as problem:
            raise PoiseError(f"{out}: cannot be written: {_reason(problem)}") from problem
        except PoiseError as error:
            # nobody has heard of the hidden folder
            hidden = f"{os.path.realpath(stage)}{os.sep}"
            raise PoiseError(str(error).replace(hidden, f"{out}{os.sep}")) from error
    finally:
        with _undisturbed():
            shutil.rmtree(stage, ignore_errors=True)
            if new:
                with contextlib.suppress(OSError):
                    out.rmdir()


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """A second Ctrl-C must not keep the first one from cleaning up."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread gets signals
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _is_ours(table: Path) -> bool:
    """Whether a table says that it is one of ours."""
    try:
        found = parse_json(read_text(table, LARGEST_TABLE), str(table))
    except PoiseError:
        return False
    return isinstance(found, dict) and str(found.get(MAKER, "")).startswith("poise ")


def _teller(progress: Progress | None, file: str) -> Callable[[float], None]:
    return (lambda share: None) if progress is None else (lambda share: progress(file, share))


def _reason(problem: Exception) -> object:
    return getattr(problem, "strerror", None) or problem
