"""Controllers: (state, target) -> Command."""

from poise.control.gains import Gains, carried_inertia, suggest_gains
from poise.control.pd import PD
from poise.control.stable_pd import StablePD

__all__ = ["PD", "Gains", "StablePD", "carried_inertia", "suggest_gains"]
