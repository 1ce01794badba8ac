"""The built-in clips: keyframes as text, and the clips that were made from them.

`poise/motion/clips` holds NAME.keys.yaml, and NAME.npz, made from it by

    python -m poise.motion.library NAME ...      (all without names)

which takes a minute or so for each. snake-slither has no keyframes: `slither` computes it.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from pathlib import Path

from poise.characters import load_character
from poise.errors import ClipError, unknown_name
from poise.motion import slither
from poise.motion.clip import Clip
from poise.motion.formats import npz

FOLDER = Path(__file__).parent / "clips"
ENDING = ".keys.yaml"
RESOLUTION = 2.0**-34
"""Poses of built-in clips are multiples of it [m, rad], 6e-11: the package is a tenth smaller."""


def builtin_clips() -> dict[str, Path]:
    """Names of the built-in clips, and their files."""
    return {path.stem: path for path in sorted(FOLDER.glob("*.npz"))}


@lru_cache(maxsize=64)
def builtin_clip(name: str) -> Clip:
    """A built-in clip by its name; clips do not change, so one is enough."""
    known = builtin_clips()
    if name not in known:
        raise ClipError(unknown_name("clip", name, known))
    return npz.read(known[name])


def sources() -> dict[str, Path]:
    """Names of the built-in clips, and their keyframes."""
    return {p.name.removesuffix(ENDING): p for p in sorted(FOLDER.glob("*" + ENDING))}


def make(name: str) -> Clip:
    """Make a built-in clip from its keyframes and write it into the folder."""
    from rich.console import Console

    from poise.motion.authoring.author import author
    from poise.motion.keyframes import load_keyframes

    known = sources()
    if name == slither.NAME:
        clip = slither.slither(load_character(slither.SNAKE))
        npz.write(clip, FOLDER / f"{name}.npz", RESOLUTION)
        return clip
    if name not in known:
        raise ClipError(unknown_name("keyframes", name, [*known, slither.NAME], "keyframes"))
    keys = load_keyframes(known[name])
    with Console(stderr=True).status(name) as status:
        clip = author(keys, lambda stage, cost: status.update(f"{name}: {stage}, cost {cost:.1f}"))
    npz.write(clip, FOLDER / f"{name}.npz", RESOLUTION)
    return clip


if __name__ == "__main__":
    for name in sys.argv[1:] or [*sources(), "snake-slither"]:
        print(make(name))
