"""The humanoid on the ground in DART, held by joint springs and dampers."""

from __future__ import annotations

from typing import Any

import numpy as np
from grounded import FRICTION, Hold, Stander, excluded_pairs
from timing import Array

from poise import Character
from poise.math.rotation import quat_matrix
from poise.model.shape import Shape


def dart_stander(dart: Any, character: Character, hold: Hold) -> Stander:
    """Joint springs and dampers, which DART takes implicitly; Bullet's or FCL's collisions."""
    body = _dart_body(dart, character, hold)
    world = dart.simulation.World()
    world.setTimeStep(hold.dt)
    world.setGravity([0.0, 0.0, -9.81])
    solver = world.getConstraintSolver()
    for kind in ("BulletCollisionDetector", "FCLCollisionDetector"):
        if hasattr(dart.collision, kind):
            solver.setCollisionDetector(getattr(dart.collision, kind)())
            break
    world.addSkeleton(body)
    world.addSkeleton(_dart_ground(dart))
    if hold.self_collision:
        body.enableSelfCollisionCheck()
        # the solver's own: the option that holds it is a copy
        barrier = solver.getCollisionOption().collisionFilter
        for one, two in excluded_pairs(character):
            barrier.addBodyNodePairToBlackList(body.getBodyNode(one), body.getBodyNode(two))
    root, start = body.getBodyNode(0), np.array(body.getPositions())

    def step(k: int) -> None:
        for _ in range(k):
            world.step()

    def watch(k: int) -> Array:
        rows = np.empty((k, 7 + character.nv - 6))
        for row in rows:
            world.step()
            place = root.getTransform()
            row[:3], row[3:7] = place.translation(), _quaternion(place.rotation())
            row[7:] = body.getVelocities()[6:]
        return rows

    def again() -> None:
        body.setPositions(start)
        body.setVelocities(np.zeros(character.nv))

    def contacts() -> int:
        return int(world.getLastCollisionResult().getNumContacts())

    return Stander("DART", float(body.getMass()), step, watch, contacts, again)


def _dart_body(dart: Any, character: Character, hold: Hold) -> Any:
    dynamics = dart.dynamics
    body = dynamics.Skeleton(character.name)
    kinds = {"free": "Free", "ball": "Ball", "hinge": "Revolute"}
    nodes: dict[str | None, Any] = {None: None}
    for link in character.links:
        (joint,) = link.joints
        kind = kinds[joint.kind]
        properties = getattr(dynamics, f"{kind}JointProperties")()
        properties.mName = joint.name
        if kind == "Revolute":
            properties.mAxis = np.array(joint.axis)
        if kind != "Free":
            properties.mT_ParentBodyToJoint = _dart_pose(dart, link.pos, link.quat)
        own = dynamics.BodyNodeProperties(dynamics.BodyNodeAspectProperties(link.name))
        make = getattr(body, f"create{kind}JointAndBodyNodePair")
        made, node = make(nodes[link.parent], properties, own)
        node.setInertia(dynamics.Inertia(link.mass, np.array(link.com), np.array(link.inertia)))
        if kind != "Free":
            for k in range(made.getNumDofs()):
                made.setSpringStiffness(k, hold.kp)
                made.setDampingCoefficient(k, hold.kd)
        for shape in link.shapes:
            _dart_shape(dart, node, shape)
        nodes[link.name] = node
    positions = np.zeros(body.getNumDofs())
    positions[3:6] = character.rest_q[:3]
    body.setPositions(positions)
    return body


def _dart_shape(dart: Any, node: Any, shape: Shape) -> None:
    dynamics = dart.dynamics
    if shape.kind == "box":
        form = dynamics.BoxShape(2.0 * np.array(shape.size))
    elif shape.kind == "sphere":
        form = dynamics.SphereShape(shape.size[0])
    else:
        form = dynamics.CapsuleShape(shape.size[0], 2.0 * shape.size[1])
    made = node.createShapeNode(form)
    made.createCollisionAspect()
    made.createDynamicsAspect().setFrictionCoeff(FRICTION)
    made.setRelativeTransform(_dart_pose(dart, shape.pos, shape.quat))


def _dart_ground(dart: Any) -> Any:
    ground = dart.dynamics.Skeleton("ground")
    _, node = ground.createWeldJointAndBodyNodePair()
    made = node.createShapeNode(dart.dynamics.BoxShape([20.0, 20.0, 1.0]))
    made.createCollisionAspect()
    made.createDynamicsAspect().setFrictionCoeff(FRICTION)
    made.setRelativeTransform(_dart_pose(dart, (0.0, 0.0, -0.5), (1.0, 0.0, 0.0, 0.0)))
    return ground


def _dart_pose(dart: Any, pos: Any, quat: Any) -> Any:
    pose = dart.math.Isometry3()
    pose.set_translation(np.array(pos))
    pose.set_rotation(quat_matrix(np.array(quat)))
    return pose


def _quaternion(R: Array) -> Array:
    """w x y z of a turn that is not near pi."""
    w = 0.5 * np.sqrt(max(1.0 + np.trace(R), 1e-12))
    x = (R[2, 1] - R[1, 2]) / (4 * w)
    y = (R[0, 2] - R[2, 0]) / (4 * w)
    return np.array([w, x, y, (R[1, 0] - R[0, 1]) / (4 * w)])
