"""Pipeline parallelism: parts of a batch pass through the blocks of a network on several devices (GPipe: Huang et al.
2019, section 2).
"""

import dataclasses
import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from flax import struct
from jax.sharding import PartitionSpec

from alphagat.networks.gat import make_block
from alphagat.networks.placement import PlacedNetwork
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


class _Place(NamedTuple):
    """A block in its stage; `index` counts the blocks of its kind before it there."""

    name: str
    kind: str
    index: int


@dataclasses.dataclass(frozen=True)
class PipelinedNetwork(PlacedNetwork):
    """Computes `network` in stages along the mesh axis `stage`, or directly if the mesh lacks this axis.

    The first stage also computes the embedding, the last one the heads.

    Attributes:
      blocks_per_stage: S counts of at least 1, whose sum is `network.num_blocks`.
    """

    blocks_per_stage: tuple[int, ...]

    def apply(self, params: Any, nodes: jax.Array, edges: jax.Array | None = None, /, **options: Any) -> Any:
        if not _has_stages():
            return self.network.apply(params, nodes, edges, **options)
        assert not options, "config validation allows no auxiliary head with stages"
        staged = params if isinstance(params, StagedParams) else self.place(params)
        replicated = PartitionSpec()
        run = jax.shard_map(
            self._run_stage,
            in_specs=(PartitionSpec(STAGE), replicated, replicated, replicated),
            out_specs=replicated,
            axis_names={STAGE},
            check_vma=False,
        )
        return run(staged.blocks, staged.rest, nodes, edges)

    def place(self, params: Any) -> Any:
        """Moves the parameters of each block to its stage."""
        if not _has_stages():
            return params
        parts = params["params"]
        stages, blocks = self._stages(), {}
        for kind in dict.fromkeys(self.network.kinds_of_blocks):
            of_kind = [[place for place in stage if place.kind == kind] for stage in stages]
            size = max(map(len, of_kind))
            unused = next(place for stage in of_kind for place in stage)
            slots = [place for stage in of_kind for place in (*stage, *[unused] * (size - len(stage)))]  # [S * K]
            stack = functools.partial(_stack, num_stages=len(stages))
            blocks[kind] = jax.tree.map(stack, *(parts[place.name] for place in slots))
        names = {place.name for stage in stages for place in stage}
        return StagedParams(blocks, {name: part for name, part in parts.items() if name not in names})

    def _stages(self) -> list[list[_Place]]:
        """Returns the blocks of each stage, in order."""
        kinds = enumerate(self.network.kinds_of_blocks)
        stages = []
        for count in self.blocks_per_stage:
            some = list(itertools.islice(kinds, count))
            before = [kind for _, kind in some]
            stages.append([_Place(f"block_{n}", kind, before[:i].count(kind)) for i, (n, kind) in enumerate(some)])
        return stages

    def _branches(self, blocks: Any, places: Sequence[_Place | None]) -> tuple[list[Callable], list[int]]:
        """Returns functions from features `[B, V, D]` and edges to features, the identity first, and the index of each
        stage's function.

        Args:
          places: the block of each stage; None for the identity.
        """
        keys = [place and (place.kind, place.index) for place in places]
        branches: dict[tuple[str, int] | None, Callable] = {None: lambda hidden, edges: hidden}
        for key in filter(None, keys):
            params = {"params": jax.tree.map(lambda x, index=key[1]: x[0, index], blocks[key[0]])}
            branches[key] = functools.partial(make_block(self.network, key[0]).apply, params)
        return list(branches.values()), [list(branches).index(key) for key in keys]

    def _run_stage(self, blocks: Any, rest: Any, nodes: jax.Array, edges: jax.Array | None) -> Any:
        """Computes one stage for every part of the batch; part m is in stage s at tick m + s."""
        num_stages, stage = len(self.blocks_per_stage), jax.lax.axis_index(STAGE)
        is_first, is_last = stage == 0, stage == num_stages - 1
        num_parts = count_parts(len(nodes), num_stages)
        parts, edges = jax.tree.map(lambda x: x.reshape(num_parts, -1, *x.shape[1:]), (nodes, edges))
        embed = functools.partial(self.network.apply, {"params": rest}, method="embed")
        read_out = functools.partial(self.network.apply, {"params": rest}, method="read_out")
        hidden = jax.eval_shape(embed, parts[0])
        nothing = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), (hidden, jax.eval_shape(read_out, hidden)))
        slots = [self._branches(blocks, places) for places in itertools.zip_longest(*self._stages())]

        def tick(received: jax.Array, time: jax.Array) -> tuple[jax.Array, Any]:
            is_busy = (time >= stage) & (time < stage + num_parts)
            number = jnp.clip(time - stage, 0, num_parts - 1)
            part, edges_of_part = jax.tree.map(lambda x: x[number], (parts, edges))
            hidden = jax.lax.cond(is_first & is_busy, lambda: embed(part), lambda: received)
            for branches, branch_of_stage in slots:
                branch = jnp.where(is_busy, jnp.asarray(branch_of_stage)[stage], 0)
                hidden = jax.lax.switch(branch, branches, hidden, edges_of_part)
            output = jax.lax.cond(is_last & is_busy, lambda: read_out(hidden), lambda: nothing[1])
            to_next = [(s, s + 1) for s in range(num_stages - 1)]
            return jax.lax.ppermute(hidden, STAGE, to_next), output

        _, outputs = jax.lax.scan(tick, nothing[0], jnp.arange(num_parts + num_stages - 1))
        # Outputs are zeros except on the last stage, whose first ticks are zeros too.
        outputs = jax.tree.map(lambda x: x[num_stages - 1 :].reshape(-1, *x.shape[2:]), outputs)
        return jax.lax.psum(outputs, STAGE)


def _stack(*leaves: jax.Array, num_stages: int) -> jax.Array:
    """Stacks the leaves of S * K blocks to `[S, K, ...]`, with a stage on each of its devices."""
    by_stage = jnp.stack(leaves).reshape(num_stages, -1, *leaves[0].shape)
    free = (PartitionSpec.UNCONSTRAINED,) * (by_stage.ndim - 1)
    return jax.lax.with_sharding_constraint(by_stage, PartitionSpec(STAGE, *free))


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
