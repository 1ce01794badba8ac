"""Kane's equations at run time, trees of one's own, and what is refused."""

from __future__ import annotations

import ctypes
import math
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import kane_systems
import numpy as np
import pytest
from kane_systems import (
    AGREE,
    WAYS,
    equations,
    functions,
    gap,
    motion,
    needs_cc,
    planar_arm,
    system,
)

from poise import dynamics, kane
from poise.errors import PoiseError
from poise.kane.export import text_of

sympy = kane_systems.sympy


# functions


@pytest.mark.parametrize("way", WAYS)
def test_a_batch_is_its_states_one_by_one(way: str) -> None:
    name = "seven bodies"
    q, v, a, push = motion(name, (2, 3))
    f = functions(name, way)
    batch = f.inverse_dynamics(q, v, a, external=push)
    for k in np.ndindex(2, 3):
        one = f.inverse_dynamics(q[k], v[k], a[k], external=push[k])
        # NumPy's vectorised sine may differ in the last bit
        assert gap(batch[k], one) < 1e-14
    assert f.mass_matrix(q).shape == (2, 3, v.shape[-1], v.shape[-1])
    assert f.inverse_dynamics(q, v[0, 0], a[0, 0]).shape == v.shape


@pytest.mark.parametrize("way", WAYS)
def test_open_symbols_are_parameters_at_run_time(way: str) -> None:
    make = kane.numpy_functions if way == "numpy" else kane.c_functions
    f = make(kane.Equations(planar_arm()))
    assert [str(x) for x in f.equations.parameters] == ["I", "g", "l", "m"]
    hang: dict[str, Any] = {"I": 0.01, "g": 9.81, "l": 0.3, "m": np.array([1.0, 2.0])}
    tau = f.inverse_dynamics([np.pi / 2, 0.0], [0, 0], [0, 0], parameters=hang)
    # a level arm, its weights 0.15 and 0.45 m from the shoulder
    np.testing.assert_allclose(tau[:, 0], [1.0 * 9.81 * 0.6, 2.0 * 9.81 * 0.6], rtol=1e-12)


@needs_cc
def test_the_c_file_compiles_without_a_warning_and_solves_forward(tmp_path: Path) -> None:
    name = "seven bodies"
    source = tmp_path / "seven.c"
    source.write_text(kane.c_source(equations(name), prefix="seven"))
    flags = ["-std=c99", "-O0", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fPIC", "-shared"]
    library = tmp_path / "seven.so"
    subprocess.run(["cc", *flags, str(source), "-o", str(library), "-lm"], check=True)
    q, v, tau, push = motion(name, (4,))
    a = np.empty_like(v)
    pointers = [ctypes.c_void_p(x.ctypes.data) for x in (q, v, tau, push, a)]
    assert ctypes.CDLL(str(library)).seven_forward_dynamics(ctypes.c_size_t(4), *pointers) == 0
    assert gap(a, dynamics.forward_dynamics(system(name), q, v, tau, external=push)) < 1e-9


def test_the_numpy_module_stands_alone(tmp_path: Path) -> None:
    (tmp_path / "arm.py").write_text(kane.numpy_source(kane.Equations(system("two-link"))))
    code = "import arm, sys; print(arm.mass_matrix([0.1, 0.2]).tolist(), 'poise' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    ours = functions("two-link", "numpy").mass_matrix([0.1, 0.2]).tolist()
    assert done.stdout.strip() == f"{ours} False"


def test_other_functions_of_open_symbols_are_left_to_sympy() -> None:
    x, y = sympy.symbols("x y")
    expr = sympy.sqrt(x) * sympy.exp(-y) / (x + 2) ** 5 - sympy.Rational(1, 3) * (x - y) ** 3
    for language, names in (("numpy", {"numpy": np}), ("c", vars(math))):
        text = text_of(expr, language)  # type: ignore[arg-type]
        value = eval(text, {**names, "x": 0.7, "y": 0.2})
        assert value == pytest.approx(float(expr.subs({x: 0.7, y: 0.2})), rel=1e-14)


# trees of one's own


def test_a_tree_and_its_character_have_the_same_equations() -> None:
    character = system("seven bodies")
    again = kane.character_of(kane.tree_of(character))
    q, v, a, _ = motion("seven bodies")
    theirs = dynamics.inverse_dynamics(character, q, v, a)
    assert gap(dynamics.inverse_dynamics(again, q, v, a), theirs) < AGREE


def test_hinges_and_slides_of_a_described_tree_are_those_of_its_character() -> None:
    rest = [[0, -1, 0], [1, 0, 0], [0, 0, 1]]
    cart = kane.Body("cart", None, "slide", (1, 0, 0), (0, 0, 0.1), (0, 0, 0), 2.0, (1, 1, 1))
    pole = kane.Body(
        "pole", "cart", "hinge", (0, 1, 0), (0, 0, 0.2), (0.1, 0, 0.4), 0.5, (1, 1, 1), rest, 0.3
    )
    tree = kane.Tree((cart, pole), gravity=(0, 0, -9.81), name="cart-pole")
    q, v, a = np.array([[0.3, 0.7], [1.0, -2.0], [0.5, 4.0]])
    ours = kane.numpy_functions(kane.Equations(tree)).inverse_dynamics(q, v, a)
    assert gap(ours, dynamics.inverse_dynamics(kane.character_of(tree), q, v, a)) < AGREE


def positive(name: str) -> Any:
    """A symbol that is not the one of the same name without assumptions."""
    return sympy.Symbol(name, positive=True)


def named(name: str) -> kane.Tree:
    """A tree whose mass has that name."""
    return kane.Tree((kane.Body("A", mass=sympy.Symbol(name)),))


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: kane.Body("A", joint="bal"), "did you mean 'ball'"),
        (lambda: kane.Body("A", "R", "free"), "free bodies have none"),
        (lambda: kane.Body("A", r=(0, 1)), "r must be 3 numbers"),
        (lambda: kane.Body("A", axis=(0, 0, 0)), "axis must be 3 numbers that are not all zero"),
        (lambda: kane.Body("left arm"), "p is open and would be a symbol"),
        (lambda: kane.Tree((kane.Body("A", mass=positive("g")),)).parameters, "are named 'g'"),
        (lambda: kane.Tree((kane.Body("A", "B"),)), "unknown body 'B'"),
        (lambda: kane.Tree(()), "at least one body"),
        (lambda: kane.Tree((kane.Body("A"), kane.Body("A"))), "two bodies are named 'A'"),
        (lambda: kane.seven_bodies().with_values({"m_Z": 1}), "unknown parameter 'm_Z'"),
        (lambda: kane.character_of(kane.seven_bodies()), "needs numbers for I_A11"),
        (
            lambda: kane.Equations(3),  # type: ignore[arg-type]
            "expected a Character or a kane.Tree, got 3",
        ),
        (lambda: kane.c_source(equations("two-link"), ["biass"]), "did you mean 'bias'"),
        (lambda: kane.c_source(equations("two-link"), prefix="2"), "must be a C name"),
        (lambda: kane.c_source(kane.Equations(named("lambda"))), "'lambda' cannot be a name"),
        (lambda: kane.c_source(kane.Equations(named("m/2"))), "'m/2' cannot be a name"),
        (lambda: kane.compile_c("int", "x.so"), "could not compile the equations"),
        (lambda: kane.compile_c("", "x.so", compiler="no-such-cc"), "no C compiler 'no-such-cc'"),
    ],
)
def test_what_cannot_be_is_refused_in_words(make: Any, says: str) -> None:
    with pytest.raises(PoiseError, match=re.escape(says)):
        make()


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"q": [0, 0, 0]}, "q has shape (3,), expected (..., 2)"),
        ({"q": np.zeros((2, 2)), "v": np.zeros((3, 2))}, "do not fit together"),
        ({"parameters": {"m": 1}}, "takes no parameters"),
        ({"external": np.zeros((3, 6))}, "external has shape (3, 6), expected (..., 2, 6)"),
    ],
)
def test_functions_say_which_array_is_wrong(given: dict[str, Any], says: str) -> None:
    arguments: dict[str, Any] = {"q": np.zeros(2), "v": np.zeros(2), "a": np.zeros(2)} | given
    with pytest.raises(PoiseError, match=re.escape(says)):
        functions("two-link", "numpy").inverse_dynamics(**arguments)


def test_importing_poise_does_not_load_sympy() -> None:
    code = "import sys, poise; print('sympy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
