"""Actors: one scene of the session on the stage, with its ground and marks."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from poise.math.arrays import Floats
from poise.model.scene import scene_of
from poise.studio.marks import Marks, See, torque_colors
from poise.studio.snapshot import Moment
from poise.view.bodies import Bodies
from poise.view.browser import Stage
from poise.view.drawing import GHOST
from poise.view.ghosts import apart
from poise.view.surroundings import ground_drawing, still_drawing

if TYPE_CHECKING:
    from poise.studio.cast import Cast

GHOST_OPACITY = 0.28
GLASS = 0.4  # opacity of bodies that one sees through
APART = 0.012  # links of the ghost that are nearer to those of the body are not shown [m]
WAITING = (0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)  # where a ball is that nobody threw
AHEAD = 4.0  # how far the character goes before the ground is laid anew [m]


class Actors:
    """One scene on the stage: bodies, ghost, balls, ground and marks.

    Args:
        api: viser's scene.
        prefix: Name of the node it stands under.
        cast: Who is in the scene.
        aside: How far to the right of its place it is shown [m]; then it has no level ground.
    """

    def __init__(self, api: Any, prefix: str, cast: Cast, aside: float = 0.0) -> None:
        self.cast, self.aside = cast, aside
        self._node = api.add_frame(prefix, show_axes=False, position=(0.0, -aside, 0.0))
        self._stage = Stage(api, prefix)
        self._floor = api.add_frame(f"{prefix}/floor", show_axes=False)
        self._ground = Stage(api, f"{prefix}/floor")
        self.bodies = self._stage.bodies("bodies", cast.scene)
        self._ghost = self._stage.bodies("ghost", cast.scene, color=GHOST, opacity=GHOST_OPACITY)
        self._mine = _links_of(cast)
        self._balls: Bodies | None = None
        if cast.projectiles:
            self._balls = self._stage.bodies("balls", scene_of(cast.projectiles))
        self._marks = Marks(self._stage, api, prefix, cast)
        self._title = api.add_label(
            f"{prefix}/title", "", font_screen_scale=1.1, anchor="bottom-center", visible=False
        )
        self._laid: Floats | None = None
        self._painted, self._thrown, self._glass = False, True, False

    def update(
        self, world: Moment, at: Floats, trail: Floats, watch: int, see: See, title: str = ""
    ) -> None:
        """Show a moment of the scene.

        Args:
            world: The scene and what was measured.
            at: The place of the world that is the page's origin [m], shape (3,).
            trail: As of `Marks.update`.
            watch: As of `Marks.update`.
            see: What is to be seen.
            title: What to write above it.
        """
        self._lay(middle_of(world))
        self._floor.position = -at
        # a slow browser shows all of this late, but together: who walks stays in the picture
        moment = moved(world, at)
        self._paint(moment, see.torque)
        self._glaze(see.inside)
        self.bodies.update(moment.q)
        self._haunt(moment.q, moment.reference if see.ghost else None)
        self._throw(moment.thrown)
        self._marks.update(moment, ground_below(world), trail - at, watch, see)
        self._title.visible = bool(title)
        if title:
            self._title.text = title
            self._title.position = middle_of(moment) + (0.0, 0.0, 0.75 * self._marks.height)

    @property
    def height(self) -> float:
        """Of the first character [m]."""
        return self._marks.height

    def remove(self) -> None:
        """Take it off the stage."""
        self._marks.remove()
        self._stage.remove()
        self._ground.remove()
        self._floor.remove()
        self._title.remove()
        self._node.remove()

    def _haunt(self, q: Floats, reference: Floats | None) -> None:
        """Show the reference where it is not what is there; objects have none."""
        if reference is not None:
            aside = apart(self.cast.scene, q, reference) > APART
            self._ghost.update(reference, shown=self._mine & aside)
        if self._ghost.visible != (reference is not None):
            self._ghost.visible = reference is not None

    def _throw(self, thrown: Floats) -> None:
        """Show the balls that are out."""
        out = thrown[:, 0] > 0.0
        if self._balls is not None and (out.any() or self._thrown):
            q = np.where(out[:, None], thrown[:, 1:8], WAITING)
            self._balls.update(q.ravel(), shown=out)
        self._thrown = bool(out.any())

    def _paint(self, moment: Moment, torque: bool) -> None:
        if torque:
            self.bodies.color_links(torque_colors(moment.torque))
        elif self._painted:
            self.bodies.color_links(None)
        self._painted = torque

    def _glaze(self, glass: bool) -> None:
        """Let one see through the bodies, or not: what is inside them or below their feet."""
        if glass != self._glass:
            self._glass = glass
            for handle in self.bodies.handles:
                handle.opacity = GLASS if glass else None

    def _lay(self, middle: Floats) -> None:
        """Lay the ground where the character is, when it has gone some way."""
        if self._laid is not None and np.abs(middle - self._laid)[:2].max() < AHEAD:
            return
        if self._laid is None:
            self._ground.update("still", still_drawing(self.cast.settings))
        if not self.aside:
            self._ground.update("ground", ground_drawing(self.cast.settings, middle, middle))
        self._laid = middle


def middle_of(moment: Moment) -> Floats:
    """The middle of all mass centres [m], shape (3,)."""
    known = moment.com[np.isfinite(moment.com).all(axis=1)]
    middle: Floats = known.mean(axis=0) if len(known) else np.zeros(3)
    return middle


def moved(moment: Moment, at: Floats) -> Moment:
    """A moment as seen from a place of the world: all that is shown is moved by -at.

    Args:
        moment: The moment; if `at` is not 0, all its roots are free.
        at: [m], shape (3,), level.
    """
    forest = moment.cast.scene.forest
    roots = forest.q_adr[forest.kind == 0]

    def poses(q: Floats) -> Floats:
        near: Floats = q.copy()
        for k in range(2):
            near[roots + k] -= at[k]
        return near

    contacts, thrown = moment.contacts, moment.thrown.copy()
    thrown[:, 1:3] -= at[:2]
    return replace(
        moment,
        q=poses(moment.q),
        reference=None if moment.reference is None else poses(moment.reference),
        thrown=thrown,
        contacts=replace(contacts, point=contacts.point - at),
        com=moment.com - at,
        cop=moment.cop - at,
        cmp=moment.cmp - at,
        planned=moment.planned - at,
        support=tuple(corners - at for corners in moment.support),
    )


def goes(cast: Cast) -> bool:
    """Whether all of a scene may go anywhere: nobody hangs on the world."""
    return all(one.joints and one.joints[0].kind == "free" for one in cast.scene.characters)


def ground_below(moment: Moment) -> Floats:
    """Height of the ground under each mass centre [m], shape (m,)."""
    height: Floats = np.asarray(moment.cast.ground(moment.com[:, 0], moment.com[:, 1]))
    return height


def _links_of(cast: Cast) -> Any:
    """Which links of the scene are those of characters, shape (nl,)."""
    mine = np.zeros(cast.scene.nl, dtype=bool)
    for name in cast.names:
        mine[cast.scene.forest.parts[name].links] = True
    return mine
