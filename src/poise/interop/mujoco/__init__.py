"""poise for MuJoCo: characters from models, states both ways, and stable PD for MuJoCo's own steps.

In short::

    from poise.interop import mujoco as interop

    servo = interop.StablePD(model, kp=600.0, kd=60.0)
    while running:
        data.qfrc_applied[:] = servo(data, target)      # or data.ctrl[:] = servo.ctrl(data, target)
        mujoco.mj_step(model, data)

q is qpos and v is qvel, entry by entry; nothing is converted.
"""

from poise.interop.mujoco.embedded import EmbeddedPD
from poise.interop.mujoco.models import character_of, characters_of, model_of
from poise.interop.mujoco.stable_pd import DenseStablePD, StablePD
from poise.interop.mujoco.states import rollout_state, state_of, write_state

__all__ = [
    "DenseStablePD",
    "EmbeddedPD",
    "StablePD",
    "character_of",
    "characters_of",
    "model_of",
    "rollout_state",
    "state_of",
    "write_state",
]
