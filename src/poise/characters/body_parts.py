"""Parts of the body, and the names that joints of motion files give them."""

from __future__ import annotations

import re

WORDS = (
    ("toe", "toe"),
    ("foot", "foot|ankle|talus|paw"),
    ("hand", "hand|wrist|palm|finger|thumb|index|middle|ring|pinky"),
    ("thigh", "up_?leg|upper_?leg|thigh|femur|(left|right|[lr])_?hip$"),
    ("shank", "leg|shin|tibia|calf|knee"),
    ("forearm", "fore_?arm|low(er)?_?arm|radius|ulna|elbow"),
    ("shoulder", "shoulder|clavicle|collar"),
    ("arm", "arm|humerus"),
    ("neck", "neck"),
    ("head", "head|skull|face|eye|jaw"),
    ("pelvis", "hip|pelvis|root"),
    ("trunk", "spine|chest|back|torso|abdomen|thorax|waist"),
)
"""Parts of the body and the words, in a joint's name, that tell of them; the first match counts."""


def part_of(name: str) -> str:
    """The part of the body that a joint's name tells of, or ""."""
    # "mixamorig:LeftUpLeg", "Character1_LeftUpLeg", "LHipJoint"
    plain = re.sub(r"^.*:|^character\d*_", "", name, flags=re.IGNORECASE).lower()
    return next((part for part, words in WORDS if re.search(words, plain)), "")


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
