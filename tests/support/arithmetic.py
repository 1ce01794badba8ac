"""Other machines' arithmetic: kernels of OpenBLAS and instruction sets of the core, by variable.

Programs run in processes of their own, because both are chosen when they are first loaded.
"""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module

import numpy as np

from poise import _core

WIDE = "avx512" in _core.supported_isas()

BLAS = ("Haswell", "Prescott", *(("SkylakeX",) if WIDE else ()))
"""Kernels of OpenBLAS that this CPU can run; another BLAS ignores the name."""

ISAS = tuple(_core.supported_isas())
"""Instruction sets of the core that this CPU can run."""


def printed(
    program: str, *args: object, blas: str = "", isa: str = "", plain: bool = False
) -> list[str]:
    """The lines that a Python program prints with another machine's arithmetic.

    Args:
        program: Its text.
        args: Its arguments.
        blas: Kernel of OpenBLAS; "" is the one chosen for this CPU.
        isa: Instruction set of the core; "" is the one chosen for this CPU.
        plain: Keep NumPy and the C library from using AVX and FMA.
    """
    chosen = {"OPENBLAS_CORETYPE": blas, "POISE_ISA": isa, "OPENBLAS_NUM_THREADS": "1"}
    if plain:
        chosen["NPY_DISABLE_CPU_FEATURES"] = " ".join(_numpy_features())
        chosen["GLIBC_TUNABLES"] = "glibc.cpu.hwcaps=-AVX2,-FMA,-AVX512F"
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


def _numpy_features() -> list[str]:
    """What NumPy uses of this CPU beyond its baseline."""
    package = "numpy.core" if np.__version__.startswith("1.") else "numpy._core"
    built = import_module(f"{package}._multiarray_umath")
    return [name for name in built.__cpu_dispatch__ if built.__cpu_features__.get(name)]
