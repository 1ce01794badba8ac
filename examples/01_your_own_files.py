"""A BVH file in, a character from its skeleton, and BVH, GLB and a picture out.

    python examples/01_your_own_files.py [take.bvh]

Every file that `poise.load_clip` reads works. Without an argument the program writes a squat as
BVH first. The files are in out/files.
"""

import sys
from pathlib import Path

import poise
from poise.measure import tracking_error
from poise.view import contact_sheet, save_image

out = Path("out/files")
out.mkdir(parents=True, exist_ok=True)
if len(sys.argv) > 1:
    take = Path(sys.argv[1])
else:
    take = out / "take.bvh"
    poise.load_clip("squat").save(take)

# on a character that is made from the skeleton of the file
clip = poise.load_clip(take)
print(clip)
print(f"{clip.character.nv} degrees of freedom, {clip.character.mass:.0f} kg")
save_image(out / "sheet.png", contact_sheet(clip))
clip.save(out / "again.bvh")
clip.save(out / "again.glb")

# on the built-in humanoid: retargeted, and prepared so that a controller can follow it
humanoid = poise.load_character("humanoid")
motion = poise.load_clip(take, humanoid)
print(*motion.notes, sep="\n")

world = poise.World(humanoid, dt=1 / 60)
world.reset(motion.state(0.0))
recording = poise.Recording(world)
poise.run(world, poise.StablePD(world, root="soft"), motion, motion.duration, record=recording)
error = tracking_error(humanoid, recording.q, motion.q(recording.time)).rotation.mean()
print(f"the humanoid follows it with a mean joint error of {error:.2f} degrees")
recording.clip().save(out / "simulated.bvh")
print(*sorted(out.iterdir()), sep="\n")
