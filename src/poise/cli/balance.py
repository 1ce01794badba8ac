"""`poise balance`: a character follows a clip on its own feet, and is pushed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

import typer

from poise.cli.options import (
    AsJson,
    CharacterName,
    ClipName,
    Contact,
    Cutoff,
    Duration,
    Friction,
    Prepare,
    Pushes,
    Speed,
    Video,
    with_controller_options,
)
from poise.cli.track import track_clip
from poise.errors import PoiseError

GOAL_FORM = "LINK:X,Y,Z, as in left_hand:0.4,0.2,1.3"

_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_GOAL = re.compile(rf"(.+): ?({_NUMBER}), ?({_NUMBER}), ?({_NUMBER})")


@with_controller_options("balance", but=("goals", "friction", "ground"))
def balance(
    clip: ClipName,
    character: CharacterName = None,
    push: Pushes = None,
    goal: Annotated[
        list[str] | None,
        typer.Option(
            metavar="GOAL",
            help="A point that a link or limb should reach: LINK:X,Y,Z; may be given again.",
        ),
    ] = None,
    friction: Friction = None,
    contact: Contact = None,
    dt: Annotated[
        str | None,
        typer.Option(
            metavar="SECONDS", help="Time step.", show_default="1/120, with penalty 1/1000"
        ),
    ] = None,
    speed: Speed = "fixed",
    prepare: Prepare = True,
    cutoff: Cutoff = None,
    duration: Duration = None,
    video: Video = True,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where the results go.", show_default="out/CLIP-balance"),
    ] = None,
    as_json: AsJson = False,
    *,
    options: dict[str, Any],
) -> None:
    """Let a character follow a clip on its own feet, and push it.

    \b
    Nothing holds it: it keeps its balance by its momentum, or falls.
    It prints a short table, and leaves in DIR what poise track leaves, and
    balance.png  center of mass, CoP, CMP over the supports; momentum; feet
    It is short for poise track --controller balance.

    \b
    DIRECTION of a push: forward back left right up down, or x,y,z in the world.

    \b
    Examples:
    poise balance squat --push head:220N:forward@1s+0.1s
    poise balance leg-circle --friction 0.03
    poise balance butterflies --goal left_hand:0.4,0.3,1.4
    poise balance squat --weights arms=0.3 --gamma 0.5
    poise balance take.bvh --character humanoid-ball --speed adaptive
    """
    track_clip(
        clip, character, "balance", {**options, "goals": parse_goals(goal or [])}, dt=dt, push=push,
        cutoff=cutoff, duration=duration, contact=contact, friction=friction, speed=speed,
        prepare=prepare, video=video, out=out, as_json=as_json,
    )  # fmt: skip


def parse_goals(texts: list[str]) -> dict[str, tuple[float, float, float]]:
    """Goals by link or limb, from `LINK:X,Y,Z` in world axes [m]."""
    goals: dict[str, tuple[float, float, float]] = {}
    for text in texts:
        found = _GOAL.fullmatch(text.strip())
        if found is None:
            raise PoiseError(f"goal {text!r:.80}: it must be {GOAL_FORM}")
        name = found[1].strip()
        if name in goals:
            raise PoiseError(f"goal {name!r} is given twice; it is one link, which takes one")
        x, y, z = (float(word) for word in found.groups()[1:])
        goals[name] = (x, y, z)
    return goals
