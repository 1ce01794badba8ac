"""poise: simulated characters that follow a motion."""

from poise import _core, dynamics
from poise.characters import load_character
from poise.control import (
    PD,
    Balance,
    Controllers,
    Gains,
    InverseDynamics,
    Profile,
    Profiled,
    StablePD,
    check_gains,
    make_controller,
    suggest_gains,
)
from poise.errors import (
    CharacterError,
    ClipError,
    ClipNotice,
    Diverged,
    FallWarning,
    PoiseError,
    UnfollowableTarget,
)
from poise.model.character import Character, Joint, Link, Shape, free_object
from poise.motion import Clip, load_clip
from poise.recording import Recording, load_recording
from poise.simulation.command import Command, Drive, Target
from poise.simulation.contact import HeightField, Plane
from poise.simulation.controller import Controller
from poise.simulation.pushes import Push
from poise.simulation.run import run
from poise.simulation.state import State
from poise.simulation.world import World

__version__ = _core.build_info()["version"]


def _notebook_html(motion: Clip | Recording) -> str:
    """Draws a clip or a recording for a notebook; imports the viewer when it is called."""
    from poise.view.contact_sheet import notebook_html

    return notebook_html(motion)


Clip._draw_html = Recording._draw_html = staticmethod(_notebook_html)

__all__ = [
    "PD",
    "Balance",
    "Character",
    "CharacterError",
    "Clip",
    "ClipError",
    "ClipNotice",
    "Command",
    "Controller",
    "Controllers",
    "Diverged",
    "Drive",
    "FallWarning",
    "Gains",
    "HeightField",
    "InverseDynamics",
    "Joint",
    "Link",
    "Plane",
    "PoiseError",
    "Profile",
    "Profiled",
    "Push",
    "Recording",
    "Shape",
    "StablePD",
    "State",
    "Target",
    "UnfollowableTarget",
    "World",
    "check_gains",
    "dynamics",
    "free_object",
    "load_character",
    "load_clip",
    "load_recording",
    "make_controller",
    "run",
    "suggest_gains",
]
