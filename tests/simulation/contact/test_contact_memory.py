"""What a standing humanoid costs in memory when there are thousands."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

CODE = """
import resource, sys
import poise
human = poise.load_character("humanoid")
servo = poise.StablePD(human)
def stand(n):
    world = poise.World(human, n=n, dt=1 / 60, dtype=sys.argv[1], threads=1)
    command = servo(None, poise.Target(human.rest_q))
    world.step(command, steps=3)
    assert len(world.contacts.copy) >= 4 * n
    return world
small = stand(8)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
big = stand(4096)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 4096)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="ru_maxrss is in kB on Linux")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_standing_humanoid_of_4096_takes_less_than_64_kilobytes(dtype: str) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, "-c", CODE, dtype], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    kilobytes = float(done.stdout)
    print(
        f"{dtype}: {kilobytes:.1f} kB a character, its eight projectile balls and contacts included"
    )
    assert kilobytes < 64
