"""The first part of a BVH file: joints with offsets and channels."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from poise.anatomy.rig import RigJoint
from poise.errors import ClipError

MOST_JOINTS = 1000
LARGEST_NUMBER = 1e9
PLAIN_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)

CHANNELS = ("Xposition", "Yposition", "Zposition", "Xrotation", "Yrotation", "Zrotation")


@dataclass
class _Draft:
    """A joint while its lines are read."""

    name: str
    parent: int
    line: int
    offset: tuple[float, ...] | None = None
    channels: tuple[str, ...] | None = None
    end: tuple[float, ...] | None = None


class Hierarchy:
    """Reads the first part of a file, word by word."""

    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        self.text = text

    def fail(self, line: int, what: str) -> ClipError:
        return ClipError(f"{self.path}:{line}: {what}")

    def joints(self) -> tuple[RigJoint, ...]:
        """The joints of the one tree."""
        words = self._words()
        line, word = self._next(words, "HIERARCHY")
        if word.upper() != "HIERARCHY":
            raise self.fail(line, f"a BVH file starts with HIERARCHY, got {word!r:.80}")
        drafts = self._tree(words)
        names: dict[str, int] = {}
        for draft in drafts:
            if draft.name in names:
                raise self.fail(
                    draft.line,
                    f"joint {draft.name!r} is there already, in line "
                    f"{names[draft.name]}; names must differ",
                )
            names[draft.name] = draft.line
        return tuple(self._joint(draft) for draft in drafts)

    def _joint(self, draft: _Draft) -> RigJoint:
        if draft.offset is None:
            raise self.fail(draft.line, f"joint {draft.name!r} has no OFFSET")
        return RigJoint(draft.name, draft.parent, draft.offset, draft.channels or (), draft.end)

    def _words(self) -> Iterator[tuple[int, str]]:
        """Words with their lines; braces may stick to other words, names may have spaces."""
        number = 0
        for number, line in enumerate(io.StringIO(self.text, newline=None), 1):
            words = line.replace("{", " { ").replace("}", " } ").split()
            head = words[0].upper() if words else ""
            if head in ("ROOT", "JOINT") and len(words) > 1:
                yield number, words[0]
                # a name runs to the end of its line, or to a brace on it
                brace = words.index("{") if "{" in words else len(words)
                yield number, " ".join(words[1:brace])
                words = words[brace:]
            for word in words:
                yield number, word
        yield number, ""

    def _next(self, words: Iterator[tuple[int, str]], wanted: str) -> tuple[int, str]:
        line, word = next(words)
        if word == "":
            raise self.fail(line, f"the hierarchy ends where {wanted} should be")
        return line, word

    def _tree(self, words: Iterator[tuple[int, str]]) -> list[_Draft]:
        drafts: list[_Draft] = []
        open_joints: list[int] = []  # indices; -1 is an end site
        while True:
            line, word = next(words)
            kind = word.upper()
            if word == "":
                if open_joints or not drafts:
                    raise self.fail(
                        line,
                        "the hierarchy ends before its last brace is closed"
                        if drafts
                        else "the hierarchy has no ROOT",
                    )
                return drafts
            if kind == "ROOT" and not open_joints:
                if drafts:
                    raise self.fail(line, "a second ROOT; poise reads files with one skeleton")
                self._open(words, drafts, -1, line, open_joints)
            elif kind == "JOINT" and open_joints and open_joints[-1] >= 0:
                self._open(words, drafts, open_joints[-1], line, open_joints)
            elif kind == "END" and open_joints and open_joints[-1] >= 0:
                self._end_site(words, drafts[open_joints[-1]])
            elif kind == "OFFSET" and open_joints:
                draft = drafts[open_joints[-1]]
                if draft.offset is not None:
                    raise self.fail(line, f"joint {draft.name!r} has a second OFFSET")
                draft.offset = self._numbers(words)
            elif kind == "CHANNELS" and open_joints:
                self._channels(words, drafts[open_joints[-1]])
            elif word == "}" and open_joints:
                open_joints.pop()
            else:
                raise self.fail(
                    line,
                    f"expected ROOT, JOINT, End Site, OFFSET, CHANNELS or a brace, "
                    f"got {word!r:.80}",
                )

    def _open(
        self,
        words: Iterator[tuple[int, str]],
        drafts: list[_Draft],
        parent: int,
        line: int,
        opened: list[int],
    ) -> None:
        _, name = self._next(words, "a joint's name")
        if name in ("{", "}") or not name.isprintable():
            raise self.fail(line, f"a joint without a printable name, got {name!r:.80}")
        if len(drafts) >= MOST_JOINTS:
            raise self.fail(line, f"more than {MOST_JOINTS} joints")
        brace_line, brace = self._next(words, "{")
        if brace != "{":
            raise self.fail(brace_line, f"expected {{ after joint {name!r}, got {brace!r:.80}")
        opened.append(len(drafts))
        drafts.append(_Draft(name[:200], parent, line))

    def _end_site(self, words: Iterator[tuple[int, str]], draft: _Draft) -> None:
        """End Site { OFFSET x y z }; a joint may have several, the longest counts."""
        line, word = self._next(words, "Site")
        while word != "{":
            if word == "}" or word.upper() in ("OFFSET", "JOINT", "CHANNELS"):
                raise self.fail(line, f"expected {{ after End Site, got {word!r:.80}")
            line, word = self._next(words, "{")
        line, word = self._next(words, "OFFSET")
        if word.upper() != "OFFSET":
            raise self.fail(line, f"expected the OFFSET of the End Site, got {word!r:.80}")
        end = self._numbers(words)
        if draft.end is None or math.hypot(*end) > math.hypot(*draft.end):
            draft.end = end
        line, word = self._next(words, "}")
        if word != "}":
            raise self.fail(line, f"expected }} after the End Site, got {word!r:.80}")

    def _numbers(self, words: Iterator[tuple[int, str]]) -> tuple[float, ...]:
        numbers = []
        for axis in "xyz":
            line, word = self._next(words, f"the {axis} of an OFFSET")
            number = number_in(word)
            if number is None:
                raise self.fail(line, f"an OFFSET is three numbers, got {word!r:.80}")
            numbers.append(number)
        return tuple(numbers)

    def _channels(self, words: Iterator[tuple[int, str]], draft: _Draft) -> None:
        line, word = self._next(words, "the number of channels")
        if draft.channels is not None:
            raise self.fail(line, f"joint {draft.name!r} has a second CHANNELS")
        if word not in tuple("0123456"):
            raise self.fail(line, f"a joint has 0 to 6 CHANNELS, got {word!r:.80}")
        channels: list[str] = []
        for _ in range(int(word)):
            line, name = self._next(words, "a channel")
            known = {c.lower(): c for c in CHANNELS}
            channel = known.get(name.lower())
            if channel is None:
                raise self.fail(
                    line,
                    f"joint {draft.name!r} has {word} channels, of which {name!r:.80} is none;"
                    f" they are {', '.join(CHANNELS)}",
                )
            if channel in channels:
                raise self.fail(line, f"joint {draft.name!r} has channel {channel} twice")
            channels.append(channel)
        draft.channels = tuple(channels)


def number_in(word: str) -> float | None:
    """A finite number of believable size in plain digits, or None."""
    if not PLAIN_NUMBER.fullmatch(word):
        return None
    number = float(word)
    return number if abs(number) <= LARGEST_NUMBER else None
