"""Plots show what the measures say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from films import ball, crowd, held
from PIL import Image
from trees import random_character

from poise import PoiseError, Recording, World, load_character, measure
from poise.simulation.pushes import parse_push
from poise.view import plots
from poise.view.plots import draw_overview, series_of

HUMANOID = load_character("humanoid")


def test_an_overview_is_a_picture_worth_looking_at(tmp_path: Path) -> None:
    plots.overview(tmp_path / "a.png", held(0.3), pushes=[parse_push("chest:100N@0.1s")])
    with Image.open(tmp_path / "a.png") as image:
        assert image.size == (1320, 880)
        pixels = np.asarray(image.convert("RGB")).astype(int)
    assert pixels.mean() > 200  # a light page
    orange = (pixels[..., 0] > 240) & (pixels[..., 2] < 210) & (pixels[..., 1] > 190)
    assert orange.sum() > 5000  # the push, shaded


def test_the_numbers_are_those_of_the_measures() -> None:
    recording = held(0.4, push=200.0)
    series = series_of(recording)
    target = recording.target(-1)
    assert target is not None
    error = measure.tracking_error(HUMANOID, recording.q[-1], target.q)
    assert series.error is not None
    assert series.error.rotation[-1] == pytest.approx(error.rotation)
    # nothing had been asked for at first
    assert np.isnan(series.error.rotation[0]).all()
    assert series.energy.kinetic[-1] == pytest.approx(
        measure.energy(HUMANOID, recording.q[-1], recording.v[-1]).kinetic
    )
    reaction = measure.ground_reaction(recording.scene, recording.contacts(-1))
    assert series.ground[-1] == pytest.approx(reaction.force)
    assert series.weight == pytest.approx(float(measure.mass(HUMANOID)) * 9.81)
    assert series.time == pytest.approx(recording.time)


def test_copies_have_their_own_numbers() -> None:
    recording = ball(n=3)
    speed = [np.linalg.norm(series_of(recording, copy).momentum.linear[-1]) for copy in range(3)]
    assert speed == pytest.approx([1.0, 2.0, 3.0])


def test_copies_of_different_mass_have_their_own_momentum() -> None:
    thing = load_character("lamp")
    mass = np.stack([[link.mass for link in thing.links]] * 2)
    mass[1] *= 3.0
    world = World(thing, n=2, dt=1 / 60, mass=mass)
    recording = Recording(world)
    for _ in range(20):
        world.step()
        recording.append()
    light, heavy = (series_of(recording, copy) for copy in (0, 1))
    assert heavy.weight == pytest.approx(3.0 * light.weight)
    assert heavy.energy.potential[0] == pytest.approx(3.0 * light.energy.potential[0])


@pytest.mark.parametrize("seed", range(4))
def test_torques_are_parts_of_their_limits(seed: int) -> None:
    rng = np.random.default_rng(seed)
    character = random_character(rng, 6, effort=True)
    tau = rng.normal(size=(5, character.nv))
    share = measure.torque_fraction(character, tau)
    for j, joint in enumerate(character.joints):
        own, limit = np.abs(tau[:, character.v_slice(joint)]), joint.effort
        if limit is None:
            assert np.isnan(share[:, j]).all()
        elif isinstance(limit, tuple):
            assert share[:, j] == pytest.approx((own / limit).max(axis=1))
        else:
            assert share[:, j] == pytest.approx(np.linalg.norm(own, axis=1) / limit)


@pytest.mark.parametrize("n", [1, 2])
def test_recordings_without_targets_are_plotted(tmp_path: Path, n: int) -> None:
    recording = crowd(n)
    assert series_of(recording, n - 1).error is None
    plots.overview(tmp_path / "a.png", recording, copy=n - 1, title="crowd")
    assert (tmp_path / "a.png").stat().st_size > 10_000


def test_the_joints_that_work_hardest_are_named() -> None:
    recording = held(0.3)
    figure = draw_overview(series_of(recording), list(recording.scene.forest.joint_names), (), "")
    labels = figure.axes[2].get_legend_handles_labels()[1]
    assert 1 <= len(labels) <= 4
    assert "root" not in labels


def test_one_frame_can_be_plotted(tmp_path: Path) -> None:
    plots.overview(tmp_path / "a.png", ball(frames=1))
    assert (tmp_path / "a.png").exists()


def test_bad_input_is_named(tmp_path: Path) -> None:
    with pytest.raises(PoiseError, match=r"plots are written as \.png"):
        plots.overview(tmp_path / "a.jpg", ball())
    with pytest.raises(PoiseError, match="copy is 7"):
        plots.overview(tmp_path / "a.png", ball(), copy=7)
    with pytest.raises(PoiseError, match="has no frames"):
        plots.overview(tmp_path / "a.png", Recording(World(HUMANOID, dt=1 / 60)))
    assert not list(tmp_path.iterdir())
