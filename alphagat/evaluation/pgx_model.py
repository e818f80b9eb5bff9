"""Pgx's baseline models as players of the boards `pgx:NAME`.

Pgx distributes pickles, which are not loaded here, because unpickling runs arbitrary code. A `jax.export` program holds
the same function; `docs/guides/evaluate.md` describes how to export one.
"""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from jax import export

from alphagat.errors import UserError
from alphagat.evaluation.players import Player, search_player
from alphagat.games.base import Game
from alphagat.games.pgx_adapter import PgxGame
from alphagat.search import Evaluation, Evaluator, make_search
from alphagat.search.tree import likeliest_action
from alphagat.wording import counted


def pgx_model_player(game: Game, file: Path, num_simulations: int | None) -> Player:
    """Makes the player of a model, which maps observations `[B, rows, columns, channels]` to logits `[B, A]` and values
    `[B]` for the player to move.

    Args:
      num_simulations: of a Gumbel search over the model; None: play the policy's most probable move.

    Raises:
      UserError: the file is not such a program, or its shapes do not match the board.
    """
    evaluate = load_evaluator(game, file)
    if num_simulations is None:
        return Player(
            f"pgx:{file.name}",
            lambda params, key, states: likeliest_action(evaluate(params, states).prior_logits, states),
        )
    search = make_search(
        game, evaluate, algorithm="gumbel", num_simulations=num_simulations, explore=False, value_scale=1.0
    )
    return search_player(f"pgx:{file.name}, {counted(num_simulations, 'simulation')}", search, None)


def load_evaluator(game: Game, file: Path) -> Evaluator:
    """Reads a model; its evaluator takes no parameters. Raises UserError as `pgx_model_player` does."""
    if not isinstance(game, PgxGame):
        raise UserError(f"player 'pgx:{file}': {game.name} is not a Pgx board; name one, such as --board pgx:othello")
    try:
        program = export.deserialize(bytearray(file.read_bytes()))
    except OSError as error:
        raise UserError(f"player 'pgx:{file}': the file cannot be read: {error.strerror}") from error
    except Exception as error:  # the parser may raise anything on a damaged file
        raise UserError(f"player 'pgx:{file}': the file is not a program of jax.export") from error
    _check_shapes(game, file, program)
    platforms = [name.replace("cuda", "gpu") for name in program.platforms]
    if jax.default_backend() not in platforms:
        raise UserError(
            f"player 'pgx:{file}': the program runs on {', '.join(platforms)} only; export it with "
            "platforms=('cpu', 'cuda')"
        )
    (observations,) = program.in_avals

    def evaluate(params: Any, states: Any) -> Evaluation:
        del params
        seen = jax.vmap(game.pgx_observation)(states).astype(observations.dtype)
        return Evaluation(*(output.astype(jnp.float32) for output in program.call(seen)))

    return evaluate


def _check_shapes(game: PgxGame, file: Path, program: export.Exported) -> None:
    """Raises UserError unless a program maps observations to logits and values for a symbolic batch size."""
    shapes = [each.shape for each in (*program.in_avals, *program.out_avals)]
    wanted = [(*game.board[:2], game.num_features), (game.num_actions,), ()]
    batches = {str(shape[0]) if shape else "1" for shape in shapes}
    if [shape[1:] for shape in shapes] != wanted or len(batches) != 1 or batches.pop().isdigit():
        raise UserError(
            f"player 'pgx:{file}': the program's shapes are {', '.join(map(str, shapes))}; {game.name} needs "
            f"{', '.join(str(('b', *shape)) for shape in wanted)} with any number b"
        )
