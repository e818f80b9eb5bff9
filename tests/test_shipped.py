"""Each shipped network has a card, plays its boards, and clearly beats a random player."""

import re

import jax
import pytest

import alphagat
from alphagat import config_fields
from alphagat.agents import weight_files
from alphagat.cli import match
from alphagat.evaluation.arena import play_match
from alphagat.evaluation.openings import distinct_openings
from alphagat.evaluation.players import random_player
from alphagat.evaluation.single_player import play_alone

BOARDS = {
    "breakthrough": ("breakthrough:6", "breakthrough:8"),
    "chess": ("chess", "gardner_chess"),
    "connect_four": ("connect_four",),
    "go": ("go:5", "go:9"),
    "gomoku": ("gomoku:9",),
    "hex": ("hex:4", "hex:6"),
    "othello": ("othello:6", "othello:8"),
    "tic_tac_toe": ("tic_tac_toe",),
}
ALONE = {"2048": ("2048",), "tsp": ("tsp:8", "tsp:20")}  # games for one player
TIMES_RANDOM = {"2048": 3, "tsp:8": 1.4, "tsp:20": 2.4}  # scores; shortest tours have about 1.5 and 2.7 times
NAMES = weight_files.shipped_names()


def test_every_network_is_tested():
    assert set(NAMES) == set(BOARDS | ALONE)


@pytest.mark.parametrize("name", NAMES)
def test_a_card_states_its_origin(name):
    agent = alphagat.load(name)
    card = (weight_files.FOLDER / f"{name}.md").read_text()
    assert card.startswith("---\nlicense: apache-2.0\nlibrary_name: alphagat\n")
    assert f'- "{agent.game.family}"\n---\n' in card
    assert f'alphagat.load("{name}")' in card
    assert re.search("alphagat (train|pretrain) ", card)
    assert f"iteration {agent.iteration}" in card
    num_parameters = sum(leaf.size for leaf in jax.tree.leaves(agent.params))
    assert f"{num_parameters:,} parameters" in card
    for field, _ in config_fields.changes(agent.config):
        assert f"| `{field.path}` | `{field.value}` |" in card
    assert f"({name}.md)" in (weight_files.FOLDER / "README.md").read_text()
    assert (weight_files.FOLDER / f"{name}{weight_files.ENDING}").stat().st_size < 2e6


@pytest.mark.parametrize(("name", "board"), [(name, board) for name, boards in BOARDS.items() for board in boards])
def test_it_beats_a_random_player(name, board):
    agent = alphagat.load(name, board=board)
    openings = distinct_openings(agent.game, 16, seed=0)
    result = play_match(agent.game, agent.player(2), random_player(agent.game), openings, jax.random.key(0))
    assert result.score >= 0.9


@pytest.mark.parametrize(("name", "board"), [(name, board) for name, boards in ALONE.items() for board in boards])
def test_it_scores_more_than_a_random_player(name, board):
    agent = alphagat.load(name, board=board)
    players = agent.player(2), random_player(agent.game)
    ours, random = (play_alone(agent.game, player, 8, jax.random.key(0)) for player in players)
    assert ours.mean > TIMES_RANDOM[board] * random.mean


def test_match_resolves_shipped_by_board(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    assert match.run(["shipped", "random", "--board", "hex:3", "--games", "4", "--simulations", "2"]) == 0
    assert "hex:3, 4 games" in capsys.readouterr().out
    assert match.run(["shipped", "random", "--board", "pgx:tic_tac_toe", "--games", "4"]) == 2
    assert "board pgx:tic_tac_toe: no shipped network plays it, only boards like " in capsys.readouterr().err
