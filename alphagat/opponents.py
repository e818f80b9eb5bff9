"""Players that need no trained network, in a module without JAX, so that a config is validated before JAX loads."""

import dataclasses
import re

from alphagat.bounds import MAX_SIMULATIONS, Limits, read_number, shown
from alphagat.errors import UserError


@dataclasses.dataclass(frozen=True, kw_only=True)
class Opponent:
    """Declares a kind of player that needs no trained network.

    Attributes:
      usage: how to write its name.
      help: how it plays, for `--help`.
      pattern: the regular expression of its name; each group matches an integer within `LIMITS`.
      implementation: `module:function`, called with the game and the integers; it returns a `Player`.
    """

    usage: str
    help: str
    pattern: str
    implementation: str


LIMITS = Limits(at_least=1, at_most=MAX_SIMULATIONS)
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
        pattern="mcts:(0|-?[1-9][0-9]*)",
        implementation="alphagat.evaluation.players:mcts_player",
    ),
    Opponent(
        usage="solver",
        help="perfect play in tic_tac_toe, hex:2, hex:3; alphagat match also: connect_four, hex:4, hex:5",
        pattern="solver",
        implementation="alphagat.evaluation.players:solver_player",
    ),
)
USAGES = ", ".join(opponent.usage for opponent in OPPONENTS)
PREVIOUS = "previous"  # during training: the parameters of the last evaluation


def find_opponent(name: str) -> tuple[Opponent, list[int]] | None:
    """Returns the opponent called `name` and the integers in the name; None if there is no such opponent.

    Raises:
      UserError: an integer is outside the limits.
    """
    for opponent in OPPONENTS:
        if match := re.fullmatch(opponent.pattern, name, re.ASCII):
            try:
                return opponent, [read_number(group, int, LIMITS) for group in match.groups()]
            except UserError as error:
                raise UserError(f"opponent {shown(name)}: each number of {opponent.usage} must be {error}") from None
    return None
