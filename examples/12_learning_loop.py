"""The loop of reinforcement learning: observe, act, step, reset those that have fallen.

    python examples/12_learning_loop.py

256 humanoids, each on terrain of its own, squat in their own time. A policy would choose the
targets from the observations; here they come from a clip. Copies that fall start again with another
friction and other masses.
"""

import numpy as np

import poise
from poise import measure

N, TURNS = 256, 120
rng = np.random.default_rng(0)
humanoid = poise.load_character("humanoid")
squat = poise.load_clip("squat", humanoid)
terrain = poise.HeightField(rng.uniform(0.0, 0.03, (N, 33, 33)), spacing=0.25)
world = poise.World(humanoid, n=N, dt=1 / 120, dtype="float32", ground=terrain)
servo = poise.StablePD(world, frequency=8.0)
masses = np.array([link.mass for link in humanoid.links])

start = humanoid.rest_q.copy()
start[2] += 0.03  # above the highest point
world.reset(poise.State(start))

# what a policy would see, filled in place in every turn
q, v = np.empty((N, humanoid.nq), np.float32), np.empty((N, humanoid.nv), np.float32)
feet = np.empty((N, 2), bool)
soles = [("left_foot", "ground"), ("right_foot", "ground")]
grid = np.stack(np.meshgrid([-0.4, 0.0, 0.4], [-0.4, 0.0, 0.4]), axis=-1).reshape(-1, 2)

time, falls = rng.uniform(0.0, squat.duration, N), 0
for _ in range(TURNS):
    world.read(q=q, v=v, pair_contact=feet, pairs=soles)
    above = np.zeros((N, len(grid), 3))
    above[..., :2] = q[:, None, :2] + grid
    above[..., 2] = 2.0
    heights = 2.0 - world.ray(above, (0.0, 0.0, -1.0), links=False).distance  # (N, 9)

    time = (time + world.dt) % squat.duration
    action = squat.target(time).q  # (N, nq)
    world.step(servo(world.state, poise.Target(action)))

    fallen = np.flatnonzero(measure.fallen(world, ground=heights[:, 4]))
    if fallen.size:
        k, falls = (fallen.size, 1), falls + fallen.size
        friction, mass = rng.uniform(0.4, 1.0, k), masses * rng.uniform(0.8, 1.2, k)
        world.reset(poise.State(start), where=fallen, friction=friction, mass=mass)

print(f"{TURNS * N} character steps, {falls} falls, {feet.mean():.0%} of the feet on the ground")
