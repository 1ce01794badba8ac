"""What is unphysical in a clip, and when.

Every check compares a number with a bound, and says where it is worst and in which times it is
beyond. Contacts are the clip's own, or detected. Checks that do not apply (a fish has no feet) say
so. Motion capture has noise, of which accelerations and forces are full: smooth such a clip first.
"""

from __future__ import annotations

from poise.errors import ClipError
from poise.motion.checks import claims, gait, strength
from poise.motion.checks.claims import Analysis, Finding
from poise.motion.clip import Clip


def check(clip: Clip) -> list[Finding]:
    """All findings about a clip, the physical ones first.

    Args:
        clip: The motion; it needs two frames.
    """
    if len(clip) < 2:
        raise ClipError(f"clip {clip.name!r} has one frame: there is no motion to check")
    analysis = Analysis(clip)
    physical = (
        claims.check_continuity,
        claims.check_free_fall,
        claims.check_angular_momentum,
        claims.check_standing_feet,
        claims.check_limits,
        claims.check_ground_reaction,
        strength.check_strength,
    )
    return [one(analysis) for one in physical] + gait.findings(analysis)


__all__ = ["Finding", "check"]
