"""Generated text made callable: NumPy by exec, C by a compiler and ctypes."""

from __future__ import annotations

import ctypes
import math
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from poise.errors import PoiseError
from poise.kane.equations import Equations
from poise.kane.export import c_source, numpy_source
from poise.kane.functions import Functions
from poise.kane.programs import READS
from poise.math.arrays import Floats

FLAGS = ("-std=c99", "-O0", "-ffp-contract=off")
"""Straight lines gain little from -O1 or -O2, and compilers spend ten times as long on those."""


def numpy_functions(equations: Equations, names: Iterable[str] | None = None) -> Functions:
    """The equations as NumPy functions, ready to call.

    Args:
        equations: The equations.
        names: Which functions, see programs.py; all unless given.
    """
    names = list(READS if names is None else names)
    source = numpy_source(equations, names)
    module: dict[str, Any] = {}
    exec(compile(source, f"<kane {equations.tree.name}>", "exec"), module)

    def call(name: str, arrays: dict[str, Floats], lead: tuple[int, ...]) -> Floats:
        result: Floats = module[name](*arrays.values())
        return result

    return Functions(equations, names, call, source)


def c_functions(
    equations: Equations,
    names: Iterable[str] | None = None,
    *,
    compiler: str | None = None,
    flags: Sequence[str] = FLAGS,
) -> Functions:
    """The equations as C functions, compiled and loaded.

    Args:
        equations: The equations.
        names: Which functions, see programs.py; all unless given.
        compiler: Command of the C compiler; $CC, else cc unless given.
        flags: Its flags.
    """
    names = list(READS if names is None else names)
    source = c_source(equations, names)
    bodies, nv = len(equations.tree.bodies), equations.tree.nv
    shapes = dict.fromkeys(READS, (nv,)) | {
        "mass_matrix": (nv, nv),
        "partial_velocities": (bodies, 6, nv),
    }
    with tempfile.TemporaryDirectory() as folder:
        path = compile_c(source, Path(folder) / "kane.so", compiler=compiler, flags=flags)
        library = ctypes.CDLL(str(path))

    def call(name: str, arrays: dict[str, Floats], lead: tuple[int, ...]) -> Floats:
        n = math.prod(lead)
        rows = [np.broadcast_to(x, (*lead, x.shape[-1])) for x in arrays.values()]
        rows = [np.ascontiguousarray(x, dtype=np.float64) for x in rows]
        result = np.empty((*lead, *shapes[name]))
        pointers = [ctypes.c_void_p(x.ctypes.data) for x in (*rows, result)]
        library[f"kane_{name}"](ctypes.c_size_t(n), *pointers)
        return result

    return Functions(equations, names, call, source)


def compile_c(
    source: str,
    path: str | os.PathLike[str],
    *,
    compiler: str | None = None,
    flags: Sequence[str] = FLAGS,
) -> Path:
    """Compile C source to a shared library.

    Args:
        source: The text.
        path: Where the library goes.
        compiler: Command of the C compiler; $CC, else cc unless given.
        flags: Its flags, besides those that make a library.
    """
    command = compiler or os.environ.get("CC") or "cc"
    program, path = shutil.which(command), Path(path)
    if program is None:
        raise PoiseError(f"no C compiler {command!r}; install one, or set CC to its command")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "kane.c"
        file.write_text(source, encoding="utf-8")
        make = [program, *flags, "-fPIC", "-shared", str(file), "-o", str(path), "-lm"]
        done = subprocess.run(make, capture_output=True, text=True)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or ["no message"]
        raise PoiseError(f"{command} could not compile the equations: {lines[0]}")
    return path
