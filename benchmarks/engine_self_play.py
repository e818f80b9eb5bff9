"""Lets a UCI engine play chess against itself, for `alphagat pretrain`, and appends the games to a PGN file.

    python benchmarks/engine_self_play.py --engine stockfish --games 4000 --nodes 200,1000 --out games/stockfish.pgn

Every game starts with 0 to `--opening_plies` uniformly random moves. Then each side searches one of the numbers of
nodes of `--nodes` per move, drawn for the game, so that some games are between unequal players. Games end by the rules
of `alphagat.games.chess`: at once after a threefold repetition, 50 moves without progress, or with too little material.
"""

import argparse
import random
from pathlib import Path

import chess.engine
import chess.pgn
from rich.progress import track

HEADERS = ("White", "Black")


def is_over(board: chess.Board) -> bool:
    return (
        not any(board.legal_moves)
        or board.is_insufficient_material()
        or board.is_fifty_moves()
        or board.is_repetition(3)
    )


def random_opening(max_plies: int, draw: random.Random) -> chess.Board:
    """Returns a position after 0 to `max_plies` uniformly random moves in which the game goes on."""
    while True:
        board = chess.Board()
        for _ in range(draw.randint(0, max_plies)):
            if not is_over(board):
                board.push(draw.choice(list(board.legal_moves)))
        if not is_over(board):
            return board


def play(engine: chess.engine.SimpleEngine, nodes: tuple[int, int], board: chess.Board, max_plies: int) -> None:
    """Plays on from `board`; White searches `nodes[0]` nodes per move, Black `nodes[1]`."""
    game = object()  # tells the engine that a new game begins
    while not is_over(board) and board.ply() < max_plies:
        limit = chess.engine.Limit(nodes=nodes[0 if board.turn else 1])
        move = engine.play(board, limit, game=game).move
        assert move is not None
        board.push(move)


def to_pgn(board: chess.Board, name: str, nodes: tuple[int, int]) -> str:
    game = chess.pgn.Game.from_board(board)
    game.headers.update({colour: f"{name}, {number} nodes" for colour, number in zip(HEADERS, nodes)})
    result = board.result()  # * after a repetition or 50 moves, which need a claim in the rules of FIDE
    game.headers["Result"] = result if result != "*" else "1/2-1/2"
    return f"{game}\n\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", default="stockfish", help="a UCI engine for chess (default: %(default)s)")
    parser.add_argument("--games", type=int, default=4000, help="default: %(default)s")
    parser.add_argument("--nodes", default="200,1000", help="nodes per move (default: %(default)s)")
    parser.add_argument("--opening_plies", type=int, default=10, help="default: %(default)s")
    parser.add_argument("--max_plies", type=int, default=300, help="then the game is a draw (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the openings and nodes (default: %(default)s)")
    parser.add_argument("--out", type=Path, required=True, help="the PGN file")
    options = parser.parse_args()
    choices, draw = [int(word) for word in options.nodes.split(",")], random.Random(options.seed)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with chess.engine.SimpleEngine.popen_uci(options.engine) as engine, options.out.open("a") as file:
        for _ in track(range(options.games), "games"):
            board, nodes = random_opening(options.opening_plies, draw), (draw.choice(choices), draw.choice(choices))
            play(engine, nodes, board, options.max_plies)
            file.write(to_pgn(board, Path(options.engine).name, nodes))


if __name__ == "__main__":
    main()
