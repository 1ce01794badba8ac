"""A motion on the rig of a file: same joints, offsets and order, so that the two overlay."""

from __future__ import annotations

import os
from collections.abc import Callable

from poise.motion.clip import Clip
from poise.motion.retargeting.matching import MapLike
from poise.motion.retargeting.retarget import retarget


def on_rig(
    clip: Clip,
    like: Clip | str | os.PathLike[str],
    *,
    map: MapLike = None,
    progress: Callable[[float], None] | None = None,
) -> Clip:
    """A clip as a motion of another one's rig; saved, it has that rig's joints.

    Args:
        clip: The motion.
        like: A clip that has the rig, or the file it is in.
        map: Which link moves which: see `matching`.
        progress: Called with the share that is done, 0 to 1.
    """
    if not isinstance(like, Clip):
        from poise.motion import load_clip

        like = load_clip(like)
    q, contacts = clip.frames, clip.contacts
    if not clip.character.same_body(like.character):
        made = retarget(clip, like.character, map=map, progress=progress).clip
        q, contacts = made.frames, made.contacts
    return Clip(
        like.character,
        q,
        clip.fps,
        source=like.source,
        name=clip.name,
        contacts=contacts,
        notes=clip.notes,
    )
