"""The humanoid on the ground in PyBullet, held by its position motors.

They are constraints of its solver and know no stiffness: each takes back a share of the error in a
step. Its STABLE_PD_CONTROL, with the gains that the others have, loses its balance within 0.2 s.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np
from grounded import FRICTION, Hold, Stander, excluded_pairs
from scipy.spatial.transform import Rotation
from timing import Array

from poise import Character, Joint, Link
from poise.model.shape import Shape

GAINS = {"positionGain": 0.2, "velocityGain": 1.0}
"""Of the error in place, and in velocity, that a motor takes back in a step; it stands by these."""

STRONG = 1e4
"""Largest torque of a motor [N m]: no limit."""


def bullet_stander(bullet: Any, character: Character, hold: Hold) -> Stander:
    """Position motors in all joints; the gains of `hold` are not used."""
    client = bullet.connect(bullet.DIRECT)
    at = {"physicsClientId": client}
    bullet.setTimeStep(hold.dt, **at)
    bullet.setGravity(0.0, 0.0, -9.81, **at)
    ground = bullet.createMultiBody(0, bullet.createCollisionShape(bullet.GEOM_PLANE, **at), **at)
    # Bullet multiplies the coefficients of two surfaces
    bullet.changeDynamics(ground, -1, lateralFriction=1.0, **at)
    body = _loaded(bullet, character, hold, at)
    joints = list(range(bullet.getNumJoints(body, **at)))
    balls = [bullet.getJointInfo(body, k, **at)[2] == bullet.JOINT_SPHERICAL for k in joints]
    go = bullet.stepSimulation

    def step(k: int) -> None:
        for _ in range(k):
            go(**at)

    def watch(k: int) -> Array:
        rows = np.empty((k, 7 + character.nv - 6))
        for row in rows:
            step(1)
            row[:7] = _root(bullet, body, character, at)
            states = bullet.getJointStatesMultiDof(body, joints, **at)
            row[7:] = [x for state in states for x in state[1]]
        return rows

    def again() -> None:
        root = character.links[0]
        com = np.add(character.rest_q[:3], root.com)
        bullet.resetBasePositionAndOrientation(body, com.tolist(), [0, 0, 0, 1], **at)
        bullet.resetBaseVelocity(body, [0, 0, 0], [0, 0, 0], **at)
        for k, ball in enumerate(balls):
            if ball:
                bullet.resetJointStateMultiDof(body, k, [0, 0, 0, 1], [0, 0, 0], **at)
            else:
                bullet.resetJointState(body, k, 0.0, 0.0, **at)

    def contacts() -> int:
        return len(bullet.getContactPoints(**at))

    again()
    links = range(-1, len(joints))
    mass = sum(bullet.getDynamicsInfo(body, k, **at)[0] for k in links)
    return Stander("PyBullet, its motors", float(mass), step, watch, contacts, again)


def _root(bullet: Any, body: int, character: Character, at: dict[str, int]) -> Array:
    """Place and quaternion, w x y z, of the root's frame; Bullet's is at the center of mass."""
    place, turn = bullet.getBasePositionAndOrientation(body, **at)
    moved = Rotation.from_quat(turn).apply(character.links[0].com)
    return np.array([*np.subtract(place, moved), turn[3], *turn[:3]])


def _loaded(bullet: Any, character: Character, hold: Hold, at: dict[str, int]) -> int:
    flags = bullet.URDF_USE_INERTIA_FROM_FILE
    if hold.self_collision:
        flags |= bullet.URDF_USE_SELF_COLLISION
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "character.urdf"
        path.write_text(urdf(character))
        body: int = bullet.loadURDF(str(path), flags=flags, **at)
    names = {character.links[0].name: -1}
    for k in range(bullet.getNumJoints(body, **at)):
        info = bullet.getJointInfo(body, k, **at)
        names[info[12].decode()] = k
        if info[2] == bullet.JOINT_SPHERICAL:
            bullet.setJointMotorControlMultiDof(
                body, k, bullet.POSITION_CONTROL, targetPosition=[0, 0, 0, 1],
                targetVelocity=[0, 0, 0], force=[STRONG] * 3, **GAINS, **at,
            )  # fmt: skip
        else:
            bullet.setJointMotorControl2(
                body, k, bullet.POSITION_CONTROL, targetPosition=0, targetVelocity=0,
                force=STRONG, **GAINS, **at,
            )  # fmt: skip
    for k in names.values():
        bullet.changeDynamics(
            body, k, lateralFriction=FRICTION, linearDamping=0, angularDamping=0, **at
        )
    if hold.self_collision:
        for one, two in excluded_pairs(character):
            bullet.setCollisionFilterPair(body, body, names[one], names[two], 0, **at)
    return body


# ---- URDF, with the spherical joints that PyBullet adds to it


def urdf(character: Character) -> str:
    """The character as PyBullet reads it; the root is free by itself."""
    lines = [f"<robot name={quoteattr(character.name)}>"]
    for link in character.links:
        lines += [f"<link name={quoteattr(link.name)}>", _inertial(link)]
        lines += [_collision(shape) for shape in link.shapes]
        lines.append("</link>")
        if link.parent is not None:
            lines.append(_joint(link, link.joints[0]))
    return "\n".join([*lines, "</robot>"])


def _inertial(link: Link) -> str:
    I = np.asarray(link.inertia)
    moments = " ".join(
        f'i{"xyz"[i]}{"xyz"[j]}="{float(I[i, j])!r}"' for i in range(3) for j in range(i, 3)
    )
    return (
        f'<inertial><origin xyz="{_text(link.com)}"/><mass value="{link.mass!r}"/>'
        f"<inertia {moments}/></inertial>"
    )


def _collision(shape: Shape) -> str:
    if shape.kind == "box":
        form = f'<box size="{_text(2.0 * np.array(shape.size))}"/>'
    elif shape.kind == "sphere":
        form = f'<sphere radius="{shape.size[0]!r}"/>'
    else:
        form = f'<capsule radius="{shape.size[0]!r}" length="{2.0 * shape.size[1]!r}"/>'
    return f"<collision>{_origin(shape.pos, shape.quat)}<geometry>{form}</geometry></collision>"


def _joint(link: Link, joint: Joint) -> str:
    kind = {"ball": "spherical", "hinge": "continuous"}[joint.kind]
    axis = f'<axis xyz="{_text(joint.axis)}"/>'
    return (
        f'<joint name={quoteattr(joint.name)} type="{kind}">'
        f"<parent link={quoteattr(link.parent or '')}/><child link={quoteattr(link.name)}/>"
        f"{_origin(link.pos, link.quat)}{axis}</joint>"
    )


def _origin(pos: Any, quat: Any) -> str:
    angles = Rotation.from_quat(np.roll(quat, -1)).as_euler("xyz")
    return f'<origin xyz="{_text(pos)}" rpy="{_text(angles)}"/>'


def _text(x: Any) -> str:
    return " ".join(repr(float(value)) for value in np.ravel(x))
