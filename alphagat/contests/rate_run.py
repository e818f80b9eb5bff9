"""Rates the checkpoints of a run, for `alphagat rate`: matches between them and against anchors."""

import dataclasses
import itertools
import json
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from rich.console import Console
from rich.progress import track

from alphagat import bounded_json
from alphagat.agents.agent import load
from alphagat.agents.sources import choose_steps
from alphagat.errors import UserError
from alphagat.evaluation.arena import play_match
from alphagat.evaluation.openings import distinct_openings
from alphagat.evaluation.players import Player, make_opponent
from alphagat.evaluation.ratings import PairResult, rate
from alphagat.games import make_game
from alphagat.monitoring.rating_curve import Rated, player_name, rated_players
from alphagat.runs.atomic_files import write_atomically
from alphagat.runs.folder import read_config
from alphagat.runs.metrics import read_metrics
from alphagat.runtime import sharding, terminal
from alphagat.wording import counted

RATINGS_FILE, CURVE_FILE = "ratings.json", "ratings.svg"


@dataclasses.dataclass(frozen=True)
class RatingSettings:
    """The parameters of a match other than its players.

    Attributes:
      run: identifies the run's config, in case another run replaces it in its folder.
    """

    board: str
    games: int
    simulations: int
    value_scale: float
    seed: int
    run: str


class KeptMatches(NamedTuple):
    """The contents of `ratings.json`.

    Attributes:
      played: pair scores of the matches with the current settings, by (player, opponent).
      others: matches with other settings, kept unchanged.
    """

    played: dict[tuple[str, str], np.ndarray]
    others: list[Any]


def rate_run(
    folder: Path,
    iterations: Sequence[int] | None,
    anchors: Sequence[str],
    settings: RatingSettings,
    console: Console,
) -> list[Rated]:
    """Plays every checkpoint against the next one and every anchor, and rates all players.

    Each anchor also plays the next one. The player rated 0 is `random`, else the first anchor, else the first
    checkpoint. `ratings.json` is written after each match, so that an interrupted call loses at most one; a later call
    with the same settings plays only the missing matches.

    Args:
      folder: the run folder.
      iterations: the checkpoints; None: all.
      anchors: players named as in `make_opponent`, weakest first.
      console: shows the progress.

    Raises:
      UserError: the run, a checkpoint or a player does not exist, there is only one player, or the board is not for
        two players; nothing was changed.
    """
    game = make_game(settings.board)
    if game.num_players != 2:
        raise UserError(f"board {game.name}: ratings need a game for two players; see alphagat evaluate")
    read_config(folder)  # raises for a folder without a run
    steps = choose_steps(folder, iterations or ())
    opponents = [make_opponent(game, name) for name in dict.fromkeys(anchors)]
    names = [each.name for each in opponents]
    anchor = "random" if "random" in names else [*names, player_name(steps[0])][0]
    pairings = [*itertools.pairwise(names), *_pairings([player_name(step) for step in steps], names)]
    if not pairings:
        raise UserError(f"{folder}: one player alone has no rating; name an anchor, such as --anchors random")
    with terminal.status("loading the checkpoints"):
        openings = distinct_openings(game, settings.games // 2, settings.seed)
        players = {each.name: each for each in opponents} | _networks(folder, steps, settings)
    file, mesh = folder / RATINGS_FILE, sharding.make_mesh(0)
    played = _read_matches(file, settings).played
    missing = [pair for pair in pairings if pair not in played]
    if len(missing) < len(pairings):
        known = f"{len(pairings) - len(missing)} of {len(pairings)} matches were played before; see {file}"
        console.print(known, markup=False, soft_wrap=True)
    for pair in track(missing, "matches", console=console, transient=True, disable=not console.is_terminal):
        one, other = (players[name] for name in pair)
        played[pair] = play_match(game, one, other, openings, _match_key(settings.seed, pair), mesh).pair_scores
        _write(file, settings, anchor, [], played)
    pair_results = [PairResult(*pair, played[pair]) for pair in pairings]
    rated = rated_players(rate(pair_results, anchor), read_metrics(folder))
    _write(file, settings, anchor, rated, played)
    return rated


def _match_key(seed: int, pair: tuple[str, str]) -> jax.Array:
    """Returns the key of one match, independent of the other matches."""
    return jax.random.fold_in(jax.random.key(seed), zlib.crc32(" ".join(pair).encode()))


def _pairings(networks: Sequence[str], anchors: Sequence[str]) -> Iterator[tuple[str, str]]:
    for number, network in enumerate(networks):
        yield from ((network, anchor) for anchor in anchors)
        if number + 1 < len(networks):
            yield networks[number + 1], network


def _networks(folder: Path, steps: Sequence[int], settings: RatingSettings) -> dict[str, Player]:
    """Loads the checkpoints as players that share one compiled program."""
    agents = [load(folder, step, settings.board) for step in steps]
    first = agents[0].player(settings.simulations)
    names = map(player_name, steps)
    return {name: Player(name, first.act, agent.params) for name, agent in zip(names, agents, strict=True)}


def _read_matches(file: Path, settings: RatingSettings) -> KeptMatches:
    found = KeptMatches({}, [])
    try:
        kept = bounded_json.read(file)
        for group in ({"settings": kept["settings"], "matches": kept["matches"]}, *kept["others"]):
            if group["settings"] != dataclasses.asdict(settings):
                found.others.append(group)
                continue
            for line in group["matches"]:
                found.played[line["player"], line["opponent"]] = _pair_scores(line, settings.games // 2)
        return found
    except FileNotFoundError:
        return found
    except (OSError, ValueError, KeyError, TypeError, OverflowError) as error:
        raise UserError(f"{file} cannot be read ({type(error).__name__}: {error}): move it away") from error


def _pair_scores(line: dict[str, Any], num_pairs: int) -> np.ndarray:
    scores = np.array(line["pair_scores"], float)
    if scores.shape != (num_pairs,) or not ((scores >= 0) & (scores <= 2)).all():
        raise ValueError(f"pair_scores must be {counted(num_pairs, 'number')} from 0 to 2")
    return scores


def _write(
    file: Path,
    settings: RatingSettings,
    anchor: str,
    players: Sequence[Rated],
    played: dict[tuple[str, str], np.ndarray],
) -> None:
    """Adds the matches to those in the file, which another call may have changed."""
    matches = _read_matches(file, settings)
    lines = [
        {"player": player, "opponent": opponent, "score": float(scores.mean() / 2), "pair_scores": scores.tolist()}
        for (player, opponent), scores in (matches.played | played).items()
    ]
    content: dict[str, Any] = {"settings": dataclasses.asdict(settings), "anchor": anchor}
    content |= {"players": [each._asdict() for each in players], "matches": lines, "others": matches.others}
    write_atomically(file, json.dumps(content) + "\n")
