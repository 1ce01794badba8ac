"""A character made from a skeleton alone: the joints of a motion file.

Masses are the fractions of body mass in Winter, *Biomechanics and Motor Control of Human Movement*
(4th ed. 2009), Table 4.1 (after Dempster); the stature comes from thigh and shank, which make up
0.491 of it (Figure 4.1, after Drillis and Contini), the body mass from a body-mass index of 22.
Links are identified by their names. A link without a human name, and every link of a skeleton that
is not a human's, has the density of water. Thicknesses are ours; those of quadrupeds are
fractions of the trunk, so that a dog is not taken for a person on all fours.

Joints become links, but for those that have neither length nor mass:
- an end without length that is no head, hand or foot;
- a joint without length on the way to a single other one: that one takes its rotation over;
- a joint at the very place of its parent that never turns, and one that has no channels.
The rig keeps them, so that they are written out again, rigid.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from poise.anatomy.names import ARM, FRONT, FRONT_PARTS, LEG, is_animal, is_tail, part_of, side_of
from poise.anatomy.rig import Rig
from poise.errors import CharacterError
from poise.math.arrays import Floats
from poise.math.rotation import conjugate, multiply, quat_from_z, rotate
from poise.model.character import Character, Joint, Link, Shape, Vector
from poise.model.geometry import lowest_z

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
"""Fractions of body mass; of arms and legs, each."""

INCLUDED_IN = {"neck": "head", "shoulder": "trunk", "toe": "foot"}
"""Parts whose mass is included in that of another part."""

DENSITY = 1000.0  # [kg/m^3]
BODY_MASS_INDEX = 22.0  # [kg/m^2]
LEG_LENGTH = 0.491  # thigh and shank, as a fraction of stature


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
    return _character(Bones(rig, still, sliding), name, mass)


def _character(bones: Bones, name: str, mass: float | None) -> Character:
    """Put the links together."""
    index = [i for i in range(bones.n) if bones.kept[i]]
    shapes = {i: shapes_of(bones, i) for i in index}
    masses = _masses(bones, shapes, mass)
    # the lowest point is on the ground
    rest = bones.rig.rest
    low = min(lowest_z(shape) + rest[i][2] for i in index for shape in shapes[i])
    links = []
    for i in index:
        parent = bones.rig.joints[i].parent
        above = bones.owner[parent] if parent >= 0 else -1
        pos = rest[i] - rest[above] if above >= 0 else np.array([0.0, 0.0, rest[i][2] - low])
        links.append(
            Link.from_shapes(
                bones.rig.names[i],
                None if above < 0 else bones.rig.names[above],
                shapes[i],
                mass=masses[i],
                pos=tuple(pos.tolist()),
                joints=_joints(bones, i, above < 0),
            )
        )
    return Character(name, tuple(links), _limbs(bones))


def _joints(bones: Bones, i: int, root: bool) -> list[Joint]:
    joint = bones.rig.joints[i]
    if root:
        return [Joint(joint.name, "free")]
    slides = [
        Joint(f"{joint.name}_slide_{name}", "slide", axis=tuple(axis))
        for name, axis in zip("xyz", np.eye(3).tolist(), strict=True)
        if joint.name in bones.sliding
    ]
    turns = joint.turns
    if len(turns) in (1, 2) and bones.rig.kind in ("bvh", "amc"):
        names = [joint.name] if len(turns) == 1 else [f"{joint.name}_{'xyz'[k]}" for k in turns]
        axes = [tuple(bones.rig.axis(i, axis).tolist()) for axis in turns]
        return slides + [Joint(n, "hinge", axis=a) for n, a in zip(names, axes, strict=True)]
    return [*slides, Joint(joint.name, "ball")]


def _limbs(bones: Bones) -> dict[str, tuple[str, ...]]:
    limbs: dict[str, list[str]] = {}
    arm, leg = ("{}_arm", "{}_leg") if bones.trunk is None else ("front_{}_leg", "hind_{}_leg")
    middle = {"pelvis": "torso", "trunk": "torso", "neck": "head", "head": "head"}
    for name, part, kept in zip(bones.rig.names, bones.parts, bones.kept, strict=True):
        side, limb = side_of(name), middle.get(part)
        if is_tail(name):
            limb = "tail"
        elif part in (*ARM, *LEG) and side:
            limb = (arm if part in ARM else leg).format(side)
        if limb and kept:
            limbs.setdefault(limb, []).append(name)
    return {limb: tuple(names) for limb, names in limbs.items()}


def _masses(bones: Bones, shapes: dict[int, list[Shape]], mass: float | None) -> dict[int, float]:
    """Mass of each link [kg]."""
    volume = {i: sum(shape.volume for shape in s) for i, s in shapes.items()}
    masses = {i: DENSITY * v for i, v in volume.items()}
    if bones.stature is not None:
        _divide_body_mass(bones, BODY_MASS_INDEX * bones.stature**2, volume, masses)
    if mass is not None:
        total = sum(masses.values())
        masses = {i: m * mass / total for i, m in masses.items()}
    return masses


def _divide_body_mass(
    bones: Bones, body: float, volume: dict[int, float], masses: dict[int, float]
) -> None:
    """Give each part its fraction of the body's mass, divided among its links by volume."""
    groups: dict[tuple[str, str], list[int]] = {}
    for i in volume:
        part = INCLUDED_IN.get(bones.parts[i], bones.parts[i])
        if part in FRACTIONS:
            side = "" if part in ("head", "trunk", "pelvis") else side_of(bones.rig.names[i])
            groups.setdefault((part, side), []).append(i)
    total = sum(FRACTIONS[part] for part, _ in groups)
    for (part, _), group in groups.items():
        part_mass = body * FRACTIONS[part] / total
        whole = sum(volume[i] for i in group)
        masses.update({i: part_mass * volume[i] / whole for i in group})


class Bones:
    """Which joints of a rig become links, and what they are.

    Args:
        rig: The skeleton.
        still: Names of joints that never turn.
        sliding: Names of joints that move against their parents.

    Attributes:
        stature: Of a person [m]; None if it is none.
        trunk: Distance from the hips of a four-legged animal to its shoulders [m]; else None.
        kept: Whether each joint becomes a link.
        owner: The link that each joint moves with, -1 above all.
        parts: Parts of the body, "" where names do not say; a front leg has those of an arm.
    """

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
        self._name_front_legs()
        self.kept = self._kept(still)
        self.owner = self._owners()
        self._name_upper_arms()
        self.trunk = self._trunk()
        self.stature = self._stature() if self.trunk is None else None
        self.left = self._left()
        self.inner: list[list[Floats]] = [[] for _ in range(self.n)]
        self.outer: list[list[Floats]] = [[] for _ in range(self.n)]
        self._find_points()

    def _kept(self, still: Collection[str]) -> list[bool]:
        kept, alive = [False] * self.n, [False] * self.n
        short = 0.005 * self.height
        for i in reversed(range(self.n)):
            end = self.ends[i]
            length = 0.0 if end is None else float(np.linalg.norm(end))
            if not self.children[i]:
                kept[i] = length > short or self.ends_body(i)
                alive[i] = kept[i]
                continue
            reach = [float(np.linalg.norm(self.rig.offsets[c])) for c in self.children[i]]
            ways = sum(alive[c] for c in self.children[i])
            kept[i] = max(*reach, length, 0.0) > 1e-6 * self.height or ways > 1
            alive[i] = kept[i] or ways > 0
        for i, joint in reversed([*enumerate(self.rig.joints)]):
            in_place = float(np.linalg.norm(self.rig.offsets[i])) <= 1e-6 * self.height
            if self._fixed(i) or (joint.name in still and in_place):
                # the one above it, which may turn, takes its place
                if kept[i] and joint.parent >= 0:
                    kept[joint.parent] = True
                kept[i] = False
        root = self._root()
        kept[: root + 1] = [False] * root + [True]
        return kept

    def ends_body(self, i: int) -> bool:
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

    def _name_upper_arms(self) -> None:
        """A shoulder that carries the forearm itself is the upper arm."""
        for i in range(self.n):
            if self.parts[i] == "forearm":
                above = self.owner[self.rig.joints[i].parent]
                if above >= 0 and self.parts[above] == "shoulder":
                    self.parts[above] = "arm"

    def _name_front_legs(self) -> None:
        """The front legs of an animal have the parts of arms."""
        if not is_animal(self._limb_names()):
            return
        for i, name in enumerate(self.rig.names):
            if FRONT.search(name):
                self.parts[i] = FRONT_PARTS.get(self.parts[i], self.parts[i])

    def _limb_names(self) -> list[str]:
        """Names of the joints of arms and legs."""
        pairs = zip(self.rig.names, self.parts, strict=True)
        return [name for name, part in pairs if part in (*ARM, *LEG)]

    def _trunk(self) -> float | None:
        """Distance from hips to shoulders of a quadruped [m]; None of others.

        Names say so ("hind_left_thigh", "paw"). Without them it stands on hands and feet in the
        rest pose, or has a tail, and its shoulders are not above its hips.
        """
        arms, thighs = self._links("arm") or self._links("shoulder"), self._links("thigh")
        if not arms or not thighs:
            return None
        shoulders, hips = (self.rig.rest[links].mean(axis=0) for links in (arms, thighs))
        if not is_animal(self._limb_names()):
            upright = shoulders[2] - hips[2] > 0.15 * self.height
            hands = shoulders[2] - self._lowest(ARM) > 0.2 * self.height
            feet = hips[2] - self._lowest(LEG) > 0.2 * self.height
            if upright or not ((hands and feet) or any(map(is_tail, self.rig.names))):
                return None
        trunk = float(np.linalg.norm(shoulders - hips))
        return trunk if trunk > 0.05 * self.height else None

    def _lowest(self, parts: tuple[str, ...]) -> float:
        """Height of the lowest joint or end of these parts in the rest pose [m]."""
        drops = [0.0 if end is None else min(end[2], 0.0) for end in self.ends]
        low = self.rig.rest[:, 2] + drops
        return float(low[[part in parts for part in self.parts]].min())

    def _links(self, part: str) -> list[int]:
        return [i for i in range(self.n) if self.kept[i] and self.parts[i] == part]

    def _stature(self) -> float | None:
        """Stature of a human [m]; None if this is no human."""
        if is_animal(self._limb_names()):
            return None
        for part in ("thigh", "shank", "arm", "forearm"):
            if len(self._links(part)) != 2:
                return None
        legs = []
        for shank in self._links("shank"):
            below = [self.rig.rest[c] - self.rig.rest[shank] for c in self.children[shank]]
            lengths = [float(np.linalg.norm(b)) for b in below]
            legs.append(float(np.linalg.norm(self.rig.offsets[shank])) + max(lengths, default=0.0))
        stature = sum(legs) / 2.0 / LEG_LENGTH
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


# shapes of the links: capsules along bones, girdles across, soles under the feet
#
# Thicknesses are ours.

RADII = {
    "head": (0.055, 0.13),
    "neck": (0.030, 0.13),
    "trunk": (0.065, 0.19),
    "shoulder": (0.035, 0.08),
    "pelvis": (0.055, 0.15),
    "arm": (0.027, 0.075),
    "forearm": (0.022, 0.052),
    "hand": (0.014, 0.045),
    "thigh": (0.042, 0.125),
    "shank": (0.030, 0.06),
    "foot": (0.020, 0.04),
    "toe": (0.015, 0.03),
}
"""Radii of the capsules of people, as fractions of stature, and of quadrupeds, of the trunk."""

ENDS = {"head": 0.13, "neck": 0.05, "hand": 0.10, "foot": 0.12}
"""Lengths of ends that the skeleton leaves open, as fractions of stature."""

LONGEST_END = 0.2
"""Ends of a person longer than this fraction of the height are left out of the shapes: some files
have wild ones."""

LONGEST_OTHER_END = 1.5
"""Those of others: longer than this many times the longest bone between joints."""

ANKLE = 0.039  # height of the ankle, as a fraction of stature


def _radius(bones: Bones, i: int, length: float) -> float:
    """Radius of the capsule of a bone."""
    person, quadruped = RADII.get(bones.parts[i], (0.0, 0.0))
    radius = person * (bones.stature or 0.0) or quadruped * (bones.trunk or 0.0)
    if not radius:
        return min(0.2 * length, 0.05 * bones.height)
    thick = bones.parts[i] in ("head", "trunk", "pelvis")
    return radius if thick else min(radius, 0.5 * length)


def _points(bones: Bones, i: int) -> list[Floats]:
    """Where the bones of a link end, from its origin: joints and ends that move with it."""
    short = 0.005 * bones.height
    points = [p for p in bones.inner[i] if np.linalg.norm(p) > short]
    if bones.ends_body(i):
        short = 0.03 * bones.height
    longest = _longest_end(bones)
    leaves = [p for p in bones.outer[i] if short < np.linalg.norm(p) <= longest]
    return points or leaves or _open_end(bones, i)


def _longest_end(bones: Bones) -> float:
    """Length up to which ends are believed [m]."""
    if bones.stature is not None:
        return LONGEST_END * bones.height
    longest = float(np.linalg.norm(bones.rig.offsets[1:], axis=1).max(initial=0.0))
    return LONGEST_OTHER_END * longest if longest > 0.0 else np.inf


def _open_end(bones: Bones, i: int) -> list[Floats]:
    """A bone for an end that the skeleton leaves open: on in the direction of its parent."""
    four = None if bones.trunk is None else 1.5 * bones.trunk
    length = ENDS.get(bones.parts[i], 0.0) * (bones.stature or four or bones.height)
    along = bones.rig.offsets[i]
    size = float(np.linalg.norm(along))
    if bones.children[i] or length == 0.0 or size < 1e-6 * bones.height:
        return []
    return [along / size * length]


def shapes_of(bones: Bones, i: int) -> list[Shape]:
    points = _points(bones, i)
    part = bones.parts[i]
    if bones.stature is not None and part in ("foot", "toe") and points:
        return [_sole(bones, i, max(points, key=lambda p: float(np.linalg.norm(p))))]
    shapes = []
    if bones.stature is not None and part in ("pelvis", "trunk"):
        shapes = _girdle(bones, i, points)
    capsules = [p for p in points if not shapes or not _is_wide(bones, p)]
    if bones.trunk is not None and part in ("pelvis", "trunk"):
        # one along the middle, none to the legs
        middle = [p for p in points if abs(p @ bones.left) < 0.1 * np.linalg.norm(p)]
        capsules = middle or points
    for p in _distinct(capsules):
        length = float(np.linalg.norm(p))
        radius = _radius(bones, i, length)
        if bones.stature is not None and part in ("pelvis", "trunk") and length < 2.2 * radius:
            across = 0.03 * bones.stature * bones.left
            ends = tuple(0.5 * p - across), tuple(0.5 * p + across)
            shapes.append(Shape.capsule(*ends, 0.85 * radius))
            continue
        inset = min(radius, 0.45 * length) / length
        if bones.trunk is not None and part in ("pelvis", "trunk"):
            inset = 0.1  # a smooth back
        shapes.append(Shape.capsule(tuple(p * inset), tuple(p * (1.0 - inset)), radius))
    if shapes:
        return shapes
    radius = _radius(bones, i, 0.04 * bones.height)
    return [Shape("sphere", (max(radius, 1e-4),))]


def _is_wide(bones: Bones, p: Floats) -> bool:
    """Whether a bone goes to the side."""
    return bool(abs(p @ bones.left) > 0.3 * np.linalg.norm(p))


def _girdle(bones: Bones, i: int, points: list[Floats]) -> list[Shape]:
    """A capsule across, from the left hip to the right one, or between the shoulders."""
    wide = [p for p in points if _is_wide(bones, p)]
    left = max(wide, key=lambda p: float(p @ bones.left), default=None)
    right = min(wide, key=lambda p: float(p @ bones.left), default=None)
    if left is None or right is None or (left @ bones.left) * (right @ bones.left) >= 0.0:
        return []
    radius = _radius(bones, i, 0.0)
    middle = (left + right) / 2.0
    if bones.parts[i] == "trunk":  # the ribs are below the shoulders
        middle = middle * 0.5
    across = (left - right) / 2.0
    half = max(float(np.linalg.norm(across)) - radius, 0.2 * radius)
    across = across / np.linalg.norm(across) * half
    return [Shape.capsule(tuple(middle - across), tuple(middle + across), radius)]


def _sole(bones: Bones, i: int, bone: Floats) -> Shape:
    """The box of a foot: along its bone, its sole at a right angle to the shank."""
    stature = bones.stature or bones.height
    up = np.array([0.0, 0.0, 1.0])
    shank = i if bones.parts[i] == "foot" else bones.rig.joints[i].parent
    along = bones.rig.offsets[shank]
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
    if not any(bones.kept[c] for c in bones.children[i]) and bones.parts[i] == "foot":
        reach += 0.035 * stature  # toes that the skeleton has not
    left = np.cross(up, forward)
    foot = bones.parts[i] == "foot"
    top = 0.3 * ANKLE * stature if foot else 0.008 * stature
    sole = _sole_height(bones, i, bone, up)
    # toes stand on the plane of the foot they hang on
    above = bones.owner[bones.rig.joints[i].parent]
    if not foot and bones.parts[above] == "foot":
        down = bones.rig.rest[i] - bones.rig.rest[above]
        sole = _sole_height(bones, above, down, up) - float(down @ up)
    heel = -0.3 * reach if foot else 0.0
    half = np.array([(reach - heel) / 2.0, 0.027 * stature, (top - sole) / 2.0])
    pos = forward * (reach + heel) / 2.0 + up * (top + sole) / 2.0
    quat = _quat(np.stack([forward, left, up], axis=1))
    return Shape("box", tuple(half.tolist()), tuple(pos.tolist()), quat)


def _sole_height(bones: Bones, i: int, bone: Floats, up: Floats) -> float:
    """Height of the sole over the joint, a negative number [m]."""
    stature = bones.stature or bones.height
    sole = min(float(bone @ up), 0.0) - 0.010 * stature
    return min(sole, -ANKLE * stature) if bones.parts[i] == "foot" else sole


def _distinct(points: list[Floats]) -> list[Floats]:
    """Points that are not near each other: of several, the one that is farthest out."""
    distinct: list[Floats] = []
    for p in sorted(points, key=lambda p: -float(np.linalg.norm(p))):
        if all(np.linalg.norm(p - other) > 0.25 * np.linalg.norm(other) for other in distinct):
            distinct.append(p)
    return distinct


def _quat(R: Floats) -> Vector:
    """Quaternion of a rotation matrix: first z, then what is left about it."""
    first = quat_from_z(tuple(R[:, 2].tolist()))
    x = rotate(conjugate(first), R[:, 0])
    angle = float(np.arctan2(x[1], x[0]))
    whole = multiply(first, (np.cos(angle / 2), 0.0, 0.0, np.sin(angle / 2)))
    return tuple(whole.tolist())
