"""Makes the pictures of docs/world.md: python docs/images/world.py

Three are what the examples leave; the stack is made here.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import poise
from poise import Character, Shape, free_object
from poise.view import recording_sheet, save_image

HERE = Path(__file__).parent
EXAMPLES = {
    "00_track_a_clip.py": {"squat/sheet.png": "pushed.png"},
    "04_throw_a_ball.py": {"ball/sheet.png": "thrown.png", "ball/feet.png": "feet.png"},
    "05_ragdolls.py": {"ragdolls/rest.png": "ragdolls.png"},
}


def crate(k: int) -> Character:
    """A box of 2 kg, the k-th of a stack."""
    shade = 0.55 + 0.04 * (k % 2)
    shape = Shape("box", (0.15, 0.15, 0.1), color=(shade + 0.2, shade, 0.4))
    return free_object(f"crate-{k}", shape, mass=2.0, pos=(0.0, 0.0, 0.1 + 0.2 * k))


def stack() -> poise.Recording:
    """Ten boxes stand for two seconds; then a ball is thrown at them."""
    world = poise.World([crate(k) for k in range(10)], dt=1 / 60)
    recording = poise.Recording(world)
    for t in world.until(4.0):
        recording.append()
        if abs(t - 2.0) < 0.5 * world.dt:
            world.throw((-2.0, 0.0, 1.0), (12.0, 0.0, 1.0))
        world.step()
    return recording


with tempfile.TemporaryDirectory() as folder:
    for example, pictures in EXAMPLES.items():
        path = HERE.parent.parent / "examples" / example
        subprocess.run([sys.executable, str(path)], cwd=folder, check=True)
        for made, kept in pictures.items():
            shutil.copy(Path(folder) / "out" / made, HERE / kept)
sheet = recording_sheet(stack(), start=120, stop=192, columns=7, cell=(206, 300))
save_image(HERE / "stack.png", sheet)
