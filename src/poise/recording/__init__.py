"""Recordings: frames of a world, their files, and their summaries."""

from poise.recording.recording import Recording, load_recording

__all__ = ["Recording", "load_recording"]
