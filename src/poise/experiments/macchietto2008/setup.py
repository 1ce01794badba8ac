"""Characters, grounds and pushes of the experiments, and the criterion of a fall.

The thesis's character is `humanoid-ball`: 65 kg, ball joints, box links. Two grounds: "penalty" is
the thesis's, springs at steps of 1 ms with the thesis's form of the balance; "impulse" is a rigid
ground at 1/120 s with ground forces inside friction cones, which the thesis names as future work.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from poise import dynamics, measure
from poise.anatomy.feet import feet_of
from poise.characters import load_character
from poise.control.balance import Balance
from poise.control.registry import CONTROLLERS
from poise.control.stable_pd import StablePD
from poise.math import rotation
from poise.math.arrays import Floats
from poise.model.character import Character
from poise.motion import load_clip
from poise.motion.limits import excesses
from poise.simulation.pushes import Push
from poise.simulation.state import State
from poise.simulation.world import World
from poise.trials.trial import PENALTY_STEP

CHARACTER = "humanoid-ball"
SUBSETS = {
    "tracking": ("track",),
    "tracking, linear": ("track", "linear"),
    "all": ("track", "linear", "angular"),
}
WORLD = CONTROLLERS["balance"].defaults
STIFFNESS: float = WORLD["stiffness"]
STEPS: dict[str, float] = {"penalty": PENALTY_STEP, "impulse": WORLD["dt"]}
"""Time steps by the model of contact [s]."""

GROUNDS = tuple(STEPS)
SERVO = "stable PD"
"""Tracking without balance, for comparison."""

STEADY = 5.0
"""Feet that tilt by less than this are steady [degrees]."""

LOOK = 1.0 / 30.0
"""Interval of the measurements [s]."""

CALM_SPEED, CALM_POSE, AT_REST = 0.1, 5.0, 5
"""A copy that moves slower [rad/s, m/s], nearer to its pose [degrees], in five measurements, has
recovered."""

SERVO_HZ = 100.0
"""Of its joints: softer ones do not even stand."""


class Outcome(NamedTuple):
    """Outcome of n copies.

    Attributes:
        fell: When each fell [s]; inf if it did not, shape (n,).
        tilt: Largest tilt of a foot before [degrees], shape (n,).
        moved: Farthest that a foot went before [m], shape (n,).
        torque: Largest torque in a joint before [N·m], shape (n,).
        work: Absolute work of the joints before [J], shape (n,).
        beyond: Farthest that a joint was beyond its limits before [degrees], shape (n,).
    """

    fell: Floats
    tilt: Floats
    moved: Floats
    torque: Floats
    work: Floats
    beyond: Floats

    @property
    def stood(self) -> NDArray[np.bool_]:
        """Which did not fall, shape (n,)."""
        return ~np.isfinite(self.fell)


def standing() -> tuple[Character, State]:
    """The character, standing at rest: the first pose of the squat."""
    character = load_character(CHARACTER)
    start = load_clip("squat", character).state(0.0)
    return character, State(start.q, np.zeros(character.nv))


def push_standing(
    cases: Sequence[Sequence[Push]],
    method: str,
    ground: str = "impulse",
    *,
    duration: float = 3.0,
    **settings: Any,
) -> Outcome:
    """Push a character that stands, one copy for each case, in one world.

    It ends early when every copy has fallen, or stands at rest as before.

    Args:
        cases: The pushes of each copy.
        method: One of SUBSETS, or SERVO.
        ground: One of GROUNDS.
        duration: How long [s].
        settings: Of the balance, in the place of its own.
    """
    character, start = standing()
    n = len(cases)
    world = World(
        character, n=n, dt=STEPS[ground], contact=ground, stiffness=STIFFNESS, projectiles=0,
        self_collision=False, on_divergence="freeze",
    )  # fmt: skip
    world.reset(State(np.tile(start.q, (n, 1)), np.zeros((n, character.nv))))
    for i, pushes in enumerate(cases):
        for push in pushes:
            world.push(push.link, push.force_vector(), push.duration, at=push.at, where=[i])
    last = max((push.at + push.duration for pushes in cases for push in pushes), default=0.0)
    watch = _Watch(character, world, start, last)
    controller = controller_for(world, method, **settings)
    hold = controller.requires.steps
    done, every = 0, max(1, round(LOOK / (world.dt * hold)))
    steps = round(duration / (world.dt * hold))
    while done < steps and not watch.over:
        for _ in range(min(every, steps - done)):
            world.step(controller(world.state, start), steps=hold)
            done += 1
        watch.look()
    return watch.outcome


def controller_for(world: World, method: str, **settings: Any) -> Balance | StablePD:
    """One of SUBSETS, or SERVO, for a world; settings are the balance's."""
    if method == SERVO:
        return StablePD(world, root="free", frequency=SERVO_HZ)
    return Balance(world, objectives=SUBSETS[method], **settings)


def random_push(rng: np.random.Generator, links: Sequence[str], at: float, most: float) -> Push:
    """A level push of random direction and size on a random link.

    Args:
        rng: Of the random numbers.
        links: Which links.
        at: When [s].
        most: Largest force [N]; the least is a fifth of it.
    """
    angle = rng.uniform(0.0, 2.0 * np.pi)
    link = links[int(rng.integers(len(links)))]
    way = (float(np.cos(angle)), float(np.sin(angle)), 0.0)
    return Push(link, float(most * rng.uniform(0.2, 1.0)), way, at)


class _Watch:
    """Measures copies at intervals, each until it has fallen."""

    def __init__(self, character: Character, world: World, start: State, last: float) -> None:
        self.character, self.world = character, world
        self.start, self.last = start, last
        self.rest = np.zeros(world.n, dtype=int)  # consecutive measurements at rest
        names = [link.name for link in character.links]
        self.feet = [
            names.index(name) for name in dict.fromkeys(p.foot for p in feet_of(character))
        ]
        self.p0, R = self._feet()
        self.up0 = _up(R)
        self.outcome = Outcome(np.full(world.n, np.inf), *np.zeros((5, world.n)))

    @property
    def over(self) -> bool:
        """Whether all have fallen, or stand at rest."""
        return bool((~self.outcome.stood | (self.rest >= AT_REST)).all())

    def look(self) -> None:
        """Updates the outcome of the copies that have not fallen."""
        world, character, out = self.world, self.character, self.outcome
        q = np.atleast_2d(world.state.q)
        lost = [loss.copy for loss in world.diverged]
        down = measure.fallen(character, q, world.contacts)
        down[lost] = True
        out.fell[out.stood & down] = float(world.time.flat[0])
        up = out.stood
        p, R = self._feet()
        lean = np.degrees(np.arccos(np.clip((_up(R) * self.up0).sum(axis=-1), -1.0, 1.0)))
        away = np.linalg.norm((p - self.p0)[..., :2], axis=-1)
        joints = np.abs(np.atleast_2d(world.torque))[:, 6:].max(axis=1)
        for kept, value in (
            (out.tilt, lean.max(axis=1)),
            (out.moved, away.max(axis=1)),
            (out.torque, joints),
            (out.beyond, _beyond(character, q)),
        ):
            kept[up] = np.maximum(kept, value)[up]
        off = measure.tracking_error(character, q, self.start.q).rotation.max(axis=1)
        calm = np.abs(np.atleast_2d(world.state.v)).max(axis=1) < CALM_SPEED
        calm &= (off < CALM_POSE) & (float(world.time.flat[0]) > self.last)
        self.rest = np.where(calm, self.rest + 1, 0)
        power = np.abs(np.atleast_2d(world.torque * world.state.v))[:, 6:].sum(axis=1)
        out.work[up] += LOOK * power[up]

    def _feet(self) -> tuple[Floats, Floats]:
        p, R = dynamics.forward_kinematics(self.character, np.atleast_2d(self.world.state.q))
        return p[:, self.feet], R[:, self.feet]


def _beyond(character: Character, q: Floats) -> Floats:
    """How far any joint is beyond its limits [degrees], shape (n,)."""
    found = np.zeros(len(q))
    for over in excesses(character, q):
        found = np.maximum(found, np.degrees(over.value))
    return found


def _up(R: Floats) -> Floats:
    """The vertical in the links' frames, (..., 3)."""
    return rotation.rotate(rotation.conjugate(R), np.array([0.0, 0.0, 1.0]))


def stood_text(fell: float | None) -> str:
    """Whether and when it fell, in words."""
    return "stands" if fell is None or not np.isfinite(fell) else f"falls at {fell:.1f} s"
