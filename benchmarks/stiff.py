"""Stiff and standing: the humanoid holds its pose on the ground for a minute, at large steps."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from dart import dart_stander
from grounded import (
    MUJOCO,
    Hold,
    Stander,
    find_engines,
    mujoco_stander,
    our_stander,
    standing,
)
from tables import Bound, Section, Table
from timing import Plan

from poise import Character, dynamics, load_character, measure

KP = (1e2, 1e3, 1e4, 1e5, 1e6, 1e7)  # [N m/rad]
DAMPED = 0.1  # kd is so much of kp [s]
STEPS = (1 / 60, 1 / 30)  # [s]
MINUTE = 60.0
LAST = 10.0  # [s] that the jitter is taken from
FALLEN = 0.6  # of the pelvis' height
OURS = ("implicit", "spd")


class End(NamedTuple):
    """How a minute ended: what happened, when [s], and the joints' acceleration [rad/s^2], RMS."""

    what: str
    when: float
    jitter: float

    def cell(self) -> str:
        if self.what == "stands":
            return f"{self.jitter:.1g}"
        return f"{self.what} {self.when:.2g} s"


def stiff(plan: Plan) -> Section:
    """Every stiffness, every engine, both steps."""
    begin = time.perf_counter()
    section = Section("standing", "holds its pose on the ground for 60 s, root free, kd = 0.1 kp")
    engines, missing = find_engines()
    section.notes += [f"{name} is skipped: {why}" for name, why in missing.items()]
    human = load_character("humanoid")
    least = carries(human)
    ends: dict[float, dict[str, dict[float, End]]] = {}
    some = (1e3, 1e6) if plan.quick else KP
    for dt in STEPS:
        ends[dt] = {}
        for kp in some:
            for stander in _standers(engines, human, Hold(kp, DAMPED * kp, dt)):
                end = _minute(stander, human, dt, 2.0 if plan.quick else MINUTE)
                ends[dt].setdefault(stander.name, {})[kp] = end
        section.tables.append(_table(dt, ends[dt], least))
    section.bounds += _bounds(ends, least)
    section.numbers = {
        "least_kp": least,
        "ends": {
            f"{dt:.4f}": {
                n: {f"{kp:g}": e._asdict() for kp, e in row.items()} for n, row in of.items()
            }
            for dt, of in ends.items()
        },
    }
    section.notes += [
        "a number: it stands, and this is the acceleration of its joints in the last "
        f"{LAST:g} s [rad/s^2], root mean square over time and joints. leans: tilted by more than "
        f"8 degrees or 5 cm off at the end; falls: the pelvis is below {FALLEN:.0%} of its height.",
        f"two ankles must carry m g h of what is above them: kp of {least:.0f} N m/rad at least; "
        "below it a fall is what must happen.",
        "all from the rest pose at rest, links meet; MuJoCo and DART hold by joint springs and "
        "dampers; PyBullet's motors know no stiffness. "
        f"{time.perf_counter() - begin:.0f} s in all.",
    ]
    return section


def carries(human: Character) -> float:
    """Least stiffness of each of two ankles that carries the weight above them [N m/rad]."""
    place, _ = dynamics.forward_kinematics(human, human.rest_q)
    place = np.asarray(place)
    names = [link.name for link in human.links]
    ankle = float(place[names.index("left_foot"), 2])
    moment = sum(
        9.81 * link.mass * (float(place[i, 2]) + link.com[2] - ankle)
        for i, link in enumerate(human.links)
        if "foot" not in link.name
    )
    return moment / 2.0


def _standers(engines: dict[str, Any], human: Character, hold: Hold) -> Iterator[Stander]:
    for form in OURS:
        yield our_stander(human, hold, form)
    if "mujoco" in engines:
        for integrator in MUJOCO:
            stander = mujoco_stander(engines["mujoco"], human, hold, integrator)
            if stander is not None:
                yield stander
    if "dart" in engines:
        yield dart_stander(engines["dart"], human, hold)


def _minute(stander: Stander, human: Character, dt: float, seconds: float) -> End:
    """Watch it in pieces, so that one that is lost is not watched to the end."""
    piece = round(1.0 / dt)
    kept = []
    for second in range(round(seconds)):
        rows = stander.watch(piece)
        kept.append(rows)
        good = np.isfinite(rows).all(axis=1)
        if not good.all():
            return End("diverges", second + int(np.argmin(good)) * dt, np.nan)
        low = rows[:, 2] < FALLEN * human.rest_q[2]
        if low.any():
            return End("falls", second + int(np.argmax(low)) * dt, np.nan)
    last = np.concatenate(kept[-round(LAST) :])
    jitter = float(np.sqrt(np.mean(measure.jitter(last[:, 7:], dt, cutoff=0.0) ** 2)))
    what = "stands" if standing(human, last[:, :7]) else "leans"
    return End(what, seconds, jitter)


def _table(dt: float, ends: dict[str, dict[float, End]], least: float) -> Table:
    some = list(next(iter(ends.values())))
    heads = [f"kp {kp:.0e}" + (" (too soft)" if kp < least else "") for kp in some]
    rows = [(name, *(end.cell() for end in row.values())) for name, row in ends.items()]
    return Table(f"dt 1/{1 / dt:.0f}", ("", *heads), rows)


def _bounds(ends: dict[float, dict[str, dict[float, End]]], least: float) -> list[Bound]:
    mine = [end for of in ends.values() for kp, end in of["poise implicit"].items() if kp >= least]
    lost = sum(end.what != "stands" for end in mine)
    jitter = max(end.jitter for end in mine)
    return [
        Bound("kp that can carry the weight, where ours does not stand", lost, most=0, unit=""),
        # a thousandth of gravity on a lever of 1 m
        Bound("largest acceleration of joints of ours", jitter, most=0.01, unit="rad/s^2"),
    ]
