"""Bad input: each a PoiseError that names what is wrong and says what would be right."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import poise
from poise import (
    PD,
    Character,
    Command,
    Gains,
    Joint,
    Link,
    PoiseError,
    Shape,
    StablePD,
    State,
    Target,
    World,
    dynamics,
    suggest_gains,
)
from poise.model.scene import scene_of
from poise.simulation.command import Drive

NAN, INF = math.nan, math.inf
DT = 0.01
SOLID: dict[str, Any] = {"mass": 1.0, "inertia": (1.0, 1.0, 1.0)}
HUMANOID = poise.load_character("humanoid")
ARM = poise.load_character("two-link")
ZERO = np.zeros(2)
REST = HUMANOID.rest_q


def tree(*parents: tuple[str, str | None]) -> Character:
    """Links with a hinge each."""
    links = [
        Link(name, parent, joints=(Joint(f"hinge{i}", "hinge"),), **SOLID)
        for i, (name, parent) in enumerate(parents)
    ]
    return Character("x", tuple(links))


def one(link: Link) -> Character:
    return Character("x", (link,))


def refused(call: Callable[[], object], *words: str) -> None:
    """The call raises a PoiseError whose message holds all these words."""
    with pytest.raises(PoiseError) as caught:
        call()
    message = str(caught.value)
    missing = [word for word in words if word not in message]
    assert not missing, f"{missing} not in: {message}"


def nan_at(array: Any, *index: int, value: float = NAN) -> Any:
    array = np.array(array, dtype=float)
    array[index] = value
    return array


# every case: what is asked, and the words that the message must hold: the culprit and the remedy
Case = tuple[Callable[[], object], tuple[str, ...]]

CHARACTERS: dict[str, Case] = {
    "cycle": (lambda: tree(("a", None), ("b", "c"), ("c", "b")), ("'b' -> 'c' -> 'b'", "root")),
    "own parent": (lambda: tree(("a", "a")), ("'a' -> 'a'", "root")),
    "two roots": (lambda: tree(("a", None), ("b", None)), ("2 roots", "'a', 'b'", "parent")),
    "unknown parent": (
        lambda: tree(("foot", None), ("b", "fot")),
        ("link 'b'", "parent", "'fot'", "did you mean 'foot'"),
    ),
    "two links of a name": (
        lambda: tree(("a", None), ("b", "a"), ("b", "a")),
        ("two links named 'b'", "must differ"),
    ),
    "two joints of a name": (
        lambda: Character(
            "x",
            (
                Link("a", joints=(Joint("j", "hinge"),), **SOLID),
                Link("b", "a", joints=(Joint("j", "hinge"),), **SOLID),
            ),
        ),
        ("two joints named 'j'", "must differ"),
    ),
    "no links": (lambda: Character("x", ()), ("'x'", "at least one")),
    "negative mass": (lambda: Link("l", mass=-1.0), ("link 'l'", "mass", "at least 0", "-1")),
    "zero mass": (
        lambda: one(Link("l", joints=(Joint("j", "hinge"),))),
        ("'x' has no mass",),
    ),
    "mass nan": (lambda: Link("l", mass=NAN), ("link 'l'", "mass", "finite", "nan")),
    "mass inf": (lambda: Link("l", mass=INF), ("link 'l'", "mass", "finite", "inf")),
    "mass text": (lambda: Link("l", mass="1"), ("link 'l'", "mass", "number")),  # type: ignore[arg-type]
    "unphysical inertia": (
        lambda: Link("l", mass=1.0, inertia=(1.0, 1.0, 3.0)),
        ("link 'l'", "inertia", "not physical", "sum of the others"),
    ),
    "negative inertia": (
        lambda: Link("l", mass=1.0, inertia=(1.0, -1.0, 1.0)),
        ("link 'l'", "inertia", "positive"),
    ),
    "asymmetric inertia": (
        lambda: Link("l", mass=1.0, inertia=((1, 0.5, 0), (0, 1, 0), (0, 0, 1))),
        ("link 'l'", "inertia", "symmetric"),
    ),
    "inertia nan": (
        lambda: Link("l", mass=1.0, inertia=(1.0, NAN, 1.0)),
        ("link 'l'", "inertia[1]", "finite"),
    ),
    "inertia of two numbers": (
        lambda: Link("l", mass=1.0, inertia=(1.0, 1.0)),
        ("link 'l'", "inertia", "3x3"),
    ),
    "inertia without mass": (
        lambda: Link("l", inertia=(1.0, 1.0, 1.0)),
        ("link 'l'", "inertia without mass", "give it mass"),
    ),
    "massless chain end": (
        lambda: Character(
            "x",
            (
                Link("a", joints=(Joint("i", "hinge"),), **SOLID),
                Link("tip", "a", joints=(Joint("j", "hinge"),)),
            ),
        ),
        ("link 'tip'", "joint 'j'", "massless chain end", "give it mass"),
    ),
    "point mass on its own axis": (
        lambda: one(Link("l", joints=(Joint("j", "hinge"),), mass=1.0)),
        ("joint 'j'", "no inertia about its axis", "armature"),
    ),
    "zero axis": (
        lambda: Joint("j", "hinge", axis=(0.0, 0.0, 0.0)),
        ("joint 'j'", "axis", "length zero", "(0, 0, 1)"),
    ),
    "axis nan": (
        lambda: Joint("j", "slide", axis=(0.0, NAN, 1.0)),
        ("joint 'j'", "axis[1]", "finite"),
    ),
    "anchor inf": (
        lambda: Joint("j", "hinge", pos=(INF, 0.0, 0.0)),
        ("joint 'j'", "pos[0]", "finite"),
    ),
    "axis of two numbers": (
        lambda: Joint("j", "hinge", axis=(1.0, 0.0)),
        ("joint 'j'", "axis", "3 numbers", "2"),
    ),
    "negative armature": (
        lambda: Joint("j", "hinge", armature=-0.1),
        ("joint 'j'", "armature", "at least 0"),
    ),
    "negative damping": (
        lambda: Joint("j", "hinge", damping=-0.1),
        ("joint 'j'", "damping", "at least 0"),
    ),
    "negative effort": (
        lambda: Joint("j", "hinge", effort=-0.1),
        ("joint 'j'", "effort", "at least 0"),
    ),
    "stiffness nan": (
        lambda: Joint("j", "hinge", stiffness=NAN),
        ("joint 'j'", "stiffness", "finite"),
    ),
    "reversed limits": (
        lambda: Joint("j", "hinge", limits=(1.0, -1.0)),
        ("joint 'j'", "limits", "reversed"),
    ),
    "unknown kind": (
        lambda: Joint("j", "hing"),  # type: ignore[arg-type]
        ("joint 'j'", "'hing'", "did you mean 'hinge'"),
    ),
    "zero quaternion of a link": (
        lambda: Link("l", quat=(0.0, 0.0, 0.0, 0.0)),
        ("link 'l'", "quat", "length zero", "(1, 0, 0, 0)"),
    ),
    "flat box": (lambda: Shape("box", (1.0, 0.0, 1.0)), ("box", "size", "positive")),
    "unknown character": (
        lambda: poise.load_character("humanoit"),
        ("'humanoit'", "did you mean 'humanoid'"),
    ),
}

WORLDS: dict[str, Case] = {
    "n zero": (lambda: World(ARM, n=0, dt=DT), ("n is 0", "at least one copy")),
    "n negative": (lambda: World(ARM, n=-3, dt=DT), ("n is -3", "at least one copy")),
    "n broken": (lambda: World(ARM, n=1.5, dt=DT), ("n is 1.5",)),  # type: ignore[arg-type]
    "n true": (lambda: World(ARM, n=True, dt=DT), ("n is True",)),
    "n text": (lambda: World(ARM, n="4", dt=DT), ("n is '4'",)),  # type: ignore[arg-type]
    "dt zero": (lambda: World(ARM, dt=0.0), ("dt is 0.0", "positive")),
    "dt negative": (lambda: World(ARM, dt=-DT), ("dt is -0.01", "positive")),
    "dt nan": (lambda: World(ARM, dt=NAN), ("dt is nan", "positive")),
    "dt inf": (lambda: World(ARM, dt=INF), ("dt is inf", "positive")),
    "dt text": (lambda: World(ARM, dt="0.01"), ("dt is '0.01'", "positive")),  # type: ignore[arg-type]
    "dt complex": (lambda: World(ARM, dt=np.complex128(1)), ("dt is", "positive")),
    "dt none": (lambda: World(ARM, dt=None), ("dt is None", "positive")),  # type: ignore[arg-type]
    "threads zero": (lambda: World(ARM, dt=DT, threads=0), ("threads is 0", "1 or more")),
    "threads beyond all": (lambda: World(ARM, dt=DT, n=2, threads=2**40), ("threads",)),
    "dtype": (lambda: World(ARM, dt=DT, dtype="float16"), ("dtype", "'float16'", "'float64'")),
    "divergence": (
        lambda: World(ARM, dt=DT, on_divergence="explode"),
        ("on_divergence", "'explode'", "'freeze'"),
    ),
    "no character": (lambda: World([], dt=DT), ("Character",)),
    "a name for a character": (
        lambda: World("humanoid", dt=DT),  # type: ignore[arg-type]
        ("Character", "'humanoid'"),
    ),
    "a list with a stranger": (lambda: World([ARM, "box"], dt=DT), ("Character",)),  # type: ignore[list-item]
    "nothing that moves": (
        lambda: World(one(Link("rock", mass=1.0)), dt=DT),
        ("at least one joint",),
    ),
    "gravity nan": (
        lambda: World(ARM, dt=DT, gravity=(0, 0, NAN)),
        ("gravity[2] is nan", "finite"),
    ),
    "gravity of two": (
        lambda: World(ARM, dt=DT, gravity=(0.0, -9.81)),
        ("gravity", "(2,)", "expected (3,)"),
    ),
    "gravity as a number": (lambda: World(ARM, dt=DT, gravity=-9.81), ("gravity", "(3,)")),
    "gravity text": (lambda: World(ARM, dt=DT, gravity="down"), ("gravity", "numbers")),
    "mass negative": (
        lambda: World(ARM, dt=DT, mass=[1.0, -1.0]),
        ("mass of 'lower'", "negative", "0 or more"),
    ),
    "mass zero": (lambda: World(ARM, dt=DT, mass=[1.0, 0.0]), ("mass", "'lower'", "above 0")),
    "mass nan": (lambda: World(ARM, dt=DT, mass=[NAN, 1.0]), ("mass[0] is nan", "finite")),
    "mass of another shape": (
        lambda: World(ARM, n=3, dt=DT, mass=np.ones((2, 2))),
        ("mass", "(2, 2)", "(2,) or (3, 2)"),
    ),
    "inertia not physical": (
        lambda: World(ARM, dt=DT, inertia=[np.diag([1.0, 1.0, 1.0]), np.diag([1.0, 1.0, 3.0])]),
        ("inertia", "'lower'", "not physical"),
    ),
    "inertia of another shape": (
        lambda: World(ARM, dt=DT, inertia=np.ones((2, 3))),
        ("inertia", "(2, 3)", "(2, 3, 3)"),
    ),
    "armature negative": (
        lambda: World(ARM, dt=DT, armature=[0.0, -0.1]),
        ("armature of 'elbow'", "negative", "0 or more"),
    ),
    "part": (lambda: World(ARM, dt=DT).part("two-lin"), ("'two-lin'", "did you mean 'two-link'")),
}


def reset(
    *args: Any, n: int = 1, where: Any = None, contact: str | None = "impulse", **kwargs: Any
) -> Callable[[], object]:
    def call() -> None:
        World(HUMANOID, n=n, dt=DT, contact=contact).reset(State(*args, **kwargs), where=where)

    return call


STATES: dict[str, Case] = {
    "q nan": (reset(nan_at(REST, 9)), ("state.q", "index 9", "finite")),
    "q inf": (reset(nan_at(REST, 0, value=INF)), ("state.q", "index 0", "finite")),
    "q short": (reset(REST[:-1]), ("state.q", "(42,)", "(43,)")),
    "q of too many rows": (reset(np.tile(REST, (2, 1)), n=3), ("state.q", "(2, 43)", "(3, 43)")),
    "q of three axes": (reset(np.tile(REST, (1, 1, 1))), ("state.q", "(1, 1, 43)")),
    "q text": (reset("rest"), ("q", "numbers")),
    "q ragged": (reset([[0.0], [0.0, 1.0]]), ("q", "array of numbers")),
    "q complex": (reset(REST + 1j), ("q", "real numbers", "complex")),
    "q objects": (reset(np.array([None] * 43)), ("q", "real numbers", "object")),
    "v nan": (reset(REST, nan_at(np.zeros(34), 33)), ("state.v", "index 33", "finite")),
    "v beyond all bounds": (reset(REST, nan_at(np.zeros(34), 33, value=1e300)), ("state.v",)),
    "v short": (reset(REST, np.zeros(33)), ("state.v", "(33,)", "(34,)")),
    "root not of unit length": (
        reset(nan_at(REST, 3, value=1.1)),
        ("state.q", "joint 'root'", "length 1.1", "must be 1"),
    ),
    "ball not of unit length": (
        reset(nan_at(REST, 7, value=0.5)),
        ("state.q", "joint 'chest'", "length 0.5", "must be 1"),
    ),
    "a quaternion of zeros": (
        reset(nan_at(REST, 7, value=0.0)),
        ("state.q", "joint 'chest'", "length 0.0", "must be 1"),
    ),
    "time nan": (reset(REST, time=NAN), ("state.time", "finite")),
    "time of another length": (reset(REST, n=3, time=[0.0, 1.0]), ("state.time", "(2,)", "(3,)")),
    "memory of another length": (
        reset(REST, memory=np.zeros(5), contact=None),
        ("state.memory", "(1, 112)"),
    ),
    "memory of noise": (
        reset(REST, memory=np.full(112, 0.5), contact=None),
        ("state.memory", "this world"),
    ),
    "memory nan": (reset(REST, memory=np.full(112, NAN), contact=None), ("state.memory",)),
    "memory of a world without contact": (reset(REST, memory=np.zeros(112)), ("state.memory",)),
    "no state": (
        lambda: World(ARM, dt=DT).reset([0.0, 0.0]),  # type: ignore[arg-type]
        ("reset takes a State",),
    ),
    "where beyond": (reset(REST, n=3, where=[3]), ("where", "0 to 2")),
    "where before": (reset(REST, n=3, where=[-4]), ("where", "0 to 2")),
    "where of a wrong length": (reset(REST, n=3, where=[True, False]), ("where", "(2,)", "(3,)")),
    "where of numbers": (reset(REST, n=3, where=[0.5]), ("where", "indices or a mask")),
    "where of words": (reset(REST, n=3, where="all"), ("where", "indices or a mask")),
}


def step(n: int = 1, steps: Any = 1, **parts: Any) -> Callable[[], object]:
    return lambda: World(ARM, n=n, dt=DT).step(Command(**parts), steps=steps)


def drive(
    q: Any = ZERO, v: Any = None, a: Any = None, *, rows: Any = None, n: int = 1, steps: Any = 1,
    **options: Any,
) -> Callable[[], object]:  # fmt: skip
    def call() -> None:
        command = Command(drive=Drive(suggest_gains(ARM), Target(q, v, a, rows=rows), **options))
        World(ARM, n=n, dt=DT).step(command, steps=steps)

    return call


def bent(q: Any) -> Callable[[], object]:
    target = Target(q)
    return lambda: World(HUMANOID, dt=DT).step(StablePD(HUMANOID)(None, target))


COMMANDS: dict[str, Case] = {
    "force nan": (step(force=[0.0, NAN]), ("force", "index 1", "finite")),
    "force short": (step(force=[0.0]), ("force", "(1,)", "(2,)")),
    "force of too many rows": (step(n=3, force=np.zeros((4, 2))), ("force", "(4, 2)", "(3, 2)")),
    "force text": (step(force="strong"), ("force", "numbers")),
    "force of objects": (step(force=[None, None]), ("force", "real numbers")),
    "acceleration inf": (step(acceleration=[INF, 0.0]), ("acceleration", "index 0", "finite")),
    "acceleration long": (step(acceleration=np.zeros(3)), ("acceleration", "(3,)", "(2,)")),
    "velocity": (step(velocity=ZERO), ("velocity", "force, drive and acceleration")),
    "steps zero": (step(steps=0), ("steps is 0", "1 or more")),
    "steps negative": (step(steps=-1), ("steps is -1", "1 or more")),
    "steps broken": (step(steps=2.5), ("steps", "1 or more")),
    "steps text": (step(steps="3"), ("steps", "1 or more")),
    "steps none": (step(steps=None), ("steps", "1 or more")),
    "steps beyond all": (step(steps=2**40), ("steps",)),
    "no command": (
        lambda: World(ARM, dt=DT).step("jump"),  # type: ignore[arg-type]
        ("Command",),
    ),
    "drive without gains": (
        lambda: World(ARM, dt=DT).step(Command(drive=Drive(None, Target(ZERO)))),  # type: ignore[arg-type]
        ("gains",),
    ),
    "drive with a bare array": (
        lambda: World(ARM, dt=DT).step(Command(drive=Drive(suggest_gains(ARM), ZERO))),
        ("target", "Target"),
    ),
    "target nan": (drive([0.0, NAN]), ("target.q", "index 1", "finite")),
    "target short": (drive([0.0]), ("target.q", "(1,)", "(2,)")),
    "target none": (drive(None), ("target.q", "real numbers")),
    "target velocity nan": (drive(ZERO, [NAN, 0.0]), ("target.v", "index 0", "finite")),
    "target velocity long": (drive(ZERO, np.zeros(3)), ("target.v", "(3,)", "(2,)")),
    "target acceleration nan": (drive(ZERO, ZERO, [0, NAN]), ("target.a", "index 1", "finite")),
    "target not of unit length": (
        bent(nan_at(REST, 7, value=0.9)),
        ("target.q", "joint 'chest'", "length 0.9", "must be 1"),
    ),
    "rows and steps": (
        drive(np.zeros((4, 2)), rows=4, steps=3),
        ("4 rows", "steps is 3", "one row is one step"),
    ),
    "fewer rows than said": (
        drive(np.zeros((3, 2)), rows=4, steps=4),
        ("target.q", "(3, 2)", "(4, 2)"),
    ),
    "rows of velocity": (
        drive(np.zeros((4, 2)), np.zeros((3, 2)), rows=4, steps=4),
        ("target.v", "(3, 2)", "(4, 2)"),
    ),
    "rows for other copies": (
        drive(np.zeros((4, 2, 2)), rows=4, steps=4, n=3),
        ("target.q", "(4, 2, 2)", "(4, 3, 2)"),
    ),
    "rows nan in the last": (
        drive(nan_at(np.zeros((4, 2)), 3, 1), rows=4, steps=4),
        ("target.q", "index 7", "finite"),
    ),
    "rows zero": (drive(rows=0), ("rows is 0", "1 or more")),
    "rows broken": (drive(rows=2.0), ("rows is 2.0",)),
    "form": (drive(form="implicitly"), ("form", "'implicitly'", "'implicit'")),
    "method": (drive(method="lu"), ("method", "'lu'", "'maba'")),
    "strength negative": (drive(strength=[1.0, -0.1]), ("strength", "0 or more")),
    "strength nan": (drive(strength=[1.0, NAN]), ("strength", "index 1", "finite")),
    "strength short": (drive(strength=[1.0]), ("strength", "(1,)", "(2,)")),
    "pin negative": (drive(pin=[1.0, -0.1]), ("pin", "0 or more")),
    "pin nan": (drive(pin=[NAN, 0.0]), ("pin", "index 0", "finite")),
    "pin with a baseline": (drive(pin=[1.0, 0.0], method="df"), ("pins", "'maba'")),
}


def push(
    link: Any = "lower", force: Any = (1, 0, 0), duration: Any = 0.1, n: int = 1, **options: Any
) -> Callable[[], object]:
    return lambda: World(ARM, n=n, dt=DT).push(link, force, duration, **options)


PUSHES: dict[str, Case] = {
    "link": (push("lowr"), ("unknown link 'lowr'", "did you mean 'lower'", "upper, lower")),
    "link index": (push(2), ("link 2", "0 to 1")),
    "link none": (push(None), ("link None",)),
    "force nan": (push(force=(0, NAN, 0)), ("force", "index 1", "finite")),
    "force of two": (push(force=(1, 0)), ("force", "(2,)", "(3,)")),
    "force of other rows": (push(force=np.zeros((2, 3)), n=3), ("force", "(2, 3)", "(3, 3)")),
    "torque inf": (push(torque=(INF, 0, 0)), ("torque", "index 0", "finite")),
    "point nan": (push(point=(0, 0, NAN)), ("point", "index 2", "finite")),
    "duration zero": (push(duration=0.0), ("duration is 0.0", "positive")),
    "duration negative": (push(duration=-1.0), ("duration is -1.0", "positive")),
    "duration nan": (push(duration=NAN), ("duration is nan", "positive")),
    "duration text": (push(duration="1"), ("duration is '1'", "positive")),
    "at nan": (push(at=NAN), ("at is nan", "time")),
    "at inf": (push(at=INF), ("at is inf", "time")),
    "at text": (push(at="noon"), ("at is 'noon'", "time")),
    "where": (push(where=[7]), ("where", "0 to 0")),
}

FEW = Gains(ARM, 1.0, 1.0)

GAINS: dict[str, Case] = {
    "kp negative": (lambda: Gains(ARM, [1.0, -1.0], 1.0), ("kp", "joint 'elbow'", "0 or more")),
    "kd negative": (lambda: Gains(ARM, 1.0, [-1.0, 1.0]), ("kd", "joint 'shoulder'", "0 or more")),
    "kp negative in a copy": (
        lambda: Gains(ARM, [[1.0, 1.0], [1.0, -1.0]], 1.0),
        ("kp", "joint 'elbow'", "0 or more"),
    ),
    "kp nan": (lambda: Gains(ARM, [1.0, NAN], 1.0), ("kp", "index 1", "finite")),
    "kd inf": (lambda: Gains(ARM, 1.0, INF), ("kd", "finite")),
    "kp of another length": (lambda: Gains(ARM, np.ones(3), 1.0), ("kp", "(3,)", "(2,)")),
    "kd of another length": (lambda: Gains(ARM, 1.0, np.ones((4, 3))), ("kd", "(4, 3)", "(n, 2)")),
    "rows of kp and kd differ": (
        lambda: Gains(ARM, np.ones((2, 2)), np.ones((3, 2))),
        ("kp", "(2, 2)", "kd", "(3, 2)"),
    ),
    "kp of three axes": (lambda: Gains(ARM, np.ones((2, 2, 2)), 1.0), ("kp", "(2, 2, 2)")),
    "kp text": (lambda: Gains(ARM, "stiff", 1.0), ("kp", "numbers")),
    "frequency zero": (lambda: suggest_gains(ARM, 0.0), ("frequency", "positive")),
    "frequency nan": (lambda: suggest_gains(ARM, [1.0, NAN]), ("frequency", "positive")),
    "frequency of three": (lambda: suggest_gains(ARM, np.ones(3)), ("frequency", "(3,)", "(2,)")),
    "damping negative": (lambda: suggest_gains(ARM, 1.0, -1.0), ("damping", "positive")),
    "root of a free character": (
        lambda: suggest_gains(HUMANOID, root="loose"),
        ("root", "'loose'", "'soft'"),
    ),
    "root of a fixed character": (
        lambda: suggest_gains(ARM, root="loose"),
        ("root", "'loose'", "'soft'"),
    ),
    "root frequency": (
        lambda: suggest_gains(HUMANOID, root="soft", root_frequency=-1.0),
        ("root_frequency", "positive"),
    ),
    "pin frequency": (
        lambda: Gains(ARM, 1.0, 1.0, pin_frequency=NAN),
        ("pin_frequency", "positive"),
    ),
    "gains of another character": (
        lambda: World(HUMANOID, dt=DT).step(Command(drive=Drive(FEW, Target(REST)))),
        ("gains", "2 degrees of freedom", "34"),
    ),
    "gains for other copies": (
        lambda: World(ARM, n=3, dt=DT).step(
            Command(drive=Drive(Gains(ARM, np.ones((2, 2)), 1.0), Target(ZERO)))
        ),
        ("gains", "2 rows", "3 copies"),
    ),
    "servo with another's gains": (lambda: StablePD(HUMANOID, FEW), ("gains", "2", "34")),
    "servo with a number": (lambda: PD(ARM, 5.0), ("gains", "suggest_gains")),  # type: ignore[arg-type]
    "servo root": (lambda: StablePD(ARM, root="loose"), ("root", "'loose'", "'soft'")),
    "servo form": (lambda: StablePD(ARM, form="spdd"), ("form", "'spdd'", "'spd'")),
    "servo method": (lambda: StablePD(ARM, method="aba"), ("method", "'aba'", "'maba'")),
    "standalone without dt": (lambda: StablePD(ARM, embedded=False), ("dt", "1/60")),
    "standalone with pins": (
        lambda: StablePD(ARM, embedded=False, dt=DT, pin=[1.0, 1.0]),
        ("pin", "embedded=True"),
    ),
    "a target that is none": (lambda: StablePD(ARM)(None, 3), ("target", "Target or a State")),
}


def asked(name: str, *args: Any, **options: Any) -> Callable[[], object]:
    return lambda: getattr(dynamics, name)(ARM, *args, **options)


def spd(
    kp: Any = 1.0, kd: Any = 1.0, dt: Any = DT, target: Any = (ZERO, None), **options: Any
) -> Callable[[], object]:
    return asked("stable_pd", ZERO, ZERO, target, kp, kd, dt, **options)


DYNAMICS: dict[str, Case] = {
    "q nan": (asked("mass_matrix", [0.0, NAN]), ("q", "index 1", "finite")),
    "q short": (asked("mass_matrix", [0.0]), ("q", "(1,)", "(..., 2)")),
    "q as a number": (asked("mass_matrix", 0.0), ("q", "()", "(..., 2)")),
    "q text": (asked("mass_matrix", "rest"), ("q", "numbers")),
    "q beyond the reach of sine and cosine": (
        asked("forward_kinematics", [1e18, 0.0]),
        ("q", "'shoulder'"),
    ),
    "v nan": (asked("bias_force", ZERO, [NAN, 0.0]), ("v", "index 0", "finite")),
    "a long": (asked("inverse_dynamics", ZERO, ZERO, np.zeros(3)), ("a", "(3,)", "(..., 2)")),
    "tau nan": (asked("forward_dynamics", ZERO, ZERO, [0.0, NAN]), ("tau", "finite")),
    "external of another shape": (
        asked("bias_force", ZERO, ZERO, external=np.zeros((2, 5))),
        ("external", "(2, 5)", "(..., 2, 6)"),
    ),
    "external nan": (
        asked("bias_force", ZERO, ZERO, external=nan_at(np.zeros((2, 6)), 1, 0)),
        ("external", "index 6", "finite"),
    ),
    "gravity nan": (asked("bias_force", ZERO, ZERO, gravity=(0, NAN, 0)), ("gravity", "finite")),
    "gravity of two": (asked("bias_force", ZERO, ZERO, gravity=(0, 1)), ("gravity", "(3,)")),
    "batches that do not fit": (
        asked("bias_force", np.zeros((2, 2)), np.zeros((3, 2))),
        ("q (2, 2)", "v (3, 2)", "leading axes"),
    ),
    "link": (asked("jacobian", ZERO, "lowr"), ("'lowr'", "did you mean 'lower'")),
    "point nan": (asked("jacobian", ZERO, "lower", (0, 0, NAN)), ("point", "finite")),
    "point of two": (asked("jacobian", ZERO, "lower", (0, 0)), ("point", "(3,)")),
    "dtype": (asked("mass_matrix", ZERO, dtype="double"), ("dtype", "'double'", "'float32'")),
    "kp negative": (spd(kp=[1.0, -1.0]), ("kp", "joint 'elbow'", "0 or more")),
    "kd negative": (spd(kd=-1.0), ("kd", "joint 'shoulder'", "0 or more")),
    "kp nan": (spd(kp=NAN), ("kp", "finite")),
    "kp long": (spd(kp=np.ones(3)), ("kp", "(3,)", "(..., 2)")),
    "dt zero": (spd(dt=0.0), ("dt", "positive")),
    "dt negative": (spd(dt=-1.0), ("dt", "positive")),
    "dt nan": (spd(dt=NAN), ("dt", "positive")),
    "dt text": (spd(dt="x"), ("dt", "positive")),
    "target": (spd(target="rest"), ("target", "q and v")),
    "target nan": (spd(target=([NAN, 0.0], None)), ("target", "finite")),
    "target short": (spd(target=([0.0], None)), ("target", "(1,)", "(..., 2)")),
    "form": (spd(form="euler"), ("form", "'euler'", "'spd'")),
    "method": (spd(method="qr"), ("method", "'qr'", "'df'")),
    "singular": (
        lambda: dynamics.forward_dynamics(
            gimbal(), [0.0, math.pi / 2, 0.0], np.zeros(3), np.zeros(3)
        ),
        ("singular", "joint", "armature"),
    ),
}

RUNS: dict[str, Case] = {
    "duration zero": (lambda: run(0.0), ("duration is 0.0", "positive")),
    "duration nan": (lambda: run(NAN), ("duration is nan", "positive")),
    "duration inf": (lambda: run(INF), ("duration is inf",)),
    "duration text": (lambda: run("1"), ("duration is '1'", "positive")),
    "clip": (
        lambda: poise.run(World(ARM, dt=DT), StablePD(ARM), 7, 1.0),
        ("Target or a State",),
    ),
    "until nan": (lambda: next(World(ARM, dt=DT).until(NAN)), ("nan",)),
    "until text": (lambda: next(World(ARM, dt=DT).until("1")), ("'1'",)),  # type: ignore[arg-type]
}


def run(duration: Any) -> None:
    poise.run(World(ARM, dt=DT), StablePD(ARM), Target(ZERO), duration)


def gimbal() -> Character:
    """Three hinges on one link whose first and last axis fall together at 90 degrees."""
    axes = ((0.0, 0.0, 1.0), (0.0, 1.0, 0.0), (1.0, 0.0, 0.0))
    joints = tuple(Joint(f"axis{i}", "hinge", axis=axis) for i, axis in enumerate(axes))
    return one(Link("wheel", joints=joints, mass=1.0, inertia=(1.0, 1.0, 1.0)))


ALL = {
    f"{group}: {name}": case
    for group, cases in {
        "character": CHARACTERS,
        "world": WORLDS,
        "state": STATES,
        "command": COMMANDS,
        "push": PUSHES,
        "gains": GAINS,
        "dynamics": DYNAMICS,
        "run": RUNS,
    }.items()
    for name, case in cases.items()
}


@pytest.mark.parametrize("name", ALL)
def test_bad_input_is_refused_and_named(name: str) -> None:
    call, words = ALL[name]
    refused(call, *words)


@pytest.mark.parametrize("n", [1, 5])
def test_a_refused_command_leaves_the_world_as_it_was(n: int) -> None:
    world = World(ARM, n=n, dt=DT)
    world.reset(State([0.3, 0.1], [1.0, 2.0], time=4.0))
    before = world.state.copy()
    gains = suggest_gains(ARM)
    for command in (
        Command(force=np.array([0.0, NAN])),
        Command(force=np.zeros((n + 1, 2))),
        Command(drive=Drive(gains, Target([NAN, 0.0]))),
        Command(drive=Drive(gains, Target(ZERO), strength=[-1.0, 1.0])),
        Command(velocity=np.zeros(2)),
    ):
        refused(lambda command=command: world.step(command))  # type: ignore[misc]
    refused(lambda: world.reset(State([0.0, NAN])))
    refused(lambda: world.push("lower", (NAN, 0.0, 0.0), 1.0))
    assert np.array_equal(world.state.q, before.q)
    assert np.array_equal(world.state.v, before.v)
    assert np.array_equal(world.time, before.time)


def test_a_refused_reset_leaves_pushes_and_losses_as_they_were() -> None:
    world = World(ARM, n=2, dt=DT)
    world.step(Command(force=np.array([[0.0, 0.0], [1e13, 0.0]])))
    world.push("lower", (1.0, 0.0, 0.0), 1.0)
    memory = world.state.memory
    refused(lambda: world.reset(State([NAN, 0.0])))
    assert [loss.copy for loss in world.diverged] == [1]
    assert np.array_equal(np.array(world.state.memory), np.array(memory))


@pytest.mark.parametrize(
    "odd",
    [
        np.array([0.5, -0.25], dtype=">f8"),
        np.array([0.5, -0.25], dtype=np.float32),
        np.array([0.5, 7.0, -0.25, 7.0])[::2],
        np.array([-0.25, 0.5])[::-1],
        np.frombuffer(np.array([0.5, -0.25]).tobytes()),
        np.frombuffer(b"x" + np.array([0.5, -0.25]).tobytes(), offset=1),
        [0.5, -0.25],
        (np.float16(0.5), -0.25),
    ],
    ids=["big-endian", "float32", "strided", "reversed", "read-only", "unaligned", "list", "tuple"],
)
def test_what_numpy_can_read_is_read_right_whatever_its_layout(odd: Any) -> None:
    plain = np.array([0.5, -0.25])
    found = []
    for x in (plain, odd):
        world = World(ARM, dt=DT)
        world.reset(State(x, x))
        world.step(Command(force=x, drive=Drive(Gains(ARM, np.abs(x), 1.0), Target(x, x, x))))
        found.append((world.state.q, world.state.v, dynamics.bias_force(ARM, x, x)))
    for a, b in zip(*found, strict=True):
        assert np.array_equal(a, b)


def test_fortran_order_is_read_right() -> None:
    q = np.random.default_rng(0).normal(size=(5, 2))
    world = World(ARM, n=5, dt=DT)
    world.reset(State(np.asfortranarray(q)))
    assert np.array_equal(world.state.q, q)


def test_an_empty_batch_gives_empty_answers() -> None:
    assert dynamics.mass_matrix(ARM, np.zeros((0, 2))).shape == (0, 2, 2)
    assert dynamics.bias_force(ARM, np.zeros((3, 0, 2)), ZERO).shape == (3, 0, 2)


def test_names_that_are_near_are_suggested_for_links_joints_and_parts() -> None:
    refused(lambda: HUMANOID.link("left_fot"), "'left_fot'", "did you mean 'left_foot'")
    refused(lambda: HUMANOID.joint("left_kne"), "'left_kne'", "did you mean 'left_knee'")
    world = World([HUMANOID, ARM], dt=DT)
    refused(lambda: world.push("humanoid/hed", (1, 0, 0), 1.0), "did you mean 'humanoid/head'")
    assert scene_of(world).link_index("humanoid/head") == world.scene.link_index("humanoid/head")


def test_every_error_of_the_core_is_a_poise_error() -> None:
    """And not one of the binding's own: it can be caught, pickled and printed."""
    with pytest.raises(PoiseError) as caught:
        World(ARM, dt=DT).step(Command(force=np.zeros(3)))
    assert type(caught.value).__module__ == "poise.errors"
    assert "nanobind" not in str(caught.value)
