"""Compares the speed of rules and features with Pgx, in one process: `python benchmarks/rules.py`.

Both implementations play whole random games, in batches: one call plays one uniformly random legal move in each game,
and returns the next states, the network's features and the legal actions. A game that has ended starts again. The two
implementations alternate, call by call, until each has finished as many games as a batch has and played for five
seconds, so every phase of a game counts, its end and scoring too. The features differ: AlphaGAT's describe nodes, Pgx's
are planes, with eight past positions in Go and chess; the table gives both sizes.
"""

import argparse
import math
import time
import warnings
from collections.abc import Callable

import jax
import jax.numpy as jnp
import pgx

from alphagat.games import make_game
from alphagat.games.states import select

# board -> its name in Pgx; go:9 has a separate function there
PGX_NAMES = {
    "tic_tac_toe": "tic_tac_toe",
    "connect_four": "connect_four",
    "hex:11": "hex",
    "othello:8": "othello",
    "2048": "2048",
    "go:9": "go_9x9",
    "go:19": "go_19x19",
    "gardner_chess": "gardner_chess",
    "chess": "chess",
}
MAX_CALLS = 20_000  # per board
MIN_SECONDS = 5.0  # per side


class Side:
    """A batch of random games of one implementation."""

    def __init__(self, init: Callable, step: Callable, observe: Callable, batch: int):
        """Compiles the rules.

        Args:
          init, step: the rules, as functions of one key, and of one state, action and key.
          observe: the features of one state.
          batch: games at once.
        """
        self._start = jax.jit(jax.vmap(init))(jax.random.split(jax.random.key(0), batch))

        def move(states, key):
            action_key, step_key = jax.random.split(key)
            actions = random_actions(states.legal_action_mask, action_key)
            after = jax.vmap(step)(states, actions, jax.random.split(step_key, batch))
            seen = (jax.vmap(observe)(after), after.legal_action_mask)
            return select(after.terminated, self._start, after), seen, after.terminated.sum()

        self.num_features = math.prod(jax.eval_shape(observe, jax.tree.map(lambda x: x[0], self._start)).shape)
        self._move = jax.jit(move).lower(self._start, jax.random.key(0)).compile()
        self._states = self._start
        self.seconds, self.calls, self.finished = 0.0, 0, 0

    def play(self, key: jax.Array) -> None:
        """Plays one move in each game."""
        start = time.perf_counter()
        self._states, _, ended = jax.block_until_ready(self._move(self._states, key))
        self.seconds += time.perf_counter() - start
        self.calls += 1
        self.finished += int(ended)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--boards", nargs="+", default=list(PGX_NAMES), choices=list(PGX_NAMES), metavar="BOARD")
    parser.add_argument("--batch", type=int, default=1024)
    options = parser.parse_args()
    warnings.filterwarnings("ignore", module="pgx")
    columns = f"{'moves/s':>12}{'features':>10}{'games':>10}"
    print(f"{'':15}{'AlphaGAT':>32}{'Pgx':>32}\n{'board':15}{columns}{columns}{'ratio':>8}")
    for name in options.boards:
        sides = compete(name, options.batch)
        rates = [side.calls * options.batch / side.seconds for side in sides]
        texts = [
            f"{rate:12,.0f}{side.num_features:10,}{side.finished:10,}" for rate, side in zip(rates, sides, strict=True)
        ]
        print(f"{name:15}{''.join(texts)}{rates[0] / rates[1]:8.2f}", flush=True)


def compete(name: str, batch: int) -> list[Side]:
    """Plays a board with both implementations, ours first."""
    game, env = make_game(name), pgx.make(PGX_NAMES[name])  # pyright: ignore[reportArgumentType]
    ours = Side(game.init, game.step, game.observe, batch)
    theirs = Side(env.init, env.step, lambda state: state.observation, batch)
    for number in range(MAX_CALLS):
        key = jax.random.key(number)
        for side in (ours, theirs):
            side.play(key)
        if all(side.finished >= batch and side.seconds >= MIN_SECONDS for side in (ours, theirs)):
            break
    return [ours, theirs]


def random_actions(legal: jax.Array, key: jax.Array) -> jax.Array:
    """Draws one legal action per row; the cost is the same for both implementations."""
    return jax.random.categorical(key, jnp.where(legal, 0.0, -1e9)).astype(jnp.int32)


if __name__ == "__main__":
    main()
