"""Models of Pgx as players: programs from what Pgx shows, which play as the functions that they were made of."""

import jax
import jax.numpy as jnp
import numpy as np
import pgx
import pytest
from jax import export

from alphagat.cli import match
from alphagat.errors import UserError
from alphagat.evaluation.openings import random_positions
from alphagat.evaluation.pgx_model import load_evaluator, pgx_model_player
from alphagat.games import make_game

LINES = np.array([(0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6)])


def greedy(observations):
    """Takes a line where it can, and blocks one where it must; the first channel of Pgx holds the mover's marks."""
    own, theirs = observations.reshape(-1, 9, 2).astype(jnp.float32).transpose(2, 0, 1)[:, :, LINES]  # [B, 8, 3]
    line = 100.0 * ((own.sum(-1) == 2) & (theirs.sum(-1) == 0)) + 10.0 * ((theirs.sum(-1) == 2) & (own.sum(-1) == 0))
    logits = jnp.zeros((observations.shape[0], 9)).at[:, LINES].max(line[:, :, None] * (own + theirs == 0))
    return logits, jnp.where(logits.max(-1) >= 100, 1.0, 0.0)


def write(file, function=greedy, shape=(3, 3, 2), batch=None, platforms=("cpu", "cuda")):
    (batch,) = (batch,) if batch else export.symbolic_shape("b")
    observations = jax.ShapeDtypeStruct((batch, *shape), bool)
    file.write_bytes(export.export(jax.jit(function), platforms=platforms)(observations).serialize())
    return file


@pytest.fixture
def game():
    return make_game("pgx:tic_tac_toe")


def test_model_receives_observation_of_player_to_move(tmp_path, game):
    evaluate = load_evaluator(game, write(tmp_path / "greedy.stablehlo"))
    env = pgx.make("tic_tac_toe")
    full = env.init(jax.random.key(0)).replace(current_player=jnp.int32(0))
    states = game.init(jax.random.key(0))
    for action in (0, 4, 1, 8):
        with jax.numpy_rank_promotion("allow"):
            full = env.step(full, jnp.int32(action))
        states = game.step(states, jnp.int32(action), jax.random.key(0))
        expected = greedy(full.observation[None])
        found = evaluate(None, jax.tree.map(lambda x: x[None], states))
        np.testing.assert_array_equal(found.prior_logits, expected[0])
        np.testing.assert_array_equal(found.value, expected[1])
    assert found.prior_logits[0, 2] == 100  # 0 and 1 are its own


def test_policy_plays_without_search(tmp_path, game):
    player = pgx_model_player(game, write(tmp_path / "greedy.stablehlo"), None)
    states = random_positions(game, 64, 2, 6, seed=0)
    logits, _ = greedy(jax.vmap(game.pgx_observation)(states))
    moves = np.asarray(player.act(None, jax.random.key(0), states))
    best = np.where(states.legal_action_mask, logits, -1)
    np.testing.assert_array_equal(best[np.arange(64), moves], best.max(axis=1))
    assert np.asarray(states.legal_action_mask)[np.arange(64), moves].all()
    assert (best.max(axis=1) > 0).any()


@pytest.mark.parametrize("flags", [[], ["--simulations", "16"]])
def test_plays_a_match(tmp_path, capsys, monkeypatch, flags):
    monkeypatch.setenv("COLUMNS", "200")
    file = write(tmp_path / "greedy.stablehlo")
    assert match.run([f"pgx:{file}", "random", "--board", "pgx:tic_tac_toe", "--games", "60", *flags]) == 0
    shown = capsys.readouterr().out
    assert "pgx:tic_tac_toe, 60 games" in shown
    score = float(shown.partition("│ score")[2].split("│")[1].split("%")[0])
    assert score > 75


def test_unusable_model_is_rejected(tmp_path, game):
    file = tmp_path / "greedy.stablehlo"
    with pytest.raises(UserError, match="cannot be read: No such file"):
        pgx_model_player(game, file, None)
    write(file)
    with pytest.raises(UserError, match="hex:3 is not a Pgx board; name one"):
        pgx_model_player(make_game("hex:3"), file, None)
    (tmp_path / "half").write_bytes(file.read_bytes()[:3000])
    with pytest.raises(UserError, match="half': the file is not a program"):
        pgx_model_player(game, tmp_path / "half", None)
    write(file, shape=(9, 2, 1))
    with pytest.raises(UserError, match=r"\(b, 9, 2, 1\), .* pgx:tic_tac_toe needs \('b', 3, 3, 2\), \('b', 9\)"):
        pgx_model_player(game, file, None)
    write(file, batch=4)
    with pytest.raises(UserError, match=r"\(4, 3, 3, 2\), \(4, 9\), \(4,\); .* with any number b"):
        pgx_model_player(game, file, None)
    write(file, platforms=("cuda",))
    with pytest.raises(UserError, match="runs on gpu only; export it with platforms="):
        pgx_model_player(game, file, None)
    write(file, lambda observations: (greedy(observations)[0], greedy(observations)[1].sum()))
    with pytest.raises(UserError, match=r"\(b, 9\), \(\); .* with any number b"):
        pgx_model_player(game, file, None)
    write(file, lambda observations: greedy(observations)[0])
    with pytest.raises(UserError, match="the program's shapes are"):
        pgx_model_player(game, file, None)
