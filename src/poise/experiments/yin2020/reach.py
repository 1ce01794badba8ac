"""Y6: the largest stable step of each method, why it is so, and how many dogs run in real time.

What bounds a step h, with m the least inertia that a direction of the joints feels:

    PD         kd h + kp h²/2 < 2 m                   the lightest axis of the smallest link counts
    SPD        3 kp h² < 4 m + 2 kd h                 where m is small: h < 2 kd / (3 kp)
    implicit   none
    DF, standalone, in addition: rounding errors of the torque come back times ε kd h / m, or
    ε (kd h + kp h²) / m in the implicit form; see `poise.check_gains`.
"""

from __future__ import annotations

from typing import Any

import poise
from poise.experiments.report import Claim, Item, Table
from poise.experiments.yin2020.accuracy import step
from poise.experiments.yin2020.following import largest_step
from poise.experiments.yin2020.setup import JOINTS, Tracker, clip_of, gains_of
from poise.math.arrays import Progress
from poise.trials.timing import best

LADDER = tuple(
    1 / rate
    for rate in (4000, 2000, 1000, 600, 480, 300, 240, 180, 120, 90, 60, 45, 30, 25, 20, 15)
)  # [s]
ROUGH = 16  # units of rounding with which DF fails where the paper's did: Y3
MANY, FEW = 1024, 64  # dogs in a batch, of MABA and of DF

WAYS: dict[str, tuple[str, dict[str, Any]]] = {
    "DF standalone, float32": ("DF", {"dtype": "float32"}),
    f"DF standalone, {ROUGH} units of rounding": ("DF", {"units": ROUGH}),
    "MABA embedded, float32": ("MABA", {"dtype": "float32"}),
}
DF, ROUGH_DF, MABA = WAYS
FORMS = ("spd", "implicit")


def y6(progress: Progress) -> Item:
    """Dog, canter: the largest stable step, and how many run in real time on one thread."""
    clip = clip_of("dog", "dog-canter")
    # explicit PD is below the ladder: the bound of the linear equations
    pd = largest_step(clip, LADDER, "PD") or _bound(clip)
    largest = {}
    for i, (name, (way, options)) in enumerate(WAYS.items()):
        for form in FORMS:
            largest[name, form] = largest_step(clip, LADDER, way, form=form, **options)
        progress(0.7 * (i + 1) / len(WAYS))
    dogs = {
        DF: _real_time(clip, largest[DF, "spd"], "df"),
        ROUGH_DF: _real_time(clip, largest[ROUGH_DF, "spd"], "df"),
        MABA: _real_time(clip, largest[MABA, "spd"], "maba"),
    }
    limit = 2.0 * JOINTS[1] / (3.0 * JOINTS[0])
    item = Item(
        "Y6",
        "Dog: largest stable step, and dogs in real time",
        "Fig. 1",
        f"The largest step of a ladder from {step(LADDER[0])} to {step(LADDER[-1])} s at which the "
        "canter stays stable under the paper's gains. Explicit PD is bounded by its damping: "
        f"kd h < 2 m, and the lightest axis of our dog has m = {0.5 * JOINTS[1] * pd:.1e} kg·m². "
        "SPD in the paper's form is bounded by 3 kp h² < 4 m + 2 kd h, for light links "
        f"{step(limit)} s, whoever solves it; the implicit form has no bound. DF standalone hands "
        "a torque from one solve to another, and its rounding errors return a step later, the "
        "larger the step (Y3). MABA hands over nothing. Then steps a second on one thread, "
        f"{MANY} dogs in a batch of float32 for MABA, {FEW} for DF.",
    )
    item.claims = _claims(pd, largest, dogs, limit)
    rows: list[list[Any]] = [["PD, explicit", step(pd), None, None]]
    for name in WAYS:
        rows.append([name, *(step(largest[name, form]) for form in FORMS), dogs[name]])
    columns = ["method", "largest stable step [s]", "implicit form", "dogs in real time"]
    item.tables = [Table("one thread", columns, rows)]
    return item


def _claims(
    pd: float, largest: dict[tuple[str, str], float], dogs: dict[str, float], limit: float
) -> list[Claim]:
    df, rough, maba = (largest[name, "spd"] for name in WAYS)
    ours = largest[DF, "implicit"], largest[MABA, "implicit"]
    return [
        Claim("PD needs by far the smallest steps", "PD < SPD < MABA",
              f"{step(pd)} s, MABA {step(maba)} s", "below a tenth of MABA's", pd < 0.1 * maba),
        Claim("DF standalone in float32 takes smaller steps than MABA", "smaller",
              f"{step(df)} and {step(maba)} s", "smaller", df < maba,
              why="" if df < maba else f"both end at the bound of the form, {step(limit)} s: ours "
              f"rounds too little to fail before. With {ROUGH} units of rounding DF ends at "
              f"{step(rough)} s"),
        Claim("the same without that bound, in the implicit form", "-",
              f"{step(ours[0])} and {step(ours[1])} s", "smaller", ours[0] < ours[1]),
        Claim("dogs in real time on one thread", "a number in Fig. 1, not in the text",
              f"{dogs[MABA]:,.0f} with MABA, {dogs[DF]:,.0f} with DF",
              "over 1000, and over ten times those of DF",
              dogs[MABA] > max(1000.0, 10.0 * dogs[DF])),
    ]  # fmt: skip


def _real_time(clip: poise.Clip, dt: float, method: str) -> float:
    """Characters that one thread simulates in real time."""
    n = MANY if method == "maba" else FEW
    world = poise.World(
        clip.character, n=n, dt=dt, ground=False, contact=None, dtype="float32", threads=1
    )
    world.reset(clip.state(0.0))
    command = Tracker(world, method, "spd", method == "maba")(None, clip.target(dt))
    return n * dt / best(lambda: world.step(command))


def _bound(clip: poise.Clip) -> float:
    """The largest stable step of explicit PD under the paper's gains [s]."""
    gains = gains_of(clip.character)
    return float(poise.check_gains(clip.character, 1 / 1000, gains, form="pd").largest_dt)
