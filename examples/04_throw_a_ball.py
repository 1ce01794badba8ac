"""Two humanoids, a ball, and the forces on the feet that the ball causes.

    python examples/04_throw_a_ball.py

The first ball makes one sway; the second is twice as fast and both fall. Writes the recording, a
contact sheet and a plot to out/ball.
"""

from pathlib import Path

from matplotlib.figure import Figure

import poise
from poise import measure
from poise.view import recording_sheet, save_image

out = Path("out/ball")
out.mkdir(parents=True, exist_ok=True)

humanoid = poise.load_character("humanoid")
world = poise.World([humanoid, humanoid], dt=1 / 60)
first, second = world.scene.forest.parts
start = world.state.q
start[world.part(second).q][1] -= 1.2  # the second stands to the right of the first
world.reset(poise.State(start))

servo, stance = poise.StablePD(world, frequency=60.0), poise.Target(start)
recording = poise.Recording(world)
poise.run(world, servo, stance, 0.5, record=recording)
world.throw((0.0, 1.0, 1.15), (0.0, -6.0, 1.0))  # from [m], velocity [m/s]
poise.run(world, servo, stance, 2.0, record=recording)
world.throw((0.0, 1.0, 1.25), (0.0, -12.0, 0.5))
poise.run(world, servo, stance, 2.5, record=recording)
recording.save(out / "recording.npz")
sheet = recording_sheet(recording, start=36, columns=5, rows=2, cell=(290, 230), azimuth=0.3)
save_image(out / "sheet.png", sheet)

frames = range(len(recording))
contacts = measure.stacked([recording.contacts(i) for i in frames])
feet = measure.foot_reactions(world, contacts, copies=len(frames))

figure = Figure(figsize=(9, 3.5), layout="constrained")
axes = figure.subplots()
for side in ("left", "right"):
    axes.plot(recording.time, feet[f"{first}/{side}_foot"].force[:, 2], label=f"{side} foot")
axes.axhline(9.81 * humanoid.mass, color="0.6", lw=1, label="weight")
axes.set(xlabel="time [s]", ylabel="vertical force [N]", ylim=(0, 1200))
axes.legend()
figure.savefig(out / "feet.png", dpi=120)
print(*sorted(out.iterdir()), sep="\n")
