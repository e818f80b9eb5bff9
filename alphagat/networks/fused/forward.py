"""The forward kernel: all blocks of one or several positions."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl

from alphagat.networks.fused.weights import BlockWeights, FusedBlocks, pad

EPSILON = 1e-6  # of `nn.RMSNorm`
NUM_WARPS = {16: 1, 32: 2, 64: 4, 128: 8}  # by padded nodes

Hidden = tuple[jax.Array, ...]  # [P, D] float32, by position


def run_forward(
    blocks: FusedBlocks, packed: list[BlockWeights], hidden: jax.Array, keep_inputs: bool
) -> tuple[jax.Array, ...]:
    """Returns the output `[B, V, D]` and, if `keep_inputs`, the padded inputs of all blocks, `[L, B, P, D]`."""
    batch, num_nodes, width = hidden.shape
    hidden = pad(hidden, 2)
    positions = 1 if batch % blocks.positions else blocks.positions
    shapes = [jax.ShapeDtypeStruct(hidden.shape, hidden.dtype)]
    if keep_inputs:
        shapes.append(jax.ShapeDtypeStruct((blocks.network.num_blocks, *hidden.shape), hidden.dtype))
    output, *inputs = pl.pallas_call(
        functools.partial(_kernel, blocks),
        grid=(batch // positions,),
        in_specs=[per_program(hidden, positions), jax.tree.map(whole, packed)],
        out_specs=[per_program(shape, positions, axis) for axis, shape in enumerate(shapes)],
        out_shape=shapes,
        interpret=blocks.interpret,
        compiler_params=compiler_params(NUM_WARPS[hidden.shape[1]]),
        name="fused_forward",
    )(hidden, packed)
    return output[:, :num_nodes, :width], *inputs


def per_program(array: Any, positions: int, axis: int = 0) -> pl.BlockSpec:
    """Gives each program of the grid its positions, along `axis`."""
    shape = (*array.shape[:axis], positions, *array.shape[axis + 1 :])
    return pl.BlockSpec(shape, lambda program: tuple(program if a == axis else 0 for a in range(len(shape))))


def whole(array: Any) -> pl.BlockSpec:
    """Gives each program of the grid all of an array."""
    return pl.BlockSpec(array.shape, lambda _: (0,) * len(array.shape))


def compiler_params(num_warps: int) -> Any:
    from jax.experimental.pallas import triton  # here, because later versions of JAX deprecate it

    return triton.CompilerParams(num_warps=num_warps, num_stages=1)


def dot(blocks: FusedBlocks, one: jax.Array, other: jax.Array) -> jax.Array:
    """Multiplies matrices in the precision of the network, with float32 sums."""
    one, other = factors(blocks, *(x.astype(blocks.network.dtype) for x in (one, other)))
    return jnp.dot(one, other, preferred_element_type=jnp.float32)


def factors(blocks: FusedBlocks, *arrays: jax.Array) -> tuple[jax.Array, ...]:
    """Returns the factors of a product with float32 sums; in float32 if interpreted, which gives the same product,
    because XLA's CPU backend lacks such products of bfloat16.
    """
    return tuple(x.astype(jnp.float32) for x in arrays) if blocks.interpret else arrays


def inverse_rms(blocks: FusedBlocks, hidden: jax.Array) -> jax.Array:
    """Returns `[P, 1]`, the factor of the RMS norm of `[P, D]`; the padding is 0."""
    mean_square = jnp.square(hidden).sum(-1, keepdims=True) / blocks.network.width
    return jax.lax.rsqrt(mean_square + EPSILON)


def mean_over_nodes(blocks: FusedBlocks, array: jax.Array) -> jax.Array:
    """Returns `[1, D]`, the mean over the nodes of `[P, D]`, without the padding."""
    num_nodes = blocks.network.topology.num_nodes
    return jnp.where(is_node(blocks, array), array, 0).sum(0, keepdims=True) / num_nodes


def is_node(blocks: FusedBlocks, array: jax.Array) -> jax.Array:
    """Returns `[P, 1]` bool, False for the padding."""
    return jax.lax.broadcasted_iota(jnp.int32, (len(array), 1), 0) < blocks.network.topology.num_nodes


def _kernel(blocks: FusedBlocks, input_ref: Any, packed: list[BlockWeights], output_ref: Any, *kept_ref: Any) -> None:
    """Computes all blocks of G positions, `[G, P, D]`; `kept_ref` is empty or has the inputs of the blocks."""
    positions, first = range(len(input_ref)), 0
    hidden = tuple(input_ref[position].astype(jnp.float32) for position in positions)
    for weights in packed:

        def one(number: jax.Array, hidden: Hidden, weights: BlockWeights = weights, first: int = first) -> Hidden:
            for ref in kept_ref:
                for position in positions:
                    ref[first + number, position] = hidden[position].astype(ref.dtype)
            return _block(blocks, weights, number, hidden)

        count = weights.norms.shape[0]
        hidden = jax.lax.fori_loop(0, count, one, hidden)
        first += count
    for position in positions:
        output_ref[position] = hidden[position].astype(output_ref.dtype)


def _block(blocks: FusedBlocks, weights: BlockWeights, number: jax.Array, hidden: Hidden) -> Hidden:
    """Returns the outputs of one block of a run. All positions use a weight as soon as it is loaded."""
    times = functools.partial(dot, blocks)

    def norm(hidden: Hidden, scale: jax.Array) -> Hidden:
        return tuple(x * inverse_rms(blocks, x) * scale[None] for x in hidden)

    def attend(head: jax.Array, totals: Hidden) -> Hidden:
        query, key, value, out, bias = (
            part[number, head] for part in (weights.query, weights.key, weights.value, weights.out, weights.bias)
        )

        def attended(normed: jax.Array) -> jax.Array:
            logits = times(times(normed, query), times(normed, key).T) + bias
            powers = jnp.exp2(logits - logits.max(-1, keepdims=True))
            return times(powers, times(normed, value)) / powers.sum(-1, keepdims=True)

        return tuple(total + times(attended(x), out) for total, x in zip(totals, normed))

    def mix(group: jax.Array, totals: Hidden) -> Hidden:
        value, out, matrix = (part[number, group] for part in (weights.group_value, weights.group_out, weights.matrix))
        return tuple(total + times(times(matrix, times(x, value)), out) for total, x in zip(totals, normed))

    def expand(part: jax.Array, totals: Hidden) -> Hidden:
        first, second, bias = (x[number, part] for x in (weights.expand, weights.contract, weights.hidden_biases))
        active = (jnp.maximum(times(x, first) + bias[None], 0) for x in normed)
        return tuple(total + times(x, second) for total, x in zip(totals, active))

    normed = norm(hidden, weights.norms[number, 0])
    mean_out, bias = weights.mean_out[number], weights.biases[number, 0][None]
    hidden = tuple(total + mean_over_nodes(blocks, times(x, mean_out)) + bias for total, x in zip(hidden, normed))
    if weights.bias is not None:
        hidden = jax.lax.fori_loop(0, weights.bias.shape[1], attend, hidden)
    if weights.matrix is not None:
        hidden = jax.lax.fori_loop(0, weights.matrix.shape[1], mix, hidden)
    normed = norm(hidden, weights.norms[number, 1])
    hidden = tuple(x + weights.biases[number, 1][None] for x in hidden)
    return jax.lax.fori_loop(0, weights.expand.shape[1], expand, hidden)
