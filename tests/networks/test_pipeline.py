"""A pipeline equals the network on one device, and its cut is optimal."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec

from alphagat.networks.pipeline import PipelinedNetwork, StagedParams, count_parts, cut_blocks
from alphagat.runtime import sharding
from tests.networks.boards import draw_params, ring_topology, small_gat

BATCH, FEATURES = 6, 3


def gat(num_blocks: int, *, remat: bool = False, precision: str = "float32"):
    topology = ring_topology(5)
    network = small_gat(topology, ("mixing", "attention"), num_blocks, remat=remat, precision=precision)
    nodes = jax.random.normal(jax.random.key(1), (BATCH, topology.num_nodes, FEATURES))
    return network, draw_params(network, nodes), nodes


def on_stages(function, num_stages: int):
    """Compiles a function of parameters and nodes on a mesh with stages, as a run does."""
    everywhere = PartitionSpec()
    mesh = sharding.make_mesh(1, 1, num_stages)
    return jax.jit(sharding.over_data(function, mesh, (everywhere, everywhere), everywhere))


def loss(apply, params, nodes):
    logits, value = apply(params, nodes)
    return (logits**2).mean() + value.sum()


@pytest.mark.parametrize(
    ("cut", "remat", "precision", "tolerance"),
    [((1, 1, 2), False, "float32", 2e-5), ((2, 1), True, "bfloat16", 2e-2)],
)
def test_outputs_and_gradients_equal_those_on_one_device(cut, remat, precision, tolerance):
    network, params, nodes = gat(sum(cut), remat=remat, precision=precision)
    pipelined = PipelinedNetwork(network, cut)
    expected = jax.jit(jax.value_and_grad(lambda params: loss(network.apply, params, nodes)))(params)

    def find(params, nodes):
        return jax.value_and_grad(lambda params: loss(pipelined.apply, params, nodes))(params)

    found = on_stages(find, len(cut))(params, nodes)
    largest = max(np.abs(leaf).max() for leaf in jax.tree.leaves(expected))
    for (path, one), other in zip(jax.tree_util.tree_leaves_with_path(expected), jax.tree.leaves(found), strict=True):
        np.testing.assert_allclose(one, other, atol=tolerance * largest, err_msg=jax.tree_util.keystr(path))


def test_placed_parameters_under_vmap():
    """Self-play evaluates groups under vmap, with parameters placed on their stages once."""
    network, params, nodes = gat(3)
    pipelined, groups = PipelinedNetwork(network, (1, 2)), jnp.stack([nodes, nodes[::-1]])

    def evaluate(params, groups):
        placed = pipelined.place(params)
        assert isinstance(placed, StagedParams)
        return jax.vmap(lambda nodes: pipelined.apply(placed, nodes))(groups)

    found = on_stages(evaluate, 2)(params, groups)
    expected = jax.jit(jax.vmap(lambda nodes: network.apply(params, nodes)))(groups)
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-5), expected, found)


def test_without_stages_the_network_runs_unpipelined():
    network, params, nodes = gat(2)
    pipelined = PipelinedNetwork(network, (1, 1))
    assert pipelined.place(params) is params
    expected, found = (jax.jit(each.apply)(params, nodes) for each in (network, pipelined))
    jax.tree.map(np.testing.assert_array_equal, expected, found)


@pytest.mark.parametrize(("num_blocks", "num_stages"), [(4, 1), (4, 4), (7, 3), (9, 4)])
def test_the_cut_minimizes_the_costliest_stage(num_blocks: int, num_stages: int):
    costs = np.random.default_rng(num_blocks).uniform(size=num_blocks + 2)

    def stage_cost(start: int, stop: int) -> float:
        return costs[1 + start : 1 + stop].sum() + costs[0] * (start == 0) + costs[-1] * (stop == num_blocks)

    def costliest(cut: tuple[int, ...]) -> float:
        starts = np.cumsum((0, *cut[:-1]))
        return max(stage_cost(start, start + count) for start, count in zip(starts, cut))

    every = [cut for cut in itertools.product(range(1, num_blocks + 1), repeat=num_stages) if sum(cut) == num_blocks]
    cost, cut = cut_blocks(num_blocks, num_stages, stage_cost)
    assert len(cut) == num_stages
    assert cost == pytest.approx(costliest(cut)) == pytest.approx(min(map(costliest, every)))


@pytest.mark.parametrize(("batch", "stages", "parts"), [(64, 2, 8), (6, 2, 6), (7, 2, 7), (22, 2, 2), (23, 2, 1)])
def test_parts_divide_the_batch(batch: int, stages: int, parts: int):
    assert count_parts(batch, stages) == parts
