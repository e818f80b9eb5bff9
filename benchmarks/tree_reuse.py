"""Measures the gain from tree reuse between moves: `python benchmarks/tree_reuse.py --source connect_four`.

Two players share one network and play from distinct openings, each with both colours. Both make the same number of new
simulations per move. One adds them to the subtree of its previous search, the other starts a fresh tree. This measures
the gain at equal time; engines with a fixed number of simulations count the reused ones. Prints the score of the
reusing player, and its mean number of reused simulations.
"""

import argparse

import jax
import numpy as np

from alphagat import load
from alphagat.agents.agent import Agent
from alphagat.evaluation.engines.base import Engine
from alphagat.evaluation.hosted_arena import play_hosted_match
from alphagat.evaluation.live_game import Position
from alphagat.evaluation.openings import distinct_openings
from alphagat.search.growing_search import make_growing_search
from alphagat.search.growing_tree import Tree

ROOM = 16  # capacity of a tree, as a multiple of the simulations per move


class Searcher(Engine):
    """Runs `simulations` new simulations per move; `kept` counts the reused ones if trees are reused."""

    def __init__(self, agent: Agent, simulations: int, *, keeps_trees: bool):
        self.name, self.kept = "reuses trees" if keeps_trees else "fresh trees", []
        self._params, self._keeps_trees, self._trees = agent.params, keeps_trees, {}
        discount = agent.config.search.discount
        search = make_growing_search(
            agent.game, agent.evaluator, capacity=ROOM * simulations, num_leaves=1, discount=discount
        )

        def grow(params, tree: Tree) -> tuple[Tree, jax.Array]:
            number = tree.visits[0].sum() + simulations
            tree = search.grow(params, tree, number, number)
            return tree, search.read(tree).action[0]

        self._start, self._resume, self._grow = jax.jit(search.start), jax.jit(search.resume), jax.jit(grow)

    def choose(self, position: Position) -> int:
        before = self._trees.pop(position.moves[:-2], None)  # without its own last move in this game and the reply
        if before is None:
            tree = self._start(self._params, position.state)
        else:
            tree = self._resume(self._params, before, position.state)
            self.kept.append(int(tree.visits[0].sum()))
        tree, action = self._grow(self._params, tree)
        if self._keeps_trees:
            self._trees[position.moves] = tree
        return int(action)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", default="connect_four", help="as in alphagat.load (default: %(default)s)")
    parser.add_argument("--board", help="default: the first board of its run")
    parser.add_argument("--simulations", type=int, default=64, help="new simulations per move (default: %(default)s)")
    parser.add_argument("--games", type=int, default=400, help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=0, help="seed of the openings (default: %(default)s)")
    options = parser.parse_args()
    agent = load(options.source, board=options.board)
    keeping, anew = (Searcher(agent, options.simulations, keeps_trees=keeps) for keeps in (True, False))
    openings = distinct_openings(agent.game, options.games // 2, options.seed)
    result = play_hosted_match(agent.game, keeping, anew, openings, jax.random.key(options.seed))
    title = f"{agent.game.name}, {result.num_games} games, seed {options.seed}"
    print(f"{title}, {options.simulations} new simulations a move, {np.mean(keeping.kept):.0f} kept on average")
    print(f"tree reuse scores {result.score:.1%} ({result.interval_text})")


if __name__ == "__main__":
    main()
