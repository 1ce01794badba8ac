"""Collision model of a scene: colliders, surfaces, pairs and projectiles, for the core."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from poise import _core
from poise.errors import PoiseError
from poise.math.arrays import Floats, Ints, finite, floats, number
from poise.model.character import Character, free_object
from poise.model.scene import Scene
from poise.model.shape import Shape
from poise.simulation.contact.colliders import (
    Colliders,
    check_obstacles,
    colliders_of,
    reach,
    sizes,
)
from poise.simulation.contact.ground import GroundLike, core_ground
from poise.simulation.contact.pairs import POINTS, link_keys, overlaps, pairs_of, probes_of

MOST_PROJECTILES = 32
RADIUS = 0.1  # of a ball [m]
MASS = 3.0  # of a ball [kg]


def projectile_table(now: _core.Projectiles) -> Floats:
    """Projectiles as rows: 1 if it has been thrown, q (7), v (6), shape (n, projectiles, 14)."""
    return np.concatenate([now.thrown[..., None].astype(np.float64), now.q, now.v], axis=-1)


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
DEFAULTS = {"friction": FRICTION, "restitution": 0.0}


class SurfaceCounts(NamedTuple):
    """How many surfaces of each kind there are, and in how many copies; one more is the ground."""

    copies: int
    links: int
    projectiles: int
    obstacles: int


def surfaces_of(
    counts: SurfaceCounts, value: ArrayLike, name: str, ground: float | None = None
) -> Floats:
    """A number for every surface: links, projectiles, obstacles, ground; shape (s,) or (n, s).

    Args:
        counts: How many surfaces there are.
        value: A number for everything, or of the links, (nl,) or (n, nl), or of copies, (n, 1).
        name: "friction" or "restitution".
        ground: Of ground and obstacles; None leaves them as they are.
    """
    given, (n, links, projectiles, obstacles) = finite(floats(value, name), name), counts
    if (given < 0.0).any():
        raise PoiseError(f"{name} is negative; it must be 0 or more")
    if name == "restitution" and (given > 1.0).any():
        raise PoiseError("restitution is above 1; a bounce cannot add energy")
    others = projectiles + obstacles + 1
    if given.shape == () or given.shape == (n, 1):
        whole = np.broadcast_to(given, (*given.shape[:1], links + others)).copy()
    elif given.shape in ((links,), (n, links)):
        rest = np.full((*given.shape[:-1], others), DEFAULTS[name])
        whole = np.concatenate([given, rest], axis=-1)
    else:
        wanted = f"(), ({links},), ({n}, 1) or ({n}, {links})"
        raise PoiseError(f"{name} has shape {given.shape}, expected {wanted}")
    if ground is not None:
        whole[..., links + projectiles :] = number(
            ground, f"ground_{name}", positive=False, unit="1"
        )
        if whole.min() < 0.0:
            raise PoiseError(f"ground_{name} is negative; it must be 0 or more")
    return np.ascontiguousarray(whole[0] if n == 1 and whole.ndim == 2 else whole)


# ---- the collision model

MODELS = {name: model.value for name, model in _core.ContactModel.__members__.items()}
SWEEPS = 100
STIFFNESS = 5e4
"""Of contact by penalty, unless given [N/m]."""


@dataclass(frozen=True, eq=False)
class CollisionModel:
    """What the core takes; see cpp/include/poise/contact/collision_model.hpp."""

    model: int
    sweeps: int
    surfaces: int
    friction: Floats
    restitution: Floats
    stiffness: float
    damping: float
    viscosity: float
    collider_body: Ints
    collider_link: Ints
    collider_surface: Ints
    collider_kind: Ints
    collider_size: Floats
    collider_p: Floats
    collider_E: Floats
    collider_reach: Floats
    probe_collider: Ints
    probe_point: Floats
    probe_axis: Floats
    probe_numbers: Floats
    pair_a: Ints
    pair_b: Ints
    pair_points: Ints
    bound_body: Ints
    bound_axis: Floats
    bound_limits: Floats
    ground_kind: int
    ground_plane: Floats
    ground_grid: Floats
    ground_height: Floats
    projectiles: int
    projectile_colliders: Ints
    projectile_probes: Ints
    projectile_pairs: Ints
    shapes: tuple[Shape, ...] = ()  # of the colliders; the core does not read them


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
    sweeps: int = SWEEPS,
    stiffness: float = STIFFNESS,
) -> CollisionModel:
    """Colliders, probes, pairs and joint limits of a scene whose last parts are projectiles.

    names: Of the links as the user knows them; with projectiles a single character has company.
    convex: Whether meshes and cylinders meet more than the ground; None asks what there is.
    """
    obstacles = check_obstacles(obstacles, convex)
    colliders = colliders_of(scene, obstacles, projectiles)
    below = core_ground(ground)
    probes = probes_of(colliders, below)
    a, b = pairs_of(
        scene,
        colliders,
        self_collision=self_collision,
        exclude=exclude,
        names=names or scene.forest.link_names,
        convex=convex,
    )
    bounds = _bounds(scene)
    touch = CollisionModel(
        model=MODELS[model],
        sweeps=sweeps,
        surfaces=scene.nl + len(obstacles) + 1,
        friction=friction,
        restitution=restitution,
        stiffness=stiffness,
        damping=stiffness / 100.0,
        viscosity=stiffness / 25.0,
        collider_body=colliders.body,
        collider_link=colliders.link,
        collider_surface=colliders.surface,
        collider_kind=colliders.kind,
        collider_size=sizes(colliders.shapes),
        collider_p=np.array([pose.r for pose in colliders.poses]).reshape(-1, 3),
        collider_E=np.array([pose.E for pose in colliders.poses]).reshape(-1, 4),
        collider_reach=np.array([reach(shape) for shape in colliders.shapes], dtype=np.float64),
        probe_collider=probes.collider,
        probe_point=probes.point,
        probe_axis=probes.axis,
        probe_numbers=probes.numbers,
        pair_a=a,
        pair_b=b,
        pair_points=POINTS[colliders.kind[a], colliders.kind[b]],
        bound_body=np.array([bound[0] for bound in bounds], dtype=np.int32),
        bound_axis=np.array([bound[1] for bound in bounds], dtype=np.float64).reshape(-1, 3),
        bound_limits=np.array([bound[2] for bound in bounds], dtype=np.float64).reshape(-1, 3),
        ground_kind=below.kind,
        ground_plane=below.plane,
        ground_grid=below.grid,
        ground_height=below.heights,
        projectiles=projectiles,
        projectile_colliders=_counts(projectiles, colliders.projectile),
        projectile_probes=_counts(projectiles, colliders.projectile[probes.collider]),
        projectile_pairs=_counts(
            projectiles, np.maximum(colliders.projectile[a], colliders.projectile[b])
        ),
        shapes=colliders.shapes,
    )
    through = overlaps(scene, replace(touch, model=MODELS["impulse"]))
    return _without(touch, colliders, through, scene.nl)


def _without(touch: CollisionModel, colliders: Colliders, links: Any, count: int) -> CollisionModel:
    """Without the pairs of shapes that belong to these pairs of links."""
    a, b = touch.pair_a, touch.pair_b
    kept = ~np.isin(link_keys(colliders.link[a], colliders.link[b], count), links)
    a, b = a[kept], b[kept]
    return replace(
        touch,
        pair_a=a,
        pair_b=b,
        pair_points=touch.pair_points[kept],
        projectile_pairs=_counts(
            touch.projectiles, np.maximum(colliders.projectile[a], colliders.projectile[b])
        ),
    )


def _counts(projectiles: int, of: Ints) -> Ints:
    """How many rows there are with none, one, two, ... of the projectiles."""
    return np.cumsum(np.bincount(of, minlength=projectiles + 1)).astype(np.int32)


def _bounds(scene: Scene) -> list[tuple[int, Any, Any]]:
    """Body, axis and limits (swing, least, most) of the joints that have limits."""
    joints = [joint for character in scene.characters for joint in character.joints]
    bounds: list[tuple[int, Any, Any]] = []
    for body, joint in enumerate(joints):
        if joint.limits is None:
            continue
        if joint.kind == "ball":
            bounds.append((body, joint.axis, joint.limits))
        else:
            bounds.append((body, (0.0, 0.0, 1.0), (math.pi, *joint.limits)))
    return bounds
