"""Anatomy: what a link is. Sides, limbs, feet, head and heading; rigs, skeletons, strength."""
