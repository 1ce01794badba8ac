"""Reports: what a work printed, what comes out here, and a verdict from a stated criterion."""

from __future__ import annotations

import base64
import html
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from poise.files import write_atomically


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
        raw: Raw numbers, ready for JSON.
    """

    key: str
    title: str
    where: str
    text: str = ""
    claims: list[Claim] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    figures: dict[str, bytes] = field(default_factory=dict)
    raw: dict[str, Any] = field(default_factory=dict)

    @property
    def holds(self) -> bool:
        """Whether no claim differs."""
        return all(claim.holds is not False for claim in self.claims)


def write_report(
    out: str | os.PathLike[str], work: str, title: str, items: Sequence[Item], facts: dict[str, Any]
) -> dict[str, Path]:
    """Write report.html, report.json and the figures.

    Args:
        out: The folder.
        work: Name of the work.
        title: Its title.
        items: What was brought back.
        facts: Machine, commit, seed: ready for JSON.
    """
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    paths = {"html": folder / "report.html", "json": folder / "report.json"}
    for item in items:
        for name, png in item.figures.items():
            paths[name] = folder / f"{name}.png"
            write_atomically(paths[name], png)
    record = {"work": work, "title": title, **facts, "items": [_record(item) for item in items]}
    write_atomically(paths["json"], json.dumps(record, indent=1).encode())
    write_atomically(paths["html"], _page(title, items, facts).encode())
    return paths


def _record(item: Item) -> dict[str, Any]:
    return {
        "key": item.key,
        "title": item.title,
        "where": item.where,
        "claims": [{**claim.__dict__, "verdict": claim.verdict} for claim in item.claims],
        "tables": [
            {"title": t.title, "columns": list(t.columns), "rows": [list(r) for r in t.rows]}
            for t in item.tables
        ],
        "raw": item.raw,
    }


STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem;
  color: #222; background: #fff }
h2 { margin-top: 2.5rem; border-top: 1px solid #ddd; padding-top: 1rem }
table { border-collapse: collapse; margin: 1rem 0; font-size: 14px }
td, th { padding: .25rem .7rem; border-bottom: 1px solid #e4e4e4; text-align: right }
td:first-child, th:first-child { text-align: left }
.claims td, .claims th { text-align: left; vertical-align: top }
.holds { color: #17713a; font-weight: 600 } .differs { color: #b3261e; font-weight: 600 }
img { max-width: 100% } .dim { color: #666 }
"""


def _page(title: str, items: Sequence[Item], facts: dict[str, Any]) -> str:
    parts = [f"<h1>{html.escape(title)}</h1>", _facts(facts), _summary(items)]
    parts += [_section(item) for item in items]
    head = f"<title>{html.escape(title)}</title><style>{STYLE}</style>"
    view = "<meta name=viewport content='width=device-width'>"
    body = "\n".join(parts)
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8>{view}{head}<body>{body}</body></html>"
    )


def _facts(facts: dict[str, Any]) -> str:
    text = "; ".join(f"{key} {value}" for key, value in facts.items())
    return f"<p class=dim>{html.escape(text)}</p>"


def _summary(items: Sequence[Item]) -> str:
    rows = []
    for item in items:
        judged = [claim for claim in item.claims if claim.holds is not None]
        good = sum(bool(claim.holds) for claim in judged)
        mark = "holds" if item.holds else "differs"
        rows.append(
            [
                f'<a href="#{item.key}">{item.key}</a>',
                html.escape(item.title),
                html.escape(item.where),
                f"<span class={mark}>{good} of {len(judged)}</span>",
            ]
        )
    return _table(["", "item", "in the work", "claims that hold"], rows, "claims")


def _section(item: Item) -> str:
    parts = [f'<h2 id="{item.key}">{item.key} · {html.escape(item.title)}</h2>']
    parts.append(
        f"<p>{html.escape(item.text)} <span class=dim>({html.escape(item.where)})</span></p>"
    )
    if item.claims:
        rows = [
            [
                html.escape(c.what),
                html.escape(c.paper),
                html.escape(c.here),
                html.escape(c.criterion),
                f"<span class={c.verdict}>{c.verdict}</span>",
                html.escape(c.why),
            ]
            for c in item.claims
        ]
        parts.append(_table(["claim", "paper", "here", "criterion", "verdict", ""], rows, "claims"))
    for table in item.tables:
        cells = [[html.escape(_cell(x)) for x in row] for row in table.rows]
        parts.append(f"<h3>{html.escape(table.title)}</h3>")
        parts.append(_table([html.escape(c) for c in table.columns], cells, ""))
    for name, png in item.figures.items():
        data = base64.b64encode(png).decode()
        parts.append(f'<img alt="{html.escape(name)}" src="data:image/png;base64,{data}">')
    return "\n".join(parts)


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 1e4 else f"{value:,.0f}"
    return "-" if value is None else str(value)


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]], kind: str) -> str:
    head = "".join(f"<th>{column}</th>" for column in columns)
    body = "".join("<tr>" + "".join(f"<td>{x}</td>" for x in row) + "</tr>" for row in rows)
    return f"<table class='{kind}'><tr>{head}</tr>{body}</table>"
