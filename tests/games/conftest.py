"""Random games of ours, played once per board and shared by the tests."""

import functools

import pytest

from alphagat.games import make_game
from alphagat.games.contract import random_games

FIRST_SEED = 7


def pytest_generate_tests(metafunc):
    if "game_seed" in metafunc.fixturenames:
        seeds = range(FIRST_SEED, FIRST_SEED + metafunc.config.getoption("--rounds"))
        metafunc.parametrize("game_seed", seeds, scope="session")


@pytest.fixture(scope="session")
def record(game_seed):
    """Returns a function of (board's name, number of games) to RandomGames, the same ones for the same arguments."""
    return functools.cache(lambda name, num_games: random_games.play(make_game(name), num_games, game_seed))
