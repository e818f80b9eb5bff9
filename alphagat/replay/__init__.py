"""Replay: `make_replay`, `add` and `sample` on one ring buffer; `jax.vmap` gives one ring per group of games."""

from alphagat.replay.ring import Replay, add, make_replay, sample

__all__ = ["Replay", "add", "make_replay", "sample"]
