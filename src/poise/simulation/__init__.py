"""Simulation: the world, its state, the commands it takes, and the loop that steps it."""
