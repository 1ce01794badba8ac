"""Contact: what can touch what, compiled for the core.

Every shape of every link is a collider, so are obstacles. The ground meets *probes*: balls and
corners of the shapes. Pairs of shapes meet each other, but for those of one link, of a link and
the link it hangs on, and those that overlap in the rest pose. Meshes are compiled to hulls.
"""

from poise.simulation.contact.collision_model import (
    MODELS,
    MOST_PROJECTILES,
    CollisionModel,
    Projectiles,
    compile_collision_model,
    default_projectiles,
)
from poise.simulation.contact.contacts import Contacts
from poise.simulation.contact.ground import GroundLike, HeightField, Plane

__all__ = [
    "MODELS",
    "MOST_PROJECTILES",
    "CollisionModel",
    "Contacts",
    "GroundLike",
    "HeightField",
    "Plane",
    "Projectiles",
    "compile_collision_model",
    "default_projectiles",
]
