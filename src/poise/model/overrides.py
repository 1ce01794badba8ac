"""Per-world overrides of mass, inertia and armature."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from poise import _core
from poise.errors import PoiseError
from poise.math.arrays import Floats, finite, floats
from poise.model.forest import Forest
from poise.model.inertia import fixed_mass, merge_inertia
from poise.model.scene import Scene


def model_overrides(
    scene: Scene,
    n: int,
    mass: ArrayLike | None,
    inertia: ArrayLike | None,
    armature: ArrayLike | None,
) -> _core.ModelOverrides | None:
    """Overrides of the bodies' parameters; None where all are those of the characters.

    Args:
        scene: Without projectiles.
        n: Number of copies.
        mass: As of World.
        inertia: As of World.
        armature: As of World.
    """
    if mass is None and inertia is None and armature is None:
        return None
    forest = scene.forest
    bodies: tuple[Floats | None, ...] = (None, None, None)
    fixed = rotor = None
    if mass is not None or inertia is not None:
        m, I = _of_links(forest, n, mass, inertia)
        merged = merge_inertia(forest, m, forest.link_com, I)
        light = (merged[0] <= 0) & (forest.mass > 0)
        if light.any():
            body = int(np.argwhere(light)[0][-1])
            name = forest.link_names[forest.link[body]]
            raise PoiseError(f"mass: link {name!r} moves and needs a mass above 0")
        bodies = tuple(np.ascontiguousarray(x) for x in merged)
        fixed = fixed_mass(forest, m)
    if armature is not None:
        names = [forest.joint_names[forest.joint[b]] for b in _body_of_dof(forest)]
        rotor = _per_copy(armature, n, "armature", (scene.nv,), names)
    masses, mc, Io = bodies
    return _core.ModelOverrides(scene.model, masses, mc, Io, armature=rotor, fixed=fixed)


def with_projectiles(
    overrides: _core.ModelOverrides | None, scene: Scene, whole: Scene
) -> _core.ModelOverrides | None:
    """The overrides of a scene, with the parameters of its projectiles appended."""
    if overrides is None or whole is scene:
        return overrides
    forest, nb, nv = whole.forest, len(scene.forest.parent), scene.nv
    rest = (forest.mass[nb:], forest.mc[nb:], forest.Io[nb:], forest.armature[nv:])

    def longer(array: Floats | None, more: Floats) -> Floats | None:
        if array is None:
            return None
        lead = array.shape[: array.ndim - more.ndim]
        more = np.broadcast_to(more, (*lead, *more.shape))
        return np.ascontiguousarray(np.concatenate([array, more], axis=len(lead)))

    given = (overrides.mass, overrides.mc, overrides.Io, overrides.armature)
    mass, mc, Io, armature = map(longer, given, rest)
    return _core.ModelOverrides(
        whole.model, mass, mc, Io, armature, overrides.effort, overrides.fixed
    )


def _of_links(
    forest: Forest, n: int, mass: ArrayLike | None, inertia: ArrayLike | None
) -> tuple[Floats, Floats]:
    """Masses and inertias of the links; inertias scale along with masses unless given."""
    nl = len(forest.link_names)
    m, I = forest.link_mass, forest.link_inertia
    if mass is not None:
        m = _per_copy(mass, n, "mass", (nl,), forest.link_names)
        known = forest.link_mass > 0
        scale = np.divide(m, forest.link_mass, where=known, out=np.ones(m.shape))
        I = I * scale[..., None, None]
    if inertia is not None:
        I = _per_copy(inertia, n, "inertia", (nl, 3, 3))
        _check_inertia(I, forest.link_names)
    return m, I


def _per_copy(
    value: ArrayLike, n: int, name: str, tail: tuple[int, ...], names: Sequence[str] = ()
) -> Floats:
    """Numbers for all copies, or for each; not negative where they have names."""
    array = finite(floats(value, name), name)
    if array.shape not in (tail, (n, *tail)):
        raise PoiseError(f"{name} has shape {array.shape}, expected {tail} or {(n, *tail)}")
    if names and (array < 0).any():
        at = int(np.argwhere(array < 0)[0][-1])
        raise PoiseError(f"{name} of {names[at]!r} is negative; it must be 0 or more")
    return array


def _body_of_dof(forest: Forest) -> list[int]:
    sizes = {0: 6, 1: 3, 2: 1, 3: 1}
    return [b for b, kind in enumerate(forest.kind) for _ in range(sizes[int(kind)])]


def _check_inertia(inertia: Floats, names: Sequence[str]) -> None:
    """Symmetric, not negative, and the triangle inequality of the principal moments."""
    size = np.abs(inertia).max(axis=(-2, -1))
    moments = np.linalg.eigvalsh(inertia)
    slack = 1e-6 * size
    bad = np.abs(inertia - np.swapaxes(inertia, -1, -2)).max(axis=(-2, -1)) > slack
    bad |= (moments[..., 0] < -slack) | (moments[..., 2] > moments[..., :2].sum(axis=-1) + slack)
    if bad.any():
        name = names[int(np.argwhere(bad)[0][-1])]
        raise PoiseError(
            f"inertia of link {name!r} is not physical: it must be symmetric and positive, and no "
            "principal moment may exceed the sum of the other two"
        )
