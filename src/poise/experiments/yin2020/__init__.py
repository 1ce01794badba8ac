"""Yin and Yin 2020: linear time stable PD controllers."""

from poise.experiments.yin2020.accuracy import y1, y2, y3, y6, y9
from poise.experiments.yin2020.cost import y4, y5, y8

TITLE = "Yin and Yin 2020: Linear Time Stable PD Controllers"

EXPERIMENTS = (y1, y2, y3, y4, y5, y6, y8, y9)
"""Y7, learning with these controllers, is not among them yet."""
