"""Keyframes as text: `.keys.yaml` files, read with care.

    clip: wave
    character: humanoid-ball      # a built-in one, or a path from this file
    fps: 60
    keys:
    - time: 0
      joints: {left_shoulder: [90, 0, 0], left_elbow: [0, -20, 0]}    # degrees about x, y, z
    - time: 0.5
      joints: {left_elbow: [0, -80, 0]}

docs/keyframes.md describes the format. Every error names the file and the line.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from poise.anatomy.feet import has_free_root, tip_of
from poise.characters import load_character
from poise.errors import ClipError, PoiseError
from poise.io.files import read_text
from poise.io.yaml_nodes import Node
from poise.math import rotation
from poise.math.arrays import Floats
from poise.model.character import Character, Joint
from poise.motion.authoring.spacetime import Travel
from poise.motion.keyframes.contacts import StandReader
from poise.motion.keyframes.keys import Keyframes, Reach, Track
from poise.motion.keyframes.targets import limb_of
from poise.motion.limits import swing_twist

ENDING = ".keys.yaml"
LARGEST_FILE = 2**18  # [bytes]
MOST_VALUES = 20_000
MOST_KEYS = 200
LONGEST = 600.0  # [s]
SLACK = np.radians(0.01)  # beyond a joint's limit: angles are typed in decimals

CLIP_KEYS = (
    "clip", "character", "fps", "duration", "loop", "mirror", "contacts", "footholds", "options",
    "keys",
)  # fmt: skip


def load_keyframes(path: str | os.PathLike[str], character: Character | None = None) -> Keyframes:
    """Read keyframes from a file.

    Args:
        path: The file.
        character: The character that moves; the one that the file names unless given.
    """
    text = read_text(path, LARGEST_FILE, ClipError)
    return parse_keyframes(text, os.fspath(path), character)


def parse_keyframes(
    text: str, name: str = "<text>", character: Character | None = None
) -> Keyframes:
    """Read keyframes from text.

    Args:
        text: The text of a file.
        name: What errors call the file; a character's path is taken from where it is.
        character: The character that moves; the one that the text names unless given.
    """
    return _File(name, character).keyframes(text)


class _Key(NamedTuple):
    """One key of a track as it is read: angles [degrees] as written, value as the track has it."""

    time: float
    value: Floats
    angles: tuple[float, ...]
    hold: float
    line: int


def _track(keys: Sequence[_Key]) -> Track:
    """A track of keys, in the order of time."""
    times, values, _, hold, lines = zip(*sorted(keys, key=lambda key: key.time), strict=True)
    return Track(np.array(times), np.array(values), np.array(hold), lines)


class _File(StandReader):
    """Turns text into keyframes."""

    def __init__(self, name: str, character: Character | None) -> None:
        super().__init__(name, ClipError, MOST_VALUES)
        self.given = character

    def keyframes(self, text: str) -> Keyframes:
        """The keyframes of a whole text."""
        root = self.tree(text)
        found = self.mapping(root, "a keyframe file", CLIP_KEYS, ("clip", "character", "keys"))
        self.character = self.given or self.load(found["character"])
        fps = self.number(found["fps"], "fps", 1.0, 1000.0) if "fps" in found else 60.0
        self.keys = self.key_nodes(found["keys"])
        self.loop = self.travel(found["loop"]) if "loop" in found else None
        self.mirrored = "mirror" in found and self.halved(found["mirror"])
        self.duration = self.lasts(found, root)
        self.check_times()
        self.drafts: dict[str, list[_Key]] = {}
        self.reaches: list[Reach] = []
        for time, node, key in self.keys:
            self.key(time, node, key)
        tracks = self.tracks()
        stands, reaches = self.stands(found), self.both_sides(self.reaches)
        self.check_free(reaches, stands)
        keys = Keyframes(
            name=self.text(found["clip"], "clip"),
            character=self.character,
            fps=fps,
            duration=self.duration,
            root_pos=tracks.pop("root pos", None),
            root_turn=tracks.pop("root turn", None),
            joints=MappingProxyType(tracks),
            stands=stands,
            reaches=reaches,
            loop=self.loop,
            mirrored=self.mirrored,
            options=self.options(found["options"]) if "options" in found else {},
            source=self.name,
        )
        try:
            keys.times()
        except ClipError as error:
            node = found.get("duration", self.keys[-1][1])
            raise self.error(node, str(error).removeprefix(f"{self.name}: ")) from error
        return keys

    # the whole clip

    def load(self, node: Node) -> Character:
        source = self.text(node, "character")
        beside = Path(self.name).parent / source
        try:
            return load_character(beside if Path(source).suffix else source)
        except PoiseError as error:
            raise self.error(node, f"character: {error}") from error

    def travel(self, node: Node) -> Travel | None:
        if node.kind == "scalar" and node.value == "none":
            return None
        if node.kind != "mapping":
            raise self.error(node, f"loop must be 'none' or {{travel: ..., turn: ...}}, got {node}")
        found = self.mapping(node, "loop", ("travel", "turn"))
        shift = self.vector(found["travel"], "travel", 3) if "travel" in found else (0.0, 0.0, 0.0)
        turn = self.number(found["turn"], "turn", -180.0, 180.0) if "turn" in found else 0.0
        if (any(shift) or turn) and not has_free_root(self.character):
            raise self.error(node, f"loop: {self.character.name!r} has no free root to travel")
        x, y, z = shift
        return Travel((x, y, z), float(np.radians(turn)))

    def halved(self, node: Node) -> bool:
        word = self.text(node, "mirror")
        if word not in ("half", "none"):
            raise self.error(node, f"mirror must be 'half' or 'none', got {node}")
        if word == "half" and self.loop is None:
            raise self.error(node, "mirror: half needs a loop")
        if word == "half" and self.loop and (self.loop.turn or self.loop.shift[1]):
            raise self.error(node, "mirror: half needs a loop without turn and without y in travel")
        return word == "half"

    def lasts(self, found: dict[str, Node], root: Node) -> float:
        """Duration [s]."""
        if "duration" in found:
            return self.number(found["duration"], "duration", 1e-3, LONGEST)
        if self.loop is not None:
            raise self.error(root, "a loop needs 'duration', the time of one cycle [s]")
        if self.keys[-1][0] <= 0.0:
            raise self.error(self.keys[-1][1], "one key at time 0 needs a 'duration' [s]")
        return self.keys[-1][0]

    # keys

    def key_nodes(self, node: Node) -> list[tuple[float, Node, dict[str, Node]]]:
        """Time, node and parts of each key."""
        items = self.items(node, "keys")
        if not 1 <= len(items) <= MOST_KEYS:
            raise self.error(node, f"keys must be 1 to {MOST_KEYS} keys, got {len(items)}")
        out = []
        for item in items:
            found = self.mapping(item, "a key", ("time", "root", "joints", "reach", "hold"))
            if "time" not in found:
                raise self.error(item, "a key needs 'time', which is missing")
            out.append((self.number(found["time"], "time", 0.0, LONGEST), item, found))
        return out

    def check_times(self) -> None:
        before = None
        for time, node, _ in self.keys:
            if before is not None and time - before < 1e-3:
                same = "put them into one" if time == before else "keys are in the order of time"
                raise self.error(node, f"time {time:g} s after a key at {before:g} s; {same}")
            before = time
        for time, node, _ in self.keys:
            if self.mirrored and time > self.duration / 2.0 - 1e-3:
                raise self.error(
                    node,
                    f"time {time:g} s lies in the second half, which mirrors the first; keys end "
                    f"before {self.duration / 2.0:g} s",
                )
            if self.loop is not None and time > self.duration - 1e-3:
                raise self.error(
                    node,
                    f"time {time:g} s: the cycle ends at {self.duration:g} s, where it is as at 0",
                )
            if time > self.duration + 1e-9:
                raise self.error(node, f"time {time:g} s is after the end, {self.duration:g} s")

    def key(self, time: float, node: Node, found: dict[str, Node]) -> None:
        """Divides one key among the tracks."""
        hold = self.number(found["hold"], "hold", 0.0, 1.0) if "hold" in found else 1.0
        if "root" in found:
            if not has_free_root(self.character):
                raise self.error(found["root"], f"{self.character.name!r} has no free root")
            root = self.mapping(found["root"], "root", ("pos", "turn"))
            if "pos" in root:
                pos = self.vector(root["pos"], "root pos", 3)
                self.add("root pos", _Key(time, np.array(pos), (), hold, root["pos"].line))
            if "turn" in root:
                angles = self.vector(root["turn"], "root turn", 3)
                turn = rotation.multiply(_turned(angles), self.character.rest_q[3:7])
                self.add("root turn", _Key(time, turn, angles, hold, root["turn"].line))
        if "joints" in found:
            names = [joint.name for joint in self.character.joints if joint.kind != "free"]
            for name, value in self.mapping(found["joints"], "joints", names, (), "joint").items():
                self.joint(self.character.joint(name), time, hold, value)
        if "reach" in found:
            links = [link.name for link in self.character.links]
            for name, value in self.mapping(found["reach"], "reach", links, (), "link").items():
                self.reach(name, time, value)

    def joint(self, joint: Joint, time: float, hold: float, node: Node) -> None:
        what = f"joint {joint.name!r}"
        if joint.kind == "ball":
            if node.kind != "list":
                raise self.error(
                    node, f"{what} is a ball, 3 angles about x, y, z [degrees], got {node}"
                )
            angles = self.vector(node, what, 3)
            value = _turned(angles)
        else:
            if node.kind == "list":
                unit = "metres" if joint.kind == "slide" else "degrees"
                raise self.error(node, f"{what} is a {joint.kind}, one number [{unit}], got a list")
            angles = ()
            number = self.number(node, what)
            value = np.array([number if joint.kind == "slide" else np.radians(number)])
        self.check_limits(joint, value, node)
        self.add(joint.name, _Key(time, value, angles, hold, node.line))

    def check_limits(self, joint: Joint, value: Floats, node: Node) -> None:
        if joint.limits is None:
            return
        scale, unit = (1.0, "m") if joint.kind == "slide" else (180.0 / np.pi, "degrees")
        *_, low, high = joint.limits
        along, name = float(value[0]), "it"
        if joint.kind == "ball":
            swing, twist, _, _ = swing_twist(value[None], np.array(joint.axis))
            widest = joint.limits[0]
            if swing[0] > widest + SLACK:
                raise self.error(
                    node,
                    f"joint {joint.name!r} swings {scale * swing[0]:.1f} degrees, its limit is "
                    f"{scale * widest:.1f}",
                )
            axis = ", ".join(f"{x:g}" for x in joint.axis)
            along, name = float(twist[0]), f"its twist about ({axis})"
        if not low - SLACK <= along <= high + SLACK:
            raise self.error(
                node,
                f"joint {joint.name!r}: {name} is {scale * along:.4g} {unit}, its limits are "
                f"{scale * low:.4g} to {scale * high:.4g}",
            )

    def reach(self, link: str, time: float, node: Node) -> None:
        target = self.vector(node, f"reach of {link!r}", 3)
        try:
            tip_of(self.character, link)
        except ClipError as error:
            raise self.error(node, f"reach of {link!r}: {error}") from error
        if not any(x.joints for x in limb_of(self.character, link)):
            raise self.error(node, f"reach of {link!r}: no joint moves it but the root")
        self.reaches.append(Reach(link, time, target, node.line))

    def add(self, name: str, key: _Key) -> None:
        """Adds a key to a track; angles that turn too far to be clear are refused."""
        draft = self.drafts.setdefault(name, [])
        if key.angles and draft and draft[-1].angles:
            steps = [abs(a - b) for a, b in zip(key.angles, draft[-1].angles, strict=True)]
            if max(steps) >= 180.0:
                raise self.error(
                    key.line,
                    f"{name}: turns by {max(steps):g} degrees about {'xyz'[int(np.argmax(steps))]} "
                    f"since {draft[-1].time:g} s; less than 180 is clear, put a key between",
                )
        draft.append(key)

    # both halves

    def tracks(self) -> dict[str, Track]:
        """Tracks of all keys, by joint, "root pos" and "root turn"."""
        found = {name: list(keys) for name, keys in self.drafts.items()}
        if self.mirrored:
            for name, keys in self.drafts.items():
                other, values = self.image(name, keys)
                found.setdefault(other, []).extend(
                    key._replace(time=key.time + self.duration / 2.0, value=value)
                    for key, value in zip(keys, values, strict=True)
                )
        return {name: _track(keys) for name, keys in found.items()}

    def image(self, name: str, keys: Sequence[_Key]) -> tuple[str, Floats]:
        """Name and values of a track in the mirror, half a cycle on."""
        values = np.array([key.value for key in keys])
        if name == "root pos":
            return name, self.half_on(values)
        if name == "root turn":
            return name, self.mirror.turn(values)
        with self.mirror_errors(keys[0].line):
            name, values = self.mirror.joint(name).name, self.mirror.values(name, values)
        return name, values

    def both_sides(self, reaches: Sequence[Reach]) -> tuple[Reach, ...]:
        """The reaches of both halves of a mirrored loop."""
        images = []
        for reach in reaches if self.mirrored else ():
            with self.mirror_errors(reach.line):
                link = self.mirror.pairs[reach.link]
            target = tuple(self.half_on(np.array(reach.target)).tolist())
            time = reach.time + self.duration / 2.0
            images.append(replace(reach, link=link, time=time, target=target))
        return (*reaches, *images)

    def options(self, node: Node) -> MappingProxyType[str, Any]:
        found = self.mapping(node, "options")
        return MappingProxyType({key: self.plain(value) for key, value in found.items()})

    def plain(self, node: Node) -> Any:
        """A value of options: number, text, tuple or mapping."""
        if node.kind == "mapping":
            return self.options(node)
        if node.kind == "list":
            return tuple(self.plain(item) for item in node.value)
        if node.is_null:
            return None
        if node.is_number:
            return self.number(node, "a number in options", -1e12, 1e12)
        return {"true": True, "false": False}.get(node.value if node.plain else "", node.value)


def _turned(angles: tuple[float, ...]) -> Floats:
    """Roll about x, then pitch about y, then yaw about z [degrees]: yaw * pitch * roll."""
    x, y, z = map(rotation.turn, np.eye(3), np.radians(angles))
    return rotation.multiply(z, rotation.multiply(y, x))


__all__ = ["ENDING", "Keyframes", "load_keyframes", "parse_keyframes"]
