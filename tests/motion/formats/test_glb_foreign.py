"""GLB and glTF files as other programs write them, and what of them is refused."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_glb import (
    KEYS,
    Builder,
    foreign,
    foreign_builder,
    pack,
    parts,
    positions,
    quat,
    try_to_read,
)

from poise.anatomy.rig import poses_of
from poise.errors import ClipError, PoiseError
from poise.motion import load_clip
from poise.motion.clip import Clip
from poise.motion.formats import glb


def read(builder: Builder, folder: Path, **options: Any) -> Clip:
    (folder / "a.glb").write_bytes(builder.bytes())
    return glb.read(folder / "a.glb", **options)


def same(a: Clip, b: Clip, atol: float = 1e-6) -> None:
    expected = positions(a)
    for name, path in positions(b).items():
        np.testing.assert_allclose(path, expected[name], atol=atol)


# how numbers are stored


def test_sparse_accessors_change_some_rows(tmp_path: Path) -> None:
    plain, sparse = foreign_builder(), foreign_builder()
    turns = np.stack([quat(x, 0.3 * x, 0) for x in np.sin(5 * KEYS)])
    turns[[3, 17]] = [quat(0.5, 0, 0), quat(0, 0, 0.7)]
    plain.animate("bent", [(1, "rotation", "LINEAR", KEYS, turns)])
    # the first animation's rotation of the hips, with two rows put over it
    sparse.animate("bent", [(1, "rotation", "LINEAR", KEYS, turns)])
    output = sparse.found["animations"][2]["samplers"][0]["output"]
    base = sparse.found["accessors"][sparse.found["animations"][0]["samplers"][1]["output"]]
    where = sparse.accessor([[3], [17]], "SCALAR", "<u2")
    values = sparse.accessor(turns[[3, 17]], "VEC4")
    indices = {"bufferView": sparse.found["accessors"][where]["bufferView"]}
    put = {"bufferView": sparse.found["accessors"][values]["bufferView"]}
    sparse.found["accessors"][output] = {
        **base,
        "sparse": {"count": 2, "indices": {**indices, "componentType": 5123}, "values": put},
    }
    same(read(plain, tmp_path, animation="bent"), read(sparse, tmp_path, animation="bent"))


def test_a_sparse_accessor_without_a_view_is_zero_elsewhere(tmp_path: Path) -> None:
    b = foreign_builder()
    b.animate("jump", [(1, "translation", "LINEAR", KEYS, np.zeros((31, 3)))])
    where, value = b.accessor([[5]], "SCALAR", "<u2"), b.accessor([[0.0, 300.0, 0.0]], "VEC3")
    view = [b.found["accessors"][i]["bufferView"] for i in (where, value)]
    accessor = b.found["accessors"][b.found["animations"][2]["samplers"][0]["output"]]
    del accessor["bufferView"]
    accessor["sparse"] = {
        "count": 1,
        "indices": {"bufferView": view[0], "componentType": 5123},
        "values": {"bufferView": view[1]},
    }
    heights = positions(read(b, tmp_path, animation="jump"))["hips"][:, 2]
    np.testing.assert_allclose(heights, 3.0 * (np.arange(31) == 5), atol=1e-6)


@pytest.mark.parametrize(
    ("sparse", "message"),
    [
        ({"count": 1}, "must be an object with indices and values"),
        ({"count": 99}, r"sparse\.count is 99; it must be from 1 to 31"),
        ({"count": 2, "rows": [[7], [7]]}, "must increase and stay below 31"),
        ({"count": 1, "rows": [[31]]}, "must increase and stay below 31"),
        ({"count": 1, "code": 5126}, r"indices\.componentType is 5126"),
    ],
)
def test_wrong_sparse_accessors_are_refused(
    sparse: dict[str, Any], message: str, tmp_path: Path
) -> None:
    b = foreign_builder()
    where = b.accessor(sparse.pop("rows", [[1]]), "SCALAR", "<u2")
    value = b.accessor(np.ones((2, 4)), "VEC4")
    view = [b.found["accessors"][i]["bufferView"] for i in (where, value)]
    if message.startswith("must be an object"):
        entry = sparse
    else:
        code = sparse.pop("code", 5123)
        entry = {**sparse, "indices": {"bufferView": view[0], "componentType": code}}
        entry["values"] = {"bufferView": view[1]}
    output = b.found["animations"][0]["samplers"][1]["output"]
    b.found["accessors"][output]["sparse"] = entry
    with pytest.raises(ClipError, match=message):
        read(b, tmp_path)


def test_a_sparse_accessor_cannot_ask_for_endless_memory(tmp_path: Path) -> None:
    b = foreign_builder()
    output = b.found["animations"][0]["samplers"][1]["output"]
    accessor = b.found["accessors"][output]
    del accessor["bufferView"]
    accessor |= {"count": 10**12, "sparse": {}}
    with pytest.raises(ClipError, match="would take over 512 MB"):
        read(b, tmp_path)


def test_interleaved_rows_are_told_apart(tmp_path: Path) -> None:
    plain, mixed = foreign_builder(), foreign_builder()
    turns = np.stack([quat(x, 0.3 * x, 0) for x in np.sin(5 * KEYS)])
    shift = np.stack([10 * KEYS, 100 + KEYS, 0 * KEYS], axis=1)
    channels = [
        (1, "translation", "LINEAR", KEYS, shift),
        (1, "rotation", "LINEAR", KEYS, turns),
    ]
    for b in (plain, mixed):
        b.animate("both", channels)
    # translations and rotations row by row in one view
    samplers = mixed.found["animations"][2]["samplers"]
    rows = np.concatenate([shift, turns], axis=1)
    carrier = mixed.accessor(rows, "VEC4")
    view = mixed.found["accessors"][carrier]["bufferView"]
    mixed.found["bufferViews"][view]["byteStride"] = 28
    mixed.found["accessors"].pop()
    for sampler, offset in zip(samplers, (0, 12), strict=True):
        accessor = mixed.found["accessors"][sampler["output"]]
        accessor |= {"bufferView": view, "byteOffset": offset}
    same(read(plain, tmp_path, animation="both"), read(mixed, tmp_path, animation="both"))


@pytest.mark.parametrize(
    ("dtype", "code", "atol"),
    [("i1", 5120, 6e-3), ("<i2", 5122, 3e-5), ("u1", 5121, 3e-3), ("<u2", 5123, 2e-5)],
)
def test_normalised_integers_are_rotations(
    dtype: str, code: int, atol: float, tmp_path: Path
) -> None:
    plain, small = foreign_builder(), foreign_builder()
    # all components are positive, so that unsigned numbers will do
    turns = np.abs(np.stack([quat(0.5 * x, 0.2, 0.1) for x in KEYS]))
    most = np.iinfo(dtype).max
    for b in (plain, small):
        b.animate("turn", [(2, "rotation", "LINEAR", KEYS, turns)])
    b = small
    output = b.found["animations"][2]["samplers"][0]["output"]
    data = np.round(turns * most).astype(dtype)
    b.binary += bytes(-len(b.binary) % 4)
    view = {"buffer": 0, "byteOffset": len(b.binary), "byteLength": data.nbytes}
    b.found["bufferViews"].append(view)
    b.binary += data.tobytes()
    entry = {"bufferView": len(b.found["bufferViews"]) - 1, "componentType": code}
    b.found["accessors"][output] |= {**entry, "normalized": True}
    # the head is 0.3 m from the spine, and a step of the numbers is 1 / most
    same(read(plain, tmp_path, animation="turn"), read(small, tmp_path, animation="turn"), atol)


# where they are stored


def gltf(folder: Path, uri: str | None = None) -> Path:
    """The foreign file as a.gltf with its data in a.bin, or where the uri says."""
    found, binary = parts(foreign())
    found["buffers"][0]["uri"] = uri or "a.bin"
    (folder / "a.bin").write_bytes(binary)
    (folder / "a.gltf").write_text(json.dumps(found))
    return folder / "a.gltf"


def test_a_gltf_with_its_data_beside_it_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.glb").write_bytes(foreign())
    clip = load_clip(gltf(tmp_path))
    np.testing.assert_array_equal(clip.frames, glb.read(tmp_path / "a.glb").frames)


def test_a_gltf_with_its_data_inside_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.glb").write_bytes(foreign())
    text = base64.b64encode(parts(foreign())[1]).decode()
    path = gltf(tmp_path, f"data:application/octet-stream;base64,{text}")
    (tmp_path / "a.bin").unlink()
    np.testing.assert_array_equal(glb.read(path).frames, glb.read(tmp_path / "a.glb").frames)


@pytest.mark.parametrize(
    ("uri", "message"),
    [
        ("b.bin", "no such file beside"),
        ("../a.bin", "must name a file beside this one"),
        ("/etc/passwd", "must name a file beside this one"),
        ("https://example.org/a.bin", "must name a file beside this one"),
        ("%2e%2e/a.bin", "must name a file beside this one"),
        ("a\0.bin", "no such file|cannot be read"),
        ("data:application/octet-stream;base64,@@", "is no base64"),
        ("data:text/plain,abc", "must be base64"),
        ("data:application/octet-stream;base64,AAAA", "its buffer has 3 bytes"),
    ],
)
def test_data_elsewhere_are_refused(uri: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ClipError, match=message):
        glb.read(gltf(tmp_path, uri))


def test_a_short_file_of_data_is_named(tmp_path: Path) -> None:
    path = gltf(tmp_path)
    (tmp_path / "a.bin").write_bytes(b"1234")
    with pytest.raises(ClipError, match="its buffer has 4 bytes"):
        glb.read(path)


def test_a_gltf_that_is_no_json_is_refused_with_the_byte(tmp_path: Path) -> None:
    (tmp_path / "a.gltf").write_text('{"nodes": oops}')
    with pytest.raises(ClipError, match="byte 10: the JSON is wrong"):
        glb.read(tmp_path / "a.gltf")
    (tmp_path / "a.gltf").write_bytes(b"")
    with pytest.raises(ClipError, match="byte 0: the JSON is wrong"):
        glb.read(tmp_path / "a.gltf")


@pytest.mark.parametrize("name", ["EXT_meshopt_compression", "KHR_meshopt_compression"])
def test_compressed_data_are_refused_by_name(name: str, tmp_path: Path) -> None:
    found, binary = parts(foreign())
    found["bufferViews"][1]["extensions"] = {name: {}}
    (tmp_path / "a.glb").write_bytes(pack(found, binary))
    with pytest.raises(ClipError, match=f"compressed by {name}; export without"):
        glb.read(tmp_path / "a.glb")


def test_nodes_moved_by_pointers_are_refused(tmp_path: Path) -> None:
    found, binary = parts(foreign())
    pointer = {"KHR_animation_pointer": {"pointer": "/nodes/1/rotation"}}
    found["animations"][0]["channels"][0]["target"] = {"path": "pointer", "extensions": pointer}
    (tmp_path / "a.glb").write_bytes(pack(found, binary))
    with pytest.raises(ClipError, match=r"channels\[0\] moves a node by KHR_animation_pointer"):
        glb.read(tmp_path / "a.glb")


# animations


@pytest.mark.parametrize("animation", [1, "1", "stand"])
def test_an_animation_is_chosen_by_number_or_name(animation: str | int, tmp_path: Path) -> None:
    clip = read(foreign_builder(), tmp_path, animation=animation)
    assert (clip.name, len(clip)) == ("stand", 2)


@pytest.mark.parametrize("animation", [2, -1, True, "", "²"])
def test_a_wrong_animation_lists_those_there_are(animation: Any, tmp_path: Path) -> None:
    with pytest.raises(ClipError, match="its animations: 0 walk, 1 stand"):
        read(foreign_builder(), tmp_path, animation=animation)


# skeletons


def test_skins_that_share_bones_are_one_skeleton(tmp_path: Path) -> None:
    b = foreign_builder()
    whole = read(b, tmp_path)
    b.found["skins"] = [{"joints": [3]}, {"joints": [2, 1]}]  # a hat, and the body
    clip = read(b, tmp_path)
    assert [link.name for link in clip.character.links] == ["hips", "spine", "head"]
    same(whole, clip)


def test_of_two_bodies_the_one_that_moves_is_read(tmp_path: Path) -> None:
    b = foreign_builder()
    b.found["nodes"] += [{"name": "other", "children": [6]}, {"name": "its head"}]
    b.found["skins"].insert(0, {"joints": [5, 6]})
    b.found["nodes"][4]["skin"] = 1
    names = [link.name for link in read(b, tmp_path).character.links]
    assert names == ["hips", "spine", "head"]


def test_nodes_between_joints_count(tmp_path: Path) -> None:
    b = foreign_builder()
    expected = positions(read(b, tmp_path))
    # half of the way from spine to head, turned and scaled, and back again
    nodes = b.found["nodes"]
    nodes[2]["children"], nodes[3]["translation"] = [5], [0, 15, 5]
    turned = {"scale": [2.0] * 3, "rotation": quat(0.0, 0.4, 0.0)}
    undone = {"scale": [0.5] * 3, "rotation": quat(0.0, -0.4, 0.0)}
    nodes.append({"name": "between", "children": [6], "translation": [0, 15, 0], **turned})
    nodes.append({"name": "undone", "children": [3], **undone})
    clip = read(b, tmp_path)
    assert clip.source is not None
    assert clip.source.names == ("hips", "spine", "between", "undone", "head")
    shown, _ = poses_of(clip.character, clip.source, clip.frames)
    for name, path in expected.items():
        there = shown[clip.source.names.index(name)]
        np.testing.assert_allclose(there, path, atol=1e-6)


def test_bones_longer_than_where_they_were_bound_are_as_long_as_they_are(tmp_path: Path) -> None:
    b = foreign_builder()
    inverse = np.tile(np.eye(4), (3, 1, 1))
    inverse[:, 1, 3] = [-100.0, -120.0, -150.5]
    columns = inverse.transpose(0, 2, 1).reshape(3, 16)
    b.found["skins"][0]["inverseBindMatrices"] = b.accessor(columns, "MAT4")
    b.found["nodes"][3]["translation"] = [0, 30, 0]
    shown = positions(read(b, tmp_path))
    reach = np.linalg.norm(shown["head"] - shown["spine"], axis=1)
    np.testing.assert_allclose(reach, 0.3, atol=1e-6)


def test_a_skin_of_many_joints_in_a_long_chain_is_refused_soon(tmp_path: Path) -> None:
    b = Builder()
    count = 50_000
    b.found["nodes"] = [{"children": [i + 1]} for i in range(count - 1)] + [{}]
    b.found["skins"] = [{"joints": list(range(count))}, *({"joints": [i]} for i in range(1000))]
    with pytest.raises(PoiseError, match="a skeleton of 50000 joints"):
        read(b, tmp_path)


def test_a_gltf_of_changed_bytes_lets_no_other_error_escape(tmp_path: Path) -> None:
    path = gltf(tmp_path)
    good = path.read_bytes()
    rng = np.random.default_rng(5)
    for _ in range(150):
        data = np.frombuffer(good, np.uint8).copy()
        for at in rng.integers(0, len(data), rng.integers(1, 6)):
            data[at] = rng.choice(np.frombuffer(b'0123456789-"{}[],:eax', np.uint8))
        try_to_read(data.tobytes(), path)
