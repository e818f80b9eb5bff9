"""The JSON messages of the web API: validated requests, and descriptions of positions and analyses."""

from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Discriminator, Field, StringConstraints, Tag

from alphagat.agents.analysis import Analysis
from alphagat.evaluation.game_files import file_ending
from alphagat.games.base import Game
from alphagat.games.states import moves_determine_positions
from alphagat.serving.limits import MAX_MOVES, MAX_NAME, MAX_PATH
from alphagat.serving.playthrough import Playthrough, Playthroughs

Number = Annotated[int, Field(strict=True, ge=0, lt=2**31)]
Name = Annotated[str, StringConstraints(max_length=MAX_NAME, strict=True)]
Source = Annotated[str, StringConstraints(max_length=MAX_PATH, strict=True)]
# By the type of the value, or an error about a long name would say that it is no number.
Move = Annotated[
    Annotated[Number, Tag("number")] | Annotated[Name, Tag("name")],
    Discriminator(lambda value: "name" if isinstance(value, str) else "number"),
]
DECIMALS = 4


class GameRequest(BaseModel):
    """Requests the position of a game, given its board and its moves as action numbers or names."""

    model_config = ConfigDict(extra="forbid")
    board: Name
    moves: list[Move] = Field(default=[], max_length=MAX_MOVES)
    seed: int = Field(default=0, ge=0, lt=2**32, strict=True)  # of chance events


class EvaluationRequest(GameRequest):
    """Requests an evaluation of the position by a player of the board; "" is the default one."""

    player: Source = ""


class AnalysisRequest(EvaluationRequest):
    """Requests an analysis of the position."""

    simulations: Number


class RecordRequest(GameRequest):
    """Requests the game as a file; `names` are those of players 0 and 1.

    A game that has not ended by the rules may have an `outcome` and the reason of a loss, as in a `GameRecord`.
    """

    names: tuple[Name, Name] = ("", "")
    outcome: Literal[-1, 0, 1] | None = None
    forfeit: Name = ""


def describe_board(game: Game, networks: list[dict[str, Any]]) -> dict[str, Any]:
    """Describes a board: its players, the networks that play it, and the ending of its game files, if it has any."""
    colours = game.player_colours[: game.num_players]
    return {
        "board": game.name,
        "family": game.family,
        "goal": game.goal,
        "players": [{"name": name, "colour": colour} for name, colour in colours],
        "networks": networks,
        "record": file_ending(game) if moves_determine_positions(game) else None,
    }


def describe_position(game: Game, playthrough: Playthrough, last: dict[str, Any] | None) -> dict[str, Any]:
    """Describes a position: the player to move, the legal actions and their places, and the outcome of a finished game.

    `counts` is `Game.counts`, None for most games.

    `last` is the move that led to the position (`describe_move`). A place is `[x, y, width, height]`: center and size
    in pixels of `svg`, or None for nodes and actions that are not drawn.
    """
    state, (nodes, actions) = playthrough.state, _places(game, playthrough.state)
    topology = game.topology
    legal = [
        {
            "action": action,
            "name": name,
            "from": int(topology.action_senders[action]),
            "to": int(topology.action_receivers[action]),
            "place": actions[action],
        }
        for action, name in zip(playthrough.legal, game.names_of(state, playthrough.legal))
    ]
    best = playthrough.returns.max()
    winners = np.flatnonzero(playthrough.returns == best).tolist()
    return {
        "board": game.name,
        "moves": [step._asdict() for step in playthrough.steps],
        "last": last,
        "player": int(state.current_player),
        "over": bool(state.terminated),
        "winner": winners[0] if state.terminated and len(winners) == 1 and game.num_players == 2 else None,
        "counts": game.counts(state),
        "points": float(playthrough.returns[0]) if game.num_players == 1 else None,
        "svg": game.render_svg(state),
        "text": game.render(state),
        "nodes": nodes,
        "legal": legal,
    }


def describe_analysis(
    game: Game, playthrough: Playthrough, analysis: Analysis, line: list[dict[str, Any]]
) -> dict[str, Any]:
    """Describes an analysis of the position; lists are over the legal actions in ascending order.

    Values are for the player to move, None for unvisited actions. `line` is the principal variation (`describe_line`).
    """
    legal = list(playthrough.legal)
    return {
        "player": int(playthrough.state.current_player),
        "action": int(analysis.action),
        "value": _number(analysis.value),
        "network_value": _number(analysis.network_value),
        "prior": [_number(x) for x in analysis.prior[legal]],
        "policy": [_number(x) for x in analysis.policy[legal]],
        "visits": analysis.visits[legal].tolist(),
        "values": [_number(x) for x in analysis.action_values[legal]],
        "variation": line,
    }


def describe_move(game: Game, state: Any, action: int) -> dict[str, Any]:
    """Describes a move in `state`: its player, its place, and the place `from` if it moves a piece."""
    nodes, actions = _places(game, state)
    sender, receiver = int(game.topology.action_senders[action]), int(game.topology.action_receivers[action])
    return {
        "action": action,
        "name": game.action_name(state, action),
        "player": int(state.current_player),
        "from": nodes[sender] if sender != receiver else None,
        "place": actions[action],
    }


def describe_line(games: Playthroughs, game: Game, request: GameRequest, variation: np.ndarray) -> list[dict[str, Any]]:
    """Describes the moves of a variation, padded with -1, from the position of `request`."""
    line, moves = [], list(request.moves)
    for action in variation[variation >= 0].tolist():
        line.append(describe_move(game, games.replay(request.seed, moves).state, action))
        moves.append(action)
    return line


def describe_attention(game: Game, weights: np.ndarray) -> dict[str, Any]:
    """Describes attention `[blocks, heads, E]`: the weight of each edge from `senders` to `receivers`."""
    topology = game.topology
    return {
        "senders": topology.senders.tolist(),
        "receivers": topology.receivers.tolist(),
        "kinds": [topology.vocabulary.node_kinds[kind] for kind in topology.node_kinds],
        "weights": np.round(weights.astype(float), DECIMALS).tolist(),
    }


def _places(game: Game, state: Any) -> tuple[list, list]:
    """Returns the places of nodes `[N]` and actions `[A]`."""
    return _listed(game.node_places(state)), _listed(game.action_places(state))


def _listed(places: np.ndarray) -> list[list[float] | None]:
    return [None if np.isnan(place).any() else place.tolist() for place in np.round(places, 1)]


def _number(x: Any) -> float | None:
    return None if np.isnan(x) else round(float(x), DECIMALS)
