"""Results that a change of structure must not change.

    python tests/frozen/scenarios.py core      hashes of the core's results, as JSON on stdout
    python tests/frozen/scenarios.py pipeline  arrays of the pipeline, saved to pipeline.npz
    python tests/frozen/scenarios.py files     one file of every format, in files/

`core` is compared bit for bit, per instruction set (POISE_ISA); `pipeline` to 1e-12.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import poise
from poise import dynamics, measure
from poise.control.profiles import named_profile

HERE = Path(__file__).parent
Arrays = dict[str, Any]


def _end(world: poise.World) -> Arrays:
    state = world.state
    return {"q": state.q, "v": state.v, "memory": state.memory, "torque": world.torque}


def _sway(character: poise.Character, n: int = 1, seed: int = 1) -> tuple[Any, Any]:
    """Random velocities at rest pose."""
    rng = np.random.default_rng(seed)
    q = np.array(poise.World(character, dt=1 / 60, contact=None).state.q)
    v = rng.normal(size=(n, character.nv)) if n > 1 else rng.normal(size=character.nv)
    return (np.tile(q, (n, 1)) if n > 1 else q), v


def _flat(arrays: Any) -> Any:
    return np.concatenate([np.ravel(x) for x in arrays])


def weak() -> poise.Character:
    """The humanoid with effort limits of 80 N·m."""
    humanoid = poise.load_character("humanoid")
    links = [
        replace(
            link,
            joints=tuple(j if j.kind == "free" else replace(j, effort=80.0) for j in link.joints),
        )
        for link in humanoid.links
    ]
    return poise.Character("weak", tuple(links))


def drives() -> Iterator[tuple[str, Callable[[], Arrays]]]:
    """Embedded and standalone drives, without contact."""
    for name in ("humanoid", "dog", "snake-72", "lamp", "two-link", "humanoid-51"):
        for form in ("implicit", "spd", "explicit"):

            def make(name: str = name, form: str = form) -> Arrays:
                character = poise.load_character(name)
                world = poise.World(character, dt=1 / 120, contact=None)
                servo = poise.StablePD(world, poise.Gains(world, 200.0, 20.0), form=form)
                q, v = _sway(character)
                rest = world.state.copy()
                world.reset(poise.State(q, v))
                poise.run(world, servo, rest, 0.5)
                return _end(world)

            yield f"drive {name} {form}", make
    for method in ("df", "sf", "pcg"):

        def solve(method: str = method) -> Arrays:
            character = poise.load_character("humanoid")
            world = poise.World(character, dt=1 / 120, contact=None)
            servo = poise.StablePD(
                world, poise.Gains(world, 200.0, 20.0), form="spd", method=method
            )
            q, v = _sway(character)
            rest = world.state.copy()
            world.reset(poise.State(q, v))
            poise.run(world, servo, rest, 0.2)
            return _end(world)

        yield f"drive humanoid {method}", solve


def worlds() -> Iterator[tuple[str, Callable[[], Arrays]]]:
    """Contact, throws, pushes, hills, several parts, batches."""

    def standing() -> Arrays:
        character = poise.load_character("humanoid")
        world = poise.World(character, dt=1 / 60)
        servo = poise.StablePD(world, poise.Gains(world, 3000.0, 300.0))
        stance = world.state.copy()
        world.push("chest", (30, 10, 0), 0.1, at=0.1)
        poise.run(world, servo, stance, 1.0)
        return {**_end(world), "contacts": world.contacts.force}

    yield "standing", standing

    def fall(**options: Any) -> Arrays:
        character = poise.load_character("humanoid")
        world = poise.World(character, dt=1 / 120, **options)
        q, v = _sway(character)
        q[2] += 0.3
        world.reset(poise.State(q, v))
        for _ in range(150):
            world.step()
        return _end(world)

    yield "fall", fall
    yield "fall penalty", lambda: fall(contact="penalty", stiffness=2e4)
    heights = 0.1 * np.sin(np.arange(400).reshape(20, 20))
    yield "fall on hills", lambda: fall(ground=poise.HeightField(heights, 0.3))
    yield "fall bouncing", lambda: fall(restitution=0.5)

    def scene() -> Arrays:
        crate = poise.free_object("crate", poise.Shape("box", size=(0.2, 0.2, 0.2)), mass=5.0)
        world = poise.World(
            [poise.load_character("humanoid"), poise.load_character("dog"), crate], dt=1 / 60
        )
        q = world.state.q.copy()
        q[world.part("dog").q][0:1] += 2.0
        q[world.part("crate").q][0:3] = (-1.0, 0.0, 0.5)
        world.reset(poise.State(q, np.zeros(world.scene.nv)))
        world.throw((0, 2, 1.4), (0, -6, 1.5))
        servo = poise.StablePD(world, frequency=12.0)
        poise.run(world, servo, world.state.copy(), 0.7)
        return _end(world)

    yield "scene", scene

    def batch(dtype: str, contact: str | None) -> Arrays:
        character = poise.load_character("humanoid")
        world = poise.World(character, n=13, dt=1 / 120, dtype=dtype, contact=contact)
        q, v = _sway(character, 13)
        world.reset(poise.State(q, v))
        servo = poise.StablePD(world, poise.Gains(world, 300.0, 30.0))
        target = poise.load_clip("walk").target(0.4)
        poise.run(world, servo, target, 0.5)
        return _end(world)

    for dtype in ("float64", "float32"):
        for contact in ("impulse", None):
            yield (
                f"batch {dtype} {contact}",
                lambda dtype=dtype, contact=contact: batch(dtype, contact),  # type: ignore[misc]
            )

    def walk(root: str, profile: bool) -> Arrays:
        clip = poise.load_clip("walk")
        world = poise.World(clip.character, dt=1 / 60)
        world.reset(clip.state(0.0))
        servo: Any = poise.StablePD(world, root=root)
        if profile:
            limp = named_profile(world, "limp", limb="left_arm", at=0.2, hold=0.4)
            servo = poise.Profiled(servo, strength=limp)
        world.push("chest", (0, 150, 0), 0.1, at=0.5)
        poise.run(world, servo, clip, 1.0)
        return _end(world)

    yield "walk soft", lambda: walk("soft", False)
    yield "walk held", lambda: walk("held", False)
    yield "walk limp", lambda: walk("soft", True)

    def limits() -> Arrays:
        character = weak()
        world = poise.World(character, dt=1 / 60)
        servo = poise.StablePD(world, poise.Gains(world, 2000.0, 200.0))
        clip = poise.load_clip("squat", character)
        world.reset(clip.state(0.0))
        poise.run(world, servo, clip, 0.6)
        return _end(world)

    yield "effort limits", limits

    def resumed() -> Arrays:
        clip = poise.load_clip("dog-trot")
        world = poise.World(clip.character, dt=1 / 60)
        world.reset(clip.state(0.0))
        servo = poise.StablePD(world, root="soft")
        poise.run(world, servo, clip, 0.4)
        middle = world.state.copy()
        world.reset()
        world.reset(middle)
        poise.run(world, servo, clip, 0.4)
        return _end(world)

    yield "resumed", resumed


def controllers() -> Iterator[tuple[str, Callable[[], Arrays]]]:
    """Kane's method, the PD family, balance."""

    def kane(root: str) -> Arrays:
        clip = poise.load_clip("squat", poise.load_character("humanoid"))
        world = poise.World(clip.character, dt=1 / 100)
        world.reset(clip.state(0.0))
        poise.run(world, poise.InverseDynamics(world, root=root), clip, 0.6)
        return _end(world)

    for root in ("free", "soft", "held"):
        yield f"kane {root}", lambda root=root: kane(root)  # type: ignore[misc]

    def pd(**options: Any) -> Arrays:
        world = poise.World(poise.load_character("two-link"), dt=1 / 1000, contact=None)
        poise.run(world, poise.PD(world, frequency=2.0, **options), poise.Target([0.5, -0.3]), 0.3)
        return _end(world)

    yield "pd", pd
    yield (
        "pd-full",
        lambda: pd(gravity_compensation=True, bubble_up=True, feedforward=True),
    )

    def balance(contact: str, dt: float, clip_name: str) -> Arrays:
        clip = poise.load_clip(clip_name)
        options = {"stiffness": 2e6} if contact == "penalty" else {}
        world = poise.World(
            clip.character,
            dt=dt,
            contact=contact,
            self_collision=False,
            **options,  # type: ignore[arg-type]
        )
        world.reset(clip.state(0.0))
        controller = poise.Balance(world)
        world.push("chest", (100, 0, 0), 0.1, at=0.1)
        poise.run(world, controller, clip, 0.5)
        return {**_end(world), "memory of the controller": controller.memory}

    yield "balance cones", lambda: balance("impulse", 1 / 120, "squat")
    yield "balance thesis", lambda: balance("penalty", 1 / 1000, "forward-kick")

    def copies() -> Arrays:
        clip = poise.load_clip("squat")
        world = poise.World(clip.character, n=5, dt=1 / 120, self_collision=False)
        world.reset(clip.state(0.0))
        world.push("chest", np.linspace(0, 200, 5)[:, None] * (1.0, 0.0, 0.0), 0.1, at=0.1)
        poise.run(world, poise.Balance(world), clip, 0.3)
        return _end(world)

    yield "balance batch", copies


def queries() -> Iterator[tuple[str, Callable[[], Arrays]]]:
    """poise.dynamics."""

    def ask(name: str) -> Arrays:
        character = poise.load_character(name)
        q, v = _sway(character, 3)
        rng = np.random.default_rng(4)
        tau = rng.normal(size=v.shape)
        return {
            "M": dynamics.mass_matrix(character, q),
            "h": dynamics.bias_force(character, q, v),
            "a": dynamics.forward_dynamics(character, q, v, tau),
            "tau": dynamics.inverse_dynamics(character, q, v, tau),
            "J": dynamics.jacobian(character, q, 1),
            "c": np.concatenate(
                [np.ravel(x) for x in dynamics.centroidal_momentum(character, q, v)]
            ),
            "poses": np.concatenate(
                [np.ravel(x) for x in dynamics.forward_kinematics(character, q)]
            ),
        }

    for name in ("humanoid", "dog", "snake-36", "tail-biped"):
        yield f"dynamics {name}", lambda name=name: ask(name)  # type: ignore[misc]


CORE = [drives, worlds, controllers, queries]


def core() -> dict[str, str]:
    """Hash of every scenario of the core."""
    found = {}
    for group in CORE:
        for name, make in group():
            total = hashlib.sha256()
            for key, array in make().items():
                total.update(key.encode())
                total.update(np.ascontiguousarray(array).tobytes())
            found[name] = total.hexdigest()[:20]
    return found


def pipeline() -> Arrays:
    """Arrays of retargeting, editing, preparation and feedforward."""
    out: Arrays = {}
    humanoid = poise.load_character("humanoid")
    for name, body in (("walk", "humanoid-51"), ("squat", "humanoid"), ("jab", "tail-biped")):
        clip = poise.load_clip(name).retargeted(poise.load_character(body))
        out[f"retargeted {name} {body}"] = clip.frames[::5]
    walk = poise.load_clip("walk", humanoid)
    rng = np.random.default_rng(3)
    noisy = walk.with_frames(walk.frames)
    q = noisy.frames.copy()
    q[:, 7:] += 1e-3 * rng.normal(size=q[:, 7:].shape)
    out["smoothed"] = walk.with_frames(q).smoothed(6.0).frames[::5]
    out["mirrored"] = walk.mirrored().frames[::5]
    out["looped"] = walk.looped(2).frames[::5]
    out["resampled"] = walk.resampled(50.0).frames[::5]
    out["trimmed"] = walk.trimmed(0.2, 0.7).frames[::5]
    error = measure.tracking_error(humanoid, walk.frames[:20], walk.with_frames(q).frames[:20])
    out["tracking"] = np.concatenate([np.ravel(x) for x in error])
    out["gains"] = poise.suggest_gains(humanoid, 8.0).kp
    return out


def recordings() -> dict[str, poise.Recording]:
    """A recording of a scene with a throw and masses of its own, and one of a balance."""
    crate = poise.free_object("crate", poise.Shape("box", size=(0.2, 0.2, 0.2)), mass=5.0)
    walk = poise.load_clip("walk")
    scene = [walk.character, crate]
    nl = len(walk.character.links) + 1
    world = poise.World(
        scene,
        n=2,
        dt=1 / 60,
        projectiles=2,
        friction=np.full((2, nl), 0.6),
        obstacles=[poise.Shape("box", size=(0.3, 0.3, 0.1), pos=(2.0, 0.0, 0.1))],
        ground=poise.HeightField(np.zeros((4, 4)), 5.0),
    )
    world.reset({"humanoid": walk.state(0.0)})
    world.throw((0, 2, 1.4), (0, -6, 1.5))
    world.push("humanoid/chest", (0, 100, 0), 0.1, at=0.05)
    mixed = poise.Recording(world, fps=30)
    servo = poise.StablePD(world, root="soft", part="humanoid")
    poise.run(world, servo, walk, 0.3, record=mixed)
    squat = poise.load_clip("squat")
    world = poise.World(squat.character, dt=1 / 120, self_collision=False)
    world.reset(squat.state(0.0))
    balanced = poise.Recording(world, fps=30)
    poise.run(world, poise.Balance(world), squat, 0.3, record=balanced)
    return {"mixed": mixed, "balanced": balanced}


def files() -> None:
    """Write one file of every format, and what is in it."""
    folder = HERE / "files"
    folder.mkdir(exist_ok=True)
    expected: Arrays = {}
    for name, recording in recordings().items():
        recording.save(folder / f"{name}.npz")
        expected |= contents(poise.load_recording(folder / f"{name}.npz"), name)
    clip = poise.load_clip("squat").trimmed(0.0, 0.5)
    for ending in ("npz", "bvh", "glb", "txt"):
        clip.save(folder / f"clip.{ending}")
        expected[f"clip.{ending}"] = clip_in(folder / f"clip.{ending}")
    for ending in ("yaml", "xml"):
        poise.load_character("humanoid-51").save(folder / f"character.{ending}")
        again = poise.load_character(folder / f"character.{ending}")
        expected[f"character.{ending}"] = dynamics.mass_matrix(again, _sway(again)[0])
    np.savez_compressed(HERE / "files.npz", **expected)


def clip_in(path: Path) -> Any:
    """Frames of a clip; a text file does not say whose joints it has."""
    own: Any = {"character": poise.load_clip("squat").character, "prepare": False}
    return poise.load_clip(path, **(own if path.suffix == ".txt" else {})).frames


def contents(recording: poise.Recording, name: str) -> Arrays:
    """What a recording holds."""
    last = len(recording) - 1
    balls = recording.projectile_state(last)
    found = {
        f"{name} q": recording.q,
        f"{name} v": recording.v,
        f"{name} torque": recording.torque,
        f"{name} memory": recording.state(last).memory,
        f"{name} force": recording.contacts(last).force,
        f"{name} thrown": np.concatenate([balls.poses, balls.v], axis=-1),
        f"{name} target": recording.target(last).q,  # type: ignore[union-attr]
        f"{name} resumed": _stepped(recording, last - 2),
    }
    return {key: array for key, array in found.items() if array is not None}


def _stepped(recording: poise.Recording, i: int) -> Any:
    world = recording.world(i)
    world.step()
    return world.state.q


def main() -> None:
    """Print or write one of the sets."""
    what = sys.argv[1]
    if what == "core":
        json.dump(core(), sys.stdout, indent=1)
    elif what == "pipeline":
        np.savez_compressed(HERE / "pipeline.npz", **pipeline())
    elif what == "files":
        files()


if __name__ == "__main__":
    main()
