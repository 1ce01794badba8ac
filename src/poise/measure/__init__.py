"""Measures: the only place that turns states and contacts into numbers.

Every function takes states with leading batch or time axes and reduces nothing: callers choose
between mean, percentile and largest with `summary`.

Contacts come as a world gives them: flat rows, each with the copy it belongs to (`Contacts`). They
become arrays with leading axes by `copies`: () for a world of one, n or (n,) for n copies, (k, n)
for k frames put together by `stacked`. A place that nothing determines, as the centre of pressure
of a foot in the air, is NaN; a force that is not there is 0.
"""

from __future__ import annotations

from poise.measure.centroid import (
    Energy,
    Momentum,
    center_of_mass,
    center_of_mass_velocity,
    energy,
    external_rate,
    mass,
    momentum,
    momentum_rate,
)
from poise.measure.effort import jitter, joint_power, joint_torque, power, torque_share, work
from poise.measure.falling import (
    FALLEN,
    allowed_on_ground,
    fallen,
    head_height,
    head_of,
    lying,
)
from poise.measure.footing import Footing, footing, sinking, slip
from poise.measure.pressure import (
    Reaction,
    center_of_pressure,
    centroidal_moment_pivot,
    foot_reactions,
    ground_reaction,
)
from poise.measure.support import Support, polygon_of, support_margin, support_polygon
from poise.measure.touching import (
    Wrench,
    closed,
    contact_wrench,
    contacts_of,
    feet_links,
    ground_contacts,
    link_wrenches,
    per_copy,
    stacked,
)
from poise.measure.tracking import (
    Summary,
    TrackingError,
    by_link,
    limb_directions,
    summary,
    tracking_error,
    turns_per_frame,
)

__all__ = [
    "FALLEN",
    "Energy",
    "Footing",
    "Momentum",
    "Reaction",
    "Summary",
    "Support",
    "TrackingError",
    "Wrench",
    "allowed_on_ground",
    "by_link",
    "center_of_mass",
    "center_of_mass_velocity",
    "center_of_pressure",
    "centroidal_moment_pivot",
    "closed",
    "contact_wrench",
    "contacts_of",
    "energy",
    "external_rate",
    "fallen",
    "feet_links",
    "foot_reactions",
    "footing",
    "ground_contacts",
    "ground_reaction",
    "head_height",
    "head_of",
    "jitter",
    "joint_power",
    "joint_torque",
    "limb_directions",
    "link_wrenches",
    "lying",
    "mass",
    "momentum",
    "momentum_rate",
    "per_copy",
    "polygon_of",
    "power",
    "sinking",
    "slip",
    "stacked",
    "summary",
    "support_margin",
    "support_polygon",
    "torque_share",
    "tracking_error",
    "turns_per_frame",
    "work",
]
