"""Which kernels run: the rule, what forces them, and what recordings keep of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import trees
from small_recordings import short

from poise import Recording, World, _core, dynamics, load_character, load_recording
from poise.experiments.report import facts
from poise.io.archive import Archive, pack, text_bytes

pytestmark = pytest.mark.arithmetic

LAMP = load_character("lamp")
Use = Callable[[str], None]
every_set = pytest.mark.parametrize("isa", ["baseline", "avx2", "avx512"])


def chosen(isa: str | None) -> dict[str, str]:
    """What a process chooses under POISE_ISA, or without it."""
    env = {name: value for name, value in os.environ.items() if name != "POISE_ISA"}
    env |= {} if isa is None else {"POISE_ISA": isa}
    code = "import json; from poise import _core; print(json.dumps(_core.isa()))"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    found: dict[str, str] = json.loads(done.stdout)
    return found


# the choice


def test_the_default_is_avx512_for_a_batch_and_avx2_for_one_where_the_cpu_has_them() -> None:
    sets = _core.supported_isas()
    narrow = "avx2" if "avx2" in sets else "baseline"
    assert chosen(None) == {"single": narrow, "batch": "avx512" if "avx512" in sets else narrow}


def narrow(isa: str) -> str:
    """What one character runs under a forced set: AVX-512 is for batches."""
    return isa if isa != "avx512" else _core.supported_isas()[-2]


@every_set
def test_the_environment_forces_a_set(isa: str, use_isa: Use) -> None:
    use_isa(isa)
    assert chosen(isa) == {"single": narrow(isa), "batch": isa} == _core.isa()


def test_a_world_keeps_the_set_that_it_was_built_with(use_isa: Use) -> None:
    default = _core.isa()
    one, batch = (World(LAMP, n=n, dt=0.01) for n in (1, 3))
    use_isa("baseline")
    assert (one.isa, batch.isa) == (default["single"], default["batch"])
    assert World(LAMP, dt=0.01).isa == World(LAMP, n=3, dt=0.01).isa == "baseline"


@every_set
def test_dynamics_of_a_state_do_not_depend_on_its_place_in_a_batch(isa: str, use_isa: Use) -> None:
    use_isa(isa)
    character, rng = load_character("dog"), np.random.default_rng(5)
    states = [trees.random_state(rng, character) for _ in range(37)]
    q, v = (np.array(x) for x in zip(*states, strict=True))
    tau = np.zeros(character.nv)
    whole = dynamics.forward_dynamics(character, q, v, tau)
    some = rng.permutation(37)[:11]
    assert dynamics.forward_dynamics(character, q[some], v[some], tau).tobytes() == (
        whole[some].tobytes()
    )


def test_reports_name_the_sets_of_one_character_and_of_batches() -> None:
    assert all(isa in facts()["kernels"] for isa in _core.isa().values())


# recordings


@pytest.mark.parametrize("n", [1, 3])
@every_set
def test_a_recording_keeps_the_set_and_the_dtype_that_made_it(
    isa: str, n: int, use_isa: Use, tmp_path: Path
) -> None:
    use_isa(isa)
    short(n, dtype="float32").save(tmp_path / "a.npz")
    use_isa("baseline")
    loaded = load_recording(tmp_path / "a.npz")
    used = isa if n > 1 else narrow(isa)
    assert (loaded.isa, loaded.dtype) == (used, "float32")
    assert loaded.made == f"float32, {used}"
    assert loaded.made in repr(loaded)


def older(recording: Recording, path: Path) -> None:
    """Write a recording as it was before it kept the instruction set."""
    recording.save(path)
    with Archive.open(path) as archive:
        members = {name: archive.array(name, "fiu") for name in sorted(archive.names)}
    meta = json.loads(members["meta"].tobytes())
    del meta["isa"]
    path.write_bytes(pack({**members, "meta": text_bytes(json.dumps(meta))}))


def test_an_older_recording_opens_without_a_set_and_is_written_as_it_was(tmp_path: Path) -> None:
    older(short(), tmp_path / "a.npz")
    loaded = load_recording(tmp_path / "a.npz")
    assert loaded.isa is None
    assert loaded.made == "float64, unknown kernels"
    loaded.save(tmp_path / "b.npz")
    assert load_recording(tmp_path / "b.npz").isa is None


@pytest.mark.parametrize("n", [1, 3])
@every_set
def test_a_recording_of_another_set_resumes_within_rounding_in_the_first_step(
    isa: str, n: int, use_isa: Use
) -> None:
    use_isa("baseline")
    recording = short(n)
    expected = recording.world(0)
    expected.step()
    use_isa(isa)
    world = recording.world(0)
    world.step()
    assert world.isa == (isa if n > 1 else narrow(isa))
    np.testing.assert_allclose(world.state.q, expected.state.q, rtol=0, atol=1e-9)
    np.testing.assert_allclose(world.state.v, expected.state.v, rtol=0, atol=1e-9)


@pytest.mark.parametrize("n", [1, 3])
@every_set
def test_a_recording_of_the_same_set_resumes_bit_for_bit(isa: str, n: int, use_isa: Use) -> None:
    use_isa(isa)
    recording = short(n)
    world = recording.world(0)
    world.throw((1.0, 0.0, 0.5), (-1.0, 0.0, 0.0))
    world.step(steps=6)
    assert world.isa == recording.isa
    assert world.state.q.tobytes() == recording.q[-1].tobytes()
