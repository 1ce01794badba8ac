"""Measures: numbers computed from states and contacts.

Every function takes states with leading batch or time axes and reduces nothing: callers choose
between mean, percentile and largest with `summary`.

Contacts come as a world gives them: flat rows, each with the copy it belongs to (`Contacts`). They
become arrays with leading axes by `copies`: () for a world of one, n or (n,) for n copies, (k, n)
for k frames put together by `stacked`. A World in place of contacts stands for those of its last
step, with the axis of its copies: `ground_reaction(world)`, `support_polygon(world)`. Points that
are undefined, as the center of pressure of a foot in the air, are NaN; a force that is not there is
0.
"""

from __future__ import annotations

from poise.math.polygon import Polygons, convex_hulls
from poise.math.polygon import edge_distance as support_margin
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
from poise.measure.contact_rows import (
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
from poise.measure.effort import jitter, joint_power, joint_torque, power, torque_fraction, work
from poise.measure.falling import (
    FALLEN,
    allowed_on_ground,
    body_on_ground,
    fallen,
    head_height,
)
from poise.measure.foot_sliding import Footing, footing, sinking, slip
from poise.measure.ground_reaction import (
    Reaction,
    center_of_pressure,
    centroidal_moment_pivot,
    foot_reactions,
    ground_reaction,
    support_polygon,
)
from poise.measure.tracking import (
    Summary,
    TrackingError,
    by_link,
    summary,
    tracking_error,
    turns_per_frame,
)

__all__ = [
    "FALLEN",
    "Energy",
    "Footing",
    "Momentum",
    "Polygons",
    "Reaction",
    "Summary",
    "TrackingError",
    "Wrench",
    "allowed_on_ground",
    "body_on_ground",
    "by_link",
    "center_of_mass",
    "center_of_mass_velocity",
    "center_of_pressure",
    "centroidal_moment_pivot",
    "closed",
    "contact_wrench",
    "contacts_of",
    "convex_hulls",
    "energy",
    "external_rate",
    "fallen",
    "feet_links",
    "foot_reactions",
    "footing",
    "ground_contacts",
    "ground_reaction",
    "head_height",
    "jitter",
    "joint_power",
    "joint_torque",
    "link_wrenches",
    "mass",
    "momentum",
    "momentum_rate",
    "per_copy",
    "power",
    "sinking",
    "slip",
    "stacked",
    "summary",
    "support_margin",
    "support_polygon",
    "torque_fraction",
    "tracking_error",
    "turns_per_frame",
    "work",
]
