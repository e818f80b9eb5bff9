r"""Lets engines play each other, for `alphagat pretrain`, and appends the games to an SGF or, for chess, PGN file.

    python benchmarks/engine_self_play.py --board chess --player uci:stockfish --move_nodes 200 1000 \
        --games 4000 --out games/stockfish.pgn
    python benchmarks/engine_self_play.py --board go:9 --games 2000 --out games/gnugo.sgf \
        --player "gtp:gnugo --mode gtp --level 1 --max-level 1 --chinese-rules --positional-superko \
        --play-out-aftermath --capture-all-dead --never-resign"

Every game starts with 0 to `--opening_plies` uniformly random moves. Then each colour is one of the players, drawn for
the game. `--move_nodes` makes one player of each UCI engine for each of its numbers. Games without a result after
`--max_plies` plies and games that an engine ends by an error are dropped.
"""

import argparse
import contextlib
import random
from pathlib import Path

from rich.progress import track

from alphagat.contests.contenders import EngineLimits, make_contender
from alphagat.evaluation import game_files
from alphagat.evaluation.engines.base import Engine, EngineError
from alphagat.evaluation.game_formats.record import GameRecord
from alphagat.evaluation.live_game import LiveGame
from alphagat.games import make_game
from alphagat.games.base import Game


def make_players(game: Game, names: list[str], nodes: list[int]) -> dict[str, Engine]:
    """Returns the players by name; of a UCI engine, one per number of nodes if `nodes` is not empty."""
    players = {}
    for name in names:
        for number in (nodes if name.startswith("uci:") else []) or [None]:
            player = make_contender(game, name, None, EngineLimits(nodes=number), seed=0)
            if not isinstance(player, Engine):
                raise SystemExit(f"--player {name}: it is no engine; use gtp:COMMAND or uci:COMMAND")
            players[f"{name}, {number} nodes" if number else name] = player
    return players


def random_opening(game: Game, max_plies: int, draw: random.Random) -> LiveGame:
    """Returns a game that goes on after 0 to `max_plies` uniformly random moves."""
    while True:
        live = LiveGame(game)
        for _ in range(draw.randint(0, max_plies)):
            if not live.is_over:
                live.play_action(draw.choice(list(live.position.legal_actions().values())))
        if not live.is_over:
            return live


def play_on(live: LiveGame, players: tuple[Engine, Engine], max_plies: int) -> None:
    """Plays to the end, or to `max_plies` plies. Raises EngineError if an engine fails."""
    while not live.is_over and len(live.position.moves) < max_plies:
        live.play_action(players[live.position.player].choose(live.position))


def record_of(live: LiveGame, names: tuple[str, str]) -> GameRecord:
    end = live.position
    return GameRecord(live.game.name, names, end.moves, end.players, outcome=int(live.outcome()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--board", default="chess", help="default: %(default)s")
    parser.add_argument("--player", action="append", required=True, help="an engine; may be repeated")
    parser.add_argument("--move_nodes", type=int, nargs="+", default=[], help="nodes per move of UCI engines")
    parser.add_argument("--games", type=int, default=4000, help="default: %(default)s")
    parser.add_argument("--opening_plies", type=int, default=10, help="default: %(default)s")
    parser.add_argument("--max_plies", type=int, default=300, help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=0, help="of the openings and players (default: %(default)s)")
    parser.add_argument("--out", type=Path, required=True, help="the file, .pgn for chess, else .sgf")
    options = parser.parse_args()
    game, draw = make_game(options.board), random.Random(options.seed)
    if options.out.suffix != game_files.file_ending(game):
        parser.error(f"--out: games of {game.name} are {game_files.file_ending(game)} files")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        players = make_players(game, options.player, options.move_nodes)
        for player in players.values():
            stack.enter_context(player)
        file = stack.enter_context(options.out.open("a"))
        for number in track(range(options.games), "games"):
            live = random_opening(game, options.opening_plies, draw)
            names = draw.choice(list(players)), draw.choice(list(players))
            try:
                play_on(live, (players[names[0]], players[names[1]]), options.max_plies)
            except EngineError as error:
                print(f"game {number}: {error}", flush=True)
                continue
            if live.is_over:
                file.write(game_files.to_text(record_of(live, names)))
                file.flush()


if __name__ == "__main__":
    main()
