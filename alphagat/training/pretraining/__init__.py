"""Pretraining: reads recorded games and trains on them instead of self-play.

`dataset` reads and splits the games, `loader` draws batches, `program` runs the updates, `holdout` evaluates.
"""
