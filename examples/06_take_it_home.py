"""What happened, to take home: a page, a video, plots, BVH and GLB, and two runs side by side.

    python examples/06_take_it_home.py [--clip NAME|FILE] [--push PUSH ...] [--out DIR]

`poise track` does the first half in one line. Here it is in Python: a trial is a clip, who follows
it and how; the same trial is run stiff and limp, and both go onto one page.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path

import numpy as np

import poise
from poise import measure
from poise.dynamics import forward_kinematics
from poise.simulation.pushes import parse_push
from poise.trials.results import save_results
from poise.trials.trial import prepare_trial
from poise.view.html import save_html
from poise.view.video import save_video

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--clip", default="jab")
parser.add_argument("--push", action="append", help="as in chest:200N:left@0.5s")
parser.add_argument("--out", type=Path, default=Path("out/take-home"))
arguments = parser.parse_args()
out: Path = arguments.out
pushes = [parse_push(text) for text in arguments.push or ["chest:200N:left@0.4s"]]

stiff = prepare_trial(arguments.clip, pushes=pushes, frequency=16.0)
limp = replace(stiff, options={"frequency": 4.0})
runs = {"stiff": stiff.run(), "limp": limp.run()}

# all that `poise track` leaves
files = save_results(
    out, runs["stiff"], clip=stiff.clip, name="stiff", video=False, pushes=stiff.world_pushes
)
# both on one page, and a small film in slow motion
save_html(out / "both.html", runs["stiff"], beside=runs["limp"], names=tuple(runs))
save_video(
    out / "limp.gif", runs["limp"], size=(240, 180), fps=10, slow=2.0, pushes=limp.world_pushes
)
print(*files.values(), out / "both.html", out / "limp.gif", sep="\n")


def mean_error(recording: poise.Recording) -> float:
    """Mean rotation of the links against the clip [degrees]."""
    goal = np.array([stiff.clip.q(t) for t in recording.time])
    return float(measure.tracking_error(stiff.character, recording.q, goal).rotation.mean())


errors = {name: mean_error(run) for name, run in runs.items()}
for name, error in errors.items():
    print(f"{name:6} mean error {error:5.2f} degrees")

# its own check: limp lags behind stiff; what is on disk is what happened
assert errors["stiff"] < errors["limp"]
again = poise.load_recording(files["recording.npz"])
assert np.array_equal(again.q, runs["stiff"].q)
table = json.loads(files["table.json"].read_text())
assert abs(table["tracking"]["rotation"]["mean"] - errors["stiff"]) < 0.5
moved = poise.load_clip(files["motion.bvh"], stiff.character, prepare=False).frames
there, _ = forward_kinematics(stiff.character, moved)
wanted, _ = forward_kinematics(stiff.character, runs["stiff"].q)
assert np.abs(there - wanted).max() < 1e-4
assert b"<script" in (out / "both.html").read_bytes()
assert (out / "limp.gif").read_bytes().startswith(b"GIF89a")
