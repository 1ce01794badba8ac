"""What a standing humanoid costs in memory when there are thousands."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tables import Bound, Section, Table
from timing import Plan

COPIES = 4096
REQUIRED = 64.0  # kB a character
STATUS = Path("/proc/self/status")

CODE = """
import re, sys
import numpy as np
import poise

def resident(what):
    with open("/proc/self/status") as status:
        return int(re.search(what + r":\\s+(\\d+) kB", status.read())[1])

def stand(n):
    dtype, projectiles = sys.argv[1], int(sys.argv[3])
    world = poise.World(human, n=n, dt=1 / 60, dtype=dtype, threads=1, projectiles=projectiles)
    world.step(servo(None, poise.Target(human.rest_q)), steps=10)
    assert len(world.contacts.copy) >= 4 * n and not world.diverged
    return world

human = poise.load_character("humanoid")
servo = poise.StablePD(human)
kept = [stand(8)]
now, peak = resident("VmRSS"), resident("VmHWM")
n = int(sys.argv[2])
kept.append(stand(n))
print(1.024 * (resident("VmRSS") - now) / n, 1.024 * (resident("VmHWM") - peak) / n)
"""


def memory(plan: Plan) -> Section:
    """Kilobytes per character, with and without balls to throw."""
    copies = 256 if plan.quick else COPIES
    section = Section("memory", f"kB per character, {copies} standing humanoids")
    if not STATUS.exists():
        section.notes.append("skipped: this system has no /proc/self/status")
        return section
    rows = []
    for dtype in ("float64",) if plan.quick else ("float64", "float32"):
        for projectiles in (8,) if plan.quick else (8, 0):
            kept, peak = kilobytes(dtype, copies, projectiles)
            rows.append((f"{dtype}, {projectiles} projectiles", f"{kept:.1f}", f"{peak:.1f}"))
            section.numbers[f"{dtype}, {projectiles} projectiles"] = {
                "kept_kB": kept,
                "peak_kB": peak,
            }
            if projectiles:
                claim = f"{dtype}, {projectiles} projectiles: at the peak"
                section.bounds.append(Bound(claim, peak, most=REQUIRED, unit="kB"))
    section.tables.append(Table("", ("", "kept", "at the peak"), rows))
    section.notes.append(
        "what the system says a process holds (VmRSS, VmHWM of /proc/self/status, 1 kB = 1000 "
        "bytes), after ten steps and a look at the contacts, beyond that with a world of eight; "
        "one process for each row. Projectiles are the balls that wait to be thrown."
    )
    return section


def kilobytes(dtype: str, copies: int, projectiles: int) -> tuple[float, float]:
    """Memory that a standing humanoid keeps, and at the peak [kB]."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", CODE, dtype, str(copies), str(projectiles)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"memory: {done.stderr}")
    kept, peak = map(float, done.stdout.split())
    return kept, peak
