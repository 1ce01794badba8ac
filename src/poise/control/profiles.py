"""Strength and pin weights that change in time: a limb goes limp and comes back.

A track is a set of links with keys (t_i, w_i). From key to key the weight follows the blend s;
before the first and after the last it stays:

    w(t) = w_0 + Σ_i (w_{i+1} - w_i) s((t - t_i) / (t_{i+1} - t_i)),   the argument cut to 0..1
    smooth  s(u) = u² (3 - 2 u)      linear  s(u) = u      step  s(u) = 1 from u = 1 on

A smooth blend has no kinks, stays between its keys and rests at each of them.

    limp = Profile(character, {"left_arm": [(1.0, 1.0), (1.2, 0.0), (2.0, 0.0), (3.0, 1.0)]})
    limp = named_profile(character, "limp", limb="left_arm", at=1.0)    # much the same, by name
    servo.strength = limp(t)                                            # in a loop of one's own
    poise.run(world, Profiled(servo, strength=limp), clip, 4.0)         # by the world's clocks
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from numbers import Real
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from poise.anatomy.names import links_of
from poise.errors import PoiseError, Sealed, check_known
from poise.math.arrays import Floats, Ints, choice, finite, floats, number
from poise.model.scene import Scene, SceneLike, scene_of
from poise.simulation.command import Command
from poise.simulation.controller import Requirements
from poise.simulation.pushes import parse_times

BLENDS: dict[str, Callable[[Floats], Floats]] = {
    "smooth": lambda u: u * u * (3.0 - 2.0 * u),
    "linear": lambda u: u,
    "step": np.floor,
}
"""How a weight goes from key to key: 0..1 to 0..1."""

Keys: TypeAlias = "ArrayLike | Sequence[tuple[Any, Any]]"
"""One weight for all times, or pairs of time [s] and weight; each a number or shape (n,)."""


class Track(NamedTuple):
    """Weights of a set of links over time."""

    links: Ints  # shape (k,)
    time: Floats  # of the keys [s], shape (keys,) or (keys, n)
    weight: Floats  # shape (keys,) or (keys, n)


class Profile(Sealed):
    """Weights of links over time, for strength or for pins.

    Args:
        character: The character, or a scene.
        keys: Names of limbs or links, "arms", "legs" or "all", each with a weight or with keys:
            pairs of time [s] and weight, in the order of time. Times and weights may have shape
            (n,), one for each copy. Where sets of links overlap the later one counts.
        rest: Weight of links that no key names: 1 for strength, 0 for pins.
        blend: "smooth", "linear" or "step".
    """

    def __init__(
        self,
        character: SceneLike,
        keys: Mapping[str, Keys],
        *,
        rest: float = 1.0,
        blend: str = "smooth",
    ) -> None:
        self.scene = scene_of(character)
        self.rest = _weights([rest], "rest")[0]
        self.blend = tuple(BLENDS)[choice(blend, "blend", tuple(BLENDS))]
        if not isinstance(keys, Mapping):
            raise PoiseError(f"keys must map names of limbs or links to weights, got {keys!r:.80}")
        self.tracks = tuple(_track(self.scene, name, value) for name, value in keys.items())
        self._seal()

    def __call__(self, t: ArrayLike) -> Floats:
        """Weights at time t [s], a number or shape (n,): shape (nl,) or (n, nl)."""
        t = finite(floats(t, "t"), "t")
        found = [_weight_at(track, t, BLENDS[self.blend]) for track in self.tracks]
        batch = np.broadcast_shapes(t.shape, *(weight.shape for weight in found))
        out = np.full((*batch, self.scene.nl), self.rest)
        for track, weight in zip(self.tracks, found, strict=True):
            out[..., track.links] = weight[..., None]
        return out

    @property
    def end(self) -> float:
        """When the last key is [s]; nothing changes after it."""
        return max((float(track.time.max()) for track in self.tracks), default=0.0)


class Profiled(Sealed):
    """A controller whose strength and pins follow profiles, by each copy's clock.

    It is called in every step, also where the controller alone would take rows of targets.

    Args:
        controller: A controller with a strength (and, for pins, a pin) to assign, such as StablePD.
        strength: Time [s] to factors per link: a Profile, or any function; None leaves it.
        pin: Time [s] to weights per link; None leaves it.
    """

    @property
    def plant(self) -> Any:
        """What the controller acts on."""
        return getattr(self.controller, "plant", None)

    @property
    def requires(self) -> Requirements:
        """Those of the controller, but for rows: weights change from step to step."""
        return replace(Requirements.of(self.controller), rows=False)

    @property
    def memory(self) -> Floats:
        """What the controller remembers."""
        return np.asarray(getattr(self.controller, "memory", np.zeros(0)))

    def restore(self, memory: ArrayLike) -> None:
        """Go on from a memory."""
        if hasattr(self.controller, "restore"):
            self.controller.restore(memory)

    _remedies = {  # noqa: RUF012
        name: f"Profiled(controller, {name}=profile) sets it in every step"
        for name in ("strength", "pin")
    }

    def __init__(
        self,
        controller: Any,
        *,
        strength: Callable[[Floats], ArrayLike] | None = None,
        pin: Callable[[Floats], ArrayLike] | None = None,
    ) -> None:
        if not callable(controller):
            raise PoiseError(
                f"a controller is called with state and target; got {controller!r:.80}"
            )
        self.controller = controller
        self.profiles = {"strength": strength, "pin": pin}
        for name, profile in self.profiles.items():
            if profile is None:
                continue
            if not callable(profile):
                raise PoiseError(f"{name} must be a Profile or a function of time")
            if not hasattr(controller, name):
                raise PoiseError(f"{type(controller).__name__} has no {name} to assign")
        self._seal()

    def __copy__(self) -> Profiled:
        return Profiled(copy(self.controller), **self.profiles)

    def __call__(self, state: Any, target: Any) -> Command:
        """The controller's command, with the weights of the state's time."""
        self._blend(state.time)
        command: Command = self.controller(state, target)
        return command

    def explain(self, state: Any, target: Any) -> tuple[Command, dict[str, Any]]:
        """The controller's command and what led to it, with the weights of the state's time."""
        self._blend(state.time)
        explained: tuple[Command, dict[str, Any]] = self.controller.explain(state, target)
        return explained

    def _blend(self, time: Floats) -> None:
        for name, profile in self.profiles.items():
            if profile is not None:
                setattr(self.controller, name, profile(time))


class Recipe(NamedTuple):
    """A profile by name: weights go from `rest` to `low`, and maybe back."""

    about: str
    links: str | None = None  # which; None is the limb of the spec
    weight: float = 0.0
    rest: float = 1.0
    returns: bool = True
    quick: float = 1.0  # how fast it goes there, in parts of the fade


RECIPES = {
    "limp": Recipe("a limb lets go and comes back"),
    "weak": Recipe("a limb has a third of its strength for a while", weight=1 / 3),
    "flinch": Recipe("a limb gives way at once and recovers slowly", weight=0.2, quick=0.1),
    "ragdoll": Recipe("everything lets go and stays so", links="all", returns=False),
    "stiff-upper": Recipe("legs go weak, the rest stays", "legs", weight=0.25, returns=False),
    "loose-arms": Recipe("arms go weak, the rest stays", "arms", weight=0.1, returns=False),
    "pinned": Recipe("a limb is held in the world: for pin", weight=1.0, rest=0.0),
}
"""Profiles by name. Their numbers were chosen by eye."""


def named_profile(
    character: SceneLike,
    name: str,
    *,
    limb: str | None = None,
    at: ArrayLike = 0.0,
    hold: ArrayLike = 1.0,
    fade: ArrayLike = 0.25,
) -> Profile:
    """A profile by its name; RECIPES has them all.

    Args:
        character: The character, or a scene.
        name: "limp", "weak", "flinch", "ragdoll", "stiff-upper", "loose-arms" or "pinned".
        limb: Limb or link, "arms", "legs" or "all"; None is what the profile is made for, or all.
        at: When it begins [s], a number or shape (n,).
        hold: How long it stays, for those that come back [s], a number or shape (n,).
        fade: How long each way takes [s], a number or shape (n,).
    """
    check_known("profile", name, RECIPES)
    recipe = RECIPES[name]
    at, hold, fade = (
        finite(floats(x, n), n) for x, n in ((at, "at"), (hold, "hold"), (fade, "fade"))
    )
    if (hold < 0.0).any() or (fade < 0.0).any():
        raise PoiseError("hold and fade must be 0 or more")
    there = at + recipe.quick * fade
    keys = [(at, recipe.rest), (there, recipe.weight)]
    if recipe.returns:
        keys += [(there + hold, recipe.weight), (there + hold + fade, recipe.rest)]
    return Profile(character, {limb or recipe.links or "all": keys}, rest=recipe.rest)


def _track(scene: Scene, name: str, value: Any) -> Track:
    """Links, times and weights of one entry of keys."""
    at = f"keys[{name!r}]"
    links = links_of(scene, name)
    if isinstance(value, Real) or (isinstance(value, np.ndarray) and value.ndim < 2):
        return Track(links, np.zeros(1), _weights([value], at))
    try:
        times, weights = zip(*value, strict=True)
    except (TypeError, ValueError):
        raise PoiseError(
            f"{at} must be a weight, or pairs of time and weight, got {value!r:.80}"
        ) from None
    time, weight = _stacked(times, at), _weights(weights, at)
    if (np.diff(time, axis=0) < 0.0).any():
        raise PoiseError(f"{at} has times that go back; they must be in order")
    return Track(links, time, weight)


def _weights(values: Sequence[Any], at: str) -> Floats:
    weight = _stacked(values, at)
    if (weight < 0.0).any():
        raise PoiseError(f"{at} has the weight {weight.min():g}; weights are 0 or more")
    return weight


def _stacked(values: Sequence[Any], at: str) -> Floats:
    """Numbers, or arrays of shape (n,), one above the other."""
    arrays = [finite(floats(value, at), at) for value in values]
    try:
        stacked = np.stack(np.broadcast_arrays(*arrays))
    except ValueError:
        stacked = np.zeros((0, 0, 0))
    if stacked.ndim > 2:
        raise PoiseError(f"{at} must have numbers, or arrays of one shape (n,)")
    return stacked


def _weight_at(track: Track, t: Floats, blend: Callable[[Floats], Floats]) -> Floats:
    """Weight of a track at times t, shape () or (n,)."""
    wide = max(t.ndim + 1, track.time.ndim, track.weight.ndim)
    time, weight = (x.reshape(*x.shape, *[1] * (wide - x.ndim)) for x in track[1:])
    length, since = np.diff(time, axis=0), t - time[:-1]
    # two keys at one time are a jump
    moving = length > 0.0
    u = np.where(moving, since / np.where(moving, length, 1.0), since >= 0.0)
    change = np.diff(weight, axis=0) * blend(np.clip(u, 0.0, 1.0))
    return np.asarray(weight[0] + change.sum(axis=0))


# ---- the syntax of profiles: `limp:left_arm@1s+0.5s`

PIN = "pinned"
"""The profile that is one of pins; the others are of strength."""

FORM = "NAME[:LIMB][@TIME[+DURATION]], as in limp:left_arm@1s+0.5s"


@dataclass(frozen=True)
class ProfileSpec:
    """A profile by name, for a character that comes later.

    Args:
        name: One of `poise.control.profiles.RECIPES`.
        limb: Limb or link; None is what the profile is made for.
        at: When it begins [s].
        hold: How long it stays, if it comes back [s].
    """

    name: str
    limb: str | None = None
    at: float = 0.0
    hold: float = 1.0

    def __post_init__(self) -> None:
        for key in ("at", "hold"):
            if number(getattr(self, key), f"{key} of a profile", positive=False) < 0.0:
                raise PoiseError(f"{key} of a profile must be 0 or more [s]")

    def of(self, character: SceneLike) -> Profile:
        """The profile of a character.

        Args:
            character: The character, or a scene.
        """
        return named_profile(character, self.name, limb=self.limb, at=self.at, hold=self.hold)

    def __str__(self) -> str:
        limb = f":{self.limb}" if self.limb else ""
        return f"{self.name}{limb}@{self.at:g}s+{self.hold:g}s"


def parse_profile(text: str) -> ProfileSpec:
    """Read a profile: `NAME[:LIMB][@TIME[+DURATION]]`, times in s or ms.

    Args:
        text: As `limp:left_arm@1s+0.5s`.
    """
    what, at, time = text.strip().partition("@")
    name, _, limb = what.partition(":")
    when = parse_times(time) if at else (0.0, None)
    if not name.strip() or when is None:
        raise PoiseError(f"profile {text!r:.80}: it must be {FORM}; names: {', '.join(RECIPES)}")
    start, hold = when
    return ProfileSpec(name.strip(), limb.strip() or None, start, 1.0 if hold is None else hold)


def apply_profiles(controller: Any, character: SceneLike, specs: Sequence[ProfileSpec]) -> Any:
    """The controller with strength and pins that follow profiles; itself if there are none.

    Strengths of several profiles multiply; of several pins the strongest counts.

    Args:
        controller: The controller.
        character: The character, or the world.
        specs: The profiles.
    """
    strength = [one.of(character) for one in specs if one.name != PIN]
    pins = [one.of(character) for one in specs if one.name == PIN]
    if not specs:
        return controller
    return Profiled(
        controller,
        strength=partial(_combine, np.multiply, strength) if strength else None,
        pin=partial(_combine, np.maximum, pins) if pins else None,
    )


def _combine(join: np.ufunc, profiles: Sequence[Profile], t: Floats) -> Floats:
    """Weights of several profiles as one."""
    return np.asarray(join.reduce([profile(t) for profile in profiles]))
