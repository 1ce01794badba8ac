"""K10: partial velocities of the seven-body system, and symbols against the recursion."""

from __future__ import annotations

from typing import Any

import numpy as np

import poise
from poise.experiments import figures
from poise.experiments.report import Item, experiment
from poise.math.arrays import Progress


@experiment("K10", "Symbols and recursion", "Tables 3.1, 3.2")
def k10(item: Item, progress: Progress) -> None:
    """Tables of partial velocities; symbolic and recursive inverse dynamics agree. Equations of
    motion by Kane's method in SymPy, generalized speeds the angular velocities of the bodies in the
    world. Differences are relative to the largest force, of random states, from the core's own
    inverse dynamics.
    """
    from poise import kane  # SymPy loads slowly

    systems = {
        "two-link arm": poise.load_character("two-link"),
        "seven bodies of the thesis": kane.character_of(kane.seven_bodies(numbers=True)),
        "random tree of ten bodies": kane.character_of(random_tree(10)),
        "humanoid-51": poise.load_character("humanoid-51"),
    }
    rows = []
    for k, (name, character) in enumerate(systems.items()):
        found = kane.agreement(character)
        rows.append([name, found.symbolic, found.recursion, found.printed])
        worst = max(found.symbolic, found.recursion)
        item.claim(
            f"{name}: symbols and recursion agree",
            "agree",
            f"{worst:.1e}",
            "below 1e-10",
            worst < 1e-10,
        )
        progress((k + 1) / (len(systems) + 1))
    spin = kane.fast_spin()
    item.claim(
        "the printed form, without ω x I ω, is wrong on a fast spin",
        "-",
        f"at {spin.rate[-1]:g} rad/s it lacks {spin.missing[-1]:.3g} N·m and is "
        f"{spin.printed_drift[-1]:.0f} degrees off after {spin.duration:g} s; with the term "
        f"{spin.drift[-1]:.1g}",
        "over 10 degrees / below 1",
        bool(spin.printed_drift[-1] > 10.0 and spin.drift[-1] < 1.0),
    )
    item.figures = {"K10-spin": figures.png(spin.figure())}
    item.table("differences from the core", ["system", "symbols", "recursion", "as printed"], rows)
    seven = kane.seven_bodies()
    for table in (kane.partial_velocities(seven), kane.partial_angular_velocities(seven)):
        cells = [[speed, *row] for speed, row in zip(table.speeds, table.cells, strict=True)]
        item.table(table.title, ["speed", *table.bodies], cells)


def random_tree(count: int, seed: int = 10) -> Any:
    """A tree of random bodies, the first free, the others on balls and hinges.

    Args:
        count: How many bodies.
        seed: Of the random numbers.
    """
    from poise import kane

    rng = np.random.default_rng(seed)
    bodies = [kane.Body("B0", None, "free", mass=1.0, inertia=(0.02, 0.03, 0.04))]
    for k in range(1, count):
        # moments of inertia that a rigid body can have: none above the sum of the others
        axis = rng.normal(size=3)
        bodies.append(
            kane.Body(
                f"B{k}",
                f"B{rng.integers(k)}",
                str(rng.choice(["ball", "hinge"])),
                axis=tuple(axis / np.linalg.norm(axis)),
                p=tuple(rng.uniform(-0.3, 0.3, 3)),
                r=tuple(rng.uniform(-0.3, 0.3, 3)),
                mass=float(rng.uniform(0.5, 2.0)),
                inertia=tuple(rng.uniform(0.02, 0.04, 3)),
            )
        )
    return kane.Tree(tuple(bodies), (0.0, 0.0, -9.81), name="random")
