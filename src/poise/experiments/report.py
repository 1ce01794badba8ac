"""Reports: what a work printed, what comes out here, and a verdict from a stated criterion.

report.html   claims, tables and figures, in one file
report.json   the same numbers; it says who made it
KEY.png       figures
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from poise.io.files import write_atomically
from poise.trials.results import check_out, maker, staged

PAGE, RECORD = "report.html", "report.json"


@dataclass(frozen=True)
class Claim:
    """One thing that a work says, and what comes out here.

    Args:
        what: The claim, in a few words.
        paper: What the work printed; a dash if it printed no number.
        here: What came out here.
        criterion: What must hold for the verdict "holds".
        holds: The verdict; None states numbers without one.
        why: Where ours differs, why.
    """

    what: str
    paper: str
    here: str
    criterion: str = ""
    holds: bool | None = None
    why: str = ""

    @property
    def verdict(self) -> str:
        """In a word."""
        return {True: "holds", False: "differs", None: "-"}[self.holds]


@dataclass(frozen=True)
class Table:
    """Numbers in rows, the first column names them."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]


@dataclass
class Item:
    """One table or figure of a work, brought back.

    Args:
        key: As in the list of experiments: "K1".
        title: What it is about.
        where: Its place in the work: "Figs. 3.5 to 3.7".
        text: How it was done here, and what stands in for what.
        claims: Claims with their verdicts.
        tables: Numbers.
        figures: Pictures, PNG, by name.
    """

    key: str
    title: str
    where: str
    text: str = ""
    claims: list[Claim] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    figures: dict[str, bytes] = field(default_factory=dict)

    @property
    def holds(self) -> bool:
        """Whether no claim differs."""
        return all(claim.holds is not False for claim in self.claims)

    @property
    def skipped(self) -> bool:
        """Whether nothing was found, as where data is missing; the text says why."""
        return not self.claims and not self.tables


def check_folder(out: str | os.PathLike[str]) -> Path:
    """Refuse a folder that cannot take a report, before hours go by.

    Args:
        out: The folder.
    """
    return check_out(out, files=(PAGE, RECORD), table=RECORD)


def write_report(
    out: str | os.PathLike[str], work: str, title: str, items: Sequence[Item], facts: dict[str, Any]
) -> dict[str, Path]:
    """Write report.html, report.json and the figures: all of them, or nothing.

    Args:
        out: The folder; a report of an earlier run is replaced.
        work: Name of the work.
        title: Its title.
        items: What was brought back.
        facts: Where numbers come from: machine, commit, load; ready for JSON.

    Returns:
        Paths: "html", "json", and the figures by their names.
    """
    from poise.experiments.page import page

    folder = check_folder(out)
    record = {"work": work, "title": title, **maker(), **facts}
    record["items"] = [_record(item) for item in items]
    files = {"html": PAGE, "json": RECORD}
    data = {
        "html": page(title, items, facts).encode(),
        "json": json.dumps(plain(record), indent=1, allow_nan=False).encode(),
    }
    for item in items:
        for name, png in item.figures.items():
            files[name], data[name] = f"{name}.png", png
    with staged(folder) as stage:
        for name, file in files.items():
            write_atomically(stage / file, data[name])
        for file in files.values():
            os.replace(stage / file, folder / file)
    return {name: folder / file for name, file in files.items()}


def record_of(claim: Claim) -> dict[str, Any]:
    """A claim, ready for JSON."""
    return {**claim.__dict__, "verdict": claim.verdict}


def plain(value: Any) -> Any:
    """Numbers and lists as JSON has them; what is not finite becomes None."""
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(one) for one in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _record(item: Item) -> dict[str, Any]:
    return {
        "key": item.key,
        "title": item.title,
        "where": item.where,
        "text": item.text,
        "skipped": item.skipped,
        "claims": [record_of(claim) for claim in item.claims],
        "tables": [
            {"title": t.title, "columns": list(t.columns), "rows": [list(r) for r in t.rows]}
            for t in item.tables
        ],
        "figures": [f"{name}.png" for name in item.figures],
    }
