"""Computes one update of the parameters on all devices."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import optax
from flax import struct
from jax.flatten_util import ravel_pytree

from alphagat.learner.loss import AuxiliaryLoss, Batch, alphazero_loss
from alphagat.networks import Network

FIRST_LOSS_SCALE = 2.0**15
LARGEST_LOSS_SCALE, LEAST_LOSS_SCALE = 2.0**24, 1.0
GROWTH_INTERVAL = 2000  # finite updates before the scale doubles


class Health(struct.PyTreeNode):
    """Counts of non-finite updates, which are skipped, and the loss scale.

    Attributes:
      skipped: `[]` int32, updates skipped so far.
      skipped_in_a_row: `[]` int32, updates skipped since the last finite one; in float16 only those at the least scale.
      loss_scale: `[]` float32, factor of the loss in the backward pass; 1 except in float16.
      since_scaled: `[]` int32, finite updates since the scale changed.
    """

    skipped: jax.Array
    skipped_in_a_row: jax.Array
    loss_scale: jax.Array
    since_scaled: jax.Array


def make_health(*, scale_loss: bool) -> Health:
    """Returns the initial health; `scale_loss` is for float16, in which small gradients would underflow."""
    # Distinct arrays, because a run donates each of them.
    skipped, in_a_row, since_scaled = (jnp.zeros((), jnp.int32) for _ in range(3))
    return Health(skipped, in_a_row, jnp.float32(FIRST_LOSS_SCALE if scale_loss else 1), since_scaled)


class TrainState(struct.PyTreeNode):
    """Everything that an update changes.

    Attributes:
      params: parameters of the network, float32.
      opt_state: state of the optimizer.
      step: `[]` int32, updates so far, skipped ones excluded.
      health: skipped updates and the loss scale.
      average: exponential moving average of `params`, or None.
    """

    params: Any
    opt_state: Any
    step: jax.Array
    health: Health
    average: Any = None

    @property
    def acting(self) -> Any:
        """The parameters for self-play and matches: the average if there is one."""
        return self.params if self.average is None else self.average


def mean_gradients(
    params: Any,
    loss_scale: jax.Array,
    batch: Batch,
    *,
    network: Network,
    value_weight: float,
    auxiliary: Sequence[AuxiliaryLoss] = (),
    axis_name: str | None = None,
    num_micro_batches: int = 1,
    as_one_vector: bool = True,
) -> tuple[Any, dict]:
    """Returns the gradients of the mean loss over the global batch, and the parts of the loss.

    Each device passes an equal share of the batch; both results are means over `axis_name`. Inside `shard_map` this
    needs `check_vma=False`: with True, JAX already sums the gradient of replicated parameters over the axis, and the
    mean would be too large by the number of devices.

    Args:
      loss_scale: `[]`, multiplies the loss and divides the gradients (Micikevicius et al. 2018, section 3.2).
      auxiliary: the auxiliary losses.
      num_micro_batches: parts of the share, computed in sequence: the same mean in less memory.
      as_one_vector: averages all gradients in one collective instead of one per parameter. False where other mesh axes
        split the parameters, because a single vector would gather them.
    """

    def scaled_loss(params: Any, batch: Batch) -> tuple[jax.Array, dict]:
        loss, parts = alphazero_loss(params, network, batch, value_weight, auxiliary)
        return loss * loss_scale, parts

    gradient = jax.grad(scaled_loss, has_aux=True)
    if num_micro_batches == 1:
        means = gradient(params, batch)
    else:
        micro_batches = jax.tree.map(lambda x: x.reshape(num_micro_batches, -1, *x.shape[1:]), batch)
        means = _mean_over(functools.partial(gradient, params), micro_batches, num_micro_batches)
    if axis_name is not None and as_one_vector:
        flat, unflatten = ravel_pytree(means)
        means = unflatten(jax.lax.pmean(flat, axis_name))
    elif axis_name is not None:
        means = jax.lax.pmean(means, axis_name)
    gradients, parts = means
    return jax.tree.map(lambda x: x / loss_scale, gradients), parts


def _mean_over(function: Callable[[Batch], Any], batches: Batch, count: int) -> Any:
    """Returns the mean of `function` over the leading axis of `batches`, computed in sequence."""
    shapes = jax.eval_shape(function, jax.tree.map(lambda x: x[0], batches))
    zeros = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)
    total, _ = jax.lax.scan(lambda total, batch: (jax.tree.map(jnp.add, total, function(batch)), None), zeros, batches)
    return jax.tree.map(lambda x: x / count, total)


def make_update(
    find_gradients: Callable[..., tuple[Any, dict]],
    optimizer: optax.GradientTransformation,
    *,
    ema_decay: float = 0.0,
    scale_loss: bool = False,
    as_one_vector: bool = True,
) -> Callable[..., tuple[TrainState, dict]]:
    """Returns `update(train_state, *batch) -> (train_state, metrics)`.

    An update with a non-finite gradient is skipped: it changes only `health`. The metrics are the parts of the loss,
    the norm of the gradient, and its norm for each part of the network.

    Args:
      find_gradients: `find_gradients(params, loss_scale, *batch)` is `mean_gradients` for a global batch.
      ema_decay: the weight of the old average in the new one (Polyak and Juditsky 1992, exponentially weighted).
      scale_loss: adapts the loss scale, for float16; otherwise it stays at 1.
      as_one_vector: as in `gradient_norms`.
    """

    def update(train: TrainState, *batch: Any) -> tuple[TrainState, dict]:
        gradients, metrics = find_gradients(train.params, train.health.loss_scale, *batch)
        updates, opt_state = optimizer.update(gradients, train.opt_state, train.params)
        params = optax.apply_updates(train.params, updates)
        average = train.average
        if average is not None:
            average = optax.incremental_update(params, average, 1 - ema_decay)
        metrics |= gradient_norms(gradients, as_one_vector=as_one_vector)
        is_finite = jnp.isfinite(metrics["grad_norm"])
        health = next_health(train.health, is_finite, scale_loss=scale_loss)
        moved = TrainState(params, opt_state, train.step + 1, health, average)
        stayed = train.replace(health=health)
        return jax.tree.map(lambda new, old: jnp.where(is_finite, new, old), moved, stayed), metrics

    return update


def gradient_norms(gradients: Any, *, as_one_vector: bool) -> dict[str, jax.Array]:
    """Returns `grad_norm` of the whole gradient and `grad_norm/NAME` of each part of the network.

    Args:
      as_one_vector: sums each part as one vector, with fewer steps than one sum per parameter. False where other mesh
        axes split the parameters.
    """

    def norm(part: Any) -> jax.Array:
        return optax.tree.norm(ravel_pytree(part)[0] if as_one_vector else part)

    parts = {f"grad_norm/{name}": norm(part) for name, part in gradients["params"].items()}
    return {"grad_norm": optax.tree.norm(parts), **parts}


def next_health(health: Health, is_finite: jax.Array, *, scale_loss: bool) -> Health:
    """Counts an update and adapts the loss scale: halves it on overflow, doubles it after `GROWTH_INTERVAL` finite
    updates. An overflow that a smaller scale may cure does not count as one in a row.
    """
    skipped = (~is_finite).astype(jnp.int32)
    scale, since = health.loss_scale, health.since_scaled
    is_curable = scale_loss & (scale > LEAST_LOSS_SCALE)
    if scale_loss:
        grows = is_finite & (since + 1 >= GROWTH_INTERVAL)
        grown = jnp.where(grows, jnp.minimum(2 * scale, LARGEST_LOSS_SCALE), scale)
        scale = jnp.where(is_finite, grown, jnp.maximum(scale / 2, LEAST_LOSS_SCALE))
        since = jnp.where(is_finite & ~grows, since + 1, 0)
    return Health(
        skipped=health.skipped + skipped,
        skipped_in_a_row=jnp.where(is_finite | is_curable, 0, health.skipped_in_a_row + 1),
        loss_scale=scale,
        since_scaled=since,
    )
