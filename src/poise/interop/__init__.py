"""Other engines: poise's characters, states and controllers inside them.

`poise.interop.mujoco` is the one there is. Nothing else imports it, and it loads MuJoCo when it is
first used.
"""
