"""Rooms import only what lies below them: `docs/architecture.md` has the order."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / ".ci"))
from size import imports_of, module_name  # noqa: E402

LAYERS = [
    {"errors", "io", "math", "_core"},
    {"model"},
    {"dynamics"},
    {"anatomy"},
    {"characters", "simulation"},
    {"measure"},
    {"motion", "control"},
    {"recording"},
    {"view"},
    {"trials"},
    {"studio", "experiments"},
    {"cli"},
]
"""From the bottom up. Rooms of one layer do not import each other, but for SIDEWAYS."""

SIDEWAYS = {
    ("io", "errors"),
    ("math", "errors"),
}
"""Within a layer: the first may import the second."""

LEAVES = {"reference", "kane", "interop"}
"""Import anything below trials; only experiments, cli and tests import them."""

EXCEPTIONS = {
    # load_character("take.bvh") makes a character from the skeleton of a motion
    ("characters", "motion"),
}


def violations() -> set[str]:
    """Imports against the order, as `module->room`."""
    root = ROOT / "src" / "poise"
    modules = {module_name(path, root): path for path in root.rglob("*.py")}
    level = {room: i for i, rooms in enumerate(LAYERS) for room in rooms}
    below = level["trials"]
    found = set()
    for name, path in modules.items():
        parts = name.split(".")
        if name in ("poise", "poise.__main__"):
            continue  # the front door imports everything
        room = parts[1]
        for target, _, _ in imports_of(path, set(modules)):
            other = target.split(".")[1] if "." in target else ""
            if other in ("", room) or (room, other) in EXCEPTIONS | SIDEWAYS:
                continue
            if room in LEAVES:
                good = other in LEAVES or level[other] < below
            elif other in LEAVES:
                good = room in ("experiments", "cli")
            else:
                good = level[other] < level[room]
            if not good:
                found.add(f"{name}->{other}")
    return found


def test_no_room_imports_what_lies_above_it() -> None:
    found = violations()
    assert not found, "\n".join(sorted(found))
