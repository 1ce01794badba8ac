"""Makes layers.svg, the rooms of docs/architecture.md: python docs/images/layers.py"""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
from dataflow import DOER, LEAF, LINE, PAPER, THING, Box, box, text  # noqa: E402

WIDTH, ROW, TOP = 960, 58, 34
ROOMS = {
    "errors": "exception types",
    "io": "files, archives, YAML, XML",
    "math": "rotations, polygons, splines",
    "model": "Character, Joint, Shape, Scene; YAML, MJCF, URDF",
    "dynamics": "RNEA, CRBA, ABA, kinematics as functions",
    "anatomy": "which link is the left foot; soles, contact schedules",
    "characters": "load_character, built-in bodies",
    "simulation": "World, State, Command, run, contact",
    "measure": "CoM, CoP, momentum, falls, tracking error",
    "motion": "Clip; formats, editing, retargeting",
    "control": "PD, StablePD, kane, Balance, registry",
    "recording": "what happened, resumable bit for bit",
    "view": "pictures, video, HTML, plots",
    "trials": "Trial, comparison, result files",
    "studio": "simulate in the browser",
    "experiments": "figures of the four works",
    "cli": "poise track, balance, compare, ...",
}
LAYERS = [
    ["errors", "io", "math"],
    ["model"],
    ["dynamics"],
    ["anatomy"],
    ["characters", "simulation"],
    ["measure"],
    ["motion", "control"],
    ["recording"],
    ["view"],
    ["trials"],
    ["studio", "experiments"],
    ["cli"],
]
LEAVES = {
    "reference": "NumPy reference of the core",
    "kane": "equations of motion in SymPy",
    "interop": "stable PD for MuJoCo",
}


def picture() -> str:
    """The whole drawing: layers from the bottom up, leaves at the right."""
    height = TOP + ROW * len(LAYERS) + 20
    parts = [text(330, 22, "a room imports only rooms below it", 13)]
    for level, rooms in enumerate(LAYERS):
        y = height - 20 - ROW * level - ROW // 2
        each = 640 // len(rooms)
        for k, room in enumerate(rooms):
            fill = LEAF if level > 8 else DOER if level > 3 else THING
            x = 14 + each * k + each // 2
            parts.append(box(Box(x, y, room, ROOMS[room], fill, each - 8, ROW - 8)))
    parts.append(text(810, 22, "leaves: import what is below trials", 13))
    for k, (room, note) in enumerate(LEAVES.items()):
        parts.append(box(Box(810, 300 + 90 * k, room, note, LEAF, 250, ROW - 8)))
    parts.append(
        f'<line x1="672" y1="34" x2="672" y2="{height - 20}" stroke="{LINE}" '
        'stroke-dasharray="4 4"/>'
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        'font-family="Helvetica, Arial, sans-serif">'
        f'<rect width="{WIDTH}" height="{height}" rx="12" fill="{PAPER}"/>{"".join(parts)}</svg>\n'
    )


if __name__ == "__main__":
    Path(__file__).with_suffix(".svg").write_text(picture(), encoding="utf-8")
