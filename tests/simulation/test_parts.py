"""More than one body in a scene: controllers act on their parts, and leave the rest alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import poise
from poise import PoiseError, Shape

HUMANOID, DOG = poise.load_character("humanoid"), poise.load_character("dog")
WALK, TROT = poise.load_clip("walk"), poise.load_clip("dog-trot")
CRATE = poise.free_object("crate", Shape("box", (0.1, 0.1, 0.1)), mass=2.0, pos=(2.0, 0.0, 1.0))
BALL = poise.free_object("ball", Shape("sphere", (0.1,)), mass=1.0, pos=(-2.0, 0.0, 1.5))


def scene(*others: poise.Character, **options: Any) -> poise.World:
    world = poise.World([HUMANOID, *others], **{"dt": 1 / 60, **options})
    world.reset({"humanoid": WALK.state(0.0)})
    return world


def place(world: poise.World, part: str) -> np.ndarray[Any, Any]:
    position: np.ndarray[Any, Any] = world.state.q[..., world.part(part).q][..., :3]
    return position


@pytest.mark.parametrize(
    "make",
    [
        lambda world: poise.StablePD(world, root="soft"),
        lambda world: poise.StablePD(world, root="held"),
        lambda world: poise.StablePD(world, root="held", embedded=False),
        lambda world: poise.InverseDynamics(world, root="soft"),
        lambda world: poise.InverseDynamics(world, root="held"),
        # slow joints: explicit damping of light links is unstable
        lambda world: poise.PD(world, root="soft", frequency=0.5),
    ],
    ids=["spd soft", "spd held", "spd torque", "kane soft", "kane held", "pd"],
)
def test_a_driven_root_does_not_hold_a_crate(make: Any) -> None:
    dt = 1 / 2000
    world, alone = scene(CRATE, dt=dt), poise.World(CRATE, dt=dt)
    servo = make(world)
    for _ in range(200):
        world.step(servo(world.state, WALK.target(float(world.time) + world.dt)))
        alone.step()
    assert not world.torque[world.part("crate").v].any()
    np.testing.assert_allclose(place(world, "crate"), alone.state.q[:3], rtol=0, atol=1e-12)


@pytest.mark.parametrize("contact", ["impulse", "penalty"])
def test_balance_leaves_a_crate_and_a_second_character_alone(contact: str) -> None:
    dt = 1 / 120 if contact == "impulse" else 1 / 1000
    world = poise.World([HUMANOID, CRATE, DOG], dt=dt, contact=contact)
    world.reset({"dog": poise.State(np.array([*(0.0, 3.0, 2.0), *DOG.rest_q[3:]]))})
    stance = poise.State(HUMANOID.rest_q)
    balance = poise.Balance(world, part="humanoid", supports=["left_foot", "right_foot"])
    poise.run(world, balance, stance, 0.3)
    for part in ("crate", "dog"):
        assert not world.torque[world.part(part).v].any()
    # 0.3 s of free fall
    assert place(world, "crate")[2] == pytest.approx(1.0 - 0.5 * 9.81 * 0.09, abs=9.81 * 0.3 * dt)
    assert abs(place(world, "humanoid")[2] - HUMANOID.rest_q[2]) < 0.01


def test_balance_in_company_does_what_it_does_alone() -> None:
    stance = poise.State(HUMANOID.rest_q)
    alone = poise.World(HUMANOID, dt=1 / 120)
    together = poise.World([HUMANOID, CRATE], dt=1 / 120)
    for world in (alone, together):
        world.push(world.scene.forest.link_names.index("chest") if world is alone else
                   "humanoid/chest", (80.0, 0.0, 0.0), 0.1)  # fmt: skip
        poise.run(world, poise.Balance(world), stance, 0.5)
    q = together.state.q[together.part("humanoid").q]
    # the crate is an island of its own: what is left is rounding
    np.testing.assert_allclose(q, alone.state.q, rtol=0, atol=1e-10)


def test_inverse_dynamics_with_a_free_root_stands_beside_a_crate() -> None:
    world = poise.World([HUMANOID, CRATE], dt=1 / 60)
    kane = poise.InverseDynamics(world, root="free")
    poise.run(world, kane, poise.State(HUMANOID.rest_q), 1.0)
    assert place(world, "crate")[2] == pytest.approx(0.1, abs=1e-3)
    assert place(world, "humanoid")[2] == pytest.approx(HUMANOID.rest_q[2], abs=0.01)


def test_three_controllers_of_different_kinds_share_a_scene() -> None:
    other = poise.load_character("humanoid")
    world = poise.World([HUMANOID, DOG, other, CRATE, BALL], dt=1 / 120)
    stance = poise.State(np.array([*(0.0, 2.0), *HUMANOID.rest_q[2:]]))
    motions: dict[str, Any] = {
        "humanoid": stance,
        "dog": TROT.moved((0, -2, 0)),
        "humanoid-2": WALK,
    }
    world.reset({"humanoid": stance, "dog": motions["dog"].state(0.0), "humanoid-2": WALK.state(0)})
    controllers = poise.Controllers(
        {
            "humanoid": poise.Balance(world, part="humanoid"),
            "dog": poise.StablePD(world, part="dog", root="soft"),
            "humanoid-2": poise.InverseDynamics(world, part="humanoid-2", root="held"),
        }
    )
    poise.run(world, controllers, motions, 1.0)
    assert np.linalg.norm(place(world, "humanoid") - stance.q[:3]) < 0.02
    assert np.linalg.norm(place(world, "dog") - motions["dog"].q(1.0)[:3]) < 0.05
    assert np.linalg.norm(place(world, "humanoid-2") - WALK.q(1.0)[:3]) < 0.05
    assert place(world, "crate")[2] == pytest.approx(0.1, abs=1e-3)
    assert place(world, "ball")[2] == pytest.approx(0.1, abs=1e-3)


def test_joined_drives_are_those_of_each_part_alone() -> None:
    world = poise.World([HUMANOID, DOG], dt=1 / 60, contact=None)
    start = {"humanoid": WALK.state(0.0), "dog": TROT.state(0.0)}
    joined = poise.Controllers(
        {
            "humanoid": poise.StablePD(world, part="humanoid", root="soft"),
            "dog": poise.StablePD(world, part="dog", root="held", frequency=12),
        }
    )
    world.reset(start)
    poise.run(world, joined, {"humanoid": WALK, "dog": TROT}, 0.5)
    for character, clip, options in (
        (HUMANOID, WALK, {"root": "soft"}),
        (DOG, TROT, {"root": "held", "frequency": 12}),
    ):
        alone = poise.World(character, dt=1 / 60, contact=None)
        alone.reset(clip.state(0.0))
        poise.run(alone, poise.StablePD(alone, **options), clip, 0.5)
        q = world.state.q[world.part(character.name).q]
        np.testing.assert_allclose(q, alone.state.q, rtol=0, atol=1e-11)


def test_a_part_runs_in_batches_with_masses_of_its_own() -> None:
    n = 5
    mass = np.tile([link.mass for c in (HUMANOID, CRATE) for link in c.links], (n, 1))
    mass *= np.linspace(0.8, 1.2, n)[:, None]
    world = scene(CRATE, n=n, mass=mass)
    servo = poise.StablePD(world, root="soft")
    poise.run(world, servo, WALK, 0.5)
    assert servo.gains.kp.shape == (n, HUMANOID.nv)
    assert not world.torque[:, world.part("crate").v].any()
    assert np.abs(place(world, "humanoid") - WALK.q(0.5)[:3]).max() < 0.1


def test_a_number_never_drives_a_free_root() -> None:
    world = poise.World(HUMANOID, dt=1 / 60, ground=False)
    servo = poise.StablePD(world, poise.Gains(HUMANOID, 2000.0, 200.0), root="free")
    poise.run(world, servo, poise.State(HUMANOID.rest_q), 1.0)
    assert not world.torque[:6].any()
    # semi-implicit: g t (t + dt) / 2
    assert HUMANOID.rest_q[2] - world.state.q[2] == pytest.approx(0.5 * 9.81 * 61 / 60, rel=1e-3)


def test_root_decides_whatever_gains_are_given() -> None:
    gains = poise.suggest_gains(HUMANOID, 16.0)
    held = poise.StablePD(HUMANOID, gains, root="held").gains
    assert (held.kp[:6] == 20000.0).all()
    assert (held.kd[:6] == 2000.0).all()
    np.testing.assert_array_equal(held.kp[6:], gains.kp[6:])
    soft = poise.StablePD(HUMANOID, gains, root="soft").gains
    np.testing.assert_allclose(soft.kp, poise.suggest_gains(HUMANOID, 16.0, root="soft").kp)
    assert not poise.StablePD(HUMANOID, held).gains.kp[:6].any()
    mine = poise.Gains(HUMANOID, np.full(HUMANOID.nv, 500.0), np.full(HUMANOID.nv, 50.0))
    assert poise.StablePD(HUMANOID, mine, root="held").gains is mine


def test_a_held_root_stays_where_gains_have_none_for_it() -> None:
    world = poise.World(HUMANOID, dt=1 / 60, ground=False)
    servo = poise.StablePD(world, poise.suggest_gains(HUMANOID, 16), root="held")
    poise.run(world, servo, poise.State(HUMANOID.rest_q), 1.0)
    assert abs(world.state.q[2] - HUMANOID.rest_q[2]) < 0.05


def test_a_controller_of_another_scene_is_refused_with_the_remedy() -> None:
    world = scene(CRATE)
    with pytest.raises(PoiseError, match=r"StablePD\(world, part='humanoid'\)"):
        world.step(poise.StablePD(HUMANOID)(world.state, WALK.target(0.0)))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda w: poise.StablePD(w, part="humanod"), ("part", "'humanod'", "humanoid")),
        (lambda w: poise.StablePD(w, part=[]), ("part", "one part")),
        (lambda w: poise.Balance(w), ("humanoid, dog", "part=")),
        (lambda w: poise.InverseDynamics(w, root="free"), ("one free root", "part='humanoid'")),
        (lambda w: poise.Controllers({}), ("parts to controllers",)),
        (
            lambda w: poise.Controllers({"dog": poise.StablePD(w, part="humanoid")}),
            ("'dog'", "'humanoid'", "part='dog'"),
        ),
        (lambda w: poise.Controllers({"dog": 3}), ("dog", "called with state and target")),
        (
            lambda w: poise.Controllers({"dog": poise.StablePD(w, part="dog")})(
                w.state, {"humanoid": WALK.target(0.0)}
            ),
            ("part", "'humanoid'", "dog"),
        ),
    ],
)
def test_mistakes_with_parts_are_named(make: Any, words: tuple[str, ...]) -> None:
    world = poise.World([HUMANOID, DOG, CRATE], dt=1 / 60)
    with pytest.raises(PoiseError) as error:
        make(world)
    for word in words:
        assert word in str(error.value)


def test_a_scene_of_objects_only_needs_a_name() -> None:
    world = poise.World([CRATE, BALL], dt=1 / 60)
    with pytest.raises(PoiseError, match="free objects"):
        poise.StablePD(world, root="held")
    servo = poise.StablePD(world, part="crate", root="held")
    poise.run(world, servo, poise.State(CRATE.rest_q), 0.5)
    assert place(world, "crate")[2] == pytest.approx(1.0, abs=0.01)
    assert place(world, "ball")[2] < 1.0


ASSIGNMENTS: dict[str, tuple[Any, str]] = {
    "world.dt": (lambda w, s: setattr(w, "dt", 0.1), "World(..., dt=...)"),
    "world.n": (lambda w, s: setattr(w, "n", 3), "World(..., n=...)"),
    "world.friction": (lambda w, s: setattr(w, "friction", 0.1), "World(..., friction=...)"),
    "world.restitution": (lambda w, s: setattr(w, "restitution", 1.0), "restitution=..."),
    "servo.frequency": (lambda w, s: setattr(s, "frequency", 3.0), "StablePD(..., frequency=...)"),
    "servo.root": (lambda w, s: setattr(s, "root", "held"), "StablePD(..., root=...)"),
    "kane.gains": (
        lambda w, s: setattr(poise.InverseDynamics(w), "gains", s.gains),
        "InverseDynamics(..., stiffness=...)",
    ),
    "gains.kp": (lambda w, s: setattr(s.gains, "kp", 0.0), "Gains(character, kp, kd)"),
    "servo.dtype": (lambda w, s: setattr(s, "dtype", "flot32"), "'float32'"),
    "balance.ground_model": (
        lambda w, s: setattr(poise.Balance(w), "ground_model", "equal"),
        "'equality'",
    ),
    "world.mass": (lambda w, s: setattr(w, "mass", 1.0), "World(..., mass=...)"),
    "plant.dt": (lambda w, s: setattr(s.plant, "dt", 1.0), "Plant.of(world, part)"),
    "profiled.strength": (
        lambda w, s: setattr(poise.Profiled(s), "strength", 1.0),
        "Profiled(controller, strength=profile)",
    ),
    "servo.strenght": (lambda w, s: setattr(s, "strenght", None), "strength"),
}


@pytest.mark.parametrize("name", ASSIGNMENTS)
def test_an_assignment_without_effect_is_refused(name: str) -> None:
    assign, remedy = ASSIGNMENTS[name]
    world = poise.World(HUMANOID, dt=1 / 60)
    with pytest.raises(PoiseError) as error:
        assign(world, poise.StablePD(world))
    assert remedy in str(error.value)
    with pytest.raises(AttributeError):
        world.frction = 0.3  # type: ignore[attr-defined]


def test_gains_assigned_later_keep_to_the_root() -> None:
    servo = poise.StablePD(HUMANOID, root="soft")
    before = servo.gains.kp[:6].copy()
    servo.gains = poise.Gains(HUMANOID, 100.0, 10.0)
    np.testing.assert_allclose(servo.gains.kp[:6], before)
    assert (servo.gains.kp[6:] == 100.0).all()


FALLS = [("humanoid", 30), ("humanoid", 60), ("humanoid-ball", 60), ("dog", 60)]
MORE_FALLS = [(name, rate) for name in ("humanoid", "humanoid-ball", "dog") for rate in (120, 240)]


@pytest.mark.filterwarnings("ignore::poise.errors.FallWarning")
@pytest.mark.parametrize(
    ("name", "rate"), [*FALLS, *(pytest.param(*x, marks=pytest.mark.slow) for x in MORE_FALLS)]
)
def test_inverse_dynamics_ends_in_a_light_servo_after_a_fall(name: str, rate: int) -> None:
    character, n = poise.load_character(name), 4
    collides = name == "dog"
    world = poise.World(character, n=n, dt=1 / rate, on_divergence="raise", self_collision=collides)
    kane = poise.InverseDynamics(world, root="free")
    angle = np.linspace(0.0, 2.0 * np.pi, n, endpoint=False) + 0.3
    speed, duration = 3.6, 0.3
    force = np.stack([np.cos(angle), np.sin(angle), 0.0 * angle], axis=1)
    world.push(0, speed / duration * character.mass * force, duration)
    stance, highest, strongest = poise.State(character.rest_q), 0.0, 0.0
    for _ in range(4 * rate):
        world.step(kane(world.state, stance))
        highest = max(highest, float(world.state.q[:, 2].max()))
        strongest = max(strongest, float(np.abs(world.torque).max()))
    # the push alone lifts it by 0.66 m; its joints, before it has fallen, by some more
    assert highest < character.rest_q[2] + 1.3 * speed**2 / (2.0 * 9.81)
    assert strongest < 100.0 * character.mass
    _, told = kane.explain(world.state, stance)
    assert (told["standing"] == 0.0).all()
    assert np.abs(world.state.v).max() < 0.5


def test_a_fall_is_told_once() -> None:
    world = poise.World(HUMANOID, dt=1 / 60)
    kane, stance = poise.InverseDynamics(world), poise.State(HUMANOID.rest_q)
    world.push("chest", (600.0, 0.0, 0.0), 0.2)
    with pytest.warns(poise.errors.FallWarning, match="'humanoid' has fallen at") as told:
        poise.run(world, kane, stance, 2.0)
    assert len(told) == 1


def swapped() -> poise.Character:
    """The humanoid with left and right exchanged in the order of its links."""
    names = {"left": "right", "right": "left"}
    links = []
    for link in HUMANOID.links:
        side = link.name.split("_")[0]
        other = HUMANOID.link(link.name.replace(side, names[side], 1)) if side in names else link
        links.append(other)
    return poise.Character("humanoid", tuple(links), HUMANOID.limbs)


def test_a_clip_of_another_body_with_as_many_coordinates_is_refused() -> None:
    other = swapped()
    assert other.nq == HUMANOID.nq
    clip = poise.Clip(other, np.tile(other.rest_q, (3, 1)), 30.0, name="mirror")
    world = poise.World(HUMANOID, dt=1 / 60)
    servo = poise.StablePD(world)
    for follow in (
        lambda: servo(world.state, clip.target(0.0)),
        lambda: poise.run(world, servo, clip, 0.1),
        lambda: poise.Balance(world)(world.state, clip.target(0.0)),
        lambda: world.reset(clip.state(0.0)),
    ):
        with pytest.raises(PoiseError, match=r"clip 'mirror'.*another order: .*retargeted"):
            follow()


def test_a_clip_fits_a_body_of_other_masses() -> None:
    heavy = poise.Character(
        "heavy", tuple(replace(link, mass=2.0 * link.mass) for link in HUMANOID.links)
    )
    world = poise.World(heavy, dt=1 / 60)
    world.reset(WALK.state(0.0))
    poise.run(world, poise.StablePD(world, root="soft"), WALK, 0.2)
    assert np.linalg.norm(place(world, "heavy") - WALK.q(0.2)[:3]) < 0.05


def test_controllers_that_command_accelerations_are_joined() -> None:
    world = poise.World([HUMANOID, CRATE, DOG], dt=1 / 1000, contact="penalty")
    world.reset({"dog": poise.State(np.array([*(0.0, 3.0), *DOG.rest_q[2:]]))})
    stance, dog = poise.State(HUMANOID.rest_q), poise.State(world.state.q[world.part("dog").q])
    controllers = poise.Controllers(
        {
            "humanoid": poise.Balance(world, part="humanoid"),
            "dog": poise.StablePD(world, part="dog", root="held"),
        }
    )
    poise.run(world, controllers, {"humanoid": stance, "dog": dog}, 0.2)
    assert np.abs(place(world, "humanoid") - HUMANOID.rest_q[:3]).max() < 0.01
    assert np.abs(place(world, "dog") - dog.q[:3]).max() < 0.01
    assert place(world, "crate")[2] < 0.85


@pytest.mark.parametrize("forms", [("spd", "implicit"), ("explicit", "spd")])
def test_drives_of_different_forms_are_those_of_each_part_alone(forms: tuple[str, str]) -> None:
    world = poise.World([HUMANOID, DOG], dt=1 / 480, contact=None)
    world.reset({"humanoid": WALK.state(0.0), "dog": TROT.state(0.0)})
    options: list[dict[str, Any]] = [{"root": "held", "form": form} for form in forms]
    joined = poise.Controllers(
        {
            "humanoid": poise.StablePD(world, part="humanoid", **options[0]),
            "dog": poise.StablePD(world, part="dog", **options[1]),
        }
    )
    poise.run(world, joined, {"humanoid": WALK, "dog": TROT}, 0.02)
    for clip, own in zip((WALK, TROT), options, strict=True):
        alone = poise.World(clip.character, dt=1 / 480, contact=None)
        alone.reset(clip.state(0.0))
        poise.run(alone, poise.StablePD(alone, **own), clip, 0.02)
        q = world.state.q[world.part(clip.character.name).q]
        np.testing.assert_allclose(q, alone.state.q, rtol=0, atol=1e-11)


def test_joined_drives_keep_the_pins_of_each_part() -> None:
    world = poise.World([HUMANOID, DOG], dt=1 / 60)
    dog = poise.suggest_gains(DOG, 8.0)
    stiff = poise.Gains(DOG, dog.kp, dog.kd, pin_frequency=20.0)
    controllers = poise.Controllers(
        {
            "humanoid": poise.StablePD(world, part="humanoid", pin=np.zeros(len(HUMANOID.links))),
            "dog": poise.StablePD(world, stiff, part="dog", pin=np.ones(len(DOG.links))),
        }
    )
    targets = {"humanoid": poise.State(HUMANOID.rest_q), "dog": poise.State(DOG.rest_q)}
    drive = controllers(world.state, targets).drive
    assert drive is not None
    np.testing.assert_allclose(drive.gains.pin[world.part("dog").links], stiff.pin)


def test_gains_of_another_character_are_refused() -> None:
    dog, snake = DOG, poise.load_character("snake-72")
    assert dog.nv == snake.nv
    for make in (poise.StablePD, poise.PD):
        with pytest.raises(PoiseError, match="gains are of another character: dog has no joint"):
            make(dog, poise.suggest_gains(snake), root="soft")


def test_every_door_refuses_a_clip_of_another_body() -> None:
    other = swapped()
    clip = poise.Clip(other, np.tile(other.rest_q, (3, 1)), 30.0, name="mirror")
    world = poise.World(HUMANOID, dt=1 / 60)
    balance = poise.Balance(world)
    for follow in (
        lambda: poise.run(world, balance, balance.scale_time(clip), 0.1),
        lambda: world.step(poise.Command(drive=poise.Drive(balance._servo, clip.target(0.0)))),  # type: ignore[arg-type]
        lambda: poise.Recording(world).append(clip.target(0.0)),
        lambda: world.reset(clip.state(0.0).copy()),
    ):
        with pytest.raises(PoiseError, match="clip 'mirror' is a motion of"):
            follow()


def test_a_part_is_reset_without_changing_the_clock() -> None:
    world = scene(CRATE)
    world.step(steps=30)
    world.reset({"crate": poise.State(CRATE.rest_q)})
    assert float(world.time) == pytest.approx(0.5)
    world.reset({"humanoid": WALK.state(1.5)})
    assert world.time == 1.5
    both = poise.World([HUMANOID, DOG], dt=1 / 60)
    with pytest.raises(PoiseError, match=r"different times, 1 s, and 0.3 s of 'dog'"):
        both.reset({"humanoid": WALK.state(1.0), "dog": TROT.state(0.3)})


def test_a_controller_of_ones_own_may_have_attributes() -> None:
    class Counting(poise.StablePD):
        def __init__(self, world: poise.World) -> None:
            super().__init__(world)
            self.count = 0

        def __call__(self, state: Any, target: Any) -> poise.Command:
            self.count += 1
            return super().__call__(state, target)

    world = poise.World(HUMANOID, dt=1 / 60)
    servo = Counting(world)
    poise.run(world, servo, poise.State(HUMANOID.rest_q), 0.1)
    assert servo.count == 1


@pytest.mark.filterwarnings("ignore::poise.FallWarning")
def test_a_fallen_character_stays_fallen_though_its_target_comes_near() -> None:
    clip = poise.load_clip("cartwheel")
    world = poise.World(HUMANOID, dt=1 / 60)
    world.reset(clip.state(0.0))
    kane = poise.InverseDynamics(world)
    world.push(0, (0.0, -8.0 * HUMANOID.mass, 0.0), 0.3, at=0.2)
    fell, strongest, highest = False, 0.0, 0.0
    for t in world.until(clip.duration):
        world.step(kane(world.state, clip.target(t + world.dt)))
        assert bool(kane.memory[0]) or not fell
        fell = bool(kane.memory[0])
        if fell:
            strongest = max(strongest, float(np.abs(world.torque).max()))
        highest = max(highest, float(world.state.q[2]))
    assert fell
    # most is the damping of limbs that swing; inverse dynamics would need thousands
    assert strongest < 0.7 * 9.81 * HUMANOID.mass
    assert highest < 1.8


def test_after_a_reset_a_fallen_character_stands_again() -> None:
    world = poise.World(HUMANOID, dt=1 / 60)
    kane, stance = poise.InverseDynamics(world), poise.State(HUMANOID.rest_q)
    for _ in range(2):
        world.reset(stance)
        world.push("chest", (600.0, 0.0, 0.0), 0.2)
        with pytest.warns(poise.FallWarning, match="has fallen at"):
            poise.run(world, kane, stance, 1.5)


def test_without_ground_inverse_dynamics_has_nothing_to_fall_on() -> None:
    world = poise.World(HUMANOID, dt=1 / 60, contact=None)
    kane = poise.InverseDynamics(world)
    poise.run(world, kane, poise.State(HUMANOID.rest_q), 1.0)
    assert not kane.memory.any()


def test_a_profiled_controller_keeps_its_hold_and_its_memory() -> None:
    world = poise.World(HUMANOID, dt=1 / 1000, contact="penalty")
    balance = poise.Balance(world)
    profiled = poise.Profiled(balance)
    assert profiled.requires.steps == balance.requires.steps > 1
    assert profiled.memory.shape == balance.memory.shape
