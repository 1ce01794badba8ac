"""How stiff should joints be? Tracking error against frequency, for stable and explicit PD.

    python examples/06_choose_gains.py

Explicit PD diverges where a stiff joint moves a light link. Stable PD does not, at any frequency
and step. Prints a table and plots it to out/gains.
"""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import poise
from poise import measure

FREQUENCIES = (2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)  # [Hz]
CASES = {
    "stable PD, 1/240 s": ("spd", 1 / 240),
    "stable PD, 1/60 s": ("spd", 1 / 60),
    "stable PD, 1/30 s": ("spd", 1 / 30),
    "explicit PD, 1/240 s": ("pd", 1 / 240),
}
out = Path("out/gains")
out.mkdir(parents=True, exist_ok=True)

character = poise.load_character("humanoid")
clip = poise.load_clip("walk", character)


def mean_error(controller: str, dt: float, frequency: float) -> float:
    """Mean joint error [degrees]; NaN if the simulation diverges."""
    world = poise.World(character, dt=dt)
    world.reset(clip.state(0.0))
    servo = poise.make_controller(controller, world, root="soft", frequency=frequency)
    recording = poise.Recording(world, fps=30)
    try:
        poise.run(world, servo, clip, clip.duration, record=recording)
    except poise.Diverged:
        return np.nan
    goal = clip.q(recording.time)
    return float(measure.tracking_error(character, recording.q, goal).rotation.mean())


errors = {name: [mean_error(*case, f) for f in FREQUENCIES] for name, case in CASES.items()}
print("mean joint error [degrees]; nan: diverged")
for name, row in errors.items():
    print(f"{name:<22}" + "".join(f"{error:8.2f}" for error in row))

figure = Figure(figsize=(6, 3.6), layout="constrained")
axes = figure.subplots()
for name, row in errors.items():
    axes.plot(FREQUENCIES, row, "o-", label=name)
axes.set(
    xlabel="frequency of the joints [Hz]", ylabel="mean error [degrees]", xscale="log", yscale="log"
)
axes.legend()
figure.savefig(out / "gains.png", dpi=120)
print(out / "gains.png")
