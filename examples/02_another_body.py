"""A clip on another body: retargeted, mirrored, checked, and written for Blender.

    python examples/02_another_body.py

Joints are matched by their names and by the shape of the tree. Feet that stand in the source stand
in the result. The files are in out/another-body.
"""

from pathlib import Path

import poise
from poise import measure
from poise.view import contact_sheet, save_image

out = Path("out/another-body")
out.mkdir(parents=True, exist_ok=True)

clip = poise.load_clip("walk")
character = poise.load_character("humanoid-51")
moved = clip.retargeted(character)
print(moved)

# how much feet slide and sink while the contact schedule says that they stand
if moved.contacts is not None:
    footing = measure.footing(character, moved.frames, moved.contacts)
    print(f"feet slide up to {1e3 * footing.skate.max():.1f} mm")
    print(f"and sink up to {1e3 * footing.sink.max():.1f} mm")

# the same walk beginning with the other foot, 20 % faster
other = moved.mirrored().at_speed(1.2)
print(other)

moved.save(out / "retargeted.bvh")
other.save(out / "mirrored.glb")
save_image(out / "sheet.png", contact_sheet(moved))
print(*sorted(out.iterdir()), sep="\n")
