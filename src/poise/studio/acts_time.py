"""What requests about time do."""

from __future__ import annotations

from dataclasses import replace

from poise.errors import PoiseError
from poise.studio import deeds
from poise.studio.requests import Play, Restart, Scrub, SetLoop, SetSpeed, Step, Watch
from poise.studio.show import Show


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
            sim.do(deeds.loop(asked.on, sim.time))
        sim.remember(show.scene_controls())


def watch(show: Show, asked: Watch) -> None:
    """Another character in the middle."""
    count = show.simulation.setup.cast.count
    if asked.who >= count:
        raise PoiseError(f"there is no character {asked.who}; there are {count}")
    show.controls = replace(show.controls, watch=asked.who)
