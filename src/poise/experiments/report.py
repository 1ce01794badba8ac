"""Reports: what a work printed, what comes out here, and a verdict from a stated criterion.

report.html   claims, tables and figures, in one file
report.json   the same numbers, and the version of poise
KEY.png       figures
"""

from __future__ import annotations

import base64
import csv
import json
import math
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from poise import _core
from poise.io.files import check_output_folder, made_by, write_atomically, write_output_folder
from poise.math.arrays import Progress
from poise.trials.timing import processor

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

    def claim(
        self,
        what: str,
        paper: str,
        here: str,
        criterion: str = "",
        holds: bool | None = None,
        why: str = "",
    ) -> None:
        """Adds a claim; see `Claim`."""
        self.claims.append(Claim(what, paper, here, criterion, holds, why))

    def table(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Adds a table; see `Table`."""
        self.tables.append(Table(title, columns, rows))

    @property
    def holds(self) -> bool:
        """Whether no claim differs."""
        return all(claim.holds is not False for claim in self.claims)

    @property
    def skipped(self) -> bool:
        """Whether nothing was found, as where data is missing; the text says why."""
        return not self.claims and not self.tables


@dataclass(frozen=True)
class Experiment:
    """An item of a work that can be run; made by `experiment`.

    Args:
        key: As in the list of experiments: "K1".
        title: What it is about.
        where: Its place in the work: "Figs. 3.5 to 3.7".
        fill: Runs it and adds claims, tables and figures to the item. Its docstring is the text of
            the item; `{NAME}` in it is a constant of its module.
    """

    key: str
    title: str
    where: str
    fill: Callable[[Item, Progress], None]

    @property
    def text(self) -> str:
        """What the item reports, with the constants of its module."""
        text = " ".join((self.fill.__doc__ or "").split())
        return text.format(**vars(sys.modules[self.fill.__module__]))

    def __call__(self, progress: Progress) -> Item:
        """Runs it.

        Args:
            progress: Called with the completed fraction, 0 to 1.
        """
        item = Item(self.key, self.title, self.where, self.text)
        self.fill(item, progress)
        return item


def experiment(
    key: str, title: str, where: str
) -> Callable[[Callable[[Item, Progress], None]], Experiment]:
    """Makes an `Experiment` of the function below it.

    Args:
        key: As of Experiment.
        title: As of Experiment.
        where: As of Experiment.
    """
    return partial(Experiment, key, title, where)


def check_folder(out: str | os.PathLike[str]) -> Path:
    """Raises if a folder cannot take a report: before the experiments, which take hours.

    Args:
        out: The folder.
    """
    return check_output_folder(out, (PAGE, RECORD), RECORD)


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

    folder = check_folder(out)
    record = {"work": work, "title": title, **made_by(), **facts}
    record["items"] = [_record(item) for item in items]
    figures = {name: png for item in items for name, png in item.figures.items()}
    data = {
        PAGE: page(title, items, facts).encode(),
        RECORD: json.dumps(plain(record), indent=1, allow_nan=False).encode(),
        **{f"{name}.png": png for name, png in figures.items()},
    }
    paths = write_output_folder(
        folder, {file: partial(write_atomically, data=data[file]) for file in data}
    )
    named = {name: paths[f"{name}.png"] for name in figures}
    return {"html": paths[PAGE], "json": paths[RECORD], **named}


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
        **item.__dict__,
        "skipped": item.skipped,
        "claims": [record_of(claim) for claim in item.claims],
        "tables": [table.__dict__ for table in item.tables],
        "figures": [f"{name}.png" for name in item.figures],
    }


# ---- the page

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 66rem; margin: 2rem auto; padding: 0 1rem;
  color: #222; background: #fff }
h2 { margin-top: 2.5rem; border-top: 1px solid #ddd; padding-top: 1rem }
.wide { overflow-x: auto }
table { border-collapse: collapse; margin: 1rem 0; font-size: 14px }
td, th { padding: .25rem .7rem; border-bottom: 1px solid #e4e4e4; text-align: right }
td:first-child, th:first-child { text-align: left }
.claims td, .claims th { text-align: left; vertical-align: top }
.holds { color: #17713a; font-weight: 600 } .differs { color: #b3261e; font-weight: 600 }
img { max-width: 100% } .dim { color: #666 }
"""


def page(title: str, items: Sequence[Item], facts: dict[str, Any]) -> str:
    """The whole page.

    Args:
        title: Of the work.
        items: What was brought back.
        facts: Where the numbers come from.
    """
    head = (
        "<meta charset=utf-8><meta name=viewport content='width=device-width'>"
        f"<title>{escape(title)}</title><style>{STYLE}</style>"
    )
    made = "; ".join(f"{key}: {value}" for key, value in facts.items())
    parts = [f"<h1>{escape(title)}</h1>", f"<p class=dim>{escape(made)}</p>", _summary(items)]
    body = "\n".join([*parts, *map(_section, items)])
    return f"<!doctype html><html lang=en>{head}<body>{body}</body></html>"


def _summary(items: Sequence[Item]) -> str:
    rows = []
    for item in items:
        judged = [claim for claim in item.claims if claim.holds is not None]
        good = sum(bool(claim.holds) for claim in judged)
        mark = "holds" if item.holds else "differs"
        result = f"<span class={mark}>{good} of {len(judged)}</span>"
        link = f'<a href="#{item.key}">{item.key}</a>'
        result = "skipped" if item.skipped else result
        rows.append([link, escape(item.title), escape(item.where), result])
    return _table(["", "item", "in the work", "claims that hold"], rows, "claims")


def _section(item: Item) -> str:
    parts = [
        f'<h2 id="{item.key}">{item.key} · {escape(item.title)}</h2>',
        f"<p>{escape(item.text)} <span class=dim>({escape(item.where)})</span></p>",
    ]
    if item.claims:
        head = ["claim", "paper", "here", "criterion", "verdict", "why"]
        parts.append(_table(head, [_claim(claim) for claim in item.claims], "claims"))
    parts += [_numbers(table) for table in item.tables]
    for name, png in item.figures.items():
        data = base64.b64encode(png).decode()
        parts.append(f'<img alt="{escape(name)}" src="data:image/png;base64,{data}">')
    return "\n".join(parts)


def _claim(claim: Claim) -> list[str]:
    verdict = f"<span class={claim.verdict}>{claim.verdict}</span>"
    texts = [escape(x) for x in (claim.what, claim.paper, claim.here, claim.criterion)]
    return [*texts, verdict, escape(claim.why)]


def _numbers(table: Table) -> str:
    cells = [[escape(_cell(x)) for x in row] for row in table.rows]
    return f"<h3>{escape(table.title)}</h3>" + _table([escape(c) for c in table.columns], cells, "")


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 1e3 else f"{value:,.0f}"
    return "-" if value is None else str(value)


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]], kind: str) -> str:
    head = "".join(f"<th>{column}</th>" for column in columns)
    body = "".join("<tr>" + "".join(f"<td>{x}</td>" for x in row) + "</tr>" for row in rows)
    return f"<div class=wide><table class='{kind}'><tr>{head}</tr>{body}</table></div>"


# ---- facts: machine, build and commit, on which the numbers depend


def facts() -> dict[str, Any]:
    """Where the numbers of a report come from, ready for JSON."""
    build = _core.build_info()
    found = {
        "poise": build["version"],
        "commit": commit(),
        "compiler": build.get("compiler"),
        "kernels": kernels(),
        "processor": processor(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None,
        "python": platform.python_version(),
        "numpy": np.__version__,
    }
    return {key: value for key, value in found.items() if value is not None}


def kernels() -> str:
    """Instruction sets of the kernels: one name, or those of one character and of batches."""
    single, batch = _core.isa()["single"], _core.isa()["batch"]
    return single if single == batch else f"{single} (one character), {batch} (batches)"


def commit() -> str | None:
    """The commit of the source, with a mark if there are changes on top; None if installed."""
    root = Path(__file__).parents[3]
    if not (root / "pyproject.toml").is_file():
        return None
    command = ("git", "describe", "--always", "--dirty", "--exclude=*")
    try:
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def printed_numbers(work: str) -> list[dict[str, str]]:
    """Rows of the `paper.csv` of a work, by the names of its columns."""
    text = (Path(__file__).parent / work / "paper.csv").read_text()
    return list(csv.DictReader(text.splitlines()))


def data_folder() -> Path | None:
    """The folder of clips that others recorded, $POISE_DATA or ../shared/data; None if missing."""
    folder = Path(os.environ.get("POISE_DATA") or Path("..") / "shared" / "data")
    return folder if folder.is_dir() else None
