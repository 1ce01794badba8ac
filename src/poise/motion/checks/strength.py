"""Whether a person has the strength for a motion.

The joint torques of a motion, under the ground forces that explain it, are compared with
the largest moments that people were measured to hold: `anatomy.MOMENTS`, each with its source.
These are means of ordinary young people at rest or in slow motion. More than that have

    muscles that are stretched: up to 1.4 times as much (Webber and Kriellaars 1997, J. Appl.
    Physiol. 83:40, from memory; Westing et al. 1988, Eur. J. Appl. Physiol. 58:100, found no more
    than when they hold still, so 1.4 is generous);
    the strong: two standard deviations above the mean, each 0.3 of it (`anatomy`);
    the calf with a straight knee, a fifth more (`anatomy`);
    the ankle to the sides, where bones and ligaments hold 34 and 48 N m besides, of 75 kg
    (Parenteau et al. 1998, J. Biomech. Eng. 120:105, from memory);
    and figures of the table that no source confirms count twice, ours.

The bound is then 1.4 (1 + 2 x 0.3) = 2.24 times the table's figure, and these additions. What
people are known to do lies inside: walking needs about 1.6 N m/kg at the ankle (Winter 1991),
running at 3.5 m/s for about 3 at ankle and knee, sprinting at 9 m/s for about 4 at the ankle, 3.6
at the knee and 4.3 at the hip (Schache et al. 2011, Med. Sci. Sports Exerc. 43:1260; all three
from memory).

Where the ground does not explain the motion, the torques are unknown; such frames and impacts are
left out. So are directions in which a joint has ligaments but no muscle (a knee to the side).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from poise import dynamics
from poise.anatomy.body import Body, body_of
from poise.anatomy.strength import MOMENTS, UNCONFIRMED
from poise.math import rotation
from poise.math.arrays import Floats
from poise.model.character import Character
from poise.motion.checks.claims import RESIDUAL, Analysis, Finding

STRETCHED = 1.4
STRONG = 1.6
MORE = {("ankle", "plantarflexion"): 1.2}
DOUBT = 2.0
PASSIVE = {("ankle", "inversion"): 0.45, ("ankle", "eversion"): 0.64}  # [N m/kg]

JOINTS = {
    "thigh": "hip",
    "shank": "knee",
    "foot": "ankle",
    "arm": "shoulder",
    "forearm": "elbow",
    "hand": "wrist",
    "trunk": "trunk",
    "neck": "neck",
    "head": "neck",
}
"""Which joint carries a link, by the link's role."""

WAYS: dict[str, tuple[tuple[str, str], tuple[str, str], tuple[str, str]]] = {
    "hip": (("abduction", "adduction"), ("extension", "flexion"), ("external", "internal")),
    "knee": (("", ""), ("flexion", "extension"), ("", "")),
    "ankle": (("eversion", "inversion"), ("plantarflexion", "dorsiflexion"), ("", "")),
    "shoulder": (("abduction", "adduction"), ("extension", "flexion"), ("external", "internal")),
    "elbow": (("", ""), ("extension", "flexion"), ("", "")),
    "wrist": (("extension", "flexion"), ("ulnar", "radial"), ("supination", "pronation")),
    "trunk": (("lateral", "lateral"), ("flexion", "extension"), ("rotation", "rotation")),
    "neck": (("lateral", "lateral"), ("flexion", "extension"), ("rotation", "rotation")),
}
"""What a torque on the left link does about +x and -x, +y and -y, +z and -z of a body that stands
with hanging arms and looks along +x. On the right, x and z are the other way round."""


class Demand(NamedTuple):
    """A moment that a motion needs at a joint, frame by frame.

    Attributes:
        link: Name of the link that it turns.
        joint: Of the body: hip, knee, ...
        way: What it does: extension, flexion, ...
        moment: Per body mass [N m/kg], shape (k,).
        bound: What the strong have [N m/kg].
    """

    link: str
    joint: str
    way: str
    moment: Floats
    bound: float


def check_strength(analysis: Analysis) -> Finding:
    """The joint torques are ones that a strong person has, outside of impacts."""
    claim = "a strong person could do it"
    character = analysis.clip.character
    why = body_of(character).why_no_person
    if why:
        return Finding(claim, None, where=f"no table for {character.name!r}: {why}")
    found = joint_demands(character, analysis.q, analysis.explained.torque)
    over = np.stack([one.moment / one.bound for one in found])
    known = analysis.calm & (analysis.left <= RESIDUAL)
    worst = found[int(np.where(known, over, -np.inf).max(axis=1).argmax())]
    what = f"{worst.joint} {worst.way} of {worst.link}: there are {worst.bound:.2g} N m/kg"
    size = 100.0 * over.max(axis=0)
    return analysis.found(claim, size, 100.0, "% of the strength", known, what)


def joint_demands(character: Character, q: Floats, torque: Floats) -> list[Demand]:
    """Moments of torques (k, nv) at the joints of a person, in each of their directions."""
    body = body_of(character)
    found: list[Demand] = []
    for link, (joint, side) in rated_links(body).items():
        about = moments(body, link, q, torque) / character.mass
        for axis, ways in enumerate(WAYS[joint]):
            # the mirror turns what is about x and z
            flip = -1.0 if side == "right" and axis != 1 else 1.0
            for sign, way in zip((1.0, -1.0), ways, strict=True):
                if way:
                    moment, bound = flip * sign * about[:, axis], largest_moment(joint, way)
                    found.append(Demand(link, joint, way, moment, bound))
    return found


def largest_moment(joint: str, way: str) -> float:
    """The largest moment of the strong [N m/kg]."""
    factor = STRETCHED * STRONG * MORE.get((joint, way), 1.0)
    muscle = factor * MOMENTS[joint][way] * (DOUBT if (joint, way) in UNCONFIRMED else 1.0)
    return muscle + PASSIVE.get((joint, way), 0.0)


def torque_bounds(character: Character) -> tuple[Floats, Floats]:
    """Least and largest torques of the strong [N m], (nv,) each; of a body that rests upright.

    Axes of balls and hinges are taken as those of the body; what has no muscle is not bounded.
    """
    least, largest = np.full(character.nv, -np.inf), np.full(character.nv, np.inf)
    for name, (joint, side) in rated_links(body_of(character)).items():
        for one in character.link(name).joints:
            axes = np.eye(3) if one.kind == "ball" else np.array([one.axis])
            for k, axis in enumerate(axes, character.v_slice(one).start):
                i = int(np.abs(axis).argmax())
                flip = np.sign(axis[i]) * (-1.0 if side == "right" and i != 1 else 1.0)
                more, less = (
                    largest_moment(joint, way) * character.mass if way else np.inf
                    for way in WAYS[joint][i][:: int(flip)]
                )
                least[k], largest[k] = -less, more
    return least, largest


def rated_links(body: Body) -> dict[str, tuple[str, str]]:
    """Links whose joint is in the table: its name in the body, and its side."""
    moving = {link.name for link in body.character.links[1:] if link.joints}
    found: dict[str, tuple[str, str]] = {}
    for (_, side), roles in body.links.items():
        for role, links in roles.items():
            # of a limb's links of one role the first: the others are twists of it
            names = links if role in ("trunk", "neck", "head") else links[:1]
            for name in names:
                if role in JOINTS and name in moving:
                    found[name] = JOINTS[role], side
    return found


def moments(body: Body, link: str, q: Floats, torque: Floats) -> Floats:
    """Moment that the joints of a link put on it [N m], (k, 3).

    In the link's own axes, which are forward, left and up while the body stands with hanging arms.
    A link whose joints turn about less than three axes has the least moment that does the same.
    """
    character = body.character
    slices = [character.v_slice(joint) for joint in character.link(link).joints]
    at = np.concatenate([np.arange(v.start, v.stop) for v in slices])
    J = dynamics.jacobian(character, q, link)[:, 3:, at]
    world = np.einsum("kvc,kv->kc", np.linalg.pinv(J), torque[:, at])
    R = dynamics.forward_kinematics(character, q)[1][:, body.rest.index[link]]
    local = rotation.rotate(rotation.conjugate(R), world)
    upright = rotation.multiply(_hanging(body, link), body.rest.orientation(link))
    return np.asarray(rotation.rotate(upright, local) @ body.frame)


def _hanging(body: Body, link: str) -> Floats:
    """The turn that lets an arm hang, if it rests as in a T-pose; of other links, none."""
    limb, side, _ = body.where(link) or ("", "", "")
    along = np.zeros(3)
    if limb == "arm":
        arm = [x for role in ("arm", "forearm", "hand") for x in body.get("arm", side, role)]
        along = body.rest.position(arm[-1]) - body.rest.position(arm[0])
    if np.linalg.norm(along) < 1e-6:
        return np.array([1.0, 0.0, 0.0, 0.0])
    return rotation.between(along, (0.0, 0.0, -1.0))
