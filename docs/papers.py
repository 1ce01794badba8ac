"""Checks docs/papers.yaml, the equations of the four works, and writes docs/papers.md from it.

    python docs/papers.py            check every name, then write the page
    python docs/papers.py --check    check every name, and that the page is up to date
    python docs/papers.py --fix      first follow names that have moved to one other module or file

Names are looked up in the source text, without importing it, so that no extra is needed. What is
stale is listed all at once, each with the nearest names that exist.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import re
import sys
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "docs" / "papers.yaml"
PAGE = ROOT / "docs" / "papers.md"
HEADERS = "cpp/include/poise/"

KEYS = {"equations", "where", "says", "code", "note", "changed", "tests"}

INTRO = """\
<!-- Generated from docs/papers.yaml by docs/papers.py; edit that file and run it again. -->

# The papers, equation by equation

Every numbered equation of the four works that poise unites: what it says, the code that implements
it, the slip that was corrected or the change that was made, and the tests that check it. Equations
that form one step of an algorithm share an entry. The tests compare with MuJoCo, Pinocchio, finite
differences, a closed form or another algorithm.

Python names are given with their module. C++ names follow their header, which is in
`cpp/include/poise/` unless the path says otherwise. `pytest -k NAME` runs a test.
"""


# ---- what exists


class Names:
    """Definitions in the sources, and tests.

    Args:
        root: The project's folder.
    """

    def __init__(self, root: Path = ROOT) -> None:
        self.root = root

    @cached_property
    def python(self) -> dict[str, set[str]]:
        """Names that each module of poise defines, attributes of classes as Class.attribute."""
        source = self.root / "src"
        found = {}
        for path in sorted(source.rglob("*.py")):
            parts = path.relative_to(source).with_suffix("").parts
            module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            found[module] = set(_defined(ast.parse(path.read_text(encoding="utf-8"))))
        return found

    @cached_property
    def cpp(self) -> dict[str, set[str]]:
        """Types and functions that each C++ file defines."""
        return {
            path.relative_to(self.root).as_posix(): _defined_in_cpp(
                path.read_text(encoding="utf-8")
            )
            for path in sorted((self.root / "cpp").rglob("*.[hc]pp"))
        }

    @cached_property
    def tests(self) -> dict[str, set[str]]:
        """File stems of each test, wherever it is under tests/."""
        found: dict[str, set[str]] = {}
        for path in sorted((self.root / "tests").rglob("test_*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                    found.setdefault(node.name, set()).add(path.stem)
        return found

    def stale(self, name: str) -> str | None:
        """Why a name does not exist, with near matches; None if it does."""
        if "::" in name or name.startswith("test_"):
            return self._stale_test(name)
        where, _, what = name.rpartition(":")
        files = self._files(where)
        if what in files.get(where, ()):
            return None
        if where not in files:
            kind = "file" if where.startswith("cpp/") else "module"
            return f"there is no {kind} {where!r}" + _hint(self.moved(name) or self._alike(name))
        near = [*self.moved(name), *self._alike(name)]
        return f"{where} does not define {what!r}" + (
            _hint(near) or f"; it defines: {', '.join(sorted(files[where])[:40])}"
        )

    def moved(self, name: str) -> list[str]:
        """Where else the same name is defined, in Python or in C++ as before."""
        where, _, what = name.rpartition(":")
        return [f"{file}:{what}" for file, names in self._files(where).items() if what in names]

    def _alike(self, name: str) -> list[str]:
        """Similar names: in the same file, or else in all files, then files with similar paths."""
        where, _, what = name.rpartition(":")
        files = self._files(where)
        some = {where: files[where]} if where in files else files
        names = {x: f"{file}:{x}" for file, defined in some.items() for x in defined}
        near = [names[x] for x in difflib.get_close_matches(what, names)]
        return near if where in files else [*near, *difflib.get_close_matches(where, files)]

    def _files(self, where: str) -> dict[str, set[str]]:
        return self.cpp if where.startswith("cpp/") else self.python

    def _stale_test(self, name: str) -> str | None:
        stem, _, test = name.rpartition("::")
        homes = self.tests.get(test, set())
        if homes and (not stem or stem in homes):
            return None
        if homes:
            return f"there is no {test} in {stem}.py" + _hint(
                [f"{x}::{test}" for x in sorted(homes)]
            )
        near = difflib.get_close_matches(test, self.tests, n=3, cutoff=0.5)
        return "there is no such test" + _hint(near)


def _hint(near: list[str]) -> str:
    return f"; near: {', '.join(near)}" if near else ""


def _defined(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        for name in _named(node):
            yield name
            if isinstance(node, ast.ClassDef):
                yield from (f"{name}.{x}" for member in node.body for x in _named(member))


def _named(node: ast.stmt) -> list[str]:
    """What a statement defines."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return [node.name]
    if isinstance(node, ast.AnnAssign):
        targets: list[ast.expr] = [node.target]
    elif isinstance(node, ast.Assign):
        targets = [x for t in node.targets for x in (t.elts if isinstance(t, ast.Tuple) else [t])]
    else:
        targets = []
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _defined_in_cpp(text: str) -> set[str]:
    """Names of types, and of functions: a type, a name and an opening parenthesis."""
    text = re.sub(r"//.*", "", text)
    types = re.findall(r"\b(?:struct|class|enum class|enum|concept|using)\s+(\w+)", text)
    calls = re.findall(r"^[ \t]*((?:[\w:<>,&*]+[ \t]+)+)[&*]?(?:\w+::)*(\w+)\(", text, re.MULTILINE)
    words = {"return", "else", "case", "new", "throw", "if", "for", "while", "="}
    return {*types, *(name for before, name in calls if not words & set(before.split()))}


# ---- the data


def load(path: Path = DATA) -> list[Any]:
    """The works. Equation numbers must be in quotes: 5.10 is no 5.1."""
    from ruamel.yaml import YAML

    works: list[Any] = YAML(typ="safe").load(path.read_text(encoding="utf-8"))
    for given in [x.get("equations", "") for work in works for x in rows_of(work)]:
        if not isinstance(given, str):
            raise SystemExit(f"{path.name}: equations: {given} must be in quotes")
    return works


def rows_of(work: Any) -> list[Any]:
    """All rows of a work."""
    return [row for section in work["sections"] for row in section["rows"]]


def numbers_in(text: str) -> list[str]:
    """Equation numbers of a list with ranges: "3.1-3.3, 5" gives 3.1, 3.2, 3.3 and 5."""
    found = []
    for part in re.split(r",\s*", text):
        first, _, last = part.partition("-")
        head, _, start = first.rpartition(".")
        stop = int(last.rpartition(".")[2] or start)
        found += [f"{head}.{i}" if head else str(i) for i in range(int(start), stop + 1)]
    return found


def problems(works: list[Any], names: Names) -> list[str]:
    """All that is wrong with the data, a line each."""
    found = []
    for work in works:
        listed, wanted = _numbers(work), numbers_in(work["numbers"])
        label = work["work"]
        found += [f"{label}: equation {n} is in no row" for n in wanted if n not in listed]
        found += [f"{label}: equation {n} does not exist" for n in listed if n not in wanted]
        twice = sorted({n for n in listed if listed.count(n) > 1})
        found += [f"{label}: equation {n} is in several rows" for n in twice]
        for row in rows_of(work):
            at = f"{label} {_label(row)}"
            found += [f"{at}: unknown key {key!r}" for key in sorted(row.keys() - KEYS)]
            if ("equations" in row) == ("where" in row):
                found.append(f"{at}: needs either equations or where")
            if row.get("code") and not row.get("tests"):
                found.append(f"{at}: has code and no test")
            for name in [*row.get("code", ()), *row.get("tests", ())]:
                lacks = names.stale(name)
                if lacks:
                    found.append(f"{at}: {name}: {lacks}")
    return found


def follow_moves(names: Names, path: Path = DATA) -> list[str]:
    """Rewrite names in the data whose definition is in exactly one other place; what was done."""
    done, text = [], path.read_text(encoding="utf-8")
    rows = [row for work in load(path) for row in rows_of(work)]
    for name in sorted({name for row in rows for name in row.get("code", ())}):
        moved = names.moved(name)
        if names.stale(name) and len(moved) == 1:
            text = re.sub(rf"(?<=- ){re.escape(name)}$", moved[0], text, flags=re.MULTILINE)
            done.append(f"{name} -> {moved[0]}")
    path.write_text(text, encoding="utf-8")
    return done


def _numbers(work: Any) -> list[str]:
    return [n for row in rows_of(work) if "equations" in row for n in numbers_in(row["equations"])]


def _label(row: Any) -> str:
    return str(row.get("equations", row.get("where", "?")))


# ---- the page


def page(works: list[Any]) -> str:
    """The text of docs/papers.md."""
    return INTRO + "".join(_work(work) for work in works)


def _work(work: Any) -> str:
    parts = [f"\n## {work['title']}\n\n{_line(work['cite'])}\n\n{_line(work['about'])}\n"]
    for section in work["sections"]:
        parts.append(f"\n### {section['heading']}\n")
        parts += [_row(row) for row in section["rows"]]
    return "".join(parts)


def _row(row: Any) -> str:
    """An entry of a definition list: the equation, then code, changes and tests."""
    label = re.sub(r"-(?=[\dA-D])", "–", _label(row)) if "equations" in row else _label(row)
    code = ", ".join(f"`{_shown(name)}`" for name in row.get("code", ()))
    note = row.get("note", "" if code else "not implemented")
    tests = ", ".join(f"`{name.rpartition('::')[2]}`" for name in row.get("tests", ()))
    parts = {
        "Code": "; ".join(x for x in (code, _line(note)) if x),
        "Changed": _line(row.get("changed", "")),
        "Tests": tests,
    }
    lines = [f"\n**({label})** {_line(row['says'])}\n"]
    lines += [f": *{name}:* {text}\n" for name, text in parts.items() if text]
    return "".join(lines)


def _shown(name: str) -> str:
    where, _, what = name.rpartition(":")
    if where.startswith("cpp/"):
        return f"{where.removeprefix(HEADERS).removeprefix('cpp/')}: {what}"
    return f"{where}.{what}"


def _line(text: object) -> str:
    return " ".join(str(text).split())


def main(arguments: list[str] | None = None) -> int:
    """Run as a command; 1 if something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--check", action="store_true", help="write nothing")
    parser.add_argument("--fix", action="store_true", help="follow names that have moved")
    given = parser.parse_args(arguments)
    names = Names()
    if given.fix and not given.check:
        print(*follow_moves(names), sep="\n")
    works = load()
    wrong = problems(works, names)
    text = page(works)
    if not given.check and not wrong:
        PAGE.write_text(text, encoding="utf-8")
    elif not PAGE.is_file() or PAGE.read_text(encoding="utf-8") != text:
        wrong.append("docs/papers.md is out of date: run `python docs/papers.py`")
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
