"""Facts of a report: the machine, the build, the commit; what numbers depend on."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np

from poise import _core


def facts() -> dict[str, Any]:
    """Where the numbers of a report come from, ready for JSON."""
    build = _core.build_info()
    found = {
        "poise": build["version"],
        "commit": commit(),
        "compiler": build.get("compiler"),
        "kernels": kernels(),
        "processor": processor(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None,
        "python": platform.python_version(),
        "numpy": np.__version__,
    }
    return {key: value for key, value in found.items() if value is not None}


def kernels() -> str:
    """Instruction sets of the kernels: one name, or those of one character and of batches."""
    single, batch = _core.isa()["single"], _core.isa()["batch"]
    return single if single == batch else f"{single} (one character), {batch} (batches)"


def processor() -> str:
    """The name of the processor, as far as the system tells."""
    cpuinfo = Path("/proc/cpuinfo")
    text = cpuinfo.read_text() if cpuinfo.exists() else ""
    found = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return found[1] if found else platform.processor() or platform.machine()


def commit() -> str | None:
    """The commit of the source, with a mark if there are changes on top; None if installed."""
    root = Path(__file__).parents[3]
    if not (root / "pyproject.toml").is_file():
        return None
    asked = ("git", "describe", "--always", "--dirty", "--exclude=*")
    try:
        told = subprocess.run(asked, cwd=root, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return told.stdout.strip()
