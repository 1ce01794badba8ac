"""
The native core of poise: the forest, its algorithms, worlds of many copies.
"""

from collections.abc import Sequence
import enum

import numpy
import numpy.typing
from numpy.typing import NDArray


def isa() -> dict[str, str]:
    """
    Instruction sets of the kernels in use: 'single' for one state, 'batch' for several.
    """

def available_isas() -> list[str]:
    """Instruction sets that were built."""

def supported_isas() -> list[str]:
    """Instruction sets that were built and that this CPU has."""

def choose_isa(name: str) -> None:
    """
    Use one instruction set for all that is made from now on; '' is the default: POISE_ISA, or by the rule of dispatch.hpp.
    """

def collide(colliders: object, poses: object, near: float) -> tuple:
    """
    Nearest points (n, 7) and touches (n, 4, 7) of two shapes as convex solids: gap, normal and point, an infinite gap where there is none; poses (n, 2, 7) are those of the colliders.
    """

def build_info() -> dict[str, str]:
    """Compiler, flags and version of this build."""

def multiply_add_rate(single_precision: bool = False) -> float:
    """Multiply-adds per second of one core, in lanes."""

MEMORY: int = 112

PUSHES: int = 8

class Form(enum.Enum):
    """How a drive uses its target; see poise.dynamics.stable_pd."""

    pd = 0
    """Explicit PD, K = 0."""

    explicit = 1
    """Explicit position."""

    spd = 2
    """K = kd dt."""

    implicit = 3
    """K = kd dt + kp dt²."""

class Method(enum.Enum):
    """How stable PD is solved."""

    maba = 0
    """Articulated bodies, linear time."""

    df = 1
    """Dense factorization."""

    sf = 2
    """Sparse factorization."""

    pcg = 3
    """Conjugate gradients."""

class ContactModel(enum.Enum):
    impulse = 1
    """Rigid contact by impulses."""

    penalty = 2
    """Springs and dampers."""

class ShapeKind(enum.Enum):
    sphere = 0

    capsule = 1

    box = 2

    cylinder = 3

    mesh = 4

class Model:
    """A compiled forest."""

    def __init__(self, forest: object) -> None: ...

    @property
    def nq(self) -> int: ...

    @property
    def nv(self) -> int: ...

    @property
    def nl(self) -> int: ...

    @property
    def nb(self) -> int: ...

class ModelOverrides:
    """Parameters in place of a model's; one row, or one per copy."""

    def __init__(self, model: Model, mass: object | None = None, mc: object | None = None, Io: object | None = None, armature: object | None = None, effort: object | None = None, fixed: object | None = None, scaled: bool = False) -> None: ...

    @property
    def scaled(self) -> bool:
        """
        Whether each link's inertia is that of the model, times the ratio of the masses.
        """

    @property
    def copies(self) -> int:
        """Rows of those that differ from copy to copy; 0: all are shared."""

    @property
    def mass(self) -> NDArray[numpy.float64] | None:
        """Masses of the bodies, shape (nb,), or None."""

    @property
    def mc(self) -> NDArray[numpy.float64] | None:
        """Mass times center of mass, (nb, 3), or None."""

    @property
    def Io(self) -> NDArray[numpy.float64] | None:
        """Inertia about the joint, (nb, 6), or None."""

    @property
    def armature(self) -> NDArray[numpy.float64] | None:
        """Rotor inertia, shape (nv,), or None."""

    @property
    def effort(self) -> NDArray[numpy.float64] | None:
        """Effort limits, shape (nv,), or None."""

    @property
    def fixed(self) -> NDArray[numpy.float64] | None:
        """
        Mass, and mass times position, of links welded to the world, (4,), or None.
        """

def sample(model: Model, coefficients: object, start: float, rate: float, times: object) -> tuple:
    """
    Positions, velocities and accelerations of a clip's spline at these times.
    """

class Mesh:
    """Triangles, ready to be drawn."""

    def __init__(self, vertices: object, faces: object, smooth: bool, convex: bool, nx: int = 0, ny: int = 0) -> None:
        """nx, ny: points of a height field along x and y, those along y first."""

def render(kind: object, pos: object, quat: object, size: object, color: object, group: object, meshes: list, eye: object, target: object, up: object, fov: float, width: int, height: int, samples: int, ground: bool, ground_z: float, checks: float, ground_color: object, sky: object, light: object, softness: float, fade: float, buffers: bool) -> tuple:
    """A picture; with buffers also what each pixel shows, and how far it is."""

class Gains:
    """Gains of a forest, checked."""

    def __init__(self, model: Model, kp: object, kd: object, pin: object) -> None: ...

    def __getstate__(self) -> tuple[int, int, int, int, list[float], list[float], list[float]]: ...

    def __setstate__(self, arg: tuple[int, int, int, int, Sequence[float], Sequence[float], Sequence[float]], /) -> None: ...

class View:
    """An array whose memory was looked up once."""

    def __init__(self, array: object) -> None: ...

    def any(self) -> bool:
        """Whether a number in it is not zero."""

class Drive:
    """Gains and a target, and how they act; see poise.Drive."""

    def __init__(self, gains: object, target_q: object, target_v: object | None, target_a: object | None, rows: int, strength: object | None, pin: object | None, form: object, method: int, embedded: bool, feedforward: object) -> None: ...

    @property
    def target_q(self) -> NDArray[numpy.float64]:
        """Target positions, (nq,) or (n, nq), or k such rows."""

    @property
    def target_v(self) -> NDArray[numpy.float64] | None:
        """Target velocities, or None."""

    @property
    def target_a(self) -> NDArray[numpy.float64] | None:
        """Target accelerations, or None."""

    @property
    def rows(self) -> int:
        """Number of target rows, one per step; 0: one target is held."""

    @property
    def strength(self) -> NDArray[numpy.float64] | None:
        """Factor of gains and effort limits per link, (nl,) or (n, nl), or None."""

    @property
    def pin(self) -> NDArray[numpy.float64] | None:
        """Weight of the pin of each link, (nl,) or (n, nl), or None."""

    @property
    def form(self) -> int | NDArray[numpy.uint8]:
        """Index of the form, or of that of each degree of freedom, (nv,)."""

    @property
    def method(self) -> int:
        """Index of the method."""

    @property
    def embedded(self) -> bool:
        """Whether drive and dynamics are solved together."""

    @property
    def feedforward(self) -> bool | NDArray[numpy.bool_]:
        """
        Whether free roots get the force of the target's motion, or which, (nv,).
        """

class Contacts:
    """Contacts of the last step of all copies, one row each."""

    @property
    def copy(self) -> NDArray[numpy.int64]:
        """Index of the copy, shape (k,)."""

    @property
    def collider(self) -> NDArray[numpy.int64]:
        """Index of the collider, shape (k,)."""

    @property
    def other(self) -> NDArray[numpy.int64]:
        """The collider that it touches, or -1 for the ground."""

    @property
    def point(self) -> NDArray[numpy.float64]:
        """Where, in the world [m], shape (k, 3)."""

    @property
    def normal(self) -> NDArray[numpy.float64]:
        """Unit vector towards `collider`, shape (k, 3)."""

    @property
    def impulse(self) -> NDArray[numpy.float64]:
        """On `collider` [N s], shape (k, 3)."""

    @property
    def gap(self) -> NDArray[numpy.float64]:
        """When the step began [m], shape (k,)."""

class Projectiles:
    """Projectiles of all copies."""

    @property
    def thrown(self) -> NDArray[numpy.bool_]:
        """Whether each has been thrown, shape (n, k)."""

    @property
    def q(self) -> NDArray[numpy.float64]:
        """Position and quaternion, shape (n, k, 7)."""

    @property
    def v(self) -> NDArray[numpy.float64]:
        """Linear and angular velocity, shape (n, k, 6)."""

class Memory:
    """Memory of a state, without its zeros."""

    def dense(self) -> NDArray[numpy.float64]:
        """With them, (n, size)."""

class World:
    """n copies of a scene."""

    def __init__(self, model: object, whole: object, n: int, dt: float, single_precision: bool, threads: int, gravity: object, overrides: object | None, collision_model: object | None = None) -> None: ...

    def correct_momentum(self, on: bool) -> None:
        """Whether trees that nothing holds keep their momentum exactly."""

    def set_substeps(self, count: int) -> None:
        """Of each step; dt is theirs."""

    def read(self) -> tuple:
        """q (n, nq) and v (n, nv)."""

    def read_into(self, fields: dict, links: object | None = None, pairs: object | None = None) -> None:
        """
        Fills arrays by the names of their fields, of some links and pairs (k, 2).
        """

    def write(self, q: object, v: object, time: object, memory: object | None, copies: object | None = None) -> None:
        """Sets the state of some copies, a row each; no memory is a cold start."""

    def write_inertia(self, mass: object, mc: object, Io: object, copies: object | None) -> None:
        """Sets the inertias of the bodies in some copies."""

    def write_friction(self, friction: object, copies: object | None) -> None:
        """Sets the friction of the surfaces in some copies."""

    def ray(self, origin: object, direction: object, farthest: float, ground: bool, links: bool, skipped: object, nothing: int) -> tuple:
        """Distance, normal and link that rays hit."""

    def time(self) -> NDArray[numpy.float64]:
        """Clocks (n,) [s]."""

    def memory(self) -> NDArray[numpy.float64]:
        """Pushes, projectiles and contact impulses (n, size)."""

    def snapshot(self) -> Memory:
        """The same, without its zeros."""

    def torque(self) -> NDArray[numpy.float64]:
        """Torques of the last step (n, nv)."""

    def contacts(self) -> Contacts:
        """Contacts of the last step."""

    def saturated(self) -> NDArray[numpy.bool_]:
        """Torques at their effort limits (n, nv)."""

    def projectiles(self) -> Projectiles:
        """Projectiles and whether they have been thrown."""

    def throw_projectile(self, q: object, v: object, which: object | None) -> int:
        """Throws a projectile; returns its index, or -1 if none is left."""

    def faults(self) -> tuple:
        """Copies, joints, times and singularity of those that diverged."""

    def fault_table(self) -> NDArray[numpy.float64]:
        """Body or -1, singularity and time (n, 3)."""

    def restore_faults(self, table: object) -> None:
        """Freezes copies as in a table."""

    def push(self, link: int, force: object, torque: object, point: object, at: float, duration: float, which: object | None) -> None:
        """Adds a force and a torque on a link."""

    def drag(self, link: int, to: object, velocity: object, point: object, stiffness: float, damping: float, which: object | None) -> None:
        """Adds or moves a spring that drags a link."""

    def release(self, link: int, which: object | None) -> None:
        """Ends pushes and springs of a link; -1 is all."""

    def step(self, drive: Drive | None, force: object | None, acceleration: object | None, acceleration_mask: object | None, steps: int) -> int:
        """Advances all copies; returns how many are frozen."""

    def torques(self, q: object, v: object, gains: object, target_q: object, target_v: object | None, load: object | None, gravity: object, form: int, method: int) -> NDArray[numpy.float64]:
        """
        Torques of a drive at given states (n, nv), for worlds without contact.
        """

    def start_profile(self) -> None:
        """Profiles the steps from now on."""

    def stop_profile(self) -> None: ...

    def profile(self) -> tuple:
        """
        Seconds by phase, steps, contacts, rows solved, iterations, islands, residuals by size, the largest residual.
        """

    def set_gravity(self, gravity: object) -> None: ...

    @property
    def isa(self) -> str: ...

    @property
    def tiles(self) -> int: ...

    @property
    def threads(self) -> int: ...

class ServoTarget:
    """Target and gains of a servo, at the end of the step."""

    def __init__(self, q: object, v: object | None, kp: object, kd: object, dt: float, a: object | None = None, past: object | None = None) -> None: ...

    @property
    def q(self) -> object:
        """Positions, shape (nq,) or (n, nq)."""

    @property
    def v(self) -> object:
        """Velocities, shape (nv,) or (n, nv), or None."""

    @property
    def kp(self) -> object:
        """Stiffness, shape (nv,) or (n, nv)."""

    @property
    def kd(self) -> object:
        """Damping, shape (nv,) or (n, nv)."""

    @property
    def dt(self) -> float:
        """Time step [s]."""

    @property
    def a(self) -> object:
        """Accelerations, shape (nv,) or (n, nv), or None."""

    @property
    def past(self) -> object:
        """
        Positions one and two steps before, shape (2 nq,) or (n, 2 nq), or None.
        """

class Dynamics:
    """
    Functions of n states of a model; arrays have one row, or one per state.
    """

    def __init__(self, model: object, overrides: object | None, single_precision: bool) -> None: ...

    def forward_kinematics(self, n: int, q: object) -> tuple:
        """Positions (n, nl, 3) and quaternions (n, nl, 4) of the links."""

    def link_velocities(self, n: int, q: object, v: object | None) -> NDArray[numpy.float64]:
        """Linear and angular velocities (n, nl, 6) of the links."""

    def inverse_dynamics(self, n: int, q: object, v: object | None, a: object | None, external: object | None, gravity: object) -> NDArray[numpy.float64]:
        """Generalized forces (n, nv) by RNEA."""

    def forward_dynamics(self, n: int, q: object, v: object | None, tau: object, external: object | None, gravity: object) -> NDArray[numpy.float64]:
        """Accelerations (n, nv) by ABA."""

    def mass_matrix(self, n: int, q: object) -> NDArray[numpy.float64]:
        """Joint-space inertia (n, nv, nv)."""

    def jacobian(self, n: int, q: object, link: int, point: object) -> NDArray[numpy.float64]:
        """Jacobian (n, 6, nv) of a point in a link."""

    def jacobian_bias(self, n: int, q: object, v: object | None, link: int, point: object) -> NDArray[numpy.float64]:
        """Time derivative of the Jacobian times v (n, 6)."""

    def center_of_mass(self, n: int, q: object) -> NDArray[numpy.float64]:
        """Center of mass (n, 3)."""

    def centroidal_momentum(self, n: int, q: object, v: object | None) -> tuple:
        """Momentum matrix (n, 6, nv) and bias (n, 6)."""

    def energy(self, n: int, q: object, v: object | None, gravity: object) -> NDArray[numpy.float64]:
        """Kinetic and potential energy (n, 2)."""

    def stable_pd(self, n: int, q: object, v: object | None, target: ServoTarget, force: object | None, external: object | None, gravity: object, form: int, method: int, limits: bool) -> tuple:
        """Accelerations (n, nv) and torques (n, nv) of stable PD."""

    def drive(self, n: int, q: object, v: object | None, target: ServoTarget, form: int) -> tuple:
        """Q (n, nv) and K (n, nv) of a drive."""

    def kane_inverse_dynamics(self, n: int, q: object, v: object | None, a: object, external: object | None, gravity: object, as_printed: bool) -> NDArray[numpy.float64]:
        """Generalized forces (n, nv) by Kane's equations."""

    def kane_control(self, n: int, q: object, v: object | None, target: ServoTarget, external: object | None, gravity: object, target_velocity: bool, feedforward: bool, as_printed: bool) -> tuple:
        """
        Forces (n, nv) and accelerations (n, nv) that bring the links to a target.
        """

def balance_tasks(model: Model, overrides: object | None, n: int, q: object, v: object, gravity: object, points: object) -> dict:
    """
    Momentum, inertia and points of n states, by name, for reference implementations.
    """

class BalanceParams:
    """
    Settings of the balance solver; assigned fields hold from the next solution on. Defaults of tuning constants are those of the core.
    """

    def __init__(self) -> None: ...

    @property
    def linear(self) -> bool:
        """Regulate the linear momentum."""

    @linear.setter
    def linear(self, arg: bool, /) -> None: ...

    @property
    def angular(self) -> bool:
        """Regulate the angular momentum."""

    @angular.setter
    def angular(self, arg: bool, /) -> None: ...

    @property
    def friction_cones(self) -> bool:
        """
        Ground forces inside friction cones; else supports are equality constraints.
        """

    @friction_cones.setter
    def friction_cones(self, arg: bool, /) -> None: ...

    @property
    def follow_motion(self) -> bool:
        """
        The desired center of mass follows that of the motion; else com_offset holds.
        """

    @follow_motion.setter
    def follow_motion(self, arg: bool, /) -> None: ...

    @property
    def always_support(self) -> bool:
        """Every support should stand at all times."""

    @always_support.setter
    def always_support(self, arg: bool, /) -> None: ...

    @property
    def linear_gains(self) -> list[float]:
        """k_s, k_d of the center of mass [1/s², 1/s]."""

    @linear_gains.setter
    def linear_gains(self, arg: Sequence[float], /) -> None: ...

    @property
    def support_gains(self) -> list[float]:
        """k_s, k_d of a support [1/s², 1/s]."""

    @support_gains.setter
    def support_gains(self, arg: Sequence[float], /) -> None: ...

    @property
    def goal_gains(self) -> list[float]:
        """k_s, k_d of a goal [1/s², 1/s]."""

    @goal_gains.setter
    def goal_gains(self, arg: Sequence[float], /) -> None: ...

    @property
    def limit_gains(self) -> list[float]:
        """Added to k_s, k_d per radian beyond a joint's range [1/s², 1/s]."""

    @limit_gains.setter
    def limit_gains(self, arg: Sequence[float], /) -> None: ...

    @property
    def linear_weight(self) -> float:
        """β_l, weight of the linear objective."""

    @linear_weight.setter
    def linear_weight(self, arg: float, /) -> None: ...

    @property
    def gamma(self) -> float:
        """γ, weight of the angular objective per CMP offset [1/m]."""

    @gamma.setter
    def gamma(self, arg: float, /) -> None: ...

    @property
    def goal_weight(self) -> float:
        """β_p, weight of each goal."""

    @goal_weight.setter
    def goal_weight(self, arg: float, /) -> None: ...

    @property
    def max_cmp_offset(self) -> float:
        """Largest distance from the desired CoP to the desired CMP [m]."""

    @max_cmp_offset.setter
    def max_cmp_offset(self, arg: float, /) -> None: ...

    @property
    def margin(self) -> float:
        """Distance of the desired CoP from the edge of the soles [m]."""

    @margin.setter
    def margin(self, arg: float, /) -> None: ...

    @property
    def ground_height(self) -> float:
        """Height of the ground [m]."""

    @ground_height.setter
    def ground_height(self, arg: float, /) -> None: ...

    @property
    def com_offset(self) -> list[float]:
        """Desired center of mass from the center of the supports [m]."""

    @com_offset.setter
    def com_offset(self, arg: Sequence[float], /) -> None: ...

    @property
    def sole_height_fade(self) -> list[float]:
        """
        Heights of a sole between which its support weight goes from 1 to 0 [m].
        """

    @sole_height_fade.setter
    def sole_height_fade(self, arg: Sequence[float], /) -> None: ...

    @property
    def target_height_fade(self) -> list[float]:
        """The same of the target's sole [m]."""

    @target_height_fade.setter
    def target_height_fade(self, arg: Sequence[float], /) -> None: ...

    @property
    def tilt_fade(self) -> list[float]:
        """The same by 1 - cos of the angle between a sole and the target's."""

    @tilt_fade.setter
    def tilt_fade(self, arg: Sequence[float], /) -> None: ...

    @property
    def lean_fade(self) -> list[float]:
        """
        The same by the distance of the center of mass from all soles over its height.
        """

    @lean_fade.setter
    def lean_fade(self, arg: Sequence[float], /) -> None: ...

    @property
    def press_acceleration(self) -> float:
        """
        Downward acceleration of a support that does not touch the ground [m/s²].
        """

    @press_acceleration.setter
    def press_acceleration(self, arg: float, /) -> None: ...

    @property
    def max_goal_distance(self) -> float:
        """A goal farther away pulls as if it were this far [m]."""

    @max_goal_distance.setter
    def max_goal_distance(self, arg: float, /) -> None: ...

    @property
    def fading_weight(self) -> float:
        """Weight of a support of weight 1/2 beside tracking at 1."""

    @fading_weight.setter
    def fading_weight(self, arg: float, /) -> None: ...

    @property
    def support_weight(self) -> float:
        """Weight of a support beside tracking at 1, with friction cones."""

    @support_weight.setter
    def support_weight(self, arg: float, /) -> None: ...

    @property
    def hard_threshold(self) -> float:
        """Supports of this weight on are constraints, without friction cones."""

    @hard_threshold.setter
    def hard_threshold(self, arg: float, /) -> None: ...

    @property
    def force_regularization(self) -> float:
        """Of ground forces, relative to the largest entry of the quadratic form."""

    @force_regularization.setter
    def force_regularization(self, arg: float, /) -> None: ...

    @property
    def rank_tolerance(self) -> float:
        """Constraint rows smaller than this beside the largest drop out."""

    @rank_tolerance.setter
    def rank_tolerance(self, arg: float, /) -> None: ...

    @property
    def capture_time(self) -> float:
        """Time ahead at which the capture point error is measured [s]."""

    @capture_time.setter
    def capture_time(self, arg: float, /) -> None: ...

    @property
    def points(self, /) -> numpy.typing.NDArray[numpy.float64]:
        """Link and place in it [m] of supports, then of goals, shape (k, 4)."""

    @points.setter
    def points(self, value: numpy.typing.NDArray[numpy.float64], /) -> None: ...

    @property
    def sole_points(self, /) -> numpy.typing.NDArray[numpy.float64]:
        """Support and place in its link [m], shape (c, 4)."""

    @sole_points.setter
    def sole_points(self, value: numpy.typing.NDArray[numpy.float64], /) -> None: ...

    @property
    def goals(self, /) -> numpy.typing.NDArray[numpy.float64]:
        """Desired positions of the goals [m], shape (g, 3)."""

    @goals.setter
    def goals(self, value: numpy.typing.NDArray[numpy.float64], /) -> None: ...

    @property
    def tracking_weight(self, /) -> numpy.typing.NDArray[numpy.float64]:
        """W, above 0, shape (nv,)."""

    @tracking_weight.setter
    def tracking_weight(self, value: numpy.typing.NDArray[numpy.float64], /) -> None: ...

    @property
    def k_s(self, /) -> numpy.typing.NDArray[numpy.float64]:
        """Stiffness of tracking [1/s²], shape (nv,)."""

    @k_s.setter
    def k_s(self, value: numpy.typing.NDArray[numpy.float64], /) -> None: ...

    @property
    def k_d(self, /) -> numpy.typing.NDArray[numpy.float64]:
        """Damping of tracking [1/s], shape (nv,)."""

    @k_d.setter
    def k_d(self, value: numpy.typing.NDArray[numpy.float64], /) -> None: ...

    @property
    def joint_limits(self, /) -> numpy.typing.NDArray[numpy.float64]:
        """
        Joints with a range, shape (m, 9): 1 for a ball, where q and v begin, axis, and swing and twist, or 0 and low and high.
        """

    @joint_limits.setter
    def joint_limits(self, value: numpy.typing.NDArray[numpy.float64], /) -> None: ...

    @property
    def friction(self, /) -> numpy.typing.NDArray[numpy.float64]:
        """Coefficients of supports and ground, shape (s,) or (n, s)."""

    @friction.setter
    def friction(self, value: numpy.typing.NDArray[numpy.float64], /) -> None: ...

class BalanceSolution:
    """Solutions of the balance problem of n copies."""

    @property
    def acceleration(self, /) -> numpy.typing.NDArray[numpy.float64]:
        """Generalized accelerations, shape (n, nv)."""

    @property
    def torque(self, /) -> numpy.typing.NDArray[numpy.float64]:
        """Joint torques, with friction cones [N·m], shape (n, nv)."""

    @property
    def momentum_rate(self, /) -> numpy.typing.NDArray[numpy.float64]:
        """L̇ and Ḣ [N, N·m], shape (n, 6)."""

    @property
    def angular_weight(self, /) -> numpy.typing.NDArray[numpy.float64]:
        """β_a, shape (n,)."""

    @property
    def constraint_residual(self, /) -> numpy.typing.NDArray[numpy.float64]:
        """Residual of the equality constraints [m/s², rad/s²], shape (n,)."""

    @property
    def capture_point_error(self, /) -> numpy.typing.NDArray[numpy.float64]:
        """
        Distance from the desired center of mass to where its velocity leads it [m], shape (n,).
        """

    @property
    def desired_com(self, /) -> numpy.typing.NDArray[numpy.float64]:
        """Desired center of mass [m], NaN without supports, shape (n, 2)."""

    @property
    def com(self, /) -> numpy.typing.NDArray[numpy.float64]:
        """Center of mass [m], shape (n, 3)."""

    @property
    def mass(self, /) -> numpy.typing.NDArray[numpy.float64]:
        """[kg], shape (n,)."""

    @property
    def support_weight(self, /) -> numpy.typing.NDArray[numpy.float64]:
        """Of each support, 0 to 1, shape (n, s)."""

    @property
    def contact_points(self, /) -> numpy.typing.NDArray[numpy.float64]:
        """Sole points in the world [m], shape (n, c, 3)."""

    @property
    def contact_forces(self, /) -> numpy.typing.NDArray[numpy.float64]:
        """Ground forces on them, with friction cones [N], shape (n, c, 3)."""

class BalancePlanner:
    """Solves the balance problem of n copies."""

    def __init__(self, model: object, params: object, overrides: object | None, threads: int) -> None: ...

    @property
    def params(self) -> object:
        """Its settings."""

    def solve(self, q: object, v: object, target_q: object, target_v: object | None, target_a: object | None, schedule: object | None, gravity: object) -> BalanceSolution:
        """
        Solves for n states and targets; rows or one row for all. The schedule has the support weights, shape (n, s), NaN where the target's height decides.
        """
