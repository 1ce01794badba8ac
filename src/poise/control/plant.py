"""Plant: what a controller acts on, one or several parts of a scene, and the world around them.

A controller computes with the parts it is made for, as if they were alone, and its commands are
lifted to the whole scene. Degrees of freedom that no controller acts on get no force: free objects
beside a character fall, roll and are pushed as they would without it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.control.gains import Gains, rows_of_copies
from poise.dynamics import FORMS, GRAVITY
from poise.errors import PoiseError, Sealed, check_known, shorten
from poise.math.arrays import Floats, Ints, finite, floats, number
from poise.model.character import Character, is_free_object
from poise.model.forest import Part, compile_forest
from poise.model.same_body import check_clip_fits
from poise.model.scene import Scene, SceneLike, scene_of
from poise.simulation.command import Command, Drive, Target
from poise.simulation.contact import HeightField, Plane

if TYPE_CHECKING:
    from poise.simulation.world import World
    from poise.simulation.world_config import WorldConfig

Index = slice | Ints
"""Where the parts are in an array of the whole scene."""

PartLike = str | Sequence[str] | None
"""Name of a part, names of several, or None for the characters of a scene."""

LEVEL = 1.0 - 1e-6
"""Upward component of the normal of level ground."""


class Plant(Sealed):
    """Parts of a scene, as a controller sees them.

    Nothing of it can be assigned.

    Attributes:
        scene: The parts alone, compiled.
        whole: All of the scene.
        names: Names of the parts.
        q: Their coordinates in the whole scene, a slice or indices.
        v: Their velocities, alike.
        links: Their links, alike.
        dt: Time step of the world [s], or None without a world.
        n: Number of copies; 1 without a world.
        dtype: Precision of the world.
        settings: What the world was built with, or None without a world.
    """

    _remedies = dict.fromkeys(
        ("whole", "names", "settings", "dt", "n", "dtype", "q", "v", "links", "is_whole", "scene"),
        "a plant does not change; Plant.of(world, part) makes another",
    )

    def __init__(self, source: SceneLike, part: PartLike = None) -> None:
        self.whole = scene_of(source)
        self.names = _part_names(self.whole, part)
        world: Any = source if hasattr(source, "settings") else None
        self._world: World | None = world
        self.settings: WorldConfig | None = None if world is None else world.settings
        self.dt: float | None = None if world is None else world.dt
        self.n: int = 1 if world is None else world.n
        self.dtype: str = "float64" if world is None else world.dtype
        parts = self.whole.forest.parts
        chosen = [parts[name] for name in self.names]
        self.q = _joined([part.q for part in chosen], self.whole.nq)
        self.v = _joined([part.v for part in chosen], self.whole.nv)
        self.links = _joined([part.links for part in chosen], self.whole.nl)
        self.is_whole = len(self.names) == len(parts)
        self.scene = self.whole if self.is_whole else self._alone(tuple(parts))
        self._lifted: tuple[Gains, Gains] | None = None
        self._fitting: Character | None = None
        self._seal()

    @classmethod
    def of(cls, source: SceneLike | Plant, part: PartLike = None) -> Plant:
        """The plant of a source.

        Args:
            source: A World, a Character, several, or a Plant, which is taken as it is.
            part: Which parts of the scene; None takes its characters, and never free objects.
        """
        return source if isinstance(source, Plant) else cls(source, part)

    def __reduce__(self) -> tuple[Any, ...]:
        return Plant, (self._world or self.whole, self.names)

    # ---- the world around

    @property
    def gravity(self) -> Floats:
        """Gravity of the world, as it is now, or the earth's [m/s²], shape (3,)."""
        return floats(GRAVITY if self._world is None else self._world.gravity, "gravity")

    @property
    def contact(self) -> str | None:
        """Model of contact: "impulse", "penalty", or None without contact or world."""
        return None if self.settings is None else self.settings.contact

    @property
    def character(self) -> Character:
        """The only character of the plant."""
        if len(self.scene.characters) != 1:
            raise PoiseError(f"this controller acts on several parts: {', '.join(self.names)}")
        return self.scene.characters[0]

    def ground_height(self, ground: float | None = None) -> float:
        """Height of the ground [m].

        Args:
            ground: As given; None is the height of the world's ground, which must be level then.
        """
        if ground is not None:
            return number(ground, "ground", positive=False, unit="m")
        its = True if self.settings is None else self.settings.ground
        if isinstance(its, Plane) and its.normal[2] > LEVEL:
            return its.height
        if isinstance(its, HeightField) and np.ptp(its.heights) == 0.0:
            return float(its.heights.flat[0])
        if isinstance(its, (Plane, HeightField)):
            raise PoiseError(
                "a free root needs level ground, and that of this world is not; ground=... gives "
                "its height under the feet [m] where they stand level"
            )
        return 0.0

    # ---- from the whole scene to the parts

    def own(self, array: Floats, index: Index, size: int, whole: int, name: str) -> Floats:
        """The parts' entries of an array of the whole scene, or the array if it is theirs.

        Args:
            array: Shape (..., size) or (..., whole).
            index: Which entries are the parts'.
            size: Number of the parts' entries.
            whole: Number of entries of the whole scene.
            name: What the array is, for the error.
        """
        last = array.shape[-1] if array.ndim else 0
        if last == size:
            return array
        if last == whole:
            return np.ascontiguousarray(array[..., index])
        expected = f"(..., {size})" if size == whole else f"(..., {size}) or (..., {whole})"
        raise PoiseError(f"{name} has shape {array.shape}, expected {expected}")

    def own_q(self, q: Floats, name: str = "q") -> Floats:
        """Coordinates of the parts, shape (..., nq)."""
        return self.own(q, self.q, self.scene.nq, self.whole.nq, name)

    def own_v(self, v: Floats, name: str = "v") -> Floats:
        """Velocities, accelerations or forces of the parts, shape (..., nv)."""
        return self.own(v, self.v, self.scene.nv, self.whole.nv, name)

    def own_links(self, weights: Floats, name: str) -> Floats:
        """Numbers per link of the parts, shape (..., nl)."""
        return self.own(weights, self.links, self.scene.nl, self.whole.nl, name)

    def own_target(self, target: Any) -> Target:
        """The parts' target.

        Args:
            target: A Target or State of the parts or of the whole scene, or one for each part by
                name.
        """
        if isinstance(target, Mapping):
            return self._by_part(target)
        given = target if type(target) is Target else Target.of(target)
        if given.clip is not None:
            self._check_clip(given.clip)
            if given.time is not None:
                given.clip.check_followable(given.time)
        return given if self.is_whole else self._cut(given)

    def _cut(self, given: Target) -> Target:
        """The parts' entries of a target of the whole scene; one of the parts as it is."""
        if self.is_whole or given.q.shape[-1:] != (self.whole.nq,):
            return given
        past = None if given.past is None else self.own_q(given.past, "target.past")
        v, a = (
            None if x is None else self.own_v(x, name)
            for x, name in ((given.v, "target.v"), (given.a, "target.a"))
        )
        q = self.own_q(given.q, "target.q")
        return Target(q, v, a, rows=given.rows, past=past, time=given.time, clip=given.clip)

    def _check_clip(self, clip: Any) -> None:
        """Refuse a clip of another body; one comparison for each character that clips have."""
        if clip.character is not self._fitting and len(self.scene.characters) == 1:
            check_clip_fits(clip, self.scene.characters[0])
            self._fitting = clip.character

    def own_state(self, state: Any) -> tuple[Floats, Floats]:
        """Positions and velocities of the parts, shapes (..., nq) and (..., nv)."""
        self.check_state(state)
        if self.is_whole:
            return state.q, state.v
        return self.own_q(state.q, "state.q"), self.own_v(state.v, "state.v")

    @staticmethod
    def check_state(state: Any) -> None:
        """Refuse what is no state: controllers are called with the state first."""
        if isinstance(state, Target):
            raise PoiseError("a controller is called with (state, target), the state first")
        if hasattr(state, "step"):
            raise PoiseError("a controller takes a state, not the world: world.state")
        if not hasattr(state, "q") or not hasattr(state, "v"):
            raise PoiseError(f"a state has q and v; got {state!r:.80}")

    def own_gains(self, gains: Gains) -> Gains:
        """Gains of the parts, from gains of the parts or of the whole scene."""
        if not isinstance(gains, Gains):
            raise PoiseError(f"gains must be made by Gains or suggest_gains, got {gains!r:.80}")
        size = gains.kp.shape[-1]
        names = [name.rpartition("/")[2] for name in gains.joints]
        if names == [name.rpartition("/")[2] for name in self.scene.forest.joint_names]:
            return gains
        if gains.joints == self.whole.forest.joint_names:
            kp, kd = gains.kp[..., self.v], gains.kd[..., self.v]
            return gains.with_values(self.scene, kp, kd)
        if size != self.scene.nv:
            raise PoiseError(
                f"these gains have {size} degrees of freedom, {shorten(self.names)} has "
                f"{self.scene.nv}"
            )
        other = next((name for name in names if name not in self._own_joints()), names[0])
        raise PoiseError(
            f"these gains are of another character: {shorten(self.names)} has no joint {other!r}, "
            "or has its joints in another order"
        )

    def _own_joints(self) -> set[str]:
        return {name.rpartition("/")[2] for name in self.scene.forest.joint_names}

    # ---- from the parts to the whole scene

    def lift(self, command: Command) -> Command:
        """The command of the parts as one for the whole scene; the rest of it gets no force."""
        if self.is_whole:
            return command
        force, drive = command.force, command.drive
        if force is not None:
            force = overlay([(self.v, floats(force, "force"))], np.zeros(self.whole.nv))
        if drive is not None:
            if self._lifted is None or self._lifted[0] is not drive.gains:
                self._lifted = drive.gains, join_gains([(self, drive.gains)])
            drive = join_drives([(self, drive)], self._lifted[1])
        acceleration, mask = join_accelerations([(self, command.acceleration)])
        return Command(force, drive, acceleration, acceleration_mask=mask)

    # ---- making it

    def _alone(self, names: tuple[str, ...]) -> Scene:
        """The parts as a scene of their own, with the world's masses."""
        characters = [self.whole.characters[names.index(name)] for name in self.names]
        if len(characters) == 1:
            scene = scene_of(characters[0])
        else:
            forest = compile_forest(characters, self.names)
            scene = scene_of(characters)._replace(forest=forest)
        settings = self.settings
        if settings is None or self.whole.overrides is None:
            return scene
        from poise.model.inertia import model_overrides

        mass, inertia, armature = settings.mass, settings.inertia, settings.armature
        mass = None if mass is None else mass[..., self.links]
        inertia = None if inertia is None else inertia[..., self.links, :, :]
        armature = None if armature is None else armature[..., self.v]
        return scene._replace(overrides=model_overrides(scene, self.n, mass, inertia, armature))

    def _by_part(self, targets: Mapping[str, Any]) -> Target:
        """Targets of the parts, one after another."""
        for name in targets:
            check_known("part", name, self.names, at="target: ")
        missing = [name for name in self.names if name not in targets]
        if missing:
            raise PoiseError(f"there is no target for {', '.join(map(repr, missing))}")
        if len(self.names) == 1:
            return self.own_target(targets[self.names[0]])
        parts, found = self.scene.forest.parts, []
        for name, character in zip(self.names, self.scene.characters, strict=True):
            target = Target.of(targets[name])
            if target.clip is not None:
                check_clip_fits(target.clip, character)
                if target.time is not None:
                    target.clip.check_followable(target.time)
            found.append((parts[name], target))
        return join_targets(found, self.scene)


def join_targets(targets: Sequence[tuple[Part | Plant, Target]], scene: Scene) -> Target:
    """Targets of parts as one.

    Args:
        targets: Parts of the scene and their targets. Velocities and accelerations that one lacks
            are zero where another has them; the past counts only where all have it.
        scene: The scene of the parts; what none of them has is at rest.
    """
    rows = {target.rows for _, target in targets}
    if len(rows) > 1:
        raise PoiseError("targets of parts must all have the same number of rows, or none")
    zero, rest = np.zeros(scene.nv), scene.forest.rest_q
    q = overlay([(at.q, target.q) for at, target in targets], rest)
    v = [(at.v, target.v) for at, target in targets if target.v is not None]
    a = [(at.v, target.a) for at, target in targets if target.a is not None]
    past = [(at.q, target.past) for at, target in targets if target.past is not None]
    time = next((target.time for _, target in targets if target.time is not None), None)
    return Target(
        q,
        overlay(v, zero) if v else None,
        overlay(a, zero) if a else None,
        rows=rows.pop(),
        past=overlay(past, rest) if len(past) == len(targets) else None,
        time=time,
        clip=targets[0][1].clip if len(targets) == 1 else None,
    )


def join_accelerations(
    pairs: Sequence[tuple[Plant, ArrayLike | None]],
) -> tuple[Floats | None, NDArray[np.bool_] | None]:
    """Accelerations of the plants that have some, for the whole scene, and which those are."""
    given = [(plant, floats(a, "acceleration")) for plant, a in pairs if a is not None]
    if not given:
        return None, None
    nv = given[0][0].whole.nv
    mask = np.zeros(nv, dtype=bool)
    for plant, _ in given:
        mask[plant.v] = True
    return overlay([(plant.v, plant.own_v(a)) for plant, a in given], np.zeros(nv)), mask


def join_gains(pairs: Sequence[tuple[Plant, Gains]]) -> Gains:
    """Gains of plants as those of the whole scene; zero outside of them."""
    whole, first = pairs[0][0].whole, pairs[0][1]
    kp, kd = (
        overlay([(plant.v, plant.own_v(k)) for plant, k in tables], np.zeros(whole.nv))
        for tables in ([(p, g.kp) for p, g in pairs], [(p, g.kd) for p, g in pairs])
    )
    pin = np.zeros((whole.nl, 4))
    for plant, gains in pairs:
        pin[plant.links] = plant.own_links(gains.pin.T, "pin").T
    return first.with_values(whole, kp, kd, pin)


def join_drives(pairs: Sequence[tuple[Plant, Drive]], gains: Gains) -> Drive:
    """Drives of plants as one of the whole scene; the first has the method, and is embedded or not.

    Args:
        pairs: Plants and their drives, of the plant or of the whole scene.
        gains: Of the whole scene.
    """
    whole, first = pairs[0][0].whole, pairs[0][1]

    def weights(name: str, rest: float) -> Floats | None:
        given = [(plant, getattr(drive, name)) for plant, drive in pairs]
        own = [(plant.links, plant.own_links(x, name)) for plant, x in given if x is not None]
        return overlay(own, np.full(whole.nl, rest)) if own else None

    target = join_targets([(plant, plant._cut(drive.target)) for plant, drive in pairs], whole)
    fed = np.zeros(whole.nv, dtype=bool)
    for plant, drive in pairs:
        f = drive.feedforward
        fed[plant.v] = f if isinstance(f, bool) or len(f) < whole.nv else f[plant.v]
    return first.replace(
        gains,
        target,
        form=_joined_form(pairs),
        feedforward=fed if fed.any() else False,
        strength=weights("strength", 1.0),
        pin=weights("pin", 0.0),
    )


def _joined_form(pairs: Sequence[tuple[Plant, Drive]]) -> Any:
    """The form of all drives, or of each degree of freedom, shape (nv,)."""
    forms = {drive.form for _, drive in pairs}
    if len(forms) == 1:
        return FORMS[forms.pop()]
    out = np.zeros(pairs[0][0].whole.nv, dtype=np.uint8)
    for plant, drive in pairs:
        out[plant.v] = drive.form
    return out


def overlay(parts: Sequence[tuple[Index, Floats]], rest: Floats) -> Floats:
    """Values of parts over those of the rest, shape (..., size).

    Args:
        parts: Where each part is, and its values, shape (..., part's size).
        rest: Values of everything else, shape (size,).
    """
    lead = np.broadcast_shapes(*(x.shape[:-1] for _, x in parts))
    out: Floats = np.array(np.broadcast_to(rest, (*lead, rest.size)))
    for at, x in parts:
        out[..., at] = x
    return out


def _part_names(scene: Scene, part: PartLike) -> tuple[str, ...]:
    """Names of the parts that are meant, in the order of the scene."""
    known = tuple(scene.forest.parts)
    if part is None:
        if len(known) == 1:
            return known
        pairs = zip(known, scene.characters, strict=True)
        found = tuple(name for name, character in pairs if not is_free_object(character))
        if not found:
            raise PoiseError(
                f"there are only free objects in this scene; part= says which of them a controller "
                f"acts on: {shorten(map(repr, known))}"
            )
        return found
    try:
        names = (part,) if isinstance(part, str) else tuple(part)
    except TypeError:
        raise PoiseError(f"part must be a name, or several of them, got {part!r:.80}") from None
    for name in names:
        check_known("part", name, known)
    if not names or len(set(names)) < len(names):
        raise PoiseError(f"part is {part!r:.80}; it must be one part, or several different ones")
    return tuple(name for name in known if name in names)


def _joined(slices: Sequence[slice], size: int) -> Index:
    """Slices that follow each other as one, others as indices."""
    if all(one.stop == two.start for one, two in pairwise(slices)):
        return slice(slices[0].start, slices[-1].stop)
    return np.concatenate([np.arange(size)[one] for one in slices]).astype(np.int32)


class ActsOnPlant:
    """What controllers of a plant have in common: scene, gravity, strength of links, copies."""

    _plant: Plant
    _strength: Floats | None = None

    def __getstate__(self) -> dict[str, Any]:
        """All attributes; a copy has its own arrays, which may be changed in place."""
        return {k: x.copy() if type(x) is np.ndarray else x for k, x in vars(self).items()}

    @property
    def plant(self) -> Plant:
        """What it acts on, and the world around that."""
        return self._plant

    @property
    def scene(self) -> Scene:
        """The parts that it acts on, compiled."""
        return self._plant.scene

    @property
    def gravity(self) -> Floats:
        """Gravity of the world it was made from, or the earth's [m/s²]."""
        return self._plant.gravity

    # ---- strength

    @property
    def strength(self) -> Floats:
        """Factor of gains and effort limits per link, shape (nl,) or (n, nl).

        Entries may be assigned: they hold from the next step on.
        """
        if self._strength is None:
            self._strength = np.ones(self.scene.nl)
        return self._strength

    @strength.setter
    def strength(self, strength: ArrayLike | None) -> None:
        self._strength = None if strength is None else self._weights(strength, "strength")

    @property
    def factor(self) -> Floats | None:
        """The strength per velocity, shape (nv,) or (n, nv); None where it is 1."""
        if self._strength is None:
            return None
        # entries may have been assigned
        weights = self._weights(self._strength, "strength")
        return np.asarray(np.take(weights, self.scene.forest.link_of_dof, axis=-1))

    def _weights(self, value: ArrayLike, name: str) -> Floats:
        """Numbers per link, 0 or more, shape (nl,) or (n, nl): an array of their own."""
        array = finite(floats(value, name), name)
        if not self._plant.is_whole and array.shape[-1:] == (self._plant.whole.nl,):
            array = self._plant.own_links(array, name)
        rows = rows_of_copies(array, self.scene.nl, name)
        self._check_copies(rows.shape, name)
        if (array < 0.0).any():
            raise PoiseError(f"{name} must be 0 or more, the least is {array.min():g}")
        return rows

    def _check_copies(self, shape: tuple[int, ...], name: str) -> None:
        """Refuse an array with rows for another number of copies than the world has."""
        n = self._plant.n
        if len(shape) == 2 and self._plant.settings is not None and shape[0] not in (1, n):
            raise PoiseError(f"{name} has {shape[0]} rows, the world has {n} copies")
