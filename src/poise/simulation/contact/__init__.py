"""Contact: what can touch what, compiled for the core.

Every shape of every link is a collider, so are obstacles. The ground meets *probes*: balls and
corners of the shapes. Pairs of shapes meet each other, but for those of one link, of a link and
the link it hangs on, and those that overlap in the rest pose. Where meshes and cylinders touch is
found outside of the core, by `poise.simulation.contact.convex`.
"""

from poise.simulation.contact.ground import GroundLike, HeightField, Plane
from poise.simulation.contact.spares import MOST_PROJECTILES, default_projectiles
from poise.simulation.contact.touch import MODELS, CollisionModel, compile_collision_model
from poise.simulation.contact.touches import Contacts

__all__ = [
    "MODELS",
    "MOST_PROJECTILES",
    "GroundLike",
    "HeightField",
    "Plane",
    "CollisionModel",
    "Contacts",
    "compile_collision_model",
    "default_projectiles",
]
