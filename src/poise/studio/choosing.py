"""What a choice means for what is already chosen."""

from __future__ import annotations

from dataclasses import fields, replace

from poise.control.registry import CONTROLLERS
from poise.errors import PoiseError, unknown_name
from poise.studio import balancing
from poise.studio.library import Library
from poise.studio.requests import Choose
from poise.studio.snapshot import Controls

SCENE = ("character", "clip", "count", "ground")
"""What cannot change without a new start; nor can whether it balances."""

NAMES = tuple(CONTROLLERS)
"""Controllers there are."""


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
    if made.controller not in NAMES:
        raise PoiseError(unknown_name("controller", made.controller, NAMES))
    library.character(made.character)
    library.check_clip(made.clip)
    if not library.fits(made.clip, made.character):
        if asked.clip is None:
            made = replace(made, clip=library.clips_for(made.character)[0])
        elif asked.character is None:
            made = replace(made, character=library.owner(made.clip))
    if differ(made, controls, "character", "clip", "controller"):
        made = replace(made, goals={}, profiles=())
    if made.character != controls.character:
        made = replace(made, tuning={})
        if asked.ground is None:
            made = replace(made, ground="plane" if stands(library, made.character) else "none")
    made = _balanced(made, asked, was=balances(controls))
    if balances(made):
        balancing.check_balance(made, library.character(made.character))
    return replace(made, watch=min(made.watch, made.count - 1))


def balances(controls: Controls) -> bool:
    """Whether the character keeps its balance by itself."""
    return controls.controller == balancing.NAME


def _balanced(made: Controls, asked: Choose, was: bool) -> Controls:
    """Balance brings its root and time step along, and takes them away again.

    Args:
        made: What was chosen.
        asked: The choice; what it names counts.
        was: Whether it balanced before.
    """
    if balances(made) == was:
        return made
    root, dt = ("free", balancing.DT) if balances(made) else (Controls.root, Controls.dt)
    return replace(made, root=asked.root or root, dt=asked.dt or dt)


def stands(library: Library, character: str) -> bool:
    """Whether a character moves freely, and needs something to stand on."""
    joints = library.character(character).joints
    return bool(joints) and joints[0].kind == "free"


def differ(one: Controls, two: Controls, *names: str) -> bool:
    """Whether two controls differ in one of these."""
    return any(getattr(one, name) != getattr(two, name) for name in names)
