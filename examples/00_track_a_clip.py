"""A humanoid follows a walk with stable PD in linear time, is pushed, and comes back.

    python examples/00_track_a_clip.py [--out DIR] [--clip NAME|FILE]

The root is soft: carried along with the clip, but a push shows. Leaves in DIR the tracked motion as
BVH and GLB, a contact sheet with the clip as a ghost, a plot and a table.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

import poise
from poise import measure
from poise.arrays import Floats
from poise.view import contact_sheet, plots, save_image

DT, PUSH = 1 / 60, 300.0  # [s], [N] for 0.1 s, to the left


class Samples(list[Floats]):
    """What `poise.run` records: the positions now and after every step."""

    def __init__(self, world: poise.World) -> None:
        self.world = world

    def append(self) -> None:  # type: ignore[override]
        super().append(self.world.state.q)


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--out", type=Path, default=Path("out/demo"))
parser.add_argument("--clip", default="walk")
arguments = parser.parse_args()
out: Path = arguments.out
out.mkdir(parents=True, exist_ok=True)

clip = poise.load_clip(arguments.clip)
character = clip.character
world = poise.World(character, dt=DT)
world.reset(clip.state(0.0))
servo = poise.StablePD(character, root="soft")
push_at = 0.4 * clip.duration
world.push("chest", force=(0, PUSH, 0), duration=0.1, at=push_at)
samples = Samples(world)
poise.run(world, servo, clip, clip.duration, samples)

q, time = np.array(samples), DT * np.arange(len(samples))
wanted = clip.q(time)
error = measure.tracking_error(character, q, wanted)
print(f"{clip.name}: {character.name}, {character.nv} degrees of freedom, {character.mass:.0f} kg")
rows = measure.by_link(character, error)
print(f"{'link':<18}{'mean [deg]':>12}{'95 %':>8}{'mean [mm]':>12}{'95 %':>8}")
for name, row in rows.items():
    turn, place = row["rotation"], row["position"]
    print(
        f"{name:<18}{turn.mean:12.2f}{turn.p95:8.2f}{place.mean * 1e3:12.1f}{place.p95 * 1e3:8.1f}"
    )
table = {name: {k: x._asdict() for k, x in row.items()} for name, row in rows.items()}
(out / "table.json").write_text(json.dumps(table, indent=1))

tracked = poise.Clip(character, q, 1 / DT, source=clip.source, name=f"{clip.name} tracked")
tracked.save(out / "tracked.bvh")
tracked.save(out / "tracked.glb")
save_image(out / "sheet.png", contact_sheet(tracked, ghost=wanted))
title = f"Stable PD at 60 steps a second: a humanoid follows {clip.name!r}. Grey: a push"
shade = (push_at, push_at + 0.1)
aside = q.copy()
aside[:, :3] -= wanted[:, :3]
plots.tracking(out / "tracking.png", character, time, error, aside, shade=shade, title=title)
for name in ("tracked.bvh", "tracked.glb", "sheet.png", "tracking.png", "table.json"):
    print(out / name)

# its own check: it follows, the push shows, it comes back, and the files hold what it did
before = time < push_at
assert measure.summary(error.rotation[before]).p95 < 5.0
assert 0.02 < np.abs(aside[:, 1]).max() < 0.25
assert abs(aside[-1, 1]) < 0.01
again = poise.load_clip(out / "tracked.bvh", character)
assert np.allclose(again.frames[:, :3], q[:, :3], atol=1e-4)
