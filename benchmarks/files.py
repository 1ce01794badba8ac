"""Files and pictures: how fast a motion is read and sampled, and a character drawn."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from tables import Bound, Section, Table, micro
from timing import Array, Case, Plan, measure

from poise import load_character
from poise.characters import builtin_names
from poise.motion import Clip, load_clip
from poise.view import render

SECONDS, RATE = 45, 120
SIZE = (960, 540)
TIMES = 4096  # in a batch of samples

LIMBS = {
    "Spine": (7, (0.0, 8.0, 0.0)),
    "LeftLeg": (5, (0.0, -20.0, 1.0)),
    "RightLeg": (5, (0.0, -20.0, 1.0)),
    "LeftArm": (10, (8.0, 0.0, 0.0)),
    "RightArm": (10, (-8.0, 0.0, 0.0)),
}
"""Joints of each limb and the offset from one to the next [cm]; with the hips there are 38."""


def files(plan: Plan) -> Section:
    """Reading, sampling, drawing."""
    section = Section("files", "motions read and sampled, characters drawn; one core")
    frames = 2 * RATE if plan.quick else SECONDS * RATE
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "take.bvh"
        path.write_text(bvh_text(frames))
        clip = load_clip(path)
        groups = measure(
            {
                "read": [_reading(path, frames)],
                "sample": [
                    _sampling(clip),
                    _sampling(_still("humanoid")),
                    _sampling(_still("dog")),
                ],
                "draw": [_drawing(name) for name in builtin_names()],
            },
            plan,
        )
    rows = []
    for group in groups.values():
        section.timings += group.values()
        rows += [(name, micro(t), f"{1 / t.best:,.4g}") for name, t in group.items()]
    section.tables.append(Table("", ("what", "µs", "per second"), rows))
    (read,) = groups["read"].values()
    claim = f"BVH of {frames / RATE:g} s at {RATE} fps, 38 joints: read"
    section.bounds.append(Bound(claim, read.best, most=1.5, unit="s"))
    for name, timing in groups["sample"].items():
        section.bounds.append(Bound(f"{name} per second", 1 / timing.best, least=2e5, unit="poses"))
    slowest = max(groups["draw"].values(), key=lambda timing: timing.best)
    claim = f"{slowest.name}, the slowest, per second"
    section.bounds.append(Bound(claim, 1 / slowest.best, least=20.0, unit="pictures"))
    section.notes.append("a sample is q, v and a; a picture has 960x540 pixels of 2x2 samples")
    return section


def bvh_text(frames: int) -> str:
    """A BVH file of 38 joints in centimetres, all of them turning."""
    channels = "CHANNELS {} Zrotation Xrotation Yrotation\n"
    text = "HIERARCHY\nROOT Hips\n{\nOFFSET 0 0 0\n"
    text += channels.format("6 Xposition Yposition Zposition")
    for limb, (joints, offset) in LIMBS.items():
        step = "OFFSET {} {} {}\n".format(*offset)
        for i in range(joints):
            text += f"JOINT {limb}{i}\n{{\n{step}{channels.format(3)}"
        text += f"End Site\n{{\n{step}}}\n{'}' * joints}\n"
    count = 3 + 3 * (1 + sum(joints for joints, _ in LIMBS.values()))
    t, k = np.arange(frames)[:, None] / RATE, np.arange(count)[None]
    values = 20.0 * np.sin(2.0 * t + k)
    values[:, 1] += 95.0
    rows = "\n".join(" ".join(f"{x:.6f}" for x in row) for row in values)
    return f"{text}}}\nMOTION\nFrames: {frames}\nFrame Time: {1 / RATE:.9f}\n{rows}\n"


def _reading(path: Path, frames: int) -> Case:
    read: list[Clip] = []

    def run() -> None:
        read[:] = [load_clip(path)]

    facts = {"threads": 1, "frames": frames, "joints": 38, "bytes": path.stat().st_size}
    return Case("read BVH", 1, read.clear, run, lambda: read[0].frames, facts)


def _still(name: str) -> Clip:
    """A motion of a built-in character, which may as well stand: a sample costs the same."""
    character = load_character(name)
    return Clip(character, np.tile(character.rest_q, (300, 1)), 60.0, name=name)


def _sampling(clip: Clip) -> Case:
    times = np.random.default_rng(0).uniform(0.0, clip.duration, TIMES)
    clip.target(0.0)  # the spline is made once
    name = f"sample {clip.name}, {clip.character.nv} DoF"
    return Case(
        name, TIMES, _nothing, lambda: clip.target(times), lambda: clip.q(times), {"threads": 1}
    )


def _drawing(name: str) -> Case:
    character = load_character(name)
    q = character.rest_q

    def end() -> Array:
        return render(character, q, size=(64, 36)).astype(np.float64)

    def run() -> object:
        return render(character, q, size=SIZE)

    return Case(f"draw {name}", 1, _nothing, run, end, {"threads": 1, "size": SIZE})


def _nothing() -> None:
    pass
