"""`poise convert`: a motion from one file format to another."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def convert(
    source: Annotated[Path, typer.Argument(help="The motion to read.")],
    result: Annotated[Path, typer.Argument(help="The file to write.")],
    character: Annotated[
        str | None, typer.Option(help="Built-in name or file of the character it belongs to.")
    ] = None,
) -> None:
    """Convert a motion file: poise convert take.bvh take.glb."""
    from poise.characters import load_character
    from poise.motion import load_clip

    body = None if character is None else load_character(character)
    clip = load_clip(source, body)
    clip.save(result)
    typer.echo(f"{result}: {len(clip)} frames at {clip.fps:g} fps, {clip.duration:.2f} s")
