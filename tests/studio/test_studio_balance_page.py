"""Balance on the page, without a browser and with one: switches, handles of goals, the mouse."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from studio_balance import place as point_of
from studio_scenes import wait_for
from test_studio_browser import opened, picture, pixel, row, spot
from test_studio_page import CAMERA, pages, socket_of, until

from poise.studio import Studio
from poise.studio.live_view import TRANSPARENT
from poise.studio.requests import Choose, RemoveGoal, SetGoal
from poise.studio.snapshot import Measures
from poise.studio.tabs import goal_names

viser = pytest.importorskip("viser")


@pytest.fixture
def studio(tmp_path: Path) -> Iterator[Studio]:
    with Studio("butterflies", controller="balance", out=tmp_path, port=0, shadows=False) as studio:
        yield studio


def test_a_goal_is_dragged_by_its_handle(studio: Studio) -> None:
    session, goals = studio.session, studio.page.view.goals
    with socket_of(studio) as page:
        page.send(msgspec.msgpack.encode(CAMERA))
        assert until(lambda: pages(studio) == 1)
        session.submit(SetGoal("head"))
        assert until(lambda: "head" in goals._goals)
        handle = goals._goals["head"]._handle
        there = session.newest.controls.goals["head"]
        assert until(lambda: np.allclose(studio.page.view.to_world(handle.position), there))
        to = np.array(there) + (0.05, 0.03, -0.05)
        for kind, more in (
            ("DragStart", {}),
            ("Update", {"wxyz": [1, 0, 0, 0], "position": [0.05, 0.02, 1.4]}),
            ("Update", {"wxyz": [1, 0, 0, 0],
                        "position": (to - studio.page.view.to_world((0, 0, 0))).tolist()}),
            ("DragEnd", {}),
        ):  # fmt: skip
            said = {"type": f"TransformControls{kind}Message", "name": handle.name, "owner": ""}
            page.send(msgspec.msgpack.encode({**said, **more}))
        # the page's origin follows the character by some millimetres meanwhile
        assert until(lambda: np.allclose(session.newest.controls.goals["head"], to, atol=0.01))
        session.submit(RemoveGoal())
        assert until(lambda: not goals._goals)


def test_a_handle_that_is_held_stays_in_the_hand(studio: Studio) -> None:
    goals = studio.page.view.goals
    with socket_of(studio) as page:
        page.send(msgspec.msgpack.encode(CAMERA))
        studio.session.submit(SetGoal("head"))
        assert until(lambda: "head" in goals._goals)
        goal = goals._goals["head"]
        said = {"name": goal._handle.name, "owner": ""}
        start = {**said, "type": "TransformControlsDragStartMessage"}
        page.send(msgspec.msgpack.encode(start))
        assert until(lambda: goal.held)
        kept = np.array(goal._handle.position)
        studio.session.submit(SetGoal("head", (0.3, 0.0, 1.5)))
        updates = studio.page.updates
        assert until(lambda: studio.page.updates > updates + 5)
        assert np.array_equal(goal._handle.position, kept)
    # whose page is gone holds nothing
    assert until(lambda: not goal.held)


def test_gains_or_switches_are_shown_never_both(studio: Studio) -> None:
    panel, session = studio.page.panel, studio.session

    def shown() -> tuple[bool, bool]:
        switches = {folder.visible for folder in (panel._options._balance, panel._options._goals)}
        sliders = panel._control._sliders.items()
        gains = {slider.visible for name, slider in sliders if name != "strength"}
        assert len(switches) == len(gains) == 1
        return switches.pop(), gains.pop()

    with socket_of(studio) as page:
        page.send(msgspec.msgpack.encode(CAMERA))
        assert until(lambda: shown() == (True, False))
        session.submit(Choose(controller="spd"))
        wait_for(session, lambda now: now.controls.controller == "spd")
        assert until(lambda: shown() == (False, True))


def test_one_sees_through_the_bodies_and_no_longer(studio: Studio) -> None:
    box, actors = studio.page.panel.view_tab._boxes["inside"], studio.page.view._view
    assert actors is not None

    def shown(wanted: list[float | None]) -> bool:
        return [handle.opacity for handle in actors.bodies.handles] == wanted

    with socket_of(studio) as page:
        page.send(msgspec.msgpack.encode(CAMERA))
        for on in (True, False):
            box.value = on
            wanted = [TRANSPARENT if on else None] * len(actors.bodies.handles)
            assert until(partial(shown, wanted))


def test_goals_that_are_offered_can_be_set(studio: Studio) -> None:
    from poise.anatomy.body import place_of

    character = studio.session.newest.measures.index.character
    offered = goal_names(character)
    assert offered[:3] == ("left_hand", "right_hand", "head")
    assert len(set(offered)) == len(offered)
    for name in offered:
        place_of(character, name)


def test_the_command_takes_a_controller(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from poise.cli import app

    def interrupt() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("poise.cli.view._wait", interrupt)
    asked = ["view", "squat", "--no-browser", "--port", "0", "--out", str(tmp_path)]
    ran = CliRunner().invoke(app, [*asked, "--controller", "balance"])
    assert ran.exit_code == 0, ran.output
    wrong = CliRunner().invoke(app, [*asked, "--controller", "ballance"])
    assert wrong.exit_code != 0
    assert "did you mean 'balance'?" in wrong.output


@pytest.mark.slow
def test_a_person_lets_it_balance_drags_a_goal_and_pushes(browser: Any, tmp_path: Path) -> None:
    with Studio("butterflies", out=tmp_path, port=0, shadows=False) as studio:
        page, session = opened(browser, studio), studio.session
        page.locator("[class*=Notification-closeButton]").click()

        # it is let go, onto its own feet
        row(page, "Controller").locator("input").first.click()
        page.get_by_role("option", name="balance", exact=True).click()
        assert until(lambda: session.newest.measures.index.settings.self_collision is False, 60)
        assert session.newest.controls.root == "free"

        # an objective is switched off, and on again
        page.get_by_text("Tune", exact=True).click()
        angular = row(page, "Angular").locator("input[type=checkbox]")
        angular.click(force=True)
        assert until(lambda: session.newest.controls.option("objectives") == ("track", "linear"))
        angular.click(force=True)
        assert until(lambda: len(session.newest.controls.option("objectives")) == 3)

        # a goal is dragged by the arrow that points ahead, and the hand follows
        row(page, "Link").locator("input").first.click()
        page.get_by_role("option", name="right_hand", exact=True).click()
        page.get_by_role("button", name="Add a goal").click()
        assert until(lambda: "right_hand" in session.newest.controls.goals)
        # out from under the panels
        session.submit(SetGoal("right_hand", (0.3, -0.2, 1.15)))
        goals = studio.page.view.goals._goals
        assert until(lambda: "right_hand" in goals)
        assert until(lambda: session.newest.controls.goals["right_hand"][2] == 1.15)
        settle(page)
        start = np.array(session.newest.controls.goals["right_hand"])
        page.mouse.move(*spot(page, studio, start + (0.18, 0.0, 0.0)))
        settle(page)
        page.mouse.down()
        for share in np.linspace(0.0, 1.0, 8):
            page.mouse.move(*spot(page, studio, start + (0.18 + 0.1 * share, 0.0, 0.0)))
            settle(page, 2)
        assert until(lambda: session.newest.controls.goals["right_hand"][0] > start[0] + 0.05)
        page.mouse.up()
        assert until(lambda: not goals["right_hand"].held)
        end = np.array(session.newest.controls.goals["right_hand"])
        # along that arrow alone; the page's origin follows the character by some millimetres
        assert np.allclose(end[1:], start[1:], atol=0.02)
        # the clip swings its arms, and takes the hand away from time to time
        assert until(lambda: _apart(session.newest.measures, end) < 0.07, 60)
        picture(page, "balance-goal")

        # a click on the chest pushes it; it stands
        seen = session.newest.measures.time
        page.mouse.click(*pixel(page, studio, "chest"))
        assert until(lambda: studio.session.simulation.pushes)
        assert studio.session.simulation.pushes[-1].force == 150.0
        picture(page, "balance-pushed")
        assert until(lambda: session.newest.measures.time > seen + 3.0)
        assert not session.newest.measures.fallen[0]
        page.get_by_role("tab", name="Balance").click()
        settle(page)
        picture(page, "balance-curves")
        page.close()


def _apart(measures: Measures, goal: Any) -> float:
    """How far the right hand is from its goal [m]."""
    return float(np.linalg.norm(point_of(measures, "right_hand") - goal))


def settle(page: Any, frames: int = 6) -> None:
    """Wait until the browser has drawn some frames."""
    page.evaluate(
        "n => new Promise(done => {"
        " const f = () => n-- > 0 ? requestAnimationFrame(f) : done(); f(); })",
        frames,
    )
