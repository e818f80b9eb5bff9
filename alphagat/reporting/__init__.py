"""The report of a run, a self-contained page: curves, sample games, attention, config and machines."""
