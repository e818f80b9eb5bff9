"""Pretraining: reads recorded games, and trains on them in place of self-play.

`dataset` reads and splits the games, `loader` draws batches, `program` makes the updates, `holdout` measures.
"""
