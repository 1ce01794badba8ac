"""Macchietto 2008: momentum-based balance control."""

from poise.experiments.macchietto2008.impacts import m1, m2, m7
from poise.experiments.macchietto2008.motions import m3, m4, m5, m6, m8
from poise.experiments.macchietto2008.survival import m9

TITLE = "Macchietto 2008: Momentum-Based Balance Control"

EXPERIMENTS = (m1, m2, m3, m4, m5, m6, m7, m8, m9)
