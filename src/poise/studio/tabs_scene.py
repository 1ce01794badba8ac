"""The tabs in which one chooses the scene, and how stiffly its characters follow."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

from poise.control.gains import ROOTS
from poise.control.profiles import RECIPES
from poise.studio import limits
from poise.studio.choosing import balances
from poise.studio.requests import (
    GROUNDS,
    Choose,
    Request,
    SetFriction,
    SetGains,
    SetGravity,
    SetPin,
    SetProfile,
    SetStrength,
    Watch,
)
from poise.studio.setup import PLAIN
from poise.studio.snapshot import Snapshot, Tuning
from poise.studio.wires import Wires, offer, put, show

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
        most = limits.MOST_CHARACTERS
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
        offer(self._limb, (BODY, *snapshot.moment.cast.limbs))
        for handle in (self._limb, *self._sliders.values(), self._profile, *self._buttons):
            show(handle, not balances(snapshot.controls))

    def _tuned(self, name: str, snapshot: Snapshot) -> float:
        return float(getattr(self._tuning(snapshot), name))

    def _tuning(self, snapshot: Snapshot) -> Tuning:
        tuning = snapshot.controls.tuning
        found = tuning.get(self.limb or "", tuning.get(""))
        return PLAIN if found is None else found


def _recipes() -> str:
    """What the profiles do, in one line each."""
    return "; ".join(f"{name}: {recipe.about}" for name, recipe in RECIPES.items())
