"""The works that can be reproduced, and the run through their items."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from poise.errors import PoiseError, unknown_name
from poise.experiments import kavafoglu2018, macchietto2008, yin2020
from poise.experiments.facts import facts
from poise.experiments.report import Item, check_folder, write_report
from poise.math.arrays import Progress


@dataclass(frozen=True)
class Work:
    """A work and its items.

    Args:
        name: "yin2020".
        title: Authors, year, title.
        items: What makes each item, by its key; called with a function that takes progress.
    """

    name: str
    title: str
    items: Mapping[str, Callable[[Progress], Item]]


WORKS = {
    "yin2020": Work("yin2020", yin2020.TITLE, yin2020.ITEMS),
    "kavafoglu2018": Work("kavafoglu2018", kavafoglu2018.TITLE, kavafoglu2018.ITEMS),
    "macchietto2008": Work("macchietto2008", macchietto2008.TITLE, macchietto2008.ITEMS),
}


def reproduce(
    work: str,
    items: Sequence[str] = (),
    *,
    out: str | os.PathLike[str] | None = None,
    progress: Callable[[str, float], None] | None = None,
) -> tuple[list[Item], dict[str, Path]]:
    """Run the experiments of a work and write a report.

    Args:
        work: One of WORKS.
        items: Which, in capitals or not; all unless given.
        out: Folder of the report; None is out/reproduce/WORK, or out/reproduce/WORK-ITEMS.
        progress: Called with an item's key and its share done, 0 to 1.

    Returns:
        The items, and the paths of what was written.
    """
    if work not in WORKS:
        raise PoiseError(unknown_name("work", work, WORKS))
    known = WORKS[work]
    keys = list(dict.fromkeys(key.upper() for key in items)) or list(known.items)
    for key in keys:
        if key not in known.items:
            raise PoiseError(f"{work}: " + unknown_name("item", key, known.items))
    if out is None:
        part = "" if len(keys) == len(known.items) else "-" + "-".join(keys)
        out = Path("out") / "reproduce" / f"{work}{part}"
    folder = check_folder(out)
    made = []
    for key in keys:
        tell = _teller(key, progress)
        tell(0.0)
        made.append(known.items[key](tell))
        tell(1.0)
    return made, write_report(folder, work, known.title, made, facts())


def _teller(key: str, progress: Callable[[str, float], None] | None) -> Progress:
    return (lambda share: None) if progress is None else (lambda share: progress(key, share))
