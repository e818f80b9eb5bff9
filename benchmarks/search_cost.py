"""Times a search with mctx's backup, with AlphaGAT's, and with a column per legal action, and the network alone.

    taskset -c 0 python benchmarks/search_cost.py --board chess --games 16 --simulations 16 64 256

Prints milliseconds per simulation and game (the fastest of several rounds, in which all take turns), with the shipped
network. `legal columns` matters only for games with `max_legal_actions` below their number of actions. The network is
timed in a loop of one evaluation per simulation, each depending on the one before; a search adds one, of its root.
"""

import argparse
import contextlib
import functools
from collections.abc import Callable
from typing import Any
from unittest import mock

import jax
import jax.numpy as jnp
from rich.console import Console
from rich.table import Table
from timing import repeat_evaluation, take_turns

from alphagat import load
from alphagat.agents.agent import Agent
from alphagat.agents.build import make_configured_network
from alphagat.search import policies
from alphagat.search.backup import faster_backup

WIDE = property(lambda game: game.num_actions)


def compiled_search(agent: Agent, simulations: int, backup: Callable, bound: Any, arguments: tuple) -> Callable:
    """Compiles a search within the context that `backup` makes, and with this `max_legal_actions`."""
    with (
        mock.patch.object(policies, "faster_backup", backup),
        mock.patch.object(type(agent.game), "max_legal_actions", bound),
    ):
        return jax.jit(agent.search(simulations)).lower(*arguments).compile()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--board", default="chess")
    parser.add_argument("--games", type=int, default=16)
    parser.add_argument("--simulations", type=int, nargs="+", default=[16, 64, 256])
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    agent = load("shipped", board=options.board)
    game = agent.game
    network = make_configured_network(agent.config, game)
    states = jax.jit(jax.vmap(game.init))(jax.random.split(jax.random.key(0), options.games))
    nodes = jax.jit(jax.vmap(game.observe))(states)
    arguments = agent.params, jax.random.key(0), states, jnp.zeros(options.games, jnp.int32)
    legal, mctxs, ours = type(game).max_legal_actions, contextlib.nullcontext, faster_backup
    variants = {"mctx's backup": (mctxs, WIDE), "our backup": (ours, WIDE), "legal columns": (ours, legal)}
    title = f"{game.name}, {game.num_actions} actions, {options.games} games, {jax.default_backend()}"
    table = Table("simulations", *variants, "network alone", title=title)
    for simulations in options.simulations:
        runs: dict[str, Callable] = {
            name: functools.partial(compiled_search(agent, simulations, backup, bound, arguments), *arguments)
            for name, (backup, bound) in variants.items()
        }
        runs["network"] = repeat_evaluation(network, agent.params, nodes, simulations)
        seconds = take_turns(runs, options.rounds)
        cells = (f"{1000 * min(found) / simulations / options.games:.3f}" for found in seconds.values())
        table.add_row(str(simulations), *cells)
    Console().print(table)


if __name__ == "__main__":
    main()
