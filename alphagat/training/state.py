"""The state of a run: everything that a checkpoint holds."""

import math
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from alphagat.agents.build import make_params
from alphagat.learner.update import TrainState, make_health
from alphagat.networks.partition import model_dimension, slice_dimension
from alphagat.replay import Replay, make_replay
from alphagat.runtime import sharding
from alphagat.selfplay.auxiliary_targets import blank_records
from alphagat.selfplay.games_in_flight import GamesInFlight, start_games
from alphagat.training.setup import Run, Setup, auxiliary_targets, scales_loss


class Sample(struct.PyTreeNode):
    """One training example in the replay. It stores the game state, because features are cheap to recompute.

    Attributes:
      state: the position.
      policy_target: `[A]` float32.
      policy_weight: `[]` float32, weight of the example in the policy loss.
      value_target: `[]` float32, from the perspective of the player to move.
      auxiliary: target of each auxiliary head by name.
    """

    state: Any
    policy_target: jax.Array
    policy_weight: jax.Array
    value_target: jax.Array
    auxiliary: dict[str, jax.Array] = struct.field(default_factory=dict)


class Block(struct.PyTreeNode):
    """The samples of one iteration of the actors, which the learners add to the replay in the next iteration.

    Attributes:
      samples: `[G, M]` before each shape.
      is_final: `[]` bool, whether their targets are final.
      params_step: `[]` int32, number of updates of the acting parameters.
    """

    samples: Sample
    is_final: jax.Array
    params_step: jax.Array


class Actors(struct.PyTreeNode):
    """The parameters of the actor devices.

    Attributes:
      params: the parameters last received from the learners.
      step: `[]` int32, their number of updates.
    """

    params: Any
    step: jax.Array


class BoardState(struct.PyTreeNode):
    """The state of one board of a run. All fields have a leading group axis, except `iteration` and parts of `block`.

    Attributes:
      games: games in flight, and their plies that wait for targets.
      replay: a ring of `Sample`s per group.
      groups: `[G]` int32, index of each group in the whole run. Keys are folded from it, never from a device index.
      iteration: `[]` int32, iterations that trained on this board; with actors, iterations that the learners finished.
      block: samples of the last iteration; None without actors.
    """

    games: GamesInFlight
    replay: Replay
    groups: jax.Array
    iteration: jax.Array
    block: Block | None = None


# How the arrays of a board are sharded over a mesh that plays and learns; such a board has no block.
_SHARDED, _REPLICATED = cast(Any, sharding.SHARDED), cast(Any, sharding.REPLICATED)
BOARD_SPECS = BoardState(games=_SHARDED, replay=_SHARDED, groups=_SHARDED, iteration=_REPLICATED)


class RunState(struct.PyTreeNode):
    """Everything that changes in a run. Equal states continue bit-identically.

    Fields with a leading group axis are sharded over the devices; the others are replicated. With actors, games and
    groups reside on the actor devices, and everything else except `actors.params` on the learner devices.

    Attributes:
      train: parameters, optimizer state, number of updates.
      boards: one per board of the config; empty in runs on recorded games.
      key: `[2]` uint32, data of the root key.
      iteration: `[]` int32, iterations done.
      evaluated: `[]` int32, iteration of the last evaluation.
      rollbacks: `[]` int32, how often the run returned to a checkpoint because updates or searches were not finite.
      previous_params: parameters at the last evaluation; the opponent `previous`.
      actors: None unless some devices only play.
    """

    train: TrainState
    boards: tuple[BoardState, ...]
    key: jax.Array
    iteration: jax.Array
    evaluated: jax.Array
    rollbacks: jax.Array
    previous_params: Any
    actors: Actors | None = None


def state_shardings(mesh: Mesh, shapes: RunState, *, fsdp: bool = False, num_actors: int = 0) -> RunState:
    """Returns the sharding of each leaf of a run state shaped like `shapes`."""
    actors, learners = sharding.split_mesh(mesh, num_actors)
    sharded, replicated = sharding.sharded(learners), sharding.replicated(learners)

    def assign(tree: Any, where: NamedSharding) -> Any:
        return jax.tree.map(lambda _: where, tree)

    def place(board: BoardState) -> BoardState:
        block = assign(board.block, replicated)
        return BoardState(
            games=assign(board.games, sharding.sharded(actors)),
            replay=assign(board.replay, sharded),
            groups=assign(board.groups, sharding.sharded(actors)),
            iteration=assign(board.iteration, replicated),
            block=block and block.replace(samples=assign(block.samples, sharded)),
        )

    placed = assign(shapes, replicated).replace(
        train=params_shardings(learners, shapes.train, fsdp=fsdp),
        boards=tuple(place(board) for board in shapes.boards),
        previous_params=params_shardings(learners, shapes.previous_params, fsdp=fsdp),
    )
    if shapes.actors is not None:
        params = assign(shapes.actors.params, sharding.replicated(actors))
        placed = placed.replace(actors=placed.actors.replace(params=params))
    return placed


def params_shardings(mesh: Mesh, shapes: Any, *, fsdp: bool) -> Any:
    """Returns the sharding of each leaf of parameters or optimizer state: split along `model`, sliced along `stage`,
    and with `fsdp` also sliced along `data`.
    """
    candidates = (sharding.STAGE, sharding.DATA) if fsdp else (sharding.STAGE,)
    together = tuple(axis for axis in candidates if mesh.shape[axis] > 1)

    def split(path: tuple[Any, ...], leaf: Any) -> NamedSharding:
        axes: list[Any] = [None] * leaf.ndim
        if mesh.shape[sharding.MODEL] > 1 and (dimension := model_dimension(path, leaf)) is not None:
            axes[dimension] = sharding.MODEL
        # Slice one dimension over all axes, or over one of them if no dimension is divisible by their product.
        for sliced in (together, *((axis,) for axis in together)):
            num_slices = math.prod(mesh.shape[axis] for axis in sliced)
            if num_slices > 1 and (dimension := slice_dimension(leaf, num_slices, axes)) is not None:
                axes[dimension] = sliced
                break
        return NamedSharding(mesh, PartitionSpec(*axes)) if any(axes) else sharding.replicated(mesh)

    return jax.tree_util.tree_map_with_path(split, shapes)


def held_share(mesh: Mesh, shapes: Any, *, fsdp: bool) -> float:
    """Returns the share of the parameters that a device holds, which is 1 if nothing is split."""
    places = jax.tree.leaves(params_shardings(mesh, shapes, fsdp=fsdp))
    leaves = jax.tree.leaves(shapes)
    held = sum(math.prod(place.shard_shape(leaf.shape)) for place, leaf in zip(places, leaves, strict=True))
    return held / sum(leaf.size for leaf in leaves)


def _initial_board(setup: Setup, number: int, key: jax.Array) -> BoardState:
    plan, game = setup.plan, setup.game
    auxiliary = auxiliary_targets(setup.config)
    groups = jnp.asarray(plan.groups_of(number))

    def start_group(group):
        return start_games(
            game,
            jax.random.fold_in(key, group),
            num_games=plan.group_games,
            num_waiting=plan.num_waiting,
            opening_plies=setup.config.selfplay.opening_plies,
            auxiliary=auxiliary,
        )

    example = Sample(
        game.init(key), jnp.zeros(game.num_actions), jnp.zeros(()), jnp.zeros(()), blank_records(game, auxiliary)
    )
    block = None
    if setup.config.mesh.actors:
        shape = plan.num_groups, plan.full_plies * plan.group_games
        samples = jax.tree.map(lambda x: jnp.zeros((*shape, *x.shape), x.dtype), example)
        block = Block(samples, jnp.zeros((), bool), jnp.zeros((), jnp.int32))
    return BoardState(
        games=jax.vmap(start_group)(groups),
        replay=jax.vmap(lambda _: make_replay(example, plan.group_capacity))(groups),
        groups=groups,
        iteration=jnp.zeros((), jnp.int32),
        block=block,
    )


def _initial_state(run: Run) -> RunState:
    first = run.boards[0]
    params_key, games_key, run_key = jax.random.split(jax.random.key(first.config.seed), 3)
    params = make_params(first.game, first.network, params_key)
    zero = jnp.zeros((), jnp.int32)
    average = jax.tree.map(jnp.copy, params) if first.config.learner.ema_decay else None
    playing = () if run.learns_from_games else run.boards
    return RunState(
        train=TrainState(
            params, first.optimizer.init(params), zero, make_health(scale_loss=scales_loss(first.config)), average
        ),
        boards=tuple(_initial_board(setup, number, games_key) for number, setup in enumerate(playing)),
        key=jax.random.key_data(run_key),
        iteration=zero,
        evaluated=zero,
        rollbacks=zero,
        previous_params=jax.tree.map(jnp.copy, params),
        actors=Actors(jax.tree.map(jnp.copy, params), zero) if first.config.mesh.actors else None,
    )


def state_shapes(run: Run) -> RunState:
    """Returns the shapes and dtypes of the run state without allocating it."""
    return jax.eval_shape(lambda: _initial_state(run))


def placed_shapes(run: Run) -> RunState:
    """Returns the shape, dtype and sharding of each leaf of the run state without allocating it."""
    shapes = state_shapes(run)
    return jax.tree.map(
        lambda leaf, sharding: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding),
        shapes,
        _configured_shardings(run, shapes),
    )


def init_state(run: Run) -> RunState:
    """Makes the initial state on the devices of the run; its values do not depend on the number of devices."""
    shardings = _configured_shardings(run, state_shapes(run))
    # A program runs on one mesh, so the learners create everything.
    initial = jax.tree.map(lambda where: NamedSharding(run.learner_mesh, where.spec), shardings)
    state = jax.jit(lambda: _initial_state(run), out_shardings=initial)()
    return jax.device_put(state, shardings) if run.config.mesh.actors else state


def _configured_shardings(run: Run, shapes: RunState) -> RunState:
    options = run.config.mesh
    return state_shardings(run.mesh, shapes, fsdp=options.fsdp, num_actors=options.actors)


def with_params(state: RunState, params: Any) -> RunState:
    """Returns `state` with other initial parameters; the optimizer state is kept."""

    def place_like(old: Any) -> Any:
        return jax.tree.map(lambda new, leaf: jax.device_put(np.asarray(new), leaf.sharding), params, old)

    placed = place_like(state.train.params)
    average = None if state.train.average is None else jax.tree.map(jnp.copy, placed)
    train = state.train.replace(params=placed, average=average)
    actors = state.actors and state.actors.replace(params=place_like(state.actors.params))
    return state.replace(train=train, previous_params=jax.tree.map(jnp.copy, placed), actors=actors)
