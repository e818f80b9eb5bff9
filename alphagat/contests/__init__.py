"""Contests: players by name, and what `alphagat.match`, `alphagat.evaluate` and `alphagat.rate` do with them."""
