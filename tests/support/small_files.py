"""Small valid files of every kind that poise reads, written by the tests themselves."""

from __future__ import annotations

import base64
import io
import json
import struct
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from poise.characters import load_character
from poise.model.character import Character, Joint, Link, Shape
from poise.motion import Clip
from poise.motion.formats import npz
from poise.motion.formats.glb_write import dump
from poise.reference import move

BVH = """HIERARCHY
ROOT Hips
{
  OFFSET 0 0 0
  CHANNELS 6 Xposition Yposition Zposition Zrotation Xrotation Yrotation
  JOINT Chest
  {
    OFFSET 0 20.5 1
    CHANNELS 3 Zrotation Xrotation Yrotation
    JOINT Head
    {
      OFFSET 0 35 0
      CHANNELS 3 Zrotation Xrotation Yrotation
      End Site
      {
        OFFSET 0 18 0
      }
    }
  }
  JOINT LeftFoot
  {
    OFFSET 10 -85 0
    CHANNELS 3 Zrotation Xrotation Yrotation
    End Site
    {
      OFFSET 0 -8 16
    }
  }
}
MOTION
Frames: 3
Frame Time: 0.0333333
0 95 0 1 2 3 4 5 6 7 8 9 10 11 12
1 95.5 0 2 3 4 5 6 7 8 9 10 11 12 13
2 96 0 3 4 5 6 7 8 9 10 11 12 13 14
"""

ASF = """# a skeleton
:version 1.10
:name test
:units
  mass 1.0
  length 0.45
  angle deg
:documentation
  none
:root
  order TX TY TZ RX RY RZ
  axis XYZ
  position 0 0 0
  orientation 0 0 0
:bonedata
  begin
    id 1
    name lfemur
    direction 0 -1 0
    length 7.5
    axis 0 0 20 XYZ
    dof rx ry rz
    limits (-160 20)
           (-70 70)
           (-60 70)
  end
  begin
    id 2
    name ltibia
    direction 0 -1 0
    length 7
    axis 30 0 20 XYZ
    dof rx
  end
:hierarchy
  begin
    root lfemur
    lfemur ltibia
  end
"""

AMC = """#!OML:ASF nothing
:FULLY-SPECIFIED
:DEGREES
1
root 1 2 3 10 20 30
lfemur 5 6 7
ltibia 40
2
root 1.5 2 3 10 20 30
lfemur 5 6 8
ltibia 41
"""

MJCF = """<mujoco model="small">
  <compiler angle="degree" autolimits="true"/>
  <default><joint damping="0.5" armature="0.01"/><geom density="900"/></default>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 0.1"/>
    <body name="trunk" pos="0 0 1">
      <freejoint name="root"/>
      <geom type="box" size="0.1 0.15 0.2"/>
      <body name="arm" pos="0 0.2 0.1" euler="0 0 30">
        <joint name="shoulder" type="ball" range="0 80"/>
        <geom type="capsule" fromto="0 0 0 0 0.3 0" size="0.04"/>
        <body name="hand" pos="0 0.35 0">
          <joint name="flex" axis="1 0 0" range="-70 70"/>
          <joint name="bend" axis="0 0 1" range="-20 40" ref="5"/>
          <geom type="sphere" size="0.05"/>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator><motor joint="flex" gear="40" ctrllimited="true" ctrlrange="-1 1"/></actuator>
</mujoco>
"""

URDF = """<?xml version="1.0"?>
<robot name="small">
  <material name="red"><color rgba="1 0 0 1"/></material>
  <link name="trunk">
    <inertial>
      <origin xyz="0 0 0.1" rpy="0 0 0"/><mass value="5"/>
      <inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.05"/>
    </inertial>
    <collision><geometry><box size="0.2 0.3 0.4"/></geometry></collision>
  </link>
  <link name="arm">
    <inertial>
      <mass value="1"/><inertia ixx="0.02" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.01"/>
    </inertial>
    <visual><geometry><sphere radius="0.1"/></geometry><material name="red"/></visual>
    <collision><geometry><cylinder radius="0.05" length="0.3"/></geometry></collision>
  </link>
  <joint name="shoulder" type="revolute">
    <parent link="trunk"/><child link="arm"/><origin xyz="0 0.2 0.1" rpy="0.1 0 0"/>
    <axis xyz="0 1 0"/><limit lower="-1" upper="2" effort="30" velocity="9"/>
  </joint>
</robot>
"""

UPRIGHT = 'linear="1 0 0 0 1 0 0 0 1"'
MASS = f"""<Skeleton name="Small">
  <Node name="Base" parent="None">
    <Body type="Box" mass="2.0" size="0.1 0.2 0.3" contact="On" color="0.5 0.5 1.0 1.0">
      <Transformation {UPRIGHT} translation="0.0 1.0 0.1"/>
    </Body>
    <Joint type="Free"><Transformation {UPRIGHT} translation="0.0 0.9 0.0"/></Joint>
  </Node>
  <Node name="Arm" parent="Base">
    <Body type="Capsule" mass="1.0" radius="0.05" height="0.4">
      <Transformation linear="0 0 1 1 0 0 0 1 0" translation="0.5 1.0 0.0"/>
    </Body>
    <Joint type="Revolute" axis="0 0 1" lower="-1.0" upper="1.5">
      <Transformation {UPRIGHT} translation="0.3 1.0 0.0"/>
    </Joint>
  </Node>
</Skeleton>
"""


def _place(x: float, y: float, z: float) -> dict[str, float]:
    return {"AttachX": x, "AttachY": y, "AttachZ": z} | {f"AttachTheta{a}": 0.0 for a in "XYZ"}


DEEPMIMIC: dict[str, Any] = {
    "Skeleton": {
        "Joints": [
            {"ID": 0, "Name": "root", "Type": "none", "Parent": -1, **_place(0, 0, 0)},
            {"ID": 1, "Name": "left_hip", "Type": "spherical", "Parent": 0, "TorqueLim": 200}
            | _place(0, -0.1, 0.1),
            {"ID": 2, "Name": "left_knee", "Type": "revolute", "Parent": 1, "LimLow0": -3}
            | {"LimHigh0": 0, "TorqueLim": 150, **_place(0, -0.4, 0)},
        ]
    },
    "BodyDefs": [
        {"ID": 0, "Name": "root", "Shape": "sphere", "Mass": 6, "Param0": 0.2, **_place(0, 0, 0)},
        {"ID": 1, "Name": "left_hip", "Shape": "capsule", "Mass": 4, "Param0": 0.1, "Param1": 0.3}
        | _place(0, -0.2, 0),
        {"ID": 2, "Name": "left_knee", "Shape": "box", "Mass": 3, "Param0": 0.1, "Param1": 0.4}
        | {"Param2": 0.1, **_place(0, -0.2, 0)},
    ],
}


def small_character() -> Character:
    """A joint of every kind on three links."""
    trunk = Link.from_shapes(
        "trunk", None, [Shape("box", (0.1, 0.2, 0.3))], joints=(Joint("root", "free"),)
    )
    arm = Link.from_shapes(
        "arm",
        "trunk",
        [Shape("capsule", (0.05, 0.2), pos=(0.0, 0.0, -0.2))],
        pos=(0.0, 0.25, 0.2),
        joints=(Joint("shoulder", "ball", limits=(1.0, -0.5, 0.5)),),
    )
    hand = Link.from_shapes(
        "hand",
        "arm",
        [Shape("sphere", (0.06,))],
        pos=(0.0, 0.0, -0.45),
        joints=(Joint("wrist", "hinge", axis=(0.0, 1.0, 0.0), limits=(-1.0, 1.0)),),
    )
    return Character("small", (trunk, arm, hand), limbs={"left_arm": ("arm", "hand")})


def some_clip(character: Character, frames: int = 4, fps: float = 30.0, seed: int = 0) -> Clip:
    """A short smooth motion from the rest pose."""
    v = np.random.default_rng(seed).normal(size=(2, character.nv))
    q = [np.asarray(character.rest_q)]
    for i in range(frames - 1):
        q.append(np.asarray(move(character, q[-1], v[0] + i * v[1], 0.5 / fps)))
    return Clip(character, np.array(q), fps, name="some")


def glb_bytes(header: Any, binary: bytes) -> bytes:
    """A GLB file of a JSON header and a binary chunk, with true lengths."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    text += b" " * (-len(text) % 4)
    binary += b"\0" * (-len(binary) % 4)
    chunks = struct.pack("<I4s", len(text), b"JSON") + text
    if binary:
        chunks += struct.pack("<I4s", len(binary), b"BIN\0") + binary
    return struct.pack("<4sII", b"glTF", 2, 12 + len(chunks)) + chunks


def glb_parts(data: bytes) -> tuple[bytes, bytes]:
    """The JSON text and the binary chunk of a GLB file."""
    (length,) = struct.unpack_from("<I", data, 12)
    return data[20 : 20 + length], data[28 + length :]


def without_extras(data: bytes) -> bytes:
    """A GLB file as another program would write it: its skeleton and animation alone."""
    text, binary = glb_parts(data)

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {k: plain(v) for k, v in value.items() if k != "extras"}
        return [plain(v) for v in value] if isinstance(value, list) else value

    return glb_bytes(plain(json.loads(text)), binary)


def gltf_text(data: bytes) -> bytes:
    """A GLB file as text, its numbers in base64."""
    text, binary = glb_parts(data)
    header = json.loads(text)
    uri = "data:application/octet-stream;base64," + base64.b64encode(binary).decode()
    header["buffers"] = [{"byteLength": len(binary), "uri": uri}]
    return json.dumps(header, indent=1).encode()


def amass_bytes() -> bytes:
    """An AMASS archive of three frames."""
    rng = np.random.default_rng(3)
    file = io.BytesIO()
    poses = 0.2 * rng.normal(size=(3, 66))
    trans = np.array([[0.0, 0.0, 0.9]] * 3)
    np.savez(file, poses=poses, trans=trans, mocap_framerate=np.array(60.0), betas=np.zeros(16))
    return file.getvalue()


def yaml_text() -> str:
    """The lamp, with a mesh and limits of every kind."""
    from poise.model.formats import yaml

    return yaml.dump(load_character("lamp"))


@lru_cache(maxsize=1)
def small_files() -> dict[str, dict[str, bytes]]:
    """By kind: the files by name, the one to be read first.

    Motions: bvh, amc, glb, glb foreign, gltf, amass, npz, deepmimic. Characters: the others.
    """
    small = small_character()
    foreign = without_extras(dump(some_clip(small)))
    return {
        "bvh": {"a.bvh": BVH.encode()},
        "amc": {"leg_01.amc": AMC.encode(), "leg.asf": ASF.encode()},
        "glb": {"a.glb": dump(some_clip(small))},
        "glb foreign": {"a.glb": foreign},
        "gltf": {"a.gltf": gltf_text(foreign)},
        "amass": {"a.npz": amass_bytes()},
        "npz": {"a.npz": _saved(some_clip(small))},
        "deepmimic": {"a.txt": _frames_text().encode()},
        "deepmimic character": {"a.json": json.dumps(DEEPMIMIC, indent=1).encode()},
        "mjcf": {"a.xml": MJCF.encode()},
        "urdf": {"a.urdf": URDF.encode()},
        "mass": {"a.xml": MASS.encode()},
        "yaml": {"a.yaml": yaml_text().encode()},
    }


MOTIONS = ("bvh", "amc", "glb", "glb foreign", "gltf", "amass", "npz", "deepmimic")


def write_small(folder: Path, kind: str) -> Path:
    """Write the files of a kind; returns the one to read."""
    files = small_files()[kind]
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return folder / next(iter(files))


def _frames_text() -> str:
    """Three frames of the format's humanoid, 44 columns."""
    upright = [1.0, 0.0, 0.0, 0.0]
    ball = [0.9, 0.1, 0.3, 0.3]
    rows = []
    for i in range(3):
        sides = [*ball, -0.5, *ball, *ball, 0.4]  # hip, knee, ankle, shoulder, elbow
        rows.append([1 / 30, 0.1 * i, 0.9, 0.0, *upright, *ball, *ball, *sides, *sides])
    return json.dumps({"Loop": "wrap", "Frames": rows}, indent=1)


def _saved(clip: Clip) -> bytes:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        npz.write(clip, Path(folder) / "a.npz")
        return (Path(folder) / "a.npz").read_bytes()
