"""Inverse kinematics of many frames at once: goals, and the solver that meets them."""

from __future__ import annotations

from poise.motion.ik.goals import Above, Aim, Goal, Place, Report, Turn
from poise.motion.ik.solver import solve

__all__ = ["Above", "Aim", "Goal", "Place", "Report", "Turn", "solve"]
