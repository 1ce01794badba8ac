"""Pictures of characters and of what happened. The viewer is a guest: nothing imports it."""

from poise.view.camera import Camera, follow, follow_motion, look_at
from poise.view.contact_sheet import contact_sheet, frame_drawing, recording_sheet
from poise.view.drawing import Primitive, drawing_of, static_drawing
from poise.view.html import save_html
from poise.view.mesh import Mesh
from poise.view.overlays import arrow, marker, trail
from poise.view.plots import balance_plot
from poise.view.render import render, save_image
from poise.view.video import save_video

__all__ = [
    "Camera",
    "Mesh",
    "Primitive",
    "arrow",
    "balance_plot",
    "contact_sheet",
    "drawing_of",
    "follow",
    "follow_motion",
    "frame_drawing",
    "look_at",
    "marker",
    "recording_sheet",
    "render",
    "save_html",
    "save_image",
    "save_video",
    "static_drawing",
    "trail",
]
