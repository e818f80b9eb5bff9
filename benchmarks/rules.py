"""Compares the speed of rules and features with Pgx, in one process: `python benchmarks/rules.py`.

One call plays one legal move in each of a batch of games, and returns the next states, the network's features, and the
legal actions. The two implementations alternate, and the ratio is that of their median times.
"""

import argparse
import statistics
import time
import warnings
from collections.abc import Callable

import jax
import jax.numpy as jnp
import pgx

from alphagat.games import make_game
from alphagat.games.base import Game

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
WARM_UP_PLIES = 8


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--boards", nargs="+", default=list(PGX_NAMES), choices=list(PGX_NAMES), metavar="BOARD")
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=60)
    options = parser.parse_args()
    warnings.filterwarnings("ignore", module="pgx")
    print(f"{'board':15}{'AlphaGAT, moves/s':>20}{'Pgx, moves/s':>16}{'ratio':>8}")
    for name in options.boards:
        ours, theirs = our_move(make_game(name), options.batch), pgx_move(PGX_NAMES[name], options.batch)
        times = measure([ours, theirs], options.rounds)
        rates = [options.batch / each for each in times]
        print(f"{name:15}{rates[0]:20,.0f}{rates[1]:16,.0f}{times[1] / times[0]:8.2f}", flush=True)


def measure(calls: list[Callable[[], object]], rounds: int) -> list[float]:
    """Returns the median seconds of each call; calls alternate."""
    seconds: list[list[float]] = [[] for _ in calls]
    for _ in range(rounds):
        for call, times in zip(calls, seconds):
            start = time.perf_counter()
            jax.block_until_ready(call())
            times.append(time.perf_counter() - start)
    return [statistics.median(times) for times in seconds]


def our_move(game: Game, batch: int) -> Callable[[], object]:
    def move(states, key):
        keys = jax.random.split(key, batch)
        after = jax.vmap(game.step)(states, random_actions(states.legal_action_mask, key), keys)
        return after, jax.vmap(game.observe)(after), after.legal_action_mask

    first = jax.vmap(game.init)(jax.random.split(jax.random.key(0), batch))
    return warm(jax.jit(move), first)


def pgx_move(name: str, batch: int) -> Callable[[], object]:
    env = pgx.make(name)  # pyright: ignore[reportArgumentType]

    def move(states, key):
        keys = jax.random.split(key, batch)
        after = jax.vmap(env.step)(states, random_actions(states.legal_action_mask, key), keys)
        return after, after.observation, after.legal_action_mask

    first = jax.jit(jax.vmap(env.init))(jax.random.split(jax.random.key(0), batch))
    return warm(jax.jit(move), first)


def warm(move: Callable, states: object) -> Callable[[], object]:
    """Compiles, plays a few plies, and returns a call that plays the next one."""
    for ply in range(WARM_UP_PLIES):
        states = move(states, jax.random.key(ply))[0]
    return lambda: move(states, jax.random.key(WARM_UP_PLIES))


def random_actions(legal: jax.Array, key: jax.Array) -> jax.Array:
    """Draws one legal action per row; the cost is the same for both implementations."""
    return jax.random.categorical(key, jnp.where(legal, 0.0, -1e9)).astype(jnp.int32)


if __name__ == "__main__":
    main()
