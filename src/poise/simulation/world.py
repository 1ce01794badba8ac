"""World: what happens. A scene, copied n times, stepped by the core."""

from __future__ import annotations

import math
import weakref
from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poise import _core
from poise.dynamics import GRAVITY, DtypeLike, forward_kinematics, link_velocities, precision
from poise.errors import Diverged, PoiseError, check_known
from poise.math.arrays import (
    Floats,
    choice,
    copies_mask,
    count,
    finite,
    floats,
    joined,
    number,
    shaped,
)
from poise.model.character import Character
from poise.model.forest import Part
from poise.model.inertia import model_overrides, with_projectiles
from poise.model.same_body import check_clip_fits
from poise.model.scene import Scene, scene_of
from poise.model.shape import Shape
from poise.simulation.command import Command, Drive
from poise.simulation.contact import Contacts, GroundLike, default_projectiles
from poise.simulation.contact.colliders import check_obstacles
from poise.simulation.contact.collision_model import (
    FRICTION,
    MODELS,
    STIFFNESS,
    Projectiles,
    SurfaceCounts,
    compile_collision_model,
    surfaces_of,
)
from poise.simulation.contact.contacts import contacts_from_core
from poise.simulation.contact.convex import convex_of
from poise.simulation.state import State
from poise.simulation.world_config import WorldConfig, threads_of

if TYPE_CHECKING:
    from poise.motion.clip import Clip

LONGEST_STEP = 0.1
"""With contact [s]: beyond it a step says nothing about what happens within."""


class Divergence(NamedTuple):
    """A copy that diverged: which, first in which joint, when [s], and whether it was singular."""

    copy: int
    joint: str
    time: float
    singular: bool


def _fixed(name: str, doc: str, stored: str = "") -> Any:
    """A setting of a world that can be read, and not assigned."""

    def refuse(world: World, value: Any) -> None:
        raise PoiseError(
            f"{name} is fixed when a world is built; build another: World(..., {name}=...)"
        )

    return property(attrgetter(stored or f"_settings.{name}"), refuse, doc=doc)


class World:
    """A scene, copied n times; copies never touch.

    Args:
        character: A character, or a list of characters and free objects.
        n: Number of copies. States of a world of one have no leading axis.
        dt: Time step [s].
        dtype: "float64" or "float32", or NumPy's type: the precision inside.
        threads: At most this many; None takes the cores. Results do not depend on it.
        ground: True is the plane z = 0; False is none; or a Plane or a HeightField.
        obstacles: Shapes that stand still, placed in the world.
        contact: "impulse" (default), "penalty" (springs and dampers, for steps of 1 ms), or None:
            nothing touches, and joints have no limits.
        projectiles: How many balls wait to be thrown, or the objects themselves.
        friction: Coefficient, a number for everything, or of the links, shape (nl,) or (n, nl),
            or of all in a copy, shape (n, 1). Two surfaces have the geometric mean of theirs.
        ground_friction: Of ground and obstacles; None takes `friction` if that is for everything.
        restitution: As friction; two surfaces have the larger of theirs.
        stiffness: Of contact by penalty [N/m at each point]; its damping and the viscosity of its
            friction are k / 100 and k / 25 [N·s/m].
        self_collision: Whether links of one character touch each other.
        exclude: Pairs of links that do not.
        convex: Whether convex meshes and cylinders meet other shapes, too. That needs the extra
            coal, and costs some tenths of a millisecond for each pair that is near. False: they
            meet only the ground. None: as True where two parts of the scene, or a part and an
            obstacle, could meet through one; what else may pass through them, links of the same
            character and balls that are thrown, does not count.
        gravity: [m/s^2], shape (3,).
        on_divergence: "raise" raises Diverged, "freeze" stops a lost copy at its last good state;
            None raises for n = 1 and freezes otherwise.
        mass: Masses of the links [kg], shape (nl,) or (n, nl); inertias scale along unless given.
        inertia: Inertias of the links about their centers of mass, in link axes [kg m^2],
            shape (nl, 3, 3) or (n, nl, 3, 3).
        armature: Rotor inertia per degree of freedom [kg m^2, kg], shape (nv,) or (n, nv).
        momentum_correction: Whether a character that nothing holds keeps its momentum to rounding:
            after a step its free root is given the velocity that the momentum needs. False leaves
            the plain semi-implicit Euler step, whose momentum drifts by second order in dt.
    """

    __slots__ = (
        "__weakref__",
        "_collision_model",
        "_convex",
        "_core",
        "_dt",
        "_fitting",
        "_gravity",
        "_live",
        "_n",
        "_on_divergence",
        "_scene",
        "_settings",
        "_step",
    )

    def __init__(
        self,
        character: Character | Sequence[Character],
        *,
        n: int = 1,
        dt: float,
        dtype: DtypeLike = "float64",
        threads: int | None = None,
        ground: GroundLike = True,
        obstacles: Sequence[Shape] = (),
        contact: str | None = "impulse",
        projectiles: int | Sequence[Character] = 8,
        friction: ArrayLike = FRICTION,
        ground_friction: float | None = None,
        restitution: ArrayLike = 0.0,
        stiffness: float = STIFFNESS,
        self_collision: bool = True,
        exclude: Sequence[tuple[str, str]] = (),
        convex: bool | None = None,
        gravity: ArrayLike = GRAVITY,
        on_divergence: str | None = None,
        mass: ArrayLike | None = None,
        inertia: ArrayLike | None = None,
        armature: ArrayLike | None = None,
        momentum_correction: bool = True,
    ) -> None:
        n = count(n, "n", why="it must be a whole number: a world has at least one copy")
        dt = number(dt, "dt")
        self._n, self._dt = n, dt
        self._fitting: Character | None = None
        scene = scene_of(character)
        dtype = precision(dtype)
        if on_divergence is None:
            on_divergence = "raise" if n == 1 else "freeze"
        self.on_divergence = on_divergence
        if not isinstance(momentum_correction, (bool, np.bool_)):
            raise PoiseError(
                f"momentum_correction must be True or False, got {momentum_correction!r:.80}"
            )
        overrides = model_overrides(scene, n, mass, inertia, armature)
        self._scene = scene = scene._replace(overrides=overrides)
        self._gravity = _gravity(gravity)
        whole, touch = scene, None
        if contact is not None:
            _check_contact(contact, dt, self_collision, convex)
            obstacles = check_obstacles(obstacles)
            waiting = default_projectiles(projectiles)
            whole = scene_of([*scene.characters, *waiting]) if waiting else scene
            counts = SurfaceCounts(n, scene.nl, len(waiting), len(obstacles))
            touch = compile_collision_model(
                whole,
                ground=ground,
                obstacles=obstacles,
                model=contact,
                friction=surfaces_of(counts, friction, "friction", ground_friction),
                restitution=surfaces_of(counts, restitution, "restitution"),
                self_collision=self_collision,
                exclude=exclude,
                names=scene.forest.link_names,
                projectiles=len(waiting),
                convex=convex,
                stiffness=number(stiffness, "stiffness", unit="N/m"),
            )
            overrides = with_projectiles(overrides, scene, whole)
        self._collision_model = touch
        self._convex = None if touch is None else convex_of(whole, touch)
        single, workers = dtype == "float32", threads_of(threads, n)
        self._core = _core.World(
            scene.model, whole.model, n, dt, single, workers, self._gravity, overrides, touch
        )
        self._core.correct_momentum(bool(momentum_correction))
        self._live: weakref.ref[State] | None = None
        self._step = self._core.step
        self._settings = WorldConfig.of(
            scene.characters, n=n, dt=dt, dtype=dtype, ground=ground,
            obstacles=obstacles, contact=contact, projectiles=projectiles, friction=friction,
            ground_friction=ground_friction, restitution=restitution, stiffness=stiffness,
            self_collision=self_collision, exclude=exclude, convex=convex,
            gravity=gravity, on_divergence=self.on_divergence, mass=mass, inertia=inertia,
            armature=armature, momentum_correction=bool(momentum_correction),
        )  # fmt: skip
        self.reset()

    # ---- what it is; fixed when it is built, but for gravity and on_divergence

    n: int = _fixed("n", "Number of copies.", "_n")
    dt: float = _fixed("dt", "Time step [s].", "_dt")
    dtype: str = _fixed("dtype", 'Precision inside, "float64" or "float32".')
    friction: Floats = _fixed("friction", "Coefficient of friction, as it was given.")
    ground_friction: float | None = _fixed("ground_friction", "Of ground and obstacles.")
    restitution: Floats = _fixed("restitution", "Coefficient of restitution, as it was given.")
    ground: GroundLike = _fixed("ground", "The ground, as it was given.")
    obstacles: tuple[Shape, ...] = _fixed("obstacles", "Shapes that stand still.")
    projectiles: int | tuple[Character, ...] = _fixed("projectiles", "What waits to be thrown.")
    stiffness: float = _fixed("stiffness", "Of contact by penalty [N/m].")
    self_collision: bool = _fixed("self_collision", "Whether links of one character touch.")
    exclude: tuple[tuple[str, str], ...] = _fixed("exclude", "Pairs of links that do not touch.")
    convex: bool | None = _fixed("convex", "Whether convex meshes meet other shapes.")
    mass: Floats | None = _fixed("mass", "Masses of the links, if given [kg].")
    inertia: Floats | None = _fixed("inertia", "Inertias of the links, if given [kg m^2].")
    armature: Floats | None = _fixed("armature", "Rotor inertias, if given [kg m^2, kg].")
    momentum_correction: bool = _fixed("momentum_correction", "Whether momentum is corrected.")
    contact: str | None = _fixed("contact", 'Model of contact: "impulse", "penalty" or None.')

    @property
    def scene(self) -> Scene:
        """The parts of the scene, compiled, without what waits to be thrown."""
        return self._scene

    @property
    def settings(self) -> WorldConfig:
        """What the world was built with."""
        return self._settings

    @property
    def on_divergence(self) -> str:
        """What happens when a copy diverges, "raise" or "freeze"; may be assigned."""
        return self._on_divergence

    @on_divergence.setter
    def on_divergence(self, behaviour: str) -> None:
        known = ("raise", "freeze")
        self._on_divergence = known[choice(behaviour, "on_divergence", known)]

    # ---- where it is

    @property
    def state(self) -> State:
        """The present state. Its arrays are copied when they are first read."""
        state = None if self._live is None else self._live()
        if state is None or state._world is None:
            state = State._of(self)
            self._live = weakref.ref(state)
        return state

    @property
    def time(self) -> Floats:
        """Clock of each copy [s], shape () or (n,)."""
        return self._shape(self._core.time())

    def link_poses(self) -> tuple[Floats, Floats]:
        """Poses of the links in the world, in the order of `scene.forest.link_names`.

        Returns:
            Positions of the link frames [m], (nl, 3) or (n, nl, 3), and quaternions w x y z,
            (nl, 4) or (n, nl, 4): MuJoCo's `xpos` and `xquat`.
        """
        return forward_kinematics(self._scene, self.state.q)

    def link_velocities(self) -> tuple[Floats, Floats]:
        """Velocities of the links in the world.

        Returns:
            Velocities of the origins of the link frames [m/s] and angular velocities [rad/s], in
            world axes, (nl, 3) or (n, nl, 3) each: MuJoCo's `mj_objectVelocity` of the body frame.
        """
        return link_velocities(self._scene, self.state.q, self.state.v)

    @property
    def torque(self) -> Floats:
        """Torque that drive and forces applied in the last step [N, N·m], (nv,) or (n, nv)."""
        return self._shape(self._core.torque())

    @property
    def saturated(self) -> NDArray[np.bool_]:
        """Which torques were at their effort limit in the last step, (nv,) or (n, nv)."""
        limited: NDArray[np.bool_] = self._core.saturated()
        return limited[0] if self._n == 1 else limited

    @property
    def contacts(self) -> Contacts:
        """What touched what in the last step; `.of(part)` is what touched one part of the scene."""
        return contacts_from_core(self._core.contacts(), self._collision_model, self._dt).within(
            self.scene
        )

    @property
    def threads(self) -> int:
        """Number of threads."""
        return int(self._core.threads)

    @property
    def isa(self) -> str:
        """Instruction set of the kernels that step this world: "baseline", "avx2" or "avx512".

        Chosen when the world is built: one copy runs other kernels than a batch, see
        `poise doctor`.
        """
        return str(self._core.isa)

    @property
    def diverged(self) -> list[Divergence]:
        """The copies that diverged and stand at their last good state."""
        return [Divergence(*loss) for loss in zip(*self._core.faults(), strict=True)]

    @property
    def gravity(self) -> Floats:
        """Gravity [m/s^2], shape (3,); may be assigned between steps."""
        return self._gravity

    @gravity.setter
    def gravity(self, gravity: ArrayLike) -> None:
        checked = _gravity(gravity)
        self._core.set_gravity(checked)
        self._gravity = checked

    def part(self, name: str) -> Part:
        """Slices of q, v and links that belong to one part of the scene."""
        parts = self.scene.forest.parts
        check_known("part", name, parts)
        return parts[name]

    # ---- what happens

    def reset(
        self, state: State | Mapping[str, State] | None = None, where: ArrayLike | None = None
    ) -> None:
        """Put copies into a state; their clocks and memory come with it.

        Args:
            state: A State; None is the rest pose at rest, at time 0. Or states of parts by their
                names: the other parts stay where they are. Clocks are those of the states that have
                a time, as those of clips do, and stay if none has.
            where: Indices or mask of the copies; None is all. A state of k rows is for the k copies
                that it names, in this order; one of n rows has a row for each copy of the world.
        """
        if state is None:
            state = State(self.scene.forest.rest_q)
        if isinstance(state, Mapping):
            state = self._with_parts(state, where)
        if not isinstance(state, State):
            raise PoiseError(f"reset takes a State, got {state!r:.80}")
        if state.clip is not None:
            self._check_clip(state.clip)
        q, memory = state.q, state.memory
        v = state.v if state.has_velocity else np.zeros(self.scene.nv)
        time = state.time
        if where is not None:
            q, v = self._spread(q, where, "state.q"), self._spread(v, where, "state.v")
            time = self._spread_time(time, where)
            memory = None if memory is None else self._spread(memory, where, "state.memory")
        if time.shape not in ((), (1,), (self._n,)):
            raise PoiseError(f"state.time has shape {time.shape}, expected () or ({self._n},)")
        clocks = np.ascontiguousarray(np.broadcast_to(time, (self._n,)))
        if memory is not None and memory.ndim == 1:
            memory = np.ascontiguousarray(np.broadcast_to(memory, (self._n, memory.size)))
        self._leave()
        self._core.write(q, v, finite(clocks, "state.time"), memory, self._mask(where))

    def step(self, command: Command | None = None, steps: int = 1) -> None:
        """Advance by `steps` time steps under one command.

        A target of k rows is followed row by row, and steps must be k. Everything else is held.
        """
        live = self._live
        if live is not None:
            state = live()
            if state is not None:
                state._read()
            self._live = None
        if command is None:
            command = _NOTHING
        elif type(command) is not Command:
            raise PoiseError(f"a world takes a Command, got {command!r:.80}")
        if type(steps) is not int or not 0 < steps < 2**31:
            steps = count(steps, "steps")
        drive = command.drive
        if command.velocity is not None:
            raise PoiseError(
                "this world takes force, drive and acceleration; a velocity needs an "
                "impulse-based world"
            )
        try:
            if drive is not None:
                clip = drive.target.clip
                if clip is not None and clip.character is not self._fitting:
                    self._check_clip(clip)
            step = self._step if self._convex is None else self._step_convex
            lost = step(
                drive, command.force, command.acceleration, command.acceleration_mask, steps
            )
        except TypeError as error:
            raise PoiseError(f"the command has a part of a wrong kind: {error!s:.200}") from error
        except PoiseError as error:
            hint = self._hint(command)
            if not hint:
                raise
            raise PoiseError(f"{error}; {hint}") from error
        if lost and self.on_divergence == "raise":
            self._raise()

    def until(self, t: float) -> Iterator[float]:
        """Times from now to t: one per turn of a loop that steps the world.

        Where clocks differ the largest counts. Ends early when every copy has diverged.
        """
        t = number(t, "until(t): t", positive=False)
        while True:
            clocks = self._core.time()
            lost = self._core.faults()[0]
            if len(lost) == self._n:
                return
            now = float(np.delete(clocks, lost).max() if lost else clocks.max())
            if now > t - 0.5 * self._dt:
                return
            yield now
            if (self._core.time() == clocks).all() and len(self._core.faults()[0]) == len(lost):
                raise PoiseError("the world was not stepped inside `until`")

    def push(
        self,
        link: str | int,
        force: ArrayLike | None,
        duration: float,
        *,
        torque: ArrayLike | None = None,
        point: ArrayLike | None = None,
        at: float | None = None,
        where: ArrayLike | None = None,
    ) -> None:
        """Push a link for a while. A push that covers part of a step acts in part.

        Args:
            link: Name or index of the link.
            force: In world axes [N], shape (3,) or (n, 3); None for a torque alone.
            duration: [s]; math.inf lasts until `release`.
            torque: In world axes [N·m], shape (3,) or (n, 3).
            point: Where the force acts, in the link's frame [m]; its center of mass if None.
            at: When it starts [s], on each copy's clock, and not in its past; None is now.
            where: Indices or mask of the copies; None is all. Arrays may have k rows for the k
                copies that it names.
        """
        if force is None and torque is None:
            raise PoiseError("a push needs a force or a torque")
        index, point = self._point_of(link, point)
        start = math.nan if at is None else number(at, "at", positive=False)
        if not (isinstance(duration, float) and duration == math.inf):
            duration = number(duration, "duration")
        forces, torques, points = self._vectors(where, force=force, torque=torque, point=point)
        self._leave()
        mask = self._mask(where)
        self._core.push(index, forces, torques, points, start, float(duration), mask)

    def kick(
        self,
        link: str | int,
        impulse: ArrayLike,
        *,
        point: ArrayLike | None = None,
        at: float | None = None,
        where: ArrayLike | None = None,
    ) -> None:
        """Push a link so shortly that only the impulse counts: it acts within one step.

        Args:
            link: Name or index of the link.
            impulse: In world axes [N·s], shape (3,) or (n, 3).
            point: Where it acts, in the link's frame [m]; the link's center of mass if None.
            at: When [s], on each copy's clock; None is now.
            where: Indices or mask of the copies; None is all.
        """
        force = finite(floats(impulse, "impulse"), "impulse") / self._dt
        self.push(link, force, self._dt, point=point, at=at, where=where)

    def drag(
        self,
        link: str | int,
        to: ArrayLike,
        *,
        velocity: ArrayLike = (0.0, 0.0, 0.0),
        point: ArrayLike | None = None,
        stiffness: float | None = None,
        damping: float | None = None,
        where: ArrayLike | None = None,
    ) -> None:
        """Drag a link by a spring to a place, until it is released.

        Called again for the same link, as a mouse moves, it only moves the place. The spring is
        implicit: a stiff one does not shake. It counts as one of the eight pushes of a copy.

        Args:
            link: Name or index of the link.
            to: Where to, in the world [m], shape (3,) or (n, 3).
            velocity: Of that place [m/s], shape (3,) or (n, 3); it goes on from `to`.
            point: By which point, in the link's frame [m]; the link's center of mass if None.
            stiffness: [N/m]; None swings the part of the scene that the link belongs to at 1.5 Hz.
            damping: [N·s/m]; None is critical for that mass.
            where: Indices or mask of the copies; None is all.
        """
        index, point = self._point_of(link, point)
        mass = self._mass_with(index)
        if stiffness is None:
            stiffness = mass * (2.0 * math.pi * 1.5) ** 2
        stiffness = number(stiffness, "stiffness", positive=False, unit="N/m")
        if damping is None:
            damping = 2.0 * math.sqrt(max(stiffness, 0.0) * mass)
        damping = number(damping, "damping", positive=False, unit="N s/m")
        places, speeds, points = self._vectors(where, to=to, velocity=velocity, point=point)
        self._leave()
        self._core.drag(index, places, speeds, points, stiffness, damping, self._mask(where))

    def release(self, link: str | int | None = None, where: ArrayLike | None = None) -> None:
        """Ends what acts on a link, or on all: pushes, also those to come, and springs that drag.

        Args:
            link: Name or index of the link; None is all.
            where: Indices or mask of the copies; None is all.
        """
        index = -1 if link is None else self.scene.link_index(link)
        self._leave()
        self._core.release(index, self._mask(where))

    def throw(
        self,
        position: ArrayLike,
        velocity: ArrayLike,
        *,
        spin: ArrayLike = (0.0, 0.0, 0.0),
        quat: ArrayLike = (1.0, 0.0, 0.0, 0.0),
        where: ArrayLike | None = None,
    ) -> int:
        """Throws a projectile. Returns the index of its link.

        Args:
            position: Of its origin, in the world [m], shape (3,) or (n, 3).
            velocity: [m/s], shape (3,) or (n, 3).
            spin: Angular velocity in its own axes [rad/s], shape (3,) or (n, 3).
            quat: Orientation, w x y z, shape (4,) or (n, 4).
            where: Indices or mask of the copies; None is all.
        """
        q = joined(position, quat, "position", "quat")
        v = joined(velocity, spin, "velocity", "spin")
        if not (np.linalg.norm(q[..., 3:], axis=-1) > 1e-9).all():
            raise PoiseError("quat: a quaternion of length 0 has no direction")
        q, v = self._rows(q, where, "position"), self._rows(v, where, "velocity")
        self._leave()
        index = self._core.throw_projectile(q, v, self._mask(where))
        if index < 0:
            if self._collision_model is None:
                raise PoiseError("nothing to throw: this world is built with contact=None")
            count = self._collision_model.projectiles
            why = f"all {count} projectiles are out" if count else "this world has no projectiles"
            raise PoiseError(f"nothing left to throw: {why}; World(projectiles=...) sets how many")
        return self.scene.nl + int(index)

    @property
    def projectile_state(self) -> Projectiles:
        """Which projectiles have been thrown, and their positions and velocities."""
        state = Projectiles.of(self._core.projectiles())
        return state.at(0) if self._n == 1 else state

    # ---- inside

    def _step_convex(
        self, drive: Drive | None, force: Any, acceleration: Any, mask: Any, steps: int
    ) -> int:
        """Steps one by one, with the contacts of meshes and cylinders found before each."""
        assert self._convex is not None
        rows = 0 if drive is None else drive.rows
        if rows and rows != steps:
            # raises the error
            return self._core.step(drive, force, acceleration, mask, steps)
        lost = 0
        for i in range(steps):
            q, v = self._core.read()
            balls = self._core.projectiles()
            self._core.set_contacts(self._convex.contacts(q, v, balls, self._dt, self._gravity))
            now = drive.row(i) if drive is not None and rows else drive
            lost = self._core.step(now, force, acceleration, mask, 1)
            if lost == self._n or (lost and self.on_divergence == "raise"):
                break
        return lost

    def _check_clip(self, clip: Clip) -> None:
        """Refuse a clip of another body, where the world has one; controllers check their parts."""
        if len(self._scene.characters) == 1:
            check_clip_fits(clip, self._scene.characters[0])
        self._fitting = clip.character

    def _hint(self, command: Command) -> str:
        """What to do about a command for one part of the scene alone, or "" if it is none."""
        arrays = [command.force, command.acceleration]
        if command.drive is not None:
            arrays.append(command.drive.gains.kp)
        sizes = {np.shape(x)[-1] for x in arrays if x is not None and np.ndim(x)}
        for name, part in self._scene.forest.parts.items():
            if sizes == {part.v.stop - part.v.start} != {self._scene.nv}:
                return (
                    "the command is for one part of the scene: make its controller from the world, "
                    f"as in StablePD(world, part={name!r})"
                )
        return ""

    def _with_parts(self, states: Mapping[str, State], where: ArrayLike | None) -> State:
        """The present state with parts replaced; a cold start."""
        q, v = (x.copy() for x in self._core.read())
        clocks: dict[str, Floats] = {}
        for name, state in states.items():
            part = self.part(name)
            if not isinstance(state, State):
                raise PoiseError(f"reset takes States of parts, got {state!r:.80} for {name!r}")
            if state.clip is not None:
                check_clip_fits(state.clip, self._character(name))
            for array, at, new, what in (
                (q, part.q, state.q, "q"),
                (v, part.v, state.v if state.has_velocity else np.zeros_like(v[0, part.v]), "v"),
            ):
                size = at.stop - at.start
                if where is not None:
                    new = self._spread(new, where, f"state.{what}")
                if new.shape not in ((size,), (self._n, size)):
                    raise PoiseError(
                        f"state.{what} of part {name!r} has shape {new.shape}, expected ({size},)"
                        f" or ({self._n}, {size})"
                    )
                array[:, at] = new
            if state.clip is not None or np.any(state.time):
                time = state.time if where is None else self._spread_time(state.time, where)
                clocks[name] = np.broadcast_to(time, (self._n,))
        first = next(iter(clocks.values()), self._core.time())
        for name, clock in clocks.items():
            if not np.array_equal(clock, first):
                raise PoiseError(
                    f"states of parts have different times, {float(first[0]):.4g} s, and "
                    f"{float(clock[0]):.4g} s of {name!r}; a world has one clock for each copy"
                )
        return State(self._shape(q), self._shape(v), self._shape(np.array(first)))

    def _character(self, part: str) -> Character:
        return self._scene.characters[list(self._scene.forest.parts).index(part)]

    def _point_of(self, link: str | int, point: ArrayLike | None) -> tuple[int, ArrayLike]:
        """Index of a link, and a point in its frame: its center of mass if None."""
        index = self.scene.link_index(link)
        return index, self.scene.forest.link_com[index] if point is None else point

    def _mass_with(self, link: int) -> float:
        """Mass of the part of the scene that a link belongs to [kg]."""
        forest = self.scene.forest
        part = next(p for p in forest.parts.values() if p.links.start <= link < p.links.stop)
        return float(forest.link_mass[part.links].sum())

    def _snapshot(self) -> Iterator[Floats]:
        """Positions, velocities, clocks and memory, as a State has them."""
        core = self._core
        return map(self._shape, (*core.read(), core.time(), core.memory()))

    def _shape(self, array: Floats) -> Floats:
        return array[0] if self._n == 1 else array

    def _leave(self) -> None:
        """Someone may still hold the present state: let it keep its numbers."""
        state = None if self._live is None else self._live()
        if state is not None:
            state._read()
        self._live = None

    def _raise(self) -> None:
        lost = self.diverged
        first = min(lost, key=lambda loss: loss.time)
        copies = [loss.copy for loss in lost]
        raise Diverged(first.time, first.joint, self.state.copy(), copies, singular=first.singular)

    def _mask(self, where: ArrayLike | None) -> Any:
        return None if where is None else copies_mask(where, self._n)

    def _vectors(self, where: ArrayLike | None, **given: ArrayLike | None) -> list[Floats]:
        """Vectors by name, with a row for each copy if they have rows; None is 0."""
        zero = np.zeros(3)
        return [self._rows(zero if x is None else x, where, name) for name, x in given.items()]

    def _rows(self, value: ArrayLike, where: ArrayLike | None, name: str) -> Floats:
        """An array of numbers, with a row for each copy if it has rows."""
        array = floats(value, name)
        return array if where is None else self._spread(array, where, name)

    def _spread(self, array: Floats, where: ArrayLike, name: str) -> Floats:
        """Rows of the k copies that `where` names as rows of all n; what else it is, as it is."""
        if array.ndim != 2 or len(array) == self._n:
            return array
        mask, given = copies_mask(where, self._n), np.asarray(where)
        copies = np.flatnonzero(mask) if given.dtype == bool else given.astype(np.int64).reshape(-1)
        if len(array) != len(copies):
            raise PoiseError(
                f"{name} has shape {array.shape}: it needs {len(copies)} rows, one for each copy "
                f"that `where` names, or {self._n}, one for each copy of the world"
            )
        if not len(copies):
            return array
        spread = np.repeat(array[:1], self._n, axis=0)
        spread[copies] = array
        return spread

    def _spread_time(self, time: Floats, where: ArrayLike) -> Floats:
        """Clocks of the copies that `where` names as clocks of all; a number as it is."""
        return time if not time.ndim else self._spread(time[:, None], where, "state.time")[:, 0]

    # ---- copies and pickles

    def __reduce__(self) -> tuple[Any, ...]:
        state = (*self._core.read(), self._core.time(), self._core.memory())
        faults = self._core.fault_table()
        options = {"threads": self.threads, "on_divergence": self.on_divergence}
        return _restored, (type(self), self._settings, options, self._gravity, state, faults)

    def __copy__(self) -> World:
        """A world with its own core in the same state; torques and contacts are not copied."""
        restore, arguments = self.__reduce__()
        world: World = restore(*arguments)
        return world

    def __deepcopy__(self, memo: Any) -> World:
        return self.__copy__()


def _restored(
    cls: type[World],
    config: WorldConfig,
    options: dict[str, Any],
    gravity: Floats,
    state: tuple[Floats, Floats, Floats, Floats],
    faults: Floats,
) -> World:
    """A world from its pickle."""
    world = cls.__new__(cls)
    given = config._asdict()
    World.__init__(world, list(given.pop("character")), **{**given, **options})
    world.gravity = gravity
    world._core.write(*state, None)
    world._core.restore_faults(faults)
    return world


def _check_contact(contact: str, dt: float, self_collision: Any, convex: Any) -> None:
    choice(contact, "contact", tuple(MODELS))
    if dt > LONGEST_STEP:
        raise PoiseError(
            f"dt is {dt:g} s; with contact it must be {LONGEST_STEP:g} s or less, as in dt=1/60"
        )
    if not isinstance(self_collision, (bool, np.bool_)):
        raise PoiseError(f"self_collision must be True or False, got {self_collision!r:.80}")
    if convex is not None and not isinstance(convex, (bool, np.bool_)):
        raise PoiseError(f"convex must be True, False or None, got {convex!r:.80}")


def _gravity(value: ArrayLike) -> Floats:
    gravity = np.array(finite(shaped(value, "gravity", (3,)), "gravity"))
    gravity.flags.writeable = False
    return gravity


_NOTHING = Command()
