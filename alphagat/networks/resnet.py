"""The convolutional residual network that AlphaZero used (Silver et al. 2018), as the baseline."""

import flax.linen as nn
import jax

from alphagat.graphs.topology import Topology
from alphagat.networks.heads import value_output
from alphagat.networks.values import Support


class ResidualNetwork(nn.Module):
    """Reads the cells of the board as a picture; its parameters belong to one size of board.

    Differs from AlphaZero in the normalisation: layer norm over channels before each convolution, which keeps no
    running statistics, so that the network is a function of its parameters alone. What lies outside the grid (Hex
    borders) is added to every cell through one linear map.

    Call: nodes `[B, V, F]` float32 -> (prior logits `[B, A]`, not masked; output of the value head, for the player to
    move: see `networks.values`).
    """

    topology: Topology
    width: int
    num_blocks: int
    value_support: Support | None = None

    @nn.compact
    def __call__(self, nodes: jax.Array) -> tuple[jax.Array, jax.Array]:
        batch_size = nodes.shape[0]
        rows, columns = self.topology.grid_shape
        num_cells = rows * columns
        hidden = self._convolve(nodes[:, :num_cells].reshape(batch_size, rows, columns, -1), "stem")
        if num_cells < self.topology.num_nodes:
            outside = nodes[:, num_cells:].reshape(batch_size, -1)
            hidden += nn.Dense(self.width, name="outside")(outside)[:, None, None]
        for i in range(self.num_blocks):
            branch = self._convolve(nn.relu(nn.LayerNorm(name=f"norm_{i}_0")(hidden)), f"conv_{i}_0")
            branch = self._convolve(nn.relu(nn.LayerNorm(name=f"norm_{i}_1")(branch)), f"conv_{i}_1")
            hidden += branch
        hidden = nn.relu(nn.LayerNorm(name="norm")(hidden))
        policy = nn.relu(nn.Dense(2, name="policy_conv")(hidden)).reshape(batch_size, -1)
        value = nn.relu(nn.Dense(1, name="value_conv")(hidden)).reshape(batch_size, -1)
        value = nn.relu(nn.Dense(self.width, name="value_hidden")(value))
        prior_logits = nn.Dense(self.topology.num_actions, name="policy_logits")(policy)
        return prior_logits, value_output(value, self.value_support)

    def _convolve(self, planes: jax.Array, name: str) -> jax.Array:
        return nn.Conv(self.width, (3, 3), use_bias=False, name=name)(planes)
