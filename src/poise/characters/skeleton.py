"""A character made from a skeleton alone: the joints of a motion file.

Masses are the fractions of body mass in Winter, *Biomechanics and Motor Control of Human Movement*
(4th ed. 2009), Table 4.1 (after Dempster); the stature comes from thigh and shank, which make up
0.491 of it (Figure 4.1, after Drillis and Contini), the body mass from a body-mass index of 22.
Links are told apart by their names. What has no human name, and every link of a skeleton that is
not a human's, has the density of water. Thicknesses are ours.

Joints become links, but for those that have neither length nor mass:
- an end without length that is no head, hand or foot;
- a joint without length on the way to a single other one: that one takes its rotation over;
- a joint at the very place of its parent that never turns, and one that has no channels.
The rig keeps them, so that they are written out again, rigid.
"""

from __future__ import annotations

import re
from collections.abc import Collection

import numpy as np

from poise.character import Character, Joint, Link, Shape, Vector
from poise.errors import CharacterError
from poise.forest import quat_from_z
from poise.motion.rig import Floats, Rig

WORDS = (
    ("toe", "toe"),
    ("foot", "foot|ankle|talus|paw"),
    ("hand", "hand|wrist|palm|finger|thumb|index|middle|ring|pinky"),
    ("thigh", "up_?leg|upper_?leg|thigh|femur|(left|right|[lr])_?hip$"),
    ("shank", "leg|shin|tibia|calf|knee"),
    ("forearm", "fore_?arm|low(er)?_?arm|radius|ulna|elbow"),
    ("shoulder", "shoulder|clavicle|collar"),
    ("arm", "arm|humerus"),
    ("neck", "neck"),
    ("head", "head|skull|face|eye|jaw"),
    ("pelvis", "hip|pelvis|root"),
    ("trunk", "spine|chest|back|torso|abdomen|thorax|waist"),
)
"""Parts of the body and the words, in a joint's name, that tell of them; the first match counts."""

FRACTIONS = {
    "head": 0.081,
    "trunk": 0.355,
    "pelvis": 0.142,
    "arm": 0.028,
    "forearm": 0.016,
    "hand": 0.006,
    "thigh": 0.100,
    "shank": 0.0465,
    "foot": 0.0145,
}
"""Shares of body mass; of arms and legs, each."""

SHARES = {"neck": "head", "shoulder": "trunk", "toe": "foot"}
"""Parts that take their mass from another one's share."""

RADII = {
    "head": 0.055,
    "neck": 0.030,
    "trunk": 0.065,
    "shoulder": 0.035,
    "pelvis": 0.055,
    "arm": 0.027,
    "forearm": 0.022,
    "hand": 0.014,
    "thigh": 0.042,
    "shank": 0.030,
    "foot": 0.020,
    "toe": 0.015,
}
"""Radii of the capsules, as fractions of stature."""

ENDS = {"head": 0.13, "neck": 0.05, "hand": 0.10, "foot": 0.12}
"""Lengths of ends that the skeleton leaves open, as fractions of stature."""

LONGEST_END = 0.2
"""Ends longer than this fraction of the height are left out of the shapes: some files have wild
ones."""

DENSITY = 1000.0  # [kg/m^3]
BODY_MASS_INDEX = 22.0  # [kg/m^2]
LEG = 0.491  # thigh and shank, as a fraction of stature
ANKLE = 0.039  # height of the ankle, as a fraction of stature


def character_from_rig(
    rig: Rig,
    name: str = "",
    mass: float | None = None,
    *,
    still: Collection[str] = (),
    sliding: Collection[str] = (),
) -> Character:
    """Make a character from the skeleton of a motion file.

    It is free to move, stands in the rest pose with its lowest point on z = 0, and all its link
    frames are aligned with the world. Joints are balls, or hinges where the file has one or two
    rotation channels; where one slides, three slides come before.

    Args:
        rig: The skeleton.
        name: Name of the character; that of the rig unless given.
        mass: Total mass [kg]; from the stature of a human, else from volume, unless given.
        still: Names of joints that never turn.
        sliding: Names of joints that move against their parents. A single one below the root
            carries the character, as the hips do below an extra root.
    """
    if not rig.joints:
        raise CharacterError("a skeleton without joints makes no character")
    name = name or rig.name
    if not name.strip() or not name.isprintable():
        name = "skeleton"
    return _Maker(rig, still, sliding).character(name, mass)


def part_of(name: str) -> str:
    """The part of the body that a joint's name tells of, or ""."""
    # "mixamorig:LeftUpLeg", "Character1_LeftUpLeg", "LHipJoint"
    plain = re.sub(r"^.*:|^character\d*_", "", name, flags=re.IGNORECASE).lower()
    return next((part for part, words in WORDS if re.search(words, plain)), "")


def side_of(name: str) -> str:
    """The side that a joint's name tells of: "left", "right" or ""."""
    plain = re.sub(r"^.*:|^[Cc]haracter\d*_", "", name)
    for side in ("left", "right"):
        letter = side[0]
        if side in plain.lower() or re.match(rf"{letter}_|{letter.upper()}(_|[A-Z])", plain):
            return side
        if re.search(rf"[_.\-]{letter}$", plain, flags=re.IGNORECASE):
            return side
    if re.match(r"[lr](hip|femur|tibia|foot|toe|clav|hum|rad|wrist|hand|finger|thumb)", plain):
        return "left" if plain[0] == "l" else "right"
    return ""


class _Maker:
    """Works out links, parts, shapes and masses of one skeleton."""

    def __init__(self, rig: Rig, still: Collection[str], sliding: Collection[str]) -> None:
        self.rig = rig
        self.sliding = sliding
        self.n = len(rig.joints)
        self.ends = [None if j.end is None else rig.vectors(j.end) for j in rig.joints]
        points = [rig.rest, *(rig.rest[i] + e for i, e in enumerate(self.ends) if e is not None)]
        self.height = float(np.ptp(np.vstack(points), axis=0).max())
        self.children: list[list[int]] = [[] for _ in range(self.n)]
        for i, joint in enumerate(rig.joints):
            if joint.parent >= 0:
                self.children[joint.parent].append(i)
        self.parts = [part_of(name) for name in rig.names]
        self.kept = self._kept(still)
        self.owner = self._owners()
        self._name_upper_arms()
        self.stature = self._stature()
        self.left = self._left()
        self.inner: list[list[Floats]] = [[] for _ in range(self.n)]
        self.outer: list[list[Floats]] = [[] for _ in range(self.n)]
        self._find_points()

    # which joints become links

    def _kept(self, still: Collection[str]) -> list[bool]:
        kept, alive = [False] * self.n, [False] * self.n
        short = 0.005 * self.height
        for i in reversed(range(self.n)):
            end = self.ends[i]
            length = 0.0 if end is None else float(np.linalg.norm(end))
            if not self.children[i]:
                kept[i] = length > short or self._ends_body(i)
                alive[i] = kept[i]
                continue
            reach = [float(np.linalg.norm(self.rig.offsets[c])) for c in self.children[i]]
            ways = sum(alive[c] for c in self.children[i])
            kept[i] = max(*reach, length, 0.0) > 1e-6 * self.height or ways > 1
            alive[i] = kept[i] or ways > 0
        for i, joint in enumerate(self.rig.joints):
            in_place = float(np.linalg.norm(self.rig.offsets[i])) <= 1e-6 * self.height
            if self._fixed(i) or (joint.name in still and in_place):
                kept[i] = False
        root = self._root()
        kept[: root + 1] = [False] * root + [True]
        return kept

    def _ends_body(self, i: int) -> bool:
        """Whether an end is a head, hand or foot by name, and not a part of one."""
        parent = self.rig.joints[i].parent
        own = parent < 0 or self.parts[parent] != self.parts[i]
        return own and self.parts[i] in ("head", "hand", "foot")

    def _fixed(self, i: int) -> bool:
        """Whether a file that lists its channels gives this joint none."""
        return self.rig.kind in ("bvh", "amc") and not self.rig.joints[i].channels

    def _root(self) -> int:
        """The joint that carries the character: not an extra one above the hips."""
        root = 0
        while len(self.children[root]) == 1 and self.ends[root] is None:
            child = self.children[root][0]
            away = float(np.linalg.norm(self.rig.offsets[child])) > 1e-6 * self.height
            if self._fixed(child) or (away and self.rig.names[child] not in self.sliding):
                break
            root = child
        return root

    def _owners(self) -> list[int]:
        """The link that each joint moves with: itself, or the nearest one above; -1 above all."""
        owner = [-1] * self.n
        for i, joint in enumerate(self.rig.joints):
            owner[i] = i if self.kept[i] else (owner[joint.parent] if joint.parent >= 0 else -1)
        return owner

    # what they are

    def _name_upper_arms(self) -> None:
        """A shoulder that carries the forearm itself is the upper arm."""
        for i in range(self.n):
            if self.parts[i] == "forearm":
                above = self.owner[self.rig.joints[i].parent]
                if above >= 0 and self.parts[above] == "shoulder":
                    self.parts[above] = "arm"

    def _links(self, part: str) -> list[int]:
        return [i for i in range(self.n) if self.kept[i] and self.parts[i] == part]

    def _stature(self) -> float | None:
        """Stature of a human [m]; None if this is no human."""
        for part in ("thigh", "shank", "arm", "forearm"):
            if len(self._links(part)) != 2:
                return None
        legs = []
        for shank in self._links("shank"):
            below = [self.rig.rest[c] - self.rig.rest[shank] for c in self.children[shank]]
            lengths = [float(np.linalg.norm(b)) for b in below]
            legs.append(float(np.linalg.norm(self.rig.offsets[shank])) + max(lengths, default=0.0))
        stature = sum(legs) / 2.0 / LEG
        return stature if 0.2 < stature / max(self.height, 1e-9) < 3.0 else None

    def _left(self) -> Floats:
        """Direction to the left: from hip to hip, or y."""
        hips = [self.rig.rest[i] for i in self._links("thigh")]
        names = [side_of(self.rig.names[i]) for i in self._links("thigh")]
        left = np.array([0.0, 1.0, 0.0])
        if names in (["left", "right"], ["right", "left"]):
            across = hips[names.index("left")] - hips[names.index("right")]
            size = float(np.linalg.norm(across))
            left = across / size if size > 1e-6 * self.height else left
        return left

    # the character

    def character(self, name: str, mass: float | None) -> Character:
        """Put the links together."""
        index = [i for i in range(self.n) if self.kept[i]]
        shapes = {i: self._shapes(i) for i in index}
        masses = self._masses(shapes, mass)
        links = []
        for i in index:
            parent = self.rig.joints[i].parent
            above = self.owner[parent] if parent >= 0 else -1
            pos = self.rig.rest[i] - self.rig.rest[above] if above >= 0 else np.zeros(3)
            links.append(
                Link.from_shapes(
                    self.rig.names[i],
                    None if above < 0 else self.rig.names[above],
                    shapes[i],
                    mass=masses[i],
                    pos=tuple(pos.tolist()),
                    joints=self._joints(i, above < 0),
                )
            )
        low = min(_lowest(shape) + self.rig.rest[i][2] for i in index for shape in shapes[i])
        base = (0.0, 0.0, float(self.rig.rest[index[0]][2] - low))
        root = links[0]
        links[0] = Link.from_shapes(
            root.name, None, root.shapes, mass=root.mass, pos=base, joints=root.joints
        )
        return Character(name, tuple(links), self._limbs())

    def _joints(self, i: int, root: bool) -> list[Joint]:
        joint = self.rig.joints[i]
        if root:
            return [Joint(joint.name, "free")]
        slides: list[Joint] = []
        if joint.name in self.sliding:
            slides = [
                Joint(f"{joint.name}_slide_{'xyz'[k]}", "slide", axis=tuple(np.eye(3)[k].tolist()))
                for k in range(3)
            ]
        turns = joint.turns
        if len(turns) in (1, 2) and self.rig.kind in ("bvh", "amc"):
            names = [joint.name] if len(turns) == 1 else [f"{joint.name}_{'xyz'[k]}" for k in turns]
            axes = [tuple(self.rig.axis(i, axis).tolist()) for axis in turns]
            return slides + [Joint(n, "hinge", axis=a) for n, a in zip(names, axes, strict=True)]
        return [*slides, Joint(joint.name, "ball")]

    def _limbs(self) -> dict[str, tuple[str, ...]]:
        limbs: dict[str, list[str]] = {}
        for i in range(self.n):
            if not self.kept[i]:
                continue
            part, side = self.parts[i], side_of(self.rig.names[i])
            limb = {"pelvis": "torso", "trunk": "torso", "neck": "head", "head": "head"}.get(part)
            if part in ("shoulder", "arm", "forearm", "hand") and side:
                limb = f"{side}_arm"
            if part in ("thigh", "shank", "foot", "toe") and side:
                limb = f"{side}_leg"
            if limb:
                limbs.setdefault(limb, []).append(self.rig.names[i])
        return {limb: tuple(names) for limb, names in limbs.items()}

    # masses

    def _masses(self, shapes: dict[int, list[Shape]], mass: float | None) -> dict[int, float]:
        """Mass of each link [kg]."""
        volume = {i: sum(shape.volume for shape in s) for i, s in shapes.items()}
        masses = {i: DENSITY * v for i, v in volume.items()}
        if self.stature is not None:
            self._share_body_mass(BODY_MASS_INDEX * self.stature**2, volume, masses)
        if mass is not None:
            total = sum(masses.values())
            masses = {i: m * mass / total for i, m in masses.items()}
        return masses

    def _share_body_mass(
        self, body: float, volume: dict[int, float], masses: dict[int, float]
    ) -> None:
        """Give each part its share of the body's mass; its links share that by volume."""
        groups: dict[tuple[str, str], list[int]] = {}
        for i in volume:
            part = SHARES.get(self.parts[i], self.parts[i])
            if part in FRACTIONS:
                side = "" if part in ("head", "trunk", "pelvis") else side_of(self.rig.names[i])
                groups.setdefault((part, side), []).append(i)
        total = sum(FRACTIONS[part] for part, _ in groups)
        for (part, _), group in groups.items():
            share = body * FRACTIONS[part] / total
            whole = sum(volume[i] for i in group)
            masses.update({i: share * volume[i] / whole for i in group})

    # shapes

    def _radius(self, i: int, length: float) -> float:
        """Radius of the capsule of a bone."""
        if self.stature is None or self.parts[i] not in RADII:
            return min(0.2 * length, 0.05 * self.height)
        radius = RADII[self.parts[i]] * self.stature
        thick = self.parts[i] in ("head", "trunk", "pelvis")
        return radius if thick else min(radius, 0.5 * length)

    def _points(self, i: int) -> list[Floats]:
        """Where the bones of a link end, from its origin: joints and ends that move with it."""
        short = 0.005 * self.height
        points = [p for p in self.inner[i] if np.linalg.norm(p) > short]
        if self._ends_body(i):
            short = 0.03 * self.height
        leaves = [p for p in self.outer[i] if short < np.linalg.norm(p) < LONGEST_END * self.height]
        return points or leaves or self._open_end(i)

    def _find_points(self) -> None:
        """List, for each link, joints that carry on (inner) and ends (outer), from its origin."""
        for k, joint in enumerate(self.rig.joints):
            above = self.owner[joint.parent] if joint.parent >= 0 else -1
            if above >= 0:
                lists = self.inner if self.kept[k] or self.children[k] else self.outer
                lists[above].append(self.rig.rest[k] - self.rig.rest[above])
            own, end = self.owner[k], self.ends[k]
            if own >= 0 and end is not None:
                self.outer[own].append(self.rig.rest[k] - self.rig.rest[own] + end)

    def _open_end(self, i: int) -> list[Floats]:
        """A bone for an end that the skeleton leaves open: on in the direction of its parent."""
        length = ENDS.get(self.parts[i], 0.0) * (self.stature or self.height)
        along = self.rig.offsets[i]
        size = float(np.linalg.norm(along))
        if self.children[i] or length == 0.0 or size < 1e-6 * self.height:
            return []
        return [along / size * length]

    def _shapes(self, i: int) -> list[Shape]:
        points = self._points(i)
        part = self.parts[i]
        if self.stature is not None and part in ("foot", "toe") and points:
            return [self._sole(i, max(points, key=lambda p: float(np.linalg.norm(p))))]
        shapes = []
        if self.stature is not None and part in ("pelvis", "trunk"):
            shapes = self._girdle(i, points)
        bones = [p for p in points if not shapes or not self._is_wide(p)]
        for p in _apart(bones):
            length = float(np.linalg.norm(p))
            radius = self._radius(i, length)
            if self.stature is not None and part in ("pelvis", "trunk") and length < 2.2 * radius:
                across = 0.03 * self.stature * self.left
                ends = tuple(0.5 * p - across), tuple(0.5 * p + across)
                shapes.append(Shape.capsule(*ends, 0.85 * radius))
                continue
            inset = min(radius, 0.45 * length) / length
            shapes.append(Shape.capsule(tuple(p * inset), tuple(p * (1.0 - inset)), radius))
        if shapes:
            return shapes
        size = self._radius(i, 0.04 * self.height)
        return [Shape("sphere", (max(size, 1e-4),))]

    def _is_wide(self, p: Floats) -> bool:
        """Whether a bone goes to the side."""
        return bool(abs(p @ self.left) > 0.3 * np.linalg.norm(p))

    def _girdle(self, i: int, points: list[Floats]) -> list[Shape]:
        """A capsule across, from the left hip to the right one, or between the shoulders."""
        wide = [p for p in points if self._is_wide(p)]
        left = max(wide, key=lambda p: float(p @ self.left), default=None)
        right = min(wide, key=lambda p: float(p @ self.left), default=None)
        if left is None or right is None or (left @ self.left) * (right @ self.left) >= 0.0:
            return []
        radius = self._radius(i, 0.0)
        middle = (left + right) / 2.0
        if self.parts[i] == "trunk":  # the ribs are below the shoulders
            middle = middle * 0.5
        across = (left - right) / 2.0
        half = max(float(np.linalg.norm(across)) - radius, 0.2 * radius)
        across = across / np.linalg.norm(across) * half
        return [Shape.capsule(tuple(middle - across), tuple(middle + across), radius)]

    def _sole(self, i: int, bone: Floats) -> Shape:
        """The box of a foot: along its bone, its sole at a right angle to the shank."""
        stature = self.stature or self.height
        up = np.array([0.0, 0.0, 1.0])
        shank = i if self.parts[i] == "foot" else self.rig.joints[i].parent
        along = self.rig.offsets[shank]
        size = float(np.linalg.norm(along))
        # a skeleton may rest with its legs apart and its feet turned with them
        if size > 0.0 and -along[2] / size < np.cos(np.radians(15.0)):
            up = -along / size
        forward = bone - (bone @ up) * up
        reach = float(np.linalg.norm(forward))
        if reach < 0.3 * float(np.linalg.norm(bone)):
            up, forward = np.array([1.0, 0.0, 0.0]), bone
            reach = float(np.linalg.norm(forward))
        forward = forward / reach
        if not any(self.kept[c] for c in self.children[i]) and self.parts[i] == "foot":
            reach += 0.035 * stature  # toes that the skeleton has not
        left = np.cross(up, forward)
        foot = self.parts[i] == "foot"
        top = 0.3 * ANKLE * stature if foot else 0.008 * stature
        sole = self._sole_height(i, bone, up)
        # toes stand on the plane of the foot they hang on
        above = self.owner[self.rig.joints[i].parent]
        if not foot and self.parts[above] == "foot":
            down = self.rig.rest[i] - self.rig.rest[above]
            sole = self._sole_height(above, down, up) - float(down @ up)
        heel = -0.3 * reach if foot else 0.0
        half = np.array([(reach - heel) / 2.0, 0.027 * stature, (top - sole) / 2.0])
        pos = forward * (reach + heel) / 2.0 + up * (top + sole) / 2.0
        quat = _quat(np.stack([forward, left, up], axis=1))
        return Shape("box", tuple(half.tolist()), tuple(pos.tolist()), quat)

    def _sole_height(self, i: int, bone: Floats, up: Floats) -> float:
        """Height of the sole over the joint, a negative number [m]."""
        stature = self.stature or self.height
        sole = min(float(bone @ up), 0.0) - 0.010 * stature
        return min(sole, -ANKLE * stature) if self.parts[i] == "foot" else sole


def _apart(points: list[Floats]) -> list[Floats]:
    """Points that are not near each other: of several, the one that is farthest out."""
    apart: list[Floats] = []
    for p in sorted(points, key=lambda p: -float(np.linalg.norm(p))):
        if all(np.linalg.norm(p - other) > 0.25 * np.linalg.norm(other) for other in apart):
            apart.append(p)
    return apart


def _quat(R: Floats) -> Vector:
    """Quaternion of a rotation matrix: first z, then what is left about it."""
    first = quat_from_z(tuple(R[:, 2].tolist()))
    from poise.motion.rig import conjugate, multiply, rotate

    x = rotate(conjugate(first), R[:, 0])
    angle = float(np.arctan2(x[1], x[0]))
    whole = multiply(first, (np.cos(angle / 2), 0.0, 0.0, np.sin(angle / 2)))
    return tuple(whole.tolist())


def _lowest(shape: Shape) -> float:
    """Lowest z of a shape in its link's frame."""
    from poise.forest import quat_matrix

    R = quat_matrix(shape.quat)
    if shape.kind == "box":
        return float(shape.pos[2] - np.abs(R[2]) @ np.array(shape.size))
    half = shape.size[1] if shape.kind == "capsule" else 0.0
    return float(shape.pos[2] - abs(R[2, 2]) * half - shape.size[0])
