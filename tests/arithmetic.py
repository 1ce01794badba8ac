"""Other machines' arithmetic: kernels of OpenBLAS and instruction sets of the core, by variable.

Programs run in processes of their own, because both are chosen when they are first loaded.
"""

from __future__ import annotations

import os
import subprocess
import sys

from poise import _core

WIDE = "avx512" in _core.supported_isas()

BLAS = ("Haswell", "Prescott", *(("SkylakeX",) if WIDE else ()))
"""Kernels of OpenBLAS that this CPU can run; another BLAS ignores the name."""

ISAS = tuple(_core.supported_isas())
"""Instruction sets of the core that this CPU can run."""


def printed(program: str, *args: object, blas: str = "", isa: str = "") -> list[str]:
    """The lines that a Python program prints under a kernel of OpenBLAS and an instruction set."""
    chosen = {"OPENBLAS_CORETYPE": blas, "POISE_ISA": isa, "OPENBLAS_NUM_THREADS": "1"}
    inherited = {key: value for key, value in os.environ.items() if key not in chosen}
    found = subprocess.run(
        [sys.executable, "-c", program, *map(str, args)],
        env=inherited | {key: value for key, value in chosen.items() if value},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert found.returncode == 0, found.stderr[-2000:]
    return found.stdout.splitlines()
