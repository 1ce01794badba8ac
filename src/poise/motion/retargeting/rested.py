"""A body in its rest pose: where its links are, how they are turned, where its bones point."""

from __future__ import annotations

import numpy as np

from poise import dynamics
from poise.anatomy.body import SIDES, Body
from poise.anatomy.feet import Point, feet_of
from poise.math.arrays import Floats
from poise.math.rotation import multiply, quat_matrix, rotate
from poise.model.geometry import surface_points
from poise.motion.retargeting.matching import Pair

UP = np.array([0.0, 0.0, 1.0])


class Rested:
    """A body in its rest pose: places, orientations, bones.

    Attributes:
        body: The body.
        p: Places of the links [m], shape (links, 3).
        R: Orientations of the links, shape (links, 4).
        points: Points of the soles.
        soles: Links that carry them.
    """

    def __init__(self, body: Body) -> None:
        self.body = body
        self.character = body.character
        self.index = {link.name: i for i, link in enumerate(self.character.links)}
        self.p, self.R = dynamics.forward_kinematics(self.character, self.character.rest_q)
        self.points = sole_points(body)
        self.soles = {point.link for point in self.points}

    def at(self, name: str) -> Floats:
        """Place of a link [m]."""
        place: Floats = self.p[self.index[name]]
        return place

    def turned(self, name: str) -> Floats:
        """Orientation of a link."""
        turned: Floats = self.R[self.index[name]]
        return turned

    def bone(self, pair: Pair, name: str) -> Floats:
        """Direction of a link's bone: to the next link of its limb, or to where it ends."""
        chain = self.body.chain(pair.limb, pair.side) if pair.limb else []
        after = chain[chain.index(name) + 1 :] if name in chain else []
        own = self.at(name)
        along = np.zeros(3)
        for other in after:
            along = self.at(other) - own
            if np.linalg.norm(along) > 1e-3:
                break
        if np.linalg.norm(along) <= 1e-3:
            along = self._far(name) if pair.role == "head" else self._end(name)
        size = float(np.linalg.norm(along))
        return along / size if size > 1e-6 else np.zeros(3)

    def _end(self, name: str) -> Floats:
        i = self.index[name]
        shapes = self.character.links[i].shapes
        if not shapes:
            return np.zeros(3)
        points = np.concatenate([surface_points(shape) for shape in shapes])
        middle = (points.min(axis=0) + points.max(axis=0)) / 2.0
        return rotate(self.R[i], middle)

    def _far(self, name: str) -> Floats:
        """From a link to the points of its shapes that are farthest, in world axes [m]."""
        i = self.index[name]
        shapes = self.character.links[i].shapes
        if not shapes:
            return np.zeros(3)
        points = np.concatenate([surface_points(shape) for shape in shapes])
        far = np.linalg.norm(points, axis=1)
        return rotate(self.R[i], points[far > 0.9 * far.max()].mean(axis=0))

    def reach(self, name: str, direction: Floats) -> tuple[float, float]:
        """How far a link and those on it reach along a direction, least and most [m]."""
        along, inside = [0.0], {name}
        for i, link in enumerate(self.character.links):  # parents come first
            if link.name != name and link.parent not in inside:
                continue
            inside.add(link.name)
            own = self.p[i] - self.at(name)
            along.append(float(own @ direction))
            for shape in link.shapes:
                points = own + rotate(self.R[i], surface_points(shape))
                along += (points @ direction).tolist()
        return min(along), max(along)

    def sole(self, name: str) -> Floats:
        """Forward, left and up of a sole as columns (3, 3): level, but for legs that rest apart."""
        i = self.index[name]
        up = UP
        for shape in self.character.links[i].shapes:
            if shape.kind == "box":
                axes = quat_matrix(multiply(self.R[i], shape.quat))
                k = int(np.argmax(np.abs(axes[2])))
                if abs(axes[2, k]) > np.cos(0.6):
                    up = axes[:, k] * np.sign(axes[2, k])
                break
        forward = self.body.frame[:, 0]
        ahead = self._end(name)
        ahead = ahead - (ahead @ up) * up
        if np.linalg.norm(ahead) > 0.02 and ahead @ forward > 0.8 * np.linalg.norm(ahead):
            forward = ahead
        forward = forward - (forward @ up) * up
        forward = forward / np.linalg.norm(forward)
        return np.stack([forward, np.cross(up, forward), up], axis=1)

    def leg_length(self) -> float | None:
        """Length of a leg from the hip to the sole, the mean of both [m]; None without legs."""
        legs = []
        for side in SIDES:
            chain = [self.body.get("leg", side, role) for role in ("thigh", "shank", "foot")]
            if all(chain):
                points = [self.at(names[0]) for names in chain]
                bones = float(np.linalg.norm(np.diff(points, axis=0), axis=1).sum())
                legs.append(bones + self._sole_depth(chain[2][0]))
        return sum(legs) / len(legs) if legs else None

    def _sole_depth(self, foot: str) -> float:
        """How far the sole is below a foot's joint [m]."""
        tips = [
            self.p[self.index[point.link]] + rotate(self.R[self.index[point.link]], point.pos)
            for point in self.points
            if foot in (point.foot, point.link)
        ]
        up = self.sole(foot)[:, 2]
        own = self.at(foot)
        low = [float((own - tip) @ up) for tip in tips]
        return max(low) if low else max(float(own[2] - self.p[:, 2].min()), 0.0)

    def hips(self) -> Floats:
        """The point between the hips, from the root link, in world axes at rest (3,) [m]."""
        thighs = [n for side in SIDES for n in self.body.get("leg", side, "thigh")[:1]]
        root = self.character.links[0].name
        if len(thighs) != 2 or any(self.character.link(n).parent != root for n in thighs):
            return np.zeros(3)
        middle: Floats = np.mean([self.at(n) for n in thighs], axis=0) - self.p[0]
        return middle


def sole_points(body: Body) -> tuple[Point, ...]:
    """The points by which a body stands: `feet_of`, but a shin that reaches low is no foot."""
    points = feet_of(body.character)
    ends = ("foot", "toe", "hand")
    foot: dict[tuple[str, str], str] = {}
    for point in points:
        limb, side, role = body.where(point.link) or ("", "", "")
        if role in ends:
            foot.setdefault((limb, side), point.link)
    kept = []
    for point in points:
        limb, side, role = body.where(point.link) or ("", "", "")
        own = foot.get((limb, side))
        if own is None:
            kept.append(point)
        elif role in ends:
            kept.append(Point(own, point.link, point.pos))
    # toes whose names say nothing hang on what is kept
    names = {point.foot for point in kept}
    return tuple(
        point if body.where(point.link) else Point(_above(body, point, names), *point[1:])
        for point in kept
    )


def _above(body: Body, point: Point, feet: set[str]) -> str:
    """The foot that a toe hangs on."""
    at: str | None = point.link
    while at is not None:
        if at in feet and body.where(at):
            return at
        at = body.character.link(at).parent
    return point.foot
