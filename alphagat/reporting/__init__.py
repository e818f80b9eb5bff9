"""One page about a run: its curves, sample games, what its network attends to, its config and its machines."""
