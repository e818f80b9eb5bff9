"""Contests: players by name, and the matches of `alphagat match`, `alphagat evaluate` and `alphagat rate`."""
