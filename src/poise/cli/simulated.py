"""What the commands that simulate a clip share: the run itself, and how it is told."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from poise.errors import Diverged, PoiseError

if TYPE_CHECKING:
    from poise.recording import Recording


def simulated(trial: Any, progress: Any, advice: str) -> tuple[Recording, float]:
    """Run a trial: the recording, and how long the simulation took [s].

    Args:
        trial: The Trial.
        progress: Called with the fraction that is done, 0 to 1.
        advice: What helps against divergence.
    """
    trial.clip.q(0.0)  # its spline is made, and SciPy loaded, before the clock runs
    before = time.perf_counter()
    try:
        recording = trial.run(progress=progress)
    except Diverged as error:
        raise PoiseError(
            f"the simulation diverged at {error.time:.3g} s, first in joint {error.joint!r}: "
            f"{advice}"
        ) from error
    return recording, time.perf_counter() - before


def tell_results(
    table: dict[str, Any],
    files: Mapping[str, Path],
    *,
    as_json: bool,
    show: Callable[[dict[str, Any]], None],
    started: float,
) -> None:
    """Print the table and where the files are, for people or as JSON.

    Args:
        table: Numbers.
        files: By their keys.
        as_json: For scripts.
        show: Prints the table for people.
        started: When all began, by time.perf_counter.
    """
    if as_json:
        paths = {key: str(path) for key, path in files.items()}
        typer.echo(json.dumps({**table, "files": paths}, indent=1))
        return
    show(table)
    typer.echo(f"all done in {time.perf_counter() - started:.1f} s:")
    for path in files.values():
        typer.echo(f"  {path}")
