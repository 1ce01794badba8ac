"""Summaries of a recording: metrics, a table for JSON, and the stance of one character.

All numbers are those of `poise.measure`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from poise import dynamics, measure
from poise.anatomy.feet import feet_of, positions
from poise.errors import PoiseError
from poise.math import rotation
from poise.math.arrays import Floats, runs
from poise.measure.effort import SHAKE
from poise.model import configuration
from poise.model.character import Character
from poise.model.forest import KINDS
from poise.model.scene import Scene
from poise.recording.columns import contacts_in
from poise.simulation.contact import Contacts

if TYPE_CHECKING:
    from poise.recording.recording import Recording

Bools = NDArray[np.bool_]

LEAST = 17
"""Frames that jitter needs."""

GRAVITY_LEAST = 1e-9
"""Below this there is no weight [m/s^2]."""

STANDING_HEIGHT = 0.003
"""A sole of the target with all points below this height stands [m]."""

HEAD_DROP = 0.15
"""A character has fallen if its head is this much lower than the target's, and below 60 % of its
standing height; relative to that height."""


# ---- metrics


def metrics(recording: Recording) -> dict[str, measure.Summary]:
    """See `Recording.metrics`."""
    errors = tracking(recording)
    found = {} if errors is None else errors._asdict()
    found |= {**_effort(recording), **_energy(recording)}
    copies = (len(recording), recording.n)
    touches = all_contacts(recording)
    if len(touches.copy):
        force = measure.ground_reaction(recording.scene, touches, copies=copies).force
        found["ground_force"] = np.linalg.norm(force, axis=-1)
        depth = measure.sinking(touches, copies)
        found["depth"] = depth[np.isfinite(depth)]
    return {name: measure.summary(x) for name, x in found.items() if x.size}


def all_contacts(recording: Recording) -> Contacts:
    """Contacts of all frames; `copy` counts through frames and copies: (frames, n)."""
    columns = recording.columns.arrays()
    frame = np.repeat(np.arange(len(recording)), recording.columns.rows_per_frame("contact"))
    touches = contacts_in(columns["contact_which"], columns["contact"]).within(recording.scene)
    return touches._replace(copy=touches.copy + frame * recording.n)


def tracking(recording: Recording) -> measure.TrackingError | None:
    """Errors in the k frames with a target, shape (k, n, nl) each; None if no frame has one."""
    columns = recording.columns.arrays()
    target = columns["target_q"]
    if not len(target):
        return None
    # a frame has one target or none
    q = columns["q"][recording.columns.rows_per_frame("target") > 0]
    target = np.broadcast_to(target if target.ndim == 3 else target[:, None], q.shape)
    return measure.tracking_error(recording.scene, q, target)


def _effort(recording: Recording) -> dict[str, Floats]:
    columns, scene = recording.columns.arrays(), recording.scene
    torque, v = columns["torque"], columns["v"]
    if not scene.nv:
        return {}
    found = {
        "torque": measure.joint_torque(scene, torque),
        "power": measure.joint_power(scene, torque, v).sum(axis=-1),
    }
    even = np.abs(np.diff(columns["time"], axis=0) - recording.interval) < 1e-6
    if even.all() and len(v) > LEAST and recording.fps > 2.0 * SHAKE:
        found["jitter"] = measure.jitter(v, recording.interval)
    return found


def _energy(recording: Recording) -> dict[str, Floats]:
    columns = recording.columns.arrays()
    scene = scene_with_overrides(recording)
    rows = zip(columns["q"], columns["v"], columns["gravity"], strict=True)
    each = np.array([measure.energy(scene, q, v, gravity=gravity) for q, v, gravity in rows])
    return {"kinetic": each[:, 0], "potential": each[:, 1]}


def scene_with_overrides(recording: Recording) -> Scene:
    """The scene with the world's overrides of mass, inertia and armature, if it has any."""
    settings = recording.settings
    if settings.mass is None and settings.inertia is None and settings.armature is None:
        return recording.scene
    return recording.world().scene


# ---- table


def recording_table(recording: Recording) -> dict[str, Any]:
    """Tracking, torques and contacts of a recording of one copy.

    Torques and contacts are those of the steps before the frames. Keys are those of table.json.

    Returns:
        A dictionary.

        - tracking: Over all links, mean, p95 and max of rotation [degrees], position relative to
          the root and in the world [m].
        - links: By link, the same, and torque: the largest in its joints [N·m, N], touching: the
          fraction of the frames in which it has a contact.
        - torque: The largest in any joint: torque [N·m, N], joint, time [s], limit (or None).
        - hand: The largest external force [N] and torque [N·m] that the controller applies to
          free roots.
        - contacts: Number of links with contacts, mean number of contacts, largest ground force
          [N], also in body weights (None without gravity), largest penetration depth [m].
        - fallen: Whether a character has fallen at the end; None if no character can fall.
    """
    if recording.n != 1:
        raise PoiseError(f"a table needs a recording of one copy; this one has {recording.n}")
    if not len(recording):
        raise PoiseError("the recording has no frames: append() adds them")
    names = recording.scene.forest.link_names
    errors = tracking(recording)
    torque, touching = _link_torques(recording), _contact_fraction(recording)
    by_link = {} if errors is None else measure.by_link(recording.scene, errors)
    return {
        "tracking": None if errors is None else _summaries(errors._asdict()),
        "links": {
            name: {
                **{key: one._asdict() for key, one in by_link.get(name, {}).items()},
                "torque": float(torque[i]),
                "touching": float(touching[i]),
            }
            for i, name in enumerate(names)
        },
        "torque": _largest_torque(recording),
        "hand": _root_wrench(recording),
        "contacts": _contacts(recording, touching),
        "fallen": _fallen(recording),
    }


def _summaries(values: dict[str, Floats]) -> dict[str, dict[str, float]]:
    return {name: measure.summary(value)._asdict() for name, value in values.items()}


def _joint_torques(recording: Recording) -> Floats:
    """Norms of the joint torques, 0 for free joints; shape (frames, joints)."""
    sizes = measure.joint_torque(recording.scene, recording.torque)
    sizes[:, recording.scene.forest.kind == KINDS["free"]] = 0.0
    return sizes


def _link_torques(recording: Recording) -> Floats:
    """The largest torque in the joints of each link, shape (nl,)."""
    largest = np.zeros(recording.scene.nl)
    np.maximum.at(largest, recording.scene.forest.link, _joint_torques(recording).max(axis=0))
    return largest


def _largest_torque(recording: Recording) -> dict[str, Any] | None:
    forest = recording.scene.forest
    sizes = _joint_torques(recording)
    if not sizes.any():
        return None
    frame, body = np.unravel_index(int(np.argmax(sizes)), sizes.shape)
    limit = float(forest.effort[forest.v_adr[body]])
    return {
        "torque": float(sizes[frame, body]),
        "joint": forest.joint_names[forest.joint[body]],
        "time": float(recording.time[frame]),
        "limit": limit if np.isfinite(limit) else None,
    }


def _root_wrench(recording: Recording) -> dict[str, float] | None:
    """The largest force and torque on free roots."""
    forest = recording.scene.forest
    roots = forest.v_adr[forest.kind == KINDS["free"]]
    if not len(roots):
        return None
    whole = np.stack([recording.torque[:, v : v + 6] for v in roots])
    force, torque = (np.linalg.norm(part, axis=-1).max() for part in np.split(whole, 2, axis=-1))
    return {"force": float(force), "torque": float(torque)}


def _contact_fraction(recording: Recording) -> Floats:
    """The fraction of the frames in which each link has a contact, shape (nl,)."""
    touches = measure.closed(all_contacts(recording))
    on = _in_contact(touches, len(recording), recording.scene.nl)
    return np.asarray(on[1:].mean(axis=0) if len(on) > 1 else on.mean(axis=0))


def _in_contact(touches: Contacts, frames: int, nl: int) -> Bools:
    """Which links have a contact, shape (frames, nl)."""
    on = np.zeros((frames, nl), dtype=bool)
    for link in (touches.link, touches.other):
        here = (link >= 0) & (link < nl)
        on[touches.copy[here], link[here]] = True
    return on


def _contacts(recording: Recording, touching: Floats) -> dict[str, Any]:
    touches = all_contacts(recording)
    copies = len(recording)
    counts = np.bincount(measure.closed(touches).copy, minlength=copies)[1:]
    force = measure.ground_reaction(recording.scene, touches, copies=copies).force
    largest = float(np.linalg.norm(force, axis=-1).max())
    weight = recording.scene.forest.link_mass.sum() * np.linalg.norm(recording.gravity[0])
    return {
        "links": int((touching > 0.0).sum()),
        "mean": float(counts.mean()) if len(counts) else 0.0,
        "ground_force": largest,
        "weights": float(largest / weight) if weight > GRAVITY_LEAST else None,
        "depth": float(measure.ground_contacts(touches).depth.max(initial=0.0)),
    }


def _fallen(recording: Recording) -> bool | None:
    """Whether any character has fallen; None if none has both a head and feet."""
    found = []
    for part in recording.scene.forest.parts:
        try:
            last = recording.contacts(-1)
            found.append(measure.fallen(recording.scene, recording.q[-1], last, part=part))
        except PoiseError:  # no head, or no feet
            continue
    return bool(np.any(found)) if found else None


# ---- stance


class Stance(NamedTuple):
    """Balance of one copy over k frames; undefined values are NaN.

    Attributes:
        time: [s], shape (k,).
        fallen: Shape (k,).
        head: Height of the head relative to the rest pose, shape (k,).
        com: Center of mass [m], shape (k, 3).
        cop: Center of pressure [m], shape (k, 3).
        cmp: Centroidal moment pivot [m], shape (k, 3).
        support: Support polygon: hull of the soles in contact.
        feet: Names of the feet.
        standing: Which stand in the target, shape (k, feet).
        displacement: Distance of each foot from where it began to stand [m], shape (k, feet).
        tilt: Angle between the up axes of the foot and of the target's [degrees], shape (k, feet).
        momentum: Linear [N·s] and angular about the center of mass [N·m·s].
        target_angular: Angular momentum of the target's motion [N·m·s], shape (k, 3).
    """

    time: Floats
    fallen: Bools
    head: Floats
    com: Floats
    cop: Floats
    cmp: Floats
    support: measure.Polygons
    feet: tuple[str, ...]
    standing: Bools
    displacement: Floats
    tilt: Floats
    momentum: measure.Momentum
    target_angular: Floats

    @property
    def fell(self) -> float | None:
        """Time of the fall [s]; None if it did not fall."""
        return float(self.time[int(np.argmax(self.fallen))]) if self.fallen.any() else None


def stance_of(recording: Recording, copy: int = 0) -> Stance:
    """Computes the stance of one copy in a recording of one character.

    Args:
        recording: The recording.
        copy: Which copy.
    """
    count = len(recording.scene.characters)
    if count != 1:
        raise PoiseError(f"a stance needs a recording of one character; this one has {count}")
    character = recording.scene.characters[0]
    columns = recording.columns.arrays()
    q, v = columns["q"][:, copy], columns["v"][:, copy]
    target = _targets(recording, copy, q)
    frames, n = len(recording), recording.n
    touches = all_contacts(recording)
    one = touches.rows(touches.copy % n == copy)
    one = one._replace(copy=one.copy // n)
    reaction = measure.ground_reaction(recording.scene, one, copies=frames)
    com = measure.center_of_mass(character, q)
    points = feet_of(character)
    at, target_at = (positions(character, points, x) for x in (q, target))
    feet = tuple(dict.fromkeys(point.foot for point in points))
    owner = np.array([feet.index(point.foot) for point in points])
    down = measure.closed(measure.ground_contacts(one))
    names = [link.name for link in character.links]
    links = [names.index(point.link) for point in points]
    touching = _in_contact(down, frames, len(names))[:, links]
    standing = np.stack(
        [target_at[:, owner == i, 2].max(axis=1) < STANDING_HEIGHT for i in range(len(feet))],
        axis=1,
    )
    head = measure.head_height(character, q)
    low = np.minimum(measure.FALLEN, measure.head_height(character, target) - HEAD_DROP)
    return Stance(
        columns["time"][:, copy],
        np.asarray((head < low) | measure.body_on_ground(recording.scene, one, copies=frames)),
        head,
        com,
        reaction.point,
        measure.centroidal_moment_pivot(com, reaction.force),
        measure.convex_hulls(at, touching),
        feet,
        standing,
        _displacement(at, owner, standing),
        _tilt(character, q, target, feet, standing),
        measure.momentum(character, q, v),
        measure.momentum(character, target, _rates(character, target, recording.interval)).angular,
    )


def balance_table(stance: Stance) -> dict[str, Any]:
    """A stance in a few numbers, ready for JSON.

    Returns:
        A dictionary.

        - stood: Whether it never fell; fell: time of the fall [s], or None.
        - head: Lowest height of the head relative to the rest pose.
        - feet: By foot that stands at any time, moved: its largest displacement [m], and tilted:
          its largest tilt [degrees], until the fall.
        - margins: Of "com", "cop", "cmp": distance to the edge of the support polygon, negative
          outside [m]: the minimum (least) and the 5th percentile (p5).
        - angular_momentum: Largest (most), and largest of the target (asked) [N·m·s].
    """
    until = int(np.argmax(stance.fallen)) if stance.fallen.any() else len(stance.time)
    kept = slice(1, max(until, 2))  # the first frame has no contacts
    feet = {}
    for i, name in enumerate(stance.feet):
        if stance.standing[kept, i].any():
            feet[name] = {
                "moved": _largest(stance.displacement[kept, i]),
                "tilted": _largest(stance.tilt[kept, i]),
            }
    margins = {}
    for name in ("com", "cop", "cmp"):
        each = measure.support_margin(stance.support, getattr(stance, name))[kept]
        each = each[np.isfinite(each)]
        margins[name] = {
            "least": float(each.min()) if len(each) else None,
            "p5": float(np.percentile(each, 5.0)) if len(each) else None,
        }
    return {
        "stood": stance.fell is None,
        "fell": stance.fell,
        "head": float(stance.head.min()),
        "feet": feet,
        "margins": margins,
        "angular_momentum": {
            "most": _largest(np.linalg.norm(stance.momentum.angular[kept], axis=1)),
            "asked": _largest(np.linalg.norm(stance.target_angular[kept], axis=1)),
        },
    }


def _targets(recording: Recording, copy: int, q: Floats) -> Floats:
    """Targets frame by frame; where there is none, the first one, or else the first pose."""
    target = recording.target_positions(copy)
    first = target[np.isfinite(target).all(axis=1)][:1]
    start = first[0] if len(first) else q[0]
    return np.where(np.isfinite(target), target, start)


def _displacement(at: Floats, owner: NDArray[np.int64], standing: Bools) -> Floats:
    """Distance of each sole's center from where it began to stand; NaN while it does not stand."""
    out = np.full(standing.shape, np.nan)
    for i in range(standing.shape[1]):
        middle = at[:, owner == i].mean(axis=1)[:, :2]
        for a, b in runs(standing[:, i]):
            out[a:b, i] = np.linalg.norm(middle[a:b] - middle[a], axis=1)
    return out


def _tilt(
    character: Character, q: Floats, target: Floats, feet: tuple[str, ...], standing: Bools
) -> Floats:
    """Angle between the up axes of each foot and of the target's [degrees]."""
    index = {link.name: i for i, link in enumerate(character.links)}
    _, now = dynamics.forward_kinematics(character, q)
    _, then = dynamics.forward_kinematics(character, target)
    out = np.full(standing.shape, np.nan)
    up = np.array([0.0, 0.0, 1.0])
    for i, name in enumerate(feet):
        one, other = (
            rotation.rotate(rotation.conjugate(R[:, index[name]]), up) for R in (now, then)
        )
        cosine = np.clip((one * other).sum(axis=1), -1.0, 1.0)
        out[:, i] = np.where(standing[:, i], np.degrees(np.arccos(cosine)), np.nan)
    return out


def _rates(character: Character, q: Floats, interval: float) -> Floats:
    """Velocities of frames (k, nq), by finite differences."""
    if len(q) < 2:
        return np.zeros((len(q), character.nv))
    step = configuration.difference(character, q[1:], q[:-1]) / interval
    return np.concatenate([step, step[-1:]])


def _largest(values: Floats) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.max()) if len(finite) else 0.0
