"""Which link of one character moves which of another.

Links are matched by what they are (`anatomy.body`): thigh with thigh, the last link of a trunk with
the last of the other. Links that are none of these, as the segments of a snake, are matched by
equal names. A map, as a dictionary or a small YAML file, says otherwise:

    left_forearm: LeftForeArm     # link of the target: joint of the source
    tail: null                    # this one follows nothing
    ignore: [LeftToeBase]         # links of either side that do not count
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from poise.anatomy.body import ROLES, SIDES, Body, body_of
from poise.errors import ClipError, shorten, unknown_name
from poise.io.files import read_text
from poise.io.yaml_nodes import Node, Reader
from poise.math.arrays import Floats
from poise.model.character import Character

LARGEST_MAP = 2**18  # [bytes]

MapLike = Mapping[str, Any] | str | os.PathLike[str] | None


class Pair(NamedTuple):
    """A link of the target and the link of the source that moves it.

    Attributes:
        target: Link of the target.
        source: Link of the source.
        limb: What both are part of: "leg", "arm", "trunk", "head", "tail"; "" if a map says so.
        side: "left", "right" or "".
        role: "thigh", "hand", ...
    """

    target: str
    source: str
    limb: str = ""
    side: str = ""
    role: str = ""


@dataclass(frozen=True)
class Match:
    """How two characters fit together; printed, it is a table."""

    target: Body
    source: Body
    pairs: tuple[Pair, ...]

    @property
    def unmatched_target(self) -> list[str]:
        """Links of the target that nothing moves; they stay as they are at rest."""
        return [name for name in self.target.rest.index if name not in {x[0] for x in self.pairs}]

    @property
    def unmatched_source(self) -> list[str]:
        """Links of the source that move nothing."""
        return [name for name in self.source.rest.index if name not in {x[1] for x in self.pairs}]

    def pair(self, limb: str, side: str, role: str) -> Pair | None:
        """The pair of a role, the last if there are several."""
        found = [p for p in self.pairs if (p.limb, p.side, p.role) == (limb, side, role)]
        return found[-1] if found else None

    def bones(self, pair: Pair) -> tuple[Floats, Floats]:
        """Directions of the bones of a pair's target and source at rest, (3,) each."""
        target, source, *part = pair
        return self.target.bone(target, *part), self.source.bone(source, *part)

    def in_line(self) -> str:
        """The same on one line, for messages."""
        pairs = [f"{pair.target} - {pair.source}" for pair in self.pairs]
        ours, theirs = self.target.character.name, self.source.character.name
        return (
            f"matched: {shorten(pairs, 30) or 'none'}; "
            f"not matched of {ours!r}: {shorten(self.unmatched_target, 30) or 'none'}; "
            f"of {theirs!r}: {shorten(self.unmatched_source, 30) or 'none'}"
        )

    def __str__(self) -> str:
        ours, theirs = self.target.character.name, self.source.character.name
        width = max([len(ours), *(len(pair.target) for pair in self.pairs)])
        rows = [f"{ours:{width}}  {theirs}"]
        rows += [f"{pair.target:{width}}  {pair.source}" for pair in self.pairs]
        rows.append(f"not matched of {ours}: {shorten(self.unmatched_target) or 'none'}")
        rows.append(f"not matched of {theirs}: {shorten(self.unmatched_source) or 'none'}")
        return "\n".join(rows)


def match(source: Character, target: Character, map: MapLike = None) -> Match:
    """Match the links of a target with those of a source.

    Args:
        source: The character of the motion.
        target: The character that gets it.
        map: Pairs that differ, as a dictionary {target link: source link or None}, with a list
            `ignore`, or the path of a YAML file that says so.
    """
    given, ignored = read_map(map, source, target)
    one, other = (
        body_of(each, frozenset(link.name for link in each.links if link.name in ignored))
        for each in (target, source)
    )
    pairs = [p for p in _pairs(one, other) if p.target not in given]
    for name, moved_by in given.items():
        if moved_by is not None:
            limb, side, role = one.where(name) or other.where(moved_by) or ("", "", "")
            pairs.append(Pair(name, moved_by, limb, side, role))
    _check_sides(pairs)
    found = Match(one, other, tuple(sorted(pairs, key=lambda p: one.rest.index[p.target])))
    limbs = [p for p in found.pairs if p.limb in ("arm", "leg")]
    fewer = min(sum(bool(link.joints) for link in c.links) for c in (target, source))
    if not limbs and not given and len(found.pairs) < 0.5 * fewer:
        raise ClipError(
            f"the links of {target.name!r} do not match those of {source.name!r}; a map can say "
            f"which do; {found.in_line()}"
        )
    return found


def read_map(
    map: MapLike, source: Character, target: Character
) -> tuple[dict[str, str | None], set[str]]:
    """What a map says: pairs by target link, and names to ignore."""
    if map is None:
        return {}, set()
    ours, theirs = ([link.name for link in c.links] for c in (target, source))
    if isinstance(map, (str, os.PathLike)):
        return _MapFile(os.fspath(map), ours, theirs).read()
    if not isinstance(map, Mapping):
        raise ClipError(f"a map is a dictionary or the path of a YAML file, got {map!r:.80}")
    given = dict(map)
    ignore = given.pop("ignore", ())
    if not isinstance(ignore, (list, tuple, set)):
        raise ClipError(f"ignore must be a list of links, got {ignore!r:.80}")
    for name in ignore:
        if name not in ours and name not in theirs:
            raise ClipError(unknown_name("link", name, [*ours, *theirs]))
    for name, moved_by in given.items():
        if name not in ours:
            raise ClipError(unknown_name(f"link of {target.name!r}", name, ours, "links"))
        if moved_by is not None and moved_by not in theirs:
            raise ClipError(unknown_name(f"link of {source.name!r}", moved_by, theirs, "links"))
    return given, set(ignore)


class _MapFile(Reader):
    """A map in a YAML file."""

    def __init__(self, path: str, ours: list[str], theirs: list[str]) -> None:
        super().__init__(path, ClipError, 10_000)
        self.ours, self.theirs = ours, theirs

    def read(self) -> tuple[dict[str, str | None], set[str]]:
        """Pairs by target link, and names to ignore."""
        text = read_text(self.name, LARGEST_MAP, ClipError)
        found = self.mapping(self.tree(text), "a map", [*self.ours, "ignore"], noun="link")
        ignore = found.pop("ignore", None)
        names = [] if ignore is None else self.items(ignore, "ignore")
        ignored = {self.link(node, [*self.ours, *self.theirs]) for node in names}
        given = {
            name: None if node.is_null else self.link(node, self.theirs)
            for name, node in found.items()
        }
        return given, ignored

    def link(self, node: Node, known: list[str]) -> str:
        """A name that is known."""
        name = self.text(node, "a link")
        if name not in known:
            raise self.error(node, unknown_name("link", name, known))
        return name


def _pairs(target: Body, source: Body) -> list[Pair]:
    pairs = []
    for limb, roles in ROLES.items():
        for side in SIDES if limb in ("arm", "leg") else ("",):
            for role in roles:
                ours, theirs = target.get(limb, side, role), source.get(limb, side, role)
                if role == "shoulder":
                    ours, theirs = ours[:1], theirs[:1]
                pairs += [Pair(a, b, limb, side, role) for a, b in _along(ours, theirs)]
    return pairs + [Pair(name, name) for name in _nameless(target) if name in _nameless(source)]


def _nameless(body: Body) -> list[str]:
    """Links that are no part of a limb, and not ignored."""
    names = body.rest.index
    return [name for name in names if name not in body.ignored and body.where(name) is None]


def _check_sides(pairs: list[Pair]) -> None:
    """Refuse one link of the source for the same part of both sides."""
    moved: dict[tuple[str, str, str], Pair] = {}
    for pair in pairs:
        if not pair.side:
            continue
        other = moved.setdefault((pair.limb, pair.role, pair.source), pair)
        if other.side != pair.side:
            raise ClipError(
                f"the map lets {pair.source!r} move both {other.target!r} and {pair.target!r}, the "
                f"left and the right {pair.role}; each side takes its own, or null"
            )


def _along(ours: list[str], theirs: list[str]) -> list[tuple[str, str]]:
    """Pairs along two chains of one role: the last with the last, the others by their share."""
    if not theirs:
        return []
    n, m = len(ours), len(theirs)
    return [(a, theirs[max(round((i + 1) * m / n) - 1, 0)]) for i, a in enumerate(ours)]
