"""Editing of clips: cutting, mirroring, joining, smoothing, preparation for balance.

Submodules are imported at first use: most need SciPy, which `import poise` must not wait for.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from poise.motion.editing import cutting as cutting
    from poise.motion.editing import joining as joining
    from poise.motion.editing import mirroring as mirroring
    from poise.motion.editing import prepare_balance as prepare_balance
    from poise.motion.editing import smoothing as smoothing


def __getattr__(name: str) -> ModuleType:
    try:
        return importlib.import_module(f"{__name__}.{name}")
    except ModuleNotFoundError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
