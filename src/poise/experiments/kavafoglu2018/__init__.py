"""Kavafoglu 2018: real-time motion control with Kane's method."""

from poise.experiments.kavafoglu2018.arm import k1, k2, k3, k4, k5, k6, k7
from poise.experiments.kavafoglu2018.humanoid import k8, k9
from poise.experiments.kavafoglu2018.symbols import k10

TITLE = "Kavafoglu 2018: Real-time Motion Control with Kane's Method"

EXPERIMENTS = (k1, k2, k3, k4, k5, k6, k7, k8, k9, k10)
