"""Inverse kinematics of many frames at once: goals, and the solver that meets them."""

from __future__ import annotations

from poise.motion.ik.goals import Aim, Goal, Place, Turn
from poise.motion.ik.solver import Report, solve

__all__ = ["Aim", "Goal", "Place", "Report", "Turn", "solve"]
