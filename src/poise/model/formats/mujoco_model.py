"""MJCF and URDF through the `mujoco` package: elements and meshes in, MuJoCo's own model out."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from xml.sax.saxutils import quoteattr

import numpy as np

from poise.errors import LARGEST, CharacterError, shorten
from poise.io.files import read_bounded
from poise.io.xml_elements import LARGEST_FILE, MOST_ELEMENTS, Element, named_at
from poise.math.pose import Pose
from poise.math.rotation import quat_matrix
from poise.model.character import Character, Joint, Link, Shape, Vector
from poise.model.joint import SIZES, WIDEST
from poise.model.shape import SHAPE_SIZES
from poise.model.validation import check_number

LARGEST_SUM = 256 * 2**20  # of all files a model names, together [bytes]
MOST_BODIES = 2000
"""Bodies in one model, with what it replicates: MuJoCo takes seconds for these, and for 5000 in
chains of 490 half a minute."""

REPEATING = ("replicate", "composite", "flexcomp")


CUSTOM = "poise."  # what our names under `custom` begin with
LIMB = CUSTOM + "limb."

Custom = Mapping[str, Vector | tuple[str, ...]]
"""What our writer kept under `custom`, by name."""


@dataclass
class Assets:
    """Files that a model names, for MuJoCo to read from memory under names of our own."""

    files: dict[str, bytes] = field(default_factory=dict)
    names: dict[Path, str] = field(default_factory=dict)
    size: int = 0

    def add(self, element: Element, key: str, file: Path) -> None:
        """Read the file that an attribute of an element names, and put our name in its place."""
        if file not in self.names:
            data = read_bounded(file, LARGEST_FILE, CharacterError, named_at(file, element))
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
        at = located(root, message)
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


def located(root: Element, message: str) -> Element:
    """The body or joint that a message names first."""
    first, found = len(message), root
    for element in root.walk():
        name = element.attributes.get("name")
        if name and element.tag in ("body", "joint", "freejoint", "link"):
            place = message.find(repr(name), 0, first)
            if place >= 0:
                first, found = place, element
    return found


def floats(x: Any) -> Vector:
    """An array's row as plain floats."""
    return tuple(float(value) for value in x)


# ---- shapes from geoms


def can_touch(m: Any, bodies: Sequence[int]) -> bool:
    """Whether any geom of these bodies can touch something."""
    own = np.isin(m.geom_bodyid, bodies)
    return bool(np.any((m.geom_contype | m.geom_conaffinity)[own]))


def shapes_of(m: Any, i: int, touching: bool) -> tuple[Shape, ...]:
    first, n = int(m.body_geomadr[i]), int(m.body_geomnum[i])
    geoms = [
        g
        for g in range(first, first + n)
        if not touching or m.geom_contype[g] or m.geom_conaffinity[g]
    ]
    return tuple(shape for g in geoms if (shape := _shape(m, g)) is not None)


def _shape(m: Any, g: int) -> Shape | None:
    kinds = import_mujoco().mjtGeom
    place: Any = (floats(m.geom_pos[g]), floats(m.geom_quat[g]), _color(m, g))
    size = floats(m.geom_size[g])
    kind = int(m.geom_type[g])
    for name, count in SHAPE_SIZES.items():
        if name != "mesh" and kind == int(getattr(kinds, f"mjGEOM_{name.upper()}")):
            return Shape(name, size[:count], *place)  # type: ignore[arg-type]
    if kind == int(kinds.mjGEOM_MESH):
        return _mesh(m, int(m.geom_dataid[g]), place)
    return None


def _mesh(m: Any, k: int, place: Any) -> Shape | None:
    """The convex hull of a mesh; None if it is flat."""
    from scipy.spatial import ConvexHull, QhullError

    first, n = int(m.mesh_vertadr[k]), int(m.mesh_vertnum[k])
    vertices = np.array(m.mesh_vert[first : first + n], dtype=np.float64)
    try:
        corners = vertices[ConvexHull(vertices).vertices]
        return Shape.mesh([floats(x) for x in corners], *place)
    except (QhullError, CharacterError):
        return None


def _color(m: Any, g: int) -> Vector | None:
    """The geom's own colour, else that of its material."""
    color = np.array(m.geom_rgba[g], dtype=np.float64)
    if floats(color) == (0.5, 0.5, 0.5, 1.0):
        if m.geom_matid[g] < 0:
            return None
        color = np.array(m.mat_rgba[m.geom_matid[g]], dtype=np.float64)
    # single precision: take the number that was written
    return floats(np.clip(np.round(color, 6), 0.0, 1.0))


# ---- the character


def character_from_model(model: Any, root: Element, name: str, custom: Custom) -> Character:
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
            return TreeReader(model, custom).character(name)
    except CharacterError as error:
        raise located(root, str(error)).error(str(error)) from error


def with_base(
    character: Character, base: Literal["free", "fixed"] | None, root: Element
) -> Character:
    """The character with that base; None leaves it as it is. Errors come with their place."""
    try:
        return character if base is None else character.with_base(base)
    except CharacterError as error:
        raise located(root, str(error)).error(str(error)) from error


class TreeReader:
    """Turns an MjModel into a character."""

    def __init__(self, model: Any, custom: Custom) -> None:
        self.mujoco = import_mujoco()
        self.model = model
        self.custom = custom
        kind = self.mujoco.mjtObj.mjOBJ_JOINT
        self.joint_names = [self.mujoco.mj_id2name(model, kind, j) for j in range(model.njnt)]
        self.taken = {name for name in self.joint_names if name}
        self.actuators: dict[int, list[int]] = {}  # of each joint
        on_joint = (self.mujoco.mjtTrn.mjTRN_JOINT, self.mujoco.mjtTrn.mjTRN_JOINTINPARENT)
        acts = np.isin(model.actuator_trntype, [int(x) for x in on_joint])
        for k in np.flatnonzero(acts).tolist():
            self.actuators.setdefault(int(model.actuator_trnid[k, 0]), []).append(k)
        kinds = self.mujoco.mjtJoint
        self.kinds: dict[int, Any] = {
            int(getattr(kinds, f"mjJNT_{kind.upper()}")): kind for kind in SIZES
        }

    def character(self, name: str, bodies: Sequence[int] | None = None) -> Character:
        """The character of a tree.

        Args:
            name: Its name; "" is that of its root.
            bodies: Of the tree; None is the one tree that moves.
        """
        m = self.model
        if np.any(m.tendon_armature):
            raise CharacterError("armature of a tendon is not read; give it to the joints")
        bodies = self.tree() if bodies is None else bodies
        names = self.names(bodies)
        touching = can_touch(m, bodies)
        links = []
        for i in bodies:
            joints, C = self.joints(i, names[i])
            X = Pose(floats(m.body_quat[i]), floats(m.body_pos[i])) @ C
            mass, inertia = self.inertia(i)
            links.append(
                Link(
                    name=names[i],
                    parent=names.get(int(m.body_parentid[i])),
                    pos=X.r,
                    quat=X.E,
                    joints=joints,
                    mass=mass,
                    com=floats(m.body_ipos[i]) if mass else (0.0, 0.0, 0.0),
                    inertia=inertia,
                    shapes=shapes_of(m, i, touching),
                )
            )
        return Character(name or links[0].name, tuple(links), self.limbs(set(names.values())))

    def tree(self) -> list[int]:
        """The bodies of the one tree that moves; what is fixed beside it is scenery."""
        m = self.model
        root = m.body_rootid.tolist()
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
        return {i: name or fresh_name(f"body-{i}", taken) for i, name in given.items()}

    def inertia(self, i: int) -> tuple[float, Any]:
        """Mass, and inertia about the center of mass in link axes."""
        m = self.model
        mass, moments = float(m.body_mass[i]), m.body_inertia[i]
        # what is fixed to the world may be anything
        if mass == 0.0 and m.body_weldid[i] == 0:
            return 0.0, (0.0, 0.0, 0.0)
        if tuple(m.body_iquat[i]) == (1.0, 0.0, 0.0, 0.0):
            return mass, floats(moments)
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
            name = self.joint_names[j] or fresh_name(
                link if n == 1 else f"{link}-{j - first + 1}", self.taken
            )
            kind = self.kinds[int(m.jnt_type[j])]
            axis, pos = floats(m.jnt_axis[j]), floats(m.jnt_pos[j])
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
        lower, upper = floats(self.model.jnt_range[j])
        # some files write a joint without limits as one with very wide limits
        widest = WIDEST if kind == "hinge" else LARGEST
        if not self.model.jnt_limited[j] or max(abs(lower), abs(upper)) > widest:
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
            values["effort"] = floats(effort) if kind == "ball" else float(effort[0])

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


def fresh_name(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "-2"
    taken.add(name)
    return name


def read_custom(root: Element) -> dict[str, Vector | tuple[str, ...]]:
    """What our writer kept under `custom`, by name."""
    found: dict[str, Vector | tuple[str, ...]] = {}
    for section in root.children:
        for element in section.children if section.tag == "custom" else ():
            name = element.attributes.get("name", "")
            if element.tag == "numeric" and name.startswith(CUSTOM):
                try:
                    found[name] = floats(element.attributes.get("data", "").split())
                except ValueError as error:
                    raise element.error(f"{name!r}: data must be numbers") from error
            elif element.tag == "text" and name.startswith(LIMB):
                found[name] = tuple(element.attributes.get("data", "").split("\n"))
    return found
