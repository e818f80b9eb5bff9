"""A GAT whose blocks run as one kernel on a GPU."""

import dataclasses
import functools
from typing import Any

import jax
import jax.flatten_util
import jax.numpy as jnp
from flax import struct

from alphagat.networks.fused.backward import run_backward
from alphagat.networks.fused.forward import run_forward
from alphagat.networks.fused.weights import BlockWeights, FusedBlocks, find_misfit, pack, pad
from alphagat.networks.gat import GraphAttentionNetwork
from alphagat.networks.placement import PlacedNetwork

TOLERANCE = 0.05  # relative, for outputs and gradients in bfloat16


class PackedParams(struct.PyTreeNode):
    """Parameters in the layout of the kernel.

    Attributes:
      blocks: the weights of the blocks.
      rest: parameters of the embedding and the heads.
    """

    blocks: list[BlockWeights]
    rest: Any


@dataclasses.dataclass(frozen=True)
class FusedNetwork(PlacedNetwork):
    """Computes `network` with its blocks fused; embedding and heads stay with XLA.

    Attributes:
      interpret, positions: as in `FusedBlocks`.
    """

    interpret: bool = False
    positions: int = 1  # two would spill registers on an H100 (`benchmarks/kernel_registers.py`)

    def apply(self, params: Any, nodes: jax.Array, **options: Any) -> Any:
        if isinstance(params, PackedParams):
            blocks, rest, run = params.blocks, params.rest, run_packed
        else:
            (blocks, rest), run = _split(params), run_blocks
        hidden = self.network.apply({"params": rest}, nodes, method="embed")
        hidden = run(self._fused, blocks, hidden)  # pyright: ignore[reportArgumentType]
        return self.network.apply({"params": rest}, hidden, method="read_out", **options)

    def place(self, params: Any) -> PackedParams:
        """Packs the weights of the blocks."""
        blocks, rest = _split(params)
        return PackedParams(pack(self._fused, blocks), rest)

    @functools.cached_property
    def _fused(self) -> FusedBlocks:
        return FusedBlocks(self.network, self.interpret, self.positions)


def run_packed(blocks: FusedBlocks, packed: list[BlockWeights], hidden: jax.Array) -> jax.Array:
    """Returns the output of the last block, `[B, V, D]`, for the input of the first one, without a gradient."""
    return run_forward(blocks, packed, hidden, keep_inputs=False)[0]


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def run_blocks(blocks: FusedBlocks, params: Any, hidden: jax.Array) -> jax.Array:
    """Returns the output of the last block, `[B, V, D]`, for the parameters of the blocks by name."""
    return run_packed(blocks, pack(blocks, params), hidden)


def _run_and_keep(blocks: FusedBlocks, params: Any, hidden: jax.Array) -> tuple[jax.Array, Any]:
    output, inputs = run_forward(blocks, pack(blocks, params), hidden, keep_inputs=True)
    return output, (params, inputs)


def _run_backward(blocks: FusedBlocks, kept: tuple[Any, jax.Array], gradient: jax.Array) -> tuple[Any, jax.Array]:
    params, inputs = kept
    _, num_nodes, width = gradient.shape
    of_params, gradient = {}, pad(gradient, 2)
    for number, kind in reversed(list(enumerate(blocks.network.kinds_of_blocks))):
        name = f"block_{number}"
        of_params[name], gradient = run_backward(blocks, kind, params[name], inputs[number], gradient)
    return of_params, gradient[:, :num_nodes, :width]


run_blocks.defvjp(_run_and_keep, _run_backward)


def fuse(network: GraphAttentionNetwork) -> GraphAttentionNetwork | FusedNetwork:
    """Returns the fused network, or `network` itself where `find_obstacle` finds an obstacle."""
    return network if find_obstacle(network) else FusedNetwork(network)


def find_obstacle(network: GraphAttentionNetwork) -> str | None:
    """Returns why this machine cannot fuse the blocks of a network, or None if it can."""
    if jax.default_backend() != "gpu":
        return "it needs an NVIDIA GPU, and there is none"
    misfit = find_misfit(network.topology, network.width, network.dtype.name)
    return misfit or find_disagreement(FusedNetwork(network))


@functools.cache
def find_disagreement(fused: FusedNetwork) -> str | None:
    """Returns how the outputs or gradients of the kernels differ from those of XLA's operations, for random parameters
    and features; None if they agree up to rounding.
    """
    shape = 2, fused.network.topology.num_nodes, 8
    nodes = jax.random.normal(jax.random.key(0), shape)
    params = jax.jit(fused.network.init)(jax.random.key(1), nodes)

    def loss(params: Any, network: Any) -> jax.Array:
        logits, value = network.apply(params, nodes)
        return jnp.square(logits).mean() + jnp.square(value).mean()

    def compute(network: Any) -> jax.Array:
        found = jax.jit(jax.value_and_grad(functools.partial(loss, network=network)))(params)
        return jax.flatten_util.ravel_pytree(found)[0]

    expected = compute(fused.network)
    try:
        difference = float(jnp.linalg.norm(compute(fused) - expected) / jnp.linalg.norm(expected))
    except Exception as error:  # of the compiler, whose versions raise different ones
        first_line, *_ = str(error).splitlines() or [type(error).__name__]
        return f"its kernels do not compile: {first_line[:100]}"
    return None if difference < TOLERANCE else f"its results differ from those of XLA's operations by {difference:.0%}"


def _split(params: Any) -> tuple[Any, Any]:
    """Returns the parameters of the blocks, and the others, each by name."""
    blocks = {name: part for name, part in params["params"].items() if name.startswith("block_")}
    return blocks, {name: part for name, part in params["params"].items() if name not in blocks}
