"""What requests about recordings and files do. All that takes long is done by jobs."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from poise.errors import PoiseError, unknown_name
from poise.math.arrays import Progress
from poise.recording import Recording
from poise.studio.player import Player
from poise.studio.requests import Compare, Live, Open, Record, Save
from poise.studio.saving import Material, save
from poise.studio.show import Show


def record(show: Show, asked: Record) -> None:
    """Begin a take, or end it."""
    if not asked.on:
        show.end_take()
        return
    show.need_live()
    if show.simulation.history.take is None:
        show.take = show.simulation.record()


def save_files(show: Show, asked: Save) -> None:
    """Save what is shown, or the take: one job for each kind of file."""
    title, material = _material(show)
    name = asked.name or title
    for kind in asked.kinds:
        # a default: each job has its own
        def work(progress: Progress, kind: str = kind) -> Path:
            path = show.folder.new(name, kind, "take")
            return save(kind, path, material(), progress)

        show.jobs.start("save", f"saving {kind}", work, token=asked.token)


def _material(show: Show) -> tuple[str, Callable[[], Material]]:
    """What it is, and what files are made of, put in order when it is first needed, by the job."""
    beside = None if show.beside is None else show.beside.recording
    player, watch = show.player, show.controls.watch
    if player is not None:
        part = player.cast.names[min(watch, player.cast.count - 1)]
        title = Path(player.name).stem
        ready = Material(player.recording, part, player.copy, beside, (), title)
        return title, lambda: ready
    take = show.take if show.take is not None and show.take.entries else show.simulation.recent()
    # what is appended from now on is not part of it
    take = take.copy()
    if not take.entries:
        raise PoiseError("there is nothing to save yet: play first")
    start, end = take.entries[0].time, take.entries[-1].time
    pushes = tuple(push for push in show.pushes if start <= push.at <= end)
    names = take.characters
    part = names[min(watch, len(names) - 1)]
    return take.title, lru_cache(maxsize=1)(
        lambda: Material(take.recording(), part, 0, beside, pushes, take.title)
    )


def open_recording(show: Show, asked: Open) -> None:
    """Play a recording."""
    _load(show, asked.name, lambda recording: show_recording(show, recording, asked.name))


def compare(show: Show, asked: Compare) -> None:
    """Show a recording beside."""
    if asked.name is None:
        show.beside = None
        return
    name = asked.name
    _load(show, name, lambda recording: show_beside(show, recording, name))


def live(show: Show, asked: Live) -> None:
    """Back to the simulation."""
    show.need_live()
    show.playing = False


def show_recording(show: Show, recording: Recording, name: str) -> None:
    """Play a recording that is loaded."""
    show.player = Player(recording, name)
    show.series.clear()
    show.play(True)
    show.dirty = True


def show_beside(show: Show, recording: Recording, name: str) -> None:
    """Show a loaded recording beside."""
    show.beside = Player(recording, name)
    show.dirty = True


def _load(show: Show, name: str, then: Callable[[Recording], None]) -> None:
    """Let a recording of the folder be loaded."""
    known = show.folder.recordings()
    if name not in known:
        raise PoiseError(unknown_name("recording", name, known))
    show.jobs.start(
        "load",
        f"opening {name}",
        lambda progress: show.folder.load(name),
        then=lambda recording: show.post(lambda: then(recording)),
        failed=lambda text: show.post(lambda: show.say(text, "error")),
    )
