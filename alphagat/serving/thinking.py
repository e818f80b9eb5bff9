"""Thinking about one position for some simulations, for some time, or until somebody says stop."""

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import numpy as np

from alphagat.agents.agent import Agent
from alphagat.agents.analysis import Analysis, make_analysis
from alphagat.games.states import first_state
from alphagat.search.parallel import Tree, make_growing_search

SLICE_SECONDS = 0.05  # of thinking, after which time and input are looked at
FIRST_SLICE = 8  # simulations, while the speed is not known
ACCELERATOR_LEAVES = 8


class Progress(NamedTuple):
    """How far a thought has come.

    Attributes:
      simulations: so far, those included that an earlier thought had made.
      made: of them in this thought.
      seconds: so far, of this thought.
      read: returns the `Analysis` of the position, without `[B]`; to be called before the thought goes on.
    """

    simulations: int
    made: int
    seconds: float
    read: Callable[[], Analysis]


class Thinker:
    """An agent and its search, compiled: PUCT that grows one tree (`search.parallel`), without noise.

    Attributes:
      agent: whose network it is.
      max_simulations: that a tree has room for.
      speed: simulations per second of the last thought; None before the first.
    """

    def __init__(self, agent: Agent, max_simulations: int, num_leaves: int | None = None, *, keeps_tree: bool = False):
        """Compiles the search and measures its speed.

        Args:
          num_leaves: positions per call of the network; None: 1 on a CPU, where more take as much longer.
          keeps_tree: a thought about a position that the last one came across goes on from there; the simulations that
            were made count as its own.

        Raises:
          UserError: the game is not one for two players without chance.
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
        self._tree: Tree | None = None  # of the last thought

        def read(tree: Tree) -> Analysis:
            analysis = make_analysis(tree.prior[:1], tree.raw_values[:1], search.read(tree))
            return jax.tree.map(lambda x: x[0], analysis)

        self._read = jax.jit(read)
        first = first_state(agent.game)
        for _ in range(2):  # compiles, then measures
            self.forget()
            for progress in self.think(first, simulations=FIRST_SLICE):
                progress.read()
        if keeps_tree:
            self._begin(first)  # compiles
        self.forget()

    def think(self, state: Any, simulations: int | None = None, seconds: float | None = None) -> Iterator[Progress]:
        """Thinks about a state in which somebody can move, in slices of time, and stops wherever the caller does.

        Args:
          simulations: at most; None: as many as there is room for. The result depends on nothing else, but for what
            `keeps_tree` keeps.
          seconds: ends the thought by the clock; the last slice is cut by the speed of those before.
        """
        begin = time.monotonic()
        limit = min(simulations or self.max_simulations, self.max_simulations)
        params, tree = self.agent.params, self._begin(state)
        first = done = int(tree.visits[0].sum())
        spent, has_told = time.monotonic() - begin, False
        while not has_told or (done < limit and (seconds is None or spent < seconds)):
            slice_seconds = SLICE_SECONDS if seconds is None else max(0.0, min(SLICE_SECONDS, seconds - spent))
            slice_size = max(1, int((self.speed or 0) * slice_seconds)) if self.speed else FIRST_SLICE
            started = time.monotonic()
            self._tree = None  # until what it becomes is there
            tree = self._grow(params, tree, done + slice_size, limit)
            self._tree = tree if self._keeps_tree else None
            before, done, has_told = done, int(tree.visits[0].sum()), True
            now = time.monotonic()
            if done > before:
                self.speed = (done - before) / max(now - started, 1e-6)
            spent = now - begin
            yield Progress(done, done - first, spent, lambda tree=tree: jax.tree.map(np.asarray, self._read(tree)))

    def forget(self) -> None:
        """Drops what was searched, as before a new game."""
        self._tree = None

    def _begin(self, state: Any) -> Tree:
        if self._tree is None:
            return self._start(self.agent.params, state)
        tree, self._tree = self._tree, None  # which is used up
        return self._resume(self.agent.params, tree, state)

    def analyze(self, state: Any, simulations: int | None = None, seconds: float | None = None) -> Analysis:
        """Thinks to the end, as `think` does, and returns what it found."""
        *_, last = self.think(state, simulations, seconds)
        return last.read()
