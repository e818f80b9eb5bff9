"""The AlphaZero loss."""

import functools
from typing import Any, NamedTuple, cast

import chex
import jax
import jax.numpy as jnp

from alphagat.networks import Network
from alphagat.networks.values import value_loss


class Batch(NamedTuple):
    """Training examples, from the view of the player to move.

    Attributes:
      nodes: `[B, V, F]` float32.
      legal_action_mask: `[B, A]` bool.
      policy_target: `[B, A]` float32, sums to 1, 0 where illegal.
      policy_weight: `[B]` float32, of each example in the policy loss; 1 on average.
      value_target: `[B]` float32.
      value_mask: `[B]` float32, 1 where the value target counts, else 0; None: it counts everywhere.
      ownership_target: `[B, V]` float32, 1 for nodes that this player holds in the end, -1 for the other's; None: not
        learned.
    """

    nodes: jax.Array
    legal_action_mask: jax.Array
    policy_target: jax.Array
    policy_weight: jax.Array
    value_target: jax.Array
    value_mask: jax.Array | None = None
    ownership_target: jax.Array | None = None


def alphazero_loss(
    params: Any, network: Network, batch: Batch, value_weight: float, ownership_weight: float
) -> tuple[jax.Array, dict]:
    """Returns the mean loss over the batch and its parts (Silver et al. 2018, equation 1; the decay is the
    optimizer's).

    Policy: cross-entropy of the legal prior against the target. Value: as `networks.values.value_loss` says. Owners,
    where there are targets: the mean squared error over the nodes.
    """
    apply = network.apply if batch.ownership_target is None else functools.partial(network.apply, with_ownership=True)
    prior_logits, output, *ownership = cast(tuple[jax.Array, ...], apply(params, batch.nodes))
    _check_shapes(batch, prior_logits)
    legal_logits = jnp.where(batch.legal_action_mask, prior_logits, jnp.finfo(prior_logits.dtype).min)
    log_prior = jax.nn.log_softmax(legal_logits)
    cross_entropy = -(batch.policy_target * jnp.where(batch.legal_action_mask, log_prior, 0.0)).sum(-1)
    policy_loss = (batch.policy_weight * cross_entropy).mean()
    errors = value_loss(output, batch.value_target, network.value_support)
    error = (errors if batch.value_mask is None else batch.value_mask * errors).mean()
    entropy = -(jnp.exp(log_prior) * jnp.where(batch.legal_action_mask, log_prior, 0.0)).sum(-1).mean()
    parts = {"policy_loss": policy_loss, "value_loss": error, "policy_entropy": entropy}
    loss = policy_loss + value_weight * error
    if batch.ownership_target is not None:
        parts["ownership_loss"] = jnp.square(ownership[0] - batch.ownership_target).mean()
        loss += ownership_weight * parts["ownership_loss"]
    return loss, parts


def _check_shapes(batch: Batch, prior_logits: jax.Array) -> None:
    """Raises AssertionError at trace time where broadcasting would hide a wrong shape."""
    batch_size, num_nodes, _ = batch.nodes.shape
    chex.assert_shape([batch.legal_action_mask, batch.policy_target], (batch_size, prior_logits.shape[-1]))
    chex.assert_equal_shape([prior_logits, batch.policy_target])
    chex.assert_shape([batch.policy_weight, batch.value_target], (batch_size,))
    if batch.value_mask is not None:
        chex.assert_shape(batch.value_mask, (batch_size,))
    if batch.ownership_target is not None:
        chex.assert_shape(batch.ownership_target, (batch_size, num_nodes))
