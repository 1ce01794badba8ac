"""The works that can be reproduced, and their items."""

from __future__ import annotations

import importlib
import os
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from poise import _core
from poise.errors import PoiseError, unknown_name
from poise.experiments.report import Item, write_report

Progress = Callable[[float], None]


@dataclass(frozen=True)
class Work:
    """A work and its items.

    Args:
        name: "yin2020".
        title: Authors, year, title.
        items: Where each item is made: "module:function" below the work's package.
    """

    name: str
    title: str
    items: dict[str, str]

    def make(self, key: str) -> Callable[[Progress], Item]:
        """The function that makes an item."""
        module, name = self.items[key].split(":")
        function: Any = getattr(
            importlib.import_module(f"{__package__}.{self.name}.{module}"), name
        )
        takes = function.__code__.co_argcount
        return function if takes else (lambda _progress: function())


def _all(module: str, *names: str) -> dict[str, str]:
    return {name.upper(): f"{module}:{name}" for name in names}


WORKS = {
    "yin2020": Work(
        "yin2020",
        "Yin and Yin 2020: Linear Time Stable PD Controllers",
        {
            "Y1": "tracking_items:y1",
            "Y2": "tracking_items:y2",
            "Y3": "tracking_items:y3",
            "Y4": "cost_items:y4",
            "Y5": "cost_items:y5",
            "Y6": "tracking_items:y6",
            "Y8": "cost_items:y8",
        },
    ),
    "kavafoglu2018": Work(
        "kavafoglu2018",
        "Kavafoglu 2018: Real-time Motion Control with Kane's Method",
        {
            **_all("arm_items", "k1", "k2", "k3", "k4", "k5", "k6", "k7"),
            **_all("humanoid_items", "k8", "k9"),
            "K10": "symbol_items:k10",
        },
    ),
    "macchietto2008": Work(
        "macchietto2008",
        "Macchietto 2008: Momentum-Based Balance Control",
        {
            **_all("impacts", "m1", "m2"),
            **_all("motions", "m3", "m4"),
            **_all("others", "m5", "m6", "m7", "m8"),
            "M9": "survival:m9",
        },
    ),
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
        items: Which; all unless given.
        out: Folder of the report; None is out/reproduce/WORK.
        progress: Called with an item's key and its share done, 0 to 1.

    Returns:
        The items, and the paths of what was written.
    """
    if work not in WORKS:
        raise PoiseError(unknown_name("work", work, WORKS))
    known = WORKS[work]
    for key in items:
        if key not in known.items:
            raise PoiseError(f"{work}: " + unknown_name("item", key, known.items))
    made = []
    for key in items or known.items:
        tell = _teller(key, progress)
        tell(0.0)
        made.append(known.make(key)(tell))
        tell(1.0)
    folder = Path("out") / "reproduce" / work if out is None else Path(out)
    return made, write_report(folder, work, known.title, made, facts())


def _teller(key: str, progress: Callable[[str, float], None] | None) -> Progress:
    def tell(share: float) -> None:
        if progress is not None:
            progress(key, share)

    return tell


def facts() -> dict[str, Any]:
    """Where the numbers come from."""
    build = _core.build_info()
    return {
        "poise": build["version"],
        "compiler": build.get("compiler", ""),
        "kernels": _core.isa(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
    }
