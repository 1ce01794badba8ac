"""`poise clips`: the built-in ones at a glance; `show` draws one, `check` says if it could be."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from poise.anatomy.feet import feet_of
from poise.characters import load_character
from poise.cli import options
from poise.errors import PoiseError
from poise.motion import Clip, load_clip
from poise.motion.checks import Finding
from poise.motion.checks import check as check_clip
from poise.motion.foot_contact.detect import detect_contacts, ground_height
from poise.motion.library import builtin_clip, builtin_clips
from poise.motion.preprocess import apply_cutoff, parse_cutoff
from poise.view.contact_sheet import contact_sheet
from poise.view.render import save_image

clips = typer.Typer(
    invoke_without_command=True, add_completion=False, pretty_exceptions_enable=False
)

COLUMNS = 8
MOST_ROWS = 4

OnCharacter = Annotated[
    str | None, options.option("The character whose motion it is.", "NAME|FILE")
]

HINT = """\
Motion capture has noise, and accelerations and forces are full of it. Smooth it first:
poise clips check {} --cutoff auto"""


@clips.callback()
def list_clips(ctx: typer.Context, as_json: options.AsJson = False) -> None:
    """List the built-in clips; `show` draws one, `check` says what is unphysical in it.

    \b
    Examples:
    poise clips
    poise clips --json
    poise clips show walk
    poise clips check take.bvh --cutoff auto
    """
    if ctx.invoked_subcommand is not None:
        return
    rows = [summary(builtin_clip(name)) | {"name": name} for name in builtin_clips()]
    if as_json:
        options.print_json(rows)
        return
    if not rows:
        typer.echo("there are no built-in clips")
        return
    width, body = (max(9, *(len(row[key]) for row in rows)) for key in ("name", "character"))
    head = f"{'name':{width}}  {'duration':>8}  {'rate':>7}  {'character':{body}}  stands on"
    typer.secho(head, bold=True)
    for row in rows:
        typer.echo(
            f"{row['name']:{width}}  {row['duration']:6.2f} s  {row['fps']:3.0f} fps"
            f"  {row['character']:{body}}  {_standing(row)}"
        )


@clips.command()
def show(
    source: options.Source,
    out: Annotated[
        Path | None, options.option("The PNG file to draw into.", default="NAME.png")
    ] = None,
    columns: Annotated[int, typer.Option(min=1, max=64, help="Poses side by side.")] = COLUMNS,
    rows: Annotated[
        int | None,
        typer.Option(min=1, max=64, help="Rows of poses.", show_default="by the duration"),
    ] = None,
    character: OnCharacter = None,
    as_json: options.AsJson = False,
) -> None:
    """Print a clip's length, rate and contacts, and draw it pose by pose.

    \b
    Examples:
    poise clips show walk
    poise clips show take.bvh --out take.png --rows 2
    """
    clip = load(source, character)
    row = summary(_with_contacts(clip))
    path = out or Path(f"{Path(source).stem}.png")
    if out is None and path.exists():
        raise PoiseError(f"{path}: is there already; name another file with --out")
    if as_json:
        options.print_json(row)
    else:
        typer.secho(row["name"], bold=True)
        typer.echo(
            f"{row['duration']:.2f} s, {row['frames']} frames at {row['fps']:g} fps,"
            f" on {row['character']}"
        )
        typer.echo(f"stands on: {_standing(row)}{'' if clip.contacts else ' (detected)'}")
    draw(clip, path, columns, rows or min(MOST_ROWS, 1 + int(clip.duration / 1.5)))
    typer.echo(f"drawn: {path}", err=True)


@clips.command()
def check(
    source: options.Source,
    cutoff: Annotated[
        str, options.option("Low-pass cutoff before; 0 disables filtering.", "HZ|auto")
    ] = "0",
    character: OnCharacter = None,
    as_json: options.AsJson = False,
) -> None:
    """Say what is unphysical in a clip, and when; the exit code is 1 if anything is.

    \b
    In flight the center of mass falls with g (5 %), the angular momentum stays (10 %).
    Standing feet move less than 5 mm. Joint limits are kept.
    The ground explains the motion, to 10 % of body weight, outside of impacts.
    A strong person has the torques.
    Both halves of a gait mirror each other (2 degrees), and speed, cadence, step
    length and duty factor are those of people or dogs.

    \b
    Examples:
    poise clips check walk
    poise clips check take.bvh --cutoff auto
    poise clips check walk.txt --character humanoid3d.txt --json
    """
    parse_cutoff(cutoff)  # before a large file is read
    raw = load(source, character)
    clip, note = apply_cutoff(raw, cutoff)
    # contacts that were found go again: of hands, too, and after smoothing
    kept = clip if raw.contacts is not None else clip.with_frames(clip.frames)
    found = check_clip(kept)
    good = all(one.good is not False for one in found)
    if as_json:
        options.print_json(_report(clip, cutoff, note, found, good))
    else:
        _print(source, clip, note, found, good)
        if not good and not note and raw.contacts is None:
            typer.echo()
            typer.echo(HINT.format(source))
    if not good:
        raise typer.Exit(1)


def load(source: str, character: str | None = None) -> Clip:
    """A clip by its built-in name or its file, on a character if one is named."""
    if not Path(source).suffix:
        if character is not None:
            raise PoiseError(f"the clip {source!r} is built in and has its own character")
        return builtin_clip(source)
    body = None if character is None else load_character(character)
    return load_clip(source, body, prepare=False)


def summary(clip: Clip) -> dict[str, Any]:
    """What the list says of a clip, ready for JSON: duration [s], rate [Hz], what stands how long.

    `contacts` has the part of the time in which each foot stands, `flight` that in which nothing
    does; both are null where contacts are unknown.
    """
    contacts = clip.contacts
    stands = None if contacts is None else {f: contacts.standing(f) for f in contacts.feet}
    return {
        "name": clip.name,
        "character": clip.character.name,
        "duration": clip.duration,
        "fps": clip.fps,
        "frames": len(clip),
        "contacts": stands and {foot: float(np.mean(on)) for foot, on in stands.items()},
        "flight": None if contacts is None else float(np.mean(contacts.flight)),
        "sliding": contacts is not None and contacts.sliding,
    }


def draw(clip: Clip, path: Path, columns: int, rows: int) -> None:
    """Draw a clip into a PNG file, pose by pose."""
    ground: bool | float = True
    if clip.contacts is None and feet_of(clip.character):
        ground = ground_height(clip)
    elif clip.character.joints and clip.character.joints[0].kind != "free":
        ground = False
    save_image(path, contact_sheet(clip, columns=columns, rows=rows, ground=ground))


def _with_contacts(clip: Clip) -> Clip:
    """The clip with its contacts, detected if it has feet and they are unknown."""
    if clip.contacts is not None or not feet_of(clip.character):
        return clip
    return clip.with_frames(clip.frames, contacts=detect_contacts(clip))


def _standing(row: dict[str, Any]) -> str:
    """What stands and how long, as text."""
    if row["contacts"] is None:
        return "unknown"
    feet = {foot: 100.0 * part for foot, part in row["contacts"].items() if part}
    if not feet:
        return "nothing"
    # of a snake the links are too many to name
    text = ", ".join(f"{foot} {part:.0f} %" for foot, part in feet.items())
    if len(feet) > 2:
        text = f"{len(feet)} links {min(feet.values()):.0f} to {max(feet.values()):.0f} %"
    text += " (sliding)" if row["sliding"] else ""
    return text + (f", in flight {100 * row['flight']:.0f} %" if row["flight"] else "")


def _report(clip: Clip, cutoff: str, note: str, found: list[Finding], good: bool) -> dict[str, Any]:
    return {
        "clip": clip.name,
        "character": clip.character.name,
        "duration": clip.duration,
        "fps": clip.fps,
        "cutoff": cutoff,
        "smoothing": note,
        "good": good,
        "findings": [one.row() for one in found],
    }


def _print(source: str, clip: Clip, note: str, found: list[Finding], good: bool) -> None:
    head = f"{source}: {clip.duration:.2f} s at {clip.fps:g} fps on {clip.character.name}"
    typer.secho(f"{head}; {note}" if note else head, bold=True)
    for one in found:
        color = {True: "green", False: "red", None: None}[one.good]
        typer.secho(str(one), fg=color, dim=one.good is None)
    bad = sum(one.good is False for one in found)
    typer.secho("all good" if good else f"{bad} of {len(found)} are bad", bold=True)
