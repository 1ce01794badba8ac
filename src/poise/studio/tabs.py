"""The tabs in which one acts, looks and records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from poise.studio.choosing import balances
from poise.studio.downloads import Downloads
from poise.studio.goals import COLOR as GOAL
from poise.studio.marks import AT_LIMIT, PIVOT, PLANNED, PRESSURE, SATURATED, SUPPORT, See
from poise.studio.readouts import legend
from poise.studio.requests import (
    OBJECTS,
    AddObject,
    ClearObjects,
    Compare,
    Live,
    Open,
    Record,
    Request,
    Throw,
)
from poise.studio.snapshot import Snapshot
from poise.studio.wires import Wires, offer, put
from poise.view.overlay import FORCE, PATH, POINT

NOTHING = "(none)"
HARD, GENTLE = (300, 0.2, 8.0), (150, 0.1, 6.0)
"""Push [N], [s] and ball [m/s] that there are at first, and while a character balances."""

SIDE, CAMERA = "the side", "my camera"


class ActTab:
    """Pushes, balls and objects."""

    def __init__(self, gui: Any, wires: Wires, origin: Callable[[Any], Any]) -> None:
        self._origin, self._gentle = origin, False
        gui.add_markdown(
            "**Drag** a limb to pull it. **Click** it to push it. **Shift + click** throws a "
            "ball at it."
        )
        self._force = gui.add_slider("Push [N]", min=10, max=2000, step=10, initial_value=HARD[0])
        self._push = gui.add_slider("Push [s]", min=0.02, max=1.0, step=0.02,
                                    initial_value=HARD[1])  # fmt: skip
        with gui.add_folder("Ball"):
            self._speed = gui.add_slider("Speed [m/s]", min=1.0, max=30.0, step=0.5,
                                         initial_value=HARD[2])  # fmt: skip
            self._from = gui.add_dropdown("From", (SIDE, CAMERA))
            wires.button(gui.add_button("Throw a ball"), self.throw)
        with gui.add_folder("Objects"):
            self._kind = gui.add_dropdown("Kind", OBJECTS)
            self._size = gui.add_slider("Size [m]", min=0.05, max=1.5, step=0.05, initial_value=0.3)
            self._mass = gui.add_slider("Mass [kg]", min=0.5, max=100.0, step=0.5,
                                        initial_value=5.0)  # fmt: skip
            wires.button(
                gui.add_button("Add it"),
                lambda event: AddObject(self._kind.value, self._size.value, self._mass.value),
            )
            wires.button(gui.add_button("Clear all", color="gray"), lambda event: ClearObjects())

    def update(self, snapshot: Snapshot) -> None:
        """Who balances is pushed less hard at first, and others harder."""
        if balances(snapshot.controls) != self._gentle:
            self._gentle = not self._gentle
            for handle, value in zip((self._force, self._push, self._speed),
                                     GENTLE if self._gentle else HARD, strict=True):  # fmt: skip
                put(handle, value)

    def throw(self, event: Any) -> Request:
        """A ball at the character."""
        here = self._from.value == CAMERA and event.client is not None
        origin = self._origin(event) if here else None
        return Throw(origin=origin, speed=self.speed)

    @property
    def speed(self) -> float:
        """Of a ball [m/s]."""
        return float(self._speed.value)

    @property
    def push(self) -> tuple[float, float]:
        """Force [N] and duration [s] of a push by a click."""
        return float(self._force.value), float(self._push.value)


class SeeTab:
    """What is to be seen."""

    def __init__(self, gui: Any, shadows: bool) -> None:
        labels = {
            "ghost": ("Ghost", "The reference, see-through"),
            "com": ("Mass centre", "And the point below it on the ground"),
            "trail": ("Trail", "The way of the mass centre"),
            "pressure": ("COP, CMP", "Centre of pressure and centroidal moment pivot"),
            "support": ("Support", "The support polygon"),
            "forces": ("Forces", "Of contacts, but for those within a character"),
            "torque": ("Torques", "Colours: grey is none, red is all that a joint can do"),
            "limits": ("Limits", "Lights at joints whose range or torque is at its limit"),
            "labels": ("Names", "Of the points"),
            "inside": ("See through", "The bodies: what is inside them, and under their feet"),
            "follow": ("Follow", "The picture goes along with the character"),
        }
        start = See()
        self._boxes = {
            name: gui.add_checkbox(label, bool(getattr(start, name)), hint=hint)
            for name, (label, hint) in labels.items()
        }
        self._shadows = gui.add_checkbox("Shadows", shadows, hint="Off is quicker without a GPU.")
        points = {"mass centre": POINT, "trail": PATH, "centre of pressure": PRESSURE,
                  "planned": PLANNED, "CMP": PIVOT, "goal": GOAL,
                  "support": SUPPORT, "force": FORCE, "range limit": AT_LIMIT,
                  "torque limit": SATURATED}  # fmt: skip
        gui.add_html(legend([(name, (rgb[0], rgb[1], rgb[2])) for name, rgb in points.items()]))
        self._frame = gui.add_button("Camera to the character")

    @property
    def chosen(self) -> See:
        """What is chosen."""
        return See(**{name: bool(box.value) for name, box in self._boxes.items()})

    def on_frame(self, frame: Callable[[Any], None]) -> None:
        """Call `frame` with viser's event when someone wants the camera back."""

        async def pressed(event: Any) -> None:
            frame(event)

        self._frame.on_click(pressed)

    def on_shadows(self, light: Callable[[bool], None]) -> None:
        """Call `light` with whether there shall be shadows."""

        async def moved(event: Any) -> None:
            light(bool(self._shadows.value))

        self._shadows.on_update(moved)


class RecordTab:
    """Takes, files, and recordings to look at."""

    def __init__(self, gui: Any, wires: Wires, downloads: Downloads) -> None:
        self._newest: Snapshot | None = None
        self._button = wires.button(
            gui.add_button("Record", color="red"),
            lambda event: Record(not (self._newest is not None and self._newest.recording)),
        )
        with gui.add_folder("Download"):
            name = gui.add_text("Name", "", hint="Of the files; the clip's if empty.")
            downloads.build(gui, name)
        with gui.add_folder("Recordings"):
            self._file = gui.add_dropdown("File", (NOTHING,))
            wires.button(gui.add_button("Open"), lambda event: self._named(Open))
            wires.button(gui.add_button("Compare beside"), lambda event: self._named(Compare))
            wires.button(gui.add_button("Take away", color="gray"), lambda event: Compare(None))
            wires.button(gui.add_button("Back to the simulation", color="gray"),
                         lambda event: Live())  # fmt: skip

    def _named(self, kind: Callable[[str], Request]) -> Request | None:
        return None if self._file.value == NOTHING else kind(self._file.value)

    def update(self, snapshot: Snapshot) -> None:
        """Show how long the take is, and the files there are."""
        self._newest = snapshot
        label = f"Stop ({snapshot.taken:.1f} s)" if snapshot.recording else "Record"
        if self._button.label != label:
            self._button.label = label
        offer(self._file, snapshot.files or (NOTHING,))
