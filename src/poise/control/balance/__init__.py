"""Balance by momentum: `poise.Balance` (macchietto2008)."""

from poise.control.balance.balance import Balance
from poise.control.balance.supports import Schedule
from poise.control.balance.time_scaling import TimeScaled

__all__ = ["Balance", "Schedule", "TimeScaled"]
