"""MuJoCo simulates, poise controls: stiff gains at 60 steps per second, one import.

    python examples/11_mujoco.py

A humanoid squats on MuJoCo's ground with a free root. `EmbeddedPD` puts stable PD into MuJoCo's own
constraint solve. The same gains as explicit torques diverge. Writes a contact sheet to out/mujoco.
Needs the extra `mujoco`.
"""

from pathlib import Path
from typing import Any

import mujoco
import numpy as np

import poise
from poise.interop import mujoco as interop
from poise.measure import tracking_error
from poise.view import contact_sheet, save_image

DT = 1 / 60  # [s]
KP, KD = 3000.0, 100.0  # [N m/rad], [N m s/rad]
out = Path("out/mujoco")
out.mkdir(parents=True, exist_ok=True)
mujoco.set_mju_user_warning(lambda message: None)  # else MuJoCo writes a log file

humanoid = poise.load_character("humanoid")
squat = poise.load_clip("squat", humanoid).targets(0.0, DT, 250)
model = interop.model_of(humanoid, dt=DT)
stable_pd = interop.EmbeddedPD(model, KP, KD)


def explicit_pd(data: Any, target: poise.Target) -> Any:
    """Returns the torques of springs and dampers; none on the root."""
    torque = KP * humanoid.difference(target.q, data.qpos) + KD * (target.v - data.qvel)
    return np.r_[np.zeros(6), torque[6:]]


def follow(control: Any) -> np.ndarray:
    """Runs MuJoCo along the squat; returns qpos of all steps until it diverges."""
    data, rows = mujoco.MjData(model), []
    interop.write_state(data, squat.row(0))
    for i in range(1, len(squat.q)):
        data.qfrc_applied[:] = control(data, squat.row(i))
        mujoco.mj_step(model, data)
        if data.warning.number.any():
            break
        rows.append(data.qpos.copy())
    return np.array(rows)


q = follow(stable_pd)
error = tracking_error(humanoid, q, squat.q[1:]).rotation.mean()
print(f"stable PD in MuJoCo's solve: mean joint error {error:.2f} degrees")
stable_pd.release()
diverged = len(follow(explicit_pd)) * DT
print(f"explicit PD with the same gains: diverges at {diverged:.2f} s")
save_image(out / "squat.png", contact_sheet((humanoid, q), ghost=squat.q[1:], fps=60, ground=0.0))
print(out / "squat.png")
