"""Contacts of a keyframe file: who stands when, and where.

contacts:
  left_foot: [[0, 0.6]]                                  # all of the foot, from 0 to 0.6 s
  right_foot: {heel: [[0.5, 0.9]], toe: [[0.6, 1.1]]}    # its parts
footholds:
  left_foot: [[0.3, 0.09, 5]]                            # one [x, y, degrees] for each contact
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

import numpy as np

from poise.anatomy.feet import feet_of, tip_of
from poise.errors import ClipError
from poise.io.yaml_nodes import Node, Reader
from poise.math.arrays import Floats
from poise.model.character import Character, Vector
from poise.motion.authoring.spacetime import Travel
from poise.motion.editing.mirroring import Mirror
from poise.motion.keyframes.keys import Keyframes, Reach, Stand


class StandReader(Reader):
    """Reads contacts and footholds of a clip whose frame is known.

    Attributes:
        character: Whose motion it is.
        duration: [s].
        loop: How the root travels in one cycle; None: no loop.
        mirrored: Whether the second half of the loop mirrors the first.
    """

    character: Character
    duration: float
    loop: Travel | None
    mirrored: bool

    @property
    def mirror(self) -> Mirror:
        """The character in the mirror."""
        return Mirror.of(self.character)

    def mirror_link(self, name: str) -> str:
        """The link on the other side."""
        return self.mirror.pairs[name]

    def stands(self, found: dict[str, Node]) -> tuple[Stand, ...]:
        """Contacts with their footholds."""
        if "contacts" not in found:
            if "footholds" in found:
                raise self.error(found["footholds"], "footholds need contacts")
            return ()
        links = [link.name for link in self.character.links]
        nodes = self.mapping(found["contacts"], "contacts", links, (), "link")
        by_foot = {foot: self.contacts_of(foot, node) for foot, node in nodes.items()}
        stances = {foot: stances_of(stands) for foot, stands in by_foot.items()}
        if "footholds" in found:
            spots = self.mapping(found["footholds"], "footholds", by_foot, (), "foot")
            for foot, node in spots.items():
                self.put(foot, node, stances[foot])
        if self.mirrored:
            stances = self.with_images(stances, nodes)
        for foot, of in stances.items():
            self.check_apart(foot, of)
        return tuple(stand for of in stances.values() for stance in of for stand in stance)

    def contacts_of(self, foot: str, node: Node) -> list[Stand]:
        points = [point for point in feet_of(self.character) if foot in (point.foot, point.link)]
        if points and points[0].foot != foot:
            raise self.error(node, f"{foot!r} is a part of foot {points[0].foot!r}; name that")
        if not points:
            try:
                tip_of(self.character, foot)
            except ClipError as error:
                raise self.error(node, f"contacts: {error}") from error
        if node.kind != "mapping":
            return self.intervals(foot, "", node)
        parts = self.mapping(node, f"contacts of {foot!r}", ("heel", "toe"), (), "part")
        bare = Keyframes("", self.character, 1.0, 1.0, {})
        if not points or not all(bare.points_of(foot, part) for part in ("heel", "toe")):
            raise self.error(node, f"{foot!r} has no heel and toe; give its intervals alone")
        return [s for part, item in parts.items() for s in self.intervals(foot, part, item)]

    def intervals(self, foot: str, part: str, node: Node) -> list[Stand]:
        what = f"contacts of {foot!r}" + (f", {part}" if part else "")
        out: list[Stand] = []
        for item in self.items(node, what):
            start, stop = self.vector(item, f"{what}: an interval", 2)
            last = start + self.duration if self.loop is not None else self.duration
            if not 0.0 <= start < stop <= last + 1e-9:
                raise self.error(
                    item, f"{what}: [{start:g}, {stop:g}] must rise and lie in 0 to {last:g} s"
                )
            if self.loop is not None and start >= self.duration / (1 + self.mirrored) - 1e-9:
                where = "first half" if self.mirrored else "cycle"
                raise self.error(item, f"{what}: [{start:g}, {stop:g}] must begin in the {where}")
            if out and start <= out[-1].stop:
                raise self.error(
                    item,
                    f"{what}: [{start:g}, {stop:g}] and [{out[-1].start:g}, {out[-1].stop:g}] "
                    "must be apart, in the order of time",
                )
            out.append(Stand(foot, part, start, stop, line=item.line))
        return out

    def put(self, foot: str, node: Node, stances: list[list[Stand]]) -> None:
        """Give stances their footholds."""
        items = self.items(node, f"footholds of {foot!r}")
        if len(items) != len(stances):
            raise self.error(
                node, f"footholds of {foot!r}: {len(items)} for {len(stances)} contacts"
            )
        flat = any(point.foot == foot for point in feet_of(self.character))
        for i, (item, stance) in enumerate(zip(items, stances, strict=True)):
            what = f"foothold of {foot!r}"
            count = len(self.items(item, f"{what} ([x, y, degrees])"))
            if flat:
                x, y, *yaw = self.vector(item, f"{what} [x, y, degrees]", 2 if count == 2 else 3)
                spot: Vector = (x, y, float(np.radians(yaw[0])) if yaw else 0.0)
            else:
                spot = self.vector(item, f"{what}, which is no foot, [x, y]", 2)
            stances[i] = [replace(s, foothold=spot, foothold_line=item.line) for s in stance]

    def with_images(
        self, stances: dict[str, list[list[Stand]]], nodes: dict[str, Node]
    ) -> dict[str, list[list[Stand]]]:
        """Stances of both halves of a mirrored loop."""
        out = {foot: list(of) for foot, of in stances.items()}
        for foot, of in stances.items():
            try:
                other = self.mirror_link(foot)
            except ClipError as error:
                raise self.error(nodes[foot], f"mirror: {error}") from error
            for stance in of:
                out.setdefault(other, []).append([self.stand_image(s, other) for s in stance])
        return out

    def stand_image(self, stand: Stand, other: str) -> Stand:
        half, spot = self.duration / 2.0, stand.foothold
        if spot is not None:
            x, y, _ = self.half_on(np.array([spot[0], spot[1], 0.0])).tolist()
            spot = (x, y, *(-yaw for yaw in spot[2:]))
        return replace(
            stand, foot=other, start=stand.start + half, stop=stand.stop + half, foothold=spot
        )

    def check_apart(self, foot: str, stances: list[list[Stand]]) -> None:
        """Two stances of a foot must not touch, nor the last one the first of the next cycle."""
        spans = sorted(
            (min(s.start for s in x), max(s.stop for s in x), x[0].line) for x in stances
        )
        if self.loop is not None and spans:
            first = spans[0]
            spans.append((first[0] + self.duration, first[1] + self.duration, first[2]))
        for (a, b, _), (c, d, line) in pairwise(spans):
            whole = len(stances) == 1 and b - a >= self.duration - 1e-9
            if c <= b and not whole:
                raise self.error(
                    line,
                    f"contacts of {foot!r}: {a:g} to {b:g} s and {c:g} to {d:g} s overlap; write "
                    "what lasts into the next cycle as one interval that ends past the cycle",
                )

    def check_free(self, reaches: Iterable[Reach], stands: Iterable[Stand]) -> None:
        """Refuse that a limb reaches for one place while it stands on another."""
        from poise.motion.keyframes.targets import limb_of

        held = [stand for stand in stands if stand.foothold is not None]
        limbs = {s.foot: {x.name for x in limb_of(self.character, s.foot)} for s in held}
        for reach in reaches:
            limb = {link.name for link in limb_of(self.character, reach.link)}
            times = [reach.time] if self.loop is None else [reach.time, reach.time + self.duration]
            for stand in held:
                if limb & limbs[stand.foot] and any(stand.start <= t <= stand.stop for t in times):
                    raise self.error(
                        reach.line,
                        f"reach of {reach.link!r} at {reach.time:g} s: its limb stands on the "
                        f"foothold of {stand.foot!r} from {stand.start:g} to {stand.stop:g} s; "
                        "leave out one of the two",
                    )

    def half_on(self, x: Floats) -> Floats:
        """Places (..., 3) in the mirror, half a travel on."""
        assert self.loop is not None
        moved: Floats = x * [1.0, -1.0, 1.0] + np.array(self.loop.shift) / 2.0
        return moved


def stances_of(stands: list[Stand]) -> list[list[Stand]]:
    """Stands of one foot that overlap are one stance: heel, then toe."""
    out: list[list[Stand]] = []
    for stand in sorted(stands, key=lambda s: s.start):
        if out and stand.start <= max(s.stop for s in out[-1]):
            out[-1].append(stand)
        else:
            out.append([stand])
    return out
