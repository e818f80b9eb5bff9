"""Derives the sizes of a run from its config."""

import dataclasses
from typing import Any

import numpy as np

from alphagat.config import Config
from alphagat.errors import UserError
from alphagat.games import make_game
from alphagat.games.base import Game
from alphagat.selfplay.games_in_flight import num_waiting_plies
from alphagat.training.board_schedule import shortest_schedule

MAX_UPDATES = 2**31 - 1  # the optimizer counts them in int32
MOST_SUGGESTED = 10_000  # iterations, for several boards
LONGEST_HORIZON = 4096  # most plies that a position may wait if the config sets no horizon


@dataclasses.dataclass(frozen=True, kw_only=True)
class Plan:
    """The sizes of one board's training. Games, replay and batches are split evenly over groups.

    Attributes:
      num_groups: groups of games; each has its own keys and replay ring, and resides on one device.
      group_games: games in flight per group.
      plies_per_iteration: moves per game and iteration.
      full_plies: those of them that are searched in full and become samples.
      max_plies: length at which a game is truncated.
      num_waiting: plies per game that wait for their targets.
      group_capacity: samples in a group's ring.
      group_batch_size: samples per group and update.
      updates_per_iteration: updates per iteration once the replay holds its minimum.
      first_update_iteration: iterations of the board before the first with updates.
      total_updates: updates of the whole run on this board.
      simulations: simulations of a full search in self-play, in equal parts of the iterations.
      num_iterations: iterations of this board.
    """

    num_groups: int
    group_games: int
    plies_per_iteration: int
    full_plies: int
    max_plies: int
    num_waiting: int
    group_capacity: int
    group_batch_size: int
    updates_per_iteration: int
    first_update_iteration: int
    total_updates: int
    simulations: tuple[int, ...]
    num_iterations: int

    @property
    def has_fast_plies(self) -> bool:
        return self.full_plies < self.plies_per_iteration

    @property
    def num_games(self) -> int:
        return self.num_groups * self.group_games

    @property
    def samples_per_iteration(self) -> int:
        return self.num_games * self.full_plies

    @property
    def replay_ratio(self) -> float:
        """How often an update uses each new position on average; updates are whole numbers."""
        batch_size = self.group_batch_size * self.num_groups
        return self.updates_per_iteration * batch_size / self.samples_per_iteration

    @property
    def frames_per_iteration(self) -> int:
        return self.num_games * self.plies_per_iteration

    def part_of(self, iteration: Any) -> Any:
        """Returns the index in `simulations` of an iteration of this board, counted from 0."""
        return iteration * len(self.simulations) // self.num_iterations

    def groups_of(self, board: int) -> np.ndarray:
        """Returns the indices, `[G]` int32, of a board's groups in the whole run, which keys are folded from."""
        return board * self.num_groups + np.arange(self.num_groups, dtype=np.int32)


def make_plan(config: Config, game: Game, num_iterations: int, *, plays_last: bool = True) -> Plan:
    """Derives the sizes of a board that gets `num_iterations` of the run.

    Args:
      plays_last: whether the last iteration of the run is on this board; with actors, nothing is learned from it.

    Raises:
      UserError: there are too few iterations for one update or too many updates, openings are longer than games, or
        games are too long to wait for outcomes.
    """
    selfplay, learner = config.selfplay, config.learner
    max_plies = _max_plies(config, game)
    _check_openings(config, game, max_plies)
    group_games = max(selfplay.num_games // selfplay.num_groups, 1)
    full_plies = max(round(selfplay.full_search_fraction * selfplay.plies_per_iteration), 1)
    samples = selfplay.num_groups * group_games * full_plies  # per iteration
    updates = max(round(learner.replay_ratio * samples / learner.batch_size), 1)
    num_waiting = _num_waiting(config, game)
    first_update = _first_update(config, samples, num_waiting)
    with_updates = num_iterations - int(plays_last and config.mesh.actors > 0) - first_update
    if with_updates < 1:
        share = "" if num_iterations == config.num_iterations else f" gives {game.name} {num_iterations} iterations and"
        raise UserError(
            f"config.num_iterations={config.num_iterations}{share} ends before the first update, which needs "
            f"outcomes ({num_waiting} plies) and config.replay.min_size={config.replay.min_size} positions: "
            f"{_longer_run(config, samples)}"
        )
    _check_updates(config, game, updates * with_updates)
    return Plan(
        num_groups=selfplay.num_groups,
        group_games=group_games,
        plies_per_iteration=selfplay.plies_per_iteration,
        full_plies=full_plies,
        max_plies=max_plies,
        num_waiting=num_waiting,
        group_capacity=-(-config.replay.capacity // samples) * group_games * full_plies,
        group_batch_size=learner.batch_size // selfplay.num_groups,
        updates_per_iteration=updates,
        first_update_iteration=first_update,
        total_updates=updates * with_updates,
        simulations=_simulations(config),
        num_iterations=num_iterations,
    )


def _check_openings(config: Config, game: Game, max_plies: int) -> None:
    if config.selfplay.opening_plies >= max_plies:
        raise UserError(
            f"config.selfplay.opening_plies={config.selfplay.opening_plies}: games of {game.name} end after at most "
            f"{max_plies} plies; set it below that"
        )


def _check_updates(config: Config, game: Game, total_updates: int) -> None:
    if total_updates > MAX_UPDATES:
        raise UserError(
            f"config.learner.replay_ratio={config.learner.replay_ratio:g}: it gives {total_updates} updates of "
            f"{game.name}, more than {MAX_UPDATES}; lower it, or raise config.learner.batch_size"
        )


def _max_plies(config: Config, game: Game) -> int:
    """Returns the most plies of a game."""
    return min(config.selfplay.max_plies or game.max_plies, game.max_plies)


def _first_update(config: Config, samples: int, num_waiting: int) -> int:
    """Returns the iterations of a board before the first with updates, with `samples` new positions in each."""
    if config.pretrain.games:
        return 0
    # The first samples are final in iteration `num_waiting / plies_per_iteration`, counted from 0.
    fill_iterations = -(-config.replay.min_size // samples)
    return num_waiting // config.selfplay.plies_per_iteration + fill_iterations - 1


def _longer_run(config: Config, samples: int) -> str:
    """Says how many iterations give each board an update, or that too many would be needed."""
    waiting = [_num_waiting(config, make_game(name)) for name in config.boards]
    needed = [_first_update(config, samples, num_waiting) + 1 for num_waiting in waiting]
    weights = config.board_weights, config.final_board_weights
    found = shortest_schedule(needed, *weights, MOST_SUGGESTED, last_counts=not config.mesh.actors)
    if found is None:
        return "set config.num_iterations much higher, or balance config.board_weights"
    return f"set config.num_iterations to at least {found}"


def _num_waiting(config: Config, game: Game) -> int:
    """Returns the plies that a position waits for its target. Raises UserError if there are too many."""
    if config.pretrain.games:
        return 0
    selfplay, max_plies = config.selfplay, _max_plies(config, game)
    if not selfplay.horizon and max_plies > LONGEST_HORIZON:
        raise UserError(
            f"config.selfplay.horizon=0 would let each position of {game.name} wait for {max_plies} plies; set it to a "
            "number of plies, such as 32, after which the value target bootstraps from the search"
        )
    return num_waiting_plies(min(selfplay.horizon or max_plies, max_plies), selfplay.plies_per_iteration)


def _simulations(config: Config) -> tuple[int, ...]:
    """Returns the simulations of each part of a run: doubling from the first number to the last."""
    last = config.search.num_simulations
    parts = [config.selfplay.first_simulations or last]
    while parts[-1] < last:
        parts.append(min(2 * parts[-1], last))
    return tuple(parts)
