"""What every retargeted clip must hold, one claim each."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise import dynamics, measure
from poise.anatomy.body import Body
from poise.math import rotation as quat
from poise.model.character import Character
from poise.model.geometry import surface_points
from poise.motion import Clip
from poise.motion.editing.smoothing import uncut_segments
from poise.motion.retargeting.matching import Match
from poise.motion.retargeting.retarget import Retargeted

Floats = NDArray[np.float64]

LIMBS = 10.0  # mean angle between limbs [degrees]
SINK = 0.005  # [m]
SKATE = 0.010  # [m]
FLIP = 60.0  # a joint's turn in 1/120 s [degrees], unless the source's own is larger
OWN = 1.0  # [degrees] by which a joint's turn may differ from its source's: where a foot is held
JITTER = 1.3  # fastest accelerations of joints, by those of the source


def limbs_point_alike(source: Clip, made: Retargeted) -> None:
    """Bones point as the source's, on the average: limbs, and all with trunk, head and feet."""
    angles = limb_directions(made.match, source.frames, made.clip.frames)
    limbs = {pair.target for pair in made.match.pairs if pair.limb in ("arm", "leg")}
    feet = {pair.target for pair in made.match.pairs if pair.role == "foot"}
    assert len(angles) >= 8
    assert np.mean([x.mean() for name, x in angles.items() if name in limbs - feet]) < LIMBS
    assert np.mean([x.mean() for x in angles.values()]) < LIMBS


def feet_stand(made: Retargeted) -> None:
    """Points in contact neither skate nor sink, and do not float either."""
    assert made.clip.contacts is not None
    feet = measure.footing(made.clip.character, made.clip.frames, made.clip.contacts)
    assert feet.skate.max(initial=0.0) < SKATE
    assert feet.sink.max(initial=0.0) < SINK
    assert feet.rise.max(initial=0.0) < SINK


def no_joint_flips(source: Clip, made: Retargeted) -> None:
    """No joint turns by more than 60 degrees in 1/120 s, unless the source's does in that frame."""
    rate = np.degrees(source.fps / 120.0)
    ours, theirs = (rate * np.linalg.norm(turns(x), axis=-1) for x in bends(source, made))
    assert (ours < np.maximum(FLIP, theirs + OWN)).all()


def nothing_in_the_ground(made: Retargeted) -> None:
    """No point of any link is below the ground."""
    assert lowest(made.clip.character, made.clip.frames).min() > -SINK


def no_jitter(source: Clip, made: Retargeted) -> None:
    """Joints accelerate as the source's: the fastest thousandth, without cuts."""
    cut = np.zeros(len(source), dtype=bool)
    cut[[a for a, _ in uncut_segments(source) if a > 0]] = True
    smooth = ~(cut[1:-1] | cut[2:])
    ours, theirs = (
        np.linalg.norm(np.diff(turns(x), axis=0)[smooth], axis=-1) for x in bends(source, made)
    )
    assert np.percentile(ours, 99.9) < JITTER * np.percentile(theirs, 99.9)


def bends(source: Clip, made: Retargeted) -> tuple[Floats, Floats]:
    """How matched links are turned against the next matched one above, (k, pairs, 4).

    Of the target and of its source: both at the target's resolution, whatever joints lie between.
    """
    character, pairs = made.clip.character, {pair.target: pair for pair in made.match.pairs}
    found = []
    for who, q, name_of in (
        (character, made.clip.frames, {name: name for name in pairs}),
        (source.character, source.frames, {name: x.source for name, x in pairs.items()}),
    ):
        R = dynamics.forward_kinematics(who, q)[1]
        where = {link.name: i for i, link in enumerate(who.links)}
        turned = {name: R[:, where[own]] for name, own in name_of.items()}
        found.append([_against(turned, _above(character, name, turned), name) for name in pairs])
    return np.stack(found[0], axis=1), np.stack(found[1], axis=1)


def _above(character: Character, name: str, known: dict[str, Floats]) -> str | None:
    at = character.link(name).parent
    while at is not None and at not in known:
        at = character.link(at).parent
    return at


def _against(turned: dict[str, Floats], above: str | None, name: str) -> Floats:
    if above is None:
        return turned[name]
    return quat.multiply(quat.conjugate(turned[above]), turned[name])


def turns(R: Floats) -> Floats:
    """Rotation vectors from frame to frame (k - 1, n, 3) [rad]."""
    return quat.log(quat.multiply(quat.conjugate(R[:-1]), R[1:]))


def lowest(character: Character, q: Floats) -> Floats:
    """Height of the lowest point of each link [m], shape (k, links); infinite without shapes."""
    p, R = dynamics.forward_kinematics(character, q)
    low = np.full(p.shape[:2], np.inf)
    for i, link in enumerate(character.links):
        for shape in link.shapes:
            at = p[:, i, None] + quat.rotate(R[:, i, None], surface_points(shape)[None])
            low[:, i] = np.minimum(low[:, i], at[..., 2].min(axis=1))
    return low


def limb_directions(match: Match, source: ArrayLike, target: ArrayLike) -> dict[str, Floats]:
    """Angle between each link's bone and that of its source, frame by frame [degrees].

    Upper and lower arms and legs, feet (along their soles), trunk and head count, as far as both
    characters have them; hands and toes do not: what a rig calls so may be a thumb. Trunks are not
    built alike: an angle that is the same in all frames is of the rigs.

    Args:
        match: Which link follows which: `poise.motion.retargeting.matching.match`.
        source: Frames of the source, shape (k, nq).
        target: Frames of the target, shape (k, nq).

    Returns:
        By link of the target, shape (k,).
    """
    R_t = dynamics.forward_kinematics(match.target.character, target)[1]
    R_s = dynamics.forward_kinematics(match.source.character, source)[1]
    found = {}
    for pair in match.pairs:
        ours, theirs = match.bones(pair)
        a = _bone_directions(match.target, pair.target, ours, R_t)
        b = _bone_directions(match.source, pair.source, theirs, R_s)
        if pair.role in ("", "hand", "toe") or not (a.any() and b.any()):
            continue
        cross = np.linalg.norm(np.cross(a, b), axis=-1)
        found[pair.target] = np.degrees(np.arctan2(cross, np.sum(a * b, axis=-1)))
    return found


def _bone_directions(body: Body, name: str, bone: Floats, R: Floats) -> Floats:
    """Directions of a link's bone, or of its sole, (k, 3), of link orientations (k, links, 4)."""
    if name in body.sole_links:
        bone = body.sole_axes(name)[:, 0]
    turn = quat.multiply(R[:, body.rest.index[name]], quat.conjugate(body.rest.orientation(name)))
    return quat.rotate(turn, bone)
