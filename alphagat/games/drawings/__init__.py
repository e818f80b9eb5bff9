"""Drawings of one family each: numbered tiles, chess pieces, and Go stones. `games.svg` has the shapes."""
