"""Whatever is in a file: only PoiseError escapes from its reader, soon, within bounded memory.

Files are spoilt from valid ones by seeded random changes, the same in every run. To look into one:
    PYTHONPATH=tests/support python tests/motion/formats/test_fuzz_readers.py KIND FIRST_SEED COUNT
"""

from __future__ import annotations

import io
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
import tracemalloc
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from mutations import mutation_of
from small_files import MOTIONS, glb_bytes, small_files, write_small

from poise.characters import load_character
from poise.errors import PoiseError
from poise.motion import load_clip

KINDS = (
    *MOTIONS, "deepmimic character", "mjcf", "urdf", "mass", "yaml",
)  # fmt: skip

BINARY = ("glb", "glb foreign", "amass", "npz")

LONGEST = 10.0
"""Seconds of the processor that one file may take, on a busy machine.

A good one takes milliseconds; YAML of as many values as are read, 100,000, takes five seconds.
"""

MEMORY = 1 << 30
"""Bytes that the process of the long run may add to what the imports took."""


def spoilt(kind: str, seed: int) -> dict[str, bytes]:
    """Files of a kind of which one was changed."""
    rng = random.Random(f"{kind} {seed}")
    files = dict(small_files()[kind])
    name = rng.choice(list(files))
    files[name] = mutation_of(kind)(rng, files[name])
    return files


def read(kind: str, path: Path) -> str:
    """Read a file; returns what was wrong with it, or nothing."""
    try:
        if kind in MOTIONS:
            clip = load_clip(path)
            assert np.isfinite(clip.frames).all()
            assert np.isfinite(clip.q(clip.duration / 2)).all()
        else:
            assert load_character(path).nv >= 0
    except PoiseError as error:
        message = str(error)
        assert len(message) < 4000, f"the message has {len(message)} characters"
        message.encode()  # it can be printed
        return message
    return ""


def attempt(kind: str, seed: int, folder: Path) -> str | None:
    """Try one spoilt file; returns how it failed, if it did."""
    files = spoilt(kind, seed)
    for name, data in files.items():
        (folder / name).write_bytes(data)
    start = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            message = read(kind, folder / next(iter(files)))
    except Exception as error:
        import traceback

        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(last.filename).name}:{last.lineno} in {last.name}"
        return f"{kind} {seed}: {type(error).__name__}: {error!s:.200} ({where})"
    took = time.process_time() - start
    if took > LONGEST:
        return f"{kind} {seed}: took {took:.1f} s"
    if message and not any(name in message for name in files):
        return f"{kind} {seed}: the file is not named: {message:.200}"
    return None


@pytest.mark.parametrize("kind", KINDS)
def test_the_files_to_be_spoilt_are_good(kind: str, tmp_path: Path) -> None:
    assert read(kind, write_small(tmp_path, kind)) == ""


@pytest.mark.parametrize("kind", KINDS)
def test_a_spoilt_file_raises_no_other_error(kind: str, tmp_path: Path) -> None:
    failures = [found for seed in range(150) if (found := attempt(kind, seed, tmp_path))]
    assert not failures, "\n".join(failures[:20])


def laughs() -> bytes:
    """A thousand million entities in a few lines."""
    lines = "".join(f'<!ENTITY a{i} "{f"&a{i - 1};" * 10}">' for i in range(1, 10))
    return f'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a0 "ha">{lines}]><x>&a9;</x>'.encode()


def aliases() -> bytes:
    """The same in YAML."""
    lines = "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 10))
    return f"a0: &a0 [ha]\n{lines}links: *a9\n".encode()


def archive(name: str, data: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as zipped:
        zipped.writestr(name, data)
    return out.getvalue()


def array(header: str, data: bytes = b"") -> bytes:
    """An array of NumPy with any header."""
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + data


HUGE = "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000, 1000000000)}\n"
PICKLE = "{'descr': '|O', 'fortran_order': False, 'shape': (1,)}\n"
HOSTILE: dict[str, Callable[[], bytes]] = {
    "nothing": lambda: b"",
    "blanks": lambda: b" \t\r\n" * 50_000,
    "zeros": lambda: bytes(1 << 20),
    "noise": lambda: random.Random(1).randbytes(1 << 20),
    "brackets": lambda: b"[" * 200_000,
    "braces": lambda: b'{"a":' * 200_000,
    "tags": lambda: b"<a>" * 200_000,
    "mujoco tags": lambda: b"<mujoco><worldbody>" + b"<body>" * 20_000,
    "skeleton tags": lambda: b"<Skeleton>" + b"<Node>" * 200_000,
    "joints": lambda: b"HIERARCHY\nROOT a\n{\n" + b"JOINT a\n{\n" * 100_000,
    "digits": lambda: b"1" * (1 << 19),
    "one long word": lambda: b"a" * (1 << 19),
    "a list of ones": lambda: b'{"Frames": [' + b"1," * 50_000 + b"1]}",
    "quotes": lambda: b'"' * 500_001,
    "backslashes": lambda: b'"' + b"\\" * 500_001,
    "laughs": laughs,
    "a file from elsewhere": lambda: (
        b'<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><mujoco model="&e;"/>'
    ),
    "aliases": aliases,
    "python in yaml": lambda: b"name: !!python/object/apply:os.system ['true']\n",
    "dashes": lambda: b"- " * 100_000,
    "colons": lambda: b"a: " * 100_000,
    "a zip bomb": lambda: archive("poses.npy", bytes(1 << 27)),
    "an array of exabytes": lambda: archive("poses.npy", array(HUGE)),
    "a pickle": lambda: archive("poses.npy", array(PICKLE, b"cos\nsystem\n(S'true'\ntR.")),
    "a lying glb": lambda: b"glTF\2\0\0\0\xff\xff\xff\xff\xff\xff\xff\x7fJSON{}",
    "a glb of lists": lambda: glb_bytes(b"[" * 200_000, b""),
    "a glb of nodes in a ring": lambda: glb_bytes(
        b'{"asset":{"version":"2.0"},"scenes":[{"nodes":[0]}],'
        b'"nodes":[{"children":[1]},{"children":[0]}]}',
        b"",
    ),
}
ENDINGS = (
    "a.bvh", "a.amc", "a.glb", "a.gltf", "a.npz", "a.txt", "a.json", "a.xml", "a.urdf", "a.yaml",
)  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_refused_soon_whatever_they_are_called(name: str, tmp_path: Path) -> None:
    data = HOSTILE[name]()
    for ending in ENDINGS:
        (tmp_path / ending).write_bytes(data)
        for kind in ("bvh", "yaml"):  # as a motion, as a character
            start = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                message = read(kind, tmp_path / ending)
            assert "a." in message, f"{ending} is taken for a good file"
            assert time.process_time() - start < LONGEST, ending


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_file_of_hundreds_of_megabytes_is_refused_unread(ending: str, tmp_path: Path) -> None:
    with open(tmp_path / ending, "wb") as file:
        file.truncate(700 << 20)
    for kind in ("bvh", "yaml"):
        tracemalloc.start()
        try:
            message = read(kind, tmp_path / ending)
            assert tracemalloc.get_traced_memory()[1] < 32 << 20
        finally:
            tracemalloc.stop()
        assert ending in message


WAYS = [
    (kind, how)
    for kind in KINDS
    for how in ("CRLF", "byte order mark", "blanks at line ends")
    # glTF 2.0 forbids the mark: its JSON is UTF-8 without one
    if kind not in BINARY and (kind, how) != ("gltf", "byte order mark")
]


@pytest.mark.parametrize(("kind", "how"), WAYS)
def test_ways_to_write_the_same_text_are_read(kind: str, how: str, tmp_path: Path) -> None:
    files = small_files()[kind]
    for name, data in files.items():
        changed = {
            "CRLF": data.replace(b"\n", b"\r\n"),
            "byte order mark": b"\xef\xbb\xbf" + data,
            "blanks at line ends": data.replace(b"\n", b" \t \n" if kind != "yaml" else b"  \n"),
        }[how]
        (tmp_path / name).write_bytes(changed)
    assert read(kind, tmp_path / next(iter(files))) == ""


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_thousands_of_spoilt_files_stay_within_time_and_memory(kind: str) -> None:
    """In a process of its own, whose memory is limited: a crash is seen, too."""
    command = [sys.executable, __file__, kind, "1000", "3000"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


def main(kind: str, first: int, count: int) -> int:
    """Try many spoilt files within bounded memory; print what failed."""
    import scipy.interpolate  # noqa: F401  (before the memory is bounded)

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        read(kind, write_small(folder, kind))
        pages = (
            int(Path("/proc/self/statm").read_text().split()[0]) if sys.platform == "linux" else 0
        )
        if pages:
            most = pages * resource.getpagesize() + MEMORY
            resource.setrlimit(resource.RLIMIT_AS, (most, most))
        failures = 0
        for seed in range(first, first + count):
            Path(name, "seed").write_text(str(seed))
            if found := attempt(kind, seed, folder):
                print(found, flush=True)
                failures += 1
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
