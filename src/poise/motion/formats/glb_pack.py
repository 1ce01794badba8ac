"""The bytes of a GLB file: accessors, buffer views and the file around them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from poise import _core
from poise.math.arrays import Floats

CODES = {"f4": 5126, "u1": 5121, "u2": 5123, "u4": 5125}
TYPES = {1: "SCALAR", 3: "VEC3", 4: "VEC4", 16: "MAT4"}
ARRAY_BUFFER, ELEMENT_ARRAY_BUFFER = 34962, 34963
VERTICES = ("positions", "normals", "joints", "weights")
VIEWS = (*VERTICES, "indices", "animation", "bind", "q")


class Packer:
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
            accessor.min, accessor.max = plain(values.min(axis=0)), plain(values.max(axis=0))
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


def plain(values: NDArray[Any]) -> list[float]:
    """Floats for JSON: those of 32 bits, which is what readers keep; no minus zero."""
    return [float(x) + 0.0 for x in np.asarray(values, dtype=np.float32)]
