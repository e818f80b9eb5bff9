"""Optimizers and their schedule."""

import jax
import optax

OPTIMIZERS = {
    "lamb": optax.lamb,
    "adamw": optax.adamw,
    "sgd": lambda learning_rate, weight_decay, mask: optax.chain(
        optax.add_decayed_weights(weight_decay, mask), optax.sgd(learning_rate, momentum=0.9)
    ),
}


def make_schedule(
    *, learning_rate: float, warmup_steps: int, total_steps: int, final_learning_rate_fraction: float
) -> optax.Schedule:
    """Returns a linear warm-up from 0 over `warmup_steps` updates, then half a cosine down to the final fraction."""
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
    """Returns the optimizer behind a clip of the global gradient norm.

    `lamb` is You et al. 2020, algorithm 2. Weights decay, biases, norms and relation biases (fewer than two axes, or named
    `relation_bias`) do not.
    """
    optimizer = OPTIMIZERS[name](schedule, weight_decay=weight_decay, mask=_decays)
    return optax.chain(optax.clip_by_global_norm(clip_norm), optimizer)


def _decays(params):
    return jax.tree_util.tree_map_with_path(
        lambda path, leaf: leaf.ndim > 1 and "relation_bias" not in jax.tree_util.keystr(path), params
    )
