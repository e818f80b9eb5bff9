"""Who holds each node in the end, against drawings of the board, read in plain Python, and against the results."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from alphagat.games import make_game

NUM_GAMES = 60


@functools.cache
def final_states(name: str):
    """Plays random games; returns their last states and their ownership."""
    game = make_game(name)

    def play(key):
        def step(state, key):
            logits = jnp.where(state.legal_action_mask, 0.0, -jnp.inf)
            after = game.step(state, jax.random.categorical(key, logits), key)
            return jax.tree.map(lambda new, old: jnp.where(state.terminated, old, new), after, state), None

        return jax.lax.scan(step, game.init(key), jax.random.split(key, 300))[0]

    states = jax.jit(jax.vmap(play))(jax.random.split(jax.random.key(0), NUM_GAMES))
    states = jax.tree.map(lambda x: x[np.asarray(states.terminated)], states)
    ownership = jax.jit(jax.vmap(game.ownership))(states, states.terminated)
    return game, states, np.asarray(ownership)


def stones_of(game, state) -> np.ndarray:
    """Reads `[size, size]` stones from the drawing: 1 for x, -1 for o."""
    rows = [line.split() for line in game.render(state).splitlines()]
    width = game.size
    boards = [row[1:] for row in rows if len(row) == width + 1 and set(row[1:]) <= set(".xo")]
    return np.array([[{".": 0, "x": 1, "o": -1}[cell] for cell in row] for row in boards])


def area_of(stones: np.ndarray) -> np.ndarray:
    """Fills each empty region with the colour of the stones around it, where they are of one."""
    area, seen = stones.copy(), stones != 0
    for start in np.argwhere(stones == 0):
        region, border, waiting = [], set(), [tuple(start)]
        while waiting:
            row, column = waiting.pop()
            if not (0 <= row < len(stones) and 0 <= column < len(stones)):
                continue
            if stones[row, column]:
                border.add(stones[row, column])
            elif not seen[row, column]:
                seen[row, column] = True
                region.append((row, column))
                waiting += [(row + 1, column), (row - 1, column), (row, column + 1), (row, column - 1)]
        for cell in region:
            area[cell] = border.pop() if len(border) == 1 else 0
            border = {area[cell]} if area[cell] else border
    return area


@pytest.mark.parametrize("name", ["othello:6", "go:5"])
def test_ownership_matches_board_and_result(name):
    game, states, ownership = final_states(name)
    assert len(ownership) > NUM_GAMES / 2
    assert ownership.dtype == np.int8
    assert ownership.shape == (len(ownership), game.topology.num_nodes)
    assert (ownership[:, -1] == 0).all()
    komi = 0 if name == "othello:6" else game.komi
    neutral = 0
    for number, found in enumerate(ownership[:, :-1]):
        state = jax.tree.map(lambda x, number=number: np.asarray(x[number]), states)
        stones = stones_of(game, state)
        expected = stones if name == "othello:6" else area_of(stones)
        np.testing.assert_array_equal(found.reshape(stones.shape), expected)
        neutral += (expected == 0).any()
    wins = np.sign(ownership.sum(axis=1) - komi)
    # In Go whoever repeats a position loses, whatever the area.
    agree = (wins == np.asarray(states.rewards)[:, 0]).mean()
    if name == "othello:6":
        assert agree == 1
    else:
        assert agree > 0.9
        assert 0 < neutral < len(ownership)


def test_other_games_have_no_ownership():
    game = make_game("tic_tac_toe")
    assert game.ownership(game.init(jax.random.key(0)), jnp.bool_(True)) is None
