"""The parameters of the blocks in the layout of the kernel."""

import dataclasses
import itertools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from alphagat.graphs.topology import Topology
from alphagat.networks.attention import MASKED, edge_bias, split_heads
from alphagat.networks.gat import GraphAttentionNetwork
from alphagat.networks.mixing import mixing_matrix

SMALLEST = 16  # of a dimension of a matrix product in Triton
MAX_NODES = 128
MAX_ACTIVATIONS = 8_192  # padded nodes times padded width: 32 registers per thread of 8 warps
DTYPES = "float32", "bfloat16"
LOG2_E = math.log2(math.e)


class BlockWeights(NamedTuple):
    """The weights of one block. In a run of L equal blocks, each has a leading axis `[L]`.

    `P` nodes, `D` features, `k` features of a key, `H` heads, `S` groups of features, `R` the ratio of the MLP: all
    sizes but H, S and R are padded. None for a part that this kind of block lacks.

    Attributes:
      query: `[H, D, k]`, times log2(e) / sqrt(key size), so that exp2 gives the softmax.
      key: `[H, D, k]`.
      bias: `[H, P, P]` float32 by (receiver, sender), times log2(e); very low without an edge.
      matrix: `[S, P, P]` by (receiver, sender); 0 without an edge.
      value: `[D, D]`, of all heads and groups.
      out: `[D, D]`, of all heads and groups.
      mean_out: `[D, D]`, of the global path.
      expand: `[R, D, D]`, the first layer of the MLP.
      contract: `[R, D, D]`, the second.
      norms: `[2, D]` float32, the scales before the message and before the MLP.
      biases: `[2, D]` float32, of the message and global path, and of the second layer of the MLP.
      hidden_biases: `[R, D]` float32, of the first layer of the MLP.
    """

    query: Any
    key: Any
    bias: Any
    matrix: Any
    value: Any
    out: Any
    mean_out: Any
    expand: Any
    contract: Any
    norms: Any
    biases: Any
    hidden_biases: Any


@dataclasses.dataclass(frozen=True)
class FusedBlocks:
    """What the kernel computes; hashable, as a static argument.

    Attributes:
      interpret: runs the kernel as XLA's operations, for tests on a CPU.
    """

    network: GraphAttentionNetwork
    interpret: bool

    @property
    def runs(self) -> list[tuple[str, int]]:
        """The kind and number of blocks of each maximal sequence of equal ones."""
        groups = itertools.groupby(self.network.kinds_of_blocks)
        return [(kind, len(list(blocks))) for kind, blocks in groups]


def pad_size(size: int) -> int:
    """Returns the power of two to which a dimension is padded."""
    return max(SMALLEST, 1 << (size - 1).bit_length())


def pad(array: jax.Array, num_axes: int, value: float = 0.0) -> jax.Array:
    """Pads the last axes to their `pad_size`."""
    sizes = [(0, pad_size(size) - size) for size in array.shape[-num_axes:]]
    return jnp.pad(array, [(0, 0)] * (array.ndim - num_axes) + sizes, constant_values=value)


def find_misfit(topology: Topology, width: int, precision: str) -> str | None:
    """Returns why the kernel cannot compute a network, or None if it can."""
    nodes, features = pad_size(topology.num_nodes), pad_size(width)
    if topology.edges_vary:
        return "it computes only boards whose positions have the same edges"
    if precision not in DTYPES:
        return f"it computes in {' or '.join(DTYPES)}, not in {precision}"
    if nodes > MAX_NODES or nodes * features > MAX_ACTIVATIONS:
        return f"{topology.num_nodes} nodes of width {width} do not fit on the chip"
    return None


def pack(blocks: FusedBlocks, params: Any) -> list[BlockWeights]:
    """Returns the weights of each run of equal blocks from the parameters of the blocks by name."""
    numbers, packed = itertools.count(), []
    for kind, count in blocks.runs:
        weights = [_pack_block(blocks.network, kind, params[f"block_{next(numbers)}"]) for _ in range(count)]
        stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *weights)
        packed.append(_cast(stacked, blocks.network.dtype))
    return packed


def _pack_block(network: GraphAttentionNetwork, kind: str, params: Any) -> BlockWeights:
    """Returns the weights of one block in float32."""
    topology, ratio = network.topology, network.mlp_ratio
    out = params["attention_out" if "attention" in kind else "mixing_out"]
    matrices = {
        "out": out["kernel"],
        "mean_out": params["global"]["kernel"],
        "expand": _by_columns(params["mlp_in"]["kernel"], ratio),
        "contract": _by_rows(params["mlp_out"]["kernel"], ratio),
    }
    if "attention" in kind:
        projection = params["query_key_value"]["kernel"]
        query, key, value = split_heads(projection, network.num_heads, network.key_size)  # [D, H, k] or [D, H, d]
        query *= network.key_size**-0.5 * LOG2_E
        matrices |= {name: jnp.swapaxes(x, 0, 1) for name, x in (("query", query), ("key", key))}
        matrices["value"] = value.reshape(len(value), -1)
    else:
        matrices["value"] = params["mixing_in"]["kernel"]
    if "mixing" in kind:
        matrices["matrix"] = mixing_matrix(params["relation_weights"], topology)
    vectors = {
        "norms": jnp.stack([params[name]["scale"] for name in ("attention_norm", "mlp_norm")]),
        "biases": jnp.stack([out["bias"] + params["global"]["bias"], params["mlp_out"]["bias"]]),
        "hidden_biases": params["mlp_in"]["bias"].reshape(ratio, -1),
    }
    packed = {name: pad(matrix, 2) for name, matrix in matrices.items()}
    packed |= {name: pad(vector, 1) for name, vector in vectors.items()}
    if "attention" in kind:
        packed["bias"] = pad(edge_bias(params["relation_bias"], topology), 2, MASKED) * LOG2_E
    return BlockWeights(**(dict.fromkeys(BlockWeights._fields) | packed))


def _cast(weights: BlockWeights, dtype: Any) -> BlockWeights:
    """Casts what matrix products take; the logits' bias and the vectors stay float32."""
    stay = "bias", "norms", "biases", "hidden_biases"
    casts = {name: part.astype(dtype) for name, part in weights._asdict().items() if part is not None}
    return weights._replace(**{name: part for name, part in casts.items() if name not in stay})


def _by_columns(matrix: jax.Array, parts: int) -> jax.Array:
    """Splits the columns of a matrix: `[D, N * d]` -> `[N, D, d]`."""
    return jnp.swapaxes(matrix.reshape(len(matrix), parts, -1), 0, 1)


def _by_rows(matrix: jax.Array, parts: int) -> jax.Array:
    """Splits the rows of a matrix: `[N * d, D]` -> `[N, d, D]`."""
    return matrix.reshape(parts, -1, matrix.shape[1])
