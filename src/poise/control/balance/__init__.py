"""Balance by momentum: `poise.Balance` (macchietto2008)."""

from poise.control.balance.balance import Balance
from poise.control.balance.pace import Paced
from poise.control.balance.stance import Schedule

__all__ = ["Balance", "Paced", "Schedule"]
