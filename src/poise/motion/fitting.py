"""A clip on a character that is its own body, whatever CPU computed the numbers of the two."""

from __future__ import annotations

from poise.model.character import Character
from poise.motion.clip import Clip


def on_same_body(clip: Clip, character: Character) -> Clip | None:
    """The clip as a motion of this character, frames unchanged; None if it must be retargeted.

    Args:
        clip: The motion.
        character: Who shall have it: `Character.same_body` decides whether it fits.
    """
    if clip.character is character or clip.character == character:
        return clip
    if not clip.character.same_body(character):
        return None
    return clip._replace(character=character)
