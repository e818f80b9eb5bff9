"""Engines: players that take one position at a time on the host.

`base` has their contract. `gtp` and `uci` drive other programs, `solver` plays perfectly.
"""
