"""Engines on standard input and output: GTP, UCI, and JSON lines."""
