"""The table that `poise track` prints."""

from __future__ import annotations

from typing import Any

import typer

ROWS = 24
"""Links that are shown; of more, those that are worst."""

HEAD = ("rotation [deg]", "in the body [m]", "in the world [m]")


def print_table(table: dict[str, Any]) -> None:
    """Print what a trial came to.

    Args:
        table: That of `poise.recording.summary`, with what `poise track` adds.
    """
    typer.secho(_title(table), bold=True)
    for note in (*table["pushes"], *table["profiles"], *table["notes"]):
        typer.echo(f"  {note}")
    _print_links(table)
    for line in filter(None, (_torque(table), _contacts(table), _end(table), _speed(table))):
        typer.echo(line)


def _title(table: dict[str, Any]) -> str:
    step = 1.0 / table["dt"]
    text = f"1/{step:.0f}" if abs(step - round(step)) < 1e-6 * step else f"{table['dt']:g}"
    return (
        f"{table['clip']}: {table['character']}, {table['dof']} degrees of freedom, "
        f"{table['mass']:.3g} kg; {table['controller']} at {text} s, root {table['root']}, "
        f"{table['duration']:.2f} s"
    )


def _print_links(table: dict[str, Any]) -> None:
    links = table["links"]
    shown = sorted(links, key=lambda name: -links[name]["rotation"]["p95"])[:ROWS]
    width = max(len(name) for name in (*shown, "all links"))
    pad = " " * width
    typer.secho(f"{pad}  {HEAD[0]:>15}  {HEAD[1]:>15}  {HEAD[2]:>16}  torque  touches", bold=True)
    two = f"{'mean':>7} {'most':>7}"
    typer.secho(f"{'link':{width}}  {two}  {two}   {two}   [N·m]  [% of t]", bold=True)
    for name in links:
        if name in shown:
            row = links[name]
            extra = f"  {row['torque']:6.1f}  {100 * row['touching']:7.0f}"
            typer.echo(f"{name:{width}}  {_errors(row)}{extra}")
    typer.echo(f"{'all links':{width}}  {_errors(table['tracking'])}")
    if len(links) > len(shown):
        typer.echo(f"and {len(links) - len(shown)} links with less error: table.json has them")


def _errors(row: dict[str, Any]) -> str:
    turned, inside, world = row["rotation"], row["position"], row["world"]
    return (
        f"{turned['mean']:7.2f} {turned['max']:7.2f}  {inside['mean']:7.4f} {inside['max']:7.4f}"
        f"   {world['mean']:7.4f} {world['max']:7.4f}"
    )


def _torque(table: dict[str, Any]) -> str:
    largest, hand = table["torque"], table["hand"]
    if largest is None:
        return ""
    text = f"largest torque: {largest['torque']:.4g} N·m in {largest['joint']}"
    text += f" at {largest['time']:.2f} s"
    if largest["limit"]:
        text += f", {100 * largest['torque'] / largest['limit']:.0f} % of its limit"
    if hand is not None and (hand["force"] or hand["torque"]):
        text += f"; on the root, from outside: {hand['force']:.4g} N, {hand['torque']:.4g} N·m"
    return text


def _contacts(table: dict[str, Any]) -> str:
    found = table["contacts"]
    if not found["links"]:
        return "contacts: none"
    weights = "" if found["weights"] is None else f" ({found['weights']:.2g} times its weight)"
    return (
        f"contacts: {found['links']} links, {found['mean']:.1f} points at a time; ground force up "
        f"to {found['ground_force']:.4g} N{weights}, {1e3 * found['depth']:.1f} mm deep"
    )


def _end(table: dict[str, Any]) -> str:
    if table["fallen"] is None:
        return ""
    return "at the end it lies on the ground" if table["fallen"] else "at the end it stands"


def _speed(table: dict[str, Any]) -> str:
    speed = table["speed"]
    return (
        f"speed: {table['duration']:.2f} s simulated in {speed['elapsed']:.3g} s, "
        f"{speed['real_time']:.3g} times real time"
    )
