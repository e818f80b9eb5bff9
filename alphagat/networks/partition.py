"""How devices share out a network that is too large for one: heads and hidden units of a block (Shoeybi et al. 2019,
section 3), and slices of whatever divides.
"""

from collections.abc import Sequence
from typing import Any

import jax

# The dimension that the devices of the `model` axis share, by the last two names of a parameter's path.
_MODEL_DIMENSIONS = {
    ("query_key_value", "kernel"): 1,
    ("attention_out", "kernel"): 0,
    ("mlp_in", "kernel"): 1,
    ("mlp_in", "bias"): 0,
    ("mlp_out", "kernel"): 0,
}
_SMALLEST_SLICED = 1024  # elements; what is smaller is not worth gathering


def model_dimension(path: tuple[Any, ...], leaf: Any) -> int | None:
    """Returns the dimension of a leaf that the `model` axis splits, or None.

    Args:
      path: of `jax.tree_util`, to a parameter or to what an optimizer keeps of one.
    """
    names = tuple(key.key for key in path[-2:] if isinstance(key, jax.tree_util.DictKey))
    if names[-1:] == ("relation_bias",):
        return leaf.ndim - 1
    dimension = _MODEL_DIMENSIONS.get(names)  # pyright: ignore[reportArgumentType]
    return dimension if dimension is not None and dimension < leaf.ndim else None


def slice_dimension(leaf: Any, num_slices: int, axes: Sequence[str | None]) -> int | None:
    """Returns the largest dimension of a leaf that divides into `num_slices` and that `axes` leaves free, or None."""
    if leaf.size < _SMALLEST_SLICED:
        return None
    free = [d for d in range(leaf.ndim) if axes[d] is None and leaf.shape[d] % num_slices == 0]
    return max(free, key=lambda d: leaf.shape[d], default=None)
