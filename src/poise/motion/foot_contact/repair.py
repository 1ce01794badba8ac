"""Repair of foot contact: the schedule from the whole body, feet held where they stood.

Captures mislead: a foot that hovers over the ground seems to stand, heels rise without a step, and
in deep poses all feet float. These errors are corrected before a clip is prepared for balance.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from poise import dynamics, measure
from poise.anatomy.contact_schedule import ContactSchedule
from poise.anatomy.feet import positions
from poise.math.arrays import Floats, Mask, Progress, runs
from poise.math.filtering import lowpass
from poise.model import configuration
from poise.model.character import Character
from poise.motion import ik
from poise.motion.clip import Clip
from poise.motion.foot_contact.detect import detect_contacts
from poise.motion.foot_contact.planting import closeness
from poise.motion.retargeting.matching import MapLike

PLAY, LOW = 0.08, 0.04
"""A foot that stays within this distance and below this height has not made a step [m]."""

TURNS = 0.3
"""A standing foot that turns farther than this is held [rad]."""

STRAYS = 0.25
"""A foot that floats in a capture comes down within this distance [m]."""

HOVERS = 0.02
"""A foot this much above another that stands hovers, if it does so half of the time [m]."""

HELD, TURNED, KEPT, KEPT_PATH, KEPT_HEADING = 3e4, 100.0, 1.0, 1e4, 10.0
"""Weights of a held foot's place [1/m^2], its turn [1/rad^2], and of joints, path and heading."""

RAMP, CALM = 0.15, 6.0
"""Time in which a foot is taken hold of [s]; changes that are faster go [Hz]."""


def repair_foot_contact(
    clip: Clip,
    character: Character,
    progress: Progress | None = None,
    *,
    map: MapLike = None,
) -> Clip:
    """Retargets raw motion with its contact repaired: feet are level where the capture's stand.

    Contact is detected best on the skeleton that the motion was captured with.

    Args:
        clip: The motion, its feet on the ground z = 0 where they stand.
        character: The character that gets the motion.
        progress: Called with the finished fraction, 0 to 1.
        map: As of `retarget`.
    """
    held = hold_standing_feet(clip, repair_schedule(clip))
    return held.retargeted(character, map=map, level_feet=True, progress=progress)


def hold_standing_feet(clip: Clip, contacts: ContactSchedule) -> Clip:
    """Holds feet that stray or turn while they stand where they stood flat.

    Args:
        clip: The motion.
        contacts: When its feet stand.
    """
    character = clip.character
    index = {link.name: i for i, link in enumerate(character.links)}
    p, R = dynamics.forward_kinematics(character, clip.frames)
    at = positions(character, contacts.points, clip.frames)
    goals: list[ik.Goal] = []
    for foot in contacts.feet:
        i, low = index[foot], at[:, contacts.of(foot), 2].max(axis=1)
        place, turn, weight = p[:, i].copy(), R[:, i].copy(), np.zeros(len(p))
        for a, b in contacts.phases(foot):
            flat = a + np.flatnonzero(low[a:b] <= np.percentile(low[a:b], 30.0))
            middle = np.median(p[flat, i], axis=0)
            best = flat[np.argmin(np.linalg.norm(p[flat, i] - middle, axis=1))]
            off = 2.0 * np.arccos(np.clip(np.abs((R[a:b, i] * R[best, i]).sum(axis=1)), 0.0, 1.0))
            if off.max() > TURNS or np.linalg.norm(p[a:b, i] - middle, axis=1).max() > PLAY:
                place[a:b], turn[a:b], weight[a:b] = p[best, i], R[best, i], 1.0
        if weight.any():
            close = closeness(weight > 0.0, RAMP * clip.fps)
            goals.append(ik.Place(foot, _nearest_rows(place, weight > 0.0), weight=HELD * close))
            goals.append(ik.Turn(foot, _nearest_rows(turn, weight > 0.0), weight=TURNED * close))
    if not goals:
        return clip.with_frames(clip.frames, contacts=contacts)
    keep = np.full(character.nv, KEPT)
    keep[:3], keep[3:6] = KEPT_PATH, KEPT_HEADING
    q, _ = ik.solve(
        character, clip.frames, goals, limits=False, posture=keep, iterations=20, near=True
    )
    change = lowpass(
        configuration.difference(character, q, clip.frames), min(CALM, 0.4 * clip.fps), clip.fps
    )
    return clip.with_frames(
        configuration.integrate(character, clip.frames, change), contacts=contacts
    )


def _nearest_rows(rows: Floats, on: Mask) -> Floats:
    """Rows (k, n) with those of the nearest frame that is on in the place of the others."""
    k, at = np.arange(len(on)), np.flatnonzero(on)
    after = np.minimum(np.searchsorted(at, k), len(at) - 1)
    before = np.maximum(after - 1, 0)
    closer = np.where(np.abs(at[before] - k) < np.abs(at[after] - k), at[before], at[after])
    return rows[np.where(on, k, closer)]


def repair_schedule(clip: Clip) -> ContactSchedule:
    """The contact schedule, from the motion of the whole body.

    A foot that hovers over the ground while another stands does not. One whose heel or toes rise
    for a while without a step does. Where nothing stands and yet nothing falls, the capture is
    wrong and not the body: feet that come down near where they were have stood.

    Args:
        clip: The motion, its feet on the ground z = 0 where they stand.
    """
    contacts = clip.contacts or detect_contacts(clip)
    at = positions(clip.character, contacts.points, clip.frames)
    on = _drop_hovering(contacts, at)
    contacts = replace(contacts, on=on)
    on = np.array(on)
    floats = _is_floating(clip, contacts)
    for foot in contacts.feet:
        mine = contacts.of(foot)
        middle, low = at[:, mine, :2].mean(axis=1), at[:, mine, 2].min(axis=1)
        for a, b in runs(~contacts.standing(foot)):
            if a == 0 or b == len(on):
                continue
            span = slice(a - 1, b + 1)
            away = np.linalg.norm(middle[span] - middle[a - 1], axis=1)
            stays = away.max() < PLAY and low[span].max() < LOW
            if stays or (away[-1] < STRAYS and floats[a:b].any()):
                on[a:b, mine] = True
    return replace(contacts, on=on)


def _drop_hovering(contacts: ContactSchedule, at: Floats) -> Mask:
    """Standing points without those of feet that hover while another foot is on the ground."""
    on = np.array(contacts.on)
    low = {foot: at[:, contacts.of(foot), 2].min(axis=1) for foot in contacts.feet}
    for foot in contacts.feet:
        others = [low[other] for other in contacts.feet if other != foot]
        for a, b in contacts.phases(foot):
            below = min((float(np.median(other[a:b])) for other in others), default=np.inf)
            if float(np.median(low[foot][a:b])) > max(below, 0.0) + HOVERS:
                on[a:b, contacts.of(foot)] = False
    return on


def _is_floating(clip: Clip, contacts: ContactSchedule) -> Mask:
    """When nothing stands although the center of mass does not fall freely, shape (k,)."""
    height = measure.center_of_mass(clip.character, clip.frames)[:, 2]
    out = np.zeros(len(height), dtype=bool)
    for a, b in runs(contacts.flight):
        if a > 1 and b < len(height) - 1:
            # the fall over the whole flight, from the speeds before and after it
            before, after = height[a] - height[a - 1], height[b] - height[b - 1]
            out[a:b] = (after - before) * clip.fps**2 / (b - a) > -0.5 * 9.81
    return out
