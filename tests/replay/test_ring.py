import collections

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from alphagat.replay import add, make_replay, sample


def block(start, length):
    numbers = np.arange(start, start + length, dtype=np.int32)
    return {"number": jnp.asarray(numbers), "pair": jnp.asarray(np.stack([numbers, -numbers], axis=1) * 0.5)}


def held(replay):
    return np.asarray(replay.samples["number"])[: int(replay.size)]


EXAMPLE = {"number": jnp.int32(0), "pair": jnp.zeros(2)}


@pytest.mark.parametrize("chance_of_valid", [1.0, 0.6])
def test_ring_matches_deque(chance_of_valid):
    capacity, length = 12, 3
    replay, reference = make_replay(EXAMPLE, capacity), collections.deque(maxlen=capacity)
    generator, jitted = np.random.default_rng(0), jax.jit(add)
    for number in range(1, 40):
        valid = bool(generator.random() < chance_of_valid)
        new = block(number * length, length)
        replay = jitted(replay, new, jnp.bool_(valid))
        if valid:
            reference.extend(new["number"].tolist())
        assert sorted(held(replay).tolist()) == sorted(reference)
        # Leaves stay together.
        filled = slice(0, int(replay.size))
        assert (replay.samples["pair"][filled, 0] == replay.samples["number"][filled] * 0.5).all()
        assert replay.capacity == capacity
    assert len(reference) == capacity


def test_oldest_samples_are_overwritten_first():
    replay = make_replay(EXAMPLE, 6)
    for start in (0, 2, 4, 6):
        replay = add(replay, block(start, 2), jnp.bool_(True))
    assert held(replay).tolist() == [6, 7, 2, 3, 4, 5]
    assert int(replay.cursor) == 2


def test_invalid_block_changes_nothing():
    replay = make_replay(EXAMPLE, 6)
    for start in (100, 200):
        replay = add(replay, block(start, 3), jnp.bool_(False))
        assert (int(replay.size), int(replay.cursor)) == (0, 0)
    replay = add(replay, block(1, 3), jnp.bool_(True))
    assert held(replay).tolist() == [1, 2, 3]


def test_blocks_never_wrap():
    with pytest.raises(ValueError, match="capacity 10 is not a multiple of the block's length 4"):
        add(make_replay(EXAMPLE, 10), block(0, 4), jnp.bool_(True))


def test_dtypes_are_preserved():
    replay = add(make_replay(EXAMPLE, 4), block(0, 2), jnp.bool_(True))
    assert replay.samples["number"].dtype == replay.cursor.dtype == replay.size.dtype == jnp.int32
    assert replay.samples["pair"].shape == (4, 2)


@pytest.mark.parametrize("num_blocks", [1, 2, 5])
def test_samples_are_uniform_over_valid_entries(num_blocks):
    replay = make_replay(EXAMPLE, 20)
    for number in range(num_blocks):
        replay = add(replay, block(1 + 5 * number, 5), jnp.bool_(True))
    replay = add(replay, block(1000, 5), jnp.bool_(False)) if num_blocks < 4 else replay
    valid = np.sort(held(replay))
    drawn = jax.jit(sample, static_argnums=2)(replay, jax.random.key(0), 400 * len(valid))
    numbers, counts = np.unique(np.asarray(drawn["number"]), return_counts=True)
    assert numbers.tolist() == valid.tolist()
    freedom = len(valid) - 1
    assert ((counts - 400) ** 2 / 400).sum() < freedom + 4 * np.sqrt(2 * freedom)
    assert (drawn["pair"][:, 0] == drawn["number"] * 0.5).all()


def test_vmap_keeps_one_ring_per_group():
    replay = jax.vmap(lambda _: make_replay(EXAMPLE, 4))(jnp.arange(3))
    blocks = jax.vmap(lambda start: jax.tree.map(lambda x: x + start.astype(x.dtype), block(0, 2)))(jnp.arange(3) * 10)
    replay = jax.vmap(add, in_axes=(0, 0, None))(replay, blocks, jnp.bool_(True))
    assert replay.samples["number"][:, :2].tolist() == [[0, 1], [10, 11], [20, 21]]
    drawn = jax.vmap(sample, in_axes=(0, 0, None))(replay, jax.random.split(jax.random.key(0), 3), 50)
    assert [set(row) for row in drawn["number"].tolist()] == [{0, 1}, {10, 11}, {20, 21}]
