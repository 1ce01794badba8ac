"""Your own motion in, a picture of it, the motion out again, and our humanoid that follows it.

    python examples/01_your_own_files.py take.bvh

Any file that `poise.load_clip` reads will do. Without one it writes a BVH of its own: a squat.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import poise
from poise import load_clip
from poise.measure import tracking_error
from poise.view import contact_sheet, save_image

# name: parent and offset from it, in cm: y is up, the person looks along z, x is to the left
SKELETON = {"Hips": ("", (0, 0, 0)), "Spine": ("Hips", (0, 12, 0)), "Chest": ("Spine", (0, 16, 0))}
SKELETON |= {"Neck": ("Chest", (0, 22, 0)), "Head": ("Neck", (0, 9, 1))}
for side, x in (("Left", 1), ("Right", -1)):
    SKELETON |= {
        f"{side}Arm": ("Chest", (18 * x, 16, 0)),
        f"{side}ForeArm": (f"{side}Arm", (27 * x, 0, 0)),
        f"{side}Hand": (f"{side}ForeArm", (25 * x, 0, 0)),
        f"{side}UpLeg": ("Hips", (9 * x, -4, 0)),
        f"{side}Leg": (f"{side}UpLeg", (0, -42, 0)),
        f"{side}Foot": (f"{side}Leg", (0, -40, 0)),
    }
ENDS = {"Head": (0, 18, 0), "Hand": (8, 0, 0), "Foot": (0, -8, 17)}


def hierarchy(name: str) -> str:
    """The part of a BVH file that says where the joints are, from this one outwards."""
    parent, offset = SKELETON[name]
    word, moves = ("JOINT", "3") if parent else ("ROOT", "6 Xposition Yposition Zposition")
    inside = "".join(hierarchy(child) for child, (of, _) in SKELETON.items() if of == name)
    if not inside:
        x, y, z = next(end for part, end in ENDS.items() if name.endswith(part))
        inside = f"End Site\n{{\nOFFSET {-x if 'Right' in name else x} {y} {z}\n}}\n"
    here = "OFFSET {} {} {}\nCHANNELS {} Zrotation Xrotation Yrotation".format(*offset, moves)
    return f"{word} {name}\n{{\n{here}\n{inside}}}\n"


def squat(phase: float) -> dict[str, tuple[float, float, float]]:
    """Turns about z, x, y of the joints [degrees]; "at" is where the hips are."""
    low = (1 - np.cos(2 * np.pi * phase)) / 2
    thigh = np.radians(85 * low)
    shin = np.arcsin(0.6 * np.sin(thigh))  # the feet stay where they are, the hips go back
    height = 12 + 42 * np.cos(thigh) + 40 * np.cos(shin)
    back = 40 * np.sin(shin) - 42 * np.sin(thigh)
    turns = {"at": (0.0, height, back), "Spine": (0, 25 * low, 0), "Neck": (0, -15 * low, 0)}
    for side, sign in (("Left", 1), ("Right", -1)):
        # hanging arms rise to the front: down about z first, then up about y
        turns[f"{side}Arm"] = (sign * -75 * (1 - low), 0, sign * -85 * low)
        turns[f"{side}UpLeg"] = (0, -np.degrees(thigh), 0)
        turns[f"{side}Leg"] = (0, np.degrees(thigh + shin), 0)
        turns[f"{side}Foot"] = (0, -np.degrees(shin), 0)
    return turns


def write_take(path: Path, frames: int = 61) -> Path:
    """Write a motion as any program might."""
    text = hierarchy("Hips")
    order = [line.split()[1] for line in text.splitlines() if line.split()[0] in ("ROOT", "JOINT")]
    lines = ""
    for pose in (squat(i / (frames - 1)) for i in range(frames)):
        row = [x for name in ("at", *order) for x in pose.get(name, (0, 0, 0))]
        lines += " ".join(f"{x:.4f}" for x in row) + "\n"
    path.write_text(f"HIERARCHY\n{text}MOTION\nFrames: {frames}\nFrame Time: 0.033333\n{lines}")
    return path


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("take", type=Path, nargs="?", help="a motion file")
parser.add_argument("--out", type=Path, default=Path("out/files"))
args = parser.parse_args()
args.out.mkdir(parents=True, exist_ok=True)
take = args.take or write_take(args.out / "squat.bvh")

clip = load_clip(take)  # as it is, on a character made from its skeleton
print(clip, f"{clip.character.nv} DoF, {clip.character.mass:.0f} kg")
save_image(args.out / "sheet.png", contact_sheet(clip))
for name in ("again.bvh", "again.glb"):  # what comes back is what went out
    clip.save(args.out / name)
    again = load_clip(args.out / name, clip.character, prepare=False)
    assert tracking_error(clip.character, again.frames, clip.frames).world.max() < 1e-4

humanoid = poise.load_character("humanoid")
clip = load_clip(take, humanoid)  # retargeted, prepared to be followed: a warning says how
world = poise.World(humanoid, dt=1 / 60)
world.reset(clip.state(0.0))
recording, servo = poise.Recording(world), poise.StablePD(humanoid, root="soft")
poise.run(world, servo, clip, clip.duration, record=recording)
error = tracking_error(humanoid, recording.q, clip.q(recording.time)).rotation.mean()
print(f"the humanoid follows it within {error:.1f} degrees; files are in {args.out}")
assert args.take or error < 5.0
