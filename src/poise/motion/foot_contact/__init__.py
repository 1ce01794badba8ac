"""Foot contact: detect it, plant and lock feet, repair the schedule of a capture."""
