"""Inverse dynamics control (kavafoglu2018): desired accelerations, and the forces for them.

With k_p one stiffness [1/s²] and k_d = 2 ζ sqrt(k_p), each link should turn by
    α = k_p log(R̄ Rᵀ) + k_d (ω̄ - ω) + ᾱ
and the recursion from Kane's equations (kane.hpp) gives the joint forces that do it. Errors decay
alike for a finger and a leg, whatever their inertia, and gravity leaves none behind.

A step of length h makes of that v⁺ = v + h a, e⁺ = e + h v⁺, which with k_p and k_d as they are is
unstable from sqrt(k_p) h > 0.83 on. We place the poles of the step where those of the equation are,
    λ = exp(-h (ζ ± sqrt(ζ² - 1)) sqrt(k_p)),
    k_d' = (1 - λ₁ λ₂) / h,   k_p' = (1 - λ₁)(1 - λ₂) / h²,
so that errors decay as they should at any stiffness and any step; exact=False is the thesis's way.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise import dynamics
from poise.control.balance.supports import fade_out
from poise.control.gains import SOFT_FREQUENCY, root_slices, rows_of_copies, suggest_gains
from poise.control.plant import PartLike, Plant
from poise.control.servo import Servo, cut_to_effort
from poise.errors import FallWarning, PoiseError, ReadOnly, warn_user
from poise.math.arrays import Floats, Ints, finite, floats, number
from poise.math.pose import Pose
from poise.math.rotation import quat_matrix
from poise.model.forest import KINDS
from poise.model.scene import Scene, SceneLike
from poise.simulation.command import Command, Drive, Target
from poise.simulation.contact.pairs import shape_probes
from poise.simulation.controller import Requirements

STIFFNESS = 500.0
"""Of every link unless given [1/s²]."""

FALLEN_FREQUENCY = 2.0
"""Natural frequency of the joints of a character that has fallen [Hz]."""

SETTLED = 1.0
"""A character that had fallen stands again if no velocity differs by more from the target's
[rad/s, m/s]."""


class InverseDynamics(Servo):
    """Forces that give the links the accelerations that bring them to the target.

    Args:
        character: The World it acts in, a character, or several.
        stiffness: k_p [1/s²]: a number or shape (nv,), or with a row for each copy, shape (n, 1)
            or (n, nv).
        damping: ζ, 1 is critical; shaped alike.
        root: "held": the root is driven like a link, by a hand from outside, as the thesis has it.
            "soft": the same at 1 Hz. "free": nothing but the ground pushes the root: forces
            inside friction cones at the points that stand are found with the joint torques.
        part: Which parts of the scene it acts on; None is all characters. See Servo.
        target_velocity: Whether ω̄ is the target's velocity; else 0.
        feedforward: Whether ᾱ is the target's acceleration; else 0.
        exact: Place the poles of the step; False takes k_p and k_d as they are.
        as_printed: Leave out ω x I ω, as the thesis does.
        strength: Factor of torques and effort limits per link, as of Servo.
        friction: Of the ground, for a free root.
        ground: Height of the ground [m], for a free root; None is that of the World, or 0.
        dt: Time step [s], needed unless a World is given.
    """

    requires = Requirements(past=True)
    """With the target's past, its velocity and acceleration are differences."""

    external: Floats | None
    """Known forces: wrench on each link, force at its origin [N, N·m], shape (..., nl, 6)."""

    def __init__(
        self,
        character: SceneLike | Plant,
        stiffness: ArrayLike = STIFFNESS,
        *,
        damping: ArrayLike = 1.0,
        root: str = "free",
        part: PartLike = None,
        target_velocity: bool = True,
        feedforward: bool = True,
        exact: bool = True,
        as_printed: bool = False,
        strength: ArrayLike | None = None,
        friction: float = 0.8,
        ground: float | None = None,
        dt: float | None = None,
    ) -> None:
        super().__init__(character, root=root, part=part, strength=strength, dt=dt)
        if self.dt is None:
            raise PoiseError("inverse dynamics needs dt: InverseDynamics(..., dt=1/60)")
        self.target_velocity = target_velocity
        self.feedforward = feedforward
        self.as_printed = as_printed
        self.external = None
        self.kp, self.kd = self._placed_gains(stiffness, damping, exact)
        settings = self.plant.settings
        self._on_ground = settings is None or (
            settings.contact is not None and settings.ground is not False
        )
        roots = len(root_slices(self.scene))
        self._free: FreeRoot | None = None
        if self.root == "free" and roots:
            if roots > 1:
                raise PoiseError(
                    f"ground forces carry one free root, there are {roots}; name one part, as in "
                    f"part={self.plant.names[0]!r}, or use root='soft' or root='held'"
                )
            # without ground nothing carries it
            level = self.plant.ground_height(ground) if self._on_ground else -math.inf
            self._free = FreeRoot(self.scene, friction, level)
            self._light = suggest_gains(self.scene, FALLEN_FREQUENCY)
        self._fallen = np.zeros(1, dtype=bool)
        self._seal()

    @property
    def gains(self) -> Any:
        """It has none: stiffness and damping are accelerations, `kp` and `kd` [1/s², 1/s]."""
        raise AttributeError("InverseDynamics has no gains; kp and kd are its own [1/s², 1/s]")

    @gains.setter
    def gains(self, gains: Any) -> None:
        if self._sealed:
            raise ReadOnly(
                "gains of an InverseDynamics cannot be assigned: it has a stiffness, "
                "InverseDynamics(..., stiffness=...)"
            )

    def __call__(self, state: Any, target: Any) -> Command:
        """The command for a state and a target at t + dt. A copy that has fallen stays fallen."""
        command, explained = self.explain(state, target)
        if self._free is not None:
            self._note_falls(state, explained["fallen"])
        return command

    def explain(self, state: Any, target: Any) -> tuple[Command, dict[str, Any]]:
        """The command, the torque, the desired accelerations, and the ground forces of a free root.

        Returns:
            The command and {"torque", "acceleration"}, and for a free root {"points", "forces",
            "standing", "fallen"}: standing is 1, and 0 of a character that has fallen, whose joints
            a light servo inside the dynamics drives; its torques are not in "torque".
        """
        q, v, target = self._inputs(state, target)
        assert self.dt is not None
        tau, a = dynamics.kane_control(
            self.scene, q, v, target, self.kp, self.kd, self.dt,
            target_velocity=self.target_velocity, feedforward=self.feedforward,
            gravity=self.gravity, external=self.external, as_printed=self.as_printed,
        )  # fmt: skip
        explained: dict[str, Any] = {"acceleration": a}
        standing = np.ones(tau.shape[:-1])
        if self._free is not None:
            tau, explained = self._free(q, v, tau, a, self.gravity, self.external, self.as_printed)
            standing, fallen = self._standing(q, v, tau, target)
            explained |= {"standing": standing, "fallen": fallen}
            tau = standing[..., None] * tau
        if self.factor is not None:
            tau = self.factor * tau
        tau = cut_to_effort(self, tau)
        drive = self._light_servo(target, standing) if (standing < 1.0).any() else None
        return self._plant.lift(Command(tau, drive)), {**explained, "torque": tau}

    # ---- falls

    @property
    def memory(self) -> Floats:
        """Which copies have fallen, 1 or 0, shape (n,)."""
        return self._fallen.astype(np.float64)

    def restore(self, memory: ArrayLike) -> None:
        """Go on from a memory."""
        given = np.atleast_1d(finite(floats(memory, "memory"), "memory"))
        if given.ndim != 1 or not given.size:
            raise PoiseError(f"memory has shape {given.shape}, expected (n,)")
        self._fallen = given > 0.5

    def _standing(
        self, q: Floats, v: Floats, tau: Floats, target: Target
    ) -> tuple[Floats, NDArray[np.bool_]]:
        """How far each copy stands, 1 to 0, and which have fallen.

        A copy that has fallen gets up only when it is at its target again, as after a reset: a
        target that moves may be near to it by chance.
        """
        assert self._free is not None
        if not self._on_ground:
            return np.ones(tau.shape[:-1]), np.zeros(tau.shape[:-1], dtype=bool)
        standing = self._free.standing(q, target.q) * self._free.within_reason(tau)
        before = np.broadcast_to(self._fallen, np.shape(standing) or (1,))
        before = before.reshape(np.shape(standing))
        rate = v if target.v is None else v - target.v
        assert self.dt is not None
        standing = standing * self._free.in_control(rate, self.dt)
        settled = (standing == 1.0) & (np.abs(rate).max(axis=-1) < SETTLED)
        fallen = np.where(before, ~settled, standing == 0.0)
        return np.where(fallen, 0.0, standing), fallen

    def _light_servo(self, target: Target, standing: Floats) -> Drive:
        """What drives a character that has fallen: weak joints, and no force on the root."""
        weight = 1.0 - standing[..., None]
        strength = weight if self._strength is None else weight * self._strength
        strength = np.array(np.broadcast_to(strength, (*standing.shape, self.scene.nl)))
        return Drive(self._light, Target(target.q, target.v), strength=strength)

    def _note_falls(self, state: Any, fallen: NDArray[np.bool_]) -> None:
        """Stores which copies have fallen, and warns of the first fall since all stood."""
        new = np.atleast_1d(fallen)
        if new.any() and not self._fallen.any():
            copy = int(np.argmax(new))
            time = np.broadcast_to(getattr(state, "time", np.nan), new.shape)
            name = repr(self.plant.names[0]) + (f" of copy {copy}" if np.ndim(fallen) else "")
            warn_user(
                f"{name} has fallen at {float(time[copy]):.3g} s: no ground forces inside friction "
                "cones hold it up as its target stands; a light servo drives its joints now",
                FallWarning,
            )
        self._fallen = new

    def _placed_gains(
        self, stiffness: ArrayLike, damping: ArrayLike, exact: bool
    ) -> tuple[Floats, Floats]:
        """k_p and k_d per velocity, as the step needs them."""
        kp = self._per_velocity(stiffness, "stiffness")
        ratio = self._per_velocity(damping, "damping")
        if (ratio == 0.0).any():
            raise PoiseError("damping is 0; it must be a positive number [ratio]")
        if self.root == "soft":
            for at in root_slices(self.scene):
                kp[..., at] = (2.0 * math.pi * SOFT_FREQUENCY) ** 2
        assert self.dt is not None
        return place_poles(kp, ratio, self.dt) if exact else (kp, 2.0 * ratio * np.sqrt(kp))

    def _per_velocity(self, value: ArrayLike, name: str) -> Floats:
        """Numbers for each velocity, 0 or more; shape (nv,) or (n, nv)."""
        array = floats(value, name)
        rows = rows_of_copies(array, self.scene.nv, name)
        self._check_copies(rows.shape, name)
        if not (np.isfinite(array) & (array >= 0.0)).all():
            raise PoiseError(f"{name} is {value!r:.80}; it must be 0 or more")
        return rows


def place_poles(kp: Floats, ratio: ArrayLike, dt: float) -> tuple[Floats, Floats]:
    """Gains whose steps decay as the equation with k_p and damping ratio does.

    Args:
        kp: Stiffness [1/s²], shape (..., nv).
        ratio: Damping ratio, a number or shape (..., nv).
        dt: Time step [s].
    """
    rate, ratio = np.sqrt(kp) * dt, np.asarray(ratio, dtype=np.float64)
    split = rate * np.sqrt(ratio**2 - 1.0 + 0j)
    # logarithms of the poles: real, or a pair of conjugates
    one, two = -ratio * rate + split, -ratio * rate - split
    square = (np.expm1(one) * np.expm1(two)).real
    return square / dt**2, -np.expm1(-2.0 * ratio * rate) / dt


# ---- a free root: the ground provides the wrench that no motor can
#
# With b the six velocities of the root and j the rest, inverse dynamics of the desired
# accelerations gives forces on all of them, tau_b included, and no motor has that one. Forces f of
# the ground are chosen inside their cones so that J_bᵀ f comes as near to tau_b as it can. The root
# does not get the residual
#
#     r = M_bb a_b + M_bj a_j + h_b - J_bᵀ f,     a_b <- a_b - M_bb⁻¹ r;
#
# the joints keep their desired accelerations, and their torques are those of inverse dynamics with
# the new a_b and f. Beyond the thesis, which holds the root by hand (kavafoglu2018, its future
# work).
#
# A character that has fallen cannot follow its target: the ground, or what is under the body,
# resists the desired accelerations, and torques that insist on them throw it about. Its torques
# fade with the tilt of its root and the height of its center of mass, compared with the target's,
# and a light servo takes over (`FreeRoot.standing`).

SMALLEST = 0.1
"""A character is taken to be no smaller than this [m]."""

TILTS = (math.radians(40.0), math.radians(70.0))
"""Angle between the vertical, seen from the root, and the same of the target [rad]: from the first
on the character is falling, at the second it has fallen. One that recovers tilts by less."""

TORQUES = (4.0, 8.0)
"""Largest torque by the character's weight times its size: what fast motions need is below the
first, and a character that is thrown about is above the second."""

TURNS = (1.0, 2.0)
"""A joint that turns by so much more or less than its target in a step is out of control [rad]."""

DROPS = (0.25, 0.45)
"""How much lower the center of mass is than the target's, as a fraction of its height: alike."""


class FreeRoot:
    """A scene with one free root, on a level ground.

    Args:
        scene: The scene.
        friction: Coefficient of the ground.
        ground: Its height [m].
    """

    def __init__(self, scene: Scene, friction: float, ground: float) -> None:
        self.scene, self.ground = scene, ground
        body = int(np.flatnonzero(scene.forest.kind == KINDS["free"])[0])
        self._link = int(scene.forest.link[body])
        v, at = int(scene.forest.v_adr[body]), int(scene.forest.q_adr[body])
        self._root = slice(v, v + 6)
        self._quat = slice(at + 3, at + 7)
        self.supports = Supports(scene)
        size = max(self.supports.extent(), SMALLEST)
        self.solve = GroundForceSolver(friction, size)
        self._weight = 9.81 * size * float(scene.forest.mass.sum())

    def standing(self, q: Floats, target_q: Floats) -> Floats:
        """How far the character still stands as its target does, shape (...): 1, and 0 when fallen.

        Args:
            q: Positions (..., nq).
            target_q: Those of the target (..., nq).
        """
        up, desired_up = (self._up(x) for x in (q, target_q))
        cosine = np.clip((up * desired_up).sum(axis=-1), -1.0, 1.0)
        height, desired = (
            dynamics.center_of_mass(self.scene, x)[..., 2] - self.ground for x in (q, target_q)
        )
        drop = (desired - height) / np.maximum(desired, SMALLEST)
        return np.asarray(fade_out(np.arccos(cosine), TILTS) * fade_out(drop, DROPS))

    def within_reason(self, tau: Floats) -> Floats:
        """1, and 0 where a torque is beyond all reason, shape (...): the motion is lost.

        Args:
            tau: Generalized forces [N, N·m], shape (..., nv).
        """
        return np.asarray(fade_out(np.abs(tau).max(axis=-1) / self._weight, TORQUES))

    def in_control(self, rate: Floats, dt: float) -> Floats:
        """1, and 0 where a joint turns far faster than its target, shape (...).

        Args:
            rate: Velocities relative to the target's [rad/s, m/s], shape (..., nv).
            dt: Time step [s].
        """
        return np.asarray(fade_out(dt * np.abs(rate).max(axis=-1), TURNS))

    def _up(self, q: Floats) -> Floats:
        """The vertical in the axes of the root, shape (..., 3)."""
        return quat_matrix(q[..., self._quat])[..., 2, :]

    def __call__(
        self,
        q: Floats,
        v: Floats,
        tau: Floats,
        a: Floats,
        gravity: ArrayLike,
        external: Floats | None,
        as_printed: bool,
    ) -> tuple[Floats, dict[str, Any]]:
        """Torques with the root left to the ground.

        Args:
            q: Positions (..., nq).
            v: Velocities (..., nv).
            tau: Forces that would give the desired accelerations, the root's included (..., nv).
            a: Those accelerations (..., nv).
            gravity: [m/s²], shape (3,).
            external: Known wrenches on the links (..., nl, 6), or None.
            as_printed: As of `dynamics.kane_inverse_dynamics`.

        Returns:
            Generalized forces, 0 at the root [N, N·m], shape (..., nv); and the "acceleration" of
            root and joints (..., nv), the "points" where the ground pushes [m] and the "forces"
            there [N], (k, 3) each, of a batch a list of these.
        """
        scene, root, lead = self.scene, self._root, tau.shape[:-1]
        q = np.broadcast_to(q, (*lead, scene.nq))
        at, turn = dynamics.forward_kinematics(scene, q)
        center = dynamics.center_of_mass(scene, q)
        desired = self._wrench(at, turn, center, tau[..., root])
        known = np.zeros((scene.nl, 6)) if external is None else external
        wrench = np.array(np.broadcast_to(known, (*lead, scene.nl, 6)))
        points, forces = [], []
        for copy in np.ndindex(*lead):
            link, place = self.supports.near(at[copy], turn[copy], self.ground)
            force = self.solve(place, center[copy], desired[copy])
            np.add.at(wrench[copy][:, :3], link, force)
            np.add.at(wrench[copy][:, 3:], link, np.cross(place - at[copy][link], force))
            points.append(place)
            forces.append(force)

        def needed(a: Floats) -> Floats:
            return dynamics.kane_inverse_dynamics(
                scene, q, v, a, gravity=gravity, external=wrench, as_printed=as_printed
            )

        inertia = dynamics.mass_matrix(scene, q)[..., root, root]
        a = np.array(a)
        a[..., root] -= np.linalg.solve(inertia, needed(a)[..., root, None])[..., 0]
        torque = needed(a)
        torque[..., root] = 0.0
        one = {"points": points[0], "forces": forces[0]} if not lead else {}
        return torque, {"acceleration": a, "points": points, "forces": forces, **one}

    def _wrench(self, at: Floats, turn: Floats, center: Floats, tau: Floats) -> Floats:
        """The root's force, and its torque about the center of mass, in world axes (..., 6)."""
        # its torque is given in its own axes, its force acts at its origin
        force = tau[..., :3]
        own = quat_matrix(turn[..., self._link, :]) @ tau[..., 3:, None]
        torque = own[..., 0] + np.cross(at[..., self._link, :] - center, force)
        return np.concatenate([force, torque], axis=-1)


# ---- ground forces on the supporting points, inside their friction cones
#
# A free root has six equations and no motor: its wrench must come from the ground. With points p_i,
# cones of friction μ cut to pyramids of four edges, f_i = Σ_e λ_ie d_e, λ >= 0,
#
#     min | W (w - Σ_i [f_i; p_i x f_i]) |² + ε |λ|²,
#
# w the wrench that the root needs, force [N] and torque about the center of mass [N·m],
# W = diag(1, 1/l) with l the character's size. Solved by daqp, an active-set method.

EDGES = 4
REGULARIZATION = 1e-6
"""ε, relative to the largest entry of the quadratic form: forces are spread evenly."""


class GroundForceSolver:
    """Forces at points of the ground that give a wrench, as nearly as friction allows.

    Args:
        friction: Coefficient μ.
        size: Length by which torques are weighed against forces [m].
    """

    def __init__(self, friction: float, size: float) -> None:
        self.friction = number(friction, "friction", positive=False, unit="ratio")
        if self.friction < 0.0:
            raise PoiseError(f"friction is {friction:g}; it must be 0 or more")
        self.size = number(size, "size", unit="m")
        # inside the round cone: the pyramid's edges lie on it
        around = np.arange(EDGES) * (2.0 * math.pi / EDGES)
        ring = self.friction * np.stack([np.cos(around), np.sin(around)], axis=1)
        self.edges = np.column_stack([ring, np.ones(EDGES)])

    def __call__(self, points: Floats, center: Floats, wrench: Floats) -> Floats:
        """Forces (k, 3) [N] at points (k, 3) [m]; a level ground.

        Args:
            points: Where they act.
            center: The center of mass [m], shape (3,).
            wrench: Desired force, and torque about the center of mass, shape (6,).
        """
        k = len(points)
        if not k:
            return np.zeros((0, 3))
        import daqp

        arm = points - center
        edges = np.broadcast_to(self.edges, (k, EDGES, 3))
        turning = np.cross(arm[:, None], edges) / self.size
        A = np.concatenate([edges, turning], axis=2).reshape(k * EDGES, 6).T
        desired = np.concatenate([wrench[:3], wrench[3:] / self.size])
        # in units of the desired force, so that the solver's tolerances fit
        scale = max(float(np.linalg.norm(desired)), 1e-9)
        H = A.T @ A
        H[np.diag_indices(k * EDGES)] += REGULARIZATION * float(H.diagonal().max())
        upper, lower = np.full(k * EDGES, 1e6), np.zeros(k * EDGES)
        constraints = np.zeros((0, k * EDGES))
        x, _, flag, _ = daqp.solve(H, -(A.T @ desired) / scale, constraints, upper, lower)
        if flag < 1:
            raise PoiseError(f"the forces of the ground were not found: daqp stops with {flag}")
        weights: Floats = scale * np.maximum(np.asarray(x), 0.0).reshape(k, EDGES)
        return weights @ self.edges


# ---- supports: the points of a character that stand on the ground, found from its shapes

NEAR = 0.01
"""A point stands if it is no higher than this over the ground [m]."""


class Supports:
    """The corners and ends of all shapes, and which of them are near the ground.

    Args:
        scene: The scene.
    """

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        # a rim is taken at its center
        found = [
            (i, probe[0], probe[2])
            for i, link in enumerate(link for part in scene.characters for link in part.links)
            for shape in link.shapes
            for probe in shape_probes(shape, Pose(shape.quat, shape.pos), math.inf)
        ]
        self.link: Ints = np.array([i for i, _, _ in found], dtype=np.int32)
        self.point = np.array([p for _, p, _ in found]).reshape(-1, 3)
        self.radius = np.array([r for _, _, r in found])

    def extent(self) -> float:
        """Largest side of the box about the points at rest, along the world's axes [m]."""
        if not len(self.point):
            return 0.0
        one = self.scene._replace(overrides=None)
        places = self._places(*dynamics.forward_kinematics(one, one.forest.rest_q))
        return float(np.ptp(places, axis=0).max())

    def near(self, at: Floats, turn: Floats, ground: float) -> tuple[Ints, Floats]:
        """Points that stand on a level ground: links (k,) and places in the world (k, 3) [m].

        Args:
            at: Where the links are [m], shape (nl, 3), from `dynamics.forward_kinematics`.
            turn: How they are turned, shape (nl, 4).
            ground: Height of the ground [m].
        """
        places = self._places(at, turn)
        low = places[:, 2] < ground + NEAR
        return self.link[low], places[low]

    def _places(self, at: Floats, turn: Floats) -> Floats:
        """The lowest of each point's sphere, in the world (k, 3) [m]."""
        arms = np.einsum("kij,kj->ki", quat_matrix(turn[self.link]), self.point)
        places: Floats = at[self.link] + arms
        places[:, 2] -= self.radius
        return places
