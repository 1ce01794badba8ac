"""Bounds of what a page may ask: wide enough to play, too narrow to hurt."""

MOST_CHARACTERS = 20
MOST_OBJECTS = 16
MOST_LINKS = 100_000

SLOWEST, FASTEST = 0.01, 4.0  # pace against real time
MOST_STEPS = 240  # at once
SHORTEST_STEP, LONGEST_STEP = 1e-4, 0.05  # [s]

MOST_GRAVITY = 50.0  # [m/s^2], along each axis
MOST_FRICTION = 5.0

LOWEST_FREQUENCY, HIGHEST_FREQUENCY = 0.1, 500.0  # of joints [Hz]
LEAST_DAMPING, MOST_DAMPING = 0.05, 10.0  # ratio
MOST_STRENGTH = 4.0
MOST_PIN = 10.0
LONGEST_HOLD = 60.0  # of a profile [s]
MOST_GOALS = 8
MOST_PROFILES = 8

SMALLEST_OBJECT, LARGEST_OBJECT = 0.05, 2.0  # [m]
LIGHTEST, HEAVIEST = 0.05, 500.0  # [kg]
SLOWEST_BALL, FASTEST_BALL = 0.5, 40.0  # [m/s]

MOST_FORCE = 20_000.0  # [N]
SHORTEST_PUSH, LONGEST_PUSH = 1e-3, 10.0  # [s]

FARTHEST = 1000.0  # from the origin, along each axis [m]
