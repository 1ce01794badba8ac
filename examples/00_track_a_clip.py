"""A humanoid follows a squat with stable PD, is pushed, and recovers.

    python examples/00_track_a_clip.py

The root is free: only the contact forces at the feet carry the character. Writes a recording, the
simulated motion as BVH and GLB, and a contact sheet to out/squat. The same from a shell:
poise track squat --root free --frequency 100 --push chest:250N:left@0.5s
"""

from pathlib import Path

import poise
from poise import measure
from poise.view import recording_sheet, save_image

out = Path("out/squat")
out.mkdir(parents=True, exist_ok=True)

character = poise.load_character("humanoid")
clip = poise.load_clip("squat", character)

world = poise.World(character, dt=1 / 60)
world.reset(clip.state(0.0))
world.push("chest", (0.0, 250.0, 0.0), duration=0.1, at=0.5)  # [N], [s]

servo = poise.StablePD(world, frequency=100.0)  # [Hz]
recording = poise.Recording(world)
poise.run(world, servo, clip, clip.duration, record=recording)

error = measure.tracking_error(character, recording.q, clip.q(recording.time))
aside = recording.q[:, 1] - clip.q(recording.time)[:, 1]
print(f"mean joint error {error.rotation.mean():.2f} degrees")
print(f"the push moves the pelvis {100 * abs(aside).max():.1f} cm to the side")
print(f"at the end it is {100 * abs(aside[-1]):.1f} cm away")

recording.save(out / "recording.npz")
motion = recording.clip()
motion.save(out / "motion.bvh")
motion.save(out / "motion.glb")
# the transparent figure is the clip; the arrows are contact forces, 0.8 m for 1 kN
sheet = recording_sheet(recording, columns=7, cell=(225, 260), ghost=True, forces=8e-4)
save_image(out / "sheet.png", sheet)
print(*sorted(out.iterdir()), sep="\n")
