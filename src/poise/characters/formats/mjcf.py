"""Characters from and to MJCF, the format of MuJoCo.

Reading goes through the `mujoco` package: what it makes of defaults, frames, inertias and actuators
is what we take, so that mass matrix and bias agree with it. Before it sees a file, we parse the XML
with care (no entities, bounded size and depth), put included files in place, and hand it meshes
from memory; what says nothing about a character (textures, sensors, keyframes, ...) is left out.

    q          is MuJoCo's qpos: a joint's `ref` is folded into the pose of its link
    effort     actuatorfrcrange of the joint, and of its actuators gear times forcerange, or gear
               times ctrlrange for motors; of two bounds the larger; None if there is none
    limits     range of hinges and slides; the range of a ball, an angle, bounds swing and twist
    armature   of the joint, and gear^2 times that of its actuators; damping likewise
    shapes     geoms that can touch something, or all if none can; no planes, ellipsoids, fields

Friction in joints, tendons, equality constraints and the spring of a free joint are not taken.

Writing keeps all of a character. MJCF has no word for limbs, and for three things of a ball joint:
where its spring rests, swing and twist limits, and a bound on the length of its torque. These are
kept under `custom`, where our reader finds them; MuJoCo itself sees a spring that rests at the zero
pose, the largest angle the limits allow, and motors with that bound on each axis.
"""

from __future__ import annotations

import math
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from xml.etree.ElementTree import ParseError
from xml.sax.saxutils import quoteattr

import numpy as np

from poise.character import Character, Joint, Link, Shape, Vector
from poise.errors import LARGEST, CharacterError, check_number, shorten
from poise.forest import Pose, quat_matrix

LARGEST_FILE = 64 * 2**20  # of one file [bytes]
LARGEST_SUM = 256 * 2**20  # of all files a model names, together [bytes]
MOST_ELEMENTS = 100_000  # in one model, with what it includes
MOST_BODIES = 5000  # in one model, with what it replicates; MuJoCo takes seconds for these
DEEPEST = 490  # levels of nesting; MuJoCo's parser stops at 500

UNREAD_SECTIONS = ("size", "visual", "statistic", "sensor", "keyframe", "custom", "contact")
UNREAD_ELEMENTS = ("texture", "layer", "skin", "light")
REPEATING = ("replicate", "composite", "flexcomp")
DIRECTORIES = ("meshdir", "texturedir", "assetdir", "strippath", "fusestatic")

SMALLEST_MOMENT = 1e-14  # MuJoCo takes no moving body with less [kg m^2]
SMALLEST_RANGE = 1e-9  # MuJoCo takes no empty range
CUSTOM = "poise."  # what our names under `custom` begin with
LIMB = CUSTOM + "limb."


# reading


def read(path: str | os.PathLike[str], base: Literal["free", "fixed"] | None = None) -> Character:
    """Read a character from an MJCF file.

    Args:
        path: The file. What it includes, and its meshes, are looked for as MuJoCo does.
        base: "free" or "fixed" frees the root or welds it to the world; None leaves it as it is.
    """
    path = Path(path)
    root = parse_xml(path)
    if root.tag != "mujoco":
        urdf = "; this is URDF: name it .urdf" if root.tag == "robot" else ""
        raise root.error(f"MJCF begins with <mujoco>, this file with <{root.tag:.40}>{urdf}")
    expand_includes(root, path)
    custom = _read_custom(root)
    model = compile_model(root, _prepare(root, path))
    name = root.attributes.get("model", "").strip() or path.stem
    character = character_from_model(model, root, name, custom)
    return character if base is None else character.with_base(base)


@dataclass
class Element:
    """An element of an XML file, and where it is."""

    tag: str
    attributes: dict[str, str]
    file: Path
    line: int
    children: list[Element] = field(default_factory=list)

    def walk(self) -> Iterator[Element]:
        """The element and all inside, in the order of the file."""
        stack = [self]
        while stack:
            element = stack.pop()
            yield element
            stack += element.children[::-1]

    def child(self, tag: str) -> Element | None:
        """The first child with that tag."""
        return next((child for child in self.children if child.tag == tag), None)

    def error(self, message: str) -> CharacterError:
        """An error that says where this element is."""
        return CharacterError(f"{self.file}:{self.line}: {message}")


def parse_xml(path: Path) -> Element:
    """Parse an XML file of bounded size and depth, without entities; text is left out."""
    from defusedxml.common import DefusedXmlException
    from defusedxml.ElementTree import DefusedXMLParser

    text = _decode(path, read_bytes(path))
    target = _Target(path)
    parser = target.parser = DefusedXMLParser(target=target)
    try:
        parser.feed(text)
        parser.close()
    except ParseError as error:
        problem = str(error).partition(":")[0]
        raise CharacterError(f"{path}:{error.position[0]}: is not XML: {problem}") from error
    except DefusedXmlException as error:
        raise target.error("entities and references out of the file are not read") from error
    except ValueError as error:  # what no XML may hold, such as lone surrogates
        raise target.error(f"is not XML: {error}") from error
    if target.root is None:
        raise CharacterError(f"{path}:1: is empty")
    return target.root


def read_bytes(path: Path, at: Element | None = None) -> bytes:
    """The bytes of a file of bounded size.

    Args:
        path: The file.
        at: The element that names it, for errors.
    """
    where = f"{at.file}:{at.line}: {path}" if at else f"{path}"
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise CharacterError(f"{where}: is not a file")
        with open(path, "rb") as file:
            data = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise CharacterError(f"{where}: cannot be read: {error.strerror or error}") from error
    except ValueError as error:  # a zero byte in the path
        raise CharacterError(f"{where!r}: cannot be read: {error}") from error
    if len(data) > LARGEST_FILE:
        raise CharacterError(f"{where}: is larger than {LARGEST_FILE >> 20} MB")
    return data


def _decode(path: Path, data: bytes) -> str:
    try:
        # some programs write the zero that ends a string in C
        return data.decode("utf-8-sig").rstrip("\0")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise CharacterError(f"{path}:{line}: is not UTF-8 text: {error.reason}") from error


class _Target:
    """Takes the parser's events and builds elements."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.parser: Any = None
        self.root: Element | None = None
        self.open: list[Element] = []
        self.count = 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        namespace, _, tag = tag.rpartition("}")
        if "xacro" in namespace:
            raise self.error("xacro is not read; expand it first: `xacro robot.xacro > robot.urdf`")
        # other names with a prefix are other programs' business
        own = {key: value for key, value in attributes.items() if not key.startswith("{")}
        element = Element(tag, own, self.path, self.line)
        self.count += 1
        if self.count > MOST_ELEMENTS or len(self.open) >= DEEPEST:
            raise self.error(f"too large: over {MOST_ELEMENTS} elements or {DEEPEST} levels")
        for key, value in own.items():
            if key != "name" and "nan" in value.lower() and any(map(_is_nan, value.split())):
                raise self.error(f"<{tag:.40}>: {key:.40} must be numbers, got {value!r:.80}")
        if self.open:
            self.open[-1].children.append(element)
        else:
            self.root = element
        self.open.append(element)

    def end(self, _tag: str) -> None:
        self.open.pop()

    def data(self, _text: str) -> None:
        pass

    def close(self) -> None:
        pass

    @property
    def line(self) -> int:
        return int(self.parser.parser.CurrentLineNumber)

    def error(self, message: str) -> CharacterError:
        return CharacterError(f"{self.path}:{self.line}: {message}")


def _is_nan(text: str) -> bool:
    return text.lower().lstrip("+-") == "nan"


def expand_includes(root: Element, path: Path) -> None:
    """Put the elements of included files in the place of the include; each file once, as MuJoCo."""
    seen, count = {os.path.realpath(path)}, sum(1 for _ in root.walk())
    stack = [root]
    while stack:
        element = stack.pop()
        position = 0
        while position < len(element.children):
            child = element.children[position]
            if child.tag != "include":
                position += 1
                continue
            found = _included(child, path, seen)
            count += sum(1 for _ in found.walk())
            if count > MOST_ELEMENTS:
                raise child.error(f"too large: over {MOST_ELEMENTS} elements with what it includes")
            element.children[position : position + 1] = found.children
        stack += element.children


def _included(element: Element, path: Path, seen: set[str]) -> Element:
    name = _file_name(element)
    # relative to the model's file; some files mean their own place
    places = [path.parent / name, element.file.parent / name]
    file = next((place for place in places if os.path.exists(place)), places[0])
    real = os.path.realpath(file)
    if real in seen:
        raise element.error(f"{file}: is included twice; MJCF allows it once")
    seen.add(real)
    read_bytes(file, element)
    return parse_xml(file)


def _file_name(element: Element) -> str:
    name = element.attributes.get("file", "")
    if not name or "\0" in name:
        raise element.error(f"<{element.tag}> needs the name of a file")
    return name


def _prepare(root: Element, path: Path) -> Assets:
    """Leave out what says nothing about a character; return the files that MuJoCo needs."""
    compiler: dict[str, str] = {}
    for child in root.children:
        if child.tag == "compiler":
            compiler |= child.attributes
            for key in DIRECTORIES:
                child.attributes.pop(key, None)
    root.children = [child for child in root.children if child.tag not in UNREAD_SECTIONS]
    assets = Assets()
    for element in root.walk():
        element.children = [x for x in element.children if x.tag not in UNREAD_ELEMENTS]
        if element.tag == "material":
            element.attributes.pop("texture", None)
        if element.tag in ("model", "attach"):
            raise element.error(
                f"<{element.tag}>: attached models are not read; have MuJoCo write them into one "
                "file: mujoco.MjSpec.from_file(...).to_file(...)"
            )
        if "file" in element.attributes:
            file = path.parent / _directory(compiler) / _named(element, compiler)
            if element.tag == "mesh":
                # without a name it has that of its file
                element.attributes.setdefault("name", file.stem)
            assets.add(element, "file", file)
    check_counts(root)
    return assets


def _directory(compiler: Mapping[str, str]) -> str:
    return compiler.get("meshdir") or compiler.get("assetdir") or ""


def _named(element: Element, compiler: Mapping[str, str]) -> str:
    name = _file_name(element)
    strip = compiler.get("strippath") == "true"
    return re.split(r"[/\\]", name)[-1] if strip else name


@dataclass
class Assets:
    """Files that a model names, for MuJoCo to read from memory under names of our own."""

    files: dict[str, bytes] = field(default_factory=dict)
    names: dict[Path, str] = field(default_factory=dict)
    size: int = 0

    def add(self, element: Element, key: str, file: Path) -> None:
        """Read the file that an attribute of an element names, and put our name in its place."""
        if file not in self.names:
            data = read_bytes(file, element)
            self.size += len(data)
            if self.size > LARGEST_SUM:
                raise element.error(f"too large: over {LARGEST_SUM >> 20} MB of meshes")
            self.names[file] = f"file-{len(self.files)}{file.suffix.lower()}"
            self.files[self.names[file]] = data
        element.attributes[key] = self.names[file]


def check_counts(root: Element) -> None:
    """Refuse models that are too large, and few elements that stand for very many."""
    bodies = 0
    stack = [(root, 1)]
    while stack:
        element, times = stack.pop()
        for key in ("count", "nrow", "ncol"):
            for number in re.findall(r"[0-9]+", element.attributes.get(key, "")):
                times *= max(1, int(number[:12]))
        bodies += times if element.tag in ("body", "link", *REPEATING) else 0
        if bodies > MOST_BODIES or times > MOST_ELEMENTS:
            raise element.error(f"too large: over {MOST_BODIES} bodies")
        stack += [(child, times) for child in element.children[::-1]]


# through MuJoCo


def import_mujoco() -> Any:
    """The mujoco package, or a word on how to get it."""
    try:
        import mujoco
    except ImportError as error:
        raise CharacterError(
            "MJCF and URDF are read through MuJoCo, which is not there: pip install poise[mujoco]"
        ) from error
    return mujoco


def compile_model(root: Element, assets: Assets) -> Any:
    """Have MuJoCo make an MjModel from elements and files; its errors come with file and line."""
    mujoco = import_mujoco()
    text, places = _to_text(root)
    # its warnings would go to a file in the working directory
    handler = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(lambda _message: None)
    try:
        return mujoco.MjModel.from_xml_string(text, assets.files)
    except MemoryError:
        raise
    except Exception as error:
        message = " ".join(str(error).split())
        found = re.search(r",? line ([0-9]+)", message)
        at = _located(root, message)
        if found:
            at = places[min(max(int(found[1]), 1), len(places)) - 1]
            message = message.replace(found[0], "")
        message = re.sub(r"^(XML )?(Error: )*", "", message)
        if "mjMINVAL" in message:
            message += "; give what moves mass, or put its joints on the next link"
        raise at.error(f"MuJoCo does not take it: {message:.400}") from error
    finally:
        mujoco.set_mju_user_warning(handler)


def _to_text(root: Element) -> tuple[str, list[Element]]:
    """Elements as XML, one on each line, and the element of each line."""
    lines: list[str] = []
    places: list[Element] = []
    stack: list[tuple[Element, bool]] = [(root, True)]
    while stack:
        element, begins = stack.pop()
        places.append(element)
        if not begins:
            lines.append(f"</{element.tag}>")
            continue
        attributes = "".join(f" {key}={quoteattr(x)}" for key, x in element.attributes.items())
        lines.append(f"<{element.tag}{attributes}{'' if element.children else '/'}>")
        if element.children:
            stack.append((element, False))
            stack += [(child, True) for child in element.children[::-1]]
    return "\n".join(lines), places


# from MuJoCo's model


def character_from_model(
    model: Any, root: Element, name: str, custom: Mapping[str, Vector | tuple[str, ...]]
) -> Character:
    """The character in an MjModel.

    Args:
        model: The mujoco.MjModel.
        root: The file's elements, for the places of errors.
        name: Name of the character.
        custom: What is kept under `custom`, by name.
    """
    try:
        # numbers beyond reason become infinite, and are refused where they are used
        with np.errstate(all="ignore"):
            return _Model(model, custom).character(name)
    except CharacterError as error:
        raise _located(root, str(error)).error(str(error)) from error


def _located(root: Element, message: str) -> Element:
    """The body or joint that a message names first."""
    first, found = len(message), root
    for element in root.walk():
        name = element.attributes.get("name")
        if name and element.tag in ("body", "joint", "freejoint", "link"):
            place = message.find(repr(name), 0, first)
            if place >= 0:
                first, found = place, element
    return found


class _Model:
    """Turns an MjModel into a character."""

    def __init__(self, model: Any, custom: Mapping[str, Vector | tuple[str, ...]]) -> None:
        self.mujoco = import_mujoco()
        self.model = model
        self.custom = custom
        kind = self.mujoco.mjtObj.mjOBJ_JOINT
        self.joint_names = [self.mujoco.mj_id2name(model, kind, j) for j in range(model.njnt)]
        self.taken = {name for name in self.joint_names if name}
        self.actuators: dict[int, list[int]] = {}  # of each joint
        on_joint = (self.mujoco.mjtTrn.mjTRN_JOINT, self.mujoco.mjtTrn.mjTRN_JOINTINPARENT)
        for k, (trn, ids) in enumerate(
            zip(model.actuator_trntype, model.actuator_trnid, strict=True)
        ):
            if trn in [int(x) for x in on_joint]:
                self.actuators.setdefault(int(ids[0]), []).append(k)
        kinds = self.mujoco.mjtJoint
        self.kinds: dict[int, Any] = {
            int(kinds.mjJNT_FREE): "free",
            int(kinds.mjJNT_BALL): "ball",
            int(kinds.mjJNT_HINGE): "hinge",
            int(kinds.mjJNT_SLIDE): "slide",
        }

    def character(self, name: str) -> Character:
        m = self.model
        if np.any(m.tendon_armature):
            raise CharacterError("armature of a tendon is not read; give it to the joints")
        bodies = self.tree()
        names = self.names(bodies)
        touching = self.touching(bodies)
        links = []
        for i in bodies:
            joints, C = self.joints(i, names[i])
            X = Pose(_floats(m.body_quat[i]), _floats(m.body_pos[i])) @ C
            mass, inertia = self.inertia(i)
            links.append(
                Link(
                    name=names[i],
                    parent=names.get(int(m.body_parentid[i])),
                    pos=X.r,
                    quat=X.E,
                    joints=joints,
                    mass=mass,
                    com=_floats(m.body_ipos[i]) if mass else (0.0, 0.0, 0.0),
                    inertia=inertia,
                    shapes=self.shapes(i, touching),
                )
            )
        return Character(name, tuple(links), self.limbs(set(names.values())))

    def tree(self) -> list[int]:
        """The bodies of the one tree that moves; what is fixed beside it is scenery."""
        m = self.model
        root = list(range(m.nbody))
        for i in range(1, m.nbody):
            parent = int(m.body_parentid[i])
            root[i] = i if parent == 0 else root[parent]
        roots = sorted(set(root[1:]))
        moving = sorted({root[int(i)] for i in m.jnt_bodyid})
        if not roots:
            raise CharacterError("the model has no bodies; a character needs at least one")
        if len(moving or roots) > 1:
            names = self.names(roots)
            raise CharacterError(
                f"the model has {len(moving or roots)} roots: "
                f"{shorten(repr(names[i]) for i in moving or roots)}; a character has one: "
                "put each into its own file, a world takes several"
            )
        return [i for i in range(1, m.nbody) if root[i] == (moving or roots)[0]]

    def names(self, bodies: Sequence[int]) -> dict[int, str]:
        """Names of bodies; those without get their number."""
        kind = self.mujoco.mjtObj.mjOBJ_BODY
        given = {i: self.mujoco.mj_id2name(self.model, kind, i) or "" for i in bodies}
        taken = set(given.values())
        return {i: name or _fresh(f"body-{i}", taken) for i, name in given.items()}

    def inertia(self, i: int) -> tuple[float, Any]:
        """Mass, and inertia about the centre of mass in link axes."""
        m = self.model
        mass, moments = float(m.body_mass[i]), m.body_inertia[i]
        # what is fixed to the world may be anything
        if mass == 0.0 and m.body_weldid[i] == 0:
            return 0.0, (0.0, 0.0, 0.0)
        if tuple(m.body_iquat[i]) == (1.0, 0.0, 0.0, 0.0):
            return mass, _floats(moments)
        R = quat_matrix(m.body_iquat[i])
        inertia = (R * moments) @ R.T
        return mass, (inertia + inertia.T) / 2.0

    def joints(self, i: int, link: str) -> tuple[tuple[Joint, ...], Pose]:
        """The joints of a body, and what their zeros add to its pose.

        MuJoCo moves by q - ref: with exp(S q) the motion about an axis S, fixed in the link,
            prod_k exp(S_k (q_k - ref_k)) = C_1 .. C_n prod_k exp(S'_k q_k),  C_k = exp(-S_k ref_k)
        where S'_k is S_k seen from behind all later zeros, (C_k+1 .. C_n)^-1 S_k.
        """
        m = self.model
        first, n = int(m.body_jntadr[i]), int(m.body_jntnum[i])
        joints: list[Joint] = []
        C, moved = Pose(), False
        for j in range(first + n - 1, first - 1, -1):
            name = self.joint_names[j] or _fresh(
                link if n == 1 else f"{link}-{j - first + 1}", self.taken
            )
            kind = self.kinds[int(m.jnt_type[j])]
            axis, pos = _floats(m.jnt_axis[j]), _floats(m.jnt_pos[j])
            ref = float(m.qpos0[m.jnt_qposadr[j]]) if kind in ("hinge", "slide") else 0.0
            ref = check_number(f"joint {name!r}: ref", ref)
            X, zero = C.inverse(), _zero(kind, axis, pos, ref)
            if moved:
                axis, pos = (Pose(X.E) @ Pose(r=axis)).r, (X @ Pose(r=pos)).r
            joints.insert(0, self.joint(j, name, kind, axis, pos))
            if ref:
                C, moved = zero @ C, True
        return tuple(joints), C

    def joint(self, j: int, name: str, kind: Any, axis: Vector, pos: Vector) -> Joint:
        m = self.model
        v, q = int(m.jnt_dofadr[j]), int(m.jnt_qposadr[j])
        values: dict[str, Any] = {
            "armature": float(m.dof_armature[v]),
            "damping": float(m.dof_damping[v]),
        }
        if kind in ("hinge", "ball"):
            values["pos"] = pos
        if kind in ("hinge", "slide"):
            values["axis"] = axis
            values["reference"] = float(m.qpos_spring[q]) or None
        if kind != "free":
            values["stiffness"] = float(m.jnt_stiffness[j])
            values["limits"] = self.limits(j, kind)
            self.motors(j, name, kind, values)
        if kind == "ball":
            values |= self.ball_custom(name)
        return Joint(name, kind, **values)

    def limits(self, j: int, kind: str) -> Vector | None:
        lower, upper = _floats(self.model.jnt_range[j])
        if not self.model.jnt_limited[j] or max(abs(lower), abs(upper)) > LARGEST:
            return None
        if kind == "ball":
            angle = min(upper, math.pi)
            return angle, -angle, angle
        return lower, upper

    def motors(self, j: int, name: str, kind: str, values: dict[str, Any]) -> None:
        """Effort, and what actuators add to armature and damping."""
        m = self.model
        size = 3 if kind == "ball" else 1
        effort = np.zeros(size)
        actuators = self.actuators.get(j, [])
        for k in actuators:
            gear, bound = np.abs(m.actuator_gear[k, :size]), self.force(k)
            effort[gear > 0.0] += gear[gear > 0.0] * bound
            for key in ("armature", "damping"):
                added = float(
                    getattr(m, f"actuator_{key}").reshape(len(m.actuator_trntype), -1)[k, 0]
                )
                if added and kind == "ball":
                    raise CharacterError(
                        f"joint {name!r}: {key} of an actuator on a ball joint is not read; "
                        "give it to the joint"
                    )
                values[key] += float(gear[0] * gear[0]) * added
        if not actuators:
            effort[:] = np.inf
        if m.jnt_actfrclimited[j] and kind != "ball":
            effort = np.minimum(effort, np.abs(m.jnt_actfrcrange[j]).max())
        if np.all(effort < LARGEST):
            values["effort"] = _floats(effort) if kind == "ball" else float(effort[0])

    def force(self, k: int) -> float:
        """The largest force of an actuator, before its gear."""
        m = self.model
        if m.actuator_forcelimited[k]:
            return float(np.abs(m.actuator_forcerange[k]).max())
        fixed = m.actuator_gaintype[k] == int(self.mujoco.mjtGain.mjGAIN_FIXED)
        plain = m.actuator_biastype[k] == int(self.mujoco.mjtBias.mjBIAS_NONE)
        direct = m.actuator_dyntype[k] == int(self.mujoco.mjtDyn.mjDYN_NONE)
        u = int(m.actuator_ctrladr[k]) if hasattr(m, "actuator_ctrladr") else k
        if fixed and plain and direct and m.actuator_ctrllimited[u]:
            return float(abs(m.actuator_gainprm[k, 0]) * np.abs(m.actuator_ctrlrange[u]).max())
        return math.inf

    def ball_custom(self, name: str) -> dict[str, Any]:
        """What our writer keeps of a ball joint that MJCF has no word for."""
        values: dict[str, Any] = {}
        for key, size in (("effort", 1), ("reference", 4), ("limits", 6)):
            found = self.custom.get(f"{CUSTOM}{key}.{name}", ())
            if len(found) == size:
                values[key] = found[0] if size == 1 else found
        if "limits" in values:
            values["limits"], values["axis"] = values["limits"][:3], values["limits"][3:]
        return values

    def touching(self, bodies: Sequence[int]) -> bool:
        """Whether any geom of these bodies can touch something."""
        m = self.model
        own = np.isin(m.geom_bodyid, bodies)
        return bool(np.any((m.geom_contype | m.geom_conaffinity)[own]))

    def shapes(self, i: int, touching: bool) -> tuple[Shape, ...]:
        m = self.model
        first, n = int(m.body_geomadr[i]), int(m.body_geomnum[i])
        shapes = []
        for g in range(first, first + n):
            if touching and not (m.geom_contype[g] or m.geom_conaffinity[g]):
                continue
            shape = self.shape(g)
            if shape:
                shapes.append(shape)
        return tuple(shapes)

    def shape(self, g: int) -> Shape | None:
        m, kinds = self.model, self.mujoco.mjtGeom
        place: Any = (_floats(m.geom_pos[g]), _floats(m.geom_quat[g]), self.color(g))
        size = _floats(m.geom_size[g])
        kind = int(m.geom_type[g])
        if kind == int(kinds.mjGEOM_SPHERE):
            return Shape("sphere", size[:1], *place)
        if kind == int(kinds.mjGEOM_CAPSULE):
            return Shape("capsule", size[:2], *place)
        if kind == int(kinds.mjGEOM_CYLINDER):
            return Shape("cylinder", size[:2], *place)
        if kind == int(kinds.mjGEOM_BOX):
            return Shape("box", size, *place)
        if kind == int(kinds.mjGEOM_MESH):
            return self.mesh(int(m.geom_dataid[g]), place)
        return None

    def mesh(self, k: int, place: Any) -> Shape | None:
        """The convex hull of a mesh; None if it is flat."""
        from scipy.spatial import ConvexHull, QhullError

        m = self.model
        first, n = int(m.mesh_vertadr[k]), int(m.mesh_vertnum[k])
        vertices = np.array(m.mesh_vert[first : first + n], dtype=np.float64)
        try:
            corners = vertices[ConvexHull(vertices).vertices]
            return Shape.mesh([_floats(x) for x in corners], *place)
        except (QhullError, CharacterError):
            return None

    def color(self, g: int) -> Vector | None:
        """The geom's own colour, else that of its material."""
        m = self.model
        color = np.array(m.geom_rgba[g], dtype=np.float64)
        if _floats(color) == (0.5, 0.5, 0.5, 1.0):
            if m.geom_matid[g] < 0:
                return None
            color = np.array(m.mat_rgba[m.geom_matid[g]], dtype=np.float64)
        # single precision: take the number that was written
        return _floats(np.clip(np.round(color, 6), 0.0, 1.0))

    def limbs(self, links: set[str]) -> dict[str, tuple[str, ...]]:
        """Limbs that our writer kept, as far as their links are still there."""
        found = {}
        for name, value in self.custom.items():
            kept = tuple(str(x) for x in value if x in links)
            if name.startswith(LIMB) and kept:
                found[name.removeprefix(LIMB)] = tuple(dict.fromkeys(kept))
        return found


def _zero(kind: str, axis: Vector, pos: Vector, ref: float) -> Pose:
    """exp(-S ref) of a hinge or slide."""
    if kind == "slide":
        return Pose(r=tuple(-ref * x for x in axis))
    s = math.sin(-ref / 2.0)
    turn = Pose((math.cos(ref / 2.0), *(s * x for x in axis)))
    return Pose(r=pos) @ turn @ Pose(r=tuple(-x for x in pos))


def _fresh(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "-2"
    taken.add(name)
    return name


def _floats(x: Any) -> Vector:
    return tuple(float(value) for value in x)


def _read_custom(root: Element) -> dict[str, Vector | tuple[str, ...]]:
    """What our writer kept under `custom`, by name."""
    found: dict[str, Vector | tuple[str, ...]] = {}
    for section in root.children:
        for element in section.children if section.tag == "custom" else ():
            name = element.attributes.get("name", "")
            if element.tag == "numeric" and name.startswith(CUSTOM):
                try:
                    found[name] = _floats(element.attributes.get("data", "").split())
                except ValueError as error:
                    raise element.error(f"{name!r}: data must be numbers") from error
            elif element.tag == "text" and name.startswith(LIMB):
                found[name] = tuple(element.attributes.get("data", "").split("\n"))
    return found


# writing


def write(character: Character, path: str | os.PathLike[str]) -> None:
    """Write a character to an MJCF file, whole or not at all."""
    from poise.files import write_atomically

    write_atomically(path, dump(character).encode("utf-8"))


def dump(character: Character) -> str:
    """The text of a character's MJCF file."""
    names = _mujoco_names(character)
    out = [
        f"<mujoco model={quoteattr(character.name)}>",
        '  <compiler angle="radian" autolimits="true" inertiafromgeom="false"/>',
        "  <default>",
        "    <!-- shapes touch the ground and other things, not each other -->",
        '    <geom contype="1" conaffinity="0" mass="0"/>',
        "  </default>",
        *_section("asset", _meshes(character)),
        "  <worldbody>",
        *_bodies(character, names),
        "  </worldbody>",
        *_section("actuator", [x for joint in character.joints for x in _motors(joint)]),
        *_section("custom", _custom(character, names)),
        "</mujoco>",
    ]
    return "\n".join(out) + "\n"


def _mujoco_names(character: Character) -> dict[str, str]:
    """Names of the links; MuJoCo keeps `world` for itself."""
    taken = {"world", *(link.name for link in character.links)}
    return {
        link.name: _fresh("world-link", taken) if link.name == "world" else link.name
        for link in character.links
    }


def _bodies(character: Character, names: Mapping[str, str]) -> Iterator[str]:
    """Links come depth-first: close what is not an ancestor of the next."""
    open_: list[str] = []
    for link in character.links:
        while open_ and open_[-1] != link.parent:
            yield "  " * (len(open_) + 1) + "</body>"
            open_.pop()
        indent = "  " * (len(open_) + 2)
        yield (
            indent
            + _element("body", name=names[link.name], pos=link.pos, quat=link.quat)[:-2]
            + ">"
        )
        open_.append(link.name)
        for line in (_inertial(link), *map(_joint, link.joints), *_geoms(link)):
            yield f"{indent}  {line}"
    for depth in range(len(open_), 0, -1):
        yield "  " * (depth + 1) + "</body>"


def _inertial(link: Link) -> str:
    moments, quat = _principal(np.array(link.inertia))
    if link.mass > 0.0:
        # rods and points have moments of zero; rounding may break a + b >= c
        moments = np.maximum(moments, SMALLEST_MOMENT)
        k = int(np.argmax(moments))
        moments[k] = min(moments[k], np.delete(moments, k).sum())
    return _element("inertial", pos=link.com, quat=quat, mass=link.mass, diaginertia=moments)


def _principal(inertia: Any) -> tuple[Any, Vector | None]:
    """Principal moments, and the rotation of their axes; None if those of the link."""
    from scipy.spatial.transform import Rotation

    if not np.any(inertia - np.diag(np.diag(inertia))):
        return np.diag(inertia).copy(), None
    moments, R = np.linalg.eigh(inertia)
    x, y, z, w = Rotation.from_matrix(R * np.sign(np.linalg.det(R))).as_quat()
    return moments, (float(w), float(x), float(y), float(z))


def _joint(joint: Joint) -> str:
    values: dict[str, Any] = {"name": joint.name, "type": joint.kind}
    if joint.kind in ("ball", "hinge"):
        values["pos"] = joint.pos
    if joint.kind in ("hinge", "slide"):
        values["axis"] = joint.axis
        values["springref"] = joint.reference or None
        if joint.effort is not None:
            effort = max(float(joint.effort), SMALLEST_RANGE)  # type: ignore[arg-type]
            values["actuatorfrcrange"] = (-effort, effort)
    for key in ("armature", "damping", "stiffness"):
        values[key] = getattr(joint, key) or None
    if joint.limits is not None:
        values["range"] = _range(joint)
    return _element("joint", **values)


def _range(joint: Joint) -> Vector:
    assert joint.limits is not None
    lower, upper = joint.limits[-2:]
    if joint.kind == "ball":
        # |q| = 2 acos(cos(swing/2) cos(twist/2)) at most
        twist = max(abs(lower), abs(upper))
        w = math.cos(joint.limits[0] / 2.0) * math.cos(twist / 2.0)
        lower, upper = 0.0, 2.0 * math.acos(min(max(w, 0.0), 1.0))
    return lower, max(upper, lower + SMALLEST_RANGE)


def _geoms(link: Link) -> Iterator[str]:
    for k, shape in enumerate(link.shapes):
        values: dict[str, Any] = {"pos": shape.pos, "quat": shape.quat, "rgba": shape.color}
        if shape.kind == "mesh":
            yield _element("geom", type="mesh", mesh=f"{link.name}-{k + 1}", **values)
        elif shape.kind == "capsule" and shape.size[1] == 0.0:
            yield _element("geom", type="sphere", size=shape.size[:1], **values)
        else:
            yield _element("geom", type=shape.kind, size=shape.size, **values)


def _meshes(character: Character) -> Iterator[str]:
    for link in character.links:
        for k, shape in enumerate(link.shapes):
            if shape.kind == "mesh":
                vertices = [x for vertex in shape.vertices for x in vertex]
                yield _element("mesh", name=f"{link.name}-{k + 1}", vertex=vertices)


def _motors(joint: Joint) -> Iterator[str]:
    """A motor for each degree of freedom but the root's: ctrl is tau."""
    if joint.kind in ("hinge", "slide"):
        yield _element("motor", name=joint.name, joint=joint.name)
    if joint.kind == "ball":
        efforts = joint.effort if isinstance(joint.effort, tuple) else (joint.effort,) * 3
        for axis, gear, effort in zip("xyz", np.eye(3), efforts, strict=True):
            bound = None if effort is None else max(effort, SMALLEST_RANGE)
            yield _element(
                "motor",
                name=f"{joint.name}-{axis}",
                joint=joint.name,
                gear=gear,
                ctrlrange=None if bound is None else (-bound, bound),
            )


def _custom(character: Character, names: Mapping[str, str]) -> Iterator[str]:
    for joint in character.joints:
        if joint.kind != "ball":
            continue
        values: dict[str, Any] = {"reference": joint.reference}
        if not isinstance(joint.effort, tuple):
            values["effort"] = joint.effort
        if joint.limits is not None:
            values["limits"] = (*joint.limits, *joint.axis)
        for key, data in values.items():
            if data is not None:
                yield _element("numeric", name=f"{CUSTOM}{key}.{joint.name}", data=data)
    for limb, links in character.limbs.items():
        if links:
            data = "\n".join(names[name] for name in links)
            yield _element("text", name=LIMB + limb, data=data)


def _section(tag: str, lines: Iterable[str]) -> list[str]:
    lines = [f"    {line}" for line in lines]
    return [f"  <{tag}>", *lines, f"  </{tag}>"] if lines else []


def _element(tag: str, **values: Any) -> str:
    """An element on one line; numbers are written so that they come back bit for bit."""
    texts = {key: _text(value) for key, value in values.items() if value is not None}
    return f"<{tag}{''.join(f' {key}={quoteattr(text)}' for key, text in texts.items())}/>"


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return " ".join(repr(float(x)).removesuffix(".0") for x in np.ravel(value))
