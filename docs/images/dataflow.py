"""Makes dataflow.svg, the picture of docs/architecture.md: python docs/images/dataflow.py"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 960, 520

INK, LINE, PAPER = "#1f2933", "#52606d", "#ffffff"
THING, DOER, LEAF = "#d9e8f6", "#fbe3c8", "#e3efdc"  # what is; what acts; what comes out


class Box(NamedTuple):
    """A rectangle with a title and a line below it; x and y are its middle."""

    x: int
    y: int
    title: str
    note: str
    fill: str
    width: int = 168
    height: int = 64

    def side(self, dx: int, dy: int) -> tuple[float, float]:
        """The middle of the side that lies in a direction."""
        return self.x + dx * self.width / 2, self.y + dy * self.height / 2


BOXES = {
    "file": Box(88, 60, "files", "BVH, GLB, MJCF", LEAF, 136),
    "character": Box(330, 60, "Character", "tree, inertia, limits", THING),
    "clip": Box(88, 250, "Clip", "reference motion", THING, 136),
    "world": Box(590, 60, "World", "n copies, step(command)", DOER, 200),
    "state": Box(590, 250, "State", "q, v, time, memory", THING, 200),
    "controller": Box(330, 250, "Controller", "state, target → command", DOER, 190),
    "command": Box(330, 155, "Command", "force, drive", THING),
    "recording": Box(840, 155, "Recording", "every frame", THING),
    "measure": Box(590, 360, "measure", "states and contacts to numbers", DOER, 240),
    "studio": Box(330, 460, "studio", "play, push, drag, scrub", LEAF, 190),
    "pictures": Box(840, 300, "HTML, video", "plots; poise.view", LEAF),
    "motion": Box(840, 400, "BVH, GLB, USD", "recording.clip().save", LEAF),
    "numbers": Box(590, 460, "tables", "error, torque, energy, ...", LEAF, 200),
}

# from, side, to, side, label, and where the label stands
ARROWS = [
    ("file", (1, 0), "character", (-1, 0), "load_character", (0, -10)),
    ("file", (0, 1), "clip", (0, -1), "load_clip", (36, 4)),
    ("character", (1, 0), "world", (-1, 0), "compiled", (0, -10)),
    ("clip", (1, 0), "controller", (-1, 0), "target", (0, -10)),
    ("state", (-1, 0), "controller", (1, 0), "state", (0, -10)),
    ("controller", (0, -1), "command", (0, 1), "", (0, 0)),
    ("world", (0, 1), "state", (0, -1), "next state", (42, 4)),
    ("state", (0, 1), "measure", (0, -1), "", (0, 0)),
    ("measure", (0, 1), "numbers", (0, -1), "", (0, 0)),
    ("recording", (0, 1), "pictures", (0, -1), "", (0, 0)),
]
BENT = [
    # the points of a line with corners, its label, and where that stands
    ([(414, 155), (520, 155), (520, 92)], "step", (466, 145)),
    ([(690, 60), (840, 60), (840, 123)], "append", (770, 50)),
    ([(924, 155), (944, 155), (944, 400), (924, 400)], "", (0, 0)),
    ([(330, 428), (330, 282)], "requests", (366, 356)),
    ([(490, 270), (455, 270), (455, 460), (425, 460)], "", (0, 0)),
]


def text(x: float, y: float, words: str, size: int, weight: str = "normal") -> str:
    """A line of text around a point."""
    return (
        f'<text x="{x:g}" y="{y:g}" font-size="{size}" font-weight="{weight}" fill="{INK}" '
        f'text-anchor="middle">{escape(words)}</text>'
    )


def box(b: Box) -> str:
    """A rectangle with its two lines."""
    return (
        f'<rect x="{b.x - b.width / 2:g}" y="{b.y - b.height / 2:g}" width="{b.width}" '
        f'height="{b.height}" rx="9" fill="{b.fill}" stroke="{LINE}" stroke-width="1.2"/>'
        + text(b.x, b.y - 4, b.title, 17, "600")
        + text(b.x, b.y + 18, b.note, 13)
    )


def path(points: list[tuple[float, float]]) -> str:
    """A line with an arrow at its end."""
    along = " ".join(f"{x:g},{y:g}" for x, y in points)
    return (
        f'<polyline points="{along}" fill="none" stroke="{LINE}" stroke-width="1.8" '
        'marker-end="url(#tip)"/>'
    )


def picture() -> str:
    """The whole drawing."""
    parts = []
    for source, leave, target, enter, label, (dx, dy) in ARROWS:
        a, b = BOXES[source].side(*leave), BOXES[target].side(*enter)
        parts.append(path([a, b]))
        if label:
            parts.append(text((a[0] + b[0]) / 2 + dx, (a[1] + b[1]) / 2 + dy, label, 12))
    for points, label, (x, y) in BENT:
        parts.append(path([(float(px), float(py)) for px, py in points]))
        if label:
            parts.append(text(x, y, label, 12))
    parts += [box(b) for b in BOXES.values()]
    tip = f'<path d="M0,0 L8,4 L0,8 z" fill="{LINE}"/>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="Helvetica, Arial, sans-serif">'
        '<defs><marker id="tip" markerWidth="8" markerHeight="8" refX="7" refY="4" orient="auto" '
        f'markerUnits="userSpaceOnUse">{tip}</marker></defs>'
        f'<rect width="{WIDTH}" height="{HEIGHT}" rx="12" fill="{PAPER}"/>{"".join(parts)}</svg>\n'
    )


if __name__ == "__main__":
    Path(__file__).with_suffix(".svg").write_text(picture(), encoding="utf-8")
