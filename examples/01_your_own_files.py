"""Your own motion in, a character from its skeleton, a picture of it, and the motion out again.

    python examples/01_your_own_files.py take.bvh

Any file that `poise.load_clip` reads will do. Without one it writes a BVH of its own: a squat.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from poise.dynamics import forward_kinematics
from poise.motion import load_clip
from poise.view import contact_sheet, save_image

# name: parent and offset from it, in cm: y is up, the person looks along z, x is to the left
SKELETON = {
    "Hips": ("", (0, 0, 0)),
    "Spine": ("Hips", (0, 12, 0)),
    "Chest": ("Spine", (0, 16, 0)),
    "Neck": ("Chest", (0, 22, 0)),
    "Head": ("Neck", (0, 9, 1)),
}
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


def write_take(path: Path, frames: int = 61) -> None:
    """Write a motion as any program might."""
    text = hierarchy("Hips")
    order = [line.split()[1] for line in text.splitlines() if line.split()[0] in ("ROOT", "JOINT")]
    lines = ""
    for pose in (squat(i / (frames - 1)) for i in range(frames)):
        row = [*pose["at"], *(x for name in order for x in pose.get(name, (0, 0, 0)))]
        lines += " ".join(f"{x:.4f}" for x in row) + "\n"
    path.write_text(f"HIERARCHY\n{text}MOTION\nFrames: {frames}\nFrame Time: 0.033333\n{lines}")


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("take", type=Path, nargs="?", help="a motion file")
parser.add_argument("--out", type=Path, default=Path("out/files"))
args = parser.parse_args()
args.out.mkdir(parents=True, exist_ok=True)
if args.take is None:
    args.take = args.out / "squat.bvh"
    write_take(args.take)

clip = load_clip(args.take)
character = clip.character
print(f"{clip}\n{len(character.links)} links, {character.nv} DoF, {character.mass:.0f} kg")
save_image(args.out / "sheet.png", contact_sheet(clip))
character.save(args.out / "character.yaml")
before, _ = forward_kinematics(character, clip.frames)
for name in ("again.bvh", "again.glb"):
    clip.save(args.out / name)
    # its own check: what comes back is what went out
    after, _ = forward_kinematics(character, load_clip(args.out / name, character).frames)
    assert np.abs(after - before).max() < 1e-4
print(f"picture, character and motions are in {args.out}")
