"""The core against its NumPy twins and against itself, on random trees with every joint kind.

Accelerations are judged by their backward error, |M a + h - tau| / (|M| |a| + |h| + |tau|): how
far the equations of motion are from holding, whatever the condition of M. Every claim is made for
one state and for a batch, whose size leaves lanes of every instruction set over.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np
import pytest
import trees
from free_world import World
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike, NDArray

from poise import Command, Drive, Gains, State, Target, dynamics, load_character, reference
from poise.math import rotation
from poise.math.rotation import quat_matrix
from poise.model.character import Character, Joint, Link
from poise.model.scene import scene_of
from poise.reference.drive import Form

Array = NDArray[np.float64]
Case = tuple[Character, np.random.Generator]

# what the project promises on every tree
BACKWARD = {"float64": 1e-12, "float32": 1e-5}
# and where M is well conditioned
FORWARD = {"float64": 1e-9, "float32": 1e-4}
WELL_CONDITIONED = 1e4
# some hundred terms summed in another order: less than 1000 units in the last place
ROUNDING = {"float64": 1e-13, "float32": 2e-5}

BATCH = 9  # a full tile and one lane over with AVX2's 8 floats; 4 and 2 doubles leave one over too

FORMS: tuple[Form, ...] = ("implicit", "spd", "explicit", "pd")

both_dtypes = pytest.mark.parametrize("dtype", ["float64", "float32"])
every_form = pytest.mark.parametrize("form", FORMS)


def fuzz(
    strategy: st.SearchStrategy[Case], examples: int = 40
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a test of a claim about drawn trees, and a slow one about ten times as many."""

    def decorate(check: Callable[..., None]) -> Callable[..., None]:
        def test(examples: int, **given_by_pytest: Any) -> None:
            def claim(case: Case) -> None:
                check(case, **given_by_pytest)

            claim.__name__ = check.__name__  # the examples depend on the name
            settings(max_examples=examples)(given(case=strategy)(claim))()

        counts = [examples, pytest.param(10 * examples, marks=pytest.mark.slow)]
        first, *others = inspect.signature(check).parameters.values()
        own = first.replace(name="examples")
        test.__signature__ = inspect.Signature([own, *others])  # type: ignore[attr-defined]
        marked: Callable[..., None] = pytest.mark.parametrize("examples", counts)(test)
        return marked

    return decorate


def assert_close(ours: ArrayLike, theirs: ArrayLike, tolerance: float) -> None:
    """The largest difference is small against the largest entry, or against one."""
    ours, theirs = np.asarray(ours, dtype=float), np.asarray(theirs, dtype=float)
    assert ours.shape == theirs.shape
    scale = 1 + np.abs(theirs).max(initial=0)
    assert np.abs(ours - theirs).max(initial=0) <= tolerance * scale


def random_states(rng: np.random.Generator, character: Character, n: int) -> tuple[Array, Array]:
    """n states, shapes (n, nq) and (n, nv)."""
    q, v = zip(*(trees.random_state(rng, character) for _ in range(n)), strict=True)
    return np.array(q), np.array(v)


class Batch:
    """A tree in several states, with forces, accelerations, targets and gains."""

    def __init__(self, case: Case) -> None:
        self.character, rng = case
        self.q, self.v = random_states(rng, self.character, BATCH)
        self.target = random_states(rng, self.character, BATCH)
        nv, nl = self.character.nv, len(self.character.links)
        self.a, self.tau = rng.normal(size=(2, BATCH, nv))
        self.kp, self.kd = rng.uniform(0, 300, (BATCH, nv)), rng.uniform(0, 30, (BATCH, nv))
        self.external = rng.normal(size=(BATCH, nl, 6))
        self.link = self.character.links[rng.integers(nl)].name
        self.point = rng.normal(size=3)

    def rows(self, ask: Callable[..., Any], *arrays: Array) -> list[tuple[Any, int]]:
        """Answers for all states at once and for single ones, each with the number of its state."""
        together = ask(*arrays)
        alone = [(ask(*(x[i] for x in arrays)), i) for i in (0, BATCH - 1)]
        if isinstance(together, tuple):
            return [(tuple(x[i] for x in together), i) for i in range(BATCH)] + alone
        return [(together[i], i) for i in range(BATCH)] + alone


def scaled_masses(character: Character, factors: Array) -> Character:
    """The character with mass and inertia of each link times a factor."""

    def scaled(link: Link, factor: float) -> Link:
        x, y, z = (tuple(row) for row in (factor * np.array(link.inertia)).tolist())
        return replace(link, mass=factor * link.mass, inertia=(x, y, z))

    links = zip(character.links, factors, strict=True)
    return Character("scaled", tuple(scaled(link, float(factor)) for link, factor in links))


def backward_error(M: Array, a: Array, h: Array, tau: Array) -> float:
    """How far M a + h = tau is from holding, against the size of its terms."""
    size = np.linalg.norm(M, 2) * np.linalg.norm(a) + np.linalg.norm(h) + np.linalg.norm(tau)
    return float(np.linalg.norm(M @ a + h - tau) / size)


# one algorithm against another


@both_dtypes
@fuzz(trees.cases(12))
def test_forward_dynamics_solves_the_equations_of_motion(case: Case, dtype: str) -> None:
    x = Batch(case)
    M = dynamics.mass_matrix(x.character, x.q)
    h = dynamics.bias_force(x.character, x.q, x.v, external=x.external)

    def ask(q: Array, v: Array, tau: Array, external: Array) -> Array:
        return dynamics.forward_dynamics(x.character, q, v, tau, external=external, dtype=dtype)

    for a, i in x.rows(ask, x.q, x.v, x.tau, x.external):
        assert backward_error(M[i], a, h[i], x.tau[i]) < BACKWARD[dtype]


@both_dtypes
@fuzz(trees.cases(12))
def test_forward_dynamics_is_accurate_where_the_mass_matrix_is_well_conditioned(
    case: Case, dtype: str
) -> None:
    x = Batch(case)
    M = dynamics.mass_matrix(x.character, x.q)
    h = dynamics.bias_force(x.character, x.q, x.v)

    def ask(q: Array, v: Array, tau: Array) -> Array:
        return dynamics.forward_dynamics(x.character, q, v, tau, dtype=dtype)

    for a, i in x.rows(ask, x.q, x.v, x.tau):
        if np.linalg.cond(M[i]) < WELL_CONDITIONED:
            exact = np.linalg.solve(M[i], x.tau[i] - h[i])
            assert np.linalg.norm(a - exact) < FORWARD[dtype] * np.linalg.norm(exact)


@both_dtypes
@fuzz(trees.cases(10))
def test_trees_of_uneven_masses_are_solved(case: Case, dtype: str) -> None:
    # masses from a tenth to ten times what they were: a hand beside a torso, a tool in the hand
    factors = 10 ** case[1].uniform(-1, 1, len(case[0].links))
    x = Batch((scaled_masses(case[0], factors), case[1]))
    M = dynamics.mass_matrix(x.character, x.q)
    h = dynamics.bias_force(x.character, x.q, x.v)

    def ask(q: Array, v: Array, tau: Array) -> Array:
        return dynamics.forward_dynamics(x.character, q, v, tau, dtype=dtype)

    for a, i in x.rows(ask, x.q, x.v, x.tau):
        assert backward_error(M[i], a, h[i], x.tau[i]) < BACKWARD[dtype]


@both_dtypes
@pytest.mark.parametrize("kind", ["ball", "hinge"])
@pytest.mark.parametrize("mass", [1.0, 0.1, 0.01])
def test_a_light_root_that_carries_a_heavy_link_is_solved(
    mass: float, kind: Literal["ball", "hinge"], dtype: str
) -> None:
    root = Link("root", joints=(Joint("root", "free"),), mass=mass, inertia=(0.001 * mass,) * 3)
    heavy = Link(
        "heavy", "root", pos=(0.2, 0, 0), joints=(Joint("joint", kind),), mass=10.0,
        com=(0.2, 0, 0), inertia=(0.1, 0.1, 0.1),
    )  # fmt: skip
    character, rng = Character("light", (root, heavy)), np.random.default_rng(0)
    (q, v), tau = trees.random_state(rng, character), rng.normal(size=character.nv)
    M, h = dynamics.mass_matrix(character, q), dynamics.bias_force(character, q, v)
    for rows in (q, np.tile(q, (3, 1))):
        a = dynamics.forward_dynamics(character, rows, v, tau, dtype=dtype).reshape(-1, len(tau))
        assert backward_error(M, a[-1], h, tau) < BACKWARD[dtype]


@both_dtypes
@fuzz(trees.cases(12))
def test_inverse_dynamics_undoes_forward_dynamics(case: Case, dtype: str) -> None:
    x = Batch(case)
    a = dynamics.forward_dynamics(x.character, x.q, x.v, x.tau, dtype=dtype)
    M = dynamics.mass_matrix(x.character, x.q)
    h = dynamics.bias_force(x.character, x.q, x.v)

    def ask(q: Array, v: Array, a: Array) -> Array:
        return dynamics.inverse_dynamics(x.character, q, v, a, dtype=dtype)

    for tau, i in x.rows(ask, x.q, x.v, a):
        size = np.linalg.norm(M[i], 2) * np.linalg.norm(a[i]) + np.linalg.norm(h[i])
        assert np.linalg.norm(tau - x.tau[i]) < BACKWARD[dtype] * (size + np.linalg.norm(tau))


@both_dtypes
@fuzz(trees.cases(12))
def test_columns_of_the_mass_matrix_are_unit_responses(case: Case, dtype: str) -> None:
    x = Batch(case)
    rest, unit = np.zeros(x.character.nv), np.eye(x.character.nv)

    def ask(q: Array) -> Array:
        return dynamics.mass_matrix(x.character, q, dtype=dtype)

    for M, i in x.rows(ask, x.q):
        columns = dynamics.inverse_dynamics(x.character, x.q[i], rest, unit, gravity=(0, 0, 0))
        assert_close(M, columns.T, ROUNDING[dtype])


@both_dtypes
@fuzz(trees.cases(12))
def test_mass_matrix_is_symmetric_and_positive(case: Case, dtype: str) -> None:
    x = Batch(case)
    M = dynamics.mass_matrix(x.character, x.q, dtype=dtype)
    assert np.array_equal(M, M.swapaxes(-1, -2))
    # on these trees the smallest eigenvalue is far above the rounding of the largest
    assert np.linalg.eigvalsh(M).min() > 0


@both_dtypes
@every_form
@fuzz(trees.cases(12), examples=25)
def test_maba_solves_the_equations_of_stable_pd(case: Case, form: Form, dtype: str) -> None:
    check_stable_pd(case, form, "maba", dtype)


@both_dtypes
@pytest.mark.parametrize("method", ["df", "sf", "pcg"])
@fuzz(trees.cases(12), examples=25)
def test_factorizations_solve_the_equations_of_stable_pd(
    case: Case, method: str, dtype: str
) -> None:
    check_stable_pd(case, "implicit", method, dtype)


def check_stable_pd(case: Case, form: Form, method: str, dtype: str) -> None:
    """(M + K) a + h = Q holds with a dense M, and the torque is Q - K a."""
    x = Batch(case)
    M = dynamics.mass_matrix(x.character, x.q)
    h = dynamics.bias_force(x.character, x.q, x.v, external=x.external)

    def ask(*arrays: Array) -> tuple[Array, Array]:
        q, v, q_bar, v_bar, kp, kd, external = arrays
        return dynamics.stable_pd(
            x.character, q, v, (q_bar, v_bar), kp, kd, 0.02, method, form, external=external,
            dtype=dtype,
        )  # fmt: skip

    for (a, tau), i in x.rows(ask, x.q, x.v, *x.target, x.kp, x.kd, x.external):
        bar = x.target[0][i], x.target[1][i]
        Q, K = reference.drive(x.character, x.q[i], x.v[i], *bar, x.kp[i], x.kd[i], 0.02, form)
        assert backward_error(M[i] + np.diag(K), a, h[i], Q) < BACKWARD[dtype]
        size = np.abs(Q).max() + np.abs(K * a).max()
        assert np.abs(tau - (Q - K * a)).max() <= ROUNDING[dtype] * size


@pytest.mark.parametrize("form", dynamics.FORMS)
@fuzz(trees.cases(8))
def test_what_a_drive_asks_of_its_joints_is_that_of_the_reference(case: Case, form: Form) -> None:
    x = Batch(case)
    Q, K = dynamics.drive(x.character, x.q, x.v, x.target, x.kp, x.kd, 0.02, form)
    for i in range(len(x.q)):
        bar = x.target[0][i], x.target[1][i]
        twin = reference.drive(x.character, x.q[i], x.v[i], *bar, x.kp[i], x.kd[i], 0.02, form)
        assert np.abs(Q[i] - twin[0]).max() <= ROUNDING["float64"] * np.abs(twin[0]).max()
        np.testing.assert_allclose(K[i], twin[1], rtol=1e-12)


@both_dtypes
@fuzz(trees.cases(12))
def test_torque_of_stable_pd_causes_its_acceleration(case: Case, dtype: str) -> None:
    x = Batch(case)
    a, tau = dynamics.stable_pd(
        x.character, x.q, x.v, x.target, x.kp, x.kd, 0.02, external=x.external, dtype=dtype
    )
    M = dynamics.mass_matrix(x.character, x.q)
    h = dynamics.bias_force(x.character, x.q, x.v, external=x.external)
    for i in range(BATCH):
        # Q and K a may each be far larger than tau
        K = 0.02 * (x.kd[i] + 0.02 * x.kp[i])
        size = np.linalg.norm((np.linalg.norm(M[i], 2) + K) * np.linalg.norm(a[i]))
        size += np.linalg.norm(h[i]) + np.linalg.norm(tau[i])
        assert np.linalg.norm(M[i] @ a[i] + h[i] - tau[i]) < BACKWARD[dtype] * size


@both_dtypes
@fuzz(trees.cases(12))
def test_external_forces_act_through_the_jacobian(case: Case, dtype: str) -> None:
    x = Batch(case)
    with_push = dynamics.bias_force(x.character, x.q, x.v, external=x.external, dtype=dtype)
    h = dynamics.bias_force(x.character, x.q, x.v, dtype=dtype)
    for k, link in enumerate(x.character.links):
        J = dynamics.jacobian(x.character, x.q, link.name)
        h -= (J.swapaxes(1, 2) @ x.external[:, k, :, None])[..., 0]
    assert_close(with_push, h, ROUNDING[dtype])


@both_dtypes
@fuzz(trees.cases(12))
def test_kinetic_energy_is_that_of_the_mass_matrix(case: Case, dtype: str) -> None:
    x = Batch(case)
    kinetic, _ = dynamics.energy(x.character, x.q, x.v, dtype=dtype)
    M = dynamics.mass_matrix(x.character, x.q)
    np.testing.assert_allclose(
        kinetic, np.einsum("ni,nij,nj->n", x.v, M, x.v) / 2, rtol=ROUNDING[dtype]
    )


# the twins


class Core:
    """poise.dynamics in one precision, with the signatures of the twins."""

    def __init__(self, dtype: str) -> None:
        self.dtype = dtype

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return partial(getattr(dynamics, name), dtype=self.dtype)


QUANTITIES: dict[str, Callable[[Any, Batch, Any], Any]] = {
    "positions": lambda f, x, i: f.forward_kinematics(x.character, x.q[i])[0],
    "inverse_dynamics": lambda f, x, i: f.inverse_dynamics(
        x.character, x.q[i], x.v[i], x.a[i], gravity=(1, -2, 3), external=x.external[i]
    ),
    "bias_force": lambda f, x, i: f.bias_force(x.character, x.q[i], x.v[i]),
    "mass_matrix": lambda f, x, i: f.mass_matrix(x.character, x.q[i]),
    "jacobian": lambda f, x, i: f.jacobian(x.character, x.q[i], x.link, x.point),
    "jacobian_bias": lambda f, x, i: f.jacobian_bias(x.character, x.q[i], x.v[i], x.link, x.point),
    "center_of_mass": lambda f, x, i: f.center_of_mass(x.character, x.q[i]),
    "momentum_matrix": lambda f, x, i: f.centroidal_momentum(x.character, x.q[i], x.v[i])[0],
    "momentum_bias": lambda f, x, i: f.centroidal_momentum(x.character, x.q[i], x.v[i])[1],
    "kinetic_energy": lambda f, x, i: f.energy(x.character, x.q[i], x.v[i])[0],
    "potential_energy": lambda f, x, i: f.energy(x.character, x.q[i], x.v[i])[1],
}


@both_dtypes
@pytest.mark.parametrize("quantity", QUANTITIES)
@fuzz(trees.cases(12), examples=25)
def test_core_agrees_with_its_twin(case: Case, quantity: str, dtype: str) -> None:
    x, ask = Batch(case), QUANTITIES[quantity]
    together = ask(Core(dtype), x, slice(None))
    for i in (0, BATCH - 1):
        twin = ask(reference, x, i)
        assert_close(together[i], twin, ROUNDING[dtype])
        assert_close(ask(Core(dtype), x, i), twin, ROUNDING[dtype])


@both_dtypes
@fuzz(trees.cases(12))
def test_links_are_turned_as_the_twin_says(case: Case, dtype: str) -> None:
    x = Batch(case)
    together = dynamics.forward_kinematics(x.character, x.q, dtype=dtype)[1]
    for i in (0, BATCH - 1):
        twin = quat_matrix(reference.forward_kinematics(x.character, x.q[i])[1])
        alone = dynamics.forward_kinematics(x.character, x.q[i], dtype=dtype)[1]
        # a quaternion and its negative are the same rotation
        assert_close(quat_matrix(together[i]), twin, ROUNDING[dtype])
        assert_close(quat_matrix(alone), twin, ROUNDING[dtype])


@fuzz(trees.cases(12))
def test_accelerations_agree_with_the_twin(case: Case) -> None:
    x = Batch(case)
    a = dynamics.forward_dynamics(x.character, x.q, x.v, x.tau)
    for i in (0, BATCH - 1):
        twin = reference.forward_dynamics(x.character, x.q[i], x.v[i], x.tau[i])
        # the two residuals, each a rounding of the terms, through the inverse of M
        M = reference.mass_matrix(x.character, x.q[i])
        h = reference.bias_force(x.character, x.q[i], x.v[i])
        terms = np.linalg.norm(M, 2) * np.linalg.norm(twin) + np.linalg.norm(h)
        gap = 2 * 1e-14 * (terms + np.linalg.norm(x.tau[i])) / np.linalg.eigvalsh(M)[0]
        assert np.linalg.norm(a[i] - twin) < gap


@every_form
@fuzz(trees.cases(12))
def test_stable_pd_agrees_with_the_twin(case: Case, form: Form) -> None:
    x = Batch(case)
    a, tau = dynamics.stable_pd(
        x.character, x.q, x.v, x.target, x.kp, x.kd, 0.02, form=form, external=x.external
    )
    for i in (0, BATCH - 1):
        target, external = (x.target[0][i], x.target[1][i]), x.external[i]
        twin = reference.stable_pd(
            x.character, x.q[i], x.v[i], target, x.kp[i], x.kd[i], 0.02, form=form,
            external=external,
        )  # fmt: skip
        # rounding, times the condition of M; gains of 300 on steps of 0.02 do not add to it
        tolerance = 1e-13 * np.linalg.cond(reference.mass_matrix(x.character, x.q[i]))
        assert_close(a[i], twin[0], tolerance)
        assert_close(tau[i], twin[1], tolerance)


# worlds


def twin_step(
    character: Character, q: Array, v: Array, target: tuple[Array, Array], gains: Gains, dt: float
) -> tuple[Array, Array, Array]:
    """q, v and the drive's torque after a step with passive springs and dampers, by the twins."""
    Q, K = reference.drive(character, q, v, *target, gains.kp, gains.kd, dt)
    forest, rest = scene_of(character).forest, np.zeros(character.nv)
    springs = forest.spring_q, rest, forest.stiffness, forest.damping
    Q_own, K_own = reference.drive(character, q, v, *springs, dt)
    a = reference.solve_drive(character, q, v, Q + Q_own, K + K_own)
    return *reference.step(character, q, v, a, dt), Q - K * a


@both_dtypes
@fuzz(trees.cases(12, passive=True).filter(trees.jointed))
def test_a_step_of_the_world_is_that_of_the_twins(case: Case, dtype: str) -> None:
    x, dt = Batch(case), 0.01
    gains = Gains(x.character, x.kp[0], x.kd[0])
    for n in (1, BATCH):
        world = World(x.character, n=n, dt=dt, dtype=dtype)
        world.reset(State(x.q[:n], x.v[:n]))
        target = Target(x.target[0][:n], x.target[1][:n])
        world.step(Command(drive=Drive(gains, target)))
        ours = [y.reshape(n, -1)[-1] for y in (world.state.q, world.state.v, world.torque)]
        i = n - 1
        twin = twin_step(x.character, x.q[i], x.v[i], (x.target[0][i], x.target[1][i]), gains, dt)
        for mine, theirs in zip(ours, twin, strict=True):
            assert_close(mine, theirs, FORWARD[dtype])


@fuzz(trees.cases(12))
def test_joints_accelerate_as_commanded(case: Case) -> None:
    x, dt = Batch(case), 0.01
    world = World(x.character, n=BATCH, dt=dt)
    world.reset(State(x.q, x.v))
    world.step(Command(acceleration=x.a))
    first = 6 if x.character.joints[0].kind == "free" else 0
    a = (world.state.v - x.v) / dt
    assert_close(a[:, first:], x.a[:, first:], FORWARD["float64"])


@both_dtypes
@fuzz(trees.cases(12))
def test_commanded_accelerations_become_forces_of_the_joints_alone(case: Case, dtype: str) -> None:
    x = Batch(case)
    world = World(x.character, n=BATCH, dt=0.01, dtype=dtype)
    world.reset(State(x.q, x.v))
    world.step(Command(acceleration=x.a))
    # the root goes where M_bb a_b + M_bj a_j + h_b = 0 takes it
    M, h = dynamics.mass_matrix(x.character, x.q), dynamics.bias_force(x.character, x.q, x.v)
    a, b = x.a.copy(), 6 if x.character.joints[0].kind == "free" else 0
    lacking = (M[:, :b, b:] @ a[:, b:, None])[..., 0] + h[:, :b]
    a[:, :b] = -np.linalg.solve(M[:, :b, :b], lacking[..., None])[..., 0]
    tau = dynamics.inverse_dynamics(x.character, x.q, x.v, a)
    assert not world.torque[:, :b].any()
    scale = 1 + np.abs(M).max() * np.abs(a).max() + np.abs(h).max()
    assert np.abs(world.torque - tau)[:, b:].max(initial=0) < ROUNDING[dtype] * scale


@both_dtypes
@fuzz(trees.cases(12).filter(trees.jointed))
def test_forces_accelerate_as_forward_dynamics_says(case: Case, dtype: str) -> None:
    x, dt = Batch(case), 0.01
    world = World(x.character, n=BATCH, dt=dt, dtype=dtype)
    world.reset(State(x.q, x.v))
    world.step(Command(force=x.tau))
    a = dynamics.forward_dynamics(x.character, x.q, x.v, x.tau, dtype=dtype)
    assert_close(world.state.v, x.v + dt * a, ROUNDING[dtype])
    assert_close(world.torque, x.tau, ROUNDING[dtype])


@fuzz(trees.cases(8, base="free"))
def test_a_soft_root_is_fed_what_the_target_itself_needs(case: Case) -> None:
    x = Batch(case)
    gains = Gains(x.character, x.kp[0], x.kd[0])
    target = Target(*x.target, x.a)
    torques = []
    for feedforward in (False, True):
        world = World(x.character, n=BATCH, dt=0.01)
        world.reset(State(x.q, x.v))
        world.step(Command(drive=Drive(gains, target, form="pd", feedforward=feedforward)))
        torques.append(world.torque)
    needed = dynamics.inverse_dynamics(x.character, *x.target, x.a)
    armature = scene_of(x.character).forest.armature[:6]
    assert_close((torques[1] - torques[0])[:, 6:], 0 * needed[:, 6:], ROUNDING["float64"])
    needed[:, :6] -= armature * x.a[:, :6]
    assert_close((torques[1] - torques[0])[:, :6], needed[:, :6], 1e-12)


@fuzz(trees.cases(8).filter(trees.jointed))
def test_pins_hold_links_as_springs_and_dampers_at_the_end_of_the_step(case: Case) -> None:
    x, dt = Batch(case), 0.01
    forest = scene_of(x.character).forest
    gains = Gains(x.character, 0.0, 0.0)
    weight = case[1].uniform(0, 1, len(x.character.links))
    world = World(x.character, n=BATCH, dt=dt)
    world.reset(State(x.q, x.v))
    world.step(Command(drive=Drive(gains, Target(*x.target), pin=weight)))
    a = (world.state.v - x.v) / dt
    left = dynamics.inverse_dynamics(x.character, x.q, x.v, a)
    for k, (w, table) in enumerate(zip(weight, gains.pin, strict=True)):
        # pinned is the frame of the link's joint: turned as the link, at the anchor
        point = -quat_matrix(forest.link_E[k]).T @ forest.link_p[k]
        for i in range(BATCH):
            wrench = pin_wrench(x, k, point, i, a[i], w * table, dt)
            J = dynamics.jacobian(x.character, x.q[i], k, point)
            left[i] -= J.T @ wrench if forest.link_body[k] >= 0 else 0.0
    scale = np.abs(dynamics.mass_matrix(x.character, x.q)).max() * np.abs(a).max()
    assert np.abs(left).max() < 1e-11 * (1 + scale)  # (v - v0) / dt has lost two digits


def pin_wrench(x: Batch, k: int, point: Array, i: int, a: Array, gains: Array, dt: float) -> Array:
    """-kp (x + dt v + dt² a - x̄) - kd (v + dt a - v̄) of one link, linear and angular."""

    def motion(q: Array, v: Array) -> tuple[Array, Array, Array]:
        p, quat = (y[k] for y in dynamics.forward_kinematics(x.character, q))
        return (
            p + rotation.rotate(quat, point),
            quat,
            dynamics.jacobian(x.character, q, k, point) @ v,
        )

    (p, quat, u), (p_bar, quat_bar, u_bar) = (
        motion(x.q[i], x.v[i]),
        motion(x.target[0][i], x.target[1][i]),
    )
    rise = dynamics.jacobian(x.character, x.q[i], k, point) @ a
    rise += dynamics.jacobian_bias(x.character, x.q[i], x.v[i], k, point)
    ahead = rotation.multiply(rotation.exp(dt * u[3:]), quat)
    turn = rotation.log(rotation.multiply(ahead, rotation.conjugate(quat_bar)))
    kp, kd = np.repeat(gains[[0, 2]], 3), np.repeat(gains[[1, 3]], 3)
    e = np.concatenate([p + dt * u[:3] - p_bar, turn])
    return -kp * (e + dt * dt * rise) - kd * (u + dt * rise - u_bar)


@both_dtypes
@fuzz(trees.cases(8).filter(trees.jointed))
def test_a_copy_with_its_own_masses_is_a_character_with_these_masses(
    case: Case, dtype: str
) -> None:
    x, rng = Batch(case), case[1]
    factor = rng.uniform(0.5, 2.0, (2, len(x.character.links)))
    mass = factor * [link.mass for link in x.character.links]
    world = World(x.character, n=2, dt=0.01, mass=mass, dtype=dtype)
    world.reset(State(x.q[:2], x.v[:2]))
    world.step(Command(force=x.tau[:2]))
    for i in range(2):
        a = dynamics.forward_dynamics(
            scaled_masses(x.character, factor[i]), x.q[i], x.v[i], x.tau[i], dtype=dtype
        )
        assert_close(world.state.v[i], x.v[i] + 0.01 * a, FORWARD[dtype])


@both_dtypes
@fuzz(trees.cases(8).filter(trees.jointed))
def test_a_copy_with_its_own_armature_carries_it(case: Case, dtype: str) -> None:
    x = Batch(case)
    armature = case[1].uniform(0, 0.1, (BATCH, x.character.nv))
    world = World(x.character, n=BATCH, dt=0.01, armature=armature, dtype=dtype)
    world.reset(State(x.q, x.v))
    world.step(Command(force=x.tau))
    h = dynamics.bias_force(x.character, x.q, x.v)
    M = dynamics.mass_matrix(x.character, x.q)
    M += (armature - scene_of(x.character).forest.armature)[:, None] * np.eye(x.character.nv)
    for i in range(BATCH):
        exact = x.v[i] + 0.01 * np.linalg.solve(M[i], x.tau[i] - h[i])
        assert_close(world.state.v[i], exact, FORWARD[dtype])


def test_parts_of_a_scene_have_their_own_mass_matrices() -> None:
    parts = [load_character("two-link"), load_character("snake-12"), load_character("humanoid")]
    rng = np.random.default_rng(0)
    q = [trees.random_state(rng, part)[0] for part in parts]
    M = dynamics.mass_matrix(parts, np.concatenate(q))
    for part in reversed(parts):
        n = part.nv
        assert np.array_equal(M[-n:, -n:], dynamics.mass_matrix(part, q.pop()))
        assert not M[-n:, :-n].any()
        M = M[:-n, :-n]


@pytest.mark.parametrize("name", ["humanoid", "dog", "snake-195"])
@pytest.mark.parametrize("method", ["maba", "df", "sf", "pcg"])
def test_every_method_gives_the_same_step_of_a_built_in_model(name: str, method: str) -> None:
    character = load_character(name)
    rng = np.random.default_rng(0)
    (q, v), target = trees.random_state(rng, character), trees.random_state(rng, character)
    # gains with which M + K has a condition of 1e4 at most
    a, tau = dynamics.stable_pd(character, q, v, target, 300.0, 30.0, 1 / 60, method)
    M, h = dynamics.mass_matrix(character, q), dynamics.bias_force(character, q, v)
    Q, K = reference.drive(character, q, v, *target, 300.0, 30.0, 1 / 60)
    assert backward_error(M + np.diag(K), a, h, Q) < BACKWARD["float64"]
    assert_close(tau, Q - K * a, ROUNDING["float64"])
