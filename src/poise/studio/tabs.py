"""The tabs in which one acts, looks and records."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

from poise.control.gains import ROOTS
from poise.control.profiles import RECIPES
from poise.model.character import Character
from poise.studio.bindings import Wires, offer, put, show
from poise.studio.controllers import DEFAULT_TUNING
from poise.studio.jobs import Downloads
from poise.studio.marks import AT_LIMIT, GOAL, PIVOT, PLANNED, PRESSURE, SATURATED, SUPPORT, See
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
        if snapshot.controls.balances != self._gentle:
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
            "pressure": ("COP, CMP", "Centre of pressure and centroidal measures pivot"),
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


# ---- the tabs in which one chooses the scene, and how stiffly its characters follow

STEPS = {"1/30 s": 1 / 30, "1/60 s": 1 / 60, "1/120 s": 1 / 120, "1/240 s": 1 / 240, "1 ms": 1e-3}
BODY = "whole body"


class SceneTab:
    """Who does what, and where."""

    def __init__(self, gui: Any, wires: Wires, session: Any) -> None:
        self._session = session
        self._fits: dict[str, tuple[str, ...]] = {}

        def chosen(name: str) -> Callable[[Any], Request]:
            return lambda value: Choose(**{name: value})

        def shows(name: str) -> Callable[[Snapshot], Any]:
            return lambda snapshot: getattr(snapshot.controls, name)

        lists: dict[str, tuple[str, tuple[str, ...], str]] = {
            "character": ("Character", session.characters, ""),
            "clip": ("Clip", session.clips, "A clip of another character is fitted to this one."),
            "controller": ("Controller", session.controllers, "What turns the clip into torques."),
            "root": ("Root", ROOTS, "soft: comes back after a push; held: as in the papers; "
                                    "free: nothing holds it up but its feet."),
            "ground": ("Ground", GROUNDS, ""),
        }  # fmt: skip
        self._lists: dict[str, Any] = {}
        for name, (label, options, hint) in lists.items():
            handle = gui.add_dropdown(label, tuple(options), hint=hint or None)
            self._lists[name] = wires.input(handle, chosen(name), shows(name))
        most = MAX_CHARACTERS
        wires.input(
            gui.add_slider("How many", min=1, max=most, step=1, initial_value=1),
            chosen("count"),
            shows("count"),
        )
        self._watch = wires.input(
            gui.add_slider("Watch", min=1, max=most, step=1, initial_value=1, visible=False,
                           hint="Whose numbers, trail and curves are shown."),
            lambda value: Watch(value - 1),
            lambda snapshot: snapshot.controls.watch + 1,
        )  # fmt: skip
        wires.input(
            gui.add_dropdown("Step", tuple(STEPS), initial_value="1/60 s",
                             hint="Time step of the simulation."),
            lambda text: Choose(dt=STEPS[text]) if text in STEPS else None,
            lambda snapshot: min(STEPS, key=lambda s: abs(STEPS[s] - snapshot.controls.dt)),
        )  # fmt: skip
        wires.input(
            gui.add_slider("Gravity", min=0.0, max=25.0, step=0.01, initial_value=9.81,
                           hint="[m/s²] downwards"),
            lambda value: SetGravity((0.0, 0.0, -value)),
            lambda snapshot: round(-snapshot.controls.gravity[2], 2),
        )  # fmt: skip
        wires.input(
            gui.add_slider("Friction", min=0.0, max=2.0, step=0.01, initial_value=0.8,
                           hint="Coefficient, of everything"),
            SetFriction,
            lambda snapshot: round(snapshot.controls.friction, 2),
        )  # fmt: skip

    def update(self, snapshot: Snapshot) -> None:
        """Offer the clips that fit."""
        who = snapshot.controls.character
        offer(self._lists["character"], tuple(self._session.characters))
        offer(self._lists["clip"], self._fitting(who))
        show(self._watch, snapshot.controls.count > 1)

    def _fitting(self, who: str) -> tuple[str, ...]:
        """Clips for a character; looking takes a second, so it is done beside."""
        if who not in self._fits:
            self._fits[who] = ()
            threading.Thread(target=self._look, args=(who,), daemon=True).start()
        return self._fits[who]

    def _look(self, who: str) -> None:
        self._fits[who] = tuple(self._session.clips_for(who))


class ControlTab:
    """How stiffly the body, or a limb, follows."""

    def __init__(self, gui: Any, wires: Wires) -> None:
        self._limb = gui.add_dropdown("Of", (BODY,), hint="The whole body, or one limb.")
        sliders = {
            "frequency": ("Frequency", 0.5, 60.0, 0.5, 8.0, "[Hz] natural frequency of the joints"),
            "damping": ("Damping", 0.1, 3.0, 0.05, 1.0, "Damping ratio; 1 is critical"),
            "strength": ("Strength", 0.0, 2.0, 0.01, 1.0, "Factor of gains and torque limits; 0 is "
                                                           "limp"),
            "pin": ("Pin", 0.0, 4.0, 0.05, 0.0, "Weight of the pins that hold links to the "
                                                 "reference in the world"),
        }  # fmt: skip
        asks: dict[str, Callable[[Any], Request]] = {
            "frequency": lambda value: SetGains(value, self._sliders["damping"].value, self.limb),
            "damping": lambda value: SetGains(self._sliders["frequency"].value, value, self.limb),
            "strength": lambda value: SetStrength(value, self.limb),
            "pin": lambda value: SetPin(value, self.limb),
        }
        self._sliders = {
            name: wires.input(
                gui.add_slider(label, min=low, max=high, step=step, initial_value=at, hint=hint),
                asks[name],
                partial(self._tuned, name),
            )
            for name, (label, low, high, step, at, hint) in sliders.items()
        }
        self._newest: Snapshot | None = None
        self._profile = gui.add_dropdown("Profile", tuple(RECIPES), hint=_recipes())
        self._buttons = (
            wires.button(gui.add_button("Do it now"), self._play_profile),
            wires.button(gui.add_button("As before", color="gray"), lambda event: SetProfile()),
        )

        async def another(event: Any) -> None:
            """Show at once how the other limb is tuned."""
            if self._newest is not None:
                for name, slider in self._sliders.items():
                    put(slider, getattr(self._tuning(self._newest), name))

        self._limb.on_update(another)

    @property
    def limb(self) -> str | None:
        """The limb that is tuned; None is the whole body."""
        return None if self._limb.value == BODY else self._limb.value

    def _play_profile(self, event: Any) -> Request:
        """A profile of the limb; of the whole body, what it is made for."""
        return SetProfile(self._profile.value, self.limb)

    def update(self, snapshot: Snapshot) -> None:
        """Offer the limbs there are."""
        self._newest = snapshot
        offer(self._limb, (BODY, *snapshot.measures.index.limbs))
        for handle in (self._limb, *self._sliders.values(), self._profile, *self._buttons):
            show(handle, not snapshot.controls.balances)

    def _tuned(self, name: str, snapshot: Snapshot) -> float:
        return float(getattr(self._tuning(snapshot), name))

    def _tuning(self, snapshot: Snapshot) -> Tuning:
        tuning = snapshot.controls.tuning
        found = tuning.get(self.limb or "", tuning.get(""))
        return DEFAULT_TUNING if found is None else found


def _recipes() -> str:
    """What the profiles do, in one line each."""
    return "; ".join(f"{name}: {recipe.about}" for name, recipe in RECIPES.items())


# ---- controls of balance: what it shall heed, how fast the clip may be, what links shall reach

OBJECTIVES = {
    "track": ("Track", "Joints follow the clip"),
    "linear": ("Linear", "Linear momentum: the mass centre stays over the feet"),
    "angular": ("Angular", "Angular momentum: the body does not begin to turn over"),
}
FIRST = ("left_hand", "right_hand", "head")
"""Goals that are offered first."""


class BalanceControls:
    """Switches and goals of a character that balances."""

    def __init__(self, gui: Any, wires: Wires) -> None:
        self._folders = [gui.add_folder(name, visible=False) for name in ("Balance", "Goals")]
        with self._folders[0]:
            self._switches(gui, wires)
        with self._folders[1]:
            self._link = gui.add_dropdown("Link", FIRST, hint="A link, or the end of a limb.")
            wires.button(gui.add_button("Add a goal"), lambda event: SetGoal(self._link.value))
            wires.button(gui.add_button("Remove it", color="gray"),
                         lambda event: RemoveGoal(self._link.value))  # fmt: skip
            wires.button(gui.add_button("Remove all", color="gray"), lambda event: RemoveGoal())
            gui.add_markdown("A goal begins where the link is. Drag it by its arrows.")

    def _switches(self, gui: Any, wires: Wires) -> None:
        for name, (label, hint) in OBJECTIVES.items():
            wires.input(
                gui.add_checkbox(label, True, hint=hint),
                _objective(name),
                partial(_heeds, name),
            )
        wires.input(
            gui.add_checkbox("The clip waits", False, hint=(
                "It slows down while following it would cost the balance, and catches up later."
            )),
            SetAdaptive,
            lambda snapshot: snapshot.controls.adaptive,
        )  # fmt: skip
        wires.button(
            gui.add_button("Back on its feet", hint="From the start of the clip: R."),
            lambda event: Restart(),
        )

    def update(self, snapshot: Snapshot) -> None:
        """Be there while a character balances, and offer the links there are."""
        for folder in self._folders:
            show(folder, snapshot.controls.balances)
        offer(self._link, goals_of(snapshot.measures.index.character))


def _objective(name: str) -> Callable[[Any], Request]:
    return lambda on: SetObjective(name, on)


def _heeds(name: str, snapshot: Snapshot) -> bool:
    return name in snapshot.controls.objectives


@lru_cache(maxsize=16)
def goals_of(character: Character) -> tuple[str, ...]:
    """Links and ends of limbs that may get a goal, those that are wanted often first."""
    links = [link.name for link in character.links]
    limbs = [limb for limb, own in character.limbs.items() if limb not in links and own]
    hands = {
        hand
        for hand in FIRST
        if hand in links or (hand.replace("hand", "arm") in limbs and hand.endswith("hand"))
    }
    first = [name for name in FIRST if name in hands]
    return (*first, *(name for name in (*links, *limbs) if name not in first))
