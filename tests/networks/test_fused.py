"""The fused blocks equal the dense ones, interpreted on a CPU; their kernel lowers for an NVIDIA GPU."""

import functools
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec

from alphagat.agents.build import make_configured_network, make_portable_network
from alphagat.config import Config, NetworkConfig
from alphagat.errors import UserError
from alphagat.games import make_game
from alphagat.networks import make_network
from alphagat.networks.fused import weights
from alphagat.networks.fused.network import FusedNetwork, find_disagreement, find_obstacle
from alphagat.networks.fused.weights import find_misfit
from alphagat.networks.gat import GraphAttentionNetwork
from alphagat.networks.placement import place_params
from alphagat.runtime import sharding
from alphagat.search import make_network_evaluator, make_search
from alphagat.training.setup import kernel_obstacle, make_setups

pytestmark = pytest.mark.filterwarnings("ignore:The Pallas Triton backend:DeprecationWarning")  # in later versions

BATCH = 3
# Board, width, blocks, heads: sizes that are no powers of two, every kind of block, and runs of equal blocks.
CASES = {
    "connect_four": (24, ("mixing", "mixing", "mixing+attention"), 1),
    "hex:3": (32, ("attention",), 4),
    "othello:4": (16, ("mixing",), 1),
    "breakthrough:5": (20, ("mixing+attention", "attention"), 2),
    "go:5": (40, ("mixing+attention", "mixing"), 2),
}


def make_dense(board: str, precision: str = "float32") -> GraphAttentionNetwork:
    width, blocks, num_heads = CASES[board]
    network = make_network(
        make_game(board).topology,
        name="gat",
        backend="dense",
        width=width,
        num_blocks=3,
        blocks=blocks,
        num_heads=num_heads,
        key_size=5,
        mixing_groups=4,
        mlp_ratio=3,
        value_pools=2,
        precision=precision,
        remat=False,
    )
    assert isinstance(network, GraphAttentionNetwork)
    return network


@functools.cache
def draw_inputs(board: str) -> tuple[Any, np.ndarray]:
    """Returns parameters, biases included, and features, all drawn at random."""
    game, generator = make_game(board), np.random.default_rng(0)
    nodes = generator.normal(size=(BATCH, game.topology.num_nodes, game.num_features)).astype(np.float32)
    shapes = jax.eval_shape(make_dense(board).init, jax.random.key(0), nodes)

    def draw(leaf: jax.ShapeDtypeStruct) -> np.ndarray:
        return generator.normal(0, leaf.shape[0] ** -0.5, leaf.shape).astype(np.float32)

    return jax.tree.map(draw, shapes), nodes


@functools.cache
def outputs_and_gradients(board: str, precision: str, is_fused: bool) -> Any:
    """Returns the outputs, and the gradients of parameters and features of a loss that weighs each output apart.

    They come from two programs, since the fused network computes gradients without its kernel.
    """
    dense = make_dense(board, precision)
    network: Any = FusedNetwork(dense, interpret=True) if is_fused else dense

    def loss(params: Any, nodes: jax.Array) -> jax.Array:
        logits, value = network.apply(params, nodes)
        weights = jnp.arange(1.0, 1 + logits.size).reshape(logits.shape) / logits.size
        return (jnp.sin(logits) * weights).sum() + jnp.square(value).sum()

    inputs = draw_inputs(board)
    outputs, gradients = jax.jit(network.apply)(*inputs), jax.jit(jax.grad(loss, argnums=(0, 1)))(*inputs)
    return jax.device_get((outputs, gradients))


def distance(found: Any, expected: Any) -> float:
    """Returns the largest difference of any leaf, relative to the largest number in that leaf."""
    pairs = zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True)
    return max(float(np.abs(one - other).max() / np.abs(other).max()) for one, other in pairs)


@pytest.mark.parametrize("board", CASES)
def test_fused_blocks_equal_the_dense_ones(board: str):
    """In outputs and in gradients of every parameter and feature."""
    fused, dense = (outputs_and_gradients(board, "float32", is_fused) for is_fused in (True, False))
    assert distance(fused, dense) < 1e-5


@pytest.mark.parametrize("board", CASES)
def test_fused_blocks_in_half_precision_are_no_further_from_float32(board: str):
    """Compares with the distance of the dense network in half precision, in outputs and in gradients."""
    exact = outputs_and_gradients(board, "float32", False)
    fused, dense = (outputs_and_gradients(board, "bfloat16", is_fused) for is_fused in (True, False))
    for found, same, expected in zip(fused, dense, exact, strict=True):
        assert distance(found, expected) <= 1.5 * distance(same, expected)


def test_vectors_and_biases_of_logits_stay_float32_in_a_fused_network():
    network, (params, _) = FusedNetwork(make_dense("breakthrough:5", "bfloat16")), draw_inputs("breakthrough:5")
    stay = {"bias", "norms", "biases", "hidden_biases"}
    for block in network.place(params).blocks:
        found = {name: part.dtype.name for name, part in block._asdict().items() if part is not None}
        assert found == {name: "float32" if name in stay else "bfloat16" for name in found}
        assert stay <= found.keys()


def test_placed_params_of_a_fused_network_give_equal_outputs_under_jit_and_vmap():
    network, (params, nodes) = FusedNetwork(make_dense("connect_four"), interpret=True), draw_inputs("connect_four")
    expected, _ = outputs_and_gradients("connect_four", "float32", False)

    def evaluate(params: Any, nodes: jax.Array) -> Any:
        placed = place_params(network, params)
        return jax.vmap(lambda nodes: network.apply(placed, nodes[None]))(nodes)

    for one, other in zip(jax.jit(evaluate)(params, nodes), expected):
        np.testing.assert_allclose(one[:, 0], other, atol=1e-5)


def test_fused_gradients_average_over_devices():
    """Under shard_map and inside a scan, as in training."""
    network, mesh = FusedNetwork(make_dense("hex:3"), interpret=True), sharding.make_mesh(2)
    params, nodes = draw_inputs("hex:3")
    nodes = np.concatenate([nodes, nodes[:1]])

    def loss(network: Any, params: Any, nodes: jax.Array) -> jax.Array:
        logits, value = network.apply(params, nodes)
        return jnp.square(logits).mean() + value.mean()

    def steps(params: Any, nodes: jax.Array) -> Any:
        def step(params: Any, _: None) -> tuple[Any, None]:
            gradient = jax.grad(lambda params: loss(network, params, nodes))(params)
            gradient = jax.lax.pmean(gradient, sharding.DATA)
            return jax.tree.map(lambda leaf, change: leaf - 0.01 * change, params, gradient), None

        return jax.lax.scan(step, params, length=2)[0]

    replicated = PartitionSpec()
    found = jax.jit(sharding.over_data(steps, mesh, (replicated, sharding.SHARDED), replicated))(params, nodes)
    expected = params
    for _ in range(2):
        gradient = jax.jit(jax.grad(functools.partial(loss, network.network)))(expected, nodes)
        expected = jax.tree.map(lambda leaf, change: leaf - 0.01 * change, expected, gradient)
    assert distance(jax.device_get(found), jax.device_get(expected)) < 1e-5


def test_fused_network_searches_like_the_dense_one():
    game = make_game("hex:3")
    dense, (params, _) = make_dense("hex:3"), draw_inputs("hex:3")
    states = jax.vmap(game.init)(jax.random.split(jax.random.key(0), BATCH))
    plies = jnp.zeros(BATCH, jnp.int32)

    def search_with(network: Any) -> jax.Array:
        evaluate = make_network_evaluator(game, network)
        search = make_search(game, evaluate, algorithm="gumbel", num_simulations=4, explore=False)
        return jax.jit(lambda: search(place_params(network, params), jax.random.key(1), states, plies).policy_target)()

    np.testing.assert_allclose(search_with(FusedNetwork(dense, interpret=True)), search_with(dense), atol=1e-5)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_fused_kernel_lowers_for_a_gpu(precision: str):
    """Without a GPU; the program has one kernel, and that of the gradient none. Neither has a scatter."""
    network = FusedNetwork(make_dense("connect_four", precision))

    def loss(params: Any, nodes: jax.Array) -> jax.Array:
        return network.apply(params, nodes)[0].sum()

    def count_kernels(function: Any) -> int:
        text = jax.jit(function).trace(*draw_inputs("connect_four")).lower(lowering_platforms=("cuda",)).as_text()
        assert "stablehlo.scatter" not in text
        return text.count('"fused_blocks"')

    assert count_kernels(loss) == 1
    assert count_kernels(jax.grad(loss)) == 0


def test_a_misfit_of_the_fused_kernel_is_named():
    topology = make_game("connect_four").topology
    assert find_misfit(topology, 64, "bfloat16") is None
    assert find_misfit(make_game("hex:9").topology, 64, "float32") is None
    assert find_misfit(topology, 64, "float16") == "it computes in float32 or bfloat16, not in float16"
    assert "49 nodes of width 192 do not fit" in str(find_misfit(topology, 192, "float32"))
    assert "do not fit" in str(find_misfit(make_game("go:19").topology, 16, "float32"))


def test_a_fused_kernel_with_wrong_results_is_noticed(monkeypatch: pytest.MonkeyPatch):
    dense = make_dense("hex:3")
    assert find_disagreement(FusedNetwork(dense, interpret=True)) is None
    find_disagreement.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr("alphagat.networks.fused.weights.LOG2_E", 2.0)
        assert "its results differ" in str(find_disagreement(FusedNetwork(dense, interpret=True)))
    find_disagreement.cache_clear()
    assert "its kernel does not compile" in str(find_disagreement(FusedNetwork(dense)))


@pytest.mark.parametrize("field", ["norms", "biases", "hidden_biases"])
def test_a_fused_kernel_without_its_vectors_is_noticed(field: str, monkeypatch: pytest.MonkeyPatch):
    """They begin at 0 or 1, so that parameters as drawn would not show it."""
    sound = weights._pack_block

    def pack_block(*arguments: Any) -> weights.BlockWeights:
        packed = sound(*arguments)
        return packed._replace(**{field: jnp.full_like(getattr(packed, field), field == "norms")})

    monkeypatch.setattr(weights, "_pack_block", pack_block)
    find_disagreement.cache_clear()
    assert "its results differ" in str(find_disagreement(FusedNetwork(make_dense("hex:3"), interpret=True)))
    find_disagreement.cache_clear()


def test_without_a_gpu_a_fused_run_is_refused_and_a_fused_player_is_dense():
    config = Config(boards=("hex:3",), network=NetworkConfig(backend="fused"))
    network = make_configured_network(config, make_game("hex:3"))
    assert isinstance(network, GraphAttentionNetwork)
    assert network.backend == "dense"
    assert find_obstacle(network, "fused") == "it needs an NVIDIA GPU, and there is none"
    with pytest.raises(UserError, match=r"config.network.backend='fused' on board hex:3: it needs an NVIDIA GPU"):
        make_setups(config)
    config.network.backend = "auto"
    (setup,) = make_setups(config)
    assert setup.network == network
    assert kernel_obstacle(config, setup.game) == "it needs an NVIDIA GPU, and there is none"


def pretend_a_gpu(monkeypatch: pytest.MonkeyPatch, kind: str) -> list[str]:
    """Returns what the check of the kernel finds, in a list that tests may fill."""
    found: list[str] = []
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    monkeypatch.setattr(jax, "devices", lambda: [SimpleNamespace(device_kind=kind)])
    monkeypatch.setattr("alphagat.networks.fused.network.find_disagreement", lambda _: "; ".join(found) or None)
    return found


@pytest.mark.parametrize(
    "kind", ["NVIDIA H100 80GB HBM3", "NVIDIA H200", "NVIDIA A100-SXM4-40GB", "NVIDIA GH200 480GB"]
)
def test_auto_fuses_on_the_gpus_where_it_was_measured(monkeypatch: pytest.MonkeyPatch, kind: str):
    """`fused` tries any GPU, and neither fuses if the results differ."""
    game, disagreement = make_game("hex:3"), pretend_a_gpu(monkeypatch, kind)
    auto, fused = (Config(boards=("hex:3",), network=NetworkConfig(backend=name)) for name in ("auto", "fused"))
    dense = make_portable_network(auto, game)
    assert isinstance(dense, GraphAttentionNetwork)
    assert make_configured_network(auto, game) == (FusedNetwork(dense) if "NVIDIA H" in kind else dense)
    assert make_configured_network(fused, game) == FusedNetwork(dense)
    disagreement.append("they differ")
    assert make_configured_network(auto, game) == make_configured_network(fused, game) == dense


@pytest.mark.parametrize("axis", ["model", "stage"])
def test_auto_is_dense_for_a_network_that_devices_share(monkeypatch: pytest.MonkeyPatch, axis: str):
    """A player of such a run has one device."""
    pretend_a_gpu(monkeypatch, "NVIDIA H200")
    config, game = Config(boards=("hex:3",)), make_game("hex:3")
    assert kernel_obstacle(config, game) is None
    setattr(config.mesh, axis, 2)
    assert kernel_obstacle(config, game) == "several devices share the network"
    (setup,) = make_setups(config)
    assert not isinstance(setup.network, FusedNetwork)
    assert isinstance(make_configured_network(config, game), FusedNetwork)
