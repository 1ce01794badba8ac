"""Run tests with the arithmetic of several machines: other BLAS kernels, other kernels of poise.

    .venv/bin/python .ci/cpus.py PYTEST-ARGUMENTS          all but the default
    .venv/bin/python .ci/cpus.py --all PYTEST-ARGUMENTS    the default first
    .venv/bin/python .ci/cpus.py --list                    only say which

NumPy's and SciPy's OpenBLAS chooses its kernels by the CPU; OPENBLAS_CORETYPE makes it take those
of another. POISE_ISA does the same for poise. Where either is already set, that is the default.
Each combination runs in a process of its own, and the first that fails ends the run with its name.
"""

from __future__ import annotations

import ctypes
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from poise import _core

CORES = {"Prescott": None, "Haswell": "avx2", "SkylakeX": "avx512", "Sandybridge": "avx2"}
"""Kernels of OpenBLAS, and the instruction set that the CPU must have."""

BLAS = 2
"""How many of them are tried beside the default, the first that differ from it."""


def core() -> str | None:
    """The kernels that NumPy's OpenBLAS took in this process; None if it is another BLAS."""
    folder = Path(np.__file__).parents[1] / "numpy.libs"
    for file in folder.glob("*openblas*"):
        name = getattr(ctypes.CDLL(str(file)), "scipy_openblas_get_corename64_", None)
        if name is not None:
            name.restype = ctypes.c_char_p
            return str(name().decode())
    return None


def combinations(everything: bool) -> list[dict[str, str]]:
    """Environment variables of each run, the default's being none."""
    sets = _core.supported_isas()
    default = core()
    can = [name for name, isa in CORES.items() if isa is None or isa in sets]
    others = [name for name in can if default is not None and name != default][:BLAS]
    runs = [{"OPENBLAS_CORETYPE": name} for name in others]
    runs += [{"POISE_ISA": isa} for isa in sets]
    return [{}, *runs] if everything else runs


def named(run: dict[str, str]) -> str:
    """A combination in words."""
    return " ".join(f"{key}={value}" for key, value in run.items()) or "the default"


def main() -> None:
    """Run pytest once for each combination."""
    arguments = sys.argv[1:]
    everything = "--all" in arguments
    rest = [argument for argument in arguments if argument not in ("--all", "--list")]
    for run in combinations(everything):
        print(f"\n--- {named(run)}", flush=True)
        if "--list" in arguments:
            continue
        begin = time.perf_counter()
        command = [sys.executable, "-m", "pytest", *rest]
        code = subprocess.run(command, env={**os.environ, **run}).returncode
        if code:
            sys.exit(f"failed with {named(run)}: {named(run)} {shlex.join(command)}")
        print(f"--- {named(run)}: passed in {time.perf_counter() - begin:.0f} s", flush=True)


if __name__ == "__main__":
    main()
