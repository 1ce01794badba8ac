"""Characters from an MjModel, and an MjModel from a character.

A MuJoCo model may hold several trees that move. Each becomes a character; bodies that are fixed to
the world beside them are scenery and are left out. MuJoCo numbers its bodies depth-first, tree
after tree, and their coordinates likewise, so that the characters' q, one after another, are qpos.
What is read of a body and its joints, `poise.model.formats.mjcf` says.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from poise.errors import CharacterError, PoiseError, shorten
from poise.interop.mujoco.states import check_model
from poise.math.arrays import number
from poise.model.character import Character, Joint, Vector
from poise.model.formats.mjcf import dump
from poise.model.formats.mujoco_model import CUSTOM, LIMB, TreeReader, floats, import_mujoco


def character_of(model: Any) -> Character:
    """The character in a model with one tree that moves.

    Args:
        model: A mujoco.MjModel.
    """
    found = characters_of(model)
    if len(found) > 1:
        names = shorten(repr(character.links[0].name) for character in found)
        raise CharacterError(
            f"the model has {len(found)} trees that move: {names}; "
            "characters_of(model) gives a character for each"
        )
    return found[0]


def characters_of(model: Any) -> tuple[Character, ...]:
    """A character for each tree that moves, in the order of qpos.

    Args:
        model: A mujoco.MjModel.
    """
    check_model(model)
    custom = _custom(model)
    trees = moving_trees(model)
    if not trees:
        raise CharacterError("nothing in the model moves: none of its bodies has a joint")
    with np.errstate(all="ignore"):
        name = _model_name(model) if len(trees) == 1 else ""
        return tuple(TreeReader(model, custom).character(name, bodies) for bodies in trees)


def model_of(
    character: Character, *, dt: float = 1 / 60, ground: bool = True, self_collision: bool = False
) -> Any:
    """The character as a mujoco.MjModel, with a motor on each degree of freedom but the root's.

    Args:
        character: The character. Its q and v are the model's qpos and qvel.
        dt: Time step [s].
        ground: Whether there is a plane at z = 0.
        self_collision: Whether its links touch each other.
    """
    if not isinstance(character, Character):
        raise PoiseError(f"expected a Character, got {character!r:.80}")
    mujoco = import_mujoco()
    spec = mujoco.MjSpec.from_string(dump(character))
    spec.option.timestep = number(dt, "dt")
    for geom in spec.geoms:
        geom.conaffinity = int(self_collision)
    if ground:
        plane = mujoco.mjtGeom.mjGEOM_PLANE
        spec.worldbody.add_geom(type=plane, size=[50, 50, 1], conaffinity=1)
    return spec.compile()


def as_simulated(
    model: Any, characters: Sequence[Character], limits: bool
) -> tuple[Character, ...]:
    """The characters as MuJoCo simulates them: the springs of balls rest where the model says.

    Args:
        model: The mujoco.MjModel.
        characters: Those of the model.
        limits: Whether effort limits are kept.
    """
    adr = iter(model.jnt_qposadr.tolist())

    def simulated(joint: Joint) -> Joint:
        at = next(adr)
        rest = floats(model.qpos_spring[at : at + 4]) if joint.kind == "ball" else joint.reference
        return replace(joint, reference=rest, effort=joint.effort if limits else None)

    return tuple(
        replace(
            character,
            links=tuple(
                replace(link, joints=tuple(map(simulated, link.joints))) for link in character.links
            ),
        )
        for character in characters
    )


def moving_trees(model: Any) -> list[list[int]]:
    """Numbers of the bodies of each tree that moves; what is fixed beside them is left out."""
    root = np.asarray(model.body_rootid)
    moving = sorted({int(root[i]) for i in model.jnt_bodyid})
    return [np.flatnonzero(root == r).tolist() for r in moving]


def _model_name(model: Any) -> str:
    """The model's own name, the first in its table; MuJoCo says so where there is none."""
    name = bytes(model.names).split(b"\0", 1)[0].decode("utf-8", "replace").strip()
    return "" if name == "MuJoCo Model" else name


def _custom(model: Any) -> dict[str, Vector | tuple[str, ...]]:
    """What our writer keeps under `custom`, by name: see `poise.model.formats.mjcf`."""
    objects = import_mujoco().mjtObj
    found: dict[str, Vector | tuple[str, ...]] = {}
    for name, start, size in _table(model, objects.mjOBJ_NUMERIC, "numeric"):
        if name.startswith(CUSTOM):
            found[name] = floats(model.numeric_data[start : start + size])
    for name, start, size in _table(model, objects.mjOBJ_TEXT, "text"):
        if name.startswith(LIMB):
            text = bytes(model.text_data[start : start + size]).rstrip(b"\0")
            found[name] = tuple(text.decode("utf-8", "replace").split("\n"))
    return found


def _table(model: Any, kind: Any, noun: str) -> Iterator[tuple[str, int, int]]:
    """Name, address and size of each custom number or text."""
    name = import_mujoco().mj_id2name
    for i in range(getattr(model, f"n{noun}")):
        start, size = (int(getattr(model, f"{noun}_{key}")[i]) for key in ("adr", "size"))
        yield name(model, kind, i) or "", start, size
