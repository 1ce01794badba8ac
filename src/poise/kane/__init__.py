"""Equations of motion by Kane's method, in symbols: for any tree, and as code for planning.

    from poise import kane, load_character
    equations = kane.Equations(load_character("two-link"))
    print(equations.written_out(equations.M))        # M u' = T + E (Kavafoglu 2018, eq. 3.21)
    f = kane.c_functions(equations)                  # or numpy_functions
    tau = f.inverse_dynamics(q, v, a)

Generalized speeds are angular velocities in the world; kinematics.py says how, equations.py what
follows. It needs SymPy: `pip install poise[kane]`.
"""

try:
    import sympy as _sympy  # noqa: F401
except ImportError as error:
    raise ImportError("poise.kane needs SymPy: pip install poise[kane]") from error

from poise.kane.agreement import Agreement, FastSpin, agreement, fast_spin, gyroscopic_torque
from poise.kane.equations import Equations
from poise.kane.export import c_source, numpy_source
from poise.kane.functions import Functions, c_functions, compile_c, numpy_functions
from poise.kane.kinematics import Table, partial_angular_velocities, partial_velocities, speed_names
from poise.kane.tree import Body, Point, Tree, character_of, seven_bodies, tree_of

__all__ = [
    "Agreement",
    "Body",
    "Equations",
    "FastSpin",
    "Functions",
    "Point",
    "Table",
    "Tree",
    "agreement",
    "c_functions",
    "c_source",
    "character_of",
    "compile_c",
    "fast_spin",
    "gyroscopic_torque",
    "numpy_functions",
    "numpy_source",
    "partial_angular_velocities",
    "partial_velocities",
    "seven_bodies",
    "speed_names",
    "tree_of",
]
