"""The backward kernel of one block, and the gradient of its weights.

The kernel computes the block again from its input. It returns the gradient of the input, and writes both factors of
each product over nodes and positions that gives the gradient of a weight; XLA computes these products.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl

from alphagat.networks.fused.forward import (
    compiler_params,
    dot,
    factors,
    inverse_rms,
    is_node,
    mean_over_nodes,
    per_program,
    whole,
)
from alphagat.networks.fused.weights import LOG2_E, BlockWeights, FusedBlocks, cast, pack_block

NUM_WARPS = {16: 2, 32: 4, 64: 8, 128: 8}  # by padded nodes: more registers than the forward kernel
# Rows of `vectors`: sums over the nodes of a position, each [D] float32.
NORM, MLP_NORM, AFTER_MESSAGE, OUTPUT, MEAN = range(5)


def run_backward(
    blocks: FusedBlocks, kind: str, params: Any, hidden: jax.Array, gradient: jax.Array
) -> tuple[Any, jax.Array]:
    """Returns the gradients of a block's parameters, and of its input, `[B, P, D]`.

    Args:
      hidden: the input of the block, `[B, P, D]`, padded.
      gradient: of its output, `[B, P, D]`; 0 in the padding.
    """
    packed, unpack = jax.vjp(functools.partial(pack_block, blocks.network, kind), params)
    weights = cast(packed, blocks.network.dtype)
    shapes = _shapes(blocks, weights, hidden)
    found = pl.pallas_call(
        functools.partial(_kernel, blocks, list(shapes)),
        grid=(len(hidden),),
        in_specs=[per_program(hidden, 1), per_program(gradient, 1), jax.tree.map(whole, weights)],
        out_specs=[per_program(shape, 1) for shape in shapes.values()],
        out_shape=list(shapes.values()),
        interpret=blocks.interpret,
        compiler_params=compiler_params(NUM_WARPS[hidden.shape[1]]),
        name="fused_backward",
    )(hidden, gradient, weights)
    written = dict(zip(shapes, found))
    (of_params,) = unpack(_of_weights(blocks, weights, written, gradient))
    return of_params, written["of_input"]


def _shapes(blocks: FusedBlocks, weights: BlockWeights, hidden: jax.Array) -> dict[str, jax.ShapeDtypeStruct]:
    """Returns the shapes of what the kernel writes, by name."""
    batch, nodes, width = hidden.shape
    ratio = len(weights.expand)
    sizes: dict[str, tuple[int, ...]] = dict.fromkeys(
        ("of_input", "normed", "mlp_normed", "of_message"), (nodes, width)
    )
    sizes |= dict.fromkeys(("active", "of_expanded"), (ratio, nodes, width))
    if weights.bias is not None:
        heads, _, depth = weights.key.shape
        sizes |= dict.fromkeys(("of_query", "of_key"), (heads, nodes, depth))
        sizes |= dict.fromkeys(("attended", "of_value"), (heads, nodes, weights.value.shape[2]))
        sizes["of_logits"] = (heads, nodes, nodes)
    if weights.matrix is not None:
        groups, _, depth = weights.group_value.shape
        names = "group_values", "mixed", "of_mixed", "of_group_values"
        sizes |= dict.fromkeys(names, (groups, nodes, depth))
    shapes = {name: jax.ShapeDtypeStruct((batch, *size), hidden.dtype) for name, size in sizes.items()}
    for name, rows in (("vectors", MEAN + 1), ("of_hidden_biases", ratio)):
        shapes[name] = jax.ShapeDtypeStruct((batch, rows, width), jnp.float32)
    return shapes


def _of_weights(
    blocks: FusedBlocks, weights: BlockWeights, written: dict[str, jax.Array], gradient: jax.Array
) -> BlockWeights:
    """Returns the gradient of the weights in float32, by sums over positions and nodes."""

    def product(equation: str, one: jax.Array, other: jax.Array) -> jax.Array:
        return jnp.einsum(equation, *factors(blocks, one, other), preferred_element_type=jnp.float32)

    normed, of_message, vectors = written["normed"], written["of_message"], written["vectors"]
    found = {
        "mean_out": product("bd,be->de", vectors[:, MEAN], vectors[:, AFTER_MESSAGE]),
        "expand": product("bpd,brpe->rde", written["mlp_normed"], written["of_expanded"]),
        "contract": product("brpe,bpd->red", written["active"], gradient),
        "norms": vectors[:, jnp.array([NORM, MLP_NORM])].sum(0),
        "biases": vectors[:, jnp.array([AFTER_MESSAGE, OUTPUT])].sum(0),
        "hidden_biases": written["of_hidden_biases"].sum(0),
    }
    if weights.bias is not None:
        for name in ("query", "key", "value"):
            found[name] = product("bpd,bhpk->hdk", normed, written[f"of_{name}"])
        found["out"] = product("bhpk,bpd->hkd", written["attended"], of_message)
        found["bias"] = written["of_logits"].astype(jnp.float32).sum(0)
    if weights.matrix is not None:
        found["group_value"] = product("bpd,bspg->sdg", normed, written["of_group_values"])
        found["group_out"] = product("bspg,bpd->sgd", written["mixed"], of_message)
        found["matrix"] = product("bsig,bsjg->sij", written["of_mixed"], written["group_values"])
    return BlockWeights(**(dict.fromkeys(BlockWeights._fields) | found))


def _kernel(
    blocks: FusedBlocks, names: list[str], input_ref: Any, gradient_ref: Any, weights: BlockWeights, *refs: Any
) -> None:
    """Computes the gradient of a block for one position; the steps are those of `forward`, the last one first."""
    times, into = functools.partial(dot, blocks), dict(zip(names, refs))
    hidden, gradient = (ref[0].astype(jnp.float32) for ref in (input_ref, gradient_ref))

    def write(name: str, value: jax.Array, *index: Any) -> None:
        into[name][(0, *index)] = value.astype(into[name].dtype)

    inverse = inverse_rms(blocks, hidden)
    normed = hidden * inverse * weights.norms[0][None]
    write("normed", normed)

    def attend(head: jax.Array, total: jax.Array) -> jax.Array:
        attended = times(_attention(blocks, weights, head, normed)[0], times(normed, weights.value[head]))
        write("attended", attended, head)
        return total + times(attended, weights.out[head])

    def mix(group: jax.Array, total: jax.Array) -> jax.Array:
        values = times(normed, weights.group_value[group])
        mixed = times(weights.matrix[group], values)
        write("group_values", values, group)
        write("mixed", mixed, group)
        return total + times(mixed, weights.group_out[group])

    after = hidden + mean_over_nodes(blocks, times(normed, weights.mean_out[...])) + weights.biases[0][None]
    if weights.bias is not None:
        after = jax.lax.fori_loop(0, weights.bias.shape[0], attend, after)
    if weights.matrix is not None:
        after = jax.lax.fori_loop(0, weights.matrix.shape[0], mix, after)

    mlp_inverse = inverse_rms(blocks, after)
    mlp_normed = after * mlp_inverse * weights.norms[1][None]
    write("mlp_normed", mlp_normed)

    def expand_backward(part: jax.Array, of_normed: jax.Array) -> jax.Array:
        expanded = times(mlp_normed, weights.expand[part]) + weights.hidden_biases[part][None]
        of_expanded = jnp.where(expanded > 0, times(gradient, weights.contract[part].T), 0)
        write("active", jnp.maximum(expanded, 0), part)
        write("of_expanded", of_expanded, part)
        write("of_hidden_biases", of_expanded.sum(0), part)
        return of_normed + times(of_expanded, weights.expand[part].T)

    of_normed = jax.lax.fori_loop(0, weights.expand.shape[0], expand_backward, jnp.zeros_like(hidden))
    write("vectors", (of_normed * after * mlp_inverse).sum(0), MLP_NORM)
    of_message = gradient + _norm_backward(blocks, after, mlp_inverse, of_normed * weights.norms[1][None])
    write("of_message", of_message)
    write("vectors", of_message.sum(0), AFTER_MESSAGE)
    write("vectors", gradient.sum(0), OUTPUT)
    write("vectors", mean_over_nodes(blocks, normed)[0], MEAN)

    def attend_backward(head: jax.Array, of_normed: jax.Array) -> jax.Array:
        shares, query, key = _attention(blocks, weights, head, normed)
        of_attended = times(of_message, weights.out[head].T)
        of_shares = times(of_attended, times(normed, weights.value[head]).T)
        of_logits = shares * (of_shares - (of_shares * shares).sum(-1, keepdims=True)) / LOG2_E
        of_query, of_key, of_value = times(of_logits, key), times(of_logits.T, query), times(shares.T, of_attended)
        for name, part in (("logits", of_logits), ("query", of_query), ("key", of_key), ("value", of_value)):
            write(f"of_{name}", part, head)
        of_normed += times(of_query, weights.query[head].T) + times(of_key, weights.key[head].T)
        return of_normed + times(of_value, weights.value[head].T)

    def mix_backward(group: jax.Array, of_normed: jax.Array) -> jax.Array:
        of_mixed = times(of_message, weights.group_out[group].T)
        of_values = times(weights.matrix[group].T, of_mixed)
        write("of_mixed", of_mixed, group)
        write("of_group_values", of_values, group)
        return of_normed + times(of_values, weights.group_value[group].T)

    of_mean = jnp.broadcast_to(mean_over_nodes(blocks, of_message), hidden.shape)
    of_normed = jnp.where(is_node(blocks, hidden), times(of_mean, weights.mean_out[...].T), 0)
    if weights.bias is not None:
        of_normed = jax.lax.fori_loop(0, weights.bias.shape[0], attend_backward, of_normed)
    if weights.matrix is not None:
        of_normed = jax.lax.fori_loop(0, weights.matrix.shape[0], mix_backward, of_normed)
    write("vectors", (of_normed * hidden * inverse).sum(0), NORM)
    write("of_input", of_message + _norm_backward(blocks, hidden, inverse, of_normed * weights.norms[0][None]))


def _attention(
    blocks: FusedBlocks, weights: BlockWeights, head: jax.Array, normed: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Returns the attention `[P, P]` of a head, its queries and its keys, `[P, k]`."""
    query, key = (dot(blocks, normed, part[head]) for part in (weights.query, weights.key))
    logits = dot(blocks, query, key.T) + weights.bias[head]
    powers = jnp.exp2(logits - logits.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True), query, key


def _norm_backward(blocks: FusedBlocks, hidden: jax.Array, inverse: jax.Array, of_scaled: jax.Array) -> jax.Array:
    """Returns the gradient of `hidden` for that of `hidden * inverse`, with `inverse` the inverse RMS of each row."""
    projection = (hidden * of_scaled).sum(-1, keepdims=True) / blocks.network.width
    return inverse * of_scaled - hidden * (inverse * inverse * inverse * projection)
