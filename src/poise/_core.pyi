"""
The native core of poise: the forest, its algorithms, worlds of many copies.
"""

from collections.abc import Sequence

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

def build_info() -> dict[str, str]:
    """Compiler, flags and version of this build."""

def multiply_add_rate(single_precision: bool = False) -> float:
    """Multiply-adds per second of one core, in lanes."""

MEMORY: int = 112

PUSHES: int = 8

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

class View:
    """An array whose memory was looked up once."""

    def __init__(self, array: object) -> None: ...

    def any(self) -> bool:
        """Whether a number in it is not zero."""

class World:
    """n copies of a scene."""

    def __init__(self, model: object, whole: object, n: int, dt: float, single_precision: bool, threads: int, gravity: object, numbers: object | None, touch: object | None = None) -> None: ...

    def correct_momentum(self, on: bool) -> None:
        """Whether trees that nothing holds keep their momentum exactly."""

    def read(self) -> tuple: ...

    def write(self, q: object, v: object, time: object, memory: object | None, which: object | None) -> None: ...

    def time(self) -> NDArray[numpy.float64]: ...

    def memory(self) -> NDArray[numpy.float64]: ...

    def torque(self) -> NDArray[numpy.float64]: ...

    def contacts(self) -> tuple: ...

    def saturated(self) -> NDArray[numpy.bool_]: ...

    def spares(self) -> NDArray[numpy.float64]: ...

    def throw_spare(self, q: object, v: object, which: object | None) -> int: ...

    def faults(self) -> tuple: ...

    def push(self, link: int, force: object, torque: object, point: object, at: float, duration: float, which: object | None) -> None: ...

    def drag(self, link: int, to: object, velocity: object, point: object, stiffness: float, damping: float, which: object | None) -> None: ...

    def release(self, link: int, which: object | None) -> None: ...

    def meet(self, touches: object) -> None: ...

    def step(self, gains: object | None, target_q: object | None, target_v: object | None, target_a: object | None, strength: object | None, pin: object | None, force: object | None, acceleration: object | None, steps: int, rows: int, form: object, method: int, embedded: bool, feedforward: object, accelerated: object | None = None) -> int: ...

    def torques(self, q: object, v: object, gains: object, target_q: object, target_v: object | None, load: object | None, gravity: object, form: int, method: int) -> NDArray[numpy.float64]: ...

    def set_gravity(self, gravity: object) -> None: ...

    @property
    def isa(self) -> str: ...

    @property
    def threads(self) -> int: ...

def answer(model: Model, numbers: object | None, what: int, n: int, single_precision: bool, q: object, v: object | None, a: object | None, tau: object | None, external: object | None, target_q: object | None, target_v: object | None, kp: object | None, kd: object | None, gravity: object, dt: float, form: int, method: int, limits: bool, link: int, point: object, target_a: object | None = None, past: object | None = None, velocity: bool = True, feedforward: bool = True, as_printed: bool = False) -> object:
    """One question of poise.dynamics about n states."""

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
