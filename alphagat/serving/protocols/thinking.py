"""Searches one position up to a number of simulations, for a time, or until stopped."""

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax

from alphagat.agents.agent import Agent
from alphagat.agents.analysis import Analysis, combine
from alphagat.evaluation.live_game import LiveGame
from alphagat.search.growing_search import Tree, make_growing_search
from alphagat.serving.protocols.move_reports import ranked_moves

SLICE_SECONDS = 0.05  # of search between checks of clock and input
FIRST_SLICE = 8  # simulations, while the speed is unknown
ACCELERATOR_LEAVES = 8


class Progress(NamedTuple):
    """Reports the progress of a search.

    Attributes:
      simulations: simulations so far, including those kept from the previous search.
      made: simulations of this search.
      seconds: duration of this search so far.
      read: returns the current `Analysis`, without `[B]`; valid only until the search continues.
    """

    simulations: int
    made: int
    seconds: float
    read: Callable[[], Analysis]


class Thinker:
    """Searches with an agent's network: PUCT on one growing tree (`search.growing_search`), without noise.

    Attributes:
      agent: the network and its game.
      max_simulations: capacity of the tree.
      speed: simulations per second of the last search; None before the first.
    """

    def __init__(self, agent: Agent, max_simulations: int, num_leaves: int | None = None, *, keeps_tree: bool = False):
        """Compiles the search and the rules, and measures the speed of the search.

        Args:
          num_leaves: positions per call of the network; None: 1 on a CPU, where larger batches are no faster, else 8.
          keeps_tree: reuses the subtree of the previous search if it contains the position; its simulations count
            toward the limit.

        Raises:
          UserError: the game has chance or is not for two players.
        """
        self.agent, self.max_simulations, self.speed = agent, max_simulations, None
        self._num_leaves = num_leaves or (1 if jax.default_backend() == "cpu" else ACCELERATOR_LEAVES)
        search = make_growing_search(
            agent.game,
            agent.evaluator,
            capacity=max_simulations,
            num_leaves=self._num_leaves,
            discount=agent.config.search.discount,
        )
        self._start, self._grow = jax.jit(search.start), jax.jit(search.grow, donate_argnums=1)
        self._resume = jax.jit(search.resume, donate_argnums=1)
        self._keeps_tree = keeps_tree
        self._tree: Tree | None = None  # of the last search

        def read(tree: Tree) -> Analysis:
            analysis = combine(search.prior(tree), tree.raw_values[:1], search.read(tree))
            return jax.tree.map(lambda x: x[0], analysis)

        self._read = jax.jit(read)
        self._rehearse()

    def _rehearse(self) -> None:
        """Makes a move, so that later ones compile nothing, and measures the speed."""
        game = LiveGame(self.agent.game)
        for _ in range(2):  # the first compiles, the second measures
            self.forget()
            analysis = self.analyze(game.position.state, FIRST_SLICE)
        game.play(ranked_moves(game.game, game.position.state, analysis)[0].name)
        if self._keeps_tree:
            self._begin(game.position.state)
        self.forget()

    def think(self, state: Any, simulations: int | None = None, seconds: float | None = None) -> Iterator[Progress]:
        """Searches a non-terminal state in slices, and yields after each. The caller may stop at any point.

        With a limit by simulations, the result does not depend on the slices.

        Args:
          simulations: most simulations; None: the capacity of the tree.
          seconds: most seconds; the measured speed limits the last slice.
        """
        begin = time.monotonic()
        limit = min(simulations or self.max_simulations, self.max_simulations)
        params, tree = self.agent.params, self._begin(state)
        first = done = int(tree.visits[0].sum())
        spent, has_yielded = time.monotonic() - begin, False
        while not has_yielded or (done < limit and (seconds is None or spent < seconds)):
            slice_seconds = SLICE_SECONDS if seconds is None else max(0.0, min(SLICE_SECONDS, seconds - spent))
            slice_size = max(1, int(self.speed * slice_seconds)) if self.speed else FIRST_SLICE
            started = time.monotonic()
            self._tree = None  # `_grow` donates its buffers
            tree = self._grow(params, tree, done + slice_size, limit)
            self._tree = tree if self._keeps_tree else None
            before, done, has_yielded = done, int(tree.visits[0].sum()), True
            now = time.monotonic()
            if done > before:
                self.speed = (done - before) / max(now - started, 1e-6)
            spent = now - begin
            yield Progress(done, done - first, spent, lambda tree=tree: jax.device_get(self._read(tree)))

    def forget(self) -> None:
        """Drops the tree. Call it before a new game."""
        self._tree = None

    def _begin(self, state: Any) -> Tree:
        if self._tree is None:
            return self._start(self.agent.params, state)
        tree, self._tree = self._tree, None  # `_resume` donates its buffers
        return self._resume(self.agent.params, tree, state)

    def analyze(self, state: Any, simulations: int | None = None, seconds: float | None = None) -> Analysis:
        """Runs `think` to its end and returns the final analysis."""
        *_, last = self.think(state, simulations, seconds)
        return last.read()
