"""`poise doctor`: what is installed here, and which kernels were chosen."""

from __future__ import annotations

import json
import os
import platform
import re
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any

import typer

from poise import _core

REQUIRED = ("numpy", "scipy", "matplotlib", "rich", "ruamel.yaml", "typer")
WORKSHOP = {"test", "docs", "dev"}  # extras that only the project's own developers need


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Print what is installed here, and which kernels were chosen."""
    report = examine()
    if as_json:
        typer.echo(json.dumps(report, indent=2))
        return
    width = max(len(name) for rows in report.values() for name in rows)
    for section, rows in report.items():
        typer.secho(section, bold=True)
        for name, value in rows.items():
            typer.echo(f"  {name:{width}}  {_text(value)}")


def examine() -> dict[str, dict[str, Any]]:
    """Return what `poise doctor` prints: sections of named values, ready for JSON."""
    return {
        "versions": {
            "poise": metadata.version("poise"),
            "python": platform.python_version(),
            **{name: _version(name) for name in REQUIRED},
        },
        "machine": {
            "platform": platform.platform(),
            "cpu": _cpu_name(),
            "cores": os.cpu_count(),
            "threads": _usable_cores(),  # as many as a large world takes unasked
        },
        "kernels": {
            "chosen": _core.isa(),
            "built": _core.available_isas(),
            "supported": _core.supported_isas(),
            "POISE_ISA": os.environ.get("POISE_ISA"),
        },
        "build": dict(_core.build_info()),
        "optional": {name: _version(name) for name in optional_packages()},
    }


def optional_packages() -> list[str]:
    """Return the packages that the extras of poise name, without the workshop's tools."""
    names = set()
    for line in metadata.requires("poise") or []:
        match = re.match(r"([\w.-]+).*;.*extra\s*==\s*['\"]([\w-]+)['\"]", line)
        if match and match[2] not in WORKSHOP:
            names.add(match[1])
    return sorted(names)


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _cpu_name() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        match = re.search(r"^model name\s*:\s*(.+)$", cpuinfo.read_text(), re.MULTILINE)
        if match:
            return match[1]
    return platform.processor() or platform.machine()


def _usable_cores() -> int | None:
    # a container or taskset may leave fewer than the machine has
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count()


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return "-" if value in (None, "") else str(value)
