"""Monitoring: the display of a run in progress, its live ratings, and metrics as text and curves."""
