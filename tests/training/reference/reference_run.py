"""A slow reference of a run of self-play on one board, written from the documentation.

It follows docs/guides/design.md, the help of the config, and the keys that `training.iteration.draw_keys` documents. So
if the program ignores a field, the two differ. The rules of the game, the network and mctx's search are black boxes,
because they have tests of their own. The containers are those of the program, so that the states can be compared leaf
by leaf.
"""

import math
from typing import Any, NamedTuple

import jax
import numpy as np
import optax

from alphagat.config import Config
from alphagat.games import make_game
from alphagat.learner.update import Health, TrainState
from alphagat.networks import make_network
from alphagat.replay import Replay
from alphagat.search import Search, make_network_evaluator, make_search
from alphagat.selfplay.games_in_flight import GamesInFlight
from alphagat.training.state import BoardState, RunState
from tests.training.reference.reference_learner import Learner
from tests.training.reference.reference_selfplay import Group, Rules, stack

NO_GROUP = 2**31 - 1


class Sizes(NamedTuple):
    """The sizes of a run.

    Attributes:
      group_games: games in a group.
      frames: positions per iteration, in all groups.
      samples: positions per iteration that are trained on, in all groups.
      full_plies: plies per iteration that are searched in full.
      updates: per iteration, once the replay holds its minimum.
      wait: iterations that a position waits for its targets.
      held: iterations whose positions the replay holds.
    """

    group_games: int
    frames: int
    samples: int
    full_plies: int
    updates: int
    wait: int
    held: int


def derive_sizes(config: Config, longest: int) -> Sizes:
    """Derives the sizes of a run on a game of at most `longest` plies."""
    selfplay, learner = config.selfplay, config.learner
    group_games = selfplay.num_games // selfplay.num_groups
    frames = selfplay.num_groups * group_games * selfplay.plies_per_iteration
    full_plies = max(round(selfplay.full_search_fraction * selfplay.plies_per_iteration), 1)
    samples = selfplay.num_groups * group_games * full_plies
    horizon = selfplay.horizon or min(selfplay.max_plies or longest, longest)
    return Sizes(
        group_games,
        frames,
        samples,
        full_plies,
        updates=max(round(learner.replay_ratio * samples / learner.batch_size), 1),
        # Together with the plies of one iteration, those that wait cover the horizon.
        wait=math.ceil((horizon - 1) / selfplay.plies_per_iteration),
        held=math.ceil(config.replay.capacity / samples),
    )


def _simulations(config: Config) -> list[int]:
    """Returns the simulations of a full search in each part of the run."""
    number, most = config.selfplay.first_simulations or config.search.num_simulations, config.search.num_simulations
    parts = []
    while number < most:
        parts.append(number)
        number *= 2
    return [*parts, most]


class ReferenceRun:
    """A run from its first iteration.

    Attributes:
      learner: parameters, optimizer state and moving average.
      groups: the games and samples of each group.
      previous: the parameters at the last evaluation.
      iteration: iterations done.
      evaluated: the iteration of the last evaluation.
      drawn: the rows of each update in the ring of each group, `[G, b]`.
    """

    def __init__(self, config: Config, params: Any = None):
        """Starts a run, from `params` if they are given."""
        selfplay, self._config, self._rules = config.selfplay, config, Rules(make_game(config.boards[0]))
        self._network = _make_network(config, self._rules)
        self._full = [
            self.make_search(number, config.search.value_scale, explore=True) for number in _simulations(config)
        ]
        self._fast = self.make_search(selfplay.fast_simulations, config.evaluation.value_scale, explore=False)
        params_key, games_key, self._key = jax.random.split(jax.random.key(config.seed), 3)
        if params is None:
            params = jax.jit(self._network.init)(params_key, self._rules.observe(self._rules.first)[None])
        self.previous = params = jax.device_get(params)
        self.iteration, self.evaluated, self.drawn = 0, 0, []
        self._sizes = sizes = derive_sizes(config, self._rules.game.max_plies)
        self.groups = [
            Group(
                config,
                self._rules,
                jax.random.fold_in(games_key, number),
                num_games=sizes.group_games,
                num_waiting=sizes.wait * selfplay.plies_per_iteration,
                capacity=sizes.held * sizes.group_games * sizes.full_plies,
            )
            for number in range(selfplay.num_groups)
        ]
        total = sizes.updates * sum(map(self._is_enough, range(1, config.num_iterations + 1)))
        self.learner = Learner(config.learner, self._rules, self._network, params, total)

    def make_search(self, num_simulations: int, value_scale: float, *, explore: bool) -> Search:
        """Returns a compiled search with the other settings of the config."""
        options = self._config.search
        search = make_search(
            self._rules.game,
            make_network_evaluator(self._rules.game, self._network),
            algorithm=options.algorithm,
            num_simulations=num_simulations,
            explore=explore,
            max_num_considered_actions=options.max_num_considered_actions,
            value_scale=value_scale,
            min_value_range=options.min_value_range,
            dirichlet_alpha=options.dirichlet_alpha,
            dirichlet_fraction=options.dirichlet_fraction,
            temperature=options.temperature,
            exploration_plies=options.exploration_plies,
            discount=options.discount,
        )
        return jax.jit(search)

    def iterate(self) -> dict[str, float]:
        """Plays and learns once; returns the metrics."""
        selfplay, key, played = self._config.selfplay, jax.random.fold_in(self._key, self.iteration), []
        full_key = jax.random.fold_in(key, NO_GROUP)
        order = jax.random.permutation(full_key, selfplay.plies_per_iteration)
        is_full = np.asarray(order < self._sizes.full_plies)
        part = self.iteration * len(self._full) // self._config.num_iterations
        full = self._full[part]
        update_keys = []
        for number, group in enumerate(self.groups):
            play_key, update_key = jax.random.split(jax.random.fold_in(key, number))
            update_keys.append(update_key)
            rows = group.play(self.learner.acting, play_key, full, self._fast, is_full)
            played += [ply for row in rows for ply in row]
            samples = group.release(selfplay.plies_per_iteration)
            if self.iteration >= self._sizes.wait:
                group.store(samples)
        updates = []
        if sum(group.size for group in self.groups) >= self._config.replay.min_size:
            updates = [self.learner.update(self._draw(update_keys, number)) for number in range(self._sizes.updates)]
        self.iteration += 1
        return self._describe(played, _simulations(self._config)[part]) | self._describe_updates(updates)

    def evaluate(self) -> None:
        self.previous, self.evaluated = self.learner.acting, self.iteration

    def state(self, opt_state: Any) -> RunState:
        """Returns the state of the run; `opt_state` gives the structure of the optimizer's."""
        learner, step, zero = self.learner, np.int32(self.learner.step), np.int32(0)
        moments = optax.tree.set(opt_state, **learner.moments, count=step)
        health = Health(zero, zero, np.float32(1), zero)
        return RunState(
            train=TrainState(learner.params, moments, step, health, learner.average),
            boards=(self._board(),),
            key=np.asarray(jax.random.key_data(self._key)),
            iteration=np.int32(self.iteration),
            evaluated=np.int32(self.evaluated),
            rollbacks=zero,
            previous_params=self.previous,
        )

    def _board(self) -> BoardState:
        rings = [Replay(stack(each.ring), np.int32(each.cursor), np.int32(each.size)) for each in self.groups]
        return BoardState(
            games=stack([_games(group) for group in self.groups]),
            replay=stack(rings),
            groups=np.arange(len(self.groups), dtype=np.int32),
            iteration=np.int32(self.iteration),
        )

    def _is_enough(self, iterations: int) -> bool:
        """Returns whether the replay holds its minimum after a number of iterations."""
        return (
            min(iterations - self._sizes.wait, self._sizes.held) * self._sizes.samples >= self._config.replay.min_size
        )

    def _draw(self, keys: list[jax.Array], number: int) -> list[tuple]:
        """Draws the batch of update `number`: equally many samples of each group, each with a symmetry."""
        batch, rows = [], []
        size, num_symmetries = self._config.learner.batch_size // len(keys), self._rules.symmetries.num_symmetries
        for group, key in zip(self.groups, keys):
            rows_key, symmetries_key = jax.random.split(jax.random.fold_in(key, number))
            rows.append(jax.random.randint(rows_key, (size,), 0, group.size).tolist())
            symmetries = jax.random.randint(symmetries_key, (size,), 0, num_symmetries).tolist()
            batch += [(group.ring[row], symmetry) for row, symmetry in zip(rows[-1], symmetries)]
        self.drawn.append(rows)
        return batch

    def _describe(self, played: list, simulations: int) -> dict[str, float]:
        ended = [ply for ply in played if ply.ended]
        fraction, games = self._sizes.full_plies / self._config.selfplay.plies_per_iteration, len(ended)
        fast = (1 - fraction) * self._config.selfplay.fast_simulations
        full = [ply for ply in played if ply.is_full]
        entropies = [-sum(p * math.log(p) for p in ply.policy_target.tolist() if p) for ply in full]
        return {
            "frames": self.iteration * self._sizes.frames,
            "selfplay/game_length": _mean([ply.length for ply in ended]),
            "selfplay/draws": _mean([ply.reward == 0 for ply in ended]),
            "selfplay/truncated": _mean([ply.truncated for ply in ended]),
            "selfplay/target_entropy": _mean(entropies),
            "simulations": len(played) * (fraction * simulations + fast),
            "games": games,
        }

    def _describe_updates(self, updates: list[dict[str, float]]) -> dict[str, float]:
        means = {f"train/{name}": _mean([each[name] for each in updates]) for name in (updates[0] if updates else ())}
        constant = {"train/skipped": 0, "train/skipped_in_a_row": 0}
        return means | constant | {"train/learning_rate": self.learner.last_rate}


def _make_network(config: Config, rules: Rules) -> Any:
    options = config.network
    return make_network(
        rules.game.topology,
        name=options.name,
        backend=options.backend,
        width=options.width,
        num_blocks=options.num_blocks,
        blocks=options.blocks,
        num_heads=options.num_heads,
        key_size=options.key_size,
        mixing_groups=options.mixing_groups,
        mlp_ratio=options.mlp_ratio,
        value_pools=options.value_pools,
        ownership_head=options.ownership_head,
        value_support=rules.game.value_support,
    )


def _games(group: Group) -> GamesInFlight:
    states = stack([game.state for game in group.games])
    plies = np.array([game.plies for game in group.games], np.int32)
    return GamesInFlight(states, plies, stack([stack(row) for row in group.waiting]))


def _mean(values: list) -> float:
    return float(np.mean(values)) if values else math.nan
