"""Optimizers and the learning rate schedule."""

import collections
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import optax
import optax.contrib

MUON_RMS = 0.2
MAX_BATCHED_SIZE = 1 << 16  # of a kernel; larger ones keep a device busy alone
THIN = 16, 64  # matrices of at most 16 rows are padded to that, and to a multiple of 64 columns
NEWTON_SCHULZ = optax.contrib.scale_by_muon(  # of matrices `[K, rows, columns]`, without momentum
    beta=0.0, nesterov=False, weight_dimension_numbers=optax.contrib.MuonDimensionNumbers(1, 2)
)


def _lamb(schedule: optax.Schedule, weight_decay: float) -> optax.GradientTransformation:
    """Builds LAMB (You et al. 2020, algorithm 2) with a trust ratio for weight matrices only.

    A bias starts at 0, where a step proportional to its norm would keep it.
    """
    return optax.chain(
        optax.scale_by_adam(eps=1e-6),
        optax.add_decayed_weights(weight_decay, is_matrix),
        optax.masked(optax.scale_by_trust_ratio(), is_matrix),
        optax.scale_by_learning_rate(schedule),
    )


def _lars(schedule: optax.Schedule, weight_decay: float) -> optax.GradientTransformation:
    """Builds LARS (You et al. 2017, algorithm 1) with momentum 0.9 and a trust ratio for weight matrices only."""
    return optax.lars(schedule, weight_decay, is_matrix, trust_coefficient=1.0, trust_ratio_mask=is_matrix)


def _adamw(schedule: optax.Schedule, weight_decay: float) -> optax.GradientTransformation:
    return optax.adamw(schedule, weight_decay=weight_decay, mask=is_matrix)


def _sgd(schedule: optax.Schedule, weight_decay: float) -> optax.GradientTransformation:
    return optax.chain(optax.add_decayed_weights(weight_decay, is_matrix), optax.sgd(schedule, momentum=0.9))


def _muon(schedule: optax.Schedule, weight_decay: float) -> optax.GradientTransformation:
    """Builds Muon (Jordan et al. 2024) for weight matrices, and Adam for the other parameters.

    All updates have a root mean square of about `MUON_RMS` times the rate, that of typical updates of Adam (Liu et al.
    2025, Muon is scalable for LLM training, section 2.2).
    """
    matrices = optax.chain(
        optax.contrib.scale_by_muon(ns_steps=0, weight_dimension_numbers=_muon_dimensions),  # momentum alone
        optax.stateless(lambda momentum, _: orthogonalize(momentum)),
        optax.add_decayed_weights(weight_decay),
        optax.scale_by_learning_rate(schedule),
    )
    others = optax.adamw(lambda step: MUON_RMS * schedule(step), weight_decay=0.0, nesterov=True)
    labels = {True: "muon", False: "adam"}
    return optax.partition(
        {"muon": matrices, "adam": others}, lambda params: jax.tree.map(labels.get, is_matrix(params))
    )


def orthogonalize(momentum: Any) -> Any:
    """Returns Muon's directions for kernels `[..., inputs, outputs]`, with a root mean square of about `MUON_RMS`.

    Small kernels of one shape are orthogonalized as one batch, because a GPU takes as long for the products of one
    small matrix as for those of many.
    """
    kernels, structure = jax.tree.flatten(momentum)
    directions = list(kernels)
    for numbers in _batches(kernels):
        batch = jnp.stack([_padded_matrix(kernels[number]) for number in numbers])
        orthogonal, _ = NEWTON_SCHULZ.update(batch, NEWTON_SCHULZ.init(batch))
        for number, matrix in zip(numbers, jnp.asarray(orthogonal), strict=True):
            directions[number] = _direction(matrix, kernels[number])
    return structure.unflatten(directions)


def _batches(kernels: Sequence[jax.Array]) -> list[list[int]]:
    """Groups the numbers of small kernels by the shape of their padded matrices; each large kernel is alone."""
    batches = collections.defaultdict(list)
    for number, kernel in enumerate(kernels):
        is_small = kernel.size <= MAX_BATCHED_SIZE
        batches[_padded_matrix(kernel).shape, None if is_small else number].append(number)
    return list(batches.values())


def _padded_matrix(kernel: jax.Array) -> jax.Array:
    """Returns the wide matrix of a kernel. Thin ones are padded with zeros, which stay zero, to few common shapes."""
    matrix = _as_wide_matrix(kernel)
    rows, columns = matrix.shape
    if rows > THIN[0]:
        return matrix
    return jnp.pad(matrix, [(0, THIN[0] - rows), (0, -columns % THIN[1])])


def _direction(orthogonal: jax.Array, kernel: jax.Array) -> jax.Array:
    """Returns the direction of a kernel for the orthogonalized `_padded_matrix`."""
    rows, columns = _as_wide_matrix(kernel).shape
    matrix = MUON_RMS * columns**0.5 * orthogonal[:rows, :columns]
    return (matrix if _is_wide(kernel) else matrix.T).reshape(kernel.shape)


def _is_wide(kernel: jax.Array) -> bool:
    return kernel.size <= kernel.shape[-1] ** 2


def _as_wide_matrix(kernel: jax.Array) -> jax.Array:
    """Returns the matrix `[inputs, outputs]` of a kernel, transposed if it has more inputs than outputs."""
    matrix = kernel.reshape(-1, kernel.shape[-1])
    return matrix if _is_wide(kernel) else matrix.T


def _muon_dimensions(kernels: Any) -> Any:
    """Returns the axes of the inputs and of the outputs of each kernel `[..., inputs, outputs]`."""
    return jax.tree.map(
        lambda leaf: optax.contrib.MuonDimensionNumbers(tuple(range(leaf.ndim - 1)), leaf.ndim - 1), kernels
    )


OPTIMIZERS = {"muon": _muon, "lamb": _lamb, "lars": _lars, "adamw": _adamw, "sgd": _sgd}


def make_schedule(
    *, learning_rate: float, warmup_steps: int, total_steps: int, final_learning_rate_fraction: float
) -> optax.Schedule:
    """Returns a linear warm-up from 0 over `warmup_steps` updates, then a cosine decay to the final fraction."""
    return optax.warmup_cosine_decay_schedule(
        init_value=0.0,
        peak_value=learning_rate,
        warmup_steps=min(warmup_steps, max(total_steps - 1, 0)),
        decay_steps=max(total_steps, 1),
        end_value=learning_rate * final_learning_rate_fraction,
    )


def make_optimizer(
    *, name: str, schedule: optax.Schedule, weight_decay: float, clip_norm: float, as_one_vector: bool = True
) -> optax.GradientTransformation:
    """Returns the optimizer called `name` after a clip of the global gradient norm; only weight matrices decay.

    Args:
      as_one_vector: clips the gradients as one vector, as in `update.gradient_norms`.
    """
    clip = optax.clip_by_global_norm(clip_norm)
    return optax.chain(optax.flatten(clip) if as_one_vector else clip, OPTIMIZERS[name](schedule, weight_decay))


def is_matrix(params: Any) -> Any:
    """Returns for each parameter whether it is a weight matrix or kernel, not a bias, norm scale or relation bias."""

    def is_kernel(path, leaf):
        return leaf.ndim > 1 and "relation_bias" not in jax.tree_util.keystr(path)

    return jax.tree_util.tree_map_with_path(is_kernel, params)
