"""The words of the field: names and messages keep to docs/glossary.md, and a few words stay out."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = sorted(
    path for folder in ("src", "benchmarks", "examples") for path in (ROOT / folder).rglob("*.py")
)
CPP = sorted((ROOT / "cpp").rglob("*.[hc]pp"))

NOT_IN_NAMES = {
    "told", "tell", "tells", "asked", "asks", "wish", "wishes", "wished", "wanted", "wants",
    "deed", "deeds", "apart", "mind", "spare", "spares", "who", "whose", "whom", "carried",
    "miss", "missed", "misses", "share", "shares", "firm", "firmness", "ease", "lent", "said",
    "says",
}  # fmt: skip
"""The field says desired, request, result, edit, projectile, residual, weight, simulated, ..."""

NOT_IN_TEXT = NOT_IN_NAMES - {
    "whose", "share", "shares", "says", "ease", "missed", "misses", "miss", "wants", "asks", "who",
}  # fmt: skip
"""Words that a message may use in their plain English sense are not among these."""

ON_DISK = {"src/poise/recording/file.py": {"spares"}, "src/poise/recording/summary.py": {"asked"}}
"""Keys of files, which keep the names they were written with."""

PHRASES = re.compile(r"mass cent(re|er)|\bcentre\b|\bthe wish|deeds?\b", re.IGNORECASE)

RETIRED = re.compile(
    "takes_rows|takes_past|takes_target|NOT_FOR_BALANCE|enum class What|told_size|task_size"
)
"""Abstractions that were replaced; none of their names may come back."""


def words(name: str) -> set[str]:
    """The words of an identifier in snake or camel case, or of a text."""
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)}


def names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Names that a module defines, with their lines."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield node.lineno, name
            case ast.ClassDef(name=name) | ast.arg(arg=name):
                yield node.lineno, name
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield node.lineno, name


def docstrings(tree: ast.AST) -> set[int]:
    """Lines on which strings stand alone as a statement."""
    return {
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }


def texts(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Strings of a module, messages and docstrings, with their lines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def found(path: Path) -> list[str]:
    """Words in a module that do not belong there, as `file:line: word in text`."""
    tree, where = ast.parse(path.read_text(encoding="utf-8")), path.relative_to(ROOT)
    keys = ON_DISK.get(where.as_posix(), set())
    bad = [f"{where}: {word}" for word in words(path.stem) & NOT_IN_NAMES]
    for line, name in names(tree):
        bad += [f"{where}:{line}: {word} in {name}" for word in words(name) & NOT_IN_NAMES]
    prose = docstrings(tree)
    for line, text in texts(tree):
        if re.fullmatch(r"[\w./-]+", text):
            continue  # a key, a path or a name on disk
        bad += [
            f"{where}:{line}: {word} in {text[:60]!r}"
            for word in words(text) & (NOT_IN_TEXT - {"apart"} if line in prose else NOT_IN_TEXT)
            if word not in keys
        ]
        bad += [f"{where}:{line}: {phrase[0]}" for phrase in PHRASES.finditer(text)]
    return bad


def test_names_and_messages_use_the_words_of_the_field() -> None:
    assert [line for path in FILES for line in found(path)] == []


@pytest.mark.parametrize("folder", ["src", "cpp", "benchmarks", "examples"])
def test_retired_names_do_not_come_back(folder: str) -> None:
    kinds = {".py", ".pyi", ".hpp", ".cpp"}
    files = [path for path in (ROOT / folder).rglob("*") if path.suffix in kinds]
    assert files
    hits = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in files
        for match in RETIRED.finditer(path.read_text(encoding="utf-8"))
    ]
    assert hits == []


def test_comments_of_the_core_use_the_words_of_the_field() -> None:
    comments = [
        (path.relative_to(ROOT), line)
        for path in CPP
        for line in re.findall(r"//.*", path.read_text(encoding="utf-8"))
    ]
    assert comments
    assert [(path, line) for path, line in comments if PHRASES.search(line)] == []


def test_the_word_list_finds_what_it_should() -> None:
    tree = ast.parse('def told(x):\n    """The mass centre, asked for."""\n    wishList = 1\n')
    assert {word for _, name in names(tree) for word in words(name) & NOT_IN_NAMES} == {
        "told",
        "wish",
    }
    assert any(PHRASES.search(text) and "asked" in words(text) for _, text in texts(tree))
    assert found(ROOT / "src" / "poise" / "errors.py") == []
