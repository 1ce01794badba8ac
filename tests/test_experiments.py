"""Reproducing the works: reports are whole, claims hold, bad names are told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from poise import PoiseError
from poise.experiments import WORKS, Claim, Item, reproduce, write_report


@pytest.mark.parametrize("key", ["K1", "K4", "K6", "K7"])
def test_the_arm_does_what_the_thesis_says(key: str, tmp_path: Path) -> None:
    items, paths = reproduce("kavafoglu2018", [key], out=tmp_path)
    assert [claim.what for claim in items[0].claims if claim.holds is False] == []
    assert items[0].claims
    assert paths["html"].stat().st_size > 10_000


def test_the_models_are_the_papers(tmp_path: Path) -> None:
    items, _ = reproduce("yin2020", ["Y1"], out=tmp_path)
    assert items[0].holds


@pytest.mark.slow
@pytest.mark.parametrize("work", WORKS)
def test_a_whole_work_is_reproduced(work: str, tmp_path: Path) -> None:
    """What differs says why: in Y3 our torques in float32 round less than the paper's engine."""
    items, _ = reproduce(work, out=tmp_path)
    assert [item.key for item in items] == list(WORKS[work].items)
    off = [(i.key, c.what) for i in items for c in i.claims if c.holds is False]
    differ = {"yin2020": {"Y3"}, "macchietto2008": {"M1", "M2", "M4", "M6", "M9"}}
    assert {key for key, _ in off} == differ.get(work, set())
    assert all(c.why for i in items for c in i.claims if c.holds is False)


def test_a_report_holds_what_was_found(tmp_path: Path) -> None:
    claim = Claim("a < b & c", "1", "2", "below 1", False, "because")
    paths = write_report(tmp_path, "work", "A work", [Item("X1", "t", "w", claims=[claim])], {})
    record = json.loads(paths["json"].read_text())
    assert record["items"][0]["claims"][0]["verdict"] == "differs"
    assert "a &lt; b &amp; c" in paths["html"].read_text()


def test_wrong_names_list_the_near_ones(tmp_path: Path) -> None:
    with pytest.raises(PoiseError, match="yin2020"):
        reproduce("yin2021", out=tmp_path)
    with pytest.raises(PoiseError, match="K1"):
        reproduce("kavafoglu2018", ["K11"], out=tmp_path)
