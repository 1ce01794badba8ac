"""Every example runs headless and passes its own check, and the README's program runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("[0-9]*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs_and_passes_its_own_check(path: Path, tmp_path: Path) -> None:
    command = [sys.executable, str(path), "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert any(tmp_path.iterdir())


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_has_fewer_than_a_hundred_lines(path: Path) -> None:
    assert len(path.read_text().splitlines()) < 100


def test_examples_are_numbered_without_a_gap_and_listed() -> None:
    listed = (ROOT / "docs" / "getting-started.md").read_text()
    for number, path in enumerate(EXAMPLES):
        assert path.name.startswith(f"{number:02}_")
        assert path.name in listed


def test_the_programs_in_the_readme_run(tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text()
    programs = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert programs
    for program in programs:
        command = [sys.executable, "-c", program]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
