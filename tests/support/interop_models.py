"""MuJoCo models for the tests of poise.interop.mujoco; without MuJoCo those are skipped."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

mujoco = pytest.importorskip("mujoco")

Array = NDArray[np.float64]
DT = 1 / 60

ARM = """<mujoco><option timestep="0.0166666666666666666" integrator="{integrator}"/><worldbody>
<body name="upper"><joint name="shoulder" axis="0 1 0" {shoulder}/>
  <inertial pos="0 0 -.2" mass="1.5" diaginertia=".01 .01 .002"/>
  <body name="lower" pos="0 0 -.4" {lower}><joint name="elbow" axis="0 1 0" {elbow}/>
    <inertial pos="0 0 -.15" mass="1" diaginertia=".005 .005 .001"/></body></body>
</worldbody>{more}</mujoco>"""


def arm(**parts: str) -> Any:
    """Two hinges; parts are attributes and elements to put in."""
    known = {"integrator": "Euler", "shoulder": "", "elbow": "", "lower": "", "more": ""}
    return mujoco.MjModel.from_xml_string(ARM.format(**(known | parts)))


def moving(model: Any, seed: int = 1, size: float = 0.5) -> Any:
    """An MjData somewhere, on its way."""
    data = mujoco.MjData(model)
    rng = np.random.default_rng(seed)
    mujoco.mj_integratePos(model, data.qpos, size * rng.normal(size=model.nv), 1.0)
    data.qvel[:] = size * rng.normal(size=model.nv)
    return data
