"""`poise bench`: how fast poise is on this machine, in half a minute and without other packages.

`make bench` in the source tree is the long one, with other engines beside it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import numpy as np
import typer

from poise import Character, Command, Drive, Target, World, _core, load_character, suggest_gains
from poise.cli import options
from poise.cli.doctor import examine
from poise.errors import PoiseError

CHARACTERS = ("humanoid", "dog", "snake-72")
FREQUENCY = 60.0  # of the joints [Hz]: stiff enough to stand
WARM_UP = 0.5  # simulated time before the clock starts [s]: it stands by then
LEAST = 3  # windows of each case
WINDOW = 0.01  # about as long as one is [s]


@dataclass(frozen=True)
class Result:
    """How fast one case ran. A step is one step of one copy."""

    character: str
    dof: int
    contact: bool
    copies: int
    dtype: str
    isa: str  # instruction set of the kernels
    microseconds: float  # per step, in the best window
    steps_per_second: float
    real_time: float  # how many characters run at the speed of the clock
    spread: float  # how far the median window lies above the best, as a fraction of it


def bench(
    character: Annotated[
        list[str] | None, options.option("Which one; may be given again.", "NAME|FILE")
    ] = None,
    copies: Annotated[int, typer.Option(min=1, max=65536, help="Copies in a batch.")] = 1024,
    dt: Annotated[str, options.option("Time step.", "SECONDS")] = "1/60",
    threads: Annotated[int, typer.Option(min=1, max=256, help="Threads of a batch.")] = 1,
    duration: Annotated[
        float, typer.Option("--seconds", min=0.0, max=60.0, help="How long each case is measured.")
    ] = 0.5,
    as_json: options.AsJson = False,
) -> None:
    """Measure how fast characters are simulated here: one, and a batch in both precisions.

    Each holds its rest pose with stable PD, first where nothing touches, then on the ground. A CPU
    with AVX2 and AVX-512 is measured with both; the real time is that of the default.
    Times are those of the best of many short windows: other work on the machine only adds to them.

    \b
    Examples:
    poise bench
    poise bench --character robot.xml --copies 4096 --dt 1/240
    poise bench --json > here.json
    """
    bodies = [load_character(name) for name in character or CHARACTERS]
    found = examine()
    kernels, sets = _core.isa(), compared()
    where = {"cpu": found["machine"]["cpu"], "kernels": kernels}
    where |= {"compiler": found["build"]["compiler"], "dt": options.seconds(dt), "threads": threads}
    if not as_json:
        default = f"default: {kernels['single']} for one, {kernels['batch']} for a batch"
        typer.echo(f"{where['cpu']}, dt {dt} s, threads: {threads}; {default}")
        times = [f"us {isa}" for isa in sets]
        typer.secho(line("character", "DoF", "", "copies", "", *times, "real time"), bold=True)
    results: list[dict[str, Any]] = []
    sizes = {"copies": copies, "dt": where["dt"], "threads": threads, "seconds": duration}
    for case in measure(bodies, sets=sets, **sizes):
        results += map(asdict, case)
        if not as_json:
            typer.echo(row(case))
    if as_json:
        options.print_json({**where, "results": results})


def compared() -> list[str]:
    """Instruction sets that are measured: those in use, and AVX2 beside AVX-512."""
    if os.environ.get("POISE_ISA"):
        return list(dict.fromkeys(_core.isa().values()))
    return [isa for isa in _core.supported_isas() if isa != "baseline"] or ["baseline"]


def line(*cells: object) -> str:
    """A row of the table: its character, the case, a time for each instruction set, real time."""
    times = [">9"] * (len(cells) - 6)
    widths = ("14", ">4", "10", ">7", "7", *times, ">11")
    return "  ".join(f"{cell!s:{width}}" for cell, width in zip(cells, widths, strict=True))


def row(results: list[Result]) -> str:
    """The results of one case as a row of the table."""
    default = _core.isa()["single" if results[0].copies == 1 else "batch"]
    result = next(result for result in results if result.isa == default)
    times = {one.isa: one.microseconds for one in results}
    return line(
        result.character[:14],
        result.dof,
        "on ground" if result.contact else "in the air",
        result.copies,
        result.dtype,
        *(f"{times[isa]:.3g}" if isa in times else "-" for isa in compared()),
        f"{result.real_time:,.0f} x" if result.real_time >= 100.0 else f"{result.real_time:.3g} x",
    )


def measure(
    characters: list[Character],
    *,
    sets: list[str],
    copies: int,
    dt: float,
    threads: int,
    seconds: float,
) -> Iterator[list[Result]]:
    """Time every character alone and in batches, with and without contact.

    Args:
        characters: The characters.
        sets: Instruction sets; each case yields one result for each.
        copies: Copies in a batch.
        dt: Time step [s].
        threads: Threads that a batch may take.
        seconds: How long each case is measured, warm-up not counted [s].
    """
    sizes = [(1, "float64"), (copies, "float64"), (copies, "float32")]
    for character in characters:
        for contact in (False, True):
            for n, dtype in sizes:
                case = (character, n, dtype, contact, dt, threads if n > 1 else 1)
                yield [_time(*case, isa=isa, seconds=seconds) for isa in _sets_of(n, sets)]


def _sets_of(n: int, sets: list[str]) -> list[str]:
    """Those of the sets with kernels for one character, or for a batch: AVX-512 is for these."""
    narrow = [isa for isa in sets if isa != "avx512"]
    return sets if n > 1 or not narrow else narrow


def _time(
    character: Character,
    n: int,
    dtype: str,
    contact: bool,
    dt: float,
    threads: int,
    *,
    isa: str,
    seconds: float,
) -> Result:
    """Time one case, in windows that all start from the same state."""
    # without ground there is no weight either, or it would fall
    model: dict[str, Any] = {} if contact else {"contact": None, "gravity": (0.0, 0.0, 0.0)}
    _core.choose_isa(isa)
    try:
        world = World(character, n=n, dt=dt, dtype=dtype, threads=threads, **model)
    finally:
        _core.choose_isa("")
    command = Command(
        drive=Drive(suggest_gains(character, FREQUENCY, root="free"), Target(character.rest_q))
    )
    world.step(command, max(1, round(WARM_UP / dt)))
    start = world.state.copy()
    steps = _steps_in(WINDOW, lambda k: world.step(command, k))
    windows: list[float] = []
    while len(windows) < LEAST or sum(windows) * steps * n < seconds:
        world.reset(start)
        begin = time.perf_counter()
        world.step(command, steps)
        windows.append((time.perf_counter() - begin) / (steps * n))
    if world.diverged or not np.isfinite(world.state.q).all():
        raise PoiseError(f"{character.name} diverged; a smaller --dt may help")
    best = min(windows)
    return Result(
        character.name,
        character.nv,
        contact,
        n,
        dtype,
        world.isa,
        microseconds=1e6 * best,
        steps_per_second=1.0 / best,
        real_time=dt / best,
        spread=float(np.median(windows)) / best - 1.0,
    )


def _steps_in(window: float, run: Any) -> int:
    """How many steps take about that long [s]."""
    steps = 1
    while True:
        begin = time.perf_counter()
        run(steps)
        taken = time.perf_counter() - begin
        if taken > 0.5 * window or steps >= 4096:
            return steps
        steps *= 2
