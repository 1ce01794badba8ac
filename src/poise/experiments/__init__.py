"""Experiments: the tables and figures of the works, reproduced; `poise reproduce`.

Each work has a folder: how its scenes are set up, its items, and `paper.csv` with printed numbers.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from poise.errors import check_known
from poise.experiments import kavafoglu2018, macchietto2008, yin2020
from poise.experiments.report import (
    Claim,
    Experiment,
    Item,
    Table,
    check_folder,
    facts,
    write_report,
)

__all__ = ["WORKS", "Claim", "Item", "Table", "Work", "reproduce", "write_report"]


class Work(NamedTuple):
    """A work and its items.

    Attributes:
        title: Authors, year, title.
        items: Experiments by their keys.
    """

    title: str
    items: Mapping[str, Experiment]


WORKS = {
    name: Work(work.TITLE, {one.key: one for one in work.EXPERIMENTS})
    for name, work in (
        ("yin2020", yin2020),
        ("kavafoglu2018", kavafoglu2018),
        ("macchietto2008", macchietto2008),
    )
}
"""Works by name."""


def reproduce(
    work: str,
    items: Sequence[str] = (),
    *,
    out: str | os.PathLike[str] | None = None,
    progress: Callable[[str, float], None] | None = None,
) -> tuple[list[Item], dict[str, Path]]:
    """Runs the experiments of a work and writes a report.

    Args:
        work: One of WORKS.
        items: Which, in capitals or not; all unless given.
        out: Folder of the report; None is out/reproduce/WORK, or out/reproduce/WORK-ITEMS.
        progress: Called with an item's key and its completed fraction, 0 to 1.

    Returns:
        The items, and the paths of the files written.
    """
    check_known("work", work, WORKS)
    known = WORKS[work]
    keys = list(dict.fromkeys(key.upper() for key in items)) or list(known.items)
    for key in keys:
        check_known("item", key, known.items, at=f"{work}: ")
    if out is None:
        part = "" if len(keys) == len(known.items) else "-" + "-".join(keys)
        out = Path("out") / "reproduce" / f"{work}{part}"
    folder = check_folder(out)
    done = []
    for key in keys:

        def report(fraction: float, key: str = key) -> None:
            if progress is not None:
                progress(key, fraction)

        report(0.0)
        done.append(known.items[key](report))
        report(1.0)
    return done, write_report(folder, work, known.title, done, facts())
