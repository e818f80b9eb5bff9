"""Times searches with AlphaGAT's backup and with mctx's own, which take turns.

    taskset -c 0 python benchmarks/backup.py --board chess --games 16 --simulations 16 64 256

Prints, for each number of simulations, the milliseconds per simulation and game with each backup (medians), and their
ratio. The network is the shipped one.
"""

import argparse
import importlib
import time

import jax
import jax.numpy as jnp
import numpy as np
from mctx._src import search as mctx_search

from alphagat import load
from alphagat.search.backup import back_up


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--board", default="chess")
    parser.add_argument("--games", type=int, default=16)
    parser.add_argument("--simulations", type=int, nargs="+", default=[16, 64, 256])
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    agent = load("shipped", board=options.board)
    states = jax.jit(jax.vmap(agent.game.init))(jax.random.split(jax.random.key(0), options.games))
    plies = jnp.zeros(options.games, jnp.int32)
    backups = {"mctx": importlib.reload(mctx_search).backward, "AlphaGAT": back_up}
    print(f"{agent.game.name}, {agent.game.num_actions} actions, {options.games} games, {jax.default_backend()}")
    for number in options.simulations:
        searches, seconds = {}, {name: [] for name in backups}
        for name, backup in backups.items():
            mctx_search.backward = backup
            searches[name] = (
                jax.jit(agent.search(number)).lower(agent.params, jax.random.key(0), states, plies).compile()
            )
        for turn in range(options.rounds):
            for name, search in searches.items():
                begin = time.perf_counter()
                jax.block_until_ready(search(agent.params, jax.random.key(turn), states, plies))
                seconds[name].append(time.perf_counter() - begin)
        per = {name: 1000 * np.median(taken) / number / options.games for name, taken in seconds.items()}
        figures = ", ".join(f"{name} {milliseconds:.2f} ms" for name, milliseconds in per.items())
        print(f"{number} simulations: {figures}, ratio {per['mctx'] / per['AlphaGAT']:.2f}", flush=True)


if __name__ == "__main__":
    main()
