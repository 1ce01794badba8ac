"""Recordings as .npz files: the scene and all of `poise.recording.columns`, without pickles.

    meta        UTF-8 bytes of JSON: format "poise-recording", version 1, interval [s], memory (how
                many numbers of memory a copy has), diverged: [copy, joint, time, singular] each,
                isa: instruction set of the kernels that stepped it (not in older files)
    scene       UTF-8 bytes of JSON: the settings of the world, characters as the text of their
                YAML files
    scene.NAME  settings that are arrays: heights of the ground, friction, masses, ...
    the rest    the columns, the first axis that of frames or of rows

Everything comes back bit for bit, and the same recording gives the same bytes.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from poise.characters import as_builtin
from poise.errors import PoiseError, shorten, unknown_name
from poise.io.archive import LARGEST_ARRAY, LARGEST_FILE, LARGEST_TEXT, Archive, pack, text_bytes
from poise.io.files import parse_json, suffix_of, write_atomically
from poise.math.arrays import count, number
from poise.model.character import Character
from poise.model.formats import yaml
from poise.model.formats.yaml import LARGEST_TEXT as MOST_TEXT
from poise.model.scene import scene_of
from poise.model.shape import Shape
from poise.recording.columns import TABLE_COLUMNS, TABLES, Array, Columns, layout
from poise.simulation.contact import MOST_PROJECTILES, HeightField, Plane
from poise.simulation.contact.collision_model import MOST_ITERATIONS, STIFFNESS
from poise.simulation.world import Divergence
from poise.simulation.world_config import WorldConfig, kept

if TYPE_CHECKING:
    from poise.recording.recording import Recording

FORMAT = "poise-recording"
VERSION = 1
LARGEST = 2**30
"""Of all arrays together, unpacked [bytes]."""

MOST_MEMORY = 2**30
"""Of all copies in one frame [numbers]."""

ISA = re.compile(r"[a-z0-9_.+-]{1,32}")
"""Names of instruction sets."""

ARRAYS = ("heights", "friction", "restitution", "mass", "inertia", "armature")
"""Settings that may be stored as arrays."""

KEYS = {"projectiles": "spares"}
"""Keys in the file of fields of `WorldConfig` that have another name now."""

Read = tuple[WorldConfig, float, list[Divergence], Columns, str | None]


# writing


def write(recording: Recording, path: str | os.PathLike[str]) -> None:
    """Write a recording, whole or not at all."""
    suffix_of(path, "recordings")
    named = os.fspath(path)
    if not str(named).endswith(".npz"):
        raise PoiseError(f"{named!r:.200}: recordings are written as .npz")
    if not len(recording):
        raise PoiseError(f"{named}: the recording has no frames: append() adds them")
    scene, members = _scene_out(recording.settings)
    meta = {
        "format": FORMAT,
        "version": VERSION,
        "interval": recording.interval,
        "memory": recording.columns.memory_size,
        "diverged": [list(loss) for loss in recording.diverged],
        **({} if recording.isa is None else {"isa": recording.isa}),
    }
    texts = {"meta": text_bytes(json.dumps(meta)), "scene": text_bytes(json.dumps(scene))}
    members = {**texts, **members, **recording.columns.arrays()}
    _check_sizes({name: array.nbytes for name, array in members.items()}, named)
    data = pack(members)
    if len(data) > LARGEST_FILE:
        raise PoiseError(f"{named}: would have {len(data) >> 20} MiB; {_too_large()}")
    write_atomically(path, data)


def _check_sizes(sizes: dict[str, int], path: str) -> None:
    """Raises if the reader would refuse these sizes."""
    for name, size in sizes.items():
        most = LARGEST_TEXT if name in ("meta", "scene") else LARGEST_ARRAY
        if size > most:
            raise PoiseError(f"{path}: {name} has {size >> 20} MiB; {_too_large()}")
    if sum(sizes.values()) > LARGEST:
        raise PoiseError(f"{path}: has {sum(sizes.values()) >> 20} MiB; {_too_large()}")


def _too_large() -> str:
    return (
        f"at most {LARGEST_ARRAY >> 20} MiB of one array, {LARGEST >> 20} MiB of all and "
        f"{LARGEST_FILE >> 20} MiB packed are read: record at a lower rate, or fewer copies"
    )


def _scene_out(settings: WorldConfig) -> tuple[dict[str, Any], dict[str, Array]]:
    """JSON and arrays of a world's settings."""
    data: dict[str, Any] = {KEYS.get(k, k): value for k, value in settings._asdict().items()}
    arrays: dict[str, Array] = {}
    ground = settings.ground
    if isinstance(ground, Plane):
        data["ground"] = {"normal": ground.normal, "height": ground.height}
    elif isinstance(ground, HeightField):
        data["ground"] = {"spacing": ground.spacing, "origin": ground.origin}
        arrays["scene.heights"] = ground.heights
    data["character"] = [yaml.dump(one) for one in settings.character]
    if not isinstance(settings.projectiles, int):
        data["spares"] = [yaml.dump(one) for one in settings.projectiles]
    data["obstacles"] = [asdict(shape) for shape in settings.obstacles]
    for name in ARRAYS[1:]:
        value = data[name]
        if value is not None and value.ndim:
            arrays[f"scene.{name}"], data[name] = value, "array"
        elif value is not None:
            data[name] = float(value)
    data["gravity"] = settings.gravity.tolist()
    texts = [*data["character"], *(data["spares"] if isinstance(data["spares"], list) else [])]
    if sum(map(len, texts)) > MOST_TEXT:
        raise PoiseError(f"the characters' files are larger than {MOST_TEXT >> 20} MiB together")
    return data, arrays


# reading


def read(path: str | os.PathLike[str]) -> Read:
    """Returns settings, interval, diverged copies, columns and instruction set of a file."""
    if not isinstance(path, (str, os.PathLike)):
        raise PoiseError(f"path must be a path of a recording, got {path!r:.80}")
    path = Path(os.fspath(path))
    with Archive.open(path) as archive:
        _check_sizes(archive.sizes, str(path))
        known = [*layout(1, 0, 0), "meta", "scene", *(f"scene.{name}" for name in ARRAYS)]
        if "meta" in archive.names:
            meta = parse_json(archive.text("meta"), f"{path}: meta")
            interval, memory, lost, isa = _meta_in(meta, f"{path}: meta")
        missing = {"meta", "scene", *layout(1, 0, 0)} - archive.names
        if missing:
            raise PoiseError(
                f"{path}: is no recording of poise, or a part of one: it needs "
                f"{shorten(sorted(missing), 12)}"
            )
        unknown = sorted(archive.names - set(known))
        if unknown:
            raise PoiseError(f"{path}: {unknown_name('array', unknown[0], known)}")
        scene = parse_json(archive.text("scene"), f"{path}: scene")
        arrays = {
            name: archive.array(f"scene.{name}", "f")
            for name in ARRAYS
            if f"scene.{name}" in archive.names
        }
        settings = _scene_in(scene, arrays, f"{path}: scene")
        columns = {name: archive.array(name, "fiu") for name in layout(1, 0, 0)}
    whole = scene_of(settings.character)
    _check_columns(columns, settings, whole.nq, whole.nv, path)
    _check_rows(columns, settings, whole.nl, memory, path)
    frames = Columns(settings.n, whole.nq, whole.nv, columns, memory)
    return settings, interval, lost, frames, isa


def _meta_in(meta: Any, where: str) -> tuple[float, int, list[Divergence], str | None]:
    form = meta.get("format") if isinstance(meta, dict) else None
    if form != FORMAT:
        hint = "; load_clip reads it" if form == "poise-clip" else ""
        raise PoiseError(f"{where}: format is {form!r:.80}, not {FORMAT!r}{hint}")
    if meta.get("version") != VERSION:
        raise PoiseError(
            f"{where}: version must be {VERSION}, got {meta.get('version')!r:.80}; "
            "a newer poise may read it"
        )
    memory = meta.get("memory")
    if type(memory) is not int or not 0 <= memory < 2**31:
        raise PoiseError(f"{where}: memory must be a number of numbers, got {memory!r:.80}")
    lost = []
    rows = meta.get("diverged")
    for row in rows if isinstance(rows, list) else [None]:
        if not isinstance(row, list) or list(map(type, row)) != [int, str, float, bool]:
            raise PoiseError(f"{where}: diverged: each must be [copy, joint, time, singular]")
        lost.append(Divergence(*row))
    isa = meta.get("isa")
    if not (isa is None or (isinstance(isa, str) and ISA.fullmatch(isa))):
        raise PoiseError(f"{where}: isa must be the name of an instruction set, got {isa!r:.80}")
    return number(meta.get("interval"), f"{where}: interval"), memory, lost, isa


def _scene_in(data: Any, arrays: dict[str, Array], where: str) -> WorldConfig:
    """The configuration from JSON and arrays."""
    names = [KEYS.get(name, name) for name in WorldConfig._fields]
    if isinstance(data, dict):
        # older recordings lack these
        data = {"stiffness": STIFFNESS, **WorldConfig._field_defaults, **data}
    if not isinstance(data, dict) or set(data) != set(names):
        raise PoiseError(f"{where}: must have {', '.join(names)}")
    for name in ARRAYS:
        given = isinstance(data["ground"], dict) and "spacing" in data["ground"]
        if (given if name == "heights" else data[name] == "array") != (name in arrays):
            raise PoiseError(f"{where}: {name}: the array is missing, or is not used")
    try:
        made = dict(data)
        made["ground"] = _ground_in(data["ground"], arrays)
        texts = [x for key in ("character", "spares") for x in _list(data[key]) if type(x) is str]
        if sum(map(len, texts)) > MOST_TEXT:
            raise PoiseError(f"the characters are larger than {MOST_TEXT} letters together")
        made["character"] = _characters(data["character"], f"{where}: character")
        made["projectiles"] = made.pop("spares")
        if not isinstance(data["spares"], int):
            made["projectiles"] = _characters(data["spares"], f"{where}: spares")
        made["obstacles"] = tuple(Shape(**shape) for shape in data["obstacles"])
        made["exclude"] = tuple((str(one), str(two)) for one, two in data["exclude"])
        for name in ("gravity", *ARRAYS[1:]):
            made[name] = kept(arrays.get(name, data[name]), name)
        settings = WorldConfig(**made)
        _check_settings(settings)
    except (PoiseError, TypeError, ValueError, LookupError, AttributeError) as error:
        text = str(error) if str(error).startswith(where) else f"{where}: {error!s:.300}"
        raise PoiseError(text) from error
    return settings


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _characters(texts: Any, where: str) -> tuple[Character, ...]:
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise PoiseError(f"{where}: must be texts of characters")
    return tuple(as_builtin(yaml.parse(text, f"{where}[{i}]")) for i, text in enumerate(texts))


def _ground_in(ground: Any, arrays: dict[str, Array]) -> Any:
    if not isinstance(ground, dict):
        return ground
    if "spacing" in ground:
        spacing, origin = tuple(ground["spacing"]), tuple(ground["origin"])
        return HeightField(arrays["heights"], spacing, origin)
    return Plane(ground["normal"], ground["height"])


def _check_settings(s: WorldConfig) -> None:
    """Checks types and finite numbers; World checks the rest when it is built."""
    for name, allowed in (
        ("n", int), ("projectiles", (int, tuple)), ("self_collision", bool), ("dtype", str),
        ("momentum_correction", bool), ("iterations", int), ("substeps", int),
        ("tolerance", (float, int, type(None))),
        ("convex", (bool, type(None))),
        ("contact", (str, type(None))), ("on_divergence", str), ("dt", float),
        ("stiffness", (float, int)),
        ("ground", (bool, Plane, HeightField)), ("ground_friction", (float, int, type(None))),
    ):  # fmt: skip
        value = getattr(s, name)
        whole = name in ("n", "projectiles", "iterations", "substeps")
        if not isinstance(value, allowed) or (whole and type(value) is bool):
            raise PoiseError(f"{name} is {value!r:.80}")
    number(s.dt, "dt")
    number(s.stiffness, "stiffness", unit="N/m")
    count(s.iterations, "iterations", most=MOST_ITERATIONS)
    if s.tolerance is not None:
        number(s.tolerance, "tolerance", unit="m/s")
    for name in ARRAYS[1:] + ("gravity",):
        value = getattr(s, name)
        if value is not None and not np.isfinite(value).all():
            raise PoiseError(f"{name}: every entry must be finite")
    if not 0 <= s.projectile_count <= MOST_PROJECTILES:
        raise PoiseError(f"{s.projectile_count} projectiles; it must be 0 to {MOST_PROJECTILES}")
    if s.n < 1 or not s.character:
        raise PoiseError("needs at least one copy and one character")


def _check_columns(columns: dict[str, Array], s: WorldConfig, nq: int, nv: int, path: Path) -> None:
    """Checks types, shapes and finite numbers."""
    frames = columns["time"].shape[:1]
    if frames in ((), (0,)):
        raise PoiseError(f"{path}: time: has shape {columns['time'].shape}; there is no frame")
    for name, (tail, kind) in layout(s.n, nq, nv).items():
        array, where = columns[name], f"{path}: {name}"
        tails = {tail, tail[1:]} if name.startswith("target_") and len(tail) == 2 else {tail}
        if array.dtype.str != kind or array.shape[1:] not in tails or array.ndim == 0:
            expected = " or ".join(str((None, *t)).replace("None", "k") for t in tails)
            raise PoiseError(
                f"{where}: has type {array.dtype} and shape {array.shape}, expected "
                f"{np.dtype(kind)} and {expected}"
            )
        if name not in TABLE_COLUMNS and array.shape[:1] != frames:
            raise PoiseError(f"{where}: has {len(array)} rows, expected {frames[0]}, as time")
        # the memory holds the end time of pushes, which may be infinite
        if array.dtype.kind == "f" and not (
            np.isfinite(array).all() if name != "memory" else ~np.isnan(array).any()
        ):
            raise PoiseError(f"{where}: every number must be finite")
        columns[name] = np.require(array, requirements="C")


def _check_rows(
    columns: dict[str, Array], s: WorldConfig, nl: int, memory: int, path: Path
) -> None:
    """Checks that rows belong to frames and that indices are in bounds."""
    for table, names in TABLES.items():
        end = columns[f"{table}_end"]
        lengths = {len(columns[name]) for name in names}
        steps = np.diff(end, prepend=0)
        if lengths != {int(end[-1])} or end.min() < 0 or (steps < 0).any():
            raise PoiseError(f"{path}: {table}_end: does not fit the rows of {' and '.join(names)}")
    if columns["remembers"].max() > 1:
        raise PoiseError(f"{path}: remembers: must be 0 or 1")
    if s.n * memory > MOST_MEMORY:
        raise PoiseError(f"{path}: meta: {s.n} copies with {memory} numbers of memory are too many")
    things = nl + s.projectile_count
    bounds = {
        "contact_which": ([0, 0, -1 - len(s.obstacles)], [s.n, things, things]),
        "thrown_which": ([0, 0], [s.n, s.projectile_count]),
        "memory_index": (0, s.n * memory),
    }
    for name, (low, high) in bounds.items():
        if (columns[name] < low).any() or (columns[name] >= np.array(high)).any():
            raise PoiseError(f"{path}: {name}: an index is out of bounds")
    if (np.diff(columns["target_end"], prepend=0) > 1).any():
        raise PoiseError(f"{path}: target_end: a frame has at most one target")
    if columns["target_q"].ndim != columns["target_v"].ndim:
        raise PoiseError(f"{path}: target_q and target_v: one is per copy, the other is not")
