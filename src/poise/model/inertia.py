"""Inertias of a forest: of links gathered into bodies, and of all that a joint carries."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise.errors import PoiseError
from poise.math.pose import product, quat_matrix

if TYPE_CHECKING:
    from poise import _core
    from poise.model.forest import Forest

Floats = NDArray[np.float64]

ROUNDS = 6
"""Rounds of Jacobi's rotations; they converge quadratically, four are enough for most."""


def merge_inertia(
    forest: Forest, link_mass: ArrayLike, link_com: ArrayLike, link_inertia: ArrayLike
) -> tuple[Floats, Floats, Floats]:
    """Gather the inertia of links into that of bodies; leading axes are batch axes.

    Args:
        forest: The forest.
        link_mass: Mass of each link [kg], shape (..., nl).
        link_com: Centre of mass in the link's frame [m], shape (..., nl, 3).
        link_inertia: About the centre of mass, in link axes [kg m^2], shape (..., nl, 3, 3).

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
        overrides: Of a world: mass, mc and Io, each None or with leading axes.

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
        wanted = ", ".join(("...", *map(str, shape)))
        raise PoiseError(f"{name} must have shape ({wanted}), got {array.shape}")
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
