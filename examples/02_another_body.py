"""A clip on another body: retargeted, looped, checked, and written for Blender.

    python examples/02_another_body.py [--clip NAME|FILE] [--character NAME|FILE] [--out DIR]

Joints are matched by name and by the shape of the tree; feet stay where they stand.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import poise
from poise import measure
from poise.motion.checks import check
from poise.motion.retargeting.matching import match
from poise.motion.retargeting.transfer import limb_directions
from poise.view import contact_sheet, save_image

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--clip", default="walk")
parser.add_argument("--character", default="humanoid-51")
parser.add_argument("--out", type=Path, default=Path("out/another-body"))
arguments = parser.parse_args()
out: Path = arguments.out
out.mkdir(parents=True, exist_ok=True)

clip = poise.load_clip(arguments.clip)
character = poise.load_character(arguments.character)
pairs = match(clip.character, character)
print(pairs)

moved = clip.retargeted(character)
print(moved)
for finding in check(moved):
    print(finding)

# the same, on the other foot first, a little faster
other = moved.mirrored().at_speed(1.2)
moved.save(out / "retargeted.bvh")
other.save(out / "mirrored.glb")
save_image(out / "sheet.png", contact_sheet(moved))
for name in ("retargeted.bvh", "mirrored.glb", "sheet.png"):
    print(out / name)

# its own check: limbs point as in the source, feet stand where they stand
angles = limb_directions(pairs, clip.frames, moved.frames)
assert np.mean(list(angles.values())) < 10.0
assert moved.contacts is not None
footing = measure.footing(character, moved.frames, moved.contacts)
assert footing.skate.max() < 0.010
assert footing.sink.max() < 0.005
assert abs(other.duration - moved.duration / 1.2) < 1 / other.fps
