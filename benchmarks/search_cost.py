"""Times a search with mctx's backup, with AlphaGAT's, and with a column per legal action, and the network alone.

    taskset -c 0 python benchmarks/search_cost.py --board chess --games 16 --simulations 16 64 256

Prints milliseconds per simulation and game (the fastest of several rounds, in which all take turns), with the shipped
network. The last column matters only for games with `max_legal_actions` below their number of actions. The network is
timed in a loop of as many evaluations, each depending on the one before.
"""

import argparse
import functools
import importlib
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from mctx._src import search as mctx_search
from rich.console import Console
from rich.table import Table

from alphagat import load
from alphagat.agents.agent import Agent
from alphagat.search.backup import back_up

WIDE = property(lambda game: game.num_actions)


def compiled_search(agent: Agent, simulations: int, backup: Callable, bound: Any, arguments: tuple) -> Callable:
    """Compiles a search with this backup and this `max_legal_actions`, and restores both."""
    kind = type(agent.game)
    before = mctx_search.backward, kind.max_legal_actions
    mctx_search.backward, kind.max_legal_actions = backup, bound
    try:
        return jax.jit(agent.search(simulations)).lower(*arguments).compile()
    finally:
        mctx_search.backward, kind.max_legal_actions = before


def repeated_evaluation(agent: Agent, states: Any, times: int) -> Callable:
    """Compiles `times` evaluations, each of which depends on the one before."""

    def evaluate(params: Any) -> jax.Array:
        def once(total: jax.Array, _: None) -> tuple[jax.Array, None]:
            evaluation = agent.evaluator(jax.tree.map(lambda x: x + 0 * total, params), states)
            return evaluation.prior_logits.mean() + evaluation.value.mean(), None

        return jax.lax.scan(once, jnp.zeros(()), length=times)[0]

    return functools.partial(jax.jit(evaluate).lower(agent.params).compile(), agent.params)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--board", default="chess")
    parser.add_argument("--games", type=int, default=16)
    parser.add_argument("--simulations", type=int, nargs="+", default=[16, 64, 256])
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    agent = load("shipped", board=options.board)
    game = agent.game
    states = jax.jit(jax.vmap(game.init))(jax.random.split(jax.random.key(0), options.games))
    arguments = agent.params, jax.random.key(0), states, jnp.zeros(options.games, jnp.int32)
    original, bound = importlib.reload(mctx_search).backward, type(game).max_legal_actions
    variants = {"mctx's backup": (original, WIDE), "our backup": (back_up, WIDE), "legal columns": (back_up, bound)}
    title = f"{game.name}, {game.num_actions} actions, {options.games} games, {jax.default_backend()}"
    table = Table("simulations", *variants, "network alone", title=title)
    for simulations in options.simulations:
        runs = {
            name: functools.partial(compiled_search(agent, simulations, *variant, arguments), *arguments)
            for name, variant in variants.items()
        }
        runs["network"] = repeated_evaluation(agent, states, simulations)
        seconds = dict.fromkeys(runs, float("inf"))
        for _ in range(options.rounds):
            for name, run in runs.items():
                begin = time.perf_counter()
                jax.block_until_ready(run())
                seconds[name] = min(seconds[name], time.perf_counter() - begin)
        table.add_row(
            str(simulations), *(f"{1000 * each / simulations / options.games:.3f}" for each in seconds.values())
        )
    Console().print(table)


if __name__ == "__main__":
    main()
