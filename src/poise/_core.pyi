"""
The native core of poise: the forest, its algorithms, worlds of many copies.
"""

import numpy
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

def tasks(model: Model, numbers: object | None, n: int, q: object, v: object, gravity: object, points: object) -> object:
    """Momentum, inertia, and points of n states, for controllers."""

class Planner:
    """Plans of a controller of balance."""

    def __init__(self, model: object, threads: int) -> None: ...

    def plan(self, numbers: object | None, ask: object, n: int, q: object, v: object, target_q: object, target_v: object | None, target_a: object | None, when: object | None, gravity: object) -> tuple: ...
