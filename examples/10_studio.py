"""The studio from a program: push the walker, throw a ball, go back in time, save the take.

    python examples/10_studio.py

A program sends the studio the same requests as its page in the browser, and reads the same
snapshots. While it runs, the page can be opened at the printed address. The files are in
out/studio.
"""

from collections.abc import Callable

from poise.studio import Studio
from poise.studio.requests import Push, Record, Save, Scrub, SetGains, Throw
from poise.studio.snapshot import Snapshot


def wait(studio: Studio, condition: Callable[[Snapshot], bool]) -> Snapshot:
    """Returns the first snapshot for which the condition holds."""
    snapshot = studio.session.newest
    while not condition(snapshot):
        snapshot = studio.session.wait(snapshot.number)
    return snapshot


with Studio("walk", out="out/studio", port=0) as studio:
    print(studio.url)
    session = studio.session

    # a softer arm: twice the time constant, half the strength
    session.ask(SetGains(2.0, 0.5, limb="left_arm"))
    session.ask(Record(True))
    wait(studio, lambda now: now.measures.time > 0.3)

    session.ask(Push("chest", 600.0, "left", 0.1))  # [N], [s]
    session.ask(Throw(speed=8.0))  # [m/s]
    pushed = wait(studio, lambda now: now.measures.time > 0.6)
    print(f"at {pushed.measures.time:.2f} s: {100 * pushed.measures.root_offset[0]:.0f} cm off")
    wait(studio, lambda now: now.measures.time > 1.3)

    session.ask(Record(False))
    session.ask(Save(kinds=("npz", "bvh"), name="take"))
    session.ask(Scrub(5))  # back to the fifth frame
    past = wait(studio, lambda now: now.frame == 5 and not now.playing)
    print(f"back at {past.measures.time:.2f} s")

    saved = wait(studio, lambda now: sum(job.path is not None for job in now.jobs) >= 2)
    files = [job.path for job in saved.jobs if job.path is not None]
    print(*files, sep="\n")
