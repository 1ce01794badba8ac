"""A humanoid follows a motion on the ground with stable PD, is pushed, and comes back.

    python examples/00_track_a_clip.py [--out DIR] [--clip NAME|FILE] [--character NAME|FILE]
                                       [--root free|soft|held]

Nothing holds its root: feet and ground carry it. A second run is pushed twice as hard, and falls,
since a servo knows nothing of balance. Clips that need balance, as `--clip walk`, take
`--root soft`: a hand then carries the root along the clip, and a push still shows.

Leaves in DIR two recordings, the first as BVH and GLB, a contact sheet with the clip as a ghost and
the contact forces as arrows, and a plot. `poise track squat --root free --frequency 100` is this in
one line.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import poise
from poise import measure
from poise.view import plots, recording_sheet, save_image

DT, FREQUENCY = 1 / 60, 100.0  # [s], [Hz]: stiffer than explicit PD could be at such steps
PUSHES, PUSHED_AT = (250.0, 500.0), 0.5  # to the left [N], for 0.1 s; [s]

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--out", type=Path, default=Path("out/squat"))
parser.add_argument("--clip", default="squat")
parser.add_argument("--character", default="humanoid")
parser.add_argument("--root", default="free", choices=["free", "soft", "held"])
arguments = parser.parse_args()
out: Path = arguments.out
out.mkdir(parents=True, exist_ok=True)

character = poise.load_character(arguments.character)
clip = poise.load_clip(arguments.clip, character)
names = [link.name for link in character.links]
chest = "chest" if "chest" in names else names[0]


def follow(push: float) -> poise.Recording:
    """Follow the clip under a push."""
    world = poise.World(character, dt=DT)
    world.reset(clip.state(0.0))
    world.push(chest, (0.0, push, 0.0), duration=0.1, at=PUSHED_AT)
    recording = poise.Recording(world, fps=60)
    servo = poise.StablePD(character, frequency=FREQUENCY, root=arguments.root)
    poise.run(world, servo, clip, clip.duration, record=recording)
    return recording


pushed, felled = (follow(push) for push in PUSHES)
pushed.save(out / "pushed.npz")
felled.save(out / "felled.npz")
motion = pushed.clip()
motion.save(out / "pushed.bvh")
motion.save(out / "pushed.glb")
sheets = [
    recording_sheet(run, columns=7, cell=(225, 260), ghost=True, forces=8e-4)  # 0.8 m for 1 kN
    for run in (pushed, felled)
]
save_image(out / "sheet.png", np.concatenate(sheets))

time, q, wanted = pushed.time, pushed.q, clip.q(pushed.time)
error = measure.tracking_error(character, q, wanted)
title = f"Stable PD at 60 steps a second: {clip.name!r} on the ground. Grey: a push"
shade = (PUSHED_AT, PUSHED_AT + 0.1)
aside = q.copy()
aside[:, :3] -= wanted[:, :3]
plots.tracking(out / "tracking.png", character, time, error, aside, shade=shade, title=title)

print(f"{clip.name}: {character.name}, {character.nv} degrees of freedom, {character.mass:.0f} kg")
numbers = pushed.metrics()
for name, x in numbers.items():
    print(f"{name:14} mean {x.mean:8.3g}   95 % {x.p95:8.3g}   largest {x.max:8.3g}")
print(*sorted(out.iterdir()), sep="\n")

# its own check: the files hold what it did, and a recording goes on where it was
again = poise.load_recording(out / "pushed.npz")
assert np.array_equal(again.q, q)
resumed = again.world(len(again) // 2)
assert np.array_equal(resumed.state.q, q[len(q) // 2])
frames = poise.load_clip(out / "pushed.bvh", character, prepare=False).frames
assert np.allclose(frames[:, :3], q[:, :3], atol=1e-4)
if (clip.name, character.name, arguments.root) == ("squat", "humanoid", "free"):
    # it follows, the push shows, it comes back; the ground carries it; twice the push is too much
    assert measure.summary(error.rotation).p95 < 5.0
    assert 0.02 < np.abs(aside[:, 1]).max() < 0.08
    assert np.abs(aside[-1, :3]).max() < 0.02
    assert abs(numbers["ground_force"].mean / (9.81 * character.mass) - 1) < 0.05
    assert measure.fallen(felled.scene, felled.q[-1], felled.contacts(-1))
    assert not measure.fallen(pushed.scene, q[-1], pushed.contacts(-1))
