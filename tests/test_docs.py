"""The programs in the documents run, and their pictures are there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent / "docs"
PAGES = sorted(DOCS.glob("*.md"))
WITH_PROGRAMS = [page for page in PAGES if "```python\n" in page.read_text()]


@pytest.mark.parametrize("page", WITH_PROGRAMS, ids=lambda page: page.stem)
def test_the_programs_of_a_page_run_one_after_the_other(page: Path, tmp_path: Path) -> None:
    programs = re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL)
    program = "\n".join(programs)
    command = [sys.executable, "-W", "error", "-c", program]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_pictures_of_a_page_are_there(page: Path) -> None:
    for picture in re.findall(r"!\[[^\]]*\]\(([^)]*)\)", page.read_text()):
        assert (DOCS / picture).is_file(), picture


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_links_to_pages_that_exist_and_the_index_knows_it(page: Path) -> None:
    for other in re.findall(r"\{doc\}`([^`]*)`", page.read_text()):
        assert (DOCS / f"{other}.md").is_file(), other
    listed = (DOCS / "index.md").read_text().split()
    assert page.stem == "index" or page.stem in listed
