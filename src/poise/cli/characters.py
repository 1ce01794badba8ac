"""`poise characters`: the built-in ones at a glance; `show` one, or one from a file, in full."""

from __future__ import annotations

import math
import shutil
import sys
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from poise.characters import builtin_names, load_character
from poise.cli import options
from poise.dynamics import forward_kinematics
from poise.errors import PoiseError
from poise.math.arrays import Floats
from poise.math.rotation import quat_matrix
from poise.model.character import Character, Joint, Link
from poise.model.geometry import reach_below, surface_points
from poise.view.render import render, save_image

characters = typer.Typer(
    invoke_without_command=True, add_completion=False, pretty_exceptions_enable=False
)

DEEPEST = 20  # levels that are indented: a snake's tree must fit on a page

JOINT = ("name", "kind", "axis", "limits", "effort")
"""Attributes of a joint that are printed as JSON."""

PLACE = "\x1b[38;2;{};{};{}m\x1b[48;2;{};{};{}m▀"
PLAIN = "\x1b[0m"
"""Upper and lower half of a terminal cell, by their colors; and the end of the colors."""


@characters.callback()
def list_characters(ctx: typer.Context, as_json: options.AsJson = False) -> None:
    """List the built-in characters; `show` prints one, or one from a file, in full.

    \b
    Examples:
    poise characters
    poise characters --json
    poise characters show dog
    """
    if ctx.invoked_subcommand is not None:
        return
    rows = [summary(load_character(name)) for name in builtin_names()]
    if as_json:
        options.print_json(rows)
        return
    width = max(len(row["name"]) for row in rows)
    head = f"{'name':{width}}  {'DoF':>4}  {'links':>5}  {'mass':>8}  {'height':>7}  base"
    typer.secho(head, bold=True)
    for row in rows:
        typer.echo(
            f"{row['name']:{width}}  {row['dof']:4}  {row['links']:5}  {row['mass']:5.1f} kg"
            f"  {row['height']:5.2f} m  {row['base']}"
        )
    typer.echo("and snake-N with N = 6 + 3 k degrees of freedom, plank-N of N planks")


@characters.command()
def show(
    source: options.Source,
    out: Annotated[Path | None, options.option("Draw it at rest into this PNG file.")] = None,
    as_json: options.AsJson = False,
) -> None:
    """Print a character's tree, masses and limits, and draw it.

    \b
    Examples:
    poise characters show humanoid --out humanoid.png
    poise characters show take.bvh
    """
    character = load_character(source)
    if not character.nv:
        raise PoiseError(f"{source}: character {character.name!r} has no joint that moves")
    if out is not None:
        # before printing: the reader of a pipe may stop
        save_image(out, render(character, character.rest_q))
    if as_json:
        options.print_json(describe(character))
    else:
        _print(character)
        if sys.stdout.isatty() and out is None:
            typer.echo("\n" + text_picture(character, min(72, shutil.get_terminal_size()[0])))
    if out is not None:
        typer.echo(f"drawn: {out}", err=True)


def summary(character: Character) -> dict[str, Any]:
    """What the list says of a character, ready for JSON: sizes, mass [kg] and height [m]."""
    low, high = bounds(character)
    return {
        "name": character.name,
        "dof": character.nv,
        "depth": character.depth,
        "links": len(character.links),
        "mass": character.mass,
        "height": float(high[2] - low[2]),
        "base": _base(character),
    }


def describe(character: Character) -> dict[str, Any]:
    """All that `show` says of a character, ready for JSON; angles in radians."""
    return {
        **summary(character),
        "nq": character.nq,
        "limbs": {name: list(links) for name, links in character.limbs.items()},
        "tree": [
            {
                "name": link.name,
                "parent": link.parent,
                "mass": link.mass,
                "shapes": [shape.kind for shape in link.shapes],
                "joints": [{key: getattr(joint, key) for key in JOINT} for joint in link.joints],
            }
            for link in character.links
        ],
    }


def bounds(character: Character) -> tuple[Floats, Floats]:
    """Lowest and highest corner of the box around all shapes at rest, world axes [m], (3,) each.

    A character without shapes is as large as the origins of its links.
    """
    position, quaternion = forward_kinematics(character, character.rest_q)
    corners: list[Floats] = []
    for link, p, E in zip(character.links, position, quat_matrix(quaternion), strict=True):
        for shape in link.shapes:
            if shape.kind == "mesh":
                corners += list(p + surface_points(shape) @ E.T)
                continue
            # the reach along an axis is that below, with the axis in the place of z
            reach = np.array([reach_below(shape, np.roll(E, 2 - k, axis=0)) for k in range(3)])
            center = p + E @ shape.pos
            corners += [center - reach, center + reach]
    corners = corners or list(position)
    return np.min(corners, axis=0), np.max(corners, axis=0)


def text_picture(character: Character, columns: int) -> str:
    """Draw a character at rest for a terminal, two pixels in each place."""
    size = (columns, columns * 3 // 8 * 2)
    image = render(character, character.rest_q, size=size, samples=4)
    lines = []
    for upper, lower in zip(image[::2].tolist(), image[1::2].tolist(), strict=True):
        places = zip(upper, lower, strict=True)
        lines.append("".join(PLACE.format(*above, *below) for above, below in places) + PLAIN)
    return "\n".join(lines)


def _base(character: Character) -> str:
    return "free" if any(joint.kind == "free" for joint in character.links[0].joints) else "fixed"


def _print(character: Character) -> None:
    row = summary(character)
    typer.secho(character.name, bold=True)
    typer.echo(
        f"{row['dof']} degrees of freedom ({row['depth']} from root to leaf), {row['links']} links,"
        f" {row['mass']:.4g} kg, {row['height']:.3g} m high, {row['base']} base"
    )
    typer.echo()
    depth: dict[str | None, int] = {None: -1}
    names = []
    for link in character.links:
        depth[link.name] = depth[link.parent] + 1
        names.append("  " * min(depth[link.name], DEEPEST) + link.name)
    width = max(4, *map(len, names))
    typer.secho(f"{'link':{width}}  {'mass':>9}  joints and limits", bold=True)
    for name, link in zip(names, character.links, strict=True):
        mass = f"{link.mass:.3f}" if link.mass >= 0.0005 or not link.mass else f"{link.mass:.1e}"
        typer.echo(f"{name:{width}}  {mass:>6} kg  {_joints(link)}")
    if character.limbs:
        typer.echo()
        typer.secho("limbs", bold=True)
        for limb, links in character.limbs.items():
            typer.echo(f"{limb}: {', '.join(links)}")


def _joints(link: Link) -> str:
    return "; ".join(_joint(joint) for joint in link.joints) or "welded"


def _joint(joint: Joint) -> str:
    text = f"{joint.name} ({joint.kind})"
    if joint.limits is None:
        return text
    if joint.kind == "slide":
        return f"{text} {joint.limits[0]:g} to {joint.limits[1]:g} m"
    lower, upper = (round(math.degrees(x)) for x in joint.limits[-2:])
    if joint.kind == "hinge":
        return f"{text} {lower} to {upper} deg"
    axis = ", ".join(f"{x:.3g}" for x in joint.axis)
    swing = round(math.degrees(joint.limits[0]))
    return f"{text} swing {swing} deg, twist {lower} to {upper} deg about {axis}"
