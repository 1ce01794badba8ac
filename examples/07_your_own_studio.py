"""The studio from a program: open it, ask it for things, watch, and keep what happened.

    python examples/07_your_own_studio.py [--stay] [--out DIR]

A page and a program ask a studio in the same way, by requests, and read the same snapshots. This
one lets an arm go limp, pushes the walker, throws a ball, looks at what that did, goes back in time
and saves the take. With --stay the studio then runs on until Ctrl-C, for you and your browser.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import poise
from poise.studio import Studio
from poise.studio.requests import Play, Push, Record, Request, Save, Scrub, SetGains, Throw
from poise.studio.snapshot import Snapshot

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--stay", action="store_true", help="run on until Ctrl-C")
parser.add_argument("--port", type=int, default=0, help="0 takes any that is free")
parser.add_argument("--out", type=Path, default=Path("out/my-studio"))
arguments = parser.parse_args()
out: Path = arguments.out


def ask(studio: Studio, *requests: Request) -> None:
    """Ask for several things; the session takes them in this order."""
    for request in requests:
        assert studio.session.ask(request), request


def wait(studio: Studio, until: Callable[[Snapshot], bool], most: float = 60.0) -> Snapshot:
    """The first snapshot of which something is true."""
    end = time.monotonic() + most
    snapshot = studio.session.newest
    while not until(snapshot):
        assert time.monotonic() < end, f"it took more than {most:g} s"
        snapshot = studio.session.wait(snapshot.number, 1.0)
    return snapshot


with Studio("walk", out=out, port=arguments.port) as studio:
    print(f"look at it: {studio.url}")
    ask(studio, Record(True), SetGains(2.0, 0.5, limb="left_arm"))
    before = wait(studio, lambda now: now.taken > 0.3)
    ask(studio, Push("chest", 600.0, "left", 0.1), Throw(speed=8.0))
    farthest, thrown = 0.0, False
    while studio.session.newest.measures.time < before.measures.time + 1.0:
        measures = studio.session.wait(studio.session.newest.number, 1.0).measures
        farthest = max(farthest, float(measures.root_offset[0]))
        thrown = thrown or bool(measures.projectiles[:, 0].any())
    print(f"the push and the ball moved it by {100 * farthest:.0f} cm")

    # back to the first moment, and on again: what came after is forgotten
    paused = wait(studio, lambda now: now.frames > 10)
    ask(studio, Record(False), Save(kinds=("npz", "bvh"), name="take"), Scrub(5))
    past = wait(studio, lambda now: now.frame == 5 and not now.playing)
    print(f"back from {paused.measures.time:.2f} s to {past.measures.time:.2f} s")
    saved = wait(studio, lambda now: sum(job.path is not None for job in now.jobs) >= 2)
    ask(studio, Play(True))
    on = wait(studio, lambda now: now.measures.time > past.measures.time)
    if arguments.stay:
        print("Ctrl-C ends it")
        try:
            while True:
                time.sleep(1.0)
        except KeyboardInterrupt:
            pass

files = [job.path for job in saved.jobs if job.path is not None]
print(*files, sep="\n")

# its own check: it was moved, it went back, and the take holds what happened
assert thrown
assert 0.02 < farthest < 1.0
assert past.measures.time < paused.measures.time
take = poise.load_recording(next(path for path in files if path.suffix == ".npz"))
assert take.time[-1] - take.time[0] > 0.5
assert all(path.is_relative_to(out.resolve()) or path.is_relative_to(out) for path in files)
