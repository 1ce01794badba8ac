"""Typical mistakes of users, in one table: each is answered by what is wrong and what is right."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import poise
from poise import dynamics, measure, view
from poise.cli import app
from poise.simulation.pushes import parse_push

NAN = math.nan
ANY: Any = poise  # mistakes are of types, too
VIEW: Any = view
MEASURE: Any = measure
DYNAMICS: Any = dynamics
HUMANOID, DOG = poise.load_character("humanoid"), poise.load_character("dog")
REST, NV = HUMANOID.rest_q, HUMANOID.nv
WALK: Any = poise.load_clip("walk", HUMANOID)
BOX = poise.Shape("box", (0.1, 0.1, 0.1))
CRATE = poise.free_object("crate", BOX)
SERVO: Any = poise.StablePD(HUMANOID)
RUN: Any = poise.run
IMAGE = np.zeros((4, 4, 3), np.uint8)

BVH = """HIERARCHY
ROOT hips
{
OFFSET 0 0 0
CHANNELS 6 Xposition Yposition Zposition Zrotation Xrotation Yrotation
End Site
{
OFFSET 0 10 0
}
}
MOTION
Frames: 2
Frame Time: 0.0333
0 0 0 0 0 0
0 0 0 0 0 0
"""
YAML = """format: poise-character
version: 1
name: pendulum
links:
- name: rod
  mass: 1.0
  inertia: [0.1, 0.1, 0.1]
  joints:
  - {name: pivot, kind: hinge, axis: [0, 1, 0]}
"""


def world(character: Any = HUMANOID, **options: Any) -> Any:
    return ANY.World(character, **{"dt": 1 / 60, **options})


def stepped(character: Any = HUMANOID, **options: Any) -> Any:
    one = world(character, **options)
    one.step()
    return one


def reset(q: Any, v: Any = None, where: Any = None, **options: Any) -> None:
    world(**options).reset(ANY.State(q, v), where=where)


def recording(frames: int = 1, **options: Any) -> Any:
    one = ANY.Recording(world(**options))
    for _ in range(frames):
        one.append()
    return one


def character_file(name: str, text: str = "", old: str = "", new: str = "") -> Any:
    return ANY.load_character(file(name, text.replace(old, new)))


def clip_file(name: str, text: str = "", old: str = "", new: str = "") -> Any:
    return ANY.load_clip(file(name, text.replace(old, new)))


def file(name: str, text: str | bytes) -> Path:
    path = FOLDER / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def saved(thing: Any, name: str) -> Path:
    thing.save(FOLDER / name)
    return FOLDER / name


def arrays(name: str, **members: Any) -> Path:
    np.savez(FOLDER / name, **members)
    return FOLDER / name


def assign(thing: Any, name: str, value: Any = 1.0) -> None:
    setattr(thing, name, value)


def typed(line: str) -> None:
    """What the command line prints and ends with."""
    done = CliRunner().invoke(app, shlex.split(line))
    assert done.exit_code in (1, 2), done.output
    raise SystemExit(done.output)


def with_entry(index: int, value: float) -> Any:
    q = REST.copy()
    q[index] = value
    return q


FOLDER = Path()
"""Where files are made; set by the test."""

Call = Callable[[], object]

# name; the mistake; the error if it is no PoiseError; what the answer must hold
MISTAKES: list[tuple[Any, ...]] = [
    # ---- worlds
    ("dt is a rate", lambda: world(dt=60), "dt is 60 s", "0.1 s or less"),
    ("dt below zero", lambda: world(dt=-1 / 60), "dt is -0.016", "positive time [s]"),
    ("dt huge", lambda: world(dt=10**400), "dt is 1000", "positive time [s]"),
    ("no sweeps", lambda: world(iterations=0), "iterations is 0", "at most 10000"),
    ("tolerance 0", lambda: world(tolerance=0.0), "tolerance is 0.0", "positive number [m/s]"),
    ("friction below 0", lambda: world(friction=-0.5), "friction is -0.5", "0 or more"),
    ("friction inf", lambda: world(friction=math.inf), "friction is inf", "at most 1e+06"),
    (
        "friction of a link",
        lambda: world(friction=[NAN, *[0.5] * (len(HUMANOID.links) - 1)]),
        f"friction of link {HUMANOID.links[0].name!r} is nan",
    ),
    ("ground friction", lambda: world(ground_friction=-1), "ground_friction is -1", "0 or more"),
    ("bounces too high", lambda: world(restitution=1.5), "restitution is 1.5", "at most 1:"),
    ("ragged where", lambda: reset(REST, where=[[0], [0, 1]], n=2), "where must be indices"),
    (
        "time of no frame",
        lambda: ANY.Recording(world(), fps=1e-308),
        "fps is 1e-308",
        "steps at most",
    ),
    ("dt nan", lambda: world(dt=NAN), "dt is nan", "positive time [s]"),
    ("dt forgotten", lambda: ANY.World(HUMANOID), TypeError, "missing", "'dt'"),
    ("option misspelt", lambda: world(gravitiy=(0, 0, 0)), TypeError, "'gravitiy'"),
    ("no copies", lambda: world(n=0), "n is 0", "at least one copy"),
    ("half a copy", lambda: world(n=1.5), "n is 1.5", "whole number"),
    ("n is True", lambda: world(n=True), "n is True", "whole number"),
    ("name for a character", lambda: world("dog"), "Character", "load_character('dog')"),
    ("path for a character", lambda: world(Path("a.xml")), "load_character('a.xml')"),
    ("clip for a character", lambda: world(WALK), "Character", "its .character is one"),
    ("no character", lambda: world(None), "expected a Character", "None"),
    ("gravity as a number", lambda: world(gravity=-9.81), "gravity", "()", "(3,)"),
    ("gravity None", lambda: world(gravity=None), "gravity must hold real numbers", "None"),
    ("ground as a height", lambda: world(ground=0.5), "ground", "Plane(height=0.5)"),
    ("ground as heights", lambda: world(ground=np.zeros((3, 3))), "ground", "a HeightField"),
    ("ground None", lambda: world(ground=None), "ground must be True, False", "None"),
    ("one obstacle, no list", lambda: world(obstacles=BOX), "obstacles must be a list of Shapes"),
    ("object for an obstacle", lambda: world(obstacles=[CRATE]), "obstacles[0]", "a Shape"),
    ("contact misspelt", lambda: world(contact="impulses"), "'impulses'", "'impulse', 'penalty'"),
    ("negative friction", lambda: world(friction=-1), "friction", "0 or more"),
    ("friction of two", lambda: world(friction=[1, 1]), "friction", "(2,)", "(13,)"),
    ("bounce above one", lambda: world(restitution=2), "restitution is 2", "at most 1", "energy"),
    ("negative projectiles", lambda: world(projectiles=-1), "projectiles is -1", "0 to 32"),
    (
        "pair of links, no list",
        lambda: world(exclude=("head", "chest")),
        "exclude",
        "list of pairs",
    ),
    (
        "excluded link misspelt",
        lambda: world(exclude=[("haed", "chest")]),
        "unknown link 'haed'",
        "did you mean 'head'",
    ),
    ("one mass for all", lambda: world(mass=70.0), "mass has shape ()", "(13,)"),
    ("type of NumPy", lambda: world(dtype=np.float16), "dtype", "'float64', 'float32'"),
    ("part misspelt", lambda: world().part("humnoid"), "'humnoid'", "did you mean 'humanoid'"),
    ("threads in words", lambda: world(threads="all"), "threads is 'all'", "whole number"),
    # ---- states
    ("array for a state", lambda: world().reset(REST), "reset takes a State", "array"),
    ("clip for a state", lambda: world().reset(WALK), "reset takes a State", "Clip"),
    ("state of another", lambda: reset(DOG.rest_q), "state.q", "(95,)", "(43,)"),
    ("v as long as q", lambda: reset(REST, REST), "state.v", "(43,)", "(34,)"),
    ("states for one copy", lambda: reset(np.tile(REST, (4, 1))), "(4, 43)", "(1, 43)"),
    ("quaternion of zeros", lambda: reset(with_entry(3, 0.0)), "joint 'root'", "must be 1"),
    ("angle for a quaternion", lambda: reset(with_entry(7, 90.0)), "joint 'chest'", "must be 1"),
    ("nan in q", lambda: reset(with_entry(0, NAN)), "state.q", "index 0", "finite"),
    ("mask too short", lambda: reset(REST, where=[True], n=3), "where", "(1,)", "(3,)"),
    ("copy too far", lambda: reset(REST, where=3, n=3), "where", "0 to 2"),
    ("state of None", lambda: ANY.State(None), "q must hold real numbers", "None"),
    # ---- steps and commands
    ("array for a command", lambda: world().step(np.zeros(NV)), "takes a Command", "array"),
    ("target for a command", lambda: world().step(WALK.target(0.0)), "takes a Command", "Target"),
    ("steps without a name", lambda: world().step(10), "takes a Command", "10"),
    ("no steps", lambda: world().step(steps=0), "steps is 0", "1 or more"),
    ("half a step", lambda: world().step(steps=0.5), "steps is 0.5", "whole number"),
    (
        "force as long as q",
        lambda: world().step(ANY.Command(force=REST)),
        "force has shape (43,)",
        "(34,)",
    ),
    (
        "force nan",
        lambda: world().step(ANY.Command(force=np.full(NV, NAN))),
        "force",
        "every entry must be finite",
    ),
    ("torque for force", lambda: ANY.Command(torque=np.zeros(NV)), TypeError, "'torque'"),
    ("target for a drive", lambda: ANY.Command(drive=REST), "drive must be a Drive"),
    (
        "rows and steps",
        lambda: world().step(SERVO(None, WALK.targets(0, 1 / 60, 5)), steps=4),
        "5 rows and steps is 4",
        "one row is one step",
    ),
    (
        "command of another world",
        lambda: world(DOG).step(SERVO(None, poise.State(HUMANOID.rest_q))),
        "34 degrees of freedom",
        "72",
    ),
    (
        "target of another",
        lambda: world().step(SERVO(None, ANY.Target(DOG.rest_q))),
        "target.q",
        "(95,)",
        "(43,)",
    ),
    ("array for a target", lambda: SERVO(None, REST), "a target is a Target or a State"),
    ("time for a target", lambda: SERVO(None, 0.5), "a target is a Target or a State", "0.5"),
    ("until never stepped", lambda: list(world().until(1.0)), "not stepped inside"),
    ("until when", lambda: list(world().until("1s")), "t is '1s'", "time [s]"),
    # ---- pushes
    ("link misspelt", lambda: world().push("haed", (1, 0, 0), 0.1), "'haed'", "mean 'head'"),
    (
        "link without its part",
        lambda: world([HUMANOID, DOG]).push("head", (1, 0, 0), 0.1),
        "unknown link 'head'",
        "'humanoid/head' or 'dog/head'",
    ),
    ("link beyond", lambda: world().push(99, (1, 0, 0), 0.1), "link 99", "0 to 12"),
    ("force as a number", lambda: world().push("head", 300, 0.1), "force", "()", "(3,)"),
    ("forces of others", lambda: world(n=4).push("head", np.ones((3, 3)), 1), "(3, 3)", "(4, 3)"),
    ("no duration", lambda: world().push("head", (1, 0, 0), 0), "duration is 0", "positive time"),
    ("duration in words", lambda: world().push("head", (1, 0, 0), "0.1s"), "duration is '0.1s'"),
    ("kick a misspelt link", lambda: world().kick("haed", (1, 0, 0)), "'haed'", "mean 'head'"),
    ("drag to a flat place", lambda: world().drag("head", (1, 0)), "to has shape (2,)", "(3,)"),
    ("throw along a number", lambda: world().throw((0, 2, 1), 6), "velocity", "(3,)"),
    (
        "throw turned by angles",
        lambda: world().throw((0, 2, 1), (0, 0, 0), quat=(0, 0, 90)),
        "quat has shape (3,)",
        "(4,)",
    ),
    (
        "nothing to throw",
        lambda: world(projectiles=0).throw((0, 2, 1), (0, 0, 0)),
        "no projectiles",
        "World(projectiles=...)",
    ),
    (
        "push without time",
        lambda: parse_push("chest:300N"),
        "time is missing",
        "chest:200N:left@1s",
    ),
    ("push in pounds", lambda: parse_push("chest:300lb@1s"), "force is missing", "200N"),
    ("push in minutes", lambda: parse_push("chest:300N@1min"), "'1min' is no time", "1s+0.1s"),
    ("push leftwards", lambda: parse_push("chest:300N:lefft@1s"), "'lefft'", "mean 'left'"),
    ("push below zero", lambda: parse_push("chest:-300N@1s"), "-300", "positive number [N]"),
    # ---- gains and controllers
    ("gains of three", lambda: ANY.Gains(HUMANOID, np.ones(3), 1.0), "(3,)", "(34,)"),
    ("negative gains", lambda: ANY.Gains(HUMANOID, -1, 1), "kp of joint 'chest'", "0 or more"),
    ("frequency of zero", lambda: ANY.suggest_gains(HUMANOID, 0), "frequency is 0", "positive"),
    ("name for a servo's", lambda: ANY.StablePD("dog"), "Character", "load_character('dog')"),
    ("root misspelt", lambda: ANY.StablePD(HUMANOID, root="fixed"), "'fixed'", "'held'"),
    ("form misspelt", lambda: ANY.StablePD(HUMANOID, form="semi"), "'semi'", "'implicit'"),
    ("gains as a number", lambda: ANY.StablePD(HUMANOID, gains=9), "made by Gains", "9"),
    ("option of a servo", lambda: ANY.PD(HUMANOID, freqency=8), TypeError, "'freqency'"),
    ("kane without dt", lambda: ANY.InverseDynamics(HUMANOID), "needs dt", "dt=1/60"),
    ("gains of a drive", lambda: ANY.Drive(100, ANY.Target(REST)), "made by Gains", "100"),
    ("rows of none", lambda: ANY.Target(REST, rows=0), "rows is 0", "1 or more"),
    ("run backwards", lambda: ANY.run(world(), SERVO, WALK, -1.0), "duration is -1.0", "positive"),
    ("run for a word", lambda: ANY.run(world(), SERVO, WALK, "1s"), "duration is '1s'", "positive"),
    ("run after a name", lambda: ANY.run(world(), SERVO, "walk", 1.0), "a target is", "'walk'"),
    # ---- characters
    ("character misspelt", lambda: ANY.load_character("humaniod"), "did you mean 'humanoid'"),
    ("character None", lambda: ANY.load_character(None), "a string or a path", "None"),
    ("base misspelt", lambda: ANY.load_character("dog", base="fix"), "did you mean 'fixed'"),
    ("file that is not there", lambda: ANY.load_character("no.xml"), "no.xml", "No such file"),
    ("folder for a file", lambda: ANY.load_character(FOLDER), "is not a file"),
    ("format nobody reads", lambda: character_file("a.fbx"), "FBX is closed", "GLB or BVH"),
    ("empty YAML", lambda: character_file("a.yaml"), "a.yaml:1", "is empty"),
    ("broken YAML", lambda: character_file("a.yaml", "a: [1"), "a.yaml", "is not YAML"),
    (
        "key misspelt",
        lambda: character_file("a.yaml", YAML, "mass", "mas"),
        "a.yaml:6",
        "'mas'",
        "did you mean 'mass'",
    ),
    (
        "mass with its unit",
        lambda: character_file("a.yaml", YAML, "1.0", "1kg"),
        "link 'rod'",
        "mass must be a number",
        "'1kg'",
    ),
    (
        "kind of another format",
        lambda: character_file("a.yaml", YAML, "hinge", "revolute"),
        "joint 'pivot'",
        "'revolute'",
        "kinds: free, ball, hinge, slide",
    ),
    (
        "URDF called XML",
        lambda: character_file("a.xml", "<robot name='a'><link name='b'/></robot>"),
        "this is URDF",
        "name it .urdf",
    ),
    ("model without bodies", lambda: character_file("a.xml", "<mujoco/>"), "has no bodies"),
    ("link of a character", lambda: HUMANOID.link("haed"), "'haed'", "did you mean 'head'"),
    ("joint of a character", lambda: HUMANOID.joint("left_kne"), "did you mean 'left_knee'"),
    ("limits in one number", lambda: ANY.Joint("j", "hinge", limits=90), "limits", "2 numbers"),
    (
        "limits reversed",
        lambda: ANY.Joint("j", "hinge", limits=(1, -1)),
        "reversed",
        "1 > upper -1",
    ),
    (
        "limits in degrees",
        lambda: ANY.Joint("j", "hinge", limits=(-90, 180)),
        "radians(180) = 3.142",
    ),
    ("axis in words", lambda: ANY.Joint("j", "hinge", axis="x"), "axis", "3 numbers", "'x'"),
    ("negative mass", lambda: ANY.Link("l", mass=-1), "link 'l'", "at least 0"),
    ("one number of inertia", lambda: ANY.Link("l", mass=1, inertia=0.1), "inertia", "diagonal"),
    ("angles of a link", lambda: ANY.Link("l", quat=(0, 0, 90)), "quat must be 4 numbers"),
    ("joint, no list", lambda: ANY.Link("l", joints=ANY.Joint("j", "ball")), "sequence of Joint"),
    ("mass assigned", lambda: assign(HUMANOID.links[0], "mass"), "mass of a Link", "replace(link"),
    ("size assigned", lambda: assign(BOX, "size"), "size of a Shape", "replace(shape"),
    ("cube", lambda: ANY.Shape("cube", (1, 1, 1)), "'cube'", "kinds: sphere, capsule, box"),
    ("radius, no list", lambda: ANY.Shape("sphere", 0.1), "size", "a sequence of 1 number", "0.1"),
    ("two sides of a box", lambda: ANY.Shape("box", (1, 1)), "box: size must be 3 numbers"),
    ("colours to 255", lambda: ANY.Shape("box", (1, 1, 1), color=(255, 0, 0)), "0..1"),
    ("object without a name", lambda: ANY.free_object(BOX, "crate"), "a link's name", "Shape("),
    ("mass and density", lambda: ANY.free_object("a", BOX, mass=1, density=2), "not both"),
    ("massless object", lambda: ANY.free_object("a", BOX, mass=0), "'a' has no mass"),
    # ---- the ground
    ("heights in a row", lambda: ANY.HeightField(np.zeros(5), 1.0), "heights", "2 x 2 or more"),
    ("heights nan", lambda: ANY.HeightField(np.full((2, 2), NAN), 1), "heights[0, 0]", "finite"),
    ("no spacing", lambda: ANY.HeightField(np.zeros((2, 2)), 0), "spacing is 0", "positive"),
    ("three spacings", lambda: ANY.HeightField(np.zeros((2, 2)), [1, 1, 1]), "two numbers"),
    ("height for a normal", lambda: ANY.Plane(0.5), "normal must be 3 numbers", "Plane(height="),
    ("normal of zeros", lambda: ANY.Plane((0, 0, 0)), "normal has length zero", "(0, 0, 1)"),
    (
        "height assigned",
        lambda: assign(ANY.Plane(), "height"),
        "height of a Plane",
        "another Plane",
    ),
    (
        "heights assigned",
        lambda: assign(ANY.HeightField(np.zeros((2, 2)), 1.0), "heights"),
        "heights of a HeightField",
        "another HeightField",
    ),
    # ---- clips
    ("clip misspelt", lambda: ANY.load_clip("wlak"), "'wlak'", "did you mean 'walk'"),
    ("clip None", lambda: ANY.load_clip(None), "a path", "None"),
    ("clip onto a name", lambda: ANY.load_clip("walk", "dog"), "'dog'", "load_character"),
    ("clip that is not there", lambda: ANY.load_clip("no.bvh"), "no.bvh", "No such file"),
    ("folder for a clip", lambda: ANY.load_clip(FOLDER), "is not a file"),
    ("clip as CSV", lambda: clip_file("a.csv", "1,2"), "a.csv", ".bvh, .glb"),
    ("empty BVH", lambda: clip_file("a.bvh"), "is empty", "HIERARCHY"),
    (
        "BVH cut off",
        lambda: clip_file("a.bvh", BVH, "Frames: 2", "Frames: 3"),
        "Frames: 3",
        "holds 2",
    ),
    (
        "BVH with a comma",
        lambda: clip_file("a.bvh", BVH, "0.0333", "0,0333"),
        "a.bvh:13",
        "seconds",
    ),
    (
        "channel misspelt",
        lambda: clip_file("a.bvh", BVH, "Xpos", "Xpso"),
        "joint 'hips'",
        "Xposition",
    ),
    ("AMC alone", lambda: clip_file("a.amc", ":DEGREES\n1\nroot 0 0 0\n"), "a.asf", "beside it"),
    (
        "arrays for a clip",
        lambda: ANY.load_clip(arrays("a.npz", q=REST)),
        "needs",
        "frames",
        "has q",
    ),
    ("recording for a clip", lambda: ANY.load_clip(saved(recording(), "r.npz")), "load_recording"),
    (
        "clip for a recording",
        lambda: ANY.load_recording(saved(WALK, "w.npz")),
        "load_clip reads it",
    ),
    (
        "pickled objects",
        lambda: ANY.load_recording(arrays("p.npz", meta=np.array([{}], dtype=object))),
        "pickled objects",
        "not read",
    ),
    ("recording of no archive", lambda: ANY.load_recording(file("a.npz", "")), "no .npz archive"),
    ("one pose, no frames", lambda: ANY.Clip(HUMANOID, REST, 60), "(43,)", "(frames, 43)"),
    ("clip of a name", lambda: ANY.Clip("dog", REST[None], 60), "'dog'", "load_character"),
    ("no rate", lambda: ANY.Clip(HUMANOID, REST[None], 0), "fps is 0", "[Hz]"),
    ("turned by degrees", lambda: WALK.turned(90), "90 rad", "math.radians(90) = 1.571"),
    ("placed by degrees", lambda: WALK.placed((0, 0), 180), "180 rad", "math.radians(180)"),
    ("looped by degrees", lambda: WALK.looped(2, turn=45), "45 rad", "math.radians(45)"),
    ("placed at a number", lambda: WALK.placed(3), "position", "x, y [m]", "3"),
    ("moved by a number", lambda: WALK.moved(1.0), "by must be three finite numbers x, y, z"),
    ("trimmed by frames", lambda: WALK.trimmed(10, 60), "10 .. 60 s", "0 .. 3.3 s"),
    ("resampled by dt", lambda: WALK.resampled(1 / 60), "a single frame", "such as 60"),
    ("no speed", lambda: WALK.at_speed(0), "speed is 0", "positive"),
    ("smoothed too high", lambda: WALK.smoothed(100), "100 Hz", "at most 27 Hz"),
    ("blended with a name", lambda: WALK.blended("run"), "'run'", "load_clip"),
    (
        "blended with another",
        lambda: WALK.blended(poise.load_clip("dog-trot")),
        "retarget it first",
    ),
    ("retargeted to a name", lambda: WALK.retargeted("dog"), "'dog'", "load_character"),
    ("time in words", lambda: WALK.q("1s"), "t must hold real numbers"),
    ("no rows of targets", lambda: WALK.targets(0.0, 1 / 60, 0), "k is 0", "1 or more"),
    ("run without a world", lambda: RUN(HUMANOID, SERVO, WALK, 1.0), "takes a World first"),
    (
        "run in another order",
        lambda: poise.run(SERVO, world(), WALK, 1.0),
        "takes a World first",
    ),
    (
        "record a path",
        lambda: poise.run(world(), SERVO, WALK, 0.1, "a.npz"),
        "a Recording of this",
    ),
    (
        "record another world",
        lambda: poise.run(world(), SERVO, WALK, 0.1, poise.Recording(poise.World(DOG, dt=0.01))),
        "of another world",
        "Recording(world)",
    ),
    ("run a class", lambda: RUN(world(), poise.StablePD, WALK, 0.1), "StablePD(world)"),
    ("target first", lambda: SERVO(WALK.target(0.0), world().state), "the state first"),
    ("world for state", lambda: SERVO(world(), WALK.target(0.0)), "world.state"),
    ("clip for target", lambda: SERVO(world().state, WALK), "clip.target(t + world.dt)"),
    (
        "rate for dt of a controller",
        lambda: poise.InverseDynamics(HUMANOID, dt=60),
        "dt is 60 s",
        "1/60",
    ),
    (
        "throw without contact",
        lambda: poise.World(DOG, dt=0.01, contact=None).throw((0, 0, 1), (1, 0, 0)),
        "contact=None",
    ),
    ("targets at words", lambda: WALK.targets("now", 1 / 60, 2), "t must hold real numbers"),
    ("rate assigned", lambda: assign(WALK, "fps", 30), "fps of a Clip", "clip.resampled(fps)"),
    ("character assigned", lambda: assign(WALK, "character", DOG), "clip.retargeted(character)"),
    ("frames misspelt", lambda: assign(WALK, "frame"), "'frame'", "did you mean 'frames'"),
    ("format nobody writes", lambda: WALK.save(FOLDER / "a.fbx"), "FBX is closed", "write GLB"),
    ("no such folder", lambda: WALK.save(FOLDER / "no" / "a.bvh"), "a.bvh", "cannot be written"),
    ("saved to a number", lambda: WALK.save(3), "written to a path", "3"),
    # ---- recordings
    ("recording of a character", lambda: ANY.Recording(HUMANOID), "must be a World"),
    ("recording at no rate", lambda: ANY.Recording(world(), fps=0), "fps is 0", "[Hz]"),
    ("frame beyond", lambda: recording().state(5), "no frame 5", "there are 1"),
    (
        "target of another in a recording",
        lambda: recording(0).append(ANY.Target(DOG.rest_q)),
        "target.q",
        "(95,)",
        "(43,)",
    ),
    (
        "clip of several",
        lambda: recording(character=[HUMANOID, CRATE]).clip(),
        "name one of humanoid, crate",
    ),
    ("recording as a video", lambda: recording().save(FOLDER / "a.mp4"), "written as .npz"),
    ("recording's rate assigned", lambda: assign(recording(), "fps"), "Recording(world, fps=...)"),
    # ---- dynamics and measures
    ("q of another", lambda: DYNAMICS.mass_matrix(HUMANOID, DOG.rest_q), "(95,)", "(..., 43)"),
    (
        "state for q",
        lambda: DYNAMICS.energy(HUMANOID, ANY.State(REST), np.zeros(NV)),
        "q must hold",
    ),
    ("q None", lambda: DYNAMICS.center_of_mass(HUMANOID, None), "q is None", "(..., 43)"),
    ("arguments swapped", lambda: DYNAMICS.mass_matrix(REST, HUMANOID), "expected a Character"),
    ("jacobian of a link", lambda: DYNAMICS.jacobian(HUMANOID, REST, "haed"), "mean 'head'"),
    (
        "batches that differ",
        lambda: DYNAMICS.inverse_dynamics(HUMANOID, REST, np.zeros((2, NV)), np.zeros((3, NV))),
        "do not fit together",
        "v (2, 34), a (3, 34)",
    ),
    (
        "state for contacts",
        lambda: MEASURE.ground_reaction(HUMANOID, world().state),
        "world.contacts",
    ),
    (
        "contacts of another world",
        lambda: MEASURE.fallen(DOG, DOG.rest_q, stepped([HUMANOID, CRATE]).contacts),
        "character 'dog' is not in the scene",
        "humanoid, crate",
    ),
    (
        "one of two alike",
        lambda: MEASURE.ground_reaction(HUMANOID, stepped([HUMANOID, HUMANOID]).contacts),
        "humanoid, humanoid-2",
        "contacts.of('humanoid-2')",
    ),
    ("part of contacts", lambda: stepped().contacts.of("humnoid"), "did you mean 'humanoid'"),
    (
        "copies forgotten",
        lambda: MEASURE.support_polygon(stepped(n=3).contacts),
        "contacts of 3 copies",
        "copies is the shape of the leading axes",
    ),
    (
        "frames that differ",
        lambda: MEASURE.tracking_error(HUMANOID, np.tile(REST, (3, 1)), np.tile(REST, (4, 1))),
        "do not fit together",
        "q (3, 43), reference (4, 43)",
    ),
    ("summary of nothing", lambda: MEASURE.summary([]), "at least one number"),
    ("rate for dt", lambda: MEASURE.jitter(np.zeros((50, NV)), 60), "every 60 s", "below 0.0083"),
    # ---- pictures
    ("picture of a name", lambda: VIEW.render("dog"), "Character", "load_character('dog')"),
    ("picture of a recording", lambda: VIEW.render(recording()), "frame_drawing(recording, i)"),
    (
        "one side of a picture",
        lambda: VIEW.render(HUMANOID, size=400),
        "size is 400",
        "(width, height)",
    ),
    ("colour in words", lambda: VIEW.render(HUMANOID, color="red"), "color must be 3 numbers"),
    ("camera as a place", lambda: VIEW.render(HUMANOID, camera=(1, 2, 3)), "look_at or follow"),
    ("picture as JPEG", lambda: VIEW.save_image(FOLDER / "a.jpg", IMAGE), "written as .png"),
    ("picture first", lambda: VIEW.save_image(IMAGE.tolist(), IMAGE), "written to a path"),
    ("video as AVI", lambda: VIEW.save_video(FOLDER / "a.avi", WALK), ".mp4 or .gif"),
    (
        "video of a world",
        lambda: VIEW.save_video(FOLDER / "a.gif", world()),
        "a Recording or a Clip",
    ),
    ("video of nothing", lambda: VIEW.save_video(FOLDER / "a.gif", recording(0)), "has no frames"),
    ("recording first", lambda: VIEW.save_video(recording(), "a.gif"), "written to a path"),
    ("page as a video", lambda: VIEW.save_html(FOLDER / "a.mp4", WALK), "written as .html"),
    ("sheet of a recording", lambda: VIEW.contact_sheet(recording()), "recording_sheet"),
    # ---- the command line
    ("command misspelt", lambda: typed("trak walk"), SystemExit, "did you mean 'track'"),
    ("option of a command", lambda: typed("track walk --psuh a"), SystemExit, "--psuh", "--push"),
    ("clip of a command", lambda: typed("track wlak"), SystemExit, "did you mean 'walk'"),
    ("clip missing", lambda: typed("track"), SystemExit, "Missing argument 'CLIP'", "--help"),
    (
        "push of a command",
        lambda: typed("track walk --push head"),
        SystemExit,
        "chest:200N:left@1s",
    ),
    ("dt of a command", lambda: typed("track walk --dt abc"), SystemExit, "--dt is 'abc'", "1/60"),
    ("controller misspelt", lambda: typed("track walk --controller spx"), SystemExit, "mean 'spd'"),
    (
        "file of a command",
        lambda: typed("convert no.bvh a.glb"),
        SystemExit,
        "no.bvh",
        "No such file",
    ),
    ("format of a command", lambda: typed("convert walk a.xyz"), SystemExit, ".bvh, .glb"),
    ("work misspelt", lambda: typed("reproduce yin2021"), SystemExit, "did you mean 'yin2020'"),
]


@pytest.mark.parametrize(
    ("call", "answer"), [(call, x) for _, call, *x in MISTAKES], ids=[name for name, *_ in MISTAKES]
)
def test_a_mistake_is_answered_by_what_is_wrong_and_what_is_right(
    call: Call, answer: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(globals(), "FOLDER", tmp_path)
    monkeypatch.chdir(tmp_path)
    error = next((x for x in answer if isinstance(x, type)), poise.PoiseError)
    with pytest.raises(error) as caught:
        call()
    message = " ".join(str(caught.value).split())
    missing = [x for x in answer if isinstance(x, str) and x not in message]
    assert not missing, f"{missing} not in: {message}"


def test_the_table_has_a_hundred_mistakes_of_different_names() -> None:
    names = [name for name, *_ in MISTAKES]
    assert len(set(names)) == len(names) >= 100


FINE: dict[str, Call] = {
    "float32": lambda: reset(REST.astype(np.float32)),
    "list": lambda: reset(REST.tolist()),
    "whole numbers": lambda: world(gravity=(0, 0, -10), friction=1),
    "columns of a larger array": lambda: reset(np.tile(REST, (2, 1)).T[:, 0]),
    "path with spaces": lambda: ANY.load_clip(saved(WALK, "my walk.bvh")),
    "path in capitals": lambda: ANY.load_clip(file("A.BVH", BVH)),
    "spacing as a list": lambda: ANY.HeightField(np.zeros((2, 2)), [1, 2]),
    "time beyond the clip": lambda: WALK.q(1000.0),
}


@pytest.mark.parametrize("call", FINE.values(), ids=list(FINE))
def test_what_is_no_mistake_is_taken(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(globals(), "FOLDER", tmp_path)
    call()
