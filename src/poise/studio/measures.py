"""Measures of a frame of a world or of a recording, and their curves over time.

Only what is shown is measured: some thirty times a second, not in every step.
"""

from __future__ import annotations

import math
from collections import deque

import numpy as np
from numpy.typing import NDArray

from poise import dynamics, measure
from poise.math.arrays import Floats
from poise.math.polygon import Polygons
from poise.measure.centroid import Momentum
from poise.motion.limits import excesses
from poise.recording import Recording
from poise.recording.columns import Frame
from poise.simulation.contact.contacts import Contacts, CoreContacts
from poise.studio.scene_index import Group, SceneIndex
from poise.studio.snapshot import Measures

Bools = NDArray[np.bool_]

NEAR_LIMIT = math.radians(0.2)
"""A joint is at a bound if it is this near, or beyond [rad, m]."""

SATURATION = 0.999
"""A torque is saturated beyond this fraction of its limit."""

MIN_FORCE = 1e-6
"""Contacts with less are not shown [N]."""


def measure_recording(index: SceneIndex, recording: Recording, i: int, copy: int = 0) -> Measures:
    """Measures one copy in one frame of a recording.

    Args:
        index: Of the recording's scene.
        recording: The recording.
        i: Number of the frame.
        copy: Number of the copy.
    """
    contacts = recording.contacts(i)
    contacts = contacts.rows(contacts.copy == copy)
    contacts = contacts._replace(copy=np.zeros_like(contacts.copy))
    return measure_frame(index, frame_of(recording, i), contacts, copy)


def frame_of(recording: Recording, i: int) -> Frame:
    """A frame of a recording, without memory and contacts."""
    names = ("time", "q", "v", "torque", "gravity")
    time, q, v, torque, gravity = (recording.columns.column(name)[i] for name in names)
    projectiles, target = recording.projectile_state(i), recording.target(i)
    projectiles = projectiles.at(None) if recording.n == 1 else projectiles
    reference = None if target is None or target.v is None else (target.q, target.v)
    return Frame(time, q, v, torque, gravity, CoreContacts.none(), projectiles, None, reference)


def measure_frame(
    index: SceneIndex,
    frame: Frame,
    contacts: Contacts,
    copy: int = 0,
    planned: Floats | None = None,
) -> Measures:
    """Measures one copy of a scene at one time.

    Args:
        index: Of the scene.
        frame: The frame.
        contacts: Contacts of this copy in the step before.
        copy: Number of the copy.
        planned: Planned center of pressure of the first character [m], shape (3,), or None.
    """
    m, q, v = index.count, frame.q[copy], frame.v[copy]
    reference = None if frame.target is None else frame.target[0]
    if reference is not None and reference.ndim > 1:
        reference = reference[copy]
    com, velocity, linear, angular = (np.zeros((m, 3)) for _ in range(4))
    kinetic, potential = np.zeros((2, m))
    rotation, position, root_offset = np.full((3, m), np.nan)
    fallen: Bools = np.zeros(m, dtype=bool)
    at_limit: Bools = np.zeros(index.scene.nl, dtype=bool)
    own = _of_characters(index, contacts)
    for group in index.groups:
        at, one = group.rows, group.character
        poses, rates = q[group.q], v[group.v]
        com[at] = measure.center_of_mass(one, poses)
        momentum: Momentum = measure.momentum(one, poses, rates)
        linear[at], angular[at] = momentum
        velocity[at] = momentum.linear / max(one.mass, 1e-12)
        kinetic[at], potential[at] = dynamics.energy(one, poses, rates, gravity=frame.gravity)
        if reference is not None:
            error = measure.tracking_error(one, poses, reference[group.q])
            rotation[at], position[at] = error.rotation.mean(axis=-1), error.position.mean(axis=-1)
            root_offset[at] = error.world[:, 0]
        fallen[at] = _fallen(index, group, poses, own)
        at_limit[group.links] = _at_limit(group, poses)
    ground = index.ground(com[:, 0], com[:, 1])
    reaction = measure.ground_reaction(index.scene, own, copies=m, ground=ground)
    pivot = measure.centroidal_moment_pivot(com, reaction.force, ground)
    torque_ratio, saturated = _torque_ratios(index, frame.torque[copy])
    planned_cop = np.full((m, 3), np.nan)
    if planned is not None:
        planned_cop[0] = planned
    polygon = measure.support_polygon(own, copies=m)
    margin = np.stack([measure.support_margin(polygon, at) for at in (com, reaction.point, pivot)])
    measures = Measures(
        index=index, time=float(frame.time[copy]), q=q, reference=reference,
        projectiles=frame.projectiles.at(copy), contacts=_with_force(contacts),
        torque_ratio=torque_ratio, saturated=saturated, at_limit=at_limit,
        com=com, velocity=velocity,
        cop=reaction.point, cmp=pivot, planned_cop=planned_cop, margin=margin.T,
        ground_force=reaction.force, support=_support(index, polygon), linear=linear,
        angular=angular, kinetic=kinetic, potential=potential, rotation=rotation,
        position=position, root_offset=root_offset, fallen=fallen,
    )  # fmt: skip
    _make_read_only(measures)
    return measures


def _of_characters(index: SceneIndex, contacts: Contacts) -> Contacts:
    """Contacts of characters with the ground and obstacles; `copy` says which character."""
    inside = contacts.link < index.scene.nl
    owner = np.where(inside, index.owner[np.where(inside, contacts.link, 0)], -1)
    keep = (owner >= 0) & (contacts.other < 0)
    return Contacts._make(column[keep] for column in contacts._replace(copy=owner))


def _fallen(index: SceneIndex, group: Group, q: Floats, contacts: Contacts) -> Bools:
    """Whether characters of a group have fallen, by their heads and their ground contacts."""
    if not group.stands:
        return np.zeros(len(q), dtype=bool)
    place: Floats = q[:, :2] if group.character.joints[0].kind == "free" else np.zeros((len(q), 2))
    row = np.full(index.count, -1)
    row[group.rows] = np.arange(len(group.rows))
    here = row[contacts.copy] >= 0
    own = Contacts._make(column[here] for column in contacts)
    member = row[own.copy]
    own = own._replace(copy=member, link=own.link - group.links[member, 0])
    level = index.ground(place[:, 0], place[:, 1])
    return measure.fallen(group.character, q, own, ground=level)


def _support(index: SceneIndex, support: Polygons) -> tuple[Floats, ...]:
    """Corners of the support polygons, on the ground."""
    flat, sizes = support
    height = index.ground(flat[..., 0], flat[..., 1])[..., None]
    corners = np.concatenate([flat, height], axis=-1)
    return tuple(one[:size] for one, size in zip(corners, sizes.tolist(), strict=True))


def _torque_ratios(index: SceneIndex, torque: Floats) -> tuple[Floats, Bools]:
    """Largest torque ratio of the joints of each link, and whether one is at its limit."""
    forest = index.scene.forest
    size = np.sqrt(np.add.reduceat(np.square(torque), forest.v_adr))
    ratio, saturated = np.zeros(index.scene.nl), np.zeros(index.scene.nl, dtype=bool)
    np.maximum.at(ratio, forest.link, size / index.scale)
    np.logical_or.at(saturated, forest.link, size >= SATURATION * index.effort)
    return ratio, saturated


def _at_limit(group: Group, q: Floats) -> Bools:
    """Which links of the characters of a group have a joint at a bound, shape (k, nl)."""
    out: Bools = np.zeros(group.links.shape, dtype=bool)
    link_of = {
        joint.name: i for i, link in enumerate(group.character.links) for joint in link.joints
    }
    for bound in excesses(group.character, q):
        out[:, link_of[bound.joint]] |= bound.value > -NEAR_LIMIT
    return out


def _with_force(contacts: Contacts) -> Contacts:
    """Contacts with a force."""
    return contacts.rows(np.square(contacts.force).sum(axis=1) > MIN_FORCE**2)


def _make_read_only(measures: Measures) -> None:
    """Makes all arrays read-only."""
    for value in (*vars(measures).values(), *measures.support, *measures.contacts):
        if isinstance(value, np.ndarray):
            value.flags.writeable = False


# ---- curves over time

SPAN = 10.0
"""Time that curves show [s]."""

TRAIL = 4.0
"""Time that the trail shows [s]."""

MAX_SAMPLES = 1200
"""In slow motion there are many in a second."""


class Series:
    """Measures of the last seconds, in the order of their time."""

    def __init__(self) -> None:
        self._measures: deque[Measures] = deque(maxlen=MAX_SAMPLES)
        self._seen: tuple[Measures, ...] = ()  # the same, for other threads

    def append(self, measures: Measures) -> None:
        """Adds measures; later ones, and those of another scene, are removed."""
        held = self._measures
        if held and held[-1].index.number != measures.index.number:
            held.clear()
        while held and held[-1].time >= measures.time - 1e-9:
            held.pop()
        held.append(measures)
        while held[0].time < measures.time - SPAN:
            held.popleft()
        self._seen = tuple(held)

    def clear(self) -> None:
        """Removes all."""
        self._measures.clear()
        self._seen = ()

    def trail(self, character: int, now: float) -> Floats:
        """Path of a center of mass up to a time [s], oldest first, shape (k, 3) [m]."""
        path = [m.com[character] for m in self._seen if now - TRAIL <= m.time <= now + 1e-9]
        trail: Floats = np.array(path).reshape(-1, 3)
        trail.flags.writeable = False
        return trail

    def curves(self, character: int, now: float) -> dict[str, Floats]:
        """Curves up to a time [s], each of shape (k,), and their time; NaN where undefined.

        Errors "rotation" and "position" [degrees, m], norms of momentum "linear" and "angular"
        [N s, N m s], energies "kinetic" and "potential" [J], "ground_force" [N]; of a standing
        character, momentum along each axis, as "linear_x" [N s, N m s], support margins of center
        of mass, CoP and CMP "com_margin", "cop_margin" and "cmp_margin" [cm], and distance between
        CoP and planned CoP "cop_error" [cm].
        """
        seen = [m for m in self._seen if m.time <= now + 1e-9 and character < len(m.com)]

        def rows(name: str, *shape: int) -> Floats:
            found = np.array([getattr(m, name)[character] for m in seen])
            return found.reshape(len(seen), *shape)

        scalars = ("rotation", "position", "kinetic", "potential")
        momentum = {name: rows(name, 3) for name in ("linear", "angular")}
        vectors = momentum | {"ground_force": rows("ground_force", 3)}
        margins = 100.0 * rows("margin", 3)
        return {
            "time": np.array([m.time for m in seen]),
            **{name: rows(name) for name in scalars},
            **{name: np.linalg.norm(vector, axis=1) for name, vector in vectors.items()},
            **{f"{x}_{axis}": momentum[x][:, i] for x in momentum for i, axis in enumerate("xyz")},
            **{f"{point}_margin": margins[:, i] for i, point in enumerate(("com", "cop", "cmp"))},
            "cop_error": 100.0 * np.linalg.norm(rows("cop", 3) - rows("planned_cop", 3), axis=1),
        }
