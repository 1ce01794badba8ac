"""The programs and command lines in the documents work, pictures are there, the API is complete."""

from __future__ import annotations

import importlib
import pkgutil
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from command_lines import check_line, commands

import poise

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.md"))
TEXTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *PAGES]
WITH_PROGRAMS = [page for page in PAGES if "```python\n" in page.read_text()]
SECRET = {"poise.cli"}  # packages that are no part of the API


@pytest.mark.parametrize("page", WITH_PROGRAMS, ids=lambda page: page.stem)
def test_the_programs_of_a_page_run_one_after_the_other(page: Path, tmp_path: Path) -> None:
    programs = re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL)
    program = "\n".join(programs)
    command = [sys.executable, "-W", "error", "-c", program]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def typed(text: str) -> list[str]:
    """Command lines of `poise` in blocks of code; what is explained beside them is left out."""
    fenced = "\n".join(re.findall(r"```sh\n(.*?)```", text, flags=re.DOTALL))
    indented = "\n".join(re.findall(r"^ {4}(poise .*)$", text, flags=re.MULTILINE))
    lines = re.findall(r"^(poise .*)$", f"{fenced}\n{indented}", flags=re.MULTILINE)
    return [re.split(r"\s{2,}|\s#", line)[0] for line in lines]


@pytest.mark.parametrize("page", TEXTS, ids=lambda page: page.stem)
def test_the_command_lines_of_a_page_can_be_typed(page: Path) -> None:
    text = page.read_text()
    for line in typed(text):
        check_line(line)
    # within a sentence names in capitals stand for something, and arguments may be left out
    for line in re.findall(r"`(poise [a-z]+ [^`]*)`", text):
        if not re.search(r"\b[A-Z]{2,}\b|\.\.\.", line):
            check_line(" ".join(line.split()), whole=False)


def test_command_lines_are_found() -> None:
    text = "poise x\n```sh\npoise a --b    # c\n```\n    poise d e     what it does\n"
    assert typed(text) == ["poise a --b", "poise d e"]
    assert len(typed((ROOT / "README.md").read_text())) >= 6


@pytest.mark.parametrize("page", TEXTS, ids=lambda page: page.stem)
def test_the_pictures_of_a_page_are_there(page: Path) -> None:
    for picture in re.findall(r"!\[[^\]]*\]\(([^)]*)\)", page.read_text()):
        assert (page.parent / picture).is_file(), picture


@pytest.mark.parametrize("page", TEXTS, ids=lambda page: page.stem)
def test_a_page_names_files_that_exist(page: Path) -> None:
    named = re.findall(r"\b((?:examples|docs|benchmarks|tests)/[\w./-]*\w\.\w+)", page.read_text())
    for name in named:
        assert (ROOT / name).exists() or "_build" in name, name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_links_to_pages_that_exist_and_the_index_knows_it(page: Path) -> None:
    for other in re.findall(r"\{doc\}`([^`]*)`", page.read_text()):
        assert (DOCS / f"{other}.md").is_file(), other
    listed = (DOCS / "index.md").read_text().split()
    assert page.stem == "index" or page.stem in listed


@pytest.mark.parametrize("path", sorted((DOCS / "images").glob("*.*")), ids=lambda path: path.name)
def test_a_picture_is_shown_somewhere_and_a_program_makes_it(path: Path) -> None:
    if path.suffix == ".py":
        return
    assert any(f"images/{path.name}" in text.read_text() for text in TEXTS)
    makers = [*(DOCS / "images").glob("*.py")]
    makes = "".join(maker.read_text() for maker in makers)
    assert path.name in makes or path.with_suffix(".py") in makers


def test_the_moving_picture_of_the_readme_is_small() -> None:
    (gif,) = re.findall(r"\(([^)]*\.gif)\)", (ROOT / "README.md").read_text())
    assert 100_000 < (ROOT / gif).stat().st_size < 2_000_000


def test_the_page_of_the_command_line_has_every_command() -> None:
    listed = re.findall(r"\{command-help\} (.*)", (DOCS / "command-line.md").read_text())
    assert sorted(listed) == sorted(path for path in commands() if path != "poise")


# ---- the API


def public_packages() -> dict[str, Any]:
    """poise and the packages in it that say what they offer."""
    found = {"poise": poise}
    for one in pkgutil.walk_packages(poise.__path__, "poise."):
        hidden = any(one.name == name or one.name.startswith(f"{name}.") for name in SECRET)
        if one.ispkg and not hidden:
            module = importlib.import_module(one.name)
            if hasattr(module, "__all__"):
                found[one.name] = module
    return found


PACKAGES = public_packages()


@pytest.mark.parametrize("name", PACKAGES)
def test_every_public_package_is_in_the_reference(name: str) -> None:
    pages = "\n".join(page.read_text() for page in PAGES)
    assert re.search(rf"automodule:: {re.escape(name)}\n   :members:", pages)


@pytest.mark.parametrize("name", PACKAGES)
def test_every_public_name_exists_and_says_what_it_is(name: str) -> None:
    for public in PACKAGES[name].__all__:
        thing = getattr(PACKAGES[name], public)
        if callable(thing) and hasattr(thing, "__module__"):
            assert thing.__doc__, public
