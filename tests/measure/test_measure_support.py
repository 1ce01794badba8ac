"""The support polygon against SciPy's hulls, closed forms and brute force."""

from __future__ import annotations

import numpy as np
import pytest
from contact_states import HUMANOID, rows
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.spatial import ConvexHull

from poise import PoiseError, World, measure
from poise.anatomy.feet import feet_of, positions

Array = NDArray[np.float64]

SQUARE = np.array([(0.0, 0, 0), (1, 0, 0), (0, 1, 0), (1, 1, 0), (0.5, 0.5, 0), (1, 0.5, 0)])


def area(corners: Array) -> float:
    """By the shoelace formula; above zero for corners that go anticlockwise."""
    x, y = corners.T
    return 0.5 * float(np.sum(x * np.roll(y, -1) - y * np.roll(x, -1)))


def test_the_support_of_two_feet_holds_the_corners_of_the_soles() -> None:
    world = World(HUMANOID, dt=1 / 60)
    world.step()
    support = measure.support_polygon(world.contacts)
    soles = positions(HUMANOID, feet_of(HUMANOID), HUMANOID.rest_q)[:, :2]
    assert area(support.corners) == pytest.approx(ConvexHull(soles).volume, rel=1e-6)
    com = measure.center_of_mass(HUMANOID, HUMANOID.rest_q)
    edges = soles.min(axis=0), soles.max(axis=0)
    nearest = min(*(com[:2] - edges[0]), *(edges[1] - com[:2]))
    assert measure.support_margin(support, com) == pytest.approx(nearest, abs=1e-6)


def test_many_polygons_at_once_are_those_of_scipy() -> None:
    rng = np.random.default_rng(0)
    count = rng.integers(3, 14, 200)
    copy = rng.permutation(np.repeat(np.arange(200), count))
    points = rng.normal(size=(len(copy), 3)) * (1.0, 0.1, 1.0) + (5.0, 0.0, 0.0)
    support = measure.support_polygon(rows(points, copy=copy), 200)
    for i in range(200):
        hull = ConvexHull(points[copy == i, :2])
        corners = support.corners[i, : support.size[i]]
        assert len(corners) == len(hull.vertices)
        assert area(corners) == pytest.approx(hull.volume, rel=1e-9)
        assert np.isnan(support.corners[i, support.size[i] :]).all()


def test_margins_are_those_of_a_dense_edge() -> None:
    rng = np.random.default_rng(1)
    for _ in range(20):
        points, at = rng.normal(size=(6, 3)), 1.5 * rng.normal(size=2)
        support = measure.support_polygon(rows(points))
        corners = support.corners[: support.size]
        t = np.linspace(0, 1, 2001)[:, None, None]
        edge = (corners + t * (np.roll(corners, -1, axis=0) - corners)).reshape(-1, 2)
        hull = ConvexHull(points[:, :2]).equations
        sign = 1.0 if (hull[:, :2] @ at + hull[:, 2] < 0).all() else -1.0
        nearest = sign * np.linalg.norm(edge - at, axis=1).min()
        # points of the dense edge are up to 2 mm apart
        assert measure.support_margin(support, at) == pytest.approx(nearest, abs=2e-3)


@pytest.mark.parametrize(
    ("point", "margin"),
    [((0.5, 0.5), 0.5), ((0.9, 0.5), 0.1), ((1, 0.5), 0), ((1.3, 0.5), -0.3), ((4, 5), -5)],
)
def test_margins_of_a_square(point: tuple[float, float], margin: float) -> None:
    support = measure.support_polygon(rows(SQUARE))
    assert support.size == 4
    assert measure.support_margin(support, point) == pytest.approx(margin)
    assert measure.support_margin(support, (*point, 0.9)) == pytest.approx(margin)


def test_one_point_is_a_support_that_holds_nothing_else() -> None:
    support = measure.support_polygon(rows([(1.0, 2.0, 0.0)] * 3))
    assert support.size == 1
    assert measure.support_margin(support, (1.0, 2.0)) == 0.0
    assert measure.support_margin(support, (4.0, 6.0)) == pytest.approx(-5.0)


def test_points_in_line_are_a_line() -> None:
    line = np.linspace(0, 1, 7)[:, None] * (0.3, 0.7, 0.0) + (1 / 3, 0.1, 0.0)
    support = measure.support_polygon(rows(line[[3, 0, 6, 1, 5, 2, 4]]))
    assert support.size == 2
    assert measure.support_margin(support, line[2]) == pytest.approx(0.0, abs=1e-12)
    off = line[2, :2] + 0.1 * np.array([0.7, -0.3]) / np.hypot(0.7, 0.3)
    assert measure.support_margin(support, off) == pytest.approx(-0.1)


@given(st.integers(0, 10_000), st.integers(1, 9), st.sampled_from([0.0, 1e-16, 1e-9]))
def test_doubled_points_change_nothing(seed: int, count: int, blur: float) -> None:
    rng = np.random.default_rng(seed)
    points = rng.integers(-2, 3, size=(count, 3)).astype(float)  # many in line, many twice
    at = rng.normal(size=2)
    doubled = np.concatenate([points, points + blur * rng.normal(size=points.shape)])
    one, two = (measure.support_polygon(rows(x)) for x in (points, doubled))
    margins = [measure.support_margin(support, at) for support in (one, two)]
    # an edge moves by as much as its ends do
    assert margins[0] == pytest.approx(margins[1], abs=1e-12 + 20 * blur)


def test_only_what_touches_and_carries_is_support() -> None:
    touches = rows(SQUARE[:4], normal=[(0, 0, 1), (0, 0, 1), (0, 0, 1), (0, 1, 0)])
    assert measure.support_polygon(touches).size == 3  # not the wall
    apart = rows(SQUARE[:4])._replace(depth=np.array([0.0, 0.001, -0.0005, -0.01]))
    assert measure.support_polygon(apart).size == 3  # not what is 1 cm away
    presses = apart._replace(force=np.array([(0.0, 0, 1)] * 4))
    assert measure.support_polygon(presses).size == 4


def test_a_point_of_another_dimension_is_refused() -> None:
    support = measure.support_polygon(rows(SQUARE))
    with pytest.raises(PoiseError, match=r"point has shape \(4,\)"):
        measure.support_margin(support, np.zeros(4))
    two = measure.support_polygon(rows(SQUARE, copy=(0, 0, 0, 1, 1, 1)), 2)
    with pytest.raises(PoiseError, match=r"polygons of shape \(2,\)"):
        measure.support_margin(two, np.zeros((3, 2)))
