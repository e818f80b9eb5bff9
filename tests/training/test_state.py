"""The run state: its sharding, and the same initial values on any number of devices."""

import chex
import jax
import numpy as np
import pytest
from jax.sharding import PartitionSpec

from alphagat.runtime import sharding
from alphagat.training.state import init_state, state_shapes, state_shardings
from tests.training.tiny import run_of, tiny_run, tiny_setup


def test_specs_shard_groups_and_replicate_the_rest(states):
    sharded = {
        jax.tree_util.keystr(path)
        for path, leaf in jax.tree_util.tree_leaves_with_path(states[8])
        if leaf.sharding.spec == PartitionSpec("data")
    }
    assert {name.split(".")[2].split("[")[0] for name in sharded} == {"games", "replay", "groups"}
    assert all(name.startswith(".boards[0].") for name in sharded)


@pytest.fixture(scope="module")
def states():
    return {size: init_state(tiny_run(size)) for size in (1, 8)}


def test_initial_state_is_equal_on_one_and_eight_devices(states):
    chex.assert_trees_all_equal(states[1], states[8], strict=True)
    eight = states[8]
    assert jax.tree.map(lambda x: x.sharding, eight) == state_shardings(sharding.make_mesh(8), eight)
    for leaf in jax.tree.leaves((eight.boards[0].games, eight.boards[0].replay, eight.boards[0].groups)):
        assert leaf.addressable_shards[0].data.shape == (1, *leaf.shape[1:])
    shapes = jax.tree.map(lambda x: (x.shape, x.dtype), states[1])
    assert shapes == jax.tree.map(lambda x: (x.shape, x.dtype), state_shapes(tiny_run()))
    assert eight.boards[0].groups.tolist() == list(range(8))
    assert int(eight.iteration) == 0
    assert int(eight.train.step) == 0


def test_seeds_change_parameters_and_keys(states):
    setup = tiny_setup()
    setup.config.seed = 1
    other = init_state(run_of(setup, sharding.make_mesh(1)))
    assert not np.array_equal(states[1].key, other.key)
    one_kernel, other_kernel = (x.train.params["params"]["features"]["kernel"] for x in (states[1], other))
    assert not np.array_equal(one_kernel, other_kernel)
