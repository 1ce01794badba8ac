"""Contacts of a keyframe file: which foot stands when, and where.

contacts:
  left_foot: [[0, 0.6]]                                  # all of the foot, from 0 to 0.6 s
  right_foot: {heel: [[0.5, 0.9]], toe: [[0.6, 1.1]]}    # its parts
footholds:
  left_foot: [[0.3, 0.09, 5]]                            # one [x, y, degrees] for each contact

Standing feet of keyframes: every point of a sole that stands, on its foothold.

Three things keep the leg from jumping. Where only heel or toe stands, the other part comes down and
goes up smoothly. In the air, the correction is led from one foothold to the next. And a leg that
still jumps, since its joints are at their limits, is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise

import numpy as np
from scipy.interpolate import CubicSpline

from poise.anatomy.feet import feet_of, positions, tip_middle, tip_of
from poise.anatomy.rest_pose import rest_pose
from poise.errors import ClipError
from poise.io.yaml_nodes import Node, Reader
from poise.math import rotation
from poise.math.arrays import Floats, Mask, runs
from poise.model import configuration
from poise.model.character import Character, Link, Vector
from poise.motion.authoring.spacetime import Travel, travel_power
from poise.motion.editing.mirroring import Mirror
from poise.motion.ik.goals import Place
from poise.motion.keyframes.keys import Keyframes, Reach, Stand
from poise.motion.keyframes.targets import (
    TOLERANCE,
    WEIGHT,
    dofs_of_link,
    joints_at_limit,
    limb_of,
    solve_limbs,
    unreachable_error,
)

# reading


class StandReader(Reader):
    """Reads contacts and footholds of a clip whose frame is known.

    Attributes:
        character: The character that moves.
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

    @contextmanager
    def mirror_errors(self, node: Node | int) -> Iterator[None]:
        """Reports that something has no mirror image as an error at a node or line."""
        try:
            yield
        except ClipError as error:
            raise self.error(node, f"mirror: {error}") from error

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
            self.check_no_overlap(foot, of)
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
                    "must not overlap, and be in the order of time",
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
            with self.mirror_errors(nodes[foot]):
                other = self.mirror.pairs[foot]
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

    def check_no_overlap(self, foot: str, stances: list[list[Stand]]) -> None:
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


# standing feet

FASTEST = 12.0
"""Corrections of a standing limb that change faster are jumps [rad/s, m/s]."""

SOFT = 1e-4
"""Weight of a part of the foot that is up, as a fraction: joint limits are stiffer."""


def place_feet(keys: Keyframes, times: Floats, q: Floats) -> Floats:
    """Poses (k, nq) with every standing foot that has a foothold on it."""
    stands = [stand for stand in keys.stands if stand.foothold is not None]
    if not stands:
        return q
    character = keys.character
    owned = [(stand, goal) for stand in stands for goal in _stand_goals(keys, stand, times)]
    goals = [goal for _, goal in owned]
    feet = dict.fromkeys(stand.foot for stand in stands)
    free = {foot: limb_of(character, foot) for foot in feet}
    moving = [link for limb in free.values() for link in limb]
    solved, residual = solve_limbs(character, q, goals, moving)
    soft = [goal for foot in feet for goal in _rolling(keys, foot, times, solved)]
    if soft:
        solved, residual = solve_limbs(character, q, [*goals, *soft], moving, len(goals))
    worst = int(residual.max(axis=1).argmax())
    if residual[worst].max() > TOLERANCE:
        i, (stand, goal) = int(residual[worst].argmax()), owned[worst]
        at = f"{keys.source}:{stand.foothold_line}: foothold of {stand.foot!r} at {times[i]:.3f} s"
        raise unreachable_error(at, character, solved[i], goal, i, residual[worst, i])
    step = configuration.difference(character, solved, q)
    for foot, limb in free.items():
        of = [s for s in stands if s.foot == foot]
        on = np.any([keys.standing(s, times).any(axis=1) for s in of], axis=0)
        v = [i for x in limb for i in dofs_of_link(character, x)]
        _check_steady(keys, foot, limb, times, solved, step[:, v], on)
        step[:, v] = _interpolate(step[:, v], on, keys.loop is not None)
    return configuration.integrate(character, q, step)


def _rolling(keys: Keyframes, foot: str, times: Floats, q: Floats) -> list[Place]:
    """Goals by which heel and toe, where one of them is up, come down and go up smoothly.

    Args:
        keys: The keyframes.
        foot: Name of the foot.
        times: Of the frames [s].
        q: Poses with the parts that are down in their places, shape (k, nq).
    """
    of = keys.points_of(foot)
    stands = [s for s in keys.stands if s.foot == foot and s.foothold is not None]
    if not any(stand.part for stand in stands):
        return []
    on = np.zeros((len(times), len(of)), dtype=bool)
    for stand in stands:
        part = [of.index(i) for i in keys.points_of(foot, stand.part)]
        down = np.asarray(keys.standing(stand, times).any(axis=1))
        on[:, part] |= down[:, None]
    free = _freedom(on, keys.loop is not None)
    at = positions(keys.character, [keys.points[i] for i in of], q)
    goals = []
    for stance in stances_of(stands):
        start, stop = min(s.start for s in stance), max(s.stop for s in stance)
        whole = _stand_goals(keys, replace(stance[0], part="", start=start, stop=stop), times)
        for i, goal in enumerate(whole):
            flat = np.asarray(goal.target)
            target = flat + free[:, None] * (at[:, i] - flat)
            up = ~on[:, i] & (free < 1.0)
            goals.append(Place(goal.link, target, goal.point, np.asarray(goal.weight) * up * SOFT))
    return goals


def _freedom(on: Mask, loop: bool) -> Floats:
    """How free a foot is (k,): 0 next to frames in which all of it stands, to 1 at the far end."""
    k = len(on)
    if loop:
        on = np.concatenate([on[:-1], on[:-1], on[:-1]])
    flat = np.asarray(on.all(axis=1))
    some = on.any(axis=1) & ~flat
    free = np.ones(len(on))
    for a, b in runs(some):
        way = np.arange(1, b - a + 1) / (b - a + 1)
        for edge, x in ((a - 1, way), (b, way[::-1])):
            if 0 <= edge < len(on) and flat[edge]:
                free[a:b] *= x * x * (3.0 - 2.0 * x)
    return free[k - 1 : 2 * k - 1] if loop else free


def _check_steady(
    keys: Keyframes,
    foot: str,
    limb: Sequence[Link],
    times: Floats,
    q: Floats,
    step: Floats,
    on: Mask,
) -> None:
    """Refuse a limb that jumps from frame to frame to stay on its foothold."""
    both = on[1:] & on[:-1]
    turn = np.abs(np.diff(step, axis=0)).max(axis=1) * both
    if not both.any() or turn.max() < FASTEST * (times[1] - times[0]):
        return
    i = int(turn.argmax()) + int(joints_at_limit(keys.character, q[turn.argmax() + 1], limb) != [])
    line = next(
        s.foothold_line
        for s in keys.stands
        if s.foot == foot and keys.standing(s, times[i : i + 1]).any()
    )
    names = ", ".join(joints_at_limit(keys.character, q[i], limb)) or "none"
    raise ClipError(
        f"{keys.source}:{line}: foothold of {foot!r}: the limb jumps by "
        f"{np.degrees(turn.max()):.0f} degrees at {times[i]:.3f} s to stay on it; joints at their "
        f"limits: {names}. Let the heel or the foot go earlier, or move the root"
    )


def _stand_goals(keys: Keyframes, stand: Stand, times: Floats) -> list[Place]:
    """Goals of a stand's points."""
    assert stand.foothold is not None
    character = keys.character
    on = keys.standing(stand, times)
    x, y, *yaw = stand.foothold
    if yaw:
        points = [keys.points[i] for i in keys.points_of(stand.foot, stand.part)]
        rest = positions(character, points, character.rest_q)
        whole = [keys.points[i] for i in keys.points_of(stand.foot)]
        ground = positions(character, whole, character.rest_q)[:, 2].min()
        origin = rest_pose(character).position(stand.foot)
        flat = rest - [origin[0], origin[1], ground]
        flat = rotation.rotate(rotation.turn((0.0, 0.0, 1.0), yaw[0]), flat) + [x, y, 0.0]
        spots = [(p.link, p.pos, spot) for p, spot in zip(points, flat, strict=True)]
    else:
        spots = [(stand.foot, tip_middle(character, stand.foot), np.array([x, y, 0.0]))]
    goals = []
    for link, point, spot in spots:
        target = np.tile(spot, (len(times), 1))
        for cycle in (-1, 1):
            if keys.loop is not None and on[:, cycle + 1].any():
                shift, angle = travel_power(keys.loop, cycle)
                turn = rotation.turn((0.0, 0.0, 1.0), angle)
                target[on[:, cycle + 1]] = rotation.rotate(turn, spot) + shift
        goals.append(Place(link, target, point, WEIGHT * on.any(axis=1)))
    return goals


def _interpolate(step: Floats, on: Mask, loop: bool) -> Floats:
    """Steps (k, n), zero where not on, led smoothly from one stretch of on to the next."""
    k = len(step)
    if on.all():
        return step
    if loop:
        # the last frame is the first one
        at = np.flatnonzero(on[:-1])
        known = np.concatenate([at + cycle * (k - 1) for cycle in (-1, 0, 1)])
        values = np.tile(step[at], (3, 1))
    else:
        at = np.flatnonzero(on | (np.arange(k) == 0) | (np.arange(k) == k - 1))
        known, values = at, step[at]
    if len(known) < 2:
        return step
    out: Floats = step.copy()
    out[~on] = CubicSpline(known, values)(np.flatnonzero(~on))
    return out
