"""Players that need no trained network, in a module without JAX, so that a config is validated before JAX loads."""

import dataclasses
import re


@dataclasses.dataclass(frozen=True, kw_only=True)
class Opponent:
    """Declares a kind of player that needs no trained network.

    Attributes:
      usage: how to write its name.
      help: how it plays, for `--help`.
      pattern: the regular expression of its name; each group matches an integer.
      implementation: `module:function`, called with the game and the integers; it returns a `Player`.
    """

    usage: str
    help: str
    pattern: str
    implementation: str


# A new opponent needs its function and an entry here.
OPPONENTS = (
    Opponent(
        usage="random",
        help="uniformly random legal moves",
        pattern="random",
        implementation="alphagat.evaluation.players:random_player",
    ),
    Opponent(
        usage="mcts:SIMULATIONS",
        help="Monte-Carlo tree search with random rollouts",
        pattern="mcts:([1-9][0-9]{0,8})",
        implementation="alphagat.evaluation.players:mcts_player",
    ),
    Opponent(
        usage="solver",
        help="perfect play, in connect_four, tic_tac_toe and hex up to 5x5",
        pattern="solver",
        implementation="alphagat.evaluation.players:solver_player",
    ),
)
USAGES = ", ".join(opponent.usage for opponent in OPPONENTS)
PREVIOUS = "previous"  # during training: the parameters of the last evaluation


def find_opponent(name: str) -> tuple[Opponent, list[int]] | None:
    """Returns the opponent called `name` and the integers in the name; None if there is no such opponent."""
    for opponent in OPPONENTS:
        if match := re.fullmatch(opponent.pattern, name, re.ASCII):
            return opponent, [int(group) for group in match.groups()]
    return None
