"""`poise track` that is stopped, killed, or runs out of disk: no half-written file, one line."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import poise
from poise.cli import app
from poise.io import files
from poise.trials import results
from poise.trials.results import FILES, check_out
from poise.trials.trial import prepare_trial

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals are sent as POSIX has them")

QUICK = ("track", "two-link-wave", "--duration", "0.2")

PROGRAM = """
import os, signal, sys
from pathlib import Path
from poise.io import files
from poise.trials import results
from poise.cli import main

name, number, moment = sys.argv[1:4]

def stop():
    os.kill(os.getpid(), int(number))

def write(path, data, *rest):
    # in the middle of a file, when half of it is on the disk
    if Path(path).name == name and moment == "amid":
        Path(path).with_name(f".{name}.half.part").write_bytes(data[: len(data) // 2])
        stop()
    plain(path, data, *rest)
    if Path(path).name == name and moment == "after":
        stop()

plain = files.write_atomically
for module in list(sys.modules.values()):
    if getattr(module, "write_atomically", None) is plain:
        module.write_atomically = write
files.write_atomically = write
sys.argv[1:] = sys.argv[4:]
main()
"""
"""The command line, stopped by a signal at a file."""


def stopped(name: str, number: int, moment: str, *args: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", PROGRAM, name, str(number), moment, *args]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)


def whole(out: Path) -> None:
    """Every result that is there can be read."""
    for path in out.iterdir():
        if path.name.startswith("."):
            assert path.name.endswith(".part")
        elif path.name == "recording.npz":
            assert len(poise.load_recording(path))
        elif path.suffix in (".bvh", ".glb"):
            assert len(poise.load_clip(path))
        elif path.suffix == ".json":
            assert json.loads(path.read_text())["links"]
        elif path.suffix == ".html":
            assert path.read_text().rstrip().endswith("</html>")
        elif path.suffix == ".png":
            assert path.read_bytes().endswith(b"IEND\xaeB\x60\x82")
        else:
            assert path.name == "video.mp4"
            assert b"moov" in path.read_bytes()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_who_is_told_to_stop_leaves_nothing(number: int, code: int, tmp_path: Path) -> None:
    done = stopped("recording.npz", number, "amid", *QUICK, "--out", str(tmp_path / "new"))
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())


def test_what_a_killed_run_left_goes_with_the_next_one(tmp_path: Path) -> None:
    done = stopped("motion.bvh", signal.SIGKILL, "amid", *QUICK, "--out", str(tmp_path))
    assert done.returncode == -signal.SIGKILL
    (left,) = tmp_path.iterdir()
    assert left.name.startswith(".results-")
    assert left.name.endswith(".part")
    # what looks alike stays: of the user, or of a run that is alive
    (tmp_path / ".results-mine.part").mkdir()
    (tmp_path / ".results-0123abcd.part" / "notes").mkdir(parents=True)
    alive, lock = files._claim(tmp_path, files.RESULTS, Path.mkdir)
    there = sorted(tmp_path.iterdir())
    check_out(tmp_path)
    files.write_output_folder(tmp_path, {"new.txt": Path.touch})
    assert {*there} - {*tmp_path.iterdir()} == {left}
    files._unlock(lock)
    files.write_output_folder(tmp_path, {"new.txt": Path.touch})
    assert {*there} - {*tmp_path.iterdir()} == {left, alive}


def test_the_file_that_a_killed_process_was_writing_goes_with_the_next_one(tmp_path: Path) -> None:
    out = tmp_path / "clip.npz"
    program = (
        "import os, signal, sys; from poise.io import files\n"
        "os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        "files.write_atomically(sys.argv[1], b'half')"
    )
    done = subprocess.run([sys.executable, "-c", program, str(out)], check=False)
    assert done.returncode == -signal.SIGKILL
    (left,) = tmp_path.iterdir()
    assert left.suffix == ".part"
    files.write_atomically(out, b"whole")
    assert list(tmp_path.iterdir()) == [out]
    assert out.read_bytes() == b"whole"


@pytest.fixture(scope="module")
def recording() -> poise.Recording:
    return prepare_trial("two-link-wave", duration=0.1).run()


def save(out: Path, recording: poise.Recording, **options: Any) -> None:
    clip = poise.load_clip("two-link-wave")
    results.save_results(out, recording, clip=clip, name="wave", **options)


class Pen:
    """Instead of what writes the files: some text, and Ctrl-C in the middle of one of them."""

    def __init__(self, text: str, stop_at: str = "") -> None:
        self.text, self.stop_at = text, stop_at

    def __call__(self, path: Path, *rest: Any) -> None:
        if path.name == self.stop_at:
            path.write_text(self.text[:2])
            raise KeyboardInterrupt
        path.write_text(self.text)

    def writers(self, *rest: Any) -> dict[str, Any]:
        return dict.fromkeys(FILES, self)


MARK = json.dumps({files.MADE_BY: "poise 1"})


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("again", [False, True])
def test_who_is_stopped_at_any_file_leaves_what_was_there(
    file: str,
    again: bool,
    recording: poise.Recording,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out = tmp_path / "out"
    if again:
        monkeypatch.setattr(results, "_writers", Pen(MARK).writers)
        save(out, recording)
    monkeypatch.setattr(results, "_writers", Pen("new", file).writers)
    with pytest.raises(KeyboardInterrupt):
        save(out, recording)
    found = {path.name: path.read_text() for path in out.iterdir()} if out.exists() else None
    assert found == (dict.fromkeys(FILES, MARK) if again else None)


def test_results_of_a_run_before_are_replaced_and_others_stay(
    recording: poise.Recording, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    for text in (MARK, MARK + " "):
        monkeypatch.setattr(results, "_writers", Pen(text).writers)
        save(tmp_path, recording)
    found = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert found == {**dict.fromkeys(FILES, MARK + " "), "notes.txt": "mine"}


def test_a_second_interrupt_does_not_disturb_cleaning_up(
    recording: poise.Recording, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def clean(path: Path, **options: Any) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        rmtree(path, **options)

    rmtree = shutil.rmtree
    monkeypatch.setattr(results, "_writers", Pen("new", "motion.glb").writers)
    monkeypatch.setattr("poise.io.files.shutil.rmtree", clean)
    with pytest.raises(KeyboardInterrupt):
        save(tmp_path / "out", recording)
    assert not list(tmp_path.iterdir())
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_that_comes_while_garbage_is_collected_is_not_lost(number: int) -> None:
    """Python drops what is raised in the callback of a weak reference, and says so."""
    program = f"""
import os, signal, time, weakref
import importlib
handle_signals = importlib.import_module('poise.cli.app').handle_signals
handle_signals()
class Thing: pass
def gone(_):
    os.kill(os.getpid(), {int(number)})
    for _ in range(1000): pass
thing = Thing()
reference = weakref.ref(thing, gone)
try:
    del thing
    time.sleep(60)
finally:
    print("tidy")
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=50
    )
    assert done.stdout == "tidy\n"
    assert done.returncode == (143 if number == signal.SIGTERM else -signal.SIGINT)
    assert "ignored" not in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_signal_at_any_time_breaks_no_file(number: int, tmp_path: Path) -> None:
    out = tmp_path / "out"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    program = "from poise.cli import main; print('ready', flush=True); main()"
    command = [sys.executable, "-c", program, "track", "walk", "--duration", "0.5"]

    def run(wait: float | None) -> int:
        """Run, stopped after a time [s]; the exit code."""
        with subprocess.Popen(
            [*command, "--out", str(out)], env=environment, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
        ) as process:  # fmt: skip
            assert process.stdout is not None
            process.stdout.readline()
            if wait is not None:
                time.sleep(wait)
                process.send_signal(number)
            _, said = process.communicate(timeout=300)
        assert "Traceback" not in said
        return process.returncode

    start = time.perf_counter()
    assert run(None) == 0
    whole_time = time.perf_counter() - start
    for k in range(6):
        run(whole_time * (k + 0.5) / 6.0)
        whole(out)
        names = {path.name for path in out.iterdir()}
        assert names >= set(FILES)
        assert number == signal.SIGKILL or names == set(FILES)


# ---- a disk that is full


def full(path: Any, mode: Any = "x") -> Any:
    """Instead of open, or of os.replace: reading goes on."""
    if mode in ("r", "rb"):
        return open(path, mode)
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("where", ["poise.io.files.os.replace", "poise.io.files.open"])
def test_a_full_disk_is_one_line(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    monkeypatch.setattr(where, full, raising=False)
    result = CliRunner().invoke(app, [*QUICK, "--no-video", "--out", str(out)])
    assert result.exit_code == 1
    assert result.output.startswith(f"poise: {out}")
    assert result.output.endswith("cannot be written: No space left on device\n")
    assert result.output.count("\n") == 1
    assert ".part" not in result.output
    assert not out.exists()


def small_disk(place: Path, size: str, *args: str) -> subprocess.CompletedProcess[str]:
    """The command line with a disk of that size, seen by nobody else."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    program = "from poise.cli import main; main()"
    script = f'mount -t tmpfs -o size={size} none "$0" && "$@"; code=$?; ls -A "$0"; exit $code'
    command = ["unshare", "-rm", "sh", "-c", script, str(place), sys.executable, "-c", program]
    return subprocess.run(
        [*command, *args], env=environment, capture_output=True, text=True, timeout=300
    )


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    place = tmp_path / "disk"
    place.mkdir()
    if shutil.which("unshare") is None or small_disk(place, "1m", "--version").returncode:
        pytest.skip("a small disk needs Linux, and the right to mount one in a namespace")
    return place


@pytest.mark.parametrize("size", ["8k", pytest.param("400k", marks=pytest.mark.slow)])
def test_a_small_disk_is_one_line_and_stays_empty(size: str, disk: Path) -> None:
    done = small_disk(disk, size, *QUICK, "--no-video", "--out", str(disk / "out"))
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith(f"poise: {disk / 'out'}")
    assert done.stderr.endswith("No space left on device\n")
    assert done.stdout == ""  # nothing is on the disk


@pytest.mark.slow
def test_a_video_that_finds_no_room_is_one_line(
    disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(disk))
    done = small_disk(disk, "4k", *QUICK, "--out", str(tmp_path / "out"))
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "No space left" in done.stderr
    assert done.stdout == ""
    assert not (tmp_path / "out").exists()


# ---- a bar for who watches


def test_bars_are_shown_on_a_terminal_and_nowhere_else(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = ["track", "two-link-wave", "--controller", "pd", "--frequency", "500"]
    quiet = CliRunner().invoke(app, wrong)
    assert "simulating" not in quiet.output
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich then takes anything for a terminal
    shown = CliRunner().invoke(app, wrong)
    assert "simulating" in shown.stderr
    assert "simulating" not in shown.stdout


def test_progress_is_told_of_every_file(
    recording: poise.Recording, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[str, float]] = []
    monkeypatch.setattr(results, "_writers", Pen("x").writers)
    save(tmp_path, recording, progress=lambda *one: told.append(one))
    assert told == [(file, share) for file in FILES for share in (0.0, 1.0)]
