"""Handlers: what each request does to a session, in one table.

The thread of the session calls them. All that takes long is done by jobs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import asdict

from poise.anatomy.body import place_of
from poise.control.options import parse_option
from poise.control.profiles import ProfileSpec
from poise.control.registry import find_controller
from poise.errors import PoiseError, unknown_name
from poise.math.arrays import Progress
from poise.model.character import Character
from poise.recording import Recording
from poise.studio import edits, requests
from poise.studio.jobs import ExportSource, save
from poise.studio.library import Library
from poise.studio.requests import Request
from poise.studio.scene import MANAGED, Setup, check_controller, object_of, set_up
from poise.studio.snapshot import Controls

if TYPE_CHECKING:
    from poise.studio.session import Session

Point = tuple[float, float, float]

SCENE = ("character", "clip", "count", "ground")
"""Controls that cannot change without a new start; nor can whether it balances."""

# ---- time


def play(session: Session, request: requests.Play) -> None:
    """Plays, or pauses."""
    playback, simulation = session.playback, session.simulation
    if request.on and playback is not None and playback.frame_number == len(playback) - 1:
        playback.show(0)
    if request.on and playback is None and simulation.shown is None and simulation.diverged:
        raise PoiseError(simulation.diverged)
    session.play(request.on)


def step(session: Session, request: requests.Step) -> None:
    """Pauses, and advances by some steps, or goes some frames back."""
    session.playing = False
    if session.playback is None and request.steps >= 0:
        session.simulation.advance(request.steps)
    else:
        session.shown.show(max(0, session.shown.frame_number + request.steps))


def scrub(session: Session, request: requests.Scrub) -> None:
    """Pauses, and shows another frame."""
    session.playing = False
    session.shown.show(request.frame)


def restart(session: Session, request: requests.Restart) -> None:
    """Returns to the start."""
    if session.playback is not None:
        session.playback.show(0)
    else:
        session.end_take("a restart")
        session.simulation.restart()
        if session.controls.profiles:
            # they began at a time that comes again
            session.simulation.retune(replace(session.scene_controls, profiles=()))
            session.controls = replace(session.controls, profiles=())
    session.series.clear()
    session.set_clock()


def set_speed(session: Session, request: requests.SetSpeed) -> None:
    """Changes the speed relative to real time."""
    session.controls = replace(session.controls, speed=request.factor)
    session.set_clock()


def set_loop(session: Session, request: requests.SetLoop) -> None:
    """Loops the clip, or the recording; or ends it."""
    simulation = session.simulation
    if request.on != session.controls.loop:
        session.controls = replace(session.controls, loop=request.on)
        if session.playback is None:
            simulation.apply(edits.loop(request.on, simulation.time))
        simulation.change_start(session.scene_controls)


def watch(session: Session, request: requests.Watch) -> None:
    """Shows the trail and curves of another character."""
    count = session.simulation.setup.index.count
    if request.character >= count:
        raise PoiseError(f"there is no character {request.character}; there are {count}")
    session.controls = replace(session.controls, watch=request.character)


# ---- the scene


def choose(session: Session, request: requests.Choose) -> None:
    """Loads another scene beside the present one; or changes step or controller."""
    present = session.simulation.setup.controls
    chosen = merge_choice(session.controls, request, session.library)
    session.choices += 1
    if _differ(chosen, present, *SCENE) or chosen.balances != present.balances:
        _load_scene(session, chosen)
    else:
        _change_scene(session, chosen)
    session.controls = chosen


def merge_choice(controls: Controls, request: requests.Choose, library: Library) -> Controls:
    """Controls after a choice.

    A character that cannot follow the present clip gets one of its own; a clip that the present
    character cannot follow brings its own. A character that hangs on the world needs no ground.

    Args:
        controls: What was chosen before.
        request: The choice.
        library: The names that there are.
    """
    given = {key: value for key, value in asdict(request).items() if value is not None}
    made = replace(controls, **given)
    find_controller(made.controller)
    library.character(made.character)
    library.check_clip(made.clip)
    if not library.fits(made.clip, made.character):
        if request.clip is None:
            made = replace(made, clip=library.clips_for(made.character)[0])
        elif request.character is None:
            made = replace(made, character=library.owner(made.clip))
    if _differ(made, controls, "character", "clip", "controller"):
        kept = made.options if made.controller == controls.controller else {}
        options = {name: value for name, value in kept.items() if name != "goals"}
        made = replace(made, options=options, profiles=())
    if made.character != controls.character:
        made = replace(made, tuning={})
        if request.ground is None:
            made = replace(made, ground=library.default_ground(made.character))
    root, dt = _world_defaults(made)
    if (root, dt) != _world_defaults(controls):
        # a controller sets its root and time step, and the next one resets them
        made = replace(made, root=request.root or root, dt=request.dt or dt)
    check_controller(made, library.character(made.character))
    return replace(made, watch=min(made.watch, made.count - 1))


def _world_defaults(controls: Controls) -> tuple[str, float]:
    """Root and time step [s] that a controller begins with."""
    entry = controls.entry
    root = Controls.root if "root" in entry.options.info() else "free"
    return root, entry.defaults.get("dt", Controls.dt)


def _differ(one: Controls, two: Controls, *names: str) -> bool:
    """Whether two controls differ in one of these."""
    return any(getattr(one, name) != getattr(two, name) for name in names)


def _load_scene(session: Session, chosen: Controls) -> None:
    """Starts a job that loads a scene, which begins when it is loaded."""
    number, library = session.choices, session.library

    def load(progress: Progress) -> Setup:
        motion = library.motion(chosen.character, chosen.clip, progress, balanced=chosen.balances)
        return set_up(chosen, motion)

    session.jobs.start(
        "load",
        f"loading {chosen.clip} on {chosen.character}",
        load,
        then=lambda setup: session.post(lambda: _begin_scene(session, setup, number)),
        failed=lambda text: session.post(lambda: _keep_scene(session, text, number)),
    )


def _begin_scene(session: Session, setup: Setup, number: int) -> None:
    """Begins a scene that was loaded, unless another was chosen since."""
    if number != session.choices:
        return
    chosen = session.controls
    try:
        if _differ(chosen, setup.controls, "gravity", "friction", "dt", "loop", "tuning"):
            setup = set_up(chosen, setup.motion)
        setup = replace(setup, controls=chosen)
        session.show_live()
        session.end_take("the scene")
        session.simulation.begin(setup)
    except PoiseError as error:
        _keep_scene(session, str(error), number)
        return
    session.series.clear()
    session.set_clock()
    session.show_notes()


def _keep_scene(session: Session, text: str, number: int) -> None:
    """Keeps the present scene, as the chosen one cannot be loaded."""
    if number == session.choices:
        session.controls = session.scene_controls
        session.show_message(text, "error")


def _change_scene(session: Session, chosen: Controls) -> None:
    """Changes step or controller of the present scene."""
    simulation = session.simulation
    session.show_live()
    if chosen.dt != simulation.setup.controls.dt:
        session.end_take("the time step")
        simulation.rebuild(chosen)
        session.set_clock()
    else:
        simulation.retune(chosen)


def set_gravity(session: Session, request: requests.SetGravity) -> None:
    """Changes gravity."""
    session.apply(edits.gravity(request.gravity))
    session.controls = replace(session.controls, gravity=request.gravity)
    session.simulation.change_start(replace(session.scene_controls, gravity=request.gravity))


def set_friction(session: Session, request: requests.SetFriction) -> None:
    """Changes friction."""
    session.show_live()
    session.end_take("the friction")
    session.simulation.rebuild(replace(session.scene_controls, friction=request.friction))
    session.controls = replace(session.controls, friction=request.friction)


def tune(
    session: Session, request: requests.SetGains | requests.SetStrength | requests.SetPin
) -> None:
    """Changes gains, strength or pins of a limb."""
    session.show_live()
    present, values = session.scene_controls, asdict(request)
    for name in values:
        if name in MANAGED and name not in present.entry.options.info():
            raise PoiseError(f"controller {present.controller!r} has no {name}; 'spd' has")
    chosen = present.tuned(session.simulation.setup.index.character, **values)
    session.simulation.retune(chosen)
    if session.controls.character == chosen.character:
        session.controls = replace(session.controls, tuning=chosen.tuning)


def set_profile(session: Session, request: requests.SetProfile) -> None:
    """Starts a profile, or ends all."""
    simulation = session.live_simulation()
    profiles: tuple[ProfileSpec, ...] = ()
    if request.name is not None:
        started = ProfileSpec(request.name, request.limb, simulation.time, request.hold)
        started.of(simulation.setup.world)
        profiles = (*session.scene_controls.profiles, started)[-requests.MAX_PROFILES :]
    simulation.retune(replace(session.scene_controls, profiles=profiles))
    session.controls = replace(session.controls, profiles=profiles)


# ---- options of the controller


def set_option(session: Session, request: requests.SetOption) -> None:
    """Changes an option of the controller."""
    name, present = request.name, session.scene_controls
    known = {key: x for key, x in present.entry.options.info().items() if key not in MANAGED}
    if name not in known:
        what = f"option of controller {present.controller!r}"
        raise PoiseError(unknown_name(what, name, known, "options"))
    _set_options(session, **{name: parse_option(name, request.value, known[name])})


def set_adaptive(session: Session, request: requests.SetAdaptive) -> None:
    """Switches the time scaling of the clip."""
    _check_balances(session)
    _set_controls(session, adaptive=request.on)


def set_goal(session: Session, request: requests.SetGoal) -> None:
    """Sets the goal of a link; each link has one."""
    _check_balances(session)
    character = session.simulation.setup.index.character
    link, place = place_of(character, request.link)
    to = request.to
    if to is None:
        simulation = session.live_simulation()
        index = simulation.setup.index
        x, y, z = index.point(simulation.world.state.q, index.link_index(link), place).tolist()
        to = x, y, z
    goals = {
        name: point
        for name, point in session.controls.goals.items()
        if name == request.link or place_of(character, name)[0] != link
    }
    if request.link not in goals and len(goals) >= requests.MAX_GOALS:
        raise PoiseError(f"there are {requests.MAX_GOALS} goals, the most there can be")
    _set_options(session, goals={**goals, request.link: to})


def remove_goal(session: Session, request: requests.RemoveGoal) -> None:
    """Removes the goal of a link, or all."""
    _check_balances(session)
    goals = dict(session.controls.goals)
    if request.link is None:
        goals = {}
    elif goals.pop(request.link, None) is None:
        raise PoiseError(unknown_name("goal", request.link, list(goals)))
    _set_options(session, goals=goals)


def _check_balances(session: Session) -> None:
    """Raises an error where no character balances."""
    if not session.simulation.setup.controls.balances:
        raise PoiseError("no character balances here: choose the controller 'balance' first")


def _set_options(session: Session, **values: Any) -> None:
    _set_controls(session, options={**session.scene_controls.options, **values})


def _set_controls(session: Session, **values: Any) -> None:
    """Changes the controller from now on; a scene that is being loaded begins with it, too."""
    session.show_live()
    present = replace(session.scene_controls, **values)
    session.simulation.retune(present)
    if session.controls.controller == present.controller:
        session.controls = replace(session.controls, **values)


# ---- edits


def add_object(session: Session, request: requests.AddObject) -> None:
    """Adds an object."""
    simulation = session.live_simulation()
    objects = simulation.setup.objects
    if len(objects) >= requests.MAX_OBJECTS:
        raise PoiseError(f"there are {requests.MAX_OBJECTS} objects, the most there can be")
    taken = [thing.name for thing in objects]
    name = next(x for i in range(1, 999) if (x := f"{request.kind}-{i}") not in taken)
    place = edits.object_place(simulation, request, session.watched)
    _put_objects(session, (*objects, object_of(request, name, place)))


def clear_objects(session: Session, request: requests.ClearObjects) -> None:
    """Removes all objects and balls."""
    session.show_live()
    _put_objects(session, ())


def _put_objects(session: Session, objects: tuple[Character, ...]) -> None:
    session.end_take("the objects")
    session.simulation.put_objects(objects, projectiles=bool(objects))
    session.set_clock()


def throw(session: Session, request: requests.Throw) -> None:
    """Throws a ball."""
    session.apply(edits.throw(session.live_simulation(), request, session.watched))


def push(session: Session, request: requests.Push) -> None:
    """Pushes a link."""
    edit, given = edits.push(session.live_simulation(), request)
    session.apply(edit)
    session.simulation.pushes.append(given)


def drag(session: Session, request: requests.Drag) -> None:
    """Drags a link."""
    session.apply(edits.drag(session.simulation, request))


def release(session: Session, request: requests.Release) -> None:
    """Releases a link, or all."""
    session.apply(edits.release(session.simulation, request))


# ---- recordings and files


def record(session: Session, request: requests.Record) -> None:
    """Begins a take, or ends it."""
    if not request.on:
        session.end_take()
        return
    session.show_live()
    if session.simulation.history.take is None:
        session.take = session.simulation.record()


def save_files(session: Session, request: requests.Save) -> None:
    """Saves what is shown, or the take: one job for each kind of file."""
    title, material = _material(session)
    name = request.name or title
    for kind in dict.fromkeys(request.kinds):
        # a default: each job has its own
        def work(progress: Progress, kind: str = kind) -> Path:
            path = session.folder.new(name, kind, "take")
            return save(kind, path, material(), progress)

        session.jobs.start("save", f"saving {kind}", work, token=request.token)


def _material(session: Session) -> tuple[str, Callable[[], ExportSource]]:
    """The title, and what files are made of, put in order when a job first needs it."""
    beside = None if session.beside is None else session.beside.recording
    playback, watched = session.playback, session.controls.watch
    if playback is not None:
        part = playback.index.names[min(watched, playback.index.count - 1)]
        title = Path(playback.name).stem
        ready = ExportSource(playback.recording, part, beside, (), title)
        return title, lambda: ready
    take = session.take
    if take is None or not take.entries:
        take = session.simulation.recent()
    # what is appended from now on is not part of it
    take = take.copy()
    if not take.entries:
        raise PoiseError("there is nothing to save yet: play first")
    start, end = take.entries[0].time, take.entries[-1].time
    pushes = tuple(push for push in session.simulation.pushes if start <= push.at <= end)
    names = take.characters
    part = names[min(watched, len(names) - 1)]
    return take.title, lru_cache(maxsize=1)(
        lambda: ExportSource(take.recording(), part, beside, pushes, take.title)
    )


def open_recording(session: Session, request: requests.Open) -> None:
    """Plays a recording."""
    _load_recording(session, request.name, session.show_recording)


def compare(session: Session, request: requests.Compare) -> None:
    """Shows a recording beside."""
    if request.name is None:
        session.beside = None
    else:
        _load_recording(session, request.name, session.show_beside)


def _load_recording(session: Session, name: str, show: Callable[[Recording, str], None]) -> None:
    """Starts a job that loads a recording of the folder."""
    known = session.folder.recordings()
    if name not in known:
        raise PoiseError(unknown_name("recording", name, known))
    session.jobs.start(
        "load",
        f"opening {name}",
        lambda progress: session.folder.load(name),
        then=lambda recording: session.post(lambda: show(recording, name)),
        failed=lambda text: session.post(lambda: session.show_message(text, "error")),
    )


def live(session: Session, request: requests.Live) -> None:
    """Returns to the simulation."""
    session.show_live()
    session.playing = False


# ---- the table

HANDLERS: dict[type[Request], Callable[[Session, Any], None]] = {
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
    requests.SetGains: tune,
    requests.SetStrength: tune,
    requests.SetPin: tune,
    requests.SetProfile: set_profile,
    requests.SetOption: set_option,
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

Task = Request | Callable[[], None]
"""What waits in the queue of a session: a request, or a function that was posted."""

OVERRIDING = (
    requests.Scrub,
    requests.SetSpeed,
    requests.SetGravity,
    requests.SetFriction,
    requests.Drag,
    requests.SetGains,
    requests.SetStrength,
    requests.SetPin,
    requests.SetGoal,
    requests.SetOption,
)
"""Requests that override one of the same kind, and of the same limb or point, before them."""


def drop_overridden(tasks: Iterable[Task]) -> list[Task]:
    """Without requests that the next one overrides, as those of a moving slider."""
    kept: list[Task] = []
    for task in tasks:
        if kept and _overrides(task, kept[-1]):
            kept.pop()
        kept.append(task)
    return kept


def _overrides(task: Task, before: Task) -> bool:
    """Whether nothing remains of the task before."""
    if type(task) is not type(before) or not isinstance(task, OVERRIDING):
        return False
    same = ("limb", "link", "point", "name")
    return all(getattr(task, name, None) == getattr(before, name, None) for name in same)
