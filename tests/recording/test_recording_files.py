"""Files of recordings: lossless, replaced whole or not at all, and read with care."""

from __future__ import annotations

import builtins
import io
import json
import os
import random
import subprocess
import sys
import time
import tracemalloc
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bad_files import refusal, unreadable_paths, write_hole
from mutations import mutate_bytes, mutation_of
from small_recordings import BALL, DT, short

from poise import Recording, World, load_recording
from poise.errors import PoiseError
from poise.motion import load_clip


def same(one: Recording, two: Recording) -> None:
    a, b = one.columns.arrays(), two.columns.arrays()
    for name in a:
        assert np.array_equal(a[name], b[name]), name


# files


@pytest.mark.parametrize("n", [1, 3])
def test_the_same_recording_gives_the_same_bytes(n: int, tmp_path: Path) -> None:
    recording = short(n)
    recording.save(tmp_path / "a.npz")
    loaded = load_recording(tmp_path / "a.npz")
    loaded.save(tmp_path / "b.npz")
    same(recording, loaded)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def test_saving_in_the_midst_of_recording_keeps_what_was_noted_until_then(tmp_path: Path) -> None:
    world = World(BALL, dt=DT)
    recording = Recording(world, fps=120.0)
    for k in range(150):
        recording.append()
        if k % 37 == 0:
            recording.save(tmp_path / "a.npz")
            assert len(load_recording(tmp_path / "a.npz")) == k + 1
        world.step()
    assert len(recording) == len(recording.q) == 150


def test_numpy_reads_the_states_without_poise(tmp_path: Path) -> None:
    recording = short(3)
    recording.save(tmp_path / "a.npz")
    with np.load(tmp_path / "a.npz", allow_pickle=False) as arrays:
        assert np.array_equal(arrays["q"], recording.q)
        assert b"poise-character" in arrays["scene"].tobytes()


def test_a_recording_that_was_loaded_is_complete(tmp_path: Path) -> None:
    short().save(tmp_path / "a.npz")
    with pytest.raises(PoiseError, match="complete"):
        load_recording(tmp_path / "a.npz").append()


# replaced whole or not at all


@pytest.mark.parametrize("broken", ["open", "write", "replace"])
def test_a_failure_while_writing_leaves_the_previous_file_whole(
    broken: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.npz"
    short(frames=3).save(path)
    before = path.read_bytes()

    class Full(io.BytesIO):
        def write(self, data: Any) -> int:
            raise OSError(28, "No space left on device")

    def fail(*args: Any, **more: Any) -> Any:
        if broken == "write":
            return Full()
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        place: Any = os if broken == "replace" else builtins
        patch.setattr(place, "replace" if broken == "replace" else "open", fail)
        with pytest.raises(PoiseError, match="cannot be written"):
            short(frames=5).save(path)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.npz"]
    assert len(load_recording(path)) == 3


DIES = """
import builtins, os, sys
from small_recordings import short

class Dying:
    def __init__(self, path, mode):
        self.file = real(path, mode)
    def __enter__(self):
        return self
    def __exit__(self, *problem):
        pass
    def write(self, data):
        self.file.write(data[: len(data) // 2])
        self.file.flush()
        os._exit(9)

recording, real = short(frames=5), builtins.open
builtins.open = Dying
recording.save(sys.argv[1])
"""


def test_a_process_that_dies_while_writing_leaves_the_previous_file_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    short(frames=3).save(path)
    before = path.read_bytes()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, "-c", DIES, str(path)], env=environment)
    assert done.returncode == 9
    assert path.read_bytes() == before


def test_writing_where_it_cannot_be_written_says_so(tmp_path: Path) -> None:
    recording = short()
    with pytest.raises(PoiseError, match="cannot be written"):
        recording.save(tmp_path / "none" / "a.npz")
    with pytest.raises(PoiseError, match=r"written as \.npz"):
        recording.save(tmp_path / "a.json")
    with pytest.raises(PoiseError, match="has no frames"):
        Recording(World(BALL, dt=DT)).save(tmp_path / "a.npz")
    assert not list(tmp_path.iterdir())


def test_what_would_be_too_large_to_be_read_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from poise.recording import file as recording_file

    recording = short(frames=60)
    for name, match in (("LARGEST_ARRAY", "q has 0 MiB"), ("LARGEST", "has 0 MiB; at most")):
        with monkeypatch.context() as patch:
            patch.setattr(recording_file, name, 3000)
            with pytest.raises(PoiseError, match=f"{match}.*record at a lower rate"):
                recording.save(tmp_path / "a.npz")
    assert not list(tmp_path.iterdir())


# bad files


def file_of(recording: Recording, folder: Path) -> bytes:
    recording.save(folder / "good.npz")
    return (folder / "good.npz").read_bytes()


def members() -> dict[str, Any]:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        return dict(np.load(io.BytesIO(file_of(short(n=2, frames=4), Path(folder)))))


GOOD = members()


def text(value: str | bytes) -> Any:
    data = value.encode() if isinstance(value, str) else value
    return np.frombuffer(data, dtype=np.uint8)


def changed(name: str, **more: Any) -> Any:
    return text(json.dumps({**json.loads(GOOD[name].tobytes()), **more}))


def meta(**more: Any) -> dict[str, Any]:
    return {"meta": changed("meta", **more)}


def scene(**more: Any) -> dict[str, Any]:
    return {"scene": changed("scene", **more)}


def put(name: str, at: Any, value: Any) -> dict[str, Any]:
    array = GOOD[name].copy()
    array[at] = value
    return {name: array}


SHAPE = {"kind": "box", "size": [1, 1, 1]}
BAD: dict[str, tuple[dict[str, Any], str]] = {
    "a pickle": ({"q": np.array([[{}]], dtype=object)}, "q: holds pickled objects"),
    "no q": ({"q": None}, "it needs q"),
    "no meta": ({"meta": None}, "it needs meta"),
    "no scene": ({"scene": None}, "it needs scene"),
    "more": ({"extra": np.zeros(1)}, "unknown array 'extra'"),
    "no frames": ({"time": GOOD["time"][:0]}, "time: has shape"),
    "fewer": ({"v": GOOD["v"][:-1]}, "v: has 3 rows, expected 4"),
    "narrow": ({"q": GOOD["q"][..., :-1]}, "q: has type float64 and shape"),
    "one copy": ({"q": GOOD["q"][:, :1]}, "q: has type float64 and shape"),
    "flat": ({"torque": GOOD["torque"].ravel()}, "torque: has type"),
    "single": ({"v": GOOD["v"].astype(np.float32)}, "v: has type float32"),
    "big end": ({"v": GOOD["v"].astype(">f8")}, "v: has type >f8"),
    "NaN": (put("q", (1, 0, 2), np.nan), "q: every number must be finite"),
    "infinite": (put("time", (1, 0), np.inf), "time: every number must be finite"),
    "NaN memory": (put("memory", 0, np.nan), "memory: every number must be finite"),
    "NaN contact": (put("contact", (0, 3), np.nan), "contact: every number must be finite"),
    "copy": (put("contact_which", (0, 0), 2), "contact_which: an index is out of bounds"),
    "link": (put("contact_which", (0, 1), 3), "contact_which: an index is out of bounds"),
    "obstacle": (put("contact_which", (0, 2), -3), "contact_which: an index is out of bounds"),
    "spare": (put("thrown_which", (0, 1), 2), "thrown_which: an index is out of bounds"),
    "place": (put("memory_index", 0, 10**9), "memory_index: an index is out of bounds"),
    "before": (put("memory_index", 0, -1), "memory_index: an index is out of bounds"),
    "end": (put("contact_end", -1, 10**6), "contact_end: does not fit the rows"),
    "back": (put("contact_end", 1, -1), "contact_end: does not fit the rows"),
    "wrapped": (put("contact_end", 1, -(2**63)), "contact_end: does not fit the rows"),
    "two targets": (put("target_end", slice(1, None), 3), "target_end: a frame has at most one"),
    "half a target": ({"target_v": GOOD["target_v"][1:]}, "target_end: does not fit the rows"),
    "remembers": (put("remembers", 0, 2), "remembers: must be 0 or 1"),
    "no text": ({"meta": np.zeros(3)}, "meta: has type"),
    "not UTF-8": ({"meta": text(b"{\xff}")}, "meta: byte 1 is not UTF-8"),
    "no JSON": ({"meta": text("{")}, "meta:1: is not JSON"),
    "a list": ({"meta": text("[]")}, "format is None, not 'poise-recording'"),
    "format": (meta(format="x"), "format is 'x'"),
    "newer": (meta(version=2), "version must be 1, got 2; a newer poise may read it"),
    "no interval": (meta(interval=0), "interval is 0"),
    "interval": (meta(interval="1"), "interval is '1'"),
    "memory": (meta(memory=-1), "memory must be"),
    "isa": (meta(isa=3), "isa must be the name of an instruction set, got 3"),
    "a page as isa": (meta(isa="<b>avx2</b>"), "isa must be the name of an instruction set"),
    "much memory": (meta(memory=2**30), "are too many"),
    "less memory": (meta(memory=1), "memory_index: an index is out of bounds"),
    "diverged": (meta(diverged=[[0, "a", 1.0]]), "diverged: each must be"),
    "scene": ({"scene": text("[]")}, "scene: must have character, n, dt"),
    "scene key": (scene(more=1), "scene: must have character, n, dt"),
    "copies": (scene(n=3), "time: has type float64 and shape"),
    "no copies": (scene(n=0), "scene: needs at least one copy"),
    "true copies": (scene(n=True), "scene: n is True"),
    "dt": (scene(dt=-1.0), "scene: dt is -1"),
    "no characters": (scene(character=[]), "scene: needs at least one"),
    "a number": (scene(character=[3]), "scene: character: must be texts"),
    "no YAML": (scene(character=["{"]), r"character\[0\]:1: is not YAML"),
    "convex": (scene(convex="some"), "scene: convex is 'some'"),
    "projectiles": (scene(spares=["name: x"]), r"spares\[0\]:1: "),
    "many projectiles": (scene(spares=10**12), "projectiles; it must be 0 to 32"),
    "false projectiles": (scene(spares=False), "scene: projectiles is False"),
    "ground": (scene(ground="x"), "scene: ground is 'x'"),
    "plane": (scene(ground={"normal": [0, 0, 0], "height": 0}), "normal"),
    "field": (scene(ground={"spacing": [1, 1], "origin": [0, 0]}), "heights: the array is missing"),
    "own": (scene(mass="array"), "mass: the array is missing"),
    "unused": ({"scene.mass": np.zeros(1)}, "mass: the array is missing, or is not used"),
    "obstacles": (scene(obstacles=[{**SHAPE, "size": [1]}]), "box: size must be 3 numbers"),
    "shape": (scene(obstacles=[{**SHAPE, "weight": 1}]), "weight"),
    "no shape": (scene(obstacles=[3]), "scene: "),
    "exclude": (scene(exclude=["abc"]), "scene: "),
    "gravity": (scene(gravity="x"), "gravity"),
    "friction": (scene(friction="x"), "friction"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_with_a_file_is_said(name: str, tmp_path: Path) -> None:
    changes, message = BAD[name]
    arrays = {key: value for key, value in {**GOOD, **changes}.items() if value is not None}
    np.savez(tmp_path / "bad.npz", **arrays)
    with pytest.raises(PoiseError, match=message) as error:
        load_recording(tmp_path / "bad.npz")
    assert "bad.npz" in str(error.value)


def test_the_file_that_the_bad_ones_are_made_of_is_good(tmp_path: Path) -> None:
    np.savez(tmp_path / "good.npz", **GOOD)
    assert load_recording(tmp_path / "good.npz").n == 2


def test_a_scene_that_no_world_takes_is_refused_when_the_world_is_built(tmp_path: Path) -> None:
    for more in (scene(friction=-1.0), scene(contact="glue"), scene(gravity=[1.0]), scene(dt=1.0)):
        np.savez(tmp_path / "bad.npz", **{**GOOD, **more})
        recording = load_recording(tmp_path / "bad.npz")
        with pytest.raises(PoiseError):
            recording.world()


def test_clips_and_recordings_are_told_apart(tmp_path: Path) -> None:
    short().clip().save(tmp_path / "clip.npz")
    short().save(tmp_path / "recording.npz")
    with pytest.raises(PoiseError, match=r"format is 'poise-clip'.*load_clip reads it"):
        load_recording(tmp_path / "clip.npz")
    with pytest.raises(PoiseError, match=r"is a recording: load_recording\(path\)\.clip\(\)"):
        load_clip(tmp_path / "recording.npz")


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    for path in unreadable_paths(tmp_path, ".npz"):
        assert refusal(lambda path=path: load_recording(path)), path  # type: ignore[misc]
    assert "must be a path" in str(refusal(lambda: load_recording(3)))  # type: ignore[arg-type]


def test_bombs_and_huge_files_are_refused_within_little_memory(tmp_path: Path) -> None:
    write_hole(tmp_path / "hole.npz")
    for name, size in (("q", 257 << 20), ("meta", 65 << 20), ("scene", 65 << 20)):
        with zipfile.ZipFile(tmp_path / f"{name}.npz", "w", zipfile.ZIP_DEFLATED, True, 1) as out:
            for key, array in GOOD.items():
                data = io.BytesIO()
                np.save(data, array)
                packed = data.getvalue()
                if key == name:
                    header = io.BytesIO()
                    shape = (size,) if name != "q" else (size // 8 // 14, 2, 7)
                    kind = {"descr": array.dtype.str, "fortran_order": False, "shape": shape}
                    np.lib.format.write_array_header_1_0(header, kind)
                    packed = header.getvalue() + bytes(size)
                out.writestr(f"{key}.npy", packed)
    for name in ("hole", "q", "meta", "scene"):
        tracemalloc.start()
        try:
            assert refusal(lambda name=name: load_recording(tmp_path / f"{name}.npz"))  # type: ignore[misc]
            assert tracemalloc.get_traced_memory()[1] < 32 << 20, name
        finally:
            tracemalloc.stop()


# damaged files


def damage(seed: int, data: bytes) -> bytes:
    return mutate_bytes(random.Random(seed), data)


def check_damaged(path: Path, data: bytes, good: bytes) -> bool:
    """Whether a damaged file is refused; one that is read must be as it was."""
    path.write_bytes(data)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        message = refusal(lambda: load_recording(path).save(path))
    if message is None:
        assert path.read_bytes() == good
        return False
    assert path.name in message
    assert len(message) < 4000
    return True


def test_random_damage_gives_an_error_or_the_same_recording(tmp_path: Path) -> None:
    good = file_of(short(n=2, frames=4), tmp_path)
    refused = [check_damaged(tmp_path / "bad.npz", damage(k, good), good) for k in range(400)]
    assert sum(refused) > 300


def test_a_file_that_was_cut_off_anywhere_is_refused(tmp_path: Path) -> None:
    good = file_of(short(n=2, frames=4), tmp_path)
    for size in range(0, len(good), 41):
        assert check_damaged(tmp_path / "bad.npz", good[:size], good), size


def attempt(seed: int, good: bytes, path: Path) -> None:
    """Spoil what is inside of the archive: nothing but PoiseError, soon, until it is replayed."""
    path.write_bytes(mutation_of("npz")(random.Random(seed), good))
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            recording = load_recording(path)
            for i in range(len(recording)):
                recording.contacts(i), recording.projectile_state(i), recording.target(i)
            recording.world(1).step()
            recording.clip()
            recording.metrics()
        except PoiseError:
            pass
    assert time.process_time() - start < 10.0, seed


def test_spoilt_contents_raise_no_other_error(tmp_path: Path) -> None:
    good = file_of(short(frames=4), tmp_path)
    for seed in range(150):
        attempt(seed, good, tmp_path / "bad.npz")


@pytest.mark.slow
def test_thousands_of_spoilt_files_raise_no_other_error(tmp_path: Path) -> None:
    good, two = file_of(short(frames=4), tmp_path), file_of(short(n=2, frames=4), tmp_path)
    for seed in range(1000, 4000):
        attempt(seed, good, tmp_path / "bad.npz")
        check_damaged(tmp_path / "bad.npz", damage(seed, two), two)
