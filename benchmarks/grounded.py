"""The humanoid on the ground, ours and MuJoCo's: same masses, shapes, pairs and gains.

MuJoCo holds the pose by joint springs and dampers, which each of its integrators takes in its own
way. Pairs of links that our world leaves out (neighbours, and those that overlap in the rest pose)
are left out here, too. DART and PyBullet have files of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from engines import find_modules
from timing import Array

from poise import Character, Command, Drive, Gains, Target, World
from poise.model.formats import mjcf

FRICTION = 0.8
MUJOCO = ("Euler", "implicit", "implicitfast", "RK4", "discrete")
OPTIONAL = {"mujoco": "mujoco", "dart": "dartpy", "pybullet": "pybullet"}
"""Peers, and the modules they come in."""


@dataclass(frozen=True)
class Hold:
    """How a pose is held: gains of all joints but the root, and the step."""

    kp: float  # [N m/rad]
    kd: float  # [N m s/rad]
    dt: float  # [s]
    self_collision: bool = True

    def command(self, character: Character, form: str = "implicit") -> Command:
        """Ours: the rest pose, the root free."""
        kp, kd = np.full(character.nv, self.kp), np.full(character.nv, self.kd)
        kp[:6] = kd[:6] = 0.0
        return Command(drive=Drive(Gains(character, kp, kd), Target(character.rest_q), form=form))


@dataclass(frozen=True)
class Stander:
    """A humanoid in someone's engine, in its rest pose.

    Attributes:
        name: Of the engine.
        mass: Of all that moves, as the engine has it [kg].
        step: Takes so many steps; quickly, nothing is kept.
        watch: Takes so many steps k and returns rows: the root's place (3) and quaternion (4), then
            the joints' velocities, shape (k, 7 + nv - 6). Not finite once it has diverged.
        contacts: How many there are now.
        again: Puts it back into the rest pose, at rest.
    """

    name: str
    mass: float
    step: Callable[[int], None]
    watch: Callable[[int], Array]
    contacts: Callable[[], int]
    again: Callable[[], None]


def find_engines() -> tuple[dict[str, Any], dict[str, str]]:
    """The engines that are here, and why the others are not."""
    return find_modules(OPTIONAL)


def standing(character: Character, root: Array) -> bool:
    """Whether roots (..., 7) are finite, upright, and within 5 cm of the rest pose's height."""
    if not np.isfinite(root).all():
        return False
    up = 1.0 - 2.0 * (root[..., 4:6] ** 2).sum(axis=-1)
    level = np.abs(root[..., 2] - character.rest_q[2])
    return bool((up > 0.99).all() and (level < 0.05).all())


def excluded_pairs(character: Character) -> list[tuple[str, str]]:
    """Pairs of links that never touch in our world."""
    touch = World(character, dt=1 / 60, projectiles=0)._collision_model
    assert touch is not None
    link = touch.colliders.link
    pairs = zip(link[touch.pairs.a].tolist(), link[touch.pairs.b].tolist(), strict=True)
    meet = {frozenset(pair) for pair in pairs}
    names = [link.name for link in character.links]
    return [
        (names[i], names[j])
        for i in range(len(names))
        for j in range(i + 1, len(names))
        if frozenset((i, j)) not in meet
    ]


# ---- ours


def our_stander(character: Character, hold: Hold, form: str) -> Stander:
    """One character in float64."""
    world = World(character, dt=hold.dt, self_collision=hold.self_collision, on_divergence="freeze")
    command = hold.command(character, form)

    def step(k: int) -> None:
        world.step(command, steps=k)

    def watch(k: int) -> Array:
        rows = np.full((k, 7 + character.nv - 6), np.nan)
        for row in rows:
            world.step(command)
            if world.diverged:
                break
            row[:7], row[7:] = world.state.q[:7], world.state.v[6:]
        return rows

    mass = float(sum(link.mass for link in character.links))
    count = lambda: len(world.contacts.copy)  # noqa: E731
    return Stander(f"poise {form}", mass, step, watch, count, world.reset)


# ---- MuJoCo


def mujoco_stander(
    mujoco: Any, character: Character, hold: Hold, integrator: str
) -> Stander | None:
    """By `mujoco.rollout` on the calling thread; None if this MuJoCo lacks the integrator."""
    number = getattr(mujoco.mjtIntegrator, f"mjINT_{integrator.upper()}", None)
    if number is None:
        return None
    model = mujoco_model(mujoco, character, hold)
    model.opt.integrator = number
    data = mujoco.MjData(model)
    now = np.concatenate([np.zeros(1), character.rest_q, np.zeros(character.nv)])[None]
    roll = mujoco.rollout.Rollout(nthread=0).rollout
    kept: dict[int, tuple[Array, Array]] = {}
    nq = character.nq

    def forward(k: int) -> Array:
        if k not in kept:
            kept[k] = np.empty((1, k, now.size)), np.empty((1, k, model.nsensordata))
        states, sensors = kept[k]
        roll(model, data, now, None, nstep=k, state=states, sensordata=sensors)
        now[:] = states[:, -1]
        taken: Array = states[0]
        return taken

    def watch(k: int) -> Array:
        before = now[0, 0]
        with quiet(mujoco):
            states = forward(k)
        rows = np.concatenate([states[:, 1:8], states[:, 1 + nq + 6 :]], axis=1)
        # a rollout that diverges stops, and repeats its last state
        late = states[:, 0] < before + (np.arange(k) + 0.5) * hold.dt
        rows[late] = np.nan
        return rows

    def contacts() -> int:
        data.qpos[:], data.qvel[:] = now[0, 1 : 1 + nq], now[0, 1 + nq :]
        mujoco.mj_forward(model, data)
        return int(data.ncon)

    def again() -> None:
        now[:] = 0.0
        now[0, 1 : 1 + nq] = character.rest_q

    def step(k: int) -> None:
        forward(k)

    mass = float(model.body_mass.sum())
    return Stander(f"MuJoCo {integrator}", mass, step, watch, contacts, again)


def mujoco_model(mujoco: Any, character: Character, hold: Hold) -> Any:
    """The character over a plane, springs and dampers in its joints; MuJoCo's options else."""
    spec = mujoco.MjSpec.from_string(mjcf.dump(character))
    surface = [FRICTION, 0.005, 0.0001]
    for geom in spec.geoms:
        geom.friction, geom.conaffinity = surface, int(hold.self_collision)
    plane = mujoco.mjtGeom.mjGEOM_PLANE
    spec.worldbody.add_geom(type=plane, size=[50, 50, 1], friction=surface, conaffinity=1)
    if hold.self_collision:
        for one, two in excluded_pairs(character):
            spec.add_exclude(bodyname1=one, bodyname2=two)
    model = spec.compile()
    model.opt.timestep = hold.dt
    model.dof_damping[6:] = hold.kd
    model.jnt_stiffness[1:] = hold.kp
    model.qpos_spring[:] = character.rest_q
    return model


@contextmanager
def quiet(mujoco: Any) -> Iterator[None]:
    """MuJoCo writes a file of warnings where it runs when something diverges: not here."""
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(lambda message: None)
    try:
        yield
    finally:
        mujoco.set_mju_user_warning(before)
