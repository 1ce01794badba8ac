"""Recordings: what happened in a world, to keep, to look at and to go on from."""

from poise.recording.recording import Recording, load_recording

__all__ = ["Recording", "load_recording"]
