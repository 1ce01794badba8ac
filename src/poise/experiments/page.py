"""The page of a report: a summary, and for each item claims, tables and figures; one HTML file."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape
from typing import Any

from poise.experiments.report import Claim, Item, Table

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
    told = "; ".join(f"{key}: {value}" for key, value in facts.items())
    parts = [f"<h1>{escape(title)}</h1>", f"<p class=dim>{escape(told)}</p>", _summary(items)]
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
        rows.append([link, escape(item.title), escape(item.where),
                     "skipped" if item.skipped else result])  # fmt: skip
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
    told = [escape(x) for x in (claim.what, claim.paper, claim.here, claim.criterion)]
    return [*told, verdict, escape(claim.why)]


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
