"""Matches during training update the previous parameters and leave the rest of the state unchanged."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import t

from alphagat.agents.build import make_params
from alphagat.errors import UserError
from alphagat.evaluation.match_result import MatchResult
from alphagat.evaluation.oracles import make_oracle
from alphagat.evaluation.single_player import Scores
from alphagat.runtime import sharding
from alphagat.search.tree import mask_illegal
from alphagat.training import evaluation
from alphagat.training.evaluation import RunEvaluator, match_result
from alphagat.training.setup import make_run
from alphagat.training.state import init_state
from tests.training.tiny import run_of, tiny_config, tiny_setup


def result_of(wins: int, losses: int) -> MatchResult:
    outcomes = np.array([1.0] * wins + [-1.0] * losses, np.float32).reshape(2, -1)
    plies = np.ones(outcomes.shape, np.int32)
    actions = np.arange(outcomes.size, dtype=np.int32).reshape(*outcomes.shape, 1)
    return MatchResult(outcomes, plies, actions, np.full(outcomes.shape, ""))


@pytest.fixture
def calls(monkeypatch) -> list[dict]:
    """Records each match; the current player wins 3 of 4 games."""
    found = []

    def play(game, player, opponent, openings, key, mesh):
        found.append({"opponent": opponent, "player": player, "openings": openings, "key": jax.random.key_data(key)})
        return result_of(3, 1)

    monkeypatch.setattr(evaluation, "play_match", play)
    return found


def test_an_evaluation_names_the_iteration_of_the_previous_network(calls):
    setup, mesh = tiny_setup(), sharding.make_mesh(1)
    run = run_of(setup, mesh)
    state = init_state(run)
    state = state.replace(iteration=jnp.full_like(state.iteration, 4))
    state, first = RunEvaluator(run).evaluate(state, 4, lambda _: None)
    _, second = RunEvaluator(run).evaluate(state, 8, lambda _: None)
    assert (first.previous, second.previous) == (0, 4)


def test_every_opponent_is_played_including_the_previous_network(calls):
    setup, mesh = tiny_setup(), sharding.make_mesh(1)
    setup.config.evaluation.opponents = ("random", "previous", "mcts:3")
    state = init_state(run_of(setup, mesh))
    trained = jax.tree.map(lambda x: x + 1, state.train.params)
    state = state.replace(train=state.train.replace(params=trained))
    before = jax.device_get(state)
    played, stages = RunEvaluator(run_of(setup, mesh)), []
    state, first = played.evaluate(state, 4, stages.append)
    again, _ = played.evaluate(state, 8, stages.append)

    assert [call["opponent"].name for call in calls[:3]] == ["random", "previous", "mcts:3"]
    assert stages[:2] == ["match 1 of 3, hex:2 against random", "match 2 of 3, hex:2 against previous"]
    names = [("win_rate", "hex:2", opponent) for opponent in ("random", "previous", "mcts:3")]
    assert [(each.name, each.board, each.opponent) for each in first.results] == names
    (shown,) = first.games
    assert shown.game is setup.game
    assert shown.actions.tolist() == [*calls[2]["openings"].actions[0], 0]
    assert len({call["key"].tobytes() for call in calls}) == 6
    chex.assert_trees_all_equal(calls[0]["openings"], calls[5]["openings"])

    def kernel(params):
        return np.asarray(params["params"]["features"]["kernel"])

    np.testing.assert_array_equal(kernel(calls[1]["opponent"].params), kernel(before.previous_params))
    np.testing.assert_array_equal(kernel(calls[4]["opponent"].params), kernel(trained))
    kept = again.replace(previous_params=None)
    chex.assert_trees_all_equal(kept, before.replace(previous_params=None))
    # The next iteration donates the parameters, so the copy must not share their buffer.
    for one, other in zip(jax.tree.leaves(state.previous_params), jax.tree.leaves(state.train.params)):
        assert one.unsafe_buffer_pointer() != other.unsafe_buffer_pointer()


def test_matches_do_not_share_their_keys_with_self_play(calls):
    setup, mesh = tiny_setup(), sharding.make_mesh(1)
    setup.config.evaluation.opponents = ("random",)
    played, state = RunEvaluator(run_of(setup, mesh)), init_state(run_of(setup, mesh))
    for number in (1, 2, 3):
        state, _ = played.evaluate(state, number, lambda _: None)
    used = jax.random.split(jax.random.key(setup.config.seed), 3)  # of the parameters, the first games and the run
    taken = [jax.random.fold_in(jax.random.split(key, 3)[2], 0) for key in used]
    keys = {np.asarray(call["key"]).tobytes() for call in calls}
    assert len(keys) == 3
    assert not keys & {np.asarray(jax.random.key_data(key)).tobytes() for key in taken}


def test_result_of_a_match():
    result = match_result("hex:2", "mcts:100", result_of(90, 10))
    assert (result.value, result.opponent) == (0.9, "mcts:100")
    assert result.low is not None
    assert result.high is not None
    assert 0.8 < result.low < 0.9 < result.high < 0.96


def test_the_network_is_compared_with_perfect_play():
    setup, mesh = tiny_setup(), sharding.make_mesh(1)
    setup.config.evaluation.opponents, setup.config.evaluation.oracle_positions = (), 40
    setup.config.seed = 3
    state = init_state(run_of(setup, mesh))
    trained = make_params(setup.game, setup.network, jax.random.key(9))
    state = state.replace(train=state.train.replace(params=trained))
    _, found = RunEvaluator(run_of(setup, mesh)).evaluate(state, 4, lambda _: None)
    shares = {each.name: each.value for each in found.results}
    assert not found.games
    measures = ("best_move", "best_move_search", "value_sign")
    assert {f"oracle/{name}" for name in measures} <= set(shares)
    assert all(0 <= value <= 1 for value in shares.values())
    oracle = make_oracle(setup.game, 40, setup.config.seed)

    def share_of(params):
        evaluation = jax.jit(setup.evaluate)(params, oracle.states)
        moves = np.asarray(mask_illegal(evaluation.prior_logits, oracle.states)).argmax(axis=1)
        return (oracle.scores[np.arange(40), moves] == oracle.scores.max(axis=1)).mean()

    assert shares["oracle/best_move"] == pytest.approx(share_of(trained))
    assert share_of(trained) != share_of(state.previous_params)


def test_a_single_player_s_score_is_compared_with_that_of_each_opponent(monkeypatch):
    config, mesh, calls = tiny_config(), sharding.make_mesh(1), []
    config.boards, config.evaluation.opponents, config.evaluation.num_games = ("2048:2",), ("random", "previous"), 6
    mean = {"now": 10.0, "random": 4.0, "previous": 5.0}

    def play(game, player, num_games, key, mesh):
        calls.append({"name": player.name, "params": player.params, "key": jax.random.key_data(key)})
        spread = np.linspace(-1, 1, num_games, dtype=np.float32)
        return Scores(mean[player.name] + spread, np.ones(num_games, np.int32))

    monkeypatch.setattr(evaluation, "play_alone", play)
    run = make_run(config, mesh)
    state = init_state(run)
    trained = jax.tree.map(lambda x: x + 1, state.train.params)
    state, matches = state.replace(train=state.train.replace(params=trained)), RunEvaluator(run)
    _, found = matches.evaluate(state, 4, lambda _: None)
    score, *ratios = found.results
    assert (score.name, score.value, score.opponent) == ("score", 10, None)
    assert score.low == pytest.approx(10 - t.ppf(0.975, 5) * np.linspace(-1, 1, 6).std(ddof=1) / np.sqrt(6), abs=1e-4)
    assert score.low + score.high == pytest.approx(20)
    assert [(each.name, each.opponent) for each in ratios] == [("score_ratio", "random"), ("score_ratio", "previous")]
    assert [each.value for each in ratios] == pytest.approx([10 / 4, 10 / 5])
    assert not found.games
    assert [call["name"] for call in calls] == ["now", "random", "previous"]
    chex.assert_trees_all_equal(calls[0]["params"], trained)
    chex.assert_trees_all_equal(calls[2]["params"], state.previous_params)
    matches.evaluate(state, 8, lambda _: None)
    assert len({np.asarray(call["key"]).tobytes() for call in calls}) == 6


@pytest.mark.parametrize("opponents", [(), ("random",)])
def test_openings_are_drawn_for_opponents_only(opponents: tuple[str, ...]):
    """The smallest boards have few openings, which limits matches but no other evaluation."""
    setup, mesh = tiny_setup(), sharding.make_mesh(1)
    setup.config.evaluation.opponents, setup.config.evaluation.num_games = opponents, 600
    if not opponents:
        _, found = RunEvaluator(run_of(setup, mesh)).evaluate(init_state(run_of(setup, mesh)), 4, lambda _: None)
        assert found == ([], [], 0)
        return
    with pytest.raises(UserError, match=r"^config\.evaluation\.num_games=600: board hex:2: .*play at most"):
        RunEvaluator(run_of(setup, mesh))
