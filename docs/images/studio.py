"""Makes studio.png and its neighbours, by a browser that looks at the studio.

    python docs/images/studio.py            all of them
    python docs/images/studio.py balance    one part alone: studio, balance or page

    studio.png         the page while balls fly, of README.md and docs/studio.md
    studio-tune.png    the panel with the gains, of docs/studio.md
    studio-crowd.png   twenty characters
    studio-balance.png a kick on its own feet, with a goal for a hand
    studio-through.png the points of balance, inside the bodies
    page.png           what `poise track` leaves as recording.html

Needs playwright and Chromium.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "support"))

from chromium import FLAGS, chromium

from poise.simulation.pushes import parse_push
from poise.studio import Studio
from poise.studio.requests import Choose, Play, Push, RemoveGoal, Request, Restart, SetGoal, Throw
from poise.trials.trial import prepare_trial
from poise.view.html import save_html

HERE = Path(__file__).parent
SIZE = {"width": 1040, "height": 650}
KICK, LEG = 6.1, 1.9  # when the leg goes out, in the second round and in the first [s]
BODY = {"x": 330, "y": 70, "width": 370, "height": 490}
PANEL = {"x": 690, "y": 0, "width": 350, "height": 640}


def main() -> None:
    """Make all pictures."""
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium(), args=list(FLAGS))
        with tempfile.TemporaryDirectory() as folder:
            for part in sys.argv[1:] or PARTS:
                PARTS[part](browser, Path(folder))
        browser.close()


def studio_pictures(browser: Any, folder: Path) -> None:
    """The studio in three moments; it stands still while it is drawn."""
    with Studio("walk", out=folder, port=0, shadows=False) as studio:
        page = browser.new_page(viewport=SIZE)
        page.goto(f"{studio.url}/?fixedDpr=1")
        page.wait_for_selector(".poise-status", timeout=120_000)
        hush(page)
        ask(studio, Push("chest", 700.0, "left", 0.1), Throw(speed=7.0), wait=0.0)
        play_on(studio, 0.36)
        ask(studio, Play(False), wait=1.0)
        shoot(page, "studio.png")
        page.get_by_role("tab", name="Tune").click()
        shoot(page, "studio-tune.png", clip=PANEL)
        page.get_by_role("tab", name="Scene").click()
        ask(studio, Choose(count=20), Play(True), wait=0.0)
        while studio.session.newest.measures.index.count != 20:
            time.sleep(0.1)
        play_on(studio, 1.0)
        ask(studio, Play(False), wait=1.0)
        shoot(page, "studio-crowd.png")
        page.close()


def balance_picture(browser: Any, folder: Path) -> None:
    """A character that balances is pushed while it kicks and reaches."""
    with Studio(
        "forward-kick", controller="balance", out=folder, port=0, shadows=False, play=False
    ) as studio:
        page = browser.new_page(viewport=SIZE)
        page.goto(f"{studio.url}/?fixedDpr=1")
        page.wait_for_selector(".poise-status", timeout=120_000)
        hush(page)
        page.get_by_role("tab", name="Balance").click()
        page.get_by_role("tab", name="Tune").click()
        ask(studio, SetGoal("right_hand", (0.35, -0.25, 1.1)), Play(True), wait=0.0)
        play_on(studio, 0.5)
        ask(studio, Push("chest", 100.0, "left", 0.1), wait=0.0)
        play_on(studio, KICK - 0.5)
        ask(studio, Play(False), wait=1.0)
        shoot(page, "studio-balance.png")
        page.get_by_role("tab", name="See").click()
        for label in ("Ghost", "Names", "See through"):
            box = page.get_by_text(label, exact=True).locator("xpath=ancestor::*[.//input][1]")
            box.locator("input[type=checkbox]").click(force=True)
        ask(studio, RemoveGoal(), Restart(), wait=1.0)
        ask(studio, Play(True), wait=0.0)
        play_on(studio, LEG)
        ask(studio, Play(False), wait=1.0)
        shoot(page, "studio-through.png", clip=BODY)
        page.close()


def page_picture(browser: Any, folder: Path) -> None:
    """A recording as it opens from the disk."""
    trial = prepare_trial("walk", pushes=[parse_push("chest:900N:left@0.5s")])
    path = folder / "recording.html"
    save_html(path, trial.run(), pushes=trial.world_pushes)
    page = browser.new_page(viewport={"width": 800, "height": 500})
    page.goto(f"{path.as_uri()}?fixedDpr=1")
    page.wait_for_selector("canvas", timeout=120_000)
    hush(page)
    shoot(page, "page.png")
    page.close()


def hush(page: Any) -> None:
    """Close the note that there is no GPU."""
    settle(page)
    page.locator("[class*=Notification-closeButton]").click(timeout=120_000)


def settle(page: Any, frames: int = 12) -> None:
    """Wait until the browser has drawn some frames: things fade in."""
    page.evaluate(
        "n => new Promise(done => {"
        " const f = () => n-- > 0 ? requestAnimationFrame(f) : done(); f(); })",
        frames,
    )


def ask(studio: Studio, *requests: Request, wait: float) -> None:
    """Ask the session for something, and wait [s]."""
    for request in requests:
        assert studio.session.ask(request), request
    time.sleep(wait)


def play_on(studio: Studio, seconds: float) -> None:
    """Wait until the simulation's clock has gone on [s], however slow the machine is."""
    snapshot = studio.session.newest
    end = snapshot.measures.time + seconds
    while snapshot.measures.time < end:
        snapshot = studio.session.wait(snapshot.number, 1.0)


def shoot(page: Any, name: str, **options: Any) -> None:
    """Write what the browser shows, once it has shown it."""
    settle(page)
    page.screenshot(path=HERE / name, timeout=120_000, **options)
    print(HERE / name)


PARTS: dict[str, Callable[[Any, Path], None]] = {
    "studio": studio_pictures,
    "balance": balance_picture,
    "page": page_picture,
}

if __name__ == "__main__":
    main()
