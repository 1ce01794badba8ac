"""The Chromium that tests and pictures of the docs drive."""

from __future__ import annotations

import os
import shutil

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--ignore-gpu-blocklist",
)
"""WebGL without a GPU: it works, slowly."""


def chromium() -> str:
    """Where it is: $POISE_CHROMIUM, or the system's; nothing if there is none."""
    return os.environ.get("POISE_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), "")
