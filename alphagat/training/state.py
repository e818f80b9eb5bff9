"""The state of a run: all that a checkpoint holds."""

from typing import Any

import jax
import jax.numpy as jnp
from flax import struct
from jax.sharding import Mesh

from alphagat import sharding
from alphagat.learner.update import TrainState
from alphagat.replay import Replay, make_replay
from alphagat.selfplay.games_in_flight import GamesInFlight, start_games
from alphagat.training.setup import Setup, make_params


class Sample(struct.PyTreeNode):
    """One training example as the replay keeps it: the rules' state, since features are cheap to compute again.

    Attributes:
      state: the position.
      policy_target: `[A]` float32.
      value_target: `[]` float32, from the view of the player to move.
    """

    state: Any
    policy_target: jax.Array
    value_target: jax.Array


class RunState(struct.PyTreeNode):
    """Everything that changes in a run. The same state goes on to the same run, bit for bit.

    `games`, `replay` and `groups` have a leading axis of groups, which is sharded over the devices; the rest is
    replicated.

    Attributes:
      train: parameters, optimizer, number of updates.
      games: games in flight, and their plies that wait for targets.
      replay: a ring of `Sample`s per group.
      groups: `[G]` int32, the number of each group: keys are folded from it, never from a device.
      key: `[2]` uint32, the root key's data.
      iteration: `[]` int32, iterations done.
      previous_params: parameters at the last evaluation, the opponent called `previous`.
      rating: `[]` float32, Elo over the first evaluation, summed over the matches against `previous`.
    """

    train: TrainState
    games: GamesInFlight
    replay: Replay
    groups: jax.Array
    key: jax.Array
    iteration: jax.Array
    previous_params: Any
    rating: jax.Array


_GROUPED = ("games", "replay", "groups")


def over_fields(grouped: Any, replicated: Any) -> RunState:
    """Returns a `RunState` of one value per field: `grouped` where groups are sharded, else `replicated`."""
    fields = RunState.__dataclass_fields__
    return RunState(**{name: grouped if name in _GROUPED else replicated for name in fields})


def partition_specs() -> RunState:
    """Returns the `PartitionSpec` of each field, for `shard_map`."""
    return over_fields(sharding.SHARDED, sharding.REPLICATED)


def state_shardings(mesh: Mesh, shapes: RunState) -> RunState:
    """Returns the sharding of each leaf of a run state shaped like `shapes`."""
    prefix = over_fields(sharding.sharded(mesh), sharding.replicated(mesh))
    return jax.tree.map(
        lambda leaf_sharding, field: jax.tree.map(lambda _: leaf_sharding, field),
        prefix,
        shapes,
        is_leaf=lambda x: isinstance(x, jax.sharding.Sharding),
    )


def _initial_state(setup: Setup) -> RunState:
    plan, game = setup.plan, setup.game
    root = jax.random.key(setup.config.seed)
    params_key, games_key, run_key = jax.random.split(root, 3)
    params = make_params(game, setup.network, params_key)
    groups = jnp.arange(plan.num_groups, dtype=jnp.int32)

    def start_group(group):
        return start_games(
            game,
            jax.random.fold_in(games_key, group),
            num_games=plan.group_games,
            num_waiting=plan.num_waiting,
            opening_plies=setup.config.selfplay.opening_plies,
        )

    example = Sample(game.init(games_key), jnp.zeros(game.num_actions), jnp.zeros(()))
    return RunState(
        train=TrainState(params, setup.optimizer.init(params), jnp.zeros((), jnp.int32)),
        games=jax.vmap(start_group)(groups),
        replay=jax.vmap(lambda _: make_replay(example, plan.group_capacity))(groups),
        groups=groups,
        key=jax.random.key_data(run_key),
        iteration=jnp.zeros((), jnp.int32),
        previous_params=jax.tree.map(jnp.copy, params),
        rating=jnp.zeros(()),
    )


def state_shapes(setup: Setup) -> RunState:
    """Returns shapes and dtypes of the run state, without making it."""
    return jax.eval_shape(lambda: _initial_state(setup))


def init_state(setup: Setup, mesh: Mesh) -> RunState:
    """Makes the state that a run starts from, on the devices of `mesh`; the same on any number of them."""
    shardings = state_shardings(mesh, state_shapes(setup))
    return jax.jit(lambda: _initial_state(setup), out_shardings=shardings)()
