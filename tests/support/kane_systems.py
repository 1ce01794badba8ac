"""Trees whose equations of motion the tests derive, and motions of them."""

from __future__ import annotations

import re
import shutil
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
import trees
from numpy.typing import ArrayLike, NDArray

from poise.characters import load_character
from poise.model.character import Character

sympy = pytest.importorskip("sympy")

from poise import kane  # noqa: E402

Array = NDArray[np.float64]
SYSTEMS = ("two-link", "seven bodies", "ten bodies")

needs_cc = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler cc")
WAYS = ("numpy", pytest.param("c", marks=needs_cc))

# what the thesis's equations are asked for; sums of some hundred terms in two orders give 1e-14
AGREE = 1e-10


@lru_cache
def system(name: str) -> Character:
    """The two-link arm, the seven bodies of the thesis with some numbers, a random tree of ten."""
    rng = np.random.default_rng(7)
    if name == "two-link":
        return load_character(name)
    if name == "ten bodies":
        return trees.random_character(rng, 10, base="free", welded=0.0)
    tree = kane.seven_bodies()
    values: dict[str, float] = {str(x): rng.uniform(0.3, 0.5) for x in tree.parameters}
    # moments along the diagonal, products of inertia small against them: a physical inertia
    values |= {x: 0.02 * values[x] for x in values if re.fullmatch(r"I_.(12|13|23)", x)}
    return kane.character_of(tree.with_values(values | {"g": 9.81}))


@lru_cache
def equations(name: str) -> kane.Equations:
    return kane.Equations(system(name), external=True)


@lru_cache
def functions(name: str, way: str) -> kane.Functions:
    if way == "numpy":
        return kane.numpy_functions(equations(name))
    # ten bodies take a compiler some seconds; one function is enough
    names = ("inverse_dynamics",) if name == "ten bodies" else None
    return kane.c_functions(equations(name), names)


def motion(name: str, lead: tuple[int, ...] = ()) -> tuple[Array, Array, Array, Array]:
    """q, v, a and external wrenches, with leading axes."""
    character, rng = system(name), np.random.default_rng(8)
    n = int(np.prod(lead, dtype=int))
    states = [trees.random_state(rng, character, speed=3.0) for _ in range(n)]
    q, v = (np.array(x).reshape(*lead, -1) for x in zip(*states, strict=True))
    a = 5.0 * rng.normal(size=(*lead, character.nv))
    return q, v, a, 20.0 * rng.normal(size=(*lead, len(character.links), 6))


def gap(ours: ArrayLike, theirs: ArrayLike) -> float:
    """The largest difference against the largest entry, or against one."""
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    assert ours.shape == theirs.shape
    return float(np.abs(ours - theirs).max() / (1 + np.abs(theirs).max()))


def planar_arm() -> kane.Tree:
    """Two rods in a vertical plane, hinges about y, all lengths and masses symbols."""
    l, m, I = sympy.symbols("l m I", positive=True)
    rod: dict[str, Any] = {"axis": (0, 1, 0), "mass": m, "inertia": (I, I, 0), "r": (0, 0, -l / 2)}
    upper = kane.Body("A", None, "hinge", p=(0, 0, 0), **rod)
    return kane.Tree((upper, kane.Body("B", "A", "hinge", p=(0, 0, -l / 2), **rod)))
