"""A trial in Python: run it, compare two settings, and write a page, a video, BVH and GLB.

    python examples/09_results.py

`poise track jab --push chest:200N:left@0.4s` runs the first trial and writes the same files. The
files are in out/results.
"""

from dataclasses import replace
from pathlib import Path

import poise
from poise import measure
from poise.trials import prepare_trial, save_results
from poise.view import save_html, save_video

out = Path("out/results")

stiff = prepare_trial("jab", pushes=[poise.Push("chest", 200.0, "left", at=0.4)], frequency=16.0)
limp = replace(stiff, options={"frequency": 4.0})
recordings = {"stiff": stiff.run(), "limp": limp.run()}

errors = {}
for name, recording in recordings.items():
    goal = stiff.clip.q(recording.time)
    error = measure.tracking_error(stiff.character, recording.q, goal).rotation
    errors[name] = float(error.mean())
    print(f"{name:<6} mean joint error {errors[name]:.2f} degrees")

# everything that `poise track` writes: recording, page, plots, BVH, GLB, table
files = save_results(
    out, recordings["stiff"], clip=stiff.clip, name="stiff", video=False, pushes=stiff.world_pushes
)
# both on one page, and a small video in slow motion
save_html(
    out / "both.html", recordings["stiff"], beside=recordings["limp"], names=("stiff", "limp")
)
save_video(
    out / "limp.gif",
    recordings["limp"],
    size=(240, 180),
    fps=10,
    slow=2.0,
    pushes=limp.world_pushes,
)
print(*sorted(out.iterdir()), sep="\n")
