"""Perfect play as a measure: right players get 1, wrong ones less, and each stage is counted by itself."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from alphagat.errors import UserError
from alphagat.evaluation import oracles
from alphagat.evaluation.oracles import ILLEGAL_SCORE, STAGES, Oracle, OracleTest, count_losing_moves, make_oracle
from alphagat.evaluation.players import Player, make_opponent
from alphagat.evaluation.solvers import ILLEGAL, make_solved_table, position_code, reachable_positions, stone_owners
from alphagat.games import make_game
from alphagat.games.batches import compile_step
from alphagat.search import Evaluation, SearchOutput

KEY = jax.random.key(0)


@pytest.mark.parametrize("name", ["tic_tac_toe", "hex:3", "connect_four"])
def test_positions_have_their_exact_scores(name):
    if name == "connect_four":
        pytest.importorskip("bitbully")
    game = make_game(name)
    oracle = make_oracle(game, 60, seed=1)
    legal = np.asarray(oracle.states.legal_action_mask)
    assert ((oracle.scores > ILLEGAL_SCORE) == legal).all()
    assert set(oracle.stages.tolist()) == {0, 1, 2}
    plies = (stone_owners(game, oracle.states) != 0).sum(axis=1)
    low, high = (12, 34) if name == "connect_four" else (2 * game.max_plies // 7, 6 * game.max_plies // 7)
    assert low <= plies.min() < plies.max() <= high
    # A move that ends the game has the value that the rules pay.
    rows, actions = np.nonzero(legal)
    before = jax.tree.map(lambda x: jnp.asarray(x)[rows], oracle.states)
    after = compile_step(game)(before, jnp.asarray(actions, jnp.int32), jax.random.split(KEY, len(rows)))
    over = np.asarray(after.terminated)
    paid = np.asarray(after.rewards)[np.arange(len(rows)), np.asarray(before.current_player)]
    assert over.sum() > 5
    assert (np.sign(oracle.scores[rows, actions])[over] == paid[over]).all()


def table_players(game, flip):
    """Returns an evaluator and a search that play by the table of the solver, or against it where `flip` `[N]`."""
    table = jnp.asarray(make_solved_table(game))

    def logits(states):
        best = table[position_code(game, states)]
        return jnp.where(flip[:, None], 1.0 - best, 1.0 * best)

    def evaluate(params, states):
        return Evaluation(prior_logits=logits(states), value=params * jnp.ones(len(flip)))

    def search(params, key, states, plies):
        moves = jnp.where(states.legal_action_mask, logits(states), -1.0)
        return SearchOutput(moves.argmax(-1).astype(jnp.int32), moves, jnp.zeros(len(flip)))

    return evaluate, search


def test_shares_are_counted_by_stage():
    game = make_game("hex:3")
    oracle = make_oracle(game, 200, seed=0)
    is_worse = (oracle.scores < oracle.scores.max(axis=1, keepdims=True)) & (oracle.scores > ILLEGAL_SCORE)
    has_worse = is_worse.any(axis=1)
    flip = has_worse & (oracle.stages == 1)
    found = OracleTest(oracle, *table_players(game, jnp.asarray(flip))).measure(jnp.float32(0.3), KEY)
    middle = 1 - has_worse[oracle.stages == 1].mean()
    assert 0 < middle < 1
    for name in ("best_move", "best_move_search", "keeps_result", "keeps_result_search"):  # equal, as Hex has no speed
        assert found[f"{name}_early"] == found[f"{name}_late"] == 1
        assert found[f"{name}_middle"] == pytest.approx(middle)
        assert found[name] == pytest.approx(1 - flip.mean())
    won = oracle.values == 1  # there are no draws in Hex
    assert found["value_sign"] == pytest.approx(won.mean())
    for number, stage in enumerate(STAGES):
        assert found[f"value_sign_{stage}"] == pytest.approx(won[oracle.stages == number].mean())


def test_the_positions_are_searched_in_chunks(monkeypatch):
    """The memory of a search grows with its batch."""
    game = make_game("hex:3")
    oracle, sizes = make_oracle(game, 200, seed=0), []

    def measure():
        evaluate, search = table_players(game, jnp.zeros(min(200, oracles.CHUNK), bool))

        def noted_search(params, key, states, plies):
            sizes.append(len(states.terminated))
            return search(params, key, states, plies)

        return OracleTest(oracle, evaluate, noted_search).measure(jnp.float32(0.3), KEY)

    whole = measure()
    monkeypatch.setattr(oracles, "CHUNK", 64)
    assert measure() == whole
    assert sizes == [200, 64]  # one program each


def test_each_chunk_is_searched_with_its_own_key(monkeypatch):
    monkeypatch.setattr(oracles, "CHUNK", 64)
    game = make_game("hex:3")
    evaluate, _ = table_players(game, jnp.zeros(64, bool))

    def search(params, key, states, plies):
        return SearchOutput(jax.random.randint(key, (64,), 0, 9), jnp.zeros((64, 9)), jnp.zeros(64))

    answers = OracleTest(make_oracle(game, 128, seed=0), evaluate, search)._answers(jnp.float32(0.3), KEY)
    (_, first, _), (_, second, _) = answers
    assert (first != second).any()


def test_value_sign_ignores_drawn_positions():
    game = make_game("tic_tac_toe")
    oracle = make_oracle(game, 100, seed=0)
    assert (oracle.values == 0).any()
    players = table_players(game, jnp.zeros(100, bool))
    for value in (-0.5, 0.5):
        found = OracleTest(oracle, *players).measure(jnp.float32(value), KEY)
        decided = oracle.values[oracle.values != 0]
        assert found["value_sign"] == pytest.approx((decided == np.sign(value)).mean())


def test_a_slower_win_keeps_the_result():
    game = make_game("connect_four")
    scores = np.full((4, 7), ILLEGAL_SCORE)
    scores[:, :3] = [(9, 4, -2), (0, -1, -3), (-4, -8, -8), (3, 0, -1)]  # the player takes the second column
    states = jax.tree.map(np.asarray, jax.vmap(game.init)(jax.random.split(KEY, 4)))
    oracle = Oracle(states, scores, np.zeros(4, np.int32))

    def evaluate(params, states):
        logits = jnp.tile(jax.nn.one_hot(1, 7), (4, 1))
        return Evaluation(prior_logits=logits, value=jnp.zeros(4))

    def search(params, key, states, plies):
        return SearchOutput(jnp.zeros(4, jnp.int32), jnp.zeros((4, 7)), jnp.zeros(4))  # the first column

    found = OracleTest(oracle, evaluate, search).measure(None, KEY)
    assert (found["best_move"], found["keeps_result"]) == (0, 0.5)
    assert (found["best_move_search"], found["keeps_result_search"]) == (1, 1)


def test_board_without_solver_is_rejected():
    with pytest.raises(UserError, match="board othello:8: there is no exact solver"):
        make_oracle(make_game("othello:8"), 10, seed=0)


def test_losing_moves_are_counted():
    game = make_game("tic_tac_toe")
    solved = reachable_positions(game)
    open_positions = int((solved.values >= 0).sum())
    assert count_losing_moves(game, make_opponent(game, "solver"), KEY) == (open_positions, 0)
    # A player of the worst move errs exactly where there is a losing move.
    worst = jnp.asarray(np.where(solved.action_values == ILLEGAL, 3, solved.action_values).argmin(axis=1))
    codes = jnp.zeros(3**9, jnp.int32).at[position_code(game, solved.states)].set(worst)
    player = Player("worst", lambda params, key, states: params[position_code(game, states)], codes)
    can_err = int(((solved.values >= 0) & (solved.action_values == -1).any(axis=1)).sum())
    assert count_losing_moves(game, player, KEY) == (open_positions, can_err)
    assert 0 < count_losing_moves(game, make_opponent(game, "random"), KEY)[1] < can_err
