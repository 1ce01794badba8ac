"""Makes clips.png, the picture of the README: python docs/images/clips.py"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import poise
from poise.view import contact_sheet, save_image

NAMES = ("walk", "run", "backflip", "dog-canter", "lamp-hop")

clips = {name: poise.load_clip(name) for name in NAMES}
clips["backflip"] = clips["backflip"].trimmed(0.6, 2.0)
sheets = [contact_sheet(clip, columns=8, cell=(150, 188)) for clip in clips.values()]
save_image(Path(__file__).with_suffix(".png"), np.concatenate(sheets))
