"""Gains: how stiffly joints follow, by torque gains or by frequency and damping ratio."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from poise import _core
from poise.errors import PoiseError, ReadOnly
from poise.math.arrays import Floats, choice, floats, number
from poise.model.inertia import composite_inertia, largest_moment
from poise.model.scene import Scene, SceneLike, scene_of

ROOTS = ("free", "soft", "held")

HELD_KP, HELD_KD = 20000.0, 2000.0
"""Gains of a held root (yin2020): [N/m, N·m/rad] and [N·s/m, N·m·s/rad]."""

FREQUENCY = 8.0
"""Default natural frequency of the joints [Hz]."""

SOFT_FREQUENCY = 1.0
"""Natural frequency of a soft root [Hz]."""

PIN_FREQUENCY = 5.0
"""How fast a pin of weight 1 holds a link [Hz]."""


class Gains:
    """Gains of a scene, made and checked once; commands refer to them.

    Args:
        scene: The character, or a scene.
        kp: Stiffness [N·m/rad, N/m]: a number for all joints, shape (nv,), or (n, nv) for gains per
            copy. A number is for joints only: it does not drive free roots.
        kd: Damping [N·m·s/rad, N·s/m], shaped alike.
        pin_frequency: Frequency at which a pin of weight 1 holds the link and what it carries [Hz].
        pin_damping: Damping ratio of the pins.
    """

    __slots__ = ("core", "joints", "kd", "kp", "pin", "pin_damping", "pin_frequency")

    core: _core.Gains
    joints: tuple[str, ...]
    kp: Floats
    kd: Floats
    pin: Floats
    pin_frequency: float
    pin_damping: float

    def __init__(
        self,
        scene: SceneLike,
        kp: ArrayLike,
        kd: ArrayLike,
        *,
        pin_frequency: float = PIN_FREQUENCY,
        pin_damping: float = 1.0,
        _pin: Floats | None = None,
    ) -> None:
        compiled = scene_of(scene)
        kp, kd = floats(kp, "kp"), floats(kd, "kd")
        fits = [k.ndim == 0 or (k.ndim < 3 and k.shape[-1] == compiled.nv) for k in (kp, kd)]
        rows = {k.shape[0] for k in (kp, kd) if k.ndim == 2}
        if not all(fits) or len(rows) > 1:
            raise PoiseError(
                f"kp has shape {kp.shape} and kd {kd.shape}, expected a number, "
                f"({compiled.nv},) or (n, {compiled.nv})"
            )
        kp, kd = _without_roots(compiled, kp), _without_roots(compiled, kd)
        shape = np.broadcast_shapes(kp.shape, kd.shape, (compiled.nv,))
        kp, kd = (np.array(np.broadcast_to(k, shape), order="C") for k in (kp, kd))
        pin = _pin_table(compiled, pin_frequency, pin_damping) if _pin is None else _pin
        for name, value in (
            ("kp", kp),
            ("kd", kd),
            ("pin", pin),
            ("pin_frequency", pin_frequency),
            ("pin_damping", pin_damping),
            ("joints", compiled.forest.joint_names),
            ("core", _core.Gains(compiled.model, kp, kd, pin)),
        ):
            object.__setattr__(self, name, value)
        for array in (kp, kd, pin):
            array.flags.writeable = False

    def __setattr__(self, name: str, value: Any) -> None:
        raise ReadOnly(
            f"{name} of Gains cannot be assigned: commands refer to them; make others, "
            "Gains(character, kp, kd), and assign them to the controller"
        )

    def with_values(
        self, scene: SceneLike, kp: Floats, kd: Floats, pin: Floats | None = None
    ) -> Gains:
        """Other gains with the same pins, maybe for another scene.

        Args:
            scene: The scene.
            kp: Stiffness, shape (nv,) or (n, nv).
            kd: Damping, shaped alike.
            pin: Gains of the pins, shape (nl, 4); None makes them by their frequency and damping.
        """
        pins = {"pin_frequency": self.pin_frequency, "pin_damping": self.pin_damping}
        return Gains(scene, kp, kd, **pins, _pin=pin)

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored_gains, (*(getattr(self, name) for name in Gains.__slots__),)

    def __repr__(self) -> str:
        kp, kd = self.kp, self.kd
        return f"Gains(kp={kp.min():g}..{kp.max():g}, kd={kd.min():g}..{kd.max():g})"


def _restored_gains(*values: Any) -> Gains:
    """Gains from their pickle."""
    gains = object.__new__(Gains)
    for name, value in zip(Gains.__slots__, values, strict=True):
        if isinstance(value, np.ndarray):
            value = value.copy()
            value.flags.writeable = False
        object.__setattr__(gains, name, value)
    return gains


def suggest_gains(
    character: SceneLike,
    frequency: ArrayLike = FREQUENCY,
    damping: ArrayLike = 1.0,
    *,
    root: str = "free",
    root_frequency: float = SOFT_FREQUENCY,
    per_axis: bool = False,
) -> Gains:
    """Gains by frequency and damping ratio, through the inertia that each joint carries at rest.

    With I the inertia of all that the joint moves, as one rigid body about its axis in the rest
    pose, kp = I ω² and kd = 2 ζ I ω. A ball's axes share the largest of their three inertias.

    Args:
        character: The character, or a scene.
        frequency: Natural frequency ω / 2π of the joints [Hz]: a number or shape (nv,), or with a
            row for each copy, shape (n, 1) or (n, nv).
        damping: Damping ratio ζ, 1 is critical; shaped alike.
        root: Free roots: "free" no force, "soft" at root_frequency and critically damped, "held"
            with the gains of yin2020.
        root_frequency: Frequency of a soft root [Hz].
        per_axis: Give each axis of a ball the gain of its own inertia.
    """
    scene = scene_of(character)
    choice(root, "root", ROOTS)
    inertia = joint_inertia(scene, per_axis=per_axis)
    rate = 2.0 * math.pi * _positive(frequency, "frequency", scene.nv)
    ratio = _positive(damping, "damping", scene.nv)
    copies = {name: len(x) for name, x in (("frequency", rate), ("damping", ratio)) if x.ndim == 2}
    copies |= {"mass": len(inertia)} if inertia.ndim == 2 else {}
    if len(set(copies.values())) > 1:
        given = ", ".join(f"{name} has {rows}" for name, rows in copies.items())
        raise PoiseError(f"the numbers of rows, one for each copy, differ: {given}")
    kp, kd = inertia * rate**2, 2.0 * ratio * inertia * rate
    for at in root_slices(scene):
        kp[..., at], kd[..., at] = _root_gains(inertia[..., at], root, root_frequency)
    return Gains(scene, kp, kd)


def with_root(scene: Scene, gains: Gains, root: str) -> Gains:
    """Gains whose free roots are driven as `root` says; the joints keep theirs.

    Args:
        scene: The scene of the gains.
        gains: Where they drive a root, their own values serve for "soft" and "held".
        root: "free" drives no root, "soft" and "held" as of `suggest_gains`.
    """
    kp, kd = np.array(gains.kp), np.array(gains.kd)
    inertia = None
    for at in root_slices(scene):
        given = bool(kp[..., at].any() or kd[..., at].any())
        if given == (root != "free"):
            continue
        if inertia is None:
            inertia = joint_inertia(scene)
            shape = np.broadcast_shapes(kp.shape, inertia.shape)
            kp, kd = (np.array(np.broadcast_to(k, shape)) for k in (kp, kd))
        kp[..., at], kd[..., at] = _root_gains(inertia[..., at], root, SOFT_FREQUENCY)
    return gains if inertia is None else gains.with_values(scene, kp, kd)


def _root_gains(inertia: Floats, root: str, frequency: float) -> tuple[Any, Any]:
    """kp and kd of a free root, numbers or shaped like its inertia (..., 6)."""
    if root == "free":
        return 0.0, 0.0
    if root == "held":
        return HELD_KP, HELD_KD
    w = 2.0 * math.pi * number(frequency, "root_frequency", unit="Hz")
    return inertia * w**2, 2.0 * inertia * w


def joint_inertia(character: SceneLike, *, per_axis: bool = False) -> Floats:
    """Inertia that each degree of freedom moves in the rest pose, armature included.

    Returns:
        Shape (nv,); (n, nv) for a World whose masses differ from copy to copy.
    """
    scene = scene_of(character)
    forest = scene.forest
    mass, _, about = composite_inertia(forest, scene.overrides)
    rotor = scene.overrides.armature if scene.overrides else None
    rotor = forest.armature if rotor is None else rotor
    batch = np.broadcast_shapes(mass.shape[:-1], rotor.shape[:-1])
    out: Floats = np.array(np.broadcast_to(rotor, (*batch, scene.nv)))
    own = np.diagonal(about, axis1=-2, axis2=-1)
    largest = largest_moment(about)[..., None]
    for b, kind in enumerate(forest.kind):
        v, m = int(forest.v_adr[b]), mass[..., b]
        turning = own[..., b, :] if per_axis else largest[..., b, :]
        if kind == 0:
            out[..., v : v + 3] += m[..., None]
            out[..., v + 3 : v + 6] += turning
        elif kind == 1:
            out[..., v : v + 3] += turning
        else:
            out[..., v] += own[..., b, 2] if kind == 2 else m
    return out


def root_slices(scene: Scene) -> list[slice]:
    """Velocities of the free roots."""
    forest = scene.forest
    return [slice(int(v), int(v) + 6) for v in forest.v_adr[forest.kind == 0]]


def _without_roots(scene: Scene, k: Floats) -> Floats:
    """A number for all joints, none for free roots, shape (nv,); arrays as they are."""
    if k.ndim:
        return k
    out: Floats = np.full(scene.nv, k)
    for at in root_slices(scene):
        out[at] = 0.0
    return out


def _pin_table(scene: Scene, frequency: float, damping: float) -> Floats:
    """kp, kd of the translation and of the rotation that hold a link and what it carries."""
    w = 2.0 * math.pi * number(frequency, "pin_frequency", unit="Hz")
    z = 2.0 * number(damping, "pin_damping", unit="ratio")
    forest = scene.forest
    mass, _, about = composite_inertia(forest, scene.overrides)
    # pins are shared by all copies: those of the mean where masses differ
    mass = mass.reshape(-1, mass.shape[-1]).mean(axis=0)
    turning = largest_moment(about).reshape(-1, mass.size).mean(axis=0)
    table = np.zeros((scene.nl, 4))
    for link, b in enumerate(forest.link_body):
        if b >= 0:
            m, turn = mass[b], turning[b]
            table[link] = m * w**2, m * z * w, turn * w**2, turn * z * w
    return table


def rows_of_copies(array: Floats, size: int, name: str) -> Floats:
    """An array of its own, shape (size,), or (n, size) with a row for each copy.

    Args:
        array: A number, or shape (size,), (n, 1) or (n, size).
        size: Length of a row.
        name: What the array is, for the error.
    """
    n = array.shape[0] if array.ndim == 2 else 0
    if not array.size or array.shape not in ((), (size,), (n, 1), (n, size)):
        raise PoiseError(
            f"{name} has shape {array.shape}, expected a number, ({size},), (n, 1) or (n, {size})"
        )
    one = array[0] if n == 1 else array
    return np.array(np.broadcast_to(one, (n, size) if n > 1 else (size,)), order="C")


LARGEST_OPTION = 1e9  # of frequencies [Hz] and damping ratios


def _positive(value: Any, name: str, size: int) -> Floats:
    array = floats(value, name)
    rows = rows_of_copies(array, size, name)
    if not ((array > 0) & (array <= LARGEST_OPTION)).all():
        raise PoiseError(
            f"{name} is {value!r:.80}; it must be positive, at most {LARGEST_OPTION:g}"
        )
    return rows
