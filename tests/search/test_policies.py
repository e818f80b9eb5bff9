import functools
import inspect

import chex
import jax
import jax.numpy as jnp
import mctx
import numpy as np
import pytest
from scipy.special import rel_entr

from alphagat.config import Config, SearchConfig
from alphagat.config_fields import fields
from alphagat.errors import UserError
from alphagat.evaluation.solvers import reachable_positions
from alphagat.games import make_game
from alphagat.search import Evaluation, make_search, policies
from alphagat.search.policies import add_root_noise
from alphagat.search.tree import mask_illegal
from tests.search.evaluators import (
    make_exact_evaluator,
    make_table_evaluator,
    make_tree_search,
    some_positions,
    uniform_evaluator,
)

KEY = jax.random.key(0)
GAME = make_game("tic_tac_toe")
FEW, MANY = 4, 96
POSITIONS, EXPLORATION_PLIES = 1000, 5
TACTICS = {  # position -> the moves that keep its value
    "xo. ... ...": (3, 4, 6),  # x threatens, and then twice
    "xx. .o. ...": (2,),  # o blocks
    "x.x .o. ...": (1,),  # o blocks
    "oo. .x. x..": (2,),  # x blocks, and wins
}
every_algorithm = pytest.mark.parametrize("algorithm", ["gumbel", "puct"])


@pytest.fixture(scope="module")
def solved():
    """Some positions and what is known of them; the first are those of `TACTICS`."""
    everything = reachable_positions(GAME)
    boards = np.asarray(everything.states.board)
    named = [np.flatnonzero((boards == np.asarray(position(drawing).board)).all(axis=1))[0] for drawing in TACTICS]
    others = np.random.default_rng(0).choice(np.setdiff1d(np.arange(len(boards)), named), 300, replace=False)
    rows = np.concatenate([named, others])
    return jax.tree.map(lambda x: x[rows], everything)


@pytest.fixture(scope="module")
def searches():
    """Searches of every position for its best move, by algorithm and number of simulations."""
    return {
        (algorithm, number): jax.jit(
            make_search(GAME, uniform_evaluator, algorithm=algorithm, num_simulations=number, explore=False)
        )
        for algorithm, number in (("gumbel", FEW), ("gumbel", MANY), ("puct", MANY))
    }


@pytest.fixture(scope="module")
def found(searches, solved):
    states, plies = batch(solved)
    return {name: jax.tree.map(np.asarray, search(None, KEY, states, plies)) for name, search in searches.items()}


def batch(solved):
    return jax.tree.map(jnp.asarray, solved.states), jnp.zeros(len(solved.values), jnp.int32)


@pytest.fixture(scope="module")
def explored():
    """Trees by algorithm, of an evaluator that knows whole numbers, over random positions, with all the noise."""
    evaluate = make_table_evaluator(GAME)
    states, plies = some_positions(GAME, POSITIONS)
    gumbel = make_tree_search(GAME, evaluate, algorithm="gumbel", num_simulations=24, explore=True)
    outputs = {"gumbel": gumbel(KEY, states, plies), "puct": explore_puct(1.0)}
    return states, jax.tree.map(np.asarray, outputs)


@functools.cache
def explore_puct(temperature):
    states, plies = some_positions(GAME, POSITIONS)
    return _puct()(temperature, KEY, states, plies)


@functools.cache
def _puct():
    return jax.jit(
        lambda temperature, key, states, plies: make_tree_search(
            GAME,
            make_table_evaluator(GAME),
            algorithm="puct",
            num_simulations=24,
            explore=True,
            temperature=temperature,
            exploration_plies=EXPLORATION_PLIES,
        )(key, states, plies)
    )


def position(drawing):
    """Reads a position from its rows, x to move first."""
    cells = np.array([".xo".index(cell) for cell in drawing if cell in ".xo"], np.int8)
    state = GAME.init(KEY).replace(board=jnp.asarray(cells))
    return state.replace(current_player=jnp.int8((cells != 0).sum() % 2))


def wins_at_once(solved):
    """Returns `[P, A]`: the moves that end the game with a win."""
    states, _ = batch(solved)
    after = jax.vmap(jax.vmap(GAME.step, (None, 0, None)), (0, None, None))(states, jnp.arange(9), KEY)
    legal = np.asarray(states.legal_action_mask)
    return (np.asarray(after.rewards) != 0).any(axis=-1) & legal


@every_algorithm
def test_wins_in_one_for_both_players(algorithm, found, solved):
    wins = wins_at_once(solved)
    (rows,) = np.nonzero(wins.any(axis=1))
    assert set(solved.states.current_player[rows].tolist()) == {0, 1}
    result = found[algorithm, MANY]
    assert wins[rows, result.action[rows]].all()


@every_algorithm
@pytest.mark.parametrize("drawing", TACTICS)
def test_known_tactics(algorithm, drawing, found, solved):
    row = list(TACTICS).index(drawing)
    assert tuple(np.flatnonzero(solved.action_values[row] == solved.values[row])) == TACTICS[drawing]
    assert found[algorithm, MANY].action[row] in TACTICS[drawing]


@every_algorithm
def test_finds_win_in_three_plies_and_defends(algorithm, found, solved):
    wins = wins_at_once(solved).any(axis=1)
    wins_in_three = (solved.values == 1) & ~wins
    # The only moves that do not lose.
    must_defend = (solved.values == 0) & ((solved.action_values == 0).sum(axis=1) == 1)
    kept = solved.action_values[np.arange(len(wins)), found[algorithm, MANY].action] == solved.values
    assert wins_in_three.sum() > 10
    assert must_defend.sum() > 10
    assert kept[wins_in_three].mean() > 0.65
    assert kept[must_defend].mean() > 0.9


@every_algorithm
def test_more_simulations_play_better(algorithm, found, solved):
    matters = (solved.action_values != solved.values[:, None]) & (solved.action_values != -2)
    (rows,) = np.nonzero(matters.any(axis=1))
    keeps = (solved.action_values == solved.values[:, None])[rows]
    prior = (keeps.sum(axis=1) / (solved.action_values[rows] != -2).sum(axis=1)).mean()  # of no simulation
    many = keeps[np.arange(len(rows)), found[algorithm, MANY].action[rows]].mean()
    assert many > 0.92 > prior + 0.3
    if algorithm == "gumbel":
        few = keeps[np.arange(len(rows)), found[algorithm, FEW].action[rows]].mean()
        assert prior + 0.1 < few < many - 0.1


@every_algorithm
def test_values_are_from_view_of_player_to_move(algorithm, found, solved):
    wins = wins_at_once(solved).any(axis=1)
    (lost,) = np.nonzero((solved.values == -1) & ~wins & ((solved.action_values != -2).sum(axis=1) <= 4))
    value = found[algorithm, MANY].value
    for player in (0, 1):
        own = solved.states.current_player == player
        assert value[wins & own].mean() > 0.2  # low, since Gumbel must visit the other moves too
        assert value[lost][own[lost]].mean() < -0.5
        assert own[lost].sum() >= 2
    assert (abs(value) <= 1).all()


@every_algorithm
def test_discount_prefers_immediate_win(algorithm, solved):
    """Without one, the search may as well win later."""
    at_once = wins_at_once(solved)
    rows = np.flatnonzero(at_once.any(axis=1) & ((solved.action_values == 1) & ~at_once).any(axis=1))
    states, plies = batch(jax.tree.map(lambda x: x[rows], solved))
    found = {}
    for discount in (0.7, 1.0):
        options = {"num_simulations": MANY, "explore": False, "discount": discount}
        search = jax.jit(make_search(GAME, make_exact_evaluator(GAME), algorithm=algorithm, **options))
        action = np.asarray(search(None, KEY, states, plies).action)
        found[discount] = at_once[rows][np.arange(len(rows)), action].mean()
    assert len(rows) > 20
    assert found[0.7] == 1 > found[1.0]


def test_discount_is_rejected_with_chance():
    game = make_game("2048:2")
    with pytest.raises(UserError, match="board 2048:2 has chance moves"):
        make_search(game, uniform_evaluator, algorithm="gumbel", num_simulations=2, explore=False, discount=0.9)


@every_algorithm
def test_illegal_actions_are_never_searched(algorithm, explored):
    """Neither at the root nor inside the tree, whatever the prior says of them."""
    states, outputs = explored
    output, tree = outputs[algorithm]
    legal = np.asarray(states.legal_action_mask)
    assert legal[np.arange(len(legal)), output.action].all()
    assert (output.policy_target[~legal] == 0).all()
    np.testing.assert_allclose(output.policy_target.sum(axis=1), 1, rtol=1e-5)
    nodes = (tree.node_visits > 0) & ~tree.embeddings.terminated
    inside = np.asarray(tree.embeddings.legal_action_mask)
    assert nodes[:, 1:].sum() > 1000
    assert not ((tree.children_visits > 0) & ~inside & nodes[..., None]).any()
    assert ((~inside).sum(axis=-1)[nodes] > 0).any()


@pytest.mark.parametrize("min_value_range", [0.0, 0.8, 5.0])
def test_gumbel_target_is_the_softmax_of_logits_and_completed_values(min_value_range):
    """Danihelka et al. 2022, equation 11 and appendix D, in numpy, from the visits and values of the root. The
    range of values exceeds 0.8 in some positions, and 5 in none.
    """
    states, plies = some_positions(GAME, POSITIONS)
    options = {"num_simulations": 24, "explore": True, "min_value_range": min_value_range}
    search = make_tree_search(GAME, make_table_evaluator(GAME), algorithm="gumbel", **options)
    output, tree = jax.tree.map(np.asarray, search(KEY, states, plies))
    legal = np.asarray(states.legal_action_mask)
    visits = tree.children_visits[:, 0].astype(np.float64)
    values = (tree.children_rewards + tree.children_discounts * tree.children_values)[:, 0].astype(np.float64)
    evaluation = make_table_evaluator(GAME)(None, states)
    logits = np.where(legal, np.asarray(evaluation.prior_logits, np.float64), -np.inf)
    prior = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    visited = visits > 0
    of_visited = (prior * values * visited).sum(axis=1) / (prior * visited).sum(axis=1)
    total = visits.sum(axis=1)
    mixed = (np.asarray(evaluation.value, np.float64) + total * of_visited) / (1 + total)
    completed = np.where(visited, values, mixed[:, None])
    spread = completed.max(axis=1, keepdims=True) - completed.min(axis=1, keepdims=True)
    assert np.any(spread < 0.8)
    assert np.any((spread > 0.8) & (spread < 5))
    rescaled = (completed - completed.min(axis=1, keepdims=True)) / np.maximum(spread, max(min_value_range, 1e-8))
    improved = logits + (50 + visits.max(axis=1, keepdims=True)) * 0.5 * rescaled
    expected = np.exp(improved - improved.max(axis=1, keepdims=True))
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(output.policy_target, expected, atol=1e-5)


def test_puct_target_is_visit_share(explored):
    _, outputs = explored
    output, tree = outputs["puct"]
    assert (tree.children_visits[:, 0].sum(axis=1) == 24).all()
    np.testing.assert_allclose(output.policy_target, tree.children_visits[:, 0] / 24, rtol=1e-6)


def test_puct_s_value_is_the_mean_over_the_root_s_evaluation_and_the_simulations(explored):
    _, outputs = explored
    output, tree = outputs["puct"]
    after = tree.children_rewards[:, 0] + tree.children_discounts[:, 0] * tree.children_values[:, 0]
    total = tree.raw_values[:, 0] + (tree.children_visits[:, 0] * after).sum(axis=1)
    np.testing.assert_allclose(output.value, total / 25, atol=1e-5)


def test_gumbel_without_exploration_ignores_key(searches, solved):
    states, plies = batch(solved)
    search = searches["gumbel", FEW]
    first, other = search(None, KEY, states, plies), search(None, jax.random.key(9), states, plies)
    assert (first.action == other.action).all()
    assert (first.policy_target == other.policy_target).all()


@pytest.fixture
def ask(monkeypatch):
    """Returns a function that starts a search and returns the arguments with which it calls mctx."""

    class HasAskedError(Exception):
        pass

    def start(evaluate, states, plies, *, algorithm, **options):
        asked = {}

        def listen(params, key, root, *arguments, **keywords):
            asked.update(keywords, root=root, key=key)
            raise HasAskedError

        name = {"gumbel": "gumbel_muzero_policy", "puct": "muzero_policy"}[algorithm]
        monkeypatch.setattr(mctx, name, listen)
        search = make_search(GAME, evaluate, algorithm=algorithm, num_simulations=2, **options)
        with pytest.raises(HasAskedError):
            search(None, KEY, states, plies)
        return asked

    return start


@every_algorithm
@pytest.mark.parametrize("explore", [True, False])
def test_noise_requires_exploration(algorithm, explore, ask):
    states, plies = some_positions(GAME, 10)
    asked = ask(uniform_evaluator, states, plies, algorithm=algorithm, explore=explore)
    if algorithm == "gumbel":
        assert (asked["gumbel_scale"] == float(explore)).all()
    else:
        assert asked["dirichlet_fraction"] == 0
        legal = np.asarray(states.legal_action_mask)
        prior = np.asarray(jax.nn.softmax(asked["root"].prior_logits))
        assert (prior[~legal] == 0).all()
        uniform = legal / legal.sum(axis=1, keepdims=True)
        assert (np.abs(prior - uniform).max() > 0.05) == explore


def test_puct_mixes_its_share_of_noise_of_its_concentration_at_every_ply(ask):
    """With a large concentration, the noise is almost uniform."""
    evaluate, (states, plies) = make_table_evaluator(GAME), some_positions(GAME, 10)
    noise = {"dirichlet_alpha": 1000.0, "dirichlet_fraction": 0.4, "exploration_plies": 0}
    asked = [ask(evaluate, states, plies, algorithm="puct", explore=explore, **noise) for explore in (False, True)]
    quiet, noisy = (np.asarray(jax.nn.softmax(each["root"].prior_logits)) for each in asked)
    legal = np.asarray(states.legal_action_mask)
    expected = 0.6 * quiet + 0.4 * legal / legal.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(noisy, expected, atol=0.03)
    assert abs(quiet - expected).max() > 0.1


def test_puct_uses_different_keys_for_noise_search_and_moves(monkeypatch):
    keys = []

    def note(function, position=0):
        def noted(*arguments, **keywords):
            keys.append(tuple(jax.random.key_data(arguments[position]).tolist()))
            return function(*arguments, **keywords)

        return noted

    monkeypatch.setattr(policies, "add_root_noise", note(policies.add_root_noise))
    monkeypatch.setattr(policies, "draw_move", note(policies.draw_move))
    monkeypatch.setattr(mctx, "muzero_policy", note(mctx.muzero_policy, 1))
    states, plies = some_positions(GAME, 10)
    make_search(GAME, uniform_evaluator, algorithm="puct", num_simulations=2, explore=True)(None, KEY, states, plies)
    assert len(set(keys)) == len(keys) == 3


def test_root_noise_is_dirichlet_over_legal_actions():
    """Mean and variance, against the closed forms; two thirds of the actions are illegal."""
    alpha, fraction, number, samples = 0.3, 0.25, 3, 20_000
    prior = np.zeros(9)
    prior[[1, 4, 8]] = 0.2, 0.5, 0.3
    states = GAME.init(KEY).replace(board=jnp.asarray(prior == 0, jnp.int8))
    states = jax.tree.map(lambda x: jnp.broadcast_to(x, (samples, *x.shape)), states)
    np.testing.assert_array_equal(states.legal_action_mask[0], prior > 0)
    logits = mask_illegal(jnp.broadcast_to(jnp.log(prior + 1e-9), (samples, 9)), states)
    found = np.asarray(jax.nn.softmax(add_root_noise(KEY, logits, states, alpha, fraction)), np.float64)
    assert (found[:, prior == 0] == 0).all()
    noise = (found - (1 - fraction) * prior)[:, prior > 0] / fraction
    np.testing.assert_allclose(noise.sum(axis=1), 1, atol=1e-5)
    assert noise.min() > -1e-6
    np.testing.assert_allclose(noise.mean(axis=0), 1 / number, atol=0.01)
    variance = (1 / number) * (1 - 1 / number) / (number * alpha + 1)
    np.testing.assert_allclose(noise.var(axis=0), variance, rtol=0.05)


def test_root_noise_is_finite_at_the_least_concentration():
    least = next(each.limits.at_least for each in fields(Config()) if each.path == "search.dirichlet_alpha")
    states = jax.vmap(GAME.init)(jax.random.split(KEY, POSITIONS))
    logits = jnp.zeros(states.legal_action_mask.shape)
    chex.assert_tree_all_finite(add_root_noise(KEY, logits, states, least, 0.25))


def test_noise_ends_with_the_exploration():
    """Afterwards the search ignores its key, and before it does not."""
    states, plies = some_positions(GAME, POSITIONS)
    options = {"algorithm": "gumbel", "num_simulations": FEW, "exploration_plies": EXPLORATION_PLIES}
    search = jax.jit(make_search(GAME, uniform_evaluator, explore=True, **options))
    quiet = jax.jit(make_search(GAME, uniform_evaluator, explore=False, **options))
    found, other = (np.asarray(search(None, key, states, plies).action) for key in jax.random.split(KEY))
    explores = plies < EXPLORATION_PLIES
    assert (found[~explores] == other[~explores]).all()
    assert (found[~explores] == np.asarray(quiet(None, KEY, states, plies).action)[~explores]).all()
    assert (found != other)[explores].mean() > 0.2
    nowhere = jax.jit(make_search(GAME, uniform_evaluator, explore=True, **options | {"exploration_plies": 0}))
    assert (nowhere(None, KEY, states, 0 * plies).action == quiet(None, KEY, states, plies).action).all()


def test_temperature_applies_only_to_first_plies():
    _, plies = some_positions(GAME, POSITIONS)
    first = plies < EXPLORATION_PLIES
    for temperature in (0.5, 1.0, 30.0):
        output, tree = jax.tree.map(np.asarray, explore_puct(temperature))
        visits = tree.children_visits[:, 0].astype(np.float64)
        np.testing.assert_allclose(output.policy_target, visits / 24, rtol=1e-6)
        of_played = visits[np.arange(POSITIONS), output.action]
        # However warm: never a move without visits, so never an illegal one.
        assert (of_played > 0).all()
        assert (of_played[~first] == visits[~first].max(axis=1)).all()
        shares = visits ** (1 / temperature) * (visits > 0)
        shares /= shares.sum(axis=1, keepdims=True)
        # How often the most visited move is played, against a sum of independent draws.
        best = visits.argmax(axis=1)
        hits = (output.action == best)[first].sum()
        chance = shares[np.arange(POSITIONS), best][first]
        assert abs(hits - chance.sum()) < 4 * np.sqrt((chance * (1 - chance)).sum())
        assert (chance < 0.9).sum() > 30


@every_algorithm
def test_surprise_is_divergence_from_noiseless_prior(algorithm):
    evaluate = make_table_evaluator(GAME)
    search = jax.jit(make_search(GAME, evaluate, algorithm=algorithm, num_simulations=FEW, explore=True))
    states, plies = some_positions(GAME, 50)
    found = search(None, KEY, states, plies)
    logits = np.asarray(evaluate(None, states).prior_logits, np.float64)
    prior = np.where(states.legal_action_mask, np.exp(logits), 0)
    expected = rel_entr(np.asarray(found.policy_target, np.float64), prior / prior.sum(-1, keepdims=True)).sum(-1)
    np.testing.assert_allclose(found.surprise, expected, atol=1e-5)
    assert expected.max() > 0.1


def test_the_defaults_of_a_search_are_those_of_a_config():
    config = SearchConfig()
    parameters = inspect.signature(make_search).parameters
    defaults = {name: each.default for name, each in parameters.items() if each.default is not inspect.Parameter.empty}
    assert defaults
    assert defaults == {name: getattr(config, name) for name in defaults}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"algorithm": "ucb"}, r"^config\.search\.algorithm='ucb': it must be one of gumbel, puct$"),
        ({"num_simulations": 0}, r"^config\.search\.num_simulations=0: it must be at least 1$"),
    ],
)
@every_algorithm
def test_a_search_that_cannot_be_made_is_refused(algorithm, options, message):
    options = {"algorithm": algorithm, "num_simulations": 2, **options}
    with pytest.raises(UserError, match=message):
        make_search(GAME, uniform_evaluator, explore=False, **options)


@every_algorithm
def test_a_search_needs_a_batch_and_as_many_plies(algorithm):
    search = make_search(GAME, uniform_evaluator, algorithm=algorithm, num_simulations=2, explore=False)
    states, plies = some_positions(GAME, 3)
    with pytest.raises(UserError, match=r"^plies: its shape is \[1\]; pass one number per state, \[3\]$"):
        search(None, KEY, states, plies[:1])
    with pytest.raises(UserError, match=r"^states: it must be a batch \[B\]; for one state, pass games\.batches"):
        search(None, KEY, jax.tree.map(lambda x: x[0], states), plies[0])


def test_surprise_is_bounded_where_legal_moves_have_no_prior():
    """As evaluations of players do where a move wins at once; the noise still sends simulations elsewhere."""

    def evaluate(params, states):
        first = jax.nn.one_hot(states.legal_action_mask.argmax(axis=-1), GAME.num_actions, dtype=bool)
        return Evaluation(jnp.where(first, 0.0, jnp.finfo(jnp.float32).min), jnp.zeros(len(first)))

    search = jax.jit(make_search(GAME, evaluate, algorithm="puct", num_simulations=MANY, explore=True))
    states, plies = some_positions(GAME, 50)
    surprise = np.asarray(search(None, KEY, states, plies).surprise)
    assert surprise.max() > 1
    assert surprise.max() <= 20
