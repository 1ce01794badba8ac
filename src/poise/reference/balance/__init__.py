"""Reference implementation of the balance solver in NumPy, to read and to test the core against.

`plan` has the optimization, with `momentum` for the desired rates of momentum and `least_squares`
for the solvers, by LAPACK and daqp. Settings are those of a `poise.Balance` and its `params`.
"""

from poise.reference.balance.plan import Plan, solve

__all__ = ["Plan", "solve"]
