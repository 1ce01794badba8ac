"""A character kicks on one leg, is pushed, and keeps its balance.

    python examples/08_balance.py

`Balance` finds joint accelerations that track the clip and at the same time regulate the linear and
angular momentum of the whole body (macchietto2008). Writes the recording, a contact sheet, and a
plot of center of mass, center of pressure and momentum to out/balance.
"""

from pathlib import Path

import numpy as np

import poise
from poise import measure
from poise.view import balance_plot, recording_sheet, save_image

out = Path("out/balance")
out.mkdir(parents=True, exist_ok=True)

character = poise.load_character("humanoid-ball")
clip = poise.load_clip("forward-kick", character)

world = poise.World(character, dt=1 / 120, self_collision=False)
world.reset(clip.state(0.0))
balance = poise.Balance(world, supports=clip)  # feet support it when they stand in the clip
push = poise.Push("chest", 60.0, "left", at=2.0)  # [N] for 0.1 s, while it stands on one leg
push.apply(world)

recording = poise.Recording(world)
poise.run(world, balance, clip, clip.duration, record=recording)

fallen = bool(measure.fallen(world, world.state.q))
momentum = np.linalg.norm(measure.momentum(character, recording.q, recording.v).angular, axis=-1)
print("it falls" if fallen else "it stands")
print(f"angular momentum up to {momentum.max():.1f} N m s")

recording.save(out / "recording.npz")
balance_plot(out / "balance.png", recording, pushes=[push], title="A kick, pushed")
save_image(out / "sheet.png", recording_sheet(recording, columns=6, rows=2, cell=(200, 260)))
print(*sorted(out.iterdir()), sep="\n")
