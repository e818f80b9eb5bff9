import jax
import jax.numpy as jnp
import numpy as np
import pytest

from alphagat.games import make_game
from alphagat.games.symmetries import permute_actions, permute_nodes, random_symmetries

KEY = jax.random.key(0)


@pytest.mark.parametrize("board", ["tic_tac_toe", "hex:3", "connect_four", "hex:3:swap"])
def test_permuted_features_match_the_permuted_game(board):
    """Replays each game with permuted moves, without a network."""
    game = make_game(board)
    symmetries = game.symmetries
    generator = np.random.default_rng(0)
    step, observe = jax.jit(game.step), jax.jit(game.observe)
    start = np.asarray(observe(game.init(KEY)))
    for index in range(symmetries.num_symmetries):
        node, action = symmetries.node_permutations[index], symmetries.action_permutations[index]
        exchanged = not (start[node] == start).all()  # Hex transposed: the other player starts
        state = game.init(KEY)
        twin = state.replace(current_player=jnp.int8(exchanged))
        for _ in range(4):
            move = int(generator.choice(np.flatnonzero(state.legal_action_mask)))
            state, twin = step(state, move, KEY), step(twin, int(np.flatnonzero(action == move)[0]), KEY)
            which = jnp.array([index])
            nodes = permute_nodes(observe(state)[None], which, symmetries)[0]
            assert (nodes == observe(twin)).all()
            legal = permute_actions(state.legal_action_mask[None], which, symmetries)[0]
            assert (legal == twin.legal_action_mask).all()
            policy = np.zeros(game.num_actions, np.float32)
            policy[move] = 1
            permuted = permute_actions(jnp.asarray(policy)[None], which, symmetries)[0]
            assert action[int(permuted.argmax())] == move


def test_each_example_has_its_own_symmetry():
    symmetries = make_game("tic_tac_toe").symmetries
    values = jnp.tile(jnp.arange(9.0)[None], (8, 1))
    assert (permute_actions(values, jnp.arange(8), symmetries) == symmetries.action_permutations).all()
    nodes = jnp.tile(jnp.arange(9.0)[None, :, None], (8, 1, 2))
    assert (permute_nodes(nodes, jnp.arange(8), symmetries)[..., 1] == symmetries.node_permutations).all()


def test_symmetries_are_drawn_uniformly():
    symmetries = make_game("tic_tac_toe").symmetries
    drawn = random_symmetries(KEY, 8000, symmetries)
    counts = np.bincount(drawn, minlength=8)
    assert drawn.shape == (8000,)
    assert ((counts - 1000) ** 2 / 1000).sum() < 24.3  # chi-square, 7 degrees of freedom, 0.1 %
