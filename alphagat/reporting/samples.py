"""Sample games of a network against itself, with its value of each position."""

from typing import Any, NamedTuple

import jax
import numpy as np

from alphagat.agents.agent import Agent
from alphagat.evaluation.move_names import replay
from alphagat.evaluation.openings import distinct_openings
from alphagat.games.base import Game
from alphagat.games.batches import take
from alphagat.monitoring.catalogue import points

NUM_SIMULATIONS = 16
MAX_PLIES = 300  # longer games are truncated


class Moment(NamedTuple):
    """One position of a game.

    Attributes:
      ply: number of moves before it.
      move: name of the last move; in the first position, of all moves of the opening.
      state: the position, with numpy leaves.
      value: the network's value for player 0; in the final position, and where a game of one player is truncated,
        player 0's return.
    """

    ply: int
    move: str
    state: Any
    value: float


class SampleGame(NamedTuple):
    """A game that starts from an opening.

    Attributes:
      moments: its positions, from the opening on.
      result: the outcome in words.
    """

    moments: list[Moment]
    result: str


def play_samples(agent: Agent, num_games: int, seed: int = 0) -> list[SampleGame]:
    """Plays `num_games` games of `agent` against itself, without noise, from distinct openings.

    Raises:
      UserError: the board has too few openings.
    """
    game = agent.game
    play, step, evaluate = agent.player(NUM_SIMULATIONS).act, jax.vmap(game.step), agent.evaluator

    @jax.jit
    def think(params: Any, key: jax.Array, states: Any) -> tuple[jax.Array, jax.Array, Any]:
        act_key, step_key = jax.random.split(key)
        actions = play(params, act_key, states)
        return actions, evaluate(params, states).value, step(states, actions, jax.random.split(step_key, num_games))

    openings = distinct_openings(game, num_games, seed)
    states, first = jax.device_get(openings.states), openings.actions.shape[1]
    names = [" ".join(history.moves) for history in replay(game, openings.actions)]
    returns = np.zeros((num_games, game.num_players))
    moments: list[list[Moment]] = [[] for _ in range(num_games)]
    for ply in range(first, MAX_PLIES + 1):
        key = jax.random.fold_in(jax.random.key(seed), ply)
        actions, values, after = jax.device_get(think(agent.params, key, states))
        for row in range(num_games):
            if moments[row] and moments[row][-1].state.terminated:
                continue
            state = take(states, row)
            is_last = state.terminated or (game.num_players == 1 and ply == MAX_PLIES)
            value = returns[row, 0] if is_last else values[row] * (-1 if state.current_player else 1)
            moments[row].append(Moment(ply, names[row], state, float(value)))
            if not state.terminated:
                names[row] = game.action_name(state, int(actions[row]))
                returns[row] += after.rewards[row]
        if states.terminated.all():
            break
        states = after
    return [SampleGame(each, _result(game, each[-1])) for each in moments]


def _result(game: Game, last: Moment) -> str:
    end = f"after {last.ply} plies" if last.state.terminated else f"truncated after {last.ply} plies"
    if game.num_players == 1:
        return f"{points(last.value)} points{' ' if last.state.terminated else ', '}{end}"
    if not last.state.terminated:
        return end
    winner = "a draw" if last.value == 0 else f"{game.player_colours[int(last.value < 0)][0]} wins"
    return f"{winner} {end}"
