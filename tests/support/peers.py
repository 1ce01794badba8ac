"""Other people's engines as a second opinion: a Character as a MuJoCo or a Pinocchio model.

MuJoCo takes q and v as they are. Pinocchio wants quaternions as x y z w and the free joint's
linear velocity in the body's frame; `Pinocchio` carries the model and the conversions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray

from poise.model.character import Character, Joint, Link

Array = NDArray[np.float64]

GRAVITY = (0.0, 0.0, -9.81)


# MuJoCo


def to_mujoco(
    character: Character, *, gravity: ArrayLike = GRAVITY, dt: float = 0.002, passive: bool = False
) -> Any:
    """The character as an mujoco.MjModel: same q, same v, no geoms, no limits.

    Args:
        gravity: Acceleration of free fall [m/s²], shape (3,).
        dt: Time step [s].
        passive: Take the joints' damping, and the stiffness of hinges and slides, along.
    """
    mujoco = pytest.importorskip("mujoco")
    return mujoco.MjModel.from_xml_string(
        mujoco_xml(character, gravity=gravity, dt=dt, passive=passive)
    )


def mujoco_xml(
    character: Character, *, gravity: ArrayLike = GRAVITY, dt: float = 0.002, passive: bool = False
) -> str:
    """The character in MuJoCo's own format; link and joint names are kept."""
    children: dict[str | None, list[Link]] = {}
    for link in character.links:
        children.setdefault(link.parent, []).append(link)

    def element(link: Link) -> str:
        I = np.asarray(link.inertia)
        full = [I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2]]
        return (
            f"<body name={quoteattr(link.name)} pos='{_text(link.pos)}' quat='{_text(link.quat)}'>"
            f"<inertial pos='{_text(link.com)}' mass='{link.mass!r}' fullinertia='{_text(full)}'/>"
            + "".join(_mujoco_joint(joint, passive) for joint in link.joints)
            + "".join(element(child) for child in children.get(link.name, []))
            + "</body>"
        )

    return (
        "<mujoco><compiler angle='radian' inertiafromgeom='false'/>"
        f"<option gravity='{_text(gravity)}' timestep='{dt!r}'><flag energy='enable'/></option>"
        f"<worldbody>{''.join(element(root) for root in children[None])}</worldbody></mujoco>"
    )


def _mujoco_joint(joint: Joint, passive: bool) -> str:
    """One joint element."""
    attributes = f"name={quoteattr(joint.name)} type='{joint.kind}' armature='{joint.armature!r}'"
    if joint.kind in ("ball", "hinge"):
        attributes += f" pos='{_text(joint.pos)}'"
    if joint.kind in ("hinge", "slide"):
        attributes += f" axis='{_text(joint.axis)}'"
    if passive:
        attributes += f" damping='{joint.damping!r}'"
        if joint.kind in ("hinge", "slide"):
            rest = 0.0 if joint.reference is None else joint.reference
            attributes += f" stiffness='{joint.stiffness!r}' springref='{rest!r}'"
    return f"<joint {attributes}/>"


def _text(x: ArrayLike) -> str:
    """Numbers as text that reads back bit for bit."""
    return " ".join(repr(float(value)) for value in np.ravel(np.asarray(x, dtype=float)))


def mujoco_state(model: Any, q: ArrayLike, v: ArrayLike) -> Any:
    """mujoco.MjData at q and v with everything that follows from them computed."""
    mujoco = pytest.importorskip("mujoco")
    data = mujoco.MjData(model)
    data.qpos[:] = q
    data.qvel[:] = v
    mujoco.mj_forward(model, data)
    mujoco.mj_subtreeVel(model, data)
    return data


def mujoco_mass_matrix(model: Any, data: Any) -> Array:
    """M, shape (nv, nv)."""
    mujoco = pytest.importorskip("mujoco")
    M = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, M)
    return M


def mujoco_forward_dynamics(
    model: Any, q: ArrayLike, v: ArrayLike, tau: ArrayLike, external: Array | None = None
) -> Array:
    """The acceleration under joint forces and wrenches on links, shape (nv,).

    Args:
        external: Wrench on each link in the order of the character's links, world axes, force
            at the link's origin, shape (nl, 6).
    """
    mujoco = pytest.importorskip("mujoco")
    data = mujoco_state(model, q, v)
    data.qfrc_applied[:] = tau
    if external is not None:
        # MuJoCo's bodies come depth-first after the world, as our links do; its forces act at
        # the center of mass
        arm = data.xpos[1:] - data.xipos[1:]
        data.xfrc_applied[1:] = external
        data.xfrc_applied[1:, 3:] += np.cross(arm, external[:, :3])
    mujoco.mj_forward(model, data)
    return np.array(data.qacc)


def mujoco_jacobian(model: Any, data: Any, link: str, point: ArrayLike) -> tuple[Array, Array]:
    """J and its time derivative for a point given in the link's frame, each of shape (6, nv)."""
    mujoco = pytest.importorskip("mujoco")
    body = model.body(link).id
    p = data.xpos[body] + data.xmat[body].reshape(3, 3) @ np.asarray(point, dtype=float)
    J, J_rate = np.zeros((6, model.nv)), np.zeros((6, model.nv))
    mujoco.mj_jac(model, data, J[:3], J[3:], p, body)
    mujoco.mj_jacDot(model, data, J_rate[:3], J_rate[3:], p, body)
    return J, J_rate


# Pinocchio


@dataclass(frozen=True)
class Pinocchio:
    """A pinocchio.Model of a character, and the way of states to it and back.

    The free joint's linear velocity is turned into the body's frame: v_pin = T v, with
    T = diag(R', 1, ...). Forces go by the inverse transpose, which is T again: tau_pin = T tau;
    hence M = T' M_pin T. A body's frame turns, so a_pin = T a - (w x R' v_linear, 0, ...). The
    root's armature resists a with us and in MuJoCo, but a_pin in Pinocchio; we make up for it.
    """

    character: Character
    model: Any
    data: Any

    def q(self, q: ArrayLike) -> Array:
        """q as Pinocchio wants it: quaternions x y z w."""
        out = np.array(q, dtype=float)
        at = 0
        for joint in self.character.joints:
            end = at + joint.nq
            if joint.kind in ("free", "ball"):
                out[end - 4 : end] = np.roll(out[end - 4 : end], -1)
            at = end
        return out

    def T(self, q: ArrayLike) -> Array:
        """The matrix that turns our v, and our tau, into Pinocchio's, shape (nv, nv)."""
        T = np.eye(self.character.nv)
        if self.floating:
            T[:3, :3] = self._rotation(q).T
        return T

    def v(self, q: ArrayLike, v: ArrayLike) -> Array:
        """v as Pinocchio wants it."""
        v_pin: Array = self.T(q) @ np.asarray(v, dtype=float)
        return v_pin

    def a(self, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Array:
        """dv/dt as Pinocchio wants it."""
        a_pin: Array = self.T(q) @ np.asarray(a, dtype=float) - self.turning(q, v)
        return a_pin

    def turning(self, q: ArrayLike, v: ArrayLike) -> Array:
        """What the turning of the root's frame adds: a = T' (a_pin + turning)."""
        out = np.zeros(self.character.nv)
        if self.floating:
            v_pin = self.v(q, v)
            out[:3] = np.cross(v_pin[3:6], v_pin[:3])
        return out

    @property
    def floating(self) -> bool:
        """Whether the root has a free joint."""
        return self.character.joints[0].kind == "free"

    def _rotation(self, q: ArrayLike) -> Array:
        w, *u = np.asarray(q, dtype=float)[3:7]
        K = np.cross(np.eye(3), u)
        R: Array = np.eye(3) + 2 * w * K + 2 * K @ K
        return R

    # the algorithms, in and out in our conventions; gravity is the model's

    def mass_matrix(self, q: ArrayLike) -> Array:
        """M by crba, shape (nv, nv)."""
        pin = pytest.importorskip("pinocchio")
        n = self.character.nv
        M = np.triu(np.reshape(pin.crba(self.model, self.data, self.q(q)), (n, n)))
        M = M + np.triu(M, 1).T
        out: Array = self.T(q).T @ M @ self.T(q)
        return out

    def inverse_dynamics(self, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Array:
        """tau by rnea, shape (nv,)."""
        pin = pytest.importorskip("pinocchio")
        args = self.q(q), self.v(q, v), self.a(q, v, a)
        tau_pin = pin.rnea(self.model, self.data, *args)
        tau: Array = self.T(q).T @ (tau_pin + self.model.armature * self.turning(q, v))
        return tau

    def forward_dynamics(self, q: ArrayLike, v: ArrayLike, tau: ArrayLike) -> Array:
        """a by aba, shape (nv,)."""
        pin = pytest.importorskip("pinocchio")
        turning = self.turning(q, v)
        tau = self.T(q) @ np.asarray(tau, dtype=float) - self.model.armature * turning
        a_pin = pin.aba(self.model, self.data, self.q(q), self.v(q, v), tau)
        a: Array = self.T(q).T @ (a_pin + turning)
        return a

    def centroidal_momentum(self, q: ArrayLike, v: ArrayLike) -> tuple[Array, Array]:
        """The matrix by ccrba, and the bias by dccrba: rows linear, then angular."""
        pin = pytest.importorskip("pinocchio")
        args = self.q(q), self.v(q, v)
        # with one column the binding drops the second axis
        A = np.reshape(pin.ccrba(self.model, self.data, *args), (6, -1)).copy()
        A_rate = np.reshape(pin.dccrba(self.model, self.data, *args), (6, -1))
        return A @ self.T(q), A_rate @ args[1] - A @ self.turning(q, v)


def to_pinocchio(character: Character, *, gravity: ArrayLike = GRAVITY) -> Pinocchio:
    """The character as a Pinocchio model, joints depth-first.

    Pinocchio's joints turn about their frame's origin, so each joint's frame stands at the
    anchor. Several joints on one link become joints with nothing between them. What is welded
    to the world is left out.
    """
    pin = pytest.importorskip("pinocchio")
    model = pin.Model()
    model.gravity.linear = np.asarray(gravity, dtype=float)
    # each link's frame in the frame of the joint that carries it
    place: dict[str | None, tuple[int, Any]] = {None: (0, pin.SE3.Identity())}
    armature: list[float] = []
    for link in character.links:
        carrier, X = place[link.parent]
        w, x, y, z = link.quat
        X = X * pin.SE3(pin.Quaternion(w, x, y, z).toRotationMatrix(), np.array(link.pos))
        for joint in link.joints:
            if joint.kind == "free":
                X = pin.SE3.Identity()
            r = np.array(joint.pos) if joint.kind in ("ball", "hinge") else np.zeros(3)
            at_anchor = pin.SE3(np.eye(3), r)
            carrier = model.addJoint(
                carrier, _pinocchio_joint(pin, joint), X * at_anchor, joint.name
            )
            X = at_anchor.inverse()
            armature += [joint.armature] * joint.nv
        place[link.name] = carrier, X
        if carrier:
            inertia = pin.Inertia(link.mass, np.array(link.com), np.array(link.inertia))
            model.appendBodyToJoint(carrier, inertia, X)
    model.armature = np.array(armature)
    return Pinocchio(character, model, model.createData())


def _pinocchio_joint(pin: Any, joint: Joint) -> Any:
    """Pinocchio's model of a joint."""
    if joint.kind == "free":
        return pin.JointModelFreeFlyer()
    if joint.kind == "ball":
        return pin.JointModelSpherical()
    axis = np.array(joint.axis)
    if joint.kind == "hinge":
        return pin.JointModelRevoluteUnaligned(axis)
    return pin.JointModelPrismaticUnaligned(axis)
