"""MuJoCo simulates, poise drives: a humanoid at 60 steps a second, too stiff for MuJoCo's servos.

    python examples/08_mujoco.py [--out DIR]

First it runs in the air, its pelvis fixed: MuJoCo's position servos against torques of stable PD.
Then it squats on MuJoCo's ground and nothing holds it: the same gains inside MuJoCo's own solve,
where contact knows of them. Leaves a contact sheet of the squat in DIR. Needs the extra `mujoco`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

import poise
from poise.interop import mujoco as interop
from poise.math.rotation import log
from poise.measure import tracking_error
from poise.view import contact_sheet, save_image

DT = 1 / 60  # [s]
KP, KD = 3000.0, 100.0  # [N m/rad], [N m s/rad]

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--out", type=Path, default=Path("out/mujoco"))
out: Path = parser.parse_args().out
out.mkdir(parents=True, exist_ok=True)
mujoco.set_mju_user_warning(lambda message: None)  # it would write them to a file
humanoid, ends = poise.load_character("humanoid"), dict[str, str]()


def servos(model: Any) -> Callable[..., Any]:
    """MuJoCo's own: motors become position servos; a ball's angles are its rotation vector."""
    model.actuator_biastype[:] = int(mujoco.mjtBias.mjBIAS_AFFINE)
    model.actuator_gainprm[:, 0] = KP
    model.actuator_biasprm[:, 1:3] = -KP, -KD
    character = interop.character_of(model)
    joints = [(j.kind, character.q_slice(j)) for j in character.joints if j.kind != "free"]

    def angles(data: Any, goal: poise.Target) -> Any:
        return np.concatenate([log(goal.q[i]) if k == "ball" else goal.q[i] for k, i in joints])

    return angles


def follow(name: str, model: Any, goals: poise.Target, **controls: Callable[..., Any]) -> Any:
    """Let MuJoCo run from goal to goal; controls fill arrays of its data in every step."""
    data, rows = mujoco.MjData(model), []
    interop.write_state(data, goals.row(0))
    for i in range(1, len(goals.q)):
        for array, control in controls.items():
            getattr(data, array)[:] = control(data, goals.row(i))
        mujoco.mj_step(model, data)
        rows.append(data.qpos.copy())
        if data.warning.number.any():
            ends[name] = f"diverges after {i * DT:.2f} s"
            break
    else:
        error = tracking_error(interop.character_of(model), rows, goals.q[1:])
        fell, off = error.world.max() > 0.5, error.rotation.mean()
        ends[name] = "falls" if fell else f"{off:.1f} degrees off"
    print(f"  {name:<28} {ends[name]}")
    return np.array(rows)


print(f"running in the air, pelvis fixed, kp = {KP:g}, dt = 1/60")
run = poise.load_clip("run", humanoid).targets(0.0, DT, 170)
run = poise.Target(run.q[:, 7:], np.asarray(run.v)[:, 6:], rows=run.rows)  # without the root
model = interop.model_of(humanoid.with_base("fixed"), dt=DT, ground=False)
follow("StablePD", model, run, ctrl=interop.StablePD(model, KP, KD).ctrl)
follow("servos in the air", model, run, ctrl=servos(model))

print("squatting on the ground, root free")
squat = poise.load_clip("squat", humanoid).targets(0.0, DT, 250)
model = interop.model_of(humanoid, dt=DT)
drive = interop.EmbeddedPD(model, KP, KD)
q = follow("EmbeddedPD", model, squat, qfrc_applied=drive)
drive.release()
angles = servos(model)
for name in ("EULER", "IMPLICIT", "IMPLICITFAST", "DISCRETE"):  # the first is MuJoCo's default
    model.opt.integrator = getattr(mujoco.mjtIntegrator, f"mjINT_{name}")
    follow(f"servos, {name.lower()}", model, squat, ctrl=angles)
save_image(out / "squat.png", contact_sheet((humanoid, q), ghost=squat.q[1:], fps=60, ground=0.0))

# the same torques by dense Cholesky, as imitation papers have them
servo = interop.StablePD(model, KP, KD, form="spd")
dense = interop.DenseStablePD(model, servo.gains.kp, servo.gains.kd)
at = mujoco.MjData(model)
mujoco.mj_forward(model, at)

# its own check
assert all(ends[name].startswith("diverges") for name in ("servos in the air", "servos, euler"))
assert all(float(ends[name].split()[0]) < 2.0 for name in ("StablePD", "EmbeddedPD"))
assert np.abs(servo(at, q[50]) - dense(at, q[50])).max() < 1e-9
