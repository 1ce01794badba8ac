"""A humanoid follows a moving target with stable PD in linear time, and is pushed.

    python examples/00_track_a_target.py [--out DIR]

Leaves a plot and a table in DIR.
"""

import argparse
import json
import math
from pathlib import Path

import numpy as np

import poise
from poise import measure
from poise.arrays import Floats
from poise.view import plots

DT, DURATION, PUSH_AT = 1 / 60, 6.0, 2.0
SWING = {  # joint: axis in the link's frame, size [rad], phase [rad]
    "chest": ((0, 0, 1), 0.35, 0.0),
    "neck": ((0, 0, 1), -0.4, 0.0),
    "left_shoulder": ((0, 1, 0), 0.6, 0.0),
    "right_shoulder": ((0, 1, 0), 0.6, math.pi),
    "left_hip": ((0, 1, 0), 0.5, math.pi),
    "right_hip": ((0, 1, 0), 0.5, 0.0),
    "left_knee": ((0, 1, 0), 0.4, 0.0),
    "right_knee": ((0, 1, 0), 0.4, math.pi),
}


class Swing:
    """A motion: each joint swings about one axis once in two seconds, growing from rest."""

    def __init__(self, character: poise.Character) -> None:
        self.character = character

    def target(self, t: float) -> poise.Target:
        return self.targets(t, DT, 1).row(0)

    def targets(self, t: float, dt: float, k: int) -> poise.Target:
        times, w = t + dt * np.arange(k), math.pi
        g = np.exp(-times)
        grow, grow1, grow2 = (1 - g) ** 2, 2 * g * (1 - g), 2 * g * (2 * g - 1)
        q, (v, a) = np.tile(self.character.rest_q, (k, 1)), np.zeros((2, k, self.character.nv))
        for name, (axis, size, phase) in SWING.items():
            s, c = size * np.sin(w * times + phase), size * np.cos(w * times + phase)
            angle, rate, rise = grow * s, grow1 * s + grow * w * c, grow2 * s + 2 * grow1 * w * c
            rise -= grow * w * w * s
            at, along = self.character.v_slice(name), np.array(axis, dtype=float)
            if self.character.joint(name).kind == "ball":
                half = angle[:, None] / 2
                turn = np.hstack([np.cos(half), np.sin(half) * along])
                v[:, at], a[:, at] = rate[:, None] * along, rise[:, None] * along
            else:
                turn, v[:, at], a[:, at] = angle[:, None], rate[:, None], rise[:, None]
            q[:, self.character.q_slice(name)] = turn
        return poise.Target(q, v, a, rows=k)


class Samples(list[Floats]):
    """What `poise.run` records: the positions after every step."""

    def __init__(self, world: poise.World) -> None:
        self.world = world

    def append(self) -> None:  # type: ignore[override]
        super().append(self.world.state.q)


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--out", type=Path, default=Path("out/demo"))
out = parser.parse_args().out
out.mkdir(parents=True, exist_ok=True)

character = poise.load_character("humanoid")
world = poise.World(character, dt=DT)
servo = poise.StablePD(character, root="soft")
motion, samples = Swing(character), Samples(world)
world.push("chest", force=(0, 400, 0), duration=0.1, at=PUSH_AT)
poise.run(world, servo, motion, DURATION, samples)

q, time = np.array(samples), DT * np.arange(len(samples))
error = measure.tracking_error(character, q, np.array([motion.target(t).q for t in time]))
print(f"{character.name}: {character.nv} degrees of freedom, {character.mass:.0f} kg, dt = 1/60 s")
rows = measure.by_link(character, error)
print(f"{'link':<18}{'mean [deg]':>12}{'95 %':>8}{'mean [mm]':>12}{'95 %':>8}")
for name, row in rows.items():
    turn, place = row["rotation"], row["position"]
    print(
        f"{name:<18}{turn.mean:12.2f}{turn.p95:8.2f}{place.mean * 1e3:12.1f}{place.p95 * 1e3:8.1f}"
    )
table = {name: {k: x._asdict() for k, x in row.items()} for name, row in rows.items()}
(out / "table.json").write_text(json.dumps(table, indent=1))
title = "Stable PD at 60 steps a second: a humanoid follows a moving target. Grey: a push"
plots.tracking(
    out / "tracking.png", character, time, error, q, shade=(PUSH_AT, PUSH_AT + 0.1), title=title
)
print(f"plot:  {out / 'tracking.png'}\ntable: {out / 'table.json'}")

# its own check: it follows, the push shows, and it comes back
assert measure.summary(error.rotation[time < PUSH_AT]).p95 < 3.0
assert 0.02 < q[:, 1].max() < 0.2
assert abs(q[-1, 1]) < 0.002
