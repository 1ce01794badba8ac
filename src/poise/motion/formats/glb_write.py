"""Clips as glTF 2.0 binary: one node per joint, one animation, the shapes as meshes.

Axes: glTF has y up and looks along +z, poise z up and along +x, so (x, y, z) of ours is written as
(y, z, x), in the world and in every node's frame alike. The pose of a node is that of its link in
its parent's frame; sampled by forward kinematics, so that any joints come out as translations and
rotations. What glTF cannot say goes into `asset.extras.poise`: the character as YAML, the rig that
the clip came from, and the frames of q as one buffer view: with them the same clip comes back.

Skinned, all shapes are one mesh in the rest pose, every vertex bound to one joint, and the joints
hang on a node of the character's name: what Blender calls an armature. Joints are turned so that
their y is along the bone, which is how Blender shows bones. Rigid, each node is a link's own frame
and carries the mesh of its shapes.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from poise import _core
from poise.anatomy.rig import Rig, poses_of
from poise.dynamics import forward_kinematics
from poise.errors import ClipError
from poise.math.arrays import Floats, children_of, depth_first
from poise.math.rotation import align_signs, conjugate, multiply, quat_matrix, rotate
from poise.model.character import Character
from poise.model.formats.yaml import dump as dump_character
from poise.model.geometry import Triangles, triangles, triangles_in_world
from poise.motion.clip import Clip

GREY = (0.62, 0.64, 0.68)
"""Colour of a shape that has none."""


def linear_color(color: tuple[float, ...] | None) -> tuple[float, float, float, float]:
    """Red, green, blue and opacity as files have them: linear, where our colours are sRGB."""
    color = color or GREY
    r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in color[:3])
    return r, g, b, color[3] if len(color) > 3 else 1.0


# nodes of a clip


@dataclass(frozen=True)
class Nodes:
    """A tree of nodes that move, in our axes.

    Args:
        names: Names, all different.
        parents: Index of each node's parent, -1 for roots; parents are before children.
        links: Index of the link that each node stands for, or -1.
        p: Positions in the world [m], shape (frames, nodes, 3).
        e: Orientations in the world, w x y z, shape (frames, nodes, 4).
        rest_p: Positions at rest [m], shape (nodes, 3).
        rest_e: Orientations at rest, shape (nodes, 4).
        link_rest_e: Orientations at rest of the links' own frames, shape (nodes, 4).
        ends: Where a last bone ends at rest, from its node [m]; NaN if unknown; shape (nodes, 3).
    """

    names: tuple[str, ...]
    parents: tuple[int, ...]
    links: tuple[int, ...]
    p: Floats
    e: Floats
    rest_p: Floats
    rest_e: Floats
    link_rest_e: Floats
    ends: Floats

    @cached_property
    def children(self) -> list[list[int]]:
        """Indices of each node's children."""
        return children_of(self.parents)

    def local(self) -> tuple[Floats, Floats]:
        """Poses in the parents' frames: positions (frames, nodes, 3), quaternions (..., 4)."""
        p, e = _local(self.parents, self.p, self.e)
        return p, align_signs(e)

    def local_rest(self) -> tuple[Floats, Floats]:
        """Poses at rest in the parents' frames, shapes (nodes, 3) and (nodes, 4)."""
        p, e = _local(self.parents, self.rest_p[None], self.rest_e[None])
        return p[0], align_signs(e)[0]

    def as_bones(self, axis: tuple[float, ...]) -> Nodes:
        """The same nodes with other axes of their own: at rest, one axis of each is along its bone.

        Args:
            axis: Which one; Blender takes a bone to point along the file's y axis.
        """
        rest = np.array([_rotation_to(np.array(axis), bone) for bone in self._bones()])
        e = multiply(self.e, multiply(conjugate(self.rest_e), rest))
        return replace(self, e=e, rest_e=rest)

    def _bones(self) -> Floats:
        """Bones at rest, of any length, shape (nodes, 3).

        A bone goes to that child on which most hangs, but not to one of a pair, such as shoulders;
        where there are only pairs, between them; the last one of a chain to its end. One without
        length goes on as the next does, else as the one before.
        """
        count = len(self.names)
        weight, along = [1] * count, np.full((count, 3), np.nan)
        for i in reversed(range(count)):
            below = sorted(self.children[i], key=lambda c: -weight[c])
            weights = [weight[c] for c in below]
            weight[i] += sum(weights)
            alone = [c for c in below if weights.count(weight[c]) == 1]
            ways = [self.rest_p[c] - self.rest_p[i] for c in alone]
            if below:
                ways += [
                    self.rest_p[below].mean(axis=0) - self.rest_p[i],
                    along[(alone or below)[0]],
                ]
            else:
                ways.append(self.ends[i])
            along[i] = next((way for way in ways if np.linalg.norm(way) > SHORT), np.nan)
        for i, parent in enumerate(self.parents):
            if np.isnan(along[i]).any():
                along[i] = along[parent] if parent >= 0 else (0.0, 0.0, 1.0)
        return along


SHORT = 1e-4
"""A bone of less than this has no direction [m]."""


def nodes_of(clip: Clip) -> Nodes:
    """The nodes that a clip shows: the joints of its source and its links."""
    character, rig = clip.character, clip.source
    moving = {link.name for link in character.links if link.joints}
    if rig is None or not moving or not moving.issubset(rig.names):
        rig = Rig(())
    p, e = forward_kinematics(character, clip.frames)
    rest_p, rest_e = forward_kinematics(character, character.rest_q[None])
    links = {link.name: i for i, link in enumerate(character.links)}
    rigid = [i for i, name in enumerate(rig.names) if name not in links]
    if rigid:
        more = *poses_of(character, rig, clip.frames), *poses_of(character, rig, character.rest_q)
        p, e, rest_p, rest_e = (
            np.concatenate([x, y[rigid].transpose(1, 0, 2)], axis=1)
            for x, y in zip((p, e, rest_p, rest_e), more, strict=True)
        )
    names = [link.name for link in character.links] + [rig.names[i] for i in rigid]
    above = {link.name: link.parent for link in character.links}
    for joint in rig.joints:  # a parent in the source is nearer than that among the links
        above[joint.name] = rig.names[joint.parent] if joint.parent >= 0 else None
    index = {name: i for i, name in enumerate(names)}
    order = depth_first([-1 if (up := above[name]) is None else index[up] for name in names])
    index = {names[old]: new for new, old in enumerate(order)}
    ends = np.array([_end(character, rig, names[i], rest_e[0, i]) for i in order])
    return Nodes(
        tuple(names[i] for i in order),
        tuple(-1 if (up := above[names[i]]) is None else index[up] for i in order),
        tuple(i if i < len(links) else -1 for i in order),
        p[:, order],
        e[:, order],
        rest_p[0, order],
        rest_e[0, order],
        rest_e[0, order],
        ends,
    )


def _local(parents: tuple[int, ...], p: Floats, e: Floats) -> tuple[Floats, Floats]:
    up = np.array(parents)
    inner = np.flatnonzero(up >= 0)
    p_PL, e_PL = p.copy(), e.copy()
    back = conjugate(e[:, up[inner]])
    p_PL[:, inner] = rotate(back, p[:, inner] - p[:, up[inner]])
    e_PL[:, inner] = multiply(back, e[:, inner])
    return p_PL, e_PL


def _end(character: Character, rig: Rig, name: str, R: Floats) -> Floats:
    """Where a last bone ends at rest, from its joint: as the source says, else twice its center."""
    if name in rig.names:
        end = rig.joints[rig.names.index(name)].end
        if end is not None:
            return rig.vectors(end)
    link = next((link for link in character.links if link.name == name), None)
    return np.full(3, np.nan) if link is None else rotate(R, 2.0 * np.array(link.com))


def _rotation_to(axis: Floats, way: Floats) -> Floats:
    """The shortest turn from an axis to a direction, as a quaternion."""
    way = way / np.linalg.norm(way)
    quat = np.array([1.0 + axis @ way, *np.cross(axis, way)])
    size = np.linalg.norm(quat)
    if size < 1e-6:  # half a turn, about any axis at a right angle
        return np.array([0.0, *np.roll(axis, 1)])
    turn: Floats = quat / size
    return turn


# the file: nodes, meshes, animation; accessors and buffer views

CODES = {"f4": 5126, "u1": 5121, "u2": 5123, "u4": 5125}
TYPES = {1: "SCALAR", 3: "VEC3", 4: "VEC4", 16: "MAT4"}
ARRAY_BUFFER, ELEMENT_ARRAY_BUFFER = 34962, 34963
VERTICES = ("positions", "normals", "joints", "weights")
VIEWS = (*VERTICES, "indices", "animation", "bind", "q")


def json_floats(values: NDArray[Any]) -> list[float]:
    """Floats for JSON: those of 32 bits, which is what readers keep; no minus zero."""
    return [float(x) + 0.0 for x in np.asarray(values, dtype=np.float32)]


AXES = [1, 2, 0]
"""Which of our axes are x, y and z of the file."""


def dump(clip: Clip, *, skin: bool = True) -> bytes:
    """The bytes of a clip's GLB file.

    Args:
        clip: The motion.
        skin: One skinned mesh on an armature; False: a rigid mesh on each node.
    """
    nodes = nodes_of(clip)
    out = GlbWriter()
    if skin:
        nodes = nodes.as_bones((0.0, 0.0, 1.0))  # which is y of the file
        out.add_nodes(nodes)
        out.add_skin(clip.character, nodes)
    else:
        out.add_nodes(nodes)
        out.add_meshes(clip.character, nodes)
    out.add_animation(clip, nodes)
    out.add_bytes("q", clip.frames.astype("<f4"))
    extras = {
        "version": 1,
        "name": clip.name,
        "fps": clip.fps,
        "frames": len(clip.frames),
        "q": VIEWS.index("q"),
        "source": None if clip.source is None else asdict(clip.source),
        "character": dump_character(clip.character),
    }
    return out.finish(extras)


class Part(NamedTuple):
    """Triangles of one colour, each vertex with the joint that it moves with."""

    mesh: Triangles
    joint: int


def to_file(p: Floats) -> Floats:
    """Vectors from our axes to those of the file."""
    return p[..., AXES]


def quat_to_file(quat: Floats) -> Floats:
    """Quaternions w x y z in our axes as x y z w in those of the file."""
    return quat[..., [2, 3, 1, 0]]


class GlbWriter:
    """A file while it grows: glTF's lists, and the bytes of each buffer view."""

    def __init__(self) -> None:
        import pygltflib

        self.lib: Any = pygltflib
        self.gltf = pygltflib.GLTF2()
        self.data = {name: bytearray() for name in VIEWS}
        self.materials: dict[tuple[float, ...], int] = {}
        self.strides: dict[str, int] = {}

    def add_floats(self, view: str, values: Floats, bounds: bool = False) -> int:
        """An accessor of 32-bit floats; its index."""
        return self.add(view, values.astype("<f4"), bounds)

    def add(self, view: str, values: NDArray[Any], bounds: bool = False) -> int:
        """An accessor of the rows of an array; its index."""
        accessor = self.lib.Accessor(
            bufferView=VIEWS.index(view),
            byteOffset=self.add_bytes(view, values),
            componentType=CODES[values.dtype.str[1:]],
            count=len(values),
            type=TYPES[values.shape[1]],
        )
        if bounds:
            accessor.min = json_floats(values.min(axis=0))
            accessor.max = json_floats(values.max(axis=0))
        self.gltf.accessors.append(accessor)
        return len(self.gltf.accessors) - 1

    def add_bytes(self, view: str, values: NDArray[Any]) -> int:
        """Put an array into a buffer view, on a multiple of four bytes; where it begins."""
        data = self.data[view]
        self.strides[view] = values.itemsize * values.shape[-1]
        data += bytes(-len(data) % 4)
        start = len(data)
        data += values.tobytes()
        return start

    def finish(self, extras: dict[str, Any]) -> bytes:
        """The whole file."""
        lib, gltf, blob = self.lib, self.gltf, bytearray()
        used = [name for name in VIEWS if self.data[name]]
        place = {VIEWS.index(name): i for i, name in enumerate(used)}
        for name in used:
            view = lib.BufferView(buffer=0, byteOffset=len(blob), byteLength=len(self.data[name]))
            if name in VERTICES:
                view.target, view.byteStride = ARRAY_BUFFER, self.strides[name]
            elif name == "indices":
                view.target = ELEMENT_ARRAY_BUFFER
            gltf.bufferViews.append(view)
            blob += self.data[name]
            blob += bytes(-len(blob) % 4)
        for accessor in gltf.accessors:
            accessor.bufferView = place[accessor.bufferView]
        extras = {**extras, "q": place[extras["q"]]}
        generator = f"poise {_core.build_info()['version']}"
        gltf.asset = lib.Asset(version="2.0", generator=generator, extras={"poise": extras})
        gltf.buffers = [lib.Buffer(byteLength=len(blob))]
        gltf.set_binary_blob(bytes(blob))
        return b"".join(gltf.save_to_bytes())

    # nodes

    def add_nodes(self, nodes: Nodes) -> None:
        """All nodes as they rest, in the order that they have."""
        p, e = nodes.local_rest()
        for i, name in enumerate(nodes.names):
            self.gltf.nodes.append(
                self.lib.Node(
                    name=name,
                    translation=json_floats(to_file(p[i])),
                    rotation=json_floats(quat_to_file(e[i])),
                    children=nodes.children[i],
                )
            )

    def add_node(self, name: str, **more: Any) -> int:
        """One more node, whose name no other has."""
        taken = {node.name for node in self.gltf.nodes}
        while name in taken:
            name += "_"
        self.gltf.nodes.append(self.lib.Node(name=name, **more))
        return len(self.gltf.nodes) - 1

    def set_scene(self, name: str, roots: list[int]) -> None:
        self.gltf.scenes = [self.lib.Scene(name=name, nodes=roots)]
        self.gltf.scene = 0

    # meshes

    def add_meshes(self, character: Character, nodes: Nodes) -> None:
        """A mesh on each node whose link has shapes."""
        for i, number in enumerate(nodes.links):
            if number >= 0 and character.links[number].shapes:
                parts: dict[int, list[Part]] = {}
                for shape in character.links[number].shapes:
                    part = Part(triangles(shape), i)
                    parts.setdefault(self.material(shape.color), []).append(part)
                self.gltf.nodes[i].mesh = self.mesh(nodes.names[i], parts, skin=False)
        roots = [i for i, parent in enumerate(nodes.parents) if parent < 0]
        self.set_scene(character.name, roots)

    def add_skin(self, character: Character, nodes: Nodes) -> None:
        """One mesh of all shapes as they rest, and the joints that move it."""
        parts: dict[int, list[Part]] = {}
        for i, number in enumerate(nodes.links):
            if number < 0:
                continue
            for shape in character.links[number].shapes:
                # shapes are in the frames of links, not in those of bones
                mesh = triangles_in_world(shape, nodes.rest_p[i], nodes.link_rest_e[i])
                parts.setdefault(self.material(shape.color), []).append(Part(mesh, i))
        inverse = np.zeros((len(nodes.names), 4, 4), dtype="<f4")
        R = quat_matrix(nodes.rest_e)[:, AXES][:, :, AXES].transpose(0, 2, 1)
        inverse[:, :3, :3] = R
        inverse[:, :3, 3] = -(R @ to_file(nodes.rest_p)[:, :, None])[:, :, 0]
        inverse[:, 3, 3] = 1.0
        roots = [i for i, parent in enumerate(nodes.parents) if parent < 0]
        armature = self.add_node(character.name, children=roots)
        self.gltf.skins.append(
            self.lib.Skin(
                name=character.name,
                joints=list(range(len(nodes.names))),
                skeleton=armature,
                inverseBindMatrices=self.add(
                    "bind", inverse.transpose(0, 2, 1).reshape(-1, 16) + np.float32(0.0)
                ),
            )
        )
        scene = [armature]
        if parts:
            number = self.mesh(character.name, parts, skin=True)
            scene.append(self.add_node(f"{character.name}_mesh", mesh=number, skin=0))
        self.set_scene(character.name, scene)

    def mesh(self, name: str, parts: dict[int, list[Part]], skin: bool) -> int:
        """A mesh of shapes, those of one colour as one primitive."""
        primitives = [self.primitive(found, material, skin) for material, found in parts.items()]
        self.gltf.meshes.append(self.lib.Mesh(name=name, primitives=primitives))
        return len(self.gltf.meshes) - 1

    def primitive(self, parts: list[Part], material: int, skin: bool) -> Any:
        sizes = [len(part.mesh.positions) for part in parts]
        starts = np.cumsum([0, *sizes])
        indices = np.concatenate(
            [part.mesh.faces + start for part, start in zip(parts, starts, strict=False)]
        )
        positions = np.concatenate([part.mesh.positions for part in parts])
        normals = np.concatenate([part.mesh.normals for part in parts])
        attributes = self.lib.Attributes(
            POSITION=self.add_floats("positions", to_file(positions), bounds=True),
            NORMAL=self.add_floats("normals", to_file(normals)),
        )
        if skin:
            joints = np.zeros((starts[-1], 4), dtype="u1" if len(self.gltf.nodes) < 256 else "<u2")
            joints[:, 0] = np.repeat([part.joint for part in parts], sizes)
            weights = np.zeros((starts[-1], 4), dtype="u1")
            weights[:, 0] = 255
            attributes.JOINTS_0 = self.add("joints", joints)
            attributes.WEIGHTS_0 = self.add("weights", weights)
            self.gltf.accessors[-1].normalized = True
        small = starts[-1] < 2**16 - 1
        return self.lib.Primitive(
            attributes=attributes,
            indices=self.add("indices", indices.reshape(-1, 1).astype("<u2" if small else "<u4")),
            material=material,
        )

    def material(self, color: tuple[float, ...] | None) -> int:
        """The material of a colour."""
        key = linear_color(color)
        if key not in self.materials:
            surface = self.lib.PbrMetallicRoughness(
                baseColorFactor=json_floats(np.array(key)),
                metallicFactor=0.0,
                roughnessFactor=0.8,
            )
            self.gltf.materials.append(
                self.lib.Material(
                    pbrMetallicRoughness=surface,
                    alphaMode="BLEND" if key[3] < 1.0 else "OPAQUE",
                    alphaCutoff=None,
                )
            )
            self.materials[key] = len(self.materials)
        return self.materials[key]

    # animation

    def add_animation(self, clip: Clip, nodes: Nodes) -> None:
        """The rotation of every node that turns, the translation of every node that shifts."""
        times = (np.arange(len(clip.frames)) / clip.fps).astype("<f4")
        if np.any(np.diff(times) <= 0.0):
            raise ClipError(
                f"{len(times)} frames at {clip.fps:g} fps are too close in time for GLB, whose "
                "times have 24 bits; write npz"
            )
        self.gltf.animations.append(self.lib.Animation(name=clip.name or clip.character.name))
        key_times = self.add_floats("animation", times[:, None], bounds=True)
        p, e = nodes.local()
        rest_p, rest_e = nodes.local_rest()
        shifts = np.abs(p - rest_p).max(axis=(0, 2)) > 1e-7
        turns = np.abs(np.sum(e * rest_e, axis=2)).min(axis=0) < 1.0 - 1e-12
        for i, number in enumerate(nodes.links):
            # a joint that happens to rest is still a joint
            joints = clip.character.links[number].joints if number >= 0 else ()
            if shifts[i] or any(joint.kind == "free" for joint in joints):
                self.add_channel(i, "translation", key_times, to_file(p[:, i]))
            if turns[i] or any(joint.kind != "slide" for joint in joints):
                self.add_channel(i, "rotation", key_times, quat_to_file(e[:, i]))
        if not self.gltf.animations[0].channels:  # only slides, and they rest: still a motion
            self.add_channel(0, "translation", key_times, to_file(p[:, 0]))

    def add_channel(self, node: int, path: str, times: int, values: Floats) -> None:
        lib, animation = self.lib, self.gltf.animations[0]
        output = self.add_floats("animation", values)
        animation.samplers.append(
            lib.AnimationSampler(input=times, output=output, interpolation="LINEAR")
        )
        target = lib.AnimationChannelTarget(node=node, path=path)
        animation.channels.append(
            lib.AnimationChannel(sampler=len(animation.samplers) - 1, target=target)
        )
