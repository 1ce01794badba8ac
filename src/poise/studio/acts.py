"""What each kind of request does, and which of several in a row count."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from poise.studio import acts_balance, acts_files, acts_scene, acts_time, requests
from poise.studio.show import Show

ACTS: dict[type[requests.Request], Callable[[Show, Any], None]] = {
    requests.Play: acts_time.play,
    requests.Step: acts_time.step,
    requests.Scrub: acts_time.scrub,
    requests.Restart: acts_time.restart,
    requests.SetSpeed: acts_time.set_speed,
    requests.SetLoop: acts_time.set_loop,
    requests.Watch: acts_time.watch,
    requests.Choose: acts_scene.choose,
    requests.SetGravity: acts_scene.set_gravity,
    requests.SetFriction: acts_scene.set_friction,
    requests.SetGains: acts_scene.set_gains,
    requests.SetStrength: acts_scene.set_strength,
    requests.SetPin: acts_scene.set_pin,
    requests.SetProfile: acts_scene.set_profile,
    requests.SetObjective: acts_balance.set_objective,
    requests.SetAdaptive: acts_balance.set_adaptive,
    requests.SetGoal: acts_balance.set_goal,
    requests.RemoveGoal: acts_balance.remove_goal,
    requests.AddObject: acts_scene.add_object,
    requests.ClearObjects: acts_scene.clear_objects,
    requests.Throw: acts_scene.throw,
    requests.Push: acts_scene.push,
    requests.Drag: acts_scene.drag,
    requests.Release: acts_scene.release,
    requests.Record: acts_files.record,
    requests.Save: acts_files.save_files,
    requests.Open: acts_files.open_recording,
    requests.Compare: acts_files.compare,
    requests.Live: acts_files.live,
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
