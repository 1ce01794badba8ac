"""CollisionModel: what can touch what, as the core takes it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from poise.math.arrays import Floats
from poise.model.scene import Scene
from poise.model.shape import Shape
from poise.simulation.contact.colliders import (
    Colliders,
    Ints,
    check_obstacles,
    colliders_of,
    reach,
    sizes,
)
from poise.simulation.contact.ground import GroundLike, core_ground
from poise.simulation.contact.pairs import POINTS, link_keys, overlaps, pairs_of
from poise.simulation.contact.probes import probes_of

MODELS = {"impulse": 1, "penalty": 2}
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
    spares: int = 0,
    convex: bool | None = None,
    sweeps: int = SWEEPS,
    stiffness: float = STIFFNESS,
) -> CollisionModel:
    """Colliders, probes, pairs and joint limits of a scene whose last parts are spares.

    names: Of the links as the user knows them; with spares a single character has company.
    convex: Whether meshes and cylinders meet more than the ground; None asks what there is.
    """
    obstacles = check_obstacles(obstacles, convex)
    colliders = colliders_of(scene, obstacles, spares)
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
        projectiles=spares,
        projectile_colliders=_counts(spares, colliders.spare),
        projectile_probes=_counts(spares, colliders.spare[probes.collider]),
        projectile_pairs=_counts(spares, np.maximum(colliders.spare[a], colliders.spare[b])),
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
            touch.projectiles, np.maximum(colliders.spare[a], colliders.spare[b])
        ),
    )


def _counts(spares: int, of: Ints) -> Ints:
    """How many rows there are with none, one, two, ... of the spares."""
    return np.cumsum(np.bincount(of, minlength=spares + 1)).astype(np.int32)


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
