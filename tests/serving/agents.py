"""Agents whose evaluator is a plain function instead of a network."""

import functools

from alphagat.agents.agent import Agent
from alphagat.config import Config
from alphagat.games import make_game


@functools.cache
def make_agent(board, evaluate, algorithm="gumbel"):
    """Returns an agent for `board` with the evaluator `evaluate`."""
    config = Config(boards=(board,))
    config.search.algorithm = algorithm
    return Agent(make_game(board), config, 0, None, evaluate)
