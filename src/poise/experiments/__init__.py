"""Experiments: the tables and figures of the works, brought back; `poise reproduce`.

Each work has a folder: how its scenes are set up, its items, and `paper.csv` with printed numbers.
"""

from poise.experiments.report import Claim, Item, Table, write_report
from poise.experiments.works import WORKS, Work, reproduce

__all__ = ["WORKS", "Claim", "Item", "Table", "Work", "reproduce", "write_report"]
