"""The glossary: alphabetical, two sentences each at most, with modules that exist."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

ROOT = next(x for x in Path(__file__).resolve().parents if (x / "pyproject.toml").is_file())
ENTRIES = re.findall(
    r"^(\S.*)\n: (.*(?:\n  .*)*)", (ROOT / "docs" / "glossary.md").read_text(), re.MULTILINE
)


def test_entries_are_in_the_order_of_the_alphabet() -> None:
    terms = [term.lower() for term, _ in ENTRIES]
    assert len(terms) > 50
    assert terms == sorted(terms)
    assert len(terms) == len(set(terms))


def test_entries_are_short_and_end_with_modules_that_exist() -> None:
    for term, text in ENTRIES:
        said, modules = re.fullmatch(
            r"(.*?\.)\s+((?:`poise[\w.]*`,?\s*)+)", text, re.DOTALL
        ).groups()  # type: ignore[union-attr]
        sentences = re.findall(r"[.](?:\s|$)", said)
        assert len(sentences) <= 2, term
        for name in re.findall(r"`([^`]*)`", modules):
            assert find_spec(name) is not None, f"{term}: there is no module {name}"
