"""Our own clip files: lossless, the same bytes for the same clip, and read with care."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bad_files import refusal, unreadable_paths, write_hole
from hypothesis import given
from hypothesis import strategies as st

from poise.anatomy.contact_schedule import ContactSchedule
from poise.anatomy.feet import feet_of
from poise.characters import builtin_names, load_character
from poise.errors import CharacterError, ClipError, PoiseError
from poise.io.archive import Archive, pack
from poise.model.character import Character
from poise.motion.clip import Clip
from poise.motion.formats import amass, npz

pytestmark = pytest.mark.arithmetic


def some_clip(character: Character, frames: int = 9, **more: Any) -> Clip:
    rng = np.random.default_rng(11)
    q = character.rest_q + 0.3 * rng.normal(size=(frames, character.nq))
    for joint in character.joints:
        if joint.kind in ("ball", "free"):
            part = q[:, character.q_slice(joint)][:, -4:]
            part /= np.linalg.norm(part, axis=1, keepdims=True)
    return Clip(character, q, 29.97, name="a clip ✓", **more)


@pytest.mark.parametrize("name", builtin_names())
def test_a_clip_comes_back_bit_for_bit(name: str, tmp_path: Path) -> None:
    clip = some_clip(load_character(name))
    npz.write(clip, tmp_path / "clip.npz")
    again = npz.read(tmp_path / "clip.npz")
    np.testing.assert_array_equal(again.frames, clip.frames)
    assert again.character == clip.character
    assert (again.fps, again.name, again.source) == (clip.fps, clip.name, None)
    assert not again.frames.flags.writeable


def test_the_rig_that_a_clip_came_from_is_kept(tmp_path: Path) -> None:
    rig = amass.neutral_rig(fps=29.97)
    clip = some_clip(load_character("humanoid"), source=rig)
    npz.write(clip, tmp_path / "clip.npz")
    assert npz.read(tmp_path / "clip.npz").source == rig


@pytest.mark.parametrize("flag", ["sliding", "detected"])
def test_contacts_come_back_with_their_flags(flag: str, tmp_path: Path) -> None:
    humanoid = load_character("humanoid")
    points = feet_of(humanoid)
    on = np.random.default_rng(3).random((9, len(points))) < 0.5
    clip = some_clip(humanoid, contacts=ContactSchedule(points, on, **{flag: True}))
    npz.write(clip, tmp_path / "clip.npz")
    again = npz.read(tmp_path / "clip.npz").contacts
    assert again is not None
    assert again.points == points
    assert np.array_equal(again.on, on)
    assert (again.sliding, again.detected) == (flag == "sliding", flag == "detected")


def test_the_same_clip_gives_the_same_bytes(tmp_path: Path) -> None:
    clip = some_clip(load_character("humanoid"))
    npz.write(clip, tmp_path / "a.npz")
    npz.write(npz.read(tmp_path / "a.npz"), tmp_path / "b.npz")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def test_numpy_reads_the_frames_without_poise(tmp_path: Path) -> None:
    clip = some_clip(load_character("dog"))
    npz.write(clip, tmp_path / "clip.npz")
    with np.load(tmp_path / "clip.npz", allow_pickle=False) as arrays:
        np.testing.assert_array_equal(arrays["frames"], clip.frames)
        assert b"poise-character" in arrays["character"].tobytes()


def test_a_character_with_the_same_joints_may_take_the_clip(tmp_path: Path) -> None:
    humanoid = load_character("humanoid")
    npz.write(some_clip(humanoid), tmp_path / "clip.npz")
    other = Character("other", humanoid.links)
    assert npz.read(tmp_path / "clip.npz", other).character == other
    with pytest.raises(ClipError, match="moves 'humanoid', whose joints are not those of 'dog'"):
        npz.read(tmp_path / "clip.npz", load_character("dog"))


def test_writing_where_it_cannot_be_written_says_so(tmp_path: Path) -> None:
    clip = some_clip(load_character("two-link"))
    with pytest.raises(PoiseError, match="cannot be written"):
        npz.write(clip, tmp_path / "none" / "clip.npz")


# bad input


def members() -> dict[str, Any]:
    clip = some_clip(load_character("two-link"), source=amass.neutral_rig())
    buffer = io.BytesIO(bytes_of(clip))
    with np.load(buffer) as arrays:
        return dict(arrays)


def bytes_of(clip: Clip) -> bytes:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "clip.npz"
        npz.write(clip, path)
        return path.read_bytes()


GOOD = members()


def text(value: str | bytes) -> Any:
    data = value.encode() if isinstance(value, str) else value
    return np.frombuffer(data, dtype=np.uint8)


def meta(**more: Any) -> Any:
    data = json.loads(GOOD["meta"].tobytes())
    return text(json.dumps({**data, **more}))


def joint(**more: Any) -> Any:
    data = json.loads(GOOD["meta"].tobytes())
    data["source"]["joints"][3].update(more)
    return text(json.dumps(data))


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "pickle": ({"frames": np.array([[{}]], dtype=object)}, "frames: holds pickled objects"),
    "no frames": ({"frames": None}, "it needs frames"),
    "more": ({"extra": np.zeros(1)}, "unknown array 'extra'"),
    "empty": ({"frames": GOOD["frames"][:0]}, "frames"),
    "narrow": ({"frames": GOOD["frames"][:, :1]}, "q has shape"),
    "flat": ({"frames": GOOD["frames"][0]}, "must be of kind"),
    "single": ({"frames": GOOD["frames"].astype(np.float32)}, "must be float64"),
    "NaN": ({"frames": GOOD["frames"] * np.nan}, "frame 0, column 0 is nan"),
    "no YAML": ({"character": text("{")}, "character:1: is not YAML"),
    "no character": ({"character": text("name: x")}, "character:1: "),
    "no text": ({"character": np.zeros(3)}, "must be of kind"),
    "not UTF-8": ({"meta": text(b"{\xff}")}, "meta: byte 1 is not UTF-8"),
    "no JSON": ({"meta": text("{")}, "meta:1: is not JSON"),
    "a list": ({"meta": text("[]")}, "format must be 'poise-clip'"),
    "format": ({"meta": meta(format="x")}, "format must be 'poise-clip'"),
    "version": ({"meta": meta(version=2)}, "version must be 1, got 2"),
    "rate": ({"meta": meta(fps=0)}, "fps, a positive number"),
    "no rate": ({"meta": meta(fps=None)}, "fps, a positive number"),
    "name": ({"meta": meta(name=3)}, "needs name"),
    "rig": ({"meta": meta(source=[1])}, "source is no rig"),
    "empty rig": ({"meta": meta(source={})}, "source is no rig"),
    "parent": ({"meta": joint(parent=7)}, "must come before it"),
    "offset": ({"meta": joint(offset=[1, 2])}, "must be 3 numbers"),
    "channel": ({"meta": joint(channels=["Wrotation"])}, "channel 'Wrotation'"),
    "key": ({"meta": joint(colour=1)}, "source is no rig"),
    "joint name": ({"meta": joint(name="pelvis")}, "names of joints"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_files_are_refused_with_file_and_reason(case: str, tmp_path: Path) -> None:
    change, reason = BAD[case]
    values = {key: x for key, x in {**GOOD, **change}.items() if x is not None}
    path = tmp_path / "bad.npz"
    np.savez(path, **values)
    with pytest.raises(ClipError, match=reason) as caught:
        npz.read(path)
    assert str(caught.value).startswith(f"{path}:")


def archive(data: bytes = b"x", names: tuple[str, ...] = ("frames.npy",), **more: Any) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", **more) as members:
        for name in names:
            members.writestr(name, data)
    return buffer.getvalue()


FILES = {
    "0 bytes": b"",
    "text": b"hello",
    "cut off": pack(GOOD)[:-30],
    "cut in front": pack(GOOD)[100:],
    "an end only": b"PK\x05\x06" + bytes(18),
    "a directory that lies": b"PK\x05\x06" + bytes(8) + b"\xff" * 8 + bytes(2),
    "many members": archive(names=tuple(f"{i}.npy" for i in range(20_000))),
    "no arrays": archive(names=tuple(f"{name}.npy" for name in npz.MEMBERS)),
    "packed otherwise": archive(
        names=tuple(f"{name}.npy" for name in npz.MEMBERS), compression=zipfile.ZIP_LZMA
    ),
}


@pytest.mark.parametrize("case", FILES)
def test_files_that_are_no_archives_are_refused(case: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.npz"
    path.write_bytes(FILES[case])
    with pytest.raises(ClipError) as caught:
        npz.read(path)
    assert str(caught.value).startswith(f"{path}:")


def test_a_member_there_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bad.npz"
    path.write_bytes(pack(GOOD))
    with zipfile.ZipFile(path, "a") as members, pytest.warns(UserWarning, match="Duplicate"):
        members.writestr("meta.npy", b"x")
    with pytest.raises(ClipError, match="two arrays named 'meta'"):
        npz.read(path)


def test_an_archive_tells_sizes_before_it_is_unpacked_and_raises_what_it_is_told_to(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.npz"
    path.write_bytes(pack({"zeros": np.zeros((100, 1000))}))
    assert path.stat().st_size < 10_000
    with Archive.open(path, CharacterError) as found:
        # a header of 128 bytes comes before the numbers
        assert found.sizes == {"zeros": 128 + 800_000}
        with pytest.raises(CharacterError, match="zeros: has type float64"):
            found.array("zeros", "u")


def test_files_that_are_not_there_are_named(tmp_path: Path) -> None:
    for path in unreadable_paths(tmp_path, ".npz"):
        with pytest.raises(ClipError, match=r"cannot be read|not a file"):
            npz.read(path)


def test_a_file_of_hundreds_of_megabytes_is_refused_unread(tmp_path: Path) -> None:
    path = write_hole(tmp_path / "large.npz")
    with pytest.raises(ClipError, match="larger than"):
        npz.read(path)


STORED = {
    "frames": GOOD["frames"],
    "character": GOOD["character"],
    "meta": meta(source=None),
}


def stored() -> bytes:
    """The file without compression, so that changes reach the arrays."""
    buffer = io.BytesIO()
    np.savez(buffer, **STORED)
    return buffer.getvalue()


@given(
    st.sampled_from([stored(), pack(STORED)]),
    st.integers(0, 10_000),
    st.integers(0, 30),
    st.binary(max_size=8),
)
def test_no_other_error_escapes(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, at: int, cut: int, put: bytes
) -> None:
    at %= len(data)
    path = tmp_path_factory.getbasetemp() / "fuzz.npz"
    path.write_bytes(data[:at] + put + data[at + cut :])
    said = refusal(lambda: npz.read(path))
    assert said is None or said.startswith(f"{path}:")


@given(
    st.sampled_from(npz.MEMBERS), st.integers(0, 10_000), st.integers(0, 30), st.binary(max_size=8)
)
def test_no_other_error_escapes_from_changed_arrays(
    tmp_path_factory: pytest.TempPathFactory, name: str, at: int, cut: int, put: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzz.npz"
    with zipfile.ZipFile(path, "w") as members:
        for member, array in STORED.items():
            buffer = io.BytesIO()
            np.save(buffer, array)
            data = buffer.getvalue()
            if member == name:
                at %= len(data)
                data = data[:at] + put + data[at + cut :]
            members.writestr(f"{member}.npy", data)
    said = refusal(lambda: npz.read(path))
    assert said is None or said.startswith(f"{path}:")
