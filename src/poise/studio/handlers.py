"""What requests about time do."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from poise.control.asked_profiles import AskedProfile
from poise.control.balance.balance import OBJECTIVES
from poise.control.named import CONTROLLERS
from poise.dynamics import forward_kinematics
from poise.errors import PoiseError, unknown_name
from poise.math.pose import quat_matrix
from poise.model.character import Character
from poise.recording import Recording
from poise.studio import balancing, edits, limits, requests
from poise.studio.jobs import Material, Progress, save
from poise.studio.library import Library
from poise.studio.requests import (
    AddObject,
    Choose,
    ClearObjects,
    Compare,
    Drag,
    Live,
    Open,
    Play,
    Push,
    Record,
    Release,
    RemoveGoal,
    Restart,
    Save,
    Scrub,
    SetAdaptive,
    SetFriction,
    SetGains,
    SetGoal,
    SetGravity,
    SetLoop,
    SetObjective,
    SetPin,
    SetProfile,
    SetSpeed,
    SetStrength,
    Step,
    Throw,
    Watch,
)
from poise.studio.scene import Setup, object_of, set_up, tuned
from poise.studio.show import Show
from poise.studio.simulation import Player
from poise.studio.snapshot import BALANCE, Controls
from poise.trials.balance_trial import place_of


def play(show: Show, asked: Play) -> None:
    """Go on, or pause."""
    player, sim = show.player, show.simulation
    if asked.on and player is not None and player.frame == len(player) - 1:
        player.show(0)
    if asked.on and player is None and sim.shown is None and sim.diverged:
        raise PoiseError(sim.diverged)
    show.play(asked.on)


def step(show: Show, asked: Step) -> None:
    """Some steps, or some frames back."""
    show.playing = False
    if show.player is not None:
        show.player.show(max(0, show.player.frame + asked.steps))
    elif asked.steps < 0:
        show.simulation.show(max(0, show.simulation.frame + asked.steps))
    else:
        show.simulation.go(asked.steps)


def scrub(show: Show, asked: Scrub) -> None:
    """Another frame."""
    show.playing = False
    (show.simulation if show.player is None else show.player).show(asked.frame)


def restart(show: Show, asked: Restart) -> None:
    """From the start."""
    if show.player is not None:
        show.player.show(0)
    else:
        show.end_take("a restart")
        show.simulation.restart()
        if show.controls.profiles:
            # they began at a time that comes again
            show.simulation.retune(replace(show.scene_controls(), profiles=()))
            show.controls = replace(show.controls, profiles=())
        show.pushes = []
    show.series.clear()
    show.set_clock()


def set_speed(show: Show, asked: SetSpeed) -> None:
    """Slow motion."""
    show.controls = replace(show.controls, speed=asked.factor)
    show.set_clock()


def set_loop(show: Show, asked: SetLoop) -> None:
    """Again and again, or to the end."""
    sim = show.simulation
    if asked.on != show.controls.loop:
        show.controls = replace(show.controls, loop=asked.on)
        if show.player is None:
            sim.do(edits.loop(asked.on, sim.time))
        sim.remember(show.scene_controls())


def watch(show: Show, asked: Watch) -> None:
    """Another character in the middle."""
    count = show.simulation.setup.cast.count
    if asked.who >= count:
        raise PoiseError(f"there is no character {asked.who}; there are {count}")
    show.controls = replace(show.controls, watch=asked.who)


# ---- what requests about the scene do: other characters, other rules, and what happens to them


def choose(show: Show, asked: Choose) -> None:
    """Another scene, which is loaded beside the present one; or another step or controller."""
    there, wanted = show.simulation.setup.controls, chosen(show.controls, asked, show.library)
    show.choices += 1
    if differ(wanted, there, *SCENE) or wanted.balances != there.balances:
        _load_scene(show, wanted)
    else:
        _change(show, wanted)
    show.controls = wanted


def _load_scene(show: Show, wanted: Controls) -> None:
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
            library.rounds(wanted.character, wanted.clip, progress, balanced=wanted.balances),
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
    show.do(edits.gravity((x, y, z)))
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
    profiles: tuple[AskedProfile, ...] = ()
    if asked.name is not None:
        now = AskedProfile(asked.name, asked.limb, float(show.simulation.time), asked.hold)
        now.of(show.simulation.setup.world)
        profiles = (*show.scene_controls().profiles, now)[-limits.MOST_PROFILES :]
    show.simulation.retune(replace(show.scene_controls(), profiles=profiles))
    show.controls = replace(show.controls, profiles=profiles)


def _check_tuned(show: Show) -> None:
    """Refuse what balance does not have."""
    if show.simulation.setup.controls.balances:
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
    at = edits.place_for(setup, sim.runner.world, asked, who)
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
    show.do(edits.throw(sim.setup, sim.runner.world, asked, who))


def push(show: Show, asked: Push) -> None:
    """A push."""
    show.need_live()
    sim = show.simulation
    sim.settle()
    deed, told = edits.push(sim.setup, sim.runner.world, asked)
    show.do(deed)
    show.pushes.append(told)


def drag(show: Show, asked: Drag) -> None:
    """A link that is dragged."""
    show.need_live()
    show.do(edits.drag(show.simulation.setup, asked))


def release(show: Show, asked: Release) -> None:
    """A link that is let go."""
    show.need_live()
    show.do(edits.release(show.simulation.setup, asked))


# ---- what requests about balance do: objectives, pace, and points that links should reach

Point = tuple[float, float, float]


def set_objective(show: Show, asked: SetObjective) -> None:
    """An objective more, or less; all others stay."""
    on = {*show.controls.objectives, asked.name}
    if not asked.on:
        on.discard(asked.name)
    _set_balance(show, objectives=tuple(name for name in OBJECTIVES if name in on))


def set_adaptive(show: Show, asked: SetAdaptive) -> None:
    """The clip waits, or does not."""
    _set_balance(show, adaptive=asked.on)


def set_goal(show: Show, asked: SetGoal) -> None:
    """A point for a link, or another one; each link has one."""
    _check_balance(show)
    character = show.simulation.setup.cast.character
    link, place = place_of(character, asked.link)
    to = asked.to
    if to is None:
        show.need_live()
        show.simulation.settle()
        to = place_now(show, link, place)
    goals = {
        name: point
        for name, point in show.controls.goals.items()
        if name == asked.link or place_of(character, name)[0] != link
    }
    if asked.link not in goals and len(goals) >= limits.MOST_GOALS:
        raise PoiseError(f"there are {limits.MOST_GOALS} goals, the most there can be")
    x, y, z = to
    _set_balance(show, goals={**goals, asked.link: (x, y, z)})


def remove_goal(show: Show, asked: RemoveGoal) -> None:
    """No goal for a link, or none at all."""
    goals = dict(show.controls.goals)
    if asked.link is None:
        goals = {}
    elif goals.pop(asked.link, None) is None:
        raise PoiseError(unknown_name("goal", asked.link, list(goals)))
    _set_balance(show, goals=goals)


def place_now(show: Show, link: str, place: Point) -> Point:
    """Where a place of a link is [m]."""
    world = show.simulation.runner.world
    at = show.simulation.setup.cast.link_index(link)
    origin, turn = forward_kinematics(world.scene, world.state.q)
    x, y, z = (origin[at] + quat_matrix(turn[at]) @ place).tolist()
    return x, y, z


def _check_balance(show: Show) -> None:
    """Refuse where nobody balances."""
    if not show.simulation.setup.controls.balances:
        raise PoiseError("nobody balances here: choose the controller 'balance' first")


def _set_balance(show: Show, **values: Any) -> None:
    """Another value, from now on; a scene that is being loaded begins with it, too."""
    _check_balance(show)
    show.need_live()
    show.simulation.retune(replace(show.scene_controls(), **values))
    if show.controls.balances:
        show.controls = replace(show.controls, **values)


# ---- what requests about recordings and files do. All that takes long is done by jobs


def record(show: Show, asked: Record) -> None:
    """Begin a take, or end it."""
    if not asked.on:
        show.end_take()
        return
    show.need_live()
    if show.simulation.history.take is None:
        show.take = show.simulation.record()


def save_files(show: Show, asked: Save) -> None:
    """Save what is shown, or the take: one job for each kind of file."""
    title, material = _material(show)
    name = asked.name or title
    for kind in asked.kinds:
        # a default: each job has its own
        def work(progress: Progress, kind: str = kind) -> Path:
            path = show.folder.new(name, kind, "take")
            return save(kind, path, material(), progress)

        show.jobs.start("save", f"saving {kind}", work, token=asked.token)


def _material(show: Show) -> tuple[str, Callable[[], Material]]:
    """What it is, and what files are made of, put in order when it is first needed, by the job."""
    beside = None if show.beside is None else show.beside.recording
    player, watch = show.player, show.controls.watch
    if player is not None:
        part = player.cast.names[min(watch, player.cast.count - 1)]
        title = Path(player.name).stem
        ready = Material(player.recording, part, player.copy, beside, (), title)
        return title, lambda: ready
    take = show.take if show.take is not None and show.take.entries else show.simulation.recent()
    # what is appended from now on is not part of it
    take = take.copy()
    if not take.entries:
        raise PoiseError("there is nothing to save yet: play first")
    start, end = take.entries[0].time, take.entries[-1].time
    pushes = tuple(push for push in show.pushes if start <= push.at <= end)
    names = take.characters
    part = names[min(watch, len(names) - 1)]
    return take.title, lru_cache(maxsize=1)(
        lambda: Material(take.recording(), part, 0, beside, pushes, take.title)
    )


def open_recording(show: Show, asked: Open) -> None:
    """Play a recording."""
    _load_recording(show, asked.name, lambda recording: show_recording(show, recording, asked.name))


def compare(show: Show, asked: Compare) -> None:
    """Show a recording beside."""
    if asked.name is None:
        show.beside = None
        return
    name = asked.name
    _load_recording(show, name, lambda recording: show_beside(show, recording, name))


def live(show: Show, asked: Live) -> None:
    """Back to the simulation."""
    show.need_live()
    show.playing = False


def show_recording(show: Show, recording: Recording, name: str) -> None:
    """Play a recording that is loaded."""
    show.player = Player(recording, name)
    show.series.clear()
    show.play(True)
    show.dirty = True


def show_beside(show: Show, recording: Recording, name: str) -> None:
    """Show a loaded recording beside."""
    show.beside = Player(recording, name)
    show.dirty = True


def _load_recording(show: Show, name: str, then: Callable[[Recording], None]) -> None:
    """Let a recording of the folder be loaded."""
    known = show.folder.recordings()
    if name not in known:
        raise PoiseError(unknown_name("recording", name, known))
    show.jobs.start(
        "load",
        f"opening {name}",
        lambda progress: show.folder.load(name),
        then=lambda recording: show.post(lambda: then(recording)),
        failed=lambda text: show.post(lambda: show.say(text, "error")),
    )


# ---- what a choice means for what is already chosen

SCENE = ("character", "clip", "count", "ground")
"""What cannot change without a new start; nor can whether it balances."""

NAMES = (*CONTROLLERS, BALANCE)
"""Controllers there are."""


def chosen(controls: Controls, asked: Choose, library: Library) -> Controls:
    """Controls after a choice.

    A character that cannot follow the present clip gets one of its own; a clip that the present
    character cannot follow brings its own. Who hangs on the world needs no ground.

    Args:
        controls: What was chosen before.
        asked: The choice.
        library: The names that there are.
    """
    given = {f.name: getattr(asked, f.name) for f in fields(asked)}
    made = replace(controls, **{key: value for key, value in given.items() if value is not None})
    if made.controller not in NAMES:
        raise PoiseError(unknown_name("controller", made.controller, NAMES))
    library.character(made.character)
    library.check_clip(made.clip)
    if not library.fits(made.clip, made.character):
        if asked.clip is None:
            made = replace(made, clip=library.clips_for(made.character)[0])
        elif asked.character is None:
            made = replace(made, character=library.owner(made.clip))
    if differ(made, controls, "character", "clip", "controller"):
        made = replace(made, goals={}, profiles=())
    if made.character != controls.character:
        made = replace(made, tuning={})
        if asked.ground is None:
            made = replace(made, ground="plane" if stands(library, made.character) else "none")
    made = _balanced(made, asked, was=controls.balances)
    if made.balances:
        balancing.check_balance(made, library.character(made.character))
    return replace(made, watch=min(made.watch, made.count - 1))


def _balanced(made: Controls, asked: Choose, was: bool) -> Controls:
    """Balance brings its root and time step along, and takes them away again.

    Args:
        made: What was chosen.
        asked: The choice; what it names counts.
        was: Whether it balanced before.
    """
    if made.balances == was:
        return made
    root, dt = ("free", balancing.DT) if made.balances else (Controls.root, Controls.dt)
    return replace(made, root=asked.root or root, dt=asked.dt or dt)


def stands(library: Library, character: str) -> bool:
    """Whether a character moves freely, and needs something to stand on."""
    joints = library.character(character).joints
    return bool(joints) and joints[0].kind == "free"


def differ(one: Controls, two: Controls, *names: str) -> bool:
    """Whether two controls differ in one of these."""
    return any(getattr(one, name) != getattr(two, name) for name in names)


# ---- what each kind of request does, and which of several in a row count

ACTS: dict[type[requests.Request], Callable[[Show, Any], None]] = {
    requests.Play: play,
    requests.Step: step,
    requests.Scrub: scrub,
    requests.Restart: restart,
    requests.SetSpeed: set_speed,
    requests.SetLoop: set_loop,
    requests.Watch: watch,
    requests.Choose: choose,
    requests.SetGravity: set_gravity,
    requests.SetFriction: set_friction,
    requests.SetGains: set_gains,
    requests.SetStrength: set_strength,
    requests.SetPin: set_pin,
    requests.SetProfile: set_profile,
    requests.SetObjective: set_objective,
    requests.SetAdaptive: set_adaptive,
    requests.SetGoal: set_goal,
    requests.RemoveGoal: remove_goal,
    requests.AddObject: add_object,
    requests.ClearObjects: clear_objects,
    requests.Throw: throw,
    requests.Push: push,
    requests.Drag: drag,
    requests.Release: release,
    requests.Record: record,
    requests.Save: save_files,
    requests.Open: open_recording,
    requests.Compare: compare,
    requests.Live: live,
}

Asked = requests.Request | Callable[[], None]
"""What waits to be done: a request, or something that was posted."""

SETTINGS = (requests.Scrub, requests.SetSpeed, requests.SetGravity, requests.SetFriction)
"""Requests that leave nothing of one of the same kind before them."""

SLIDERS = (
    requests.Drag,
    requests.SetGains,
    requests.SetStrength,
    requests.SetPin,
    requests.SetGoal,
)
"""Requests that leave nothing of one before them of the same limb, or of the same point."""


def latest(asked: Iterable[Asked]) -> list[Asked]:
    """Without requests that one right after them overrides, as those of a moving slider."""
    kept: list[Asked] = []
    for one in asked:
        if kept and _overrides(one, kept[-1]):
            kept.pop()
        kept.append(one)
    return kept


def _overrides(one: Asked, before: Asked) -> bool:
    """Whether a request leaves nothing of the one before."""
    if type(one) is not type(before):
        return False
    same = ("limb", "link", "point")
    return isinstance(one, SETTINGS) or (
        isinstance(one, SLIDERS)
        and all(getattr(one, name, None) == getattr(before, name, None) for name in same)
    )
