"""From a sketch with contacts to a motion that could be true: the terms and stages of an author.

First the feet: standing points come to rest on the ground where they stand on average, others stay
above it. Then the forces: the ground must explain the motion. Between rounds the places where feet
stand move to where the motion wants them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from poise.anatomy import feet
from poise.anatomy.contact_schedule import Contacts
from poise.errors import ClipError
from poise.math.arrays import Floats, runs
from poise.model.character import Character
from poise.motion.authoring import rate_terms
from poise.motion.authoring import terms as spacetime_terms
from poise.motion.authoring.spacetime import Motion, Term, Travel, optimise, powers

EASE = 0.5
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
        human: Share of a strong person's torques that joints may have, by direction; 0: any.
        stand: Weight of a centimetre of a standing point off its place.
        clearance: Height of swinging feet [m].
        limits: Weight of 0.1 rad beyond a joint's limits.
        center: Weight of a centimetre of the mass centre off the middle of the feet, while the
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
    contacts: Contacts,
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
        character: Whose motion it is.
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
        # the ground's share grows from round to round, so that none jumps far
        share = 0.0 if stage == 0 else EASE ** max(options.rounds - 2 - stage, 0)
        if stage == 0 or options.settle:
            task.anchor(motion)
        found = optimise(
            motion,
            task.terms(share),
            spacing=options.spacing,
            symmetry=symmetry,
            fixed=fixed,
            iterations=options.iterations,
            watch=None if watch is None else _named(watch, f"round {stage}"),
        )
        motion = found.motion
    return motion


def _named(watch: Callable[[str, float], None], stage: str) -> Callable[[int, float], None]:
    return lambda iteration, cost: watch(f"{stage}, step {iteration}", cost)


def named(values: Mapping[str, float], joint: str) -> float | None:
    """The value for a joint: that of its name, or of the end of it, the longest that fits."""
    fits = [name for name in values if joint == name or joint.endswith(f"_{name}")]
    return values[max(fits, key=len)] if fits else None


class _Task:
    """A sketch, its contacts and where they stand."""

    def __init__(
        self,
        character: Character,
        sketch: Floats,
        fps: float,
        contacts: Contacts,
        options: Options,
        travel: Travel | None,
        hold: Floats | None,
    ) -> None:
        self.character, self.sketch, self.fps, self.options = character, sketch, fps, options
        self.points, self.on, self.travel = contacts.points, contacts.on, travel
        self.hold = np.ones((len(sketch), character.nv)) if hold is None else hold
        self.anchors = np.zeros((len(sketch), len(self.points), 3))

    def anchor(self, motion: Motion) -> None:
        """Let points stand where they are on average, at height 0."""
        at = feet.positions(self.character, self.points, motion.q)
        k = len(at)
        for i in range(len(self.points)):
            for frames, cycles in self._phases(i):
                shifts = np.array(
                    [powers(self.travel, int(c))[0] if self.travel else np.zeros(3) for c in cycles]
                )
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

    def terms(self, share: float) -> list[Term]:
        """What counts; `share` of what has to do with forces, which mean little until they are
        those of the ground."""
        options = self.options
        weights = np.repeat(self.on[..., None], 3, axis=2).astype(np.float64)
        terms = [
            spacetime_terms.standing(self.points, self.anchors, weights, weight=options.stand),
            spacetime_terms.above(self.points, self._least(), weight=5.0),
            spacetime_terms.near(self.sketch, self.hold * self._keep()),
            spacetime_terms.limits(weight=options.limits),
            rate_terms.smooth(options.jerk),
        ]
        if options.rest and self.travel is None:
            terms.append(spacetime_terms.at_rest(self._resting(), weight=5.0))
        if options.press and share:
            terms.append(rate_terms.pressing(share * options.press * self._steady()))
        if options.center:
            terms.append(self._center())
        if share:
            terms.append(
                spacetime_terms.ground(
                    self.points,
                    self.on,
                    weight=share * options.residual,
                    torque=share * options.torque,
                    bounds=self._strength(),
                    strict=share,
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
        """Weights of the sketch, (nv,)."""
        weights = np.full(self.character.nv, self.options.keep)
        for joint in self.character.joints:
            at = self.character.v_slice(joint)
            if joint.kind == "free":
                weights[at] = [self.options.root] * 3 + [self.options.lean] * 3
            weight = named(self.options.joints, joint.name)
            if weight is not None:
                weights[at] = weight
            if joint.kind == "ball" and joint.limits is not None and joint.limits[0] < HARDLY:
                # a knee bends about one axis
                weights[at] *= np.where(np.abs(joint.axis) > 0.5, 1.0, STIFF)
        return weights

    def _strength(self) -> tuple[Floats, Floats]:
        """Least and largest torques [N m], (nv,) each."""
        least, most = np.full((2, self.character.nv), np.inf) * [[-1.0], [1.0]]
        if self.options.human:
            from poise.motion.checks.strength import torque_bounds

            least, most = (self.options.human * x for x in torque_bounds(self.character))
        for joint in self.character.joints:
            value = named(self.options.strength, joint.name)
            if value is not None:
                at = self.character.v_slice(joint)
                least[at], most[at] = (x * value * self.character.mass for x in (-1.0, 1.0))
        return least, most

    def _least(self) -> Floats:
        """Heights of points that do not stand: rising from 0 next to a contact, (k, points)."""
        k = len(self.on)
        least = np.full(self.on.shape, -np.inf)
        for i in range(len(self.points)):
            stands = np.flatnonzero(self.on[:, i])
            frames = np.arange(k)
            if len(stands):
                apart = np.abs(frames[:, None] - stands)
                if self.travel is not None:
                    apart = np.minimum(apart, k - apart)
                far = apart.min(axis=1)
            else:
                far = np.full(k, k)
            rise = np.clip((far - 1) / 5.0, 0.0, 1.0) * self.options.clearance
            least[:, i] = np.where(self.on[:, i], -np.inf, rise)
        return least

    def _center(self) -> Term:
        """Keep the mass centre over the middle of the standing feet, on the ground.

        It counts while the fewest feet stand: on one foot, or always where both stand always. In
        between it goes from foot to foot as it likes.
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


__all__ = ["Options", "refine"]
