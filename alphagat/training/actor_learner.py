"""Iterations that play and learn concurrently on separate devices, as in AlphaGo Zero (Silver et al. 2017, Methods,
"Self-play training pipeline"). The learners use the games of the previous iteration.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import stages
from jax.sharding import Mesh

from alphagat.learner.update import TrainState
from alphagat.replay import Replay
from alphagat.runs.metrics import TRAIN
from alphagat.runtime import sharding
from alphagat.selfplay.games_in_flight import GamesInFlight
from alphagat.training.audit import Audit
from alphagat.training.compilation import Fitted, compile_to_fit
from alphagat.training.iteration import (
    Metrics,
    are_final,
    draw_keys,
    play_iteration,
    store,
    update_parameters,
)
from alphagat.training.setup import Run, Setup
from alphagat.training.state import Actors, Block, BoardState, RunState

PARAMS_AGE = f"{TRAIN}params_age"  # number of updates by which the acting parameters lag


class ActorLearnerIterations:
    """Runs the programs of the actors and the learners side by side on two meshes.

    In iteration t the actors play, while the learners add the block of iteration t - 1 to the replay and run the
    updates of that iteration. The learners then receive block t, and the actors receive new parameters every
    `learner.actor_sync_every` updates.
    """

    def __init__(self, run: Run, state: RunState, say: Callable[[str], None]):
        """Compiles the programs of all boards. Raises UserError if one does not fit into memory."""
        self._run, self._actors, self._learners = run, run.actor_mesh, run.learner_mesh
        self._sync_every = run.config.learner.actor_sync_every
        self._updates = _updates_by_iteration(run.boards, run.order)
        self._groups = [jax.device_put(board.groups, sharding.sharded(self._learners)) for board in state.boards]
        self._play = [self._compile_play(number, state) for number in range(len(run.boards))]
        self._learn = [self._compile_learn(number, state, say) for number in range(len(run.boards))]

    @property
    def programs(self) -> dict[str, list[stages.Compiled]]:
        """The programs of the actors and of the learners, one per board."""
        return {"playing": self._play, "learning": [each.program for each in self._learn]}

    @property
    def num_micro_batches(self) -> int:
        return max(each.num_micro_batches for each in self._learn)

    def run(self, state: RunState, iteration: int) -> tuple[RunState, Metrics, Audit]:
        """Starts iteration number `iteration`, counted from 1; the results may still be running."""
        assert state.actors is not None
        number = self._run.order[iteration - 1]
        games, samples, sums, audit = self._play[number](*self._play_arguments(state, number, iteration))
        boards, train, learned = list(state.boards), state.train, self._nothing_learned()
        if iteration > 1:
            before = self._run.order[iteration - 2]
            arguments = self._learn_arguments(state, before, iteration - 1)
            train, replay, board_iteration, learned = self._learn[before].program(*arguments)
            boards[before] = boards[before].replace(replay=replay, iteration=board_iteration)
        is_final = are_final(self._run.boards[number].plan, self._run.num_iterations_of(number, iteration - 1))
        block = Block(
            samples=jax.device_put(samples, sharding.sharded(self._learners)),
            is_final=self._replicate(np.asarray(is_final)),
            params_step=jnp.copy(state.actors.step),
        )
        boards[number] = boards[number].replace(games=games, block=block)
        actors = self._hand_over(train) if self._is_handed_over(iteration) else state.actors
        state = state.replace(
            train=train, boards=tuple(boards), iteration=self._replicate(np.int32(iteration)), actors=actors
        )
        return state, sums | learned, audit

    def _replicate(self, value: Any) -> jax.Array:
        return jax.device_put(value, sharding.replicated(self._learners))

    def _is_handed_over(self, iteration: int) -> bool:
        """Returns whether the actors receive parameters after the updates of an iteration."""
        before, after = self._updates[iteration - 1 : iteration + 1]
        return after // self._sync_every > before // self._sync_every

    def _hand_over(self, train: TrainState) -> Actors:
        return Actors(jax.device_put(train.acting, sharding.replicated(self._actors)), jnp.copy(train.step))

    @functools.cached_property
    def _metric_names(self) -> list[str]:
        structure = self._learn[0].program.out_tree
        return sorted(jax.tree.unflatten(structure, [None] * structure.num_leaves)[-1])

    def _nothing_learned(self) -> Metrics:
        zeros = {f"{TRAIN}skipped", f"{TRAIN}skipped_in_a_row"}
        return {name: jnp.float32(0 if name in zeros else np.nan) for name in self._metric_names}

    def _play_arguments(self, state: RunState, number: int, iteration: int) -> tuple:
        assert state.actors is not None
        board, key = state.boards[number], jax.device_put(state.key, sharding.replicated(self._actors))
        board_iteration = np.int32(self._run.num_iterations_of(number, iteration - 1))
        return state.actors.params, board.games, board.groups, key, np.int32(iteration - 1), board_iteration

    def _learn_arguments(self, state: RunState, number: int, iteration: int) -> tuple:
        board = state.boards[number]
        learned = board.replace(games=None, groups=None, block=None)
        return state.train, learned, board.block, self._groups[number], state.key, np.int32(iteration - 1)

    def _compile_play(self, number: int, state: RunState) -> stages.Compiled:
        program = make_play_program(self._run.boards[number], self._actors)
        return program.lower(*self._play_arguments(state, number, 1)).compile()

    def _compile_learn(self, number: int, state: RunState, say: Callable[[str], None]) -> Fitted:
        arguments = self._learn_arguments(state, number, 1)

        def lower(setup: Setup) -> stages.Lowered:
            return make_learn_program(setup, self._learners).lower(*arguments)

        return compile_to_fit(self._run, state, number, lower, say)


def make_play_program(setup: Setup, mesh: Mesh) -> stages.Wrapped:
    """Returns the jitted `play(params, games, groups, root_key, iteration, board_iteration)`.

    It returns games, samples, metrics and an audit, and donates the games. `board_iteration` counts the iterations that
    played this board.
    """
    replicated, sharded = sharding.REPLICATED, sharding.SHARDED
    play_here = sharding.over_data(
        functools.partial(play_iteration, setup),
        mesh,
        (replicated, sharded, replicated, sharded, replicated),
        (sharded, sharded, replicated, sharded),
    )

    def play(
        params: Any,
        games: GamesInFlight,
        groups: jax.Array,
        root_key: jax.Array,
        iteration: jax.Array,
        board_iteration: jax.Array,
    ) -> tuple[GamesInFlight, Any, Metrics, Audit]:
        group_keys, is_full = draw_keys(setup, root_key, iteration, groups)
        return play_here(params, games, board_iteration, group_keys[:, 0], is_full)

    return jax.jit(play, donate_argnums=1)


def make_learn_program(setup: Setup, mesh: Mesh) -> stages.Wrapped:
    """Returns the jitted `learn(train, board, block, groups, root_key, iteration)` for the block of `iteration`.

    It returns `train`, the replay, the board's iteration and metrics, and donates the first two arguments.
    """
    replicated, sharded = sharding.REPLICATED, sharding.SHARDED
    store_here = sharding.over_data(store, mesh, (sharded, sharded, replicated), sharded)

    def learn(
        train: TrainState,
        board: BoardState,
        block: Block,
        groups: jax.Array,
        root_key: jax.Array,
        iteration: jax.Array,
    ) -> tuple[TrainState, Replay, jax.Array, Metrics]:
        group_keys, _ = draw_keys(setup, root_key, iteration, groups)
        board = board.replace(replay=store_here(board.replay, block.samples, block.is_final))
        age = (train.step - block.params_step).astype(jnp.float32)
        train, metrics = update_parameters(setup, mesh, train, board, group_keys[:, 1])
        return train, board.replay, board.iteration + 1, metrics | {PARAMS_AGE: age}

    return jax.jit(learn, donate_argnums=(0, 1))


def _updates_by_iteration(setups: Sequence[Setup], order: Sequence[int]) -> list[int]:
    """Returns the cumulative number of updates after each iteration, starting with 0, if none is skipped."""
    total, learned, updates = 0, [0] * len(setups), [0, 0]
    for number in order[:-1]:
        plan = setups[number].plan
        total += plan.updates_per_iteration * (learned[number] >= plan.first_update_iteration)
        learned[number] += 1
        updates.append(total)
    return updates
