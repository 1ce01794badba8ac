"""Builds the core with sanitizers and runs pytest with it, in an environment that `make` has made.

    .venv/bin/python .ci/sanitize.py [--scalar] [--short] [--isa NAME ...] [arguments of pytest]

Address and undefined-behaviour sanitizers; what they find ends the process, and so the test. Leaks
are not looked for: Python itself keeps memory until the end. The module is built in
build/sanitize-*, and found by every process of the run in the place of the installed one:
`sitecustomize.py` there is read by Python at its start, because PYTHONPATH names its folder.

Without a path among the arguments it runs TESTS, or with --short the few of SHORT.
--scalar compiles the kernels without lanes, which takes a minute instead of several.
--isa: instruction sets to compile and run, in turn; avx2 unless given, or baseline without it.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

from poise import _core

ROOT = Path(__file__).resolve().parents[1]
TESTS = (
    "tests/dynamics/test_core.py",
    "tests/dynamics/test_fuzz_binding.py",
    "tests/dynamics/test_effort_limits.py",
    "tests/dynamics/test_determinism.py",
    "tests/simulation",
    "tests/control/balance/test_balance_core.py",
    "tests/view/test_render.py",
)
SHORT = (
    "tests/dynamics/test_fuzz_binding.py",
    "tests/simulation/contact/test_collide.py",
    "tests/simulation/contact/test_overlap_at_start.py",
    "tests/simulation/test_frozen.py",
    "tests/simulation/test_throw.py",
    "tests/control/balance/test_balance_core.py",
    "tests/view/test_render.py",
)
# what takes a process to its limits, or measures time
LEFT_OUT = "not threads_than_the_system and not costs and not slow and not faster and not seconds"
FINDER = """
import sys
from importlib.machinery import ExtensionFileLoader
from importlib.util import spec_from_file_location

class Sanitized:
    def find_spec(self, name, path=None, target=None):
        if name != "poise._core":
            return None
        loader = ExtensionFileLoader(name, {module!r})
        return spec_from_file_location(name, {module!r}, loader=loader)

sys.meta_path.insert(0, Sanitized())
"""


def build(scalar: bool, isas: list[str]) -> Path:
    """Compile the module; returns its folder."""
    folder = ROOT / "build" / ("sanitize-scalar" if scalar else "sanitize")
    tools = Path(sys.executable).parent
    configure = {
        "CMAKE_MAKE_PROGRAM": tools / "ninja",
        "Python_EXECUTABLE": sys.executable,
        "POISE_SANITIZE": "ON",
        "POISE_SCALAR": "ON" if scalar else "OFF",
        "POISE_ONLY": ";".join(dict.fromkeys(["baseline", *isas])),
    }
    options = [f"-D{key}={value}" for key, value in configure.items()]
    run = [str(tools / "cmake"), "-G", "Ninja", "-S", str(ROOT), "-B", str(folder), *options]
    subprocess.run(run, check=True, stdout=subprocess.DEVNULL)
    subprocess.run([str(tools / "cmake"), "--build", str(folder)], check=True)
    module = folder / f"_core{sysconfig.get_config_var('EXT_SUFFIX')}"
    site = folder / "site"
    site.mkdir(exist_ok=True)
    (site / "sitecustomize.py").write_text(FINDER.format(module=str(module)))
    return folder


def environment(folder: Path, isa: str) -> dict[str, str]:
    """What the processes of a run need."""
    compiler = os.environ.get("CXX", "g++")
    runtimes = [
        subprocess.check_output([compiler, f"-print-file-name={name}"], text=True).strip()
        for name in ("libasan.so", "libstdc++.so")
    ]
    return {
        **os.environ,
        "LD_PRELOAD": " ".join(runtimes),
        "PYTHONPATH": str(folder / "site"),
        "PYTHONMALLOC": "malloc",
        "POISE_ISA": isa,
        "OPENBLAS_NUM_THREADS": "1",
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1:abort_on_error=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }


def main() -> None:
    """Build, then run the tests with each instruction set."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--scalar", action="store_true", help="kernels without lanes")
    parser.add_argument("--short", action="store_true", help="a part of the tests")
    parser.add_argument("--isa", action="append", default=[], help="instruction set, several")
    given, rest = parser.parse_known_args()
    best = "avx2" if "avx2" in _core.supported_isas() else "baseline"
    isas = ["baseline"] if given.scalar else given.isa or [best]
    folder = build(given.scalar, isas)
    for isa in isas:
        print(f"sanitized kernels: {'scalar' if given.scalar else isa}", flush=True)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", LEFT_OUT]
        command += rest
        if not any(Path(ROOT, one.partition("::")[0]).exists() for one in rest):
            command += SHORT if given.short else TESTS
        done = subprocess.run(command, env=environment(folder, isa), cwd=ROOT, check=False)
        if done.returncode:
            sys.exit(done.returncode)


if __name__ == "__main__":
    main()
