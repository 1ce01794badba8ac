"""How hard a push does a standing humanoid take, and what do its feet feel when a ball hits it?

    python examples/03_push_and_throw.py [--out DIR]

First a batch: copies of one world, each pushed in its own direction with its own strength. Then one
world with two humanoids and a ball. Leaves in DIR a plot of what the ground does to the feet, a
contact sheet, and the recording.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import poise
from poise import measure
from poise.view import recording_sheet, save_image

DT, FREQUENCY = 1 / 60, 60.0  # [s], [Hz]
LEVELS = np.linspace(2.0, 40.0, 20)  # impulses [N s], each given in 0.1 s
WAYS = {"forward": (1, 0, 0), "back": (-1, 0, 0), "left": (0, 1, 0), "right": (0, -1, 0)}
BALL, SPEED = 3.0, 6.0  # the mass of a projectile [kg]; [m/s]

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--out", type=Path, default=Path("out/push-and-throw"))
out: Path = parser.parse_args().out
out.mkdir(parents=True, exist_ok=True)
humanoid = poise.load_character("humanoid")

# ---- a batch: every copy its own push; nothing but the ground holds them
force = np.array([level / 0.1 * np.array(way) for way in WAYS.values() for level in LEVELS])
crowd = poise.World(humanoid, n=len(force), dt=DT)
servo = poise.StablePD(humanoid, frequency=FREQUENCY)
stance = crowd.state.copy()
crowd.push("chest", force, duration=0.1, at=0.5)
crowd.step(servo(crowd.state, stance), steps=round(4.0 / DT))
fallen = measure.fallen(crowd, crowd.state.q, crowd.contacts).reshape(len(WAYS), -1)
# the strongest push below the first that fells it
stands = {way: LEVELS[row.argmax() - 1] for way, row in zip(WAYS, fallen, strict=True)}
for way, most in stands.items():
    print(f"pushed {way:<8} it stands up to {most:.0f} N s")

# ---- one world of two: a ball from the left hits the first
world = poise.World([humanoid, humanoid], dt=DT)
names = list(world.scene.forest.parts)
start = world.state.q
start[world.part(names[1]).q][1] -= 1.2  # the second stands to the right of the first
world.reset(poise.State(start))
recording = poise.Recording(world)
servo = poise.StablePD(world, frequency=FREQUENCY)
target = poise.Target(start)
poise.run(world, servo, target, 0.5, record=recording)
world.throw((0.0, 1.0, 1.15), (0.0, -SPEED, 1.0))
poise.run(world, servo, target, 2.0, record=recording)
# a second one, twice as fast: too much, and the second humanoid is in the way
world.throw((0.0, 1.0, 1.25), (0.0, -2 * SPEED, 0.5))
poise.run(world, servo, target, 2.5, record=recording)
recording.save(out / "throw.npz")
sheet = recording_sheet(recording, start=36, columns=5, rows=2, cell=(290, 230), azimuth=0.3)
save_image(out / "sheet.png", sheet)

# ---- what the ground does to the feet of the first
first = world.part(names[0])
touches = measure.stacked([recording.contacts(i) for i in range(len(recording))])
copies, time = len(recording), recording.time
feet = measure.foot_reactions(world, touches, copies=copies)
whole = measure.ground_reaction(world, touches, first.links, copies=copies)
com = measure.center_of_mass(humanoid, recording.q[:, first.q])
figure = Figure(figsize=(9, 6), layout="constrained")
top, bottom = figure.subplots(2, 1, sharex=True)
for side in ("left", "right"):
    top.plot(time, feet[f"{names[0]}/{side}_foot"].force[:, 2], label=f"{side} foot")
top.axhline(9.81 * humanoid.mass, color="0.6", lw=1, label="weight")
top.set(ylabel="upward force [N]", ylim=(0, 1200))
bottom.plot(time, whole.point[:, 1], label="center of pressure")
bottom.plot(time, com[:, 1], label="center of mass")
bottom.set(ylabel="to the left [m]", xlabel="time [s]", ylim=(-0.3, 0.3))
for axes in (top, bottom):
    axes.legend(fontsize=8)
    axes.grid(alpha=0.3)
figure.suptitle(
    "A ball of 3 kg hits a humanoid from the left after half a second, and again, faster"
)
figure.savefig(out / "feet.png", dpi=120)
for name in ("throw.npz", "sheet.png", "feet.png"):
    print(out / name)

# its own check: left is as right; the first ball moves it and the second fells both
assert abs(stands["left"] - stands["right"]) <= 2.0
assert all(4.0 <= most < 40.0 for most in stands.values())
before, between = time < 0.4, np.abs(time - 2.4) < 0.05
assert np.allclose(whole.force[before][2:, 2], 9.81 * humanoid.mass, rtol=0.01)
assert 0.01 < np.ptp(com[time < 2.4, 1]) < 0.2
heads = [world.part(name).q.start + 2 for name in names]  # heights of the two roots
assert (recording.q[between][:, heads] > 0.8).all()
assert (recording.q[-1, heads] < 0.5).all()
