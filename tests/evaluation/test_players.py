import jax
import jax.numpy as jnp
import numpy as np
import pytest

from alphagat.errors import UserError
from alphagat.evaluation import players
from alphagat.evaluation.players import (
    Player,
    act_in_batches,
    choose,
    make_opponent,
    mcts_player,
    random_player,
    search_player,
)
from alphagat.evaluation.solvers import reachable_positions
from alphagat.games import make_game
from alphagat.search import SearchOutput
from tests.evaluation.toy import piles, take_one_or_three

KEY = jax.random.key(0)
GAME = make_game("tic_tac_toe")


@pytest.mark.parametrize("spec", ["random", "mcts:8", "solver"])
def test_opponents_move_legally_in_every_position(spec):
    player = make_opponent(GAME, spec)
    assert player.name == spec
    states = jax.tree.map(jnp.asarray, reachable_positions(GAME).states)
    actions = jax.jit(player.act)(player.params, KEY, states)
    assert actions.dtype == jnp.int32
    assert states.legal_action_mask[np.arange(len(actions)), actions].all()


def test_equal_opponents_share_act():
    assert make_opponent(GAME, "mcts:8").act is mcts_player(make_game("tic_tac_toe"), 8).act
    assert make_opponent(GAME, "mcts:8").act is not make_opponent(GAME, "mcts:9").act
    assert make_opponent(GAME, "solver").act is make_opponent(GAME, "solver").act
    assert random_player(GAME).act is make_opponent(GAME, "random").act


def test_players_draw_anew_in_every_batch():
    player = Player("draws", take_one_or_three)
    actions = act_in_batches(player, KEY, piles([40] * 32), np.arange(32), 16)
    assert (actions[:16] != actions[16:]).any()


@pytest.mark.parametrize("spec", ["", "mcts", "mcts:", "mcts:1e3", "random:2", "stockfish", "mcts:²"])
def test_unknown_opponent_is_rejected(spec):
    with pytest.raises(UserError, match=r"opponent .* use one of random, mcts:SIM"):
        make_opponent(GAME, spec)


@pytest.mark.parametrize("number", ["0", "-3", "65537", "9" * 5000])
def test_an_opponent_with_a_number_beyond_its_bounds_is_rejected(number):
    with pytest.raises(UserError, match=r"opponent mcts:.*: each number of mcts:SIMULATIONS must be"):
        make_opponent(GAME, f"mcts:{number}")


def test_solver_is_rejected_for_unsolved_boards():
    with pytest.raises(UserError, match="board hex:5: there is no exact solver"):
        make_opponent(make_game("hex:5"), "solver")


def test_search_player_plays_search_action():
    def search(params, key, states, plies):
        assert plies.shape == states.terminated.shape
        actions = jnp.argmax(states.legal_action_mask * params[None, :], axis=1).astype(jnp.int32)
        return SearchOutput(actions, jnp.zeros((3, 9)), jnp.zeros(3))

    states = jax.vmap(GAME.init)(jax.random.split(KEY, 3))
    states = jax.vmap(GAME.step)(states, jnp.array([8, 7, 6]), jax.random.split(KEY, 3))
    player = search_player("net", search, jnp.arange(9.0))
    assert player.name == "net"
    assert player.act(player.params, KEY, states).tolist() == [7, 8, 8]
    assert search_player("other", search, None).act is player.act


def test_solver_plays_every_best_move():
    states = jax.vmap(GAME.init)(jax.random.split(KEY, 200))
    player = make_opponent(GAME, "solver")
    assert len(np.unique(player.act(player.params, KEY, states))) == 9


def test_an_illegal_move_beside_an_engine_is_refused():
    player = Player("mine", lambda params, key, states: jnp.full(len(states.terminated), 2))
    assert act_in_batches(player, KEY, piles([40] * 3), np.arange(3), 2).tolist() == [2, 2, 2]
    with pytest.raises(UserError, match=r"^player 'mine': it made 1 illegal move; choose among"):
        act_in_batches(player, KEY, piles([2, 40, 40]), np.arange(3), 4)


@pytest.mark.parametrize("kind", [jnp.int8, jnp.uint32])
def test_actions_of_any_integer_type_become_int32(kind):
    actions, is_legal = choose(lambda params, key, states: jnp.full(2, 2, kind), None, KEY, piles([40, 2]))
    assert (actions.dtype, actions.tolist(), is_legal.tolist()) == (jnp.int32, [2, 2], [True, False])


def test_the_search_and_the_choice_of_mcts_draw_with_different_keys(monkeypatch):
    keys = []
    monkeypatch.setattr(players, "make_mcts", lambda game, number: lambda key, states: keys.append(key))
    monkeypatch.setattr(players, "most_visited", lambda key, visits: keys.append(key))
    players._make_mcts_act.__wrapped__(GAME, 8)(None, KEY, None)
    assert len({np.asarray(jax.random.key_data(key)).tobytes() for key in (KEY, *keys)}) == 3
