"""Yin and Yin 2020: linear time stable PD controllers."""

from poise.experiments.yin2020.accuracy import y1, y2, y3, y6
from poise.experiments.yin2020.cost import y4, y5, y8
from poise.experiments.yin2020.real_clips import y9

TITLE = "Yin and Yin 2020: Linear Time Stable PD Controllers"

ITEMS = {"Y1": y1, "Y2": y2, "Y3": y3, "Y4": y4, "Y5": y5, "Y6": y6, "Y8": y8, "Y9": y9}
"""Y7, learning with these controllers, is not among them yet."""
