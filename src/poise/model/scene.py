"""A scene: one or several characters, compiled for the core.

Everything that works on a single character takes a scene as well: a Character, a sequence of
them, or a World that has compiled its own.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Union

import numpy as np

from poise import _core
from poise.errors import PoiseError, check_known
from poise.math.arrays import Floats
from poise.model.character import Character
from poise.model.forest import Forest, compile_forest

if TYPE_CHECKING:
    from poise.simulation.world import World

SceneLike = Union["Character", "Sequence[Character]", "World", "Scene"]


OVERRIDES = ("mass", "mc", "Io", "armature", "effort", "fixed")
"""Fields of `_core.ModelOverrides`."""


class Scene(NamedTuple):
    """Characters as one forest, and its compiled form."""

    characters: tuple[Character, ...]
    forest: Forest
    model: _core.Model
    overrides: _core.ModelOverrides | None = None  # of a world, in place of the characters' own

    @property
    def nq(self) -> int:
        return self.forest.nq

    @property
    def nv(self) -> int:
        return self.forest.nv

    @property
    def nl(self) -> int:
        return len(self.forest.link_names)

    @property
    def copies(self) -> tuple[int, ...]:
        """(n,) where overrides differ from copy to copy, else ()."""
        copies = 0 if self.overrides is None else self.overrides.copies
        return (copies,) if copies else ()

    def with_overrides(self, **changes: Floats | None) -> Scene:
        """The same scene with some of its overrides changed; see `_core.ModelOverrides`."""
        given: dict[str, Any] = {name: getattr(self.overrides, name, None) for name in OVERRIDES}
        given["scaled"] = bool(getattr(self.overrides, "scaled", False)) and not (
            changes.keys() & {"mass", "mc", "Io"}
        )
        return self._replace(overrides=_core.ModelOverrides(self.model, **{**given, **changes}))

    def link_index(self, link: str | int) -> int:
        """Index of a link by its name, or checked as it is."""
        if isinstance(link, str):
            names = self.forest.link_names
            check_known("link", link, names)
            return names.index(link)
        whole = isinstance(link, (int, np.integer)) and not isinstance(link, bool)
        if not whole or not 0 <= link < self.nl:
            raise PoiseError(
                f"link {link!r:.80} is neither a name nor an index from 0 to {self.nl - 1}"
            )
        return int(link)

    def __reduce__(self) -> tuple[Any, ...]:
        overrides = {name: getattr(self.overrides, name, None) for name in OVERRIDES}
        return _rebuild, (self.characters, tuple(self.forest.parts), overrides)


def _rebuild(
    characters: tuple[Character, ...], names: tuple[str, ...], overrides: dict[str, Any]
) -> Scene:
    """A scene from its pickle, compiled anew."""
    scene = scene_of(characters)
    if tuple(scene.forest.parts) != names:
        forest = compile_forest(characters, names)
        scene = Scene(characters, forest, _core.Model(forest))
    given = any(value is not None for value in overrides.values())
    return scene.with_overrides(**overrides) if given else scene


def scene_of(source: SceneLike) -> Scene:
    """The compiled scene; that of a Character is made once and kept on it."""
    if isinstance(source, Scene):
        return source
    if isinstance(source, Character):
        kept: Scene | None = source.__dict__.get("_scene")
        if kept is None:
            forest = source.forest
            kept = Scene((source,), forest, _core.Model(forest))
            source.__dict__["_scene"] = kept
        return kept
    scene = getattr(source, "scene", None)
    if isinstance(scene, Scene):
        return scene
    if isinstance(source, Sequence) and not isinstance(source, str):
        characters = tuple(c for c in source if isinstance(c, Character))
        if characters and len(characters) == len(source):
            if len(characters) == 1:
                return scene_of(characters[0])
            forest = compile_forest(characters)
            return Scene(characters, forest, _core.Model(forest))
    raise PoiseError(
        f"expected a Character, a sequence of them or a World, got {source!r:.80}{_hint(source)}"
    )


def _hint(source: object) -> str:
    """Where the Character is that may be meant."""
    if isinstance(source, (str, os.PathLike)):
        return f"; load_character({os.fspath(source)!r:.80}) makes one"
    if isinstance(getattr(source, "character", None), Character):
        return "; its .character is one"
    return ""
