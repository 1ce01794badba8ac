"""Inertias of a forest: of links gathered into bodies, and of all that a joint carries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from poise import _core
from poise.errors import PoiseError
from poise.math.arrays import Floats, finite, floats
from poise.math.rotation import product, quat_matrix

if TYPE_CHECKING:
    from poise.model.forest import Forest
    from poise.model.scene import Scene

ROUNDS = 6
"""Rounds of Jacobi's rotations; they converge quadratically, four are enough for most."""


def merge_inertia(
    forest: Forest, link_mass: ArrayLike, link_com: ArrayLike, link_inertia: ArrayLike
) -> tuple[Floats, Floats, Floats]:
    """Gather the inertia of links into that of bodies; leading axes are batch axes.

    Args:
        forest: The forest.
        link_mass: Mass of each link [kg], shape (..., nl).
        link_com: Center of mass in the link's frame [m], shape (..., nl, 3).
        link_inertia: About the center of mass, in link axes [kg m^2], shape (..., nl, 3, 3).

    Returns:
        mass (..., nb), mc (..., nb, 3) and Io (..., nb, 6), as in the forest.
    """
    nl, nb = len(forest.link_body), len(forest.parent)
    m = _link_array("link_mass", link_mass, (nl,))
    com = _link_array("link_com", link_com, (nl, 3))
    inertia = _link_array("link_inertia", link_inertia, (nl, 3, 3))
    batch = np.broadcast_shapes(m.shape[:-1], com.shape[:-2], inertia.shape[:-3])

    # each link by itself, in the frame of its body: c = p + R com, I_o = R I R' + m (c'c 1 - c c')
    R = quat_matrix(forest.link_E)
    c = forest.link_p + product(R, com[..., None])[..., 0]
    about_origin = _turned(R, inertia) + m[..., None, None] * _square(c)

    # link by link, so that the sum does not depend on the batch
    mass, mc, Io = np.zeros((*batch, nb)), np.zeros((*batch, nb, 3)), np.zeros((*batch, nb, 6))
    for i, b in enumerate(forest.link_body):
        if b >= 0:
            mass[..., b] += m[..., i]
            mc[..., b, :] += m[..., i, None] * c[..., i, :]
            Io[..., b, :] += _six(about_origin[..., i, :, :])
    return mass, mc, Io


def fixed_mass(forest: Forest, link_mass: Floats) -> Floats:
    """Mass of the links that are welded to the world, and its moment about the origin (..., 4)."""
    turned = product(quat_matrix(forest.link_E), forest.link_com[..., None])[..., 0]
    m = np.where(forest.link_body < 0, link_mass, 0.0)[..., None]
    return np.concatenate([m.sum(axis=-2), (m * (forest.link_p + turned)).sum(axis=-2)], axis=-1)


def composite_inertia(
    forest: Forest, overrides: _core.ModelOverrides | None = None
) -> tuple[Floats, Floats, Floats]:
    """Inertia that each joint carries at q = 0: its body and all outboard, as one rigid body.

    Args:
        forest: The forest.
        overrides: Of mass, mc and Io, each None or with leading axes.

    Returns:
        mass (..., nb), mc (..., nb, 3) and Io (..., nb, 3, 3), about each body's internal origin.
    """
    own = [getattr(overrides, name, None) for name in ("mass", "mc", "Io")]
    mass, mc, six = (
        given if mine is None else mine
        for given, mine in zip((forest.mass, forest.mc, forest.Io), own, strict=True)
    )
    mass, mc, Io = mass.copy(), mc.copy(), _matrix(six)
    R = quat_matrix(forest.E)
    for b in range(mass.shape[-1] - 1, -1, -1):
        p, r = forest.parent[b], forest.r[b]
        if p < 0:
            continue
        # shift from the child's origin to the parent's, which lies at -r
        m = mass[..., b, None]
        h = product(R[b], mc[..., b, :, None])[..., 0]
        rh = r[:, None] * h[..., None, :]
        trace = np.trace(rh, axis1=-2, axis2=-1)[..., None, None]
        mass[..., p] += mass[..., b]
        mc[..., p, :] += h + m * r
        Io[..., p, :, :] += _turned(R[b], Io[..., b, :, :]) + m[..., None] * _square(r)
        Io[..., p, :, :] += 2.0 * trace * np.eye(3) - rh - rh.swapaxes(-1, -2)
    return mass, mc, Io


def largest_moment(inertia: Floats) -> Floats:
    """Largest principal moment (...,) of inertias (..., 3, 3), by Jacobi's rotations.

    Each rotation makes one entry beside the diagonal zero; a few rounds of all three are exact to
    rounding. LAPACK's bits would be those of its BLAS.
    """
    x = {(i, j): np.array(inertia[..., i, j]) for i in range(3) for j in range(i, 3)}
    for p, q, r in ROUNDS * [(0, 1, 2), (0, 2, 1), (1, 2, 0)]:
        pr, qr = (min(p, r), max(p, r)), (min(q, r), max(q, r))
        # t = tan of the angle, the smaller root of t^2 + t d / b = 1
        b, d = x[p, q], x[q, q] - x[p, p]
        below = d + np.copysign(np.sqrt(d * d + 4.0 * b * b), d)
        t = np.divide(2.0 * b, below, out=np.zeros_like(b), where=below != 0.0)
        c = 1.0 / np.sqrt(1.0 + t * t)
        x[p, p], x[q, q], x[p, q] = x[p, p] - t * b, x[q, q] + t * b, np.zeros_like(b)
        x[pr], x[qr] = c * (x[pr] - t * x[qr]), c * (t * x[pr] + x[qr])
    largest: Floats = np.maximum(np.maximum(x[0, 0], x[1, 1]), x[2, 2])
    return largest


def _link_array(name: str, value: ArrayLike, shape: tuple[int, ...]) -> Floats:
    array = np.asarray(value, dtype=np.float64)
    if array.shape[-len(shape) :] != shape:
        expected = ", ".join(("...", *map(str, shape)))
        raise PoiseError(f"{name} must have shape ({expected}), got {array.shape}")
    return array


def _turned(R: Floats, inertia: Floats) -> Floats:
    """R I R': inertias in the axes that R turns to."""
    return product(product(R, inertia), R.swapaxes(-1, -2))


def _square(c: Floats) -> Floats:
    """c'c 1 - c c': the inertia of a unit mass at c about the origin."""
    cc: Floats = np.sum(c * c, axis=-1)[..., None, None]
    return cc * np.eye(3) - c[..., :, None] * c[..., None, :]


def _six(matrix: Floats) -> Floats:
    """Symmetric matrices (..., 3, 3) as xx yy zz xy xz yz."""
    return matrix[..., (0, 1, 2, 0, 0, 1), (0, 1, 2, 1, 2, 2)]


def _matrix(six: Floats) -> Floats:
    """The inverse of `_six`."""
    return six[..., [[0, 3, 4], [3, 1, 5], [4, 5, 2]]]


# ---- per-world and per-copy overrides


def model_overrides(
    scene: Scene,
    n: int,
    mass: ArrayLike | None,
    inertia: ArrayLike | None,
    armature: ArrayLike | None,
) -> _core.ModelOverrides | None:
    """Overrides of mass, inertia and armature for the core; None if there are none.

    Args:
        scene: The scene, without projectiles.
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
        names = [forest.joint_names[forest.joint[b]] for b in forest.body_of_dof]
        rotor = _per_copy(armature, n, "armature", (scene.nv,), names)
    masses, mc, Io = bodies
    scaled = inertia is None
    return _core.ModelOverrides(
        scene.model, masses, mc, Io, armature=rotor, fixed=fixed, scaled=scaled
    )


def body_inertia(
    scene: Scene, whole: Scene, k: int, mass: ArrayLike, inertia: Floats | None
) -> tuple[Floats, Floats, Floats]:
    """Mass (k, nb), mc (k, nb, 3) and Io (k, nb, 6) of the bodies in k copies.

    Args:
        scene: The scene, without projectiles.
        whole: With them.
        k: Number of copies.
        mass: Masses of the links [kg], shape (nl,) or (k, nl).
        inertia: Of the links, (nl, 3, 3) or (k, nl, 3, 3); None scales with the masses.
    """
    made = with_projectiles(model_overrides(scene, k, mass, inertia, None), scene, whole)
    assert made is not None
    tails = {"mass": 1, "mc": 2, "Io": 2}
    rows = []
    for name, tail in tails.items():
        array = getattr(made, name)
        rows.append(np.ascontiguousarray(np.broadcast_to(array, (k, *array.shape[-tail:]))))
    return rows[0], rows[1], rows[2]


def with_projectiles(
    overrides: _core.ModelOverrides | None, scene: Scene, whole: Scene
) -> _core.ModelOverrides | None:
    """Overrides of a world, with the values of its projectiles appended."""
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
        whole.model, mass, mc, Io, armature, overrides.effort, overrides.fixed, overrides.scaled
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
    """Values for all copies, or for each; not negative where they have names."""
    array = finite(floats(value, name), name)
    if array.shape not in (tail, (n, *tail)):
        raise PoiseError(f"{name} has shape {array.shape}, expected {tail} or {(n, *tail)}")
    if names and (array < 0).any():
        at = int(np.argwhere(array < 0)[0][-1])
        raise PoiseError(f"{name} of {names[at]!r} is negative; it must be 0 or more")
    return array


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
