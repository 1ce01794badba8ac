"""Parts of the body, and the names that joints of motion files give them."""

from __future__ import annotations

import re
from collections.abc import Iterable

WORDS = (
    ("toe", "toe"),
    ("foot", "foot|ankle|talus|paw|hoof|metatars"),
    ("hand", "hand|wrist|palm|finger|thumb|index|middle|ring|pinky"),
    ("thigh", "up_?leg|upper_?leg|thigh|femur|(left|right|[lr])_?hip$"),
    ("shank", "leg|shin|tibia|calf|knee"),
    ("forearm", "fore_?arm|low(er)?_?arm|radius|ulna|elbow"),
    ("shoulder", "shoulder|clavicle|collar|scapula"),
    ("arm", "arm|humerus"),
    ("neck", "neck"),
    ("head", "head|skull|face|eye|jaw"),
    ("pelvis", "hip|pelvis|root"),
    ("trunk", "spine|chest|back|torso|abdomen|thorax|waist"),
)
"""Parts of the body and the words, in a joint's name, that tell of them; the first match counts."""

ARM = ("shoulder", "arm", "forearm", "hand")
LEG = ("thigh", "shank", "foot", "toe")

FRONT = re.compile(r"front|fore_?(leg|left|right|paw|foot)", re.IGNORECASE)
ANIMAL = re.compile(FRONT.pattern + r"|hind|paw|hoof|(?<!fo)rear|(?<![a-z])tail", re.IGNORECASE)
"""Words in the names of joints that a person does not have."""

FRONT_PARTS = {"thigh": "arm", "shank": "forearm", "foot": "hand", "toe": "hand"}
"""What parts of a front leg are; anatomists call its bones those of an arm."""


def part_of(name: str) -> str:
    """The part of the body that a joint's name tells of, or ""."""
    # "mixamorig:LeftUpLeg", "Character1_LeftUpLeg", "LHipJoint"
    plain = re.sub(r"^.*:|^character\d*_", "", name, flags=re.IGNORECASE).lower()
    return next((part for part, words in WORDS if re.search(words, plain)), "")


def is_tail(name: str) -> bool:
    """Whether a joint's name tells of a tail."""
    return re.search(r"(?<![a-z])tail", name, flags=re.IGNORECASE) is not None


def is_animal(names: Iterable[str]) -> bool:
    """Whether names of joints tell of an animal: of hind legs, paws, a tail."""
    return any(ANIMAL.search(name) for name in names)


def is_person(names: Iterable[str]) -> bool:
    """Whether names of joints tell of a person: of left or right arms or legs, no animal's."""
    names = tuple(names)
    limbs = any(part_of(name) in (*ARM, *LEG) and side_of(name) for name in names)
    return limbs and not is_animal(names)


def side_of(name: str) -> str:
    """The side that a joint's name tells of: "left", "right" or ""."""
    plain = re.sub(r"^.*:|^[Cc]haracter\d*_", "", name)
    for side in ("left", "right"):
        letter = side[0]
        if side in plain.lower() or re.match(rf"{letter}_|{letter.upper()}(_|[A-Z])", plain):
            return side
        if re.search(rf"[_.\-]{letter}$", plain, flags=re.IGNORECASE):
            return side
    if re.match(r"[lr](hip|femur|tibia|foot|toe|clav|hum|rad|wrist|hand|finger|thumb)", plain):
        return "left" if plain[0] == "l" else "right"
    return ""
