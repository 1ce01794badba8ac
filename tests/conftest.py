"""What all tests share: hypothesis profiles, the folder of real data, glTF validator, a browser."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from chromium import FLAGS, chromium
from hypothesis import settings

from poise import _core

# `ci` is the default: the same examples in every run, and no deadline on a busy machine.
# To search for new counterexamples: pytest --hypothesis-profile=explore
settings.register_profile("ci", derandomize=True, deadline=None, print_blob=True)
settings.register_profile("explore", derandomize=False, deadline=None, max_examples=2000)
settings.load_profile("ci")

# a job in the background may have been told to ignore Ctrl-C, and would hand that on to the
# programs that tests interrupt
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def find_data() -> Path | None:
    """Return the folder of real motions and models: $POISE_DATA, else ../shared/data, else None."""
    named = os.environ.get("POISE_DATA")
    folder = Path(named) if named else Path(__file__).parents[2] / "shared" / "data"
    return folder if folder.is_dir() else None


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of real motions and models; the test is skipped where it is missing."""
    folder = find_data()
    if folder is None:
        pytest.skip("no data folder: set POISE_DATA or put it at ../shared/data")
    return folder


@pytest.fixture
def use_isa() -> Iterator[Callable[[str], None]]:
    """Choose an instruction set for the rest of a test, or skip it where the CPU lacks it."""

    def choose(isa: str) -> None:
        if isa not in _core.supported_isas():
            pytest.skip(f"{isa} is not both built and supported by this CPU")
        _core.choose_isa(isa)

    yield choose
    _core.choose_isa("")


VALIDATE = """
const fs = require('fs'), validator = require('gltf-validator');
const files = JSON.parse(fs.readFileSync(0)).map(f => [f, new Uint8Array(fs.readFileSync(f))]);
Promise.all(files.map(([f, data]) => validator.validateBytes(data, {maxIssues: 100})
  .then(report => [f, report.issues.messages])))
  .then(found => console.log(JSON.stringify(found)));
"""

Validator = Callable[[Sequence[Path]], dict[str, list[str]]]


@pytest.fixture(scope="session")
def gltf_validator() -> Validator:
    """What the Khronos validator says against GLB files: errors and warnings by file name."""
    node = shutil.which("node")
    folder = Path(__file__).parents[1] / "build" / "gltf-validator"
    if node is None:
        pytest.skip("the Khronos validator needs node")
    if not (folder / "node_modules" / "gltf-validator").is_dir():
        pytest.skip("gltf-validator is not installed: run `make validator`")

    def validate(files: Sequence[Path]) -> dict[str, list[str]]:
        names = json.dumps([str(file) for file in files])
        command = [node, "-e", VALIDATE]
        run = subprocess.run(
            command, cwd=folder, input=names.encode(), capture_output=True, timeout=300
        )
        assert run.returncode == 0, run.stderr.decode()
        answers: list[tuple[str, list[dict[str, Any]]]] = json.loads(run.stdout)
        assert len(answers) == len(files)
        # severity 0 is an error, 1 a warning, 2 and 3 are remarks
        return {
            Path(file).name: [f"{x['code']} {x.get('pointer')}" for x in found if x["severity"] < 2]
            for file, found in answers
        }

    return validate


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """A headless Chromium of playwright; the test is skipped where one of the two is missing."""
    reason = "playwright is not installed"
    playwright = pytest.importorskip("playwright.sync_api", reason=reason)
    found = chromium()
    if not found:
        pytest.skip("there is no Chromium: apt-get install chromium, or set POISE_CHROMIUM")
    with playwright.sync_playwright() as play:
        launched = play.chromium.launch(executable_path=found, args=list(FLAGS))
        yield launched
        launched.close()
