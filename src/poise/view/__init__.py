"""Pictures of characters and of what happened. The viewer is a guest: nothing imports it."""

from poise.view.contact_sheet import contact_sheet
from poise.view.drawing import Mesh, Primitive, drawing_of
from poise.view.render import Camera, follow, look_at, render, save_image

__all__ = [
    "Camera",
    "Mesh",
    "Primitive",
    "contact_sheet",
    "drawing_of",
    "follow",
    "look_at",
    "render",
    "save_image",
]
