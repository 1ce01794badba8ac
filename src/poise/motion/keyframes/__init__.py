"""Keyframes: motions written as text, by joint angles, targets and contacts."""

from __future__ import annotations

from poise.motion.keyframes.file import load_keyframes, parse_keyframes
from poise.motion.keyframes.keys import Keyframes

__all__ = ["Keyframes", "load_keyframes", "parse_keyframes"]
