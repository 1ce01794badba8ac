"""Ways to spoil a file: bytes, lines, words, numbers, and what is inside of archives."""

from __future__ import annotations

import copy
import io
import json
import random
import re
import zipfile
from collections.abc import Callable
from typing import Any

from small_files import glb_bytes, glb_parts

Mutation = Callable[[random.Random, bytes], bytes]

NUMBERS = tuple(
    b"0 -0 1 -1 2 3 7 255 256 65536 -65536 2147483647 2147483648 -2147483649 4294967296 "
    b"9223372036854775807 9223372036854775808 1e5 1e9 1e30 1e38 1e300 -1e300 1e308 1e309 1e-9 "
    b"1e-300 5e-324 nan NaN -nan inf -inf Infinity 0x10 1_000 1e 1e+ . - + 1,5 0.0.0 1e999999999 "
    b"99999999999999999999999999999999 true null [] {} \"\" '' \xd9\xa1 .5 5. 1d3".split()
)
"""Numbers, and words that some parser takes for a number."""

JUNK = (
    b"\0", b"\xff", b"\xc3\x28", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\xe2\x80\xa8", b"\x1a", b"\t",
    b"\r", b"\n\n\n", b"\x0b", b"\x85", b"{", b"}", b"[", b"]", b"<", b">", b"/>", b"&lt;", b"&x;",
    b"&#0;", b"&#x110000;", b"<!-- ", b"]]>", b"<![CDATA[", b'"', b"'", b"\\", b"\\ud800", b":",
    b": *a", b"&a ", b"!!python/object:os.system ", b"!!binary ", b"<<: *a", b"---\n", b"...\n",
    b"#", b",", b"%", b"[" * 3000, b"{" * 3000, b"<a>" * 3000, b"9" * 5000, b"a" * 70000,
    "\u202e\u0301".encode(), b"End Site", b"CHANNELS", b"__proto__", b"../../etc/passwd",
)  # fmt: skip


def flip_bits(rng: random.Random, data: bytes) -> bytes:
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8, 40))):
        if out:
            out[rng.randrange(len(out))] ^= 1 << rng.randrange(8)
    return bytes(out)


def truncate(rng: random.Random, data: bytes) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def cut_out(rng: random.Random, data: bytes) -> bytes:
    start = rng.randrange(len(data) + 1)
    return data[:start] + data[start + rng.choice((1, 2, 4, 10, 100)) :]


def put_in(rng: random.Random, data: bytes) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.choice(JUNK) + data[at:]


def repeat_part(rng: random.Random, data: bytes) -> bytes:
    start = rng.randrange(len(data) + 1)
    part = data[start : start + rng.choice((1, 5, 40, 300))]
    return data[:start] + part * rng.choice((2, 2, 3, 50)) + data[start:]


def change_lines(rng: random.Random, data: bytes) -> bytes:
    """Drop, double, swap or empty lines."""
    lines = data.split(b"\n")
    for _ in range(rng.choice((1, 1, 2, 5))):
        i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
        what = rng.randrange(4)
        if what == 0 and len(lines) > 1:
            del lines[i]
        elif what == 1:
            lines.insert(j, lines[i])
        elif what == 2:
            lines[i], lines[j] = lines[j], lines[i]
        else:
            lines[i] = b""
    return b"\n".join(lines)


def change_words(rng: random.Random, data: bytes) -> bytes:
    """Drop, double, swap or replace words."""
    words = re.split(rb"([\s\"<>{}\[\],:=]+)", data)
    for _ in range(rng.choice((1, 1, 2, 5))):
        i, j = (2 * rng.randrange((len(words) + 1) // 2) for _ in range(2))
        words[i] = rng.choice((b"", words[i] + b" " + words[i], words[j], rng.choice(NUMBERS)))
    return b"".join(words)


def change_numbers(rng: random.Random, data: bytes) -> bytes:
    """Put absurd numbers in the place of good ones; sometimes of all."""
    every = rng.random() < 0.05
    found = list(re.finditer(rb"-?\d+(\.\d*)?(e[-+]?\d+)?", data))
    if not found:
        return data
    chosen = found if every else sorted(rng.sample(found, min(len(found), rng.choice((1, 1, 2)))),
                                        key=lambda m: m.start())  # fmt: skip
    new, out, at = rng.choice(NUMBERS), b"", 0
    for match in chosen:
        out += data[at : match.start()] + new
        at = match.end()
    return out + data[at:]


def change_line_ends(rng: random.Random, data: bytes) -> bytes:
    end = rng.choice((b"\r\n", b"\r", b"\n\n", b"\x0c", b" \n\t"))
    return data.replace(b"\n", end)


def encode_otherwise(rng: random.Random, data: bytes) -> bytes:
    text = data.decode("latin-1")
    return rng.choice(
        (text.encode("utf-16"), text.encode("utf-32"), b"\xef\xbb\xbf" + data, data + b"\xe4\xfc")
    )


PLAIN: tuple[Mutation, ...] = (flip_bits, truncate, cut_out, put_in, repeat_part)
TEXT: tuple[Mutation, ...] = (
    *PLAIN, change_lines, change_words, change_numbers, change_line_ends, encode_otherwise,
)  # fmt: skip


def mutate_text(rng: random.Random, data: bytes) -> bytes:
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        data = rng.choice(TEXT)(rng, data)
    return data


def mutate_bytes(rng: random.Random, data: bytes) -> bytes:
    for _ in range(rng.choice((1, 1, 2))):
        data = rng.choice(PLAIN)(rng, data)
    return data


def change_values(rng: random.Random, data: bytes) -> bytes:
    """Change values of a JSON text, so that it stays JSON."""
    try:
        tree = json.loads(data)
    except ValueError:
        return data
    for _ in range(rng.choice((1, 1, 2, 4))):
        places = list(_places(tree))
        if not places:
            break
        holder, key = rng.choice(places)
        good = [h[k] for h, k in places]
        if rng.random() < 0.15:
            del holder[key]
        else:
            holder[key] = rng.choice(
                (None, True, -1, 0, 1, 7, 2**31, 2**63, 10**30, 1e300, -1e-300, "", "x", [], {},
                 [[]], float("nan"), float("inf"), 0.5, "\ud800", [1, 2, 3],
                 copy.deepcopy(rng.choice(good)))
            )  # fmt: skip
    return json.dumps(tree).encode()


def _places(tree: Any) -> Any:
    items = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, value in list(items):
        yield tree, key
        if isinstance(value, (dict, list)):
            yield from _places(value)


def mutate_json(rng: random.Random, data: bytes) -> bytes:
    return change_values(rng, data) if rng.random() < 0.6 else mutate_text(rng, data)


def mutate_glb(rng: random.Random, data: bytes) -> bytes:
    """The header, the numbers behind it, or the bytes of the file, lengths included."""
    text, binary = glb_parts(data)
    what = rng.random()
    if what < 0.5:
        return glb_bytes(change_values(rng, text), binary)
    if what < 0.6:
        return glb_bytes(mutate_text(rng, text), binary)
    if what < 0.8:
        return glb_bytes(text, mutate_bytes(rng, binary))
    head = bytearray(data[:28])
    if what < 0.9:
        at = 4 * rng.randrange(7)
        head[at : at + 4] = rng.choice((0, 1, 2**31, 2**32 - 1, len(data) + 4)).to_bytes(
            4, "little"
        )
        return bytes(head) + data[28:]
    return mutate_bytes(rng, data)


def mutate_npz(rng: random.Random, data: bytes) -> bytes:
    """A member within a valid archive, the list of members, or the bytes of the archive."""
    if rng.random() < 0.25:
        return mutate_bytes(rng, data)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = [(name, archive.read(name)) for name in archive.namelist()]
    at = rng.randrange(len(members))
    name, content = members[at]
    what = rng.random()
    if what < 0.1:
        del members[at]
    elif what < 0.2:
        members[at] = (rng.choice((".npy", "../x.npy", name + "x", "x" * 300)), content)
    elif what < 0.5:
        # the header of an array, with its length kept true
        head, body = content[:10], content[10:]
        size = int.from_bytes(head[8:10], "little")
        header = mutate_text(rng, body[:size])[:60000]
        content = head[:8] + len(header).to_bytes(2, "little") + header + body[size:]
        members[at] = (name, content)
    else:
        members[at] = (name, mutate_text(rng, content))
    out = io.BytesIO()
    method = rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return out.getvalue()


def mutation_of(kind: str) -> Mutation:
    """How to spoil files of a kind."""
    if kind.startswith("glb"):
        return mutate_glb
    if kind in ("amass", "npz"):
        return mutate_npz
    return mutate_json if kind.startswith(("deepmimic", "gltf")) else mutate_text
