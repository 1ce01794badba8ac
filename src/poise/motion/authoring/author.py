"""Keyframes made true: the clip of a keyframe file, refined until the ground explains it.

`options` of the file are those of `refine.Options`, and:
    symmetric: true    both sides move alike, at the same time
    sagittal: true     and joints turn fore and aft only, as a somersault's
    cycles: 3          of a loop, how many cycles the clip has
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any

import numpy as np

from poise.anatomy.contact_schedule import Contacts
from poise.errors import ClipError, unknown_name
from poise.math.arrays import Floats
from poise.model.character import Character
from poise.motion.authoring.refine import Options, refine
from poise.motion.authoring.spacetime import Motion, repeated
from poise.motion.authoring.terms import mirror_matrix
from poise.motion.clip import Clip
from poise.motion.editing.mirroring import Mirror
from poise.motion.keyframes import Keyframes

CYCLES, MOST_CYCLES = 3, 100


def author(keys: Keyframes, watch: Callable[[str, float], None] | None = None) -> Clip:
    """Make a clip from keyframes.

    Args:
        keys: The keyframes.
        watch: Called with the stage and its cost.
    """
    given = dict(keys.options)
    symmetric, sagittal = (_flag(keys.source, given, name) for name in ("symmetric", "sagittal"))
    cycles = given.pop("cycles", CYCLES)
    if cycles not in range(1, MOST_CYCLES + 1):
        raise ClipError(f"{keys.source}: options: cycles must be 1 to {MOST_CYCLES}")
    options = options_of(keys.source, given)
    frames, contacts = keys.frames(), keys.contacts()
    if keys.loop is not None:
        frames, contacts = frames[:-1], replace(contacts, on=contacts.on[:-1])
    symmetry = None
    if keys.mirrored or symmetric:
        mirror = Mirror.of(keys.character)
        pairs = {joint.name: mirror.joint(joint.name).name for joint in keys.character.joints}
        symmetry = mirror_matrix(keys.character, pairs)
    motion = refine(
        keys.character,
        frames,
        keys.fps,
        contacts,
        travel=keys.loop,
        symmetry=symmetry,
        fixed=sideways(keys.character) if sagittal else (),
        hold=held(keys, len(frames)),
        options=options,
        watch=watch,
    )
    return _clip(keys, motion, contacts, int(cycles))


def _flag(source: str, given: dict[str, Any], name: str) -> bool:
    value = given.pop(name, False)
    if not isinstance(value, bool):
        raise ClipError(f"{source}: options: {name} must be true or false")
    return value


def held(keys: Keyframes, frames: int) -> Floats:
    """How firmly the sketch counts in each frame, (frames, nv): from key to key in a straight
    line."""
    times = np.arange(frames) / keys.fps
    out = np.ones((frames, keys.character.nv))
    for joint in keys.character.joints:
        at = keys.character.v_slice(joint)
        places = [(keys.joints.get(joint.name), at)]
        if joint.kind == "free":
            turn = slice(at.start + 3, at.stop)
            places = [(keys.root_pos, slice(at.start, turn.start)), (keys.root_turn, turn)]
        for track, where in places:
            if track is not None:
                out[:, where] = np.interp(times, track.times, track.hold)[:, None]
    return out


def sideways(character: Character) -> list[int]:
    """Velocities that lead out of the plane y = 0, where link frames rest along the world's."""
    out: list[int] = []
    for joint in character.joints:
        first = character.v_slice(joint).start
        if joint.kind == "free":
            out += [first + i for i in (1, 3, 5)]
        elif joint.kind == "ball":
            out += [first, first + 2]
        elif (abs(joint.axis[1]) > 0.5) != (joint.kind == "hinge"):
            out.append(first)
    return out


def options_of(source: str, given: Mapping[str, Any]) -> Options:
    """The options of a file, checked."""
    known = {field.name: field.type for field in fields(Options)}
    for name, value in given.items():
        if name not in known:
            raise ClipError(f"{source}: options: {unknown_name('option', name, known)}")
        wanted: Any = (
            Mapping
            if name in ("joints", "strength")
            else bool
            if known[name] == "bool"
            else (int, float)
        )
        if not isinstance(value, wanted) or (wanted == (int, float) and isinstance(value, bool)):
            raise ClipError(f"{source}: options: {name} is {value!r:.40}, it must be {known[name]}")
        if known[name] == "int" and value != int(value):
            raise ClipError(f"{source}: options: {name} is {value}, it must be a whole number")
    values: dict[str, Any] = {n: int(v) if known[n] == "int" else v for n, v in given.items()}
    return Options(**values)


def _clip(keys: Keyframes, motion: Motion, contacts: Contacts, cycles: int) -> Clip:
    frames, on = motion.q, contacts.on
    if motion.travel is not None:
        last = repeated(motion, cycles, 1)[:1]
        frames = np.concatenate([repeated(motion, 0, cycles), last])
        on = np.concatenate([np.tile(on, (cycles, 1)), on[:1]])
    # quaternions of many cycles drift off their sign; a clip aligns them
    return Clip(
        keys.character,
        frames,
        keys.fps,
        name=keys.name,
        contacts=replace(contacts, on=on),
    )
