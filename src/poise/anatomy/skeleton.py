"""A character made from a skeleton alone: the joints of a motion file.

Masses are the fractions of body mass in Winter, *Biomechanics and Motor Control of Human Movement*
(4th ed. 2009), Table 4.1 (after Dempster); the stature comes from thigh and shank, which make up
0.491 of it (Figure 4.1, after Drillis and Contini), the body mass from a body-mass index of 22.
Links are told apart by their names. What has no human name, and every link of a skeleton that is
not a human's, has the density of water. Thicknesses are ours; those of what goes on four legs are
fractions of its trunk, so that a dog is not taken for a person on all fours.

Joints become links, but for those that have neither length nor mass:
- an end without length that is no head, hand or foot;
- a joint without length on the way to a single other one: that one takes its rotation over;
- a joint at the very place of its parent that never turns, and one that has no channels.
The rig keeps them, so that they are written out again, rigid.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from poise.anatomy.bone_shapes import shapes_of
from poise.anatomy.bones import Bones
from poise.anatomy.names import ARM, LEG, is_tail, side_of
from poise.anatomy.rig import Rig
from poise.errors import CharacterError
from poise.model.character import Character, Joint, Link, Shape
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
"""Shares of body mass; of arms and legs, each."""

SHARES = {"neck": "head", "shoulder": "trunk", "toe": "foot"}
"""Parts that take their mass from another one's share."""

DENSITY = 1000.0  # [kg/m^3]
BODY_MASS_INDEX = 22.0  # [kg/m^2]


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
    links = []
    for i in index:
        parent = bones.rig.joints[i].parent
        above = bones.owner[parent] if parent >= 0 else -1
        pos = bones.rig.rest[i] - bones.rig.rest[above] if above >= 0 else np.zeros(3)
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
    low = min(lowest_z(shape) + bones.rig.rest[i][2] for i in index for shape in shapes[i])
    base = (0.0, 0.0, float(bones.rig.rest[index[0]][2] - low))
    root = links[0]
    links[0] = Link.from_shapes(
        root.name, None, root.shapes, mass=root.mass, pos=base, joints=root.joints
    )
    return Character(name, tuple(links), _limbs(bones))


def _joints(bones: Bones, i: int, root: bool) -> list[Joint]:
    joint = bones.rig.joints[i]
    if root:
        return [Joint(joint.name, "free")]
    slides: list[Joint] = []
    if joint.name in bones.sliding:
        slides = [
            Joint(f"{joint.name}_slide_{'xyz'[k]}", "slide", axis=tuple(np.eye(3)[k].tolist()))
            for k in range(3)
        ]
    turns = joint.turns
    if len(turns) in (1, 2) and bones.rig.kind in ("bvh", "amc"):
        names = [joint.name] if len(turns) == 1 else [f"{joint.name}_{'xyz'[k]}" for k in turns]
        axes = [tuple(bones.rig.axis(i, axis).tolist()) for axis in turns]
        return slides + [Joint(n, "hinge", axis=a) for n, a in zip(names, axes, strict=True)]
    return [*slides, Joint(joint.name, "ball")]


def _limbs(bones: Bones) -> dict[str, tuple[str, ...]]:
    limbs: dict[str, list[str]] = {}
    for i in range(bones.n):
        if not bones.kept[i]:
            continue
        part, side = bones.parts[i], side_of(bones.rig.names[i])
        limb = {"pelvis": "torso", "trunk": "torso", "neck": "head", "head": "head"}.get(part)
        arm, leg = ("{}_arm", "{}_leg")
        if bones.trunk is not None:
            arm, leg = ("front_{}_leg", "hind_{}_leg")
        if part in ARM and side:
            limb = arm.format(side)
        if part in LEG and side:
            limb = leg.format(side)
        if is_tail(bones.rig.names[i]):
            limb = "tail"
        if limb:
            limbs.setdefault(limb, []).append(bones.rig.names[i])
    return {limb: tuple(names) for limb, names in limbs.items()}


def _masses(bones: Bones, shapes: dict[int, list[Shape]], mass: float | None) -> dict[int, float]:
    """Mass of each link [kg]."""
    volume = {i: sum(shape.volume for shape in s) for i, s in shapes.items()}
    masses = {i: DENSITY * v for i, v in volume.items()}
    if bones.stature is not None:
        _share_body_mass(bones, BODY_MASS_INDEX * bones.stature**2, volume, masses)
    if mass is not None:
        total = sum(masses.values())
        masses = {i: m * mass / total for i, m in masses.items()}
    return masses


def _share_body_mass(
    bones: Bones, body: float, volume: dict[int, float], masses: dict[int, float]
) -> None:
    """Give each part its share of the body's mass; its links share that by volume."""
    groups: dict[tuple[str, str], list[int]] = {}
    for i in volume:
        part = SHARES.get(bones.parts[i], bones.parts[i])
        if part in FRACTIONS:
            side = "" if part in ("head", "trunk", "pelvis") else side_of(bones.rig.names[i])
            groups.setdefault((part, side), []).append(i)
    total = sum(FRACTIONS[part] for part, _ in groups)
    for (part, _), group in groups.items():
        share = body * FRACTIONS[part] / total
        whole = sum(volume[i] for i in group)
        masses.update({i: share * volume[i] / whole for i in group})


__all__ = ["FRACTIONS", "character_from_rig"]
