"""The AlphaZero loss."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import chex
import jax
import jax.numpy as jnp

from alphagat.networks import Network
from alphagat.networks.values import value_loss


class Batch(NamedTuple):
    """Training examples, from the perspective of the player to move.

    Attributes:
      nodes: `[B, V, F]` float32.
      legal_action_mask: `[B, A]` bool.
      policy_target: `[B, A]` float32, sums to 1, 0 where illegal.
      policy_weight: `[B]` float32, weight of each example in the policy loss; 1 on average.
      value_target: `[B]` float32.
      value_mask: `[B]` float32, 1 where the value target is known, else 0; None: known everywhere.
      auxiliary: the targets of the auxiliary heads by name, float32, `[B]` before each shape.
      auxiliary_mask: `[B]` float32, 1 where the auxiliary targets are known, else 0; None: known everywhere.
      edges: `[B, V, V, R]` float32, the edges of each position; None: those of the board.
    """

    nodes: jax.Array
    legal_action_mask: jax.Array
    policy_target: jax.Array
    policy_weight: jax.Array
    value_target: jax.Array
    value_mask: jax.Array | None = None
    auxiliary: dict[str, jax.Array] = {}  # noqa: RUF012 (never changed)
    auxiliary_mask: jax.Array | None = None
    edges: jax.Array | None = None


class AuxiliaryLoss(NamedTuple):
    """One auxiliary part of the loss.

    Attributes:
      name: of the head, and of its target in `Batch.auxiliary`.
      weight: against the policy loss.
      loss: `loss(prediction, target)` returns the loss of each example, `[B]`.
    """

    name: str
    weight: float
    loss: Callable[[jax.Array, jax.Array], jax.Array]


def alphazero_loss(
    params: Any, network: Network, batch: Batch, value_weight: float, auxiliary: Sequence[AuxiliaryLoss] = ()
) -> tuple[jax.Array, dict]:
    """Returns the loss, `[]`, and its parts by name (Silver et al. 2018, equation 1).

    The optimizer applies the weight decay. Each part is a mean over the whole batch. `policy_weight` weighs the policy
    loss of each example. Examples whose value or auxiliary target is unknown contribute 0 to that part.
    """
    options: dict[str, Any] = {"with_auxiliary": True} if auxiliary else {}
    prior_logits, output, *predictions = cast(
        tuple[Any, ...], network.apply(params, batch.nodes, batch.edges, **options)
    )
    _check_shapes(batch, prior_logits)
    log_prior = _log_prior(prior_logits, batch.legal_action_mask)
    cross_entropy = -(batch.policy_weight * (batch.policy_target * log_prior).sum(-1)).mean()
    error = _masked_mean(value_loss(output, batch.value_target, network.value_support), batch.value_mask)
    entropy = -(jnp.exp(log_prior) * log_prior).sum(-1).mean()
    parts = {"policy_loss": cross_entropy, "value_loss": error, "policy_entropy": entropy}
    loss = cross_entropy + value_weight * error
    for each in auxiliary:
        losses = each.loss(predictions[0][each.name], batch.auxiliary[each.name])
        part = _masked_mean(losses, batch.auxiliary_mask)
        parts[f"{each.name}_loss"] = part
        loss += each.weight * part
    return loss, parts


def policy_loss(logits: jax.Array, legal: jax.Array, target: jax.Array) -> jax.Array:
    """Returns `[B]`, the cross-entropy of the legal prior against the target; all arguments are `[B, A]`."""
    return -(target * _log_prior(logits, legal)).sum(-1)


def _log_prior(logits: jax.Array, legal: jax.Array) -> jax.Array:
    """Returns the `[B, A]` log probabilities of the legal actions; 0 for the others."""
    legal_logits = jnp.where(legal, logits, jnp.finfo(logits.dtype).min)
    return jnp.where(legal, jax.nn.log_softmax(legal_logits), 0.0)


def _masked_mean(losses: jax.Array, mask: jax.Array | None) -> jax.Array:
    """Returns the mean over all `[B]` examples, where those with a mask of 0 count as a loss of 0."""
    return (losses if mask is None else mask * losses).mean()


def _check_shapes(batch: Batch, prior_logits: jax.Array) -> None:
    """Raises AssertionError at trace time where broadcasting would hide a wrong shape."""
    batch_size = len(batch.nodes)
    chex.assert_shape([batch.legal_action_mask, batch.policy_target], (batch_size, prior_logits.shape[-1]))
    chex.assert_equal_shape([prior_logits, batch.policy_target])
    chex.assert_shape([batch.policy_weight, batch.value_target], (batch_size,))
    for mask in (batch.value_mask, batch.auxiliary_mask):
        if mask is not None:
            chex.assert_shape(mask, (batch_size,))
    for target in batch.auxiliary.values():
        chex.assert_axis_dimension(target, 0, batch_size)
