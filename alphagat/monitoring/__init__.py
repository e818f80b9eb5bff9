"""Monitoring: the display of a running run, its live ratings, and metrics as text and curves."""
