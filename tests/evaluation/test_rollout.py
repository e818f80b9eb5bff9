import jax
import jax.numpy as jnp
import numpy as np

from alphagat.evaluation.rollout import action_noise, rollout, uniform_actions, word
from alphagat.games import make_game
from alphagat.games.batches import compile_init
from tests.evaluation.toy import PileGame, piles

KEY = jax.random.key(0)


def _chi_square(counts):
    expected = counts.sum() / counts.size
    return ((counts - expected) ** 2 / expected).sum()


def test_actions_are_uniform_over_legal_actions():
    legal = np.array([0, 1, 1, 0, 1, 1, 1, 0, 0, 1], bool)
    bits = jax.random.bits(KEY, (60_000,), jnp.uint32)
    actions = uniform_actions(bits, jnp.broadcast_to(legal, (60_000, 10)))
    counts = np.bincount(actions, minlength=10)
    assert counts[~legal].sum() == 0
    assert _chi_square(counts[legal]) < 20.5  # 5 degrees of freedom: exceeded once in a thousand


def test_successive_actions_are_independent():
    seeds = jax.random.bits(KEY, (50_000,), jnp.uint32)
    legal = jnp.ones((50_000, 5), bool)
    first, second = (uniform_actions(word(seeds, jnp.uint32(index)), legal) for index in (3, 4))
    counts = np.bincount(np.asarray(first * 5 + second), minlength=25)
    assert _chi_square(counts) < 51.2  # 24 degrees of freedom


def test_neighbouring_seeds_give_independent_actions():
    actions = np.asarray(
        uniform_actions(word(jnp.arange(50_000, dtype=jnp.uint32), jnp.uint32(0)), jnp.ones((50_000, 5), bool))
    )
    assert _chi_square(np.bincount(actions[:-1] * 5 + actions[1:], minlength=25)) < 51.2


def test_noise_lies_in_the_unit_interval():
    noise = action_noise(jax.random.bits(KEY, (1000,), jnp.uint32), 20)
    assert noise.shape == (1000, 20)
    assert 0 <= noise.min() < 0.001
    assert 0.999 < noise.max() < 1


def test_no_legal_action_gives_zero():
    assert uniform_actions(jnp.arange(3, dtype=jnp.uint32), jnp.zeros((3, 4), bool)).tolist() == [0, 0, 0]


def test_random_tic_tac_toe_has_known_outcome_frequencies():
    game = make_game("tic_tac_toe")
    num = 20_000
    states = compile_init(game)(jax.random.split(KEY, num))
    results = np.asarray(jax.jit(lambda key: rollout(game, key, states))(KEY))
    # Exact, over all orders of the nine cells: 737/1260, 8/63, 121/420; four standard errors.
    for result, share in ((1, 737 / 1260), (0, 8 / 63), (-1, 121 / 420)):
        assert abs((results == result).mean() - share) < 4 * np.sqrt(share * (1 - share) / num)


def win_chance(pile: int) -> float:
    """Returns how often the player to move wins in uniformly random play."""
    chances = []
    for taken in range(1, min(pile, 3) + 1):
        after = 1.0 if taken == pile else win_chance(pile - taken)
        chances.append(after if taken in (2, pile) else 1 - after)
    return sum(chances) / len(chances)


def test_random_games_in_which_actions_recur_have_their_exact_outcome_frequencies():
    sizes, num = range(6, 12), 4000
    game = PileGame(11)
    for size in sizes:
        results = np.asarray(jax.jit(lambda states: rollout(game, KEY, states))(piles([size] * num)))
        chance = win_chance(size)
        assert abs((results == 1).mean() - chance) < 4 * np.sqrt(chance * (1 - chance) / num)


def test_results_are_for_the_player_to_move():
    game = PileGame(1)
    states = piles([1, 1])
    states = states.replace(current_player=jnp.array([0, 1], jnp.int8))
    assert rollout(game, KEY, states).tolist() == [1, 1]
    # Two left: taking both wins, and so does taking one after the other's one. Half of the games each way.
    means = rollout(PileGame(3), KEY, piles([2] * 4000))
    assert abs(means.mean()) < 0.07


def test_a_game_that_lasts_too_long_is_cut():
    assert rollout(PileGame(40, max_plies=3), KEY, piles([40] * 8)).tolist() == [0] * 8


def test_terminal_states_give_zero():
    game = PileGame(3)
    states = piles([0, 3]).replace(terminated=jnp.array([True, False]))
    results = rollout(game, KEY, states)
    assert results[0] == 0
    assert abs(results[1]) == 1
