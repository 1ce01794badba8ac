"""Edits that make one clip from another: cut, place, smooth, mirror, loop, blend."""
