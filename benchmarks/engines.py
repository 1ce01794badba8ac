"""The peers: Pinocchio's aba with armature = Kd dt, and MuJoCo through mujoco.rollout.

Both do our step with contacts off. Pinocchio's aba with that armature is the SPD solve itself;
PD around it takes the turn of a step to first order, and the root's armature acts in its own frame.
MuJoCo's joint springs and dampers are PD; its integrators Euler and implicitfast take one
step of our form "explicit", `discrete` one of our form "implicit", but for the turn of a step,
which it takes to first order. The facts of a case say how far its motion ends from ours.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from scenes import DT, moved, paper_gains, paper_kd, per_dof, start, sway
from timing import Array, Case

from poise import Character, Command, Drive, Target, World

# the tests convert characters for the peers, too
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

INTEGRATORS = ("Euler", "implicitfast", "implicit", "discrete")
"""Those that take the damping implicitly; RK4 takes four evaluations and diverges here."""

SAME_FORM = {"Euler": "explicit", "implicitfast": "explicit", "discrete": "implicit"}
"""Which form of ours takes the same step."""


def find_modules(modules: dict[str, str]) -> tuple[dict[str, Any], dict[str, str]]:
    """The modules of these peers that are here, and why the others are not."""
    found: dict[str, Any] = {}
    missing = {}
    for name, module in modules.items():
        try:
            found[name] = __import__(module)
            if name == "mujoco":
                __import__("mujoco.rollout")
        except ImportError as error:
            found.pop(name, None)
            missing[name] = str(error)
    return found, missing


def find_peers() -> tuple[dict[str, Any], dict[str, str]]:
    """The peers without contact that are here, and why the others are not."""
    modules = {"pinocchio": "pinocchio", "mujoco": "mujoco"}
    try:
        __import__("peers")
    except ImportError as error:
        return {}, dict.fromkeys(modules, str(error))
    return find_modules(modules)


# ---- Pinocchio


def pinocchio_cases(pin: Any, character: Character, rows: int) -> list[Case]:
    """`pin.aba` alone, called from Python, and a full step around it, in NumPy."""
    import peers

    peer = peers.to_pinocchio(character)
    model, data = peer.model, peer.data
    kp, kd = per_dof(character, 2e4, 7.5e4), paper_kd(character)
    model.armature = kd * DT
    begin = start(character, 1)
    q0, v0 = peer.q(begin.q), peer.v(begin.q, begin.v)
    goals = [peer.q(row) for row in moved(character, sway(character, rows)[0])]
    damp = kp * DT + kd
    tau0 = kp * pin.difference(model, q0, goals[0]) - damp * v0
    last: dict[str, Array] = {}

    def solve() -> None:
        aba = pin.aba
        for _ in range(rows):
            a = aba(model, data, q0, v0, tau0)
        last["a"] = a

    def step() -> None:
        aba, difference, integrate = pin.aba, pin.difference, pin.integrate
        q, v = q0, v0
        for goal in goals:
            tau = kp * difference(model, q, goal) - damp * v
            v = v + DT * aba(model, data, q, v, tau)
            q = integrate(model, q, DT * v)
        last["q"], last["v"] = q, v

    step()
    mine = peer.q(
        _our_end(character, Target(moved(character, sway(character, rows)[0]), rows=rows))
    )
    difference = float(np.abs(pin.difference(model, mine, last["q"])).max())
    facts = {"engine": "pinocchio", "model": character.name, "n": 1, "threads": 1}
    return [
        Case("pin.aba", rows, _nothing, solve, lambda: np.array(last["a"]), facts),
        Case(
            "pin step",
            rows,
            _nothing,
            step,
            lambda: np.concatenate([last["q"], last["v"]]),
            facts | {"from_ours": difference},
        ),
    ]


def _our_end(character: Character, goal: Target, form: str = "spd", steps: int = 0) -> Array:
    """Our q after the same steps from the same start."""
    world = World(character, dt=DT, threads=1, contact=None)
    world.reset(start(character, 1))
    drive = Drive(paper_gains(character), goal, form=form)
    world.step(Command(drive=drive), goal.rows or steps)
    return world.state.q


def _nothing() -> None:
    pass


# ---- MuJoCo


def mujoco_cases(mujoco: Any, character: Character, rows: int) -> list[Case]:
    """A rollout with every integrator, with joint springs and with position servos."""
    known = {i: getattr(mujoco.mjtIntegrator, f"mjINT_{i.upper()}", None) for i in INTEGRATORS}
    return [
        mujoco_case(mujoco, character, rows, name, number, servos)
        for servos in (False, True)
        for name, number in known.items()
        if number is not None
    ]


def mujoco_case(
    mujoco: Any, character: Character, rows: int, integrator: str, number: Any, servos: bool
) -> Case:
    """One rollout on the calling thread, all its arrays made before."""
    model = mujoco_model(mujoco, character, servos)
    model.opt.integrator = number
    data = mujoco.MjData(model)
    begin = start(character, 1)
    first = np.concatenate([np.zeros(1), begin.q, begin.v])[None]
    states = np.empty((1, rows, first.size))
    sensors = np.empty((1, rows, model.nsensordata))
    # servos follow the sway; springs hold still, which is less work, if anything
    control = np.ascontiguousarray(sway(character, rows)[0][None, :, 6:]) if servos else None
    roll = mujoco.rollout.Rollout(nthread=0).rollout

    def run() -> None:
        roll(model, data, first, control, nstep=rows, state=states, sensordata=sensors)

    kind = "servos" if servos else "springs"
    facts = {"engine": "mujoco", "model": character.name, "n": 1, "threads": 1}
    facts |= {"integrator": integrator, "pd": kind, "from_ours": None}
    form = SAME_FORM.get(integrator)
    if form is not None and not servos:
        run()
        mine = _our_end(character, Target(character.rest_q), form, rows)
        facts["from_ours"] = float(np.abs(states[0, -1, 1 : 1 + character.nq] - mine).max())
    return Case(f"{integrator}, {kind}", rows, _nothing, run, lambda: states[0, -1, 1:], facts)


def mujoco_model(mujoco: Any, character: Character, servos: bool) -> Any:
    """The model with the paper's gains; kd is joint damping, kp a spring or a position servo.

    A servo cannot act on a free joint, so the root always has springs.
    """
    import peers

    xml = peers.mujoco_xml(character, dt=DT)
    if servos:
        acts = (
            f"<position joint='{joint.name}' kp='75000' gear='{' '.join(gear)}'/>"
            for joint in character.joints[1:]
            for gear in np.eye(3 if joint.nv == 3 else 1, 6).astype(int).astype(str)
        )
        xml = xml.replace("</mujoco>", f"<actuator>{''.join(acts)}</actuator></mujoco>")
    model = mujoco.MjModel.from_xml_string(xml)
    off = mujoco.mjtDisableBit
    model.opt.enableflags = 0
    model.opt.disableflags = int(off.mjDSBL_CONTACT) | int(off.mjDSBL_CONSTRAINT)
    model.dof_damping[:] = paper_kd(character)
    model.jnt_stiffness[:] = 0.0 if servos else 7.5e4
    model.jnt_stiffness[0] = 2e4
    model.qpos_spring[:] = character.rest_q
    return model
