"""Controls of balance: what it shall heed, how fast the clip may be, what links shall reach.

They are in the tab in which one tunes, in place of the gains while a character balances.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

from poise.model.character import Character
from poise.studio.choosing import balances
from poise.studio.requests import RemoveGoal, Request, Restart, SetAdaptive, SetGoal, SetObjective
from poise.studio.snapshot import Snapshot
from poise.studio.wires import Wires, offer, show

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
            show(folder, balances(snapshot.controls))
        offer(self._link, goals_of(snapshot.moment.cast.character))


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
