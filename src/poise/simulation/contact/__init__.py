"""Contact: what can touch what, compiled for the core.

Every shape of every link is a collider, so are obstacles. The ground meets *probes*: balls and
corners of the shapes. Pairs of shapes meet each other, but for those of one link, of a link and
the link it hangs on, and those that overlap in the rest pose. Where meshes and cylinders touch is
found outside of the core, by `poise.simulation.contact.convex`.
"""

from poise.simulation.contact.ground import GroundLike, HeightField, Plane
from poise.simulation.contact.spares import MOST_SPARES, default_spares
from poise.simulation.contact.touch import MODELS, Touch, compile_touch
from poise.simulation.contact.touches import Touches

__all__ = [
    "MODELS",
    "MOST_SPARES",
    "GroundLike",
    "HeightField",
    "Plane",
    "Touch",
    "Touches",
    "compile_touch",
    "default_spares",
]
