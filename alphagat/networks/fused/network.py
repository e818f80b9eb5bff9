"""A GAT whose blocks run as one kernel on a GPU."""

import dataclasses
import functools
from typing import Any

import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
from flax import struct

from alphagat.errors import first_line
from alphagat.network_traits import AUTO, FUSED
from alphagat.networks.fused.kernel import run_kernel
from alphagat.networks.fused.weights import BlockWeights, FusedBlocks, find_misfit, pack
from alphagat.networks.gat import GraphAttentionNetwork
from alphagat.networks.placement import PlacedNetwork
from alphagat.runtime import sharding

TOLERANCE = 0.05  # relative, for outputs in bfloat16
MEASURED_GPUS = "H100", "H200"  # faster than XLA's operations on an H200; an H100 has the same multiprocessors


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
    """Computes `network` with its blocks fused; embedding, heads and gradients stay with XLA.

    Attributes:
      interpret: as in `FusedBlocks`.
    """

    interpret: bool = False

    def apply(self, params: Any, nodes: jax.Array, edges: jax.Array | None = None, /, **options: Any) -> Any:
        assert edges is None, "find_misfit refuses boards whose edges vary"
        if isinstance(params, PackedParams):
            blocks, rest, run = params.blocks, params.rest, run_kernel
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
        return FusedBlocks(self.network, self.interpret)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def run_blocks(blocks: FusedBlocks, params: Any, hidden: jax.Array) -> jax.Array:
    """Returns the output of the last block, `[B, V, D]`, for the parameters of the blocks by name."""
    return run_kernel(blocks, pack(blocks, params), hidden)


def _run_and_keep(blocks: FusedBlocks, params: Any, hidden: jax.Array) -> tuple[jax.Array, Any]:
    def transform(params: Any, hidden: jax.Array) -> Any:
        return blocks.network.apply({"params": params}, hidden, method="transform")

    return jax.vjp(transform, params, hidden)


def _run_backward(blocks: FusedBlocks, backward: Any, gradient: jax.Array) -> tuple[Any, jax.Array]:
    del blocks
    return backward(gradient)


run_blocks.defvjp(_run_and_keep, _run_backward)


def find_obstacle(network: GraphAttentionNetwork, backend: str) -> str | None:
    """Returns why the blocks of a network do not run as one kernel here, or None if they do; `backend` is of
    `MAY_FUSE`.
    """
    if jax.default_backend() != "gpu":
        return "it needs an NVIDIA GPU, and there is none"
    kind = jax.devices()[0].device_kind
    if backend == AUTO and not any(name in kind.split() for name in MEASURED_GPUS):
        return f"its speed on a {kind} is not known; {FUSED!r} tries it"
    misfit = find_misfit(network.topology, network.width, network.dtype.name)
    return misfit or find_disagreement(FusedNetwork(network))


@functools.cache
def find_disagreement(fused: FusedNetwork) -> str | None:
    """Returns how the outputs of the kernel differ from those of XLA's operations, for random parameters and features;
    None if they agree up to rounding.
    """
    generator, shape = np.random.default_rng(0), (2, fused.network.topology.num_nodes, 8)
    nodes = generator.normal(size=shape).astype(np.float32)
    with jax.default_device(sharding.host_device()):  # a GPU takes seconds to compile a program that draws parameters
        params = jax.device_get(jax.jit(fused.network.init)(jax.random.key(1), nodes))
    # Biases begin at 0 and scales of norms at 1, so that a kernel could ignore them unnoticed.
    params = jax.tree.map(lambda x: x + 0.3 * generator.normal(size=x.shape).astype(x.dtype), params)

    def compute(network: Any) -> jax.Array:
        return jax.flatten_util.ravel_pytree(jax.jit(network.apply)(params, nodes))[0]

    expected = compute(fused.network)
    try:
        difference = float(jnp.linalg.norm(compute(fused) - expected) / jnp.linalg.norm(expected))
    except Exception as error:  # of the compiler, whose versions raise different ones
        return f"its kernel does not compile: {first_line(error)[:100] or type(error).__name__}"
    return None if difference < TOLERANCE else f"its results differ from those of XLA's operations by {difference:.0%}"


def _split(params: Any) -> tuple[Any, Any]:
    """Returns the parameters of the blocks, and the others, each by name."""
    blocks = {name: part for name, part in params["params"].items() if name.startswith("block_")}
    return blocks, {name: part for name, part in params["params"].items() if name not in blocks}
