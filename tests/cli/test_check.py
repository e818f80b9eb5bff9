"""`alphagat check` names the rules that a game keeps, and the first one that it breaks."""

import copy
import re

import pytest

from alphagat import games
from alphagat.cli import check
from alphagat.games.contract import rules


def test_a_sound_game_keeps_every_rule(capsys):
    assert check.run(["hex:3", "--games", "8"]) == 0
    first, *kept = capsys.readouterr().out.splitlines()
    assert first == "hex:3: 13 nodes, 9 features, 81 edges, 9 actions"
    assert re.fullmatch("8 random games of [5-9] to 9 plies", kept[1])
    assert sum(line.startswith("ok  ") for line in kept) == len(rules.RULES) + 1
    assert kept[-1] == "ok  render and render_svg draw each position, differently after each move, and name the end"


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
