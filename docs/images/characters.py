"""Makes characters.png, built-in characters side by side: python docs/images/characters.py"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import poise
from poise.view import render, save_image

ROWS = (
    ("humanoid", "humanoid-51", "humanoid-ball", "dog"),
    ("tail-biped", "lamp", "snake-36", "plank-8"),
)
CELL, GAP = (280, 250), 2  # [pixels]


def cell(name: str) -> np.ndarray:
    """One of them at rest, with white to its right and below."""
    character = poise.load_character(name)
    picture = render(character, character.rest_q, size=CELL)
    return np.pad(picture, ((0, GAP), (0, GAP), (0, 0)), constant_values=255)


rows = [np.concatenate([cell(name) for name in row], axis=1) for row in ROWS]
save_image(Path(__file__).with_suffix(".png"), np.concatenate(rows)[:-GAP, :-GAP])
