"""Kavafoglu 2018: real-time motion control with Kane's method."""

from poise.experiments.kavafoglu2018.arm import k1, k2, k3
from poise.experiments.kavafoglu2018.arm_stiffness import k4, k5, k6, k7
from poise.experiments.kavafoglu2018.humanoid import k8, k9
from poise.experiments.kavafoglu2018.symbols import k10

TITLE = "Kavafoglu 2018: Real-time Motion Control with Kane's Method"

ITEMS = {
    "K1": k1,
    "K2": k2,
    "K3": k3,
    "K4": k4,
    "K5": k5,
    "K6": k6,
    "K7": k7,
    "K8": k8,
    "K9": k9,
    "K10": k10,
}
