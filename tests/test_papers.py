"""The page of the papers' equations names code and tests that exist, and is up to date."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

ROOT = next(x for x in Path(__file__).resolve().parents if (x / "pyproject.toml").is_file())


@pytest.fixture(scope="module")
def papers() -> Any:
    """The module docs/papers.py."""
    spec = importlib.util.spec_from_file_location("papers", ROOT / "docs" / "papers.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def names(papers: Any) -> Any:
    """Everything that the sources and tests define."""
    return papers.Names()


def test_every_equation_has_a_row_and_every_name_in_it_exists(papers: Any, names: Any) -> None:
    wrong = papers.problems(papers.load(), names)
    assert not wrong, "docs/papers.yaml is stale:\n" + "\n".join(wrong)


def test_the_page_of_the_papers_is_up_to_date(papers: Any) -> None:
    written = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
    assert written == papers.page(papers.load()), "run: python docs/papers.py"


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("poise.errors:PoiseEror", "poise.errors:PoiseError"),
        ("poise.somewhere:PoiseError", "poise.errors:PoiseError"),
        ("poise.errors:PoiseError.nothing", ""),
        ("cpp/include/poise/spatial.hpp:exponentialy", "cpp/include/poise/spatial.hpp:exponential"),
        ("cpp/include/poise/gone.hpp:exponential", "cpp/include/poise/spatial.hpp:exponential"),
        ("test_the_page_of_papers_is_up_to_date", "test_the_page_of_the_papers_is_up_to_date"),
        (
            "test_gone::test_the_page_of_the_papers_is_up_to_date",
            "test_papers::test_the_page_of_the_papers_is_up_to_date",
        ),
    ],
)
def test_a_stale_name_is_reported_with_near_matches(names: Any, name: str, near: str) -> None:
    lacks = names.stale(name)
    assert lacks
    assert near in lacks


def test_names_that_exist_are_not_stale(names: Any) -> None:
    for name in ("poise.errors:PoiseError", "poise.math.rotation:log",
                 "cpp/include/poise/spatial.hpp:exponential", "cpp/include/poise/spatial.hpp:Vec3",
                 "test_papers::test_names_that_exist_are_not_stale"):  # fmt: skip
        assert names.stale(name) is None, name
    # a call is no definition
    assert names.stale("cpp/include/poise/drive.hpp:logarithm")


def test_all_problems_are_listed_at_once(papers: Any, names: Any) -> None:
    rows = [
        {"equations": "1-2, 2", "says": "", "code": ["poise.errors:A"], "tests": ["test_a_b_c"]},
        {"equations": "9", "where": "III", "says": "", "colour": "red"},
    ]
    work = {"work": "x", "numbers": "1-3", "sections": [{"rows": rows}]}
    wrong = "\n".join(papers.problems([work], names))
    for part in ("3 is in no row", "9 does not exist", "2 is in several", "'A'", "test_a_b_c",
                 "colour", "either equations or where"):  # fmt: skip
        assert part in wrong


def test_a_name_that_has_moved_is_followed(papers: Any, names: Any, tmp_path: Path) -> None:
    data = tmp_path / "papers.yaml"
    gone = "poise.gone:PoiseError", "poise.gone:nowhere_at_all"
    code = "".join(f"      - {name}\n" for name in gone)
    data.write_text(f"- sections:\n  - rows:\n    - code:\n{code}", encoding="utf-8")
    assert papers.follow_moves(names, data) == ["poise.gone:PoiseError -> poise.errors:PoiseError"]
    (work,) = papers.load(data)
    assert papers.rows_of(work)[0]["code"] == ["poise.errors:PoiseError", gone[1]]


def test_ranges_of_equations_are_spelled_out(papers: Any) -> None:
    assert papers.numbers_in("3.9-3.11, A.2, 7") == ["3.9", "3.10", "3.11", "A.2", "7"]
