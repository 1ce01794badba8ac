"""The model: characters, joints, shapes, inertia, and the forest they compile into."""
