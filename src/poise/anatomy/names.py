"""What names of joints and links mean: part of the body, side, opposite side, sets of links."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np

from poise.errors import PoiseError, unknown_name
from poise.math.arrays import Ints
from poise.model.scene import Scene, SceneLike, scene_of

PARTS = (
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
"""Parts of the body and the words in a joint's name that identify them; the first match counts."""

ARM = ("shoulder", "arm", "forearm", "hand")
LEG = ("thigh", "shank", "foot", "toe")

FRONT = re.compile(r"front|fore_?(leg|left|right|paw|foot)", re.IGNORECASE)
ANIMAL = re.compile(FRONT.pattern + r"|hind|paw|hoof|(?<!fo)rear|(?<![a-z])tail", re.IGNORECASE)
"""Words in the names of joints that a person does not have."""

FRONT_PARTS = {"thigh": "arm", "shank": "forearm", "foot": "hand", "toe": "hand"}
"""What parts of a front leg are; anatomists call its bones those of an arm."""

LATIN = (
    ("tail", "tail"),
    ("shoulder", "scapula|blade"),
    ("foot", "metatars|hock|tarsus"),
    ("hand", "metacarp|carpus"),
)
"""Words for links of animals and robots that `role_of` reads before those of PARTS."""

OTHER_SIDE = {"left": "right", "right": "left", "l": "r", "r": "l"}

KINDS_OF_LIMBS = ("arm", "leg")
"""Limbs whose names end so are also known together, as "arms" and "legs"."""


def part_of(name: str) -> str:
    """The part of the body that a joint's name means, or ""."""
    plain = _plain(name).lower()
    return next((part for part, words in PARTS if re.search(words, plain)), "")


def side_of(name: str) -> str:
    """The side that a joint's name means: "left", "right" or ""."""
    plain = _plain(name)
    for side in ("left", "right"):
        letter = side[0]
        if side in plain.lower() or re.match(rf"{letter}_|{letter.upper()}(_|[A-Z])", plain):
            return side
        if re.search(rf"[_.\-]{letter}$", plain, flags=re.IGNORECASE):
            return side
    if re.match(r"[lr](hip|femur|tibia|foot|toe|clav|hum|rad|wrist|hand|finger|thumb)", plain):
        return "left" if plain[0] == "l" else "right"
    return ""


def role_of(name: str) -> tuple[str, str]:
    """Role in a limb and side that a link's name means, "" where it does not say.

    Beyond `part_of` and `side_of` it reads the names of animals and robots: FL_thigh, hind_paw,
    scapula, metatarsus; the parts of a front leg are those of an arm.
    """
    plain = _plain(name)
    low = plain.lower()
    side = side_of(name)
    if not side and (end := re.search(r"[a-z0-9]([LR])$", plain)):
        side = "left" if end[1] == "L" else "right"
    if not side and (mark := re.match(r"([fhr])([lr])[_ ]", low)):  # FL_thigh
        side = "left" if mark[2] == "l" else "right"
    front = bool(re.search(r"front|(^|_)fore(?!_?arm)|^f[lr]_", low))
    hind = bool(re.search(r"hind|rear|^[hr][lr]_", low))
    role = part_of(name)
    latin = next((part for part, words in LATIN if re.search(words, low)), "")
    if latin:
        role = latin
    elif front and role in ("foot", "toe"):
        role = "hand"
    elif (hind and re.search("paw|toe", low)) or (
        role == "foot" and re.search("thumb|pinky|finger", low)
    ):
        role = "toe"
    if front and role in ("thigh", "shank"):  # "front_left_thigh" of a robot
        role = FRONT_PARTS[role]
    return role, side


def is_tail(name: str) -> bool:
    """Whether a joint's name means a tail."""
    return re.search(r"(?<![a-z])tail", name, flags=re.IGNORECASE) is not None


def is_animal(names: Iterable[str]) -> bool:
    """Whether names of joints are those of an animal: hind legs, paws, a tail."""
    return any(ANIMAL.search(name) for name in names)


def is_person(names: Iterable[str]) -> bool:
    """Whether names of joints are those of a person: left or right arms or legs, no animal's."""
    names = tuple(names)
    limbs = any(part_of(name) in (*ARM, *LEG) and side_of(name) for name in names)
    return limbs and not is_animal(names)


def opposite_of(name: str, known: Sequence[str]) -> str | None:
    """The name of the same part on the other side; the name itself for a part in the middle.

    Reads left and right anywhere in a name, and l and r at its beginning, at its end, or between
    separators, where the other name exists: LThumb, lfemur, foot_l, upper.R.arm. None if a name
    says left or right and the other side is missing.
    """
    if re.search("left|right", name, re.IGNORECASE):
        other = re.sub("left|right", _other_side, name, flags=re.IGNORECASE)
        return other if other in known else None
    for pattern in (r"^[lr]", r"(?<=[._ -])[lr](?=[._ -]|$)", r"[LR]$"):
        flags = re.IGNORECASE if pattern != r"[LR]$" else 0
        other = re.sub(pattern, _other_side, name, count=1, flags=flags)
        if other != name and other in known:
            return other
    return name


def links_of(character: SceneLike, name: str) -> Ints:
    """Indices of the links that a name means.

    Args:
        character: The character, or a scene.
        name: "all"; a limb; "arms" or "legs", all limbs of that kind; or a link. In a scene of
            several parts a limb is that of all parts, `part/limb` that of one.
    """
    scene = scene_of(character)
    names = scene.forest.link_names
    sets = _sets(scene)
    if name in sets:
        return np.array(sorted(names.index(link) for link in sets[name]), dtype=np.int32)
    if name in names:
        return np.array([names.index(name)], dtype=np.int32)
    raise PoiseError(unknown_name("limb or link", name, [*sets, *names], "limbs and links"))


def _sets(scene: Scene) -> dict[str, set[str]]:
    """Names of sets of links: all, limbs, and limbs of a kind."""
    sets: dict[str, set[str]] = {"all": set(scene.forest.link_names)}
    several = len(scene.characters) > 1
    for part, character in zip(scene.forest.parts, scene.characters, strict=True):
        prefix = f"{part}/" if several else ""
        for limb, links in character.limbs.items():
            own = {prefix + link for link in links}
            for called in {limb, prefix + limb}:
                sets.setdefault(called, set()).update(own)
            for kind in KINDS_OF_LIMBS:
                if limb.endswith(kind):
                    sets.setdefault(kind + "s", set()).update(own)
    return sets


def _plain(name: str) -> str:
    """A name without its prefix: "mixamorig:LeftUpLeg", "Character1_LeftUpLeg" are LeftUpLeg."""
    return re.sub(r"^.*:|^character\d*_", "", name, flags=re.IGNORECASE)


def _other_side(match: re.Match[str]) -> str:
    """The word or letter of the other side, in capitals where this one is."""
    word, other = match[0], OTHER_SIDE[match[0].lower()]
    if word.isupper():
        return other.upper()
    return other.capitalize() if word[0].isupper() else other
