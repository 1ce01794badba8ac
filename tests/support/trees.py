"""Random characters and states: every joint kind, welded links, several joints on one link.

`random_character` and `random_state` take a NumPy generator; `characters` and `cases` are the
same as hypothesis strategies, which draw a seed and a size, so that failures shrink to small
trees.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

import numpy as np
from hypothesis import strategies as st
from numpy.random import Generator
from numpy.typing import NDArray

from poise.model.character import Character, Joint, Link, Matrix

Array = NDArray[np.float64]
Base = Literal["free", "fixed"]

KINDS = ("ball", "hinge", "slide")

# several joints on one link that can move it in every way they name (and that MuJoCo takes: no
# rotation after a ball)
STACKS = (
    ("hinge", "hinge"),
    ("hinge", "hinge", "hinge"),
    ("slide", "hinge"),
    ("slide", "slide", "slide"),
    ("hinge", "slide", "hinge"),
    ("slide", "ball"),
    ("ball", "slide"),
)


def random_character(
    rng: Generator,
    n_links: int,
    *,
    kinds: Collection[str] = KINDS,
    base: Base | None = None,
    several: float = 0.25,
    welded: float = 0.15,
    armature: bool = True,
    passive: bool = False,
    effort: bool = False,
) -> Character:
    """A random tree of n_links links with at least one degree of freedom.

    Args:
        kinds: Joint kinds to draw from, besides the free root.
        base: "free" roots it in a free joint, "fixed" in any other joint or a weld; None draws.
        several: Share of links with more than one joint.
        welded: Share of links without a joint.
        armature: Give half of the joints armature.
        passive: Give half of the joints damping and stiffness.
        effort: Give most joints an effort limit.
    """
    if base is None:
        base = "free" if rng.random() < 0.5 else "fixed"
    stacks = [stack for stack in STACKS if set(stack) <= set(kinds)]
    links: list[Link] = []
    for i in range(n_links):
        draw = rng.random()
        if i == 0 and base == "free":
            chosen: tuple[str, ...] = ("free",)
        elif draw < several and stacks:
            chosen = stacks[rng.integers(len(stacks))]
        elif draw < several + welded and (i < n_links - 1 or any(link.joints for link in links)):
            chosen = ()
        else:
            chosen = (sorted(kinds)[rng.integers(len(kinds))],)
        options = {"armature": armature, "passive": passive, "effort": effort}
        # mostly chains, some branches
        parent = None
        if i > 0:
            parent = links[-1 if rng.random() < 0.6 else rng.integers(i)].name
        links.append(
            Link(
                name=f"link{i}",
                parent=parent,
                pos=tuple(rng.uniform(-0.3, 0.3, 3)),
                quat=tuple(random_quat(rng)),
                joints=random_joints(rng, f"link{i}", chosen, **options),
                mass=rng.uniform(0.5, 3.0),
                com=tuple(rng.uniform(-0.15, 0.15, 3)),
                inertia=random_inertia(rng),
            )
        )
    return Character(name="random", links=tuple(links))


def random_joints(
    rng: Generator,
    link: str,
    kinds: tuple[str, ...],
    *,
    armature: bool = True,
    passive: bool = False,
    effort: bool = False,
) -> tuple[Joint, ...]:
    """Joints of the given kinds for one link; the axes of several stand at right angles."""
    axes = random_rotation(rng).T
    joints = []
    for k, kind in enumerate(kinds):
        options: dict[str, object] = {}
        if kind in ("hinge", "slide"):
            options["axis"] = tuple(axes[k])
        if kind in ("ball", "hinge"):
            options["pos"] = tuple(rng.uniform(-0.1, 0.1, 3))
        if armature and rng.random() < 0.5:
            options["armature"] = rng.uniform(0.0, 0.05)
        if passive and kind != "free" and rng.random() < 0.5:
            options["damping"] = rng.uniform(0.0, 2.0)
            options["stiffness"] = rng.uniform(0.0, 20.0)
            if kind == "ball":
                options["reference"] = tuple(random_quat(rng))
            else:
                options["reference"] = rng.uniform(-0.5, 0.5)
        if effort and kind != "free" and rng.random() < 0.8:
            per_axis = kind == "ball" and rng.random() < 0.5
            options["effort"] = tuple(rng.uniform(2, 20, 3)) if per_axis else rng.uniform(2, 20)
        joints.append(Joint(name=f"{link}-{kind}{k}", kind=kind, **options))  # type: ignore[arg-type]
    return tuple(joints)


def random_state(rng: Generator, character: Character, speed: float = 1.0) -> tuple[Array, Array]:
    """q and v: rotations anywhere, hinges up to pi, but near 0 where several share a link.

    With several hinges on one link, angles within 1 rad keep away from gimbal lock.
    """
    q: list[Array] = []
    for link in character.links:
        for joint in link.joints:
            if joint.kind == "free":
                q += [rng.uniform(-1, 1, 3), random_quat(rng)]
            elif joint.kind == "ball":
                q.append(random_quat(rng))
            else:
                reach = np.pi if len(link.joints) == 1 and joint.kind == "hinge" else 1.0
                q.append(rng.uniform(-reach, reach, 1))
    return np.concatenate([*q, np.zeros(0)]), speed * rng.normal(size=character.nv)


def random_quat(rng: Generator) -> Array:
    """A rotation, evenly distributed, as a unit quaternion."""
    q: Array = rng.normal(size=4)
    return q / float(np.linalg.norm(q))


def random_rotation(rng: Generator) -> Array:
    """A rotation matrix."""
    Q: Array = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    return Q * float(np.sign(np.linalg.det(Q)))


def random_inertia(rng: Generator) -> Matrix:
    """A physical inertia tensor [kg·m²]: of some cloud of points, turned by some rotation."""
    spread = np.diag(rng.uniform(0.002, 0.03, 3))
    R = random_rotation(rng)
    inertia = R @ (np.trace(spread) * np.eye(3) - spread) @ R.T
    x, y, z = ((inertia + inertia.T) / 2).tolist()
    return tuple(x), tuple(y), tuple(z)


def characters(
    max_links: int = 10,
    *,
    kinds: Collection[str] = KINDS,
    base: Base | None = None,
    passive: bool = False,
    effort: bool = False,
) -> st.SearchStrategy[Character]:
    """Random trees; arguments as for `random_character`."""
    return cases(max_links, kinds=kinds, base=base, passive=passive, effort=effort).map(
        lambda case: case[0]
    )


def cases(
    max_links: int = 10,
    *,
    kinds: Collection[str] = KINDS,
    base: Base | None = None,
    passive: bool = False,
    effort: bool = False,
) -> st.SearchStrategy[tuple[Character, Generator]]:
    """Random trees, each with a generator to draw states and forces from."""

    def build(seed: int, n_links: int) -> tuple[Character, Generator]:
        rng = np.random.default_rng(seed)
        character = random_character(
            rng, n_links, kinds=kinds, base=base, passive=passive, effort=effort
        )
        return character, rng

    return st.builds(build, st.integers(0, 2**32 - 1), st.integers(1, max_links))


def jointed(case: tuple[Character, Generator]) -> bool:
    """Whether it is more than one free body: those keep their momentum by a step of their own."""
    return [joint.kind for joint in case[0].joints] != ["free"]
