"""What all commands share: help with examples, one-line errors, exit codes; doctor and bench."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from typing import Any

import pytest
from command_lines import check_line, commands
from typer.testing import CliRunner

from poise import _core
from poise.cli import app, doctor
from poise.cli.app import COMMANDS, load_command
from poise.errors import PoiseError

ALL = commands()
POISE = [sys.executable, "-c", "from poise.cli import main; main()"]


def run(*args: object, code: int = 0) -> str:
    result = CliRunner().invoke(app, [*map(str, args)])
    assert result.exit_code == code, result.output
    return result.output


def raising(error: BaseException) -> Any:
    def fail(*_: object, **__: object) -> None:
        raise error

    return fail


# ---- help


@pytest.mark.parametrize("path", ALL)
def test_every_command_has_help_with_an_example_of_itself(path: str) -> None:
    text = run(*path.split()[1:], "--help")
    assert "Examples:" in text
    assert re.search(rf"^ *{path}", text.split("Examples:")[1], re.MULTILINE)


@pytest.mark.parametrize("path", ALL)
def test_every_example_of_the_help_can_be_typed(path: str) -> None:
    examples = re.findall(r"^ *(poise .*)$", ALL[path].help.split("Examples:")[1], re.MULTILINE)
    assert examples
    for line in examples:
        check_line(line)


@pytest.mark.parametrize("path", ALL)
def test_every_option_says_what_it_does(path: str) -> None:
    assert [p.name for p in ALL[path].params if not getattr(p, "help", "")] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_in_one_line_is_that_of_the_command(name: str) -> None:
    assert load_command(name).help.splitlines()[0] == COMMANDS[name]


def test_no_arguments_ask_for_help() -> None:
    assert run() == run("--help")
    assert "Exit codes" in run()


@pytest.mark.parametrize("words", [["--help"], ["track", "--help"], ["doctor", "--help"]])
def test_help_loads_nothing_heavy(words: list[str]) -> None:
    code = f"import sys; from poise.cli import app; app({words}, standalone_mode=False)"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}; print(*sys.modules)"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    heavy = {"viser", "matplotlib", "imageio_ffmpeg", "scipy", "mujoco", "playwright"}
    assert not heavy & set(done.stdout.split())


# ---- errors and exit codes


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("convertt a b", "did you mean 'convert'"),
        ("clips shwo walk", "show"),
        ("convert a.bvh", "RESULT"),
        ("convert a.bvh b.bvh --forse", "--force"),
        ("bench --copies many", "--copies"),
    ],
)
def test_a_wrong_command_line_is_one_line_and_exits_with_two(line: str, words: str) -> None:
    text = run(*line.split(), code=2)
    assert text.startswith("poise")
    assert text.count("\n") == 1
    assert words in text
    assert "--help" in text


def test_an_error_exits_with_one_and_debug_anywhere_shows_its_trace() -> None:
    text = run("characters", "show", "humanoit", code=1)
    assert text.startswith("poise: unknown character 'humanoit'; did you mean 'humanoid'")
    assert text.count("\n") == 1
    for line in (["--debug", "characters", "show", "no"], ["characters", "show", "no", "--debug"]):
        assert isinstance(CliRunner().invoke(app, line).exception, PoiseError)


def test_what_comes_after_two_dashes_is_no_option() -> None:
    text = run("characters", "show", "--", "--debug", code=1)
    assert "'--debug'" in text


@pytest.mark.parametrize(
    ("error", "words", "code"),
    [
        (KeyboardInterrupt(), "stopped", 130),
        (MemoryError(), "memory", 1),
        (OSError(28, "No space left on device", "x.npz"), "x.npz: No space left on device", 1),
        (ZeroDivisionError("oh\nno"), "ZeroDivisionError: oh no (unforeseen; --debug", 1),
    ],
)
def test_whatever_happens_is_told_in_one_line(
    error: BaseException, words: str, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "examine", raising(error))
    text = run("doctor", code=code)
    assert text.startswith("poise: ")
    assert text.count("\n") == 1
    assert words in text


def test_who_stops_reading_is_not_told_of_it() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([*POISE, "characters"], stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_a_full_disk_behind_the_output_is_told_in_one_line() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run([*POISE, "--version"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert done.stderr == "poise: the output cannot be written: No space left on device\n"


# ---- doctor


def test_the_doctor_says_what_is_here_and_tries_it() -> None:
    report = json.loads(run("doctor", "--json"))
    assert set(report) == {"versions", "machine", "kernels", "build", "optional", "tried"}
    kernels = report["kernels"]
    assert {"single": kernels["one character"], "batch": kernels["batch"]} == _core.isa()
    assert {kernels["one character"], kernels["batch"]} <= set(kernels["supported"])
    assert set(report["tried"].values()) == {"works"}
    text = run("doctor")
    assert all(section in text for section in report)


def test_what_fails_at_the_doctor_is_named_and_exits_with_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(doctor, "_encode", raising(RuntimeError("no ffmpeg\nhere")))
    text = run("doctor", code=1)
    assert "RuntimeError: no ffmpeg here" in text


def test_packages_are_sorted_into_needed_and_optional(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ["numpy>=1", "ruamel.yaml>=0.18", 'sympy>=1; extra == "kane"', 'mypy; extra == "dev"']
    monkeypatch.setattr("poise.cli.doctor.metadata.requires", lambda _: lines)
    assert doctor.packages(optional=False) == ["numpy", "ruamel.yaml"]
    assert doctor.packages(optional=True) == ["sympy"]


# ---- bench


def test_bench_measures_one_and_many_with_and_without_contact() -> None:
    options = ("--character", "lamp", "--copies", 16, "--seconds", 0, "--dt", 0.01)
    report = json.loads(run("bench", *options, "--json"))
    found = {(r["contact"], r["copies"], r["dtype"], r["isa"]): r for r in report["results"]}
    sizes = [(1, "float64"), (16, "float64"), (16, "float32")]
    sets = set(_core.supported_isas()) - {"baseline"} or {"baseline"}
    if os.environ.get("POISE_ISA"):
        sets = set(_core.isa().values())
    # one character has no kernels of AVX-512
    cases = {(*size, isa) for size in sizes for isa in sets if size[0] > 1 or isa != "avx512"}
    assert set(found) == {(c, *case) for c in (False, True) for case in cases}
    for result in found.values():
        assert 0.0 < result["microseconds"] < 1e5
        assert result["real_time"] == pytest.approx(1e4 / result["microseconds"])
        assert result["steps_per_second"] == pytest.approx(1e6 / result["microseconds"])


def test_bench_prints_a_row_for_each() -> None:
    lines = run("bench", "--character", "two-link", "--copies", 8, "--seconds", 0).splitlines()
    assert len(lines) == 8
    assert all(line.startswith("two-link") and line.endswith(" x") for line in lines[2:])
