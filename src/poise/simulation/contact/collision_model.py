"""Collision model of a scene: colliders, surfaces, pairs and projectiles, for the core."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from poise import _core
from poise.errors import PoiseError
from poise.math.arrays import Floats, Ints, Mask, floats, number
from poise.model.character import Character, free_object
from poise.model.scene import Scene
from poise.model.shape import Shape
from poise.simulation.contact.colliders import Colliders, check_obstacles, colliders_of
from poise.simulation.contact.ground import CoreGround, GroundLike, core_ground
from poise.simulation.contact.pairs import (
    POINTS,
    Pairs,
    Probes,
    excluded_links,
    link_keys,
    overlaps,
    pairs_of,
    probes_of,
)

MOST_PROJECTILES = 32
RADIUS = 0.1  # of a ball [m]
MASS = 3.0  # of a ball [kg]


class Projectiles(NamedTuple):
    """States of k projectiles, or of those of n copies.

    Attributes:
        thrown: Whether each has been thrown, shape (k,) or (n, k).
        q: Position [m] and quaternion, shape (k, 7) or (n, k, 7).
        v: Linear and angular velocity [m/s, rad/s], shape (k, 6) or (n, k, 6).
    """

    thrown: Mask
    q: Floats
    v: Floats

    @classmethod
    def of(cls, core: _core.Projectiles) -> Projectiles:
        """Those of a world's core, shape (n, k, ...)."""
        return cls(core.thrown, core.q, core.v)

    def at(self, index: Any) -> Projectiles:
        """Some of them, by index along the first axis; None adds an axis."""
        return Projectiles(*(x[index] for x in self))

    @property
    def poses(self) -> Floats:
        """1 if it has been thrown, else 0, and q; shape (..., k, 8)."""
        return np.concatenate([self.thrown[..., None], self.q], axis=-1)


def default_projectiles(projectiles: int | Sequence[Character]) -> list[Character]:
    """Objects that wait to be thrown: balls of 3 kg, or those given."""
    if isinstance(projectiles, (int, np.integer)) and not isinstance(projectiles, bool):
        if not 0 <= projectiles <= MOST_PROJECTILES:
            raise PoiseError(f"projectiles is {projectiles}; it must be 0 to {MOST_PROJECTILES}")
        ball = Shape("sphere", (RADIUS,), color=(0.85, 0.45, 0.2))
        return [free_object(f"projectile-{i + 1}", ball, mass=MASS) for i in range(projectiles)]
    if isinstance(projectiles, bool) or not isinstance(projectiles, Sequence):
        raise PoiseError(
            f"projectiles must be a number or a list of Characters, got {projectiles!r:.80}"
        )
    for i, one in enumerate(projectiles):
        if not isinstance(one, Character):
            raise PoiseError(f"projectiles[{i}] must be a Character, got {one!r:.80}")
        kinds = [joint.kind for joint in one.joints]
        if kinds != ["free"] or len(one.links) != 1:
            raise PoiseError(f"projectiles[{i}] ({one.name!r}) must be one free link")
    if len(projectiles) > MOST_PROJECTILES:
        raise PoiseError(f"{len(projectiles)} projectiles; at most {MOST_PROJECTILES} can wait")
    return list(projectiles)


# ---- surfaces: friction and restitution

FRICTION = 0.8
MOST_FRICTION = 1e6
DEFAULTS = {"friction": FRICTION, "restitution": 0.0}


class SurfaceCounts(NamedTuple):
    """How many surfaces of each kind there are, and in how many copies; one more is the ground."""

    copies: int
    links: int
    projectiles: int
    obstacles: int


def surfaces_of(
    counts: SurfaceCounts,
    value: ArrayLike,
    name: str,
    ground: float | None = None,
    names: Sequence[str] = (),
) -> Floats:
    """A number for every surface: links, projectiles, obstacles, ground; shape (s,) or (n, s).

    Args:
        counts: How many surfaces there are.
        value: A number for everything, or of the links, (nl,) or (n, nl), or of copies, (n, 1), or
            of every surface, (n, s).
        name: "friction" or "restitution".
        ground: Of ground and obstacles; None leaves them as they are.
        names: Of the links, for errors.
    """
    given, (n, links, projectiles, obstacles) = floats(value, name), counts
    most = 1.0 if name == "restitution" else MOST_FRICTION
    wrong = np.argwhere(~((given >= 0.0) & (given <= most)))
    if len(wrong):
        at = tuple(int(i) for i in wrong[0])
        of = f" of link {names[at[-1]]!r}" if given.shape[-1:] == (len(names),) else ""
        copy = f" in copy {at[0]}" if len(at) == 2 else ""
        why = "1: a bounce cannot add energy" if name == "restitution" else f"{most:g}"
        raise PoiseError(f"{name}{of}{copy} is {given[at]:g}; it must be 0 or more, at most {why}")
    others = projectiles + obstacles + 1
    if given.shape == () or given.shape == (n, 1):
        whole = np.broadcast_to(given, (*given.shape[:1], links + others)).copy()
    elif given.shape in ((links,), (n, links)):
        rest = np.full((*given.shape[:-1], others), DEFAULTS[name])
        whole = np.concatenate([given, rest], axis=-1)
    elif given.shape == (n, links + others):
        whole = given.copy()
    else:
        expected = f"(), ({links},), ({n}, 1) or ({n}, {links})"
        raise PoiseError(f"{name} has shape {given.shape}, expected {expected}")
    if ground is not None:
        below = number(ground, f"ground_{name}", positive=False, unit="1")
        if not 0.0 <= below <= most:
            raise PoiseError(f"ground_{name} is {below:g}; it must be 0 or more, at most {most:g}")
        whole[..., links + projectiles :] = below
    return np.ascontiguousarray(whole[0] if n == 1 and whole.ndim == 2 else whole)


# ---- the collision model

MODELS = {name: model.value for name, model in _core.ContactModel.__members__.items()}
ITERATIONS = 20
"""At most, of the contact solve."""
MOST_ITERATIONS = 10_000
"""Of `World(iterations=...)`."""
MOST_SUBSTEPS = 1000
TOLERANCE = {"float64": 1e-5, "float32": 3e-5}
"""Change of a velocity in an iteration that ends the contact solve [m/s, rad/s]."""
STIFFNESS = 5e4
"""Of contact by penalty, unless given [N/m]."""


class Bounds(NamedTuple):
    """Limits of joints."""

    body: Ints  # (k,)
    axis: Floats  # (k, 3)
    limits: Floats  # swing, least, most, (k, 3)


class CollisionModel(NamedTuple):
    """What the core reads, fields and properties; see bindings/collision_model.cpp."""

    model: int
    iterations: int
    tolerance: float
    friction: Floats  # (surfaces,) or (n, surfaces)
    restitution: Floats  # shaped alike
    stiffness: float
    colliders: Colliders
    probes: Probes
    pairs: Pairs
    bounds: Bounds
    ground: CoreGround
    projectiles: int

    @property
    def surfaces(self) -> int:
        """Number of surfaces."""
        return int(self.friction.shape[-1])

    @property
    def pair_points(self) -> Ints:
        """How many points each pair may meet in."""
        kind = self.colliders.kind
        return POINTS[kind[self.pairs.a], kind[self.pairs.b]]

    @property
    def projectile_colliders(self) -> Ints:
        """Number of colliders with none, one, two, ... of the projectiles."""
        return self._counts(self.colliders.projectile)

    @property
    def projectile_probes(self) -> Ints:
        """Number of probes, alike."""
        return self._counts(self.colliders.projectile[self.probes.collider])

    @property
    def projectile_pairs(self) -> Ints:
        """Number of pairs, alike."""
        of = self.colliders.projectile
        return self._counts(np.maximum(of[self.pairs.a], of[self.pairs.b]))

    def _counts(self, of: Ints) -> Ints:
        return np.cumsum(np.bincount(of, minlength=self.projectiles + 1)).astype(np.int32)


def compile_collision_model(
    scene: Scene,
    *,
    ground: GroundLike = True,
    obstacles: Iterable[Shape] = (),
    model: str = "impulse",
    friction: Floats,
    restitution: Floats,
    self_collision: bool = True,
    exclude: Iterable[tuple[str, str]] = (),
    names: Sequence[str] | None = None,
    projectiles: int = 0,
    convex: bool | None = None,
    iterations: int = ITERATIONS,
    tolerance: float = TOLERANCE["float64"],
    stiffness: float = STIFFNESS,
) -> CollisionModel:
    """Colliders, probes, pairs and joint limits of a scene whose last parts are projectiles.

    names: Of the links as the user knows them; with projectiles a single character has company.
    convex: Whether meshes and cylinders meet more than the ground; None: see World.
    """
    obstacles = check_obstacles(obstacles, convex)
    colliders = colliders_of(scene, obstacles, projectiles)
    below = core_ground(ground)
    excluded = excluded_links(exclude, names or scene.forest.link_names, scene.nl)
    pairs = pairs_of(scene, colliders, self_collision, excluded, convex)
    touch = CollisionModel(
        model=MODELS[model],
        iterations=iterations,
        tolerance=tolerance,
        friction=friction,
        restitution=restitution,
        stiffness=stiffness,
        colliders=colliders,
        probes=probes_of(colliders, below),
        pairs=pairs,
        bounds=_bounds(scene),
        ground=below,
        projectiles=projectiles,
    )
    overlapping = overlaps(scene, touch._replace(model=MODELS["impulse"]))
    met = link_keys(colliders.link[pairs.a], colliders.link[pairs.b], scene.nl)
    return touch._replace(pairs=pairs.only(~np.isin(met, overlapping)))


def _bounds(scene: Scene) -> Bounds:
    """Limits of the joints that have some."""
    joints = [joint for character in scene.characters for joint in character.joints]
    found: list[tuple[int, Any, Any]] = []
    for body, joint in enumerate(joints):
        if joint.limits is None:
            continue
        if joint.kind == "ball":
            found.append((body, joint.axis, joint.limits))
        else:
            found.append((body, (0.0, 0.0, 1.0), (math.pi, *joint.limits)))
    return Bounds(
        np.array([bound[0] for bound in found], dtype=np.int32),
        np.array([bound[1] for bound in found], dtype=np.float64).reshape(-1, 3),
        np.array([bound[2] for bound in found], dtype=np.float64).reshape(-1, 3),
    )
