"""What a benchmark says: tables, bounds with their verdicts, and the record behind them."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from timing import Plan, Timing

from poise import _core

try:
    from rich.console import Console
    from rich.table import Table as RichTable
except ImportError:  # plain text does
    Console = None  # type: ignore[assignment, misc]

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Bound:
    """A claim: a measured number at least, or at most, as large as it should be."""

    claim: str
    value: float
    least: float | None = None
    most: float | None = None
    unit: str = "x"

    @property
    def holds(self) -> bool:
        return not (
            (self.least is not None and not self.value >= self.least)
            or (self.most is not None and not self.value <= self.most)
        )

    @property
    def limit(self) -> str:
        return (
            f"≥ {self.least:g} {self.unit}"
            if self.least is not None
            else (f"≤ {self.most:g} {self.unit}")
        )

    def record(self, judged: bool) -> dict[str, Any]:
        return {
            "claim": self.claim,
            "measured": self.value,
            "unit": self.unit,
            "least": self.least,
            "most": self.most,
            "holds": self.holds if judged else None,
        }


@dataclass(frozen=True)
class Table:
    """Cells of text; the first column is names, the others are numbers."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass
class Section:
    """One part of the run."""

    name: str
    title: str
    tables: list[Table] = field(default_factory=list)
    bounds: list[Bound] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    timings: list[Timing] = field(default_factory=list)
    numbers: dict[str, Any] = field(default_factory=dict)
    pictures: dict[str, Callable[[Path], None]] = field(default_factory=dict)

    def record(self, plan: Plan) -> dict[str, Any]:
        """All of it, ready for JSON."""
        return {
            "title": self.title,
            "bounds": [bound.record(not plan.quick) for bound in self.bounds],
            "notes": self.notes,
            "numbers": self.numbers,
            "timings": [timing.record() for timing in self.timings],
        }


# ---- text


def micro(timing: Timing) -> str:
    """Best time in microseconds, and how far the median lies above it."""
    return f"{timing.best * 1e6:.3g} (+{timing.spread:.0%})"


def percent(ratio: float) -> str:
    """A ratio as what it adds: 1.05 is +5.0 %."""
    return f"{100 * (ratio - 1):+.1f} %"


def show(section: Section, plan: Plan) -> None:
    """Print a section."""
    say(f"\n== {section.name}: {section.title}")
    for table in section.tables:
        draw(table)
    if section.bounds:
        draw(verdicts(section.bounds, plan))
    for note in section.notes:
        say(f"  {note}")


def verdicts(bounds: Iterable[Bound], plan: Plan) -> Table:
    """The bounds beside what was measured."""

    def verdict(bound: Bound) -> str:
        return "not judged" if plan.quick else "holds" if bound.holds else "DOES NOT HOLD"

    rows = [(b.claim, f"{b.value:.3g} {b.unit}", b.limit, verdict(b)) for b in bounds]
    return Table("", ("bound", "measured", "required", "verdict"), rows)


def draw(table: Table) -> None:
    """Print a table, by rich if it is here."""
    if Console is None:
        say(plain(table))
        return
    drawn = RichTable(title=table.title or None, title_justify="left")
    for i, column in enumerate(table.columns):
        drawn.add_column(column, justify="right" if i else "left", no_wrap=True)
    for row in table.rows:
        drawn.add_row(*row)
    # wide enough not to cut cells, in a pipe or in a narrow window
    Console(highlight=False, markup=False, width=200).print(drawn)


def plain(table: Table) -> str:
    """The table as plain text."""
    lines = [table.columns, *table.rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(table.columns))]

    def text(line: Sequence[str]) -> str:
        cells = zip(line, widths, strict=True)
        return "  ".join(c.rjust(w) if i else c.ljust(w) for i, (c, w) in enumerate(cells))

    title = [table.title] if table.title else []
    return "\n".join([*title, *map(text, lines)])


def say(text: str) -> None:
    """Print a line at once, so that a pipe shows it as it comes."""
    print(text, flush=True)


# ---- the record


def machine() -> dict[str, Any]:
    """Where and with what this runs."""
    return {
        "cpu": cpu_name(),
        "cores": os.cpu_count(),
        "load": load(),
        "platform": platform.platform(),
        "python": platform.python_version(),
        "isa": dict(_core.isa()),
        "build": dict(_core.build_info()),
        "versions": {name: version(name) for name in ("numpy", "mujoco", "pin")},
        "commit": commit(),
    }


def load() -> float | None:
    """Mean number of runnable processes in the last minute, this one among them."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else None


def cpu_name() -> str:
    """The name of the processor, if the system reports it."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        found = re.search(r"^model name\s*:\s*(.+)$", cpuinfo.read_text(), re.MULTILINE)
        if found:
            return found[1]
    return platform.processor() or platform.machine()


def version(package: str) -> str | None:
    """Version of an installed package."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def commit() -> str | None:
    """The commit of this work tree, with a mark if there are changes on top."""
    try:
        command = ("git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")
        return subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def write(path: Path, record: dict[str, Any]) -> None:
    """Write the record as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=1) + "\n")
