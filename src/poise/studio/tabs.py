"""Tabs of the panel: scene, tuning, actions, view and recordings."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

from poise.control.gains import ROOTS
from poise.control.profiles import RECIPES
from poise.model.character import Character
from poise.studio.bindings import Bindings, set_options, set_value, set_visible
from poise.studio.controllers import DEFAULT_TUNING
from poise.studio.jobs import Downloads
from poise.studio.marks import (
    AT_LIMIT,
    GOAL,
    PIVOT,
    PLANNED,
    PRESSURE,
    SATURATED,
    SUPPORT,
    ViewOptions,
)
from poise.studio.readouts import legend
from poise.studio.requests import (
    GROUNDS,
    MAX_CHARACTERS,
    OBJECTS,
    AddObject,
    Choose,
    ClearObjects,
    Compare,
    Live,
    Open,
    Push,
    Record,
    RemoveGoal,
    Request,
    Restart,
    SetAdaptive,
    SetFriction,
    SetGains,
    SetGoal,
    SetGravity,
    SetObjective,
    SetPin,
    SetProfile,
    SetStrength,
    Throw,
    Watch,
)
from poise.studio.snapshot import Snapshot, Tuning
from poise.view.overlays import FORCE, PATH, POINT

NO_FILE = "(none)"
STRONG, GENTLE = (300, 0.2, 8.0), (150, 0.1, 6.0)
"""Initial push [N], [s] and ball [m/s], in general and while a character balances."""

SIDE, CAMERA = "the side", "my camera"

Vector = tuple[float, float, float]


class ActTab:
    """Pushes, balls and objects."""

    def __init__(self, gui: Any, bindings: Bindings, origin: Callable[[Any], Any]) -> None:
        self._origin, self._gentle = origin, False
        gui.add_markdown(
            "**Drag** a limb to pull it. **Click** it to push it. **Shift + click** throws a "
            "ball at it."
        )
        self._force = gui.add_slider("Push [N]", min=10, max=2000, step=10, initial_value=STRONG[0])
        self._duration = gui.add_slider("Push [s]", min=0.02, max=1.0, step=0.02,
                                    initial_value=STRONG[1])  # fmt: skip
        with gui.add_folder("Ball"):
            self._speed = gui.add_slider("Speed [m/s]", min=1.0, max=30.0, step=0.5,
                                         initial_value=STRONG[2])  # fmt: skip
            self._from = gui.add_dropdown("From", (SIDE, CAMERA))
            bindings.button(gui.add_button("Throw a ball"), self.throw)
        with gui.add_folder("Objects"):
            self._kind = gui.add_dropdown("Kind", OBJECTS)
            self._size = gui.add_slider("Size [m]", min=0.05, max=1.5, step=0.05, initial_value=0.3)
            self._mass = gui.add_slider("Mass [kg]", min=0.5, max=100.0, step=0.5,
                                        initial_value=5.0)  # fmt: skip
            bindings.button(
                gui.add_button("Add it"),
                lambda event: AddObject(self._kind.value, self._size.value, self._mass.value),
            )
            bindings.button(gui.add_button("Clear all", color="gray"), lambda event: ClearObjects())

    def update(self, snapshot: Snapshot) -> None:
        """Sets gentle pushes when a character begins to balance, and strong ones when it ends."""
        if snapshot.controls.balances != self._gentle:
            self._gentle = not self._gentle
            for handle, value in zip((self._force, self._duration, self._speed),
                                     GENTLE if self._gentle else STRONG, strict=True):  # fmt: skip
                set_value(handle, value)

    def throw(self, event: Any) -> Request:
        """A ball thrown at the character."""
        here = self._from.value == CAMERA and event.client is not None
        origin = self._origin(event) if here else None
        return Throw(origin=origin, speed=float(self._speed.value))

    def click(self, link: int, direction: Vector, eye: Vector, ball: bool) -> Request:
        """A push of a link, or a ball thrown at it from the camera.

        Args:
            link: Index of the link.
            direction: Direction of the view.
            eye: Place of the camera in the world [m].
            ball: Whether a ball is thrown.
        """
        if ball:
            return Throw(link, eye, float(self._speed.value))
        return Push(link, float(self._force.value), direction, float(self._duration.value))


class ViewTab:
    """What is shown."""

    def __init__(self, gui: Any, shadows: bool) -> None:
        labels = {
            "ghost": ("Ghost", "The reference, see-through"),
            "com": ("Center of mass", "And the point below it on the ground"),
            "trail": ("Trail", "Path of the center of mass"),
            "pressure": ("CoP, CMP", "Center of pressure and centroidal moment pivot"),
            "support": ("Support", "The support polygon"),
            "forces": ("Forces", "Contact forces, without those within a character"),
            "torque": ("Torques", "Colors: gray is none, red is the limit of a joint"),
            "limits": ("Limits", "Lights at joints at a limit of their range or torque"),
            "labels": ("Names", "Of the points"),
            "inside": ("See through", "Transparent bodies"),
            "follow": ("Follow", "The view moves with the character"),
        }
        start = ViewOptions()
        self._boxes = {
            name: gui.add_checkbox(label, bool(getattr(start, name)), hint=hint)
            for name, (label, hint) in labels.items()
        }
        self._shadows = gui.add_checkbox("Shadows", shadows, hint="Off is quicker without a GPU.")
        points = {"center of mass": POINT, "trail": PATH, "center of pressure": PRESSURE,
                  "planned": PLANNED, "CMP": PIVOT, "goal": GOAL,
                  "support": SUPPORT, "force": FORCE, "range limit": AT_LIMIT,
                  "torque limit": SATURATED}  # fmt: skip
        gui.add_html(legend([(name, (rgb[0], rgb[1], rgb[2])) for name, rgb in points.items()]))
        self._frame = gui.add_button("Camera to the character")

    @property
    def chosen(self) -> ViewOptions:
        """What is chosen."""
        return ViewOptions(**{name: bool(box.value) for name, box in self._boxes.items()})

    def on_frame(self, frame: Callable[[Any], None]) -> None:
        """Calls `frame` with viser's event when the button of the camera is pressed."""

        async def pressed(event: Any) -> None:
            frame(event)

        self._frame.on_click(pressed)

    def on_shadows(self, light: Callable[[bool], None]) -> None:
        """Calls `light` with whether there are shadows when that changes."""

        async def moved(event: Any) -> None:
            light(bool(self._shadows.value))

        self._shadows.on_update(moved)


class RecordTab:
    """Takes, files and recordings."""

    def __init__(self, gui: Any, bindings: Bindings, downloads: Downloads) -> None:
        self._newest: Snapshot | None = None
        self._button = bindings.button(
            gui.add_button("Record", color="red"),
            lambda event: Record(not (self._newest is not None and self._newest.recording)),
        )
        with gui.add_folder("Download"):
            name = gui.add_text("Name", "", hint="Of the files; the clip's if empty.")
            downloads.build(gui, name)
        with gui.add_folder("Recordings"):
            self._file = gui.add_dropdown("File", (NO_FILE,))
            bindings.button(gui.add_button("Open"), lambda event: self._named(Open))
            bindings.button(gui.add_button("Compare beside"), lambda event: self._named(Compare))
            bindings.button(gui.add_button("Remove", color="gray"), lambda event: Compare(None))
            bindings.button(gui.add_button("Back to the simulation", color="gray"),
                         lambda event: Live())  # fmt: skip

    def _named(self, kind: Callable[[str], Request]) -> Request | None:
        return None if self._file.value == NO_FILE else kind(self._file.value)

    def update(self, snapshot: Snapshot) -> None:
        """Shows the length of the take, and the files."""
        self._newest = snapshot
        label = f"Stop ({snapshot.taken:.1f} s)" if snapshot.recording else "Record"
        if self._button.label != label:
            self._button.label = label
        set_options(self._file, snapshot.files or (NO_FILE,))


# ---- the scene

STEPS = {"1/30 s": 1 / 30, "1/60 s": 1 / 60, "1/120 s": 1 / 120, "1/240 s": 1 / 240, "1 ms": 1e-3}
BODY = "whole body"


class SceneTab:
    """Character, clip, controller, ground and world."""

    def __init__(self, gui: Any, bindings: Bindings, session: Any) -> None:
        self._session = session
        self._fits: dict[str, tuple[str, ...]] = {}

        def chosen(name: str) -> Callable[[Any], Request]:
            return lambda value: Choose(**{name: value})

        def shows(name: str) -> Callable[[Snapshot], Any]:
            return lambda snapshot: getattr(snapshot.controls, name)

        lists: dict[str, tuple[str, tuple[str, ...], str]] = {
            "character": ("Character", session.characters, ""),
            "clip": ("Clip", session.clips, "A clip of another character is retargeted."),
            "controller": ("Controller", session.controllers, "What turns the clip into torques."),
            "root": ("Root", ROOTS, "soft: comes back after a push; held: as in the papers; "
                                    "free: nothing holds it up but its feet."),
            "ground": ("Ground", GROUNDS, ""),
        }  # fmt: skip
        self._lists: dict[str, Any] = {}
        for name, (label, options, hint) in lists.items():
            handle = gui.add_dropdown(label, tuple(options), hint=hint or None)
            self._lists[name] = bindings.input(handle, chosen(name), shows(name))
        most = MAX_CHARACTERS
        bindings.input(
            gui.add_slider("How many", min=1, max=most, step=1, initial_value=1),
            chosen("count"),
            shows("count"),
        )
        self._watch = bindings.input(
            gui.add_slider("Watch", min=1, max=most, step=1, initial_value=1, visible=False,
                           hint="The character whose numbers, trail and curves are shown."),
            lambda value: Watch(value - 1),
            lambda snapshot: snapshot.controls.watch + 1,
        )  # fmt: skip
        bindings.input(
            gui.add_dropdown("Step", tuple(STEPS), initial_value="1/60 s",
                             hint="Time step of the simulation."),
            lambda text: Choose(dt=STEPS[text]) if text in STEPS else None,
            lambda snapshot: min(STEPS, key=lambda s: abs(STEPS[s] - snapshot.controls.dt)),
        )  # fmt: skip
        bindings.input(
            gui.add_slider("Gravity", min=0.0, max=25.0, step=0.01, initial_value=9.81,
                           hint="[m/s²] downwards"),
            lambda value: SetGravity((0.0, 0.0, -value)),
            lambda snapshot: round(-snapshot.controls.gravity[2], 2),
        )  # fmt: skip
        bindings.input(
            gui.add_slider("Friction", min=0.0, max=2.0, step=0.01, initial_value=0.8,
                           hint="Coefficient, of everything"),
            SetFriction,
            lambda snapshot: round(snapshot.controls.friction, 2),
        )  # fmt: skip

    def update(self, snapshot: Snapshot) -> None:
        """Lists the clips that fit."""
        set_options(self._lists["character"], tuple(self._session.characters))
        set_options(self._lists["clip"], self._fitting(snapshot.controls.character))
        set_visible(self._watch, snapshot.controls.count > 1)

    def _fitting(self, character: str) -> tuple[str, ...]:
        """Clips for a character; a thread finds them, as that takes a second."""
        if character not in self._fits:
            self._fits[character] = ()
            threading.Thread(target=self._find_clips, args=(character,), daemon=True).start()
        return self._fits[character]

    def _find_clips(self, character: str) -> None:
        self._fits[character] = tuple(self._session.clips_for(character))


class ControlTab:
    """Gains, strength, pins and profiles of the body, or of a limb."""

    def __init__(self, gui: Any, bindings: Bindings) -> None:
        self._limb = gui.add_dropdown("Of", (BODY,), hint="The whole body, or one limb.")
        sliders = {
            "frequency": ("Frequency", 0.5, 60.0, 0.5, 8.0, "[Hz] natural frequency of the joints"),
            "damping": ("Damping", 0.1, 3.0, 0.05, 1.0, "Damping ratio; 1 is critical"),
            "strength": ("Strength", 0.0, 2.0, 0.01, 1.0, "Factor of gains and torque limits; 0 is "
                                                           "limp"),
            "pin": ("Pin", 0.0, 4.0, 0.05, 0.0, "Weight of the pins that hold links to the "
                                                 "reference in the world"),
        }  # fmt: skip
        requests: dict[str, Callable[[Any], Request]] = {
            "frequency": lambda value: SetGains(value, self._sliders["damping"].value, self.limb),
            "damping": lambda value: SetGains(self._sliders["frequency"].value, value, self.limb),
            "strength": lambda value: SetStrength(value, self.limb),
            "pin": lambda value: SetPin(value, self.limb),
        }
        self._sliders = {
            name: bindings.input(
                gui.add_slider(label, min=low, max=high, step=step, initial_value=at, hint=hint),
                requests[name],
                partial(self._tuned, name),
            )
            for name, (label, low, high, step, at, hint) in sliders.items()
        }
        self._newest: Snapshot | None = None
        self._profile = gui.add_dropdown("Profile", tuple(RECIPES), hint=_recipes())
        self._buttons = (
            bindings.button(gui.add_button("Do it now"), self._play_profile),
            bindings.button(gui.add_button("As before", color="gray"), lambda event: SetProfile()),
        )

        async def show_limb(event: Any) -> None:
            """Shows the tuning of the other limb at once."""
            if self._newest is not None:
                for name, slider in self._sliders.items():
                    set_value(slider, getattr(self._tuning(self._newest), name))

        self._limb.on_update(show_limb)

    @property
    def limb(self) -> str | None:
        """The limb that is tuned; None is the whole body."""
        return None if self._limb.value == BODY else self._limb.value

    def _play_profile(self, event: Any) -> Request:
        """A profile of the limb; of the whole body, that of the limbs it is made for."""
        return SetProfile(self._profile.value, self.limb)

    def update(self, snapshot: Snapshot) -> None:
        """Lists the limbs."""
        self._newest = snapshot
        set_options(self._limb, (BODY, *snapshot.measures.index.limbs))
        for handle in (self._limb, *self._sliders.values(), self._profile, *self._buttons):
            set_visible(handle, not snapshot.controls.balances)

    def _tuned(self, name: str, snapshot: Snapshot) -> float:
        return float(getattr(self._tuning(snapshot), name))

    def _tuning(self, snapshot: Snapshot) -> Tuning:
        tuning = snapshot.controls.tuning
        found = tuning.get(self.limb or "", tuning.get(""))
        return DEFAULT_TUNING if found is None else found


def _recipes() -> str:
    """Descriptions of the profiles."""
    return "; ".join(f"{name}: {recipe.about}" for name, recipe in RECIPES.items())


# ---- balance

OBJECTIVES = {
    "track": ("Track", "Joints follow the clip"),
    "linear": ("Linear", "Linear momentum: the center of mass stays over the feet"),
    "angular": ("Angular", "Angular momentum: the body does not begin to rotate"),
}
FIRST = ("left_hand", "right_hand", "head")
"""Goals that are listed first."""


class BalanceControls:
    """Switches and goals of a character that balances."""

    def __init__(self, gui: Any, bindings: Bindings) -> None:
        self._folders = [gui.add_folder(name, visible=False) for name in ("Balance", "Goals")]
        with self._folders[0]:
            self._switches(gui, bindings)
        with self._folders[1]:
            self._link = gui.add_dropdown("Link", FIRST, hint="A link, or the end of a limb.")
            bindings.button(gui.add_button("Add a goal"), lambda event: SetGoal(self._link.value))
            bindings.button(gui.add_button("Remove it", color="gray"),
                         lambda event: RemoveGoal(self._link.value))  # fmt: skip
            bindings.button(gui.add_button("Remove all", color="gray"), lambda event: RemoveGoal())
            gui.add_markdown("A goal begins where the link is. Drag it by its arrows.")

    def _switches(self, gui: Any, bindings: Bindings) -> None:
        for name, (label, hint) in OBJECTIVES.items():
            bindings.input(
                gui.add_checkbox(label, True, hint=hint),
                _objective(name),
                partial(_has_objective, name),
            )
        bindings.input(
            gui.add_checkbox("The clip waits", False, hint=(
                "It slows down while following it would cost the balance, and catches up later."
            )),
            SetAdaptive,
            lambda snapshot: snapshot.controls.adaptive,
        )  # fmt: skip
        bindings.button(
            gui.add_button("Back on its feet", hint="From the start of the clip: R."),
            lambda event: Restart(),
        )

    def update(self, snapshot: Snapshot) -> None:
        """Shows the controls while a character balances, and lists its links."""
        for folder in self._folders:
            set_visible(folder, snapshot.controls.balances)
        set_options(self._link, goal_names(snapshot.measures.index.character))


def _objective(name: str) -> Callable[[Any], Request]:
    return lambda on: SetObjective(name, on)


def _has_objective(name: str, snapshot: Snapshot) -> bool:
    return name in snapshot.controls.objectives


@lru_cache(maxsize=16)
def goal_names(character: Character) -> tuple[str, ...]:
    """Links and ends of limbs that may have a goal, the usual ones first."""
    links = [link.name for link in character.links]
    limbs = [limb for limb, own in character.limbs.items() if limb not in links and own]
    hands = {
        hand
        for hand in FIRST
        if hand in links or (hand.replace("hand", "arm") in limbs and hand.endswith("hand"))
    }
    first = [name for name in FIRST if name in hands]
    return (*first, *(name for name in (*links, *limbs) if name not in first))
