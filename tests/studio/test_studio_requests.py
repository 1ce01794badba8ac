"""What a page sends: nothing of it can hurt."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poise import PoiseError
from poise.studio import requests
from poise.studio.handlers import HANDLERS
from poise.studio.jobs import OutputFolder, safe_name
from poise.studio.requests import Request

KINDS: list[type[Any]] = list(HANDLERS)
GOOD: list[Request] = [
    requests.Play(),
    requests.Step(-3),
    requests.Scrub(-1),
    requests.Choose("humanoid", "walk", 20, "spd", "held", 1 / 120, "hills"),
    requests.SetGravity(np.array([0.0, 0.0, -1.6])),  # type: ignore[arg-type]
    requests.SetGains(np.float64(20.0), 1, "left_arm"),
    requests.AddObject("capsule", 0.2, 3, [1, 2, 3]),  # type: ignore[arg-type]
    requests.Throw(5, (1.0, 2.0, 3.0), 12),
    requests.Push("chest", 100, (0, 1, 0)),
    requests.Drag(np.int64(3), (0.0, 0.0, 1.0)),
    requests.Save(("html", "npz", "html"), "my take"),
    requests.Compare(None),
]
NASTY: list[Any] = [
    math.nan, math.inf, -math.inf, 1e300, -1e300, 10**5000, -1, 1e9, True, None, "", "\0",
    "x" * 999, b"bytes", "../../etc/passwd", "a\nb", [], [1.0], [1.0, math.nan, 0.0],
    [[1], [2, 3], 4], {}, (1e300,) * 3, np.full(3, np.nan), np.zeros((3, 3)), object(), 1j,
    ("npz", "exe"), [[]] * 3,
]  # fmt: skip


def test_every_request_can_be_done_and_every_value_of_it_is_checked() -> None:
    there = {x for x in vars(requests).values() if isinstance(x, type) and issubclass(x, Request)}
    assert set(HANDLERS) == there - {Request}
    for kind in KINDS:
        for field in msgspec.structs.fields(kind):
            # a value of any type, or without bounds, has no description
            assert "None" not in requests._describe(msgspec.inspect.type_info(field.type))


@pytest.mark.parametrize("request_", GOOD, ids=lambda x: type(x).__name__)
def test_good_requests_come_out_with_plain_values(request_: Request) -> None:
    good = request_.checked()
    assert type(good) is type(request_)
    assert good.checked() == good
    for value in msgspec.structs.asdict(good).values():
        assert type(value) in (bool, int, float, str, tuple, type(None))


@pytest.mark.parametrize("kind", KINDS, ids=lambda x: x.__name__)
def test_nasty_values_are_refused_or_harmless(kind: Any) -> None:
    fields = msgspec.structs.fields(kind)
    needed = {field.name: 1.0 for field in fields if field.required}
    for field in fields:
        for value in NASTY:
            good, text = outcome(kind(**{**needed, field.name: value}))
            assert "\n" not in text
            assert len(text) < 500
            for made in msgspec.structs.asdict(good).values() if good else ():
                parts = made if isinstance(made, tuple) else (made,)
                assert all(math.isfinite(x) for x in parts if isinstance(x, (int, float)))
                assert all(len(x) <= 200 and x.isprintable() for x in parts if isinstance(x, str))


def outcome(request: Request) -> tuple[Request | None, str]:
    """The request if it is good, or what is wrong with it."""
    try:
        return request.checked(), ""
    except PoiseError as error:
        return None, str(error)


@given(st.text(max_size=300))
@settings(max_examples=100, deadline=None)
def test_a_name_from_a_page_becomes_a_plain_file_name(name: str) -> None:
    safe = safe_name(name)
    assert re.fullmatch(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?", safe)
    assert ".." not in safe
    assert len(safe) < 70


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("my take", "my-take"), ("../../etc/passwd", "etc-passwd"), ("C:\\Win\\x", "C-Win-x"),
        ("..", "take"), ("", "take"), ("~/.bashrc", "bashrc"), ("nul", "take-nul"),
        ("con.npz", "take-con.npz"), ("ünï", "n"), ("/abs", "abs"), ("-rf", "rf"),
    ],
)  # fmt: skip
def test_tricks_with_names_lead_nowhere(name: str, safe: str) -> None:
    assert safe_name(name) == safe


def test_new_files_are_in_the_folder_and_replace_none(tmp_path: Path) -> None:
    out = tmp_path / "deep" / "out"
    folder = OutputFolder(out)
    for i, expected in enumerate(["a.npz", "a-2.npz", "a-3.npz", "a-5.npz"]):
        path = folder.new("../a", "npz")
        assert path == out / expected
        if i == 2:
            (out / "a-4.npz").symlink_to(tmp_path / "elsewhere")
    assert not (tmp_path / "elsewhere").exists()


def test_only_recordings_of_the_folder_itself_are_listed_and_opened(tmp_path: Path) -> None:
    folder = OutputFolder(tmp_path / "out")
    assert folder.recordings() == ()
    folder.path.mkdir()
    (tmp_path / "secret.npz").write_bytes(b"x")
    (folder.path / "link.npz").symlink_to(tmp_path / "secret.npz")
    (folder.path / "junk.npz").write_bytes(b"x")
    (folder.path / "sub.npz").mkdir()
    assert folder.recordings() == ("junk.npz",)
    for name in ("link.npz", "../secret.npz", str(tmp_path / "secret.npz"), "sub.npz", "junk"):
        with pytest.raises(PoiseError, match="unknown recording"):
            folder.load(name)
    with pytest.raises(PoiseError, match=r"no \.npz archive"):
        folder.load("junk.npz")
