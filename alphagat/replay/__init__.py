"""Replay: `make_replay`, `add`, `sample` over one ring; `jax.vmap` makes one ring per group of games."""

from alphagat.replay.ring import Replay, add, make_replay, sample

__all__ = ["Replay", "add", "make_replay", "sample"]
