"""Every controller in the studio: it can be chosen, it moves the character, and objects fall."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from own_controller import Hold, HoldOptions
from studio_scenes import Clock, Studio

from poise import InverseDynamics, PoiseError, World, load_character, measure
from poise.control.registry import CONTROLLERS, ControllerEntry
from poise.studio.requests import AddObject, Choose, Play, SetGains, SetOption

STABLE = ("spd", "spd-torque", "kane")


def played(studio: Studio, clock: Clock, seconds: float) -> None:
    for _ in range(round(60 * seconds)):
        clock.now += 1 / 60 + 1e-6
        studio.advance(1.0)


@pytest.mark.parametrize("name", [name for name in CONTROLLERS if name != "balance"])
def test_a_controller_is_session_options_its_name(name: str, tmp_path: Path) -> None:
    studio = Studio(tmp_path)
    studio.ask(Choose(controller=name))
    assert studio.controls.controller == name


def test_a_controller_of_ones_own_is_listed_chosen_and_tuned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = ControllerEntry("damps every joint", "none2026", Hold, HoldOptions)
    monkeypatch.setitem(CONTROLLERS, "hold", entry)
    clock = Clock()
    studio = Studio(tmp_path, clock)
    studio.ask(Choose(controller="hold"))
    studio.ask(SetOption("gain", "2.5"))
    studio.ask(Play())
    played(studio, clock, 0.2)
    assert isinstance(studio.simulation.controller, Hold)
    assert studio.simulation.controller.gain == 2.5
    assert studio.controls.root == "free"
    with pytest.raises(PoiseError, match="gain is -1"):
        studio.ask(SetOption("gain", "-1"))


@pytest.mark.parametrize("name", STABLE)
@pytest.mark.parametrize("root", ["soft", "held"])
def test_stable_ones_follow_the_clip(name: str, root: str, tmp_path: Path) -> None:
    clock = Clock()
    studio = Studio(tmp_path, clock)
    studio.ask(Choose(controller=name, root=root, ground="none"))
    studio.finish_jobs()
    studio.ask(Play())
    played(studio, clock, 0.5)
    simulation = studio.simulation
    assert simulation.time > 0.45
    wanted = simulation.setup.reference.target(simulation.time).q
    error = measure.tracking_error(simulation.setup.world, simulation.setup.world.state.q, wanted)
    assert error.rotation.max() < 10.0  # 8 Hz joints lag by some degrees


@pytest.mark.parametrize("name", STABLE)
def test_a_box_falls_whatever_moves_the_character(name: str, tmp_path: Path) -> None:
    clock = Clock()
    studio = Studio(tmp_path, clock)
    studio.ask(Choose(controller=name, root="held"))
    studio.ask(AddObject("box", position=(0.0, 3.0, 2.0)))
    studio.ask(Play())
    played(studio, clock, 0.3)
    world = studio.simulation.setup.world
    # steps of 1/60 s fall a little further than g t^2 / 2
    t = studio.simulation.time
    assert 2.0 - world.state.q[-5] == pytest.approx(0.5 * 9.81 * t**2, rel=0.1)


def test_gains_of_a_limb_reach_inverse_dynamics(tmp_path: Path) -> None:
    studio = Studio(tmp_path)
    studio.ask(Choose(controller="kane"))
    studio.ask(SetGains(limb="left_arm", frequency=2.0, damping=0.5))
    controller = studio.simulation.controller
    assert isinstance(controller, InverseDynamics)
    assert len(np.unique(controller.kp)) > 1
    assert len(np.unique(controller.kd)) > 1


def test_damping_of_inverse_dynamics_is_a_number_or_one_per_velocity() -> None:
    arm = load_character("two-link")
    world = World(arm, dt=0.01)
    each = InverseDynamics(world, 100.0, damping=[0.5, 1.0])
    for i, ratio in enumerate((0.5, 1.0)):
        one = InverseDynamics(world, 100.0, damping=ratio)
        assert each.kp[i] == one.kp[i]
        assert each.kd[i] == one.kd[i]
    for wrong in (0.0, -1.0, [1.0, 1.0, 1.0], np.nan):
        with pytest.raises(PoiseError, match="damping"):
            InverseDynamics(world, 100.0, damping=wrong)
