"""Games: pure rules, network features and board graphs.

The interface (`base.Game`): all methods take one state; `jax.vmap` batches and `jax.jit` compiles them.

- `init(key)` and `step(state, action, key)` return a state: a small pytree with `current_player`, `rewards` of the
  last move for each player, `terminated`, and `legal_action_mask` (True where legal, all False once terminated).
- Terminated states are absorbing, with rewards of 0.
- `observe(state)` returns features of the nodes of `topology`, from the perspective of the player to move. They are
  computed, never stored.
- The edges are those of `topology`, or, if they differ between positions, those of `edges(state)`.
- Every action is located at a node of `topology` or at a pair of nodes.
- `symmetries` permute nodes and actions, and thereby features, policy and value.
- Boards of one family share features and `topology.vocabulary`, so that they can share weights.

A family is one module and one entry in `GAMES`. Installed packages add families by entry points of the group
`alphagat.games`.
"""

import functools
from collections.abc import Callable
from importlib.metadata import EntryPoints, entry_points

from alphagat.errors import UserError
from alphagat.games import breakthrough, chess, go, mnk, othello, pgx_adapter, tsp, twenty_forty_eight
from alphagat.games import hex as hex_family
from alphagat.games.base import Game

# the part of a board's name before the first colon -> a function of the whole name
GAMES: dict[str, Callable[[str], Game]] = {
    "tic_tac_toe": mnk.make_tic_tac_toe,
    "connect_four": mnk.make_connect_four,
    "gomoku": mnk.make_gomoku,
    "mnk": mnk.make_mnk,
    "hex": hex_family.make_hex,
    "go": go.make_go,
    "chess": chess.make_chess,
    "gardner_chess": chess.make_gardner_chess,
    "pgx": pgx_adapter.make_pgx,
    "breakthrough": breakthrough.make_breakthrough,
    "othello": othello.make_othello,
    "2048": twenty_forty_eight.make_2048,
    "tsp": tsp.make_tsp,
}
ENTRY_POINTS = "alphagat.games"  # the group in which packages name further families
EXAMPLES = (
    "tic_tac_toe",
    "connect_four",
    "gomoku:9",
    "mnk:5x6x4",
    "mnk:5x6x4:gravity",
    "hex:5",
    "hex:5:swap",
    "go:9",
    "chess",
    "gardner_chess",
    "pgx:animal_shogi",
    "breakthrough:6",
    "othello:8",
    "2048",
    "2048:3",
    "tsp:20",
)


@functools.lru_cache(maxsize=256)  # clients of a server choose names
def make_game(name: str) -> Game:
    """Makes the board of that name, e.g. `hex:5`; equal names give equal objects. Raises UserError if there is none."""
    if not name.isprintable():  # an error is one line
        raise UserError(f"board {name!r}: it has a line break or another control character; remove it")
    family = name.partition(":")[0]
    make = GAMES.get(family) or _load_installed(family)
    if make is None:
        examples = ", ".join((*EXAMPLES, *sorted(point.name for point in _installed())))
        raise UserError(f"board {name}: there is no such game; use one such as {examples}, or install its package")
    game = make(name)
    if not isinstance(game, Game):
        raise UserError(f"board {name}: its package made {game!r}; the function must return a Game")
    return game


def _load_installed(family: str) -> Callable[[str], Game] | None:
    """Loads a family from the package that provides it; None if none does. Raises UserError if loading fails."""
    for point in _installed().select(name=family):
        try:
            return point.load()
        except Exception as error:
            package = point.dist.name if point.dist else point.value
            raise UserError(
                f"board family {family}: {point.value} of the package {package} cannot be loaded "
                f"({type(error).__name__}: {error}); repair or uninstall that package"
            ) from error
    return None


@functools.cache  # it reads the metadata of every package, and clients of a server choose names
def _installed() -> EntryPoints:
    """Returns the families that other packages provide. Of several with one name, the first counts, as in imports."""
    return entry_points(group=ENTRY_POINTS)
