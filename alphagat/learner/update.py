"""One update of the parameters, on every device at once."""

from collections.abc import Callable
from typing import Any

import jax
import optax
from flax import struct
from jax.flatten_util import ravel_pytree

from alphagat.learner.loss import Batch, alphazero_loss
from alphagat.networks import Network


class TrainState(struct.PyTreeNode):
    """Attributes:
    params: of the network.
    opt_state: of the optimizer.
    step: `[]` int32, updates so far.
    average: the exponential moving average of `params`; None where none is kept.
    """

    params: Any
    opt_state: Any
    step: jax.Array
    average: Any = None

    @property
    def acting(self) -> Any:
        """The parameters that play: the average where there is one."""
        return self.params if self.average is None else self.average


def mean_gradients(
    params: Any, network: Network, batch: Batch, value_weight: float, axis_name: str | None
) -> tuple[Any, dict]:
    """Returns the gradients of the mean loss over the global batch, before any optimizer, and the parts of the loss.

    Each device gives its share of the batch, all equal in size; both results are means over `axis_name`. Inside
    `shard_map` this needs `check_vma=False`: with True, JAX has already summed the gradient of replicated
    parameters over the axis, and the mean of that sum would be too large by the number of devices.
    """
    gradients, parts = jax.grad(alphazero_loss, has_aux=True)(params, network, batch, value_weight)
    if axis_name is None:
        return gradients, parts
    # As one vector: a mean per parameter would make the devices wait for each other a hundred times.
    flat, unflatten = ravel_pytree((gradients, parts))
    return unflatten(jax.lax.pmean(flat, axis_name))


def make_update(
    network: Network,
    optimizer: optax.GradientTransformation,
    *,
    value_weight: float,
    axis_name: str | None,
    average_decay: float = 0.0,
) -> Callable[[TrainState, Batch], tuple[TrainState, dict]]:
    """Returns `update(train_state, local_batch) -> (train_state, metrics)`.

    `average_decay` is the weight of the old average in the new one (Polyak and Juditsky 1992, exponentially weighted).
    """

    def update(train: TrainState, batch: Batch) -> tuple[TrainState, dict]:
        gradients, metrics = mean_gradients(train.params, network, batch, value_weight, axis_name)
        updates, opt_state = optimizer.update(gradients, train.opt_state, train.params)
        params = optax.apply_updates(train.params, updates)
        metrics["grad_norm"] = optax.tree.norm(gradients)
        average = train.average
        if average is not None:
            average = optax.incremental_update(params, average, 1 - average_decay)
        return TrainState(params, opt_state, train.step + 1, average), metrics

    return update
