"""Partitions a network over devices: heads and hidden units of a block (Shoeybi et al. 2019, section 3), and slices of
any parameter with a divisible dimension.
"""

from collections.abc import Sequence
from typing import Any

import jax

# The dimension that the `model` axis splits, by the last two names of a parameter's path.
_MODEL_DIMENSIONS = {
    ("query_key_value", "kernel"): 1,
    ("attention_out", "kernel"): 0,
    ("mixing_in", "kernel"): 1,
    ("mixing_out", "kernel"): 0,
    ("mlp_in", "kernel"): 1,
    ("mlp_in", "bias"): 0,
    ("mlp_out", "kernel"): 0,
}
_SMALLEST_SLICED = 1024  # elements; smaller leaves stay whole


def model_dimension(path: tuple[Any, ...], leaf: Any) -> int | None:
    """Returns the dimension of a leaf that the `model` axis splits, or None.

    Args:
      path: the `jax.tree_util` path of a parameter or of its optimizer state.
    """
    names = tuple(key.key for key in path[-2:] if isinstance(key, jax.tree_util.DictKey))
    if names[-1:] in (("relation_bias",), ("relation_weights",)):
        return leaf.ndim - 1
    dimension = _MODEL_DIMENSIONS.get(names)  # pyright: ignore[reportArgumentType]
    return dimension if dimension is not None and dimension < leaf.ndim else None


def slice_dimension(leaf: Any, num_slices: int, axes: Sequence[str | None]) -> int | None:
    """Returns the largest dimension of a leaf that `num_slices` divides and no axis in `axes` splits, or None."""
    if leaf.size < _SMALLEST_SLICED:
        return None
    free = [d for d in range(leaf.ndim) if axes[d] is None and leaf.shape[d] % num_slices == 0]
    return max(free, key=lambda d: leaf.shape[d], default=None)
