"""Kane's method in symbols, against the core, SymPy's own, the thesis's tables and closed forms."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import kane_systems
import numpy as np
import pytest
import trees
from kane_systems import (
    AGREE,
    SYSTEMS,
    WAYS,
    Array,
    equations,
    functions,
    gap,
    motion,
    needs_cc,
    planar_arm,
    system,
)

from poise import dynamics, kane
from poise.characters import load_character
from poise.errors import PoiseError
from poise.kane.export import text_of
from poise.reference.kane import kane_inverse_dynamics

sympy = kane_systems.sympy
G = sympy.Symbol("g")


# agreement with the recursion of the core


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", SYSTEMS)
def test_inverse_dynamics_agree_with_the_recursion(name: str, way: str) -> None:
    q, v, a, push = motion(name)
    ours = functions(name, way).inverse_dynamics(q, v, a, external=push)
    assert gap(ours, dynamics.inverse_dynamics(system(name), q, v, a, external=push)) < AGREE
    assert gap(ours, kane_inverse_dynamics(system(name), q, v, a, external=push)) < AGREE


@pytest.mark.parametrize(
    ("name", "way"),
    [
        *((name, "numpy") for name in SYSTEMS),
        *(pytest.param(name, "c", marks=needs_cc) for name in SYSTEMS[:2]),
    ],
)
def test_M_and_E_give_the_accelerations_of_the_articulated_body_algorithm(
    name: str, way: str
) -> None:
    q, v, tau, push = motion(name)
    f = functions(name, way)
    M, T = f.mass_matrix(q), f.actuation(q, tau)
    E = f.bias(q, f.speeds(q, v), external=push)
    a = f.accelerations(q, f.speeds(q, v), np.linalg.solve(M, T + E))
    theirs = dynamics.forward_dynamics(system(name), q, v, tau, external=push)
    # a system of equations solved: its condition number, some thousands, times rounding
    assert gap(a, theirs) < 1e-9
    assert gap(f.forward_dynamics(q, v, tau, external=push), theirs) < 1e-9


@pytest.mark.parametrize("name", SYSTEMS)
def test_M_is_the_mass_matrix_of_the_core_in_other_speeds(name: str) -> None:
    q, v, _, _ = motion(name)
    f = functions(name, "numpy")
    Y = np.stack([f.velocities(q, u) for u in np.eye(v.size)], axis=1)
    assert gap(f.mass_matrix(q), Y.T @ dynamics.mass_matrix(system(name), q) @ Y) < AGREE
    assert gap(f.velocities(q, f.speeds(q, v)), v) < AGREE


@pytest.mark.parametrize("name", SYSTEMS)
def test_partial_velocities_are_jacobians(name: str) -> None:
    character, (q, v, _, _) = system(name), motion(name)
    f = functions(name, "numpy")
    J, u = f.partial_velocities(q), f.speeds(q, v)
    where = {body.name: i for i, body in enumerate(f.equations.tree.bodies)}
    for link in character.links:
        if link.name in where:
            theirs = dynamics.jacobian(character, q, link.name, link.com) @ v
            assert gap(J[where[link.name]] @ u, theirs) < AGREE


@pytest.mark.slow
@pytest.mark.parametrize("as_printed", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_any_tree_agrees_with_the_recursion_in_both_forms(seed: int, as_printed: bool) -> None:
    rng = np.random.default_rng(seed)
    character = trees.random_character(rng, 1 + seed % 8)
    q, v = trees.random_state(rng, character, speed=3.0)
    a = rng.normal(size=character.nv)
    e = kane.Equations(character, as_printed=as_printed)
    ours = kane.numpy_functions(e, ["inverse_dynamics"]).inverse_dynamics(q, v, a)
    assert gap(ours, kane_inverse_dynamics(character, q, v, a, as_printed=as_printed)) < AGREE


def test_the_figures_of_agreement_are_small_but_for_the_printed_form() -> None:
    figures = kane.agreement(kane.character_of(kane.seven_bodies(numbers=True)), states=3)
    assert max(figures.symbolic, figures.recursion) < AGREE
    assert figures.printed > 1e-3


# speeds


def test_the_speeds_of_balls_are_their_angular_velocities_in_the_world() -> None:
    name = "seven bodies"
    q, v, _, _ = motion(name)
    u = functions(name, "numpy").speeds(q, v)
    theirs = [dynamics.jacobian(system(name), q, link.name)[3:] @ v for link in system(name).links]
    assert gap(u[:3], v[:3]) < AGREE
    assert gap(u[3:].reshape(-1, 3), np.array(theirs)) < AGREE


def test_the_speeds_of_a_planar_arm_are_its_angles_from_the_vertical_over_time() -> None:
    u = functions("two-link", "numpy").speeds([0.3, -0.5], [2.0, 3.0])
    np.testing.assert_allclose(u, [2.0, 5.0], rtol=1e-15)


# closed forms and SymPy's own method


def test_the_equations_of_the_planar_arm_are_those_of_the_textbook() -> None:
    e = kane.Equations(planar_arm())
    l, m, I = sympy.symbols("l m I", positive=True)
    qA, qB = e.q
    M = sympy.Matrix(
        [
            [I + m * l**2 * sympy.Rational(5, 4), m * l**2 / 2 * sympy.cos(qB)],
            [m * l**2 / 2 * sympy.cos(qB), I + m * l**2 / 4],
        ]
    )
    assert sympy.simplify(e.written_out(e.M) - M) == sympy.zeros(2, 2)
    # the weights, and the pull of each rod on the other as it turns
    uA, uB = e.u
    weight = sympy.Matrix([3 * sympy.sin(qA), sympy.sin(qA + qB)]) * -m * G * l / 2
    turning = sympy.Matrix([uB**2, -(uA**2)]) * m * l**2 / 2 * sympy.sin(qB)
    assert sympy.simplify(e.written_out(e.E) - weight - turning) == sympy.zeros(2, 1)


def test_the_method_of_sympy_derives_the_same() -> None:
    mechanics = pytest.importorskip("sympy.physics.mechanics")
    e = kane.Equations(planar_arm())
    l, m, I = sympy.symbols("l m I", positive=True)
    q, u = mechanics.dynamicsymbols("q1 q2"), mechanics.dynamicsymbols("u1 u2")
    N = mechanics.ReferenceFrame("N")
    O, bodies, loads = mechanics.Point("O"), [], []
    O.set_vel(N, 0)
    angle, joint = 0, O
    for k in range(2):
        angle = angle + q[k]
        frame = N.orientnew(f"F{k}", "Axis", (angle, N.y))
        frame.set_ang_vel(N, u[k] * N.y)
        center = joint.locatenew(f"C{k}", -l / 2 * frame.z)
        center.v2pt_theory(joint, N, frame)
        tip = joint.locatenew(f"J{k}", -l * frame.z)
        tip.v2pt_theory(joint, N, frame)
        inertia = (mechanics.inertia(frame, I, I, 0), center)
        bodies.append(mechanics.RigidBody(f"B{k}", center, frame, m, inertia))
        loads.append((center, -m * G * N.z))
        joint = tip
    rates = [u[0] - q[0].diff(), u[1] - q[0].diff() - q[1].diff()]
    method = mechanics.KanesMethod(N, q_ind=q, u_ind=u, kd_eqs=rates)
    method.kanes_equations(bodies, loads)
    names = dict(zip([*q, *u], [*e.q, *e.u], strict=True))
    M, E = (x.subs(names) for x in (method.mass_matrix, method.forcing))
    assert sympy.simplify(M - e.written_out(e.M)) == sympy.zeros(2, 2)
    assert sympy.simplify(E - e.written_out(e.E)) == sympy.zeros(2, 1)


# tables of the thesis

TABLE_3_1 = """
     R*   A*       C*       D*               E*               G*               H*
R*   N    N        N        N                N                N                N
R    0    N×p_A    N×p_C    N×p_C            N×p_C            N×p_C            N×p_C
A    0    N×r_A    0        0                0                0                0
C    0    0        N×r_C    N×r_C+N×p_D      N×r_C+N×p_D      N×r_C+N×p_G      N×r_C+N×p_G
D    0    0        0        N×r_D            N×r_D+N×p_E      0                0
E    0    0        0        0                N×r_E            0                0
G    0    0        0        0                0                N×r_G            N×r_G+N×p_H
H    0    0        0        0                0                0                N×r_H
"""
TABLE_3_2 = """
     R    A    C    D    E    G    H
R*   0    0    0    0    0    0    0
R    N    0    0    0    0    0    0
A    0    N    0    0    0    0    0
C    0    0    N    0    0    0    0
D    0    0    0    N    0    0    0
E    0    0    0    0    N    0    0
G    0    0    0    0    0    N    0
H    0    0    0    0    0    0    N
"""


@pytest.mark.parametrize(
    ("printed", "make"),
    [(TABLE_3_1, kane.partial_velocities), (TABLE_3_2, kane.partial_angular_velocities)],
    ids=["3.1", "3.2"],
)
def test_the_tables_of_the_thesis_come_out_cell_by_cell(printed: str, make: Any) -> None:
    table = make(kane.seven_bodies())
    bodies, *rows = (line.split() for line in printed.strip().splitlines())
    assert table.bodies == tuple(bodies)
    assert len(table.speeds) == 3 * len(rows)
    for speed, *cells in rows:
        for body, cell in zip(bodies, cells, strict=True):
            for k in "ijk":
                wanted = cell.replace("N", f"N_{k}")
                assert table.cell(f"{speed}_{k}", body).replace(" ", "") == wanted


@pytest.mark.parametrize("name", SYSTEMS)
def test_the_cells_of_a_table_are_the_partial_velocities(name: str) -> None:
    tree, f, (q, _, _, _) = equations(name).tree, functions(name, "numpy"), motion(name)
    J = f.partial_velocities(q)
    vectors = world_vectors(equations(name), q)
    turns, moves = kane.partial_angular_velocities(tree), kane.partial_velocities(tree)
    for r, speed in enumerate(turns.speeds):
        for i, body in enumerate(tree.bodies):
            # what has passed a hinge goes by its name
            vectors[f"ω({speed}, {body.name})"] = J[i, 3:, r]
            assert gap(read_cell(turns.cell(speed, body.name), vectors), J[i, 3:, r]) < AGREE
        for i, body in enumerate(tree.bodies):
            assert gap(read_cell(moves.cell(speed, body.name + "*"), vectors), J[i, :3, r]) < AGREE


def world_vectors(e: kane.Equations, q: Array) -> dict[str, Array]:
    """N_i, and the arms p, r and axes s of all bodies, in world axes."""
    kin, names = e.kinematics, [body.name for body in e.tree.bodies]
    found = dict(zip(("N_i", "N_j", "N_k"), np.eye(3), strict=True))
    for letter, rows in (("p", kin.p), ("r", kin.r), ("s", kin.s)):
        for name, row in zip(names, rows, strict=True):
            found[f"{letter}_{name}"] = sympy.Matrix(row)
    symbols = [key for key, value in found.items() if not isinstance(value, np.ndarray)]
    whole = evaluate(e, q, [x for key in symbols for x in found[key]])
    return found | dict(zip(symbols, np.reshape(whole, (-1, 3)), strict=True))


def evaluate(e: kane.Equations, q: Array, wanted: list[Any]) -> Array:
    """Numbers of expressions in q, name by name."""
    values: dict[str, Any] = dict(zip(map(str, e.q), q, strict=True)) | {"numpy": np}
    for symbol, meaning in e.definitions.of.items():
        if all(x.name in values for x in meaning.free_symbols):
            values[symbol.name] = eval(text_of(meaning, "numpy"), values)
    return np.array([float(eval(text_of(x, "numpy"), values)) for x in wanted])


def read_cell(cell: str, vectors: dict[str, Array]) -> Array:
    """The vector that a cell of a table stands for."""
    through_hinge = re.fullmatch(r"(.*) - \((.*)·(.*)\) (.*)", cell)
    if through_hinge:
        w, _, s, _ = (vectors[x] for x in through_hinge.groups())
        return w - (w @ s) * s
    total = np.zeros(3)
    for term in () if cell == "0" else cell.split(" + "):
        parts = [vectors[x] for x in term.split(" × ")]
        total = total + (np.cross(parts[0], parts[1]) if len(parts) == 2 else parts[0])
    return total


def test_a_table_reads_as_text() -> None:
    table = kane.partial_velocities(kane.tree_of(load_character("two-link")))
    upper, lower = "s_upper × r_upper", "s_upper × p_lower + ω(upper, lower) × r_lower"
    assert str(table).splitlines()[2] == f"upper  {upper}  {upper} + {lower}"


# what the printed form misses


def test_as_printed_the_equations_lack_the_gyroscopic_torque() -> None:
    name = "seven bodies"
    q, v, a, _ = motion(name)
    printed = kane.numpy_functions(
        kane.Equations(system(name), as_printed=True), ["inverse_dynamics"]
    )
    right = dynamics.inverse_dynamics(system(name), q, v, a)
    missing = right - printed.inverse_dynamics(q, v, a)
    assert gap(missing, kane.gyroscopic_torque(system(name), q, v)) < AGREE
    assert np.abs(missing).max() > 0.01 * np.abs(right).max()


def test_a_fast_spin_shows_how_much_is_missing() -> None:
    spin = kane.fast_spin(rates=[1.0, 50.0], moments=(0.002, 0.010, 0.012), duration=0.1)
    # w x I w by hand: Ω² (I3 - I1) / 2
    np.testing.assert_allclose(spin.missing, spin.rate**2 * 0.005, rtol=1e-12)
    assert np.abs(spin.printed).max() < 1e-12
    # the torque keeps the plate on its way, to rounding: its step turns exactly
    assert spin.drift.max() < 1e-9
    # without it the plate falls off by half of w x I w / I2 t², at first
    first = np.degrees(0.5 * 0.005 / 0.010 * 0.1**2)
    assert spin.printed_drift[0] == pytest.approx(first, rel=0.01)
    assert spin.printed_drift[1] > 45.0


def test_the_figure_of_the_spin_has_both_forms(tmp_path: Path) -> None:
    figure = kane.fast_spin(rates=[1.0, 2.0], steps=10).figure()
    assert [len(axes.lines) for axes in figure.axes] == [2, 2]
    figure.savefig(tmp_path / "spin.png")
    assert (tmp_path / "spin.png").stat().st_size > 1000


def test_bad_input_is_named() -> None:
    with pytest.raises(PoiseError, match="expected a Character, got None"):
        kane.agreement(None)  # type: ignore[arg-type]
    with pytest.raises(PoiseError, match="gravity must be 3 numbers"):
        kane.tree_of(system("two-link"), gravity=(0, 0))
    with pytest.raises(PoiseError, match="rates is nan"):
        kane.fast_spin(np.nan)  # type: ignore[arg-type]
