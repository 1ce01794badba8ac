"""From a sketch to a motion that could be true: space-time optimisation and the ground's forces."""
