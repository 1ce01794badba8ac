"""`poise balance`: a character follows a clip on its own feet, and is pushed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from poise.cli import options
from poise.cli.track import track


@options.with_controller_options("balance", without=("goals", "friction", "ground"))
def balance(
    clip: options.ClipName,
    character: options.CharacterName = None,
    push: options.Pushes = None,
    goal: options.Goals = None,
    friction: options.Friction = None,
    contact: options.Contact = None,
    dt: options.Step = None,
    speed: options.Speed = "fixed",
    prepare: options.Prepare = True,
    cutoff: options.Cutoff = None,
    profile: options.Profiles = None,
    duration: options.Duration = None,
    like: options.Like = None,
    video: options.Video = True,
    out: Annotated[
        Path | None, options.option("Where the results go.", "DIR", "out/CLIP-balance")
    ] = None,
    as_json: options.AsJson = False,
    option: options.ControllerOption = None,
) -> None:
    """Let a character follow a clip on its own feet, and push it.

    \b
    Nothing holds it: it keeps its balance by its momentum, or falls.
    It prints a short table, and leaves in DIR what poise track leaves, and
    balance.png  center of mass, CoP, CMP over the supports; momentum; feet
    It is short for poise track --controller balance.

    \b
    PUSH     LINK:FORCE[:DIRECTION]@TIME[+DURATION]
             DIRECTION: forward back left right up down, or x,y,z in the world
    PROFILE  NAME[:LIMB][@TIME[+DURATION]]
             NAME: limp weak flinch ragdoll stiff-upper loose-arms

    \b
    Examples:
    poise balance squat --push head:220N:forward@1s+0.1s
    poise balance leg-circle --friction 0.03
    poise balance butterflies --goal left_hand:0.4,0.3,1.4
    poise balance squat --weights arms=0.3 --gamma 0.5
    poise balance take.bvh --character humanoid-ball --speed adaptive
    """
    track(
        clip, character, "balance", option, dt, push, goal=goal, cutoff=cutoff, profile=profile,
        duration=duration, like=like, contact=contact, friction=friction, speed=speed,
        prepare=prepare, video=video, out=out, as_json=as_json,
    )  # fmt: skip
