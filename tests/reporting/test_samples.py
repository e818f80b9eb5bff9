"""Sample games follow the rules, and their values are the network's."""

import jax
import numpy as np
import pytest

import alphagat
from alphagat.agents.agent import load
from alphagat.games import make_game
from alphagat.games.states import first_state
from alphagat.reporting import samples
from tests.serving.untrained import save_untrained


def test_games_follow_the_rules_and_values_are_for_player_0():
    agent = alphagat.load("hex", board="hex:3")
    game, step = agent.game, jax.jit(agent.game.step)
    games = samples.play_samples(agent, 2)
    assert games[0].moments[0].move != games[1].moments[0].move
    for sample in games:
        for before, after in zip(sample.moments, sample.moments[1:]):
            assert after.ply == before.ply + 1
            action = game.action_names.index(after.move)
            assert before.state.legal_action_mask[action]
            expected = step(before.state, np.int32(action), jax.random.key(0))
            assert game.render(after.state) == game.render(expected)
            sign = -1 if before.state.current_player else 1
            assert before.value == pytest.approx(sign * agent.evaluate(before.state).value, abs=1e-5)
        last = sample.moments[-1]
        assert last.state.terminated
        assert not sample.moments[-2].state.terminated
        assert last.value in (-1, 1)
        assert sample.result == f"{'orange' if last.value > 0 else 'blue'} wins after {last.ply} plies"


def test_a_single_player_game_ends_with_its_points(tmp_path, monkeypatch):
    monkeypatch.setattr(samples, "NUM_SIMULATIONS", 2)
    agent = load(save_untrained(tmp_path, "2048:3"))
    for sample in samples.play_samples(agent, 2):
        last = sample.moments[-1]
        assert last.state.terminated
        assert last.value > 0
        assert sample.result == f"{last.value:,.0f} points after {last.ply} plies"
        assert np.isfinite([each.value for each in sample.moments]).all()


def test_a_truncated_game_of_one_player_ends_with_its_points(tmp_path, monkeypatch):
    monkeypatch.setattr(samples, "NUM_SIMULATIONS", 2)
    monkeypatch.setattr(samples, "MAX_PLIES", 10)
    (sample,) = samples.play_samples(load(save_untrained(tmp_path, "2048:3")), 1)
    last, before = sample.moments[-1], sample.moments[-2]
    assert last.ply == 10
    assert not last.state.terminated
    assert last.value == int(last.value) > 0  # merged tiles
    assert before.value != last.value
    assert sample.result == f"{last.value:,.0f} points, truncated after 10 plies"


def test_openings_have_the_names_of_both_players_moves(tmp_path, monkeypatch):
    monkeypatch.setattr(samples, "NUM_SIMULATIONS", 2)
    monkeypatch.setattr(samples, "MAX_PLIES", 2)
    game = make_game("breakthrough:5")  # has 7 first moves up to reflection
    step = jax.jit(game.step)
    for sample in samples.play_samples(load(save_untrained(tmp_path, game.name)), 8):
        first, state = sample.moments[0], first_state(game)
        moves = first.move.split()
        assert len(moves) == first.ply == 2
        for move in moves:
            names = {game.action_name(state, action): action for action in np.flatnonzero(state.legal_action_mask)}
            state = step(state, np.int32(names[move]), jax.random.key(0))
        assert game.render(first.state) == game.render(state)
