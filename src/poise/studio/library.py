"""The library: characters and clips that a page may choose, built-in ones and those it was given.

A page sends names; only names of these lists are valid, so that no name is a path.
"""

from __future__ import annotations

import os
import re
import threading
from collections import OrderedDict
from functools import lru_cache
from pathlib import Path

import numpy as np

from poise.anatomy.body import body_of
from poise.anatomy.feet import has_free_root
from poise.characters import builtin_names, load_character
from poise.errors import ClipError, PoiseError, unknown_name
from poise.io.archive import Archive
from poise.math.arrays import Progress
from poise.measure import feet_links
from poise.model.character import Character
from poise.model.same_body import same_character
from poise.motion.clip import Clip
from poise.motion.library import builtin_clip, builtin_clips
from poise.motion.preprocess import load_preprocessed
from poise.studio.crowd_reference import LoopedClip
from poise.trials.trial import prepare_trial

REST = "rest"
"""The clip that holds the rest pose."""

MAX_PREPARED = 12
"""Clips that are kept prepared."""

REST_FRAMES = 61
"""Frames of the rest pose that is prepared for balance."""

HUMAN = ("arm", "left"), ("arm", "right"), ("leg", "left"), ("leg", "right")


class Library:
    """Characters and clips by their names."""

    def __init__(self) -> None:
        self._characters: dict[str, Character] = {}
        self._clips: dict[str, Clip] = {}
        self._files: dict[str, str | os.PathLike[str]] = {}  # of clips that the studio began with
        self._prepared: OrderedDict[tuple[str, str, bool], LoopedClip] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def characters(self) -> tuple[str, ...]:
        """Names of the characters."""
        return (*self._characters, *(x for x in builtin_names() if x not in self._characters))

    @property
    def clips(self) -> tuple[str, ...]:
        """Names of the clips; "rest" holds the rest pose."""
        return (*self._clips, *(x for x in builtin_clips() if x not in self._clips), REST)

    def add_character(self, source: str | os.PathLike[str] | Character) -> str:
        """Take a character into the list, by name, file or as it is; its name there."""
        character = source if isinstance(source, Character) else load_character(source)
        ours = character.name in builtin_names()
        if ours and same_character(load_character(character.name), character):
            return character.name
        for name, known in self._characters.items():
            if same_character(known, character):
                return name
        name = _unique_name(character.name, self.characters)
        self._characters[name] = character
        return name

    def add_clip(self, source: str | os.PathLike[str] | Clip) -> str:
        """Take a clip into the list, by name, file or as it is, ready to be followed; its name."""
        if isinstance(source, str) and (source in builtin_clips() or source == REST):
            return source
        clip = load_preprocessed(source)
        stem = "" if isinstance(source, Clip) else Path(source).stem
        name = _unique_name(stem or clip.name or "clip", self.clips)
        self._clips[name] = clip
        if not isinstance(source, Clip):
            self._files[name] = source
        return name

    def character(self, name: str) -> Character:
        """The character of that name."""
        if name not in self.characters:
            raise PoiseError(unknown_name("character", name, self.characters))
        return self._characters[name] if name in self._characters else load_character(name)

    def check_clip(self, name: str) -> None:
        """Refuse a name that is not in the list."""
        if name not in self.clips:
            raise PoiseError(unknown_name("clip", name, self.clips))

    def clip(self, name: str) -> Clip:
        """The clip of that name, on its own character."""
        self.check_clip(name)
        return self._clips[name] if name in self._clips else builtin_clip(name)

    def owner(self, clip: str) -> str:
        """Name of the character that a clip was made for."""
        if clip in self._clips:
            return self.add_character(self._clips[clip].character)
        return _owner(clip)

    def clips_for(self, character: str) -> tuple[str, ...]:
        """Clips that a character can follow: its own first, then those that can be retargeted."""
        names = [name for name in self.clips if name != REST]
        able = [name for name in names if self.fits(name, character)]
        return (*sorted(able, key=lambda name: self.owner(name) != character), REST)

    def fits(self, clip: str, character: str) -> bool:
        """Whether a character can follow a clip: its own, or one that can be retargeted."""
        if clip == REST or self.owner(clip) == character:
            return True
        return _can_retarget(self.character(self.owner(clip)), self.character(character))

    def motion(
        self,
        character: str,
        clip: str,
        progress: Progress | None = None,
        *,
        balanced: bool = False,
    ) -> LoopedClip:
        """A clip on a character, looped; retargeting may take some seconds.

        Args:
            character: Name of the character.
            clip: Name of the clip.
            progress: Called with the progress, 0 to 1.
            balanced: Whether it is prepared for balance, as by `poise balance`.
        """
        key = character, clip, balanced
        with self._lock:
            if key in self._prepared:
                self._prepared.move_to_end(key)
                return self._prepared[key]
        body = self.character(character)
        if balanced:
            made = LoopedClip.of(*self._prepared_for_balance(body, clip, progress))
        else:
            plain = self._retargeted(body, clip, progress)
            made = LoopedClip.of(plain, plain.notes)
        with self._lock:
            self._prepared[key] = made
            while len(self._prepared) > MAX_PREPARED:
                self._prepared.popitem(last=False)
        return made

    def _retargeted(self, body: Character, clip: str, progress: Progress | None) -> Clip:
        """A clip on a character."""
        if clip == REST:
            return Clip(body, body.rest_q[None], 60.0, name=REST)
        motion = self.clip(clip)
        same = motion.with_character(body)
        if same is not None:
            return same
        return load_preprocessed(self._files.get(clip, motion), body, progress=progress)

    def _prepared_for_balance(
        self, body: Character, clip: str, progress: Progress | None
    ) -> tuple[Clip, tuple[str, ...]]:
        """A clip on a character, with level feet under the center of mass; and notes about it.

        See `poise.trials.trial.prepare_trial`.
        """
        source: str | os.PathLike[str] | Clip = self._files.get(clip, clip)
        if clip == REST:
            source = Clip(body, np.repeat(body.rest_q[None], REST_FRAMES, axis=0), 60.0, name=REST)
        elif source == clip:
            source = self.clip(clip)
        own = clip in self._clips and self._clips[clip].character.same_body(body)
        try:
            trial = prepare_trial(
                source, None if own else body, controller="balance", progress=progress,
                preparing=progress,
            )  # fmt: skip
        except PoiseError as error:
            why = str(error).partition(";")[0]
            raise PoiseError(
                f"clip {clip!r} on character {body.name!r} cannot be prepared for balance: {why}"
            ) from error
        return trial.clip, () if clip == REST else trial.notes

    def default_ground(self, character: str) -> str:
        """A plane for a character with a free root; none for one that hangs on the world."""
        return "plane" if has_free_root(self.character(character)) else "none"


def _unique_name(name: str, taken: tuple[str, ...]) -> str:
    """A printable name that is not taken."""
    plain = "".join(c for c in name if c.isprintable())[:80].strip() or "unnamed"
    names = (plain, *(f"{plain}-{i}" for i in range(2, len(taken) + 3)))
    return next(x for x in names if x not in taken)


@lru_cache(maxsize=256)
def _owner(clip: str) -> str:
    """Character of a built-in clip, from its text, as building the character takes much longer."""
    with Archive.open(builtin_clips()[clip], ClipError) as archive:
        found = re.search(r"(?m)^name: *(\S+)", archive.text("character"))
    return found[1] if found else ""


@lru_cache(maxsize=256)
def _can_retarget(one: Character, two: Character) -> bool:
    """Whether a motion of one may be retargeted to the other: both are humanoid."""
    return _is_human(one) and _is_human(two)


@lru_cache(maxsize=64)
def _is_human(character: Character) -> bool:
    """Whether it has two arms and two legs, and no more feet than that."""
    try:
        links = body_of(character).links
        return all(limb in links for limb in HUMAN) and len(feet_links(character)) == 2
    except PoiseError:
        return False
