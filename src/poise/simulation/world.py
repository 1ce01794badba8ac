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
    copies_index,
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
from poise.model.inertia import body_inertia, model_overrides, with_projectiles
from poise.model.same_body import check_clip_fits
from poise.model.scene import Scene, scene_of
from poise.model.shape import Shape
from poise.simulation.command import Command
from poise.simulation.contact import Contacts, GroundLike, default_projectiles
from poise.simulation.contact.colliders import check_obstacles
from poise.simulation.contact.collision_model import (
    FRICTION,
    ITERATIONS,
    MODELS,
    MOST_ITERATIONS,
    MOST_SUBSTEPS,
    STIFFNESS,
    TOLERANCE,
    Projectiles,
    SurfaceCounts,
    compile_collision_model,
    surfaces_of,
)
from poise.simulation.contact.contacts import contacts_from_core
from poise.simulation.contact.ground import HeightField
from poise.simulation.fields import STATE, LinkPairs, link_indices, new_array, pair_indices
from poise.simulation.profile import Profile
from poise.simulation.rays import NOTHING, RayHits, ray_array, same_count
from poise.simulation.state import State
from poise.simulation.world_config import WorldConfig, kept, threads_of

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
        ground: True is the plane z = 0; False is none; or a Plane or a HeightField, which may have
            heights for each copy.
        obstacles: Shapes that stand still, placed in the world.
        contact: "impulse" (default), "penalty" (springs and dampers, for steps of 1 ms), or None:
            nothing touches, and joints have no limits.
        projectiles: How many balls wait to be thrown, or the objects themselves.
        friction: Coefficient, a number for everything, or of the links, shape (nl,) or (n, nl),
            or of all in a copy, shape (n, 1), or of every surface (links, projectiles, obstacles,
            ground) in each copy, (n, s). Two surfaces have the geometric mean of theirs.
        ground_friction: Of ground and obstacles; None takes `friction` if that is for everything.
        restitution: As friction; two surfaces have the larger of theirs.
        stiffness: Of contact by penalty [N/m at each point]; its damping and the viscosity of its
            friction are k / 100 and k / 25 [N·s/m].
        self_collision: Whether links of one character touch each other.
        exclude: Pairs of links that do not.
        convex: Whether convex meshes and cylinders meet other shapes, too; None is True. False:
            they meet only the ground, and everything else passes through them.
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
        iterations: At most this many sweeps of the contact solve in a step, 1 to 10000. Fewer are
            faster where many bodies touch, and let them sink and slip more.
        tolerance: The contact solve ends when a sweep changes no velocity by more than this
            [m/s, rad/s]; None is 1e-5, in float32 3e-5. Copies in motion end at 3e-5 of their
            fastest velocity if that is more.
        substeps: Steps that the core takes in each step of dt: fast limp bodies need shorter steps
            than their controller. Targets and forces are held, torques and contacts are those of
            the last one.
    """

    __slots__ = (
        "__weakref__",
        "_collision_model",
        "_core",
        "_dt",
        "_fitting",
        "_friction_changed",
        "_gravity",
        "_live",
        "_masses",
        "_n",
        "_on_divergence",
        "_scene",
        "_settings",
        "_stale",
        "_step",
        "_whole",
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
        iterations: int = ITERATIONS,
        tolerance: float | None = None,
        substeps: int = 1,
    ) -> None:
        iterations = count(iterations, "iterations", most=MOST_ITERATIONS)
        substeps = count(substeps, "substeps", most=MOST_SUBSTEPS)
        tolerance = None if tolerance is None else number(tolerance, "tolerance", unit="m/s")
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
            _check_ground(ground, n)
            waiting = default_projectiles(projectiles)
            whole = scene_of([*scene.characters, *waiting]) if waiting else scene
            counts = SurfaceCounts(n, scene.nl, len(waiting), len(obstacles))
            names = scene.forest.link_names
            touch = compile_collision_model(
                whole,
                ground=ground,
                obstacles=obstacles,
                model=contact,
                friction=surfaces_of(counts, friction, "friction", ground_friction, names),
                restitution=surfaces_of(counts, restitution, "restitution", names=names),
                self_collision=self_collision,
                exclude=exclude,
                names=names,
                projectiles=len(waiting),
                convex=convex,
                stiffness=number(stiffness, "stiffness", unit="N/m"),
                iterations=iterations,
                tolerance=TOLERANCE[dtype] if tolerance is None else tolerance,
            )
            overrides = with_projectiles(overrides, scene, whole)
        self._collision_model, self._whole = touch, whole
        self._masses: Floats | None = None  # (n, nl), once a reset has changed them
        self._friction_changed = self._stale = False
        single, workers = dtype == "float32", threads_of(threads, n)
        self._core = _core.World(
            scene.model,
            whole.model,
            n,
            dt / substeps,
            single,
            workers,
            self._gravity,
            overrides,
            touch,
        )
        self._core.correct_momentum(bool(momentum_correction))
        self._core.set_substeps(substeps)
        self._live: weakref.ref[State] | None = None
        self._step = self._core.step
        self._settings = WorldConfig.of(
            scene.characters, n=n, dt=dt, dtype=dtype, ground=ground,
            obstacles=obstacles, contact=contact, projectiles=projectiles, friction=friction,
            ground_friction=ground_friction, restitution=restitution, stiffness=stiffness,
            self_collision=self_collision, exclude=exclude, convex=convex,
            gravity=gravity, on_divergence=self.on_divergence, mass=mass, inertia=inertia,
            armature=armature, momentum_correction=bool(momentum_correction),
            iterations=iterations, tolerance=tolerance, substeps=substeps,
        )  # fmt: skip
        self.reset()

    # ---- what it is; fixed when it is built, but for gravity and on_divergence

    n: int = _fixed("n", "Number of copies.", "_n")
    dt: float = _fixed("dt", "Time step [s].", "_dt")
    dtype: str = _fixed("dtype", 'Precision inside, "float64" or "float32".')
    friction: Floats = _fixed(
        "friction", "Coefficient of friction, as it was given.", "settings.friction"
    )
    ground_friction: float | None = _fixed("ground_friction", "Of ground and obstacles.")
    restitution: Floats = _fixed("restitution", "Coefficient of restitution, as it was given.")
    ground: GroundLike = _fixed("ground", "The ground, as it was given.")
    obstacles: tuple[Shape, ...] = _fixed("obstacles", "Shapes that stand still.")
    projectiles: int | tuple[Character, ...] = _fixed("projectiles", "What waits to be thrown.")
    stiffness: float = _fixed("stiffness", "Of contact by penalty [N/m].")
    self_collision: bool = _fixed("self_collision", "Whether links of one character touch.")
    exclude: tuple[tuple[str, str], ...] = _fixed("exclude", "Pairs of links that do not touch.")
    convex: bool | None = _fixed("convex", "Whether convex meshes meet other shapes.")
    mass: Floats | None = _fixed("mass", "Masses of the links, if given [kg].", "settings.mass")
    inertia: Floats | None = _fixed("inertia", "Inertias of the links, if given [kg m^2].")
    armature: Floats | None = _fixed("armature", "Rotor inertias, if given [kg m^2, kg].")
    momentum_correction: bool = _fixed("momentum_correction", "Whether momentum is corrected.")
    iterations: int = _fixed("iterations", "Most sweeps of the contact solve in a step.")
    tolerance: float | None = _fixed("tolerance", "Of the contact solve, as it was given [m/s].")
    substeps: int = _fixed("substeps", "Steps of the core in each step.")
    contact: str | None = _fixed("contact", 'Model of contact: "impulse", "penalty" or None.')

    @property
    def scene(self) -> Scene:
        """The parts of the scene, compiled, without what waits to be thrown."""
        if self._stale:
            self._refresh()
        return self._scene

    @property
    def settings(self) -> WorldConfig:
        """What the world was built with, and what resets have changed of it."""
        if self._stale:
            self._refresh()
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
        """The present state. Each of its arrays is copied when it is first read."""
        state = None if self._live is None else self._live()
        if state is None or not state._is_unread:
            # what has been read may have been written to
            self._leave()
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

    def read(
        self,
        *names: str,
        q: NDArray[Any] | None = None,
        v: NDArray[Any] | None = None,
        time: NDArray[Any] | None = None,
        torque: NDArray[Any] | None = None,
        link_position: NDArray[Any] | None = None,
        link_quat: NDArray[Any] | None = None,
        link_velocity: NDArray[Any] | None = None,
        link_angular_velocity: NDArray[Any] | None = None,
        link_contact: NDArray[np.bool_] | None = None,
        link_contact_force: NDArray[Any] | None = None,
        pair_contact: NDArray[np.bool_] | None = None,
        pair_contact_force: NDArray[Any] | None = None,
        links: Sequence[str | int] | NDArray[Any] | None = None,
        pairs: LinkPairs | None = None,
        dtype: DtypeLike = "float64",
    ) -> dict[str, NDArray[Any]]:
        """Reads fields of all copies at once, into given arrays or into new ones.

        `world.read(q=q, v=v)` fills the arrays; `world.read("q", "v")` makes them. Given arrays are
        C-contiguous, of float32 or float64 whatever the world's precision is, or of bool. A world
        of one has no leading axis n. The nl links are those of `links`, else all, in the order of
        `scene.forest.link_names`.

        Args:
            names: Fields to return in new arrays; `read()` alone returns q, v and time.
            q: Positions, shape (n, nq).
            v: Velocities, shape (n, nv).
            time: Clocks [s], shape (n,).
            torque: Of drive and forces in the last step [N, N·m], shape (n, nv).
            link_position: Origins of the link frames in the world [m], shape (n, nl, 3).
            link_quat: Orientations of the links, w x y z, shape (n, nl, 4).
            link_velocity: Of those origins, in world axes [m/s], shape (n, nl, 3).
            link_angular_velocity: In world axes [rad/s], shape (n, nl, 3).
            link_contact: Whether a link touched anything in the last step, bool, shape (n, nl).
            link_contact_force: Sum of the contact forces on each link, the mean over the last step
                [N], shape (n, nl, 3).
            pair_contact: Whether the links of each pair touched, bool, shape (n, k).
            pair_contact_force: On the first of each pair [N], shape (n, k, 3).
            links: Which links the fields `link_...` are of, by names or indices; None is all.
            pairs: The k pairs, by names or indices of links; the second may be "ground", or
                -2 - i for the obstacle i. An integer array (k, 2) is the fastest.
            dtype: Of new arrays, "float64" or "float32".

        Returns:
            All fields by name, those that were given too.
        """
        given = {
            "q": q, "v": v, "time": time, "torque": torque, "link_position": link_position,
            "link_quat": link_quat, "link_velocity": link_velocity,
            "link_angular_velocity": link_angular_velocity, "link_contact": link_contact,
            "link_contact_force": link_contact_force, "pair_contact": pair_contact,
            "pair_contact_force": pair_contact_force,
        }  # fmt: skip
        fields = {name: array for name, array in given.items() if array is not None}
        if not fields and not names:
            names = STATE
        chosen = None
        if pairs is not None:
            chosen = pair_indices(self._scene, len(self._settings.obstacles), pairs)
        elif any(name.startswith("pair_") for name in (*names, *fields)):
            raise PoiseError('pair_contact and pair_contact_force need pairs=[("foot", "ground")]')
        some = None if links is None else link_indices(self._scene, links)
        kind, count = precision(dtype), 0 if chosen is None else len(chosen)
        sizes = (self._scene.nl if some is None else len(some), count)
        for name in names:
            if name not in fields:
                fields[name] = new_array(name, self._scene, self._n, sizes, kind)
        self._core.read_into(fields, some, chosen)
        return fields

    def ray(
        self,
        origins: ArrayLike,
        directions: ArrayLike,
        *,
        max_distance: float = math.inf,
        ground: bool = True,
        links: bool = True,
        exclude: Sequence[str | int] = (),
    ) -> RayHits:
        """Casts rays: the nearest surface of ground, obstacles, links and projectiles along each.

        A ray that starts inside a solid hits it where it leaves; the ground is hit from above only.
        Meshes are their convex hulls.

        Args:
            origins: Where the rays start, in the world [m], shape (k, 3) or (n, k, 3); or (3,).
            directions: Where to, of any length but 0, shaped alike.
            max_distance: Nothing is hit beyond [m].
            ground: Whether the ground is hit.
            links: Whether links and projectiles are hit. False leaves the terrain: ground and
                obstacles; that is also faster.
            exclude: Names or indices of links that are not hit, as those of the character that
                senses.
        """
        start, way = same_count(
            ray_array(origins, "origins", self._n), ray_array(directions, "directions", self._n)
        )
        if self._collision_model is None:
            raise PoiseError("a ray hits nothing: this world is built with contact=None")
        if not (isinstance(max_distance, float) and max_distance == math.inf):
            max_distance = number(max_distance, "max_distance", unit="m")
        if isinstance(exclude, str):
            raise PoiseError(f"exclude takes a list of links, as in exclude=[{exclude!r}]")
        skipped = np.zeros(self._whole.nl, dtype=np.int32)
        for link in exclude:
            skipped[self._scene.link_index(link)] = 1
        distance, normal, link = self._core.ray(
            start, way, max_distance, bool(ground), bool(links), skipped, NOTHING
        )
        hits = (distance, normal, link.reshape(distance.shape))
        if np.ndim(origins) == np.ndim(directions) == 1:
            hits = (distance[:, 0], normal[:, 0], hits[2][:, 0])
        return RayHits(*(x[0] for x in hits) if self._n == 1 else hits)

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
        dt = self._dt / self._settings.substeps
        return contacts_from_core(self._core.contacts(), self._collision_model, dt).within(
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
        self,
        state: State | Mapping[str, State] | None = None,
        where: ArrayLike | None = None,
        *,
        friction: ArrayLike | None = None,
        mass: ArrayLike | None = None,
    ) -> None:
        """Put copies into a state; their clocks and memory come with it.

        The cost is that of the copies that are reset, whatever n is.

        Args:
            state: A State; None is the rest pose at rest, at time 0. Or states of parts by their
                names: the other parts stay where they are. Clocks are those of the states that have
                a time, as those of clips do, and stay if none has.
            where: Indices or mask of the copies; None is all. A state of k rows is for the k copies
                that it names, in this order; one of n rows has a row for each copy of the world.
            friction: A new coefficient in these copies: a number for everything (but ground and
                obstacles if the world has a `ground_friction`), or of the links, shape (nl,) or
                (k, nl), or of all in a copy, (k, 1). None leaves it.
            mass: New masses of the links in these copies [kg], shape (nl,) or (k, nl); inertias
                scale along, unless the world was built with its own. None leaves them. Controllers
                that were made before go on with the masses they know.
        """
        copies = None if where is None else copies_index(where, self._n)
        if state is None:
            state = State(self.scene.forest.rest_q)
        if isinstance(state, Mapping):
            state = self._with_parts(state, copies)
        if not isinstance(state, State):
            raise PoiseError(f"reset takes a State, got {state!r:.80}")
        if state.clip is not None:
            self._check_clip(state.clip)
        q, memory = state.q, state.memory
        v = state.v if state.has_velocity else np.zeros(self.scene.nv)
        k = self._n if copies is None else len(copies)
        q, v = self._chosen(q, copies, "state.q"), self._chosen(v, copies, "state.v")
        clocks = self._clocks(state.time, copies)
        if memory is not None:
            memory = self._memory_rows(memory, copies, k)
        surfaces = None if friction is None else self._surfaces(friction, copies, k)
        bodies = None
        if mass is not None:
            mass = self._chosen(floats(mass, "mass"), copies, "mass")
            inertia = self._settings.inertia
            if inertia is not None and inertia.ndim == 4 and copies is not None:
                inertia = inertia[copies]
            bodies = body_inertia(self._scene, self._whole, k, mass, inertia)
        self._leave()
        self._core.write(q, v, clocks, memory, copies)
        rows: Any = slice(None) if copies is None else copies
        if surfaces is not None:
            self._core.write_friction(surfaces, copies)
            self._friction()[rows] = surfaces
            self._friction_changed = self._stale = True
        if bodies is not None:
            self._core.write_inertia(*bodies, copies)
            if self._masses is None:
                known = self._settings.mass
                known = self._scene.forest.link_mass if known is None else known
                self._masses = np.array(np.broadcast_to(known, (self._n, self._scene.nl)))
            self._masses[rows] = mass
            self._stale = True

    def step(self, command: Command | None = None, steps: int = 1) -> None:
        """Advance by `steps` time steps under one command.

        A target of k rows is followed row by row, and steps must be k. Everything else is held.
        """
        live = self._live
        if live is not None:
            state = live()
            if state is not None:
                state._keep()
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
            lost = self._step(
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
        with np.errstate(over="ignore"):  # push refuses what is not finite
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

    def profile(self) -> Profile:
        """Measures the steps of a block: `with world.profile() as profile: ...; print(profile)`.

        A step within costs some more; its result is the same, bit for bit.
        """
        return Profile(self)

    @property
    def projectile_state(self) -> Projectiles:
        """Which projectiles have been thrown, and their positions and velocities."""
        state = Projectiles.of(self._core.projectiles())
        return state.at(0) if self._n == 1 else state

    # ---- inside

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

    def _with_parts(self, states: Mapping[str, State], copies: NDArray[np.int64] | None) -> State:
        """The present state of the copies with parts replaced; a cold start."""
        q, v, now = *self._core.read(), self._core.time()
        if copies is not None:
            q, v, now = q[copies], v[copies], now[copies]
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
                new = self._chosen(new, copies, f"state.{what}")
                if new.shape not in ((size,), (len(q), size)):
                    raise PoiseError(
                        f"state.{what} of part {name!r} has shape {new.shape}, expected ({size},)"
                        f" or ({len(q)}, {size})"
                    )
                array[:, at] = new
            if state.clip is not None or np.any(state.time):
                clocks[name] = self._clocks(state.time, copies)
        first = next(iter(clocks.values()), now)
        for name, clock in clocks.items():
            if not np.array_equal(clock, first):
                raise PoiseError(
                    f"states of parts have different times, {float(first[0]):.4g} s, and "
                    f"{float(clock[0]):.4g} s of {name!r}; a world has one clock for each copy"
                )
        return State(q, v, np.array(first))

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

    def _read_state(self) -> tuple[Floats, Floats]:
        """Positions and velocities, as a State has them."""
        q, v = self._core.read()
        return self._shape(q), self._shape(v)

    def _shape(self, array: Floats) -> Floats:
        return array[0] if self._n == 1 else array

    def _leave(self) -> None:
        """Someone may still hold the present state: let it keep its numbers."""
        state = None if self._live is None else self._live()
        if state is not None:
            state._keep()
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

    def _chosen(self, array: Floats, copies: NDArray[np.int64] | None, name: str) -> Floats:
        """Rows of the copies that are meant; a single row as it is."""
        if array.ndim != 2 or copies is None or (len(array) == len(copies) != self._n):
            return array
        if len(array) != self._n:
            raise PoiseError(
                f"{name} has shape {array.shape}: it needs {len(copies)} rows, one for each copy "
                f"that `where` names, or {self._n}, one for each copy of the world"
            )
        return array[copies]

    def _memory_rows(self, memory: Floats, copies: NDArray[np.int64] | None, k: int) -> Floats:
        """A row of memory for each of the k copies that are meant; the core checks their length."""
        if memory.ndim in (1, 2):
            rows = np.atleast_2d(self._chosen(memory, copies, "state.memory"))
            if len(rows) in (1, k):
                return np.ascontiguousarray(np.broadcast_to(rows, (k, rows.shape[1])))
        each = "" if k == 1 else f", or {k}, one for each copy that is reset"
        raise PoiseError(f"state.memory has shape {memory.shape}: it needs one row{each}")

    def _clocks(self, time: Floats, copies: NDArray[np.int64] | None) -> Floats:
        """A clock for each of the copies that are meant."""
        k = self._n if copies is None else len(copies)
        if time.shape not in ((), (1,), (k,), (self._n,)):
            expected = f"() or ({self._n},)" if k == self._n else f"(), ({k},) or ({self._n},)"
            raise PoiseError(f"state.time has shape {time.shape}, expected {expected}")
        if copies is not None and time.shape == (self._n,):
            time = time[copies]
        return np.ascontiguousarray(finite(np.broadcast_to(time, (k,)), "state.time"))

    def _surfaces(self, friction: ArrayLike, copies: NDArray[np.int64] | None, k: int) -> Floats:
        """Friction of all surfaces in k copies, (s,) or (k, s)."""
        config, touch = self._settings, self._collision_model
        if touch is None:
            raise PoiseError("friction acts between what touches: this world has contact=None")
        given = self._chosen(floats(friction, "friction"), copies, "friction")
        counts = SurfaceCounts(k, self._scene.nl, touch.projectiles, len(config.obstacles))
        return surfaces_of(counts, given, "friction", config.ground_friction)

    def _friction(self) -> Floats:
        """Friction of all surfaces in each copy, (n, s), to be written to."""
        touch = self._collision_model
        assert touch is not None
        if not self._friction_changed:
            table = np.array(np.broadcast_to(touch.friction, (self._n, touch.surfaces)))
            self._collision_model = touch = touch._replace(friction=table)
        return touch.friction

    def _refresh(self) -> None:
        """Scene and settings with the masses and the friction that resets have changed."""
        self._stale = False
        settings, touch = self._settings, self._collision_model
        if self._masses is not None:
            settings = settings._replace(mass=kept(self._masses, "mass"))
            given = (settings.mass, settings.inertia, settings.armature)
            overrides = model_overrides(self._scene, self._n, *given)
            self._scene = self._scene._replace(overrides=overrides)
        if touch is not None and self._friction_changed:
            settings = settings._replace(friction=kept(touch.friction, "friction"))
        self._settings = settings

    # ---- copies and pickles

    def __reduce__(self) -> tuple[Any, ...]:
        state = (*self._core.read(), self._core.time(), self._core.memory())
        faults = self._core.fault_table()
        options = {"threads": self.threads, "on_divergence": self.on_divergence}
        return _restored, (type(self), self.settings, options, self._gravity, state, faults)

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


def _check_ground(ground: GroundLike, n: int) -> None:
    if isinstance(ground, HeightField) and ground.copies not in (None, n):
        raise PoiseError(
            f"heights has shape {ground.heights.shape}, the ground of {ground.copies} copies; the "
            f"world has {n}"
        )


def _gravity(value: ArrayLike) -> Floats:
    gravity = np.array(finite(shaped(value, "gravity", (3,)), "gravity"))
    gravity.flags.writeable = False
    return gravity


_NOTHING = Command()
