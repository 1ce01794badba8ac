"""What a browser is told to draw is what the ray caster draws."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from objects import SOLIDS, body, turned

from poise import PoiseError, load_character
from poise.math.rotation import quat_matrix
from poise.model.scene import scene_of
from poise.view import arrow, drawing_of, marker
from poise.view.drawing import Primitive
from poise.view.html import HtmlRecorder
from poise.view.mesh import parts_of, solid
from poise.view.stage import Stage, linear_bytes

HUMANOID = load_character("humanoid")


@pytest.fixture
def stage() -> Stage:
    return Stage(HtmlRecorder().scene)


def sent(handle: Any) -> dict[str, Any]:
    """The properties of a node of viser."""
    return dict(vars(handle._impl.props))


def points_of(handle: Any) -> Any:
    """Where viser puts the vertices of every instance of a batch, shape (k, vertices, 3)."""
    props = sent(handle)
    local = props["vertices"][None] * props["batched_scales"][:, None]
    turn = quat_matrix(props["batched_wxyzs"])
    return np.einsum("kij,kvj->kvi", turn, local) + props["batched_positions"][:, None]


def volume(name: str) -> float:
    """Of a closed solid, positive if its faces look outwards."""
    shape = solid(name)
    a, b, c = (shape.vertices[shape.faces[:, k]].astype(float) for k in range(3))
    return float(np.einsum("ki,ki->k", a, np.cross(b, c)).sum() / 6)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("sphere", 4 / 3 * np.pi), ("cylinder", 2 * np.pi), ("box", 8.0), ("cone", np.pi / 3)],
)
def test_solids_are_closed_and_look_outwards(name: str, expected: float) -> None:
    # what is round is a little smaller: its corners lie on the surface
    assert 0.96 * expected < volume(name) <= expected + 1e-6


def test_a_capsule_is_two_domes_and_a_tube() -> None:
    parts = parts_of("capsule", (0.1, 0.3))
    assert sorted(part.solid for part in parts) == ["dome", "dome", "tube"]
    for part in parts:
        flip = np.array([1.0, -1.0, -1.0]) if part.turned else np.ones(3)
        place = flip * solid(part.solid).vertices * part.scale + (0.0, 0.0, part.up)
        nearest = np.stack([np.zeros(len(place)), np.zeros(len(place)), place[:, 2]], axis=-1)
        nearest[:, 2] = nearest[:, 2].clip(-0.3, 0.3)
        assert np.linalg.norm(place - nearest, axis=1) == pytest.approx(0.1, abs=1e-6)


def test_tiles_of_two_shades_make_a_plane() -> None:
    light, dark = (solid(name) for name in ("light_tiles", "dark_tiles"))
    squares = [
        {tuple(row) for row in shape.vertices[shape.faces].mean(axis=1).round(3).tolist()}
        for shape in (light, dark)
    ]
    assert not squares[0] & squares[1]
    assert len(squares[0] | squares[1]) == 2 * 80 * 80


@pytest.mark.parametrize("kind", SOLIDS)
def test_a_body_stands_where_a_picture_has_it(stage: Stage, kind: str) -> None:
    thing = body(SOLIDS[kind])
    q = np.array([0.3, -0.2, 1.1, *turned(70.0, (1.0, 2.0, 3.0))])
    bodies = stage.bodies("one", thing)
    bodies.update(q)
    (drawn,) = drawing_of(thing, q)
    corners = np.concatenate([points_of(handle).reshape(-1, 3) for handle in bodies.handles])
    local = (corners - drawn.pos) @ quat_matrix(drawn.quat)
    size = np.array(drawn.size)
    if drawn.mesh is not None:
        low, high = drawn.mesh.vertices.min(axis=0), drawn.mesh.vertices.max(axis=0)
    else:
        r, half = size[0], size[min(1, len(size) - 1)]
        reach = {"sphere": (r, r, r), "capsule": (r, r, r + half), "cylinder": (r, r, half)}
        high = np.array(reach.get(kind, size))
        low = -high
    assert local.min(axis=0) == pytest.approx(low, abs=1e-5)
    assert local.max(axis=0) == pytest.approx(high, abs=1e-5)


def test_a_character_is_few_batches_and_every_part_knows_its_link(stage: Stage) -> None:
    scene = scene_of([HUMANOID, HUMANOID])
    bodies = stage.bodies("two", scene, n=3)
    assert len(bodies.handles) <= 6
    found = [
        bodies.link_of(handle, i)
        for handle in bodies.handles
        for i in range(len(sent(handle)["batched_positions"]))
    ]
    shaped = {i for part in (HUMANOID, HUMANOID) for i, link in enumerate(part.links)}
    assert {pair[0] for pair in found if pair} == {0, 1, 2}
    assert {pair[1] for pair in found if pair} <= set(range(scene.nl))
    assert len({pair[1] for pair in found if pair}) > len(shaped)
    assert bodies.link_of(bodies.handles[0], 10**6) is None


def test_copies_are_posed_and_moved_aside(stage: Stage) -> None:
    thing = body(SOLIDS["box"])
    bodies = stage.bodies("many", thing, n=3, offset=[(0, 0, 0), (0, 5, 0), (0, 10, 0)])
    q = np.tile((0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0), (3, 1))
    q[:, 0] = (1.0, 2.0, 3.0)
    bodies.update(q)
    place = sent(bodies.handles[0])["batched_positions"]
    assert place == pytest.approx(np.array([(1, 0, 1), (2, 5, 1), (3, 10, 1)]))


def test_an_update_sends_poses_and_nothing_else() -> None:
    recorder = HtmlRecorder()
    bodies = Stage(recorder.scene).bodies("one", HUMANOID)
    before = len(recorder._serializer._messages)
    q = bodies.scene.forest.rest_q + 0.0
    q[2] += 0.1
    bodies.update(q)
    news = [message for _, message in recorder._serializer._messages[before:]]
    assert {name for message in news for name in message["updates"]} == {"batched_positions"}
    assert len(news) == len(bodies.handles)
    # and nothing at all where nothing has moved
    bodies.update(q)
    assert len(recorder._serializer._messages) == before + len(news)


def test_links_are_painted_and_get_their_colours_back(stage: Stage) -> None:
    bodies = stage.bodies("one", HUMANOID)
    own = [sent(handle)["batched_colors"].copy() for handle in bodies.handles]
    rgb = np.zeros((bodies.scene.nl, 3))
    rgb[:, 0] = 1.0
    bodies.color_links(rgb)
    for handle in bodies.handles:
        assert (sent(handle)["batched_colors"] == (255, 0, 0)).all()
    bodies.color_links(None)
    for handle, colors in zip(bodies.handles, own, strict=True):
        assert np.array_equal(sent(handle)["batched_colors"], colors)


def test_what_is_not_shown_has_no_size(stage: Stage) -> None:
    projectiles = [body(SOLIDS["sphere"], name=f"ball-{i}") for i in range(3)]
    bodies = stage.bodies("thrown", projectiles)
    bodies.update(bodies.scene.forest.rest_q, shown=[True, False, True])
    scale = sent(bodies.handles[0])["batched_scales"]
    assert scale[:, 0] == pytest.approx([0.1, 0.0, 0.1])


def test_a_ghost_is_see_through_and_throws_no_shadow(stage: Stage) -> None:
    ghost = stage.bodies("ghost", HUMANOID, color=(0.0, 0.0, 1.0), opacity=0.4)
    for handle in ghost.handles:
        props = sent(handle)
        assert props["batched_opacities"] == pytest.approx(0.4)
        assert not props["cast_shadow"]
    ghost.visible = False
    assert not ghost.visible


def test_a_list_may_grow_and_shrink(stage: Stage) -> None:
    for count in (1, 3, 20, 2, 0, 5):
        things = [thing for k in range(count) for thing in marker((k, 0.0, 0.0))]
        stage.update("marks", things)
        handle = stage._api.get_handle_by_name("/marks/sphere")
        scale = sent(handle)["batched_scales"][:, 0]
        assert (scale > 0.0).sum() == count
    stage.remove()
    assert stage._api.get_handle_by_name("/marks/sphere") is None


def test_arrows_end_where_they_point(stage: Stage) -> None:
    """Short ones, long ones and those of no length; the same as the ray caster's arrows."""
    starts = np.array([(0, 0, 0), (1, 0, 0), (2, 0, 0)], dtype=float)
    ways = np.array([(0.0, 0.0, 1.0), (0.02, 0.0, -0.01), (0.0, 0.0, 0.0)])
    stage.arrows("quick", starts, ways)
    stage.update("slow", [t for a, b in zip(starts, ways, strict=True) for t in arrow(a, b)])
    nodes = stage._api._handle_from_node_name
    quick = points_of(nodes["/quick/cone"])
    (slow,) = [points_of(nodes[name]) for name in nodes if name.startswith("/slow/mesh")]
    assert len(quick) == len(slow) == 2
    for mine, other, start, way in zip(quick, slow, starts, ways, strict=False):
        tip = np.linalg.norm(mine - start - way, axis=1)
        assert tip.min() == pytest.approx(0.0, abs=1e-6)
        assert mine.min(axis=0) == pytest.approx(other.min(axis=0), abs=1e-4)


def test_a_plane_is_drawn_as_checks(stage: Stage) -> None:
    stage.update("ground", [Primitive("plane", (0.5,), (0.0, 0.0, 0.2), color=(0.8, 0.8, 0.8))])
    nodes = stage._api._handle_from_node_name
    light, dark = (points_of(nodes[f"/ground/{name}_tiles"]) for name in ("light", "dark"))
    assert light[..., 2] == pytest.approx(0.2)
    assert np.ptp(light[..., 0]) == pytest.approx(40.0)
    colors = [sent(nodes[f"/ground/{name}_tiles"])["batched_colors"] for name in ("light", "dark")]
    assert (colors[0] > colors[1]).all()
    assert dark.shape == light.shape


def test_colours_are_sent_as_light() -> None:
    """Half grey of a screen is about a fifth of the light of white."""
    assert linear_bytes(np.array([[0.0, 0.5, 1.0]])).tolist() == [[0, 55, 255]]


def test_twenty_characters_are_posed_in_a_few_milliseconds(stage: Stage) -> None:
    """A page that shows 30 updates a second has 33 ms for each."""
    bodies = stage.bodies("many", HUMANOID, n=20)
    q = np.tile(bodies.scene.forest.rest_q, (20, 1))
    times = []
    for _ in range(10):
        q[:, :3] += 0.01
        start = time.process_time()
        bodies.update(q)
        times.append(time.process_time() - start)
    assert np.median(times) < 0.012


def test_what_cannot_be_shown_is_refused(stage: Stage) -> None:
    bodies = stage.bodies("one", HUMANOID, n=2)
    with pytest.raises(PoiseError, match=r"q has shape \(3,\), expected \(43,\) or \(2, 43\)"):
        bodies.update(np.zeros(3))
    with pytest.raises(PoiseError, match="rgb has shape"):
        bodies.color_links(np.zeros((5, 5)))
    with pytest.raises(PoiseError, match="a sequence of Primitive"):
        stage.update("x", [1])  # type: ignore[list-item]
    with pytest.raises(PoiseError, match="2 starts and 1 vectors"):
        stage.arrows("x", np.zeros((2, 3)), np.zeros((1, 3)))
    with pytest.raises(PoiseError, match=r"points has shape \(3,\), expected \(k, 3\)"):
        stage.balls("x", (0.0, 0.0, 0.0))
    with pytest.raises(PoiseError, match="every entry must be finite"):
        stage.balls("x", [(np.nan, 0.0, 0.0)])
