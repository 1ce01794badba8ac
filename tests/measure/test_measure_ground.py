"""What the ground does, measured: forces, centers of pressure, and what they mean for momentum."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from contact_states import CRATE, HUMANOID, G, rows, standing
from numpy.typing import NDArray
from objects import body, turned

from poise import PoiseError, State, World, dynamics, measure
from poise.model.character import Shape
from poise.simulation.contact import Plane

Array = NDArray[np.float64]

MODELS = [("impulse", 1 / 60), ("penalty", 1e-3)]

# ---- reaction and pressure


@pytest.mark.parametrize(("model", "dt"), MODELS)
def test_a_resting_box_weighs_what_it_weighs(model: str, dt: float) -> None:
    world = World(CRATE, dt=dt, contact=model)
    world.step(steps=round(2 / dt))
    reaction = measure.ground_reaction(world, world.contacts)
    # at rest to the last bits that 2 s of settling leave: a millionth of its weight
    assert reaction.force == pytest.approx([0, 0, 5 * G], abs=5e-5)


@pytest.mark.parametrize(("model", "dt"), MODELS)
def test_the_pressure_of_a_resting_box_is_below_its_mass_centre(model: str, dt: float) -> None:
    world = World(CRATE, dt=dt, contact=model)
    world.step(steps=round(2 / dt))
    com = measure.center_of_mass(world, world.state.q)
    point = measure.ground_reaction(world, world.contacts).point
    assert point == pytest.approx([*com[:2], 0.0], abs=1e-6)
    assert np.linalg.norm(com[:2] - world.state.q[:2]) > 0.05  # and not below its middle


def test_the_pressure_centre_does_not_depend_on_where_torques_are_taken() -> None:
    rng = np.random.default_rng(0)
    p, f = rng.normal(size=(7, 3)), rng.normal(size=(7, 3)) + (0, 0, 4)
    found = []
    for about in rng.normal(size=(5, 3)):
        wrench = measure.contact_wrench(rows(p, f), about)
        found.append(measure.center_of_pressure(*wrench, about, ground=-0.4))
    assert np.ptp(found, axis=0).max() < 1e-13
    assert found[0][2] == pytest.approx(-0.4)


def test_pressure_under_upright_forces_is_their_weighted_mean() -> None:
    rng = np.random.default_rng(1)
    p, f = rng.normal(size=(6, 3)), np.zeros((6, 3))
    p[:, 2], f[:, 2] = 0.0, rng.uniform(1, 9, 6)
    reaction = measure.ground_reaction(CRATE, rows(p, f))
    assert reaction.point == pytest.approx(np.average(p, axis=0, weights=f[:, 2]))
    assert reaction.moment == pytest.approx(0.0, abs=1e-13)


def test_force_point_and_free_moment_are_the_whole_wrench() -> None:
    rng = np.random.default_rng(2)
    p, f = rng.normal(size=(6, 3)), rng.normal(size=(6, 3)) + (0, 0, 3)
    touches, about = rows(p, f), rng.normal(size=3)
    reaction = measure.ground_reaction(CRATE, touches, ground=0.7)
    wrench = measure.contact_wrench(touches, about)
    again = np.cross(reaction.point - about, reaction.force)
    again[2] += reaction.moment
    assert reaction.force == pytest.approx(f.sum(axis=0))
    assert again == pytest.approx(wrench.torque)


def test_a_torque_about_the_vertical_is_a_free_moment() -> None:
    p = np.array([(1.0, 0, 0), (-1.0, 0, 0)])
    f = np.array([(0.0, 3, 5), (0.0, -3, 5)])
    reaction = measure.ground_reaction(CRATE, rows(p, f))
    assert reaction.moment == pytest.approx(6.0)
    assert reaction.point == pytest.approx([0, 0, 0])


def test_pressure_far_from_the_origin_keeps_its_digits() -> None:
    p, f = np.array([(0.1, 0.2, 0), (0.3, 0.1, 0)]), np.array([(1.0, 2, 400), (0, -1, 300)])
    near = measure.ground_reaction(CRATE, rows(p, f)).point
    far = measure.ground_reaction(CRATE, rows(p + (1e5, -1e5, 0), f)).point
    assert far - (1e5, -1e5, 0) == pytest.approx(near, abs=1e-10)  # digits of 1e5 in float64


@pytest.mark.parametrize(("degrees", "friction"), [(10.0, 0.8), (30.0, 0.2)])
def test_a_slope_carries_by_friction_or_lets_slide(degrees: float, friction: float) -> None:
    """Below the friction angle the reaction is the weight; above, its part that friction holds."""
    tilt = math.radians(degrees)
    normal, uphill = (
        np.array([math.sin(tilt), 0.0, math.cos(tilt)]),
        np.array([-math.cos(tilt), 0.0, math.sin(tilt)]),
    )
    start = (0.02 * normal).tolist()
    crate = body(Shape("box", (0.2, 0.15, 0.02)), 5.0, "crate", start, turned(degrees))
    world = World(crate, dt=1 / 60, ground=Plane(tuple(normal)), friction=friction)
    world.step(steps=20)
    before = world.state.q
    world.step()
    reaction = measure.ground_reaction(world, world.contacts, ground=before[2])
    if math.tan(tilt) < friction:
        assert reaction.force == pytest.approx([0.0, 0.0, 5.0 * G], abs=1e-3)
        # an upright force acts below the center of mass, at whatever height
        assert reaction.point == pytest.approx(before[:3], abs=1e-4)
    else:
        held = 5.0 * G * math.cos(tilt) * (normal + friction * uphill)
        assert reaction.force == pytest.approx(held, abs=1e-3)


def test_vectors_of_other_shapes_are_refused() -> None:
    with pytest.raises(PoiseError, match=r"force has shape \(2,\), expected \(..., 3\)"):
        measure.centroidal_moment_pivot(np.zeros(3), np.zeros(2))
    with pytest.raises(PoiseError, match=r"do not fit together: force \(2, 3\), torque \(4, 3\)"):
        measure.center_of_pressure(np.ones((2, 3)), np.ones((4, 3)), np.zeros(3))


def test_the_feet_share_the_weight_and_the_pressure() -> None:
    world, servo, target = standing()
    for _ in range(30):
        world.step(servo(world.state, target))
    whole = measure.ground_reaction(world, world.contacts)
    feet = measure.foot_reactions(world, world.contacts)
    assert list(feet) == ["left_foot", "right_foot"]
    forces = np.array([foot.force for foot in feet.values()])
    points = np.array([foot.point for foot in feet.values()])
    assert forces.sum(axis=0) == pytest.approx(whole.force, rel=1e-12)
    assert np.average(points, axis=0, weights=forces[:, 2]) == pytest.approx(whole.point, abs=1e-12)
    assert points[0, 1] > 0.04 > -0.04 > points[1, 1]  # each under its own sole


@pytest.mark.parametrize("upright", [0.0, -2.0])
def test_nothing_that_carries_has_no_pressure_centre(upright: float) -> None:
    force = np.array([1.0, 0.0, upright])
    assert np.isnan(measure.center_of_pressure(force, np.ones(3), np.zeros(3))).all()
    assert np.isnan(measure.centroidal_moment_pivot(np.ones(3), force)).all()


def test_in_the_air_forces_are_zero_and_places_unknown() -> None:
    world = World(HUMANOID, n=2, dt=1 / 60)
    q = np.tile(HUMANOID.rest_q, (2, 1))
    q[:, 2] += 1.0
    world.reset(State(q))
    world.step()
    reaction = measure.ground_reaction(world, world.contacts, copies=2)
    assert (reaction.force == 0.0).all()
    assert np.isnan(reaction.point).all()
    assert np.isnan(reaction.moment).all()
    assert np.isnan(measure.sinking(world.contacts, 2)).all()
    support = measure.support_polygon(world.contacts, 2)
    assert (support.size == 0).all()
    assert np.isnan(measure.support_margin(support, np.zeros((2, 3)))).all()


def test_a_world_without_contact_has_none_to_measure() -> None:
    world = World(HUMANOID, dt=1 / 60, contact=None)
    world.step()
    assert measure.ground_reaction(world, world.contacts).force.tolist() == [0, 0, 0]
    assert not measure.body_on_ground(world, world.contacts)


# ---- momentum from forces


def sway(dt: float, seconds: float, contact: str = "impulse") -> Any:
    """States before and after each step of a humanoid that was pushed, with the contacts."""
    world, servo, target = standing(dt=dt, contact=contact)
    world.push("chest", (90.0, 60.0, 0.0), 0.1)
    world.throw((2.0, 0.3, 1.4), (-8.0, 0.0, 1.0))
    for _ in range(round(seconds / dt)):
        before = world.state
        world.step(servo(before, target))
        if world.time > 0.1 + 0.5 * dt:
            yield before, world.state, world.contacts, world.torque


@pytest.mark.parametrize(("contact", "dt"), [("impulse", 1 / 60), ("penalty", 1e-3)])
def test_the_rate_of_momentum_is_the_sum_of_outer_forces(contact: str, dt: float) -> None:
    hit, most = 0, 0.0
    for before, after, touches, _ in sway(dt, 0.8, contact):
        a = (after.v - before.v) / dt
        rate = measure.momentum_rate(HUMANOID, before.q, before.v, a)
        cause = measure.external_rate(HUMANOID, before.q, touches)
        # the step solves the equation of motion at its beginning: equal to rounding
        assert rate.linear == pytest.approx(cause.linear, abs=1e-7)
        assert rate.angular == pytest.approx(cause.angular, abs=1e-7)
        hit += int((touches.link >= 13).any() or (touches.other >= 13).any())
        most = max(most, float(np.linalg.norm(rate.linear)))
    assert hit > 0  # the ball was among the outer forces
    assert most > 100.0


def test_the_lever_between_pressure_and_pivot_turns_the_body() -> None:
    """f_z |COP - CMP| = |dH_xy / dt|, the right side by differences of the momentum itself."""
    lever, turning = [], []
    for before, after, touches, _ in sway(1e-3, 0.35):
        com = measure.center_of_mass(HUMANOID, before.q)
        reaction = measure.ground_reaction(HUMANOID, touches)
        pivot = measure.centroidal_moment_pivot(com, reaction.force)
        lever.append(reaction.force[2] * np.linalg.norm((reaction.point - pivot)[:2]))
        H = [measure.momentum(HUMANOID, s.q, s.v).angular for s in (before, after)]
        turning.append(np.linalg.norm((H[1] - H[0])[:2]) / 1e-3)
        if (touches.link >= 13).any() or (touches.other >= 13).any():
            del lever[-1], turning[-1]  # while the ball hits, the ground is not all that acts
    error = np.array(lever) - turning
    assert max(turning) > 20.0
    # differences over a step are right to first order in dt
    assert np.sqrt(np.mean(error**2)) < 0.01 * np.sqrt(np.mean(np.square(turning)))


def test_a_force_through_the_mass_centre_has_its_pivot_at_the_pressure() -> None:
    com, point = np.array([0.1, -0.2, 0.9]), np.array([0.3, 0.1, 0.05])
    force = 700.0 * (com - point)
    reaction = measure.ground_reaction(CRATE, rows(point, force), ground=0.05)
    pivot = measure.centroidal_moment_pivot(com, reaction.force, ground=0.05)
    assert pivot == pytest.approx(reaction.point)
    assert pivot == pytest.approx(point)


def test_contact_wrenches_explain_the_motion_by_inverse_dynamics() -> None:
    world, servo, target = standing()
    world.push("chest", (60.0, 0.0, 0.0), 0.1)
    for _ in range(40):
        before = world.state
        world.step(servo(before, target))
    a = (world.state.v - before.v) * 60
    outer = measure.link_wrenches(world, before.q, world.contacts)
    tau = dynamics.inverse_dynamics(HUMANOID, before.q, before.v, a, external=outer)
    assert np.abs(world.torque).max() > 1.0
    assert tau == pytest.approx(world.torque, abs=1e-8)  # rounding of accelerations times 60 kg
