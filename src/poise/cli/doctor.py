"""`poise doctor`: what is installed here, which kernels were chosen, and whether it all works."""

from __future__ import annotations

import io
import os
import platform
import re
import shutil
from collections.abc import Callable
from importlib import metadata
from typing import Any

import numpy as np
import typer

from poise import StablePD, World, __version__, _core, load_character
from poise.cli import options
from poise.simulation.world_config import cores
from poise.trials.timing import processor
from poise.view import render

DEVELOPMENT = {"test", "docs", "dev"}  # extras that only the project's own developers need
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def doctor(as_json: options.AsJson = False) -> None:
    """Print what is installed here, and try it out; the exit code is 1 if anything fails.

    \b
    Examples:
    poise doctor
    poise doctor --json
    """
    report = examine() | {"tried": try_out()}
    if as_json:
        options.print_json(report)
    else:
        width = max(len(name) for rows in report.values() for name in rows)
        for section, rows in report.items():
            typer.secho(section, bold=True)
            for name, value in rows.items():
                typer.echo(f"  {name:{width}}  {_text(value)}")
    if any(outcome != "works" for outcome in report["tried"].values()):
        raise typer.Exit(1)


def examine() -> dict[str, dict[str, Any]]:
    """Returns what is installed: sections of named values, ready for JSON."""
    return {
        "versions": {
            "poise": __version__,
            "python": platform.python_version(),
            **{name: _version(name) for name in packages(optional=False)},
        },
        "machine": {
            "platform": platform.platform(),
            "cpu": processor(),
            "cores": os.cpu_count(),
            "threads": cores(),  # of a large world, by default
        },
        "kernels": {
            "one character": _core.isa()["single"],
            "batch": _core.isa()["batch"],
            "built": _core.available_isas(),
            "supported": _core.supported_isas(),
            "POISE_ISA": os.environ.get("POISE_ISA"),
        },
        "build": dict(_core.build_info()),
        "optional": {
            **{name: _version(name) for name in packages(optional=True)},
            "browser": next(filter(None, map(shutil.which, BROWSERS)), None),
        },
    }


def try_out() -> dict[str, str]:
    """Try the parts that break most often; "works", or what went wrong, by what was tried."""
    trials: dict[str, Callable[[], object]] = {
        "a step": _step,
        "a picture": _draw,
        "a plot": _plot,
        "a video": _encode,
        "the studio": _studio,
    }
    outcomes = {}
    for name, trial in trials.items():
        try:
            trial()
            outcomes[name] = "works"
        except Exception as problem:  # any error is the result
            outcomes[name] = " ".join(f"{type(problem).__name__}: {problem}".split())
    return outcomes


def packages(*, optional: bool) -> list[str]:
    """Returns the packages that poise needs, or those of its extras, without the developers'.

    The list is empty where poise runs from a path without being installed.
    """
    try:
        needs = metadata.requires("poise") or []
    except metadata.PackageNotFoundError:
        return []
    names = set()
    for line in needs:
        name, _, condition = line.partition(";")
        extra = re.search(r"extra\s*==\s*['\"]([\w-]+)['\"]", condition)
        if bool(extra) == optional and not (extra and extra[1] in DEVELOPMENT):
            names.add(re.split(r"[^\w.-]", name)[0])
    return sorted(names)


def _step() -> None:
    humanoid = load_character("humanoid")
    world = World(humanoid, dt=1 / 60)
    world.step(StablePD(humanoid)(world.state, world.state.copy()), steps=3)
    if not np.isfinite(world.state.q).all():
        raise ArithmeticError("a humanoid that stands is nowhere after three steps")


def _draw() -> None:
    humanoid = load_character("humanoid")
    if render(humanoid, humanoid.rest_q, size=(64, 64)).std() < 1.0:
        raise ValueError("the picture is empty")


def _plot() -> None:
    from matplotlib.figure import Figure

    Figure().savefig(io.BytesIO(), format="png")


def _encode() -> None:
    import imageio_ffmpeg

    imageio_ffmpeg.get_ffmpeg_version()


def _studio() -> None:
    import viser

    if not hasattr(viser, "ViserServer"):
        raise ImportError("this is another viser")


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return "-" if value in (None, "") else str(value)
