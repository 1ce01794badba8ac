"""Characters as YAML files: lossless out and in, and bad files refused with file and line."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bad_files import unreadable_paths, write_hole
from bits import bits
from hypothesis import given, settings
from hypothesis import strategies as st
from test_character import SOLID, characters

from poise.characters import builtin_names, load_character
from poise.errors import CharacterError
from poise.model.character import Character, Joint, Link, Shape
from poise.model.formats import yaml

PENDULUM = """\
format: poise-character
version: 1
name: pendulum
links:
- name: rod
  joints:
  - name: pivot
    kind: hinge
    axis: [0, 1, 0]
  mass: 1.5
  com: [0, 0, -0.5]
  inertia: [0.1, 0.1, 0.01]
limbs:
  arm: [rod]
"""


# lossless


@settings(max_examples=60)
@given(characters())
def test_a_random_character_comes_back_bit_for_bit(character: Character) -> None:
    again = yaml.parse(yaml.dump(character))
    assert again == character
    assert bits(again) == bits(character)


finite = st.floats(-1e30, 1e30) | st.sampled_from([-0.0, 5e-324, 1e22, 1e-7, 0.1 + 0.2, 1e16])


@given(st.tuples(*[finite] * 3), finite)
def test_any_float_comes_back_bit_for_bit(pos: tuple[float, ...], reference: float) -> None:
    joint = Joint("j", "slide", pos=pos, reference=reference)
    character = Character("x", (Link("l", pos=pos, joints=(joint,), **SOLID),))
    assert bits(yaml.parse(yaml.dump(character))) == bits(character)


printable = st.text(min_size=1).filter(lambda s: bool(s.strip()) and s.isprintable())
NASTY = ["null", "~", "yes", "1", "1e3", "a: b", "#a", "- a", "*a", "&a", "!a", "'", '"', "{", "<<"]


@given(printable | st.sampled_from(NASTY))
def test_any_name_comes_back(name: str) -> None:
    link = Link(name, joints=(Joint(name, "free"),), **SOLID)
    character = Character(name, (link, Link(f"{name} 2", name)), {name: (name,)})
    assert yaml.parse(yaml.dump(character)) == character


@pytest.mark.parametrize("name", builtin_names())
def test_a_builtin_comes_back_from_a_file(name: str, tmp_path: Path) -> None:
    character = load_character(name)
    path = tmp_path / "c.yaml"
    character.save(path)
    assert bits(load_character(path)) == bits(character)
    assert load_character(str(path)) == character


def test_a_massless_welded_link_keeps_all_it_has() -> None:
    root = Link("a", joints=(Joint("r", "free"),), **SOLID)
    extra = Link("b", "a", com=(1.0, 2.0, 3.0), shapes=(Shape("sphere", (0.1,)),))
    point = Link("c", "a", mass=1.0)
    character = Character("x", (root, extra, point))
    assert yaml.parse(yaml.dump(character)) == character


def test_the_file_is_short_where_values_are_defaults() -> None:
    text = yaml.dump(yaml.parse(PENDULUM))
    assert len(text.splitlines()) == len(PENDULUM.splitlines())
    assert "[0.1, 0.1, 0.01]" in text


# what a file may say


def test_a_hand_written_file_is_read() -> None:
    c = yaml.parse(PENDULUM)
    assert (c.name, c.nv, c.mass) == ("pendulum", 1, 1.5)
    assert c.joints[0].axis == (0.0, 1.0, 0.0)
    assert c.limbs == {"arm": ("rod",)}


@pytest.mark.parametrize(
    "inertia",
    [
        "[0.2, 0.3, 0.4, 0.01, 0.02, 0.03]",
        "[0.2, 0.01, 0.02, 0.01, 0.3, 0.03, 0.02, 0.03, 0.4]",
    ],
)
def test_inertia_may_be_six_or_nine_numbers(inertia: str) -> None:
    c = yaml.parse(PENDULUM.replace("[0.1, 0.1, 0.01]", inertia))
    want = [[0.2, 0.01, 0.02], [0.01, 0.3, 0.03], [0.02, 0.03, 0.4]]
    np.testing.assert_array_equal(c.links[0].inertia, want)


@pytest.mark.parametrize("given_", ["mass: 1.5", "density: 700"])
def test_inertia_may_be_that_of_shapes(given_: str) -> None:
    head, tail = PENDULUM.split("  mass: 1.5\n")
    shape = "\n  shapes:\n  - kind: capsule\n    size: [0.1, 0.4]\n    pos: [0, 0, -0.5]\n"
    c = yaml.parse(f"{head}  {given_}{shape}{tail[tail.index('limbs') :]}")
    solid = Shape("capsule", (0.1, 0.4), (0.0, 0.0, -0.5))
    key, value = given_.split(": ")
    values: Any = {key: float(value)}
    assert c.links[0] == Link.from_shapes("rod", None, [solid], joints=c.joints, **values)


def test_aliases_and_windows_line_ends_and_a_byte_order_mark_are_read(tmp_path: Path) -> None:
    text = PENDULUM.replace("com: [0, 0, -0.5]", "com: &v [0, 0, -0.5]\n  pos: *v")
    path = tmp_path / "c.yml"
    path.write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    assert load_character(path).links[0].pos == (0.0, 0.0, -0.5)


def test_json_is_yaml_too() -> None:
    link = (
        '{"name": "a", "mass": 1, "inertia": [1, 1, 1], "joints": [{"name": "r", "kind": "free"}]}'
    )
    text = f'{{"format": "poise-character", "version": 1, "name": "x", "links": [{link}]}}'
    assert yaml.parse(text).nv == 6


# bad files


def changed(old: str, new: str) -> str:
    assert old in PENDULUM
    return PENDULUM.replace(old, new)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", 1, "is empty"),
        ("# nothing\n\n", 1, "is empty"),
        ("null", 1, "is empty"),
        ("hello", 1, "must be a mapping with 'format', .* got 'hello'"),
        ("[1, 2]", 1, "must be a mapping .* got a list"),
        ("format: [", 1, "is not YAML"),
        ("a: b: c", 1, "is not YAML"),
        ("format: x\n\tname: y", 2, "is not YAML"),
        ("a: \x00", 1, "is not YAML"),
        (PENDULUM + "---\n" + PENDULUM, 16, "a second document"),
        (changed("poise-character", "mjcf"), 1, "format must be 'poise-character', got 'mjcf'"),
        (changed("version: 1", "version: 2"), 2, "version must be 1, got '2'"),
        (changed("version: 1\n", ""), 1, "needs 'version', which is missing"),
        (changed("name: pendulum", "name: [a]"), 3, "name must be text, got a list"),
        (changed("name: pendulum", "name:"), 3, "name must be text, got ''"),
        (changed("name: pendulum", "nam: p"), 3, "unknown key 'nam'; did you mean 'name'.* keys:"),
        (changed("limbs:", "name: a\nlimbs:"), 13, "key 'name' is there twice"),
        (changed("limbs:\n  arm: [rod]", "limbs: 3"), 13, "limbs must be a mapping, got '3'"),
        (changed("[rod]", "[rot]"), 14, "limb 'arm': unknown link 'rot'; did you mean 'rod'"),
        (changed("arm: [rod]", "arm: rod"), 14, "limb 'arm' must be a list, got 'rod'"),
        (changed("    kind: hinge\n", ""), 7, "a joint needs 'kind', which is missing"),
        (changed("hinge", "hing"), 8, "joint 'pivot': unknown kind 'hing'; did you mean"),
        (changed("[0, 1, 0]", "[0, 0, 0]"), 9, "joint 'pivot': axis has length zero"),
        (changed("[0, 1, 0]", "[0, 1]"), 9, "joint 'pivot': axis must be 3 numbers, got 2"),
        (changed("[0, 1, 0]", "[0, y, 0]"), 9, r"axis\[1\] must be a number, got 'y'"),
        (changed("[0, 1, 0]", "up"), 9, r"axis \(numbers\) must be a list, got 'up'"),
        (changed("axis: [0, 1, 0]", "armature: -1"), 9, "armature must be at least 0"),
        (changed("axis: [0, 1, 0]", "limits: [2, 1]"), 9, "limits are reversed"),
        (changed("axis: [0, 1, 0]", "effort: [1, 2, 3]"), 9, "effort must be a number"),
        (changed("mass: 1.5", "mass: '1.5'"), 10, "link 'rod': mass must be a number"),
        (changed("mass: 1.5", "mass: true"), 10, "mass must be a number, got 'true'"),
        (changed("mass: 1.5", "mass: -1.5"), 10, "mass must be at least 0"),
        (changed("mass: 1.5", "mass: .nan"), 10, "mass must be finite"),
        (changed("mass: 1.5", "mass: -.inf"), 10, "mass must be finite"),
        (changed("mass: 1.5", "mass: 1e999"), 10, "mass must be finite"),
        (changed("mass: 1.5", "mass: !!float 1"), 10, "tags such as .*float are not read"),
        (changed("  mass: 1.5\n", ""), 5, "needs mass, or density and shapes"),
        (changed("mass: 1.5", "density: 3"), 11, "com needs mass and inertia beside it"),
        (changed("  com: [0, 0, -0.5]\n  inertia: [0.1, 0.1, 0.01]\n", ""), 5, "needs inertia"),
        (changed("[0.1, 0.1, 0.01]", "[1, 1, 3]"), 12, "inertia is not physical"),
        (changed("[0.1, 0.1, 0.01]", "[1, 1]"), 12, "inertia must be 3, 6 or 9 numbers, got 2"),
        (changed("mass: 1.5", "parent: rod\n  mass: 1.5"), 5, "in a circle: 'rod' -> 'rod'"),
        (changed("mass: 1.5", "shapes: [{kind: box}]\n  mass: 1"), 10, "a shape needs 'size'"),
        (changed("mass: 1.5", "shapes: [7]\n  mass: 1"), 10, "a shape must be a mapping"),
        (changed("rod]", "*rod]"), 14, r"alias \*rod stands for nothing"),
        (changed("[rod]", "&a [*a]"), 14, r"alias \*a stands for nothing"),
    ],
)
def test_a_wrong_file_is_refused_with_its_line(text: str, line: int, message: str) -> None:
    with pytest.raises(CharacterError, match=rf"(?s)^c\.yaml:{line}: .*{message}"):
        yaml.parse(text, "c.yaml")


def test_unknown_parents_and_twins_are_found_where_they_stand() -> None:
    second = "- name: tip\n  parent: rot\n  mass: 0\nlimbs:"
    with pytest.raises(CharacterError, match=r"c:13: link 'tip': parent: unknown link 'rot'"):
        yaml.parse(changed("limbs:", second), "c")


def test_files_that_are_no_text_or_no_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_bytes(b"format: x\nname: \xff\xfe\n")
    with pytest.raises(CharacterError, match=r"c.yaml:2: is not UTF-8 text"):
        load_character(path)
    path.write_bytes(b"")
    with pytest.raises(CharacterError, match=r"c.yaml:1: is empty"):
        load_character(path)
    for path in unreadable_paths(tmp_path, ".yaml"):
        with pytest.raises(CharacterError, match=r"is not a file|cannot be read"):
            load_character(path)


def test_a_huge_file_is_refused_at_once(tmp_path: Path) -> None:
    path = write_hole(tmp_path / "c.yaml")
    with pytest.raises(CharacterError, match="is larger than 4 MiB"):
        load_character(path)


def bomb() -> str:
    """Each level stands for ten of the one before: 10^12 values in 12 lines."""
    lines = ["a0: &a0 [1]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 12)]
    return "\n".join(lines)


@pytest.mark.parametrize(
    "make",
    [
        bomb,
        lambda: "[" * 100_000,
        lambda: "a: " + "{a: " * 100_000,
        lambda: "- " * 100_000,
        lambda: "? " * 100_000,
        lambda: "a: &" + "x" * 1_000_000,
        lambda: changed("[rod]", f"[{'rod, ' * 50_000}]"),
        # as large as the bounds allow
        lambda: "[" + "1," * (yaml.MOST_WORDS - 1),
        lambda: '"' + "x\n" * (yaml.MOST_WORDS - 1),
        lambda: "x" * yaml.LARGEST_TEXT,
    ],
)
def test_a_malicious_file_is_refused_in_bounded_time(make: Callable[[], str]) -> None:
    text = make()
    start = time.process_time()
    with pytest.raises(CharacterError):
        yaml.parse(text)
    # 5 s on a slow machine; without bounds, 80 s
    assert time.process_time() - start < 10.0


@pytest.mark.parametrize("part", ["x\n", "\n", "- 1\n", "x "])
def test_a_text_of_too_many_words_or_lines_is_not_even_parsed(part: str) -> None:
    start = time.process_time()
    with pytest.raises(CharacterError, match=r"too large: over .* words"):
        yaml.parse(part * (yaml.MOST_WORDS + 1))
    assert time.process_time() - start < 1.0  # parsing it takes over 2 s


def test_vertices_are_lines_of_text_or_lists() -> None:
    corners = ((0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 0.1))
    character = Character("c", (Link.from_shapes("l", None, [Shape.mesh(corners)]),))
    text = yaml.dump(character)
    assert "vertices: |\n      0.0 0.0 0.0\n      1.0 0.0 0.0\n" in text
    rows = text[text.index("|") : text.index("0.0 0.0 0.1\n") + 12]
    listed = text.replace(rows, f"{[list(corner) for corner in corners]}\n")
    assert yaml.parse(listed) == yaml.parse(text) == character
    with pytest.raises(CharacterError, match=r"vertices\[1\] must be 3 numbers, got '1.0 x'"):
        yaml.parse(text.replace("1.0 0.0 0.0", "1.0 x"))


def test_too_many_values_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml, "MOST_VALUES", 1000)
    with pytest.raises(CharacterError, match=":1: too large: over 1000 values"):
        yaml.parse("[" + "1, " * 2000 + "]")


@settings(max_examples=200)
@given(st.data())
def test_no_other_error_escapes_from_a_damaged_file(data: st.DataObject) -> None:
    text = PENDULUM
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        end = min(len(text), start + data.draw(st.integers(0, 8)))
        text = text[:start] + data.draw(st.text(max_size=6) | st.sampled_from(NASTY)) + text[end:]
    with contextlib.suppress(CharacterError):
        yaml.parse(text)


# saving


def test_saving_replaces_the_file_whole_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    load_character("dog").save(path)
    load_character("two-link").save(path)
    assert load_character(path) == load_character("two-link")
    assert os.listdir(tmp_path) == ["c.yaml"]


def test_a_failed_save_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "c.yaml"
    load_character("two-link").save(path)

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(CharacterError, match="cannot be written: No space left"):
        load_character("dog").save(path)
    assert load_character(path) == load_character("two-link")
    assert os.listdir(tmp_path) == ["c.yaml"]


def test_saving_needs_a_known_suffix_and_a_folder(tmp_path: Path) -> None:
    with pytest.raises(CharacterError, match=r"poise writes \.yaml, \.yml, \.xml"):
        load_character("two-link").save(tmp_path / "c.txt")
    with pytest.raises(CharacterError, match="cannot be written: No such file"):
        load_character("two-link").save(tmp_path / "no" / "c.yaml")


def test_loading_a_builtin_does_not_import_the_yaml_library() -> None:
    code = (
        "import sys; from poise.characters import load_character; load_character('humanoid');"
        "sys.exit(any('ruamel' in name for name in sys.modules))"
    )
    path = os.pathsep.join(p for p in sys.path if p)
    assert subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": path}).returncode == 0
