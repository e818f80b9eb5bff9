"""What every game must keep, on boards of every registered family."""

import functools

import pytest

from alphagat.errors import UserError
from alphagat.games import EXAMPLES, GAMES, make_game
from alphagat.games.chess import ChessGame
from alphagat.games.contract.declarations import DECLARATIONS
from alphagat.games.contract.rules import RULES
from alphagat.games.go import GoGame

BOARDS = (
    "tic_tac_toe",
    "connect_four",
    "gomoku:5",
    "mnk:4x3x3",
    "mnk:3x5x4:gravity",
    "hex:2:swap",
    "hex:3",
    "hex:4:swap",
    "breakthrough:5",
    "othello:4",
    "go:5",
    "chess",
    "gardner_chess",
    "pgx:tic_tac_toe",
    "pgx:connect_four",
    "2048:2",
    "2048:3",
    "tsp:4",
    "tsp:7",
)
NUM_GAMES = 32
NOT_CHECKED = {  # by the rule of the same name
    "check_keys": {"2048:2", "2048:3"},
    "check_chance": set(BOARDS) - {"2048:2", "2048:3"},
    "check_winning_actions": set(BOARDS) - {"othello:4"},
    "check_symmetric_play": {"2048:2", "2048:3", "tsp:4", "tsp:7", "gardner_chess"},
}
every_board = pytest.mark.parametrize("name", BOARDS)


def test_every_family_is_tested():
    assert {name.split(":")[0] for name in BOARDS} == set(GAMES) == {name.split(":")[0] for name in EXAMPLES}


def test_equal_names_give_same_game():
    assert make_game("hex:3") is make_game("hex:3")
    assert make_game("hex:3") != make_game("hex:4")
    assert all(make_game(name).name == name for name in (*BOARDS, *EXAMPLES))


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("chess960", "hex:5"),
        ("", "hex:5"),
        ("hex", "hex:SIZE"),
        ("hex:05", "hex:SIZE"),
        ("hex:1", "2 to 19"),
        ("hex:20", "2 to 19"),
        ("hex:5:pie", "hex:5"),
        ("go", "go:SIZE"),
        ("go:9x9", "go:SIZE"),
        ("go:4", "5 to 19"),
        ("go:20", "5 to 19"),
        ("go:9:7", "0.5 to 39.5"),
        ("go:9:-1.5", "0.5 to 39.5"),
        ("go:9:40.5", "0.5 to 39.5"),
        ("chess:6", "gardner_chess"),
        ("gardner_chess:5", "must be gardner_chess"),
        ("pgx", "pgx:NAME"),
        ("pgx:hex:5", "pgx:NAME"),
        ("pgx:backgammon", "animal_shogi"),
        ("pgx:2048", "animal_shogi"),
        ("breakthrough", "breakthrough:SIZE"),
        ("breakthrough:6x5", "breakthrough:SIZE"),
        ("breakthrough:4", "5 to 8"),
        ("breakthrough:9", "5 to 8"),
        ("othello", "othello:8"),
        ("othello:8x8", "othello:SIZE"),
        ("othello:2", "4 to 12"),
        ("othello:7", "odd"),
        ("othello:14", "4 to 12"),
        ("2048:04", "2048:SIZE"),
        ("2048:3x3", "2048:SIZE"),
        ("2048:4", "called 2048"),
        ("2048:1", "2 to 8"),
        ("2048:9", "2 to 8"),
        ("tsp", "tsp:CITIES"),
        ("tsp:05", "tsp:CITIES"),
        ("tsp:3", "4 to 100"),
        ("tsp:101", "4 to 100"),
        ("tic_tac_toe:4", "mnk"),
        ("connect_four:7", "mnk"),
        ("gomoku", "gomoku:9"),
        ("gomoku:4", "5 to 19"),
        ("gomoku:20", "3 to 19"),
        ("mnk:3x3", "ROWSxCOLUMNSxK"),
        ("mnk:2x5x3", "rows 2"),
        ("mnk:5x20x3", "columns 20"),
        ("mnk:5x5x6", "3 to 5"),
        ("mnk:5x5x2", "3 to 5"),
        ("mnk:3x3x3", "this board is called tic_tac_toe"),
        ("mnk:6x7x4:gravity", "this board is called connect_four"),
        ("mnk:9x9x5", "this board is called gomoku:9"),
        ("go:9:7.5", "the board with this komi is called go:9"),
    ],
)
def test_invalid_name_is_rejected_in_one_line(name, says):
    with pytest.raises(UserError) as error:
        make_game(name)
    assert says in str(error.value)
    assert name in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        *(
            (functools.partial(GoGame, "go:9", 9, komi), "use 0.5 to 39.5 in steps of 1")
            for komi in (7, 0.25, -0.5, 40.5, float("nan"))
        ),
        (functools.partial(ChessGame, "chess", 6), "board chess: size 6 is not possible; use 5 or 8"),
    ],
)
def test_invalid_arguments_are_rejected_as_in_a_name(make, says):
    with pytest.raises(UserError, match=says):
        make()


@pytest.mark.parametrize("broken", ["hex:5\n", "no\nsuch", "pgx:a\rb", "go:9\u2028"])
def test_error_about_name_with_line_break_is_one_line(broken):
    with pytest.raises(UserError, match="line break") as error:
        make_game(broken)
    assert str(error.value).splitlines() == [str(error.value)]


@every_board
@pytest.mark.parametrize("rule", DECLARATIONS, ids=lambda rule: rule.__name__)
def test_games_declare_what_they_are(name, rule):
    rule(make_game(name))


@every_board
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_games_keep_the_contract(name, rule, record):
    note = rule(record(name, NUM_GAMES))
    assert (note is not None) == (name in NOT_CHECKED.get(rule.__name__, ()))


@every_board
def test_rewards_and_turns(name, record):
    """More than the contract: two players alternate and share out nothing until the end; one is never fined."""
    games = record(name, NUM_GAMES)
    running = ~games.terminated[:-1]
    assert (games.players[0] == 0).all()
    if games.game.num_players == 1:
        assert (games.rewards >= 0).all()
        return
    assert (games.players[1:][running] == 1 - games.players[:-1][running]).all()
    assert (games.rewards[1:][running & ~games.terminated[1:]] == 0).all()


@every_board
def test_features_are_small(name, record):
    assert (abs(record(name, NUM_GAMES).features) <= 4).all()
