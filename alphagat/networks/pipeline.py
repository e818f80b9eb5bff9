"""Pipeline parallelism: parts of a batch pass through the blocks of a network on several devices (GPipe: Huang et al.
2019, section 2).
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct
from jax.sharding import PartitionSpec

from alphagat.networks.gat import GraphAttentionNetwork, kind_of_block, make_block
from alphagat.networks.values import Support
from alphagat.runtime.sharding import STAGE

_PARTS_PER_STAGE = 4  # at most; with M parts and S stages, a device idles for (S - 1) / (M + S - 1) of the ticks


class StagedParams(struct.PyTreeNode):
    """Parameters in the layout of the stages.

    Attributes:
      blocks: by kind of block, the parameters of S stages with up to K blocks of that kind, with leading axes
        `[S, K]`; unused slots are never read.
      rest: parameters of the embedding and the heads, replicated.
    """

    blocks: Any
    rest: Any


@dataclasses.dataclass(frozen=True)
class PipelinedNetwork:
    """Computes `network` in stages along the mesh axis `stage`, or directly if the mesh lacks this axis.

    The first stage also computes the embedding, the last one the heads.

    Attributes:
      blocks_per_stage: S counts of at least 1, whose sum is `network.num_blocks`.
    """

    network: GraphAttentionNetwork
    blocks_per_stage: tuple[int, ...]

    @property
    def value_support(self) -> Support | None:
        return self.network.value_support

    def init(self, key: jax.Array, nodes: jax.Array) -> Any:
        return self.network.init(key, nodes)

    def apply(self, params: Any, nodes: jax.Array, **options: Any) -> Any:
        """Returns `network.apply(params, nodes)`; `params` may also be the result of `place`."""
        if not _has_stages():
            return self.network.apply(params, nodes, **options)
        assert not options, "config validation allows no auxiliary head with stages"
        staged = params if isinstance(params, StagedParams) else self.place(params)
        replicated = PartitionSpec()
        run = jax.shard_map(
            self._run_stage,
            in_specs=(PartitionSpec(STAGE), replicated, replicated),
            out_specs=replicated,
            axis_names={STAGE},
            check_vma=False,
        )
        return run(staged.blocks, staged.rest, nodes)

    def place(self, params: Any) -> Any:
        """Moves the parameters of each block to its stage once, for many calls of `apply`."""
        if not _has_stages():
            return params
        parts = params["params"]
        names = [f"block_{i}" for i in range(self.network.num_blocks)]
        blocks = {}
        for kind, numbers in self._blocks_by_kind().items():
            size = max(map(len, numbers))
            some = next(each[0] for each in numbers if each)
            slots = [(*each, *[some] * (size - len(each))) for each in numbers]  # [S, K]

            def stack(*leaves: jax.Array, size: int = size) -> jax.Array:
                by_stage = jnp.stack(leaves).reshape(-1, size, *leaves[0].shape)
                free = (PartitionSpec.UNCONSTRAINED,) * (by_stage.ndim - 1)
                return jax.lax.with_sharding_constraint(by_stage, PartitionSpec(STAGE, *free))

            blocks[kind] = jax.tree.map(stack, *(parts[names[number]] for each in slots for number in each))
        return StagedParams(blocks, {name: part for name, part in parts.items() if name not in names})

    def _branches(self, blocks: Any, slot: int) -> tuple[list[Callable[[jax.Array], jax.Array]], list[int]]:
        """Returns the functions that stages may apply as their block `slot`, the identity first, and the index of the
        function of each stage.
        """
        places: dict[tuple[str, int] | None, Callable] = {None: lambda hidden: hidden}
        chosen = []
        for stage, count in enumerate(self.blocks_per_stage):
            place = None
            if slot < count:
                number = sum(self.blocks_per_stage[:stage]) + slot
                kind = kind_of_block(self.network, number)
                place = kind, self._blocks_by_kind()[kind][stage].index(number)
                params = {"params": jax.tree.map(lambda x, index=place[1]: x[0, index], blocks[kind])}
                places[place] = functools.partial(make_block(self.network, number).apply, params)
            chosen.append(list(places).index(place))
        return list(places.values()), chosen

    def _blocks_by_kind(self) -> dict[str, list[list[int]]]:
        """Returns the numbers of the blocks of each kind, for each stage."""
        ends = np.cumsum(self.blocks_per_stage)
        stages = [range(end - count, end) for end, count in zip(ends, self.blocks_per_stage)]
        kinds = dict.fromkeys(kind_of_block(self.network, number) for number in range(self.network.num_blocks))
        return {
            kind: [[int(n) for n in stage if kind_of_block(self.network, int(n)) == kind] for stage in stages]
            for kind in kinds
        }

    def _run_stage(self, blocks: Any, rest: Any, nodes: jax.Array) -> Any:
        """Computes one stage for every part of the batch; part m is in stage s at tick m + s."""
        num_stages, stage = len(self.blocks_per_stage), jax.lax.axis_index(STAGE)
        is_first, is_last = stage == 0, stage == num_stages - 1
        parts = nodes.reshape(count_parts(len(nodes), num_stages), -1, *nodes.shape[1:])
        embed = functools.partial(self.network.apply, {"params": rest}, method="embed")
        read_out = functools.partial(self.network.apply, {"params": rest}, method="read_out")
        hidden = jax.eval_shape(embed, parts[0])
        nothing = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), (hidden, jax.eval_shape(read_out, hidden)))

        slots = [self._branches(blocks, slot) for slot in range(max(self.blocks_per_stage))]

        def tick(received: jax.Array, time: jax.Array) -> tuple[jax.Array, Any]:
            is_busy = (time >= stage) & (time < stage + len(parts))
            part = parts[jnp.minimum(time, len(parts) - 1)]  # for the first stage, which has no delay
            hidden = jax.lax.cond(is_first & is_busy, lambda: embed(part), lambda: received)
            for branches, branch_of_stage in slots:
                branch = jnp.where(is_busy, jnp.asarray(branch_of_stage)[stage], 0)
                hidden = jax.lax.switch(branch, branches, hidden)
            output = jax.lax.cond(is_last & is_busy, lambda: read_out(hidden), lambda: nothing[1])
            to_next = [(s, s + 1) for s in range(num_stages - 1)]
            return jax.lax.ppermute(hidden, STAGE, to_next), output

        _, outputs = jax.lax.scan(tick, nothing[0], jnp.arange(len(parts) + num_stages - 1))
        # Outputs are zeros except on the last stage, whose first ticks are zeros too.
        outputs = jax.tree.map(lambda x: x[num_stages - 1 :].reshape(-1, *x.shape[2:]), outputs)
        return jax.lax.psum(outputs, STAGE)


def place_blocks(network: Any, params: Any) -> Any:
    """Moves the parameters of each block to its stage; returns those of a network without stages unchanged."""
    return network.place(params) if isinstance(network, PipelinedNetwork) else params


def _has_stages() -> bool:
    return STAGE in jax.sharding.get_abstract_mesh().axis_names


def count_parts(batch_size: int, num_stages: int) -> int:
    """Returns the number of equal parts into which a batch is split for the stages."""
    most = min(batch_size, _PARTS_PER_STAGE * num_stages)
    return next(count for count in range(most, 0, -1) if batch_size % count == 0)


def cut_blocks(
    num_blocks: int, num_stages: int, stage_cost: Callable[[int, int], float]
) -> tuple[float, tuple[int, ...]]:
    """Returns the lowest possible cost of the costliest stage, and the number of blocks of each stage, at least 1.

    Args:
      stage_cost: `stage_cost(start, stop)`, the cost of a stage with these blocks, including the embedding in the first
        stage and the heads in the last.
    """

    @functools.cache
    def cut(start: int, stages: int) -> tuple[float, tuple[int, ...]]:
        """Returns the cost of the costliest stage, and the counts, from block `start` on."""
        if stages == 1:
            return stage_cost(start, num_blocks), (num_blocks - start,)
        ways = []
        for count in range(1, num_blocks - start - stages + 2):
            worst, rest = cut(start + count, stages - 1)
            ways.append((max(stage_cost(start, start + count), worst), (count, *rest)))
        return min(ways)

    return cut(0, num_stages)
