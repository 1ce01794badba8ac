"""How stiff should joints be? A sweep over frequencies and steps, with stable and with explicit PD.

    python examples/05_choose_gains.py [--clip NAME|FILE] [--character NAME|FILE] [--out DIR]

A character follows a clip, root soft. Joints that are too soft give way when the feet meet the
ground; stiffer ones follow more closely. Explicit PD is lost where a joint turns something light;
stable PD is not. Prints a table and leaves it in DIR, with a plot.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import poise
from poise import measure
from poise.control.registry import make_controller

FREQUENCIES = (2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)  # [Hz]
CASES = {
    "stable PD, 1/240 s": ("spd", 1 / 240),
    "stable PD, 1/60 s": ("spd", 1 / 60),
    "stable PD, 1/30 s": ("spd", 1 / 30),
    "explicit PD, 1/240 s": ("pd", 1 / 240),
}

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--clip", default="walk")
parser.add_argument("--character", default="humanoid")
parser.add_argument("--out", type=Path, default=Path("out/gains"))
arguments = parser.parse_args()
out: Path = arguments.out
out.mkdir(parents=True, exist_ok=True)

character = poise.load_character(arguments.character)
clip = poise.load_clip(arguments.clip, character)


def follow(controller: str, dt: float, frequency: float) -> dict[str, float]:
    """Mean error [degrees] and largest joint torque [N m], or when it was lost [s]."""
    world = poise.World(character, dt=dt)
    world.reset(clip.state(0.0))
    servo = make_controller(controller, world, root="soft", frequency=frequency)
    recording = poise.Recording(world, fps=30)
    try:
        poise.run(world, servo, clip, clip.duration, record=recording)
    except poise.Diverged as lost:
        return {"lost": lost.time}
    goal = np.array([clip.q(t) for t in recording.time])
    error = measure.tracking_error(character, recording.q, goal).rotation
    # the first joint is the root, which is held from outside
    torque = measure.joint_torque(world, recording.torque)[:, 1:]
    return {"error": float(error.mean()), "torque": float(np.abs(torque).max())}


found = {name: [follow(*case, f) for f in FREQUENCIES] for name, case in CASES.items()}

print(f"{clip.name} on {character.name}: mean error [degrees], largest torque [N m]")
print(" " * 6 + "".join(f"{name:>22}" for name in CASES))
for i, frequency in enumerate(FREQUENCIES):
    line = f"{frequency:3.0f} Hz"
    for row in (rows[i] for rows in found.values()):
        lost = f"lost at {row['lost']:.2g} s" if "lost" in row else ""
        line += f"{lost or '{error:.2f} {torque:7.0f}'.format(**row):>22}"
    print(line)
(out / "gains.json").write_text(json.dumps({"frequency": FREQUENCIES, **found}, indent=1))

figure = Figure(figsize=(9, 3.6), layout="constrained")
left, right = figure.subplots(1, 2)
for name, rows in found.items():
    kept = [(f, *row.values()) for f, row in zip(FREQUENCIES, rows, strict=True) if len(row) > 1]
    for axes, column in ((left, 1), (right, 2)):
        axes.plot([k[0] for k in kept], [k[column] for k in kept], "o-", ms=4, label=name)
left.set(ylabel="mean error [degrees]")
right.set(ylabel="largest joint torque [N·m]")
for axes in (left, right):
    axes.set(xlabel="frequency of the joints [Hz]", xscale="log", yscale="log")
    axes.grid(alpha=0.3, which="both")
left.legend(fontsize=8)
figure.suptitle(f"{clip.name!r}, root soft; explicit PD has no line where it is lost")
figure.savefig(out / "gains.png", dpi=120)
print(out / "gains.json", out / "gains.png", sep="\n")

# its own check: stable PD is never lost, and follows from some stiffness on
stable = [rows for name, rows in found.items() if name.startswith("stable")]
assert all("error" in row for rows in stable for row in rows)
if (clip.name, character.name) == ("walk", "humanoid"):
    assert all(row["error"] < 1.0 for row in stable[1][2:])
    assert all("lost" in row for row in found["explicit PD, 1/240 s"])
