"""Drawings of one family each; `games.svg` has the shapes and boards of tiles."""
