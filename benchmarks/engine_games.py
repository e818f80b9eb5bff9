r"""Plays games with our engines through GTP and UCI, like a GUI, and counts errors.

    python benchmarks/engine_games.py --gtp_games 1000 --uci_games 200
    python benchmarks/engine_games.py --gtp_games 20 --uci_games 0 --boards go:5 --opponent "gtp:gnugo --mode gtp \
        --chinese-rules --positional-superko --play-out-aftermath --capture-all-dead --never-resign"

The engine moves first in every second game. The controller keeps its own state and checks each move against the rules.
The engine uses the shipped networks; the opponent plays at random unless `--opponent` names an engine. One process per
board plays all of its games.
"""

import argparse
import collections
import contextlib
import shlex
import sys
import time

import numpy as np

from alphagat.contests.contenders import EngineLimits, make_contender
from alphagat.evaluation.engines.base import Engine, EngineError
from alphagat.evaluation.engines.gtp import GtpEngine
from alphagat.evaluation.engines.uci import UciEngine
from alphagat.evaluation.live_game import LiveGame, Position
from alphagat.games import make_game
from alphagat.games.base import Game

GTP_BOARDS = ("hex:4", "hex:4:swap", "othello:4", "othello:6", "go:5")
START_SECONDS = 120.0


class RandomEngine(Engine):
    name = "random"

    def __init__(self, seed: int):
        self._random = np.random.default_rng(seed)

    def choose(self, position: Position) -> int:
        return int(self._random.choice(list(position.legal_actions().values())))


def play(game: Game, players: tuple[Engine, Engine]) -> int:
    """Plays one game and returns its number of plies. Raises EngineError if an engine fails."""
    live = LiveGame(game)
    while not live.is_over:
        live.play_action(players[live.position.player].choose(live.position))
    return len(live.position.moves)


def play_games(engine: Engine, opponent: Engine, game: Game, number: int) -> collections.Counter:
    """Returns the numbers of games and plies, and the count of each error."""
    counts: collections.Counter = collections.Counter()
    begin = time.perf_counter()
    for row in range(number):
        try:
            counts["plies"] += play(game, (engine, opponent) if row % 2 == 0 else (opponent, engine))
            counts["games"] += 1
        except EngineError as error:
            counts[error.end] += 1
            print(f"{game.name}, game {row}: {error.end}: {error}", flush=True)
    seconds = time.perf_counter() - begin
    print(f"{game.name} against {opponent.name}: {dict(counts)} in {seconds:.0f} s", flush=True)
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gtp_games", type=int, default=1000, help="on all boards together")
    parser.add_argument("--uci_games", type=int, default=200)
    parser.add_argument("--boards", nargs="+", default=GTP_BOARDS)
    parser.add_argument("--simulations", type=int, default=2)
    parser.add_argument("--opponent", help="as in alphagat match, e.g. uci:stockfish (default: random moves)")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    total: collections.Counter = collections.Counter()
    with contextlib.ExitStack() as stack:
        each, rest = divmod(options.gtp_games, len(options.boards))
        boards = [(name, each + (number < rest)) for number, name in enumerate(options.boards)]
        for name, number in [*boards, ("chess", options.uci_games)]:
            if number == 0:
                continue
            game = make_game(name)
            module, simulations = "uci" if name == "chess" else "gtp", options.simulations
            words = [sys.executable, "-m", "alphagat", module, "--board", name]
            flags = ["--simulations", str(simulations), "--max_simulations", str(max(64, simulations))]
            command = shlex.join([*words, *flags])
            if name == "chess":
                engine: Engine = UciEngine(game, command, nodes=options.simulations, grace=START_SECONDS)
            else:
                engine = GtpEngine(game, command, grace=START_SECONDS)
            opponent: Engine = RandomEngine(options.seed)
            if options.opponent:
                made = make_contender(game, options.opponent, None, EngineLimits(nodes=50), options.seed)
                assert isinstance(made, Engine)
                opponent = made
            total += play_games(stack.enter_context(engine), stack.enter_context(opponent), game, number)
    print(f"all: {dict(total)}")
    sys.exit(bool(set(total) - {"games", "plies"}))


if __name__ == "__main__":
    main()
