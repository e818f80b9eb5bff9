"""Trained players for other programs and for people: analysis of positions, and the protocols that ask for it."""
