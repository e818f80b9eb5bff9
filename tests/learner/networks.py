"""A network with few parameters, and batches for it."""

import flax.linen as nn
import jax.numpy as jnp
import numpy as np

from alphagat.learner.loss import Batch

NUM_NODES, NUM_FEATURES, NUM_ACTIONS = 3, 2, 4


class TinyNetwork(nn.Module):
    """Kernels, biases and a relation bias; `[B, V, F]` -> (`[B, A]`, `[B]`)."""

    num_actions: int = NUM_ACTIONS
    value_support = None

    @nn.compact
    def __call__(self, nodes, edges=None):
        relation_bias = self.param("relation_bias", nn.initializers.normal(1.0), (nodes.shape[1], 2))
        hidden = nn.tanh(nn.Dense(2, name="in")(nodes) + relation_bias[None]).reshape(len(nodes), -1)
        return nn.Dense(self.num_actions, name="policy")(hidden), jnp.tanh(nn.Dense(1, name="value")(hidden)[..., 0])


def random_batch(size, seed=0, dtype=np.float32):
    """Draws random positions; the first has one legal action."""
    generator = np.random.default_rng(seed)
    legal = generator.random((size, NUM_ACTIONS)) < 0.6
    legal[np.arange(size), generator.integers(0, NUM_ACTIONS, size)] = True
    legal[0] = np.arange(NUM_ACTIONS) == 1
    target = generator.random((size, NUM_ACTIONS)) * legal
    return Batch(
        nodes=generator.normal(size=(size, NUM_NODES, NUM_FEATURES)).astype(dtype),
        legal_action_mask=legal,
        policy_target=(target / target.sum(axis=1, keepdims=True)).astype(dtype),
        policy_weight=generator.choice([0.0, 0.5, 2.0], size).astype(dtype),
        value_target=generator.uniform(-1, 1, size).astype(dtype),
    )
