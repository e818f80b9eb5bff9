"""Games replayed from their moves."""

import chex
import pytest

from alphagat.errors import UserError
from alphagat.games import make_game
from alphagat.serving import playthrough
from alphagat.serving.playthrough import Playthroughs


def test_moves_by_name_and_by_number_are_one_game():
    games = Playthroughs(make_game("breakthrough:5"))
    named = games.replay(0, ["b2b3", "c4c3", "b3c4"])
    assert [step.player for step in named.steps] == [0, 1, 0]
    numbered = games.replay(0, [step.action for step in named.steps])
    assert named.steps == numbered.steps
    chex.assert_trees_all_equal(named.state, numbered.state)


def test_the_end_pays_the_winner():
    games = Playthroughs(make_game("tic_tac_toe"))
    so_far = games.replay(0, ["a1", "a2", "b1", "b2", "c1"])
    assert so_far.state.terminated
    assert so_far.legal == ()
    assert so_far.returns.tolist() == [1, -1]
    with pytest.raises(UserError, match="move 6, c2: the game is over"):
        games.replay(0, ["a1", "a2", "b1", "b2", "c1", "c2"])


@pytest.mark.parametrize("move", ["a1", 6, "z9", 9, 2**31 - 1, "", "legal"])
def test_illegal_moves_are_named(move):
    games = Playthroughs(make_game("tic_tac_toe"))
    with pytest.raises(UserError, match=f"move 2, {move}: it is not legal there"):
        games.replay(0, ["a1", move])
    assert len(games.replay(0, ["a1", "a2"]).steps) == 2


def test_chance_follows_from_the_seed():
    games = Playthroughs(make_game("2048:2"))

    def play(seed):
        moves, boards = [], []
        while not (so_far := games.replay(seed, moves)).state.terminated:
            boards.append(so_far.state.board.tolist())
            moves.append(so_far.legal[0])
        return moves, boards, so_far.returns[0]

    moves, boards, points = play(3)
    again = Playthroughs(make_game("2048:2")).replay(3, moves)
    assert (again.returns[0], again.state.terminated) == (points, True)
    assert points > 0
    assert any(play(seed)[1] != boards for seed in (4, 5, 6))


def test_what_was_played_before_is_not_played_again(monkeypatch):
    monkeypatch.setattr(playthrough, "MAX_KEPT", 4)
    games = Playthroughs(make_game("tic_tac_toe"))
    steps = []
    step = games._step
    monkeypatch.setattr(games, "_step", lambda *arguments: steps.append(1) or step(*arguments))
    games.replay(0, ["a1", "a2", "b1"])
    assert len(steps) == 3
    games.replay(0, ["a1", "a2"])
    games.replay(0, ["a1", "a2", "c1"])
    assert len(steps) == 4
    games.replay(1, ["a1"])  # another seed is another game
    games.replay(0, ["a1", "a2", "b1"])  # of which a part has been dropped
    assert 5 < len(steps) <= 8
