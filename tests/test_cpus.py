"""Tests with the arithmetic of other CPUs: which combinations run, and how a failure is told."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from poise import _core

CPUS = Path(__file__).parents[1] / ".ci" / "cpus.py"
TEST = """
import os

def test_it():
    assert os.environ.get("POISE_ISA") != "baseline"
"""


def cpus(*arguments: object, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the script as from a shell without choices of its own."""
    env = {k: v for k, v in os.environ.items() if k not in ("OPENBLAS_CORETYPE", "POISE_ISA")}
    command = [sys.executable, str(CPUS), *map(str, arguments)]
    return subprocess.run(command, env=env | variables, capture_output=True, text=True, timeout=300)


def test_every_instruction_set_of_the_cpu_is_tried_and_the_default_first() -> None:
    lines = [line for line in cpus("--all", "--list").stdout.splitlines() if line]
    assert lines[0] == "--- the default"
    sets = [line.split("=")[1] for line in lines if "POISE_ISA=" in line]
    assert sets == _core.supported_isas()
    assert lines[1:] == [line for line in cpus("--list").stdout.splitlines() if line]


def test_a_combination_that_fails_ends_the_run_and_is_named(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(TEST)
    done = cpus("-q", "-p", "no:cacheprovider", "--rootdir", tmp_path, tmp_path)
    assert done.returncode == 1
    assert "failed with POISE_ISA=baseline: POISE_ISA=baseline " in done.stderr
    assert "--- POISE_ISA=avx2" not in done.stdout


def test_a_choice_from_outside_is_the_default() -> None:
    lines = cpus("--all", "--list", OPENBLAS_CORETYPE="Haswell").stdout.splitlines()
    assert lines[1] == "--- the default"
    assert "--- OPENBLAS_CORETYPE=Haswell" not in lines
