"""Evaluations know the actions that win at once, and are the network's elsewhere."""

import jax
import jax.numpy as jnp
import numpy as np

from alphagat.agents.build import make_params
from alphagat.config import Config
from alphagat.search.evaluator import make_network_evaluator, make_plain_evaluator
from alphagat.training.setup import make_setups
from tests.games.playing import play

OPENING = "f5 d6 c5 f4"
BEFORE_THE_LAST_MOVE = f"{OPENING} e7 f6 g5 e6"  # e3 then flips all discs: the shortest game


def test_actions_that_win_at_once_have_the_prior_and_the_value():
    config = Config(boards=("othello:8",))
    config.mesh.data = 1
    (setup,) = make_setups(config)
    game, network = setup.game, setup.network
    params = make_params(game, network, jax.random.key(0))
    states = jax.tree.map(
        lambda *leaves: jnp.stack(leaves), play(game.name, OPENING), play(game.name, BEFORE_THE_LAST_MOVE)
    )
    evaluation = make_network_evaluator(game, network)(params, states)
    logits, values = network.apply(params, jax.vmap(game.observe)(states).nodes)
    np.testing.assert_allclose(evaluation.prior_logits[0], logits[0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(evaluation.value, [values[0], 1], rtol=1e-5, atol=1e-6)
    assert abs(values[1]) < 0.9
    plain = make_plain_evaluator(game, network)(params, states)
    np.testing.assert_allclose(plain.prior_logits, logits, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(plain.value, values, rtol=1e-5, atol=1e-6)
    prior = jax.nn.softmax(evaluation.prior_logits[1])
    assert game.action_names[int(prior.argmax())] == "e3"
    assert prior.max() == 1
