"""Compares the search that evaluates K leaves of one tree at once with the run's own search on one position at a time.

    python benchmarks/parallel_search.py --source connect_four --simulations 128
    python benchmarks/parallel_search.py --source hex --board hex:5 --simulations 128 --games 40

Prints these figures for the run's own search and for each K:

- the time for a move, as a multiple of that of the run's own search (medians over alternating runs, same positions);
- the share of best moves according to an exact solver, at equal simulations and at equal time;
- with `--games`, the score against the run's own search, at equal simulations and at equal time, from distinct openings
  with both colours.
"""

import argparse
import functools

import jax
import jax.numpy as jnp
import numpy as np
from timing import ROUNDS, take_turns

from alphagat import load
from alphagat.agents.agent import Agent
from alphagat.evaluation.engines.base import Engine
from alphagat.evaluation.hosted_arena import play_hosted_match
from alphagat.evaluation.live_game import Position
from alphagat.evaluation.openings import distinct_openings
from alphagat.evaluation.oracles import make_oracle
from alphagat.games.batches import take
from alphagat.search.growing_search import make_growing_search

TIMED_POSITIONS = 8
ROOM = 4  # upper limit at equal time, as a multiple of the requested simulations


class ParallelEngine(Engine):
    """Plays by a growing search of `num_leaves` leaves at once."""

    def __init__(self, agent: Agent, num_leaves: int, simulations: int):
        self.name, self.simulations, self._params = f"{num_leaves} leaves", simulations, agent.params
        search = make_growing_search(
            agent.game,
            agent.evaluator,
            capacity=ROOM * simulations,
            num_leaves=num_leaves,
            discount=agent.config.search.discount,
        )

        def act(params, state, simulations):
            tree = search.grow(params, search.start(params, state), simulations, simulations)
            return search.read(tree).action[0]

        self._act = jax.jit(act)

    def act(self, state) -> int:
        return int(self._act(self._params, state, self.simulations))

    def choose(self, position: Position) -> int:
        return self.act(position.state)


class OwnEngine(Engine):
    """Plays by the search of the run."""

    def __init__(self, agent: Agent, simulations: int):
        self.name, self._params, search = "the run's own search", agent.params, agent.search(simulations)
        self._act = jax.jit(lambda params, key, states: search(params, key, states, jnp.zeros(1, jnp.int32)).action)

    def act(self, state) -> int:
        return int(self._act(self._params, jax.random.key(0), jax.tree.map(lambda x: x[None], state))[0])

    def choose(self, position: Position) -> int:
        return self.act(position.state)


def measure(engines: list, states) -> list[float]:
    """Returns the median seconds of a move of each engine, all taking turns."""
    positions = [take(states, row) for row in range(min(TIMED_POSITIONS, len(states.terminated)))]
    calls = {
        (number, row): functools.partial(engine.act, position)
        for number, engine in enumerate(engines)
        for row, position in enumerate(positions)
    }
    seconds = take_turns(calls, ROUNDS)
    return [float(np.median([seconds[number, row] for row in range(len(positions))])) for number in range(len(engines))]


def best_moves(engine, oracle) -> str:
    """Returns the share of positions where the engine plays a best move."""
    number = len(oracle.scores)
    best = oracle.scores == oracle.scores.max(axis=1, keepdims=True)
    share = np.mean([best[row, engine.act(take(oracle.states, row))] for row in range(number)])
    return f"{share:.1%}"


def match(agent: Agent, engine: Engine, own: Engine, games: int, seed: int) -> str:
    openings = distinct_openings(agent.game, games // 2, seed)
    result = play_hosted_match(agent.game, engine, own, openings, jax.random.key(seed))
    low, high = result.interval
    return f"{result.score:.0%} ({low:.0%} to {high:.0%})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", default="connect_four", help="as in alphagat.load")
    parser.add_argument("--board")
    parser.add_argument("--simulations", type=int, default=128)
    parser.add_argument("--leaves", type=int, nargs="+", default=[1, 2, 4, 8, 16, 32])
    parser.add_argument("--positions", type=int, default=200)
    parser.add_argument("--games", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    agent = load(options.source, board=options.board)
    oracle = make_oracle(agent.game, options.positions, options.seed)
    own = OwnEngine(agent, options.simulations)
    engines = [ParallelEngine(agent, number, options.simulations) for number in options.leaves]
    seconds = measure([own, *engines], oracle.states)
    print(
        f"{agent.game.name}, {options.simulations} simulations, {jax.default_backend()}, {options.positions} positions"
    )
    print(f"{own.name}: {1000 * seconds[0]:.1f} ms a move, best moves {best_moves(own, oracle)}", flush=True)
    for engine, took in zip(engines, seconds[1:]):
        parts = [f"{engine.name}: time x {took / seconds[0]:.2f}"]
        in_time = min(ROOM * options.simulations, max(1, round(options.simulations * seconds[0] / took)))
        for label, simulations in (("equal simulations", options.simulations), (f"equal time, {in_time}", in_time)):
            engine.simulations = simulations
            parts.append(f"{label}: best moves {best_moves(engine, oracle)}")
            if options.games:
                parts.append(f"match {match(agent, engine, own, options.games, options.seed)}")
        print(", ".join(parts), flush=True)


if __name__ == "__main__":
    main()
