"""What a body of hard joints and stiff feet needs of a motion that it shall follow.

Joints hold at their limits, however far beyond a clip is: each degree is a degree of error, and a
servo that presses against a limit kicks the body when it comes free. People go beyond what tables
say, so limits are not exact either. `nearer_limits` takes back half of what is beyond, the least
squares between the two, and puts feet back to where they stood.

A foot that swings a few millimetres above the ground, as that of a retargeted walk does, stubs at
the first push. `clear_swings` lifts it to CLEAR, a little above what people have: 13 mm under the
toes, in the mean (Winter, Physical Therapy 72, 1992, 45-53).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from poise.anatomy.contact_schedule import Contacts
from poise.anatomy.feet import positions
from poise.math.arrays import Floats, runs
from poise.model import configuration
from poise.motion.clip import Clip
from poise.motion.editing.smoothing import KEEP, lowpass
from poise.motion.foot_contact.locking import FADE, bridge, held
from poise.motion.limits import clamped, excesses

SHARE = 0.5
"""Of what is beyond the limits, that is taken back."""

BEYOND = 2.0
"""Less beyond a limit is not worth a change [degrees]."""

SLOW, FAST = 8.0, 12.0
"""Changes of joints, and of feet that are put back, go without what is faster [Hz]."""

CLEAR = 0.02
"""Height of a swinging foot above the ground [m]."""

RISE = 0.1
"""Time after a foot has left the ground, and before it stands, in which it rises to CLEAR [s]."""

PATH = 1e3
"""Weight of the root's place while feet are lifted [1/m^2]."""


class Nearer(NamedTuple):
    """A clip nearer to the limits of its joints, and how far they were beyond [degrees]."""

    clip: Clip
    joints: dict[str, float]


def nearer_limits(clip: Clip, share: float = SHARE) -> Nearer:
    """A clip with a share of what is beyond the limits of its joints taken back.

    Args:
        clip: The motion.
        share: Of what is beyond, 0 to 1.
    """
    character = clip.character
    beyond: dict[str, float] = {}
    for one in excesses(character, clip.frames):
        far = math.degrees(float(one.value.max()))
        if far > BEYOND and character.joint(one.joint).kind != "slide":
            beyond[one.joint] = max(far, beyond.get(one.joint, 0.0))
    if not beyond or len(clip) < 4 or share <= 0.0:
        return Nearer(clip, {})
    step = configuration.difference(character, clip.frames, clamped(character, clip.frames))
    step = lowpass(share * step, min(SLOW, 0.4 * clip.fps), clip.fps)
    frames = configuration.integrate(character, clip.frames, step)
    if clip.contacts is not None and clip.contacts.on.any():
        frames = _put_back(clip, frames, clip.contacts)
    return Nearer(clip.with_frames(frames, contacts=clip.contacts), beyond)


def _put_back(clip: Clip, frames: Floats, contacts: Contacts) -> Floats:
    """Poses whose standing points are where those of the clip are."""
    stood = positions(clip.character, contacts.points, clip.frames)
    offset = stood - positions(clip.character, contacts.points, frames)
    fade = max(2, round(FADE * clip.fps))
    for i in range(len(contacts.points)):
        on = contacts.on[:, i]
        offset[~on, i] = 0.0
        bridge(offset[:, i], on, fade)
        offset[:, i] = lowpass(offset[:, i], min(FAST, 0.4 * clip.fps), clip.fps)
    return held(clip.character, frames, contacts.points, offset, joints=KEEP, root=KEEP)


def clear_swings(clip: Clip) -> tuple[Clip, float]:
    """A clip whose feet clear the ground while they swing, and by how much they rose at most [m].

    Args:
        clip: The motion, its feet on the ground z = 0 where they stand.
    """
    contacts = clip.contacts
    if contacts is None or contacts.sliding or not contacts.on.any() or len(clip) < 4:
        return clip, 0.0
    height = positions(clip.character, contacts.points, clip.frames)[..., 2]
    offset = np.zeros((*height.shape, 3))
    for foot in contacts.feet:
        own = contacts.of(foot)
        wanted = _swing(contacts.standing(foot), RISE * clip.fps)
        rise = np.where(wanted > 0.0, CLEAR * wanted - height[:, own].min(axis=1), 0.0)
        slow = lowpass(np.maximum(rise, 0.0)[:, None], min(SLOW, 0.4 * clip.fps), clip.fps)
        offset[:, own, 2] = np.maximum(slow, 0.0)
    most = float(offset.max())
    if most < 1e-3:
        return clip, 0.0
    frames = held(clip.character, clip.frames, contacts.points, offset, joints=KEEP, root=PATH)
    return clip.with_frames(frames, contacts=contacts), most


def _swing(stands: NDArray[np.bool_], ramp: float) -> Floats:
    """0 where a foot stands, rising smoothly to 1 within so many frames from there, shape (k,)."""
    out = np.zeros(len(stands))
    for a, b in runs(~stands):
        away = np.full(b - a, np.inf)
        if a > 0:
            away = np.minimum(away, np.arange(1, b - a + 1))
        if b < len(stands):
            away = np.minimum(away, np.arange(b - a, 0, -1))
        u = np.minimum(away / max(ramp, 1.0), 1.0)
        out[a:b] = u * u * (3.0 - 2.0 * u)
    return out
