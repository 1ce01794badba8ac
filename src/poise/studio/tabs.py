"""Tabs of the panel, and what binds their controls to requests and to the values they show."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Coroutine
from dataclasses import fields
from functools import lru_cache, partial
from typing import Any

from poise.control.gains import ROOTS
from poise.control.options import OptionInfo
from poise.control.profiles import RECIPES
from poise.control.registry import CONTROLLERS
from poise.model.character import Character
from poise.studio import marks, requests
from poise.studio.jobs import Downloads
from poise.studio.library import Library
from poise.studio.marks import ViewOptions
from poise.studio.readouts import legend
from poise.studio.requests import Request
from poise.studio.scene import MANAGED
from poise.studio.snapshot import DEFAULT_TUNING, Controls, Snapshot, Tuning
from poise.view.overlays import FORCE, PATH, POINT

# ---- bindings between controls, the requests they send and the values they show

GRACE = 1.0
"""A control that was moved is not set for so long [s]."""

Submit = Callable[[Request], bool]

Press = Request | Callable[[Any], Request | None]
"""The request of a button, or a function that makes it from viser's event."""


class Bindings:
    """Controls, the requests that they send, and the values that they show.

    All pages share the controls, and the result of a request may differ from the request; so each
    control is set to the present value from time to time.

    Args:
        gui: viser's interface to the panels.
        submit: Takes a request, as `Session.submit`.
    """

    def __init__(self, gui: Any, submit: Submit) -> None:
        self._gui, self.submit = gui, submit
        self._shown: list[tuple[Any, Callable[[Snapshot], Any]]] = []

    def input(
        self,
        handle: Any,
        request: Callable[[Any], Request | None],
        shown: Callable[[Snapshot], Any] | None = None,
    ) -> Any:
        """A control with a value.

        Args:
            handle: Of viser.
            request: Makes a request from its value, or None.
            shown: The value that it should show.

        Returns:
            The handle.
        """

        # coroutines keep their order, and `submit` takes no time
        async def moved(event: Any) -> None:
            if event.client is not None:
                self._send(request(handle.value))

        handle.on_update(moved)
        if shown is not None:
            self._shown.append((handle, shown))
        return handle

    def button(self, label: str, request: Press, **looks: Any) -> Any:
        """Adds a button; `looks` are arguments of viser's."""
        handle = self._gui.add_button(label, **looks)
        handle.on_click(self._pressed(request))
        return handle

    def buttons(self, label: str, names: tuple[str, ...], request: Press, hint: str) -> None:
        """Adds a group of buttons."""
        self._gui.add_button_group(label, names, hint=hint).on_click(self._pressed(request))

    def key(self, label: str, hotkey: str, request: Press) -> None:
        """Adds a command with a key."""
        self._gui.add_command(label, hotkey=hotkey).on_trigger(self._pressed(request))

    def _pressed(self, request: Press) -> Callable[[Any], Coroutine[Any, Any, None]]:
        async def pressed(event: Any) -> None:
            self._send(request if isinstance(request, Request) else request(event))

        return pressed

    def _send(self, request: Request | None) -> None:
        if request is not None:
            self.submit(request)

    def sync(self, snapshot: Snapshot) -> None:
        """Sets all controls to the present values."""
        now = time.time()
        for handle, shown in self._shown:
            if now - handle.update_timestamp > GRACE:
                set_value(handle, shown(snapshot))


def set_value(handle: Any, value: Any) -> None:
    """Sets the value of a control, unless it has it, or cannot have it."""
    options = getattr(handle, "options", None)
    if options is not None and value not in options:
        return
    if handle.value != value:
        handle.value = value


def set_visible(handle: Any, visible: bool) -> None:
    """Shows or hides a control."""
    if handle.visible != visible:
        handle.visible = visible


def set_options(handle: Any, options: tuple[str, ...]) -> None:
    """Sets the options of a list, if they have changed."""
    if options and tuple(handle.options) != options:
        handle.options = options


# ---- actions, view, recordings

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
            bindings.button("Throw a ball", self.throw)
        with gui.add_folder("Objects"):
            self._kind = gui.add_dropdown("Kind", requests.OBJECTS)
            self._size = gui.add_slider("Size [m]", min=0.05, max=1.5, step=0.05, initial_value=0.3)
            self._mass = gui.add_slider("Mass [kg]", min=0.5, max=100.0, step=0.5,
                                        initial_value=5.0)  # fmt: skip
            bindings.button("Add it", self._add_object)
            bindings.button("Clear all", requests.ClearObjects(), color="gray")

    def update(self, snapshot: Snapshot) -> None:
        """Sets gentle pushes when a character begins to balance, and strong ones when it ends."""
        if snapshot.controls.balances != self._gentle:
            self._gentle = not self._gentle
            for handle, value in zip((self._force, self._duration, self._speed),
                                     GENTLE if self._gentle else STRONG, strict=True):  # fmt: skip
                set_value(handle, value)

    def _add_object(self, event: Any) -> Request:
        return requests.AddObject(self._kind.value, self._size.value, self._mass.value)

    def throw(self, event: Any) -> Request:
        """A ball thrown at the character."""
        here = self._from.value == CAMERA and event.client is not None
        origin = self._origin(event) if here else None
        return requests.Throw(origin=origin, speed=float(self._speed.value))

    def click(self, link: int, direction: Vector, eye: Vector, ball: bool) -> Request:
        """A push of a link, or a ball thrown at it from the camera.

        Args:
            link: Index of the link.
            direction: Direction of the view.
            eye: Place of the camera in the world [m].
            ball: Whether a ball is thrown.
        """
        if ball:
            return requests.Throw(link, eye, float(self._speed.value))
        return requests.Push(link, float(self._force.value), direction, float(self._duration.value))


class ViewTab:
    """What is shown."""

    def __init__(self, gui: Any, shadows: bool) -> None:
        self._boxes = {
            option.name: gui.add_checkbox(initial_value=option.default, **option.metadata)
            for option in fields(ViewOptions)
        }
        self._shadows = gui.add_checkbox("Shadows", shadows, hint="Off is quicker without a GPU.")
        points = {"center of mass": POINT, "trail": PATH, "center of pressure": marks.PRESSURE,
                  "planned": marks.PLANNED, "CMP": marks.PIVOT, "goal": marks.GOAL,
                  "support": marks.SUPPORT, "force": FORCE, "range limit": marks.AT_LIMIT,
                  "torque limit": marks.SATURATED}  # fmt: skip
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
        self._recording = False
        self._button = bindings.button("Record", self._record, color="red")
        with gui.add_folder("Download"):
            name = gui.add_text("Name", "", hint="Of the files; the clip's if empty.")
            downloads.build(gui, name)
        with gui.add_folder("Recordings"):
            self._file = gui.add_dropdown("File", (NO_FILE,))
            bindings.button("Open", lambda event: self._named(requests.Open))
            bindings.button("Compare beside", lambda event: self._named(requests.Compare))
            bindings.button("Remove", requests.Compare(None), color="gray")
            bindings.button("Back to the simulation", requests.Live(), color="gray")

    def _record(self, event: Any) -> Request:
        return requests.Record(not self._recording)

    def _named(self, kind: Callable[[str], Request]) -> Request | None:
        return None if self._file.value == NO_FILE else kind(self._file.value)

    def update(self, snapshot: Snapshot) -> None:
        """Shows the length of the take, and the files."""
        self._recording = snapshot.recording
        label = f"Stop ({snapshot.taken:.1f} s)" if snapshot.recording else "Record"
        if self._button.label != label:
            self._button.label = label
        set_options(self._file, snapshot.files or (NO_FILE,))


# ---- the scene

STEPS = {"1/30 s": 1 / 30, "1/60 s": 1 / 60, "1/120 s": 1 / 120, "1/240 s": 1 / 240, "1 ms": 1e-3}
BODY = "whole body"


class SceneTab:
    """Character, clip, controller, ground and world."""

    def __init__(self, gui: Any, bindings: Bindings, library: Library) -> None:
        self._library = library
        self._fits: dict[str, tuple[str, ...]] = {}

        def chosen(name: str) -> Callable[[Any], Request]:
            return lambda value: requests.Choose(**{name: value})

        def shows(name: str) -> Callable[[Snapshot], Any]:
            return lambda snapshot: getattr(snapshot.controls, name)

        lists: dict[str, tuple[str, tuple[str, ...], str]] = {
            "character": ("Character", library.characters, ""),
            "clip": ("Clip", library.clips, "A clip of another character is retargeted."),
            "controller": ("Controller", tuple(CONTROLLERS), "What turns the clip into torques."),
            "root": ("Root", ROOTS, "soft: comes back after a push; held: as in the papers; "
                                    "free: nothing holds it up but its feet."),
            "ground": ("Ground", requests.GROUNDS, ""),
        }  # fmt: skip
        self._lists: dict[str, Any] = {}
        for name, (label, options, hint) in lists.items():
            handle = gui.add_dropdown(label, tuple(options), hint=hint or None)
            self._lists[name] = bindings.input(handle, chosen(name), shows(name))
        most = requests.MAX_CHARACTERS
        bindings.input(
            gui.add_slider("How many", min=1, max=most, step=1, initial_value=1),
            chosen("count"),
            shows("count"),
        )
        self._watch = bindings.input(
            gui.add_slider("Watch", min=1, max=most, step=1, initial_value=1, visible=False,
                           hint="The character whose numbers, trail and curves are shown."),
            lambda value: requests.Watch(value - 1),
            lambda snapshot: snapshot.controls.watch + 1,
        )  # fmt: skip
        bindings.input(
            gui.add_dropdown("Step", tuple(STEPS), initial_value="1/60 s",
                             hint="Time step of the simulation."),
            lambda text: requests.Choose(dt=STEPS[text]) if text in STEPS else None,
            lambda snapshot: min(STEPS, key=lambda s: abs(STEPS[s] - snapshot.controls.dt)),
        )  # fmt: skip
        bindings.input(
            gui.add_slider("Gravity", min=0.0, max=25.0, step=0.01, initial_value=9.81,
                           hint="[m/s²] downwards"),
            lambda value: requests.SetGravity((0.0, 0.0, -value)),
            lambda snapshot: round(-snapshot.controls.gravity[2], 2),
        )  # fmt: skip
        bindings.input(
            gui.add_slider("Friction", min=0.0, max=2.0, step=0.01, initial_value=0.8,
                           hint="Coefficient, of everything"),
            requests.SetFriction,
            lambda snapshot: round(snapshot.controls.friction, 2),
        )  # fmt: skip

    def update(self, snapshot: Snapshot) -> None:
        """Lists the clips that fit."""
        set_options(self._lists["character"], self._library.characters)
        set_options(self._lists["clip"], self._fitting(snapshot.controls.character))
        set_visible(self._watch, snapshot.controls.count > 1)

    def _fitting(self, character: str) -> tuple[str, ...]:
        """Clips for a character; a thread finds them, as that takes a second."""
        if character not in self._fits:
            self._fits[character] = ()
            threading.Thread(target=self._find_clips, args=(character,), daemon=True).start()
        return self._fits[character]

    def _find_clips(self, character: str) -> None:
        self._fits[character] = self._library.clips_for(character)


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
        made: dict[str, Callable[[Any], Request]] = {
            "frequency": lambda value: self._gains(),
            "damping": lambda value: self._gains(),
            "strength": lambda value: requests.SetStrength(value, self.limb),
            "pin": lambda value: requests.SetPin(value, self.limb),
        }
        self._sliders = {
            name: bindings.input(
                gui.add_slider(label, min=low, max=high, step=step, initial_value=at, hint=hint),
                made[name],
                partial(self._tuned, name),
            )
            for name, (label, low, high, step, at, hint) in sliders.items()
        }
        self._newest: Snapshot | None = None
        self._profile = gui.add_dropdown("Profile", tuple(RECIPES), hint=_recipes())
        # of the whole body, a profile is that of the limbs it is made for
        bindings.button(
            "Do it now", lambda event: requests.SetProfile(self._profile.value, self.limb)
        )
        bindings.button("As before", requests.SetProfile(), color="gray")

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

    def _gains(self) -> Request:
        frequency, damping = (self._sliders[name].value for name in ("frequency", "damping"))
        return requests.SetGains(frequency, damping, self.limb)

    def update(self, snapshot: Snapshot) -> None:
        """Lists the limbs."""
        self._newest = snapshot
        set_options(self._limb, (BODY, *snapshot.measures.index.limbs))
        gains = "frequency" in snapshot.controls.entry.options.info()
        for name, slider in self._sliders.items():
            set_visible(slider, gains or name == "strength")

    def _tuned(self, name: str, snapshot: Snapshot) -> float:
        return float(getattr(self._tuning(snapshot), name))

    def _tuning(self, snapshot: Snapshot) -> Tuning:
        tuning = snapshot.controls.tuning
        found = tuning.get(self.limb or "", tuning.get(""))
        return DEFAULT_TUNING if found is None else found


def _recipes() -> str:
    """Descriptions of the profiles."""
    return "; ".join(f"{name}: {recipe.about}" for name, recipe in RECIPES.items())


# ---- the controller

FIRST = ("left_hand", "right_hand", "head")
"""Goals that are listed first."""


class OptionControls:
    """Options of the controller, as its entry in the registry describes them, and goals.

    Args:
        tab: viser's handle of the tab.
        gui: viser's interface to the panels.
        bindings: Of the page.
    """

    def __init__(self, tab: Any, gui: Any, bindings: Bindings) -> None:
        self._tab, self._gui, self._submit = tab, gui, bindings.submit
        self._controller, self._folder, self._options = "", gui.add_folder("Options"), bindings
        self._balance = gui.add_folder("Balance", visible=False)
        with self._balance:
            bindings.input(
                gui.add_checkbox("The clip waits", False, hint=(
                    "It slows down while following it would cost the balance, and catches up later."
                )),
                requests.SetAdaptive,
                lambda snapshot: snapshot.controls.adaptive,
            )  # fmt: skip
            bindings.button("Back on its feet", requests.Restart(), hint="From the start: R.")
        self._goals = gui.add_folder("Goals", visible=False)
        with self._goals:
            self._link = gui.add_dropdown("Link", FIRST, hint="A link, or the end of a limb.")
            bindings.button("Add a goal", lambda event: requests.SetGoal(self._link.value))
            bindings.button(
                "Remove it", lambda event: requests.RemoveGoal(self._link.value), color="gray"
            )
            bindings.button("Remove all", requests.RemoveGoal(), color="gray")
            gui.add_markdown("A goal begins where the link is. Drag it by its arrows.")

    def update(self, snapshot: Snapshot) -> None:
        """Shows the options of the present controller, and the links that may have a goal."""
        controls = snapshot.controls
        if controls.controller != self._controller:
            self._controller = controls.controller
            self._build(controls)
        set_visible(self._balance, controls.balances)
        set_visible(self._goals, "goals" in controls.entry.options.info())
        set_options(self._link, goal_names(snapshot.measures.index.character))
        self._options.sync(snapshot)

    def _build(self, controls: Controls) -> None:
        """Adds a control for each option that has a default and a simple value."""
        self._folder.remove()
        self._options = Bindings(self._gui, self._submit)
        shown = {
            name: info
            for name, info in controls.entry.options.info().items()
            if name not in MANAGED and controls.option(name) is not None and info.kind in EDITED
        }
        with self._tab:
            self._folder = self._gui.add_folder("Options", visible=bool(shown))
        with self._folder:
            for name, info in shown.items():
                if info.kind == "words":
                    self._add_words(name, info)
                else:
                    self._add(name, info, controls.option(name))

    def _add(self, name: str, info: OptionInfo, value: Any) -> None:
        """A control with the value of one option."""
        gui, hint = self._gui, f"{info.help} [{info.unit}]" if info.unit else info.help
        label = name.replace("_", " ").capitalize()
        low, high = (x if math.isfinite(x) else None for x in (info.low, info.high))
        handle = {
            "flag": lambda: gui.add_checkbox(label, value, hint=hint),
            "word": lambda: gui.add_dropdown(label, info.words, value, hint=hint),
            "number": lambda: gui.add_number(label, value, low, high, hint=hint),
            "pair": lambda: gui.add_vector2(label, value, hint=hint),
        }[info.kind]()
        self._options.input(
            handle,
            lambda value: requests.SetOption(name, option_text(value)),
            lambda snapshot: snapshot.controls.option(name),
        )

    def _add_words(self, name: str, info: OptionInfo) -> None:
        """A switch for each word of an option."""
        switches = {
            word: self._gui.add_checkbox(word.capitalize(), True, hint=info.help)
            for word in info.words
        }

        def request(value: Any) -> Request:
            on = [word for word, switch in switches.items() if switch.value]
            return requests.SetOption(name, option_text(on))

        for word, switch in switches.items():
            self._options.input(switch, request, partial(_has_word, name, word))


EDITED = ("flag", "word", "words", "number", "pair")
"""Kinds of options that a page can change."""


def option_text(value: Any) -> str:
    """A value as `poise.control.options.parse_option` reads it."""
    if isinstance(value, (list, tuple)):
        return ",".join(map(option_text, value))
    return ("no", "yes")[value] if isinstance(value, bool) else str(value)


def _has_word(name: str, word: str, snapshot: Snapshot) -> bool:
    return word in (snapshot.controls.option(name) or ())


@lru_cache(maxsize=16)
def goal_names(character: Character) -> tuple[str, ...]:
    """Links and ends of limbs that may have a goal, the usual ones first."""
    links = [link.name for link in character.links]
    limbs = [limb for limb, own in character.limbs.items() if limb not in links and own]
    # a hand may be the end of an arm
    first = [x for x in FIRST if x in links or (x[-4:] == "hand" and f"{x[:-4]}arm" in limbs)]
    return (*first, *(name for name in (*links, *limbs) if name not in first))
