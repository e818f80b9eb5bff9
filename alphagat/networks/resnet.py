"""The convolutional residual network of AlphaZero (Silver et al. 2018), the baseline."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from alphagat.graphs.topology import Topology
from alphagat.networks.heads import at_least_float32, take_distinct, value_output
from alphagat.networks.values import Support


class ResidualNetwork(nn.Module):
    """Convolves the cells of the board; its parameters fit only one board size.

    It replaces AlphaZero's batch norm by layer norm, over channels before each convolution and over cells and channels
    in the heads, because layer norm has no running statistics. A linear map adds the nodes outside the grid (the
    borders of Hex) to every cell.

    Call: nodes `[B, V, F]` float32 -> (prior logits `[B, A]`, not masked; output of the value head from the perspective
    of the player to move: see `networks.values`).
    """

    topology: Topology
    width: int
    num_blocks: int
    value_support: Support | None = None
    dtype: jnp.dtype = jnp.dtype("float32")
    remat: bool = False
    pooled_share: float = 0.0  # of the channels between the convolutions of every second block

    @nn.compact
    def __call__(self, nodes: jax.Array, edges: None = None) -> tuple[jax.Array, jax.Array]:
        assert edges is None, "`agents.build` refuses boards whose edges vary"
        batch_size = nodes.shape[0]
        rows, columns = self.topology.grid_shape
        num_cells = rows * columns
        hidden = Convolution(self.width, self.dtype, name="stem")(
            nodes[:, :num_cells].reshape(batch_size, rows, columns, -1)
        )
        if num_cells < self.topology.num_nodes:
            outside = nodes[:, num_cells:].reshape(batch_size, -1)
            hidden += nn.Dense(self.width, dtype=self.dtype, name="outside")(outside)[:, None, None]
        make_block = nn.remat(ResidualBlock) if self.remat else ResidualBlock
        for i in range(self.num_blocks):
            num_pooled = round(self.pooled_share * self.width) if i % 2 else 0
            hidden = make_block(self.dtype, num_pooled, name=f"block_{i}")(hidden)
        hidden = nn.relu(nn.LayerNorm(dtype=self.dtype, name="norm")(hidden))
        value = nn.Dense(1, use_bias=False, dtype=self.dtype, name="value_conv")(hidden)
        value = nn.relu(board_norm(self.dtype, "value_norm")(value)).reshape(batch_size, -1)
        value = nn.relu(nn.Dense(self.width, dtype=self.dtype, name="value_hidden")(value))
        prior_logits = GridPolicyHead(self.topology, self.dtype, name="policy")(hidden)
        return prior_logits, value_output(value, self.value_support)


class PooledResidualNetwork(ResidualNetwork):
    """The same network with global pooling in every second block, as in KataGo (Wu 2019, section 3.3)."""

    pooled_share: float = 1 / 3


class GridPolicyHead(nn.Module):
    """Scores actions by one linear map from two channels of all cells, as AlphaGo Zero (Silver et al. 2017).

    If a cell has several actions, it predicts one plane per step and kind, and reads it at the origin of the move, like
    AlphaZero in chess (Silver et al. 2018, methods, "Representation").

    Call: hidden `[B, rows, columns, D]` -> prior logits `[B, A]` float32.
    """

    topology: Topology
    dtype: jnp.dtype

    @nn.compact
    def __call__(self, hidden: jax.Array) -> jax.Array:
        batch_size, rows, columns, width = hidden.shape
        senders, receivers = self.topology.action_senders, self.topology.action_receivers
        steps = [receivers // columns - senders // columns, receivers % columns - senders % columns]
        moves, plane = np.unique([*steps, self.topology.action_kinds], axis=1, return_inverse=True)
        num_planes = moves.shape[1]
        if num_planes == 1 or max(senders.max(), receivers.max()) >= rows * columns:
            cells = nn.Dense(2, use_bias=False, dtype=self.dtype, name="conv")(hidden)
            cells = nn.relu(board_norm(self.dtype, "norm")(cells)).reshape(batch_size, -1)
            return nn.Dense(self.topology.num_actions, name="logits")(at_least_float32(cells))
        hidden = Convolution(width, self.dtype, name="conv")(hidden)
        hidden = nn.relu(board_norm(self.dtype, "norm")(hidden))
        planes = nn.Dense(num_planes, name="planes")(at_least_float32(hidden))
        return take_distinct(planes.reshape(batch_size, -1), senders * num_planes + plane.reshape(-1))


def board_norm(dtype: jnp.dtype, name: str) -> nn.LayerNorm:
    """Returns a layer norm over all cells and channels `[B, rows, columns, D]`.

    Without it, the few ReLUs of a head may all die in the first updates, which makes the head constant.
    """
    return nn.LayerNorm(reduction_axes=(-3, -2, -1), feature_axes=-1, dtype=dtype, name=name)


class ResidualBlock(nn.Module):
    """Adds two convolutions to its input, each after a norm and a ReLU (He et al. 2016, figure 4e).

    With `num_pooled`, this many channels of the first convolution only give their mean and maximum over the board to
    the others, by a linear map.
    """

    dtype: jnp.dtype
    num_pooled: int = 0

    @nn.compact
    def __call__(self, hidden: jax.Array) -> jax.Array:  # [B, rows, columns, D] -> [B, rows, columns, D]
        width = hidden.shape[-1]
        branch = Convolution(width, self.dtype, name="conv_0")(self._activate(hidden, "norm_0"))
        if self.num_pooled:
            branch, pooled = branch[..., self.num_pooled :], self._activate(branch[..., : self.num_pooled], "pool_norm")
            # The gradient of jnp.max is NaN where XLA recomputes the values and finds none equal to their maximum.
            most = nn.max_pool(pooled, pooled.shape[1:3])[:, 0, 0]
            summary = jnp.concatenate([pooled.mean(axis=(1, 2)), most], axis=-1)
            branch += nn.Dense(width - self.num_pooled, dtype=self.dtype, name="pool")(summary)[:, None, None]
        return hidden + Convolution(width, self.dtype, name="conv_1")(self._activate(branch, "norm_1"))

    def _activate(self, cells: jax.Array, name: str) -> jax.Array:
        return nn.relu(nn.LayerNorm(dtype=self.dtype, name=name)(cells))


class Convolution(nn.Module):
    """Applies a 3x3 convolution with zero padding and no bias; equals `nn.Conv` for the same parameters.

    On a CPU it multiplies patches of nine cells by the kernel: XLA's gradient of a convolution inside a loop, such as
    the updates of an iteration, takes 16 times as long there.
    """

    features: int
    dtype: jnp.dtype

    @nn.compact
    def __call__(self, cells: jax.Array) -> jax.Array:  # [B, rows, columns, D] -> [B, rows, columns, features]
        kernel = self.param("kernel", nn.initializers.lecun_normal(), (3, 3, cells.shape[-1], self.features))
        cells, kernel = cells.astype(self.dtype), kernel.astype(self.dtype)
        return jax.lax.platform_dependent(cells, kernel, cpu=multiply_patches, default=convolve)


def convolve(cells: jax.Array, kernel: jax.Array) -> jax.Array:
    return jax.lax.conv_general_dilated(cells, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def multiply_patches(cells: jax.Array, kernel: jax.Array) -> jax.Array:
    rows, columns = cells.shape[1:3]
    padded = jnp.pad(cells, ((0, 0), (1, 1), (1, 1), (0, 0)))
    shifted = [padded[:, down : down + rows, right : right + columns] for down in range(3) for right in range(3)]
    return jnp.tensordot(jnp.concatenate(shifted, axis=-1), kernel.reshape(-1, kernel.shape[-1]), axes=1)
