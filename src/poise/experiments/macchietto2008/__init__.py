"""Macchietto 2008: momentum-based balance control."""

from poise.experiments.macchietto2008.impacts import m1, m2
from poise.experiments.macchietto2008.motions import m3, m4
from poise.experiments.macchietto2008.others import m5, m7, m8
from poise.experiments.macchietto2008.points import m6
from poise.experiments.macchietto2008.survival import m9

TITLE = "Macchietto 2008: Momentum-Based Balance Control"

ITEMS = {
    "M1": m1,
    "M2": m2,
    "M3": m3,
    "M4": m4,
    "M5": m5,
    "M6": m6,
    "M7": m7,
    "M8": m8,
    "M9": m9,
}
