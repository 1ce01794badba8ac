"""Trees from characters and back, and the seven bodies of the thesis."""

from __future__ import annotations

from typing import Any

import numpy as np

from poise.errors import PoiseError, shorten
from poise.kane.tree import WORLD, Body, Point, Tree
from poise.kane.vectors import Vec, vector
from poise.model.character import Character, Joint, Link
from poise.reference.spatial import Array
from poise.reference.tree import Body as Jointed
from poise.reference.tree import build_tree

GRAVITY = (0.0, 0.0, -9.81)


def tree_of(character: Character, *, gravity: Any = GRAVITY) -> Tree:
    """The tree of a character: its joints, arms and inertias as numbers.

    Welded links join the body that carries them; a link with several joints is as many bodies, all
    but the last without mass. Coordinates and speeds are in the character's order, and external
    forces act at the origins of its links.

    Args:
        character: The character; its shapes do not matter.
        gravity: Acceleration of free fall [m/s²], three numbers or expressions.
    """
    flat = build_tree(character)
    names = _body_names(character)
    centers = [_center(body) for body in flat.bodies]
    bodies = []
    for i, body in enumerate(flat.bodies):
        joint, c = body.joint, centers[i]
        anchor = np.asarray(joint.pos if joint.kind in ("ball", "hinge") else (0.0, 0.0, 0.0))
        start = body.X_PJ.p + body.X_PJ.R @ anchor
        p = start if body.parent == WORLD else start - centers[body.parent]
        mass = float(body.inertia[3, 3])
        spread = mass * ((c @ c) * np.eye(3) - np.outer(c, c))
        bodies.append(
            Body(
                names[i],
                None if body.parent == WORLD else names[body.parent],
                joint.kind,
                axis=joint.axis,
                p=None if joint.kind == "free" else p,
                r=c - anchor,
                mass=mass,
                inertia=body.inertia[:3, :3] - spread if mass > 0 else np.zeros((3, 3)),
                rest=body.X_PJ.R,
                armature=joint.armature,
            )
        )
    points = [
        Point(link.name, at, _arm(X_BL.p, centers, at))
        for link, at, X_BL in zip(character.links, flat.link_body, flat.X_BL, strict=True)
    ]
    return Tree(tuple(bodies), gravity, tuple(points), character.name)


def character_of(tree: Tree) -> Character:
    """The character of a tree of numbers: one link for each body, its frame at the joint.

    Args:
        tree: A tree without open symbols, gravity aside, and with one body that hangs on nothing.
    """
    numbers = tree.with_values({x: 9.81 for x in tree.parameters if str(x) == "g"})
    if numbers.parameters:
        raise PoiseError(
            f"a character needs numbers for {shorten(numbers.parameters, 8)}; "
            "give them with with_values"
        )
    links = []
    for i, body in enumerate(numbers.bodies):
        parent = numbers.parents[i]
        # the parent's frame is at its own joint, r before its mass centre
        pos = np.array(body.p, float)
        if parent != WORLD:
            pos = pos + np.array(numbers.bodies[parent].r, float)
        joint = Joint(
            body.name,
            body.joint,  # type: ignore[arg-type]
            axis=tuple(map(float, body.axis)),
            armature=float(body.armature),
        )
        links.append(
            Link(
                body.name,
                body.parent,
                tuple(pos),
                _quat(np.array(body.rest, float)),
                (joint,),
                float(body.mass),
                tuple(map(float, body.r)),
                np.array(body.inertia, float).tolist(),
            )
        )
    return Character(tree.name, tuple(links))


def seven_bodies(*, numbers: bool = False) -> Tree:
    """The multibody system S of the thesis, Figure 3.1.

    R is free, its children are A and C; D and G hang on C, E on D, H on G. All joints are balls.

    Args:
        numbers: The thesis prints none for S and all stays symbols; True makes each body the
            cylinder of its section 3.9, 30 cm long, 7 cm wide, 1.54 kg.
    """
    parents = {"A": "R", "C": "R", "D": "C", "E": "D", "G": "C", "H": "G"}
    if not numbers:
        bodies = [Body("R", joint="free"), *(Body(name, on) for name, on in parents.items())]
        return Tree(tuple(bodies), name="S")
    half, mass, radius = 0.15, 1.54, 0.035
    across = mass * (radius**2 / 4.0 + (2.0 * half) ** 2 / 12.0)
    solid: dict[str, Any] = {"mass": mass, "inertia": (across, across, mass * radius**2 / 2.0)}
    # all along -z but C, which points up; D and G leave its upper end to either side
    p = dict.fromkeys(parents, (0.0, 0.0, -half))
    r = p | {"C": (0.0, 0.0, half)}
    p |= {"C": (0.0, 0.0, half), "D": (radius, 0.0, half), "G": (-radius, 0.0, half)}
    bodies = [Body("R", joint="free", **solid)]
    bodies += [Body(name, on, p=p[name], r=r[name], **solid) for name, on in parents.items()]
    return Tree(tuple(bodies), GRAVITY, name="S")


def _body_names(character: Character) -> list[str]:
    """The link's name, or the joint's where a link has several."""
    taken = {link.name for link in character.links}
    names: list[str] = []
    for link in character.links:
        if len(link.joints) == 1:
            names.append(link.name)
            continue
        for joint in link.joints:
            # a joint may be called as another link is
            names.append(f"{link.name}.{joint.name}" if joint.name in taken else joint.name)
    return names


def _center(body: Jointed) -> Array:
    """Mass centre in the body's frame; a body without mass has it at its joint."""
    mass = body.inertia[3, 3]
    if mass > 0:
        # the spatial inertia holds m [c]x
        c: Array = body.inertia[[2, 0, 1], [4, 5, 3]] / mass
        return c
    return np.asarray(body.joint.pos if body.joint.kind in ("ball", "hinge") else (0.0, 0.0, 0.0))


def _arm(origin: Array, centers: list[Array], body: int) -> Vec:
    return vector(origin if body == WORLD else origin - centers[body])


def _quat(R: Array) -> tuple[float, ...]:
    """Unit quaternion w x y z of a rotation matrix: the largest eigenvector of Bar-Itzhack's K."""
    (a, b, c), (d, e, f), (g, h, i) = R
    K = np.array(
        [
            [a + e + i, h - f, c - g, d - b],
            [h - f, a - e - i, b + d, c + g],
            [c - g, b + d, e - a - i, f + h],
            [d - b, c + g, f + h, i - a - e],
        ]
    )
    quat = np.linalg.eigh(K)[1][:, -1]
    return tuple((quat * np.sign(quat[0] or 1.0)).tolist())
