"""Several controllers in one world, each for parts of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from poise.control.gains import Gains
from poise.control.plant import Plant, join_accelerations, join_drives, join_gains
from poise.dynamics import METHODS
from poise.errors import PoiseError, Sealed, check_known
from poise.math.arrays import Floats, finite, floats
from poise.simulation.command import Command, Drive
from poise.simulation.controller import Requirements


class Controllers(Sealed):
    """Controllers of the parts of a scene as one: their commands are joined.

    Each controller is made from the world for its part, as in `StablePD(world, part="dog")`. Parts
    without a controller are free.

    Args:
        controllers: A controller for each part, by the part's name.
    """

    def __init__(self, controllers: Mapping[str, Any]) -> None:
        if not isinstance(controllers, Mapping) or not controllers:
            raise PoiseError(f"controllers must map parts to controllers, got {controllers!r:.80}")
        self._controllers = dict(controllers)
        self._plants = {name: _plant_of(name, one) for name, one in controllers.items()}
        whole = {id(plant.whole.model) for plant in self._plants.values()}
        if len(whole) > 1:
            raise PoiseError(
                "these controllers are made for different scenes; make all of them from one world"
            )
        self._joined: tuple[tuple[Gains, ...], Gains] | None = None
        self._seal()

    def __copy__(self) -> Controllers:
        return Controllers({part: copy(one) for part, one in self._controllers.items()})

    def __getitem__(self, part: str) -> Any:
        """The controller of a part."""
        check_known("part", part, self._controllers)
        return self._controllers[part]

    @property
    def parts(self) -> tuple[str, ...]:
        """Names of the parts that have a controller."""
        return tuple(self._controllers)

    @property
    def plants(self) -> tuple[Plant, ...]:
        """What each of them acts on."""
        return tuple(self._plants.values())

    # ---- what `poise.run` reads

    @property
    def requires(self) -> Requirements:
        """What serves all of them: a command is held for the shortest of their times."""
        return Requirements.joined(map(Requirements.of, self._controllers.values()))

    @property
    def memory(self) -> Floats:
        """What they remember, one after another, shape (k,)."""
        return np.concatenate([np.zeros(0), *(one.ravel() for one in self._memories().values())])

    def restore(self, memory: ArrayLike) -> None:
        """Go on from a memory."""
        given = finite(floats(memory, "memory"), "memory")
        present = self._memories()
        sizes = [one.size for one in present.values()]
        if given.shape != (sum(sizes),):
            raise PoiseError(f"memory has shape {given.shape}, expected ({sum(sizes)},)")
        pieces = np.split(given, np.cumsum(sizes)[:-1])
        for (part, one), piece in zip(present.items(), pieces, strict=True):
            self._controllers[part].restore(piece.reshape(one.shape))

    def _memories(self) -> dict[str, Floats]:
        return {
            part: np.asarray(one.memory)
            for part, one in self._controllers.items()
            if hasattr(one, "restore")
        }

    # ---- the controller

    def __call__(self, state: Any, target: Any) -> Command:
        """The joined command.

        Args:
            state: Of the world.
            target: One for each part with a controller, by name; or a Target or State of the whole
                scene.
        """
        targets = self._targets(target)
        return self._join([one(state, targets[part]) for part, one in self._controllers.items()])

    def explain(self, state: Any, target: Any) -> tuple[Command, dict[str, Any]]:
        """The joined command, and of each part what led to it, by name."""
        targets = self._targets(target)
        found = {p: one.explain(state, targets[p]) for p, one in self._controllers.items()}
        command = self._join([command for command, _ in found.values()])
        return command, {part: reasons for part, (_, reasons) in found.items()}

    def _targets(self, target: Any) -> Mapping[str, Any]:
        if not isinstance(target, Mapping):
            return dict.fromkeys(self._controllers, target)
        for name in target:
            check_known("part", name, self._controllers, at="target: ")
        missing = [repr(name) for name in self._controllers if name not in target]
        if missing:
            raise PoiseError(f"there is no target for {', '.join(missing)}")
        return target

    def _join(self, commands: Sequence[Command]) -> Command:
        pairs = list(zip(self._plants.values(), commands, strict=True))
        forces = [floats(one.force, "force") for one in commands if one.force is not None]
        force = None if not forces else np.asarray(sum(forces[1:], forces[0]))
        acceleration, mask = join_accelerations([(plant, one.acceleration) for plant, one in pairs])
        driven = [(plant, one.drive) for plant, one in pairs if one.drive is not None]
        drive = driven[0][1] if len(driven) == 1 else self._join_drives(driven) if driven else None
        return Command(force, drive, acceleration, acceleration_mask=mask)

    def _join_drives(self, pairs: Sequence[tuple[Plant, Drive]]) -> Drive:
        drives = [drive for _, drive in pairs]
        for name, words in (("method", METHODS), ("embedded", None)):
            found = {getattr(drive, name) for drive in drives}
            if len(found) > 1:
                which = ", ".join(str(words[x] if words else x) for x in sorted(found))
                raise PoiseError(
                    f"drives of one step must have the same {name}, these have {which}"
                )
        # made anew only when one of them has changed
        key = tuple(drive.gains for drive in drives)
        kept = () if self._joined is None else self._joined[0]
        if list(map(id, kept)) != list(map(id, key)):
            self._joined = key, join_gains([(plant, drive.gains) for plant, drive in pairs])
        assert self._joined is not None
        return join_drives(pairs, self._joined[1])


def _plant_of(name: str, controller: Any) -> Plant:
    """The plant of a controller, which must act on the part of this name alone."""
    if not callable(controller):
        raise PoiseError(
            f"{name}: a controller is called with state and target; got {controller!r:.80}"
        )
    plant = getattr(controller, "plant", None)
    if not isinstance(plant, Plant):
        raise PoiseError(
            f"{name}: {type(controller).__name__} does not say on which part it acts; give it a "
            f"`plant`, poise.control.Plant.of(world, part={name!r})"
        )
    check_known("part", name, plant.whole.forest.parts)
    if plant.names != (name,):
        raise PoiseError(
            f"the controller of {name!r} acts on {', '.join(map(repr, plant.names))}; make it with "
            f"part={name!r}"
        )
    return plant
