"""The equations at run time: functions of states, by generated NumPy or by compiled C code.

    f = kane.numpy_functions(equations)       or       f = kane.c_functions(equations)
    u = f.speeds(q, v)
    du = solve(f.mass_matrix(q), f.actuation(q, tau) + f.bias(q, u))        K 3.25
    tau = f.inverse_dynamics(q, v, a)                                       K 3.26

Leading axes are batch axes. The NumPy functions compute batches array by array; the C functions
state by state, and are the faster ones in both cases.
"""

from __future__ import annotations

import ctypes
import math
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Union

import numpy as np
from numpy.typing import ArrayLike

from poise.errors import PoiseError, check_known, shorten
from poise.kane.equations import Equations
from poise.kane.export import c_source, numpy_source
from poise.kane.programs import FORCED, READS
from poise.math.arrays import Floats, floats

Parameters = Union["Mapping[Any, ArrayLike]", "ArrayLike", None]
Call = Callable[[str, "dict[str, Floats]", "tuple[int, ...]"], Floats]


class Functions:
    """Functions of q, u, v, a, tau for one set of equations; see programs.py.

    Args:
        equations: The equations.
        names: Which functions there are.
        call: Computes a function by its name, from arrays by name with common leading axes.
        source: The text that was generated.
    """

    def __init__(self, equations: Equations, names: Iterable[str], call: Call, source: str) -> None:
        self.equations, self.source, self._call = equations, source, call
        self.names = tuple(names)

    def speeds(self, q: ArrayLike, v: ArrayLike, *, parameters: Parameters = None) -> Floats:
        """Generalized speeds u (..., nv) of the joints' own velocities v."""
        return self._evaluate("speeds", parameters, q=q, v=v)

    def velocities(self, q: ArrayLike, u: ArrayLike, *, parameters: Parameters = None) -> Floats:
        """The joints' own velocities v (..., nv) of generalized speeds u."""
        return self._evaluate("velocities", parameters, q=q, u=u)

    def accelerations(
        self, q: ArrayLike, u: ArrayLike, du: ArrayLike, *, parameters: Parameters = None
    ) -> Floats:
        """The joints' own accelerations a (..., nv) of the rates du of the speeds."""
        return self._evaluate("accelerations", parameters, q=q, u=u, du=du)

    def mass_matrix(self, q: ArrayLike, *, parameters: Parameters = None) -> Floats:
        """M (..., nv, nv) of K 3.21, for the generalized speeds."""
        return self._evaluate("mass_matrix", parameters, q=q)

    def partial_velocities(self, q: ArrayLike, *, parameters: Parameters = None) -> Floats:
        """J (..., bodies, 6, nv): J u is the velocity of a center of mass, then the angular one."""
        return self._evaluate("partial_velocities", parameters, q=q)

    def bias(
        self,
        q: ArrayLike,
        u: ArrayLike,
        *,
        external: ArrayLike | None = None,
        parameters: Parameters = None,
    ) -> Floats:
        """E (..., nv) of K 3.21: gravity, external forces, and what velocities cause."""
        return self._evaluate("bias", parameters, q=q, u=u, external=external)

    def actuation(self, q: ArrayLike, tau: ArrayLike, *, parameters: Parameters = None) -> Floats:
        """T (..., nv) of joint forces tau."""
        return self._evaluate("actuation", parameters, q=q, tau=tau)

    def inverse_dynamics(
        self,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike,
        *,
        external: ArrayLike | None = None,
        parameters: Parameters = None,
    ) -> Floats:
        """Joint forces tau (..., nv) that give the joints' accelerations a.

        Args:
            q: Positions, shape (..., nq).
            v: Velocities of the joints, shape (..., nv).
            a: Their accelerations, shape (..., nv).
            external: Force and torque at each point, world axes [N, N·m], shape (..., points, 6);
                for equations that were made with external=True.
            parameters: Values of the tree's open symbols: by name, or an array in their order.
        """
        return self._evaluate("inverse_dynamics", parameters, q=q, v=v, a=a, external=external)

    def forward_dynamics(
        self,
        q: ArrayLike,
        v: ArrayLike,
        tau: ArrayLike,
        *,
        external: ArrayLike | None = None,
        parameters: Parameters = None,
    ) -> Floats:
        """The joints' accelerations a (..., nv) under joint forces tau: M u' = T + E solved."""
        u = self.speeds(q, v, parameters=parameters)
        M = self.mass_matrix(q, parameters=parameters)
        T = self.actuation(q, tau, parameters=parameters)
        E = self.bias(q, u, external=external, parameters=parameters)
        try:
            du = np.linalg.solve(M, (T + E)[..., None])[..., 0]
        except np.linalg.LinAlgError:
            raise PoiseError(
                "the mass matrix is singular: axes in line, or nothing to move"
            ) from None
        return self.accelerations(q, u, du, parameters=parameters)

    def _evaluate(self, name: str, parameters: Parameters, **given: ArrayLike | None) -> Floats:
        """Check the arrays, call, and return the result."""
        equations = self.equations
        if name not in self.names:
            raise PoiseError(f"{name} was not generated; there are {shorten(self.names)}")
        arrays: dict[str, Floats] = {}
        for key in READS[name]:
            size = equations.tree.nq if key == "q" else equations.tree.nv
            arrays[key] = _rows(given[key], key, (size,))
        if name in FORCED:
            arrays |= self._external(given.get("external"))
        if equations.parameters:
            arrays["parameters"] = self._parameters(parameters)
        elif parameters is not None:
            raise PoiseError("the tree leaves no symbols open: it takes no parameters")
        try:
            lead = np.broadcast_shapes(*(array.shape[:-1] for array in arrays.values()))
        except ValueError:
            shapes = ", ".join(f"{key} {array.shape}" for key, array in arrays.items())
            raise PoiseError(f"the leading axes do not fit together: {shapes}") from None
        return self._call(name, arrays, lead)

    def _external(self, wrench: ArrayLike | None) -> dict[str, Floats]:
        points = len(self.equations.external)
        if not points:
            if wrench is not None:
                raise PoiseError("these equations have no external forces: make them external=True")
            return {}
        wrench = np.zeros((points, 6)) if wrench is None else wrench
        return {"external": _rows(wrench, "external", (points, 6))}

    def _parameters(self, values: Parameters) -> Floats:
        """Values of the open symbols, in their order."""
        names = [str(symbol) for symbol in self.equations.parameters]
        if values is None:
            raise PoiseError(f"parameters are needed, values for {shorten(names, 12)}")
        if not isinstance(values, Mapping):
            return _rows(values, "parameters", (len(names),))
        by_name = {str(key): value for key, value in values.items()}
        for name in by_name:
            check_known("parameter", name, names)
        missing = [name for name in names if name not in by_name]
        if missing:
            raise PoiseError(f"parameters lack values for {shorten(missing, 12)}")
        columns = np.broadcast_arrays(*(floats(by_name[name], name) for name in names))
        return np.ascontiguousarray(np.stack(columns, axis=-1))


def _rows(value: ArrayLike | None, name: str, tail: tuple[int, ...]) -> Floats:
    """An array (..., *tail) with its last axes made one."""
    array = floats(np.nan if value is None else value, name)
    cut = array.ndim - len(tail)
    if cut < 0 or array.shape[cut:] != tail:
        expected = ", ".join(map(str, tail))
        raise PoiseError(f"{name} has shape {array.shape}, expected (..., {expected})")
    return array.reshape(*array.shape[:cut], math.prod(tail))


# ---- compiling: NumPy by exec, C by a compiler and ctypes

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
