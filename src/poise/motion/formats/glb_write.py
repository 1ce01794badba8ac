"""Clips as glTF 2.0 binary: one node per link, rigid meshes, one animation.

Axes: glTF has y up and looks along +z, poise z up and along +x, so (x, y, z) of ours is written as
(y, z, x), in the world and in every link's frame alike. The pose of a node is that of its link in
its parent's frame; sampled by forward kinematics, so that any joints come out as translations and
rotations. What glTF cannot say goes into `asset.extras.poise`: the character as YAML, the rig that
the clip came from, and the frames of q as one buffer view: with them the same clip comes back.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poise import _core
from poise.arrays import Floats
from poise.character import Character, Link
from poise.dynamics import forward_kinematics
from poise.errors import ClipError
from poise.motion.clip import Clip
from poise.motion.formats.glb_mesh import Triangles, triangles
from poise.motion.rig import conjugate, multiply, rotate

GREY = (0.62, 0.64, 0.68)
"""Colour of a shape that has none."""

FLOAT, UINT16, UINT32 = 5126, 5123, 5125
ARRAY_BUFFER, ELEMENT_ARRAY_BUFFER = 34962, 34963
VIEWS = ("positions", "normals", "indices", "animation", "q")
TYPES = {1: "SCALAR", 3: "VEC3", 4: "VEC4"}


def dump(clip: Clip) -> bytes:
    """The bytes of a clip's GLB file."""
    from poise.characters.formats.yaml import dump as dump_character

    out = _Writer()
    out.add_nodes(clip.character)
    out.add_animation(clip)
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


def local_poses(character: Character, q: Floats) -> tuple[Floats, Floats]:
    """Poses of the links in the frames of their parents, roots in the world.

    Args:
        character: Whose links.
        q: Positions, shape (k, nq).

    Returns:
        Positions [m], shape (k, nl, 3), and quaternions w x y z, shape (k, nl, 4).
    """
    p, e = forward_kinematics(character, q)
    index = {link.name: i for i, link in enumerate(character.links)}
    p_PL, e_PL = p.copy(), e.copy()
    for i, link in enumerate(character.links):
        if link.parent is not None:
            j = index[link.parent]
            back = conjugate(e[:, j])
            p_PL[:, i] = rotate(back, p[:, i] - p[:, j])
            e_PL[:, i] = multiply(back, e[:, i])
    return p_PL, align_signs(e_PL)


def align_signs(quat: Floats) -> Floats:
    """Unit quaternions (k, ..., 4) whose signs go the short way from frame to frame."""
    quat = quat / np.linalg.norm(quat, axis=-1, keepdims=True)
    flips = np.sum(quat[1:] * quat[:-1], axis=-1) < 0.0
    quat[1:] *= np.where(np.cumsum(flips, axis=0) % 2 == 1, -1.0, 1.0)[..., None]
    return quat


def to_file(p: Floats) -> Floats:
    """Vectors from our axes to those of the file."""
    return p[..., [1, 2, 0]]


def quat_to_file(quat: Floats) -> Floats:
    """Quaternions w x y z in our axes as x y z w in those of the file."""
    return quat[..., [2, 3, 1, 0]]


class _Writer:
    """A file while it grows: glTF's lists, and the bytes of each buffer view."""

    def __init__(self) -> None:
        import pygltflib

        self.lib: Any = pygltflib
        self.gltf = pygltflib.GLTF2()
        self.data = {name: bytearray() for name in VIEWS}
        self.materials: dict[tuple[float, ...], int] = {}

    # nodes and meshes

    def add_nodes(self, character: Character) -> None:
        """One node per link, posed as the character rests."""
        p, e = local_poses(character, character.rest_q[None])
        index = {link.name: i for i, link in enumerate(character.links)}
        for i, link in enumerate(character.links):
            node = self.lib.Node(
                name=link.name,
                translation=_plain(to_file(p[0, i])),
                rotation=_plain(quat_to_file(e[0, i])),
                mesh=self.mesh(link),
                children=[index[c.name] for c in character.links if c.parent == link.name],
            )
            self.gltf.nodes.append(node)
        self.gltf.scenes = [self.lib.Scene(name=character.name, nodes=[0])]
        self.gltf.scene = 0

    def mesh(self, link: Link) -> int | None:
        """The shapes of a link, those of one colour as one part."""
        parts: dict[int, list[Triangles]] = {}
        for shape in link.shapes:
            material = self.material(shape.color or GREY)
            parts.setdefault(material, []).append(triangles(shape))
        if not parts:
            return None
        primitives = [self.primitive(meshes, material) for material, meshes in parts.items()]
        self.gltf.meshes.append(self.lib.Mesh(name=link.name, primitives=primitives))
        return len(self.gltf.meshes) - 1

    def primitive(self, meshes: list[Triangles], material: int) -> Any:
        starts = np.cumsum([0, *(len(mesh.positions) for mesh in meshes)])
        indices = np.concatenate(
            [mesh.faces + start for mesh, start in zip(meshes, starts, strict=False)]
        )
        positions = np.concatenate([mesh.positions for mesh in meshes])
        normals = np.concatenate([mesh.normals for mesh in meshes])
        small = starts[-1] < 2**16 - 1
        return self.lib.Primitive(
            attributes=self.lib.Attributes(
                POSITION=self.add_floats("positions", to_file(positions), bounds=True),
                NORMAL=self.add_floats("normals", to_file(normals)),
            ),
            indices=self.add(
                "indices",
                indices.reshape(-1, 1).astype("<u2" if small else "<u4"),
            ),
            material=material,
        )

    def material(self, color: tuple[float, ...]) -> int:
        """The material of a colour; ours are sRGB, those of glTF linear."""
        if color not in self.materials:
            c = np.array(color[:3])
            linear = np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
            alpha = color[3] if len(color) > 3 else 1.0
            surface = self.lib.PbrMetallicRoughness(
                baseColorFactor=[*_plain(linear), alpha], metallicFactor=0.0, roughnessFactor=0.8
            )
            self.gltf.materials.append(
                self.lib.Material(
                    pbrMetallicRoughness=surface,
                    alphaMode="BLEND" if alpha < 1.0 else "OPAQUE",
                    alphaCutoff=None,
                )
            )
            self.materials[color] = len(self.materials)
        return self.materials[color]

    # animation

    def add_animation(self, clip: Clip) -> None:
        """The rotation of every link that turns, the translation of every link that shifts."""
        times = (np.arange(len(clip.frames)) / clip.fps).astype("<f4")
        if np.any(np.diff(times) <= 0.0):
            raise ClipError(
                f"{len(times)} frames at {clip.fps:g} fps are too close in time for GLB, whose "
                "times have 24 bits; write npz"
            )
        self.gltf.animations.append(self.lib.Animation(name=clip.name or clip.character.name))
        key_times = self.add_floats("animation", times[:, None], bounds=True)
        p, e = local_poses(clip.character, clip.frames)
        rest, _ = local_poses(clip.character, clip.character.rest_q[None])
        for i, link in enumerate(clip.character.links):
            if not link.joints:
                continue
            shifts = np.abs(p[:, i] - rest[0, i]).max() > 1e-7
            if shifts or link.joints[0].kind == "free":
                self.add_channel(i, "translation", key_times, to_file(p[:, i]))
            if any(joint.kind != "slide" for joint in link.joints):
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

    # bytes

    def add_floats(self, view: str, values: Floats, bounds: bool = False) -> int:
        """An accessor of 32-bit floats; its index."""
        return self.add(view, values.astype("<f4"), bounds)

    def add(self, view: str, values: NDArray[Any], bounds: bool = False) -> int:
        """An accessor of the rows of an array; its index."""
        components = {"f4": FLOAT, "u2": UINT16, "u4": UINT32}
        accessor = self.lib.Accessor(
            bufferView=VIEWS.index(view),
            byteOffset=self.add_bytes(view, values),
            componentType=components[values.dtype.str[1:]],
            count=len(values),
            type=TYPES[values.shape[1]],
        )
        if bounds:
            accessor.min, accessor.max = _plain(values.min(axis=0)), _plain(values.max(axis=0))
        self.gltf.accessors.append(accessor)
        return len(self.gltf.accessors) - 1

    def add_bytes(self, view: str, values: NDArray[Any]) -> int:
        """Put an array into a buffer view, on a multiple of four bytes; where it begins."""
        data = self.data[view]
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
            if name in ("positions", "normals"):
                view.target, view.byteStride = ARRAY_BUFFER, 12
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


def _plain(values: NDArray[Any]) -> list[float]:
    """Floats for JSON: those of 32 bits, which is what readers keep; no minus zero."""
    return [float(x) + 0.0 for x in np.asarray(values, dtype=np.float32)]
