"""Controllers: (state, target) -> Command."""

from poise.control.balance import Balance
from poise.control.check_gains import GainsCheck, check_gains
from poise.control.controllers import Controllers
from poise.control.gains import Gains, joint_inertia, suggest_gains
from poise.control.inverse_dynamics import InverseDynamics
from poise.control.pd import PD
from poise.control.plant import Plant
from poise.control.profiles import Profile, Profiled, named_profile
from poise.control.registry import CONTROLLERS, ControllerEntry, make_controller
from poise.control.stable_pd import StablePD

__all__ = [
    "CONTROLLERS",
    "PD",
    "Balance",
    "ControllerEntry",
    "Controllers",
    "Gains",
    "GainsCheck",
    "InverseDynamics",
    "Plant",
    "Profile",
    "Profiled",
    "StablePD",
    "check_gains",
    "joint_inertia",
    "make_controller",
    "named_profile",
    "suggest_gains",
]
