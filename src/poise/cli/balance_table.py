"""The table that `poise balance` prints."""

from __future__ import annotations

from typing import Any

import typer

MARGINS = {"com": "center of mass", "cop": "center of pressure", "cmp": "moment pivot"}


def print_balance(table: dict[str, Any]) -> None:
    """Print what a trial of balance came to.

    Args:
        table: That of `poise.recording.summary`, with what `poise balance` adds.
    """
    typer.secho(_title(table), bold=True)
    for note in (*table["pushes"], *table["notes"]):
        typer.echo(f"  {note}")
    found = table["balance"]
    if found["stood"]:
        typer.secho("it stood", fg="green", bold=True)
    else:
        typer.secho(f"it fell at {found['fell']:.2f} s", fg="red", bold=True)
    rows = [_tracking(table), *_feet(found), _margins(found), _torque(table), *_goals(table)]
    for label, text in rows:
        typer.echo(f"{label:18}{text}")
    speed = table["speed"]
    typer.echo(
        f"{'speed':18}{table['duration']:.2f} s simulated in {speed['elapsed']:.3g} s, "
        f"{speed['real_time']:.1f} times real time"
    )


def _title(table: dict[str, Any]) -> str:
    return (
        f"{table['clip']}: {table['character']}, {table['dof']} degrees of freedom, "
        f"{table['mass']:.3g} kg; {' + '.join(table['objectives'])}; {table['contact']} contact, "
        f"friction {table['friction']:g}, 1/{1.0 / table['dt']:.0f} s"
    )


def _tracking(table: dict[str, Any]) -> tuple[str, str]:
    turned, world = table["tracking"]["rotation"], table["tracking"]["world"]
    return "follows to", (
        f"{turned['mean']:.2f} degrees (most {turned['max']:.1f}), "
        f"{100 * world['mean']:.1f} cm (most {100 * world['max']:.1f})"
    )


def _feet(found: dict[str, Any]) -> list[tuple[str, str]]:
    return [
        (name.replace("_", " "), f"moved {1e3 * one['moved']:.1f} mm, tilted {one['tilted']:.1f} "
         "degrees while it should stand")
        for name, one in found["feet"].items()
    ]  # fmt: skip


def _margins(found: dict[str, Any]) -> tuple[str, str]:
    parts = [
        f"{MARGINS[name]} {round(100 * one['least'], 1) + 0.0:.1f} cm"  # no -0.0
        for name, one in found["margins"].items()
        if one["least"] is not None
    ]
    return "inside by, least", ", ".join(parts) or "it never touched the ground"


def _torque(table: dict[str, Any]) -> tuple[str, str]:
    largest = table["torque"]
    if largest is None:
        return "largest torque", "none"
    share = f" ({100 * largest['torque'] / largest['limit']:.0f} %)" if largest["limit"] else ""
    return "largest torque", (
        f"{largest['torque']:.0f} N·m{share} in {largest['joint']} at {largest['time']:.2f} s"
    )


def _goals(table: dict[str, Any]) -> list[tuple[str, str]]:
    return [
        (f"goal {name}", f"missed by {100 * far:.1f} cm") for name, far in table["goals"].items()
    ]
