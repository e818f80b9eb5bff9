"""The cut of a network into stages by the compiler's cost estimates."""

import pytest

from alphagat.agents.build import make_configured_network
from alphagat.games import make_game
from alphagat.training import pipeline_cut
from alphagat.training.pipeline_cut import Cost, measure_parts, pipeline
from alphagat.training.setup import make_setups
from tests.training.tiny import tiny_config


def staged_config(num_blocks: int, num_stages: int, memory_gb: float = 0.0):
    config = tiny_config()
    config.network.num_blocks, config.mesh.stage, config.mesh.memory_gb = num_blocks, num_stages, memory_gb
    return config, make_game("hex:2"), make_configured_network(config, make_game("hex:2"))


def test_matrix_products_dominate_the_cost_of_a_block():
    """Matrix products dominate a wide block: six operations, forward and backward, per weight and node."""
    config, game, _ = staged_config(2, 2)
    config.network.width, config.network.blocks = 64, ("attention",)
    first, (block, _), last = measure_parts(config, game, make_configured_network(config, game))
    batch = config.learner.batch_size // config.selfplay.num_groups  # 2 positions, in 2 parts
    weights = (3 + 1 + 2) * 64**2
    assert block.flops == pytest.approx(6 * weights * game.topology.num_nodes * batch / 2, rel=0.25)
    assert 0 < first.flops < block.flops
    assert 0 < last.flops < block.flops
    assert block.memory > 4 * 2 * weights  # parameters and gradients


@pytest.mark.parametrize(
    ("costs", "memory_gb", "cut"),
    [
        ((Cost(0, 0), Cost(1, 0), Cost(0, 0)), 0, (2, 2)),
        ((Cost(0, 0), Cost(1, 0), Cost(2, 0)), 0, (3, 1)),  # costly heads
        ((Cost(2, 0), Cost(1, 0), Cost(0, 0)), 0, (1, 3)),  # a costly embedding
        ((Cost(0, 0), Cost(1, 1e9), Cost(2, 0)), 2.5, (2, 2)),  # three blocks do not fit
        ((Cost(0, 5e9), Cost(1, 1e9), Cost(0, 0)), 2.5, (1, 3)),  # no cut fits
    ],
)
def test_the_cut_minimizes_the_slowest_stage_that_fits(monkeypatch, costs, memory_gb, cut):
    first, block, last = costs
    monkeypatch.setattr(pipeline_cut, "measure_parts", lambda *_: (first, [block] * 4, last))
    assert pipeline(*staged_config(4, 2, memory_gb)).blocks_per_stage == cut


def test_the_cut_balances_blocks_of_different_kinds(monkeypatch):
    costs = [Cost(flops, 0) for flops in (1, 1, 1, 3)]
    monkeypatch.setattr(pipeline_cut, "measure_parts", lambda *_: (Cost(0, 0), costs, Cost(0, 0)))
    assert pipeline(*staged_config(4, 2)).blocks_per_stage == (3, 1)


def test_blocks_of_a_kind_cost_the_same():
    config, game, _ = staged_config(3, 3)
    config.network.width, config.network.blocks = 64, ("mixing", "attention")
    _, blocks, _ = measure_parts(config, game, make_configured_network(config, game))
    assert blocks[0] == blocks[2]
    assert blocks[1].flops < blocks[0].flops


def test_a_run_uses_the_cut():
    config, _, _ = staged_config(3, 3)
    (setup,) = make_setups(config)
    assert setup.network.blocks_per_stage == (1, 1, 1)
