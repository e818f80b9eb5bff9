"""Optimizers and the learning rate schedule."""

from typing import Any

import jax
import optax
import optax.contrib

MUON_RMS = 0.2


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

    def dimensions(params: Any) -> Any:
        return jax.tree.map(_muon_dimensions, is_matrix(params), params)

    return optax.contrib.muon(
        schedule,
        weight_decay=weight_decay,
        weight_decay_mask=is_matrix,
        muon_weight_dimension_numbers=dimensions,
        consistent_rms=MUON_RMS,
        adam_learning_rate=lambda step: MUON_RMS * schedule(step),
    )


def _muon_dimensions(is_matrix: bool, leaf: jax.Array) -> optax.contrib.MuonDimensionNumbers | None:
    """Returns the axes of the inputs and of the outputs of a kernel `[..., inputs, outputs]`; None for Adam."""
    return optax.contrib.MuonDimensionNumbers(tuple(range(leaf.ndim - 1)), leaf.ndim - 1) if is_matrix else None


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
    *, name: str, schedule: optax.Schedule, weight_decay: float, clip_norm: float
) -> optax.GradientTransformation:
    """Returns the optimizer called `name` after a clip of the global gradient norm; only weight matrices decay."""
    return optax.chain(optax.clip_by_global_norm(clip_norm), OPTIMIZERS[name](schedule, weight_decay))


def is_matrix(params: Any) -> Any:
    """Returns for each parameter whether it is a weight matrix or kernel, not a bias, norm scale or relation bias."""

    def is_kernel(path, leaf):
        return leaf.ndim > 1 and "relation_bias" not in jax.tree_util.keystr(path)

    return jax.tree_util.tree_map_with_path(is_kernel, params)
