"""Numbers: checked arrays, rotations, poses, polygons and splines."""
