"""Engines: host players that move in one position at a time.

`base` defines the interface. `gtp` and `uci` drive external programs, `solver` plays perfectly.
"""
