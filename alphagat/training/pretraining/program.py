"""Iterations on recorded positions, with the same learner as self-play."""

import functools
import operator
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import stages
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from alphagat.learner.loss import Batch
from alphagat.learner.update import TrainState
from alphagat.runtime import sharding
from alphagat.training.compilation import Fitted, compile_to_fit
from alphagat.training.iteration import Metrics, draw_keys, gradients_of, learner_metrics, make_batch, make_updates
from alphagat.training.pretraining.dataset import Recorded
from alphagat.training.pretraining.loader import make_loader
from alphagat.training.pretraining.positions import Positions
from alphagat.training.setup import Run, Setup
from alphagat.training.state import RunState, Sample

EPOCHS, POSITIONS = "epochs", "positions"  # metrics besides the learner's
BLOCK = PartitionSpec(None, sharding.DATA)  # updates, groups


class PretrainIterations:
    """Runs iterations with as many updates as in self-play, on recorded positions."""

    def __init__(self, run: Run, state: RunState, say: Callable[[str], None], recorded: Recorded):
        """Compiles the programs of all boards and starts prefetching the batches after `state`.

        Raises:
          UserError: a program does not fit into memory, or grain is not installed.
        """
        self._run, self._recorded = run, recorded
        self._where = NamedSharding(run.mesh, BLOCK)
        start, rollbacks = int(state.iteration), int(state.rollbacks)
        self._loaders = [self._load(number, start, rollbacks) for number in range(len(run.boards))]
        self._fitted = [self._compile(number, state, say) for number in range(len(run.boards))]

    @property
    def programs(self) -> dict[str, list[stages.Compiled]]:
        """The compiled programs of each role, one per board."""
        return {"an iteration": [each.program for each in self._fitted]}

    @property
    def num_micro_batches(self) -> int:
        return max(each.num_micro_batches for each in self._fitted)

    def run(self, state: RunState, iteration: int) -> tuple[RunState, Metrics, None]:
        """Starts iteration number `iteration`, counted from 1 and consecutive. The results may still be running."""
        number = self._run.order[iteration - 1]
        block = self._place(self._run.boards[number], next(self._loaders[number]))
        train, done, metrics = self._fitted[number].program(state.train, block, state.key, state.iteration)
        plan, config = self._run.boards[number].plan, self._run.boards[number].config
        used = plan.updates_per_iteration * config.learner.batch_size
        epochs = self._run.num_iterations_of(number, iteration) * used / self._recorded.boards[number].train.size
        metrics |= {EPOCHS: np.float32(epochs), POSITIONS: np.float32(used)}
        return state.replace(train=train, iteration=done), metrics, None

    def _load(self, number: int, start: int, rollbacks: int) -> Any:
        setup = self._run.boards[number]
        plan = setup.plan
        groups = self._groups_here((plan.updates_per_iteration, plan.num_groups))
        # A rollback changes the order of the positions.
        seed = np.random.SeedSequence([setup.config.seed, number, rollbacks]).generate_state(1)[0]
        return make_loader(
            self._recorded.boards[number].train,
            num_updates=plan.updates_per_iteration,
            batch_size=setup.config.learner.batch_size,
            first=self._run.num_iterations_of(number, start),
            last=self._run.order.count(number),
            seed=int(seed),
            rows=slice(groups.start * plan.group_batch_size, groups.stop * plan.group_batch_size),
        )

    def _groups_here(self, shape: tuple[int, int]) -> range:
        """Returns the groups whose batches reside on devices of this process; they are contiguous."""
        indices = self._where.addressable_devices_indices_map(shape).values()
        places = [index[1].indices(shape[1]) for index in indices if index is not None]
        return range(min(place[0] for place in places), max(place[1] for place in places))

    def _place(self, setup: Setup, block: Positions) -> Positions:
        """Puts `[K, rows]` positions on the devices as `[K, G, b]`."""
        plan = setup.plan

        def put(leaf: np.ndarray) -> jax.Array:
            grouped = leaf.reshape(len(leaf), -1, plan.group_batch_size, *leaf.shape[2:])
            shape = (len(leaf), plan.num_groups, *grouped.shape[2:])
            return jax.make_array_from_process_local_data(self._where, grouped, shape)

        return jax.tree.map(put, block)

    def _compile(self, number: int, state: RunState, say: Callable[[str], None]) -> Fitted:
        plan, train = self._run.boards[number].plan, self._recorded.boards[number].train
        before = (plan.updates_per_iteration, plan.num_groups, plan.group_batch_size)
        block = jax.tree.map(
            lambda x: jax.ShapeDtypeStruct((*before, *x.shape[1:]), x.dtype, sharding=self._where), train
        )

        def lower(setup: Setup) -> stages.Lowered:
            program = make_pretrain_program(setup, self._run.mesh, number)
            return program.lower(state.train, block, state.key, state.iteration)

        return compile_to_fit(self._run, state, number, lower, say)


def make_pretrain_program(setup: Setup, mesh: Mesh, number: int = 0) -> stages.Wrapped:
    """Returns the jitted `learn(train, block, root_key, iteration) -> (train, iteration, metrics)`.

    It donates `train` and `iteration`. `block` holds `Positions`, `[K, G, b]` before each shape; `number` is the index
    of the board.
    """
    batch_of = functools.partial(recorded_batch, setup)
    all_updates = make_updates(setup, mesh, gradients_of(setup, mesh, batch_of, (sharding.SHARDED, sharding.SHARDED)))

    def learn(train: TrainState, block: Positions, root_key: jax.Array, iteration: jax.Array):
        group_keys, _ = draw_keys(setup, root_key, iteration, jnp.asarray(setup.plan.groups_of(number)))

        def batches(index: jax.Array) -> tuple[Positions, jax.Array]:
            keys = jax.vmap(jax.random.fold_in, in_axes=(0, None))(group_keys[:, 1], index)
            return jax.tree.map(operator.itemgetter(index), block), keys

        train, metrics = all_updates(train, batches)
        return train, iteration + 1, learner_metrics(setup, train, metrics)

    return jax.jit(learn, donate_argnums=(0, 3))


def recorded_batch(setup: Setup, positions: Positions, keys: jax.Array) -> Batch:
    """Makes a batch of one device's positions, `[G, b]` before each shape, each in a random symmetry."""
    samples = Sample(
        state=positions.state,
        policy_target=policy_targets(positions.policy, setup.game.num_actions),
        policy_weight=positions.policy_weight,
        value_target=positions.value_target,
        auxiliary=positions.auxiliary,
    )
    batch = make_batch(setup, samples, keys)._replace(value_mask=positions.value_mask.reshape(-1))
    return batch._replace(auxiliary_mask=positions.auxiliary_mask.reshape(-1)) if positions.auxiliary else batch


def policy_targets(policy: jax.Array, num_actions: int) -> jax.Array:
    """Returns policies, `[..., A]` float32; integer moves become one-hot policies."""
    return jax.nn.one_hot(policy, num_actions) if jnp.issubdtype(policy.dtype, jnp.integer) else policy
