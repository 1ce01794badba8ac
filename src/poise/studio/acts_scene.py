"""What requests about the scene do: other characters, other rules, and what happens to them."""

from __future__ import annotations

from dataclasses import replace

from poise.control.profiles import ProfileSpec
from poise.errors import PoiseError
from poise.model.character import Character
from poise.studio import deeds, limits
from poise.studio.choosing import SCENE, balances, chosen, differ
from poise.studio.requests import (
    AddObject,
    Choose,
    ClearObjects,
    Drag,
    Push,
    Release,
    SetFriction,
    SetGains,
    SetGravity,
    SetPin,
    SetProfile,
    SetStrength,
    Throw,
)
from poise.studio.setup import Setup, object_of, set_up, tuned
from poise.studio.show import Show
from poise.studio.snapshot import Controls


def choose(show: Show, asked: Choose) -> None:
    """Another scene, which is loaded beside the present one; or another step or controller."""
    there, wanted = show.simulation.setup.controls, chosen(show.controls, asked, show.library)
    show.choices += 1
    if differ(wanted, there, *SCENE) or balances(wanted) != balances(there):
        _load(show, wanted)
    else:
        _change(show, wanted)
    show.controls = wanted


def _load(show: Show, wanted: Controls) -> None:
    """Let a scene be loaded, and begin with it when it is there."""
    number, library = show.choices, show.library

    def ready(setup: Setup) -> None:
        show.post(lambda: _begin(show, setup, number))

    def failed(text: str) -> None:
        show.post(lambda: _give_up(show, text, number))

    show.jobs.start(
        "load",
        f"loading {wanted.clip} on {wanted.character}",
        lambda progress: set_up(
            wanted,
            library.rounds(wanted.character, wanted.clip, progress, balanced=balances(wanted)),
        ),
        then=ready,
        failed=failed,
    )


def _begin(show: Show, setup: Setup, number: int) -> None:
    """Begin with a scene that was loaded, unless another was asked for since."""
    if number != show.choices:
        return
    try:
        wanted = show.controls
        if differ(wanted, setup.controls, "gravity", "friction", "dt", "loop", "tuning"):
            setup = set_up(wanted, setup.rounds)
        setup = replace(setup, controls=wanted)
        show.need_live()
        show.end_take("the scene")
        show.simulation.begin(setup)
    except PoiseError as error:
        _give_up(show, str(error), number)
        return
    show.pushes = []
    show.series.clear()
    show.set_clock()
    show.tell_notes()


def _give_up(show: Show, text: str, number: int) -> None:
    if number == show.choices:
        show.controls = show.scene_controls()
        show.say(text, "error")


def _change(show: Show, wanted: Controls) -> None:
    """Another step or controller of the scene that is there."""
    sim = show.simulation
    show.need_live()
    if wanted.dt != sim.setup.controls.dt:
        show.end_take("the time step")
        sim.rebuild(wanted)
        show.set_clock()
    else:
        sim.retune(wanted)


def set_gravity(show: Show, asked: SetGravity) -> None:
    """Another gravity."""
    x, y, z = asked.gravity
    show.do(deeds.gravity((x, y, z)))
    show.controls = replace(show.controls, gravity=(x, y, z))
    show.simulation.remember(replace(show.scene_controls(), gravity=(x, y, z)))


def set_friction(show: Show, asked: SetFriction) -> None:
    """Another friction."""
    show.need_live()
    show.end_take("the friction")
    show.simulation.rebuild(replace(show.scene_controls(), friction=asked.friction))
    show.controls = replace(show.controls, friction=asked.friction)


def set_gains(show: Show, asked: SetGains) -> None:
    """Stiffer, or softer."""
    _tune(show, asked.limb, frequency=asked.frequency, damping=asked.damping)


def set_strength(show: Show, asked: SetStrength) -> None:
    """Stronger, or limp."""
    _tune(show, asked.limb, strength=asked.value)


def set_pin(show: Show, asked: SetPin) -> None:
    """Held, or let go."""
    _tune(show, asked.limb, pin=asked.value)


def set_profile(show: Show, asked: SetProfile) -> None:
    """A limb goes limp, and comes back."""
    show.need_live()
    _check_tuned(show)
    show.simulation.settle()
    profiles: tuple[ProfileSpec, ...] = ()
    if asked.name is not None:
        now = ProfileSpec(asked.name, asked.limb, float(show.simulation.time), asked.hold)
        now.of(show.simulation.setup.world)
        profiles = (*show.scene_controls().profiles, now)[-limits.MOST_PROFILES :]
    show.simulation.retune(replace(show.scene_controls(), profiles=profiles))
    show.controls = replace(show.controls, profiles=profiles)


def _check_tuned(show: Show) -> None:
    """Refuse what balance does not have."""
    if balances(show.simulation.setup.controls):
        raise PoiseError("balance has gains of its own: its objectives and goals are in Balance")


def _tune(show: Show, limb: str | None, **values: float) -> None:
    show.need_live()
    _check_tuned(show)
    character = show.simulation.setup.cast.character
    wanted = tuned(show.scene_controls(), character, limb, **values)
    show.simulation.retune(wanted)
    if show.controls.character == wanted.character:
        show.controls = replace(show.controls, tuning=wanted.tuning)


def add_object(show: Show, asked: AddObject) -> None:
    """One more object."""
    show.need_live()
    sim = show.simulation
    sim.settle()
    setup = sim.setup
    if len(setup.objects) >= limits.MOST_OBJECTS:
        raise PoiseError(f"there are {limits.MOST_OBJECTS} objects, the most there can be")
    taken = [thing.name for thing in setup.objects]
    name = next(x for i in range(1, 999) if (x := f"{asked.kind}-{i}") not in taken)
    who = min(show.controls.watch, setup.cast.count - 1)
    at = deeds.place_for(setup, sim.runner.world, asked, who)
    _put(show, (*setup.objects, object_of(asked, name, at)))


def clear_objects(show: Show, asked: ClearObjects) -> None:
    """No object, and no ball."""
    show.need_live()
    _put(show, ())


def _put(show: Show, objects: tuple[Character, ...]) -> None:
    show.end_take("the objects")
    show.simulation.put_objects(objects, balls=bool(objects))
    show.set_clock()


def throw(show: Show, asked: Throw) -> None:
    """A ball."""
    show.need_live()
    sim = show.simulation
    sim.settle()
    who = min(show.controls.watch, sim.setup.cast.count - 1)
    show.do(deeds.throw(sim.setup, sim.runner.world, asked, who))


def push(show: Show, asked: Push) -> None:
    """A push."""
    show.need_live()
    sim = show.simulation
    sim.settle()
    deed, told = deeds.push(sim.setup, sim.runner.world, asked)
    show.do(deed)
    show.pushes.append(told)


def drag(show: Show, asked: Drag) -> None:
    """A link that is dragged."""
    show.need_live()
    show.do(deeds.drag(show.simulation.setup, asked))


def release(show: Show, asked: Release) -> None:
    """A link that is let go."""
    show.need_live()
    show.do(deeds.release(show.simulation.setup, asked))
