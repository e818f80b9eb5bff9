"""The kernel: all blocks of one position."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl

from alphagat.networks.fused.weights import BlockWeights, FusedBlocks, pad

EPSILON = 1e-6  # of `nn.RMSNorm`
NUM_WARPS = {16: 1, 32: 2, 64: 4, 128: 8}  # by padded nodes: four warps multiply 64 rows at once
NUM_STAGES = 3  # how far loops over heads, groups and parts of the MLP load weights ahead


def run_kernel(blocks: FusedBlocks, packed: list[BlockWeights], hidden: jax.Array) -> jax.Array:
    """Returns the output of the last block, `[B, V, D]`, for the input of the first one, without a gradient."""
    batch, num_nodes, width = hidden.shape
    hidden = pad(hidden, 2)
    one_position = pl.BlockSpec((1, *hidden.shape[1:]), lambda program: (program, 0, 0))
    output = pl.pallas_call(
        functools.partial(_kernel, blocks),
        grid=(batch,),
        in_specs=[one_position, jax.tree.map(_whole, packed)],
        out_specs=one_position,
        out_shape=jax.ShapeDtypeStruct(hidden.shape, hidden.dtype),
        interpret=blocks.interpret,
        compiler_params=_compiler_params(NUM_WARPS[hidden.shape[1]]),
        name="fused_blocks",
    )(hidden, packed)
    return output[:, :num_nodes, :width]


def _whole(array: Any) -> pl.BlockSpec:
    """Gives each program of the grid all of an array."""
    return pl.BlockSpec(array.shape, lambda _: (0,) * len(array.shape))


def _compiler_params(num_warps: int) -> Any:
    from jax.experimental.pallas import triton  # here, because later versions of JAX deprecate it

    return triton.CompilerParams(num_warps=num_warps, num_stages=NUM_STAGES)


def _dot(blocks: FusedBlocks, one: jax.Array, other: jax.Array) -> jax.Array:
    """Multiplies matrices in the precision of the network, with float32 sums."""
    factors = (x.astype(blocks.network.dtype) for x in (one, other))
    if blocks.interpret:  # the same product, since XLA's CPU backend lacks products of bfloat16 with float32 sums
        factors = (x.astype(jnp.float32) for x in factors)
    return jnp.dot(*factors, preferred_element_type=jnp.float32)


def _norm(blocks: FusedBlocks, hidden: jax.Array, scale: jax.Array) -> jax.Array:
    """Returns the RMS norm of `[P, D]`, whose padding is 0, times the scale `[D]`."""
    mean_square = jnp.square(hidden).sum(-1, keepdims=True) / blocks.network.width
    return hidden * jax.lax.rsqrt(mean_square + EPSILON) * scale[None]


def _mean_over_nodes(blocks: FusedBlocks, array: jax.Array) -> jax.Array:
    """Returns `[1, D]`, the mean over the nodes of `[P, D]`, without the padding."""
    num_nodes = blocks.network.topology.num_nodes
    is_node = jax.lax.broadcasted_iota(jnp.int32, (len(array), 1), 0) < num_nodes
    return jnp.where(is_node, array, 0).sum(0, keepdims=True) / num_nodes


def _is_part(blocks: FusedBlocks, array: jax.Array, number: jax.Array, parts: int) -> jax.Array:
    """Returns `[1, D]` bool: whether a feature of `[P, D]` belongs to one of equal parts, a head or a group."""
    feature = jax.lax.broadcasted_iota(jnp.int32, (1, array.shape[1]), 1)
    return feature // (blocks.network.width // parts) == number


def _kernel(blocks: FusedBlocks, input_ref: Any, packed: list[BlockWeights], output_ref: Any) -> None:
    """Computes all blocks of one position, `[1, P, D]`."""
    hidden = input_ref[0].astype(jnp.float32)
    for weights in packed:
        block = functools.partial(_block, blocks, weights)
        hidden = jax.lax.fori_loop(0, weights.norms.shape[0], block, hidden)
    output_ref[0] = hidden.astype(output_ref.dtype)


def _block(blocks: FusedBlocks, weights: BlockWeights, number: jax.Array, hidden: jax.Array) -> jax.Array:
    """Returns the output `[P, D]` of one block of a run."""
    times = functools.partial(_dot, blocks)
    normed = _norm(blocks, hidden, weights.norms[number, 0])
    hidden += _mean_over_nodes(blocks, times(normed, weights.mean_out[number])) + weights.biases[number, 0][None]
    message = _messages(blocks, weights, number, normed, times(normed, weights.value[number]))
    hidden += times(message, weights.out[number])
    normed = _norm(blocks, hidden, weights.norms[number, 1])

    def expand(part: jax.Array, total: jax.Array) -> jax.Array:
        active = jnp.maximum(times(normed, weights.expand[number, part]) + weights.hidden_biases[number, part][None], 0)
        return total + times(active, weights.contract[number, part])

    return jax.lax.fori_loop(0, weights.expand.shape[1], expand, hidden + weights.biases[number, 1][None])


def _messages(
    blocks: FusedBlocks, weights: BlockWeights, number: jax.Array, normed: jax.Array, values: jax.Array
) -> jax.Array:
    """Returns the messages `[P, D]` of a block, before their output layer.

    Each head and each group multiplies all features, and keeps its own. The extra products cost nothing, since the
    tensor cores are idle, and the values need no second layout.
    """
    times = functools.partial(_dot, blocks)

    def mix(group: jax.Array, total: jax.Array) -> jax.Array:
        mixed = times(weights.matrix[number, group], values)
        return jnp.where(_is_part(blocks, values, group, weights.matrix.shape[1]), mixed, total)

    def attend(head: jax.Array, total: jax.Array) -> jax.Array:
        query, key = (times(normed, part[number, head]) for part in (weights.query, weights.key))
        logits = times(query, key.T) + weights.bias[number, head]
        powers = jnp.exp2(logits - logits.max(-1, keepdims=True))
        attended = times(powers, values) / powers.sum(-1, keepdims=True)
        return jnp.where(_is_part(blocks, values, head, weights.bias.shape[1]), attended, total)

    total = jnp.zeros_like(values)
    if weights.matrix is not None:
        total = jax.lax.fori_loop(0, weights.matrix.shape[1], mix, total)
    if weights.bias is not None:
        total += jax.lax.fori_loop(0, weights.bias.shape[1], attend, jnp.zeros_like(values))
    return total
