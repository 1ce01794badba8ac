"""Clips from keyframes, refined until the ground explains them.

`options` of the file are those of `Options`, and:
    symmetric: true    both sides move alike, at the same time
    sagittal: true     and joints turn fore and aft only, as a somersault's
    cycles: 3          of a loop, how many cycles the clip has

From a sketch with contacts to a motion that could be true: the terms and stages of an author.

First the feet: standing points come to rest on the ground where they stand on average, others stay
above it. Then the forces: the ground must explain the motion. Between rounds the places where feet
stand move to where the motion has them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poise.anatomy.contact_schedule import ContactSchedule
from poise.anatomy.feet import positions
from poise.errors import ClipError, unknown_name
from poise.math.arrays import Floats, runs
from poise.model.character import Character
from poise.motion.authoring import terms as spacetime_terms
from poise.motion.authoring.spacetime import (
    Motion,
    Term,
    Travel,
    optimize,
    repeat_cycles,
    travel_power,
)
from poise.motion.authoring.terms import mirror_matrix
from poise.motion.checks.strength import torque_bounds
from poise.motion.clip import Clip
from poise.motion.editing.mirroring import Mirror
from poise.motion.foot_contact.planting import frames_from
from poise.motion.keyframes import Keyframes

# refinement

RAMP = 0.5
"""How much less the ground's residual counts in the round before."""

IMPACT = 0.05
"""So long after a touchdown the ground's force may jump [s]."""

HARDLY, STIFF = 0.3, 10.0
"""A ball that swings less than the first [rad] is all but a hinge: there the sketch counts more."""


@dataclass(frozen=True)
class Options:
    """What counts in a refinement, and how much.

    Args:
        spacing: Frames between the knots of the steps.
        friction: Of the ground.
        residual: Weight of a percent of body weight that the ground does not explain.
        torque: Weight of the joint torques.
        jerk: Weight of 1000 rad/s³.
        press: Weight of a rise of the ground's force by a body weight in a tenth of a second, but
            where contacts change.
        keep: Weight of 0.1 rad off the sketch, of joints; `joints` has others by name.
        root: Weight of 10 cm off the sketch, of the root's position.
        lean: Weight of 0.1 rad off the sketch, of the root's rotation.
        joints: Weights of single joints, by name or by its end ("ankle").
        strength: Largest torques of single joints, by name or by its end ("ankle") [N m/kg].
        human: Fraction of a strong person's torques that joints may have, by direction; 0: any.
        stand: Weight of a centimetre of a standing point off its place.
        clearance: Height of swinging feet [m].
        limits: Weight of 0.1 rad beyond a joint's limits.
        center: Weight of a centimetre of the center of mass off the middle of the feet, while the
            fewest of them stand.
        rest: Whether the motion starts and ends at rest.
        still: How long it rests at both ends [s].
        settle: Whether footholds may move; else they stay where the sketch has them.
        rounds: Rounds of the second stage.
        iterations: Of each round.
    """

    spacing: int = 3
    friction: float = 0.7
    residual: float = 1.0
    torque: float = 0.3
    jerk: float = 0.05
    press: float = 0.0
    keep: float = 0.3
    root: float = 0.05
    lean: float = 0.2
    joints: Mapping[str, float] = field(default_factory=dict)
    strength: Mapping[str, float] = field(default_factory=dict)
    human: float = 0.0
    stand: float = 10.0
    clearance: float = 0.015
    limits: float = 3.0
    center: float = 0.0
    rest: bool = True
    still: float = 0.0
    settle: bool = True
    rounds: int = 3
    iterations: int = 12


def refine(
    character: Character,
    sketch: Floats,
    fps: float,
    contacts: ContactSchedule,
    *,
    travel: Travel | None = None,
    symmetry: Floats | None = None,
    fixed: Sequence[int] = (),
    hold: Floats | None = None,
    options: Options | None = None,
    watch: Callable[[str, float], None] | None = None,
) -> Motion:
    """Make a sketch true.

    Args:
        character: The character that moves.
        sketch: Frames, (k, nq); of a loop one cycle, without the frame that starts the next.
        fps: Frames per second.
        contacts: Which points stand when.
        travel: Of a loop, how the root moves in a cycle; None: no loop.
        symmetry: Of a loop whose second half mirrors the first, the matrix that mirrors a step.
        fixed: Velocities whose joints stay as sketched.
        hold: How firmly the sketch counts, 0 to 1, (k, nv); None: 1.
        options: What counts.
        watch: Called with the stage and its cost.
    """
    options = options or Options()
    if travel is not None and travel.turn:
        raise ClipError("a loop that turns cannot be refined; make it straight")
    motion = Motion(character, np.array(sketch, dtype=np.float64), fps, travel)
    task = _Task(character, np.array(sketch), fps, contacts, options, travel, hold)
    for stage in range(options.rounds + 1):
        # the ground's weight grows from round to round, so that none jumps far
        weight = 0.0 if stage == 0 else RAMP ** max(options.rounds - 2 - stage, 0)
        if stage == 0 or options.settle:
            task.anchor(motion)
        motion = optimize(
            motion,
            task.terms(weight),
            spacing=options.spacing,
            symmetry=symmetry,
            fixed=fixed,
            iterations=options.iterations,
            watch=partial(_watch_stage, watch, stage) if watch else None,
        )
    return motion


def _watch_stage(
    watch: Callable[[str, float], None], stage: int, iteration: int, cost: float
) -> None:
    watch(f"round {stage}, step {iteration}", cost)


def value_for_joint(values: Mapping[str, float], joint: str) -> float | None:
    """The value for a joint: that of its name, or of the end of it, the longest that fits."""
    fits = [name for name in values if joint == name or joint.endswith(f"_{name}")]
    return values[max(fits, key=len)] if fits else None


@dataclass
class _Task:
    """A sketch, its contacts and where they stand."""

    character: Character
    sketch: Floats
    fps: float
    contacts: ContactSchedule
    options: Options
    travel: Travel | None
    hold: Floats | None

    def __post_init__(self) -> None:
        self.points, self.on = self.contacts.points, self.contacts.on
        self.anchors = np.zeros((len(self.sketch), len(self.points), 3))

    def anchor(self, motion: Motion) -> None:
        """Let points stand where they are on average, at height 0."""
        at = positions(self.character, self.points, motion.q)
        k = len(at)
        for i in range(len(self.points)):
            for frames, cycles in self._phases(i):
                travel = self.travel or Travel()
                shifts = np.array([travel_power(travel, int(cycle))[0] for cycle in cycles])
                mean = (at[frames % k, i] + shifts).mean(axis=0)
                mean[2] = 0.0
                self.anchors[frames % k, i] = mean - shifts

    def _phases(self, i: int) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Frames in which a point stands, and the cycle of each; of a loop, across its seam."""
        on, k = self.on[:, i], len(self.on)
        found = runs(on)
        if self.travel is not None and len(found) > 1 and on[0] and on[-1]:
            found = [*found[1:-1], (found[-1][0], k + found[0][1])]
        return [(np.arange(a, b), np.arange(a, b) // k) for a, b in found]

    def terms(self, force_weight: float) -> list[Term]:
        """What counts; `force_weight` weights what has to do with forces, which mean little until
        they are those of the ground."""
        options = self.options
        weights = np.repeat(self.on[..., None], 3, axis=2).astype(np.float64)
        terms = [
            spacetime_terms.standing(self.points, self.anchors, weights, weight=options.stand),
            spacetime_terms.above(self.points, self._least(), weight=5.0),
            spacetime_terms.near(self.sketch, self._keep()),
            spacetime_terms.limits(weight=options.limits),
            spacetime_terms.smooth(options.jerk),
        ]
        if options.rest and self.travel is None:
            terms.append(spacetime_terms.at_rest(self._resting(), weight=5.0))
        if options.press and force_weight:
            terms.append(spacetime_terms.pressing(force_weight * options.press * self._steady()))
        if options.center:
            terms.append(self._center())
        if force_weight:
            terms.append(
                spacetime_terms.ground(
                    self.points,
                    self.on,
                    weight=force_weight * options.residual,
                    torque=force_weight * options.torque,
                    bounds=self._strength(),
                    strict=force_weight,
                    friction=options.friction,
                )
            )
        return terms

    def _resting(self) -> list[int]:
        """Frames at both ends in which the motion rests."""
        k = len(self.sketch)
        n = min(1 + round(self.options.still * self.fps), k)
        return [*range(n), *range(k - n, k)]

    def _steady(self) -> Floats:
        """1 in frames in which forces are not to jump; 0 in flight, and where contacts change or
        have just begun, (k,)."""
        k, on = len(self.on), self.on
        after = np.roll(on, -1, axis=0)
        steady = np.where(on.any(axis=1) & (on == after).all(axis=1), 1.0, 0.0)
        begins = np.flatnonzero((~on & after).any(axis=1))
        for frame in begins if self.travel is not None else begins[begins < k - 1]:
            touched = frame + np.arange(math.ceil(IMPACT * self.fps) + 1)
            steady[touched % k if self.travel is not None else touched[touched < k]] = 0.0
        return steady

    def _keep(self) -> Floats:
        """Weights of the sketch, (nv,) or (k, nv)."""
        weights = np.full(self.character.nv, self.options.keep)
        for joint in self.character.joints:
            at = self.character.v_slice(joint)
            if joint.kind == "free":
                weights[at] = [self.options.root] * 3 + [self.options.lean] * 3
            weight = value_for_joint(self.options.joints, joint.name)
            if weight is not None:
                weights[at] = weight
            if joint.kind == "ball" and joint.limits is not None and joint.limits[0] < HARDLY:
                # a knee bends about one axis
                weights[at] *= np.where(np.abs(joint.axis) > 0.5, 1.0, STIFF)
        return weights if self.hold is None else self.hold * weights

    def _strength(self) -> tuple[Floats, Floats]:
        """Least and largest torques [N m], (nv,) each."""
        least, most = np.full((2, self.character.nv), np.inf) * [[-1.0], [1.0]]
        if self.options.human:
            least, most = (self.options.human * x for x in torque_bounds(self.character))
        for joint in self.character.joints:
            value = value_for_joint(self.options.strength, joint.name)
            if value is not None:
                at = self.character.v_slice(joint)
                least[at], most[at] = (x * value * self.character.mass for x in (-1.0, 1.0))
        return least, most

    def _least(self) -> Floats:
        """Heights of points that do not stand: rising from 0 next to a contact, (k, points)."""
        far = frames_from(self.on, self.travel is not None)
        rise = np.clip((far - 1) / 5.0, 0.0, 1.0) * self.options.clearance
        return np.where(self.on, -np.inf, rise)

    def _center(self) -> Term:
        """Keep the center of mass over the middle of the standing feet, on the ground.

        It counts while the fewest feet stand: on one foot, or always where both stand always. In
        between it moves freely from foot to foot.
        """
        names = dict.fromkeys(point.foot for point in self.points)
        of = np.array([[point.foot == name for point in self.points] for name in names])
        number = (self.on[:, None] & of).any(axis=2).sum(axis=1)
        fewest = number == np.where(number > 0, number, number.max()).min()
        count = np.maximum(self.on.sum(axis=1), 1)
        goal = np.einsum("kp,kpc->kc", self.on, self.anchors) / count[:, None]
        weights = np.zeros_like(goal)
        weights[fewest, :2] = self.options.center
        return spacetime_terms.center_over(goal, weights)


# keyframes to clips

CYCLES, MOST_CYCLES = 3, 100


def author(keys: Keyframes, watch: Callable[[str, float], None] | None = None) -> Clip:
    """Make a clip from keyframes.

    Args:
        keys: The keyframes.
        watch: Called with the stage and its cost.
    """
    given = dict(keys.options)
    symmetric, sagittal = (_flag(keys.source, given, name) for name in ("symmetric", "sagittal"))
    cycles = given.pop("cycles", CYCLES)
    if cycles not in range(1, MOST_CYCLES + 1):
        raise ClipError(f"{keys.source}: options: cycles must be 1 to {MOST_CYCLES}")
    options = options_of(keys.source, given)
    frames, contacts = keys.frames(), keys.contacts()
    if keys.loop is not None:
        frames, contacts = frames[:-1], replace(contacts, on=contacts.on[:-1])
    symmetry = None
    if keys.mirrored or symmetric:
        mirror = Mirror.of(keys.character)
        pairs = {joint.name: mirror.joint(joint.name).name for joint in keys.character.joints}
        symmetry = mirror_matrix(keys.character, pairs)
    motion = refine(
        keys.character,
        frames,
        keys.fps,
        contacts,
        travel=keys.loop,
        symmetry=symmetry,
        fixed=lateral_velocities(keys.character) if sagittal else (),
        hold=hold_weights(keys, len(frames)),
        options=options,
        watch=watch,
    )
    return _clip(keys, motion, contacts, int(cycles))


def _flag(source: str, given: dict[str, Any], name: str) -> bool:
    value = given.pop(name, False)
    if not isinstance(value, bool):
        raise ClipError(f"{source}: options: {name} must be true or false")
    return value


def hold_weights(keys: Keyframes, frames: int) -> Floats:
    """How firmly the sketch counts in each frame, (frames, nv): from key to key in a straight
    line."""
    times = np.arange(frames) / keys.fps
    out = np.ones((frames, keys.character.nv))
    for joint in keys.character.joints:
        at = keys.character.v_slice(joint)
        places = [(keys.joints.get(joint.name), at)]
        if joint.kind == "free":
            turn = slice(at.start + 3, at.stop)
            places = [(keys.root_pos, slice(at.start, turn.start)), (keys.root_turn, turn)]
        for track, where in places:
            if track is not None:
                out[:, where] = np.interp(times, track.times, track.hold)[:, None]
    return out


def lateral_velocities(character: Character) -> list[int]:
    """Velocities that lead out of the plane y = 0, where link frames rest along the world's."""
    out: list[int] = []
    for joint in character.joints:
        first = character.v_slice(joint).start
        if joint.kind == "free":
            out += [first + i for i in (1, 3, 5)]
        elif joint.kind == "ball":
            out += [first, first + 2]
        elif (abs(joint.axis[1]) > 0.5) != (joint.kind == "hinge"):
            out.append(first)
    return out


def options_of(source: str, given: Mapping[str, Any]) -> Options:
    """The options of a file, checked."""
    known = {field.name: field.type for field in fields(Options)}
    for name, value in given.items():
        if name not in known:
            raise ClipError(f"{source}: options: {unknown_name('option', name, known)}")
        kinds: dict[Any, Any] = {"bool": bool, "int": (int, float), "float": (int, float)}
        kind = kinds.get(known[name], Mapping)
        if not isinstance(value, kind) or (kind is not bool and isinstance(value, bool)):
            raise ClipError(f"{source}: options: {name} is {value!r:.40}, it must be {known[name]}")
        if known[name] == "int" and value != int(value):
            raise ClipError(f"{source}: options: {name} is {value}, it must be a whole number")
    values: dict[str, Any] = {n: int(v) if known[n] == "int" else v for n, v in given.items()}
    return Options(**values)


def _clip(keys: Keyframes, motion: Motion, contacts: ContactSchedule, cycles: int) -> Clip:
    frames, on = motion.q, contacts.on
    if motion.travel is not None:
        last = repeat_cycles(motion, cycles, 1)[:1]
        frames = np.concatenate([repeat_cycles(motion, 0, cycles), last])
        on = np.concatenate([np.tile(on, (cycles, 1)), on[:1]])
    # quaternions of many cycles drift off their sign; a clip aligns them
    return Clip(keys.character, frames, keys.fps, name=keys.name, contacts=replace(contacts, on=on))
