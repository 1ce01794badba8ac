"""Checks of a whole character: one tree, different names, and something to move for each joint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from poise.errors import CharacterError, check_name, shorten, unknown_name
from poise.model.inertia import composite_inertia
from poise.model.values import tuple_of

if TYPE_CHECKING:
    from poise.model.character import Character, Link

SINGULAR = 1e-12
"""A joint that carries less inertia than this, relative to what hangs on it, is singular."""


def depth_first(name: str, links: tuple[Link, ...]) -> tuple[Link, ...]:
    """Check that links form one tree, and put every parent before its children, depth-first."""
    at = f"character {name!r}"
    _check_names(at, links)
    names = [link.name for link in links]
    children: dict[str | None, list[Link]] = {None: [], **{name: [] for name in names}}
    for link in links:
        if link.parent not in children:
            raise CharacterError(
                f"link {link.name!r}: parent: {unknown_name('link', link.parent, names)}"
            )
        children[link.parent].append(link)
    roots = [repr(link.name) for link in children[None]]
    if len(roots) > 1:
        raise CharacterError(
            f"{at} has {len(roots)} roots: {shorten(roots)}; give all but one a parent, "
            "or make each its own character: a world takes several"
        )
    ordered, stack = [], children[None][::-1]
    while stack:
        ordered.append(stack.pop())
        stack += children[ordered[-1].name][::-1]
    if len(ordered) < len(links):
        raise CharacterError(f"{at}: {_cycle(links, ordered)}")
    return tuple(ordered)


def _check_names(at: str, links: tuple[Link, ...]) -> None:
    if not links:
        raise CharacterError(f"{at} has no links; it needs at least one")
    joints = [joint.name for link in links for joint in link.joints]
    for noun, names in (("link", [link.name for link in links]), ("joint", joints)):
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise CharacterError(f"{at} has two {noun}s named {twice!r}; {noun} names must differ")


def _cycle(links: Sequence[Link], reached: Sequence[Link]) -> str:
    """Name a cycle among the links that no root reaches."""
    parent = {link.name: link.parent for link in links}
    names = {link.name for link in reached}
    name: str = next(link.name for link in links if link.name not in names)
    path: list[str] = []
    while name not in path:
        path.append(name)
        name = str(parent[name])
    loop = " -> ".join(repr(x) for x in [*path[path.index(name) :], name])
    return f"the parents of its links run in a circle: {loop}; one of them must be the root"


def checked_limbs(limbs: object, links: Sequence[Link]) -> Mapping[str, tuple[str, ...]]:
    if not isinstance(limbs, Mapping):
        raise CharacterError(f"limbs must map names to tuples of link names, got {limbs!r:.80}")
    known = [link.name for link in links]
    checked = {}
    for limb, names in limbs.items():
        check_name("a limb's name", limb)
        names = tuple_of(str, f"limb {limb!r}", names)
        for name in names:
            if name not in known:
                raise CharacterError(f"limb {limb!r}: {unknown_name('link', name, known)}")
        if len(set(names)) != len(names):
            raise CharacterError(f"limb {limb!r} names a link twice: {shorten(names)}")
        checked[limb] = names
    return MappingProxyType(checked)


def check_moving(character: Character) -> None:
    """Check that joints are placed where they may be, and that each has something to move."""
    for link in character.links:
        free = [joint.name for joint in link.joints if joint.kind == "free"]
        if free and link.parent is not None:
            raise CharacterError(
                f"joint {free[0]!r}: a free joint must be on the root link "
                f"{character.links[0].name!r}, not on {link.name!r}"
            )
        if free and len(link.joints) > 1:
            raise CharacterError(
                f"link {link.name!r}: free joint {free[0]!r} must be its only joint"
            )
    if character.mass <= 0.0:
        raise CharacterError(f"character {character.name!r} has no mass")
    _check_masses(character)
    _check_joint_inertias(character)


def _check_masses(character: Character) -> None:
    """Check that every moving body, welded links included, has mass."""
    forest = character.forest
    for link, body in zip(character.links, forest.link_body.tolist(), strict=True):
        if link.joints and forest.mass[body] == 0.0:
            end = body not in forest.parent
            raise CharacterError(
                f"link {link.name!r} moves by joint {link.joints[-1].name!r} but has no mass"
                + (": a massless chain end; " if end else "; ")
                + "give it mass, or take its joints away"
                + ("" if end else " and put them on the next link")
            )


def _check_joint_inertias(character: Character) -> None:
    """Check that every joint carries inertia in each of its directions, at q = 0."""
    forest = character.forest
    for b, (m, mc, Io) in enumerate(zip(*composite_inertia(forest), strict=True)):
        joint, link = character.joints[b], character.links[forest.link[b]]
        if joint.kind == "hinge":
            least = Io[2, 2]
        elif joint.kind == "ball":
            least = np.linalg.eigvalsh(Io)[0]
        elif joint.kind == "free":
            least = np.linalg.eigvalsh(Io - (mc @ mc * np.eye(3) - np.outer(mc, mc)) / m)[0]
        else:
            least = m
        if least + joint.armature <= SINGULAR * np.trace(Io):
            raise CharacterError(
                f"joint {joint.name!r} carries no inertia about its axis, or one of its axes; "
                f"give link {link.name!r} inertia, or the joint armature"
            )
