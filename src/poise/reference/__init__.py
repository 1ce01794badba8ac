"""Textbook NumPy twins of the core's algorithms: to read, to teach, to test the core against.

They work on a Character itself, one state at a time, in body frames, with Featherstone's 6-D
spatial vectors. The core computes the same in world axes with 3-D blocks, so agreement between
the two means something. Signatures are those of poise.dynamics, without batch axes; `move` and
`difference` are those of `poise.model.configuration`. Start with spatial.py and tree.py; each file
opens with its mathematics.
"""

from poise.model.configuration import difference
from poise.model.configuration import integrate as move
from poise.reference.aba import (
    forward_dynamics,
    limited_stable_pd,
    maba,
    solve_drive,
    stable_pd,
)
from poise.reference.drive import drive, tracking_error
from poise.reference.effort_limits import Limit, effort_limits, solve_bounded
from poise.reference.factor import solve_dense, solve_pcg, solve_sparse
from poise.reference.kane import kane_inverse_dynamics
from poise.reference.kinematics import (
    center_of_mass,
    forward_kinematics,
    jacobian,
    jacobian_bias,
)
from poise.reference.momentum import centroidal_momentum, energy, step
from poise.reference.rnea import bias_force, inverse_dynamics, mass_matrix

__all__ = [
    "Limit",
    "bias_force",
    "center_of_mass",
    "centroidal_momentum",
    "difference",
    "drive",
    "effort_limits",
    "energy",
    "forward_dynamics",
    "forward_kinematics",
    "inverse_dynamics",
    "jacobian",
    "jacobian_bias",
    "kane_inverse_dynamics",
    "limited_stable_pd",
    "maba",
    "mass_matrix",
    "move",
    "solve_bounded",
    "solve_dense",
    "solve_drive",
    "solve_pcg",
    "solve_sparse",
    "stable_pd",
    "step",
    "tracking_error",
]
