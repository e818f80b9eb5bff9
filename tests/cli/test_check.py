"""`alphagat check` names the rules that a game keeps, and the first one that it breaks."""

import copy
import re

import pytest

from alphagat import games
from alphagat.cli import check
from alphagat.games import make_game
from alphagat.games.contract import declarations, random_games, rules


def test_a_sound_game_keeps_every_rule(capsys):
    assert check.run(["hex:3", "--games", "8"]) == 0
    kept = capsys.readouterr().out.splitlines()
    others = [line for line in kept if not line.startswith("ok  ")]
    assert others[0] == "hex:3: 13 nodes, 9 features, 81 edges, 9 actions"
    assert re.fullmatch("8 random games of [5-9] to 9 plies", others[1])
    assert len(kept) - len(others) == len(declarations.DECLARATIONS) + len(rules.RULES)
    assert kept[-1] == "ok  render and render_svg draw each position, differently after each move, and name the end"


def test_the_number_and_the_seed_of_the_command_draw_the_games(capsys, monkeypatch):
    play, drawn = random_games.play, []
    monkeypatch.setattr(random_games, "play", lambda *arguments: drawn.append(arguments[1:]) or play(*arguments))
    assert check.run(["hex:3", "--games", "7", "--seed", "5"]) == 0
    assert drawn == [(7, 5)]
    games = play(make_game("hex:3"), 7, 5)
    lengths = sorted(games.length(number) for number in range(7))
    assert lengths[0] < lengths[-1]
    assert f"7 random games of {lengths[0]} to {lengths[-1]} plies\n" in capsys.readouterr().out


def test_a_rule_may_add_a_note(capsys, monkeypatch):
    def rule(played):
        """Games `end`."""
        return f"{played.number} of them"

    monkeypatch.setattr(rules, "RULES", (rule,))
    assert check.run(["hex:2", "--games", "3"]) == 0
    assert capsys.readouterr().out.endswith("ok  Games end (3 of them)\n")


def test_the_first_broken_rule_ends_the_command(capsys, monkeypatch):
    broken = copy.copy(games.make_game("tic_tac_toe"))
    broken.name, broken.max_plies = "short", 4
    monkeypatch.setitem(games.GAMES, "short", lambda name: broken)
    assert check.run(["short"]) == 2
    output = capsys.readouterr()
    assert output.err == "error: board short: a game goes on after max_plies=4 moves; raise max_plies\n"
    assert "ok  Games end" not in output.out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nothing:3"], "there is no such game"),
        (["hex:3", "--games", "0"], "--games 0: it must be at least 1"),
        ([], "BOARD"),
    ],
)
def test_bad_arguments_are_refused(arguments, says, capsys):
    assert check.run(arguments) == 2
    assert says in capsys.readouterr().err


def test_an_error_in_the_code_of_a_game_is_one_line(capsys, monkeypatch):
    broken = copy.copy(games.make_game("tic_tac_toe"))
    monkeypatch.setattr(type(broken), "observe", lambda self, state: state.nothing)
    monkeypatch.setitem(games.GAMES, "failing", lambda name: broken)
    assert check.run(["failing"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: board tic_tac_toe: ")
    assert "AttributeError: 'MnkState' object has no attribute 'nothing'" in line
