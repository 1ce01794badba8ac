"""Pictures of what happened. The viewer is a guest: nothing imports it."""
