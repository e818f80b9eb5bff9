"""What the texts about a match say of each player and colour."""

import re

import numpy as np
import pytest

from alphagat.contests import match
from alphagat.contests.match import Contest, play_solo
from alphagat.contests.match_options import Settings
from alphagat.contests.match_report import match_line, match_table, notes, solo_line, solo_table
from alphagat.evaluation.match_result import MatchResult
from alphagat.evaluation.players import Player
from alphagat.evaluation.single_player import Scores
from alphagat.evaluation.sprt import Sprt
from alphagat.games import make_game

NAMES = ("A", "B")
HEX, MERGE = make_game("hex:3"), make_game("2048:2")


@pytest.fixture
def result() -> MatchResult:
    """Of 50 openings, A wins all games in which it moves first, and loses every second of the others."""
    outcomes = np.stack([np.ones(50), np.tile([-1.0, 0.0], 25)]).astype(np.float32)
    plies = np.full(outcomes.shape, 7, np.int32)
    return MatchResult(outcomes, plies, np.zeros((*outcomes.shape, 1), np.int32), np.full(outcomes.shape, ""))


@pytest.fixture
def scores() -> tuple[Scores, Scores]:
    """Means of 400 and 200."""
    spread = np.array([-10, 0, 10], np.float32)
    return Scores(400 + spread, np.full(3, 40)), Scores(200 + spread, np.full(3, 20))


def rows_of(table) -> dict[str, str]:
    titles, values = (list(map(str, column.cells)) for column in table.columns)
    return dict(zip(titles, values))


def test_the_line_of_a_match_names_the_score_with_each_colour(result):
    line = match_line(HEX, NAMES, result)
    assert line.startswith("hex:3, A against B: score 62.5% (95% interval ")
    assert line.endswith("; moving first 100.0%, second 25.0%), 50 won, 25 drawn, 25 lost of 100 games")


def test_the_table_of_a_match_is_in_the_view_of_the_first_player(result):
    rows = rows_of(match_table(HEX, NAMES, result))
    assert (rows["player"], rows["against"]) == NAMES
    assert rows["won, drawn, lost"] == "50, 25, 25"
    assert rows["moving first, second"] == "100.0%, 25.0%"
    value, low, high = map(int, re.findall(r"[+-]\d+", rows["Elo difference"]))
    assert 0 < low < value == 89 < high


def test_the_note_of_a_sequential_test_names_its_limits(result):
    (note,) = notes(NAMES, result, Sprt(1.5, -2.94, 2.89, "undecided", 0, 30))
    assert note == "SPRT: undecided, after 100 games, log likelihood ratio 1.50 (-2.94 rejects, 2.89 accepts)"


@pytest.mark.parametrize("verdict", ["accepted", "rejected"])
def test_the_verdict_of_a_sequential_test_names_its_hypotheses(result, verdict):
    (note,) = notes(NAMES, result, Sprt(3.0, -2.94, 2.89, verdict, -5, 30))
    assert note.startswith(f"SPRT: +30 Elo {verdict}, against -5, after 100 games")


def test_the_scores_of_single_players_are_those_of_their_names(scores):
    line = solo_line(MERGE, NAMES, scores)
    assert re.search(
        r"A: mean score 400 \(95% interval 37\d to 42\d\); B: 200 \(17\d to 22\d\); ratio 2, 3 games", line
    )
    table = solo_table(MERGE, NAMES, scores)
    assert rows_of(table)["ratio of scores"] == "2"
    texts = list(map(str, table.columns[1].cells))
    for (name, mean, plies), found in zip((("A", "400", "40"), ("B", "200", "20")), (texts[:3], texts[3:6])):
        assert (found[0], found[1].split()[0], found[2]) == (name, mean, plies)


def test_each_single_player_gets_its_own_scores(scores, monkeypatch):
    a, b = (Player(name, lambda params, key, states: states.terminated) for name in NAMES)
    found = {a.name: scores[0], b.name: scores[1]}
    monkeypatch.setattr(match, "play_alone", lambda game, player, *_: found[player.name])
    played = play_solo(Contest(MERGE, (a, b), NAMES), Settings(3, 0, None, None, None, None))
    assert [each.mean for each in played] == [400, 200]
