"""What a choice means for what is already chosen."""

from __future__ import annotations

from dataclasses import fields, replace

from poise.control.named import named
from poise.view.studio.library import Library
from poise.view.studio.requests import Choose
from poise.view.studio.snapshot import Controls

SCENE = ("character", "clip", "count", "ground")
"""What cannot change without a new start."""


def chosen(controls: Controls, asked: Choose, library: Library) -> Controls:
    """Controls after a choice.

    A character that cannot follow the present clip gets one of its own; a clip that the present
    character cannot follow brings its own. Who hangs on the world needs no ground.

    Args:
        controls: What was chosen before.
        asked: The choice.
        library: The names that there are.
    """
    given = {f.name: getattr(asked, f.name) for f in fields(asked)}
    made = replace(controls, **{key: value for key, value in given.items() if value is not None})
    named(made.controller)
    library.character(made.character)
    library.check_clip(made.clip)
    if not library.fits(made.clip, made.character):
        if asked.clip is None:
            made = replace(made, clip=library.clips_for(made.character)[0])
        elif asked.character is None:
            made = replace(made, character=library.owner(made.clip))
    if made.character != controls.character:
        made = replace(made, tuning={})
        if asked.ground is None:
            made = replace(made, ground="plane" if stands(library, made.character) else "none")
    return replace(made, watch=min(made.watch, made.count - 1))


def stands(library: Library, character: str) -> bool:
    """Whether a character moves freely, and needs something to stand on."""
    joints = library.character(character).joints
    return bool(joints) and joints[0].kind == "free"


def differ(one: Controls, two: Controls, *names: str) -> bool:
    """Whether two controls differ in one of these."""
    return any(getattr(one, name) != getattr(two, name) for name in names)
